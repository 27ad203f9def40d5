#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: check_links.py <source tree>: every relative link of every page leads to a file, and to a heading where it names one; every page
of docs/guide, docs/algorithms, docs/notes and docs/decisions is reached from docs/README.md or the index of decisions; every page that
a comment of a source names is there, with the heading that it quotes."""
import os
import re
import sys

NAMED = re.compile(r'docs/[\w./-]*?\w\.md(?:,(?: section)? "([^"\n]+)")?')
SOURCES = ('.hpp', '.cpp', '.h', '.cuh', '.cu', '.cl')
LINK = re.compile(r'\]\(([^)#\s]*)(?:#([^)\s]*))?\)')


def pages(root, ends=('.md',)):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(('.', 'build')) and name != '__pycache__']
        yield from (os.path.join(folder, name) for name in names if name.endswith(ends))


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def anchors(text):
    """As GitHub makes them: a heading that stands there again gets a number."""
    found = {}
    for heading in re.findall(r'^#+ (.*)$', text, re.M):
        anchor = re.sub(r'[^\w\- ]', '', heading.lower()).strip().replace(' ', '-')
        count = found[anchor] = found.get(anchor, -1) + 1
        if count:
            found[f'{anchor}-{count}'] = 0
    return found


def main():
    root = os.path.abspath(sys.argv[1])
    wrong, linked = [], set()
    for page in pages(root):
        shown = os.path.relpath(page, root)
        for target, anchor in LINK.findall(re.sub(r'`[^`\n]*`', '', read(page))):
            if '://' in target:
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
            if not os.path.exists(path):
                wrong.append(f'{shown}: {target} is not there')
            elif anchor and path.endswith('.md') and anchor not in anchors(read(path)):
                wrong.append(f'{shown}: {target} has no heading #{anchor}')
            elif shown in ('docs/README.md', 'docs/decisions/README.md'):
                linked.add(path)
    for source in (path for folder in ('src', 'include', 'cli', 'bench', 'tests', 'examples') for path in pages(os.path.join(root, folder), SOURCES)):
        for found in NAMED.finditer(read(source)):
            path, shown = os.path.join(root, found[0].split(',')[0]), os.path.relpath(source, root)
            if not os.path.exists(path):
                wrong.append(f'{shown}: {found[0]} is not there')
            elif found[1] and found[1] not in re.findall(r'^#+ (.*)$', read(path), re.M):
                wrong.append(f'{shown}: {found[0].split(",")[0]} has no heading "{found[1]}"')
    for folder in ('guide', 'algorithms', 'notes', 'decisions'):
        for page in pages(os.path.join(root, 'docs', folder)):
            if page not in linked and not page.endswith('README.md'):
                wrong.append(f'docs/README.md (decisions: docs/decisions/README.md) does not list {os.path.relpath(page, root)}')
    if wrong:
        sys.exit('\n'.join(wrong))


if __name__ == '__main__':
    main()
