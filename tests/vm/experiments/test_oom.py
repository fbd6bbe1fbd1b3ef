# SPDX-License-Identifier: MIT
"""Services that the kernel kills for memory: the kill is counted, and what was
known of the life before is forgotten."""

import math
import signal
from pathlib import Path

import daemon
from daemon import CONTRIB
from experiment import Experiment, Holder, is_active, wait_for
from kernel import MIB
from systemd import IS_V1, memory_directory, read_keyed

# The log of a notification is that of another plugin than syslog. A machine
# that is emulated can stand still for longer than the two intervals after which
# collectd forgets a value with its alarm, and would raise it once more.
LOG = Path("/dev/shm/collectd-vm.log")
LOGFILE = f"""\
Timeout 20
LoadPlugin logfile
<Plugin logfile>
  File "{LOG}"
</Plugin>
"""
LIMIT_MIB = 64


class Killed(Experiment):
    # Ten intervals bring ten points, the fewest from which growth is known. A
    # group from a template would be gone while its service is: with a name of
    # its own it stays. Growth is unknown while the error is an eighth of the
    # memory, as it is of a small process that is not read where statm is not
    # exact.
    options = """
        GrowthWindow 120
        <Group "phoenix.service">
          Unit "phoenix.service"
          Refresh "always"
        </Group>
        <Group "%{unit}">
          Unit "*.service"
        </Group>
        Other "other"
    """

    def start_daemon(self, options=None, **more):
        """With the thresholds that are shipped."""
        LOG.unlink(missing_ok=True)
        self.addCleanup(LOG.unlink, missing_ok=True)
        thresholds = (CONTRIB / "alerts/thresholds.conf").read_text()
        return super().start_daemon(options, more=LOGFILE + thresholds, **more)

    def start_victim(self, name, *properties):
        victim = Holder(
            self, name, "leap", 4 * LIMIT_MIB,
            properties=[
                f"MemoryMax={LIMIT_MIB * MIB}", "MemorySwapMax=0", *properties
            ],
        )
        cycle = self.await_kills(victim, 0)
        self.assertEqual(self.failures(victim), [])
        return victim, cycle

    def await_kills(self, victim, expected):
        seen = []

        def are_there():
            cycle = self.next_cycle()
            seen.append(cycle.find(victim.group, "count-oom_kill"))
            return cycle if seen[-1] == expected else None

        return wait_for(are_there, lambda: f"{expected} kills: {seen[-9:]}")

    def notices(self, victim):
        """Returns the notifications about its kills."""
        return [
            line
            for line in LOG.read_text().splitlines()
            if f"plugin_instance = {victim.group}" in line
            and "oom_kill" in line
        ]

    def failures(self, victim):
        """Returns the alarms among them."""
        return [
            line for line in self.notices(victim) if "severity = FAILURE" in line
        ]

    def assert_alarm(self, victim):
        wait_for(lambda: self.failures(victim), "the alarm")
        self.next_cycle()
        self.assertEqual(
            len(self.failures(victim)), 1, "\n".join(self.notices(victim))
        )

    def test_child_that_is_killed(self):
        """The service goes on."""
        victim, before = self.start_victim("parent", "OOMPolicy=continue")
        pid = victim.pid()
        victim.signal(signal.SIGUSR2)
        cycle = self.await_kills(victim, 1)
        events = "memory.oom_control" if IS_V1 else "memory.events"
        directory = memory_directory(victim.group)
        self.assertEqual(read_keyed(directory / events)["oom_kill"], 1)
        self.assertEqual(victim.pid(), pid)
        self.assertGreater(
            cycle.value(victim.group, "uptime"),
            before.value(victim.group, "uptime"),
        )
        self.assert_alarm(victim)
        # A second kill raises no second alarm.
        victim.signal(signal.SIGUSR2)
        self.await_kills(victim, 2)
        self.assert_alarm(victim)
        self.assert_quiet()

    def test_service_that_is_killed_begins_anew(self):
        victim, _ = self.start_victim(
            "phoenix", "Restart=always", "RestartSec=1",
            "StartLimitIntervalSec=0",
        )
        for life in range(1, 3):
            before = self.await_growth(victim)
            victim.signal(signal.SIGUSR1)
            wait_for(lambda: self.lives(victim) == life, "a new life")
            cycle = self.await_younger(victim, before)
            # The window has only begun.
            growth = cycle.value(victim.group, "gauge-growth")
            self.assertTrue(math.isnan(growth), growth)
            self.assertEqual(cycle.counts(victim.group)[0], 1)
            # Version 1 counts for no group above, and this one has gone.
            if not IS_V1:
                self.await_kills(victim, life)
                self.assert_alarm(victim)
        self.assert_quiet()

    def lives(self, victim):
        if not is_active(victim.group):
            return None
        return int(daemon.show("NRestarts", victim.group))

    def await_growth(self, victim):
        """The first interval in which it is known whether it grows."""

        def is_known():
            cycle = self.next_cycle()
            growth = cycle.find(victim.group, "gauge-growth", math.nan)
            return None if math.isnan(growth) else cycle

        return wait_for(is_known, "growth to be known")

    def await_younger(self, victim, before):
        age = before.value(victim.group, "uptime")

        def is_younger():
            cycle = self.next_cycle()
            uptime = cycle.find(victim.group, "uptime", age)
            return cycle if 0 < uptime < age else None

        return wait_for(is_younger, "a new uptime")
