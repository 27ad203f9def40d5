# SPDX-License-Identifier: BSD-3-Clause
"""What a process has learnt of devices side by side the next one knows: the cpu and two parts of an OpenCL device whose calls are slow (failing_layer.cpp)."""
import functools
import glob
import json
import os
import shutil
import subprocess
import tempfile

from harness import TRIFOLD, CommandTest, main

DEVICES = 'cpu,opencl:0.0/0/2,opencl:0.0/1/2'
PARTS = DEVICES.split(',')[1:]
PROBLEM = ('gen:dominant?rows=4000000', '--device', DEVICES)
SOLVE = ('solve', *PROBLEM, '--no-roof')


def attempts(test):
    """What is learnt is times, and another process of the machine may decide them: three attempts, each from nothing known."""
    @functools.wraps(test)
    def run(self):
        for _ in range(2):
            try:
                return test(self)
            except self.failureException:
                self.forget()
        return test(self)
    return run


class Learning(CommandTest):
    compiled = False

    @classmethod
    def setUpClass(cls):
        # Kernels are compiled once for all tests.
        cls.cache = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.cache)

    def setUp(self):
        super().setUp()
        self.environment.update(XDG_CACHE_HOME=self.cache, OPENCL_LAYERS=os.environ.get('OPENCL_LAYERS', ''), TRIFOLD_TEST_SLOW_CALLS='2')
        self.forget()
        listed = subprocess.run([TRIFOLD, 'devices'], capture_output=True, check=True, text=True, env=dict(os.environ, **self.environment))
        if not any(line.startswith('opencl:0.0') and 'not usable' not in line for line in listed.stdout.splitlines()):
            self.skipTest('no OpenCL device on this machine')
        if 'take 2 ms longer' not in listed.stderr:
            self.skipTest("OpenCL's loader has not loaded the layer (OPENCL_LAYERS; ocl-icd from 2.3 on)")
        if not self.compiled:
            # The first process leaves them out, and waits for their programs when it ends.
            Learning.compiled = True
            self.solve()
            self.forget()

    def files_kept(self):
        return glob.glob(os.path.join(self.cache, 'trifold', 'rates-*.json*'))

    def forget(self):
        for file in self.files_kept():
            os.remove(file)

    def kept(self):
        files = self.files_kept()
        self.assertEqual(len(files), 1)
        return files[0]

    def solve(self, *more):
        """Rows of every device, and why those were left out that were."""
        out, err = self.run_it(*SOLVE, *more, '--json')
        report = json.loads(out)
        self.assertTrue(report['outcome']['ok'])
        rows = {device['name']: device['rows'] for device in report['devices']}
        self.assertEqual(sum(rows.values()), 4000000)
        return rows, {device['name']: device['state'] for device in report['devices']}, err

    def taken(self):
        plan = self.run_json('plan', *PROBLEM)['plan']
        return [one['device'] for one in plan['candidates'] if one['taken'] and one['algorithm'] == 'joined']

    def everybody(self, rows):
        for part in PARTS:
            self.assertGreater(rows[part], 0)
            self.assertLess(rows[part], 4000000 // 8)

    def test_a_call_that_does_not_return(self):
        """Nobody waits for it at the process's end either, and all that was to be said has been."""
        del self.environment['TRIFOLD_TEST_SLOW_CALLS']
        self.environment['TRIFOLD_TEST_HOLD_CALL'] = '0'
        rows, why, _ = self.solve('--patience', '1')
        left = [part for part in PARTS if why[part] in ('left out: a call to it has not returned', 'left out: its programs are being compiled')]
        self.assertTrue(left, why)
        self.assertFalse(any(rows[part] for part in left))

    @attempts
    def test_processes_that_solve_once(self):
        first, _, _ = self.solve()
        self.everybody(first)
        second, why, _ = self.solve()
        self.assertEqual(second['cpu'], 4000000)
        self.assertIn('is being timed', why[PARTS[0]])
        third, why, _ = self.solve()
        self.assertIn('time is less without it', why[PARTS[0]])
        here = self.taken()

        # As one process that solves three times.
        self.forget()
        self.solve('--repeat', '3')
        self.assertEqual(self.taken(), here)
        after, _, _ = self.solve()
        self.assertEqual(after, third)

    @attempts
    def test_what_cannot_be_used(self):
        for _ in range(3):
            self.solve()
        with open(self.kept(), encoding='utf-8') as file:
            whole = file.read()
        self.assertEqual(json.loads(whole)['schema'], 'trifold.rates/2')
        self.assertRegex(json.loads(whole)['date'], r'^\d{4}-\d\d-\d\d$')

        def with_text(text):
            with open(self.kept(), 'w', encoding='utf-8') as file:
                file.write(text)
            rows, _, err = self.solve()
            return rows, err

        rows, err = with_text(whole)
        self.assertEqual(rows['cpu'], 4000000)
        self.assertNotIn('ignored', err)
        for text, reason in ((whole[:len(whole) // 2], 'corrupt'), (whole.replace('"machine": "', '"machine": "not '), 'another machine'), (whole.replace('"version": "', '"version": "0'), 'version')):
            rows, err = with_text(text)
            self.everybody(rows)
            self.assertIn('ignored', err)
            self.assertIn(reason, err)
        driver = json.loads(whole)
        driver['devices'][PARTS[0]] += ', an older driver'
        rows, err = with_text(json.dumps(driver))
        self.everybody(rows)
        self.assertIn('an older driver', err)
        self.assertIn('forgotten', err)

    def test_two_at_once(self):
        command = [TRIFOLD, *SOLVE, '--json']
        for _ in range(2):
            both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **self.environment)) for _ in range(2)]
            for process in both:
                out, err = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 0, err)
                self.assertTrue(json.loads(out)['outcome']['ok'])
                self.assertNotIn('ignored', err)
        with open(self.kept(), encoding='utf-8') as file:
            self.assertIn('rates', json.load(file))


if __name__ == '__main__':
    main()
