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


def heat_words(row):
    return [f'{row["points_per_s"] / 1e9:.0f}', percent(row['fraction_5_words']), percent(row.get('fraction_of_moves')), times(row.get('times_rival'))]


def in_passes(row):
    cells, elsewhere = heat_words(row), {'resident': 'on chip', 'planes': 'one pass'}.get(row['kind'])
    return [cells[0], elsewhere, '–', cells[3]] if elsewhere else cells


def in_one_pass(row):
    return heat_words(row) if row['kind'] == 'planes' else [{'resident': 'on chip'}.get(row['kind'], 'streams'), '–', '–', '–']


def on_chip(row):
    return heat_rival(row) if row['kind'] == 'resident' else ['streams', '–']


def heat_rival(row):
    return [f'{row["points_per_s"] / 1e9:.1f}', times(row.get('times_rival'))]


def short_times(row):
    return [f'{1000 * row["ms"]:.1f} µs', times(row.get('times_cusparse'))] + [f'{1000 * row[key]:.1f} µs' if row.get(key) else '–' for key in ('graph_ms', 'graph_of_many_ms')]


def one(case, rows=2 ** 26, systems=1, **more):
    return {'case': case, 'rows': rows, 'systems': systems, **more}


def beside_cuda(row):
    return [percent(row['fraction']), f'{row["times_first"]:.2f} ×' if row.get('times_first') else '–']


def opencl(case, rows):
    return {'case': case, 'rows': rows, 'device': 'opencl:0.0'}


def cpu_pass(row):
    bound = lambda key: percent(row['fraction'] * row['seconds'] / row[key] if row.get(key) else None)
    return [percent(row['fraction']), bound('moving_s'), bound('computing_s'), times(row.get('speedup'))]


def cpu_heat(case, threads):
    return {'case': case, 'threads': threads, 'solver': 'Trifold, Douglas-Gunn'}


def cpu_pivoted(matrix, threads, how=''):
    return {'case': f'{matrix}, 3.2e+07 rows{how}', 'threads': threads, 'solver': 'two_pass'}


def cpu_batch_cells(row):
    return [percent(row['fraction']), percent(row.get('fraction_of_order')), times(row.get('speedup'))]


def cpu_batch(case, threads):
    return {'case': case, 'threads': threads, 'solver': 'automatic'}


def cpu_kept(row):
    return [percent(row['fraction']), times(row.get('speedup'))]


def cpu_general_cells(row):
    return [f'{1e9 / row["rows_per_s"]:.1f}', percent(row['fraction']), times(row.get('speedup'))]


def cpu_factored(case, threads):
    return {'case': case, 'threads': threads, 'solver': 'factored'}


def pivoted(row):
    return [percent(row['fraction']), times(row.get('times_cusparse'))]


def ring(row):
    return [percent(row['fraction']), times(row.get('times_cusparse'))]


def long_batch(row):
    return [percent(row['fraction']), percent(row['queued_fraction'])]


def long_batch_beside_cusparse(row):
    return [*long_batch(row), times(row.get('times_cusparse'))]


def batch(case, rows):
    return {'case': case, 'rows': rows}


def shared(case, rows, matrix='arrays'):
    return {'case': case, 'rows': rows, 'matrix': matrix}


