# SPDX-License-Identifier: MIT
"""A collectd that lacks rights: what it cannot read is unknown, the rest is
right, and one line in the log says why.

What can be read is asked of the kernel, by a reader in a unit with the same
settings.
"""

import json

from daemon import CONTRIB, HOME, run
from experiment import Experiment
from kernel import release

REFUSED = r"grant collectd CAP_SYS_PTRACE.* refuses to show"
# From here on CAP_PERFMON opens smaps_rollup.
PERFMON = (6, 15)


def settings(capability, user=""):
    return (
        f"CapabilityBoundingSet={capability}\n"
        f"AmbientCapabilities={capability}\n{user}"
    )


# Redis is not: it has a user namespace of its own (PrivateUsers=), over which
# root has power without any capability.
ORDINARY = "nginx.service"
# Our own processes come and go, and collectd may read itself.
MOVING = {"vm-agent.service", "collectd.service"}

# RRDtool's files are root's: that plugin complains and is of no concern here.
DYNAMIC = (
    "DynamicUser=yes\nExecStartPre=\nExecStart=\n"
    "ExecStart=/usr/sbin/collectd -P /dev/shm/collectd-vm.pid\n"
)


def read_with(text):
    """{group: [processes, unreadable]} as such a unit sees it."""
    wanted = [
        f"--property={line}"
        for line in text.splitlines()
        if line and not line.startswith(("[", "#", "Exec"))
    ]
    copies = "/usr/local/lib/vm"
    run("install", "-D", "-m", "644", "-t", copies,
        HOME / "groups.py", HOME / "kernel.py")
    out = run(
        "systemd-run", "--quiet", "--collect", "--pipe", "--wait",
        "--unit=reader", *wanted, "python3", "-B", f"{copies}/groups.py",
    )[1]
    groups = json.loads(out.strip().splitlines()[-1])
    groups.pop("reader.service", None)
    return groups


class Rights(Experiment):
    def start_with(self, text):
        cycle = self.start_daemon(drop_in="[Service]\n" + text)
        return cycle, read_with(text)

    def assert_as_refused(self, cycle, seen):
        """Exactly those groups are known of which a member can be read."""
        refused = {g for g, (_, unreadable) in seen.items() if unreadable}
        for group in set(seen) & cycle.all_groups() - MOVING:
            processes, unreadable = seen[group]
            if unreadable == processes:
                self.assert_unknown(cycle, group)
            else:
                self.assertTrue(cycle.is_known(group), group)
            if unreadable == 0:
                continue
            self.assertEqual(
                cycle.value(group, "count-unreadable"), unreadable, group
            )
        return refused

    def assert_all_known(self, cycle, seen):
        self.assertEqual(self.assert_as_refused(cycle, seen), set())
        self.assert_matches()
        self.assert_quiet()

    def assert_most_refused(self, cycle, seen):
        refused = self.assert_as_refused(cycle, seen)
        self.assertIn(ORDINARY, refused)
        self.assert_quiet([REFUSED])

    def hide_processes(self, mode):
        self.addCleanup(run, "mount", "-o", "remount,hidepid=0", "/proc")
        status, text = run(
            "mount", "-o", f"remount,hidepid={mode}", "/proc", check=False
        )
        if status != 0:
            self.skipTest(f"this kernel has no hidepid={mode}: {text.strip()}")

    # -- capabilities --

    def test_shipped_drop_in(self):
        path = CONTRIB / "systemd/collectd.service.d/smaps.conf"
        self.start_daemon(drop_in=path.read_text())
        self.assert_matches()
        self.assert_quiet()

    def test_sys_ptrace_alone(self):
        self.assert_all_known(*self.start_with(settings("CAP_SYS_PTRACE")))

    def test_perfmon_alone(self):
        cycle, seen = self.start_with(settings("CAP_PERFMON"))
        if release() >= PERFMON:
            self.assert_as_refused(cycle, seen)
            self.assertTrue(cycle.is_known(ORDINARY))
            self.assert_matches(only=[ORDINARY])
        else:
            self.assert_most_refused(cycle, seen)

    def test_no_capability(self):
        self.assert_most_refused(*self.start_with("CapabilityBoundingSet=\n"))

    # -- another user --

    def test_dynamic_user_with_sys_ptrace(self):
        self.assert_all_known(
            *self.start_with(settings("CAP_SYS_PTRACE", DYNAMIC))
        )

    def test_dynamic_user_without_capability(self):
        self.assert_most_refused(*self.start_with(settings("", DYNAMIC)))

    # -- hidepid --

    def test_hidepid_does_not_hide_from_sys_ptrace(self):
        for mode in (1, 2):
            with self.subTest(mode=mode):
                self.hide_processes(mode)
                self.start_daemon()
                self.assert_matches()
                self.assert_quiet()

    def test_hidepid_hides_from_perfmon(self):
        self.hide_processes(2)
        self.assert_hidden()

    def test_ptraceable_hides_from_perfmon(self):
        self.hide_processes("ptraceable")
        self.assert_hidden()

    def assert_hidden(self):
        cycle, seen = self.start_with(settings("CAP_PERFMON", DYNAMIC))
        self.assertNotIn(ORDINARY, seen)
        self.assertNotIn(ORDINARY, cycle)
        self.assertGreater(cycle.own("count-groups"), 0)
        self.assert_quiet([
            r"hidepid.* hides the processes of other users",
            r"no values of the host .* hidepid is in force",
        ])
