# SPDX-License-Identifier: BSD-3-Clause
"""The few figures of README, each picked from a record: which machine, how fast, of which roof, beside whom."""
import json
import os

import chart

BEGIN, END = '<!-- figures: scripts/bench-tables -->', '<!-- end of figures -->'


def giga(value):
    return f'{value / 1e9:.3g}'


def share(value):
    return f'{100 * value:.0f} %'


def host(row, rows):
    threads = int(row['threads'])
    beside = f'{row["speedup"]:.1f} × {row["speedup_over"]}' if row.get('speedup') and row.get('speedup_over') != row.get('solver') else ''
    return f'{threads} thread{"s" if threads > 1 else ""}', giga(row['rows_per_s']), share(row['fraction']), beside


def gpu(peer):
    def line(row, rows):
        return '', giga(1e9 * row['grows_per_s']), share(row['fraction']), f'{row["times_cusparse"]:.1f} × cuSPARSE {row.get("peer") or peer}' if row.get('times_cusparse') else ''
    return line


def heat(row, rows):
    return '', giga(row['points_per_s']), 'on chip' if row['kind'] == 'resident' else share(row['fraction_5_words']), f'{row["times_rival"]:.0f} × the same with cuSPARSE' if row.get('times_rival') else ''


def host_heat(row, rows):
    return f'{int(row["threads"])} thread{"s" if row["threads"] > 1 else ""}', giga(row['points_per_s']), share(row['fraction']), f'{row["speedup"]:.1f} × {row["speedup_over"]}' if row.get('speedup') else ''


def several(row, rows):
    same = [other for other in rows if all(other.get(key) == row[key] for key in ('kind', 'matrix', 'dtype', 'rows')) and ',' not in other['devices'] and other['ok']]
    best = max(same, key=lambda other: other['rows_per_s'], default=None)
    return f'{int(row["threads"])} threads and the GPU', giga(row['rows_per_s']), '', f'{row["rows_per_s"] / best["rows_per_s"]:.2f} × {best["devices"]} alone' if best else ''


# What, suite, how a line is made, which row: every pair must match.
PICKS = [
    ('one system of 10⁸ rows, dominant, double', 'single', host, {'case': 'memory, 1e+08 rows', 'solver': 'automatic', 'dtype': 'f64', 'threads': 1}),
    ('the same', 'single', host, {'case': 'memory, 1e+08 rows', 'solver': 'automatic', 'dtype': 'f64', 'threads': 'most'}),
    ('the same, single', 'single', host, {'case': 'memory, 1e+08 rows', 'solver': 'automatic', 'dtype': 'f32', 'threads': 1}),
    ('one system that needs pivots, 3.2 · 10⁷ rows, double', 'pivoted', host, {'case': 'random, 3.2e+07 rows', 'solver': 'two_pass', 'dtype': 'f64', 'threads': 1}),
    ('131 072 systems of 256 rows, double', 'batch', host, {'case': '131072 x 256', 'solver': 'automatic', 'dtype': 'f64', 'threads': 1}),
    ('ADI heat in 3-D, 256³, double, points', 'heat', host_heat, {'case': '256^3', 'dtype': 'f64', 'threads': 1}),
    ('one system of 2²⁶ rows, dominant, double', 'cuda_single', gpu(''), {'case': 'dominant', 'precision': 'f64', 'rows': 2 ** 26, 'systems': 1}),
    ("one system of 2²⁶ rows, Poisson's, double", 'cuda_single', gpu(''), {'case': 'poisson', 'precision': 'f64', 'rows': 2 ** 26, 'systems': 1}),
    ('262 144 systems of 256 rows, one after the other, double', 'cuda_batch', gpu('gtsv2StridedBatch'), {'case': 'contiguous', 'precision': 'f64', 'rows': 256}),
    ('131 072 systems of 512 rows, side by side, double', 'cuda_batch', gpu('gtsvInterleavedBatch'), {'case': 'interleaved', 'precision': 'f64', 'rows': 512}),
    ('ADI heat in 2-D, 3000 × 128², single, points', 'cuda_heat', heat, {'group': '2d', 'mesh': [128, 128], 'batch': 3000, 'precision': 'f32'}),
    ('ADI heat in 3-D, 256³, double, points', 'cuda_heat', heat, {'group': '3d-large', 'mesh': [256, 256, 256], 'precision': 'f64'}),
    ('one system of 1.28 · 10⁹ rows in the memory of the host, single', 'hetero', several, {'kind': 'solve', 'matrix': 'dominant', 'devices': 'cpu,cuda:0', 'dtype': 'f32', 'rows': 1280000000}),
]


