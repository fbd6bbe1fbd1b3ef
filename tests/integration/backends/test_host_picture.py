# SPDX-License-Identifier: MIT
"""The picture of where the memory of a host is, and the line at the limit of a
control group, of made-up RRD files.

A host of 16 GiB has 8 of them in processes. At first its groups have less than
that; then they have as much; then a second view has a part of them twice.
"""

import re
import shutil

from harness import MIB
from test_manual import names
from test_pictures import (
    BEGIN,
    GIB,
    MINUTE,
    MINUTES,
    NAN,
    STOPPED,
    PicturesTest,
    write_group,
    write_own,
    write_rrd,
    write_sums,
)
from test_rrd import (
    SMAPS_GRAPH,
    UNKNOWN_COLOUR,
    column_colours,
    palette,
    plot_lines,
    read_png,
    runs,
)

UNKNOWN = range(100, 150)
SLIGHTLY_MORE = range(200, 230)  # by no more than the errors
OVERLAP = range(400, 500)

PARTS = {
    "groups": 8 * GIB,
    "page_tables": 64 * MIB,
    "kernel_stack": 32 * MIB,
    "slab_unreclaimable": 160 * MIB,
    "slab_reclaimable": 256 * MIB,
    "percpu": 16 * MIB,
    "hugetlb_used": 0,
    "hugetlb_free": 0,
    "unaccounted": 240 * MIB,
    "tmpfs": 256 * MIB,
    "buffers": GIB,
    "page_cache": 2 * GIB,
    "free": 4 * GIB,
}
FREE_COLOUR = "f2f2ec"
OUTSIDE_COLOUR = "d8d0c0"
UNDIVIDED_COLOUR = "c9a66b"
LIMIT_COLOUR = "d62728"
NO_PLOT = 38  # columns, about


def write_parts(host, parts, there=lambda minute: True):
    for part, size in parts.items():
        write_rrd(
            host / f"smaps-host/memory-{part}.rrd",
            lambda minute: size if there(minute) else None,
        )
    for what in ("groups", "outside"):
        path = host / f"smaps-host/bytes-{what}_error.rrd"
        write_rrd(path, lambda _: 64 * MIB)


def small(minute):
    return NAN if minute in UNKNOWN else GIB


def extra(minute):
    """What the group "extra" has, beside 6 GiB of the others."""
    if minute in SLIGHTLY_MORE:
        return 2 * GIB + 100 * MIB
    return 3 * GIB if minute in OVERLAP else GIB


def of_time(minutes):
    """Options that draw only these minutes."""
    begin, end = (BEGIN + minute * MINUTE for minute in minutes)
    return "-s", begin, "-e", end


class HostPictureTest(PicturesTest):
    def draw_host(self, *arguments, data=None):
        """Draws a picture. Returns (its file, its words)."""
        (path,), words = self.draw(*arguments, "host", data=data)
        return path, words

    def minutes_of(self, path, colour):
        """The minutes in which the plot has a colour, about."""
        columns = column_colours(path, [colour])
        pixels = len(columns) - NO_PLOT
        return sum(map(bool, columns)) * MINUTES / pixels


