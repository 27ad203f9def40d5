#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/kernel-table: names and what registers have room for."""
import importlib.machinery
import importlib.util
import os
import sys
import unittest

sys.dont_write_bytecode = True
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts', 'kernel-table')
LOADER = importlib.machinery.SourceFileLoader('kernel_table', PATH)
table = importlib.util.module_from_spec(importlib.util.spec_from_loader('kernel_table', LOADER))
LOADER.exec_module(table)


class KernelTable(unittest.TestCase):
    def test_names(self):
        for long, short in {'void trifold::cuda::solve_rows<double, 17, true, 192, 2>(trifold::cuda::Rows<double>)': 'solve_rows<double, 17, true, 192, 2>',
                            'void trifold::cuda::solve_shared_bands<float, 32, 512, (trifold::cuda::Place)1, 3, false>(int, float*)': 'solve_shared_bands<float, 32, 512, 1, 3, false>',
                            'trifold::cuda::(anonymous namespace)::reset(float*)': 'reset'}.items():
            self.assertEqual(table.short(long), short)

    def test_room(self):
        """As the occupancy calculator of compute capability 9.0 has it: registers in pieces of 256 a warp, warps in fours."""
        for registers, threads, blocks, warps in ((168, 192, 2, 12), (255, 256, 1, 8), (128, 512, 1, 16), (80, 256, 3, 24), (32, 256, 8, 64), (6, 32, 32, 32)):
            self.assertEqual(table.warps(registers, threads), (blocks, warps))
        self.assertEqual(table.warps(40, None), (None, 48))

    def test_every_kernel_has_a_family(self):
        self.assertEqual(table.FAMILIES[-1][0], '')


if __name__ == '__main__':
    unittest.main()
