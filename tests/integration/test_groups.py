# SPDX-License-Identifier: MIT
"""The group of a process by what the host knows: all its processes, its users,
its control groups."""

import os
import pwd
import re
from pathlib import Path

import harness
from harness import (
    IntegrationTest,
    group,
    need_readable,
    need_root,
    unprivileged_user,
)


def plugin(*options):
    # An estimate would not follow the processes of the machine that come and
    # go, all of which map libc.
    return harness.plugin('Refresh "always"', *options)


class Rules(IntegrationTest):
    def test_other_takes_the_processes_that_are_left(self):
        self.start_shape("anon", name="gr-a", children=2)
        collectd = self.start_collectd(
            plugin('Process "gr-a@"', 'Other "the rest"')
        )
        cycle = collectd.next_cycle()
        counts = {
            name: cycle.counts(name)[0] for name in cycle.groups if name
        }
        self.assertEqual(set(counts), {"gr-a", "the rest"})
        self.assertEqual(counts["gr-a"], 3)
        # All that have memory, and each once.
        self.assertEqual(
            sum(counts.values()), cycle.value("", "count-processes")
        )
        self.assertEqual(
            sum(counts.values()), cycle.value("", "count-matched")
        )

    def test_user_goes_by_name_and_by_number(self):
        need_root("becomes another user")
        user = unprivileged_user()
        name = pwd.getpwuid(user[0]).pw_name
        shape = self.start_shape("anon", user=user, name="gr-a")
        need_readable(shape.root)
        view = ('Comm "gr-a@"', "Continue true")
        collectd = self.start_collectd(
            plugin(
                group("name", f'User "{name}"', *view),
                group("number", f'User "{user[0]}"', *view),
                group("by-%{user}", f'UserMatch "^{name}$"', 'Comm "gr-a@"'),
            )
        )
        for found in ("name", "number", f"by-{name}"):
            with self.subTest(found):
                self.assert_sums_match(collectd, found, shape.pids)


def cgroup_root():
    """Returns the mount point of systemd's hierarchy, if there is one: the
    named one, or the unified one."""
    mounts = Path("/proc/mounts").read_text().splitlines()
    named, unified = r"\S+ (\S+) cgroup \S*name=systemd", r"\S+ (\S+) cgroup2 "
    for pattern in (named, unified):
        for line in mounts:
            found = re.match(pattern, line)
            if found:
                return Path(found.group(1))
    return None


class Cgroups(IntegrationTest):
    """Processes in cgroups such as systemd and the container runtimes make."""

    def setUp(self):
        need_root("makes a cgroup")
        self.root = cgroup_root()
        if self.root is None:
            self.skipTest("no cgroup hierarchy is mounted")

    def put(self, shape, path):
        """Moves the processes to a cgroup made for them."""
        made = self.root
        try:
            for name in path.split("/"):
                made = made / name
                if not made.exists():
                    made.mkdir()
                    self.addCleanup(made.rmdir)
            for pid in shape.pids:
                (made / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            self.skipTest(f"cgroup {made}: {error.strerror}")
        # Before its directory goes.
        self.addCleanup(shape.stop)

    def test_processes_are_grouped_by_unit_slice_and_container(self):
        tag = f"smapstest{os.getpid()}"
        container = "0123456789abcdef" * 4
        view = "Continue true"
        service = self.start_shape("anon", mib=4)
        self.put(service, f"{tag}.slice/{tag}-a.service")
        scope = self.start_shape("anon", mib=8)
        self.put(scope, f"{tag}.slice/docker-{container}.scope")
        collectd = self.start_collectd(
            plugin(
                group("slice-%{slice}", f'Slice "{tag}.slice"', view),
                group("in-%{container}", 'Container "0123*"', view),
                group("path", f'CgroupMatch "/{tag}[.]slice/"', view),
                group("%{unit}", f'Unit "{tag}-*.service"'),
            )
        )
        both = service.pids + scope.pids
        for name, pids in (
            (f"slice-{tag}.slice", both),
            (f"in-{container}", scope.pids),
            ("path", both),
            (f"{tag}-a.service", service.pids),
        ):
            with self.subTest(name):
                self.assert_sums_match(collectd, name, pids)
