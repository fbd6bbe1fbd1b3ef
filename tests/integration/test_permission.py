"""A collectd without rights: what the kernel refuses is not known, and said.

The kernel lets an unprivileged reader have statm of everybody, but smaps_rollup
only of its own processes. Most of this needs root, to be somebody else.
"""

import math

from harness import (
    DEFAULT_NAMES,
    PLUGIN_SAYS,
    IntegrationTest,
    need_root,
    read_statm,
    sum_values,
    unprivileged_user,
)

CONFIG = """
    <Plugin smaps>
      Report "detail"
      Refresh "always"
      <Group "own">
        Comm "own@"
      </Group>
      <Group "foreign">
        Comm "foreign@"
      </Group>
      <Group "mixed">
        Comm "mixed@"
      </Group>
    </Plugin>
"""


class Unprivileged(IntegrationTest):
    def start_unprivileged(self):
        return self.start_collectd(CONFIG, user=unprivileged_user())

    def start_own(self, kind, **options):
        """Of the user that collectd runs as."""
        return self.start_shape(kind, user=unprivileged_user(), **options)

    def start_foreign(self, kind, **options):
        need_root("starts processes of two users")
        return self.start_shape(kind, **options)

    def test_own_processes_are_read(self):
        shape = self.start_own(
            "cow", name="own", mib=16, rewrite_mib=4, children=2
        )
        collectd = self.start_unprivileged()
        cycle = self.assert_sums_match(collectd, "own", shape.pids)
        self.assertEqual(cycle.counts("own"), (3, 3))
        self.assertEqual(cycle.value("own", "count-unreadable"), 0)
        self.assertEqual(cycle.value("own", "percent-coverage"), 100)
        self.assertEqual(collectd.log_lines(PLUGIN_SAYS), [])

    def test_values_of_others_are_not_known(self):
        shape = self.start_foreign("shm", name="foreign", mib=16, children=2)
        cycle = self.start_unprivileged().next_cycle()
        self.assert_all_nan(cycle, "foreign", [*DEFAULT_NAMES, "private_dirty"])
        self.assertEqual(cycle.value("foreign", "count-unreadable"), 3)
        self.assertEqual(cycle.value("foreign", "percent-coverage"), 0)
        self.assertTrue(math.isnan(cycle.value("foreign", "duration-age")))
        self.assert_statm_is_right(cycle, "foreign", shape.pids)
        self.assertEqual(cycle.value("", "count-denied"), 3)

    def test_one_unreadable_member_makes_the_group_unknown(self):
        own = self.start_own("anon", name="mixed", mib=4)
        foreign = self.start_foreign("anon", name="mixed", mib=4)
        cycle = self.start_unprivileged().next_cycle()
        self.assert_all_nan(cycle, "mixed")
        self.assertEqual(cycle.value("mixed", "count-unreadable"), 1)
        self.assert_statm_is_right(cycle, "mixed", own.pids + foreign.pids)
        coverage = cycle.value("mixed", "percent-coverage")
        self.assertTrue(0 < coverage < 100, coverage)

    def test_group_is_known_again_without_the_unreadable_member(self):
        own = self.start_own("anon", name="mixed", mib=4)
        foreign = self.start_foreign("anon", name="mixed", mib=4)
        collectd = self.start_unprivileged()
        self.assert_all_nan(collectd.next_cycle(), "mixed")
        foreign.stop()
        self.assert_sums_match(collectd, "mixed", own.pids)

    def test_other_groups_are_not_affected(self):
        own = self.start_own("anon", name="own", mib=4)
        self.start_foreign("anon", name="foreign", mib=4)
        collectd = self.start_unprivileged()
        self.assert_sums_match(collectd, "own", own.pids)
        self.assert_all_nan(collectd.next_cycle(), "foreign")

    def test_the_log_says_once_what_is_missing(self):
        self.start_foreign("anon", name="foreign", children=3)
        collectd = self.start_unprivileged()
        collectd.wait_cycles(10)
        # Nor does a newcomer bring another line.
        self.start_foreign("anon", name="foreign")
        cycle = collectd.next_cycle()
        self.assertEqual(cycle.value("foreign", "count-unreadable"), 5)
        lines = collectd.log_lines(PLUGIN_SAYS)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("CAP_SYS_PTRACE", lines[0])

    def test_memory_of_a_vfork_counts_once_in_statm_too(self):
        """The right to ask kcmp is missing as well."""
        shape = self.start_foreign("vfork", name="foreign", mib=16)
        cycle = self.start_unprivileged().next_cycle()
        self.assertEqual(
            cycle.memory("foreign", "resident"),
            read_statm(shape.root)["resident"],
        )
        self.assertEqual(cycle.counts("foreign"), (2, 2))

    def assert_statm_is_right(self, cycle, group, pids):
        statm = sum_values(read_statm(pid) for pid in pids)
        self.assertEqual(cycle.memory(group, "resident"), statm["resident"])
        self.assertEqual(
            cycle.memory(group, "resident_shared"), statm["shared"]
        )
        self.assertEqual(cycle.value(group, "ps_vm"), statm["size"])
        self.assertEqual(cycle.counts(group), (len(pids), len(pids)))
