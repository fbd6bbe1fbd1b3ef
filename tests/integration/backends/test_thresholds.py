"""Alerts: the files of contrib/alerts/ in the real daemon, with limits that fit
processes of a few MiB. Deliveries are read from the file that the shipped
notify-log writes."""

import datetime
import email
import json
import math
import pwd
import re
import shutil
import socketserver
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

from harness import (
    DEADLINE_SECONDS,
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
from server import (
    BackendTest,
    free_port,
    load_smaps,
    need_plugin,
    shape_group,
    shipped,
)
from test_captured import (
    LARGE_STATM,
    SMALL_ON_MODERN,
    WrittenTree,
    read_mem_total,
    rollup_text,
)

NOTIFY_LOG = ROOT / "contrib/alerts/notify-log"

GROUPS = load_smaps(
    "ValuesPercentage true",
    shape_group("postgres"),
    shape_group("redis", None, 'Refresh "always"'),
)

# The same group by a template: it is there only while its process runs.
TEMPLATE = load_smaps(
    group("%{1}", f'CommMatch "^(postgres)[.]{TAG[1:]}$"')
)

# In place of the limits in thresholds.conf.
WARNING = 40 * MIB
FAILURE = 80 * MIB
HYSTERESIS = 10 * MIB
PSS_LIMITS = {
    "WarningMax 6000000000": f"WarningMax {WARNING}",
    "FailureMax 8000000000": f"FailureMax {FAILURE}",
    "Hysteresis 200000000": f"Hysteresis {HYSTERESIS}",
}
# What takes the Hits of the same block away.
NO_HITS = {"# A peak of a few intervals raises no alarm.\n      Hits 3": ""}
PERSIST = {"Persist false": "Persist true"}
PERSIST_OK = {"PersistOK false": "PersistOK true"}

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
    """A line of notify-log."""

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
                "/usr/local/bin/notify-log": self.program,
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
    # In intervals. More than the two of the default: where a machine is busy,
    # an interval may well come late.
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
        """Those of one value, when all that collectd knows of are delivered."""

        def find():
            self.daemon.check_running()
            said = len(self.daemon.log_lines("Notification: "))
            alerts = self.notify.alerts()
            # An empty list is an answer too.
            return len(alerts) >= said and (alerts,)

        (alerts,) = wait_until(find, "all notifications to be delivered")
        identifier = f"test/smaps-{group}/{metric}"
        return [a for a in alerts if a.identifier == identifier]

    def severities(self, metric, group="postgres"):
        return [alert.severity for alert in self.alerts(metric, group)]

    def wait_severities(self, expected, metric, group="postgres"):
        """Waits for the last of these, and for any more that should not be."""
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
        """The values of the csv plugin at the moment of a notification."""
        for when, value in self.rows(metric):
            if abs(when - time) < 0.0005:
                return value
        raise AssertionError(f"no {metric} was written for {time}")

    def assert_no_complaint(self):
        self.assertEqual(complaints(self.daemon), [])


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

    def test_percentage_of_the_memory_of_the_host(self):
        def percent(mib):
            return 100 * mib * MIB / read_mem_total(Path("/proc"))

        shape = self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts(
            {
                "WarningMax 40": f"WarningMax {percent(40):.6f}",
                "FailureMax 60": f"FailureMax {percent(80):.6f}",
                "Hysteresis 2\n": f"Hysteresis {percent(10):.6f}\n",
            }
        )
        self.wait_severities(["OKAY"], "percent-pss")
        shape.grow(40)
        self.wait_severities(["OKAY", "WARNING"], "percent-pss")
        shape.grow(40)
        alerts = self.wait_severities(
            ["OKAY", "WARNING", "FAILURE"], "percent-pss"
        )
        self.assertAlmostEqual(
            alerts[-1].value,
            self.value_at(alerts[-1].time, "percent-pss"),
            delta=1e-6,
        )

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

    def test_a_percentage_above_100_is_taken_to_be_within_range(self):
        percent = '<Type percent>\n      Instance'
        self.start_on_tree({f'{percent} "pss"': f'{percent} "swap"'})
        mem_total = read_mem_total(self.tree.path) // KIB
        self.wait_severities(["OKAY"], "percent-swap")
        self.set_swap(mem_total)
        self.wait_severities(["OKAY", "FAILURE"], "percent-swap")
        self.set_swap(mem_total * 2)
        alerts = self.wait_severities(
            ["OKAY", "FAILURE", "OKAY"], "percent-swap"
        )
        self.assertIn("is nan", alerts[-1].message)

    def start_on_tree(self, replacements=None):
        """Swap of any amount is had without a swap file in a tree of proc."""
        self.tree = WrittenTree()
        self.tree.add(100)
        self.write_swap(0)
        groups = load_smaps(
            f'ProcRoot "{self.tree.path}"',
            'Refresh "always"',
            "ValuesPercentage true",
            group("postgres", 'Comm "name-100"'),
        )
        self.start_alerts(replacements, groups)

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

    def test_an_old_reading(self):
        self.start_shape("anon", name="postgres", mib=4)
        self.start_alerts({"WarningMax 3000": "WarningMax 0.7"})
        alerts = self.wait_first(["OKAY", "WARNING"], "duration-age")
        self.assertGreater(alerts[-1].value, 0.7)


def captured(alert):
    """The file that the plugin's own notification names."""
    return Path(re.match("capture (.*?): ", alert.message).group(1))


def line_about(shape):
    """What is told after the path about a group of a single process."""
    return rf": PSS 6\d\.\d MiB.*; {shape.root} \S+ 6\d\.\d MiB\s*$"


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

    def test_what_becomes_unknown_is_taken_to_be_within_range(self):
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
        # Where ending takes more than an interval, it has little memory before.
        wait_until(
            lambda: math.isnan(self.rows("memory-pss")[-1][1]),
            lambda: f"unknown: {self.rows('memory-pss')}",
        )
        self.pass_cycles(2)
        self.wait_severities(["WARNING", "OKAY"], "memory-pss")
        self.assertEqual(
            self.severities("memory-pss"), ["WARNING", "OKAY"]
        )

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


class Options(ThresholdTest):
    """The results of 5.12 where they differ from its manual."""

    def test_each_value_is_reported_as_okay_when_it_is_first_seen(self):
        self.start_shape("anon", name="postgres")
        self.start_alerts()
        for metric in (
            "memory-pss",
            "memory-swap",
            "percent-pss",
            "ps_count",
            "count-unreadable",
            "duration-age",
        ):
            with self.subTest(metric):
                self.wait_severities(["OKAY"], metric)

    def test_hits_3_waits_for_the_fifth_value(self):
        shape = self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts(PSS_LIMITS)
        self.wait_severities(["OKAY"], "memory-pss")
        shape.grow(40)
        alert = self.wait_severities(["OKAY", "WARNING"], "memory-pss")[-1]
        self.assertEqual(self.count_over(alert.time), VALUES_FOR_3_HITS)

    def test_without_hits_the_first_value_is_reported(self):
        shape = self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **NO_HITS})
        self.wait_severities(["OKAY"], "memory-pss")
        shape.grow(40)
        alert = self.wait_severities(["OKAY", "WARNING"], "memory-pss")[-1]
        self.assertEqual(self.count_over(alert.time), 1)

    def count_over(self, end):
        """Values out of range up to that time."""
        return sum(
            value > WARNING and time < end + 0.0005
            for time, value in self.rows("memory-pss")
        )

    def test_hysteresis_keeps_the_warning_a_little_below_the_limit(self):
        self.start_shape("anon", name="postgres", mib=25)
        second = self.start_shape("anon", name="postgres", mib=10)
        self.start_alerts(PSS_LIMITS)
        self.wait_severities(["OKAY"], "memory-pss")
        third = self.start_shape("anon", name="postgres", mib=25)
        self.wait_severities(["OKAY", "WARNING"], "memory-pss")
        third.stop()
        wait_until(
            lambda: self.rows("memory-pss")[-1][1] < WARNING, "a value below"
        )
        self.wait_severities(["OKAY", "WARNING"], "memory-pss")
        second.stop()
        alert = self.wait_severities(
            ["OKAY", "WARNING", "OKAY"], "memory-pss"
        )[-1]
        self.assertLess(alert.value, WARNING - HYSTERESIS)

    def test_persist_repeats_what_is_out_of_range_and_no_okay(self):
        shape = self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **NO_HITS, **PERSIST})
        self.wait_severities(["OKAY"], "memory-pss")
        shape.grow(40)
        self.wait_first(["OKAY"] + 3 * ["WARNING"], "memory-pss")

    def test_persist_with_hits_repeats_after_as_many_values_again(self):
        self.start_shape("anon", name="postgres", mib=60)
        self.start_alerts({**PSS_LIMITS, **PERSIST})
        first, second = self.wait_first(2 * ["WARNING"], "memory-pss")
        self.assertEqual(
            self.count_over(second.time) - self.count_over(first.time),
            VALUES_FOR_3_HITS,
        )

    def test_only_the_most_specific_block_counts(self):
        for name in ("postgres", "redis"):
            self.start_shape("anon", name=name, mib=20)
        any_group = """
          <Plugin smaps>
            <Type memory>
              Instance "pss"
              WarningMax 1
            </Type>
          </Plugin>
        """
        every = "  # Every group.\n"
        self.start_alerts({**PSS_LIMITS, every: any_group})
        self.wait_severities(["WARNING"], "memory-pss", "redis")
        self.wait_severities(["OKAY"], "memory-pss")

    def test_persist_ok_needs_persist(self):
        self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **NO_HITS, **PERSIST_OK})
        self.wait_severities(["OKAY"], "memory-pss")

    def test_persist_ok_repeats_okay(self):
        self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **NO_HITS, **PERSIST, **PERSIST_OK})
        self.wait_first(3 * ["OKAY"], "memory-pss")

    def test_with_persist_ok_values_within_range_are_hits(self):
        self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **PERSIST_OK})
        alert = self.wait_severities(["OKAY"], "memory-pss")[0]
        times = [time for time, _ in self.rows("memory-pss")]
        before = [time for time in times if time < alert.time + 0.0005]
        self.assertEqual(len(before), VALUES_FOR_3_HITS)


