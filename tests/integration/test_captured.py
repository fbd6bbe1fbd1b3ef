# SPDX-License-Identifier: MIT
"""Proc trees under ProcRoot, where every value is exact to the byte: trees that
are written here, and those that were captured (tests/fixtures/proc).

What to expect is read from the same tree, by the code below."""

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness import (
    DEADLINE_SECONDS,
    KIB,
    MIB,
    PLUGIN_SAYS,
    ROLLUP_NAMES,
    ROOT,
    TAG,
    IntegrationTest,
    count_threads,
    group,
    mem_total,
    named_values,
    need_program,
    need_root,
    plugin,
    read_kib,
    read_page_tables,
    read_statm,
    stage,
    sum_values,
    wait_until,
)
from snapshot import SmallDisk

CAPTURED = ROOT / "tests/fixtures"
CAPTURE = ROOT / "contrib/capture-proc"

# The csv plugin writes six digits behind the point.
PERCENT_TOLERANCE = 1e-6

STOP_SECONDS = 20

# Sets the clock that bash reads for the time of day.
CLOCK = """
#include <sys/time.h>

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
  static int hours;

  (void)zone;
  *tv = (struct timeval){.tv_sec = 3600 * ++hours};
  return 0;
}
"""

# A program with the name that its argument has the bytes of.
NAMED = """
import ctypes, sys, time

PR_SET_NAME = 15
name = bytes.fromhex(sys.argv[1])
assert ctypes.CDLL(None).prctl(PR_SET_NAME, name, 0, 0, 0) == 0
print(flush=True)
time.sleep(1000)
"""


# ---- an independent reading of a tree ----


def list_pids(tree):
    return sorted(
        int(d.name)
        for d in tree.iterdir()
        if d.name.isdigit() and not d.is_symlink()
    )


def find_memory(tree, pid):
    """Returns the directory that has the memory of a process: its own, or that
    of a thread that outlives the main one; None for a zombie or a kernel
    thread."""
    for directory in (tree / str(pid), *sorted(tree.glob(f"{pid}/task/*"))):
        path = directory / "smaps_rollup"
        if path.is_file() and path.stat().st_size > 0:
            return path
    return None


def read_process(tree, pid):
    """Returns all values of a process, by metric."""
    path = find_memory(tree, pid)
    if path is None:
        return None
    statm = read_statm(path.parent.name, path.parent.parent)
    values = {
        f"memory-{name}": value
        for name, value in named_values(read_kib(path)).items()
    }
    values["ps_vm"] = statm["size"]
    values["ps_code"] = statm["text"]
    values["ps_data"] = statm["data"]
    values["memory-resident"] = statm["resident"]
    values["memory-resident_shared"] = statm["shared"]
    page_tables = read_page_tables(path.parent.name, path.parent.parent)
    if page_tables is not None:
        values["memory-page_tables"] = page_tables
    return values


# ---- trees written by hand ----

# In KiB; beyond what fits into 32 bits, and odd.
MODERN = {
    "Rss": 9_000_000_007,
    "Pss": 8_000_000_005,
    "Pss_Dirty": 7_000_000_003,
    "Pss_Anon": 6_000_000_001,
    "Pss_File": 2_000_000_003,
    "Pss_Shmem": 1,
    "Shared_Clean": 1_000_000_003,
    "Shared_Dirty": 500_000_001,
    "Private_Clean": 2_500_000_001,
    "Private_Dirty": 5_000_000_002,
    "Referenced": 8_999_999_999,
    "Anonymous": 6_000_000_007,
    "KSM": 17,
    "LazyFree": 19,
    "AnonHugePages": 2048,
    "ShmemPmdMapped": 4096,
    "FilePmdMapped": 6144,
    "Shared_Hugetlb": 8192,
    "Private_Hugetlb": 10240,
    "Swap": 77_777,
    "SwapPss": 33_333,
    "Locked": 3,
}
SMALL = {
    "Rss": 1000,
    "Pss": 700,
    "Shared_Clean": 300,
    "Shared_Dirty": 100,
    "Private_Clean": 200,
    "Private_Dirty": 400,
    "Referenced": 999,
    "Anonymous": 600,
    "LazyFree": 0,
    "AnonHugePages": 0,
    "ShmemPmdMapped": 0,
    "Shared_Hugetlb": 0,
    "Private_Hugetlb": 0,
    "Swap": 11,
    "SwapPss": 7,
    "Locked": 0,
}
# The fields that MODERN has and a kernel of 4.14 has not.
LATER_FIELDS = [key for key in MODERN if key not in SMALL]
SMALL_ON_MODERN = {**dict.fromkeys(LATER_FIELDS, 0), **SMALL, "Pss_Anon": 700}

