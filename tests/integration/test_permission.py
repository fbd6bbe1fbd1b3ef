# SPDX-License-Identifier: MIT
"""A collectd without rights: what the kernel refuses is not known, and said.

The kernel lets an unprivileged reader have statm of everybody, but smaps_rollup
only of its own processes. Most of this needs root, to be somebody else.
"""

import math
import os
import re
import shutil
import subprocess
import unittest

from harness import (
    DEFAULT_NAMES,
    MIB,
    PLUGIN_SAYS,
    IntegrationTest,
    group,
    need_program,
    need_root,
    plugin,
    read_meminfo,
    read_statm,
    release,
    setpriv,
    stage,
    sum_rollups,
    sum_values,
    unprivileged_user,
)

CAP_SYS_PTRACE = 19
CAP_PERFMON = 38

CONFIG = plugin(
    'Report "detail"',
    'Refresh "always"',
    *(group(name, f'Comm "{name}@"') for name in ("own", "foreign", "mixed")),
)
# With a rule that needs to know which program a process runs.
PROGRAM = group("program", 'Executable "*/shape"', 'Comm "program@"')
WITH_PROGRAM = CONFIG + "\n" + plugin(PROGRAM)


def read_host_mapped():
    """All memory that any process of the host maps, in bytes."""
    fields = read_meminfo()
    return fields["AnonPages"] + fields["Mapped"]


class Permissions(IntegrationTest):
    def assert_statm_is_right(self, cycle, group, pids):
        statm = sum_values(read_statm(pid) for pid in pids)
        self.assertEqual(cycle.memory(group, "resident"), statm["resident"])
        self.assertEqual(
            cycle.memory(group, "resident_shared"), statm["shared"]
        )
        self.assertEqual(cycle.value(group, "ps_vm"), statm["size"])
        self.assertEqual(cycle.counts(group), (len(pids), len(pids)))

    def assert_rss_is_of_statm(self, cycle, group):
        self.assertEqual(
            cycle.memory(group, "rss"), cycle.memory(group, "resident")
        )

    def assert_error_holds(self, cycle, group, truth):
        for name in "pss", "uss":
            error = cycle.memory(group, f"{name}_error")
            value = cycle.memory(group, name)
            self.assert_near(value, truth[name], error, name)


class Unprivileged(Permissions):
    def start_unprivileged(self):
        return self.start_collectd(CONFIG, user=unprivileged_user())

    def start_own(self, kind, **options):
        """Processes of the user that collectd runs as."""
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
        self.assert_unread(cycle, "foreign", [*DEFAULT_NAMES, "private_dirty"])
        self.assert_all_nan(cycle, "foreign", ["pss_error", "uss_error"])
        self.assert_rss_is_of_statm(cycle, "foreign")
        self.assertEqual(cycle.value("foreign", "count-unreadable"), 3)
        self.assertEqual(cycle.value("foreign", "percent-coverage"), 0)
        self.assertTrue(math.isnan(cycle.value("foreign", "duration-age")))
        self.assert_statm_is_right(cycle, "foreign", shape.pids)
        self.assertEqual(cycle.value("", "count-denied"), 3)

    def assert_error_is_of_guess(self, cycle, shape):
        """All that it can differ by, to nothing or to all of its memory, and
        nothing of what was read."""
        error = cycle.memory("mixed", "pss_error")
        resident = read_statm(shape.root)["resident"]
        self.assertGreaterEqual(error, resident / 2)
        self.assertLessEqual(error, resident)

    def test_an_unreadable_member_is_guessed_with_its_error(self):
        own = self.start_own("anon", name="mixed", mib=4)
        foreign = self.start_foreign("anon", name="mixed", mib=12)
        cycle = self.start_unprivileged().next_cycle()
        pids = own.pids + foreign.pids
        truth = sum_rollups(pids)
        self.assert_error_holds(cycle, "mixed", truth)
        self.assert_near(
            cycle.memory("mixed", "pss"), truth["pss"], 2 * MIB, "pss"
        )
        self.assert_near(
            cycle.memory("mixed", "rss"), truth["rss"], 0.01 * MIB, "rss"
        )
        self.assert_invariants(cycle, "mixed")
        self.assert_error_is_of_guess(cycle, foreign)
        self.assertEqual(cycle.value("mixed", "count-unreadable"), 1)
        self.assertEqual(cycle.value("mixed", "duration-age"), 0)
        self.assert_statm_is_right(cycle, "mixed", pids)
        coverage = cycle.value("mixed", "percent-coverage")
        self.assertTrue(10 < coverage < 50, coverage)

    def test_program_hides_from_its_own_user(self):
        """The kernel takes a program that its user may not read for one with
        secrets (dumpable of prctl(2)), and shows its memory to nobody."""
        program = stage().new_directory() / "secret"
        shutil.copy(stage().shape, program)
        program.chmod(0o111)
        own = self.start_own("shm", name="mixed", mib=16, children=20)
        hidden = self.start_own("anon", name="mixed", mib=4, program=program)
        cycle = self.start_unprivileged().next_cycle()
        truth = sum_rollups(own.pids)
        self.assertEqual(cycle.counts("mixed"), (22, 22))
        self.assertEqual(cycle.value("mixed", "count-unreadable"), 1)
        self.assert_error_is_of_guess(cycle, hidden)
        self.assert_near(
            cycle.memory("mixed", "pss"),
            truth["pss"] + 4 * MIB,
            2 * MIB,
            "pss",
        )
        self.assertGreater(cycle.value("mixed", "percent-coverage"), 95)

    def test_the_error_ends_with_the_unreadable_member(self):
        own = self.start_own("anon", name="mixed", mib=4)
        foreign = self.start_foreign("anon", name="mixed", mib=4)
        collectd = self.start_unprivileged()
        self.assertGreater(
            collectd.next_cycle().memory("mixed", "pss_error"), 4 * MIB
        )
        foreign.stop()
        cycle = self.assert_sums_match(collectd, "mixed", own.pids)
        self.assertEqual(cycle.memory("mixed", "pss_error"), 0)

    def test_all_guesses_fit_into_the_memory_of_the_host(self):
        """A hundred processes share 64 MiB. The only one that can be read
        shares nothing, and is the model for the others."""
        self.start_own("anon", name="own", mib=4)
        self.start_foreign(
            "cow", name="foreign", mib=64, rewrite_mib=0, children=99
        )
        collectd = self.start_collectd(
            plugin('Refresh "always"', group("all", 'Comm "*"')),
            user=unprivileged_user(),
        )
        seen = [read_host_mapped()]
        cycle = collectd.next_cycle(lambda: seen.append(read_host_mapped()))
        most = max(seen)
        self.assertGreaterEqual(cycle.value("all", "count-unreadable"), 100)
        self.assertGreater(cycle.memory("all", "rss"), 6400 * MIB)
        if cycle.memory("all", "rss") < 1.5 * most:
            self.skipTest("this host has too much memory outside of our /proc")
        self.assertLess(cycle.memory("all", "pss"), 1.02 * most)
        self.assertLess(cycle.memory("all", "pss_error"), 1.1 * most)
        self.assert_invariants(cycle, "all")