class Programs(ThresholdTest):
    def test_collectd_refuses_to_run_a_program_as_root(self):
        notify = NotifyFile()
        text = re.sub(r'(Exec) "[^"]+"', r'\1 "root"', notify.config())
        daemon = self.start_daemon(
            GROUPS + shipped("alerts/thresholds.conf") + text, interval=0.1
        )
        wait_until(
            lambda: daemon.log_lines("refusing to exec program as root"),
            "a refusal",
        )
        self.assertEqual(notify.alerts(), [])

    def test_a_bad_notification_is_one_line_on_stderr(self):
        out = stage().new_directory() / "out"
        good = "Severity: OKAY\nTime: 1.5\n\nhello\n"
        for text, arguments, expected in (
            (good, [], "usage: notify-log FILE"),
            (good, [out, out], "usage: notify-log FILE"),
            ("", [out], 'severity is ""'),
            ("Severity: BAD\nTime: 1\n\nx\n", [out], 'severity is "BAD"'),
            ("Severity: OKAY\n\nx\n", [out], 'time is ""'),
            ("Severity: OKAY\nTime: 09\n\nx\n", [out], 'time is "09"'),
            ("Severity: OKAY\nTime: a[1]\n\nx\n", [out], 'time is "a[1]"'),
            (good, [out.parent / "none/out"], "cannot write to"),
            (good, ["/dev/full"], "cannot write to"),
        ):
            with self.subTest(text=text, arguments=arguments):
                done = run_notify_log(text, *arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("notify-log: "))
                self.assertIn(expected, done.stderr)
                self.assertFalse(out.exists())

    def test_a_notification_is_one_line_whatever_it_holds(self):
        out = stage().new_directory() / "out"
        for text in (
            "Severity: OKAY\nTime: 1200928930\n\n",
            "Severity: WARNING\nTime: 1200928930.515\nHost: a\x1bb\n"
            "Unknown: header\nPlugin: x\n\nfirst\nsecond\r\n\nthird\n",
            "Severity: FAILURE\nTime: 1200928930.5\nHost: h\nPlugin: p q\n"
            "PluginInstance: 1: 2\nType: t\nTypeInstance: $(id) *\n\n%s %d\\n",
        ):
            done = run_notify_log(text, out)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(
            out.read_text().splitlines(),
            [
                "2008-01-21T15:22:10+0000 OKAY  ",
                "2008-01-21T15:22:10.515+0000 WARNING a b/x "
                "first second   third",
                "2008-01-21T15:22:10.5+0000 FAILURE h/p q-1: 2/t-$(id) * "
                "%s %d\\n",
            ],
        )


