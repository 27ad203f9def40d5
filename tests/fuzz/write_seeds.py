#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Good inputs for the fuzzers to start from: write_seeds.py FOLDER makes FOLDER/npy, FOLDER/npz and FOLDER/generator."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True
from arrays import npy, npz  # noqa: E402


def main(folder):
    for kind in ('npy', 'npz', 'generator'):
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
    arrays = [npy([1.0, 2, 3]), npy([1.0] * 6, (2, 3), '<f4', True), npy([4.0], ()), npy([], (0, 5)), npy(b'\0' * 16, (1,), '<c16')]
    for k, array in enumerate(arrays):
        with open(os.path.join(folder, 'npy', str(k)), 'wb') as file:
            file.write(array)
    values = dict(lower=[1.0] * 9, diag=[4.0] * 9, upper=[1.0] * 9, rhs=[6.0] * 9)
    npz(os.path.join(folder, 'npz', 'stored'), **values)
    npz(os.path.join(folder, 'npz', 'deflated'), compress=True, **values)
    npz(os.path.join(folder, 'npz', 'short'), a=arrays[0])
    npz(os.path.join(folder, 'npz', 'empty'))
    for k, text in enumerate(('gen:diffusion?rows=100&number=10&contrast=1e4&seed=1', 'gen:random?shape=3x4x5&axis=1&zeros=0.5',
                              'gen:toeplitz?rows=9&systems=3&matrix=scalar&diag=-1e3', 'gen:zoo?number=14', 'gen:graded?decades=30&matrix=shared')):
        with open(os.path.join(folder, 'generator', str(k)), 'w', encoding='ascii') as file:
            file.write(text)


if __name__ == '__main__':
    main(sys.argv[1])
