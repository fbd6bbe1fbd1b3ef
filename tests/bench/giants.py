# SPDX-License-Identifier: MIT
"""Measures processes that are too large to be walked: the error and the cost of
their values, and how long they wait for memory meanwhile.

Each case is measured with MaxLockHold far below the time that its walk takes.
A case that stands still is read exactly once before the daemon starts and once
after it has ended, and all intervals are compared, from the first on. One that
moves is read right before and right after each interval that is compared.
"""

import contextlib
import math
import statistics
import subprocess
import time
from dataclasses import dataclass, field

import metering
import host
import process
from host import note
from kernel import read_meminfo
from process import parse_line
from processes import Talker, end
from tables import milliseconds, percent, table
from truth import BOUND_SLACK, Error, Surrounding, Truth, surround

# The cost is the median of so many parts of a run: the machine may be busy.
WINDOWS = 5

OPTIONS = ("MaxLockHold 2",)
GIB = 1 << 30
SPARE_BYTES = 1 * GIB

# Goals. A process may be off by a share of its resident memory; a set by one of
# its PSS, because its members' RSS counts the same pages again and again.
PROCESS_OFF = 0.02
SET_OFF = 0.005
HELD = 0.99
CPU_MS = 1.5  # of a giant, an interval
SET_CPU_MS = 5  # of all members
QUIET_US = {"p999_ns": 200, "max_ns": 5000}
BUSY_US = {"p999_ns": 1000}

# floor reads the rollup of a process of some GiB, once a second.
ROLLUPS = ["-n", "1000000", "-p", "1000", "-f", "smaps_rollup"]


@dataclass(frozen=True)
class Case:
    words: str
    command: str  # of giant.c
    needs_gib: float
    processes: int = 1
    moves: bool = False
    is_set: bool = False

    @property
    def groups(self):
        return {"giant": f"/giant {self.command.split()[0]} "}

    def goal_off(self):
        return SET_OFF if self.is_set else PROCESS_OFF


CASES = {
    "giant-anon1": Case("1 GiB private", "anon -s 1G", 1),
    "giant-anon": Case("4 GiB private", "anon -s 4G", 4),
    "giant-anon8": Case("8 GiB private", "anon -s 8G", 8),
    "giant-set": Case(
        "20 that map the same 2 GiB, like PostgreSQL",
        "set -s 2G -n 20",
        2.2,
        processes=20,
        is_set=True,
    ),
    "giant-outsiders": Case(
        "the same, and 8 of another group map it too",
        "set -s 2G -n 20 -o 8",
        2.3,
        processes=20,
        is_set=True,
    ),
    "giant-parts": Case(
        "20 that have touched 15 % each of 4 GiB, here and there",
        "set -s 4G -n 20 -p 15",
        4.2,
        processes=20,
        is_set=True,
    ),
    "giant-redis": Case(
        "3 GiB, forked, breaking copy-on-write, like Redis",
        "redis -s 3G -r 16M",
        5.5,
        processes=2,
        moves=True,
    ),
    "giant-jvm": Case(
        "heap mapped three times, and sparse memory, like a JVM",
        "jvm -s 1G",
        1.3,
    ),
    "giant-vmas": Case("60,000 mappings", "vmas -n 60000", 1),
    "giant-thp": Case("2 GiB in huge pages", "thp -s 2G", 2),
    "giant-thp-fork": Case(
        "2 GiB in huge pages, forked; the parent wrote to the first page of each",
        "thpfork -s 2G",
        2.2,
        processes=2,
    ),
    "giant-grow": Case(
        "1 to 1.5 GiB, growing and shrinking by 100 MiB a second",
        "grow -s 1G -r 100M",
        1.5,
        moves=True,
    ),
}


