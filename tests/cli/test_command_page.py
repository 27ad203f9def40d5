#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/guide/command.md says which keys a report has, how the command ends and what it looks at: all of them, and no others."""
import os
import re

from arrays import npz
from harness import CommandTest, main

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
NAMES = {'time.phases', 'time.solve_phases', 'models[].kernel_ratio'}      # their keys are names of phases or devices
GROUPS = {'roof', 'machine', 'devices[].roof', 'devices[].energy', 'devices[].link', 'devices[].time', 'rows[].roof', 'models[].best'}


def text(*path):
    with open(os.path.join(SOURCE, *path), encoding='utf-8') as file:
        return file.read()


def named(table):
    """What the first column of a table has in backticks."""
    return {key for row in re.findall(r'^\| (.*?) \|', table, re.M) for key in re.findall(r'`([^`]+)`', row)}


def keys(json, path=''):
    if isinstance(json, dict) and json and path not in NAMES:
        return {key for name, value in json.items() for key in keys(value, f'{path}.{name}' if path else name)}
    if isinstance(json, list) and json and isinstance(json[0], dict):
        return {key for value in json for key in keys(value, path + '[]')}
    return {path}


def grouped(found, documented):
    """Keys of a group are that group's, where the page names it whole."""
    whole = GROUPS & documented
    return {next((group for group in whole if key.startswith(group + '.')), key) for key in found}


class Page(CommandTest):
    page = text('docs', 'guide', 'command.md')

    def section(self, schema):
        return re.search(rf'^### `{schema}`.*?\n(.*?)(?=^### |\Z)', self.page, re.M | re.S).group(1)

    def test_keys(self):
        npz(self.path('p.npz'), lower=[0.0, -1, -1], diag=[4.0] * 3, upper=[-1.0, -1, 0], rhs=[1.0, 2, 3])
        self.run_it('solve', 'p.npz', '-o', 'x.npy')
        self.environment['XDG_CACHE_HOME'] = self.path('kept')
        for schema, command in {'trifold.report/1': ['solve', 'p.npz'], 'trifold.verify/1': ['verify', 'p.npz', 'x.npy'], 'trifold.plan/1': ['plan', 'gen:poisson?rows=1e5'],
                                'trifold.devices/1': ['devices', '--measure', '--threads', '1'], 'trifold.bench/1': ['bench', '--rows', '1000', '--repeat', '1'],
                                'trifold.heat/1': ['heat', '--mesh', '8x8'],
                                'trifold.machine_plan/1': ['plan', '--machine', os.path.join(SOURCE, 'bench', 'published', 'oclspkt.json')]}.items():
            report = self.run_json(*command)
            self.assertEqual(report['schema'], schema)
            documented = named(self.section(schema))
            found = grouped(keys(report) - {'schema'}, documented)
            several = {key for key in documented if key in {'devices[].state', 'devices[].chunks', 'devices[].busy_s', 'devices[].link', 'devices[].time'}}
            self.assertEqual(found, documented - several if schema == 'trifold.report/1' else documented, schema)
            for group in ('roof', 'machine'):
                if group in documented and group in report:
                    row = re.search(rf'^\| `{group}` \|(.*)\|$', self.page, re.M).group(1)
                    self.assertLessEqual(keys(report[group]), set(re.findall(r'`([a-z_]+)`', row)), group)

    def test_ends(self):
        codes = re.findall(r'(?<!\d)(\d) (?=[a-z])', re.search(r'Exit codes: (.*?)\.\n', self.run_it('--help')[0], re.S).group(1))
        self.assertEqual(codes, re.findall(r'^\| (\d) \|', self.page, re.M))

    def test_variables(self):
        pages = ''.join(text('docs', 'guide', name) for name in os.listdir(os.path.join(SOURCE, 'docs', 'guide'))) + text('CHANGELOG.md')
        for folder in ('src', 'cli'):
            for place, _, files in os.walk(os.path.join(SOURCE, folder)):
                for name in files:
                    for variable in re.findall(r'getenv\("(TRIFOLD_[A-Z_]+)"', text(os.path.relpath(os.path.join(place, name), SOURCE))) if name.endswith('.cpp') else ():
                        self.assertIn(variable, pages, name)


if __name__ == '__main__':
    main()
