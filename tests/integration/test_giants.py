# SPDX-License-Identifier: MIT
"""Processes that take too long to walk have their pages sampled, and their
values are right within the error.

MaxLockHold is at its lowest here, so that some hundred MiB make a giant."""

import contextlib
import json
import platform
import re
import subprocess
import unittest

import harness
from harness import (
    MIB,
    TAG,
    IntegrationTest,
    group,
    need_program,
    need_root,
    plugin,
    setpriv,
    sum_rollups,
    unprivileged_user,
    wait_until,
)
from snapshot import StateFile, process_of
from test_adaptive import Family
from test_permission import CAP_SYS_PTRACE, need_capability
from report import run

CAP_DAC_READ_SEARCH = 2
CAP_SYS_ADMIN = 21

# 100 us: more than 40 MiB take longer to walk.
LOCK_HOLD = "MaxLockHold 0.1"

# The budget is not tested here.
OPTIONS = (LOCK_HOLD, "ReadBudget 50", 'Report "detail"')
GIANT = group("giant", 'Comm "giant@"')
FAMILY = group("giant", 'Comm "family@"', "Children true")
CONFIG = plugin(*OPTIONS, GIANT)

# The error of a sample may be as large as this part of the resident memory of
# one process, and of the PSS of a set.
WIDTH = 0.05

# libc is shared with the rest of the machine, and its part changes at any time.
LIBC = MIB / 4

# A published error is exceeded in one of 100 samples; so much more is not seen.
SLACK = 1.5


# Every other page of it can be read only, so that each is a mapping.
SCATTERED = """
import ctypes, mmap, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(15, sys.argv[1].encode(), 0, 0, 0)
memory = mmap.mmap(-1, 160 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for page in range(0, len(memory), 2 * mmap.PAGESIZE):
    memory[page] = 1
    address = ctypes.c_void_p(at + page)
    assert libc.mprotect(address, mmap.PAGESIZE, mmap.PROT_READ) == 0
print("ready", flush=True)
sys.stdin.read()
"""

# Half of it is written, and half only read: those are zero pages, which are
# mapped and in no resident size, where the kernel has them.
HALF_ZERO = """
import contextlib, ctypes, mmap, sys

ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
memory = mmap.mmap(-1, 320 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
with contextlib.suppress(OSError):
    memory.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, len(memory), 2 * mmap.PAGESIZE):
    memory[at] = 1 + memory[at + mmap.PAGESIZE]
print("ready", flush=True)
sys.stdin.read()
"""

# Arguments: name, children, who copies pages of each huge page, and which. The
# memory in small pages makes it a giant, however cheap huge pages are.
HUGE_FORKED = """
import ctypes, mmap, os, sys

MIB = 1 << 20
name, children, copier, first, step = sys.argv[1], *map(int, sys.argv[2:])
libc = ctypes.CDLL(None)
libc.prctl(15, name.encode(), 0, 0, 0)
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
small = mmap.mmap(-1, 48 * MIB, flags=flags)
small.madvise(mmap.MADV_NOHUGEPAGE)
huge = mmap.mmap(-1, 66 * MIB, flags=flags)
huge.madvise(mmap.MADV_HUGEPAGE)
begin = -ctypes.addressof(ctypes.c_char.from_buffer(huge)) % (2 * MIB)
for memory, start, size in (small, 0, 48), (huge, begin, 64):
    for at in range(start, start + size * MIB, 4096):
        memory[at] = 1

def copy():
    for page in range(begin, begin + 64 * MIB, 2 * MIB):
        for at in range(first * 4096, 2 * MIB, step * 4096):
            huge[page + at] = 2

pids = [os.getpid()]
done, tell = os.pipe()
for child in range(1, children + 1):
    pid = os.fork()
    if pid == 0:
        libc.prctl(1, 9, 0, 0, 0)
        if copier in (child, -1):
            copy()
        os.write(tell, b"x")
        sys.stdin.read()
        os._exit(0)
    pids.append(pid)
if copier == 0:
    copy()
for pid in pids[1:]:
    os.read(done, 1)
print(*pids, flush=True)
sys.stdin.read()
"""


