# SPDX-License-Identifier: MIT
"""The values of the host: parts that add up to MemTotal, whatever happens, and
that find memory where a test has put it."""

import contextlib
import mmap
import os
import subprocess

import snapshot
from harness import (
    MIB,
    PAGE_SIZE,
    ROOT,
    IntegrationTest,
    group,
    need_host,
    need_namespace,
    need_root,
    plugin,
    read_meminfo,
    stage,
    wait_until,
)

ALL = plugin('Other "rest"')
NO_VALUES = "no values of the host"
# A part of which other programs of this machine may take or free some.
SLACK = 32 * MIB
# What a test puts somewhere: other programs change by less than half of it.
AMOUNT = 256 * MIB

# unshare does not pass on the signal that ends the daemon.
IN_A_NAMESPACE = """
unshare --pid --fork --mount-proc --kill-child "$@" &
trap "kill -KILL $!" TERM
wait
"""

PARTS = {
    "free",
    "groups",
    "page_cache",
    "tmpfs",
    "buffers",
    "slab_reclaimable",
    "slab_unreclaimable",
    "page_tables",
    "kernel_stack",
    "unaccounted",
}
PARTS_OF_SOME = {
    "percpu",
    "hugetlb_used",
    "hugetlb_free",
    "zram",
    "zswap",
    "swap_cache",
}


def parts_of(cycle):
    return {
        metric.removeprefix("memory-"): value
        for metric, value in cycle.host.items()
        if metric.startswith("memory-")
    }


