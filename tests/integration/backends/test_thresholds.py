# SPDX-License-Identifier: MIT
"""Alerts: thresholds.conf with limits that fit processes of a few MiB."""

import json
import math
import re
import shutil
import signal
import time
from pathlib import Path

from alerts import (
    FAILURE,
    GROUPS,
    PSS_LIMITS,
    WARNING,
    ThresholdTest,
    line_about,
)
from harness import (
    MIB,
    ROOT,
    TAG,
    group,
    need_root,
    stage,
    unprivileged_user,
    wait_until,
)
from server import load_smaps


class Limits(ThresholdTest):
    def test_the_shipped_file_works_unchanged(self):
        self.start_alerts()
        self.wait_severities(["OKAY"], "memory-pss")
        self.assert_no_complaint()

    def test_a_group_that_grows_past_the_limits_is_reported_once_for_each(self):
        shape = self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts(PSS_LIMITS)
        self.wait_severities(["OKAY"], "memory-pss")
        shape.grow(40)
        self.wait_severities(["OKAY", "WARNING"], "memory-pss")
        shape.grow(40)
        alerts = self.wait_severities(
            ["OKAY", "WARNING", "FAILURE"], "memory-pss"
        )
        self.assert_in_range(alerts[1], WARNING, FAILURE)
        self.assert_in_range(alerts[2], FAILURE, 110 * MIB)
        self.assertIn("above the failure threshold", alerts[2].message)
        self.assert_no_complaint()

    def assert_in_range(self, alert, low, high):
        self.assertTrue(low < alert.value <= high, alert)
        self.assertEqual(alert.value, self.value_at(alert.time, "memory-pss"))


class Captures(ThresholdTest):
    """Uses the block that thresholds.conf has in its comment."""

    def capture_block(self):
        text = (ROOT / "contrib/alerts/thresholds.conf").read_text()
        lines = re.findall(r"^#   (.*)$", text, re.MULTILINE)
        first, last = lines.index("<Plugin smaps>"), lines.index("</Plugin>")
        block = "\n".join(lines[first : last + 1])
        self.directory = stage().new_directory() / "captures"
        return block.replace("/var/lib/collectd-smaps", str(self.directory))

    def announcements(self):
        """Returns the alerts that have no value of their own."""
        return [
            alert
            for alert in self.notify.alerts()
            if alert.identifier == "test/smaps-postgres"
        ]

    def test_an_alarm_is_followed_by_the_path_of_its_evidence(self):
        shape = self.start_shape("anon", name="postgres", mib=60)
        self.start_alerts(PSS_LIMITS, groups=GROUPS + self.capture_block())
        (warning,) = self.wait_severities(["WARNING"], "memory-pss")
        (announced,) = wait_until(self.announcements, "the path of a capture")
        self.assertEqual(announced.severity, "OKAY")
        self.assertGreater(announced.time, warning.time)
        path = Path(re.match("capture (.*?): ", announced.message).group(1))
        self.assertEqual(path.parent, self.directory)
        self.assertRegex(announced.message, line_about(shape))
        snapshot = json.loads(path.read_text())
        self.assertEqual(snapshot["trigger"]["type_instance"], "pss")
        pids = [process["pid"] for process in snapshot["processes"]]
        self.assertEqual(pids, [shape.root])
        self.assert_no_complaint()


class Services(ThresholdTest):
    def test_the_end_of_a_service_is_told_beside_the_okay_of_its_pss(self):
        shape = self.start_shape("anon", name="postgres", mib=60)
        self.start_alerts(PSS_LIMITS)
        self.wait_severities(["WARNING"], "memory-pss")
        shape.stop()
        self.wait_severities(["WARNING", "OKAY"], "memory-pss")
        (alert,) = self.own_alarms()
        self.assertEqual(alert.severity, "FAILURE")
        self.assertIn("no process is left", alert.message)
        self.start_shape("anon", name="postgres", mib=4)
        wait_until(lambda: len(self.own_alarms()) > 1, "the end of the alarm")
        self.assertEqual(self.own_alarms()[1].severity, "OKAY")
        self.assert_no_complaint()


class Unknown(ThresholdTest):
    """A collectd without rights, and members that it may not read."""

    def setUp(self):
        need_root("starts processes of two users")

    def test_memory_that_becomes_unknown_is_told(self):
        """Its process ends, and another one of its name may be its program."""
        user = unprivileged_user()
        program = stage().new_directory(user) / f"postgres{TAG}"
        shutil.copy(stage().shape, program)
        own = self.start_shape(
            "anon", name="postgres", mib=60, program=program, user=user
        )
        groups = load_smaps(group("postgres", f'Executable "{program}"'))
        self.start_alerts(PSS_LIMITS, groups=groups, user=user)
        self.wait_severities(["WARNING"], "memory-pss")
        self.start_shape("anon", name="postgres")
        # Between two intervals, or its supervisor may be seen alone.
        wait_until(self.pause_between_intervals, "it is between two")
        own.stop()
        self.daemon.process.send_signal(signal.SIGCONT)
        wait_until(
            lambda: math.isnan(self.rows("memory-uss")[-1][1]),
            lambda: f"unknown: {self.rows('memory-uss')}",
        )
        wait_until(self.own_alarms, "the plugin's own alarm")
        (alert,) = self.own_alarms()
        self.assertEqual(alert.severity, "WARNING")
        self.assertIn("its memory is unknown", alert.message)

    def pause_between_intervals(self):
        self.pass_cycles(1)
        self.daemon.process.send_signal(signal.SIGSTOP)
        is_between = time.time() - self.rows("memory-pss")[-1][0] < 0.5
        if not is_between:
            self.daemon.process.send_signal(signal.SIGCONT)
        return is_between

    def test_a_guess_without_any_reading_keeps_the_alarm(self):
        own = self.start_shape(
            "anon", name="postgres", mib=60, user=unprivileged_user()
        )
        self.start_alerts(PSS_LIMITS, user=unprivileged_user())
        self.wait_severities(["WARNING"], "memory-pss")
        self.start_shape("anon", name="postgres", mib=60)
        self.wait_severities(["WARNING", "FAILURE"], "memory-pss")
        self.assertEqual(self.rows("count-unreadable")[-1][1], 1)
        own.stop()
        self.daemon.wait_cycles(len(self.daemon.times()) + 3)
        # Both were there for a time.
        self.wait_severities(["WARNING", "FAILURE", "WARNING"], "memory-pss")
        for _, pss in self.rows("memory-pss"):
            self.assertGreater(pss, 50 * MIB)

    def test_a_killed_service_is_a_failure_beside_hidden_programs(self):
        """Its group goes by program, and collectd, which is not root, may not
        know the programs of other users."""
        user = unprivileged_user()
        program = stage().new_directory(user) / "killed-service"
        shutil.copy(stage().shape, program)
        self.start_shape("anon", name="foreign", children=1)
        service = self.start_shape(
            "anon", name="postgres", program=program, user=user
        )
        groups = load_smaps(group("postgres", f'Executable "{program}"'))
        self.start_alerts(groups=groups, user=user)
        self.pass_cycles(3)
        service.stop()
        wait_until(self.own_alarms, "the plugin's own alarm")
        (alert,) = self.own_alarms()
        self.assertEqual(alert.severity, "FAILURE")
        self.assertIn("no process is left", alert.message)
        self.assertTrue(self.daemon.log_lines("exe: [1-9]"))
