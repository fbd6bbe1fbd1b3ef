# SPDX-License-Identifier: MIT
"""thresholds.conf as it is shipped, on a host with a thousand groups."""

import pwd
import re
from collections import Counter

from alerts import GROUPS, NotifyFile, complaints
from harness import ROOT, group, stage, wait_until
from server import BackendTest, load_smaps, need_plugin, shipped

GROUP_COUNT = 1000

MANY = load_smaps(
    'Report "default" "relative_error" "swapped"',
    "Host false",
    *(group(f"g{i}", 'Comm "no-such-name"') for i in range(GROUP_COUNT)),
)
EVERY_GROUP = """
LoadPlugin threshold
<Plugin threshold>
  <Plugin smaps>
    <Type memory>
      Instance "pss"
      WarningMax 1000000000000
      Interesting false
    </Type>
  </Plugin>
</Plugin>
"""
IS_GONE = """
LoadPlugin threshold
<Plugin threshold>
  <Plugin smaps>
    Instance "postgres"
    <Type ps_count>
      DataSource "processes"
      FailureMin 1
    </Type>
  </Plugin>
</Plugin>
"""
NOTIFICATION = re.compile(
    r"severity = (\w+), host = test, plugin = smaps,"
    r"(?: plugin_instance = (\w+),)? type = (\w+), type_instance = (\w+)"
)


def filter_config(notify, state_file):
    return shipped(
        "alerts/notify-python.conf",
        {
            '"/usr/share/collectd-smaps/alerts"': f'"{ROOT}/contrib/alerts"',
            "/usr/share/collectd-smaps/bin/notify-log": notify.program,
            "/var/log/collectd-alerts.log": notify.path,
            'User "collectd-notify"': f'User "{user_name(notify)}"',
            "/var/lib/collectd/notify_filter.json": state_file,
        },
    )


def user_name(notify):
    return pwd.getpwuid(notify.user[0]).pw_name


class ManyGroups(BackendTest):
    def setUp(self):
        need_plugin("python")
        self.notify = NotifyFile()
        self.state_file = stage().new_directory() / "state.json"

    def start_filtered(self, smaps, **options):
        return self.start_daemon(
            smaps
            + shipped("alerts/thresholds.conf")
            + filter_config(self.notify, self.state_file),
            **options,
        )

    def test_the_shipped_file_says_nothing_of_a_thousand_groups(self):
        daemon = self.start_daemon(
            MANY + shipped("alerts/thresholds.conf") + self.notify.config(),
            interval=5,
        )
        daemon.wait_cycles(2)
        self.assertEqual(complaints(daemon), [])
        self.assertEqual(daemon.log_lines("Notification: severity"), [])
        self.assertEqual(daemon.stop(), 0)

    def alerts_of(self, metric):
        return [
            alert.severity
            for alert in self.notify.alerts()
            if alert.identifier == f"test/smaps-postgres/{metric}"
        ]

    def test_each_group_is_okay_once_and_no_program_runs_for_it(self):
        daemon = self.start_filtered(MANY + EVERY_GROUP, interval=5)
        daemon.wait_cycles(2)
        self.assertEqual(complaints(daemon), [])
        self.assertEqual(daemon.stop(), 0)
        said = Counter()
        for line in daemon.log_lines("Notification: severity"):
            severity, instance, *metric = NOTIFICATION.search(line).groups()
            self.assertEqual(severity, "OKAY", line)
            said["-".join(metric), bool(instance)] += 1
        # The shipped file watches none of them; one that somebody adds does.
        self.assertEqual(said, {("memory-pss", True): GROUP_COUNT})
        self.assertEqual(self.notify.alerts(), [])

    def test_a_bad_option_is_one_error(self):
        text = filter_config(self.notify, self.state_file)
        program = re.search("^ *Program .*$", text, re.MULTILINE)[0]
        user = re.search("^ *User .*$", text, re.MULTILINE)[0]
        for old, new, expected in (
            (user, 'User "no-such-user"', r"User \['no-such-user'\]"),
            (user, 'User "root" "root"', r"User \['root', 'root'\]: expected"),
            (user, "Users 1", r"Users \[1.0\]: expected Program with a path"),
            (program, "", "notify_filter: expected Program with a path"),
        ):
            with self.subTest(new):
                daemon = self.start_daemon(GROUPS + text.replace(old, new))
                daemon.wait_cycles(1)
                (line,) = daemon.log_lines("notify_filter")
                self.assertRegex(line, expected + ".*nothing is handed on$")
                self.assertEqual(daemon.stop(), 0)

    def test_an_alarm_is_handed_on_and_its_end_after_a_restart_too(self):
        daemon = self.start_filtered(GROUPS + IS_GONE, interval=0.1)
        wait_until(lambda: self.alerts_of("ps_count"), "a FAILURE")
        daemon.wait_cycles(len(daemon.times()) + 5)
        self.assertEqual(complaints(daemon), [])
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(self.alerts_of("ps_count"), ["FAILURE"])
        self.start_shape("anon", name="postgres", mib=2)
        daemon = self.start_filtered(GROUPS + IS_GONE, interval=0.1)
        wait_until(lambda: len(self.alerts_of("ps_count")) > 1, "an OKAY")
        daemon.wait_cycles(len(daemon.times()) + 5)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(self.alerts_of("ps_count"), ["FAILURE", "OKAY"])
        self.assertEqual(len(self.notify.alerts()), 2)
        text = self.notify.alerts()[0].message
        self.assertIn('Data source "processes" is currently 0', text)
