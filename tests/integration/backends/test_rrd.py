# SPDX-License-Identifier: MIT
"""RRD files: what collectd's rrdtool plugin stores of our values, by the
configuration in contrib/rrd, and the pictures that smaps-graph makes of it.

Of a picture the pixels are looked at: which colours a column has.
"""

import math
import re
import shutil
import struct
import subprocess
import zlib
from itertools import accumulate, groupby
from operator import add
from pathlib import Path

from harness import (
    DEADLINE_SECONDS,
    ROOT,
    TAG,
    Shape,
    group,
    need_host,
    plugin,
)
from server import (
    BackendTest,
    Daemon,
    need_plugin,
    need_program,
    shape_group,
    shipped,
)

CONTRIB = ROOT / "contrib"
SMAPS_GRAPH = CONTRIB / "rrd/smaps-graph"
CONFIG = "rrd/collectd.conf"

# A row for each reading, where an hour would have one for several.
SHORT_ROWS = {"RRATimespan 3600": "RRATimespan 1200"}
# As that file says, for an Interval of one second.
NO_CACHE = {"CacheTimeout 120": "CacheTimeout 0"}

# Files of the host that are there with swap only, or with zram.
OF_SWAP = {
    "bytes-swap_cache_error",
    "memory-swap_cache",
    "memory-zram",
    "memory-zswap",
}

USS_COLOUR = "4e79a7"
RSS_COLOUR = "555555"
UNKNOWN_COLOUR = "ffd9d9"
FRAME_COLOUR = (0xF3, 0xF3, 0xF3)


class RrdDaemon(Daemon):
    """Uses the rrdtool plugin, with a directory of its own."""

    def complete(self, body):
        text = shipped(
            CONFIG,
            {
                "/var/lib/collectd/rrd": self.data,
                **SHORT_ROWS,
                **(NO_CACHE if self.interval == 1 else {}),
            },
        )
        return super().complete(text + body)

    @property
    def data(self):
        return self.directory / "rrd"

    def file(self, group, metric):
        name = f"smaps-{group}" if group else "smaps"
        return self.data / self.host / name / f"{metric}.rrd"


def need_rrdtool():
    need_plugin("rrdtool")
    return need_program("rrdtool")


def rrdtool(*arguments):
    return subprocess.run(
        [need_rrdtool(), *arguments],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    ).stdout


def last_update(path):
    """(time, values as they were written)"""
    _, _, row = rrdtool("lastupdate", path).splitlines()
    time_, _, values = row.partition(":")
    values = tuple(
        math.nan if value == "U" else float(value) for value in values.split()
    )
    return int(time_), values


def same(one, other):
    """Compares numbers that may be NaN. In csv they have six decimals."""
    return len(one) == len(other) and all(
        abs(a - b) < 1e-6 or (math.isnan(a) and math.isnan(b))
        for a, b in zip(one, other)
    )


class StoredValues(BackendTest):
    """One run, and what is in the files after it."""

    # RRD files take what comes later than twice that for unknown.
    interval = 6

    @classmethod
    def setUpClass(cls):
        need_rrdtool()
        for name in ("known", "unknown"):
            shape = Shape("cow", name=name, mib=8, rewrite_mib=2, children=2)
            cls.addClassCleanup(shape.stop)
        cls.daemon = RrdDaemon(
            plugin(
                shape_group("known", None, 'Refresh "always"'),
                shape_group("unknown", "not known", 'Refresh "never"'),
            ),
            interval=cls.interval,
        )
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.wait_cycles(6)
        cls.daemon.stop()
        cls.values = cls.daemon.values()

    def test_each_metric_has_a_file(self):
        files = {
            (path.parent.name, path.stem)
            for path in self.daemon.data.glob("test/*/*.rrd")
            if path.parent.name.partition("-")[0] == "smaps"
        }
        expected = {
            (f"smaps-{group}" if group else "smaps", metric)
            for group, metrics in self.values.items()
            for metric in metrics
        }
        self.assertEqual(files, expected)
        names = {metric for _, metric in expected}
        for name in ("memory-pss", "ps_count", "percent-coverage"):
            self.assertIn(name, names)
        self.assertIn(("smaps", "duration-cycle"), expected)

    def test_the_configuration_names_the_number_of_files(self):
        text = " ".join((CONTRIB / CONFIG).read_text().split("\n# "))
        for pattern, group in (
            (r"for each group (\d+) files", "known"),
            (r"for the host (\d+) with", "host"),
        ):
            with self.subTest(group=group):
                if group == "host":
                    need_host()
                files = self.daemon.data.glob(f"test/smaps-{group}/*.rrd")
                names = {path.stem for path in files} - OF_SWAP
                self.assertEqual(int(re.search(pattern, text)[1]), len(names))
        self.assertIn(f"{len(OF_SWAP)} more where there is swap", text)

    def test_the_last_values_are_those_that_csv_got(self):
        for group, metrics in self.values.items():
            for metric, rows in metrics.items():
                with self.subTest(group=group, metric=metric):
                    path = self.daemon.file(group, metric)
                    time_, values = last_update(path)
                    near = [row for row in rows if abs(row[0] - time_) < 1]
                    self.assertTrue(
                        any(same(values, row[1:]) for row in near),
                        f"{values} at {time_}; csv has {rows[-3:]}",
                    )
                    self.assertLess(rows[-1][0] - time_, 1)

    def test_a_group_that_is_never_known_is_drawn_as_such(self):
        times = self.daemon.times()
        span = ("-s", int(times[0]), "-e", int(times[-1]))
        files = ("-d", self.daemon.data, "-o", self.daemon.directory / "png")
        done = smaps_graph(*files, *span, "group", "not known")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        colours = column_colours(
            Path(done.stdout.rstrip("\n")), [USS_COLOUR, UNKNOWN_COLOUR]
        )
        self.assertIn({UNKNOWN_COLOUR}, runs(colours))
        self.assertNotIn(USS_COLOUR, set().union(*colours))
        # A stack without any other has nothing to show.
        done = smaps_graph(*files, *span, "-x", "known", "stack")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no values", done.stderr)

    def test_the_configuration_is_taken_without_complaint(self):
        complaints = self.daemon.log_lines(r"\[(warning|error)\]")
        self.assertEqual(complaints, [])


