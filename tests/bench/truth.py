"""How far published values are from what the kernel has.

All processes are read exactly right before a cycle of the plugin and right
after it, by `floor -S`. What lies between the sums is not called an error: it
may have been true at some moment of the cycle. The distance to the middle
between them is kept too; it has all that moved while they were read, and so is
too large, as the other may be too small.
"""

import math
import time

import host
import process
from process import Talker, parse_line

# What a bound may be missed by and still hold: processes that come and go
# change by how many everybody divides the pages of libc.
BOUND_SLACK = 0.0001

# Where reading all takes less than this it is done again, on each side, for so
# long: memory that is taken and given back within milliseconds shows then.
SIDE_SECONDS = 0.05
SIDE_SCANS = 8


class Scan:
    """Exact sums: groups[group] has "pss", "uss" and so on, in bytes."""

    def __init__(self, begin, end, groups):
        self.begin, self.end, self.groups = begin, end, groups


class Surrounding:
    """What was read before and after a cycle, in the order of time."""

    def __init__(self, before, after):
        self.scans = before + after
        self.end_before, self.begin_after = before[-1].end, after[0].begin

    def is_around(self, cycle):
        # Published times are cut to milliseconds.
        return (
            cycle.begin >= self.end_before - 0.001
            and cycle.time <= self.begin_after + 0.001
        )

    def range(self, group, what):
        """The least and the most that the group had; None where it has not
        been there all the time."""
        values = [scan.groups[group][what] for scan in self.scans]
        return (min(values), max(values)) if min(values) > 0 else None


class Truth:
    def __init__(self, groups):
        command = [host.program("floor"), "-S"]
        for name, pattern in groups.items():
            command += ["-g", f"{name}={pattern}"]
        self.talker = Talker(command)
        self.longest = 0.0

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
        scan = Scan(head["begin_ns"] / 1e9, head["end_ns"] / 1e9, groups)
        self.longest = max(self.longest, scan.end - scan.begin)
        return scan

    def scans_per_side(self):
        return max(1, min(SIDE_SCANS, int(SIDE_SECONDS / self.longest)))

    def scan_side(self):
        """One side of a cycle."""
        return [self.scan() for _ in range(self.scans_per_side())]

    def surround(self, daemon, n):
        """Surroundings of n cycles of the daemon; fewer where the scans take
        so long that not every cycle can have its own."""
        found = []
        self.scan()
        end = time.monotonic() + n * daemon.interval
        margin = 0.01
        while time.monotonic() < end:
            lead = 1.1 * self.scans_per_side() * self.longest + margin
            start = daemon.next_start(time.monotonic() + lead)
            process.sleep_until(start - lead)
            before = self.scan_side()
            daemon.wait_end(start)
            found.append(Surrounding(before, self.scan_side()))
        return found


class Error:
    """One value of one group in one cycle: how far it is from the range of
    the truth, and what is true."""

    def __init__(self, value, range_):
        self.low, self.high = range_
        self.from_middle = abs(value - (self.low + self.high) / 2)
        self.distance = max(0, self.low - value, value - self.high)
        self.truth = self.low if value < self.low else self.high

    def share(self, bytes_):
        return bytes_ / self.truth


class GroupErrors:
    """Of one group, over many cycles."""

    def __init__(self):
        # Shares of the truth: errors, what moved between the scans and so is
        # no error, and the bounds that were published.
        self.pss, self.uss, self.middle = [], [], []
        self.moved, self.bounds = [], []
        self.held = 0
        self.coverage = []  # (percent, weight)
        self.age = []

    def add(self, metrics, pss_range, uss_range):
        pss = Error(metrics["memory-pss"], pss_range)
        uss = Error(metrics["memory-uss"], uss_range)
        self.pss.append(pss.share(pss.distance))
        self.uss.append(uss.share(uss.distance))
        self.middle.append(pss.share(pss.from_middle))
        self.moved.append(pss.share(pss.high - pss.low))
        self.coverage.append((metrics.get("percent-coverage", 100), pss.truth))
        self.age.append(metrics.get("duration-age", 0))
        bound = metrics.get("memory-pss_error")
        if bound is None or math.isnan(bound):
            return
        self.bounds.append(pss.share(bound))
        self.held += pss.distance <= bound + BOUND_SLACK * pss.truth


class Errors:
    """Of all groups of a load. groups is {name: GroupErrors}."""

    def __init__(self):
        self.groups = {}
        self.cycles = 0
        self.missed = 0  # surroundings without a cycle inside
        self.unknown = 0  # values that are NaN

    def add(self, daemon, surroundings):
        cycles = daemon.cycles()
        for surrounding in surroundings:
            inside = [c for c in cycles if surrounding.is_around(c)]
            if len(inside) == 1:
                self.add_cycle(inside[0], surrounding)
            else:
                self.missed += 1

    def add_cycle(self, cycle, surrounding):
        self.cycles += 1
        for name in surrounding.scans[0].groups:
            metrics = cycle.groups.get(name, {})
            pss = surrounding.range(name, "pss")
            uss = surrounding.range(name, "uss")
            if math.isnan(metrics.get("memory-pss", math.nan)):
                self.unknown += 1
            elif pss and uss:
                errors = self.groups.setdefault(name, GroupErrors())
                errors.add(metrics, pss, uss)

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

    def held(self):
        """Share of the published bounds that held, or None without any."""
        n = len(self.all("bounds"))
        if n == 0:
            return None
        return sum(g.held for g in self.groups.values()) / n

    def coverage(self):
        """Share of the PSS that was read and not estimated."""
        pairs = self.all("coverage")
        weight = sum(w for _, w in pairs)
        if not weight:
            return math.nan
        return sum(p * w for p, w in pairs) / weight / 100
