# SPDX-License-Identifier: MIT
"""The machine sleeps to memory, and is woken from outside."""

import math
import time
from pathlib import Path

import daemon
from experiment import Experiment, Holder, wait_for

STATE = Path("/sys/power/state")
KIND = Path("/sys/power/mem_sleep")
COUNT = Path("/sys/power/suspend_stats/success")
# It sleeps for a minute.
ASLEEP_LEAST_SECONDS = 30
# systemd and collectd itself are busy after waking.
WELL = ["redis-server.service", "nginx.service", "cron.service"]


class Suspend(Experiment):
    def sleep(self):
        if not KIND.exists() or "deep" not in KIND.read_text():
            self.skipTest("this machine cannot sleep to memory")
        KIND.write_text("deep")
        count, began = int(COUNT.read_text()), time.time()
        STATE.write_text("mem")
        self.assertEqual(int(COUNT.read_text()), count + 1)
        self.assertGreater(time.time() - began, ASLEEP_LEAST_SECONDS)

    def is_read(self, group):
        return not math.isnan(self.next_cycle().value(group, "duration-age"))

    def test_to_memory(self):
        """All groups are there in the next interval, and what starts then is
        read."""
        self.assert_matches()
        pid = daemon.main_pid()
        # Once: emulated, a kernel may hang on its way to a second sleep.
        self.sleep()
        cycle, samples = self.observe()
        there = set.intersection(*(set(s.groups) for s in samples))
        self.assertLessEqual(there, cycle.all_groups())
        for group in there:
            self.assertTrue(cycle.is_known(group), group)
        awake = Holder(self, "awake", "anon", 16)
        self.assert_matches([awake.group, *WELL])
        wait_for(lambda: self.is_read(awake.group), "a reading")
        self.assertEqual(daemon.main_pid(), pid)
        self.assert_quiet()