# ---- capabilities, really dropped ----


def need_tool(name):
    need_program(name, "util-linux")


def need_capability(number, name):
    """Root of a container may not have it to give."""
    need_root("gives and takes capabilities")
    need_tool("setpriv")
    with open("/proc/self/status", encoding="ascii") as status:
        effective = int(re.search(r"CapEff:\t(\w+)", status.read())[1], 16)
    if not effective >> number & 1:
        raise unittest.SkipTest(f"needs {name}, to hand it on")


def can_trace(pid):
    """Process 1 of a container may be of a user namespace above ours."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except PermissionError:
        return False
    return True


class Privileges(Permissions):
    def start_capable(self, *capabilities, user, config=CONFIG):
        wrapper = setpriv(*capabilities, user=user)
        return self.start_collectd(config, user=user, wrapper=wrapper)

    def check_nothing_is_missed(self, collectd):
        if can_trace(1):
            self.assertEqual(collectd.log_lines(PLUGIN_SAYS), [])
            return
        for line in collectd.log_lines(PLUGIN_SAYS):
            self.assertIn("CAP_SYS_PTRACE is there", line)

    def one_line(self, collectd):
        lines = collectd.log_lines(PLUGIN_SAYS)
        self.assertEqual(len(lines), 1, lines)
        return lines[0]


class Capabilities(Privileges):
    def test_root_with_an_empty_bounding_set(self):
        """As collectd's own unit has it."""
        need_root("takes capabilities from root")
        need_tool("setpriv")
        foreign = self.start_shape("shm", name="foreign", mib=8, children=1)
        own = self.start_shape("anon", name="own", user=unprivileged_user())
        collectd = self.start_capable(user=None)
        collectd.wait_cycles(5)
        cycle = collectd.next_cycle()
        for group, shape in ("foreign", foreign), ("own", own):
            self.assert_unread(cycle, group)
            self.assert_statm_is_right(cycle, group, shape.pids)
        self.assertEqual(cycle.value("foreign", "count-unreadable"), 2)
        line = self.one_line(collectd)
        self.assertIn("grant collectd CAP_SYS_PTRACE", line)
        self.assertIn("CapabilityBoundingSet=CAP_SYS_PTRACE", line)
        self.assertNotIn("hidepid", line)

    def test_nobody_with_sys_ptrace_knows_everything(self):
        need_capability(CAP_SYS_PTRACE, "CAP_SYS_PTRACE")
        foreign = self.start_shape(
            "cow", name="foreign", mib=8, rewrite_mib=2, children=2
        )
        vfork = self.start_shape("vfork", name="mixed", mib=8)
        program = self.start_shape("anon", name="program", mib=2)
        collectd = self.start_capable(
            CAP_SYS_PTRACE, user=unprivileged_user(), config=WITH_PROGRAM
        )
        self.assert_sums_match(collectd, "foreign", foreign.pids)
        self.assert_sums_match(collectd, "program", program.pids)
        cycle = self.assert_sums_match(collectd, "mixed", [vfork.root])
        self.assertEqual(cycle.counts("mixed"), (2, 2))
        self.assertEqual(cycle.value("foreign", "count-unreadable"), 0)
        self.check_nothing_is_missed(collectd)

    def test_nobody_with_perfmon_lacks_only_the_programs(self):
        need_capability(CAP_PERFMON, "CAP_PERFMON")
        if release() < (6, 15):
            self.skipTest("needs Linux 6.15, where CAP_PERFMON opens smaps")
        foreign = self.start_shape("shm", name="foreign", mib=8, children=1)
        self.start_shape("anon", name="program")
        collectd = self.start_capable(
            CAP_PERFMON, user=unprivileged_user(), config=WITH_PROGRAM
        )
        cycle = self.assert_sums_match(collectd, "foreign", foreign.pids)
        self.assertEqual(cycle.value("foreign", "count-unreadable"), 0)
        # Not a zero: that would say that it is gone.
        self.assertTrue(all(map(math.isnan, cycle.counts("program"))))
        self.assertEqual(cycle.counts("mixed"), (0, 0))
        line = self.one_line(collectd)
        self.assertRegex(line, r"refuses to show .*, exe: [1-9]")
        self.assertIn("grant collectd CAP_SYS_PTRACE", line)

    def test_root_of_a_user_namespace(self):
        """It has all capabilities there, and none over those outside."""
        need_root("the stage is root's")
        need_tool("unshare")
        wrapper = ["unshare", "--user", "--map-root-user"]
        try:
            subprocess.run(
                [*wrapper, "true"], check=True, stderr=subprocess.DEVNULL
            )
        except subprocess.CalledProcessError:
            self.skipTest("needs user namespaces, which are not allowed here")
        foreign = self.start_shape("anon", name="foreign", mib=4)
        collectd = self.start_collectd(CONFIG, wrapper=wrapper)
        cycle = collectd.next_cycle()
        self.assert_unread(cycle, "foreign")
        self.assert_statm_is_right(cycle, "foreign", foreign.pids)
        self.assertIn("user namespace", self.one_line(collectd))


