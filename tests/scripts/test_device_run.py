#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/device-run in a bundle of programs that only note what they were asked."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts', 'device-run')

PROGRAM = '''#!/bin/bash
name=$(basename "$0")
for word in "$@"; do case $word in --device) next=1 ;; *) [ -z "${next:-}" ] || asked=$word; next= ;; esac; done
[ "$name" != trifold ] || [ "${asked:-}" != opencl:9.9 ] || exit 5
begin=$EPOCHREALTIME
sleep 0.3
echo "$name $begin $EPOCHREALTIME ${GTEST_SHARD_INDEX:--}/${GTEST_TOTAL_SHARDS:--} $TRIFOLD_TEST_DEVICE $*" >>"$NOTES"
case " ${FAILS:-} " in *" $name.${GTEST_SHARD_INDEX:-0} "*) echo "a line of the failure"; exit 1 ;; esac
'''

PROGRAMS = ['trifold', 'trifold_bench', 'contract_tridiagonal', 'contract_tridiagonal_options', 'contract_tridiagonal_zoo', 'contract_tridiagonal_factored', 'contract_sweeps', 'app_heat', 'cuda_streams',
            'cuda_batch_bench', 'cuda_heat_bench', 'opencl_gpu_bench', 'opencl_batches', 'opencl_in_place', 'opencl_trust']


class DeviceRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(SCRIPT, os.path.join(self.folder, 'run'))
        os.mkdir(os.path.join(self.folder, 'bin'))
        for name in PROGRAMS:
            path = os.path.join(self.folder, 'bin', name)
            with open(path, 'w') as file:
                file.write(PROGRAM)
            os.chmod(path, 0o755)

    def run_it(self, *arguments, **environment):
        notes = os.path.join(self.folder, 'notes')
        if os.path.exists(notes):
            os.remove(notes)
        command = [os.path.join(self.folder, 'run'), '--out', os.path.join(self.folder, 'out'), *arguments]
        ended = subprocess.run(command, env=dict(os.environ, NOTES=notes, **environment), capture_output=True, text=True, check=False)
        lines = []
        if os.path.exists(notes):
            with open(notes) as file:
                lines = file.read().splitlines()
        calls = [(name, float(begin), float(end), part, device, rest) for name, begin, end, part, device, *rest in (line.split(' ') for line in lines)]
        return ended, calls

    def summary(self):
        with open(os.path.join(self.folder, 'out', 'summary.json')) as file:
            return {one['name']: one['status'] for one in json.load(file)['stages']}

    @staticmethod
    def most_at_once(calls):
        return max(sum(begin <= at < end for _, begin, end, *_ in calls) for at in (begin for _, begin, *_ in calls))

    def test_one_after_the_other(self):
        ended, calls = self.run_it('contract', 'cuda')
        self.assertEqual((ended.returncode, ended.stderr), (0, ''))
        self.assertEqual(self.most_at_once(calls), 1)
        self.assertEqual({name: part for name, _, _, part, *_ in calls}, dict.fromkeys(PROGRAMS[2:6] + ['cuda_streams'], '-/-'))
        self.assertEqual(self.summary(), {'contract.' + name: 0 for name in ('tridiagonal', 'options', 'zoo', 'factored')} | {'cuda_streams': 0})
        self.assertEqual({device for *_, device, _ in calls}, {'cuda:0'})

    def test_beside_each_other_and_alone(self):
        ended, calls = self.run_it('--jobs', '4', '--device', 'cuda:1', '--opencl', 'opencl:1.0', 'contract', 'opencl', 'bench', 'hetero')
        self.assertEqual((ended.returncode, ended.stderr), (0, ''))
        tests = [one for one in calls if not one[0].endswith('_bench') and one[0] != 'trifold']
        measured = [one for one in calls if one[0].endswith('_bench')]
        self.assertTrue(2 <= self.most_at_once(tests) <= 4)
        self.assertEqual(sorted(part for name, _, _, part, device, _ in tests if name == 'contract_tridiagonal' and device == 'cuda:1'), ['0/3', '1/3', '2/3'])
        self.assertEqual({name for name, *_, device, _ in tests if device == 'opencl:1.0'}, {'contract_tridiagonal', 'contract_tridiagonal_options', 'opencl_batches', 'opencl_in_place', 'opencl_trust'})
        for one in measured:
            self.assertEqual(self.most_at_once([other for other in calls if other[1] < one[2] and one[1] < other[2]]), 1, one)
        self.assertEqual([rest[-1] for name, *_, rest in measured if name == 'trifold_bench'], ['hetero', 'hetero_choice', 'hetero_kinds', 'hetero', 'dominance'])
        self.assertIn('cpu,cuda:1,opencl:1.0', [rest for name, *_, rest in measured if name == 'trifold_bench'][3])
        self.assertTrue([rest for name, *_, rest in measured if name == 'opencl_gpu_bench'][0][1].endswith('/out/opencl.json'))

    def test_a_part_that_fails(self):
        ended, _ = self.run_it('--jobs', '3', 'contract', FAILS='contract_tridiagonal_zoo.2')
        self.assertEqual(ended.returncode, 1)
        self.assertIn('FAILED (1)', ended.stdout)
        self.assertIn('    a line of the failure', ended.stdout)
        self.assertEqual({name for name, status in self.summary().items() if status}, {'contract.zoo.2'})

    def test_what_is_not_there(self):
        os.remove(os.path.join(self.folder, 'bin', 'contract_tridiagonal_factored'))
        ended, calls = self.run_it('--opencl', 'opencl:9.9', 'contract', 'opencl')
        self.assertEqual(ended.returncode, 0)
        self.assertEqual({name for name, status in self.summary().items() if status == 77}, {'contract.factored', 'opencl'})
        self.assertEqual({device for *_, device, _ in calls}, {'cuda:0'})

    def test_arguments_that_are_wrong(self):
        for arguments in (['benhc'], ['--jobs', '0'], ['--jobs', 'x'], ['--what'], ['contract', '--out']):
            ended, calls = self.run_it(*arguments)
            self.assertEqual((ended.returncode, calls), (2, []))
            self.assertIn(arguments[-1], ended.stderr)


if __name__ == '__main__':
    unittest.main()