# Name in a page's mark: suite, what a row is, (columns, what is in them), (text, row: every pair must match; or its case, with * or at the end the type); types, if not both.
TABLES = {
    'one matrix': ('cuda_shared', 'layout, rows of a system', BESIDE_CUSPARSE, [
        ('contiguous, 64', shared('contiguous', 64)), ('contiguous, 2048', shared('contiguous', 2048)),
        ('padded, 250', shared('padded', 250)), ('interleaved, 64', shared('interleaved', 64)), ('interleaved, 1024', shared('interleaved', 1024)), ('interleaved, 1536', shared('interleaved', 1536)), ('interleaved, 2048', shared('interleaved', 2048)), ('256³ along y', shared('256^3 y', 256)),
        ('256³ along z', shared('256^3 z', 256)), ('odd pitch, 100', shared('odd pitch', 100)), ('odd pitch, 1999', shared('odd pitch', 1999)), ('odd planes along y, 255', shared('odd y', 255))]),
    'long batches with one matrix': ('cuda_shared', 'layout, rows of a system', (['of the roof', 'queued'], long_batch), [
        ('interleaved, 4096', shared('interleaved', 4096)), ('interleaved, 8192', shared('interleaved', 8192)), ('interleaved, 12 000 (11 168 columns)', shared('interleaved', 12000)), ('interleaved, 10 000 (13 416)', shared('interleaved', 10000)), ('interleaved, 20 000 (6710)', shared('interleaved', 20000)),
        ('interleaved, 65 536', shared('interleaved', 65536)), ('odd pitch, 8191', shared('odd pitch', 8191)), ('contiguous, 8192', shared('contiguous', 8192)), ('contiguous, 65 536', shared('contiguous', 65536)),
        ('interleaved, in place, 8192', shared('interleaved, in place', 8192)), ('three scalars, interleaved, 8192', shared('interleaved', 8192, 'scalars')), ('three scalars, contiguous, 65 536', shared('contiguous', 65536, 'scalars')),
        ('−1, 2, −1, interleaved, 8192', shared('interleaved', 8192, '-1 2 -1')), ('−1, 2, −1, interleaved, 65 536', shared('interleaved', 65536, '-1 2 -1')), ('−1, 2, −1, contiguous, 65 536', shared('contiguous', 65536, '-1 2 -1')),
        ('−1, 2, −1, interleaved, in place, 8192', shared('interleaved, in place', 8192, '-1 2 -1'))]),
    'streaming': ('cuda_heat', 'mesh', (['Gpoints/s', 'of the roof', 'of its moves', 'over cuSPARSE'], in_passes), [
        ('640² × 60', '2d-large/640^2x60/'), ('896² × 60', '2d-large/896^2x60/'), ('64³', '3d-large/64^3x1/'), ('64³ × 128', '3d-large/64^3x128/'), ('80³ × 24', '3d/80^3x24/'),
        ('80³ × 72', '3d/80^3x72/'), ('96³ × 24', '3d/96^3x24/'), ('96³ × 72', '3d/96^3x72/'), ('128³ × 16', '3d-large/128^3x16/'), ('192³ × 8', '3d-large/192^3x8/'), ('256³', '3d-large/256^3x1/'),
        ('256³ × 4', '3d-large/256^3x4/'), ('512³', '3d-large/512^3x1/'), ('96³ × 72, rings', 'sides/96^3x72/*/periodic'), ('256³, rings', 'sides/256^3x1/*/periodic'), ('1024², rings', 'sides/1024^2x1/*/periodic')]),
    'planes': ('cuda_heat', 'mesh', (['Gpoints/s', 'of the roof', 'of its moves', 'over cuSPARSE'], in_one_pass), [
        ('64³ × 128', '3d-large/64^3x128/'), ('80³ × 24', '3d/80^3x24/'), ('80³ × 72', '3d/80^3x72/'), ('96³ × 24', '3d/96^3x24/'), ('96³ × 72', '3d/96^3x72/'), ('128³ × 16', '3d-large/128^3x16/'),
        ('112³ × 16', '3d-large/112^3x16/'), ('80 × 64 × 64 × 72', '3d/80x64x64x72/'), ('96 × 80 × 80 × 24', '3d-large/96x80x80x24/'), ('128 × 96 × 96 × 16', '3d-large/128x96x96x16/')]),
    'fused': ('cuda_heat', 'mesh', (['Gpoints/s', 'over cuSPARSE'], heat_rival), [
        ('256³, conductivity varies (made in registers)', 'varying/256^3x1/*/k'), ('48³ × 72, one conductivity for all meshes (held)', 'varying/48^3x72/*/k'), ('96³ × 72, the same', 'varying/96^3x72/*/k'),
        ('512² × 60, the same (kept)', 'varying/512^2x60/*/k'), ('1024², conductivity varies (kept)', 'varying/1024^2x1/*/k'), ('1024², the same, in half steps', 'halves/1024^2x1/*/k/halves')]),
    'long systems': ('cuda_single', 'matrix', BESIDE_CUSPARSE, [
        ('dominance 3: halos', one('dominant')), ('the same, in place', one('dominant, in place')), ('layered diffusion, number 0.01: halos', one('diffusion 0.01')),
        ('number 1: wide halos', one('diffusion 1')), ('number 10: wide halos', one('diffusion 10')), ('number 1000: coupled, one pass', one('diffusion 1000')),
        ('-1, 2, -1: coupled, two passes', one('poisson')), ('a random matrix: two pivoted passes', one('random')),
        ('dominance 3, 64 of 2^20 rows: halos', one('several, dominant', 2 ** 20, 64)), ('-1, 2, -1, 64 of 2^20 rows: two passes', one('several, poisson', 2 ** 20, 64)),
        ('-1, 2, -1, 300 of 100 000 rows: coupled as a whole', one('several, poisson', 100000, 300))]),
    'general systems on a gpu': ('cuda_single', 'matrix, rows', (['of the roof', 'over cuSPARSE'], pivoted), [
        *[(f'{name}, {label}', one(case, rows)) for name, case in (('random', 'pivots, random'), ('waves (-1, 0.7, -1)', 'pivots, waves')) for label, rows in (('2^18', 1 << 18), ('2^20', 1 << 20), ('2^22', 1 << 22), ('2^24', 1 << 24), ('2^26', 1 << 26))],
        ('random, in place, 2^26', one('pivots, random, in place')), ('waves, in place, 2^26', one('pivots, waves, in place'))]),
    'short systems': ('cuda_single', 'system', (['between events', 'over cuSPARSE', 'as a graph', 'one after the other'], short_times), [
        ('4096 rows that decay', one('latency', 4096)), ('4096 rows of -1, 2, -1', one('latency, poisson', 4096)), ('1024 rows that need pivots', one('latency, indefinite', 1024)),
        ('4096 rows that need pivots', one('latency, indefinite', 4096)), ('2^20 rows that decay', one('latency', 2 ** 20))]),
    'long batches': ('cuda_batch', 'layout, rows of a system', (['of the roof', 'queued', 'over cuSPARSE'], long_batch_beside_cusparse), [
        ('interleaved, 5000 (13 421 columns)', batch('interleaved', 5000)), ('interleaved, 8192', batch('interleaved', 8192)), ('interleaved, 20 000 (3355 columns)', batch('interleaved', 20000)),
        ('interleaved, 65 536', batch('interleaved', 65536)), ('interleaved, 2^20', batch('interleaved', 1 << 20)), ('−1, 2, −1, interleaved, 8192', batch('interleaved, -1 2 -1', 8192)),
        ('−1, 2, −1, interleaved, 65 536', batch('interleaved, -1 2 -1', 65536))]),
    'batches': ('cuda_batch', 'layout, rows of a system', BESIDE_CUSPARSE, [
        ('contiguous, 3', batch('contiguous', 3)), ('contiguous, 64', batch('contiguous', 64)), ('contiguous, 512', batch('contiguous', 512)), ('contiguous, 4096', batch('contiguous', 4096)),
        ('contiguous, 8192', batch('contiguous', 8192)), ('padded, 7', batch('padded', 7)), ('padded, 250', batch('padded', 250)), ('interleaved, 3', batch('interleaved', 3)), ('interleaved, 5', batch('interleaved', 5)), ('64 side by side, 7', batch('64 wide y', 7)), ('interleaved, 64', batch('interleaved', 64)), ('interleaved, 512', batch('interleaved', 512)),
        ('interleaved, 1024', batch('interleaved', 1024)), ('interleaved, 4096', batch('interleaved', 4096)), ('512³ along y', batch('512^3 y', 512)), ('512³ along z', batch('512^3 z', 512)),
        ('odd planes along y, 255', batch('odd y', 255))]),
    'shared couplings': ('cuda_batch', 'layout, rows of a system', (['of the roof', 'queued', 'over cuSPARSE'], long_batch_beside_cusparse), [
        *[(f'{layout}, {rows}', batch(f'{layout}, couplings shared', rows)) for layout, all_rows in (('contiguous', (16, 64, 256, 512, 1024, 4096)), ('interleaved', (16, 64, 256, 512, 1024, 2048, 4096)))
          for rows in all_rows],
        ('256³ along y', batch('256^3 y, couplings shared', 256)), ('odd planes along y, 255', batch('odd y, couplings shared', 255)), ('two numbers, contiguous, 256', batch('contiguous, couplings numbers', 256)),
        ('two numbers, interleaved, 256', batch('interleaved, couplings numbers', 256))]),
    'rings': ('cuda_rings', 'layout, rows of a ring', (['of the roof', 'over cuSPARSE'], ring), [
        ('contiguous, 8', batch('contiguous', 8)), ('contiguous, 64', batch('contiguous', 64)), ('contiguous, 256', batch('contiguous', 256)), ('contiguous, 1000', batch('contiguous', 1000)),
        ('contiguous, 4096', batch('contiguous', 4096)), ('contiguous, 20 000', batch('contiguous', 20000)), ('interleaved, 64', batch('interleaved', 64)), ('interleaved, 256', batch('interleaved', 256)),
        ('interleaved, 1024', batch('interleaved', 1024)), ('interleaved, 4096', batch('interleaved', 4096)), ('interleaved, 20 000', batch('interleaved', 20000)), ('one matrix, contiguous, 64', batch('contiguous, shared', 64)),
        ('one matrix, contiguous, 256', batch('contiguous, shared', 256)), ('one matrix, contiguous, 1024', batch('contiguous, shared', 1024)), ('one matrix, contiguous, 2000', batch('contiguous, shared', 2000)), ('one matrix, contiguous, 8192', batch('contiguous, shared', 8192)),
        ('one matrix, interleaved, 256', batch('interleaved, shared', 256)), ('one matrix, interleaved, 1024', batch('interleaved, shared', 1024)), ('one matrix, interleaved, 8192', batch('interleaved, shared', 8192)), ('one ring of 2^24', batch('one ring', 1 << 24))]),
    'ragged': ('cuda_ragged', 'rows of a system, matrix', (['of the roof', 'queued', 'over cuSPARSE'], long_batch_beside_cusparse), [
        (f'{rows}, {matrix}', {'case': rows, 'matrix': matrix}) for matrix in ('dominance 3', 'random') for rows in ('1 to 6', '4 to 60', '64', '20 to 400', '100 to 1000', '1000', '500 to 3000', '2000 to 6000', '8000 to 60000')]),
    'pivots': ('cuda_batch', 'which systems, layout, rows', (['of the roof', 'over cuSPARSE'], pivoted), [
        ('one in a hundred, contiguous, 512', batch('contiguous few', 512)), ('one in a hundred, contiguous, 4096', batch('contiguous few', 4096)), ('one in a hundred, interleaved, 64', batch('interleaved few', 64)),
        ('one in a hundred, interleaved, 1024', batch('interleaved few', 1024)), ('all, contiguous, 64', batch('contiguous lu', 64)), ('all, contiguous, 512', batch('contiguous lu', 512)),
        ('all, contiguous, 4096', batch('contiguous lu', 4096)), ('all, interleaved, 64', batch('interleaved lu', 64)), ('all, interleaved, 256', batch('interleaved lu', 256)),
        ('all, interleaved, 1024', batch('interleaved lu', 1024)), ('all, interleaved, 4096', batch('interleaved lu', 4096)), ('unpivoted first, most marked, contiguous, 512', batch('contiguous rescue', 512)),
        ('the same, interleaved, 512', batch('interleaved rescue', 512)), ('the same, interleaved, 4096', batch('interleaved rescue', 4096))]),
    'meshes on chip': ('cuda_heat', 'mesh', (['Gpoints/s', 'over cuSPARSE'], on_chip), [
        ('64² × 3000', '2d/64^2x3000/'), ('128² × 1500', '2d/128^2x1500/'), ('256² × 60', '2d-large/256^2x60/'), ('512² × 60', '2d-large/512^2x60/'), ('768² × 60', '2d-large/768^2x60/'), ('32³ × 72', '3d/32^3x72/'),
        ('48³ × 24', '3d/48^3x24/'), ('48³ × 72', '3d/48^3x72/'), ('64³', '3d-large/64^3x1/'), ('64³ × 128', '3d-large/64^3x128/'), ('64² × 3000, conductivity varies', 'varying/64^2x3000/*/k'),
        ('128² × 1500, the same', 'varying/128^2x1500/*/k'), ('256² × 180, the same', 'varying/256^2x180/*/k'), ('32³ × 72, the same', 'varying/32^3x72/*/k')]),
    'opencl': ('opencl', 'what', (['of the roof', "of CUDA's time"], beside_cuda), [
        ('rows side by side, 64', opencl('batch, contiguous', 64)), ('256', opencl('batch, contiguous', 256)), ('512', opencl('batch, contiguous', 512)),
        ('systems side by side, 64 rows', opencl('batch, interleaved', 64)), ('256', opencl('batch, interleaved', 256)), ('512', opencl('batch, interleaved', 512)),
        ('one system that forgets, 2^24 rows', opencl('one system, dominant', 2 ** 24)), ('2^26 rows', opencl('one system, dominant', 2 ** 26)), ('-1, 2, -1, 2^24 rows', opencl('one system, -1, 2, -1', 2 ** 24)), ('2^26 rows', opencl('one system, -1, 2, -1', 2 ** 26)), ('random, 2^26 rows', opencl('one system, random', 2 ** 26)), ('streamed from the host, FP64 2^27 rows', opencl('streamed from the host', 2 ** 27)),
        ('FP32 2^28 rows', opencl('streamed from the host', 2 ** 28))]),
    'sweeps on the cpu': ('heat', 'mesh, threads', (['of the roof', 'moves alone', 'arithmetic alone', 'over LAPACK'], cpu_pass), [
        ('256³, 1', cpu_heat('256^3', 1)), ('256³, 2', cpu_heat('256^3', 2)), ('400³, 1', cpu_heat('400^3', 1)), ('400³, 2', cpu_heat('400^3', 2)),
        ('3000², 1', cpu_heat('3000^2', 1)), ('3000², 2', cpu_heat('3000^2', 2)), ('400², 1', cpu_heat('400^2', 1)), ('400², 2', cpu_heat('400^2', 2)),
        ('128² × 1500, 1', cpu_heat('128^2 x 1500', 1)), ('128² × 1500, 2', cpu_heat('128^2 x 1500', 2)), ('32² × 1500, 1', cpu_heat('32^2 x 1500', 1)), ('32² × 1500, 2', cpu_heat('32^2 x 1500', 2))]),
    'pivoted systems': ('pivoted', 'matrix, threads', (['of the roof', 'moves alone', 'arithmetic alone', 'over LAPACK'], cpu_pass), [
        ('random (one pass), 1', cpu_pivoted('random', 1)), ('random, 2', cpu_pivoted('random', 2)), ('random, in place, 1', cpu_pivoted('random', 1, ', in place')),
        ('waves (two rows at a time), 1', cpu_pivoted('waves', 1)), ('waves, 2', cpu_pivoted('waves', 2))]),
    'pivoted systems on sixteen cores': ('pivoted', 'matrix, threads', (['of the roof', 'moves alone', 'arithmetic alone', 'over LAPACK'], cpu_pass), [
        ('random (one pass), 1', cpu_pivoted('random', 1)), ('random, 16', cpu_pivoted('random', 16)), ('waves (two rows at a time), 1', cpu_pivoted('waves', 1)), ('waves, 16', cpu_pivoted('waves', 16)),
        ('-1, 2, -1 (dominant rows), 1', cpu_pivoted('Poisson', 1)), ('-1, 2, -1, 16', cpu_pivoted('Poisson', 16))]),
    'batches on the cpu': ('batch', 'systems × rows, threads', (['of the roof', 'of its moves', 'over a Thomas loop'], cpu_batch_cells), [
        ('131072 × 256, 1', cpu_batch('131072 x 256', 1)), ('131072 × 256, 2', cpu_batch('131072 x 256', 2)), ('400³ along x, 1', cpu_batch('400^3 along x', 1)), ('400³ along y, 1', cpu_batch('400^3 along y', 1)),
        ('400³ along z, 1', cpu_batch('400^3 along z', 1)), ('32 × 1000² along y, 1', cpu_batch('32x1000x1000 along y', 1)), ('32 × 1000² along y, 2', cpu_batch('32x1000x1000 along y', 2)), ('512³ along x, 1', cpu_batch('512^3 along x', 1)), ('512³ along y, 1', cpu_batch('512^3 along y', 1)), ('512³ along z, 1', cpu_batch('512^3 along z', 1))]),
    'the general path': ('general', 'what, threads', (['ns a row', 'of the roof', 'over LAPACK'], cpu_general_cells),
                         [(f'{text}, {threads}', cpu_batch(case, threads)) for case, text in [
                             ('rings, 256 rows, side by side, dominant', 'rings of 256 rows side by side, dominant'), ('rings, 256 rows, one after the other, dominant', 'one after the other'),
                             ('rings, 256 rows, one after the other, random', 'random'), ('rings, 6000 rows, one after the other, dominant', 'of 6000 rows, dominant'), ('rings, 6000 rows, one after the other, waves', 'of 6000 rows, waves'),
                             ('ragged, 1 to 6 rows, dominant', 'ragged, 1 to 6 rows, dominant'), ('ragged, 1 to 6 rows, random', '1 to 6 rows, random'), ('ragged, 20 to 400 rows, dominant', '20 to 400 rows, dominant'),
                             ('ragged, 20 to 400 rows, random', '20 to 400 rows, random'), ('ragged, 1000 to 7000 rows, dominant', '1000 to 7000 rows, dominant'), ('ragged, 1000 to 7000 rows, random', '1000 to 7000 rows, random'),
                             ('ragged rings, 20 to 400 rows, dominant', 'ragged rings, 20 to 400 rows, dominant'), ('added to x, 64 rows, side by side, dominant', 'added to x, 64 rows side by side, dominant'),
                             ('added to x, 1000 rows, one after the other, dominant', '1000 rows one after the other, dominant'), ('added to x, 1000 rows, one after the other, random', 'random')] for threads in (1, 2)]),
    'certified on the cpu': ('single', 'rows, threads', (['of the roof', 'moves alone', 'arithmetic alone', 'over LAPACK'], cpu_pass), [
        ('10⁸, dominant, 1', cpu_batch('memory, 1e+08 rows', 1)), ('10⁸, dominant, 2', cpu_batch('memory, 1e+08 rows', 2))]),
    'kept factors': ('factored', 'systems × rows, threads', (['of the roof', 'over LAPACK'], cpu_kept), [
        ('32768 × 256, one matrix, 1', cpu_factored('32768 x 256, one matrix', 1)), ('32768 × 256, one matrix, 2', cpu_factored('32768 x 256, one matrix', 2)), ('32768 × 256, a matrix each, 1', cpu_factored('32768 x 256', 1)),
        ('8 · 10⁶ rows that decay, 1', cpu_factored('8e+06 rows, decaying', 1)), ("8 · 10⁶ rows of Poisson's equation, 1", cpu_factored('8e+06 rows, Poisson', 1)),
        ('100 000 rows that decay, 1', cpu_factored('100000 rows, decaying', 1))]),
}