class Division(HostPictureTest):
    @classmethod
    def write(cls, data):
        host = data / "web1"
        write_own(host)
        write_group(host, "large", lambda minute: 5 * GIB)
        write_group(host, "small", small)
        write_group(host, "extra", extra)
        write_group(host, "never", lambda minute: NAN)
        write_parts(host, PARTS)
        # Files of a group of this name, from a version that allowed it.
        write_group(host, "host", lambda minute: 99 * GIB)

    def test_the_stack_ends_at_mem_total(self):
        path, words = self.draw_host(*of_time((10, 90)))
        same = {"large": 5, "small": 1, "extra": 1, "free": 4, "MemTotal": 16}
        for name, gib in same.items():
            self.assertEqual(self.row(words, name), [f"{gib}.0", "GiB"] * 3)
        outside = self.row(words, "outside of these groups")
        self.assertEqual(outside, ["1.0", "GiB"] * 3)
        self.assertEqual(self.row(words, "tmpfs"), ["256.0", "MiB"] * 3)
        # And so high they are drawn.
        groups = self.height(path, OUTSIDE_COLOUR)
        total = self.height(path, FREE_COLOUR)
        self.assertAlmostEqual(groups / total, 8 / 16, delta=0.02)

    def height(self, path, colour):
        """Returns the pixels from the bottom of the stack to the top of an
        area."""
        width, _, lines = read_png(path)
        wanted = {bytes.fromhex(text): text for text in [colour, *palette()]}
        found = {text: [] for text in wanted.values()}
        for i, line in enumerate(plot_lines(width, lines)):
            middle = 3 * (width // 2)
            for x in range(middle, middle + 90, 3):
                pixel = bytes(line[x : x + 3])
                if pixel in wanted:
                    found[wanted[pixel]].append(i)
        return max(sum(found.values(), [])) - min(found[colour])

    def test_what_is_never_a_hundredth_of_mem_total_is_one_area(self):
        """64 + 32 + 160 + 16 MiB, of 163.84 MiB and less."""
        _, words = self.draw_host()
        parts = self.row(words, "4 smaller parts")
        self.assertEqual(parts, ["272.0", "MiB"] * 3)
        for name in ("page_tables", "slab_unreclaimable", "percpu"):
            self.assertFalse([word for word in words if f":{name} " in word])
        (note,) = [word for word in words if "smaller parts\\: " in word]
        expected = "page_tables, kernel_stack, slab_unreclaimable, percpu"
        self.assertIn(expected, note)

    def test_groups_that_are_never_a_hundredth_of_mem_total_are_one_area(self):
        data = self.directory / "small"
        shutil.copytree(self.data, data)
        peak = lambda minute: 200 * MIB if minute == 60 else 8 * MIB
        write_group(data / "web1", "peak", peak)
        for name in ("tiny", "minute"):
            write_group(data / "web1", name, lambda minute: 64 * MIB)
        _, words = self.draw_host(data=data)
        rest = self.row(words, "2 smaller groups")
        self.assertEqual(rest, ["128.0", "MiB"] * 3)
        self.assertTrue(self.row(words, "peak"))

    def test_parts_that_no_host_has_are_not_in_the_legend(self):
        _, words = self.draw_host()
        self.assertFalse([word for word in words if ":hugetlb_used " in word])
        for name in ("zram", "zswap", "swap_cache"):
            self.assertFalse([word for word in words if name in word])

    def test_more_than_the_sum_within_its_errors_is_cut(self):
        _, words = self.draw_host(*of_time((205, 225)))
        self.assertEqual(self.row(words, "extra"), ["2.1", "GiB"] * 3)
        self.assertEqual(self.row(words, "small"), ["924.0", "MiB"] * 3)
        self.assertEqual(self.row(words, "MemTotal"), ["16.0", "GiB"] * 3)
        self.assertFalse([word for word in words if "not divided" in word])

    def test_groups_that_overlap_are_not_divided(self):
        path, words = self.draw_host()
        undivided = self.row(words, "groups, not divided")
        self.assertEqual(undivided, ["8.0", "GiB"] * 3)
        self.assertEqual(self.row(words, "large"), ["5.0", "GiB"] * 3)
        self.assertEqual(self.row(words, "MemTotal"), ["16.0", "GiB"] * 3)
        minutes = self.minutes_of(path, UNDIVIDED_COLOUR)
        self.assertAlmostEqual(minutes, len(OVERLAP), delta=5)

    def test_a_view_that_is_left_out_leaves_the_others_divided(self):
        path, words = self.draw_host("-x", "extra")
        outside = self.row(words, "outside of these groups")
        self.assertEqual(outside, ["2.0", "GiB"] * 3)
        self.assertFalse(self.minutes_of(path, UNDIVIDED_COLOUR))

    def test_an_unknown_group_is_unknown_up_to_the_sum_and_no_further(self):
        _, words = self.draw_host(*of_time((90, 160)))
        unknown = self.row(words, "in unknown groups")
        self.assertEqual(unknown, ["2.0", "GiB"] * 3)
        self.assertEqual(self.row(words, "free"), ["4.0", "GiB"] * 3)
        self.assertEqual(self.row(words, "small"), ["1.0", "GiB"] * 3)
        path, words = self.draw_host()
        minutes = self.minutes_of(path, UNKNOWN_COLOUR)
        expected = len(UNKNOWN) + len(STOPPED)
        self.assertAlmostEqual(minutes, expected, delta=5)
        notes = [word for word in words if "at any time\\: never " in word]
        self.assertEqual(len(notes), 1)

    def test_the_host_is_not_drawn_as_a_group(self):
        for picture in (["stack"], ["counts"], ["host"], ["all"]):
            with self.subTest(picture):
                files, words = self.draw(*picture)
                self.assertNotIn("group-host.png", [f.name for f in files])
                legends = [word for word in words if ":host  " in word]
                self.assertEqual(legends, [])
        done = self.graph("group", "host")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, 'no group "host"; there are: extra, l')

    def test_mem_total_comes_from_the_parts_too(self):
        for picture in (["stack"], ["group", "large"]):
            _, words = self.draw("-m", *picture)
            self.assertEqual(self.row(words, "MemTotal"), ["16.0", "GiB"] * 3)

    def test_the_picture_has_the_same_parts_as_the_plugin(self):
        published = [
            name.removeprefix("memory-")
            for name in names("host")
            if name.startswith("memory-")
        ]
        text = SMAPS_GRAPH.read_text().split("PARTS = {")[1].split("}")[0]
        drawn = re.findall(r'"(\w+)":', text)
        self.assertEqual(sorted(["groups", *drawn]), sorted(published))