def pick(rows, wanted):
    wanted = dict(wanted)
    most = wanted.get('threads') == 'most'
    if most:
        del wanted['threads']
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items()) and not row.get('failed')]
    if most:
        found = [row for row in found if row['threads'] > 1]
    return max(found, key=lambda row: row.get('threads') or 0) if most and found else found[0] if found else None


def lines(results):
    """The table, or nothing where no record has any of its rows."""
    made = []
    for machine in sorted(os.listdir(results)):
        for what, suite, line, wanted in PICKS:
            path = os.path.join(results, machine, suite + '.json')
            if not os.path.exists(path):
                continue
            with open(path, encoding='utf-8') as file:
                rows = json.load(file)['rows']
            row = pick(rows, wanted)
            if row:
                on, rate, roof, beside = line(row, rows)
                made.append((what, machine + (', ' + on if on else ''), rate, roof, beside))
    if not made:
        return
    yield '| measured | on | 10⁹ rows/s | of the roof | beside |'
    yield '|---|---|---:|---:|---|'
    for row in made:
        yield '| ' + ' | '.join(row) + ' |'


# In README's picture: machine, and what is drawn of it: (text, suite, row).
DRAWN = [
    ('amd-epyc-2c', 'one core of a rented AMD EPYC', [
        ('one system, 10⁸ rows, dominant', PICKS[0]), ('the same in single precision', PICKS[2]), ('one system that needs pivots', PICKS[3]), ('131 072 systems of 256 rows', PICKS[4]),
        ('heat in 3-D, 256³, a step', PICKS[5])]),
    ('nvidia-h200', 'one NVIDIA H200', [
        ('one system, 2²⁶ rows, dominant', PICKS[6]), ("one system, 2²⁶ rows, Poisson's", PICKS[7]), ('262 144 systems of 256 rows', PICKS[8]), ('131 072 systems of 512, interleaved', PICKS[9]), ('heat in 3-D, 256³, a step', PICKS[11])]),
]


def measures(row):
    """(share of the roof, times the peer, the peer), whichever suite it is of."""
    over = row.get('times_cusparse') or row.get('times_rival') or row.get('speedup')
    peer = 'cuSPARSE ' + (row.get('peer') or '') if row.get('times_cusparse') else 'the same with cuSPARSE' if row.get('times_rival') else row.get('speedup_over') or ''
    return row.get('fraction_5_words') or row.get('fraction'), over, peer.strip()


def picture(results):
    """Shares of the roof, ours and the peer's in the same run; None where there is no record."""
    groups = []
    for machine, title, drawn in DRAWN:
        rows = []
        for what, (_, suite, _, wanted) in drawn:
            path = os.path.join(results, machine, suite + '.json')
            if not os.path.exists(path):
                continue
            with open(path, encoding='utf-8') as file:
                row = pick(json.load(file)['rows'], wanted)
            share, over, peer = measures(row) if row else (None, None, '')
            if share:
                rows.append((what, [('Trifold', share)] + ([(peer, share / over)] if over else [])))
        if rows:
            groups.append((title, rows))
    return chart.shares(groups) if groups else None


def renewed(text, results):
    """The text of README with its figures between the two marks as the records have them."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + '\n' + '\n'.join(lines(results)) + '\n' + END + after