# Tables of another machine than the one that has most records.
MACHINES = {'pivoted systems on sixteen cores': 'intel-xeon-16c'}


def is_it(row, wanted, kind):
    if isinstance(wanted, str):
        wanted = {'case': wanted.replace('*', kind) if '*' in wanted else wanted + kind}
    return row.get('precision', row.get('dtype')) == kind and not row.get('failed') and all(row.get(key) == value for key, value in wanted.items())


# Suite, matrix, type, rows.
SEVERAL = [('hetero', 'dominant', 'f32', 256e6), ('hetero', 'dominant', 'f32', 512e6), ('hetero', 'dominant', 'f32', 1024e6), ('hetero', 'dominant', 'f32', 1280e6), ('hetero', 'dominant', 'f64', 256e6), ('hetero', 'dominant', 'f64', 512e6), ('hetero', 'dominant', 'f64', 640e6),
           ('hetero_kinds', 'dominant, in place', 'f32', 256e6), ('hetero_kinds', 'dominant', 'f64', 128e6), ('hetero_kinds', 'dominant, in place', 'f64', 128e6), ('hetero_kinds', 'random', 'f64', 128e6),
           ('hetero_kinds', 'poisson', 'f64', 128e6), ('hetero_kinds', 'poisson', 'f32', 256e6), ('hetero_kinds', 'dominant, pageable', 'f32', 128e6)]


