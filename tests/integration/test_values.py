# SPDX-License-Identifier: MIT
"""Compares every value with what was allocated, and with the kernel's own
files.

Each shape is asked two questions. Is the number what the shape must have?
There, tolerances allow for what a process has besides what it allocates:
PRIVATE_SLACK for the pages of stack, heap and data that it has to itself (about
100 KiB, and the tables of a new mapping), and SHARED_SLACK for the program and
the libc that it maps with others (about 1.5 MiB). And is the number the sum of
what smaps_rollup says? There, nothing is allowed: the processes are idle.
"""

from harness import (
    DEFAULT_NAMES,
    KIB,
    MIB,
    ROLLUP_NAMES,
    IntegrationTest,
    count_threads,
    group,
    plugin,
    read_rollup,
    sum_rollups,
)

PRIVATE_SLACK = 512 * KIB
SHARED_SLACK = 4 * MIB
# Of the shared part PSS has a fraction.
PSS_SLACK = PRIVATE_SLACK + SHARED_SLACK // 4


def group_by_comm(name, *options):
    return plugin(
        'Refresh "always"', *options, group(name, f'Comm "{name}@"')
    )


class ValuesOfShapes(IntegrationTest):
    def measure(self, shape, options="", names=DEFAULT_NAMES):
        """The cycle in which the group "shaped" was as the kernel says."""
        collectd = self.start_collectd(group_by_comm("shaped", options))
        cycle = self.assert_sums_match(collectd, "shaped", shape.pids, names)
        threads = sum(count_threads(pid) for pid in shape.pids)
        self.assertEqual(
            cycle.counts("shaped"), (len(shape.pids), threads), "ps_count"
        )
        return cycle

    def assert_allocated(self, shape, *expected):
        """Measures it; expected are the MiB that it has allocated, in all."""
        cycle = self.measure(shape)
        slack = (PSS_SLACK, PRIVATE_SLACK, SHARED_SLACK, SHARED_SLACK, 0)
        for name, mib, most in zip(DEFAULT_NAMES, (*expected, 0), slack):
            found = cycle.memory("shaped", name)
            self.assert_near(found, mib * MIB, len(shape.pids) * most, name)

    def test_allocated_memory_is_measured(self):
        """Private memory is USS, also that of several processes; shared memory
        and a mapped file are in PSS once, and are USS if one alone maps them
        once; if it maps them twice, they seem shared.
        Of the 48 MiB that three processes see copy on write, two have rewritten
        12, which leaves the root's own 12 to the root alone."""
        for kind, options, expected in (
            ("anon", {"mib": 64}, (64, 64, 64, 0)),
            ("anon", {"mib": 16, "children": 3}, (64, 64, 64, 0)),
            ("shm", {"mib": 48, "children": 4}, (48, 0, 192, 192)),
            ("shm", {"mib": 32, "children": 1}, (32, 32, 32, 0)),
            ("cow", {"mib": 48, "rewrite_mib": 12, "children": 2},
             (48 + 2 * 12, 3 * 12, 3 * 48, 3 * 36)),
            ("file", {"mib": 32, "children": 3}, (32, 0, 96, 96)),
            ("twice", {"mib": 32}, (32, 0, 64, 64)),
        ):  # fmt: skip
            with self.subTest(kind, **options):
                shape = self.start_shape(kind, **options)
                self.assert_allocated(shape, *expected)
                shape.stop()

    def test_growth_shows_in_the_next_interval(self):
        shape = self.start_shape("anon", mib=8)
        collectd = self.start_collectd(group_by_comm("shaped"))
        before = self.assert_sums_match(collectd, "shaped", shape.pids)
        shape.grow(24)
        after = self.assert_sums_match(collectd, "shaped", shape.pids)
        grown = {
            name: after.memory("shaped", name) - before.memory("shaped", name)
            for name in ("pss", "uss", "rss")
        }
        for name, value in grown.items():
            self.assert_near(value, 24 * MIB, PRIVATE_SLACK, name)

    def test_plugin_counts_its_own_work(self):
        shape = self.start_shape("anon", children=2)
        cycle = self.measure(shape)
        for metric in ("count-matched", "count-rollup_reads"):
            self.assertEqual(cycle.value("", metric), len(shape.pids), metric)
        self.assertEqual(cycle.value("", "count-groups"), 1)
        self.assertGreater(
            cycle.value("", "count-processes"), len(shape.pids)
        )
        for metric in (
            "count-deferred",
            "count-overdue",
            "count-denied",
            "count-hung",
            "count-unidentified",
            "count-groups_refused",
        ):
            self.assertEqual(cycle.value("", metric), 0, metric)
        seconds = [
            cycle.value("", f"duration-{name}")
            for name in ("longest_read", "rollup", "cycle")
        ]
        self.assertEqual(seconds, sorted(seconds))
        self.assertGreater(seconds[0], 0)
        # All was read.
        self.assertEqual(cycle.value("shaped", "percent-coverage"), 100)
        for metric in "duration-age", "count-unreadable", "memory-pss_error":
            self.assertEqual(cycle.value("shaped", metric), 0, metric)


class ValuesInDetail(IntegrationTest):
    def measure(self, shape):
        config = group_by_comm("shaped", 'Report "detail"')
        return self.assert_sums_match(
            self.start_collectd(config),
            "shaped",
            shape.pids,
            list(sum_rollups(shape.pids)),
        )

    def test_every_field_of_the_kernel_is_reported(self):
        shape = self.start_shape("cow", mib=16, rewrite_mib=4)
        known = sum_rollups(shape.pids)
        cycle = self.measure(shape)
        # And no field that this kernel does not have.
        for name in ROLLUP_NAMES:
            reported = f"memory-{name}" in cycle.groups["shaped"]
            self.assertEqual(reported, name in known, name)
        self.assertEqual(cycle.memory("shaped", "uss_error"), 0)

    def test_huge_pages_are_reported(self):
        shape = self.start_shape("huge", mib=32)
        huge = read_rollup(shape.root).get("anon_huge_pages", 0)
        if huge == 0:
            self.skipTest("the kernel has given no huge pages")
        cycle = self.measure(shape)
        self.assertEqual(cycle.memory("shaped", "anon_huge_pages"), huge)
        # In fragmented memory some pages stay small; PSS has them still.
        self.assertLessEqual(huge, 32 * MIB)
        self.assert_near(
            cycle.memory("shaped", "uss"), 32 * MIB, PRIVATE_SLACK, "uss"
        )
