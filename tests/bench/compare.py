# SPDX-License-Identifier: MIT
"""One load and several readers, in rounds: the cost of each pass relative to
the kernel's floor, and the distance of the sums from the truth. Another build
of the plugin can take part in the same rounds; its readers are called "always,
other" and "adaptive, other"."""

import math
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import metering
import host
import process
from host import FAILURES, note
from kernel import read_statm
from process import parse_line
from processes import DEADLINE_SECONDS
from truth import Errors, Truth


@dataclass
class Plan:
    """How long each part takes. Cycles take `interval` seconds."""

    rounds: int = 3
    interval: float = 1.0
    hogs: int = 0
    floor_passes: int = 3
    warm: int = 1
    cycles: int = 4
    # The plugin may take a minute to read everybody for the first time, and a
    # minute is what a limit of its CPU time is averaged over.
    warm_seconds: float = 70.0
    window_seconds: float = 60.0
    error_seconds: float = 30.0
    min_cycles: int = 12  # of the latter two, at a long interval
    given_window: int = 0  # cycles, in place of these
    given_compared: int = 0
    # Exact reading is compared too: its error is the error of the comparison.
    exact_error_cycles: int = 5
    always: bool = True  # measure that as well
    n_rules: int = 9
    adaptive_options: tuple = ()
    other: Path | None = None  # another build of the plugin

    def _cycles_of(self, seconds):
        return max(self.min_cycles, math.ceil(seconds / self.interval))

    @property
    def adaptive_warm(self):
        return max(1, math.ceil(self.warm_seconds / self.interval))

    @property
    def adaptive_cycles(self):
        return self.given_window or self._cycles_of(self.window_seconds)

    @property
    def error_cycles(self):
        return self.given_compared or self._cycles_of(self.error_seconds)


# The readers that are measured in each round. Adaptive reading has
# one long run of its own: it reaches its final cost only after some time.
IN_ROUNDS = ("always", "processes")

# This is added to the name of a reader that uses the other build.
OTHER = ", other"

QUICK_PLAN = {
    "rounds": 1,
    "warm": 2,
    "cycles": 5,
    "warm_seconds": 6.0,
    "window_seconds": 8.0,
    "error_seconds": 5.0,
    "min_cycles": 4,
}

# Above this interval one round has to do, and what does not depend on the
# interval is left out: the error of exact reading.
LONG_INTERVAL = 2.0
LONG_PLAN = {
    "rounds": 1,
    "cycles": 3,
    "floor_passes": 2,
    "exact_error_cycles": 0,
}

# Where a scan takes longer than an interval, "always" would have no end.
SLOW_PLAN = {
    "floor_passes": 1,
    "always": False,
    "warm_seconds": 40.0,
    "window_seconds": 130.0,
    "min_cycles": 3,
}


@dataclass
class Results:
    """The results of one load. costs[reader] has one number per round, in ns
    per pass, and fewer if the reader was not in all rounds; ratios() divides
    them by the floors around them, because the memory of a load may grow."""

    name: str
    words: str
    interval: float = 1.0
    hogs: int = 0
    processes: list = field(default_factory=list)
    floors: list = field(default_factory=list)
    # The floor before a run of its own, by reader: an index in floors.
    floors_before: dict = field(default_factory=dict)
    costs: dict = field(default_factory=dict)
    readers: dict = field(default_factory=dict)  # ns of the reading thread
    errors: dict = field(default_factory=dict)  # by reader
    # Means per cycle, by reader: readings, and processes that were put off.
    reads: dict = field(default_factory=dict)
    deferred: dict = field(default_factory=dict)
    resident: dict = field(default_factory=dict)  # bytes of the daemon
    failure: str = ""

    def add_cost(self, reader, ns, reader_ns=None):
        self.costs.setdefault(reader, []).append(ns)
        if reader_ns is not None:
            self.readers.setdefault(reader, []).append(reader_ns)

    def ratios(self, reader, of="costs"):
        """Relative to the floors before and after the same round, or the same
        run of its own, or else to the floor of all rounds."""
        ratios = []
        for i, ns in enumerate(getattr(self, of).get(reader, [])):
            around = [self.floor_ns()]
            before = self.floors_before.get(reader)
            if reader.removesuffix(OTHER) in IN_ROUNDS:
                before = i
            if before is not None:
                around = self.floors[before : before + 2]
            ratios.append(ns / statistics.fmean(around))
        return ratios

    def floor_ns(self):
        return statistics.median(self.floors)

    def process_count(self):
        return statistics.median(self.processes)


def measure_floor(results, plan):
    pause = round(plan.interval * 1000)
    done = subprocess.run(
        [
            host.program("floor"),
            *("-n", str(plan.floor_passes)),
            *("-p", str(pause)),
        ],
        stdout=subprocess.PIPE,
        timeout=DEADLINE_SECONDS * (plan.floor_passes + 1),
        check=True,
        text=True,
    )
    fields = parse_line(done.stdout)
    results.floors.append(fields["cpu_ns"])
    results.processes.append(fields["processes"])


