# SPDX-License-Identifier: MIT
"""More processes than can be read in an interval."""

import daemon
from experiment import Experiment, Shape
from kernel import MIB, read_statm

IDLE = 3000
RATE = 200
LONG_SECONDS = 3600
INTERVALS = 6
WELL = ["redis-server.service", "nginx.service"]


class Many(Experiment):
    def test_idle_processes(self):
        """Each has few pages of its own; a budget of 1 % may not read all of them
        in an interval, and need not."""
        shape = Shape(self, "idle", "cow", mib=4, children=IDLE - 1)
        self.assertEqual(shape.processes, IDLE)
        self.assert_matches([shape.group], names=("pss", "uss"))
        cycle = self.assert_matches([shape.group], names=("pss", "uss"))
        # The supervisor is one more.
        self.assertEqual(cycle.counts(shape.group)[0], IDLE + 1)
        self.assert_quiet()

    def test_forks(self):
        """Half of them call exec. Without KVM that is more than the machine can
        do, and readers wait for the processor: intervals are late then, but
        they come, collectd does not grow, and in the end all is right."""
        pid = daemon.main_pid()
        self.assert_matches(WELL)
        shape = Shape(
            self,
            "forker",
            "churn",
            rate=RATE,
            seconds=LONG_SECONDS,
            life_ms=300,
        )
        before = read_statm(pid)["resident"]
        for _ in range(INTERVALS):
            self.assertIn(shape.group, self.next_cycle())
        shape.stop()
        cycle = self.assert_matches(WELL)
        self.assertNotIn(shape.group, cycle)
        self.assertLess(read_statm(pid)["resident"] - before, 8 * MIB)
        self.assertEqual(daemon.main_pid(), pid)
