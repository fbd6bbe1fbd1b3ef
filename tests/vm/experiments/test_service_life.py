# SPDX-License-Identifier: MIT
"""Services that start and stop, and sessions of users."""

import time

from daemon import run
from experiment import Experiment, Service, Session, is_active, wait_for
from systemd import Properties, running_services

SINCE = ("InactiveExitTimestampMonotonic", "ActiveEnterTimestampMonotonic")
REDIS = "redis-server.service"


class ServiceLife(Experiment):
    def test_restart(self):
        self.assert_matches([REDIS])
        for _ in range(3):
            run("systemctl", "restart", REDIS, "nginx.service")
            self.assert_matches([REDIS, "nginx.service"])

    def test_uptime_is_the_time_since_systemd_started_it(self):
        """The oldest process began while systemd activated the unit."""
        services = running_services() - {"collectd.service"}
        for _ in range(2):
            wrong = [self.compare_uptime(services) for _ in range(3)]
            self.assertIn({}, wrong)
            run("systemctl", "restart", REDIS, "nginx.service")

    def compare_uptime(self, services):
        """Returns {service: what is wrong} for one interval."""
        cycle, looks = self.watch(lambda: Properties(services, *SINCE))
        now = time.monotonic() - (time.time() - cycle.time)
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        slept = boot - time.clock_gettime(time.CLOCK_MONOTONIC)
        # The plugin reads the clock when its cycle begins.
        slack = 1 + cycle.own("duration-cycle")
        wrong = {}
        for service in services:
            began, ended = (
                looks[-1].units[service][name] / 1e6 for name in SINCE
            )
            value = cycle.value(service, "uptime")
            low, high = now - ended - slack, now - began + slept + slack
            if not low <= value <= high:
                wrong[service] = f"{value}, systemd {low} to {high}"
        return wrong

    def test_stop(self):
        self.assertIn("cron.service", self.next_cycle())
        self.addCleanup(run, "systemctl", "start", "cron")
        run("systemctl", "stop", "cron")
        self.assertNotIn("cron.service", self.next_cycle())
        run("systemctl", "start", "cron")
        self.assertIn("cron.service", self.next_cycle())

    def test_daemon_reexec(self):
        self.assert_matches()
        run("systemctl", "daemon-reexec")
        self.assert_matches()
        self.assert_quiet()

    def test_user_session(self):
        alice = Session(self, "alice")
        alice.run(
            "systemd-run", "--user", "--quiet", "--unit=hers", "sleep", "1000"
        )
        cycle = self.assert_matches([alice.group])
        self.assertGreaterEqual(cycle.counts(alice.group)[0], 3)
        alice.stop()
        self.assertNotIn(alice.group, self.next_cycle())

    def test_scope_is_in_other(self):
        before = self.assert_matches(["other"]).counts("other")[0]
        Service(
            self, "launcher", "systemd-run", "--quiet", "--scope",
            "--unit=launched", "sleep", "1000", notify=False,
        )
        # Only then is it not the service's any more.
        wait_for(lambda: is_active("launched.scope"), "the scope")
        self.assertEqual(
            self.assert_matches(["other"]).counts("other")[0], before + 1
        )
        self.assert_quiet()
