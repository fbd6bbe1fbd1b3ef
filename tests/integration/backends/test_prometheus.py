# SPDX-License-Identifier: MIT
"""Prometheus fetches what was dispatched, and the rules work on it.

The real daemon with write_prometheus, a real Prometheus with the files of
contrib/prometheus; promtool for the rules by themselves.
"""

import json
import os
import re
import subprocess
import unittest
import urllib.parse

from harness import ROOT, TAG, group, stage
from server import (
    BackendTest,
    fetch,
    free_port,
    load_smaps,
    need_program,
    shape_group,
    shipped,
)

FILES = ROOT / "contrib/prometheus"

SMAPS = load_smaps(
    'Report "detail"',
    "ValuesPercentage true",
    shape_group("web"),
    shape_group("odd", r'odd, x; \"a\"=b %'),
    shape_group("unread", None, 'Refresh "never"'),
    group("%{1}", f'CommMatch "^(made)[.]{TAG[1:]}"'),
)
ODD_GROUP = 'odd, x; "a"=b %'

# Values of theirs have a label "type", and a percentage.
OTHER_PLUGINS = """
LoadPlugin memory
LoadPlugin cpu
<Plugin cpu>
  ReportByCpu true
  ValuesPercentage true
</Plugin>
"""

# Ours, by any name, but what the rules record.
EVERY = '{__name__=~"(collectd_)?smaps_.*"}'

DATA_SOURCES = {"ps_count": ["processes", "threads"]}
# By type, the unit at the end of a name.
UNITS = {
    "memory": "_bytes",
    "duration": "_seconds",
    "ps_vm": "_bytes",
    "ps_code": "_bytes",
    "ps_data": "_bytes",
    "bytes": "_bytes",
    "percent": "_share_percent",
    "uptime": "_seconds",
    "gauge": "_bytes_per_second",
}


# The other percentages are shares of the host's memory.
PARTS_OF_THE_GROUP = {
    "percent-coverage",
    "percent-relative_error",
    "percent-swapped",
}

# Only with the rights to make one: test_grafana_limits sees them.
OF_CONTROL_GROUPS = {
    "smaps_cgroup_limit_bytes",
    "smaps_cgroup_limit_percent",
    "smaps_oom_kill",
}


def write_prometheus(port):
    """The shipped configuration of collectd, for this run."""
    return shipped(
        "prometheus/collectd.conf",
        {'Port "9103"': f'Host "127.0.0.1"\n  Port "{port}"'},
    )


class Prometheus:
    """Runs a Prometheus that fetches from one port of this host."""

    def __init__(self, test, target):
        program = need_program("prometheus")
        self.port = free_port()
        directory = stage().new_directory()
        (directory / "prometheus.yml").write_text(
            shipped(
                "prometheus/prometheus.yml",
                {
                    "localhost:9103": f"127.0.0.1:{target}",
                    "interval: 10s": "interval: 200ms",
                },
            )
        )
        (directory / "rules.yml").write_text(
            shipped(
                "prometheus/rules.yml",
                {"interval: 2m": "interval: 200ms", "[25s]": "[2s]"},
            )
        )
        self.server = test.start_server(
            [
                program,
                f"--config.file={directory}/prometheus.yml",
                f"--storage.tsdb.path={directory}/data",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=warn",
            ],
            directory=directory,
        )
        self.server.wait_url(f"http://127.0.0.1:{self.port}/-/ready")

    def get(self, path, **parameters):
        """The data of an answer of the API; its error is one of the test."""
        text = urllib.parse.urlencode(parameters, doseq=True)
        status, _, body = fetch(f"http://127.0.0.1:{self.port}{path}?{text}")
        if status != 200:
            raise AssertionError(f"{path} {parameters}: {body.decode()}")
        return json.loads(body)["data"]

    def query(self, text):
        """Returns [({label: value}, value)] of an instant query."""
        return [
            (series["metric"], float(series["value"][1]))
            for series in self.get("/api/v1/query", query=text)["result"]
        ]

    def wait_query(self, text, condition=bool):
        """Waits until what a query returns satisfies the condition."""

        def find():
            result = self.query(text)
            return condition(result) and (result,)

        return self.server.wait_ready(find, f"answering {text}")[0]


