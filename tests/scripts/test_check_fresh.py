#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/check-fresh ends at once when it is told to, and leaves nothing behind; a debootstrap that only sleeps is in its way."""
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts', 'check-fresh')


def may_unshare():
    return os.getuid() == 0 and shutil.which('unshare') and subprocess.run(['unshare', '--mount', '--pid', '--fork', 'true'], stderr=subprocess.DEVNULL, check=False).returncode == 0


@unittest.skipUnless(may_unshare(), 'namespaces need root')
class CheckFresh(unittest.TestCase):
    def test_signals(self):
        for name, code in (('SIGINT', 130), ('SIGTERM', 143)):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                tools, work, started = (os.path.join(folder, part) for part in ('tools', 'work', 'started'))
                os.mkdir(tools), os.mkdir(work)
                with open(os.path.join(tools, 'debootstrap'), 'w') as file:
                    file.write(f'#!/bin/sh\ntouch {started}\nsleep 60\n')
                os.chmod(file.name, 0o755)
                environment = dict(os.environ, PATH=tools + ':' + os.environ['PATH'], TMPDIR=work, TRIFOLD_MIRROR='http://nowhere.invalid')
                script = subprocess.Popen([SCRIPT], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                deadline = time.monotonic() + 60
                while not os.path.exists(started) and time.monotonic() < deadline:
                    time.sleep(0.05)
                script.send_signal(getattr(signal, name))
                self.assertEqual(script.wait(30), code)
                self.assertEqual(os.listdir(work), [])


if __name__ == '__main__':
    unittest.main()