STATM = "90000 2300 400 70 0 5000 0\n"


def lines_of(fields):
    return "".join(f"{key}:{kib:>15} kB\n" for key, kib in fields.items())


def rollup_text(fields):
    return (
        "5581b2a4e000-7ffd1d3f2000 ---p 00000000 00:00 0"
        f"                          [rollup]\n{lines_of(fields)}"
    )


def smaps_text(fields):
    """Returns the smaps of a process with one mapping."""
    return (
        "5581b2a4e000-5581b2a70000 r-xp 00001000 fe:01 17    /bin/true\n"
        f"Size:{9:>15} kB\n{lines_of(fields)}VmFlags: rd ex mr mw me\n"
    )


class WrittenTree:
    """Writes a proc tree."""

    def __init__(self):
        self.path = stage().new_directory()
        (self.path / "meminfo").write_text(
            "MemTotal:       16384000 kB\nMemFree:         1000000 kB\n"
        )

    def add(self, pid, *, threads=1, **files):
        directory = self.path / str(pid)
        directory.mkdir()
        # Fields 3 to 52 of stat; the start time is the 22nd.
        fields = ["S", "1", "1", "1", "0", "-1", "4194304"]
        fields += ["0"] * 10 + [str(threads), "0", str(1000 + pid)]
        fields += ["0"] * 30
        files = {
            "stat": f"{pid} (name-{pid}) {' '.join(fields)}\n",
            "comm": f"name-{pid}\n",
            "cmdline": f"name-{pid}\0",
            "status": f"Name:\tname-{pid}\nUid:\t0\t0\t0\t0\n",
            "cgroup": "0::/\n",
            "statm": STATM,
            **files,
        }
        for name, text in files.items():
            (directory / name).write_text(text)