def error_interval(results, plan, mode):
    """Exact reading takes as long as a scan, and an interval must hold a cycle
    and the scans around it. The length of the interval does not change the
    result of exact reading; it would change that of adaptive reading, which
    takes little time."""
    needed = 5 * results.floor_ns() / 1e9 if mode == "always" else 0
    return math.ceil(needed) if needed > plan.interval else plan.interval


def watch_apart(body, interval, build, truth, n_errors):
    """Errors of a daemon that runs with its own interval."""
    with metering.Daemon(body, interval, build=build) as daemon:
        daemon.find_cycle()
        truth.watch(daemon, n_errors)
    return daemon


def measure_smaps(results, load, plan, mode, idle, n_errors, is_other=False):
    """Measures the cost before the errors: reading the truth would warm the
    caches."""
    is_adaptive = mode == "adaptive"
    reader = mode + OTHER if is_other else mode
    build = plan.other if is_other else host.PLUGIN
    options = plan.adaptive_options if is_adaptive else ()
    body = metering.smaps_body(load.groups, plan.n_rules, mode, options)
    interval = error_interval(results, plan, mode)
    is_apart = interval != plan.interval
    with Truth(load.groups) as truth:

        def watch(daemon):
            results.resident[reader] = read_statm(daemon.pid)["resident"]
            if n_errors and not is_apart:
                truth.watch(daemon, n_errors)

        metered = metering.meter_daemon(
            body,
            idle=idle,
            interval=plan.interval,
            warm=plan.adaptive_warm if is_adaptive else plan.warm,
            cycles=plan.adaptive_cycles if is_adaptive else plan.cycles,
            windows=plan.rounds if is_adaptive else 1,
            build=build,
            then=watch,
        )
        daemon = metered.daemon
        if n_errors and is_apart:
            daemon = watch_apart(body, interval, build, truth, n_errors)
    if n_errors:
        results.errors.setdefault(reader, Errors()).add(daemon, truth)
    for cost in metered.costs:
        results.add_cost(reader, cost.cpu_ns, cost.reader_ns)
    for means, metric in (
        (results.reads, "count-rollup_reads"),
        (results.deferred, "count-deferred"),
    ):
        mean = metering.mean_of(metered.cycles, metric)
        means.setdefault(reader, []).append(mean)


def measure_processes(results, load, plan, idle):
    """Measures collectd's own plugin with the same rules."""
    metered = metering.meter_daemon(
        metering.processes_body(load.groups, plan.n_rules),
        idle=idle,
        interval=plan.interval,
        warm=plan.warm,
        cycles=plan.cycles,
        plugin="processes",
    )
    cost = metered.costs[0]
    results.add_cost("processes", cost.cpu_ns, cost.reader_ns)


def measure_round(results, load, plan, number, idle):
    """The order of the readers changes from round to round. Errors are
    compared in the first round."""
    n_errors = plan.exact_error_cycles if number == 0 else 0

    def always(is_other=False):
        measure_smaps(results, load, plan, "always", idle, n_errors, is_other)

    def always_other():
        always(is_other=True)

    def processes():
        measure_processes(results, load, plan, idle)

    note(f"{load.name}, round {number + 1}")
    readers = [processes]
    if plan.always:
        readers = [always, processes] + ([always_other] if plan.other else [])
    for measure in readers[:: -1 if number % 2 else 1]:
        measure()
    measure_floor(results, plan)


def measure_all(results, load, plan, idle):
    measure_floor(results, plan)
    for number in range(plan.rounds):
        measure_round(results, load, plan, number, idle)
    for is_other in [False, True] if plan.other else [False]:
        reader = "adaptive" + (OTHER if is_other else "")
        note(f"{load.name}: {reader}")
        results.floors_before[reader] = len(results.floors) - 1
        measure_smaps(
            results, load, plan, "adaptive", idle, plan.error_cycles, is_other
        )
        measure_floor(results, plan)


def measure_load(load, plan):
    """Starts the load, measures it, ends it. Raises nothing."""
    results = Results(load.name, load.words, plan.interval, plan.hogs)
    idle = metering.meter_idle()
    note(f"{load.name}: starting, at {plan.interval:g} s, {plan.hogs} hogs")
    try:
        load.start()
        with process.hogs(plan.hogs):
            measure_all(results, load, plan, idle)
        load.check()
    except FAILURES as error:
        note(f"{load.name}: {error}")
        results.failure = str(error)
    finally:
        end_load(results, load)
    return results


def end_load(results, load):
    try:
        load.stop()
    except FAILURES as error:
        note(f"{load.name}: {error}")
        results.failure = results.failure or str(error)