# ---- pictures ----

LOW_BYTE = (255).__and__


def unfilter(kind, line, above):
    """Decodes a line of a PNG of three bytes a pixel, in place."""
    if kind == 1:
        for colour in range(3):
            sums = accumulate(line[colour::3])
            line[colour::3] = bytes(map(LOW_BYTE, sums))
    elif kind == 2:
        line[:] = bytes(map(LOW_BYTE, map(add, line, above)))
    else:
        unfilter_from_three(kind, line, above)


def unfilter_from_three(kind, line, above):
    for i, byte in enumerate(line):
        left = line[i - 3] if i >= 3 else 0
        corner = above[i - 3] if i >= 3 else 0
        up = above[i]
        if kind == 4:
            guess = left + up - corner
            more = min((left, up, corner), key=lambda one: abs(guess - one))
        else:
            more = (left + up) // 2
        line[i] = LOW_BYTE(byte + more)


def read_png(path):
    """Returns (width, height, lines of RGB bytes)."""
    data = path.read_bytes()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise AssertionError(f"{path} is no PNG")
    packed, position, header = b"", 8, None
    while position < len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        chunk = data[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, position + 8 + length)
        if zlib.crc32(kind + chunk) != checksum:
            raise AssertionError(f"{path} is damaged")
        header = struct.unpack(">IIBBBBB", chunk) if kind == b"IHDR" else header
        packed += chunk if kind == b"IDAT" else b""
        position += 12 + length
    if header[2:] != (8, 2, 0, 0, 0):
        raise AssertionError(f"{path} is not RGB of eight bits: {header}")
    return header[0], header[1], unpack_lines(packed, *header[:2])


def unpack_lines(packed, width, height):
    raw = zlib.decompress(packed)
    lines, above = [], bytes(width * 3)
    for y in range(height):
        begin = y * (width * 3 + 1)
        line = bytearray(raw[begin + 1 : begin + 1 + width * 3])
        if raw[begin]:
            unfilter(raw[begin], line, above)
        lines.append(line)
        above = line
    return lines


def pixels_of(line):
    return list(zip(line[0::3], line[1::3], line[2::3]))


def plot_lines(width, lines):
    """Those without the title and the legend, which leave most of a line as it
    is."""
    begin, end = 100, width - 50

    def is_plot(line):
        frame = pixels_of(line)[begin:end].count(FRAME_COLOUR)
        return frame < (end - begin) / 10

    return [line for line in lines if is_plot(line)]


def column_colours(path, colours):
    """Returns for each column of the plot which of the colours it has."""
    width, _, lines = read_png(path)
    lines = plot_lines(width, lines)
    wanted = {tuple(bytes.fromhex(colour)): colour for colour in colours}
    pixels = (pixels_of(line)[62:] for line in lines)
    return [
        {wanted[p] for p in wanted.keys() & column} for column in zip(*pixels)
    ]


def runs(columns):
    """Returns [(value, how many columns)]; a line of the grid does not count as
    a run."""
    grouped = [(value, len(list(some))) for value, some in groupby(columns)]
    wide = [value for value, length in grouped if length > 2]
    return [value for value, _ in groupby(wide)]


def palette():
    """The colours that groups may have."""
    text = re.search(r'PALETTE = """([^"]*)"""', SMAPS_GRAPH.read_text())
    return text.group(1).split()


