# SPDX-License-Identifier: MIT
"""Compares published values with those of the kernel.

`floor -S` reads all processes exactly, right before a cycle of the plugin and
right after it; a cycle without near scans counts as missed. A value between the
two sums is not an error: it may have been true at some moment of the cycle. The
distance to the middle of the sums is kept too. It includes all changes during
the scans, so it is too large, while the error may be too small.
"""

import math
import time

import host
import process
from process import parse_line
from processes import Talker

# The tolerance of a bound: processes that come and go change the number of
# users among which the pages of libc are divided, and the kernel rounds each
# process down to a KiB.
BOUND_SLACK = 0.0001
ROUNDING_BYTES = 1024

# If reading everything takes less than this, it is repeated on each side for
# this long: that shows memory that is allocated and freed within milliseconds.
SIDE_SECONDS = 0.05
SIDE_SCANS = 8

# The maximum time between a cycle and the scans before and after it. If a scan
# is long, half of its length is added, because the scan itself is that
# uncertain. Next, the time before the cycle at which the last scan should end.
FAR_SECONDS = 0.15
MARGIN_SECONDS = 0.02

# Some cycles are missed. The comparison is given up after this many times the
# wanted number of cycles.
PATIENCE = 3


class Scan:
    """Exact sums: groups[group] has "pss", "uss" and so on, in bytes."""

    def __init__(self, begin, end, groups):
        self.begin, self.end, self.groups = begin, end, groups

    def is_near(self, distance):
        # Published times are cut to milliseconds.
        far = FAR_SECONDS + (self.end - self.begin) / 2
        return -0.001 <= distance <= far

    def is_before(self, cycle):
        return self.is_near(cycle.begin - self.end)

    def is_after(self, cycle):
        return self.is_near(self.begin - cycle.time)


class Surrounding:
    """The scans right before and right after a cycle."""

    def __init__(self, before, after):
        self.scans = before + after
        self.gap = after[0].begin - before[-1].end

    def range(self, group, what):
        """Returns the minimum and the maximum of the group; None if it was
        missing in a scan."""
        values = [scan.groups[group][what] for scan in self.scans]
        return (min(values), max(values)) if min(values) > 0 else None


def surround(cycle, scans):
    """None if one side has no scan that is near enough."""
    before = [scan for scan in scans if scan.is_before(cycle)]
    after = [scan for scan in scans if scan.is_after(cycle)]
    return Surrounding(before, after) if before and after else None


class Truth:
    """Scans are made around cycles. Their cycles are known only after the
    daemon has published its times."""

    def __init__(self, groups):
        command = [host.program("floor"), "-S"]
        for name, pattern in groups.items():
            command += ["-g", f"{name}={pattern}"]
        self.talker = Talker(command)
        self.scans = []
        self.aims = 0  # cycles that scans were made around

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.talker.stop()

    def scan(self):
        self.talker.tell()
        head = parse_line(self.talker.read_line())
        groups = {}
        for _ in range(head["groups"]):
            fields = parse_line(self.talker.read_line())
            groups[str(fields["group"])] = fields
        self.scans.append(
            Scan(head["begin_ns"] / 1e9, head["end_ns"] / 1e9, groups)
        )

    def scan_seconds(self):
        """The duration of a scan: the maximum of the latest ones, because a
        machine may be busy for a while only."""
        return max(scan.end - scan.begin for scan in self.scans[-3:])

    def scans_per_side(self):
        return max(1, min(SIDE_SCANS, int(SIDE_SECONDS / self.scan_seconds())))

    def lead(self):
        """The time before a cycle at which to begin: on a busy machine a scan
        may take half as long again."""
        side = self.scans_per_side() * self.scan_seconds()
        return 1.5 * side + MARGIN_SECONDS

    def scan_until(self, start):
        """Scans at least once, and again while there is time."""
        self.scan()
        while time.monotonic() + self.scan_seconds() < start - MARGIN_SECONDS:
            self.scan()

    def watch(self, daemon, n):
        """Scans around n cycles of the daemon, or fewer if cycles are late.
        Beside a busy machine's programs, scans would come too late, or be
        long."""
        with process.hurried(0), process.hurried(self.talker.pid):
            self._watch(daemon, n)

    def _watch(self, daemon, n):
        self.scan()
        end = time.monotonic() + PATIENCE * n * daemon.interval
        while self.aims < n and time.monotonic() < end:
            start = daemon.next_start(time.monotonic() + self.lead())
            process.sleep_until(start - self.lead())
            self.scan_until(start)
            if not daemon.wait_cycle(start):
                daemon.find_cycle()
                continue
            for _ in range(self.scans_per_side()):
                self.scan()
            self.aims += 1