def machine_with(results, suites):
    """Of the machines that have these records, the one that has most; None where there is none."""
    machines = [machine for machine in sorted(os.listdir(results)) if all(os.path.exists(os.path.join(results, machine, suite + '.json')) for suite in suites)]
    return max(machines, key=lambda machine: len(os.listdir(os.path.join(results, machine))), default=None)


def several(results):
    """Both devices beside each alone, of one machine that has both records."""
    suites = sorted({suite for suite, *_ in SEVERAL})
    machine = machine_with(results, suites)
    if not machine:
        return
    records = {suite: read(os.path.join(results, machine, suite + '.json')) for suite in suites}
    yield '| system | `cpu` | `cuda:0` | both | chosen | of the best single | of the parts (sum) | of the two phases |'
    yield '|---|---:|---:|---:|---:|---:|---:|---:|'
    for suite, *wanted in SEVERAL:
        rows = {row['devices']: row for row in records[suite]['rows'] if row.get('kind') == 'solve' and [row['matrix'], row['dtype'], row['rows']] == wanted and row.get('ok', True)}
        both = rows.get('cpu,cuda:0')
        if both and 'cpu' in rows and 'cuda:0' in rows:
            rates = [rows['cpu']['rows_per_s'], rows['cuda:0']['rows_per_s'], both.get('all_rows_per_s'), both['rows_per_s']]
            cells = ['–' if rate is None else f'{rate / 1e9:.2f}' for rate in rates]
            yield (f'| {wanted[2] / 1e6:.0f} million rows, FP{wanted[1][1:]}, {wanted[0]} | {" | ".join(cells)} ({both.get("chosen", "–")}) | {percent(both.get("of_the_best"))} |'
                   f' {percent(both.get("of_the_ceiling"))} | {percent(both.get("of_the_phases"))} |')
    yield ''
    yield f'({machine}, commit {records[suites[0]]["machine"].get("commit", "–")}. All cases, and what the columns say: [benchmarks](../benchmarks.md).)'


