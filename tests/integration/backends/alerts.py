# SPDX-License-Identifier: MIT
"""Runs the real daemon with the files of contrib/alerts/. Deliveries are read
from the file that the shipped notify-log writes."""

import datetime
import pwd
import re
import shutil
from typing import NamedTuple

from harness import MIB, ROOT, stage, unprivileged_user, wait_until
from server import BackendTest, load_smaps, shape_group, shipped

NOTIFY_LOG = ROOT / "contrib/alerts/notify-log"

GROUPS = load_smaps("ValuesPercentage true", shape_group("postgres"))

# In place of the limits in thresholds.conf.
WARNING = 40 * MIB
FAILURE = 80 * MIB
PSS_LIMITS = {
    "WarningMax 6000000000": f"WarningMax {WARNING}",
    "FailureMax 8000000000": f"FailureMax {FAILURE}",
    "Hysteresis 200000000": f"Hysteresis {10 * MIB}",
}

# Hits 3 in 5.12: so many values out of range in a row.
VALUES_FOR_3_HITS = 5

# Not about a configuration: exec in a collectd that is not root, and what is
# said on a busy machine, where an interval of 0.1 s is too short.
# The last: collectd names a thread that may have ended before.
NO_COMPLAINT = (
    "CAP_SETUID|read-function of the|Not sleeping because|set_thread_name"
)


def complaints(daemon):
    lines = daemon.log_lines(r"\[(warning|error)\]")
    return [line for line in lines if not re.search(NO_COMPLAINT, line)]


class Alert(NamedTuple):
    """A line that notify-log has written."""

    time: float
    severity: str
    identifier: str
    message: str

    @classmethod
    def parse(cls, line):
        stamp, severity, identifier, message = line.split(" ", 3)
        when = datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z")
        return cls(when.timestamp(), severity, identifier, message)

    @property
    def value(self):
        pattern = r'(?:is currently|Current value of "\w+" is) (\S+?)\.(?: |$)'
        return float(re.search(pattern, self.message).group(1))


class NotifyFile:
    """notify-log and its file, where the user that collectd gives it can get
    at them."""

    def __init__(self):
        self.user = unprivileged_user()
        directory = stage().new_directory(self.user)
        self.program = directory / "notify-log"
        shutil.copy(NOTIFY_LOG, self.program)
        self.path = directory / "alerts.log"

    def config(self):
        return shipped(
            "alerts/notify-exec.conf",
            {
                "collectd-notify": pwd.getpwuid(self.user[0]).pw_name,
                "/usr/share/collectd-smaps/bin/notify-log": self.program,
                "/var/log/collectd-alerts.log": self.path,
            },
        )

    def alerts(self):
        if not self.path.exists():
            return []
        lines = self.path.read_text().splitlines()
        # Programs that run at the same time write in any order.
        return sorted(Alert.parse(line) for line in lines)


class ThresholdTest(BackendTest):
    # Timeout counts intervals. The default is two; on a busy machine an
    # interval may well come too late for it.
    TIMEOUT = "Timeout 30\n"

    def start_alerts(self, replacements=None, groups=GROUPS, **options):
        """A daemon with thresholds.conf and notify-exec.conf."""
        self.notify = NotifyFile()
        text = shipped("alerts/thresholds.conf", replacements)
        self.daemon = self.start_daemon(
            self.TIMEOUT + groups + text + self.notify.config(),
            interval=0.1,
            **options,
        )

    def alerts(self, metric, group="postgres"):
        """Returns the alerts of one value, once collectd has delivered all that
        it knows of."""

        def find():
            self.daemon.check_running()
            said = len(self.daemon.log_lines("Notification: "))
            alerts = self.notify.alerts()
            # An empty list is an answer too.
            return len(alerts) >= said and (alerts,)

        (alerts,) = wait_until(find, "all notifications to be delivered")
        identifier = f"test/smaps-{group}/{metric}"
        return [a for a in alerts if a.identifier == identifier]

    def own_alarms(self, group="postgres"):
        """Those that the plugin raises itself are about no single value."""
        identifier = f"test/smaps-{group}"
        return [a for a in self.notify.alerts() if a.identifier == identifier]

    def severities(self, metric, group="postgres"):
        return [alert.severity for alert in self.alerts(metric, group)]

    def wait_severities(self, expected, metric, group="postgres"):
        """Waits for the last of these, and fails if another one follows."""
        self.wait_first(expected, metric, group)
        self.pass_cycles(VALUES_FOR_3_HITS + 1)
        self.assertEqual(self.severities(metric, group), expected)
        return self.alerts(metric, group)

    def wait_first(self, expected, metric, group="postgres"):
        """The same, where more may follow."""
        wait_until(
            lambda: len(self.severities(metric, group)) >= len(expected),
            lambda: f"{expected}, not {self.notify.alerts()}",
        )
        alerts = self.alerts(metric, group)[: len(expected)]
        self.assertEqual([alert.severity for alert in alerts], expected)
        return alerts

    def pass_cycles(self, count):
        self.daemon.wait_cycles(len(self.daemon.times()) + count)

    def rows(self, metric, group="postgres"):
        return self.daemon.values()[group][metric]

    def value_at(self, time, metric):
        """Returns the value that the csv plugin wrote at the moment of a
        notification."""
        for when, value in self.rows(metric):
            if abs(when - time) < 0.0005:
                return value
        raise AssertionError(f"no {metric} was written for {time}")

    def assert_no_complaint(self):
        self.assertEqual(complaints(self.daemon), [])


def line_about(shape):
    """Returns what the announcement has after the path, for a group of one
    process."""
    return (
        rf": PSS 6\d\.\d MiB.*; {shape.root} \S+ 6\d\.\d MiB"
        r"(; \S+ \S+ .iB.*)?\s*$"
    )
