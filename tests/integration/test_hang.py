"""Reads that hang: in files of a tree that are FIFOs, which nobody writes to,
and in the kernel, by a FUSE server that does not answer (hung.py).

Whatever hangs, the other groups are complete in the same interval, it is said
once, and collectd ends when it is told to."""

import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import harness
from harness import (
    KIB,
    PLUGIN_SAYS,
    TAG,
    IntegrationTest,
    group,
    need_root,
    plugin,
    wait_until,
)
from test_captured import (
    SMALL_ON_MODERN,
    STATM,
    WrittenTree,
    rollup_text,
)

STOP_SECONDS = 20
WORKERS = 4

CONFIG = plugin(
    'ProcRoot "{root}"',
    'Report "detail"',
    'Refresh "{refresh}"',
    "ReadTimeout {timeout}",
    group("hung", 'CommMatch "^name-1.."'),
    group("well", 'CommandLineMatch "^name-2.."'),
)


class HangingTree(WrittenTree):
    """Processes 100 and up, of which some come to hang, and 200 to 202."""

    def __init__(self, hanging=1):
        super().__init__()
        self.held = []
        self.pids = list(range(100, 100 + hanging))
        for pid in [*self.pids, 200, 201, 202]:
            self.add(pid, smaps_rollup=rollup_text(SMALL_ON_MODERN))

    def hang(self, pid, name):
        """A reader of the file waits from now on."""
        path = self.path / str(pid) / name
        text = path.read_text()
        fifo = path.with_name(f".{name}")
        os.mkfifo(fifo)
        fifo.rename(path)
        return text

    def mend(self, pid, name, text):
        """It is a file again, and who waited finds an end of file."""
        path = self.path / str(pid) / name
        file = path.with_name(f".{name}")
        file.write_text(text)
        writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        file.rename(path)
        os.close(writer)


class FifoTest(IntegrationTest):
    def start(self, tree, timeout=0.5, refresh="always"):
        return self.start_collectd(
            CONFIG.format(root=tree.path, timeout=timeout, refresh=refresh)
        )

    def assert_well(self, cycle):
        """The other group is complete, read in that very interval."""
        self.assertEqual(cycle.counts("well"), (3, 3))
        for name, key in (("pss", "Pss"), ("rss", "Rss"), ("swap", "SwapPss")):
            value = 3 * SMALL_ON_MODERN[key] * KIB
            self.assertEqual(cycle.memory("well", name), value)
        self.assertEqual(cycle.value("well", "percent-coverage"), 100)
        self.assertEqual(cycle.value("well", "memory-pss_error"), 0)

    def assert_all_well(self, collectd):
        """In every interval so far, the one of the stall too."""
        times = collectd.times()[:-1]
        self.assertTrue(times)
        for time_ in times:
            self.assert_well(collectd.cycle_at(time_))

    def assert_not_known(self, cycle, group):
        """An unidentified process may be in it."""
        for metric in ("ps_count", "memory-pss", "memory-resident"):
            values = cycle.groups[group][metric]
            self.assertTrue(all(map(math.isnan, values)), (metric, values))

    def assert_stops(self, collectd):
        start = time.monotonic()
        collectd.process.send_signal(signal.SIGTERM)
        self.assertEqual(collectd.process.wait(harness.DEADLINE_SECONDS), 0)
        self.assertLess(time.monotonic() - start, STOP_SECONDS)

    def wait_hung(self, collectd, count):
        def rows():
            return collectd.values().get("", {}).get("count-hung", [])

        def find():
            collectd.check_running()
            return rows() and rows()[-1][1] == count

        wait_until(find, lambda: f"count-hung to be {count}: {rows()[-20:]}")

    def check(self, name, has_members):
        """One process hangs in a file, from the first interval on."""
        tree = HangingTree()
        text = tree.hang(100, name)
        collectd = self.start(tree)
        self.wait_hung(collectd, 1)
        cycle = collectd.next_cycle()
        self.assertEqual(cycle.value("", "count-hung"), 1)
        self.assertEqual(cycle.value("", "count-processes"), 4)
        self.assertEqual(
            cycle.value("", "count-unidentified"), 1 - has_members
        )
        if not has_members:
            self.assert_not_known(cycle, "hung")
        else:
            self.assertEqual(cycle.counts("hung"), (1, 1))
            self.assertEqual(cycle.value("hung", "percent-coverage"), 0)
            self.assertEqual(cycle.value("hung", "count-unreadable"), 0)
            resident = int(STATM.split()[1]) * harness.PAGE_SIZE
            self.assertEqual(cycle.memory("hung", "resident"), resident)
        lines = collectd.log_lines(PLUGIN_SAYS)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(f'reading {name} of process 100 "name-100"', lines[0])

        tree.mend(100, name, text)
        self.wait_hung(collectd, 0)
        cycle = collectd.next_cycle()
        self.assertEqual(
            cycle.memory("hung", "pss"), SMALL_ON_MODERN["Pss"] * KIB
        )
        self.assertEqual(cycle.value("hung", "percent-coverage"), 100)
        self.assert_all_well(collectd)
        self.assertEqual(len(collectd.log_lines(PLUGIN_SAYS)), 1)


