# SPDX-License-Identifier: MIT
"""What receivers get that are not in this package: a row for each way out of
collectd. Each gets the same as the csv plugin of the same daemon has written:
each value of each group under a name of its own, and an unknown value as the
way has it, never as a number.

The receivers are those of the test: they take what their protocol says, and
refuse what the real ones refuse.
"""

import http.server
import json
import math
import re
import socket
import struct
import subprocess
import threading

import harness
from harness import wait_until
from server import (
    BackendTest,
    free_port,
    load_smaps,
    need_plugin,
    need_program,
    shape_group,
    shipped,
)

# What a configuration says, and the name. Pairs become one name if characters are
# replaced without care.
NAMES = {
    r"x@1:2": "x@1:2",
    "x@1_2": "x@1_2",
    r"x\\x2dy": r"x\x2dy",
    "x_x2dy": "x_x2dy",
    "a(b)": "a(b)",
    "a_b_": "a_b_",
    "a.b": "a.b",
    "a_b": "a_b",
    "c++ #1": "c++ #1",
    "d~=e": "d~=e",
    r"g \"h\"": 'g "h"',
    "naïve": r"na\xc3\xafve",
}

SMAPS = load_smaps(
    'Report "default" "lazy_free"',
    "ValuesPercentage true",
    *(shape_group("web", name, "Continue true") for name in NAMES),
    shape_group("unread", None, 'Refresh "never"'),
)

# The fields of the types that have other ones than "value".
FIELDS = {"ps_count": ["processes", "threads"], "duration": ["seconds"]}


def fields_of(kind):
    return FIELDS.get(kind, ["value"])


def dotted(*parts):
    return ".".join(filter(None, parts))


def field_if_several(kind, field):
    return field if len(fields_of(kind)) > 1 else ""


class Receiver:
    """series() is {name: [value...]}, as they came, and name() what a value is
    called there. sends_unknown: NaN comes as such; else there is a gap."""

    plugins = ()
    sends_unknown = True

    def __init__(self, test):
        self.test = test

    def close(self):
        """The daemon has ended."""


class LineServer(Receiver):
    """Takes lines over TCP."""

    def __init__(self, test):
        super().__init__(test)
        self.socket = socket.create_server(("127.0.0.1", 0))
        test.addCleanup(self.socket.close)
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

    def close(self):
        wait_until(self.has_ended.is_set, "the end of the connection")

    def lines(self):
        return self.text.decode("ascii").splitlines()


class Graphite(LineServer):
    plugins = ("write_graphite",)

    def config(self):
        port = {'"localhost"': '"127.0.0.1"', '"2003"': f'"{self.port}"'}
        return shipped("graphite/collectd.conf", port)

    def series(self):
        series = {}
        for line in self.lines():
            name, value, _ = line.split(" ")
            series.setdefault(name, []).append(float(value))
        return series

    @staticmethod
    def escape(text):
        return re.sub(r"[\s\"\\:!,/()]", "%", text)

    def name(self, instance, kind, type_instance, field):
        field = field_if_several(kind, field)
        tags = {
            "host": "test",
            "plugin": "smaps",
            "plugin_instance": instance,
            "type": kind,
            "type_instance": type_instance,
            "ds_name": field,
        }
        return dotted("smaps", kind, field) + "".join(
            f";{key}={self.escape(value)}" for key, value in tags.items() if value
        )


class GraphiteWithoutTags(Graphite):
    def config(self):
        lines = re.findall(r"^#    (\w+ true)$", super().config(), re.MULTILINE)
        self.test.assertEqual(len(lines), 2)
        return super().config().replace("UseTags true", "\n    ".join(lines))

    def name(self, instance, kind, type_instance, field):
        field = field_if_several(kind, field)
        return self.escape(
            dotted("test", "smaps", instance, kind, type_instance, field)
        )


