# SPDX-License-Identifier: MIT
"""Alarms that the plugin raises itself, with the programs of contrib/alerts."""

import json
import re
from pathlib import Path

from alerts import NotifyFile, complaints
from cgroup import Cgroup
from harness import MIB, TAG, group, need_root, stage, wait_until
from server import BackendTest, load_smaps, shape_group

# At least 2 intervals for an end, and 3 for most of the rest.
CYCLES_TO_BE_SURE = 5


class AlarmTest(BackendTest):
    def start_notifying(self, smaps, **options):
        self.notify = NotifyFile()
        self.daemon = self.start_daemon(
            smaps + self.notify.config(), interval=0.2, **options
        )
        self.daemon.wait_cycles(2)

    def pass_cycles(self, count):
        self.daemon.wait_cycles(len(self.daemon.times()) + count)

    def wait_alerts(self, count):
        """Waits for so many, and fails if more follow."""
        wait_until(
            lambda: len(self.notify.alerts()) >= count,
            lambda: f"{count} alarms, not {self.notify.alerts()}",
        )
        self.pass_cycles(CYCLES_TO_BE_SURE)
        alerts = self.notify.alerts()
        self.assertEqual(len(alerts), count, alerts)
        return alerts


class Ends(AlarmTest):
    def test_a_service_that_is_gone_is_told_and_that_it_is_back(self):
        shape = self.start_shape("anon", name="web", mib=4)
        self.start_notifying(load_smaps(shape_group("web")))
        shape.stop()
        (alert,) = self.wait_alerts(1)
        self.assertEqual(alert.severity, "FAILURE")
        self.assertEqual(alert.identifier, "test/smaps-web")
        self.assertEqual(alert.message.strip(), "web: no process is left")
        # The values go on: nothing of them is withheld.
        self.assertEqual(self.daemon.values()["web"]["memory-pss"][-1][1], 0)
        self.start_shape("anon", name="web", mib=4)
        alert = self.wait_alerts(2)[-1]
        self.assertEqual(alert.severity, "OKAY")
        self.assertRegex(
            alert.message, r"^web: over after [\d.]+s: no process was left"
        )
        self.assertEqual(complaints(self.daemon), [])

    def test_nothing_is_told_at_the_start(self):
        """Neither of groups that run, nor of those that never did."""
        self.start_shape("anon", name="web", mib=4)
        self.start_notifying(
            load_smaps(
                shape_group("web"),
                group("absent", 'Comm "no-such-name"'),
                group("%{comm}", 'Comm "*"'),
            )
        )
        self.pass_cycles(CYCLES_TO_BE_SURE)
        self.assertEqual(self.notify.alerts(), [])
        self.assertEqual(self.daemon.log_lines("Notification: severity"), [])

    def test_no_alarm_of_a_group_for_which_they_are_off(self):
        shape = self.start_shape("anon", name="web", mib=4)
        self.start_notifying(
            load_smaps(
                shape_group("web", "web", "<Alarms>", "Ended false", "</Alarms>")
            )
        )
        shape.stop()
        self.pass_cycles(CYCLES_TO_BE_SURE)
        self.assertEqual(self.notify.alerts(), [])


class Captured(AlarmTest):
    """Several at once, of which one in an interval has its capture at once."""

    SERVICES = 6

    def start_services(self):
        return [
            self.start_shape("anon", name=f"svc{i}", mib=1)
            for i in range(self.SERVICES)
        ]

    def test_the_last_word_about_services_that_are_back_is_okay(self):
        directory = stage().new_directory() / "captures"
        shapes = self.start_services()
        self.start_notifying(
            load_smaps(
                *(shape_group(f"svc{i}") for i in range(self.SERVICES)),
                f'<Capture>\nDirectory "{directory}"\n</Capture>',
            )
        )
        for shape in shapes:
            shape.stop()
        wait_until(
            lambda: self.count("FAILURE") == self.SERVICES,
            lambda: f"{self.SERVICES} failures: {self.notify.alerts()}",
        )
        self.start_services()
        wait_until(
            lambda: self.count("OKAY") >= self.SERVICES, "that all are back"
        )
        self.pass_cycles(2 * self.SERVICES)
        for i in range(self.SERVICES):
            own = [
                a.severity
                for a in self.notify.alerts()
                if a.message.startswith(f"svc{i}: ")
            ]
            self.assertEqual(own, ["FAILURE", "OKAY"], f"svc{i}")

    def count(self, severity):
        return len(
            [
                a
                for a in self.notify.alerts()
                if a.severity == severity and a.message.startswith("svc")
            ]
        )


class Memory(AlarmTest):
    def setUp(self):
        need_root("makes a control group")
        self.web = Cgroup(f"/smaps-alarm{TAG}")
        self.addCleanup(self.web.remove)
        self.directory = stage().new_directory() / "captures"

    def start_limited(self, *shapes, limit):
        for shape in shapes:
            self.web.add(*shape.pids)
        self.web.set_limit(limit)
        self.start_notifying(
            load_smaps(
                group("web", f'Cgroup "{self.web.path}*"'),
                f'<Capture>\nDirectory "{self.directory}"\n</Capture>',
            )
        )

    def capture_of(self, alert):
        path = re.search(r"; capture (\S+\.json)", alert.message)[1]
        self.assertEqual(Path(path).parent, self.directory)
        return json.loads(Path(path).read_text())

    def test_a_kill_is_one_notification_with_its_evidence(self):
        quiet = self.start_shape("anon", name="quiet", mib=1)
        victim = self.start_shape("anon", name="victim", mib=1)
        self.start_limited(quiet, victim, limit=24 * MIB)
        Path(f"/proc/{victim.root}/oom_score_adj").write_text("1000")
        with self.assertRaisesRegex(AssertionError, "has ended"):
            victim.grow(64)

        def failures():
            return [a for a in self.notify.alerts() if a.severity == "FAILURE"]

        wait_until(failures, "an alarm about the kill")
        self.pass_cycles(CYCLES_TO_BE_SURE)
        (alert,) = failures()
        self.assertRegex(
            alert.message,
            "^web: 1 process killed for memory in the last hour, "
            f"largest gone: {victim.root} ",
        )
        document = self.capture_of(alert)
        self.assertEqual(document["trigger"]["type_instance"], "oom_kill")
        # An interval may have seen the limit nearly reached, before.
        self.assertLessEqual(len(self.notify.alerts()), 2)
        # A capture replaces another of the same second.
        self.assertIn(len(self.captures()), (1, len(self.notify.alerts())))

    def test_a_limit_that_is_nearly_reached_has_evidence_before_the_kill(self):
        shape = self.start_shape("anon", name="filler", mib=1)
        self.start_limited(shape, limit=64 * MIB)
        shape.grow(59)
        (alert,) = self.wait_alerts(1)
        self.assertEqual(alert.severity, "WARNING")
        self.assertRegex(
            alert.message, r"^web: 9\d % of 64\.0 MiB in use; PSS \d+\.\d MiB"
        )
        document = self.capture_of(alert)
        self.assertEqual(
            [process["pid"] for process in document["processes"]], [shape.root]
        )
        self.assertGreater(document["mappings"][0]["pss"], 50 * MIB)
        self.assertEqual(self.web.kills(), 0)

    def captures(self):
        return list(self.directory.glob("*.json"))