class TreeTest(IntegrationTest):
    def measure(self, tree, pids):
        """Runs a cycle on the tree, with a group "p-PID" for each process and
        all of them in "all"."""
        pid_files = stage().new_directory()
        text = f'ProcRoot "{tree}"\nReport "detail"\nValuesPercentage true\n'
        for pid in pids:
            path = pid_files / str(pid)
            path.write_text(f"{pid}\n")
            selector = f'PidFile "{path}"'
            if pid == 1:  # which no PID file can name
                selector = f'Comm "{(tree / "1/comm").read_text().strip()}"'
            text += f'<Group "p-{pid}">\n{selector}\nContinue true\n</Group>\n'
        text += '<Group "all">\nComm "*"\n</Group>\n'
        collectd = self.start_collectd(f"<Plugin smaps>\n{text}</Plugin>")
        cycle = collectd.next_cycle()
        for line in collectd.log_lines(PLUGIN_SAYS):
            self.assertIn("that is init or a kernel thread", line)
        return cycle

    def check_tree(self, tree):
        """Every process and the sum of all, as the tree itself says."""
        pids = list_pids(tree)
        self.assertTrue(pids, f"{tree} has no process")
        cycle = self.measure(tree, pids)
        values = {pid: read_process(tree, pid) for pid in pids}
        alive = {pid: v for pid, v in values.items() if v is not None}
        known = {metric for v in alive.values() for metric in v}
        for pid in pids:
            with self.subTest(pid=pid):
                # A group without a process has zeros.
                of_group = values[pid] or dict.fromkeys(known, 0)
                self.check_group(tree, cycle, f"p-{pid}", of_group, known)
                self.assertEqual(
                    cycle.counts(f"p-{pid}"),
                    (1, count_threads(pid, tree)) if pid in alive else (0, 0),
                )
        with self.subTest("all"):
            in_all = set.intersection(*(set(v) for v in alive.values()))
            total = sum_values(alive.values())
            total = {metric: total[metric] for metric in in_all}
            self.check_group(tree, cycle, "all", total, known)
            threads = sum(count_threads(pid, tree) for pid in alive)
            self.assertEqual(cycle.counts("all"), (len(alive), threads))
        return cycle

    def check_group(self, tree, cycle, group, values, known):
        """Values to the byte; what others have and this one has not is NaN;
        what none has is not there."""
        found = cycle.groups[group]
        total = mem_total(tree)
        for metric in known:
            (value,) = found[metric]
            (percent,) = found["percent-" + metric.replace("memory-", "")]
            if metric not in values:
                self.assertTrue(math.isnan(value), (group, metric, value))
                self.assertTrue(math.isnan(percent), (group, metric, percent))
                continue
            self.assertEqual(value, values[metric], (group, metric))
            self.assertAlmostEqual(
                percent,
                100 * values[metric] / total,
                delta=PERCENT_TOLERANCE,
                msg=f"{group} {metric}",
            )
        for name in ROLLUP_NAMES:
            reported = f"memory-{name}" in found
            self.assertEqual(reported, f"memory-{name}" in known, name)


class WrittenTrees(TreeTest):
    def test_values_beyond_32_bits(self):
        tree = WrittenTree()
        tree.add(100, smaps_rollup=rollup_text(MODERN))
        tree.add(101, threads=40, smaps_rollup=rollup_text(SMALL_ON_MODERN))
        tree.add(102, smaps_rollup=rollup_text(SMALL_ON_MODERN))
        self.check_tree(tree.path)


class LargeTree(IntegrationTest):
    """More processes than can be read in an interval."""

    PROCESSES = 10_000
    SHARED = ("statm", "smaps_rollup", "cmdline", "comm", "status", "cgroup")

    def make_tree(self):
        """Most files are the same one, by hard links."""
        tree = WrittenTree()
        tree.add(1, smaps_rollup=rollup_text(SMALL_ON_MODERN))
        first = tree.path / "1"
        stat = (first / "stat").read_text()
        for pid in range(2, self.PROCESSES + 1):
            directory = tree.path / str(pid)
            directory.mkdir()
            for name in self.SHARED:
                os.link(first / name, directory / name)
            text = stat.replace("1 (", f"{pid} (", 1)
            (directory / "stat").write_text(text)
        return tree.path, self.PROCESSES

    def test_cycle_that_takes_longer_than_the_interval(self):
        root, count = self.make_tree()
        self.addCleanup(shutil.rmtree, root)
        collectd = self.start_collectd(
            plugin(
                f'ProcRoot "{root}"',
                'Refresh "always"',
                "ReadTimeout 30",  # no read hangs, however busy the machine is
                group("g", 'Comm "*"'),
            ),
            interval=0.1,
        )
        for _ in range(2):
            cycle = collectd.next_cycle()
            self.assertGreater(cycle.value("", "duration-cycle"), 0.1)
            self.assertEqual(cycle.counts("g"), (count, count))
            self.assertEqual(cycle.value("g", "percent-coverage"), 100)
            for name, key in (("pss", "Pss"), ("rss", "Rss")):
                expected = count * SMALL_ON_MODERN[key] * KIB
                self.assertEqual(cycle.memory("g", name), expected)
        times = collectd.times()
        self.assertEqual(times, sorted(set(times)))
        self.assertEqual(collectd.log_lines(PLUGIN_SAYS), [])
        begin = time.monotonic()
        self.assertEqual(collectd.stop(), 0)
        # The cycle that it is in goes on to its end.
        self.assertLess(
            time.monotonic() - begin,
            STOP_SECONDS + 2 * cycle.value("", "duration-cycle"),
        )