class OpenTsdb(LineServer):
    """With the rule that replaces what it refuses."""

    plugins = ("write_tsdb", "match_regex", "target_replace")
    sends_unknown = False

    def config(self):
        return shipped(
            "opentsdb/collectd.conf",
            {
                'Host "localhost"': 'Host "127.0.0.1"',
                '"4242"': f'"{self.port}"',
                "write_tsdb/localhost/4242": f"write_tsdb/127.0.0.1/{self.port}",
                '"rrdtool"': '"csv"',
            },
        )

    def series(self):
        """Metric, time, value and tags are words; Tags.validateString() of
        OpenTSDB 2.4 knows which characters are in names."""
        series = {}
        for line in self.lines():
            put, name, _, value, tag = line.split()
            self.test.assertEqual((put, tag), ("put", "fqdn=test"))
            self.test.assertRegex(name, r"\A[A-Za-z0-9_./-]+\Z")
            series.setdefault(name, []).append(float(value))
        return series

    def name(self, instance, kind, type_instance, field):
        field = field_if_several(kind, field)
        if not instance:  # write_tsdb of collectd 5.12 has another order
            return dotted("smaps", type_instance, kind, field)
        instance = re.sub("[^A-Za-z0-9_.-]", "/", instance)
        return dotted("smaps", instance, kind, type_instance, field)


class Exact(Receiver):
    """Names are the parts of collectd's identifier, and all characters come
    through."""

    def name(self, instance, kind, type_instance, field):
        return (instance, kind, type_instance, field)


class Http(Exact):
    """write_http's JSON; an unknown value is null."""

    plugins = ("write_http",)

    def __init__(self, test):
        super().__init__(test)
        self.bodies = bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["Content-Length"])
                bodies.append(self.rfile.read(length))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        test.addCleanup(self.server.server_close)
        test.addCleanup(self.server.shutdown)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def config(self):
        url = f"http://127.0.0.1:{self.server.server_port}/"
        return (
            f'LoadPlugin write_http\n<Plugin write_http>\n<Node "n">\nURL "{url}"\n'
            'Format "JSON"\nStoreRates false\n</Node>\n</Plugin>\n'
        )

    def series(self):
        def refuse(constant):
            raise AssertionError(f"{constant} is not JSON")

        series = {}
        for body in self.bodies:
            for one in json.loads(body, parse_constant=refuse):
                self.test.assertEqual((one["host"], one["plugin"]), ("test", "smaps"))
                for field, value in zip(one["dsnames"], one["values"]):
                    parts = (one["plugin_instance"], one["type"], one["type_instance"])
                    value = math.nan if value is None else value
                    series.setdefault((*parts, field), []).append(value)
        return series


class Network(Exact):
    """collectd's binary protocol, as Telegraf's parser and collectd's own
    listener read it: https://github.com/collectd/collectd/wiki/Binary-protocol.
    Names in it are strings of any bytes; NaN is that of a double."""

    plugins = ("network",)
    STRINGS = {0: "host", 2: "plugin", 3: "instance", 4: "type", 5: "type_instance"}
    VALUES = 6
    GAUGE = 1

    def __init__(self, test):
        super().__init__(test)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        test.addCleanup(self.socket.close)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(("127.0.0.1", 0))
        self.packets = []
        threading.Thread(target=self.receive, daemon=True).start()

    def receive(self):
        try:
            while packet := self.socket.recv(65536):
                self.packets.append(packet)
        except OSError:
            pass  # closed at the end of the test

    def config(self):
        port = self.socket.getsockname()[1]
        return (
            "LoadPlugin network\n<Plugin network>\n"
            f'Server "127.0.0.1" "{port}"\n</Plugin>\n'
        )

    @staticmethod
    def parts(packet):
        while packet:
            kind, length = struct.unpack_from(">HH", packet)
            yield kind, packet[4:length]
            packet = packet[length:]

    def values(self, part):
        (n,) = struct.unpack_from(">H", part)
        self.test.assertEqual(part[2 : 2 + n], bytes([self.GAUGE]) * n)
        return struct.unpack_from(f"<{n}d", part, 2 + n)

    def series(self):
        series = {}
        for packet in list(self.packets):
            now = dict.fromkeys(self.STRINGS.values(), "")
            for kind, part in self.parts(packet):
                if kind in self.STRINGS:
                    self.test.assertEqual(part[-1:], b"\0")
                    now[self.STRINGS[kind]] = part[:-1].decode("ascii")
                elif kind == self.VALUES:
                    _, _, instance, kind, type_instance = now.values()
                    values = self.values(part)
                    self.test.assertEqual(len(values), len(fields_of(kind)))
                    for field, value in zip(fields_of(kind), values):
                        name = (instance, kind, type_instance, field)
                        series.setdefault(name, []).append(value)
        return series


