#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input gets a clear error that names file, array or element and what to do."""
import math
import os
import resource
import subprocess
import warnings
import zipfile

from arrays import npy, npz
from harness import TRIFOLD, CommandTest, main

GOOD = {'lower': [0.0, -1, -1, -1], 'diag': [4.0] * 4, 'upper': [-1.0, -1, -1, 0], 'rhs': [1.0, 2, 3, 4]}


class BadInput(CommandTest):
    def good(self, **changes):
        npz(self.path('p.npz'), **{**GOOD, **changes})
        return 'p.npz'

    def solve_fails(self, parts, code=3, *more):
        self.write('x.npy', b'old')
        self.refuse(code, parts, 'solve', 'p.npz', '-o', 'x.npy', *more)
        self.assertEqual(self.read('x.npy'), b'old')

    def test_good_one_is_good(self):
        self.good()
        self.run_it('solve', 'p.npz', '-o', 'x.npy')

    def test_no_file(self):
        self.refuse(3, ['none.npz', 'No such file', 'check the name'], 'solve', 'none.npz')
        self.refuse(3, ['none.npy', 'No such file', 'check the name'], 'solve', 'none.npy')
        self.write('x.npy', b'')
        self.refuse(3, ['x.npy', 'one array', 'numpy.savez'], 'solve', 'x.npy')
        self.refuse(3, ['directory'], 'solve', self.folder)
        self.refuse(3, ['/dev/null', 'not a regular file'], 'solve', '/dev/null')
        self.refuse(2, ['INPUT', 'empty'], 'solve', '')
        self.refuse(2, ['SOLUTION', 'names no file'], 'verify', 'gen:poisson', '')
        self.refuse(3, ['a?[1mb?ä.npz'], 'solve', b'a\x1b[1mb\xff\xc3\xa4.npz')  # nothing that a terminal would obey

    def test_nothing_in_it(self):
        self.write('p.npz', b'')
        self.solve_fails(['p.npz: is empty', 'numpy.savez'])
        self.refuse(3, ['-: is empty'], 'solve', '-', input=b'')
        self.write('m.json', b'')
        self.refuse(3, ['m.json: is empty', 'split_model.md'], 'plan', '--machine', 'm.json')
        self.refuse(3, ['cannot be read: Is a directory'], 'plan', '--machine', self.folder)
        self.refuse(3, ['none.json: cannot be read: No such file'], 'plan', '--machine', 'none.json')
        self.write('m.json', b'{"a":')
        self.assertNotIn('json.exception', self.refuse(3, ['m.json: is no such JSON: parse error at line 1'], 'plan', '--machine', 'm.json'))

    def test_values_that_are_not_there(self):
        self.good()
        for option in ('--axis', '--tolerance', '--precision', '--watts', '--patience', '--device', '--algorithm', '--optimise'):
            self.solve_fails([option + ': is given without a value', 'trifold solve --help'], 2, option, '')
            self.solve_fails([option + ': is given without a value', 'trifold solve --help'], 2, option)
        self.refuse(2, ['--step: is given without a value', 'trifold heat --help'], 'heat', '--mesh', '8x8', '--step', '')
        self.refuse(2, ['--machine: is given without a value'], 'plan', '--machine', '')
        self.refuse(2, ['no subcommand is named', 'trifold --help'])

    def test_a_list_has_no_output(self):
        self.refuse(2, ['--output excludes --list'], 'generate', '--list', '-o', 'l.npz')
        self.refuse(2, ['INPUT excludes --list'], 'generate', '--list', 'gen:poisson')

    def test_lists_of_devices(self):
        self.good()
        self.solve_fails(['cpu,cpu', 'named twice'], 2, '--device', 'cpu,cpu')
        for name in (',', 'cpu,', ',cpu', 'cpu,,reference', 'cpu,all'):
            self.solve_fails([name, 'no list of devices', 'cpu,cuda:0'], 2, '--device', name)
        self.solve_fails(['cpi', 'cpu'], 2, '--device', 'cpu,cpi')
        self.run_it('solve', 'p.npz', '--device', 'all')

    def test_truncated_at_every_length(self):
        data = self.read(self.good())
        for length in range(0, len(data), max(1, len(data) // 12)):
            self.write('p.npz', data[:length])
            self.solve_fails(['p.npz'])

    def test_garbage(self):
        self.write('p.npz', os.urandom(4096))
        self.solve_fails(['p.npz', 'not a .npz archive'])
        self.good(diag=b'not an array')
        self.solve_fails(['p.npz', "'diag'", 'not a .npy array', 'numpy.save'])

    def test_damaged_value(self):
        data = bytearray(self.read(self.good()))
        data[data.find(npy(GOOD['diag'])) + 130] ^= 1
        self.write('p.npz', data)
        self.solve_fails(['p.npz', "'diag'", 'CRC'])

    def test_lying_header(self):
        array = npy(GOOD['diag']).replace(b'(4,)', b'(9,)')
        self.good(diag=array)
        self.solve_fails(["'diag'", 'truncated', 'f64[9]'])
        self.good(diag=npy(GOOD['diag']).replace(b'(4,), }          ', b'(99999999999,), }'))
        self.solve_fails(["'diag'", 'truncated'])

    def test_missing_array(self):
        arrays = dict(GOOD)
        arrays['digonal'] = arrays.pop('diag')
        npz(self.path('p.npz'), **arrays)
        self.solve_fails(['p.npz', "'diag'", 'missing', 'lower, upper, rhs, digonal'])

    def test_an_array_twice(self):
        with warnings.catch_warnings(), zipfile.ZipFile(self.path(self.good()), 'a') as archive:
            warnings.simplefilter('ignore')
            archive.writestr('diag.npy', npy([9.0] * 4))
        self.solve_fails(['p.npz', "'diag'", 'more than once'])

    def test_encrypted(self):
        data = bytearray(self.read(self.good()))
        for magic, flags in ((b'PK\3\4', 6), (b'PK\1\2', 8)):
            data[data.find(magic) + flags] |= 1
        self.write('p.npz', data)
        self.solve_fails(['p.npz', "'lower'", 'encrypted'])

    def test_wrong_shape(self):
        self.good(upper=[1.0] * 7)
        self.solve_fails(['p.npz', "'upper'", 'f64[7]', 'rhs f64[4]', 'give it'])
        self.good(rhs=npy([1.0] * 12, (4, 3)))
        self.solve_fails(["'lower'", 'f64[4, 3]', '--axis 0'])
        self.run_it('solve', 'p.npz', '--axis', '0')

    def test_not_finite(self):
        for bad, word in ((math.nan, 'nan'), (math.inf, 'inf'), (-math.inf, '-inf')):
            self.good(diag=[4.0, 4, bad, 4])
            self.solve_fails(['p.npz', "'diag'", f'element [2] is {word}'])
        self.good(rhs=npy([1.0, 2, math.nan, 4, 5, 6, 7, 8], (2, 4)))
        self.solve_fails(["'rhs'", 'element [0, 2] is nan'])
        self.good(lower=[math.nan, -1, -1, -1], upper=[-1, -1, -1, math.inf])
        self.run_it('solve', 'p.npz', '-o', 'x.npy')

    def test_types(self):
        for descr, word in (('<c16', 'complex'), ('<U4', 'string'), ('|S4', 'string'), ('<i8', 'integer'), ('>f8', 'big-endian'), ('|O', 'Python objects')):
            self.good(diag=npy(b'\0' * 64, (4,), descr))
            self.solve_fails(['p.npz', "'diag'", descr, word, "astype('<f8')"])
        self.good(diag=npy([4.0] * 4, descr='<f4'))
        self.solve_fails(["'diag'", 'f32 where rhs has f64', '--precision'])
        self.run_it('solve', 'p.npz', '--precision', 'f32')

    def test_too_large_for_f32(self):
        self.good(diag=[4.0, 4, 4, 1e200])
        self.solve_fails(["'diag'", 'element 3', 'f32', '--precision f64'], 3, '--precision', 'f32')

    def test_singular(self):
        self.good(lower=[0.0, -1, -1, 0], diag=[4.0, 4, 0, 4], upper=[-1.0, 0, -1, 0])  # column 2 is empty
        self.write('x.npy', b'old')
        out, err = self.run_it('solve', 'p.npz', '-o', 'x.npy', code=4)
        self.assertIn('singular', err)
        self.assertIn('row 2', err)
        self.assertIn('x.npy was not written', err)
        self.assertIn('singular', out)
        self.assertEqual(self.read('x.npy'), b'old')
        report = self.run_json('solve', 'p.npz', code=4)
        self.assertEqual((report['outcome']['ok'], report['outcome']['reason'], report['outcome']['row']), (False, 'singular', 2))

    def test_beyond_the_type(self):
        self.good(rhs=[1e308] * 4, diag=[1e-5] * 4, lower=[0.0] * 4, upper=[0.0] * 4)
        self.assertIn('not_finite at row 0 (the input is finite: x, or what leads to it, is beyond f64; scale the system)', self.run_it('solve', 'p.npz', code=4)[1])
        self.good(rhs=[1e30] * 4, diag=[1e-30] * 4, lower=[0.0] * 4, upper=[0.0] * 4)
        self.assertIn('beyond f32; scale the system, or --precision f64)', self.run_it('solve', 'p.npz', '--precision', 'f32', code=4)[1])

    def test_singular_system_of_a_batch(self):
        shape = (3, 4)
        self.good(**{name: npy(values * 3, shape) for name, values in GOOD.items()})
        diag = GOOD['diag'] * 3
        diag[4:8] = [0.0] * 4
        zeros = GOOD['lower'] + [0.0] * 4 + GOOD['lower']
        self.good(lower=npy(zeros, shape), upper=npy(zeros, shape), diag=npy(diag, shape), rhs=npy(GOOD['rhs'] * 3, shape))
        _, err = self.run_it('solve', 'p.npz', code=4)
        self.assertIn('singular', err)
        self.assertIn('system 1', err)

    def test_absent_device(self):
        environment = dict(self.environment)
        try:
            # Where there is a GPU it is hidden; where there is none, or no driver, or nothing was built, it is absent anyway.
            self.environment['CUDA_VISIBLE_DEVICES'] = ''
            self.refuse(5, ["device 'cuda:0'", '('], 'solve', 'gen:random?rows=100', '--device', 'cuda:0')
            self.refuse(5, ["device 'cuda:4711'"], 'solve', 'gen:random?rows=100', '--device', 'cuda:4711')
            self.refuse(2, ['cuda:x', "did you mean 'cuda:0'?"], 'solve', 'gen:random?rows=100', '--device', 'cuda:x')
            out, _ = self.run_it('devices')
            self.assertRegex(out, r'cuda:0 +not usable here: ')
        finally:
            self.environment = environment

    def test_does_not_fit(self):
        self.refuse(3, ['gen:poisson?rows=1e12', 'needs', 'TiB', 'available'], 'solve', 'gen:poisson?rows=1e12')
        self.refuse(3, ['needs', 'of disk', 'free'], 'generate', 'gen:poisson?rows=1e12', '-o', 'p.npz')

    def test_what_only_a_fall_back_needs_is_not_asked_for(self):
        """LU takes as much again as four of the five arrays, and few systems end there. Where addresses are limited, so is memory."""
        def limited(limit):
            return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        self.environment['OMP_NUM_THREADS'] = '1'
        problem = ['solve', 'gen:random?rows=8000000', '--no-roof', '--no-check']
        arrays = 5 * 64000000
        version = subprocess.run([TRIFOLD, '--version'], preexec_fn=limited(arrays), capture_output=True)
        if version.returncode != 0:
            self.skipTest('a sanitizer takes more addresses')
        self.run_it(*problem, preexec_fn=limited(arrays + (150 << 20)))
        self.refuse(3, ['use a smaller problem'], *problem, preexec_fn=limited(arrays))

    def test_output_that_cannot_be_written(self):
        self.good()
        self.refuse(3, ['none/x.npy', 'cannot be written', 'make the folder'], 'solve', 'p.npz', '-o', 'none/x.npy')
        self.refuse(3, ['cannot be written', 'folder'], 'solve', 'p.npz', '-o', '.')
        self.assertEqual(self.files(), ['p.npz'])
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([TRIFOLD, 'solve', 'p.npz', '--json'], cwd=self.folder,
                                  stdout=full, stderr=subprocess.PIPE, env=self.environment)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b'stdout', done.stderr)

    def test_a_timeline_is_a_picture_of_one_kind(self):
        self.good()
        self.refuse(2, ['--timeline t.png', 'is not an .svg file'], 'solve', 'p.npz', '--timeline', 't.png')
        self.run_it('solve', 'p.npz', '--timeline', '/dev/null')

    def test_a_folder_that_is_there_and_takes_no_files(self):
        self.good()
        self.assertNotIn('make the folder', self.refuse(3, ['/proc/x.npy: cannot be written', 'choose another place'], 'solve', 'p.npz', '-o', '/proc/x.npy'))

    def test_output_on_a_full_disk(self):
        self.good()
        self.refuse(3, ['/dev/full', 'No space left'], 'solve', 'p.npz', '-o', '/dev/full')
        os.symlink('/dev/full', self.path('full.device'))
        self.refuse(3, ['full.device', 'No space left'], 'solve', 'p.npz', '-o', 'full.device')

    def test_output_beyond_the_limit_of_files(self):
        """The system sends a signal for it, which would leave a half-written temporary."""
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for command in (('solve', 'gen:poisson', '-o', 'x.npy'), ('generate', 'gen:poisson', '-o', 'p.npz'), ('heat', '--mesh', '40x40', '-o', 'x.npy'),
                        ('heat', '--mesh', '40x40', '--plot', 'x.svg')):
            self.refuse(3, ['File too large', 'ulimit -f'], *command, '-q', '--no-roof' if command[0] != 'generate' else '--threads=1', preexec_fn=limited)
            self.assertEqual(self.files(), [])

    def test_output_whose_name_is_too_long(self):
        self.refuse(3, ['too long', 'shorter name'], 'solve', 'gen:poisson?rows=1e8', '-o', 'x' * 300 + '.npy')  # before anything long is begun
        self.run_it('solve', 'gen:poisson', '-o', 'x' * 251 + '.npy')

    def test_streams_that_are_closed(self):
        self.good()
        def shell(command):
            return subprocess.run(['bash', '-c', command.replace('trifold', f'"{TRIFOLD}"')], cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, timeout=60)
        for command in ('generate gen:poisson -o -', 'solve p.npz -o -', 'solve p.npz', 'devices', '--help', 'solve --help', '--version'):
            done = shell(f'trifold {command} >&-')
            self.assertEqual(done.returncode, 3, command)
            self.assertIn(b'cannot be written', done.stderr)
            self.assertEqual(shell(f'trifold {command} > /dev/full').returncode, 3, command)
        self.assertEqual(shell('trifold solve - < p.npz <&-').returncode, 3)
        self.assertEqual(shell('trifold solve p.npz -o x.npy <&- 2>&- > report').returncode, 0)
        self.assertEqual(self.files(), ['p.npz', 'report', 'x.npy'])
        self.run_it('verify', 'p.npz', 'x.npy')

    def test_output_that_is_something_else_too(self):
        self.good()
        os.link(self.path('p.npz'), self.path('problem'))
        before = self.read('p.npz')
        self.refuse(2, ['-o problem', 'INPUT'], 'solve', 'p.npz', '-o', 'problem')
        self.refuse(2, ['--trace p.npz', 'INPUT'], 'solve', 'p.npz', '--trace', 'p.npz')
        self.refuse(2, ['--trace ./x.npy', '-o'], 'solve', 'p.npz', '-o', 'x.npy', '--trace', './x.npy')
        self.refuse(2, ['--timeline t', '--trace'], 'solve', 'p.npz', '--trace', 't', '--timeline', 't')
        self.refuse(2, ['x.npz', 'name it *.npy'], 'solve', 'p.npz', '-o', 'x.npz')
        self.refuse(2, ['x.txt', 'not an .npy file', 'name it *.npy'], 'solve', 'p.npz', '-o', 'x.txt')
        self.refuse(2, ['--json', '--csv'], 'solve', 'p.npz', '--json', '--csv')
        for command in (('solve', 'p.npz'), ('generate', 'gen:poisson'), ('heat', '--mesh', '8x8')):
            self.refuse(2, ['--output', 'names no file'], *command, '-o', '')
        self.assertEqual(self.read('p.npz'), before)
        self.assertEqual(self.files(), ['p.npz', 'problem'])

    def test_verify(self):
        self.good()
        self.run_it('solve', 'p.npz', '-o', 'x.npy')
        self.run_it('verify', 'p.npz', 'x.npy')
        out, _ = self.run_it('verify', 'p.npz', self.write('wrong.npy', npy([1.0] * 4)), code=6)
        self.assertIn('not a solution', out)
        out, _ = self.run_it('verify', 'p.npz', self.write('nan.npy', npy([1.0, math.nan, 1, 1])), code=6)
        self.assertIn('not finite', out)
        self.refuse(3, ['short.npy', 'f64[3]', 'f64[4]'], 'verify', 'p.npz', self.write('short.npy', npy([1.0] * 3)))
        self.refuse(3, ['p.npy', 'is one array'], 'solve', self.write('p.npy', npy([1.0])))
        self.good(diag=[4.0, math.nan, 4, 4])  # the problem is to blame, not x
        self.refuse(3, ['p.npz', "'diag'", 'element [1] is nan'], 'verify', 'p.npz', 'x.npy')


class BadUsage(CommandTest):
    def test_names(self):
        small = 'gen:poisson?rows=10'
        for arguments, parts in (
                (['slove'], ["'slove'", "did you mean 'solve'"]),
                ([], ['subcommand']),
                (['solve'], ['INPUT']),
                (['solve', small, '--algoritm', 'lu'], ["'--algoritm'", "did you mean '--algorithm'"]),
                (['solve', small, '--algoritm=lu'], ["did you mean '--algorithm'"]),
                (['solve', small, 'more'], ["'more'"]),
                (['solve', small, '--algorithm', 'twopass'], ["'twopass'", "did you mean 'two_pass'"]),
                (['solve', small, '--device', 'cpo'], ["'cpo'", "did you mean 'cpu'"]),
                (['solve', small, '--precision', 'f65'], ["'f65'", "did you mean 'f64'"]),
                (['solve', small, '--threads', 'many'], ['--threads', 'many']),
                (['solve', small, '--threads', '-1'], ['threads', '-1']),
                (['solve', small, '--tolerance', '2'], ['tolerance']),
                (['solve', small, '--tolerance', '-1e-12'], ['tolerance', '-1e-12']),
                (['solve', small, '--repeat', '0'], ['--repeat']),
                (['solve', small, '--tolerance', 'small'], ["--tolerance: 'small' is no number"]),
                (['solve', small, '--axis', '1.5'], ["--axis: '1.5' is no whole number"]),
                (['heat', '--mesh', '8x8', '--number', 'one'], ["--number: 'one' is no number"]),
                (['solve', small, '--foo'], ["unknown option '--foo' (see: "]),
                (['solve', small, '--axis', '1'], ['--axis 1']),
                (['solve', 'gen:posson?rows=10'], ["did you mean 'poisson'"]),
                (['solve', 'gen:poisson?row=10'], ["did you mean 'rows'"]),
                (['solve', 'gen:poisson?rows=ten'], ['rows', 'not a number']),
                (['generate', small], ['-o problem.npz']),
                (['verify', small, 'x.npy', '--tolerance', '-1'], ['--tolerance', '-1 is no backward error']),
                (['verify', small, 'x.npy', '--tolerance', 'nan'], ['--tolerance', 'nan is no backward error']),
                (['bench', '--problems', 'p.npz'], ['--problems', "'p.npz' is not a generator"]),
                (['solve', small, '--watts', 'cpu=1,cpu=2'], ['--watts', "'cpu' is named twice"]),
                (['generate', small, '-o', 'p.txt'], ['.npz']),
                (['generate', 'p.npz', '-o', 'q.npz'], ['generate --list'])):
            self.refuse(2, parts, *arguments)

    def test_machine_files(self):
        self.refuse(3, ['none.json', 'cannot be read'], 'plan', '--machine', 'none.json')
        self.refuse(3, ['cannot be read'], 'plan', '--machine', '.')
        self.write('m.json', b'{"a":')
        self.refuse(3, ['m.json', 'no such JSON', 'split_model.md'], 'plan', '--machine', 'm.json')

    def test_nothing_is_left_behind(self):
        self.run_it('solve', 'gen:poisson?rows=10', '--device', 'x', '-o', 'x.npy', code=2)
        self.assertEqual(self.files(), [])


if __name__ == '__main__':
    main()