class Remounted(IntegrationTest):
    """The daemon has a mount namespace of its own with a proc file system of
    its own."""

    ROOT = "/mnt"
    CONFIG = plugin(
        'ProcRoot "/mnt"', 'Refresh "always"', group("g", 'Comm "mounted@"')
    )

    def setUp(self):
        need_root("mounts a proc file system")
        probe = ["unshare", "-m", "mount", "-t", "proc", "proc", self.ROOT]
        if subprocess.run(probe, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no proc file system can be mounted here")

    def inside(self, *command):
        pid = str(self.collectd.process.pid)
        subprocess.run(["nsenter", "-m", "-t", pid, *command], check=True)

    def start_inside(self, script):
        """Runs the script in front of the daemon, in its mount namespace."""
        return self.start_collectd(
            self.CONFIG,
            wrapper=["unshare", "-m", "sh", "-c", script + '; exec "$@"', "sh"],
        )

    def wait_for_group(self):
        wait_until(
            lambda: self.collectd.next_cycle().counts("g")[0] == 1,
            "the process to be seen",
        )

    def test_umount_and_mount_under_a_running_daemon(self):
        """An open file stays good until it is closed: not one interval is
        lost."""
        shape = self.start_shape("anon", name="mounted", mib=8)
        self.collectd = self.start_inside(f"mount -t proc proc {self.ROOT}")
        self.wait_for_group()
        before = len(self.collectd.times()) - 1
        self.inside("umount", "-l", self.ROOT)
        self.assert_sums_match(self.collectd, "g", [shape.root])
        self.inside("mount", "-t", "proc", "proc", self.ROOT)
        self.assert_sums_match(self.collectd, "g", [shape.root])
        for time_ in self.collectd.times()[before:-1]:
            self.assertEqual(self.collectd.cycle_at(time_).counts("g"), (1, 1))
        self.assertEqual(self.collectd.log_lines(PLUGIN_SAYS), [])

    def test_mount_whose_processes_have_all_ended(self):
        """The proc of a container is empty once the container has ended: there
        are no values then, instead of 0."""
        self.collectd = self.start_inside(
            "unshare -pf --kill-child sh -c "
            f"'mount -t proc proc {self.ROOT}; touch /dev/shm/smaps{TAG}; "
            "exec sleep 1000' & "
            f"until rm /dev/shm/smaps{TAG} 2>/dev/null; do sleep 0.05; done"
        )
        cycle = self.collectd.next_cycle()
        self.assertEqual(cycle.counts("g"), (0, 0))
        self.assertEqual(cycle.value("", "count-processes"), 1)
        self.end_the_other()
        wait_until(
            lambda: self.says("it has no processes any more"),
            "that it is gone to be said",
        )
        cycles = len(self.collectd.times())
        time.sleep(3)
        self.assertEqual(len(self.collectd.times()), cycles)
        self.assertEqual(len(self.collectd.log_lines(PLUGIN_SAYS)), 1)

    def end_the_other(self):
        """Ends the first process of the other namespace, a grandchild of the
        daemon."""
        pid = self.collectd.process.pid
        for _ in range(2):
            path = Path(f"/proc/{pid}/task/{pid}/children")
            (pid,) = path.read_text().split()
        os.kill(int(pid), signal.SIGKILL)

    def says(self, words):
        return len(self.collectd.log_lines(words))


class CapturedTrees(TreeTest):
    def test_captured_trees(self):
        trees = list(find_trees(CAPTURED))
        if not trees:
            self.skipTest(f"no tree in {CAPTURED.relative_to(ROOT)} yet")
        for tree in trees:
            with self.subTest(tree.name):
                self.check_tree(tree)


class Capture(TreeTest):
    """contrib/capture-proc: what it makes is a tree like those above."""

    def capture(self, pids, *options):
        tree = stage().new_directory() / "captured"
        words = [word for pid in pids for word in ("-p", str(pid))]
        subprocess.run(
            [CAPTURE, *options, *words, tree],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return tree

    def test_capture_is_a_tree_with_the_same_values(self):
        shapes = [
            self.start_shape("cow", name="cow", mib=8, children=2),
            self.start_shape("zombie", name="parent", child_name="dead"),
            self.start_shape("zombie-leader", name="headless", mib=4),
            self.start_shape("named", name="verbose", argv_hex="61" * 60000),
        ]
        pids = [pid for shape in shapes for pid in shape.pids]
        tree = self.capture(pids)
        self.assertEqual(list_pids(tree), sorted(pids))
        cycle = self.check_tree(tree)
        # It is seen through a thread, or not at all.
        headless = shapes[2].root
        self.assertGreater(cycle.memory(f"p-{headless}", "uss"), 4 * MIB)

    def test_capture_has_the_units_of_its_kernel(self):
        shape = self.start_shape("anon", name="a", mib=1)
        page, ticks = (os.sysconf(key) for key in ("SC_PAGESIZE", "SC_CLK_TCK"))
        units = self.capture(shape.pids) / "getconf"
        self.assertEqual(
            units.read_text(), f"PAGESIZE {page}\nCLK_TCK {ticks}\n"
        )
        # Those of a tree of another machine stay with it.
        tree = self.capture(shape.pids)
        (tree / "getconf").write_text("PAGESIZE 65536\nCLK_TCK 250\n")
        again = self.capture(shape.pids, "-r", tree)
        self.assertEqual(
            (again / "getconf").read_text(), "PAGESIZE 65536\nCLK_TCK 250\n"
        )

    def test_mask_leaves_the_first_word_and_the_length(self):
        words = b"serve --password=secret\nof \xff\x01\x02 mine"
        shape = self.start_shape("named", name="masked", argv_hex=words.hex())
        live = Path(f"/proc/{shape.root}/cmdline").read_bytes()
        self.assertIn(b"secret", live)
        tree = self.capture(shape.pids, "-m")
        masked = (tree / str(shape.root) / "cmdline").read_bytes()
        self.assertEqual(len(masked), len(live))
        self.assertRegex(masked, rb"\Aserve [x \0]+\Z")
        for path in tree.rglob("*"):
            if path.is_file() and not path.is_symlink():
                self.assertNotIn(b"secret", path.read_bytes(), path.name)

    def test_only_the_owner_can_read_it(self):
        shape = self.start_shape("anon", name="a", mib=1)
        for path in self.capture(shape.pids).rglob("*"):
            if not path.is_symlink():
                self.assertEqual(path.stat().st_mode & 0o077, 0, path)

    def test_process_that_has_ended_leaves_nothing(self):
        shape = self.start_shape("anon", name="a", mib=1)
        gone = self.start_shape("anon", name="b", mib=1)
        gone.stop()
        tree = self.capture([*shape.pids, *gone.pids])
        self.assertEqual(list_pids(tree), shape.pids)


def find_sleeper(parent):
    """Returns the pid of a child that is the program sleep, or None."""
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    for pid in children.read_text().split():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                return pid
    return None


class Recording(TreeTest):
    """contrib/capture-proc --every: a tree like those above for each moment."""

    def setUp(self):
        super().setUp()
        self.directory = stage().new_directory() / "recorded"

    def words(self, every, count, pids, *options):
        words = ["--every", str(every), "--count", str(count), *options]
        words += [word for pid in pids for word in ("-p", str(pid))]
        return [CAPTURE, *words, self.directory]

    def record(self, *words):
        return subprocess.run(
            self.words(*words), capture_output=True, text=True, check=False
        )

    def start_recorder(self, pids, every=1, **environment):
        recorder = subprocess.Popen(
            self.words(every, 200, pids),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        return recorder

    def moments(self):
        return sorted(self.directory.glob("moment-*"))

    def test_moments_are_trees_with_the_memory_of_each_process(self):
        shape = self.start_shape("cow", name="cow", mib=8, children=2)
        done = self.record(1, 2, shape.pids)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = self.moments()
        self.assertEqual(first.name, "moment-001")
        self.assertEqual(second.name, "moment-002")
        passed = [
            float((tree / "uptime").read_text().split()[0])
            for tree in (first, second)
        ]
        # It is rounded to 10 ms twice.
        self.assertGreater(passed[1] - passed[0], 0.5)
        for tree in (first, second):
            self.assertEqual(list_pids(tree), sorted(shape.pids))
            self.check_tree(tree)
            for pid in shape.pids:
                rollup = read_kib(tree / f"{pid}/smaps_rollup")
                self.assertGreater(rollup["Rss"], 8 * MIB)
                self.check_what_is_around(tree / str(pid), pid)
                self.check_names(first / str(pid), tree / str(pid), pid)

    def check_what_is_around(self, recorded, pid):
        """The process sleeps: it is after the rollup what it was before."""
        before = [(recorded / name).read_bytes() for name in ("stat", "statm")]
        self.assertEqual((recorded / "after").read_bytes(), b"".join(before))
        self.assertEqual(before[1], Path(f"/proc/{pid}/statm").read_bytes())

    def check_names(self, first, recorded, pid):
        """They take room once."""
        for name in ("comm", "cmdline", "cgroup"):
            live = Path(f"/proc/{pid}/{name}").read_bytes()
            self.assertEqual((recorded / name).read_bytes(), live)
            self.assertTrue(os.path.samefile(recorded / name, first / name))
        self.assertEqual(
            os.readlink(recorded / "exe"), os.readlink(f"/proc/{pid}/exe")
        )

    def test_names_are_masked_in_every_moment(self):
        shape = self.start_shape("named", name="m", argv_hex=b"a secret".hex())
        done = self.record(1, 2, 2 * shape.pids, "-m")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for tree in self.moments():
            line = (tree / f"{shape.root}/cmdline").read_bytes()
            self.assertRegex(line, rb"\Aa xxxxxx[x \0]*\Z")

    def test_an_interrupt_leaves_what_is_complete(self):
        """One process ends meanwhile, and another gets its name by an exec."""
        stays = self.start_shape("anon", name="stays", mib=1)
        ends = self.start_shape("anon", name="ends", mib=1)
        execs = subprocess.Popen(
            ["sh", "-c", "read line; exec sleep 1000"], stdin=subprocess.PIPE
        )
        self.addCleanup(execs.wait)
        self.addCleanup(execs.kill)
        pids = [stays.root, ends.root, execs.pid]
        recorder = self.start_recorder(pids)
        wait_until(self.moments, "the first moment")
        self.assertEqual(list_pids(self.moments()[0]), sorted(pids))
        ends.stop()
        execs.stdin.write(b"\n")
        execs.stdin.close()
        expected = sorted([stays.root, execs.pid])

        def is_past():
            last = self.moments()[-1]
            comm = (last / f"{execs.pid}/comm").read_text()
            return list_pids(last) == expected and comm == "sleep\n"

        wait_until(is_past, "a moment after the end and the exec")
        # A terminal sends it to all of them. For 2 see below.
        os.killpg(recorder.pid, signal.SIGINT)
        text, _ = recorder.communicate(timeout=DEADLINE_SECONDS)
        self.assertIn(recorder.returncode, (130, 2))
        self.assert_announced(text)
        comm = (self.moments()[0] / f"{execs.pid}/comm").read_text()
        self.assertEqual(comm, "sh\n")

    def test_signals_end_a_recording_with_its_complete_moments(self):
        """Sent while a moment is recorded, to all processes, as a terminal
        does."""
        for number in (
            signal.SIGHUP,
            signal.SIGINT,
            signal.SIGPIPE,
            signal.SIGTERM,
        ):
            with self.subTest(number.name):
                self.directory = stage().new_directory() / "recorded"
                recorder = self.start_recorder([])
                wait_until(self.moments, "the first moment")
                unfinished = self.directory / "unfinished"
                wait_until(unfinished.exists, "a moment to begin")
                os.killpg(recorder.pid, number)
                text, _ = recorder.communicate(timeout=DEADLINE_SECONDS)
                # bash 5.2 cannot parse a trap while it parses a $( ).
                self.assertIn(recorder.returncode, (128 + number, 2))
                self.assert_announced(text)

    def assert_announced(self, text):
        self.assertIn(f"{len(self.moments())} moments of Linux ", text)
        self.assertEqual(sorted(self.directory.iterdir()), self.moments())

    def test_a_signal_ends_a_pause(self):
        """It comes to the program alone, in a pause of an hour."""
        shape = self.start_shape("anon", name="a", mib=1)
        recorder = self.start_recorder(shape.pids, every=3600)
        wait_until(lambda: find_sleeper(recorder), "the pause")
        sleeper = find_sleeper(recorder)
        recorder.terminate()
        text, _ = recorder.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(recorder.returncode, 128 + signal.SIGTERM)
        self.assert_announced(text)
        self.assertFalse(Path(f"/proc/{sleeper}").exists())

    def test_a_full_disk_leaves_what_is_complete(self):
        disk = SmallDisk(self, 75 * os.sysconf("SC_PAGESIZE") // KIB)
        self.directory = disk.mount_point / "recorded"
        words = self.words(1, 200, [os.getpid()])
        script = '"$@"; status=$?; ls "$1"; exit $status'.replace(
            "$1", str(self.directory)
        )
        done = subprocess.run(
            [*disk.prefix, "sh", "-c", script, "sh", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "(?m)^capture-proc: .* not ")
        summary, *names = done.stdout.splitlines()
        names = [name for name in names if "took longer" not in name]
        self.assertGreater(len(names), 1)
        self.assertRegex(summary, f"^{len(names)} moments of Linux ")
        self.assertEqual(
            names, [f"moment-{i + 1:03}" for i in range(len(names))]
        )

    def test_a_clock_that_is_set_changes_no_pause(self):
        """With each look at the time of day an hour has passed."""
        library = stage().new_directory() / "clock.so"
        cc = need_program(os.environ.get("CC", "cc"), "gcc")
        subprocess.run(
            [cc, "-shared", "-fPIC", "-x", "c", "-o", library, "-"],
            input=CLOCK,
            text=True,
            check=True,
        )
        shape = self.start_shape("anon", name="a", mib=1)
        recorder = self.start_recorder(
            shape.pids, every=60, LD_PRELOAD=str(library)
        )
        wait_until(
            lambda: find_sleeper(recorder) or len(self.moments()) > 1,
            "the pause",
        )
        recorder.terminate()
        text, _ = recorder.communicate(timeout=DEADLINE_SECONDS)
        self.assertIn("1 moments of Linux ", text)
        self.assertNotIn("took longer", text)

    def test_a_recording_without_any_rollup_is_refused(self):
        tree = WrittenTree()
        (tree.path / "version").write_text("Linux version 6.1\n")
        tree.add(100)
        done = self.record(1, 2, [], "-r", tree.path)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(
            done.stderr,
            "capture-proc: no smaps_rollup can be read: the recording would"
            " have no true values; run it as root, or with a greater -g\n",
        )
        self.assertFalse(self.directory.exists())

    def test_processes_that_come_or_go_meanwhile_are_noted(self):
        """There is nearly always a child, and each is gone soon."""
        loop = subprocess.Popen(["sh", "-c", "while :; do sleep 0.2; done"])
        self.addCleanup(loop.wait)
        self.addCleanup(loop.kill)
        self.start_recorder([])

        def is_noted():
            return any(
                int(line.rpartition(") ")[2].split()[1]) == loop.pid
                for tree in self.moments()
                for line in (tree / "unsteady").read_text().splitlines()
            )

        wait_until(is_noted, "a child to end or begin meanwhile")

    def start_named(self, name):
        process = subprocess.Popen(
            [sys.executable, "-c", NAMED, name.hex()], stdout=subprocess.PIPE
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process.pid

    def test_names_that_look_like_those_of_files(self):
        """A name is up to 15 bytes of any value but 0. It is recorded as it is,
        and nothing is written beside the moment."""
        names = (
            b"\n==> /1/.. <==\n",
            b"\n==> /../x <==\n",
            b"==> x.end <==",
            b"\n\na\n\nb) Z 1\n\n",
            b"x) Z 1 1\n",
            b"\xff\\n%s'`$(",
        )
        pids = [self.start_named(name) for name in names]
        done = self.record(1, 2, pids)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(self.directory.iterdir()), self.moments())
        for tree in self.moments():
            self.assertEqual(list_pids(tree), sorted(pids))
            self.assertEqual(
                {path.name for path in tree.iterdir()} - {str(p) for p in pids},
                {"getconf", "meminfo", "unsteady", "uptime", "version"},
            )
            for pid in pids:
                recorded = tree / str(pid)
                self.check_what_is_around(recorded, pid)
                for name in ("comm", "stat", "cgroup"):
                    live = Path(f"/proc/{pid}/{name}").read_bytes()
                    self.assertEqual((recorded / name).read_bytes(), live)
                rollup = read_kib(recorded / "smaps_rollup")
                self.assertGreater(rollup["Rss"], MIB)

    def test_giants_are_recorded_without_a_rollup(self):
        tree = WrittenTree()
        (tree.path / "version").write_text("Linux version 6.1\n")
        pages = (2 << 30) // os.sysconf("SC_PAGESIZE")
        for pid, resident in ((100, pages), (101, pages + 1)):
            tree.add(
                pid,
                smaps_rollup=rollup_text(SMALL_ON_MODERN),
                statm=f"{2 * pages} {resident} 1 1 0 1 0\n",
            )
        done = self.record(1, 1, [], "-g", "2", "-r", tree.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        (moment,) = self.moments()
        self.assertTrue((moment / "100/smaps_rollup").exists())
        self.assertFalse((moment / "101/smaps_rollup").exists())
        self.assertTrue((moment / "101/statm").exists())

    def test_processes_without_control_groups_are_recorded(self):
        """The kernel may be built without them."""
        tree = WrittenTree()
        (tree.path / "version").write_text("Linux version 6.1\n")
        tree.add(100, smaps_rollup=rollup_text(SMALL_ON_MODERN))
        (tree.path / "100/cgroup").unlink()
        done = self.record(1, 2, [], "-r", tree.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([list_pids(t) for t in self.moments()], [[100], [100]])

    def test_what_cannot_be_recorded_is_refused(self):
        number = "expected a whole number from 1 to"
        for words, reason in (
            ("--every 0 --count 3", f"--every 0: {number} 3600"),
            ("--every 1s --count 3", f"--every 1s: {number} 3600"),
            ("--every 1 --count 1000", f"--count 1000: {number} 999"),
            ("--every 1", "--every needs --count"),
            ("--count 1", "--count and -g need --every"),
            ("-g 1", "--count and -g need --every"),
            ("-p 1x", "-p 1x: expected the number of a process"),
        ):
            with self.subTest(words):
                done = subprocess.run(
                    [CAPTURE, *words.split(), self.directory],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr, f"capture-proc: {reason}\n")
                self.assertFalse(self.directory.exists())
        gone = self.start_shape("anon", name="gone", mib=1)
        gone.stop()
        done = self.record(1, 2, gone.pids)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no process could be recorded", done.stderr)


def find_trees(path):
    """The tree itself, or each directory in it that is one."""
    for directory, names, _ in os.walk(path):
        if any(name.isdigit() for name in names):
            names.clear()
            yield Path(directory)
