#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every published case is one of the benchmark's, by the name that --list shows; needs no GPU. The argument is the program's path."""
import json
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else ''


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def name(row):
    mesh = row['mesh']
    group = ('3d' if len(mesh) == 3 else '2d') + ('-large' if len(mesh) == 2 and mesh[0] >= 256 else '')
    text = f'{mesh[0]}^{len(mesh)}' if len(set(mesh)) == 1 else 'x'.join(map(str, mesh))
    return f'{group}/{text}x{row["batch"]}/{row["precision"]}'


class Cases(unittest.TestCase):
    def test_every_published_case_is_there(self):
        with open(os.path.join(ROOT, 'bench/published/adi_heat.json'), encoding='utf-8') as file:
            published = json.load(file)['rows']
        lines = [line.split() for line in run('--list').stdout.splitlines()]
        known = {line[0]: 'energy' in line for line in lines}
        self.assertEqual(len(known), len(lines))
        for row in published:
            self.assertIn(name(row), known)
            self.assertEqual('u280_joules' in row, known[name(row)], name(row))

    def test_choosing(self):
        some = run('--list', '--only', '3d/,f64', '--only', '512^3').stdout.split()
        self.assertIn('3d/96^3x72/f64', some)
        self.assertIn('3d-large/512^3x1/f32', some)
        self.assertNotIn('3d/96^3x72/f32', some)
        self.assertEqual(run('--only', 'nowhere').returncode, 2)
        self.assertEqual(run('--onyl').returncode, 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
