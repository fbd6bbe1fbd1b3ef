# SPDX-License-Identifier: MIT
"""The wall clock is set while collectd runs."""

import time

from experiment import Experiment

HOURS = 3600


class Clock(Experiment):
    def setUp(self):
        super().setUp()
        offset = time.time() - time.monotonic()
        self.addCleanup(
            lambda: time.clock_settime(
                time.CLOCK_REALTIME, time.monotonic() + offset
            )
        )

    @staticmethod
    def step(seconds):
        time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)

    def assert_young(self, cycle):
        """The step counts for no age."""
        for group in cycle.all_groups():
            self.assertLess(cycle.value(group, "duration-age"), HOURS, group)

    def test_forward(self):
        self.assert_matches()
        self.step(5 * HOURS)
        for _ in range(3):
            self.assert_young(self.assert_matches())
        self.assert_quiet()

    def test_backward(self):
        """collectd takes no value that is older than the last: none comes, of
        any plugin, until it is started again."""
        self.assert_matches()
        self.step(-9 * HOURS)
        time.sleep(3 * self.interval)
        self.start_daemon()
        for _ in range(3):
            self.assert_young(self.assert_matches())
        self.assert_quiet()
