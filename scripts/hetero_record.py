# SPDX-License-Identifier: BSD-3-Clause
"""The records of `trifold_bench hetero` and cuda_links_bench as tables and a picture, and the published machine of oclspkt by the contention model."""
import chart

NAMES = {'cpu': 'CPU', 'gpu': 'GPU', 'fpga': 'FPGA'}


def million(value, digits=0):
    return '–' if value is None else f'{value / 1e6:.{digits}f}'


def giga(value):
    return '–' if value is None else f'{value / 1e9:.1f}'


def percent(value):
    return '–' if value is None else f'{100 * value:.0f} %'


def few(value, digits=3):
    return '–' if value is None else f'{value:.{digits}g}'


def deviation(value):
    return '' if value is None else f' ({100 * value:+.0f} %)'


def machine_model(plan, table):
    """The output of `trifold plan --machine FILE --json` (bench/published/oclspkt_model.json)."""
    yield '## The machine of oclspkt by the contention model'
    yield ''
    yield (f'{plan["title"]}; {plan["rows"] / 1e6:.0f} million rows. Made from the output of `trifold plan --machine bench/published/oclspkt.json --json`;'
           ' [what the models assume and what they tell](algorithms/split_model.md).')
    yield ''
    ratio = next(model['kernel_ratio'] for model in plan['models'] if len(model['kernel_ratio']) > 1)
    yield 'Kernels by the bandwidth of their own memory: ' + ' : '.join(f'{name} {value:.3g}' for name, value in ratio.items()) + ' (published: gpu 1 : fpga 2.17 : cpu 4.57).'
    yield ''
    for title, rate, known, off in (('Mrows/s', 'rows_per_s', 'known_rows_per_s', 'deviation'), ('Mrows/J', 'rows_per_joule', 'known_rows_per_joule', 'deviation_per_joule')):
        yield f'{title}:'
        yield ''
        lines = []
        for k, first in enumerate(plan['models'][0]['combinations']):
            line = ['+'.join(NAMES.get(name, name) for name in first['devices']), few(first[known] and first[known] / 1e6)]
            for model in plan['models']:
                one = model['combinations'][k]
                line.append(few(one[rate] and one[rate] / 1e6, 4 if rate == 'rows_per_s' else 3) + deviation(one[off]))
            lines.append(line)
        yield from table(['devices', 'published'] + [model['name'] for model in plan['models']], lines)
    for model in plan['models']:
        yield f'- {model["name"]}: {model["why"]}. Not explained (off by more than 10 %): ' + ('; '.join(model['unexplained']) or 'none') + '.'
    yield ''
    yield 'Operations of a partition of m rows, its table 1:'
    yield ''
    in_m = lambda pair: f'{pair[0]:g} m' + (f' + {pair[1]:g}' if pair[1] else '')
    yield from table(['kernel', 'operation', 'published', 'counted'], [[one['kernel'], one['operation'], in_m(one['published']), in_m(one['counted'])] for one in plan['operations']])


def links(record, table):
    if record.get('pin_gb_per_s'):
        yield f'Pinning memory that is there: {record["pin_gb_per_s"]:.0f} GB/s, releasing it {record["unpin_gb_per_s"]:.0f} GB/s.'
        yield ''
    yield from table(['cores', 'link', 'threads', 'link in use', 'cores GB/s', 'in GB/s', 'out GB/s', 'sum GB/s'],
                     [[row['cores'] or '–', row['link'] or '–', row['threads'], percent(row['duty']) if row['link'] else '–', f'{row["cores_gb_per_s"]:.1f}', f'{row["in_gb_per_s"]:.1f}',
                       f'{row["out_gb_per_s"]:.1f}', f'{row["cores_gb_per_s"] + row["in_gb_per_s"] + row["out_gb_per_s"]:.1f}'] for row in record['rows']])
    yield ('Cores: a stream that reads four arrays and writes one past the caches, or solves of one dominant system, 5 words per row. Link: copies of 32 MiB between pinned memory'
           ' (unless it says pageable) and the GPU.')
    yield ''


