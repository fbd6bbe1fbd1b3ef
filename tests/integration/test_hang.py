# SPDX-License-Identifier: MIT
"""Reads that hang in the kernel, by a FUSE server that does not answer (hung.py).
Files of a tree that hang are in tests/unit/core/test_collector_hang.c.

Whatever hangs, the other groups are complete in the same interval, it is said
once, and collectd ends when it is told to."""

import math
import signal
import sys
import time
from pathlib import Path

from harness import (
    DEADLINE_SECONDS,
    PLUGIN_SAYS,
    TAG,
    IntegrationTest,
    Talker,
    group,
    need_root,
    plugin,
    wait_until,
)

STOP_SECONDS = 20
WORKERS = 4


def readers_of(pid):
    """How many threads of the plugin's there are."""
    names = []
    for path in Path(f"/proc/{pid}/task").glob("*/comm"):
        try:
            names.append(path.read_text())
        except OSError:
            pass
    return names.count("smaps reader\n")


class Hung(Talker):
    """A process whose files hang in the kernel."""

    def __init__(self, test, kind):
        program = Path(__file__).with_name("hung.py")
        super().__init__([sys.executable, program, kind, "hung" + TAG])
        test.addCleanup(self.stop, DEADLINE_SECONDS)
        word, _, rest = self.read_line().partition(" ")
        if word != "READY":
            test.skipTest(f"no process can be hung here: {rest}")
        pid, self.path = rest.split()
        self.pid = int(pid)

    def release(self):
        self.ask()


DETAIL = ('Report "detail"', 'Refresh "always"', "ReadTimeout 0.5")
REAL_CONFIG = plugin(
    *DETAIL,
    group("hung", 'Comm "hung@"'),
    group("well", 'Comm "well@"', 'CommandLine "*"'),
)


class HangTest(IntegrationTest):
    def setUp(self):
        need_root("mounts FUSE, to hang a process")

    def assert_not_known(self, cycle, group):
        """An unidentified process may be in it."""
        for metric in ("ps_count", "memory-pss", "memory-resident"):
            values = cycle.groups[group][metric]
            self.assertTrue(all(map(math.isnan, values)), (metric, values))

    def assert_stops(self, collectd):
        start = time.monotonic()
        collectd.process.send_signal(signal.SIGTERM)
        self.assertEqual(collectd.process.wait(DEADLINE_SECONDS), 0)
        self.assertLess(time.monotonic() - start, STOP_SECONDS)

    def wait_hung(self, collectd, count):
        def rows():
            return collectd.values().get("", {}).get("count-hung", [])

        def find():
            collectd.check_running()
            return rows() and rows()[-1][1] == count

        wait_until(find, lambda: f"count-hung to be {count}: {rows()[-20:]}")