def smaps_graph(*arguments, env=None):
    return subprocess.run(
        [SMAPS_GRAPH, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=DEADLINE_SECONDS,
        check=False,
        text=True,
        env=env,
    )


ODD_NAME = "odd a\\b: 5% c\\:"


def config_of_groups(names):
    escaped = ODD_NAME.replace("\\", "\\\\").replace("%", "%%")
    return plugin(
        *map(shape_group, names),
        shape_group("odd", escaped),
        group("job-%{1}", f'CommMatch "^job([0-9]){TAG}$"'),
    )


class PictureTest(BackendTest):
    """smaps-graph with the data of a run of the class."""

    def setUp(self):
        self.output = self.daemon.directory / self.id()
        self.addCleanup(shutil.rmtree, self.output, True)

    def graph(self, *arguments, data=None):
        return smaps_graph(
            "-d", data or self.daemon.data, "-o", self.output, *arguments
        )

    def draw(self, *arguments):
        """Draws pictures, and returns their files."""
        done = self.graph(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [Path(line) for line in done.stdout.splitlines()]

    def assert_fails(self, words, *arguments, data=None):
        """It prints one line, and no picture."""
        done = self.graph(*arguments, data=data)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("smaps-graph: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(list(self.output.glob("*")), [])


class Pictures(PictureTest):
    @classmethod
    def setUpClass(cls):
        need_rrdtool()
        for name in ("one", "two", "three", "odd"):
            shape = Shape("anon", name=name, mib=16)
            cls.addClassCleanup(shape.stop)
        cls.daemon = RrdDaemon(
            config_of_groups(["one", "two", "three", "idle"]), interval=1
        )
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.wait_cycles(8)
        cls.daemon.stop()
        cls.span = ("-s", int(cls.daemon.times()[0]), "-e", "start+8s")

    def test_a_picture_has_the_size_that_was_asked_for(self):
        for width, height in ((900, 450), (640, 400)):
            (path,) = self.draw(*self.span, "-w", width, "-H", height, "stack")
            self.assertEqual(read_png(path)[:2], (width, height))

    def test_all_draws_the_stacks_and_each_group(self):
        names = {path.name for path in self.draw(*self.span, "all")}
        groups = ("one", "two", "three", "idle", ODD_NAME)
        expected = {f"group-{name}.png" for name in groups}
        expected |= {"stack.png", "processes.png", "threads.png"}
        if self.daemon.file("host", "memory-free").is_file():
            expected.add("host.png")
        self.assertEqual(names, expected)
        self.assertEqual(
            {path.name for path in self.output.iterdir()}, expected
        )

    def test_rss_is_drawn_on_request(self):
        (path,) = self.draw(*self.span, "group", "one")
        without = column_colours(path, [RSS_COLOUR])
        (path,) = self.draw(*self.span, "-r", "group", "one")
        self.assertGreater(
            sum(map(bool, column_colours(path, [RSS_COLOUR]))),
            sum(map(bool, without)),
        )

    def test_processes_and_threads_are_stacked(self):
        for path in self.draw(*self.span, "counts"):
            columns = column_colours(path, palette())
            self.assertIn(4, map(len, runs(columns)), path.name)

    # -- what is wrong is said in one line --

    def test_a_missing_or_empty_directory_is_reported(self):
        empty = self.daemon.directory / "empty"
        empty.mkdir(exist_ok=True)
        self.assert_fails(["nothing", str(empty)], "stack", data=empty)
        missing = empty / "missing"
        self.assert_fails(["no directory", str(missing)], "all", data=missing)

    def test_an_unknown_host_or_group_is_reported_with_the_known_ones(self):
        self.assert_fails(['"web1"', "test"], "-h", "web1", "stack")
        words = ['"four"', "one", "two", "three", ODD_NAME]
        self.assert_fails(words, *self.span, "group", "four")

    def test_one_of_several_hosts_has_to_be_named(self):
        data = self.daemon.directory / "two hosts"
        for host in ("test", "b: c"):
            shutil.copytree(self.daemon.data / "test", data / host)
        self.addCleanup(shutil.rmtree, data)
        self.assert_fails(["-h", "test", "b: c"], "stack", data=data)
        done = self.graph(*self.span, "-h", "b: c", "stack", data=data)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_time_without_values_is_reported(self):
        old = ("-s", "20200101", "-e", "20200102")
        self.assert_fails(["no values", "20200101"], *old, "stack")
        self.assert_fails(["no values", '"one"'], *old, "group", "one")

    def test_a_mistake_in_the_command_line_is_reported(self):
        self.assert_fails(["stack", "--help"])
        self.assert_fails(["stack", "--help"], "stack", "group")
        self.assert_fails(["stack", "--help"], "group")
        self.assert_fails(["-n", "1 to 12", '"x"'], "-n", "x", "stack")
        self.assert_fails(["-q"], "-q", "stack")
        self.assert_fails(["-H", "100"], *self.span, "-H", "100", "stack")
        self.assert_fails(["rrdtool", "then"], "-s", "then", "stack")

    def test_without_rrdtool_it_names_the_package(self):
        """PATH has no program at all; the data are those of the daemon."""
        words = "-d", self.daemon.data, "-o", self.output, *self.span, "stack"
        done = smaps_graph(*words, env={"PATH": str(self.output)})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr,
            "smaps-graph: rrdtool is not installed: sudo apt install rrdtool"
            " (Fedora: sudo dnf install rrdtool)\n",
        )

    def test_help_is_printed(self):
        done = smaps_graph("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("usage: smaps-graph", done.stdout)
