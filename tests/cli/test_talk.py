#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the command says, and where: data on stdout, talk on stderr, schemas, examples, terminals."""
import os
import pty
import re
import subprocess

from arrays import npy, npz, read_npy, read_npz
from harness import TRIFOLD, CommandTest, main

SMALL = 'gen:diffusion?rows=5000&number=10&contrast=1e4&seed=1'


class Reports(CommandTest):
    def test_report_keys(self):
        report = self.run_json('solve', SMALL, '--threads', '1')
        self.assertEqual(report['schema'], 'trifold.report/1')
        self.assertEqual(report['family'], 'tridiagonal')
        for key, inner in {'problem': 'rows systems layout precision rhs', 'plan': 'algorithm device why predicted_s',
                           'outcome': 'ok reason branch row system iterations', 'error': 'residual certificate',
                           'time': 'clock total_s solve_s phases', 'roof': 'kind value unit source needed_bytes fraction',
                           'rate': 'rows_per_s', 'energy': 'joules kind', 'memory': 'workspace_bytes peak_bytes',
                           'machine': 'cpu cores memory_bytes compiler version commit'}.items():
            self.assertLessEqual(set(inner.split()), set(report[key]), key)
        self.assertEqual(report['problem']['rows'], 5000)
        self.assertEqual(report['problem']['precision'], 'f64')
        self.assertTrue(report['outcome']['ok'])
        self.assertLess(report['error']['residual'], 1e-14)
        self.assertEqual(report['time']['clock'], 'wall')
        self.assertEqual(report['roof']['needed_bytes'], 5 * 8 * 5000)
        self.assertAlmostEqual(report['roof']['fraction'],
                               report['roof']['needed_bytes'] / report['time']['solve_s'] / report['roof']['value'], 6)
        self.assertAlmostEqual(report['rate']['rows_per_s'] * report['time']['solve_s'], 5000, 3)
        self.assertEqual((report['energy']['joules'], report['energy']['kind']), (None, 'unknown'))
        self.assertEqual(report['devices'][0]['name'], 'cpu')
        self.assertLessEqual({'generate', 'solve', 'check'}, set(report['time']['phases']))

    def test_energy_is_measured_or_said_to_be_unknown(self):
        report = self.run_json('solve', SMALL, '--energy')
        energy = report['energy']
        self.assertTrue(energy['note'])
        if energy['kind'] == 'measured':
            self.assertGreaterEqual(energy['seconds'], 2)
            self.assertGreater(energy['solves'], 0)
            self.assertAlmostEqual(energy['rows_per_joule'] * energy['joules'], 5000, 3)
        else:
            self.assertIn(energy['kind'], ('estimated', 'unknown'))
            self.assertEqual((energy['solves'], energy['seconds']), (0, 0))  # nobody counts: nothing is repeated
        self.assertIn('  energy', self.run_it('solve', SMALL, '--energy')[0])

    def test_energy_is_estimated_by_the_power_limit(self):
        self.power_limit(225)
        report = self.run_json('solve', SMALL, '--energy')
        energy = report['energy']
        self.assertEqual(energy['kind'], 'estimated')
        self.assertEqual(energy['note'], '225 W while it computes, power limit by powercap of package-0')
        self.assertAlmostEqual(energy['joules'], 225 * report['time']['solve_s'])
        self.assertAlmostEqual(energy['rows_per_joule'] * energy['joules'], 5000, 3)
        self.assertEqual((energy['solves'], energy['seconds']), (0, 0))
        self.assertIn('rows/J, estimated (225 W while it computes, power limit', self.run_it('solve', SMALL, '--energy')[0])
        self.assertEqual(self.run_json('solve', SMALL, '--energy', '--watts', 'cpu=10')['energy']['note'], '10 W while it computes')
        self.assertEqual(self.run_json('solve', SMALL)['energy']['kind'], 'unknown')  # nobody asked

    def test_energy_that_is_unknown_says_what_to_give(self):
        self.power_limit(None)
        energy = self.run_json('solve', SMALL, '--energy')['energy']
        self.assertEqual((energy['kind'], energy['joules'], energy['rows_per_joule']), ('unknown', None, None))
        self.assertIn('give --watts cpu=WATTS', energy['note'])

    def test_every_schema(self):
        self.run_it('generate', SMALL, '-o', 'p.npz')
        self.run_it('solve', 'p.npz', '-o', 'x.npy')
        for schema, arguments in {'plan': ['plan', 'p.npz'], 'devices': ['devices'], 'verify': ['verify', 'p.npz', 'x.npy'],
                                  'bench': ['bench', '--rows', '1000', '--repeat', '1']}.items():
            self.assertEqual(self.run_json(*arguments)['schema'], f'trifold.{schema}/1')

    def test_bench_shows_no_rate_of_what_was_not_solved(self):
        out, err = self.run_it('bench', '--problems', 'gen:poisson,gen:dominant', '--rows', '50000', '--repeat', '1', '--algorithm', 'certified', code=4)
        self.assertIn('not solved: gen:poisson, 50 000 rows: not_certified', err)
        self.assertRegex(out, r'gen:poisson .*certified +- +not_certified +- ')
        self.assertRegex(out, r'gen:dominant .*rows/s')
        rows = self.run_json('bench', '--problems', 'gen:poisson', '--rows', '50000', '--repeat', '1', '--algorithm', 'certified', code=4)['rows']
        self.assertEqual((rows[0]['rows_per_s'], rows[0]['roof']['fraction']), (None, None))
        out, _ = self.run_it('bench', '--rows', '100', '--repeat', '1')  # too little for a roof
        self.assertNotIn('inf', out)
        self.assertNotIn('0.00 B/s', out)

    def test_plan_explains(self):
        plan = self.run_json('plan', 'gen:poisson?rows=1e11', '--explain')  # more than any memory holds: nothing is read
        self.assertEqual(plan['problem']['rows'], 100000000000)
        self.assertGreater(plan['memory']['problem_bytes'], plan['memory']['available_bytes'])
        self.assertRegex(self.run_it('plan', 'gen:poisson?rows=1e11')[0], r'memory +problem .*: more than the .* available')
        self.assertTrue(plan['plan']['candidates'])
        self.assertEqual([c['taken'] for c in plan['plan']['candidates']].count(True), 1)
        for candidate in plan['plan']['candidates']:
            self.assertTrue(candidate['why'], candidate)
        out, _ = self.run_it('plan', 'gen:dominant?rows=256&systems=10000', '--explain')
        self.assertNotIn('fall-back', out)  # another way to run the same algorithm is none
        out, _ = self.run_it('plan', 'gen:poisson?rows=1000', '--explain')
        for candidate in plan['plan']['candidates']:
            self.assertIn(candidate['algorithm'], out)

    def test_csv(self):
        header, line = self.run_it('solve', 'gen:poisson?rows=100', '--csv', '--no-roof')[0].splitlines()
        self.assertEqual(len(header.split(',')), len(line.split(',')))
        self.assertEqual(line.split(',')[1], '100')

    def test_devices(self):
        out, _ = self.run_it('devices', '--matrix')
        self.assertRegex(out, r'cpu +tridiagonal +native')
        self.assertRegex(out, r'cpu +sweeps +native')
        self.assertRegex(out, r'reference +sweeps +native')
        grid = self.run_json('devices')['matrix']
        self.assertLessEqual({'cpu', 'reference'}, {cell['device'] for cell in grid})

    def test_threads_are_those_that_are_used(self):
        """Short systems and the reference take one thread of two; report and plan say so alike."""
        for more in (['gen:poisson?rows=1000'], ['gen:dominant?rows=100&systems=50', '--device', 'reference']):
            report = self.run_json('solve', *more, '--no-roof', '--threads', '2')
            self.assertEqual(report['devices'][0]['threads'], 1, more)
            out, _ = self.run_it('plan', *more, '--explain', '--threads', '2')
            self.assertNotIn('2 threads', out)

    def test_watts_of_a_device_that_is_not_asked(self):
        _, err = self.run_it('solve', 'gen:poisson?rows=100', '--watts', 'cpu=10,gpu=20')
        self.assertIn("--watts: 'gpu' is none of the devices", err)
        self.assertNotIn("'cpu' is none", err)

    def test_a_timeline_without_events_is_a_picture(self):
        _, err = self.run_it('solve', 'gen:poisson?rows=100', '--timeline', 't.svg')
        self.assertTrue(self.read('t.svg').startswith(b'<svg '))
        self.assertIn('no events', err)
        self.assertEqual(self.run_it('solve', 'gen:poisson?rows=100', '--timeline', 't.svg', '-q')[1], '')

    def test_nothing_to_solve(self):
        npz(self.path('e.npz'), **{name: npy([], (0, 5)) for name in ('lower', 'diag', 'upper', 'rhs')})
        report = self.run_json('solve', 'e.npz')
        self.assertEqual((report['problem']['rows'], report['problem']['systems']), (5, 0))
        self.assertEqual((report['outcome']['reason'], report['outcome']['device']), ('none', 'cpu'))
        self.assertEqual(report['plan']['why'], 'nothing to solve')
        out, _ = self.run_it('solve', 'e.npz', '-o', 'x.npy')
        self.assertNotIn('  solve ', out)  # no time of nothing
        self.assertEqual(read_npy(self.read('x.npy'))[1], (0, 5))

    def test_reference_by_name(self):
        report = self.run_json('solve', SMALL, '--device', 'reference', '--algorithm', 'lu')
        self.assertEqual((report['outcome']['device'], report['outcome']['branch']), ('reference', 'lu'))

    def test_examples_run(self):
        """In order, in one folder, as they stand in --help."""
        seen = 0
        for command in ('generate', 'solve', 'verify', 'plan', 'heat', 'bench', 'devices', ''):
            text, _ = self.run_it(*([command] if command else []), '--help')
            examples = re.findall(r'^  (trifold .*)$', text.split('Examples:')[1], re.M)
            self.assertTrue(examples, command)
            for example in examples:
                line = 'set -o pipefail; trifold() { "$TRIFOLD" "$@"; }; ' + example
                done = subprocess.run(['bash', '-c', line], cwd=self.folder, env={**self.environment, 'TRIFOLD': TRIFOLD}, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
                self.assertIn(done.returncode, (0, 5) if 'cuda:0' in example else (0,), f'{example}\n{done.stderr.decode()}')
                seen += 1
        self.assertGreater(seen, 12)

    def test_list_names_what_can_be_generated(self):
        text, _ = self.run_it('generate', '--list')
        names = re.findall(r'^(\w+): ', text, re.M)
        self.assertIn('diffusion', names)
        for name in names:
            self.run_it('plan', f'gen:{name}?rows=10')

    def test_version(self):
        self.assertRegex(self.run_it('--version')[0], r'^trifold \d+\.\d+\.\d+ \(.*\)$')


class Files(CommandTest):
    def test_generate_solve_verify_along_any_axis(self):
        for axis in (0, 1, 2, -1):
            self.run_it('generate', f'gen:random?shape=6x7x8&axis={axis}', '-o', 'p.npz', '-q')
            report = self.run_json('solve', 'p.npz', '--axis', str(axis), '-o', 'x.npy')
            self.assertEqual(report['problem']['systems'] * report['problem']['rows'], 6 * 7 * 8)
            self.run_it('verify', 'p.npz', 'x.npy', '--axis', str(axis))
            _, shape, descr, _ = read_npy(self.read('x.npy'))
            self.assertEqual((shape, descr), ((6, 7, 8), '<f8'))

    def test_generated_file_is_a_zip_of_arrays(self):
        self.run_it('generate', 'gen:toeplitz?rows=5', '-o', 'p.npz', '--precision', 'f32')
        arrays = read_npz(self.path('p.npz'))
        self.assertEqual(set(arrays), {'lower', 'diag', 'upper', 'rhs'})
        self.assertEqual(arrays['lower'], ([0.0, -1, -1, -1, -1], (5,), '<f4', False))
        self.assertEqual(self.files(), ['p.npz'])

    def test_deflated_and_extra_arrays(self):
        npz(self.path('p.npz'), compress=True, lower=[1.0] * 400, diag=[4.0] * 400, upper=[1.0] * 400, rhs=[6.0] * 400, time=[0.0])
        _, err = self.run_it('solve', 'p.npz', '-o', 'x.npy')
        self.assertIn('ignored in p.npz: time', err)
        values = read_npy(self.read('x.npy'))[0]
        self.assertLess(max(abs(v - 1) for v in values[50:-50]), 1e-15)
        self.assertEqual(self.run_it('solve', 'p.npz', '-o', 'x.npy', '--quiet')[1], '')

    def test_solution_on_stdout(self):
        out, err = self.run_it('solve', 'gen:poisson?rows=10', '-o', '-', raw=True)
        self.assertEqual(read_npy(out)[1], (10,))
        self.assertIn('residual', err)
        self.assertEqual(self.run_it('solve', 'gen:poisson?rows=10', '-o', '-', '-q', raw=True)[1], '')
        self.assertEqual(self.run_it('solve', 'gen:poisson?rows=10', '-o', '/dev/stdout', '-q', raw=True)[0], out)

    def test_old_solution_is_replaced(self):
        self.write('x.npy', b'old')
        os.chmod(self.path('x.npy'), 0o600)
        self.run_it('solve', 'gen:poisson?rows=10', '-o', 'x.npy')
        self.assertEqual(len(read_npy(self.read('x.npy'))[0]), 10)
        self.assertEqual(os.stat(self.path('x.npy')).st_mode & 0o777, 0o600)
        self.assertEqual(self.files(), ['x.npy'])


class Terminal(CommandTest):
    def on_terminal(self, *arguments, **environment):
        """stdout and stderr of the command, both on one pseudo-terminal."""
        master, slave = pty.openpty()
        process = subprocess.Popen([TRIFOLD, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                                   env={**self.environment, 'TERM': 'xterm', **environment})
        os.close(slave)
        text = b''
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(master)
        self.assertEqual(process.wait(60), 0, text)
        return text.decode()

    def test_colour_and_progress_on_a_terminal_only(self):
        plain, err = self.run_it('solve', SMALL)
        self.assertNotIn('\033', plain + err)
        shown = self.on_terminal('solve', SMALL)
        self.assertIn('\033[32m', shown)
        self.assertIn('\r\033[K', shown)
        self.assertNotIn('\033[32m', self.on_terminal('solve', SMALL, NO_COLOR='1'))
        self.assertNotIn('\033', self.on_terminal('solve', SMALL, TERM='dumb'))
        self.assertNotIn('\r\033[K', self.on_terminal('solve', SMALL, '--quiet'))
        self.assertIn('] ', self.on_terminal('generate', 'gen:diffusion?rows=8e6', '-o', 'p.npz'))

    def test_no_array_on_a_terminal(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        done = subprocess.run([TRIFOLD, 'solve', SMALL, '-o', '-'], stdout=slave, stderr=subprocess.PIPE, env=self.environment)
        os.close(slave)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b'terminal', done.stderr)


if __name__ == '__main__':
    main()
