# SPDX-License-Identifier: BSD-3-Clause
"""The record of cuda_heat_bench as tables and a picture, beside what is published (bench/published/adi_heat.json)."""
import math

from chart import GAP_X, GAP_Y, HEIGHT, LEFT, TOP, WIDTH, label

GROUPS = {'2d': 'Planes', '2d-large': 'Large planes', '3d': 'Boxes', '3d-large': 'Large boxes'}
PANELS = [('2-D, FP32, batch 3000, 120 steps', '2d', 'f32', 3000), ('2-D, FP64, batch 3000, 120 steps', '2d', 'f64', 3000),
          ('2-D, FP32, batch 180, 100 steps', '2d-large', 'f32', 180), ('3-D, FP32, batch 72, 100 steps', '3d', 'f32', 72),
          ('3-D, FP64, batch 72, 100 steps', '3d', 'f64', 72)]
LINES = [('v100_s', 'V100, published', '#8c6bb1', ''), ('u280_s', 'Alveo U280, published', '#d9820f', ''),
         ('rival_seconds', 'cuSPARSE on the {gpu}', '#777777', '5 4'), ('seconds', 'Trifold on the {gpu}', '#b2182b', '')]


def key(row):
    return tuple(row['mesh']), row['batch'], row['precision'], row['iterations']


def joined(record, published):
    """Rows of the record, each with what is published of it: by type, points of a mesh and batch."""
    known = {key(row): row for row in published['rows']}
    rows = [row if row.get('options') else {**known.get(key(row), {}), **row} for row in record['rows']]
    return sorted(rows, key=lambda row: (row['precision'], math.prod(row['mesh']), row['batch']))


def mesh_text(mesh):
    if len(set(mesh)) == 1:
        return f'{mesh[0]}{"²³"[len(mesh) - 2]}'
    return ' × '.join(map(str, mesh))


def milliseconds(seconds):
    return '–' if seconds is None else f'{1e3 * seconds:.3g}' if seconds < 0.9995 else f'{1e3 * seconds:.0f}'


def times(row, other):
    return f'{row[other] / row["seconds"]:.3g} ×' if row.get(other) else '–'


def share(row, words):
    value = row.get(f'fraction_{words}_words')
    return '–' if value is None else f'{100 * value:.0f} %'


def passes(row):
    value = row.get('fraction_of_passes')
    return '–' if value is None else f'{100 * value:.0f} %'


def ceiling(row):
    value = row.get('fraction_of_ceiling')
    return {'resident': 'on chip', 'planes': 'one pass'}.get(row.get('kind'), '–') if value is None else f'{100 * value:.0f} %'


def moves(row):
    value = row.get('fraction_of_moves')
    return '–' if value is None else f'{100 * row["fraction_5_words"] / value:.0f} %'


def amount(value, digits=3):
    return '–' if value is None else f'{value:.{digits}g}'


def rate(points_per_s):
    return f'{points_per_s / 1e9:.0f}' if points_per_s >= 1e11 else f'{points_per_s / 1e9:.3g}'


def whole(value):
    return '–' if value is None else f'{value:.0f}'


def name(row):
    return [mesh_text(row['mesh']), row['batch'], row['precision']]


