"""Prometheus fetches what was dispatched, and the rules work on it.

The real daemon with write_prometheus, a real Prometheus with the files of
contrib/prometheus; promtool for the rules by themselves.
"""

import json
import math
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
    "ValuesPercentage true",
    shape_group("web"),
    shape_group("odd", r'odd, \"a\"=b %'),
    shape_group("unread", None, 'Refresh "never"'),
    group("%{1}", f'CommMatch "^(made)[.]{TAG[1:]}"'),
)
ODD_GROUP = 'odd, "a"=b %'

# The data sources of the types that have other ones than "value".
SOURCES = {"ps_count": ["processes", "threads"], "duration": ["seconds"]}


def write_prometheus(port):
    """The shipped configuration of collectd, for this run."""
    return shipped(
        "prometheus/collectd.conf",
        {'Port "9103"': f'Host "127.0.0.1"\n  Port "{port}"'},
    )


class Prometheus:
    """A running Prometheus that fetches from one port of this host."""

    def __init__(self, test, target, replacements=None):
        program = need_program("prometheus", "prometheus")
        self.port = free_port()
        directory = stage().new_directory()
        (directory / "prometheus.yml").write_text(
            shipped(
                "prometheus/prometheus.yml",
                {
                    "localhost:9103": f"127.0.0.1:{target}",
                    "interval: 10s": "interval: 200ms",
                    **(replacements or {}),
                },
            )
        )
        (directory / "rules.yml").write_text(
            shipped("prometheus/rules.yml", {"for: 2m": "for: 0s"})
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
        """[({label: value}, value)] of an instant query."""
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


def key_of(labels):
    """A series of Prometheus as (group, metric, index of the value) of csv."""
    name = labels["__name__"].removeprefix("collectd_smaps_")
    group, type_instance = labels["smaps"], labels.get("type", "")
    index = 0
    for type_, sources in SOURCES.items():
        for source in sources:
            if name == f"{type_}_{source}":
                name, index = type_, sources.index(source)
    if not type_instance and name != "ps_count":
        # The plugin's own: no group, and the label of it is the name.
        group, type_instance = "", group
    metric = f"{name}-{type_instance}" if type_instance else name
    return group.replace(TAG, ""), metric, index


def keys_of_csv(values):
    return {
        (group, metric, index)
        for group, metrics in values.items()
        for metric, rows in metrics.items()
        for index in range(len(rows[0]) - 1)
    }


class PrometheusTest(BackendTest):
    def start_both(self, replacements=None):
        """(collectd, Prometheus), with processes in all groups."""
        self.start_shape("cow", name="web", mib=8, rewrite_mib=2, children=2)
        self.start_shape("anon", name="odd", mib=2)
        self.start_shape("anon", name="unread", mib=2)
        port = free_port()
        daemon = self.start_daemon(
            SMAPS + write_prometheus(port), host="alpha", interval=0.2
        )
        daemon.wait_cycles(3)
        return daemon, Prometheus(self, port, replacements)


class WhatPrometheusHolds(PrometheusTest):
    def test_it_is_what_was_dispatched(self):
        daemon, prometheus = self.start_both()
        every = '{__name__=~"collectd_smaps_.*"}'
        found = prometheus.wait_query(every)
        # A value of it may be in a csv file a moment later.
        daemon.next_cycle()
        values = daemon.values()
        self.assertEqual({labels["instance"] for labels, _ in found}, {"alpha"})
        keys = [key_of(labels) for labels, _ in found]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(set(keys), keys_of_csv(values))
        self.assertEqual(
            set(values), {"", "web", ODD_GROUP, "unread"}
        )
        for (group, metric, index), (_, value) in zip(keys, found):
            written = {f"{row[1 + index]}" for row in values[group][metric]}
            self.assertIn(f"{round(value, 6)}", written, (group, metric))

    def test_what_is_not_known_is_not_a_number(self):
        _, prometheus = self.start_both()
        query = 'collectd_smaps_memory{smaps="unread",type="pss"}'
        ((_, value),) = prometheus.wait_query(query)
        self.assertTrue(math.isnan(value))
        self.assertEqual(prometheus.query(f"{query} >= 0"), [])

    def test_a_group_that_has_ended_is_gone_at_once(self):
        """And not after the five minutes that Prometheus looks back."""
        _, prometheus = self.start_both()
        made = self.start_shape("anon", name="made", mib=1)
        query = 'collectd_smaps_ps_count_processes{smaps=~"made.*"}'
        ((_, value),) = prometheus.wait_query(query)
        self.assertEqual(value, 1)
        made.stop()
        prometheus.wait_query(query, lambda found: not found)


class Rules(PrometheusTest):
    def test_all_of_them_are_evaluated_without_error(self):
        _, prometheus = self.start_both()
        prometheus.wait_query("smaps:age_seconds")

        def evaluated():
            rules = self.rules(prometheus)
            return all(r["health"] != "unknown" for r in rules) and rules

        rules = prometheus.server.wait_ready(evaluated, "evaluating rules")
        self.assertGreater(len(rules), 10)
        for rule in rules:
            self.assertEqual(rule["health"], "ok", rule)

    def test_they_record_a_series_for_each_group(self):
        daemon, prometheus = self.start_both()
        limit = "smaps:pss_limit_bytes"
        self.assertEqual(
            prometheus.wait_query(limit),
            [({"__name__": limit, "smaps": "postgres"}, 6e9)],
        )
        prometheus.wait_query("smaps:age_seconds")
        for rule in self.rules(prometheus):
            if rule["type"] == "recording" and rule["name"] != limit:
                found = prometheus.wait_query(rule["name"])
                groups = {labels.get("smaps") for labels, _ in found}
                expected = {"web", ODD_GROUP, "unread"}
                if rule["name"].endswith(":by_instance"):
                    expected = {None}
                self.assertEqual(groups, expected, rule["name"])
        ((_, pss),) = prometheus.query('smaps:pss_bytes{smaps="web"}')
        ((_, uss),) = prometheus.query('smaps:uss_bytes{smaps="web"}')
        ((_, shared),) = prometheus.query('smaps:pss_shared_bytes{smaps="web"}')
        self.assertEqual(pss - uss, shared)
        written = {row[1] for row in daemon.values()["web"]["memory-pss"]}
        self.assertIn(pss, written)

    def test_the_end_of_a_service_is_an_alert(self):
        port = free_port()
        self.start_daemon(
            SMAPS + write_prometheus(port), host="alpha", interval=0.2
        )
        web = self.start_shape("anon", name="web", mib=1)
        prometheus = Prometheus(self, port)
        prometheus.wait_query(
            'collectd_smaps_ps_count_processes{smaps="web"} == 1'
        )
        self.assertEqual(self.alerts(prometheus), [])
        web.stop()
        prometheus.server.wait_ready(
            lambda: ("SmapsServiceGone", "web", "firing")
            in self.alerts(prometheus),
            "firing",
        )

    def test_a_collectd_that_has_ended_is_an_alert(self):
        """Two of them, which wait for five minutes before they fire."""
        daemon, prometheus = self.start_both()
        prometheus.wait_query("smaps:age_seconds")
        self.assertEqual(self.alerts(prometheus), [])
        daemon.stop()
        expected = {
            ("SmapsSilent", "cycle", "pending"),
            ("SmapsCollectdDown", None, "pending"),
        }
        prometheus.server.wait_ready(
            lambda: set(self.alerts(prometheus)) == expected, "pending"
        )

    @staticmethod
    def rules(prometheus):
        groups = prometheus.get("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    @staticmethod
    def alerts(prometheus):
        return [
            (
                alert["labels"]["alertname"],
                alert["labels"].get("smaps"),
                alert["state"],
            )
            for alert in prometheus.get("/api/v1/alerts")["alerts"]
        ]


class Promtool(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run(
            [need_program("promtool", "prometheus"), *arguments],
            cwd=FILES,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_rules_and_the_configuration_are_valid(self):
        self.promtool("check", "rules", "rules.yml")
        self.promtool("check", "config", "prometheus.yml")

    def test_the_rules_do_what_their_tests_say(self):
        self.promtool("test", "rules", "rules_test.yml")

    def test_each_alert_is_tested_to_fire_and_not_to_fire(self):
        rules = (FILES / "rules.yml").read_text()
        alerts = set(re.findall(r"- alert: (\w+)", rules))
        self.assertGreaterEqual(len(alerts), 10)
        cases = re.findall(
            r"- alertname: (\w+)\n.*\n +exp_alerts:( \[\])?",
            (FILES / "rules_test.yml").read_text(),
        )
        self.assertEqual({name for name, empty in cases if empty}, alerts)
        self.assertEqual({name for name, empty in cases if not empty}, alerts)

    def test_each_recorded_name_is_tested(self):
        rules = (FILES / "rules.yml").read_text()
        names = set(re.findall(r"- record: (\S+)", rules))
        text = (FILES / "rules_test.yml").read_text()
        tested = set(re.findall(r"- expr: ([\w:]+)", text))
        # The limits are tested by what they are for.
        self.assertEqual(names - tested, {"smaps:pss_limit_bytes"})