class HidePid(Privileges):
    """A mount of proc that hides: in a mount namespace of its own, with the
    pids of all. (Before 5.8 all mounts of a pid namespace have the same
    options.)"""

    def start_hidden(self, option, *capabilities, config=CONFIG):
        need_capability(CAP_SYS_PTRACE, "CAP_SYS_PTRACE")
        need_tool("unshare")
        if release() < (5, 8):
            self.skipTest("needs Linux 5.8, for a proc with its own options")
        user = unprivileged_user()
        mount = f'mount -t proc -o {option} proc /proc && exec "$@"'
        wrapper = ["unshare", "--mount", "sh", "-c", mount, "sh"]
        works = subprocess.run(
            [*wrapper, "true"], stderr=subprocess.PIPE, text=True, check=False
        )
        if works.returncode:
            self.skipTest(f"needs to mount proc: {works.stderr.strip()}")
        wrapper += setpriv(*capabilities, user=user)
        return self.start_collectd(config, user=user, wrapper=wrapper)

    def start_two(self):
        own = self.start_shape(
            "anon", name="own", mib=4, user=unprivileged_user()
        )
        return own, self.start_shape("anon", name="foreign", mib=4)

    def test_others_are_hidden(self):
        """Refused, invisible, and visible only if they may be traced."""
        own, _ = self.start_two()
        for option in "hidepid=1", "hidepid=2", "hidepid=4":
            with self.subTest(option=option):
                collectd = self.start_hidden(option)
                cycle = self.assert_sums_match(collectd, "own", own.pids)
                self.assertEqual(cycle.counts("own"), (1, 1))
                self.assert_all_nan(cycle, "foreign", [*DEFAULT_NAMES, "resident"])
                self.assertTrue(all(map(math.isnan, cycle.counts("foreign"))))
                line = self.one_line(collectd)
                self.assertIn("grant collectd CAP_SYS_PTRACE", line)
                self.assertEqual("hidepid" in line, option != "hidepid=1")

    def test_sys_ptrace_sees_through_each(self):
        own, foreign = self.start_two()
        for option in "hidepid=1", "hidepid=2", "hidepid=4":
            with self.subTest(option=option):
                collectd = self.start_hidden(option, CAP_SYS_PTRACE)
                self.assert_sums_match(collectd, "foreign", foreign.pids)
                cycle = self.assert_sums_match(collectd, "own", own.pids)
                if can_trace(1):
                    self.assertEqual(cycle.counts("mixed"), (0, 0))
                self.check_nothing_is_missed(collectd)

    def test_member_of_the_group_that_may_look(self):
        own, foreign = self.start_two()
        _, gid = unprivileged_user()
        collectd = self.start_hidden(f"hidepid=2,gid={gid}")
        cycle = self.assert_sums_match(collectd, "own", own.pids)
        self.assert_unread(cycle, "foreign")
        self.assert_statm_is_right(cycle, "foreign", foreign.pids)
        self.assertEqual(cycle.counts("mixed"), (0, 0))
        self.assertRegex(self.one_line(collectd), "smaps_rollup: [1-9]")
