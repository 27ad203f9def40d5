# SPDX-License-Identifier: BSD-3-Clause
"""Short tables of the pages in docs/algorithms: a few rows of a record, so that what a page says of speed is what was last measured."""
import json
import os
import re

MARK = re.compile(r'(<!-- figures of ([a-z0-9 ]+): scripts/bench-tables -->\n).*?(<!-- end of figures -->)', re.S)


def percent(value):
    return '–' if value is None else f'{100 * value:.0f} %'


def times(value):
    return '–' if not value else f'{value:.1f} ×'


def beside_cusparse(row):
    return [percent(row['fraction']), percent(row.get('ceiling')), times(row.get('times_cusparse'))]


BESIDE_CUSPARSE = (['of the roof', 'its moves alone', 'over cuSPARSE'], beside_cusparse)


def shared(case, rows, matrix='arrays'):
    return {'case': case, 'rows': rows, 'matrix': matrix}


# Name in a page's mark: suite, what a row is, (columns, what is in them), (text, row: every pair must match).
TABLES = {
    'one matrix': ('cuda_shared', 'layout, rows of a system', BESIDE_CUSPARSE, [
        ('contiguous, 64', shared('contiguous', 64)), ('contiguous, 2048', shared('contiguous', 2048)),
        ('padded, 250', shared('padded', 250)), ('interleaved, 64', shared('interleaved', 64)), ('interleaved, 1024', shared('interleaved', 1024)), ('interleaved, 2048', shared('interleaved', 2048)), ('256³ along y', shared('256^3 y', 256)),
        ('256³ along z', shared('256^3 z', 256)), ('odd pitch, 100', shared('odd pitch', 100)), ('odd pitch, 1999', shared('odd pitch', 1999)), ('odd planes along y, 255', shared('odd y', 255))]),
}


def lines(name, results):
    suite, what, (columns, cells), wanted = TABLES[name]
    machines = [machine for machine in sorted(os.listdir(results)) if os.path.exists(os.path.join(results, machine, suite + '.json'))]
    if not machines:
        return
    with open(os.path.join(results, machines[0], suite + '.json'), encoding='utf-8') as file:
        record = json.load(file)
    kinds = ('f64', 'f32')
    yield f'| {what} | ' + ' | '.join(f'FP{kind[1:]} {column}' for kind in kinds for column in columns) + ' |'
    yield '|---|' + '---:|' * (len(kinds) * len(columns))
    for text, keys in wanted:
        made = []
        for kind in kinds:
            row = next((row for row in record['rows'] if row.get('precision') == kind and all(row.get(key) == value for key, value in keys.items()) and not row.get('failed')), None)
            made += cells(row) if row else ['–'] * len(columns)
        if any(cell != '–' for cell in made):
            yield f'| {text} | ' + ' | '.join(made) + ' |'
    at = record['machine']
    yield ''
    yield (f'({at.get("gpu") or machines[0]}' + (f', commit {at["commit"]}' if 'commit' in at else '') + '. All cases, and what the columns say: [benchmarks](../benchmarks.md).)')


def renewed(text, results):
    """A page with what stands between its marks as the record of one machine has it."""
    return MARK.sub(lambda found: found[1] + '\n' + '\n'.join(lines(found[2], results)) + '\n\n' + found[3], text)