class Fifos(FifoTest):
    def test_rollup(self):
        self.check("smaps_rollup", 1)

    def test_stat(self):
        self.check("stat", 0)

    def test_command_line(self):
        """The rules need it, so the process has no name without it."""
        self.check("cmdline", 0)

    def test_rollup_of_one_that_was_read_before(self):
        """The estimate stands on the reading that there was."""
        tree = HangingTree()
        collectd = self.start(tree, refresh="adaptive")
        collectd.next_cycle()
        tree.hang(100, "smaps_rollup")
        statm = STATM.replace(" 2300 400 ", " 4300 2400 ")
        (tree.path / "100/statm").write_text(statm)
        self.wait_hung(collectd, 1)
        cycle = collectd.next_cycle()
        self.assertGreater(
            cycle.memory("hung", "rss"), SMALL_ON_MODERN["Rss"] * KIB
        )
        self.assertGreater(cycle.memory("hung", "pss_error"), 0)
        self.assertGreater(cycle.value("hung", "duration-age"), 0)
        self.assertEqual(
            cycle.memory("well", "pss"), 3 * SMALL_ON_MODERN["Pss"] * KIB
        )
        self.assert_stops(collectd)

    def test_daemon_ends_with_a_reader_that_hangs(self):
        tree = HangingTree()
        tree.hang(100, "smaps_rollup")
        collectd = self.start(tree, timeout=1)
        self.wait_hung(collectd, 1)
        collectd.next_cycle()
        self.assert_stops(collectd)
        self.assert_all_well(collectd)

    def test_daemon_ends_in_the_middle_of_stalls(self):
        """More hang than are waited for."""
        tree = HangingTree(8)
        for pid in tree.pids:
            tree.hang(pid, "cmdline")
        collectd = self.start(tree, timeout=1)
        wait_until(
            lambda: readers_of(collectd.process.pid) > 0, "the first reader"
        )
        self.assert_stops(collectd)

    def test_more_hang_than_there_are_readers(self):
        tree = HangingTree(8)
        texts = {pid: tree.hang(pid, "smaps_rollup") for pid in tree.pids}
        collectd = self.start(tree, timeout=0.2)
        self.wait_hung(collectd, WORKERS)
        cycle = collectd.next_cycle()
        self.assertEqual(cycle.counts("hung"), (8, 8))
        self.assertEqual(cycle.counts("well"), (3, 3))
        resident = int(STATM.split()[1]) * harness.PAGE_SIZE
        self.assertEqual(cycle.memory("hung", "resident"), 8 * resident)
        self.assertEqual(cycle.memory("well", "resident"), 3 * resident)
        self.assertGreaterEqual(
            cycle.value("", "count-deferred"), 8 - WORKERS
        )
        self.assertEqual(readers_of(collectd.process.pid), WORKERS)
        self.assertEqual(len(collectd.log_lines("4 reads hang")), 1)
        for pid, text in texts.items():
            tree.mend(pid, "smaps_rollup", text)
        wait_until(
            lambda: collectd.next_cycle().value("hung", "percent-coverage")
            == 100,
            "all to be read again",
        )
        self.assert_well(collectd.next_cycle())
        self.assertEqual(len(collectd.log_lines("has returned")), 1)
        self.assertEqual(len(collectd.log_lines("4 reads hang")), 1)

    def test_slow_file_is_waited_for(self):
        tree = HangingTree()
        text = tree.hang(100, "smaps_rollup")
        feeder = Feeder(tree.path / "100/smaps_rollup", text, 0.3)
        self.addCleanup(feeder.stop)
        collectd = self.start(tree, timeout=2)
        cycle = collectd.next_cycle()
        self.assertEqual(
            cycle.memory("hung", "pss"), SMALL_ON_MODERN["Pss"] * KIB
        )
        self.assertEqual(cycle.value("hung", "percent-coverage"), 100)
        self.assertEqual(cycle.value("", "count-hung"), 0)
        self.assertGreater(cycle.value("", "duration-longest_read"), 0.1)
        self.assert_all_well(collectd)
        self.assertEqual(collectd.log_lines(PLUGIN_SAYS), [])