def generic(name):
    """cpu, gpu or fpga of the published table."""
    return 'cpu' if name == 'cpu' else 'gpu'


def solve_table(solves, table):
    """One line per set of devices; what is learnt by the first solves apart."""
    in_phases = any(row.get('of_the_phases') for row in solves)
    two = ['of the two phases'] if in_phases else []
    yield from table(['devices', 'system', 'type', 'Mrows', 'threads', 'rounds', 'ms', 'Mrows/s', 'who took part', 'of the best device', 'of the sum', 'all of them Mrows/s', 'of the parts (sum)', *two, 'of the link', 'while learning (solves)', 'backward error'],
                     [[row['devices'], row['matrix'], row['dtype'], f'{row["rows"] / 1e6:.0f}', f'{row["threads"]:.0f}', few(row.get('rounds')), f'{1e3 * row["seconds"]:.1f}', million(row['rows_per_s']),
                       row.get('chosen', row['devices']), percent(row.get('of_the_best')), percent(row.get('of_the_sum')), million(row.get('all_rows_per_s')),
                       percent(row.get('of_the_ceiling')), *([percent(row.get('of_the_phases'))] if in_phases else []), percent(row.get('of_the_link')),
                       f'{million(row.get("learning_rows_per_s"))} ({row["learning_solves"]:.0f})' if ',' in row['devices'] and row.get('learning_solves', 0) > 1 else '–', few(row['backward_error'], 2)] for row in solves])
    order = ', in another order every time' if any(row.get('rounds') for row in solves) else ''
    yield ('One system of the host\'s memory, pinned where the device can and nothing else is said, x apart. Medians of rounds, in each of which every line is solved once' + order + ', after the two or three solves by'
           ' which the planner learns; "who took part" is its choice in most rounds. Of the best device: the time of the faster one of the set alone over the set\'s, round by round; of the sum: over the rates of its devices alone.'
           ' "All of them": a split in which nobody is left out, whatever was learnt. Of the parts (sum): that over the cpu\'s rate while copies run and the copies\' rate while the cpu solves, below; ' +
           ('of the two phases: over what both passes allow, each with what runs in it, below; ' if in_phases else '') + 'of the link: over its pinned bandwidth to the device, 4 words per row.')
    yield ''


def kinds(record, published, table):
    devices = [row for row in record['rows'] if row['kind'] == 'device']
    if devices:
        yield from [f'- `{row["devices"]}`: {row["description"]}' for row in devices]
        yield ''
    solves = [row for row in record['rows'] if row['kind'] == 'solve']
    yield from solve_table(solves, table)
    yield from ceilings(record, table)
    yield from phases(record, table)
    yield from energy(solves, published, table)


def ceilings(record, table):
    rows = [row for row in record['rows'] if row['kind'] == 'ceiling' and 'name' not in row]
    if not rows:
        return
    yield ('What cores and links do alone and side by side, in turns with the solves above: the cpu solves the rows that it had in the split while the others are copied to the devices, and as much as x of them back, in'
           ' pieces of 32 MiB from the same registered arrays. On all threads and on one less, which a split leaves to who waits for copies; as `cpu` solves, and in chunks that its threads take as in a split; the largest sum counts.')
    yield ''
    yield from table(['devices', 'system', 'type', 'Mrows', 'to GB/s', 'from GB/s', 'to, 4 : 1', 'cpu Mrows/s', 'threads beside', 'cpu beside copies', 'to beside the cpu', 'sum Mrows/s', 'least of the others'],
                     [[row['devices'], row.get('matrix', 'dominant'), row['dtype'], f'{row["rows"] / 1e6:.0f}', giga(row['to_bytes_per_s']), giga(row['from_bytes_per_s']), giga(row['solve_to_bytes_per_s']), million(row.get('cpu_rows_per_s')),
                       (f'{row["threads_beside"]:.0f}' + (', chunks' if row.get('in_chunks') else '')) if row.get('threads_beside') else '–', million(row.get('cpu_rows_per_s_while_copies')), giga(row['to_bytes_per_s_while_cpu']),
                       million(row['ceiling_rows_per_s']), million(min((value for key, value in row.items() if key.startswith('sum_rows_per_s_')), default=None))] for row in rows])


