#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""stdin and stdout in the place of files, rings, and what a stranger types."""
import io
import os
import subprocess
import zipfile

from arrays import npy, npz, read_npy
from harness import TRIFOLD, CommandTest, main

RING = dict(lower=[-2.0, -1, -1, -1, -1], diag=[4.0, 4, 5, 4, 4], upper=[-1.0, -1, -1, -1, 3], rhs=[1.0, 2, 3, 4, 5])


def ring_residual(lower, diag, upper, rhs, x):
    n = len(x)
    return max(abs(rhs[i] - lower[i] * x[i - 1] - diag[i] * x[i] - upper[i] * x[(i + 1) % n]) for i in range(n))


class Pipes(CommandTest):
    def test_an_archive_comes_and_a_solution_goes(self):
        npz(self.path('p.npz'), **RING)
        x, _ = self.run_it('solve', '-', '-o', '-', '-q', input=self.read('p.npz'), raw=True)
        self.assertEqual(read_npy(x)[1], (5,))
        out, _ = self.run_it('verify', 'p.npz', '-', input=x, raw=True)
        self.assertIn(b'good', out)
        with open(self.path('p.npz'), 'rb') as file:  # redirected, not piped
            done = subprocess.run([TRIFOLD, 'solve', '-', '-o', '-', '-q'], stdin=file, env=self.environment, stdout=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, x))

    def test_a_generated_archive_goes_to_stdout(self):
        data, _ = self.run_it('generate', 'gen:lesp?rows=300&systems=700', '-o', '-', '-q', raw=True)
        self.run_it('generate', 'gen:lesp?rows=300&systems=700', '-o', 'p.npz', '-q')
        with zipfile.ZipFile(io.BytesIO(data)) as piped, zipfile.ZipFile(self.path('p.npz')) as kept:
            self.assertIsNone(piped.testzip())
            self.assertEqual({name: piped.read(name) for name in piped.namelist()}, {name: kept.read(name) for name in kept.namelist()})
        self.run_it('solve', '-', '--no-roof', input=data, raw=True)

    def test_a_named_pipe(self):
        npz(self.path('p.npz'), **RING)
        os.mkfifo(self.path('pipe.npz'))
        with subprocess.Popen(['cp', self.path('p.npz'), self.path('pipe.npz')]) as copying:
            self.run_it('solve', 'pipe.npz', '-o', 'x.npy')
        self.assertEqual(copying.returncode, 0)
        self.run_it('verify', 'p.npz', 'x.npy')

    def test_what_cannot_be_read(self):
        for name in ('-', 'p.npz'):
            self.write('p.npz', b'hello')
            _, err = self.run_it('solve', name, input=b'hello', raw=True, code=3)
            self.assertIn('not a .npz archive', err)
        self.refuse(2, ['both stdin'], 'verify', '-', '-')
        self.environment['TMPDIR'] = self.path('none')
        _, err = self.run_it('solve', '-', input=b'hello', raw=True, code=3)
        self.assertIn('TMPDIR', err)

    def test_a_reader_that_leaves(self):
        done = subprocess.run(['bash', '-c', '"$0" generate "gen:poisson?rows=1e6" -o - -q | head -c 100 > /dev/null; exit ${PIPESTATUS[0]}', TRIFOLD],
                              env=self.environment, stderr=subprocess.PIPE, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn(b'internal', done.stderr)


class Rings(CommandTest):
    def test_rings_of_every_size(self):
        for n in (1, 2, 3, 5, 300):
            for systems in (1, 3):
                ring = {name: [values[i % 5] + (0.01 * i if name == 'rhs' else 0) for i in range(n * systems)] for name, values in RING.items()}
                npz(self.path('p.npz'), **{name: npy(values, (systems, n)) for name, values in ring.items()})
                self.assertTrue(self.run_json('solve', 'p.npz', '--periodic', '-o', 'x.npy')['problem']['periodic'])
                x = read_npy(self.read('x.npy'))[0]
                for k in range(0, n * systems, n):
                    self.assertLess(ring_residual(*(ring[name][k:k + n] for name in ('lower', 'diag', 'upper', 'rhs')), x[k:k + n]), 1e-13)
                self.run_it('verify', 'p.npz', 'x.npy', '--periodic')
                if n > 2:
                    self.run_it('verify', 'p.npz', 'x.npy', code=6)
        self.assertIn(', periodic', self.run_it('solve', 'p.npz', '--periodic')[0])
        self.run_it('plan', 'p.npz', '--periodic')

    def test_ends_are_read(self):
        npz(self.path('p.npz'), **{**RING, 'lower': [float('nan'), -1, -1, -1, -1]})
        self.run_it('solve', 'p.npz')
        self.refuse(3, ["'lower'", 'element [0] is nan'], 'solve', 'p.npz', '--periodic')
        npz(self.path('p.npz'), **{**RING, 'lower': RING['lower'][1:]})
        self.run_it('solve', 'p.npz')
        self.refuse(3, ["'lower'", 'f64[4]', '5 rows'], 'solve', 'p.npz', '--periodic')

    def test_a_ring_that_is_not_asked_for_is_mentioned(self):
        npz(self.path('p.npz'), **RING, periodic=[1.0])
        self.assertIn('--periodic', self.run_it('solve', 'p.npz')[1])
        self.assertNotIn('--periodic', self.run_it('solve', 'p.npz', '--periodic')[1])


class Stranger(CommandTest):
    def test_help_is_a_command(self):
        self.assertEqual(self.run_it('help'), self.run_it('--help'))
        self.assertEqual(self.run_it('help', 'solve'), self.run_it('solve', '--help'))
        self.refuse(2, ['slove', "'solve'"], 'help', 'slove')

    def test_options_before_the_command(self):
        self.refuse(2, ["'--json' belongs behind", 'trifold solve --json'], '--json', 'solve', 'gen:poisson')

    def test_generators_as_files(self):
        self.refuse(2, ['write gen:poisson?rows=10'], 'solve', 'poisson?rows=10')
        self.refuse(2, ["follows a '?'"], 'solve', 'gen:poisson&rows=10')

    def test_whole_numbers(self):
        self.assertEqual(self.run_json('solve', 'gen:poisson', '--repeat', '2e0', '--no-roof')['time']['repeats'], 2)
        self.assertEqual(self.run_json('heat', '--mesh', '8x8', '--iterations', '1e1', '--no-roof')['problem']['iterations'], 10)
        for bad in ('0', '1.5', 'two', '1e9', '-1'):
            self.refuse(2, ['--repeat', f"'{bad}' is no whole number from 1 to 1000"], 'solve', 'gen:poisson', f'--repeat={bad}')
        self.refuse(2, ['--threads', "'5000'"], 'solve', 'gen:poisson', '--threads', '5000')

    def test_values_that_vanish_in_single_precision(self):
        npz(self.path('p.npz'), lower=[1.0] * 3, diag=[4.0] * 3, upper=[1.0] * 3, rhs=[1.0, 1e-100, 1e-200])
        _, err = self.run_it('solve', 'p.npz', '--precision', 'f32')
        self.assertIn("'rhs' converted from f64 to f32, where 2 values are too small and became 0", err)
        self.assertEqual(err.count('became'), 1)

    def test_a_gpu_is_not_taken_for_a_cpu(self):
        err = self.refuse(2, ["unknown device 'gpu'", 'cuda:N', 'known: cpu'], 'solve', 'gen:poisson', '--device', 'gpu')
        self.assertNotIn('did you mean', err)
        self.refuse(2, ["did you mean 'cpu'"], 'solve', 'gen:poisson', '--device', 'cpy')

    def test_algorithms_are_named_where_they_are_asked_for(self):
        text, _ = self.run_it('solve', '--help')
        _, err = self.run_it('solve', 'gen:poisson', '--algorithm', 'none', code=2)
        for name in err[err.index('known:') + 6:err.index(')')].split(','):
            self.assertIn(name.strip(), text)

    def test_bandwidth_that_is_not_measured_is_not_shown(self):
        out, _ = self.run_it('devices')
        self.assertIn('not measured yet', out)
        self.assertNotIn('GB/s', out)


if __name__ == '__main__':
    main()
