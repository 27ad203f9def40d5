#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C: 130, and nothing half-written."""
import os
import signal
import subprocess
import time

from harness import TRIFOLD, CommandTest, main


class Interrupt(CommandTest):
    def start(self, *arguments):
        process = subprocess.Popen([TRIFOLD, *arguments], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)  # second
        self.addCleanup(process.kill)
        return process

    def heeds(self, process, number):
        """A signal that comes before the command has begun ends it as any other program."""
        for _ in range(3000):
            with open(f'/proc/{process.pid}/status', encoding='utf-8') as file:
                caught = next(int(line.split()[1], 16) for line in file if line.startswith('SigCgt'))
            if caught >> (number - 1) & 1:
                return
            time.sleep(0.01)
        self.fail('the command does not look for signals')

    def stop(self, process, code=130, number=signal.SIGINT):
        self.heeds(process, number)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, err)
        self.assertEqual(out, b'')
        return err

    def test_during_a_long_solve(self):
        self.write('x.npy', b'old')
        process = self.start('solve', 'gen:diffusion?rows=2e6', '--repeat', '1000', '-o', 'x.npy')
        time.sleep(1.5)
        self.assertIsNone(process.poll())
        self.assertIn(b'interrupted', self.stop(process))
        self.assertEqual(self.read('x.npy'), b'old')
        self.assertEqual(self.files(), ['x.npy'])

    def test_while_writing(self):
        """As soon as the temporary is seen; larger ones until one is caught in the act."""
        for rows in (2000000, 8000000, 16000000):
            self.write('p.npz', b'old')
            process = self.start('generate', f'gen:diffusion?rows={rows}', '-o', 'p.npz')
            # The first temporary proves that the place can be written, and is empty.
            while process.poll() is None and not any(self.size(name) > 0 for name in self.temporaries()):
                time.sleep(0.0005)
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            self.assertEqual(self.temporaries(), [])
            if process.returncode == 130:
                self.assertEqual(self.read('p.npz'), b'old')
                return
            self.assertEqual(process.returncode, 0)
        self.fail('every file was written before the signal came')

    def temporaries(self):
        return [name for name in self.files() if name.endswith('.tmp')]

    def size(self, name):
        try:
            return os.stat(self.path(name)).st_size
        except FileNotFoundError:
            return 0

    def test_other_signals(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGXCPU):
            process = self.start('solve', 'gen:diffusion?rows=2e6', '--repeat', '1000', '-o', 'x.npy')
            time.sleep(0.5)
            self.stop(process, 128 + number, number)
            self.assertEqual(self.files(), [])


if __name__ == '__main__':
    main()