class Absence(HostPictureTest):
    """Some parts come and go, and some hosts have no values."""

    @classmethod
    def write(cls, data):
        late = lambda minute: minute >= 200
        swapping = lambda minute: late(minute) and minute < 500
        write_group(data / "late", "web", lambda minute: GIB)
        write_own(data / "late")
        write_parts(data / "late", PARTS, late)
        write_parts(data / "late", {"zswap": GIB}, swapping)
        write_group(data / "none", "web", lambda minute: GIB)
        write_parts(data / "row", PARTS, late)
        after = lambda minute: minute > 200
        write_group(data / "row", "web", lambda minute: GIB, after)
        write_parts(data / "alone", PARTS)
        write_group(data / "alone", "web", lambda minute: NAN)
        write_sums(data / "fleet", "web", GIB, lambda minute: 3)
        write_sums(data / "fleet", "host", GIB, lambda minute: 3)

    def test_a_part_that_comes_and_goes_is_0_in_between(self):
        _, words = self.draw_host("-h", "late")
        self.assertEqual(
            self.row(words, "MemTotal"),
            ["16.0", "GiB", "16.7", "GiB", "17.0", "GiB"],
        )

    def test_the_time_before_the_first_value_is_not_unknown(self):
        path, _ = self.draw_host("-h", "late")
        # A band shows only the time in which collectd stood still.
        self.assertEqual(runs(self.bands(path)), [False, True, False])

    def test_groups_that_begin_a_row_later_are_not_outside_until_then(self):
        _, words = self.draw_host("-h", "row")
        outside = self.row(words, "outside of these groups")
        self.assertEqual(outside, ["7.0", "GiB"] * 3)

    def test_a_host_without_values_is_reported_and_all_goes_on(self):
        before = of_time((0, 150))
        for arguments in (["-h", "none"], ["-h", "late", *before]):
            done = self.graph(*arguments, "host")
            self.assertEqual(done.returncode, 1)
            self.assertIn("no smaps-host/memory-", done.stderr)
            files, _ = self.draw(*arguments, "all")
            self.assertNotIn("host.png", [path.name for path in files])

    def test_a_host_of_unknown_groups_has_parts(self):
        for arguments in ([], ["-x", "*"]):
            _, words = self.draw_host("-h", "alone", *arguments)
            self.assertEqual(self.row(words, "MemTotal"), ["16.0", "GiB"] * 3)
            outside = self.row(words, "outside of these groups")
            self.assertEqual(outside, ["8.0", "GiB"] * 3)

    def test_a_sum_over_hosts_is_not_drawn_as_a_group(self):
        files, words = self.draw("-h", "fleet", "all")
        self.assertEqual(
            {path.name for path in files}, {"stack.png", "group-web.png"}
        )
        self.assertEqual(self.row(words, "highest PSS"), ["3.0", "GiB"] * 3)


class CgroupLimit(HostPictureTest):
    @classmethod
    def write(cls, data):
        host = data / "web1"
        write_own(host)
        write_parts(host, PARTS)
        limits = {
            "limited": lambda minute: 2 * GIB,
            "once": lambda minute: 2 * GIB if minute < 200 else 16 * GIB,
            "free": lambda minute: 16 * GIB,
        }
        for name, limit in limits.items():
            write_group(host, name, lambda minute: GIB)
            write_rrd(host / f"smaps-{name}/memory-cgroup_limit.rrd", limit)
        write_group(host, "none", lambda minute: GIB)

    def test_the_limit_of_a_control_group_is_a_line(self):
        (path,), words = self.draw("group", "limited")
        self.assertEqual(self.row(words, "cgroup limit"), ["2.0", "GiB"] * 3)
        self.assertGreater(self.minutes_of(path, LIMIT_COLOUR), 300)

    def test_without_a_limit_no_line_is_drawn(self):
        for name in ("free", "none"):
            _, words = self.draw("group", name)
            self.assertFalse([word for word in words if ":cgroup l" in word])
        (path,), words = self.draw("group", "once")
        limit = self.row(words, "cgroup limit")
        self.assertEqual(limit, ["2.0", "GiB"] * 3)
        self.assertLess(self.minutes_of(path, LIMIT_COLOUR), 205)

    def test_without_mem_total_every_limit_is_a_line(self):
        data = self.directory / "without"
        shutil.copytree(self.data, data)
        shutil.rmtree(data / "web1/smaps-host")
        for name, gib in {"limited": 2, "free": 16}.items():
            _, words = self.draw("group", name, data=data)
            limit = self.row(words, "cgroup limit")
            self.assertEqual(limit, [f"{gib}.0", "GiB"] * 3)

    def test_a_given_limit_is_a_line_of_its_own(self):
        _, words = self.draw("-l", "limited=3G", "group", "limited")
        self.assertEqual(self.row(words, "cgroup limit"), ["2.0", "GiB"] * 3)
        self.assertTrue([word for word in words if ":limit  " in word])