def start_capable(*capabilities):
    """The user of a daemon that has no other rights, and what starts it."""
    need_capability(CAP_SYS_PTRACE, "CAP_SYS_PTRACE")
    need_capability(CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH")
    user = unprivileged_user()
    return user, setpriv(*capabilities, user=user)


def need_page_counts():
    """A container may hide them behind an empty file."""
    need_capability(CAP_SYS_ADMIN, "CAP_SYS_ADMIN")
    with contextlib.suppress(OSError):
        with open("/proc/kpagecount", "rb", buffering=0) as file:
            if file.read(8):
                return
    raise unittest.SkipTest("needs /proc/kpagecount")


class Giants(IntegrationTest):
    def start(self, config=CONFIG, **options):
        return self.start_collectd(config, interval=0.2, **options)

    def start_half_zero(self):
        """Starts a process with 160 MiB of its own, of which half are zero."""
        script = self.start_script(HALF_ZERO, "giant" + TAG)
        self.assertEqual(script.read_line(), "ready")
        return [script.pid]

    def assert_within(self, value, seen, slack, what):
        """The value is one of the seen ones, or between them."""
        low, high = min(seen) - slack, max(seen) + slack
        self.assertTrue(
            low <= value <= high,
            f"{what} is {value:.0f} and not in {low:.0f} to {high:.0f}",
        )

    def assert_holds(self, cycle, truths, name="giant"):
        """Within the error of what was read before and after."""
        giant = name
        for name in "pss", "uss", "rss":
            error = 0
            if name != "rss":
                error = SLACK * cycle.memory(giant, f"{name}_error")
            seen = [truth[name] for truth in truths]
            self.assert_within(
                cycle.memory(giant, name), seen, error + LIBC, name
            )
        self.assert_invariants(cycle, giant)

    def is_narrow(self, cycle, of_bytes, giant):
        """The errors are as small as a sample makes them."""
        errors = [
            cycle.memory(giant, name) for name in ("pss_error", "uss_error")
        ]
        return max(errors) <= WIDTH * of_bytes

    def assert_sampled(self, collectd, pids, of="rss", giant="giant"):
        """The next cycle with a sample's errors is right. Returns it."""
        truths = [sum_rollups(pids)]

        cycle = collectd.find_cycle(
            lambda cycle: self.is_narrow(cycle, truths[0][of], giant),
            "a sample",
        )
        truths.append(sum_rollups(pids))
        self.assert_holds(cycle, truths, giant)
        coverage = collectd.values()[giant]["percent-coverage"]
        self.assertTrue(0 < max(share for _, share in coverage) <= 100)
        return cycle


class HugePages(Giants):
    """Shared by fork. All pages of one show whether the first is shared."""

    # Who copies (0: the parent, -1: all children), the first page of those that
    # are copied of each huge page, and the distance to the next.
    COPIES = {
        "first": (1, 0, 0, 512),
        "last": (1, 0, 511, 512),
        "half": (1, 0, 0, 2),
        "child": (1, 1, 0, 512),
        "seventh": (1, 1, 7, 512),
        "each": (3, -1, 0, 512),
    }

    def start_forked(self, name, copies):
        script = self.start_script(HUGE_FORKED, name, *map(str, copies))
        return list(map(int, script.read_line().split()))

    def need_huge_pages(self, pids):
        sums = [sum_rollups([pid])["anon_huge_pages"] for pid in pids]
        if max(sums) < 60 * MIB:
            self.skipTest("needs huge pages, of which the kernel has none")

    def test_shared_by_fork(self):
        need_page_counts()
        pids = {
            name: self.start_forked(name + TAG, copies)
            for name, copies in self.COPIES.items()
        }
        self.need_huge_pages(pids["child"])
        rules = [group(name, f'Comm "{name}@"') for name in pids]
        collectd = self.start(plugin(*OPTIONS, *rules))
        for name, members in pids.items():
            with self.subTest(copied=name):
                self.assert_sampled(collectd, members, giant=name)

    def test_without_sys_admin(self):
        """All of the huge pages of all three may be shared or not."""
        user, wrapper = start_capable(CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH)
        pids = []
        for _ in range(3):
            pids += self.start_forked("giant" + TAG, self.COPIES["first"])
        self.need_huge_pages(pids)
        collectd = self.start(user=user, wrapper=wrapper)


        def is_sampled(_):
            coverage = collectd.values()["giant"]["percent-coverage"]
            return coverage[-1][1] > 0

        cycle = collectd.find_cycle(is_sampled, "a sample")
        self.assert_holds(cycle, [sum_rollups(pids)])
        self.assertGreater(cycle.memory("giant", "uss_error"), 180 * MIB)


class Sampling(Giants):
    """The daemon has all rights."""

    def setUp(self):
        need_page_counts()

    def test_zero_pages(self):
        cycle = self.assert_sampled(self.start(), self.start_half_zero())
        self.assertGreater(cycle.memory("giant", "uss"), 155 * MIB)

    def test_set_that_shares_memory(self):
        shape = self.start_shape("shm", name="giant", mib=192, children=4)
        cycle = self.assert_sampled(self.start(), shape.pids, "pss")
        self.assertGreater(cycle.memory("giant", "rss"), 768 * MIB)
        self.assertLess(cycle.memory("giant", "pss"), 210 * MIB)

    def test_set_whose_memory_an_outsider_maps_too(self):
        """Their parent, in no group, pays its part."""
        shape = self.start_shape(
            "cow", name="outside", child_name="giant", mib=192, children=4
        )
        self.assert_sampled(self.start(), shape.pids[1:], "pss")

    def test_copy_on_write(self):
        shape = self.start_shape(
            "cow", name="giant", mib=256, rewrite_mib=96, children=1
        )
        cycle = self.assert_sampled(self.start(), shape.pids)
        self.assertGreater(cycle.memory("giant", "uss"), 170 * MIB)

    def test_growth(self):
        shape = self.start_shape("anon", name="giant", mib=128)
        collectd = self.start()
        self.assert_sampled(collectd, shape.pids)
        shape.grow(128)
        truth = sum_rollups(shape.pids)
        self.assert_holds(collectd.next_cycle(), [truth])
        self.assert_sampled(collectd, shape.pids)

    def test_fork_of_a_giant(self):
        """Before, when and after it breaks copy-on-write."""
        family = Family()
        self.addCleanup(family.stop)
        pids = family.do("grow")
        collectd = self.start(plugin(*OPTIONS, FAMILY))
        self.assert_sampled(collectd, pids)
        pids = family.do("fork")
        self.assert_sampled(collectd, pids)
        family.do("copy")
        cycle = self.assert_sampled(collectd, pids)
        self.assertGreater(cycle.memory("giant", "uss"), 40 * MIB)

    def test_exec_of_a_giant(self):
        """What is left of it is not a giant, and the parent's memory is its own
        again."""
        shape = self.start_shape(
            "forkexec", name="giant", child_name="giant", mib=256
        )
        collectd = self.start()
        self.assert_sampled(collectd, shape.pids)
        shape.command("go")
        wait_until(
            lambda: sum_rollups(shape.pids[1:])["rss"] < 32 * MIB, "the exec"
        )
        cycle = self.assert_sampled(collectd, shape.pids)
        self.assertGreater(cycle.memory("giant", "uss"), 250 * MIB)

    def test_many_mappings(self):
        """Of one page each, half of which are present."""
        script = self.start_script(SCATTERED, "giant" + TAG)
        self.assertEqual(script.read_line(), "ready")
        self.assert_sampled(self.start(), [script.pid])

    def test_memory_in_huge_pages_is_walked(self):
        """512 MiB of it take no longer than one MiB of small ones."""
        shape = self.start_shape("huge", name="giant", mib=512)
        if sum_rollups(shape.pids)["anon_huge_pages"] < 500 * MIB:
            self.skipTest("needs huge pages, of which the kernel has none")
        # By its size alone it is too large for 1 ms. That its pages are huge is
        # known when it has been sampled.
        collectd = self.start(
            plugin("MaxLockHold 1", "MaxAge 1", 'Report "detail"', GIANT)
        )

        cycle = collectd.find_cycle(
            lambda cycle: cycle.memory("giant", "pss_error") < MIB,
            "a rollup of the huge pages",
        )
        self.assert_holds(cycle, [sum_rollups(shape.pids)])


class Files(Giants):
    """The files that are opened, as strace sees it."""

    def start_traced(self, config):
        need_root("traces a daemon")
        need_program("strace")
        self.trace = harness.stage().new_directory() / "trace"
        wrapper = ["strace", "-D", "-f", "-y", "-qq", "-e", "trace=openat"]
        wrapper += ["-o", self.trace]
        if subprocess.run([*wrapper, "true"], check=False).returncode != 0:
            self.skipTest("needs ptrace, for strace")
        return self.start(config, wrapper=wrapper)

    def files_of(self, pid):
        """The names of the files of a process that were opened."""
        text = self.trace.read_text(errors="replace")
        return set(re.findall(rf'</proc(?:/{pid}>, "|>, "{pid}/)(\w+)"', text))

    def test_giant_is_never_walked(self):
        need_page_counts()
        shape = self.start_shape("anon", name="giant", mib=256)
        collectd = self.start_traced(CONFIG)
        self.assert_sampled(collectd, shape.pids)
        collectd.stop()
        files = self.files_of(shape.root)
        self.assertIn("pagemap", files)
        self.assertFalse({"smaps_rollup", "smaps"} & files, files)

    def test_without_giants_no_page_is_looked_up(self):
        shape = self.start_shape("anon", name="giant", mib=16)
        collectd = self.start_traced(plugin('Report "detail"', GIANT))
        self.assert_sums_match(collectd, "giant", shape.pids)
        collectd.stop()
        self.assertIn("smaps_rollup", self.files_of(shape.root))
        text = self.trace.read_text(errors="replace")
        # The daemon tries the kernel's rule with a page of its own.
        text = text.replace('"/proc/self/pagemap"', "")
        self.assertNotIn("/pagemap\"", text)
        self.assertLessEqual(text.count("kpagecount\""), 1)


class Rights(Giants):
    """Without a capability some values are missing, and the plugin logs why."""

    def start_capable(self, *capabilities):
        user, wrapper = start_capable(*capabilities)
        return self.start(user=user, wrapper=wrapper)

    def line_about(self, collectd, capability):
        """It is said once."""
        collectd.wait_cycles(20)
        lines = collectd.log_lines(f"smaps plugin: .*{capability}")
        self.assertEqual(len(lines), 1, collectd.log())
        return lines[0]

    def test_private_memory_without_sys_admin(self):
        shape = self.start_shape("anon", name="giant", mib=256)
        collectd = self.start_capable(CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH)
        self.assert_sampled(collectd, shape.pids)
        self.line_about(collectd, "CAP_SYS_ADMIN")

    def test_zero_pages_without_sys_admin(self):
        """Their frames are hidden; from 6.7 on the kernel shows such pages."""
        if tuple(map(int, platform.release().split(".")[:2])) < (6, 7):
            self.skipTest("needs PAGEMAP_SCAN, of Linux 6.7")
        pids = self.start_half_zero()
        collectd = self.start_capable(CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH)
        cycle = self.assert_sampled(collectd, pids)
        self.assertGreater(cycle.memory("giant", "uss"), 155 * MIB)

    def test_set_without_sys_admin(self):
        """USS is sampled; the number of processes that map a page is not known,
        and PSS is within the error."""
        shape = self.start_shape("shm", name="giant", mib=192, children=4)
        collectd = self.start_capable(CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH)
        truth = sum_rollups(shape.pids)

        most = WIDTH * truth["rss"]
        cycle = collectd.find_cycle(
            lambda cycle: cycle.memory("giant", "uss_error") <= most,
            "a sample of uss",
        )
        self.assert_holds(cycle, [truth])
        pss = cycle.memory("giant", "pss")
        self.assertGreater(pss, cycle.memory("giant", "uss"))
        self.assertLessEqual(pss, truth["rss"] / 2)
        self.line_about(collectd, "CAP_SYS_ADMIN")

    def test_without_dac_read_search(self):
        """Nothing is sampled: the guess from statm stands."""
        shape = self.start_shape("shm", name="giant", mib=192, children=4)
        collectd = self.start_capable(CAP_SYS_PTRACE)
        collectd.wait_cycles(5)
        cycle = collectd.next_cycle()
        self.assert_holds(cycle, [sum_rollups(shape.pids)])
        self.line_about(collectd, "CAP_DAC_READ_SEARCH")


class Documents(Giants):
    def test_snapshot_and_explain_say_that_it_is_sampled(self):
        need_page_counts()
        shape = self.start_shape("anon", name="giant", mib=256)
        state = StateFile()
        collectd = self.start(
            plugin(*OPTIONS, "MaxAge 1", state.config(), GIANT)
        )

        def is_sampled(document):
            return process_of(document, shape.root)["source"] == "sampled"

        document = state.next(collectd, is_sampled)
        process = process_of(document, shape.root)
        self.assertGreaterEqual(process["pages_sampled"], 300)
        path = harness.stage().new_directory() / "document.json"
        path.write_text(json.dumps(document) + "\n")
        text = run("explain", path, shape.root).text
        pages = process["pages_sampled"]
        self.assertIn(f"sampled in this interval, {pages} pages", text)
        (group,) = (one for one in document["groups"] if "pss_error_by" in one)
        self.assertGreater(group["pss_error_by"]["sample"], 0)
        self.assertIn("because only some pages", run("explain", path).text)