class Error:
    """How far one value of a group is from the truth in one cycle: the true
    value, and the distance from its range."""

    def __init__(self, value, range_):
        self.low, self.high = range_
        self.from_middle = abs(value - (self.low + self.high) / 2)
        self.distance = max(0, self.low - value, value - self.high)
        self.truth = self.low if value < self.low else self.high

    def share(self, bytes_):
        return bytes_ / self.truth


def add_bound(cycle, group, name, error, bounds, held):
    """Compares with a published error, if there is one."""
    bound = cycle.find(group, name, math.nan)
    if not math.isnan(bound):
        rounding = ROUNDING_BYTES * cycle.counts(group)[0]
        slack = max(BOUND_SLACK * error.truth, rounding)
        bounds.append(error.share(bound))
        held.append(error.distance <= bound + slack)


class GroupErrors:
    """Collects the errors of one group over many cycles."""

    def __init__(self):
        # As shares of the truth: errors, changes between the scans (which are
        # no errors), and published bounds.
        self.pss, self.uss, self.middle = [], [], []
        self.moved, self.bounds, self.uss_bounds = [], [], []
        # For each bound, 1 if the error was not larger, or else 0.
        self.held, self.uss_held = [], []
        self.coverage = []  # (percent, weight)
        self.age = []

    def add(self, cycle, group, pss_range, uss_range):
        pss = Error(cycle.memory(group, "pss"), pss_range)
        uss = Error(cycle.memory(group, "uss"), uss_range)
        self.pss.append(pss.share(pss.distance))
        self.uss.append(uss.share(uss.distance))
        self.middle.append(pss.share(pss.from_middle))
        self.moved.append(pss.share(pss.high - pss.low))
        coverage = cycle.find(group, "percent-coverage", 100)
        self.coverage.append((coverage, pss.truth))
        self.age.append(cycle.find(group, "duration-age", 0))
        for name, error, bounds, held in (
            ("pss_error", pss, self.bounds, self.held),
            ("uss_error", uss, self.uss_bounds, self.uss_held),
        ):
            add_bound(cycle, group, f"memory-{name}", error, bounds, held)


class Errors:
    """The errors of all groups of a load. groups is {name: GroupErrors}."""

    def __init__(self):
        self.groups = {}
        self.cycles = 0
        self.missed = 0  # aimed at, but no scan was near enough
        self.unknown = 0  # values that are NaN
        self.gaps = []  # seconds between the scans around a cycle
        self.scan_seconds = []

    def add(self, daemon, truth):
        found = [(c, surround(c, truth.scans)) for c in daemon.cycles()]
        found = [(c, around) for c, around in found if around]
        for cycle, around in found:
            self.add_cycle(cycle, around)
        self.missed += max(0, truth.aims - len(found))

    def add_cycle(self, cycle, surrounding):
        self.cycles += 1
        self.gaps.append(surrounding.gap)
        self.scan_seconds += [s.end - s.begin for s in surrounding.scans]
        for name in surrounding.scans[0].groups:
            pss = surrounding.range(name, "pss")
            uss = surrounding.range(name, "uss")
            if math.isnan(cycle.find(name, "memory-pss", math.nan)):
                self.unknown += 1
            elif pss and uss:
                errors = self.groups.setdefault(name, GroupErrors())
                errors.add(cycle, name, pss, uss)

    # -- sums --

    def all(self, field):
        return [x for g in self.groups.values() for x in getattr(g, field)]

    def mean(self, field):
        values = self.all(field)
        return sum(values) / len(values) if values else math.nan

    def worst(self, field):
        """(share, name of the group)"""
        found = [
            (max(getattr(g, field)), name)
            for name, g in self.groups.items()
            if getattr(g, field)
        ]
        return max(found, default=(math.nan, ""))

    def coverage(self):
        """The share of the PSS that was read and not estimated."""
        pairs = self.all("coverage")
        weight = sum(w for _, w in pairs)
        if not weight:
            return math.nan
        return sum(p * w for p, w in pairs) / weight / 100
