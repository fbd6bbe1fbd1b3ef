# SPDX-License-Identifier: MIT
"""The life of processes between birth and death, and their names."""

import os
import re
import shutil
import time

from harness import (
    DEFAULT_NAMES,
    KIB,
    MIB,
    TAG,
    IntegrationTest,
    count_threads,
    group,
    need_root,
    plugin,
    read_rollup,
    stage,
)

# What a process has besides what it allocates; see test_values.py.
PRIVATE_SLACK = 512 * KIB


def groups(*lines):
    """A configuration of one group for each (name, selector …)."""
    # An estimate would not follow the processes of the machine that come and
    # go, all of which map libc.
    return plugin('Refresh "always"', *(group(*line) for line in lines))


class Deaths(IntegrationTest):
    def test_zombie_is_not_counted(self):
        shape = self.start_shape("zombie", name="parent", child_name="dead")
        collectd = self.start_collectd(
            groups(("parent", 'Comm "parent@"'), ("dead", 'Comm "dead@"'))
        )
        cycle = self.assert_sums_match(collectd, "parent", [shape.root])
        self.assertEqual(cycle.counts("parent"), (1, 1))
        self.assertEqual(cycle.counts("dead"), (0, 0))
        self.assertEqual(cycle.memory("dead", "pss"), 0)

    def test_dead_main_thread_leaves_the_memory_counted(self):
        shape = self.start_shape("zombie-leader", name="headless", mib=32)
        (leader,) = shape.pids
        living = [int(t) for t in os.listdir(f"/proc/{leader}/task")]
        living.remove(leader)
        collectd = self.start_collectd(groups(("headless", 'Comm "headless@"')))
        cycle = self.assert_sums_match(
            collectd, "headless", [f"{leader}/task/{living[0]}"]
        )
        self.assert_near(
            cycle.memory("headless", "uss"), 32 * MIB, PRIVATE_SLACK, "uss"
        )
        self.assertEqual(
            cycle.counts("headless"), (1, count_threads(leader))
        )

    def test_group_of_a_process_that_dies(self):
        """A group with a fixed name has zeros, and a group of a template ends.
        """
        for name, found in ("fixed", "fixed"), ("t-%{comm}", "t-mortal"):
            with self.subTest(name):
                shape = self.start_shape("anon", name="mortal", mib=8)
                collectd = self.start_collectd(groups((name, 'Comm "mortal@"')))
                self.assert_sums_match(collectd, found, shape.pids)
                shape.stop()
                cycle = collectd.next_cycle()
                self.assertEqual(found in cycle, name == "fixed")
                if found in cycle:
                    self.assertEqual(cycle.counts(found), (0, 0))
                    for value in DEFAULT_NAMES:
                        self.assertEqual(cycle.memory(found, value), 0, value)
                again = self.start_shape("anon", name="mortal", mib=8)
                self.assert_sums_match(collectd, found, again.pids)
                again.stop()


class SharedAddressSpaces(IntegrationTest):
    def test_the_memory_counts_once(self):
        """A process and two others in its address space have one memory."""
        shape = self.start_shape("clonevm", name="sharing", mib=32, children=2)
        collectd = self.start_collectd(groups(("sharing", 'Comm "sharing@"')))
        cycle = self.assert_sums_match(collectd, "sharing", [shape.root])
        # They are several processes none the less.
        self.assertEqual(cycle.counts("sharing"), (3, 3))

    def test_shared_memory_stays_with_the_parents_group(self):
        """However the child is called: the groups add up."""
        shape = self.start_shape(
            "clonevm", name="owner", child_name="tenant", mib=32, children=1
        )
        collectd = self.start_collectd(
            groups(("owner", 'Comm "owner@"'), ("tenant", 'Comm "tenant@"'))
        )
        cycle = self.assert_sums_match(collectd, "owner", [shape.root])
        self.assertEqual(cycle.memory("tenant", "pss"), 0)
        self.assertEqual(cycle.counts("tenant"), (1, 1))


class Execs(IntegrationTest):
    def test_child_counts_with_its_parent_until_it_execs(self):
        shape = self.start_shape(
            "forkexec", name="before", child_name="after", mib=32
        )
        parent, child = shape.pids
        collectd = self.start_collectd(
            groups(("before", 'Comm "before@"'), ("after", 'Comm "after@"'))
        )
        cycle = self.assert_sums_match(collectd, "before", [parent, child])
        self.assertEqual(cycle.counts("before"), (2, 2))
        self.assertEqual(cycle.counts("after"), (0, 0))
        # Fork has copied nothing.
        self.assert_near(
            cycle.memory("before", "pss"), 32 * MIB, 4 * MIB, "pss"
        )
        shape.command("go")
        cycle = self.assert_sums_match(collectd, "before", [parent])
        self.assertEqual(cycle.counts("before"), (1, 1))
        cycle = self.assert_sums_match(collectd, "after", [child])
        self.assertEqual(cycle.counts("after"), (1, 1))

    def test_deleted_program_is_selected_by_its_path(self):
        path = stage().new_directory() / "program"
        shutil.copy(stage().shape, path)
        shape = self.start_shape("anon", program=path, mib=4)
        path.unlink()
        self.assertEqual(
            os.readlink(f"/proc/{shape.root}/exe"), f"{path} (deleted)"
        )
        collectd = self.start_collectd(
            groups(
                ("exact", f'Executable "{path}"', "Continue true"),
                ("regex", f'ExecutableMatch "^{re.escape(str(path))}$"'),
            )
        )
        for name in "exact", "regex":  # The supervisor is one more.
            self.assert_sums_match(collectd, name, [shape.pid, *shape.pids])