class Feeder:
    """Gives the readers of a FIFO its text, each a while after the last. It is
    open all the while, so that none of them finds an end."""

    def __init__(self, path, text, seconds):
        self.fd = os.open(path, os.O_RDWR)
        self.text, self.seconds = text.encode(), seconds
        self.is_stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def is_read(self):
        return not select.select([self.fd], [], [], 0)[0]

    def run(self):
        while not self.is_stopping.wait(self.seconds):
            while not self.is_read() and not self.is_stopping.is_set():
                time.sleep(0.01)
            os.write(self.fd, self.text)

    def stop(self):
        self.is_stopping.set()
        self.thread.join()
        os.close(self.fd)


def readers_of(pid):
    """How many threads of the plugin's there are."""
    names = []
    for path in Path(f"/proc/{pid}/task").glob("*/comm"):
        try:
            names.append(path.read_text())
        except OSError:
            pass
    return names.count("smaps reader\n")


# ---- for real ----


class Hung:
    """A process whose files hang in the kernel."""

    def __init__(self, test, kind):
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("hung.py"), kind]
            + ["hung" + TAG],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        test.addCleanup(self.stop)
        word, _, rest = self.process.stdout.readline().partition(" ")
        if word != "READY":
            test.skipTest(f"no process can be hung here: {rest.strip()}")
        pid, self.path = rest.split()
        self.pid = int(pid)

    def release(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(harness.DEADLINE_SECONDS)


DETAIL = ('Report "detail"', 'Refresh "always"', "ReadTimeout 0.5")
REAL_CONFIG = plugin(
    *DETAIL,
    group("hung", 'Comm "hung@"'),
    group("well", 'Comm "well@"', 'CommandLine "*"'),
)


class Kernel(FifoTest):
    def setUp(self):
        need_root("mounts FUSE, to hang a process")

    def test_last_reader_is_for_healthy_processes(self):
        """However many hang, newcomers are read in full."""
        hung = [Hung(self, "mmap") for _ in range(WORKERS + 1)]
        well = self.start_shape("anon", name="well", mib=8)
        collectd = self.start_collectd(REAL_CONFIG)
        wait_until(
            lambda: collectd.next_cycle().value("", "count-hung") > WORKERS,
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
        self.assertRegex(lines[0], f'of process {hung.pid} "hung')
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


PID_FILE_CONFIG = plugin(
    *DETAIL,
    group("hung", 'PidFile "{path}"'),
    group("also-hung", 'PidFile "{path}"', 'Comm "nobody"'),
    group("missing", 'PidFile "/run/not-there.pid"'),
    group("well", 'Comm "well@"'),
)


class PidFile(FifoTest):
    """On a file system that does not answer."""

    def setUp(self):
        need_root("mounts FUSE, for a file to hang")

    def start_hung(self):
        self.well = self.start_shape("anon", name="well", mib=8, children=2)
        hung = Hung(self, "file")
        collectd = self.start_collectd(PID_FILE_CONFIG.format(path=hung.path))
        wait_until(
            lambda: collectd.log_lines(PLUGIN_SAYS), "the file to hang"
        )
        return hung, collectd

    def test_others_go_on_and_whom_it_names_is_not_known(self):
        hung, collectd = self.start_hung()
        for _ in range(3):
            collectd.next_cycle()
        self.assert_sums_match(collectd, "well", self.well.pids)
        lines = collectd.log_lines(PLUGIN_SAYS)
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
        self.assertEqual(len(collectd.log_lines(PLUGIN_SAYS)), 1)

    def test_daemon_ends_while_it_hangs(self):
        _, collectd = self.start_hung()
        collectd.next_cycle()
        self.assert_stops(collectd)
