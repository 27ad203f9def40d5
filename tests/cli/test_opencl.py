#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is said where an OpenCL device is not there, or cannot do what is asked."""
import os
import subprocess

from harness import TRIFOLD, CommandTest, main

BATCH = 'gen:dominant?rows=40&systems=20&seed=3'
ON_OPENCL = ('solve', BATCH, '--device', 'opencl:0.0')


def has_opencl():
    listed = subprocess.run([TRIFOLD, 'devices'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    return any(line.startswith('opencl:0.0') and 'not usable' not in line for line in listed.splitlines())


class OpenCL(CommandTest):
    def setUp(self):
        super().setUp()
        # Kernels are compiled once for all tests.
        self.environment['XDG_CACHE_HOME'] = os.environ.get('XDG_CACHE_HOME', self.environment['XDG_CACHE_HOME'])

    def test_no_platform(self):
        self.environment['OCL_ICD_VENDORS'] = self.folder
        self.refuse(5, ["device 'opencl:0.0'", 'no OpenCL platform', 'install a driver'], *ON_OPENCL)

    def test_roles(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        for role in ('', 'gpu'):
            self.environment['TRIFOLD_OPENCL_AS'] = role
            report = self.run_json(*ON_OPENCL)
            self.assertTrue(report['outcome']['ok'])
            self.assertEqual(report['devices'][0]['name'], 'opencl:0.0')
            self.assertLess(report['error']['residual'], 1e-15)
            self.environment['TRIFOLD_OPENCL_AS'] = role + ',f32'
            self.refuse(5, ['f64', 'no FP64', 'f32'], *ON_OPENCL)
            self.assertTrue(self.run_json(*ON_OPENCL, '--precision', 'f32')['outcome']['ok'])

    def test_a_compiler_that_refuses(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        self.environment['TRIFOLD_OPENCL_OPTIONS'] = '-Ddouble=nonsense'
        _, err = self.run_it(*ON_OPENCL, code=1)  # PoCL's compiler writes a line of its own
        for part in ("device 'opencl:0.0'", 'its compiler refuses', 'nonsense', 'text and log are in'):
            self.assertIn(part, err)


if __name__ == '__main__':
    main()
