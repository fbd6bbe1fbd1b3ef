"""Gaps in the pictures of smaps-graph: of what is not known, of groups that end
and come back, and of the time in which collectd stands still."""

import math
import signal
import time
import unittest
from itertools import groupby

from harness import (
    TAG,
    Shape,
    group,
    need_root,
    unprivileged_user,
    wait_until,
)
from test_rrd import (
    UNKNOWN_COLOUR,
    USS_COLOUR,
    PictureTest,
    RrdDaemon,
    column_colours,
    config_of_groups,
    need_rrdtool,
    palette,
    runs,
)


class PatientDaemon(RrdDaemon):
    """On a slow machine an interval is late, and that is to be no gap."""

    heartbeat = 6
    replacements = {"XFF 0.1": f"XFF 0.1\n  HeartBeat {heartbeat}"}


class Gaps(PictureTest):
    """A run in which the group early ends and comes back with a process that
    may not be read, so that it is unknown for a time; then the group late; in
    which a job ends; and in which collectd stands still."""

    @classmethod
    def setUpClass(cls):
        need_rrdtool()
        need_root("starts processes of two users")
        cls.user = unprivileged_user()
        names = ["steady", "early", "late"]
        own = {name: cls.start(name, user=cls.user) for name in names}
        job = cls.start("job1", user=cls.user)
        cls.daemon = PatientDaemon(
            config_of_groups(names, cls.group_of), interval=1, user=cls.user
        )
        cls.addClassCleanup(cls.daemon.stop)
        cls.pass_cycles(5)
        for name in ("early", "late"):
            own[name].stop()
            wait_until(lambda n=name: cls.has_ended(n), "the group to end")
            cls.pass_cycles(cls.daemon.heartbeat + 2)
            foreign = cls.start(name)
            cls.pass_cycles(5 if name == "early" else 8)
            cls.start(name, user=cls.user)
            foreign.stop()
            cls.pass_cycles(4)
        job.stop()
        cls.pass_cycles(4)
        cls.stand_still(2 * cls.daemon.heartbeat)
        cls.pass_cycles(5)
        cls.daemon.stop()
        times = cls.daemon.times()
        cls.span = ("-s", int(times[0]) - 2, "-e", int(times[-1]) + 2)

    @classmethod
    def start(cls, name, **options):
        shape = Shape("anon", name=name, mib=16, **options)
        cls.addClassCleanup(shape.stop)
        return shape

    @staticmethod
    def group_of(name):
        """It is forgotten when it ends."""
        return group("%{1}", f'CommMatch "^({name}){TAG}$"')

    @classmethod
    def has_ended(cls, name):
        times = cls.daemon.times()
        return cls.daemon.values()[name]["memory-pss"][-1][0] < times[-2]

    @classmethod
    def pass_cycles(cls, count):
        cls.daemon.wait_cycles(len(cls.daemon.times()) + count)

    @classmethod
    def stand_still(cls, seconds):
        end = time.monotonic() + seconds
        cls.daemon.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: time.monotonic() > end, "the time to pass")
        cls.daemon.process.send_signal(signal.SIGCONT)

    def counts_of_colours(self, path):
        return [len(some) for some in runs(column_colours(path, palette()))]

    def draw_stack(self, *arguments):
        (path,) = self.draw(*self.span, *arguments, "stack")
        return path

    def test_a_gap_in_a_stack_is_a_gap_in_all_above_it_and_in_no_other(self):
        counts = self.counts_of_colours(self.draw_stack("-c", 0))
        # Late is above early, as it is unknown for longer.
        self.assertEqual(counts, [0, 4, 3, 2, 4, 3, 4, 3, 0, 3, 0])

    def test_a_gap_is_marked(self):
        path = self.draw_stack("-c", 0)
        marked = runs(column_colours(path, [UNKNOWN_COLOUR]))
        # Early, late, and the time in which collectd stood still.
        self.assertEqual(
            [bool(some) for some in marked],
            [False, True, False, True, False, True, False],
        )

    def test_a_group_that_may_be_late_ends_the_stack(self):
        """The job has ended, but within CacheTimeout nobody can know."""
        counts = self.counts_of_colours(self.draw_stack("-c", 3600))
        self.assertEqual(counts, [0, 4, 3, 2, 4, 3, 4, 0])

    def test_a_gap_of_a_group_is_as_long_as_it_is_not_known(self):
        (path,) = self.draw(*self.span, "-w", 800, "group", "late")
        columns = [bool(some) for some in column_colours(path, [USS_COLOUR])]
        gap = self.longest_gap(columns)
        rows = self.daemon.values()["late"]["memory-pss"]
        known = [when for when, value in rows if not math.isnan(value)]
        seconds = max(b - a for a, b in zip(known, known[1:])) - 1
        # The plot has some 100 pixels less than the picture.
        pixels = 700 / (self.span[3] - self.span[1])
        self.assert_near(gap, seconds * pixels, 2 * pixels, "gap in pixels")

    @staticmethod
    def longest_gap(columns):
        first = columns.index(True)
        last = len(columns) - columns[::-1].index(True)
        return max(
            len(list(some))
            for filled, some in groupby(columns[first:last])
            if not filled
        )


if __name__ == "__main__":
    unittest.main()
