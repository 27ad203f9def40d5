#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check a source tree against cmake/layers: every #include "…" and every CMake edge goes to a room that may be used.

Also: the public headers include nothing but the standard library and each other, and `#if HAVE_…` and its like stay out
of the rooms other than the one they name; and CUDA's solves enqueue through runtime/launches.hpp alone, which remembers
what they enqueue: what went past it would be missing from the second call on. Exit status 1 and one line per offence: file:line: what.
"""
import argparse
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
HAVE = re.compile(r'^\s*#\s*(?:el)?if.*\b(?:TRIFOLD_)?HAVE_([A-Z0-9]+)')
LAUNCH = re.compile(r'<<<|\bcuda(?:LaunchKernel\w*|LaunchCooperativeKernel|Mem(?:set|cpy)\w*Async)\s*\(')
NOTED = 'src/backends/cuda/tridiagonal/'
SOURCE = ('.hpp', '.h', '.cpp', '.cc', '.def', '.inc', '.cuh', '.cu', '.cl')


class Layers:
    """The file cmake/layers: patterns in order, and restrictions after a colon."""

    def __init__(self, path):
        self.rank, self.only = {}, {}
        rank = 0
        with open(path, encoding='utf-8') as lines:
            for line in lines:
                line = line.split('#')[0].strip()
                if not line:
                    continue
                names, _, only = line.partition(':')
                for name in names.split():
                    self.rank[name] = rank
                    if only.split():
                        self.only[name] = only.split()
                rank += 1

    def room(self, folder):
        """The room that a path (relative to src/ or to the root, without the file) lies in: (room, pattern) or None."""
        parts = folder.split('/')
        for length in range(len(parts), 0, -1):
            name = '/'.join(parts[:length])
            if name in self.rank:
                return name, name
            pattern = '/'.join(parts[:length - 1] + ['*'])
            if length > 1 and pattern in self.rank:
                return name, pattern
        return None

    def allowed(self, user, used):
        if user[0] == used[0]:
            return True
        if user[1] in self.only:
            return used[0] in self.only[user[1]]
        return self.rank[used[1]] < self.rank[user[1]]


def room_of_file(layers, path):
    """path is relative to the root of the tree."""
    folder = os.path.dirname(path)
    if folder == 'include/trifold' or folder.startswith('include/trifold/'):
        return layers.room('include')
    if folder == 'src' or folder.startswith('src/'):
        return layers.room(folder[4:]) if folder != 'src' else None
    return layers.room(folder)


def target_of_include(root, path, included):
    """Where a quoted include leads: a path relative to the root, or None if it is not of this tree."""
    own = os.path.normpath(os.path.join(os.path.dirname(path), included))
    for candidate in (own, os.path.join('src', included), os.path.join('include', included), included):
        if os.path.isfile(os.path.join(root, candidate)):
            return os.path.normpath(candidate)
    return None


def check_file(root, layers, path):
    user = room_of_file(layers, path)
    if user is None:
        yield f'{path}:1: lies in no room of cmake/layers'
        return
    with open(os.path.join(root, path), encoding='utf-8') as lines:
        for number, line in enumerate(lines, 1):
            have = HAVE.match(line)
            if have and have.group(1).lower() not in user[0].split('/'):
                yield f'{path}:{number}: conditional on HAVE_{have.group(1)} outside its folder'
            if path.startswith(NOTED) and LAUNCH.search(line.split('//')[0]):
                yield f'{path}:{number}: enqueues past runtime/launches.hpp'
            include = INCLUDE.match(line)
            if not include:
                continue
            quote, included = include.groups()
            target = target_of_include(root, path, included)
            if target is None:
                if user[0] == 'include' and (quote == '"' or '/' in included or '.' in included):
                    yield f'{path}:{number}: a public header includes "{included}", which is not the standard library'
                continue
            used = room_of_file(layers, target)
            if used is None:
                yield f'{path}:{number}: includes {target}, which lies in no room of cmake/layers'
            elif not layers.allowed(user, used):
                yield f'{path}:{number}: {user[0]} may not use {used[0]} ({target})'


def check_edges(layers, path):
    with open(path, encoding='utf-8') as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            user, used = (layers.room(folder) for folder in line.split())
            if user is None or used is None:
                yield f'{path}:{number}: an edge of an unknown room: {line.strip()}'
            elif not layers.allowed(user, used):
                yield f'{path}:{number}: CMake edge: {user[0]} may not use {used[0]}'


def check_tree(root, edges=None):
    layers = Layers(os.path.join(root, 'cmake', 'layers'))
    offences = []
    for top in ('include', 'src', 'apps', 'examples', 'cli', 'bench', 'tests'):
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith(SOURCE):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    offences += check_file(root, layers, path)
    if edges:
        offences += check_edges(layers, edges)
    return offences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('root')
    parser.add_argument('--edges', help='room-edges.txt written by the configuration')
    arguments = parser.parse_args()
    offences = check_tree(arguments.root, arguments.edges)
    for offence in offences:
        print(offence)
    return 1 if offences else 0


if __name__ == '__main__':
    sys.exit(main())