class Kernel(HangTest):
    def test_last_reader_is_for_healthy_processes(self):
        """However many hang, newcomers are read in full."""
        hung = [Hung(self, "mmap") for _ in range(WORKERS + 1)]
        well = self.start_shape("anon", name="well", mib=8)
        collectd = self.start_collectd(REAL_CONFIG)
        collectd.find_cycle(
            lambda cycle: cycle.value("", "count-hung") > WORKERS,
            "all to be hung",
        )
        self.assert_sums_match(collectd, "well", well.pids)
        more = self.start_shape("anon", name="well", mib=8)
        self.assert_sums_match(collectd, "well", well.pids + more.pids)
        self.assertLessEqual(readers_of(collectd.process.pid), WORKERS)
        self.assertEqual(collectd.log_lines("4 reads hang"), [])
        for one in hung:
            one.release()
        self.wait_hung(collectd, 0)
        self.assert_sums_match(collectd, "well", well.pids + more.pids)

    def check_real(self, kind):
        """The process hangs before collectd starts, and is let go later."""
        well = self.start_shape("anon", name="well", mib=8, children=2)
        hung = Hung(self, kind)
        collectd = self.start_collectd(REAL_CONFIG)
        self.wait_hung(collectd, 1)
        self.assert_sums_match(collectd, "well", well.pids)
        lines = collectd.log_lines(PLUGIN_SAYS)
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], f'reading process {hung.pid} "hung')
        for time_ in collectd.times()[:-1]:
            cycle = collectd.cycle_at(time_)
            self.assertEqual(cycle.counts("well"), (3, 3))
            self.assertEqual(cycle.value("well", "percent-coverage"), 100)
        return hung, collectd

    def test_mmap_lock_is_held(self):
        hung, collectd = self.check_real("mmap")
        cycle = collectd.next_cycle()
        self.assert_not_known(cycle, "hung")  # cmdline hangs too
        hung.release()
        self.wait_hung(collectd, 0)
        self.assert_sums_match(collectd, "hung", [hung.pid])

    def test_daemon_ends_while_the_mmap_lock_is_held(self):
        _, collectd = self.check_real("mmap")
        self.assertGreaterEqual(readers_of(collectd.process.pid), 1)
        self.assert_stops(collectd)

    def test_exec_hangs(self):
        """stat may hang as well, or not, as the kernel is."""
        hung, collectd = self.check_real("exec")
        hung.release()
        self.wait_hung(collectd, 0)
        self.assertEqual(len(collectd.log_lines(PLUGIN_SAYS)), 1)

    def test_daemon_ends_while_an_exec_hangs(self):
        _, collectd = self.check_real("exec")
        self.assert_stops(collectd)

    def test_process_that_was_known_stays_in_its_group(self):
        """A child that is forked, and then calls exec, with collectd there."""
        well = self.start_shape("anon", name="well", mib=8)
        collectd = self.start_collectd(REAL_CONFIG)
        collectd.next_cycle()
        hung = Hung(self, "exec")
        self.wait_hung(collectd, 1)
        self.assert_sums_match(collectd, "well", well.pids)
        hung.stop()
        self.wait_hung(collectd, 0)


# A process that starts can take longer than ReadTimeout as well, where other
# programs have the processors: that is another line.
PID_FILE_SAYS = "smaps plugin: reading PidFile "
PID_FILE_CONFIG = plugin(
    *DETAIL,
    group("hung", 'PidFile "{path}"'),
    group("also-hung", 'PidFile "{path}"', 'Comm "nobody"'),
    group("missing", 'PidFile "/run/not-there.pid"'),
    group("well", 'Comm "well@"'),
)


class PidFile(HangTest):
    """On a file system that does not answer."""

    def start_hung(self):
        self.well = self.start_shape("anon", name="well", mib=8, children=2)
        hung = Hung(self, "file")
        collectd = self.start_collectd(PID_FILE_CONFIG.format(path=hung.path))
        wait_until(
            lambda: collectd.log_lines(PID_FILE_SAYS), "the file to hang"
        )
        return hung, collectd

    def test_others_are_read_and_its_group_is_unknown(self):
        hung, collectd = self.start_hung()
        for _ in range(3):
            collectd.next_cycle()
        self.assert_sums_match(collectd, "well", self.well.pids)
        lines = collectd.log_lines(PID_FILE_SAYS)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(f'PidFile "{hung.path}" did not end', lines[0])
        self.assertEqual(readers_of(collectd.process.pid), 2)
        for time_ in collectd.times()[:-1]:
            cycle = collectd.cycle_at(time_)
            self.assertEqual(cycle.counts("well"), (3, 3))
            self.assertEqual(cycle.value("well", "percent-coverage"), 100)
            self.assertTrue(math.isnan(cycle.counts("hung")[0]))
            self.assertTrue(math.isnan(cycle.value("hung", "memory-pss")))
            self.assertEqual(cycle.counts("missing"), (0, 0))

        hung.release()
        wait_until(
            lambda: collectd.next_cycle().counts("hung")[0] == 1,
            "the file to be read",
        )
        self.assert_sums_match(collectd, "hung", [hung.pid])
        self.assertEqual(collectd.next_cycle().counts("also-hung"), (0, 0))
        self.assertEqual(len(collectd.log_lines(PID_FILE_SAYS)), 1)

    def test_daemon_ends_while_it_hangs(self):
        _, collectd = self.start_hung()
        collectd.next_cycle()
        self.assert_stops(collectd)
