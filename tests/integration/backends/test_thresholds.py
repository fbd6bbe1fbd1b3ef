"""Alerts: thresholds.conf with limits that fit processes of a few MiB."""

import json
import math
import re
import shutil
import time
from pathlib import Path

from alerts import (
    FAILURE,
    GROUPS,
    HYSTERESIS,
    PSS_LIMITS,
    WARNING,
    ThresholdTest,
    line_about,
)
from harness import (
    KIB,
    MIB,
    ROOT,
    TAG,
    group,
    need_root,
    stage,
    unprivileged_user,
    wait_until,
)
from server import load_smaps, shape_group
from test_captured import (
    LARGE_STATM,
    SMALL_ON_MODERN,
    WrittenTree,
    rollup_text,
)

# The same group by a template: it is there only while its process runs.
TEMPLATE = load_smaps(
    group("%{1}", f'CommMatch "^(postgres)[.]{TAG[1:]}$"')
)


class Limits(ThresholdTest):
    def test_the_shipped_file_is_taken_as_it_is(self):
        self.start_alerts()
        self.wait_severities(["FAILURE"], "ps_count")
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

    def test_a_smaller_successor_is_reported_as_okay(self):
        first = self.start_shape("anon", name="postgres", mib=60)
        self.start_alerts(PSS_LIMITS)
        self.wait_severities(["WARNING"], "memory-pss")
        self.start_shape("anon", name="postgres", mib=4)
        first.stop()
        alerts = self.wait_severities(["WARNING", "OKAY"], "memory-pss")
        self.assertLess(alerts[-1].value, WARNING - HYSTERESIS)
        self.assertIn("within range again", alerts[-1].message)

    def test_swap_in_use(self):
        self.start_on_tree()
        self.wait_severities(["OKAY"], "memory-swap")
        # The limits as shipped: over 500 MB, and 50 MB less for OKAY.
        self.set_swap(500_000_000 // KIB)
        self.wait_severities(["OKAY"], "memory-swap")
        self.set_swap(500_000_000 // KIB + 1)
        self.wait_severities(["OKAY", "WARNING"], "memory-swap")
        self.set_swap(450_000_000 // KIB + 1)
        self.wait_severities(["OKAY", "WARNING"], "memory-swap")
        self.set_swap(450_000_000 // KIB)
        self.wait_severities(["OKAY", "WARNING", "OKAY"], "memory-swap")

    def test_swap_as_a_part_of_the_memory(self):
        """The limits as shipped: over 50 %, and 45 % for OKAY."""
        self.start_on_tree()
        pss = SMALL_ON_MODERN["Pss"]
        self.wait_severities(["OKAY"], "percent-swapped")
        self.set_swap(pss)
        self.wait_severities(["OKAY"], "percent-swapped")
        self.set_swap(pss + pss // 8)
        alerts = self.wait_severities(["OKAY", "WARNING"], "percent-swapped")
        self.assertAlmostEqual(alerts[-1].value, 100 * 9 / 17, delta=0.1)
        self.set_swap(pss // 2)
        self.wait_severities(["OKAY", "WARNING", "OKAY"], "percent-swapped")

    def start_on_tree(self):
        """Swap of any amount is had without a swap file in a tree of proc."""
        self.tree = WrittenTree()
        self.tree.add(100)
        self.write_swap(0)
        groups = load_smaps(
            f'ProcRoot "{self.tree.path}"',
            'Refresh "always"',
            "ValuesPercentage true",
            'Report "default" "swapped"',
            group("postgres", 'Comm "name-100"'),
        )
        self.start_alerts(groups=groups)

    def write_swap(self, kib):
        text = rollup_text({**SMALL_ON_MODERN, "Swap": kib, "SwapPss": kib})
        # In one step: the plugin may be reading it.
        new = self.tree.path / "new"
        new.write_text(text)
        new.rename(self.tree.path / "100/smaps_rollup")

    def set_swap(self, kib):
        self.write_swap(kib)
        wait_until(
            lambda: self.rows("memory-swap")[-1][1] == kib * KIB,
            f"{kib} KiB of swap",
        )

    def test_a_large_error(self):
        """A process that is too large to be read is known by its size alone, in
        a tree that has no pages to sample."""
        self.tree = WrittenTree()
        self.tree.add(100, smaps_rollup=rollup_text(SMALL_ON_MODERN))
        groups = load_smaps(
            f'ProcRoot "{self.tree.path}"',
            "MaxLockHold 0.1",
            'Report "default" "relative_error"',
            group("postgres", 'Comm "name-*"'),
        )
        error = '"pss_error"\n      WarningMax'
        self.start_alerts(
            {f"{error} 500000000": f"{error} {16 * MIB}"}, groups
        )
        self.wait_severities(["OKAY"], "memory-pss_error")
        self.tree.add(101, statm=LARGE_STATM)
        alerts = self.wait_first(["OKAY", "WARNING"], "memory-pss_error")
        self.assertGreater(alerts[-1].value, 16 * MIB)
        alerts = self.wait_first(["OKAY", "WARNING"], "percent-relative_error")
        self.assertTrue(20 < alerts[-1].value <= 100, alerts[-1])

    def test_an_old_reading(self):
        self.start_shape("anon", name="postgres", mib=4)
        self.start_alerts({"WarningMax 3000": "WarningMax 0.7"})
        alerts = self.wait_first(["OKAY", "WARNING"], "duration-age")
        self.assertGreater(alerts[-1].value, 0.7)


def captured(alert):
    """The file that the plugin's own notification names."""
    return Path(re.match("capture (.*?): ", alert.message).group(1))


class Captures(ThresholdTest):
    """Uses the block that thresholds.conf has in its comment."""

    def capture_block(self):
        text = (ROOT / "contrib/alerts/thresholds.conf").read_text()
        lines = re.findall(r"^#   (.*)$", text, re.MULTILINE)
        first, last = lines.index("<Plugin smaps>"), lines.index("</Plugin>")
        block = "\n".join(lines[first : last + 1])
        self.directory = stage().new_directory() / "captures"
        return block.replace("/var/lib/collectd-smaps", str(self.directory))

    def start_with_captures(self, **options):
        self.start_alerts(
            PSS_LIMITS, groups=GROUPS + self.capture_block(), **options
        )

    def told(self):
        """Alerts without a value of their own."""
        return [
            alert
            for alert in self.notify.alerts()
            if alert.identifier == "test/smaps-postgres"
        ]

    def test_an_alarm_is_followed_by_the_path_of_its_evidence(self):
        shape = self.start_shape("anon", name="postgres", mib=60)
        self.start_with_captures()
        (warning,) = self.wait_severities(["WARNING"], "memory-pss")
        (told,) = wait_until(self.told, "the path of a capture")
        self.assertEqual(told.severity, "OKAY")
        self.assertGreater(told.time, warning.time)
        path = captured(told)
        self.assertEqual(path.parent, self.directory)
        self.assertRegex(told.message, line_about(shape))
        snapshot = json.loads(path.read_text())
        self.assertEqual(snapshot["trigger"]["type_instance"], "pss")
        pids = [process["pid"] for process in snapshot["processes"]]
        self.assertEqual(pids, [shape.root])
        self.assert_no_complaint()


    def test_an_escalation_has_evidence_of_its_own(self):
        """The default Cooldown is longer than this test."""
        shape = self.start_shape("anon", name="postgres", mib=60)
        self.start_with_captures()
        wait_until(self.told, "the capture of the warning")
        shape.grow(40)
        wait_until(lambda: len(self.told()) > 1, "that of the failure")
        triggers = [
            json.loads(captured(alert).read_text())["trigger"]
            for alert in self.told()
        ]
        self.assertEqual(
            [trigger["severity"] for trigger in triggers],
            ["warning", "failure"],
        )
        self.assert_no_complaint()


class Services(ThresholdTest):
    def test_a_service_that_is_gone_is_a_failure_until_it_is_back(self):
        shape = self.start_shape("anon", name="postgres")
        self.start_alerts()
        self.wait_severities(["OKAY"], "ps_count")
        shape.stop()
        alerts = self.wait_severities(["OKAY", "FAILURE"], "ps_count")
        self.assertEqual(alerts[-1].value, 0)
        self.assertIn('"processes"', alerts[-1].message)
        self.start_shape("anon", name="postgres")
        self.wait_severities(["OKAY", "FAILURE", "OKAY"], "ps_count")

    def test_the_alarm_of_a_service_that_is_killed_ends_when_it_is_back(self):
        shape = self.start_shape("anon", name="postgres", mib=60)
        self.start_alerts(PSS_LIMITS)
        self.wait_severities(["WARNING"], "memory-pss")
        shape.stop()
        self.wait_severities(["OKAY", "FAILURE"], "ps_count")
        self.wait_severities(["WARNING"], "memory-pss")
        # Values without an alarm go on, and those with one are missing.
        self.assertEqual(self.rows("memory-uss")[-1][1], 0)
        for _, pss in self.rows("memory-pss"):
            self.assertGreater(pss, 50 * MIB)
        self.start_shape("anon", name="postgres", mib=4)
        self.wait_severities(["WARNING", "OKAY"], "memory-pss")
        self.wait_severities(["OKAY", "FAILURE", "OKAY"], "ps_count")
        self.assert_no_complaint()

    def test_growth_is_not_okay_because_its_processes_have_ended(self):
        """The lowest limit that there is makes an alarm of no growth, which
        comes sooner than growth."""
        shape = self.start_shape("anon", name="postgres", mib=4)
        limit = 'Instance "growth"\n      Warning'
        self.start_alerts(
            {f"{limit}Max 0": f"{limit}Min 1"},
            load_smaps("GrowthWindow 60", shape_group("postgres")),
        )
        wait_until(
            lambda: self.severities("gauge-growth") == ["OKAY", "WARNING"],
            "the alarm of a third of the window",
            120,
        )
        shape.stop()
        self.wait_first(["OKAY", "FAILURE"], "ps_count")
        self.wait_severities(["OKAY", "WARNING"], "gauge-growth")
        self.start_shape("anon", name="postgres", mib=4)
        # Growth is unknown at first, which counts as within range.
        self.wait_severities(["OKAY", "WARNING", "OKAY"], "gauge-growth")

    def test_a_group_of_a_template_that_is_gone_is_missing_once(self):
        """Once even where Persist asks for more, and for ps_count alone."""
        shape = self.start_shape("anon", name="postgres")
        self.start_alerts(
            {"FailureMin 1": "FailureMin 1\nPersist true"}, TEMPLATE
        )
        self.wait_severities(["OKAY"], "ps_count")
        shape.stop()
        expected = ["OKAY", "FAILURE"]
        alerts = self.wait_severities(expected, "ps_count")
        self.assertIn("has not been updated", alerts[-1].message)
        missing = self.daemon.log_lines("has not been updated")
        self.assertEqual(len(missing), 1, missing)
        self.start_shape("anon", name="postgres")
        self.wait_severities([*expected, "OKAY"], "ps_count")


class Unknown(ThresholdTest):
    """A collectd without rights, and members that it may not read."""

    def start_unprivileged(self):
        need_root("starts processes of two users")
        self.start_alerts(PSS_LIMITS, user=unprivileged_user())

    def test_an_unreadable_member_is_a_warning(self):
        self.start_unprivileged()
        self.wait_severities(["OKAY"], "count-unreadable")
        foreign = self.start_shape("anon", name="postgres")
        expected = ["OKAY", "WARNING"]
        alerts = self.wait_severities(expected, "count-unreadable")
        self.assertEqual(alerts[-1].value, 1)
        foreign.stop()
        self.wait_severities([*expected, "OKAY"], "count-unreadable")

    def test_what_becomes_unknown_keeps_its_alarm(self):
        """Its process ends, and another one of its name may be its program."""
        need_root("starts processes of two users")
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
        own.stop()
        wait_until(
            lambda: math.isnan(self.rows("memory-uss")[-1][1]),
            lambda: f"unknown: {self.rows('memory-uss')}",
        )
        self.wait_severities(["WARNING"], "memory-pss")

    def test_a_guess_without_any_reading_keeps_the_alarm(self):
        own = self.start_shape(
            "anon", name="postgres", mib=60, user=unprivileged_user()
        )
        self.start_unprivileged()
        self.wait_severities(["WARNING"], "memory-pss")
        self.start_shape("anon", name="postgres", mib=60)
        self.wait_severities(["OKAY", "WARNING"], "count-unreadable")
        own.stop()
        self.daemon.wait_cycles(len(self.daemon.times()) + 3)
        # Both were there for a time.
        self.wait_severities(["WARNING", "FAILURE", "WARNING"], "memory-pss")
        for _, pss in self.rows("memory-pss"):
            self.assertGreater(pss, 50 * MIB)

    def test_a_killed_service_is_a_failure_beside_hidden_programs(self):
        """Its group goes by program, and collectd, which is not root, is not
        told that of others."""
        need_root("starts processes of two users")
        user = unprivileged_user()
        program = stage().new_directory(user) / "killed-service"
        shutil.copy(stage().shape, program)
        self.start_shape("anon", name="foreign", children=1)
        service = self.start_shape(
            "anon", name="postgres", program=program, user=user
        )
        groups = load_smaps(group("postgres", f'Executable "{program}"'))
        self.start_alerts(groups=groups, user=user)
        self.wait_severities(["OKAY"], "ps_count")
        service.stop()
        stopped = time.time()
        alert = self.wait_severities(["OKAY", "FAILURE"], "ps_count")[-1]
        self.assertEqual(alert.value, 0)
        # The interval in which it stopped may have seen it.
        times = [row[0] for row in self.rows("ps_count") if row[0] > stopped]
        self.assertLess(alert.time, times[1] + 0.0005)
        self.assertTrue(self.daemon.log_lines("exe of [1-9]"))

    def test_low_coverage_is_a_warning_where_every_member_is_to_be_read(self):
        self.start_shape(
            "anon", name="redis", mib=4, user=unprivileged_user()
        )
        self.start_unprivileged()
        self.wait_severities(["OKAY"], "percent-coverage", "redis")
        self.start_shape("anon", name="redis", mib=4)
        alerts = self.wait_severities(
            ["OKAY", "WARNING"], "percent-coverage", "redis"
        )
        self.assertTrue(0 < alerts[-1].value < 95, alerts[-1])
        self.assertIn("below the warning threshold", alerts[-1].message)

    def test_low_coverage_is_normal_where_readings_are_adaptive(self):
        self.start_shape("anon", name="redis", mib=4)
        adaptive = GROUPS.replace('Refresh "always"', "")
        self.start_alerts(groups=adaptive)
        self.wait_first(["OKAY", "WARNING"], "percent-coverage", "redis")
        for _, pss in self.rows("memory-pss", "redis"):
            self.assertGreater(pss, 4 * MIB)
