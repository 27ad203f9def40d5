#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is said where an OpenCL device is not there, or cannot do what is asked."""
import glob
import json
import os
import re
import resource
import subprocess

from harness import TRIFOLD, CommandTest, main

BATCH = 'gen:dominant?rows=40&systems=20&seed=3'
ON_OPENCL = ('solve', BATCH, '--device', 'opencl:0.0')


def has_opencl():
    listed = subprocess.run([TRIFOLD, 'devices'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    return any(line.startswith('opencl:0.0') and 'not usable' not in line for line in listed.splitlines())


class OpenCL(CommandTest):
    def setUp(self):
        super().setUp()
        # Kernels are compiled once for all tests.
        self.environment['XDG_CACHE_HOME'] = os.environ.get('XDG_CACHE_HOME', self.environment['XDG_CACHE_HOME'])

    def forget(self):
        """What was learnt of who takes part in a split: everybody does at first."""
        for file in glob.glob(os.path.join(self.environment['XDG_CACHE_HOME'], 'trifold', 'rates-*.json')):
            os.remove(file)

    def test_no_platform(self):
        self.environment['OCL_ICD_VENDORS'] = self.folder
        self.refuse(5, ["device 'opencl:0.0'", 'no OpenCL platform', 'install a driver'], *ON_OPENCL)

    def test_roles(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        for role in ('', 'gpu'):
            self.environment['TRIFOLD_OPENCL_AS'] = role
            report = self.run_json(*ON_OPENCL)
            self.assertTrue(report['outcome']['ok'])
            self.assertEqual(report['devices'][0]['name'], 'opencl:0.0')
            self.assertLess(report['error']['residual'], 1e-15)
            self.environment['TRIFOLD_OPENCL_AS'] = role + ',f32'
            self.refuse(5, ['f64', 'no FP64', 'f32'], *ON_OPENCL)
            self.assertTrue(self.run_json(*ON_OPENCL, '--precision', 'f32')['outcome']['ok'])

    def test_kernels_are_compiled_before_what_is_reported(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        self.environment['POCL_CACHE_DIR'] = self.environment['XDG_CACHE_HOME'] = self.path('.cache')
        report, err = self.run_it(*ON_OPENCL, '--json')
        slow = re.search(r'the first solve took (\S+) (\S+): kernels are compiled once and kept', err)
        if slow:  # else the driver compiled in less than a fifth of a second
            self.assertLess(json.loads(report)['time']['solve_s'], float(slow[1]) * {'ms': 1e-3, 's': 1}[slow[2]] / 2 * 1.01)
        kept = self.files_of_cache()
        self.assertTrue(kept)
        self.run_it(*ON_OPENCL)
        self.assertEqual(self.files_of_cache(), kept)

    def files_of_cache(self):
        """What drivers and Trifold keep of kernels, by name and size; PoCL's marks of use are empty."""
        found = {}
        for folder, _, names in os.walk(self.path('.cache')):
            for name in names:
                at = os.path.join(folder, name)
                if not name.startswith('rates-') and 'profile' not in name and os.path.getsize(at):
                    found[os.path.relpath(at, self.folder)] = os.path.getsize(at)
        return found

    def test_a_disk_that_takes_nothing(self):
        """PoCL compiles through files. Another driver may not need them."""
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        self.environment['POCL_CACHE_DIR'] = self.environment['XDG_CACHE_HOME'] = self.path('.cache')
        done = subprocess.run([TRIFOLD, *ON_OPENCL, '-q'], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        if done.returncode:
            self.assertEqual((done.returncode, done.stdout), (1, b''))
            self.assertIn(b'is that disk full?', done.stderr)

    def test_environment(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        named = ('solve', 'gen:dominant?rows=4000&ratio=4', '--device', 'opencl:0.0', '--algorithm', 'truncated_spike')
        self.environment['TRIFOLD_OPENCL_MAPPING'] = 'cpo'
        self.refuse(2, ["TRIFOLD_OPENCL_MAPPING='cpo'", 'cpu, gpu or fpga'], *named)
        self.environment['TRIFOLD_OPENCL_MAPPING'] = ''
        self.environment['TRIFOLD_OPENCL_OPTIONS'] = '-no-such-option'
        self.refuse(2, ['-no-such-option', 'TRIFOLD_OPENCL_OPTIONS'], *ON_OPENCL)

    def test_published_kernels_are_named_and_timed(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        problem = ('solve', 'gen:dominant?rows=20000&ratio=4', '--device', 'opencl:0.0', '--precision', 'f32', '--no-roof')
        for mapping in ('cpu', 'gpu', 'fpga'):
            self.environment['TRIFOLD_OPENCL_MAPPING'] = mapping
            phases = self.run_json(*problem, '--algorithm', 'truncated_spike')['time']['solve_phases']
            self.assertGreater(phases[mapping + ' mapping, kernels alone'], 0)
            self.assertEqual('marshalling alone' in phases, mapping != 'fpga')
        self.assertGreater(self.run_json(*problem, '--algorithm', 'thomas')['time']['solve_phases']['tdma, kernels alone'], 0)
        self.assertFalse([name for name in self.run_json(*problem)['time']['solve_phases'] if 'alone' in name])

    def test_trace_of_a_split(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        self.environment['TRIFOLD_OPENCL_AS'] = 'gpu'
        self.forget()
        split = ('solve', 'gen:dominant?rows=3000000', '--device', 'cpu,opencl:0.0', '--no-roof')
        report = self.run_json(*split, '--trace', 't.json', '--timeline', 't.svg', '--watts', 'cpu=100,opencl:0.0=50')
        self.assertEqual([device['name'] for device in report['devices']], ['cpu', 'opencl:0.0'])
        self.assertEqual(sum(device['rows'] for device in report['devices']), 3000000)
        self.assertEqual(report['energy']['kind'], 'estimated')
        self.assertGreater(report['energy']['rows_per_joule'], 0)
        trace = json.loads(self.read('t.json'))
        rows = {}
        for event in trace['traceEvents']:
            if event['ph'] == 'X' and event['name'] == 'kernel':
                rows[event['pid']] = rows.get(event['pid'], 0) + event['args']['rows']
        self.assertEqual([rows.get(k, 0) for k in range(2)], [device['rows'] for device in report['devices']])
        self.assertTrue(self.read('t.svg').startswith(b'<svg'))
        # Who had rows is named in the first line. On a busy machine kept programs may take more than the second that the others wait.
        late = 'left out: its programs are being compiled'
        for _ in range(5):
            self.forget()
            text, _ = self.run_it(*split)
            if late not in text:
                break
        lines = {line.split(':')[0].split()[-1] if 'opencl' not in line else 'opencl:0.0': line for line in text.splitlines() if ' cpu: ' in line or ' opencl:0.0: ' in line}
        self.assertEqual(len(lines), 2, text)
        those = ','.join(name for name in ('cpu', 'opencl:0.0') if '% of the rows' in lines[name])
        self.assertIn(f' on {those}, 2 threads', text)
        for line in lines.values():
            self.assertTrue('% of the rows' in line or 'no rows: ' in line or late in line, text)
        # Joules without a counter or watts are not known, and said to be.
        report = self.run_json(*split, '--watts', 'cpu=100')
        if late[len('left out: '):] not in json.dumps(report['devices']):
            self.assertEqual((report['energy']['kind'], report['energy']['joules']), ('unknown', None))

    def test_trace_of_one_device_is_empty(self):
        _, err = self.run_it('solve', BATCH, '--trace', 't.json')
        self.assertIn('nothing was split', err)
        self.assertFalse([event for event in json.loads(self.read('t.json'))['traceEvents'] if event['ph'] == 'X'])
        self.refuse(3, ['no/t.json'], 'solve', BATCH, '--trace', 'no/t.json')
        for wrong in ('cpu', 'cpu=', 'cpu=-1', '=3', 'cpu=1,,'):
            self.refuse(2, ['--watts', 'DEVICE=WATTS'], 'solve', BATCH, '--watts', wrong)

    def test_plan_of_a_set(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        self.forget()
        problem = ('gen:dominant?rows=200000', '--device', 'cpu,opencl:0.0')
        plan = self.run_json('plan', *problem)['plan']
        self.assertEqual((plan['device'], plan['branch'], plan['predicted_s']), ('cpu,opencl:0.0', ['joined', 'coupled'], None))
        self.assertEqual([(c['algorithm'], c['device']) for c in plan['candidates']],
                         [(way, devices) for way in ('joined', 'joined_slowly', 'coupled') for devices in ('cpu', 'opencl:0.0', 'cpu,opencl:0.0')])
        # The first solve is everybody's.
        self.assertEqual([c['device'] for c in plan['candidates'] if c['taken']], ['cpu,opencl:0.0'] * 3)
        self.assertIn('not known before a first solve', self.run_it('plan', *problem)[0])
        report = self.run_json('solve', *problem, '--repeat', '16', '--no-roof')
        self.assertEqual(report['plan']['device'], 'cpu,opencl:0.0')
        def settled(joined, taken):
            # Whose paces leave no doubt is never timed alone.
            alone = [c['predicted_s'] for c in joined if ',' not in c['device'] and c['predicted_s'] is not None]
            return 'least time; as it was seen' in taken['why'] and all(taken['predicted_s'] <= 1.03 * seconds for seconds in alone)

        plan, joined, taken = self.plan_until(settled, problem)
        self.assertTrue(settled(joined, taken), joined)
        self.assertEqual(plan['predicted_s'], taken['predicted_s'])
        self.assertIn('taken', self.run_it('plan', *problem, '--explain')[0])
        # Joules as an objective, of watts that are given, or of power limits. What two devices draw of the processors' limit nobody knows.
        self.power_limit(225)
        for command in ('plan', 'solve'):
            self.refuse(2, ["objective 'energy'", "watts of 'cpu'"], command, *problem, '--optimise', 'energy')
            self.refuse(2, ['energie', "'energy'"], command, *problem, '--optimise', 'energie')
        watts = ('--watts', 'cpu=10,opencl:0.0=2000', '--optimise', 'energy')
        self.assertTrue(self.run_json('solve', *problem, *watts, '--no-roof', '--repeat', '16', '--patience', '20')['outcome']['ok'])
        _, joined, taken = self.plan_until(lambda _, taken: taken['device'] == 'cpu', (*problem, *watts))
        self.assertEqual(taken['device'], 'cpu', joined)
        self.refuse(2, ['patience'], 'solve', *problem, '--patience', '-1')

    def plan_until(self, settled, problem):
        """A set that is due to be timed is taken for that, on a busy machine after sixteen solves too, and what was seen there may be another process's; nothing is learnt while a device is not ready."""
        for _ in range(20):
            plan = self.run_json('plan', *problem)['plan']
            joined = [c for c in plan['candidates'] if c['algorithm'] == 'joined']
            taken = next(c for c in joined if c['taken'])
            if settled(joined, taken):
                break
            self.run_json('solve', *problem, '--repeat', '3', '--no-roof')
        return plan, joined, taken

    def test_joules_as_an_objective_of_a_power_limit(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        self.environment['TRIFOLD_OPENCL_AS'] = 'gpu'
        self.power_limit(225)
        split = ('gen:dominant?rows=200000', '--device', 'cpu,opencl:0.0', '--optimise', 'edp')
        with_one = (*split, '--watts', 'opencl:0.0=50')  # PoCL tells none of the GPU that it plays
        self.run_json('plan', *with_one)
        report = self.run_json('solve', *with_one, '--no-roof')
        self.assertEqual(report['energy']['kind'], 'estimated')
        self.assertIn('225 W while it computes, power limit by powercap of package-0', report['energy']['note'])
        self.refuse(2, ["objective 'edp'", "watts of 'opencl:0.0'", '--watts opencl:0.0=WATTS'], 'plan', *split)
        self.power_limit(None)
        self.refuse(2, ["objective 'edp'", "watts of 'cpu'", '--watts cpu=WATTS'], 'plan', *with_one)

    def test_what_was_measured_of_a_device_is_kept(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        self.environment['TRIFOLD_OPENCL_AS'] = 'gpu'
        self.environment['XDG_CACHE_HOME'] = self.path('.cache')
        # A layer that ctest sets makes its memory small: streams of gigabytes by a processor in the role of a GPU take minutes.
        self.environment['TRIFOLD_SMALL_DEVICE'] = f'alloc={1 << 26}'
        of_device = lambda report: [b for b in report['profile']['bandwidth'] if b['device'] == 'opencl:0.0']
        self.assertEqual(of_device(self.run_json('devices')), [])
        measured = of_device(json.loads(self.run_it('devices', '--measure', '--threads', '1', '--json', timeout=300)[0]))
        self.assertEqual([(b['store'], b['threads'], b['source']) for b in measured], [('non-temporal stores', 0, 'measured now'), ('in place', 0, 'measured now')])
        files = glob.glob(self.path('.cache/trifold/device-*.json'))
        self.assertEqual(len(files), 1)
        date = json.loads(self.read(files[0]))['date']
        self.assertEqual(of_device(self.run_json('devices')), [dict(b, source='profile ' + date) for b in measured])
        # Another driver, or half of a file, is said and ignored.
        good = self.read(files[0])
        for text, why in ((good.replace(b'Portable Computing Language', b'Another platform'), 'another board or driver'), (good[:len(good) // 2], 'corrupt')):
            self.write(files[0], text)
            out, err = self.run_it('devices', '--json')
            self.assertEqual(of_device(json.loads(out)), [])
            self.assertIn(f"profile of 'opencl:0.0', {files[0]}, ignored: ", err)
            self.assertIn(why, err)
        # What is of another day than the machine's is marked.
        self.write(files[0], good.replace(date.encode(), b'2020-01-02'))
        out, _ = self.run_it('devices')
        self.assertRegex(out, r'opencl:0\.0 +in place +.*B/s \(profile 2020-01-02\)\n')

    def test_a_compiler_that_refuses(self):
        if not has_opencl():
            self.skipTest('no OpenCL device on this machine')
        self.environment['TRIFOLD_OPENCL_OPTIONS'] = '-Ddouble=nonsense'
        _, err = self.run_it(*ON_OPENCL, code=1)  # PoCL's compiler writes a line of its own
        for part in ("device 'opencl:0.0'", 'its compiler refuses', 'nonsense', 'text and log are in'):
            self.assertIn(part, err)


if __name__ == '__main__':
    main()