@dataclass
class Off:
    """One value, in all intervals: how far off it is as a share of what the
    goal is of, and the published error and whether it held."""

    name: str  # "pss" or "uss"
    shares: list = field(default_factory=list)
    held: list = field(default_factory=list)
    widths: list = field(default_factory=list)

    def add(self, cycle, surrounding, of_bytes):
        """An unknown value is not an error, but it is not within its error
        either."""
        range_ = surrounding.range("giant", self.name)
        value, bound = (
            cycle.find("giant", f"memory-{name}", math.nan)
            for name in (self.name, f"{self.name}_error")
        )
        if math.isnan(value) or math.isnan(bound):
            self.held.append(False)
            return
        error = Error(value, range_)
        slack = BOUND_SLACK * error.truth
        self.shares.append(error.distance / of_bytes)
        self.held.append(error.distance <= bound + slack)
        self.widths.append(bound / of_bytes)

    def cells(self, goal):
        if not self.shares:
            return ["unknown", "–", "0 %", "–"]
        mean, worst = statistics.fmean(self.shares), max(self.shares)
        return [
            percent(mean),
            f"{percent(worst)} (≤ {100 * goal:g} %)",
            f"{percent(statistics.fmean(self.held), 1)} "
            f"(≥ {100 * HELD:g} %)",
            percent(statistics.fmean(self.widths)),
        ]


# ---- the values that are published, and their cost ----


def surroundings(case, daemon, truth):
    """(cycle, exact sums around it)"""
    if case.moves:
        found = [(c, surround(c, truth.scans)) for c in daemon.cycles()]
        return [(c, around) for c, around in found if around]
    first, last = truth.scans[0], truth.scans[-1]
    return [(c, Surrounding([first], [last])) for c in daemon.cycles()]


def error_row(case, metered, pairs, rest_ns):
    pss, uss = Off("pss"), Off("uss")
    for cycle, around in pairs:
        low, _ = around.range("giant", "pss" if case.is_set else "rss")
        pss.add(cycle, around, low)
        uss.add(cycle, around, low)
    low, high = pairs[-1][1].range("giant", "pss")
    cycles = [cycle for cycle, _ in pairs]
    coverage = [c.value("giant", "percent-coverage") for c in cycles]
    reads = sum(c.own("count-rollup_reads", 0) for c in metered.cycles)
    longest = max(c.own("duration-longest_read", 0) for c in cycles)
    cpu_ns = statistics.median(cost.cpu_ns for cost in metered.costs)
    own_ms = (cpu_ns - rest_ns) / 1e6
    goal_ms = SET_CPU_MS if case.is_set else CPU_MS * case.processes
    return [
        case.words,
        f"{(low + high) / 2 / 2**20:,.0f}",
        *pss.cells(case.goal_off()),
        *uss.cells(case.goal_off()),
        percent(statistics.fmean(coverage) / 100, 1),
        milliseconds(cpu_ns),
        f"{own_ms:.2f} (≤ {goal_ms:g})",
        milliseconds(1e9 * longest),
        f"{reads / len(metered.cycles):.1f}",
        str(len(pairs)),
    ]


ERROR_HEADS = [
    "case",
    "PSS, MiB",
    *("PSS off, mean", "worst", "error held", "its width"),
    *("USS off, mean", "worst", "error held", "its width"),
    *("coverage", "CPU an interval, ms", "of that the giant"),
    *("longest read, ms", "rollups an interval", "intervals"),
]


def body_of(case, plan):
    options = (*OPTIONS, *plan.adaptive_options)
    return metering.smaps_body(case.groups, 0, "adaptive", options)


def meter(case, plan, cycles, then=None):
    return metering.meter_daemon(
        body_of(case, plan),
        idle=metering.meter_idle(),
        interval=plan.interval,
        warm=10,
        cycles=cycles,
        windows=min(WINDOWS, cycles),
        then=then,
    )


def measure_rest(case, plan, cycles):
    """The cost of an interval without the case, in nanoseconds."""
    costs = meter(case, plan, min(cycles, 20)).costs
    return statistics.median(cost.cpu_ns for cost in costs)


