# SPDX-License-Identifier: MIT
"""Processes that stand still, and such as cannot be read."""

import os
import signal

import daemon
from daemon import HOME, WAIT_SECONDS, run
from experiment import Experiment, TalkingService, wait_for

WELL = ["redis-server.service", "nginx.service"]


class Hung(TalkingService):
    """A service of tests/integration/hung.py."""

    def __init__(self, test, kind):
        program = ("python3", HOME / "hung.py", kind, "hanging")
        super().__init__(test, f"hung-{kind}", *program)
        line = self.read_line(WAIT_SECONDS)
        if line.startswith("SKIP"):
            test.skipTest(line)
        if not line.startswith("READY"):
            raise AssertionError(f"hung.py says: {line}")


class Hang(Experiment):
    def test_stopped_process(self):
        pid = daemon.main_pid(WELL[0])
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        os.kill(pid, signal.SIGSTOP)
        for _ in range(3):
            self.assert_matches(WELL)
        self.assert_quiet()
        self.assertNotIn(f"process {pid} ", "\n".join(daemon.log()))

    def hang(self, kind):
        self.assert_matches(WELL)
        return Hung(self, kind)

    def assert_others_are_well(self):
        for _ in range(4):
            cycle = self.assert_matches(WELL)
        self.assertGreaterEqual(cycle.own("count-hung"), 1)
        # A busy machine may keep another process waiting for as long.
        lines = [line for line in daemon.log() if "hangs" in line]
        self.assertNotEqual(lines, [])
        ours = [line for line in lines if '"hanging"' in line]
        self.assertLessEqual(len(ours), 1, lines)

    def test_memory_lock_is_held(self):
        hung = self.hang("mmap")
        self.assert_others_are_well()
        # It can be listed, so its group is there, estimated or unknown.
        self.assertIn(hung.group, self.next_cycle())

    def test_hangs_when_collectd_starts_and_stops(self):
        hung = self.hang("mmap")
        # The default configuration loads df and processes, which wait
        # themselves, so systemd may have to kill it, by default after 90 s.
        self.start_daemon(drop_in="[Service]\nTimeoutStopSec=10\n")
        self.assert_others_are_well()
        run("systemctl", "stop", "collectd")
        self.start_daemon()
        self.next_cycle()
        hung.tell()
        wait_for(
            lambda: self.next_cycle().own("count-hung") == 0, "the last hang"
        )
        self.assert_matches(WELL)

    def test_exec_lock_is_held(self):
        self.hang("exec")
        self.assert_others_are_well()
