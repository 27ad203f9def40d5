#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NumPy reads what the command writes, and the command reads what NumPy writes. Skipped where no Python here has NumPy."""
import io
import os
import shutil
import subprocess
import sys
import zipfile

try:
    import numpy
except ImportError:
    # The build's Python may be another than the system's, whose packages hold NumPy.
    other = shutil.which('python3', path='/usr/bin:/bin')
    tried = os.environ.get('TRIFOLD_NUMPY_TRIED')
    if other and not tried and subprocess.run([other, '-c', 'import numpy'], stderr=subprocess.DEVNULL).returncode == 0:
        os.execve(other, [other, *sys.argv], {**os.environ, 'TRIFOLD_NUMPY_TRIED': '1'})
    print('skipped: no NumPy (python3-numpy)')
    sys.exit(77)

from harness import TRIFOLD, CommandTest, main

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../examples/python')


def dense_solve(lower, diag, upper, rhs):
    n = len(rhs)
    matrix = numpy.diag(diag)
    matrix[numpy.arange(1, n), numpy.arange(n - 1)] = lower[1:]
    matrix[numpy.arange(n - 1), numpy.arange(1, n)] = upper[:-1]
    return numpy.linalg.solve(matrix.astype('f8'), rhs.astype('f8'))


class NumPy(CommandTest):
    def problem(self, shape, dtype, order='C'):
        rng = numpy.random.default_rng(7)
        make = lambda: numpy.asarray(rng.uniform(-1, 1, shape), dtype=dtype, order=order)
        return dict(lower=make(), diag=make() + dtype(3), upper=make(), rhs=make())

    def test_axes_orders_types_and_compression(self):
        for dtype, bound in ((numpy.float64, 1e-14), (numpy.float32, 1e-5)):
            for order in 'CF':
                for save in (numpy.savez, numpy.savez_compressed):
                    for axis in (0, 1, 2):
                        arrays = self.problem((5, 6, 7), dtype, order)
                        arrays['diag'] = numpy.asarray(arrays['diag'], order=order)
                        save(self.path('p.npz'), **arrays)
                        self.run_it('solve', 'p.npz', '--axis', str(axis), '-o', 'x.npy', '--no-roof')
                        x = numpy.load(self.path('x.npy'))
                        self.assertEqual((x.shape, x.dtype), ((5, 6, 7), dtype))
                        self.assertEqual(x.flags.f_contiguous, order == 'F')
                        lines = {name: numpy.moveaxis(array, axis, -1).reshape(-1, array.shape[axis]) for name, array in {**arrays, 'x': x}.items()}
                        for k in range(len(lines['x'])):
                            expected = dense_solve(*(lines[name][k] for name in ('lower', 'diag', 'upper', 'rhs')))
                            self.assertLess(abs(lines['x'][k] - expected).max(), bound)

    def test_shared_packed_and_scalar_coefficients(self):
        rng = numpy.random.default_rng(3)
        rhs = rng.uniform(size=(4, 9))
        numpy.savez(self.path('p.npz'), lower=rng.uniform(size=8), diag=numpy.float64(3), upper=rng.uniform(size=(1, 9)), rhs=rhs)
        self.run_it('solve', 'p.npz', '-o', 'x.npy')
        arrays = numpy.load(self.path('p.npz'))
        x = numpy.load(self.path('x.npy'))
        lower = numpy.concatenate([[0], arrays['lower']])
        for k in range(4):
            self.assertLess(abs(x[k] - dense_solve(lower, numpy.full(9, 3.0), arrays['upper'][0], rhs[k])).max(), 1e-14)

    def test_generated(self):
        self.run_it('generate', 'gen:lesp?rows=50', '-o', 'p.npz')
        p = numpy.load(self.path('p.npz'))
        i = numpy.arange(50)
        self.assertTrue((p['diag'] == -(2 * i + 5)).all())
        self.assertTrue((p['upper'][:-1] == i[:-1] + 2).all())
        self.assertTrue((p['lower'][1:] == 1 / (i[1:] + 1)).all())

    def test_header_versions(self):
        p = self.problem((8,), numpy.float64)
        for version in ((1, 0), (2, 0), (3, 0)):
            with zipfile.ZipFile(self.path('p.npz'), 'w') as archive:
                for name, array in p.items():
                    buffer = io.BytesIO()
                    numpy.lib.format.write_array(buffer, array, version=version)
                    archive.writestr(name + '.npy', buffer.getvalue())
            self.run_it('solve', 'p.npz', '--no-roof')

    def test_the_bridge_and_its_example(self):
        sys.path.insert(0, EXAMPLES)
        os.environ['TRIFOLD'] = TRIFOLD
        from bridge import solve
        p = self.problem((5, 8), numpy.float32)
        x = solve(p['lower'], 5, p['upper'], p['rhs'], '--axis', '0')
        self.assertEqual((x.shape, x.dtype), ((5, 8), numpy.float32))
        for k in range(8):
            self.assertLess(abs(x[:, k] - dense_solve(p['lower'][:, k], numpy.full(5, 5.0), p['upper'][:, k], p['rhs'][:, k])).max(), 1e-5)
        with self.assertRaisesRegex(ArithmeticError, 'singular at row 0'):
            solve(0, 0, 0, [1, 2, 3])
        with self.assertRaisesRegex(ValueError, "'diag'.*does not fit"):
            solve(0, [1.0, 2], 0, [1, 2, 3])
        self.assertLess(abs(solve(-1, 4, -1, numpy.arange(5)) - dense_solve(numpy.full(5, -1.0), numpy.full(5, 4.0), numpy.full(5, -1.0), numpy.arange(5))).max(), 1e-15)
        with self.assertRaises(TypeError):  # an imaginary part is not dropped
            solve(0, 1j, 0, [1, 2, 3])
        done = subprocess.run([sys.executable, os.path.join(EXAMPLES, 'options.py')], env=dict(self.environment, TRIFOLD=TRIFOLD), stdout=subprocess.PIPE, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout.decode())


if __name__ == '__main__':
    main()
