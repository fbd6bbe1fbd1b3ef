"""An hour at an interval of one second, while processes come and go. Only by
name: make check-vm VM=bookworm TESTS=hour"""

import os
import time
from pathlib import Path

import daemon
from experiment import Experiment, Shape
from kernel import KIB, MIB

SECONDS = 3600
SETTLE_SECONDS = 600


def measure(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [x for x in status.splitlines() if x.startswith("VmRSS:")]
    return int(line.split()[1]) * KIB, len(os.listdir(f"/proc/{pid}/fd"))


class Hour(Experiment):
    interval = 1
    seconds = SECONDS + Experiment.seconds

    def test_nothing_grows(self):
        pid = daemon.main_pid()
        Shape(self, "churn", "churn", rate=10, seconds=SECONDS, life_ms=500)
        time.sleep(SETTLE_SECONDS)
        memory, files = measure(pid)
        end = time.monotonic() + SECONDS - SETTLE_SECONDS
        while time.monotonic() < end:
            self.assert_matches(["redis-server.service", "nginx.service"])
            time.sleep(60)
        self.assertEqual(daemon.main_pid(), pid)
        memory_now, files_now = measure(pid)
        self.assertLess(memory_now - memory, 2 * MIB)
        self.assertLessEqual(files_now, files + 10)
        self.assert_quiet()