def measure_values(case, plan, cycles, rest_ns):
    with Truth(case.groups) as truth:
        truth.scan()

        def watch(daemon):
            if case.moves:
                truth.watch(daemon, cycles)

        metered = meter(case, plan, cycles, watch)
        truth.scan()
    pairs = surroundings(case, metered.daemon, truth)
    if not pairs:
        raise host.BenchError("no interval could be compared")
    return error_row(case, metered, pairs, rest_ns)


# ---- the time that a thread waits ----


@contextlib.contextmanager
def watched_by_rollups(_case, plan):
    reader = subprocess.Popen(
        [host.program("floor"), *ROLLUPS], stdout=subprocess.DEVNULL
    )
    try:
        time.sleep(2)
        yield
    finally:
        end(reader)


@contextlib.contextmanager
def watched_by_plugin(case, plan):
    with metering.Daemon(body_of(case, plan), plan.interval) as daemon:
        daemon.wait_cycles(4)
        yield


WATCHERS = {
    "nobody": lambda _case, _plan: contextlib.nullcontext(),
    "a reader of rollups": watched_by_rollups,
    "the plugin": watched_by_plugin,
}


def stall_cell(line, key, goals):
    us = f"{line[key] / 1000:,.0f}"
    return f"{us} (≤ {goals[key]:,})" if key in goals else us


def stall_row(case, watcher, hogs, line):
    goals = {}
    if watcher == "the plugin":
        goals = BUSY_US if hogs else QUIET_US
    keys = ("p50_ns", "p99_ns", "p999_ns", "max_ns")
    cells = [stall_cell(line, key, goals) for key in keys]
    return [case.words, watcher, str(hogs), *cells, f"{line['n']:,}"]


STALL_HEADS = [
    *("case", "watched by", "hogs", "p50, µs", "p99", "p99.9", "max"),
    "operations",
]


def ask(talker, seconds):
    talker.tell(str(round(seconds * 1000)))
    return parse_line(talker.read_line(seconds + 60))


def measure_stalls(case, plan, talker, seconds):
    rows = []
    for hogs in sorted({0, plan.hogs}):
        with process.hogs(hogs):
            for name, watched in WATCHERS.items():
                with watched(case, plan):
                    line = ask(talker, seconds)
                rows.append(stall_row(case, name, hogs, line))
    return rows


# ---- cases ----


def check_memory(case):
    needed = case.needs_gib * GIB + SPARE_BYTES
    if read_meminfo()["MemAvailable"] < needed:
        raise host.BenchError(f"needs {needed / GIB:.1f} GiB of memory")


@dataclass
class Measured:
    """The rows of a case; no row if it could not be measured."""

    words: str
    failure: str = ""
    row: list = field(default_factory=list)
    stalls: list = field(default_factory=list)


def measure_giant(measured, case, plan, is_quick):
    check_memory(case)
    cycles, seconds = (10, 5) if is_quick else (100, 20)
    cycles = plan.given_compared or cycles
    rest_ns = measure_rest(case, plan, cycles)
    talker = Talker([host.program("giant"), *case.command.split()])
    try:
        talker.read_line()
        measured.row = measure_values(case, plan, cycles, rest_ns)
        measured.stalls = measure_stalls(case, plan, talker, seconds)
    finally:
        talker.stop()


def measure(name, plan, is_quick):
    """Raises nothing: the other cases can be measured."""
    case = CASES[name]
    measured = Measured(case.words)
    note(f"{name}: {case.words}")
    try:
        measure_giant(measured, case, plan, is_quick)
    except host.FAILURES as error:
        note(f"{name}: {error}")
        measured.failure = str(error)
    return measured


def show(pieces):
    rows = [measured.row for measured in pieces if measured.row]
    stalls = [row for measured in pieces for row in measured.stalls]
    return [
        "### Values with " + ", ".join(OPTIONS) + ", and goals",
        table(ERROR_HEADS, rows),
        "Off and width are shares of the resident memory, and for a set of "
        "its PSS.",
        "### Time to map and unmap 64 KiB meanwhile, and goals",
        table(STALL_HEADS, stalls),
    ]
