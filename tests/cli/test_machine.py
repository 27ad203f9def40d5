# SPDX-License-Identifier: BSD-3-Clause
"""trifold plan --machine: the published machine of oclspkt by the contention model, and files that make no sense."""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
from harness import CommandTest, main

PUBLISHED = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../bench/published/oclspkt.json')


def machine(**changes):
    """A machine that is right, but for the changes."""
    cpu = {'name': 'cpu', 'mrows_per_s': 2000, 'watts': 100}
    card = {'name': 'card', 'mrows_per_s': 9000, 'to_gb_per_s': 16, 'from_gb_per_s': 16, 'watts': 50}
    model = {'name': 'm', 'host_gb_per_s': 100, 'devices': [cpu, card]}
    return {'schema': 'trifold.machine/1', 'title': 'two', 'word_bytes': 4, 'models': [model], **changes}


class Machine(CommandTest):
    def plan(self, content):
        self.write('m.json', json.dumps(content).encode())
        return self.run_json('plan', '--machine', 'm.json')

    def test_published_machine(self):
        found = self.run_json('plan', '--machine', PUBLISHED)
        with open(PUBLISHED, encoding='utf-8') as file:
            published = json.load(file)
        models = {model['name']: model for model in found['models']}
        for device, ratio in published['published_ratio'].items():
            self.assertAlmostEqual(models['nameplates']['kernel_ratio'][device], ratio, delta=0.005)
        for model in models.values():
            self.assertEqual(len(model['combinations']), 7)
            for line, row in zip(model['combinations'], published['rows']):
                self.assertEqual(line['devices'], row['devices'])
                self.assertAlmostEqual(line['known_rows_per_s'], row['mrows_per_s'] * 1e6)
                self.assertAlmostEqual(sum(line['shares']), 1)
                named = any(text.startswith('+'.join(row['devices']) + ' ') for text in model['unexplained'])
                self.assertEqual(named, abs(line['deviation']) > 0.1 or abs(line['deviation_per_joule']) > 0.1, line)
        # Given the devices alone, everything but all three together follows.
        staged = models['alone, staged']
        self.assertEqual([text.split()[0] for text in staged['unexplained']], ['cpu+gpu+fpga'])
        self.assertTrue(all(abs(line['deviation']) < 0.05 for line in staged['combinations'][:6]))
        self.assertEqual(staged['best'], {'time': ['gpu', 'fpga'], 'energy': ['fpga'], 'edp': ['gpu', 'fpga']})

    # What the documents are made of is what the command says.
    def test_kept_output(self):
        with open(PUBLISHED.replace('.json', '_model.json'), encoding='utf-8') as file:
            kept = json.load(file)

        def same(a, b, where):
            if isinstance(a, dict):
                self.assertEqual(list(a), list(b), where)
                for key in a:
                    same(a[key], b[key], where + key + '/')
            elif isinstance(a, list):
                self.assertEqual(len(a), len(b), where)
                for k, (one, other) in enumerate(zip(a, b)):
                    same(one, other, f'{where}{k}/')
            elif isinstance(a, float):
                self.assertAlmostEqual(a, b, delta=1e-9 * max(1, abs(a)), msg=where)
            else:
                self.assertEqual(a, b, where)

        same(kept, self.run_json('plan', '--machine', PUBLISHED), '')

    # 256 million rows in the published times of its figure 6 are the kernel rates that the models start from.
    def test_published_times_and_rates_agree(self):
        with open(PUBLISHED, encoding='utf-8') as file:
            published = json.load(file)
        alone = {device['name']: device for device in published['models'][1]['devices']}
        for name, (kernels, marshalled) in published['kernels_ms'].items():
            self.assertLessEqual(kernels, marshalled)
            self.assertAlmostEqual(256e6 / marshalled * 1e-3 / alone[name]['mrows_per_s'], 1, delta=0.012)
        singles = {row['devices'][0]: row for row in published['rows'] if len(row['devices']) == 1}
        for device in published['models'][2]['devices']:
            self.assertAlmostEqual(device['mrows_per_s'] / device['watts'] / singles[device['name']]['mrows_per_joule'], 1, delta=0.005)
            if 'to_gb_per_s' in device:
                self.assertAlmostEqual(device['to_gb_per_s'] * 1e3 / 16 / singles[device['name']]['mrows_per_s'], 1, delta=0.002)

    def test_text_names_what_is_not_explained(self):
        out, _ = self.run_it('plan', '--machine', PUBLISHED)
        self.assertIn('kernels by their own memory gpu 1 : fpga 2.17 : cpu 4.57', out)
        self.assertRegex(out, r'spktrunc +multiply +6 m \+ 5 +5 m \+ 3 +differs')
        self.assertIn('not explained (off by more than 10 %): cpu+gpu+fpga (rate -12 %', out)

    def test_own_machine(self):
        model = self.plan(machine())['models'][0]
        both = model['combinations'][2]
        self.assertAlmostEqual(both['rows_per_s'], 3e9, delta=1)
        self.assertAlmostEqual(both['shares'][0], 2 / 3)
        self.assertIsNone(both['known_rows_per_s'])
        self.assertEqual(model['best']['time'], ['cpu', 'card'])
        self.assertEqual(model['best']['energy'], ['card'])
        lanes = machine()
        lanes['models'][0]['devices'][1] = {'name': 'card', 'gb_per_s': 400, 'pcie': {'generation': 4, 'lanes': 8}}
        self.assertAlmostEqual(self.plan(lanes)['models'][0]['combinations'][1]['rows_per_s'], 15.753848e9 / 16, delta=1e3)

    def test_refuses(self):
        def wrong(*parts, **changes):
            self.write('m.json', json.dumps(machine(**changes)).encode())
            self.refuse(3, ['m.json', *parts], 'plan', '--machine', 'm.json')

        device = machine()['models'][0]['devices'][0]
        model = machine()['models'][0]
        wrong('schema', schema='other/1')
        wrong("'models'", models=[])
        wrong("'host_gb_per_s' is missing", models=[{'name': 'm', 'devices': [device]}])
        wrong("'mrows_per_s' is not positive", models=[{**model, 'devices': [{**device, 'mrows_per_s': -1}]}])
        wrong("'name'", models=[{**model, 'devices': [{'mrows_per_s': 1}]}])
        wrong('PCIe', models=[{**model, 'devices': [{**device, 'pcie': {'generation': 9, 'lanes': 16}}]}])
        wrong('more than 16', models=[{**model, 'devices': [device] * 17}])
        wrong("'counted'", operations=[{'kernel': 'k', 'operation': 'o', 'published': [1, 2], 'counted': [1]}])
        wrong('"gpu"', rows=[{'devices': ['gpu'], 'mrows_per_s': 1}])
        self.write('m.json', b'{')
        self.refuse(3, ['m.json', 'JSON'], 'plan', '--machine', 'm.json')
        self.refuse(3, ['absent.json', 'cannot be read'], 'plan', '--machine', 'absent.json')
        self.refuse(2, ['needs an input'], 'plan')
        self.refuse(2, ['not both'], 'plan', 'gen:poisson?rows=10', '--machine', PUBLISHED)


if __name__ == '__main__':
    main()
