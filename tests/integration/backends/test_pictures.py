# SPDX-License-Identifier: MIT
"""The pictures of smaps-graph, of made-up RRD files: hours in which collectd
stands still, groups are unknown, end and come back, and hosts are missing.

Colours are looked at in the picture. Its texts are taken from the command line
of rrdtool, which a program of that name in front of it writes down.
"""

import itertools
import math
import os
import shutil
import subprocess
import unittest
from pathlib import Path

from harness import DEADLINE_SECONDS, MIB, stage
from server import need_program
from test_rrd import (
    SMAPS_GRAPH,
    UNKNOWN_COLOUR,
    column_colours,
    palette,
    plot_lines,
    read_png,
    runs,
)

GIB = 1024 * MIB
NAN = math.nan

MINUTE = 60
BEGIN = 1_800_000_000
MINUTES = 600
STOPPED = range(300, 340)  # collectd does not run


def write_rrd(path, function, names=("value",)):
    """Writes a row for each minute; None is an unknown value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sources = [f"DS:{name}:GAUGE:120:U:U" for name in names]
    rows = [f"RRA:{kind}:0.1:1:{MINUTES}" for kind in ("AVERAGE", "MAX")]
    rrdtool("create", path, f"-b{BEGIN - MINUTE}", "-s60", *sources, *rows)
    updates = []
    for minute in range(MINUTES):
        value = None if minute in STOPPED else function(minute)
        if value is not None:
            text = "U" if math.isnan(value) else repr(float(value))
            time = BEGIN + minute * MINUTE
            updates.append(f"{time}:" + ":".join([text] * len(names)))
    rrdtool("update", path, *updates)


def rrdtool(*arguments):
    program = need_program("rrdtool")
    subprocess.run([program, *map(str, arguments)], check=True)


def write_group(host, name, pss, there=lambda minute: True):
    directory = host / f"smaps-{name}"
    parts = {"pss": 1, "uss": 0.5, "swap": 0, "pss_error": 0.25}
    for metric, part in parts.items():
        write_rrd(
            directory / f"memory-{metric}.rrd",
            lambda minute: pss(minute) * part if there(minute) else None,
        )
    write_rrd(
        directory / "ps_count.rrd",
        lambda minute: 3 if there(minute) else None,
        ("processes", "threads"),
    )


def write_own(host):
    write_rrd(host / "smaps/duration-cycle.rrd", lambda _: 0.01, ("seconds",))


def write_sums(host, name, pss, hosts):
    """What the aggregation of contrib/fleet makes."""
    prefix = f"aggregation-smaps-{name}"
    for metric, part in {"pss": 1, "uss": 0.5}.items():
        file = f"memory-{metric}.rrd"
        total = lambda minute: pss * part * hosts(minute)
        write_rrd(host / f"{prefix}-sum" / file, total)
        write_rrd(host / f"{prefix}-num" / file, hosts)


class PicturesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = stage().new_directory()
        cls.data = cls.directory / "rrd"
        cls.write(cls.data)
        program = cls.directory / "bin/rrdtool"
        program.parent.mkdir()
        real = need_program("rrdtool")
        program.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >>"$LOG"\nexec {real} "$@"\n'
        )
        program.chmod(0o755)

    def graph(self, *arguments, data=None):
        self.log = self.directory / f"log-{self.id()}"
        self.log.unlink(missing_ok=True)
        output = self.directory / self.id()
        path = f"{self.directory}/bin:{os.environ['PATH']}"
        span = ("-s", BEGIN, "-e", BEGIN + MINUTES * MINUTE)
        files = ("-d", data or self.data, "-o", output)
        return subprocess.run(
            [SMAPS_GRAPH, *map(str, [*files, *span, *arguments])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": path, "LOG": str(self.log)},
            timeout=DEADLINE_SECONDS,
            check=False,
            text=True,
        )

    def draw(self, *arguments, data=None):
        """Draws pictures. Returns (its files, the words of all command lines).
        """
        done = self.graph(*arguments, data=data)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        files = [Path(line) for line in done.stdout.splitlines()]
        return files, self.log.read_text().splitlines()

    def row(self, words, legend):
        """Returns the numbers of a line of the legend."""
        (word,) = (w for w in words if f":{legend} " in w and "  " in w)
        text = word.split(f":{legend} ")[1].split("\\l")[0].split(":")[0]
        return text.split()

    def bands(self, path):
        columns = column_colours(path, [UNKNOWN_COLOUR])
        return [bool(colours) for colours in columns]


class Host(PicturesTest):
    @classmethod
    def write(cls, data):
        host = data / "web1"
        write_own(host)
        write_group(host, "large", lambda minute: 6.5 * GIB)
        write_group(
            host,
            "unknown",
            lambda minute: NAN if 100 <= minute < 150 else 2 * GIB,
        )
        write_group(
            host,
            "nightly",
            lambda minute: 1010 * MIB,
            lambda minute: 50 <= minute < 80 or 450 <= minute < 500,
        )
        write_group(host, "never", lambda minute: NAN)
        for letter in "abcdefghijkl":
            write_group(host, f"small-{letter}.service", lambda _: 3 * MIB)
        states = {"used": 8, "free": 5, "cached": 3}
        for name, gib in states.items():
            path = host / f"memory/memory-{name}.rrd"
            write_rrd(path, lambda _, gib=gib: gib * GIB)

    def test_numbers_have_units_of_1024(self):
        _, words = self.draw("stack")
        self.assertEqual(self.row(words, "large"), ["6.5", "GiB"] * 3)
        self.assertEqual(
            self.row(words, "small-a.service"), ["3.0", "MiB"] * 3
        )
        self.assertIn("--vertical-label=GiB", words)
        self.assertIn("--base=1024", words)
        _, words = self.draw("group", "nightly")
        self.assertIn("--vertical-label=MiB", words)
        self.assertEqual(
            self.row(words, "highest PSS"), ["1010.0", "MiB"] * 3
        )
        self.assertEqual(self.row(words, "swap"), ["0", "B"] * 3)

    def test_unknown_values_are_shown_as_a_dash(self):
        _, words = self.draw("group", "never")
        self.assertEqual(self.row(words, "highest PSS"), ["-"] * 3)
        _, words = self.draw("all")
        self.assertFalse([word for word in words if "nan" in word.lower()])
        self.assertFalse([word for word in words if "GPRINT" in word])

    def test_most_of_the_picture_is_the_plot(self):
        for width in (900, 500):
            for number in (10, 12):
                with self.subTest(width=width, number=number):
                    words = ("-w", width, "-n", number, "-m", "stack")
                    (path,), _ = self.draw(*words)
                    self.assert_half_is_plot(path)

    def assert_half_is_plot(self, path):
        width, height, lines = read_png(path)
        self.assertGreaterEqual(len(plot_lines(width, lines)), height / 2)

    def test_a_height_that_the_legend_would_fill_is_refused(self):
        done = self.graph("-H", 300, "-w", 500, "stack")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"-H 300 is too little .* takes \d+,")

    def test_a_gap_is_the_same_alone_and_in_the_stack(self):
        (alone,), _ = self.draw("group", "unknown")
        (stack,), _ = self.draw("stack")
        self.assertEqual(
            runs(self.bands(alone)), [False, True, False, True, False]
        )
        both = zip(self.bands(alone), self.bands(stack))
        # The column at an edge may differ.
        self.assertLessEqual(sum(one != other for one, other in both), 2)

    def test_a_gap_in_a_stack_leaves_the_areas_below_it(self):
        (path,), _ = self.draw("-x", "small-*", "stack")
        counts = [len(some) for some in runs(column_colours(path, palette()))]
        # Twice there is the nightly one too.
        self.assertEqual(counts, [0, 2, 3, 2, 1, 2, 0, 2, 3, 2, 0])

    def test_a_group_that_may_be_late_ends_the_stack(self):
        """The nightly one has ended, but within CacheTimeout nobody can know."""
        (path,), _ = self.draw("-c", 7200, "-x", "small-*", "stack")
        counts = [len(some) for some in runs(column_colours(path, palette()))]
        self.assertEqual(counts, [0, 2, 3, 2, 1, 2, 0, 2, 3, 0])

    def test_a_group_that_has_ended_is_not_unknown(self):
        (path,), _ = self.draw("group", "nightly")
        # A band shows only the time in which collectd stood still.
        bands = self.bands(path)
        self.assertEqual(runs(bands), [False, True, False])
        minutes = sum(bands) * MINUTES / (len(bands) - 38)
        self.assertAlmostEqual(minutes, len(STOPPED), delta=5)

    def test_one_smaller_group_is_not_called_groups(self):
        # There are 15 groups with values.
        _, words = self.draw("-n", 12, "-x", "small-[ab]*", "stack")
        self.assertEqual(self.row(words, "1 smaller group")[1], "MiB")
        _, words = self.draw("-n", 12, "stack")
        self.assertTrue(self.row(words, "3 smaller groups"))

    def test_mem_total_is_a_line_at_the_sum_of_the_memory_plugin(self):
        for picture in (["stack"], ["group", "large"]):
            _, words = self.draw("-m", *picture)
            self.assertEqual(self.row(words, "MemTotal"), ["16.0", "GiB"] * 3)

    def test_mem_total_leaves_a_group_half_of_its_picture(self):
        for limit, is_line in (("9G", True), ("7G", False)):
            with self.subTest(limit):
                _, words = self.draw("-m", "-l", f"large={limit}", "group", "large")
                total = self.row(words, "MemTotal")
                self.assertEqual(total, ["16.0", "GiB"] * 3)
                lines = [word for word in words if "#000000:MemTotal" in word]
                self.assertEqual(bool(lines), is_line)
        _, words = self.draw("-m", "group", "nightly")
        self.assertIn("--vertical-label=MiB", words)

    def test_mem_total_comes_from_percentages_too(self):
        data = self.directory / "percentages"
        shutil.copytree(self.data, data)
        shutil.rmtree(data / "web1/memory")
        done = self.graph("-m", "stack", data=data)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "-m: .*MemTotal")
        percent = data / "web1/smaps-large/percent-pss.rrd"
        write_rrd(percent, lambda _: 100 * 6.5 / 32)
        _, words = self.draw("-m", "stack", data=data)
        self.assertEqual(self.row(words, "MemTotal"), ["32.0", "GiB"] * 3)

    def test_a_limit_is_a_line_in_the_picture_of_its_group(self):
        (path,), words = self.draw("-l", "large=7G", "group", "large")
        self.assertEqual(self.row(words, "limit"), ["7.0", "GiB"] * 3)
        columns = column_colours(path, ["d62728"])
        self.assertGreater(sum(map(bool, columns)), 500)
        _, words = self.draw("-l", "large=7G", "group", "unknown")
        self.assertFalse([word for word in words if ":limit" in word])

    def test_the_error_of_pss_is_a_band_around_it(self):
        _, words = self.draw("group", "large")
        error, unit = self.row(words, "error of PSS (band)")[:2]
        self.assertEqual((error, unit), ("1.6", "GiB"))
        self.assertIn("CDEF:below=pss,error,-,0,MAX", words)
        self.assertIn("CDEF:spread=pss,error,+,below,-", words)

    def test_a_malformed_limit_is_reported(self):
        for text in ("large", "=7G", "large=", "large=7X", "large=-1"):
            done = self.graph("-l", text, "stack")
            self.assertEqual(done.returncode, 1)
            expected = f'-l takes GROUP=SIZE, as web=6G, not "{text}"'
            self.assertIn(expected, done.stderr)


def lab(colour):
    """CIELAB of sRGB (D65): distances are about as people see them."""
    linear = []
    for byte in bytes.fromhex(colour):
        part = byte / 255
        linear.append(
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        )
    rows = (
        (0.4339, 0.3762, 0.1899),
        (0.2126, 0.7152, 0.0722),
        (0.0177, 0.1095, 0.8730),
    )
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (sum(map(math.prod, zip(row, linear))) for row in rows)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


class Colours(unittest.TestCase):
    def test_no_two_groups_are_alike(self):
        """The greens 59a14f and 8cd17d, 18 apart, look the same in a narrow
        area."""
        red = (53.24, 80.09, 67.20)  # as tables of colours have it
        self.assertLess(math.dist(lab("ff0000"), red), 0.1)
        self.assertLess(math.dist(lab("59a14f"), lab("8cd17d")), 20)
        for one, other in itertools.combinations(palette(), 2):
            with self.subTest(one=one, other=other):
                self.assertGreater(math.dist(lab(one), lab(other)), 30)


class Ends(PicturesTest):
    """The files of a group begin and end some rows apart: other rows of theirs
    begin then, and some are written later than others."""

    @classmethod
    def write(cls, data):
        host = data / "web1"
        began = lambda minute: minute >= 100
        write_rrd(
            host / "smaps/duration-cycle.rrd",
            lambda minute: 0.01 if began(minute) else None,
            ("seconds",),
        )
        write_group(host, "web", lambda minute: GIB, began)
        write_group(
            host, "shop", lambda minute: GIB, lambda minute: minute >= 200
        )
        for name, begin in (("web", 99), ("shop", 199)):
            write_rrd(
                host / f"smaps-{name}/ps_count.rrd",
                lambda minute: 3 if minute >= begin else None,
                ("processes", "threads"),
            )
            path = host / f"smaps-{name}/memory-pss.rrd"
            path.unlink()
            there = range(begin + 1, MINUTES - 3)
            write_rrd(path, lambda minute: GIB if minute in there else None)

    def test_no_end_is_unknown(self):
        """A band shows only the time in which collectd stood still."""
        for picture in (["stack"], ["group", "web"], ["group", "shop"]):
            with self.subTest(picture):
                (path,), _ = self.draw(*picture)
                bands = self.bands(path)
                self.assertEqual(runs(bands), [False, True, False])
                self.assertLessEqual(len(list(itertools.groupby(bands))), 3)

    def test_a_group_that_stays_unknown_is(self):
        data = self.directory / "unknown"
        shutil.copytree(self.data, data)
        path = data / "web1/smaps-web/memory-pss.rrd"
        path.unlink()
        known = range(150, 560)
        write_rrd(path, lambda minute: GIB if minute in known else None)
        (path,), _ = self.draw("group", "web", data=data)
        bands = runs(self.bands(path))
        self.assertEqual(bands, [False, True, False] + [True, False] * 2)


class Fleet(PicturesTest):
    @classmethod
    def write(cls, data):
        hosts = lambda minute: 2 if 400 <= minute < 450 else 3
        write_sums(data / "fleet", "web", GIB, hosts)
        write_sums(data / "fleet", "db-main", 2 * GIB, lambda minute: 5)
        write_group(data / "web1", "web", lambda minute: GIB)

    def test_sums_over_hosts_are_groups_of_the_fleet(self):
        files, words = self.draw("-h", "fleet", "all")
        self.assertEqual(
            {path.name for path in files},
            {"stack.png", "group-web.png", "group-db-main.png"},
        )
        self.assertEqual(self.row(words, "total")[-2:], ["13.0", "GiB"])

    def test_the_number_of_hosts_is_in_the_legend(self):
        _, words = self.draw("-h", "fleet", "group", "web")
        last, _, most = self.row(words, "hosts in the sum")
        self.assertEqual((last, most), ("3.0", "3.0"))

    def test_a_sum_that_lacks_hosts_is_marked(self):
        for picture in (["stack"], ["group", "web"]):
            (path,), _ = self.draw("-h", "fleet", *picture)
            # Collectd stood still before, and the sum is there in both.
            bands = runs(self.bands(path))
            self.assertEqual(bands, [False, True, False, True, False])
        (path,), _ = self.draw("-h", "fleet", "group", "db-main")
        self.assertEqual(runs(self.bands(path)), [False, True, False])

    def test_missing_counts_of_the_fleet_are_reported(self):
        done = self.graph("-h", "fleet", "counts")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no group with ps_count.rrd", done.stderr)