def phases(record, table):
    """What both passes of a system that does not forget allow, pass by pass."""
    rows = [row for row in record['rows'] if row['kind'] == 'ceiling' and row.get('name') == 'phases']
    if not rows:
        return

    def beside(row, name):
        rate, to, back = (row.get(f'{name}_{what}') for what in ('rows_per_s', 'to_bytes_per_s', 'from_bytes_per_s'))
        return ' + '.join([million(rate)] + [f'{giga(value)} {way}' for value, way in ((to, 'to'), (back, 'from')) if value is not None])
    yield ('The same for a system that does not forget, pass by pass, since all rows have to be read before any is finished; in turns with the solves too. First pass: the cpu reduces its rows while the link only brings those of'
           ' the device. Second pass: the cpu finishes them while the link takes x away, or takes x away and brings rows that the cpu has reduced (both). By the same chunks, pieces and tasks as in a split, on all threads and on one'
           ' less. Two phases: the fastest way through both passes at these rates and at those of cpu and link alone, for what is left of a pass when one of them has ended; in it the cpu reduces its share, and so much is finished by'
           ' the device. Rates are measured; that they may be put together so, and that coupling and the device take no time, is assumed. With coupling: as long as it took in the solves, in between.')
    yield ''
    yield from table(['devices', 'system', 'type', 'Mrows', 'threads', 'cpu reduces Mrows/s + link GB/s', 'cpu finishes + link', 'cpu finishes + link, both', 'two phases Mrows/s', 'share of the cpu', 'finished by the device', 'with coupling Mrows/s',
                      'reduce, couple, finish of the solves ms'],
                     [[row['devices'], row['matrix'], row['dtype'], f'{row["rows"] / 1e6:.0f}', f'{row["threads_beside"]:.0f}', beside(row, 'reduce_beside_to'), beside(row, 'finish_beside_from'), beside(row, 'finish_beside_both'),
                       million(row['ceiling_rows_per_s']), percent(row['share']), percent(row['sent_share']), million(row.get('coupled_rows_per_s')),
                       ', '.join('–' if row.get(f'solve_{phase}_s') is None else f'{1e3 * row[f"solve_{phase}_s"]:.1f}' for phase in ('reduce', 'couple', 'finish'))] for row in rows])


def energy(solves, published, table):
    rows = [row for row in solves if row.get('joules') is not None]
    if not rows:
        return
    known = {tuple(row['devices']): row for row in published['rows']}
    yield 'Joules of a solve, and rows per joule, beside its table 5:'
    yield ''
    yield from table(['devices', 'type', 'Mrows', 'joules', 'Mrows/J', 'how', 'published Mrows/J'],
                     [[row['devices'], row['dtype'], f'{row["rows"] / 1e6:.0f}', few(row['joules']), few(row['rows_per_joule'] / 1e6), f'{row["joules_kind"]}: {row["joules_note"]}',
                       few((known.get(tuple(sorted({generic(name) for name in row['devices'].split(',')}))) or {}).get('mrows_per_joule'))] for row in rows])


def published_ms(published, mapping):
    """Kernels, and with marshalling; its TDMA on the FPGA as it compares it."""
    if mapping == 'tdma':
        kernels = published['kernels_ms']['fpga'][0] * published['published_times_peer']['fpga over TDMA on it']
        return [kernels, kernels]
    return published['kernels_ms'][mapping]


