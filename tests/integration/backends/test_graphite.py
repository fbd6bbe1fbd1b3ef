"""What a server of Graphite's line protocol gets from contrib/graphite.

It has to be the same as the csv plugin of the same daemon has written: each
value of each group under a name of its own.
"""

import math
import re
import socket
import threading

from harness import wait_until
from server import BackendTest, load_smaps, shape_group, shipped

# Pairs of names that are one path by default.
ODD = {
    r"x@1:2": "x@1:2",
    "x@1_2": "x@1_2",
    r"x\\x2dy": r"x\x2dy",
    "x_x2dy": "x_x2dy",
    "a(b)": "a(b)",
    "a_b_": "a_b_",
    "a.b": "a.b",
    "a_b": "a_b",
}

SMAPS = load_smaps(
    'Report "default" "lazy_free"',
    "ValuesPercentage true",
    *(shape_group("web", name, "Continue true") for name in ODD),
    shape_group("unread", None, 'Refresh "never"'),
)

# The fields of a type that has several: they are in the name.
FIELDS = {"ps_count": ["processes", "threads"]}


class LineServer:
    """Takes lines as Carbon does."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.text = b""
        self.has_ended = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        connection, _ = self.socket.accept()
        with connection:
            while data := connection.recv(65536):
                self.text += data
        self.has_ended.set()

    def series(self):
        """{name: [value...]}, as they came."""
        series = {}
        for line in self.text.decode("ascii").splitlines():
            name, value, _ = line.split(" ")
            series.setdefault(name, []).append(float(value))
        return series


def are_alike(value, other):
    """With the digits that the two plugins write."""
    if math.isnan(other):
        return math.isnan(value)
    return abs(value - other) <= 1e-6 + abs(other) * 1e-9


def escape(text):
    return re.sub(r"[\s\"\\:!,/()]", "%", text)


def tagged(instance, kind, type_instance, field):
    name = f"smaps.{kind}" + (f".{field}" if field else "")
    tags = {
        "host": "test",
        "plugin": "smaps",
        "plugin_instance": instance,
        "type": kind,
        "type_instance": type_instance,
        "ds_name": field,
    }
    return name + "".join(
        f";{key}={escape(value)}" for key, value in tags.items() if value
    )


def path(instance, kind, type_instance, field):
    parts = ["test", "smaps", instance, kind, type_instance, field]
    return escape(".".join(filter(None, parts)))


class Graphite(BackendTest):
    def run_daemon(self, replacements):
        server = LineServer()
        self.addCleanup(server.socket.close)
        self.start_shape("anon", name="web", mib=2)
        self.start_shape("anon", name="unread", mib=2)
        text = shipped(
            "graphite/collectd.conf",
            {
                '"localhost"': '"127.0.0.1"',
                '"2003"': f'"{server.port}"',
                **replacements,
            },
        )
        daemon = self.start_daemon(SMAPS + text, interval=1)
        daemon.wait_cycles(3)
        self.assertEqual(daemon.stop(), 0)
        wait_until(server.has_ended.is_set, "the end of the connection")
        return daemon, server.series()

    def check(self, name_of, replacements=None):
        daemon, series = self.run_daemon(replacements or {})
        values = daemon.values()
        self.assertLessEqual(set(ODD.values()) | {"unread"}, set(values))
        expected = {}
        for instance, metrics in values.items():
            for metric, rows in metrics.items():
                kind, _, type_instance = metric.partition("-")
                for i, field in enumerate(FIELDS.get(kind, [""])):
                    name = name_of(instance, kind, type_instance, field)
                    self.assertNotIn(name, expected)
                    expected[name] = [row[1 + i] for row in rows]
        self.assertEqual(set(series), set(expected))
        for name, written in expected.items():
            self.assertEqual(len(series[name]), len(written), name)
            for value, other in zip(series[name], written):
                self.assertTrue(are_alike(value, other), name)

    def test_each_value_is_a_series_with_tags(self):
        self.check(tagged)

    def test_each_value_has_a_path_where_there_are_no_tags(self):
        text = shipped("graphite/collectd.conf")
        lines = re.findall(r"^#    (\w+ true)$", text, re.MULTILINE)
        self.assertEqual(len(lines), 2)
        self.check(path, {"UseTags true": "\n    ".join(lines)})
