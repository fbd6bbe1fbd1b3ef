# SPDX-License-Identifier: MIT
"""InfluxDB 1.x holds what was dispatched, by both ways of contrib/influxdb.

SELECT must return the same as the csv plugin of the same daemon has written:
every value of every series, and nothing besides.
"""

import json
import math
import re
import signal
import urllib.parse
from pathlib import Path

from harness import need_host, sees_host, stage
from server import (
    BackendTest,
    fetch,
    free_port,
    load_smaps,
    need_program,
    shape_group,
    shipped,
)

# The fields of the types that have other ones than "value".
FIELDS = {"ps_count": ["processes", "threads"], "duration": ["seconds"]}

# A name with all that needs escaping in line protocol.
ODD_NAME = r"odd, \"a\"=b %"
ODD_GROUP = 'odd, "a"=b %'

SMAPS = load_smaps(
    'Report "detail"',
    "ValuesPercentage true",
    shape_group("web"),
    shape_group("odd", ODD_NAME),
    shape_group("unread", None, 'Refresh "never"'),
    shape_group("absent"),
)

OWN_SECTIONS = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{directory}/meta"
[data]
  dir = "{directory}/data"
  wal-dir = "{directory}/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{http}"
  log-enabled = false
"""


class Influx:
    """Runs influxd with the listeners of contrib/influxdb."""

    def __init__(self, test, replacements=None):
        program = need_program("influxd", "influxdb")
        self.port = free_port()
        self.collectd_port = free_port()
        self.udp_port = free_port()
        directory = stage().new_directory()
        config = directory / "influxdb.conf"
        config.write_text(
            OWN_SECTIONS.format(
                directory=directory, rpc=free_port(), http=self.port
            )
            + shipped(
                "influxdb/influxdb.conf",
                {
                    ":25826": f"127.0.0.1:{self.collectd_port}",
                    ":8089": f"127.0.0.1:{self.udp_port}",
                    '"10s"': '"100ms"',
                    '"1s"': '"100ms"',
                    **(replacements or {}),
                },
            )
        )
        # Killed, because on SIGTERM it may take half a minute to end.
        self.server = test.start_server(
            [program, "-config", config],
            directory=directory,
            stop_signal=signal.SIGKILL,
        )
        self.server.wait_url(f"http://127.0.0.1:{self.port}/ping", 204)

    def by_network(self):
        """Returns the shipped configuration of collectd, for this server."""
        return shipped(
            "influxdb/collectd.conf",
            {'"localhost" "25826"': f'"127.0.0.1" "{self.collectd_port}"'},
        )

    def by_udp(self):
        return shipped(
            "influxdb/collectd-udp.conf",
            {'"localhost" "8089"': f'"127.0.0.1" "{self.udp_port}"'},
        )

    def query(self, text):
        """The series of a query; its error is one of the test."""
        parameters = urllib.parse.urlencode(
            {"db": "collectd", "epoch": "ns", "q": text}
        )
        status, _, body = fetch(
            f"http://127.0.0.1:{self.port}/query?{parameters}"
        )
        answer = json.loads(body)
        result = answer.get("results", [answer])[0]
        if status != 200 or "error" in result:
            raise AssertionError(f"{text}: {result.get('error', body)}")
        return result.get("series", [])

    def points(self):
        """{(instance, type, type_instance, field): {time in ms: value}} of
        all that is there."""
        points = {}
        tags = "host, instance, type, type_instance"
        for series in self.query(f"SELECT * FROM smaps GROUP BY {tags}"):
            key = tuple(
                series["tags"][name]
                for name in ("host", "instance", "type", "type_instance")
            )
            for time, *row in series["values"]:
                for field, value in zip(series["columns"][1:], row):
                    if value is not None:
                        times = points.setdefault((*key, field), {})
                        times[round(time / 1e6)] = as_text(value)
        return points


def as_text(value):
    """Rounds to the digits that the csv plugin writes: bytes are whole."""
    return f"{value:.6f}"


def dispatched(daemon):
    """The same as Influx.points(), by what the csv plugin has written. An
    unknown value is not in it."""
    points = {}
    for group, metrics in daemon.values().items():
        for metric, rows in metrics.items():
            type_, _, type_instance = metric.partition("-")
            for index, field in enumerate(FIELDS.get(type_, ["value"])):
                key = (daemon.host, group, type_, type_instance, field)
                known = {
                    round(row[0] * 1000): as_text(row[1 + index])
                    for row in rows
                    if not math.isnan(row[1 + index])
                }
                if known:
                    points[key] = known
    return points


class InfluxTest(BackendTest):
    def collect(self, outputs):
        """All that a daemon dispatched in some cycles, from its first to its last;
        it has ended then, and has sent what it had buffered."""
        self.start_shape("cow", name="web", mib=8, rewrite_mib=2, children=2)
        self.start_shape("anon", name="odd", mib=2)
        self.start_shape("anon", name="unread", mib=2)
        daemon = self.start_daemon(SMAPS + outputs, host="alpha")
        daemon.wait_cycles(5)
        self.assertEqual(daemon.stop(), 0)
        return daemon

    def collect_all(self, way):
        """A server and a daemon whose datagrams have all come: those of a busy
        server are dropped by the kernel when there is no more room for them."""
        for _ in range(20):
            before = count_dropped()
            influx = Influx(self)
            daemon = self.collect(getattr(influx, way)())
            if count_dropped() == before:
                return influx, daemon
        return self.fail("the kernel drops datagrams each time")

    def wait_points(self, influx, daemon):
        """All that was dispatched, once as much has arrived."""
        expected = dispatched(daemon)
        influx.server.wait_ready(
            lambda: count(influx.points()) >= count(expected),
            f"holding {count(expected)} points",
        )
        return expected

    def assert_same_points(self, influx, daemon, quote='"'):
        expected = {
            (host, group.replace('"', quote), *rest): times
            for (host, group, *rest), times in self.wait_points(
                influx, daemon
            ).items()
        }
        groups = {group for _, group, *_ in expected}
        odd_group = ODD_GROUP.replace('"', quote)
        self.assertEqual("host" in groups, sees_host())
        self.assertEqual(
            groups - {"host"}, {"", "web", odd_group, "unread", "absent"}
        )
        points = influx.points()
        self.assertEqual(points.keys(), expected.keys())
        for key, times in expected.items():
            self.assertEqual(points[key], times, key)


def count_dropped():
    """Datagrams for which the kernel had no room."""
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Udp:"))
    return int(values[names.index("RcvbufErrors")])


def count(points):
    return sum(len(times) for times in points.values())


class WhatInfluxHolds(InfluxTest):
    def test_network_plugin_delivers_the_dispatched_values(self):
        influx, daemon = self.collect_all("by_network")
        self.assert_same_points(influx, daemon)

    def test_line_protocol_delivers_the_dispatched_values(self):
        """But for a quote in a name, of which collectd-udp.conf tells."""
        influx, daemon = self.collect_all("by_udp")
        self.assert_same_points(influx, daemon, quote=r'\"')

    def test_the_queries_of_the_comment_return_a_group_and_the_host(self):
        influx, daemon = self.collect_all("by_network")
        self.wait_points(influx, daemon)
        text = shipped("influxdb/collectd.conf", {"'postgres'": "'web'"})
        query = re.search(r"SELECT.*\n.*'web'", text).group()
        (series,) = influx.query(query.replace("#", ""))
        rows = daemon.values()["web"]["memory-pss"]
        self.assertEqual(
            [value for _, value in series["values"]],
            [value for _, value in rows],
        )
        need_host()
        query = re.search(r"SELECT last.*\n.*type_instance", text).group()
        parts = {
            f"memory-{series['tags']['type_instance']}": series["values"][0][1]
            for series in influx.query(query.replace("#", ""))
        }
        written = daemon.values()["host"]
        self.assertEqual(
            parts,
            {
                metric: rows[-1][1]
                for metric, rows in written.items()
                if metric.startswith("memory-")
            },
        )

    def test_split_makes_the_measurements_that_the_comment_names(self):
        influx = Influx(self, {'= "join"': '= "split"'})
        daemon = self.collect(influx.by_network())
        names = {"value", "seconds", "processes", "threads"}
        self.assertTrue(daemon.values())
        influx.server.wait_ready(
            lambda: {
                name
                for series in influx.query("SHOW MEASUREMENTS")
                for (name,) in series["values"]
            }
            == {f"smaps_{name}" for name in names},
            "holding the measurements of split",
        )