def resident(rows, published, table):
    rows = [row for row in rows if row.get('kind') == 'resident']
    if not rows:
        return
    mapped = [row for row in rows if row.get('mapping')]
    yield 'Data where the device computes (its figure 6 has 78.4 ms and 3265 Mrows/s for the GPU, 1684 with marshalling, at 256 million rows):'
    yield ''
    yield from table(['device', 'algorithm', 'type', 'Mrows', 'ms', 'Mrows/s', 'its kernels alone', 'with marshalling'],
                     [[row['devices'], row['branch'] + (f', {row["mapping"]} mapping' if row.get('mapping') not in (None, 'tdma') else ''), row['dtype'], f'{row["rows"] / 1e6:.0f}', f'{1e3 * row["seconds"]:.1f}', million(row['rows_per_s']),
                       million(row.get('kernels_rows_per_s')), million(row.get('marshalled_rows_per_s'))] for row in rows])
    if mapped:
        names = {'cpu': 'CPU', 'gpu': 'GPU', 'fpga': 'FPGA', 'tdma': 'TDMA of the FPGA'}
        yield ("The published mappings here and there: its devices are a Xeon E5-1620 v4, a Quadro M4000 and an Arria 10, at 256 million rows; here the mapping for FPGAs and its TDMA are one work item, which on a processor is"
               " one core. Of its TDMA on the FPGA it says that the mapping is 1.7 times as fast, which gives the 753. Fewer rows where a solve would take longer than about a second, or memory does not hold more.")
        yield ''
        yield from table(['mapping', 'here on', 'Mrows', 'kernels alone Mrows/s', 'with marshalling', 'published kernels Mrows/s', 'with marshalling'],
                         [[names[row['mapping']], row['devices'], f'{row["rows"] / 1e6:.0f}', million(row.get('kernels_rows_per_s')), million(row.get('marshalled_rows_per_s'))] +
                          [f'{published["rows_solved"] / 1e3 / ms:.0f}' for ms in published_ms(published, row['mapping'])] for row in mapped])


def streamed(record, table):
    rows = [row for row in record['rows'] if row['kind'] == 'streamed']
    if not rows:
        return
    yield ('One system of the host\'s memory through one device, registered memory, and the copies there alone (pieces of 32 MiB, nothing back) in the same rounds. Of the link: four words a row over the time of the solve, over that'
           ' bandwidth; median of the rounds and the least. Fewer rows than 2^30 where memory holds no more, or in a short run.')
    yield ''
    yield from table(['device', 'type', 'Mrows', 'rounds', 'ms', 'Mrows/s', 'link GB/s', 'of the link', 'least', 'backward error'],
                     [[row['devices'], row['dtype'], f'{row["rows"] / 1e6:.0f}' + (f' (of {row["wanted_rows"] / 1e6:.0f})' if row['rows'] < row['wanted_rows'] else ''), f'{row["rounds"]:.0f}', f'{1e3 * row["seconds"]:.1f}',
                       million(row['rows_per_s']), giga(row['to_bytes_per_s']), percent(row['of_the_link']), percent(row['least_of_the_link']), few(row['backward_error'], 2)] for row in rows])


