#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What does a new device and a new family cost? In a scratch copy of the tree, a device is added as one folder and one line,
and a family as its folders, a public header and one line (the overlay beside this file); the library is built, used, and the
touched files are counted.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LINES = {'src/backends/backends.def': 'TRIFOLD_DEVICE(toy)\n',
         'src/families/families.def': 'TRIFOLD_FAMILY(diagonal, "diagonal systems")\n'}
OWN_FOLDERS = ('src/backends/toy', 'src/families/diagonal', 'src/api/diagonal')
OWN_FILES = ('include/trifold/diagonal.hpp',)
COPIED = ('CMakeLists.txt', 'cmake', 'include', 'src')


def files_of(root):
    found = {}
    for top in COPIED:
        path = os.path.join(root, top)
        names = [path] if os.path.isfile(path) else [os.path.join(d, f) for d, _, fs in os.walk(path) for f in fs]
        for name in names:
            with open(name, 'rb') as file:
                found[os.path.relpath(name, root)] = file.read()
    return found


def copy_tree(source, root):
    for top in COPIED:
        path = os.path.join(source, top)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(root, top))
        else:
            shutil.copy2(path, root)


def count_touched(before, after):
    """Problems with what was added: nothing outside the new folders but one line in each list."""
    problems = [f'{path} disappeared' for path in before if path not in after]
    changed = [path for path in after if path in before and after[path] != before[path]]
    for path in changed:
        added = len(after[path].splitlines()) - len(before[path].splitlines())
        if path not in LINES or added != 1 or not after[path].startswith(before[path]):
            problems.append(f'{path} changed by more than one line')
    for path in after:
        if path not in before and path not in OWN_FILES and not path.startswith(tuple(f + '/' for f in OWN_FOLDERS)):
            problems.append(f'{path} is outside the new folders')
    return changed, problems


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source')
    parser.add_argument('build', help='where the source is being built')
    parser.add_argument('-D', dest='settings', action='append', default=[], metavar='NAME=VALUE', help='passed to cmake')
    arguments = parser.parse_args()
    settings = dict(setting.split('=', 1) for setting in arguments.settings)
    compiler = settings.get('CMAKE_CXX_COMPILER', 'c++')
    flags = ' '.join(value for name, value in settings.items() if name.startswith('CMAKE_CXX_FLAGS')).split()
    with tempfile.TemporaryDirectory() as scratch:
        # Source and build lie to each other as the real ones do: the compiler cache keys on relative paths.
        root = scratch + os.path.abspath(arguments.source)
        build = scratch + os.path.abspath(arguments.build)
        os.makedirs(root)
        copy_tree(arguments.source, root)
        before = files_of(root)
        shutil.copytree(os.path.join(HERE, 'overlay'), root, dirs_exist_ok=True)
        for path, line in LINES.items():
            with open(os.path.join(root, path), 'a', encoding='utf-8') as file:
                file.write(line)
        changed, problems = count_touched(before, files_of(root))
        if problems:
            sys.exit('\n'.join(problems))

        run(['cmake', '-S', root, '-B', build, '-G', 'Ninja', *(f'-D{name}={value}' for name, value in settings.items()),
             *(f'-DTRIFOLD_BUILD_{part}=OFF' for part in ('CLI', 'TESTS', 'BENCH', 'EXAMPLES'))])
        run(['cmake', '--build', build, '--target', 'trifold'])
        library = os.path.join(build, 'lib')
        program = os.path.join(scratch, 'user')
        run([compiler, '-std=c++20', *flags, '-I', os.path.join(root, 'include'), os.path.join(HERE, 'user.cpp'),
             '-o', program, '-L', library, '-ltrifold', '-Wl,-rpath,' + library])
        run([program])
        check = os.path.join(arguments.source, 'tests', 'layers', 'check_layers.py')
        run([sys.executable, check, root, '--edges', os.path.join(build, 'room-edges.txt')])
    print(f"a device and a family touched {len(changed)} existing files, one line each: {', '.join(sorted(changed))}")


if __name__ == '__main__':
    main()
