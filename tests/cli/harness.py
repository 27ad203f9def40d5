# SPDX-License-Identifier: BSD-3-Clause
"""Runs the command in a folder of its own. The first argument of a test script is the command's path."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TRIFOLD = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ''


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(self.folder, '.cache'), OMP_NUM_THREADS='2')
        self.environment.pop('NO_COLOR', None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def power_limit(self, watts):
        """A machine without energy counters whose processors may draw so many watts; None: it does not tell."""
        self.environment['TRIFOLD_POWERCAP'] = self.path('.powercap')
        package = self.path('.powercap/intel-rapl:0')
        os.makedirs(package, exist_ok=True)
        for name, text in {'name': 'package-0', 'constraint_0_name': 'long_term', 'constraint_0_power_limit_uw': 'none' if watts is None else str(int(watts * 1e6))}.items():
            with open(os.path.join(package, name), 'w', encoding='ascii') as file:
                file.write(text + '\n')

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name not in ('.cache', '.powercap'))

    def write(self, name, data):
        with open(self.path(name), 'wb') as file:
            file.write(data)
        return name

    def read(self, name):
        with open(self.path(name), 'rb') as file:
            return file.read()

    def run_it(self, *arguments, code=0, timeout=60, **options):
        """Returns (stdout, stderr); stdout as bytes with raw=True; input=bytes go through a pipe."""
        raw = options.pop('raw', False)
        options.setdefault('stdout', subprocess.PIPE)
        if 'input' not in options:
            options['stdin'] = subprocess.DEVNULL
        done = subprocess.run([TRIFOLD, *arguments], cwd=self.folder, env=self.environment, stderr=subprocess.PIPE,
                              timeout=timeout, **options)
        err = done.stderr.decode()
        self.assertEqual(done.returncode, code, f'{arguments}\n{done.stdout}\n{err}')
        out = done.stdout if raw or done.stdout is None else done.stdout.decode()
        return out, err

    def run_json(self, *arguments, code=0):
        out, _ = self.run_it(*arguments, '--json', code=code)
        return json.loads(out)

    def refuse(self, code, parts, *arguments, **options):
        """The command must end with this code, say every part on stderr, in one line, and keep stdout empty."""
        out, err = self.run_it(*arguments, code=code, **options)
        self.assertFalse(out, arguments)
        for part in parts:
            self.assertIn(part, err)
        self.assertEqual(err.count('\n'), 1, err)
        return err


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