def tables(record, published, table, picture):
    """Lines of the document. `table(header, rows)` makes one, `picture` is where the plot lies."""
    rows = joined(record, published)
    good = [row for row in rows if not row.get('failed')]
    if any(row.get('u280_s') for row in good):
        yield f'![Seconds of a run against the mesh: Alveo U280, V100, cuSPARSE and Trifold on this machine]({picture})'
        yield ''
    for group, title in GROUPS.items():
        of_group = [row for row in good if row['group'] == group]
        if not of_group:
            continue
        steps = ', '.join(sorted({str(row['iterations']) for row in of_group}))
        solid = group.startswith('3d')
        known = any(row.get('u280_s') for row in of_group)
        yield f'{title}, {steps} steps:'
        yield ''
        moved = any(row.get('fraction_of_moves') for row in of_group)
        header = ['mesh', 'batch', 'type', 'ms', 'Gpoints/s', 'roof GB/s', 'at 5 words'] + (['moving alone'] if moved else []) + (['at 7 words'] if solid else []) + ['of passes', 'of ceiling', 'cuSPARSE']
        if known:
            header += ['U280 ms', 'V100 ms', 'over the U280', 'over the V100']
        lines = []
        for row in of_group:
            line = name(row) + [milliseconds(row['seconds']), rate(row['points_per_s']), whole(row['roof_gb_per_s']), share(row, 5)]
            line += ([moves(row)] if moved else []) + ([share(row, 7)] if solid else []) + [passes(row), ceiling(row)] + [f'{row["times_rival"]:.3g} ×' if row.get('times_rival') else '–']
            if known:
                line += [milliseconds(row.get('u280_s')), milliseconds(row.get('v100_s')), times(row, 'u280_s'), times(row, 'v100_s')]
            lines.append(line)
        yield from table(header, lines)
    yield ('Time of a whole run, fields in the memory of the device, as the paper counts it. At 5 (7) words: so many words per point and step over the time,'
           ' over the bandwidth of a stream that reads four arrays and writes one in the same run; above 100 % these words do not move, since fields stay on chip'
           ' from step to step, or a step is one pass. Of passes: the same over what streams of its own mix would take, that read one array and write one for each axis but the last, and'
           ' for that read two and write one of them'
           + (f' ({record["copy_gb_per_s"]:.0f} and {record["update_gb_per_s"]:.0f} GB/s)' if record.get('copy_gb_per_s') else '') + '. Of ceiling: the time of those streams on the arrays of the case itself, launched as often, which nothing that takes a step in two passes can beat;'
           ' some boxes take one pass, on chip no step passes through memory.'
           + (' Moving alone: at 5 words as well, what the same kernels reach with their copies, loads, stores and launches and nothing computed.' if any(row.get('fraction_of_moves') for row in good) else '') +
           ' cuSPARSE: how many times as long the same scheme takes with a kernel for the right-hand side, gtsv2StridedBatch along x,'
           ' gtsvInterleavedBatch along y and z, and a kernel for the update, in turns with ours; both agree to rounding before they are timed.'
           f' Published: {published["paper"]}; seconds read off the charts of {published["repository"]} (± 0.6 %).')
    yield ''
    others = [row for row in good if row.get('options')]
    if others:
        yield 'Conductivity that varies from cell to cell (k, the same for all meshes), rings along all axes (periodic), half steps (halves):'
        yield ''
        yield from table(['mesh', 'batch', 'type', 'options', 'ms', 'Gpoints/s', 'words', 'at these words', 'kernels', 'cuSPARSE'],
                         [name(row) + [row['options'], milliseconds(row['seconds']), rate(row['points_per_s']), f'{row["words"]:.3g}', f'{100 * row["fraction_of_words"]:.0f} %', row['kind'],
                                       f'{row["times_rival"]:.3g} ×' if row.get('times_rival') else '–'] for row in others])
        yield 'Words per point and step that must move if each line solve is a pass through memory; what all meshes of a batch share counts once. On chip (resident) none of them does.'
        yield ''
    energy = [row for row in good if row.get('joules') is not None]
    if energy:
        yield 'Joules of a run:'
        yield ''
        yield from table(['mesh', 'batch', 'type', 'joules', 'watts', 'U280 J', 'V100 J', 'over the U280', 'over the V100'],
                         [name(row) + [amount(row['joules']), whole(row['watts']), whole(row.get('u280_joules')), whole(row.get('v100_joules'))]
                          + [f'{row[other] / row["joules"]:.2g} ×' if row.get(other) else '–' for other in ('u280_joules', 'v100_joules')] for row in energy])
        yield 'NVML, the whole board, whole runs for at least two seconds. Published figures are rounded to 1 J.'
        yield ''
    solves = [row for row in good if row.get('rival_gx_gb_per_s') and not row.get('options')]
    if solves:
        yield "GB/s of cuSPARSE's solves along each axis:"
        yield ''
        axes = [f'{where}{axis}_gb_per_s' for where in ('rival_g', 'v100_g') for axis in 'xyz']
        published_too = [row for row in solves if row.get('v100_gx_gb_per_s') or row['group'] == '3d-large']
        yield from table(['mesh', 'batch', 'type', 'Gx', 'Gy', 'Gz', 'V100 Gx', 'V100 Gy', 'V100 Gz'],
                         [name(row) + [whole(row.get(axis)) for axis in axes] for row in published_too])
        yield ("Four words read and one written per point, over the time of the solve. The published ones are of the V100's own library of tridiagonal solvers"
               ' (tables 2 and 3 of the paper).')
        yield ''
    failed = [row for row in rows if row.get('failed')]
    for row in failed:
        yield (f'- {row["case"]}: {row["difference_roundoffs"]:.3g} roundoffs away from the result with cuSPARSE after {row["compared_steps"]} steps'
               f' (limit {row["limit_roundoffs"]:.0f}): not timed.')
    if failed:
        yield ''