def run_notify_log(text, *arguments):
    return subprocess.run(
        [NOTIFY_LOG, *arguments],
        input=text,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={"TZ": "UTC", "LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


# ---- mail ----


class Mailbox(socketserver.ThreadingTCPServer):
    """A mail server that takes what it gets: mails are (from, to, text)."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", port), SmtpSession)
        self.mails = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class SmtpSession(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as a client needs to deliver mail."""

    def handle(self):
        self.answer("220 localhost ESMTP")
        self.sender, self.recipients = None, []
        for line in self.rfile:
            text = line.decode().strip()
            if self.do_command(text.upper(), text) == "QUIT":
                return

    def do_command(self, command, text):
        if command.startswith("MAIL FROM:"):
            self.sender, self.recipients = address_in(text), []
        elif command.startswith("RCPT TO:"):
            self.recipients.append(address_in(text))
        elif command == "DATA":
            self.answer("354 go on")
            mail = (self.sender, self.recipients, self.read_data())
            self.server.mails.append(mail)
        elif command == "QUIT":
            self.answer("221 bye")
            return "QUIT"
        elif not command.startswith(("EHLO", "HELO", "RSET", "NOOP")):
            self.answer("502 not implemented")
            return None
        self.answer("250 OK")
        return None

    def read_data(self):
        lines = []
        for line in self.rfile:
            if line == b".\r\n":
                break
            lines.append(line.removeprefix(b"."))
        return email.message_from_bytes(b"".join(lines))

    def answer(self, line):
        self.wfile.write(line.encode() + b"\r\n")


def address_in(text):
    return re.search(r"<(.*?)>", text).group(1)


class Mail(BackendTest):
    def start_mailbox(self, port):
        mailbox = Mailbox(port)
        self.addCleanup(mailbox.close)
        return mailbox

    def start_mailing(self, port, replacements=None, least=1, more=""):
        need_plugin("notify_email")
        mail = shipped(
            "alerts/notify-email.conf",
            {
                '"localhost"': '"127.0.0.1"',
                "SMTPPort 25": f"SMTPPort {port}",
                **(replacements or {}),
            },
        )
        # One value only: each notification is a mail.
        limits = f"""
        LoadPlugin threshold
        <Plugin threshold>
          <Plugin smaps>
            Instance "postgres"
            <Type ps_count>
              DataSource "processes"
              FailureMin {least}
            </Type>
          </Plugin>
        </Plugin>
        """
        return self.start_daemon(
            ThresholdTest.TIMEOUT + GROUPS + more + limits + mail,
            interval=0.1,
        )

    def wait_mails(self, mailbox, count):
        wait_until(lambda: len(mailbox.mails) >= count, f"{count} mails")
        return mailbox.mails

    def test_each_notification_is_one_mail(self):
        mailbox = self.start_mailbox(free_port())
        daemon = self.start_mailing(mailbox.server_address[1])
        self.wait_mails(mailbox, 1)
        self.start_shape("anon", name="postgres")
        self.wait_mails(mailbox, 2)
        daemon.wait_cycles(len(daemon.times()) + 5)
        self.assertEqual(len(mailbox.mails), 2)
        for mail, severity in zip(mailbox.mails, ("FAILURE", "OKAY")):
            sender, recipients, message = mail
            self.assertEqual(sender, "collectd@example.net")
            self.assertEqual(recipients, ["ops@example.net"])
            self.assertEqual(
                message["Subject"], f"collectd: {severity} on test"
            )
            text = message.get_payload()
            self.assertIn("Plugin instance: postgres", text)
            self.assertIn("Type: ps_count", text)
            self.assertIn('"processes" is', text.replace(" currently", ""))

    def test_a_mail_about_a_capture_names_the_largest_processes(self):
        mailbox = self.start_mailbox(free_port())
        shape = self.start_shape("anon", name="postgres", mib=60)
        directory = stage().new_directory() / "captures"
        self.start_mailing(
            mailbox.server_address[1],
            least=2,
            more="<Plugin smaps>\n<Capture>\n"
            f'Directory "{directory}"\n</Capture>\n</Plugin>\n',
        )
        _, _, message = self.wait_mails(mailbox, 2)[1]
        (path,) = directory.glob("*.json")
        self.assertEqual(message["Subject"], "collectd: OKAY on test")
        text = message.get_payload()
        self.assertIn("Plugin instance: postgres", text)
        self.assertRegex(text, re.escape(f"capture {path}") + line_about(shape))

    def test_every_recipient_gets_it(self):
        mailbox = self.start_mailbox(free_port())
        recipient = 'Recipient "ops@example.net"'
        other = 'Recipient "other@example.net"'
        self.start_mailing(
            mailbox.server_address[1], {recipient: f"{recipient}\n{other}"}
        )
        _, recipients, _ = self.wait_mails(mailbox, 1)[0]
        self.assertEqual(
            recipients, ["ops@example.net", "other@example.net"]
        )

    def test_without_from_the_sender_is_empty(self):
        mailbox = self.start_mailbox(free_port())
        self.start_mailing(
            mailbox.server_address[1], {'From "collectd@example.net"': ""}
        )
        self.assertEqual(self.wait_mails(mailbox, 1)[0][0], "")
