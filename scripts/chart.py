# SPDX-License-Identifier: BSD-3-Clause
"""Line and bar charts as SVG text, for the pictures that scripts/bench-tables makes."""
import math

WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 300, 230, 60, 70, 62, 74
COLOURS = ['#b2182b', '#d9820f', '#8c6bb1', '#1b7837', '#2166ac', '#777777', '#a6761d', '#e7298a', '#01665e']


def escaped(text):
    return text.replace('&', '&amp;').replace('<', '&lt;')


def label(x, y, text, size=11, anchor='middle', extra=''):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{extra}>{escaped(text)}</text>'


def page(width, height, lines):
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" fill="#333333">',
                      f'<rect width="{width}" height="{height}" fill="white"/>', *lines]) + '\n</svg>\n'


def frame(left, top, title, width=WIDTH, height=HEIGHT):
    yield label(left + width / 2, top - 10, title, 12, extra=' font-weight="bold"')
    yield f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999999"/>'


def short(value):
    if 1000 <= value < 10000: return f'{value:.0f}'
    return f'{value:.3g}'.replace('e+0', 'e').replace('e+', 'e').replace('e-0', 'e-')


def legend(names, columns, width):
    """Lines of coloured names from the top left; and their height. names: (text, colour, dash)."""
    out = []
    for k, (text, colour, dash) in enumerate(names):
        x, y = LEFT + k % columns * width, 22 + k // columns * 18
        out.append(f'<line x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}" stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else '') + '/>')
        out.append(label(x + 32, y + 4, text, 12, 'start'))
    return out, 18 * -(-len(names) // columns)


def lines_chart(panels, names, log_y=False, y_text=short):
    """panels: (title, {name: [(x, y)…]}); names: (name, text, colour, dash) in order. One y axis for all panels, so that they compare."""
    columns = min(2, len(panels))
    used = [entry for entry in names if any(entry[0] in series for _, series in panels)]
    out, above = legend([entry[1:] for entry in used], 3, 230)
    top, width = TOP + above, 340 if columns > 1 else 680
    values = [y for _, series in panels for points in series.values() for _, y in points if y > 0]
    if log_y:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        marks = [10.0 ** e for e in range(low, high + 1, max(1, (high - low) // 8))]
        place = lambda y: (math.log10(max(y, 10.0 ** low)) - low) / ((high - low) or 1)
    else:
        high = max(values) * 1.05
        step = 10 ** math.floor(math.log10(high))
        step = next(s for s in (step / 5, step / 2, step, 2 * step) if high / s <= 8)
        marks = [k * step for k in range(int(high / step) + 1)]
        place = lambda y: y / high
    for k, (title, series) in enumerate(panels):
        left, y0 = LEFT + k % columns * (width + GAP_X), top + k // columns * (HEIGHT + GAP_Y)
        xs = [x for points in series.values() for x, _ in points]
        low_x, span = min(xs), (max(xs) - min(xs)) or 1
        at_x = lambda x: left + 10 + (width - 20) * (x - low_x) / span
        at_y = lambda y: y0 + HEIGHT * (1 - place(y))
        for mark in marks:
            out.append(f'<line x1="{left}" y1="{at_y(mark):.1f}" x2="{left + width}" y2="{at_y(mark):.1f}" stroke="#dddddd"/>')
            out.append(label(left - 6, at_y(mark) + 4, y_text(mark), 10, 'end'))
        out += frame(left, y0, title, width)
        wanted = sorted(set(xs))
        for x in [x for i, x in enumerate(wanted) if i % -(-len(wanted) // 8) == 0]:
            out.append(label(at_x(x), y0 + HEIGHT + 16, short(x), 10))
        for name, _, colour, dash in used:
            points = ' '.join(f'{at_x(x):.1f},{at_y(y):.1f}' for x, y in series.get(name, []))
            if points:
                out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else '') + '/>')
    rows = -(-len(panels) // columns)
    return page(LEFT + columns * width + (columns - 1) * GAP_X + 20, top + rows * HEIGHT + (rows - 1) * GAP_Y + 40, out)


def bars(groups, unit):
    """groups: (title, [(name, value)…]); a block of horizontal bars each, one scale for all, so that they compare."""
    names = [name for _, values in groups for name, _ in values]
    left, width, step, out, y = max(170, 20 + 6 * max(len(name) for name in names)), 520, 18, [], 20
    most = max(value for _, values in groups for _, value in values)
    for title, values in groups:
        y += 14
        out.append(label(left, y, title, 12, 'start', ' font-weight="bold"'))
        y += 8
        for name, value in values:
            out.append(label(left - 8, y + 12, name, 11, 'end'))
            out.append(f'<rect x="{left}" y="{y + 2}" width="{width * value / most:.1f}" height="{step - 5}" fill="{"#999999" if "published" in title else COLOURS[0]}"/>')
            out.append(label(left + width * value / most + 6, y + 12, f'{value:.0f} {unit}' if value >= 10 else f'{value:.2g} {unit}', 11, 'start'))
            y += step
        y += 12
    return page(left + width + 120, y + 10, out)


def shares(groups):
    """groups: (title, [(what, [(name, share)…])…]); every share a bar of one scale, 0 to 100 %."""
    left, width, step, out, y = 290, 430, 15, [], 12
    scale = lambda share: width * min(share, 1.05)
    for title, rows in groups:
        y += 16
        out.append(label(10, y, title, 13, 'start', ' font-weight="bold"'))
        y += 10
        begin = y
        for what, bars in rows:
            out.append(label(left - 10, y + step * len(bars) / 2 + 4, what, 11, 'end'))
            for k, (name, share) in enumerate(bars):
                out.append(f'<rect x="{left}" y="{y + 1}" width="{scale(share):.1f}" height="{step - 2}" fill="{"#bbbbbb" if k else COLOURS[4]}"/>')
                out.append(label(left + scale(share) + 6, y + 12, f'{100 * share:.0f} %' + (f'  {name}' if name else ''), 11, 'start'))
                y += step
            y += 7
        for mark in (0.5, 1):
            out.insert(0, f'<line x1="{left + scale(mark)}" y1="{begin}" x2="{left + scale(mark)}" y2="{y - 7}" stroke="#cccccc" stroke-dasharray="3"/>')
        y += 6
    out.append(label(left + scale(1), y + 8, 'all that memory can move', 11))
    return page(left + width + 200, y + 20, out)
