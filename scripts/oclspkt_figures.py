# SPDX-License-Identifier: BSD-3-Clause
"""oclspkt's figures 6, 7, 8, 10 and 11 from a record of `trifold_bench hetero`, with the published values beside: one picture each."""
import chart

NAMES = {'cpu': 'CPU', 'gpu': 'GPU', 'fpga': 'FPGA'}
SIZE = 256e6


def solves(record, dtype='f32'):
    return [row for row in record['rows'] if row['kind'] == 'solve' and row['matrix'] == 'dominant' and row['dtype'] == dtype]


def at_size(rows):
    return [row for row in rows if abs(row['rows'] - SIZE) < 0.01 * SIZE]


def generic(devices):
    """The published devices of the same kind: cpu or gpu."""
    return tuple(sorted({'cpu' if name == 'cpu' else 'gpu' for name in devices.split(',')}))


def resident(record):
    """ms per device where its data are in its own memory."""
    out = {row['devices']: 1e3 * row['seconds'] for row in record['rows'] if row['kind'] == 'resident' and row['dtype'] == 'f32' and row.get('algorithm') == 'automatic' and abs(row['rows'] - SIZE) < 0.01 * SIZE}
    out.update({row['devices']: 1e3 * row['seconds'] for row in at_size(solves(record)) if row['devices'] == 'cpu'})
    return out


def figure6(record, published):
    ours = resident(record)
    if not ours:
        return None
    for row in record['rows']:
        if row['kind'] == 'resident' and row.get('mapping') and row.get('kernels_s') and abs(row['rows'] - SIZE) < 0.01 * SIZE:
            name = f'{row["devices"]}, its {row["mapping"]} mapping' if row['mapping'] != 'tdma' else f'{row["devices"]}, its TDMA'
            ours[name] = 1e3 * row['kernels_s']
            if row['marshalling_s'] > 0.01 * row['kernels_s']:
                ours[name + ' with marshalling'] = 1e3 * (row['kernels_s'] + row['marshalling_s'])
    theirs = []
    for name in ('gpu', 'fpga', 'cpu'):
        kernel, whole = published['kernels_ms'][name]
        theirs.append((NAMES[name], kernel))
        if whole != kernel:
            theirs.append((NAMES[name] + ' with marshalling', whole))
    return chart.bars([('256 million rows, FP32, data where the device computes: ours', sorted(ours.items(), key=lambda one: one[1])), ('oclspkt, published', theirs)], 'ms')


def figure7(record, published, others):
    """Times faster than other solvers. others: (name, factor) from other records of the same machine."""
    cpu = next((row for row in at_size(solves(record)) if row['devices'] == 'cpu'), None)
    ours = list(others)
    if cpu:
        ours += [(f'cpu over {row["devices"]}', cpu['rows_per_s'] / row['rows_per_s']) for row in record['rows'] if row['kind'] == 'peer']
    if not ours:
        return None, []
    theirs = [(name, factor) for name, factor in published['published_times_peer'].items()]
    return chart.bars([('times faster than other solvers, ours', ours), ('oclspkt, published', theirs)], '×'), ours


def over_rows(record, published, value, published_value, scale, title, unit):
    panels, names = [], []
    colours = dict(zip(['cpu', 'cuda:0', 'cpu,cuda:0'], chart.COLOURS))
    for dtype in ('f32', 'f64'):
        series = {}
        for row in solves(record, dtype):
            if row.get(value) is not None:
                series.setdefault(row['devices'], []).append((row['rows'] / 1e6, row[value] / scale))
        series = {name: sorted(points) for name, points in series.items() if len(points) > 1}
        if not series:
            continue
        low, high = min(x for points in series.values() for x, _ in points), max(x for points in series.values() for x, _ in points)
        for k, name in enumerate(series):
            if name not in [one[0] for one in names]:
                names.append((name, name, colours.get(name, chart.COLOURS[k % len(chart.COLOURS)]), ''))
        # Averages over these sizes are all that was published in figures, of FP32.
        for k, row in enumerate(published['rows'] if dtype == 'f32' else []):
            name = 'oclspkt ' + '+'.join(NAMES[one] for one in row['devices'])
            series[name] = [(low, row[published_value] * 1e6 / scale), (high, row[published_value] * 1e6 / scale)]
            names.append((name, name, ['#999999', '#777777', '#555555', '#333333'][k % 4], ['5 4', '2 3', '8 3', '1 2'][k // 2]))
        panels.append((f'{title}, {dtype}: {unit} over million rows', series))
    return chart.lines_chart(panels, names, log_y=True) if panels else None


def figure8(record, published):
    return over_rows(record, published, 'rows_per_s', 'mrows_per_s', 1e6, 'figure 8', 'Mrows/s')


def figure11(record, published):
    return over_rows(record, published, 'rows_per_joule', 'mrows_per_joule', 1e6, 'figure 11', 'Mrows/J')


def published_joules(published):
    """Its own estimate: watts of the data sheet times kernel time with marshalling (its section 4.3)."""
    watts = {device['name']: device['watts'] for device in published['models'][0]['devices']}
    return [(NAMES[name], watts[name] * published['kernels_ms'][name][1] / 1e3) for name in ('fpga', 'gpu', 'cpu')]


def figure10(record, published):
    ours = [(row['devices'], row['joules']) for row in at_size(solves(record)) if row.get('joules') is not None]
    if not ours:
        return None
    return chart.bars([('joules of 256 million rows in the host\'s memory, FP32: ours', ours), ('oclspkt, published (TDP × kernel time)', published_joules(published))], 'J')


def pictures(record, published, machine, others=()):
    """name → SVG, for those of which the record has the values; and lines of text that show them."""
    seven, factors = figure7(record, published, others)
    made = {6: figure6(record, published), 7: seven, 8: figure8(record, published), 10: figure10(record, published), 11: figure11(record, published)}
    peer_rows = max((row['rows'] for row in record['rows'] if row['kind'] == 'peer'), default=0)
    what = {6: 'kernels alone', 7: f'against other solvers (GPU: over cuSPARSE, record cuda_single; cpu: all threads over one thread of each peer, of {peer_rows / 1e6:g} million rows)', 8: 'rows per second over rows; published: its table 5, averages over these sizes',
            10: 'joules per device', 11: 'rows per joule over rows; published: its table 5'}
    out = {f'hetero-figure{number}-{machine}.svg': picture for number, picture in made.items() if picture}
    lines = []
    for number, picture in made.items():
        if picture:
            lines += [f'Its figure {number}, {what[number]}:', '', f'![Figure {number} of oclspkt beside ours](images/hetero-figure{number}-{machine}.svg)', '']
    return out, lines
