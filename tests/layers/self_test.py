#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The layer check must see what it is for: each planted offence is found, and a clean tree has none."""
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_layers  # noqa: E402

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class LayerCheck(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        with open(os.path.join(REPOSITORY, 'cmake', 'layers'), encoding='utf-8') as layers:
            self.write('cmake/layers', layers.read())
        self.write('include/trifold/view.hpp', '#include <span>\n')
        self.write('src/base/memory.hpp', '#include "trifold/view.hpp"\n')
        self.write('src/backends/cpu/tridiagonal/solve.hpp', '#include "base/memory.hpp"\n')
        self.write('src/backends/fpga/cell.hpp', '#include "backends/reference/cell.hpp"\n')
        self.write('src/backends/reference/cell.hpp', '')

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def offences(self, edges=None):
        return check_layers.check_tree(self.root, edges)

    def assert_found(self, text):
        found = self.offences()
        self.assertEqual(len(found), 1, found)
        self.assertIn(text, found[0])

    def test_clean(self):
        self.assertEqual(self.offences(), [])

    def test_upward_include(self):
        self.write('src/base/timing.cpp', '\n#include "backends/cpu/tridiagonal/solve.hpp"\n')
        self.assert_found('src/base/timing.cpp:2: base may not use backends/cpu')

    def test_relative_include(self):
        self.write('src/base/timing.cpp', '#include "../backends/cpu/tridiagonal/solve.hpp"\n')
        self.assert_found('base may not use backends/cpu')

    def test_siblings(self):
        self.write('src/backends/fpga/model.cpp', '#include "backends/cpu/tridiagonal/solve.hpp"\n')
        self.assert_found('backends/fpga may not use backends/cpu')

    def test_application_sees_public_headers_only(self):
        self.write('apps/heat/main.cpp', '#include "trifold/view.hpp"\n#include "base/memory.hpp"\n')
        self.assert_found('apps may not use base')

    def test_third_party_in_public_header(self):
        self.write('include/trifold/report.hpp', '#include <nlohmann/json.hpp>\n')
        self.assert_found('not the standard library')

    def test_condition_outside_its_folder(self):
        self.write('src/api/solve.cpp', '#if TRIFOLD_HAVE_CUDA\n#endif\n')
        self.assert_found('HAVE_CUDA outside its folder')

    def test_launch_that_is_not_noted(self):
        self.write('src/backends/cuda/tridiagonal/good.cu', '// not by kernel<<<1, 1>>>()\nvoid f() { enqueue_kernel(kernel, 1, 1, 0, stream); }\n')
        self.assertEqual(self.offences(), [])
        for call in ('kernel<<<1, 1, 0, stream>>>();', 'cudaLaunchKernelEx(&config, kernel);', 'cudaMemsetAsync(to, 0, 1, stream);'):
            self.write('src/backends/cuda/tridiagonal/bad.cu', f'void f() {{ {call} }}\n')
            self.assert_found('bad.cu:1: enqueues past runtime/launches.hpp')

    def test_unknown_room(self):
        self.write('src/misc/util.hpp', '')
        self.assert_found('lies in no room')

    def test_edges(self):
        self.assertEqual(self.offences(self.write('good.txt', 'backends/cpu base\napi planner\ntests/unit api\n')), [])
        self.assertEqual(len(self.offences(self.write('bad.txt', 'base planner\nplanner api\n'))), 2)


if __name__ == '__main__':
    unittest.main()