def choices(record, table):
    """What the planner takes of a set, beside the best single device of it."""
    def limits(row, name):
        return f'{row[name]:.3f} ({row[name + "_low"]:.3f} to {row[name + "_high"]:.3f})'

    def micro(value):
        return '–' if value is None else f'{1e6 * value:.0f}'
    rows = [row for row in record['rows'] if row['kind'] == 'choice']
    yield from table(['devices', 'system', 'type', 'Mrows', 'rounds', 'who took part', 'best single', 'ms', 'its time over the set\'s', 'over its own', 'of all rounds', 'choosing µs', 'while learning (solves)', ''],
                     [[row['devices'], row['matrix'], row['dtype'], f'{row["rows"] / 1e6:.0f}', few(row['rounds']), f'{row["chosen"]} ({percent(row.get("chosen_share"))})', row['best'], f'{1e3 * row["best_seconds"]:.2f}',
                       limits(row, 'of_the_best'), limits(row, 'of_itself'), f'{row["total_of_the_best"]:.3f}', micro(row.get('choosing_s')),
                       f'{row["learning_of_the_best"]:.2f} ({row["learning_solves"]:.0f})', row['verdict']] for row in rows])
    apart = any('trial_solves' in row for row in rows)
    if apart:
        yield from table(['devices', 'system', 'type', 'Mrows', 'first solves (of trials)', 'best device over them', 'later solves of trials', 'best device over them', 'over all solves'],
                         [[row['devices'], row['matrix'], row['dtype'], f'{row["rows"] / 1e6:.0f}', f'{row["learning_solves"]:.0f} ({row["learning_trials"]:.0f})', f'{row["learning_of_the_best"]:.3f}',
                           f'{row["trial_solves"]:.0f}', f'{row["trials_of_the_best"]:.3f}', f'{row["all_of_the_best"]:.3f}'] for row in rows])
    yield ((f'In one process. First what learning costs: the set\'s first solves in a row, the time that the best device would have taken for as many over theirs. Then in turns; trials, in which the planner goes on learning, go on in a row with the'
            f' solves that follow them, and are accounted for by themselves, above. ' if apart else
            f'In one process, in turns, after the solves by which the planner learns (while learning: the best device\'s time over the mean of theirs; those by which it goes on learning are among the rounds). ') +
           f'Medians of the ratios of rounds, and limits between which the'
           f' true ones lie with a confidence of 99 % (order statistics; 95 % in all, as a verdict is asked for up to six times). Of all rounds: sum over sum, outliers and looks included. The single device is solved twice a round: how far its ratio to itself may be from 1 is what the machine adds. Choosing:'
           f' what asking drivers and memory of former solves takes. Faster: the lower limit is above 1; not slower: it is above {1 - rows[0]["margin"]:.2f}, as the planner itself takes several devices where they gain {percent(rows[0]["margin"])}; slower: the upper one is below that; else open.')
    yield ''


def tables(record, published, table, picture):
    known = {tuple(row['devices']): row for row in published['rows']}
    solves = [row for row in record['rows'] if row['kind'] == 'solve']
    if picture:
        yield f'![Rows per second of devices and sets of them]({picture})'
        yield ''
    yield from solve_table(solves, table)
    yield from ceilings(record, table)
    yield from phases(record, table)
    yield from streamed(record, table)
    yield from resident(record['rows'], published, table)
    yield from energy(solves, published, table)
    beside = []
    for row in solves:
        kinds = tuple(sorted({generic(name) for name in row['devices'].split(',')}))
        theirs = known.get(kinds)
        if theirs is None or row['matrix'] != 'dominant' or row['dtype'] != 'f32':
            continue
        alone = sum(known[(kind,)]['mrows_per_s'] for kind in kinds)
        beside.append([row['devices'], f'{row["rows"] / 1e6:.0f}', million(row['rows_per_s']), percent(row.get('of_the_sum')), theirs['mrows_per_s'],
                       percent(theirs['mrows_per_s'] / alone) if len(kinds) > 1 else '–'])
    if beside:
        yield 'Beside the published table 5 (its GPU and CPU; f32, dominant):'
        yield ''
        yield from table(['devices', 'Mrows', 'Mrows/s', 'of the sum', 'published Mrows/s', 'of its sum'], beside)


def picture(record, published):
    """Bars of the dominant f32 solves by size, the published ones in grey below."""
    rows = [row for row in record['rows'] if row['kind'] == 'solve' and row['matrix'] == 'dominant']
    groups = []
    for key in dict.fromkeys((row['dtype'], row['rows']) for row in rows):
        groups.append((f'{key[0]}, {key[1] / 1e6:.0f} million rows', [(row['devices'], row['rows_per_s'] / 1e6) for row in rows if (row['dtype'], row['rows']) == key]))
    groups.append(('oclspkt, published', [('+'.join(NAMES[name] for name in row['devices']), row['mrows_per_s']) for row in published['rows']]))
    return chart.bars(groups, 'Mrows/s')