def run_promtool(directory, *arguments):
    """Runs promtool. Returns (exit status, what it printed)."""
    done = subprocess.run(
        [need_program("promtool", "prometheus"), *arguments],
        cwd=directory,
        # Its memory is small, and collecting it often a sixth of the work.
        env={**os.environ, "GOGC": "1000"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    return done.returncode, done.stdout


def names_of_csv(values):
    """{(group or part of the host, name in Prometheus): [values]} of what the
    csv files have."""
    names = {}
    for group, metrics in values.items():
        for metric, rows in metrics.items():
            for index in range(len(rows[0]) - 1):
                what = part_of_host(metric) if group == "host" else group
                name = name_of(group, metric, index)
                names[what, name] = [row[1 + index] for row in rows]
    return names


def of_an_interval(values):
    """The last one but one, because all of it must be there: parts of the host
    come and go with its swap."""
    times = {
        row[0]
        for metrics in values.values()
        for rows in metrics.values()
        for row in rows
    }
    time = sorted(times)[-2]
    return {
        group: {
            metric: rows
            for metric, rows in metrics.items()
            if any(row[0] == time for row in rows)
        }
        for group, metrics in values.items()
    }


def part_of_host(metric):
    """Returns the part of the host's memory that a metric is about, or ""."""
    type_, _, what = metric.partition("-")
    return what if type_ in ("memory", "percent") else ""


def name_of(group, metric, index):
    type_, _, what = metric.partition("-")
    if group == "host" and part_of_host(metric):
        return f"smaps_host_memory{UNITS[type_]}"
    if metric in PARTS_OF_THE_GROUP:
        return f"smaps_{what}_percent"
    if not what:
        sources = DATA_SOURCES.get(type_, [type_.removeprefix("ps_")])
        what = sources[index]
    of = {"": "plugin_", "host": "host_"}.get(group, "")
    return f"smaps_{of}{what}{UNITS.get(type_, '')}"


class PrometheusTest(BackendTest):
    def start_both(self):
        """(collectd, Prometheus), with processes in all groups."""
        self.start_shape("cow", name="web", mib=8, rewrite_mib=2, children=2)
        self.start_shape("anon", name="odd", mib=2)
        self.start_shape("anon", name="unread", mib=2)
        port = free_port()
        state = stage().new_directory() / "state"
        smaps = SMAPS.replace(
            'Report "detail"', f'Report "detail"\nStateFile "{state}"'
        )
        daemon = self.start_daemon(
            smaps + OTHER_PLUGINS + write_prometheus(port), host="alpha", interval=0.2
        )
        daemon.wait_cycles(3)
        return daemon, Prometheus(self, port)


class SharedTest(PrometheusTest):
    """Tests that only look share both."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Starts things as a test does, but ends them after the last one.
        holder = PrometheusTest()
        cls.addClassCleanup(holder.doCleanups)
        cls.daemon, cls.prometheus = holder.start_both()


class WhatPrometheusHolds(SharedTest):
    """On a slow machine an interval is late, and series end until it comes."""

    def test_prometheus_has_the_dispatched_values(self):
        found = self.prometheus.wait_query(
            EVERY,
            lambda found: set(self.by_name(found))
            == set(names_of_csv(of_an_interval(self.daemon.values()))),
        )
        # A value of it may be in a csv file a moment later.
        self.daemon.next_cycle()
        written = names_of_csv(self.daemon.values())
        for key, value in self.by_name(found).items():
            rounded = [f"{one}" for one in written[key]]
            self.assertIn(f"{round(value, 6)}", rounded, key)

    def by_name(self, found):
        return {
            (self.group_of(labels), labels["__name__"]): value
            for labels, value in found
        }

    @staticmethod
    def group_of(labels):
        """Returns the name of the group, or of the part of the host's memory.
        """
        group = labels.get("group", "").replace(TAG, "")
        return group or labels.get("part", "")

    def test_the_rules_name_nothing_that_is_not_there(self):
        for file in FILES.glob("rules*.yml"):
            text = file.read_text()
            named = set(re.findall(r"(?<![:\w])smaps_\w+(?![:\w])", text))
            self.assertGreater(len(named), 2)
            self.wait_names(named - OF_CONTROL_GROUPS)

    def wait_names(self, names):
        self.prometheus.wait_query(
            EVERY,
            lambda found: names <= {labels["__name__"] for labels, _ in found},
        )

    def test_a_name_belongs_to_groups_or_to_the_plugin(self):
        for labels, _ in self.prometheus.wait_query('{__name__=~"smaps_.+"}'):
            names = {"__name__", "instance", "job"}
            if labels["__name__"].startswith("smaps_host_memory_"):
                names.add("part")
            elif not re.match("smaps_(plugin|host)_", labels["__name__"]):
                names.add("group")
            self.assertEqual(labels.keys(), names)
            self.assertEqual(labels["instance"], "alpha")
        groups = {"web", ODD_GROUP, "unread"}
        self.prometheus.wait_query(
            "smaps_pss_bytes",
            lambda found: {labels["group"] for labels, _ in found} == groups,
        )

    def test_values_of_other_plugins_keep_their_names(self):
        self.prometheus.wait_query('collectd_memory{memory="free"}')
        self.prometheus.wait_query('collectd_cpu_percent{cpu="0",type="idle"}')


class Rules(SharedTest):
    def test_all_of_them_are_evaluated_without_error(self):
        self.prometheus.wait_query("instance:smaps_pss_bytes:sum")

        def evaluated():
            rules = self.rules()
            return all(r["health"] != "unknown" for r in rules) and rules

        rules = self.prometheus.server.wait_ready(evaluated, "evaluating rules")
        self.assertGreater(len(rules), 10)
        for rule in rules:
            self.assertEqual(rule["health"], "ok", rule)

    def rules(self):
        groups = self.prometheus.get("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]


class Ends(PrometheusTest):
    """Each ends something, and so has a collectd and a Prometheus of its own."""

    def test_a_group_that_has_ended_is_gone_at_once(self):
        """And not after the five minutes that Prometheus looks back."""
        _, prometheus = self.start_both()
        made = self.start_shape("anon", name="made", mib=1)
        query = 'smaps_processes{group=~"made.*"}'
        ((_, value),) = prometheus.wait_query(query)
        self.assertEqual(value, 1)
        made.stop()
        prometheus.wait_query(query, lambda found: not found)

    def test_a_collectd_that_has_ended_is_an_alert(self):
        """Two of them, of which one waits for five minutes before it fires."""
        daemon, prometheus = self.start_both()
        prometheus.wait_query("instance:smaps_pss_bytes:sum")
        unknown = ("SmapsPssUnknown", "unread", "pending")
        self.assertEqual(set(self.alerts(prometheus)) - {unknown}, set())
        daemon.stop()
        expected = {
            ("SmapsSilent", None, "firing"),
            ("SmapsCollectdDown", None, "pending"),
        }
        prometheus.server.wait_ready(
            lambda: set(self.alerts(prometheus)) == expected, "the alerts"
        )

    @staticmethod
    def alerts(prometheus):
        return [
            (
                alert["labels"]["alertname"],
                alert["labels"].get("group"),
                alert["state"],
            )
            for alert in prometheus.get("/api/v1/alerts")["alerts"]
        ]


class Promtool(unittest.TestCase):
    def promtool(self, *arguments):
        status, said = run_promtool(FILES, *arguments)
        self.assertEqual(status, 0, said)

    def test_the_rules_and_the_configuration_are_valid(self):
        self.promtool("check", "rules", "rules.yml")
        self.promtool("check", "config", "prometheus.yml")

    def test_the_rules_pass_their_own_tests(self):
        self.promtool("test", "rules", "rules_test.yml")
        self.promtool("test", "rules", "rules_growth_test.yml")

    def test_each_alert_is_tested_to_fire_and_not_to_fire(self):
        rules = (FILES / "rules.yml").read_text()
        alerts = set(re.findall(r"- alert: (\w+)", rules))
        self.assertGreaterEqual(len(alerts), 10)
        cases = re.findall(
            r"- alertname: (\w+)\n(?: +#.*\n)?.*\n +exp_alerts:( \[\])?",
            self.tests(),
        )
        self.assertEqual({name for name, empty in cases if empty}, alerts)
        self.assertEqual({name for name, empty in cases if not empty}, alerts)

    def test_each_recorded_name_is_tested(self):
        rules = (FILES / "rules.yml").read_text()
        names = set(re.findall(r"- record: (\S+)", rules))
        tested = set(re.findall(r"- expr: (?:round\()?([\w:]+)", self.tests()))
        # What users edit is tested by what it is for.
        own = {"smaps:pss_limit_bytes", "smaps:expected_group"}
        self.assertEqual(names - tested, own)

    @staticmethod
    def tests():
        files = sorted(FILES.glob("*_test.yml"))
        return "".join(file.read_text() for file in files)