# ---- the picture ----

def power_text(exponent):
    return {-4: '0.1 ms', -3: '1 ms', -2: '10 ms', -1: '0.1 s', 0: '1 s', 1: '10 s'}.get(exponent, f'1e{exponent} s')


def panel(left, top, title, rows):
    """Seconds over the points of a mesh, both logarithmic."""
    rows = sorted(rows, key=lambda row: math.prod(row['mesh']))
    values = [row[line[0]] for row in rows for line in LINES if row.get(line[0])]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    points = [math.log(math.prod(row['mesh'])) for row in rows]
    width = (max(points) - min(points)) or 1
    place_x = lambda p: left + 14 + (WIDTH - 28) * (p - min(points)) / width
    place_y = lambda s: top + HEIGHT - HEIGHT * (math.log10(s) - low) / (high - low)
    yield label(left + WIDTH / 2, top - 10, title, 12, extra=' font-weight="bold"')
    for exponent in range(low, high + 1):
        y = place_y(10.0 ** exponent)
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield label(left - 6, y + 4, power_text(exponent), 10, 'end')
    named = []
    for x, text in sorted(((place_x(at), mesh_text(row['mesh']).replace(' ', '')) for at, row in zip(points, rows)), key=lambda mark: ('×' in mark[1], -mark[0])):
        yield f'<line x1="{x:.1f}" y1="{top + HEIGHT}" x2="{x:.1f}" y2="{top + HEIGHT + 4}" stroke="#333333"/>'
        half = 3.3 * len(text) + 2
        if all(abs(x - other) > half + width for other, width in named):
            yield label(x, top + HEIGHT + 17, text, 10)
            named.append((x, half))
    yield f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999999"/>'
    for field, _, colour, dash in LINES:
        here = [(place_x(at), place_y(row[field])) for at, row in zip(points, rows) if row.get(field)]
        if not here:
            continue
        line = ' '.join(f'{x:.1f},{y:.1f}' for x, y in here)
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else '') + '/>'
        for x, y in here:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>'


def picture(record, published):
    """An SVG file: a panel for each of PANELS of which there is a record. Empty where there is none."""
    rows = [row for row in joined(record, published) if not row.get('failed')]
    drawn = [(title, [row for row in rows if (row['group'], row['precision'], row['batch']) == (group, dtype, batch)]) for title, group, dtype, batch in PANELS]
    drawn = [(title, of_panel) for title, of_panel in drawn if len(of_panel) > 1]
    if not drawn:
        return ''
    columns = min(3, len(drawn))
    down = -(-len(drawn) // columns)
    width, height = LEFT + columns * WIDTH + (columns - 1) * GAP_X + 20, TOP + down * HEIGHT + (down - 1) * GAP_Y + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" fill="#333333">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    x = LEFT
    gpu = record['machine']['gpu'].removeprefix('NVIDIA ')
    for _, text, colour, dash in LINES:
        text = text.format(gpu=gpu)
        out.append(f'<line x1="{x}" y1="22" x2="{x + 26}" y2="22" stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else '') + '/>')
        out.append(label(x + 32, 26, text, 12, 'start'))
        x += 52 + 7 * len(text)
    for k, (title, of_panel) in enumerate(drawn):
        out += panel(LEFT + k % columns * (WIDTH + GAP_X), TOP + k // columns * (HEIGHT + GAP_Y), title, of_panel)
    return '\n'.join(out) + '\n</svg>\n'
