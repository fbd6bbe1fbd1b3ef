# SPDX-License-Identifier: MIT
"""The harness of these tests ends everything that it starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import harness
from harness import IntegrationTest, state_of, wait_until

# Runs in front of collectd: leaves a child behind that ignores SIGTERM, and
# prints its pid.
LEAVE = """
(trap "" TERM; exec sleep 300) &
echo $! >"$1.new"
mv "$1.new" "$1"
shift
exec "$@"
"""

INTERRUPTED = """
import time
from pathlib import Path
import harness
from test_harness import leave


class Interrupted(harness.IntegrationTest):
    def test_it(self):
        directory = Path({directory!r})
        for name in ("first", "second"):
            self.start_collectd("", wrapper=leave(directory / name))
        time.sleep(300)
"""
LATER = """
import unittest
from pathlib import Path


class Later(unittest.TestCase):
    def test_it(self):
        Path({directory!r}, "later").touch()
"""


def leave(path):
    return ("sh", "-c", LEAVE, "sh", str(path))


def is_running(pid):
    """A zombie is not: who is to wait for an orphan may be slow."""
    return state_of(pid) not in (None, "Z")


class Left(IntegrationTest):
    def setUp(self):
        self.directory = harness.stage().new_directory()

    def wait_left(self, name):
        """Returns the pid of the child that was left behind."""
        path = self.directory / name
        wait_until(path.exists, path)
        return int(path.read_text())

    def wait_gone(self, pid):
        wait_until(lambda: not is_running(pid), f"the end of pid {pid}")

    def test_children_of_a_daemon_end_with_it(self):
        daemons = [
            self.start_collectd("", wrapper=leave(self.directory / name))
            for name in ("first", "second")
        ]
        pids = [self.wait_left(name) for name in ("first", "second")]
        for daemon, pid in zip(daemons, pids):
            daemon.wait_cycles(1)
            self.assertTrue(is_running(pid))
            self.assertEqual(daemon.stop(), 0)
            self.wait_gone(pid)

    def test_children_of_a_daemon_that_does_not_end_do(self):
        daemon = self.start_collectd("", wrapper=leave(self.directory / "left"))
        pid = self.wait_left("left")
        daemon.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(daemon.process.pid) == "T", "its stop")
        with self.assertRaisesRegex(AssertionError, "did not end"):
            daemon.stop(1)
        self.wait_gone(pid)

    def start_run(self, *names):
        """A run of tests that waits, with two daemons. Returns the pids of their
        children too."""
        for name, text in ("interrupted", INTERRUPTED), ("later", LATER):
            path = self.directory / f"test_{name}.py"
            path.write_text(text.format(directory=str(self.directory)))
        environment = {
            "PYTHONPATH": str(self.directory),
            "SMAPS_TEST_JOBS": "1",
        }
        run = subprocess.Popen(
            [sys.executable, Path(harness.__file__).with_name("run.py"), *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,
            # Whoever runs us in the background may ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.addCleanup(run.kill)
        return run, [self.wait_left(name) for name in ("first", "second")]

    def assert_ends(self, run, pids):
        self.assertNotEqual(run.wait(harness.DEADLINE_SECONDS), 0)
        for pid in pids:
            self.wait_gone(pid)
        self.assertFalse((self.directory / "later").exists())

    def test_children_end_when_a_run_of_files_is_interrupted(self):
        """From the terminal: all processes get the signal."""
        run, pids = self.start_run("test_interrupted", "test_later")
        os.killpg(run.pid, signal.SIGINT)
        self.assert_ends(run, pids)

    def test_children_end_when_a_run_of_files_is_ended(self):
        run, pids = self.start_run("test_interrupted", "test_later")
        run.send_signal(signal.SIGTERM)
        self.assert_ends(run, pids)