def fill(file):
    for _ in range(AMOUNT // MIB):
        os.write(file, bytes(MIB))


def is_tmpfs(directory):
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", directory],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return kind.stdout.strip() == "tmpfs"


class HostTest(IntegrationTest):
    def setUp(self):
        need_host()


class Parts(HostTest):
    def test_parts_add_up_to_mem_total(self):
        collectd = self.start_collectd(ALL)
        collectd.wait_cycles(3)
        cycle = collectd.next_cycle()
        total = read_meminfo()["MemTotal"]
        times = collectd.times()[:-1]
        for time in times:
            parts = parts_of(collectd.cycle_at(time))
            self.assertEqual(sum(parts.values()), total)
            self.assertGreaterEqual(min(parts.values()), 0)
        self.assertEqual(set(parts_of(cycle)) - PARTS_OF_SOME, PARTS)
        self.assertEqual(collectd.log_lines(NO_VALUES), [])

    def test_percentages_add_up_to_a_hundred(self):
        collectd = self.start_collectd(
            plugin("ValuesPercentage true", "ValuesAbsolute false")
        )
        values = collectd.next_cycle().host
        self.assertEqual(
            {metric.partition("-")[0] for metric in values}, {"percent"}
        )
        self.assertAlmostEqual(sum(values.values()), 100, places=4)

    def test_parts_are_equal_to_those_of_meminfo(self):
        """As far as these stand still on a machine with other programs."""
        before = read_meminfo()
        parts = parts_of(self.start_collectd(ALL).next_cycle())
        after = read_meminfo()
        for part, keys in (
            ("free", ["MemFree"]),
            ("groups", ["AnonPages", "Mapped"]),
            ("buffers", ["Buffers"]),
            ("slab_reclaimable", ["SReclaimable"]),
            ("slab_unreclaimable", ["SUnreclaim"]),
            ("page_tables", ["PageTables", "SecPageTables"]),
            ("kernel_stack", ["KernelStack"]),
        ):
            values = [
                sum(sample.get(key, 0) for key in keys)
                for sample in (before, after)
            ]
            moved = max(values) - min(values) + SLACK
            with self.subTest(part):
                self.assert_near(parts[part], values[0], 4 * moved, part)

    def test_the_error_of_groups_is_their_difference(self):
        need_root("reads all processes")
        cycle = self.start_collectd(ALL).next_cycle()
        outside = cycle.host["bytes-outside"]
        # Each service of the host has a group of its own.
        groups = filter(None, cycle.groups)
        pss = sum(cycle.memory(name, "pss") for name in groups)
        self.assertEqual(
            cycle.host["bytes-groups_error"],
            abs(cycle.host["memory-groups"] - pss - outside),
        )
        # All are in a group: what the kernel has more is an error.
        self.assertEqual(outside, 0)


class Snapshots(HostTest):
    def test_a_snapshot_has_the_same_account(self):
        state = snapshot.StateFile()
        collectd = self.start_collectd(plugin('Other "rest"', state.config()))
        document = state.next(collectd)  # it is checked, and that it adds up
        values = collectd.next_cycle().host
        self.assertEqual(
            set(document["host_memory"]),
            {metric.partition("-")[2] for metric in values},
        )
        total = read_meminfo()["MemTotal"]
        self.assertEqual(document["mem_total"], total)

    def test_a_snapshot_without_a_host_has_no_account(self):
        for options in (
            ["Host false"],
            [f'ProcRoot "{ROOT / "tests/fixtures/proc"}"'],
        ):
            state = snapshot.StateFile()
            collectd = self.start_collectd(plugin(*options, state.config()))
            document = state.next(collectd)
            self.assertFalse("host_memory" in document, options)


@contextlib.contextmanager
def mapped(file, kind=mmap.MAP_SHARED):
    """All of its pages are ours for a while; of no file, anonymous memory."""
    with mmap.mmap(file, AMOUNT, kind) as memory:
        for page in range(0, AMOUNT, PAGE_SIZE):
            memory[page] = 1
        yield


class Places(HostTest):
    """Memory of a known size goes from one part to another. Other programs of
    this machine change less from one cycle to the next, most of the time."""

    def setUp(self):
        super().setUp()
        directory = stage().new_directory()
        (directory / "pid").write_text(str(os.getpid()))
        self.collectd = self.start_collectd(
            plugin(
                group("me", f'PidFile "{directory}/pid"', 'Refresh "always"'),
                'Other "rest"',
            )
        )

    def assert_changes(self, place, what, **signs):
        """Each part grows (1) or shrinks (-1) by the amount within the
        place."""

        def find():
            before = parts_of(self.collectd.next_cycle())
            with place():
                now = parts_of(self.collectd.next_cycle())
            changes = {part: now[part] - before[part] for part in signs}
            return all(
                AMOUNT / 2 < signs[part] * change < AMOUNT * 3 / 2
                for part, change in changes.items()
            )

        wait_until(find, what)

    @contextlib.contextmanager
    def shmem(self):
        file = os.memfd_create("smaps-test")
        fill(file)
        yield file
        os.close(file)

    def test_shmem_that_nobody_maps_is_tmpfs(self):
        self.assert_changes(self.shmem, "unmapped shmem", tmpfs=1)

    def test_mapped_shmem_is_of_groups(self):
        with self.shmem() as file:
            self.assert_changes(
                lambda: mapped(file), "mapped shmem", tmpfs=-1, groups=1
            )

    def test_a_mapped_file_is_of_groups(self):
        path = self.collectd.directory / "file"
        if is_tmpfs(path.parent):
            self.skipTest("needs a directory that is no tmpfs")
        with open(path, "w+b") as file:
            fill(file.fileno())
            self.assert_changes(
                lambda: mapped(file.fileno()),
                "a mapped file",
                page_cache=-1,
                groups=1,
            )

    def test_anonymous_memory_is_of_groups(self):
        kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.assert_changes(
            lambda: mapped(-1, kind), "anonymous memory", groups=1, free=-1
        )


class Outside(HostTest):
    def test_processes_of_no_group_are_outside(self):
        need_root("reads all processes")
        self.start_shape("anon", name="in", mib=64)
        self.start_shape("anon", name="out", mib=64)
        collectd = self.start_collectd(
            plugin('Refresh "always"', group("in", 'Comm "in@"'))
        )
        cycle = collectd.next_cycle()
        outside = cycle.host["bytes-outside"]
        self.assertGreater(outside, 64 * MIB)
        self.assertEqual(
            cycle.host["memory-groups"],
            outside
            + cycle.memory("in", "pss")
            + cycle.host["bytes-groups_error"],
        )
        self.assertGreater(cycle.host["bytes-outside_error"], 0)


class Absence(IntegrationTest):
    def test_host_false_publishes_no_values_of_the_host(self):
        collectd = self.start_collectd(plugin("Host false"))
        self.assertEqual(collectd.next_cycle().host, {})
        self.assertEqual(collectd.log_lines(NO_VALUES), [])

    def test_a_captured_tree_has_no_values_of_the_host(self):
        tree = ROOT / "tests/fixtures/proc"
        collectd = self.start_collectd(plugin(f'ProcRoot "{tree}"'))
        self.assertEqual(collectd.next_cycle().host, {})
        (line,) = collectd.log_lines(NO_VALUES)
        self.assertIn("does not show the host", line)

    def test_a_pid_namespace_has_no_values_of_the_host(self):
        need_root("makes a pid namespace")
        need_namespace(["--pid", "--fork", "--mount-proc"])
        collectd = self.start_collectd(
            ALL,
            wrapper=["sh", "-c", IN_A_NAMESPACE, "sh"],
        )
        self.assertEqual(collectd.next_cycle().host, {})
        (line,) = collectd.log_lines(NO_VALUES)
        self.assertIn("does not show the host", line)