class Mqtt(Receiver):
    """Through mosquitto. A topic has no field, and "_" in place of + and #, which
    no topic can have."""

    plugins = ("mqtt",)

    def __init__(self, test):
        super().__init__(test)
        broker = need_program("mosquitto")
        client = need_program("mosquitto_sub", "mosquitto-clients")
        self.port = free_port()
        directory = harness.stage().new_directory()
        directory.chmod(0o777)  # it becomes a user without rights
        config = directory / "mosquitto.conf"
        config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n")
        server = test.start_server([broker, "-c", config], directory=directory)
        server.wait_port(self.port)
        # The topic may have blanks. The probe shows that it has subscribed.
        self.client = test.start_server(
            [client, "-p", str(self.port), "-t", "#", "-F", "%t %x"]
        )
        publish = need_program("mosquitto_pub", "mosquitto-clients")
        probe = [publish, "-p", str(self.port), "-t", "probe", "-m", "x"]
        self.client.wait_ready(
            lambda: not subprocess.call(probe)
            and "probe 78" in self.client.log()
        )

    def config(self):
        return (
            'LoadPlugin mqtt\n<Plugin mqtt>\n<Publish "n">\nHost "127.0.0.1"\n'
            f"Port {self.port}\nStoreRates false\n</Publish>\n</Plugin>\n"
        )

    def series(self):
        series = {}
        for line in self.client.log().splitlines():
            topic, _, payload = line.rpartition(" ")
            if topic == "probe":
                continue
            text = bytes.fromhex(payload).decode("ascii").rstrip("\0")
            for i, value in enumerate(text.split(":")[1:]):
                series.setdefault((topic, i), []).append(float(value))
        return series

    def name(self, instance, kind, type_instance, field):
        def join(*parts):
            return "-".join(filter(None, parts))

        topic = f"{join('smaps', instance)}/{join(kind, type_instance)}"
        topic = re.sub("[+#]", "_", f"collectd/test/{topic}")
        return topic, fields_of(kind).index(field)


RECEIVERS = (
    Graphite,
    GraphiteWithoutTags,
    OpenTsdb,
    Http,
    Network,
    Mqtt,
)


def are_alike(value, other):
    """With the digits that the two plugins write."""
    if math.isnan(other):
        return math.isnan(value)
    return abs(value - other) <= 1e-6 + abs(other) * 1e-9


class Receivers(BackendTest):
    def setUp(self):
        super().setUp()
        self.start_shape("anon", name="web", mib=2)
        self.start_shape("anon", name="unread", mib=2)

    def expected(self, receiver, values):
        """{name: [value...]} of what the csv plugin has written."""
        expected = {}
        for instance, metrics in values.items():
            for metric, rows in metrics.items():
                kind, _, type_instance = metric.partition("-")
                for i, field in enumerate(fields_of(kind)):
                    name = receiver.name(instance, kind, type_instance, field)
                    self.assertNotIn(name, expected)
                    written = [
                        row[1 + i]
                        for row in rows
                        if receiver.sends_unknown or not math.isnan(row[1 + i])
                    ]
                    if written:
                        expected[name] = written
        return expected

    def check(self, receiver):
        daemon = self.start_daemon(SMAPS + receiver.config(), interval=0.5)
        daemon.wait_cycles(3)
        self.assertEqual(daemon.stop(), 0)
        receiver.close()
        values = daemon.values()
        self.assertLessEqual(set(NAMES.values()) | {"unread"}, set(values))
        (_, unknown), *_ = values["unread"]["memory-pss"]
        self.assertTrue(math.isnan(unknown))
        expected = self.expected(receiver, values)
        count = sum(map(len, expected.values()))
        wait_until(
            lambda: sum(map(len, receiver.series().values())) >= count,
            lambda: f"{count} values" + daemon.log_tail(),
        )
        series = receiver.series()
        self.assertEqual(set(series), set(expected))
        for name, written in expected.items():
            self.assertEqual(len(series[name]), len(written), name)
            for value, other in zip(series[name], written):
                self.assertTrue(are_alike(value, other), (name, value, other))

    def test_each_value_has_its_name_and_unknown_ones_are_no_numbers(self):
        for kind in RECEIVERS:
            with self.subTest(kind.__name__):
                for plugin in kind.plugins:
                    need_plugin(plugin)
                self.check(kind(self))
