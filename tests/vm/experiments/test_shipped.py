# SPDX-License-Identifier: MIT
"""The package beside the distribution's collectd, as a user installs it."""

import re
from pathlib import Path

import daemon
from daemon import HOME, run
from experiment import Experiment, compare
from groups import Sample
from kernel import KIB
from systemd import running_services

DEFAULT_NAMES = {
    "memory-pss",
    "memory-uss",
    "memory-rss",
    "memory-shared",
    "memory-swap",
    "memory-pss_error",
    "memory-freed",
    "memory-freed_error",
    "ps_count",
    "percent-coverage",
    "duration-age",
    "count-unreadable",
    "uptime",
    "gauge-growth",
    "duration-until_limit",
}
# Of a group that is a whole control group.
CGROUP_NAMES = {
    "memory-cgroup",
    "memory-cgroup_limit",
    "percent-cgroup_limit",
    "count-oom_kill",
}


def list_files(package):
    paths = map(Path, run("dpkg", "-L", package)[1].split("\n"))
    return [path for path in paths if path.is_file()]


class AsShipped(Experiment):
    """The package is installed, and there are no options."""

    options = ""
    interval = None
    tolerance = 0.01

    def setUp(self):
        daemon.configure()
        if not daemon.is_installed():
            daemon.install()
        daemon.restart()
        self.first = self.await_names()

    def test_every_running_service_has_a_group(self):
        cycle = self.first
        services = running_services()
        self.assertGreater(len(services), 8, services)
        self.assertEqual(services - cycle.all_groups(), set())
        for group in cycle.all_groups():
            names = set(cycle.groups[group])
            self.assertIn(
                names, (DEFAULT_NAMES, DEFAULT_NAMES | CGROUP_NAMES), group
            )
            self.assertTrue(cycle.is_known(group), group)
        self.assertEqual(cycle.own("count-denied"), 0)
        self.assert_quiet()

    def test_values_are_equal_to_those_of_the_kernel(self):
        self.assert_each_is_exact_once()
        # All is right once before the first readings are as old as MaxAge, in
        # the minute after that, and in the next.
        for _ in range(3):
            self.assert_matches(tries=8)
        self.assert_quiet()

    def assert_each_is_exact_once(self, intervals=14):
        """Each group is right at least once by itself, and not because its
        published error excuses its value."""
        wrong = None
        for _ in range(intervals):
            cycle, samples = self.observe()
            groups = cycle.all_groups() if wrong is None else wrong
            wrong = {
                group: compare(
                    cycle, samples, group, "pss", self.tolerance, most_error=0
                )
                for group in groups
                if group in cycle
            }
            wrong = {group: text for group, text in wrong.items() if text}
            if not wrong:
                return
        self.fail("\n".join(wrong.values()))

    def test_smaps_report_shows_the_same(self):
        """Without -k amounts are in kB."""
        group = "redis-server.service"
        pss = Sample([group]).groups[group].pss / KIB
        report = run("smaps-report", "live", "-t")[1]
        (line,) = [x for x in report.splitlines() if x.endswith(f" {group}")]
        self.assertAlmostEqual(float(line.split()[0]), pss, delta=0.05 * pss)

    def test_stops_and_starts_again(self):
        for _ in range(2):
            run("systemctl", "stop", "collectd")
            # Not "timeout": systemd would have killed it.
            self.assertEqual(daemon.show("Result"), "success")
            run("systemctl", "start", "collectd")
            self.assertIn("redis-server.service", self.await_names())
            self.assert_quiet()

    def test_upgrade_keeps_the_configuration(self):
        conf = daemon.CONFIG / "smaps.conf"
        conf.write_text(conf.read_text() + "# mine\n")
        old = daemon.main_pid()
        daemon.install(self.make_next_version())
        # The running daemon has the old plugin mapped, and goes on.
        self.assertEqual(daemon.main_pid(), old)
        self.assertIn("redis-server.service", self.next_cycle())
        self.assertIn("# mine", conf.read_text())
        daemon.restart()
        self.assertIn("redis-server.service", self.await_names())

    def make_next_version(self):
        tree, package = HOME / "next", HOME / "next.deb"
        run("rm", "-rf", tree)
        run("dpkg-deb", "-R", daemon.PACKAGE, tree)
        control = tree / "DEBIAN/control"
        control.write_text(
            re.sub(r"(?m)^(Version: .*)$", r"\1+next", control.read_text())
        )
        run("dpkg-deb", "-b", tree, package)
        return package

    def test_purge_leaves_nothing(self):
        conf = daemon.CONFIG / "smaps.conf"
        self.assertTrue(conf.is_file())
        files = [*list_files("collectd-smaps"), conf]
        self.assertGreater(len(files), 10)
        run("apt-get", "remove", "-y", "collectd-smaps")
        daemon.restart()
        run("apt-get", "purge", "-y", "collectd-smaps")
        self.assertEqual([path for path in files if path.exists()], [])
        self.assertFalse(Path("/var/lib/collectd-smaps").exists())
        daemon.restart()
        plugins = daemon.wait_for_plugin("df")
        self.assertNotIn("smaps", plugins)