def read(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def lines(name, results):
    if name == 'several devices':
        yield from several(results)
        return
    suite, what, (columns, cells), wanted, *types = TABLES[name]
    machine = MACHINES.get(name) or machine_with(results, [suite])
    if not machine or not os.path.exists(os.path.join(results, machine, suite + '.json')):
        return
    record = read(os.path.join(results, machine, suite + '.json'))
    kinds = types[0] if types else ('f64', 'f32')
    yield f'| {what} | ' + ' | '.join(column if k else f'FP{kind[1:]} {column}' for kind in kinds for k, column in enumerate(columns)) + ' |'
    yield '|---|' + '---:|' * (len(kinds) * len(columns))
    for text, keys in wanted:
        made = []
        for kind in kinds:
            row = next((row for row in record['rows'] if is_it(row, keys, kind)), None)
            made += cells(row) if row else ['–'] * len(columns)
        if any(cell != '–' for cell in made):
            yield f'| {text} | ' + ' | '.join(made) + ' |'
    at = record['machine']
    yield ''
    yield (f'({at.get("gpu") or machine}' + (f', commit {at["commit"]}' if 'commit' in at else '') + '. All cases, and what the columns say: [benchmarks](../benchmarks.md).)')


def renewed(text, results):
    """A page with what stands between its marks as the record of one machine has it."""
    return MARK.sub(lambda found: found[1] + '\n' + '\n'.join(lines(found[2], results)) + '\n\n' + found[3], text)
