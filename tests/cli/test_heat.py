#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""trifold heat: fields in and out, snapshots, parts of a batch, energy, warnings, refusals."""
import json
import math
import resource
import signal
import struct
import subprocess
import time
import xml.etree.ElementTree

from arrays import npy, read_npy
from harness import TRIFOLD, CommandTest, main


class Heat(CommandTest):
    def test_a_mode_decays_as_it_should(self):
        report = self.run_json('heat', '--mesh', '24x16', '--initial', 'mode', '--iterations', '50', '--number', '0.5', '-o', 'u.npy')
        self.assertEqual(report['schema'], 'trifold.heat/1')
        self.assertTrue(report['outcome']['ok'])
        self.assertEqual(report['problem']['mesh'], [24, 16])
        self.assertEqual(report['problem']['mesh_number'], 0.5)
        step = 0.5 / 24 ** 2
        self.assertAlmostEqual(report['problem']['step'], step)
        values, shape, descr, fortran = read_npy(self.read('u.npy'))
        self.assertEqual((shape, descr, fortran), ((16, 24), '<f8', False))
        ax, ay = (-4 * n * n * math.sin(math.pi / (2 * n)) ** 2 * step for n in (24, 16))
        shrunk = (1 + (ax + ay) / ((1 - ax / 2) * (1 - ay / 2))) ** 50
        for x, y in ((0, 0), (11, 7), (23, 3)):
            exact = shrunk * math.sin(math.pi * (x + .5) / 24) * math.sin(math.pi * (y + .5) / 16)
            self.assertAlmostEqual(values[24 * y + x], exact, 12)
        self.assertAlmostEqual(report['field']['most'], max(values))

    def test_files_in_and_snapshots_out(self):
        size = 3 * 4 * 5
        self.write('u.npy', npy([math.sin(i) for i in range(2 * size)], (2, 5, 4, 3)))
        self.write('k.npy', npy([1 + i % 7 for i in range(size)], (5, 4, 3)))
        self.write('s.npy', npy([0.1] * size, (5, 4, 3)))
        arguments = ['heat', '--mesh', '3x4x5', '--batch', '2', '--initial', 'u.npy', '--conductivity', 'k.npy', '--source', 's.npy',
                     '--boundary', 'x=periodic,y-=neumann,y+=dirichlet:2,z=neumann', '--iterations', '9']
        self.run_it(*arguments, '-o', 'end.npy', '--snapshots', '2')
        self.assertEqual(self.files(), ['end-3.npy', 'end-6.npy', 'end.npy', 'k.npy', 's.npy', 'u.npy'])
        self.run_it(*arguments, '-o', 'reference.npy', '--device', 'reference')
        ours, theirs = (read_npy(self.read(name))[0] for name in ('end.npy', 'reference.npy'))
        self.assertLess(max(abs(a - b) for a, b in zip(ours, theirs)), 1e-12)
        turned = [1 + ((z * 4 + y) * 3 + x) % 7 for x in range(3) for y in range(4) for z in range(5)]
        self.write('turned.npy', npy(turned, (5, 4, 3), fortran=True))
        self.run_it(*['turned.npy' if one == 'k.npy' else one for one in arguments], '-o', 'same.npy')
        self.assertEqual(self.read('same.npy'), self.read('end.npy'))
        self.run_it(*arguments[:-1], '3', '-o', 'third.npy')
        self.assertEqual(self.read('third.npy'), self.read('end-3.npy'))

    def test_a_field_on_stdout(self):
        self.run_it('heat', '--mesh', '9x7', '--iterations', '4', '-o', 'u.npy')
        out, err = self.run_it('heat', '--mesh', '9x7', '--iterations', '4', '-o', '-', raw=True)
        self.assertEqual(out, self.read('u.npy'))
        self.assertIn('trifold heat: a mesh of 9 x 7', err)
        self.assertEqual(self.run_it('heat', '--mesh', '9x7', '-o', '-', '-q', raw=True)[1], '')
        self.refuse(2, ['--snapshots', 'no name'], 'heat', '--mesh', '9x7', '-o', '-', '--snapshots', '2')

    def test_schemes_agree_and_types(self):
        self.run_it('heat', '--mesh', '33x20', '--iterations', '10', '-o', 'a.npy')
        self.run_it('heat', '--mesh', '33x20', '--iterations', '10', '--scheme', 'peaceman-rachford', '-o', 'b.npy')
        a, b = (read_npy(self.read(name))[0] for name in ('a.npy', 'b.npy'))
        self.assertLess(max(abs(x - y) for x, y in zip(a, b)), 1e-13)
        self.run_it('heat', '--mesh', '33', '--iterations', '10', '--precision', 'f32', '-o', 'c.npy')
        self.assertEqual(read_npy(self.read('c.npy'))[1:3], ((33,), '<f4'))

    def test_pictures(self):
        for mesh, panels in (('40x30', 3), ('12x10x8', 3), ('50', 2)):
            self.run_it('heat', '--mesh', mesh, '--iterations', '40', '--plot', 'p.svg')
            root = xml.etree.ElementTree.fromstring(self.read('p.svg').decode())
            kinds = [element.tag.split('}')[1] for element in root]
            self.assertEqual(kinds.count('polyline'), 3)
            self.assertEqual(kinds.count('image'), panels - 2)
        self.run_it('heat', '--mesh', '700x9', '--iterations', '2', '--plot', 'p.png')
        data = self.read('p.png')
        self.assertEqual(data[:8], b'\x89PNG\r\n\x1a\n')
        self.assertEqual(struct.unpack('>II', data[16:24]), (350, 9))
        self.run_it('heat', '--mesh', '16x12', '--iterations', '2', '--plot', 'p.png')  # of few cells, each a square that can be seen
        self.assertEqual(struct.unpack('>II', self.read('p.png')[16:24]), (480, 360))
        self.run_it('heat', '--mesh', '8x6x5', '--batch', '2', '--iterations', '1', '--plot', 'p.svg')
        for part in ('1 step,', 'the first of 2 meshes', 'plane z = 2', 'log scale'):
            self.assertIn(part, self.read('p.svg').decode())
        self.refuse(2, ['neither an .svg nor a .png'], 'heat', '--mesh', '8x8', '--plot', 'p.jpg')
        self.refuse(2, ['no image'], 'heat', '--mesh', '8', '--plot', 'p.png')
        self.refuse(3, ['nowhere'], 'heat', '--mesh', '8x8', '--plot', 'nowhere/p.svg')

    def test_warning(self):
        _, err = self.run_it('heat', '--mesh', '8x8', '--iterations', '1', '--number', '50')
        self.assertIn('mesh number 50', err)
        self.assertIn('accuracy is lost', err)
        # Cells of 1/8: half a unit of time is a mesh number of 32.
        _, err = self.run_it('heat', '--mesh', '8x8', '--iterations', '1', '--step', '0.5')
        self.assertIn('mesh number 32', err)
        self.assertIn('a step of 0.156 or less', err)
        self.assertEqual(self.run_it('heat', '--mesh', '8x8', '--iterations', '1')[1], '')

    def test_refusals(self):
        for parts, arguments in {
                ('at least 3 cells',): ['--mesh', '2x8'],
                ('is no mesh', '128x128'): ['--mesh', '8y8'],
                ("unknown kind 'dirichlett'", "'dirichlet'"): ['--mesh', '8x8', '--boundary', 'dirichlett'],
                ('one side of x is periodic',): ['--mesh', '8x8', '--boundary', 'x-=periodic'],
                ('is no side',): ['--mesh', '8x8', '--boundary', 'w=neumann'],
                ("'z=periodic': the mesh has no z axis",): ['--mesh', '8x8', '--boundary', 'x=neumann,z=periodic'],
                ('side x+ is named twice',): ['--mesh', '8x8', '--boundary', 'x=neumann,x+=dirichlet'],
                ('side y- is named twice',): ['--mesh', '8x8', '--boundary', 'y-=neumann,y-=dirichlet'],
                ('only dirichlet sides have a value',): ['--mesh', '8x8', '--boundary', 'x-=neumann:3'],
                ("unknown scheme 'douglas'",): ['--mesh', '8x8', '--scheme', 'douglas'],
                ("unknown field 'spott'", "'spot'"): ['--mesh', '8x8', '--initial', 'spott'],
                ('two dimensions',): ['--mesh', '8x8x8', '--scheme', 'peaceman-rachford'],
                ('is no mesh number',): ['--mesh', '8x8', '--number', '0'],
                ('add -o',): ['--mesh', '8x8', '--snapshots', '3'],
                ('neither a number nor',): ['--mesh', '8x8', '--conductivity', 'iron']}.items():
            self.refuse(2, parts, 'heat', *arguments)
        self.refuse(3, ['is not positive'], 'heat', '--mesh', '8x8', '--conductivity=-1')
        self.refuse(3, ['conductivity: inf is not positive and finite'], 'heat', '--mesh', '8x8', '--conductivity=inf')
        self.write('k.npy', npy([1.0] * 30 + [0.0] + [1.0] * 33, (8, 8)))
        self.refuse(3, ['x = 6, y = 3', 'is not positive'], 'heat', '--mesh', '8x8', '--conductivity', 'k.npy')
        self.refuse(3, ['k.npy', 'f64[8, 8]', 'f64[8, 9]'], 'heat', '--mesh', '9x8', '--conductivity', 'k.npy')
        self.write('u.npy', npy([math.nan] + [1.0] * 63, (8, 8)))
        self.refuse(3, ['u.npy', 'not finite at x = 0'], 'heat', '--mesh', '8x8', '--initial', 'u.npy')
        self.write('u2.npy', npy([1.0] * 128, (2, 8, 8)))
        self.refuse(3, ['u2.npy', 'f64[2, 8, 8]', 'f64[8, 8]'], 'heat', '--mesh', '8x8', '--initial', 'u2.npy')
        self.refuse(3, ['u2.npy', 'f64[2, 8, 8]', 'f64[3, 8, 8]'], 'heat', '--mesh', '8x8', '--batch', '3', '--initial', 'u2.npy')
        self.refuse(3, ['u2.npy', 'f64[8, 8]'], 'heat', '--mesh', '8x8', '--batch', '2', '--source', 'u2.npy')
        self.write('s.npy', npy([0.0] * 63 + [math.inf], (8, 8)))
        self.refuse(3, ['s.npy', 'not finite at x = 7, y = 7'], 'heat', '--mesh', '8x8', '--source', 's.npy')
        self.refuse(3, ['s.npy', 'not finite at x = 7, y = 7'], 'heat', '--mesh', '8x8', '--conductivity', 's.npy')
        self.refuse(3, ['nowhere.npy'], 'heat', '--mesh', '8x8', '--source', 'nowhere.npy')
        self.refuse(2, ['--step', 'is no step of time'], 'heat', '--mesh', '8x8', '--step', '-1')
        self.refuse(2, ['--step', 'is no step of time'], 'heat', '--mesh', '8x8', '--step', 'nan')
        self.refuse(2, ['is no mesh number'], 'heat', '--mesh', '8x8', '--number', 'inf')
        self.refuse(2, ['--step', '0 is no step of time'], 'heat', '--mesh', '8x8', '--step', '0')
        self.refuse(2, ['--step', '--number'], 'heat', '--mesh', '8x8', '--step', '1', '--number', '1')
        self.refuse(2, ['--step', '1e+308', 'mesh number of inf', 'f64'], 'heat', '--mesh', '8x8', '--step', '1e308')
        self.refuse(2, ['--number', '1e-300', 'f32'], 'heat', '--mesh', '8x8', '--number', '1e-300', '--precision', 'f32')
        self.refuse(3, ['conductivity', '-1e-09'], 'heat', '--mesh', '8x8', '--conductivity=-1e-9')
        self.refuse(2, ['--device all', 'one device'], 'heat', '--mesh', '8x8', '--device', 'all')
        for option in ('--batch', '--iterations', '--at-once', '--snapshots'):
            self.run_it('heat', '--mesh', '8x8', option, '-1', code=2)
        self.run_it('heat', '--mesh', '8x8', '--batch', '0', code=2)
        self.refuse(3, ['memory'], 'heat', '--mesh', '100000x100000x1000')

    def test_nothing_to_do(self):
        self.assertIn('none: no steps', self.run_it('heat', '--mesh', '8x8', '--iterations', '0')[0])
        self.assertEqual(self.run_json('heat', '--mesh', '8x8', '--iterations', '0')['outcome']['reason'], 'none')
        report = self.run_json('heat', '--mesh', '8x8', '--iterations', '0', '-o', 'u.npy', '--energy', '--plot', 'p.svg')
        self.assertTrue(report['outcome']['ok'])
        self.assertEqual(report['time']['solve_s'], 0)
        self.assertEqual(self.files(), ['p.svg', 'u.npy'])

    def test_what_was_asked_for_is_reported(self):
        self.write('s.npy', npy([0.1] * 64, (8, 8)))
        out, _ = self.run_it('heat', '--mesh', '8x8', '--iterations', '1', '--boundary', 'x=periodic', '--conductivity', '2.5', '--source', 's.npy')
        self.assertIn('8 x 8, 1 step, f64', out)
        self.assertIn('begins as spot; sides x=periodic; conductivity 2.5; source s.npy', out)
        problem = self.run_json('heat', '--mesh', '8x8', '--iterations', '1')['problem']
        self.assertEqual((problem['conductivity'], problem['source']), ('1', None))

    def test_a_field_beyond_its_type(self):
        self.write('u.npy', npy([3e38] * 64, (8, 8), '<f4'))
        _, err = self.run_it('heat', '--mesh', '8x8', '--precision', 'f32', '--initial', 'u.npy', '--boundary', 'x-=dirichlet:3e38,x+=dirichlet:-3e38', code=4)
        self.assertIn('not_finite, step 0, along x, mesh 0', err)
        self.assertIn('beyond f32; scale it, or --precision f64', err)

    def test_parts_of_a_batch_are_as_all_of_it(self):
        arguments = ['heat', '--mesh', '12x9', '--batch', '7', '--iterations', '8', '--snapshots', '1', '--precision', 'f32']
        self.run_it(*arguments, '-o', 'whole.npy')
        out, err = self.run_it(*arguments, '-o', 'parts.npy', '--at-once', '3', '--plot', 'p.svg')
        self.assertIn('in 3 parts of 3 meshes', err)
        self.assertIn('in 3 parts', out)
        for name in ('whole-4.npy', 'whole.npy'):
            self.assertEqual(self.read(name), self.read(name.replace('whole', 'parts')))
        report = self.run_json(*arguments, '-o', 'parts.npy', '--at-once', '3')
        self.assertEqual(report['outcome']['parts'], 3)
        self.assertEqual(self.run_it(*arguments, '-o', 'parts.npy', '--at-once', '7')[1], '')

    def test_a_batch_that_does_not_fit_is_cut(self):
        """Where addresses are limited, so is memory: boxes take as much again while they are advanced, small planes do not."""
        def limited(limit):
            return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        self.environment['OMP_NUM_THREADS'] = '1'
        field = 200 * 64 ** 3 * 8
        if subprocess.run([TRIFOLD, '--version'], preexec_fn=limited(field), capture_output=True).returncode != 0:
            self.skipTest('a sanitizer takes more addresses')
        boxes = ['heat', '--mesh', '64x64x64', '--batch', '200', '--iterations', '1', '--no-roof', '--json']
        out, err = self.run_it(*boxes, preexec_fn=limited(field * 3 // 2 + (150 << 20)))
        self.assertIn('one after the other: cpu has no memory for more at once', err)
        self.assertEqual(json.loads(out)['field'], self.run_json(*boxes[:-1])['field'])
        planes = ['heat', '--mesh', '128x128', '--batch', '3200', '--iterations', '1', '--no-roof']
        self.assertEqual(self.run_it(*planes, preexec_fn=limited(field + (200 << 20)))[1], '')
        self.refuse(3, ['needs', 'of memory'], *boxes, preexec_fn=limited(field))

    def test_roof(self):
        report = self.run_json('heat', '--mesh', '64x64x64', '--iterations', '5')
        roof, rate = report['roof'], report['rate']['points_per_s']
        self.assertEqual(roof['source'], 'measured now')
        self.assertAlmostEqual(roof['words_per_point_and_step'] * 8 * rate / roof['value'], 1, 9)
        for arguments in (['--mesh', '8x8'], ['--mesh', '64x64x64', '--no-roof']):
            roof = self.run_json('heat', *arguments, '--iterations', '5')['roof']
            self.assertEqual((roof['value'], roof['source'], roof['words_per_point_and_step']), (None, None, None))

    def test_energy(self):
        out, _ = self.run_it('heat', '--mesh', '64x64', '--iterations', '500', '--energy', '--json', timeout=30)
        report = json.loads(out)
        energy = report['energy']
        self.assertIn(energy['kind'], ('measured', 'estimated', 'unknown'))
        self.assertTrue(energy['note'])
        if energy['kind'] == 'measured':
            self.assertGreater(energy['joules'], 0)
            self.assertGreaterEqual(energy['seconds'], 2)
        elif energy['kind'] == 'unknown':
            self.assertIsNone(energy['joules'])
        plain = self.run_json('heat', '--mesh', '64x64', '--iterations', '500')
        self.assertEqual(plain['energy']['kind'], 'unknown')
        self.assertEqual(report['field'], plain['field'])  # of the steps that were asked for

    def test_energy_of_a_power_limit(self):
        self.power_limit(225)
        run = ('heat', '--mesh', '64x64', '--iterations', '50')
        report = self.run_json(*run, '--energy')
        self.assertEqual((report['energy']['kind'], report['energy']['note']), ('estimated', '225 W while it computes, power limit by powercap of package-0'))
        self.assertAlmostEqual(report['energy']['joules'], 225 * report['time']['solve_s'])
        self.assertEqual(self.run_json(*run, '--energy', '--watts', 'cpu=100')['energy']['note'], '100 W while it computes')
        self.assertEqual(self.run_json(*run)['energy']['kind'], 'unknown')  # nobody asked

    def test_energy_of_given_watts(self):
        report = self.run_json('heat', '--mesh', '64x64', '--iterations', '50', '--watts', 'cpu=100')
        self.assertEqual((report['energy']['kind'], report['energy']['note']), ('estimated', '100 W while it computes'))
        self.assertAlmostEqual(report['energy']['joules'], 100 * report['time']['solve_s'])
        self.assertAlmostEqual(report['energy']['points_per_joule'] * 100, report['rate']['points_per_s'], 3)
        out, err = self.run_it('heat', '--mesh', '8x8', '--watts', 'gpu=100')
        self.assertIn("'gpu' is none of the devices", err)
        self.assertNotIn('energy', out)
        self.refuse(2, ['--watts', 'DEVICE=WATTS'], 'heat', '--mesh', '8x8', '--watts', '100')

    def test_a_gpu_that_is_not_there(self):
        devices = json.loads(self.run_it('devices', '--json')[0])
        if any(device['name'] == 'cuda:0' for device in devices['devices']):
            self.skipTest('there is a GPU')
        self.refuse(5, ["device 'cuda:0'"], 'heat', '--mesh', '8x8', '--device', 'cuda:0')
        self.refuse(2, ["unknown device 'cuda'", "'cuda:0'"], 'heat', '--mesh', '8x8', '--device', 'cuda')

    def test_a_gpu_agrees_with_the_reference(self):
        devices = json.loads(self.run_it('devices', '--json')[0])
        if not any(device['name'] == 'cuda:0' for device in devices['devices']):
            self.skipTest('there is no GPU')
        for mesh, batch in (('40x33', 5), ('12x10x9', 3)):
            arguments = ['heat', '--mesh', mesh, '--batch', str(batch), '--iterations', '12', '--snapshots', '1', '--boundary', 'x=periodic,y-=neumann,y+=dirichlet:2']
            self.run_it(*arguments, '-o', 'r.npy', '--device', 'reference')
            for more in ([], ['--at-once', '2']):
                report = self.run_json(*arguments, '-o', 'g.npy', '--device', 'cuda:0', *more)
                self.assertEqual(report['outcome']['device'], 'cuda:0')
                for name in ('r-06.npy', 'r.npy'):
                    ours, theirs = (read_npy(self.read(file))[0] for file in (name.replace('r', 'g', 1), name))
                    self.assertLess(max(abs(a - b) for a, b in zip(ours, theirs)), 1e-12)

    def test_interrupt_keeps_whole_snapshots(self):
        process = subprocess.Popen([TRIFOLD, 'heat', '--mesh', '300x300', '--iterations', '1000000', '--snapshots', '5000', '-o', 'u.npy'], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        limit = time.time() + 30
        while not self.files() and time.time() < limit:
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertNotIn(b'nothing was written', err)
        written = self.files()
        self.assertTrue(written)
        self.assertNotIn('u.npy', written)
        for name in written:
            self.assertTrue(name.endswith('.npy'), name)
            self.assertEqual(read_npy(self.read(name))[1], (300, 300))


if __name__ == '__main__':
    main()