# Only the processes with the names below have this in their command line.
HOSTILE = f"hostile{TAG}"

# comm, and a line that selects it. What is no text in a configuration is
# matched by the '.' of a regular expression or the '?' of a glob.
HOSTILE_NAMES = (
    (b"a) R 1 1 (b", 'Comm "a) R 1 1 (b"'),
    (b") Z 0 0 0", 'CommMatch "^[)] Z 0 0 0$"'),
    (b"new\nline", 'CommMatch "^new.line$"'),
    (b"\xff\xfe", 'Comm "\udcff\udcfe"'),
    (b"\xc3", 'Comm "\udcc3"'),
    (b"", 'CommMatch "^$"'),
    (b" ", 'Comm " "'),
    (b"a/b", 'Comm "a/b"'),
    (b"..", 'Comm ".."'),
    (b"\x1b[31mred", 'Comm "?[[]31mred"'),
    (b'"quoted"', 'Comm "\\"quoted\\""'),
    (b"%{user}", 'Comm "%{user}"'),
    (b"123456789012345", 'Comm "123456789012345"'),
)


class Names(IntegrationTest):
    def start_hostile_shapes(self):
        """Starts a process for each name; each allocates another amount."""
        return [
            self.start_shape(
                "named",
                name_hex=name.hex(),
                argv_hex=HOSTILE.encode().hex(),
                mib=i,
            )
            for i, (name, _) in enumerate(HOSTILE_NAMES, 1)
        ]

    def test_hostile_names_are_selected(self):
        shapes = self.start_hostile_shapes()
        collectd = self.start_collectd(
            groups(
                *(
                    (f"row-{i}", 'CommandLine "hostile@"', selector)
                    for i, (_, selector) in enumerate(HOSTILE_NAMES)
                )
            )
        )
        cycle = collectd.next_cycle()
        for i, (name, _) in enumerate(HOSTILE_NAMES):
            with self.subTest(name):
                self.assertEqual(cycle.counts(f"row-{i}"), (1, 1))
                self.assertEqual(
                    cycle.memory(f"row-{i}", "uss"),
                    read_rollup(shapes[i].root)["uss"],
                )

    def test_hostile_names_become_safe_identifiers(self):
        shapes = self.start_hostile_shapes()
        collectd = self.start_collectd(
            groups(
                ("n-%{comm}", 'CommandLine "hostile@"'),
                ("nameless", 'CommandLine "hostile@"'),
            )
        )
        cycle = collectd.next_cycle()
        found = {
            group: cycle.memory(group, "uss") for group in cycle.groups if group
        }
        for group in found:
            self.assertRegex(group, r"\A[ -.0-~]{1,127}\Z")
        # Each has its own group, and each group its own process.
        expected = [read_rollup(shape.root)["uss"] for shape in shapes]
        self.assertEqual(sorted(found.values()), sorted(expected))
        empty = [name for name, _ in HOSTILE_NAMES].index(b"")
        self.assertEqual(found["nameless"], expected[empty], "empty comm")

class PidReuse(IntegrationTest):
    def test_process_with_a_reused_pid_is_another_one(self):
        """The kernel lets us choose the pid of the next process."""
        need_root("sets the next pid")
        old = self.start_shape("anon", name="old", mib=16)
        (pid,) = old.pids
        collectd = self.start_collectd(
            groups(("old", 'Comm "old@"'), ("new", 'Comm "new@"'))
        )
        self.assert_sums_match(collectd, "old", [pid])
        old.stop()
        new = self.start_with_pid(pid)
        self.assert_sums_match(collectd, "new", [new.root])
        self.assertEqual(collectd.next_cycle().counts("old"), (0, 0))

    def start_with_pid(self, pid):
        """The supervisor gets the pid before, the root this one, if no other
        process comes between; that may take some tries."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                with open("/proc/sys/kernel/ns_last_pid", "w") as file:
                    file.write(str(pid - 2))
            except OSError as error:
                self.skipTest(f"ns_last_pid: {error.strerror}")
            shape = self.start_shape("anon", name="new", mib=4)
            if shape.root == pid:
                return shape
            shape.stop()
        self.skipTest("the machine is too busy to have a pid come again")
        return None
