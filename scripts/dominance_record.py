# SPDX-License-Identifier: BSD-3-Clause
"""The record of `trifold_bench dominance` as a table and a picture: oclspkt's figure 9, with every device of the machine."""
import chart

ROUNDOFF = 'roundoffs'
# Of records with many values.
SHOWN = (1.001, 1.2, 1.5, 2.0, 2.5, 2.8, 3.0, 3.5, 4.0)


def solvers(record):
    return list(dict.fromkeys(row['solver'] for row in record['rows']))


def groups(record):
    return list(dict.fromkeys((row['matrix'], row['dtype']) for row in record['rows']))


def of(record, solver, group):
    return {row['dominance']: row for row in record['rows'] if row['solver'] == solver and (row['matrix'], row['dtype']) == group}


def amount(row):
    if row is None:
        return '–'
    error = row['error_roundoffs']
    text = 'NaN' if error is None else f'{error:.2g}'.replace('e+0', 'e').replace('e+', 'e')
    return text if row['ok'] else f'({text})'


def tables(record, table, picture):
    yield f'![Largest error of x in unit roundoffs against diagonal dominance]({picture})'
    yield ''
    for group in groups(record):
        yield f'{group[0].capitalize()} matrix, {group[1]}, largest error of x over largest x in unit roundoffs, at diagonal dominance:'
        yield ''
        seen = sorted({round(row['dominance'], 6) for row in record['rows']})
        columns = seen if len(seen) <= 16 else [d for d in SHOWN if d in seen]
        lines = []
        for solver in solvers(record):
            rows = {round(d, 6): row for d, row in of(record, solver, group).items()}
            lines.append([solver, group[1]] + [amount(rows.get(round(d, 6))) for d in columns])
        yield from table(['solver', 'type'] + [f'{d:g}' for d in columns], lines)
    yield ('In brackets: the outcome says that x is not accepted. oclspkt-…: its kernels in that mapping with its partitions of 32 rows, kept from lengthening them;'
           ' TDMA, LU: elimination without and with pivoting. A device by its name: what `automatic` does. Random: off-diagonals of either sign and sizes of 0.5 to 1;'
           ' one-sided: -1 below and -0.001 above the diagonal, where a truncated coupling falls as slowly as dominance allows.' +
           (' At 1 its condition grows with its rows, and so does what any elimination loses.' if any(row['dominance'] <= 1 for row in record['rows']) else ''))
    yield ''


def style(solver, ours):
    if solver.startswith('LU'):
        return '#777777', '2 3'
    if solver.lower().endswith('tdma'):
        return '#777777', '5 4'
    if 'oclspkt' in solver:
        return {'cpu': '#2166ac', 'gpu': '#8c6bb1', 'pga': '#d9820f'}[solver[-3:]], '5 4' if not solver.endswith('gpu') else '2 3'
    return ['#b2182b', '#1b7837', '#a6761d', '#01665e'][ours % 4], ''


def picture(record):
    names, ours = [], 0
    for solver in solvers(record):
        own = not (solver.startswith('LU') or solver.lower().endswith('tdma') or 'oclspkt' in solver)
        names.append((solver, solver, *style(solver, ours)))
        ours += own
    panels = []
    for group in groups(record):
        series = {solver: sorted((d, max(row['error_roundoffs'], 0.1)) for d, row in of(record, solver, group).items() if row['error_roundoffs'] is not None)
                  for solver in solvers(record)}
        panels.append((f'{group[0]} matrix, {group[1]}: roundoffs over dominance', {k: v for k, v in series.items() if len(v) > 1}))
    return chart.lines_chart(panels, names, log_y=True)
