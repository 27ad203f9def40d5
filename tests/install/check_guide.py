#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: check_guide.py <source tree> <install prefix> <compiler> <flags>

The C++ of README and docs/guide, as it stands there, compiled with the installed package; what needs no GPU is run. A page is one program: what comes
before its first Context is at namespace scope, the rest is main's, and each further block is a scope of its own in it.
"""
import os
import re
import subprocess
import sys
import tempfile

# What a page takes for granted: the reader's own arrays. `run` is how many of its blocks can run here.
PAGES = {
    'README.md': dict(run=99, globals='std::vector<double> lower(9, -1.0), diag(9, 4.0), upper(9, -1.0), rhs(9, 1.0), x(9);', locals=''),
    'docs/guide/library.md': dict(run=99, globals='const std::int64_t n = 1000;', locals='''
        [[maybe_unused]] tri::Matrix new_matrix;
        new_matrix.lower = -1.0, new_matrix.diag = 5.0, new_matrix.upper = -1.0;'''),
    'docs/guide/sweeps.md': dict(run=1, globals='const double number = 0.5; std::vector<double> values(256 * 256 * 10, 1.0); double* const u = values.data(); std::vector<double>& host_u = values;', locals=''),
    'docs/guide/cuda.md': dict(run=0, globals='void* stream; double *lower, *diag, *upper, *rhs, *x, nu = 0.1; std::int64_t systems = 1, rows = 1; std::int8_t* status; std::vector<double> host_rhs, host_x;', locals=''),
}


def blocks(text):
    return re.findall(r'^```cpp\n(.*?)^```$', text, re.M | re.S)


def program(page, text):
    found = blocks(text)
    first = found[0].splitlines()
    inside = next(k for k, line in enumerate(first) if re.match(r'(trifold::)?Context \w+;', line.strip()))
    hoisted = [line for line in first[:inside] if not line.startswith('#include')]
    out = ['#include <trifold/trifold.hpp>', '#include <array>', '#include <cstdint>', '#include <span>', '#include <vector>', 'namespace tri = trifold::tridiagonal;', 'using trifold::View;', page['globals']]
    out += [line for line in hoisted if line not in ('namespace tri = trifold::tridiagonal;', 'using trifold::View;')]
    out += ['int main() {', 'const int run = %d;' % page['run'], 'if (run < 1) return 0;', *first[inside:], page['locals']]
    for k, block in enumerate(found[1:], 2):
        out += [f'if (run >= {k}) {{', block, '}']
    return '\n'.join(out + ['return 0;', '}', ''])


def main():
    source, prefix, compiler, flags = sys.argv[1:5]
    library = os.path.dirname(subprocess.run(['find', prefix, '-name', 'libtrifold.so'], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0])
    for name, page in PAGES.items():
        with open(os.path.join(source, name), encoding='utf-8') as file:
            text = program(page, file.read())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'guide.cpp')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
            command = [compiler, '-std=c++20', *flags.split(), '-I' + os.path.join(prefix, 'include'), path, '-o', path[:-4], '-L' + library, '-ltrifold', '-Wl,-rpath,' + library]
            if subprocess.run(command).returncode:
                sys.exit(f'{name} does not compile:\n' + '\n'.join(f'{k:4} {line}' for k, line in enumerate(text.splitlines(), 1)))
            if subprocess.run([path[:-4]], timeout=120).returncode:
                sys.exit(f'{name} does not run')


if __name__ == '__main__':
    main()
