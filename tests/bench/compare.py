"""One load and several readers, in rounds: the cost of each pass relative to
the kernel's floor, and the distance of the sums from the truth."""

import math
import statistics
import subprocess
from dataclasses import dataclass, field

import collectd
import host
import process
from host import BenchError, note
from peers import PEERS
from process import parse_line
from truth import Errors, Truth


@dataclass
class Plan:
    """The durations of all parts. Cycles are of `interval` seconds."""

    rounds: int = 3
    interval: float = 1.0
    floor_passes: int = 3
    warm: int = 1
    cycles: int = 4
    adaptive_warm: int = 10
    # The default MaxAge, so that every reading is repeated once. A shorter
    # time contains too many readings or, at a quarter of MaxAge, none.
    adaptive_cycles: int = 60
    error_cycles: int = 12
    # Exact reading is compared too: its error is the error of the comparison.
    exact_error_cycles: int = 5
    command_runs: int = 1
    peer_cycles: int = 3
    peers: bool = True
    n_rules: int = 9
    adaptive_options: tuple = ()


# The readers that are measured in each round. Adaptive reading and the peers
# have one long run of their own: adaptive reading reaches its final cost only
# after some time.
IN_ROUNDS = ("always", "processes")

QUICK_PLAN = {
    "rounds": 1,
    "warm": 2,
    "cycles": 5,
    "adaptive_warm": 6,
    "adaptive_cycles": 8,
    "error_cycles": 5,
    "peer_cycles": 2,
}


@dataclass
class Results:
    """The results of one load. costs[reader] has one number per round, in ns
    per pass, and fewer if the reader was not in all rounds; ratios() divides
    them by the floor of the same round."""

    name: str
    words: str
    processes: list = field(default_factory=list)
    floors: list = field(default_factory=list)
    costs: dict = field(default_factory=dict)
    readers: dict = field(default_factory=dict)  # ns of the reading thread
    errors: dict = field(default_factory=dict)  # by mode
    reads: dict = field(default_factory=dict)  # readings per cycle, by mode
    missing: dict = field(default_factory=dict)
    failure: str = ""

    def add_cost(self, reader, ns, reader_ns=None):
        self.costs.setdefault(reader, []).append(ns)
        if reader_ns is not None:
            self.readers.setdefault(reader, []).append(reader_ns)

    def ratios(self, reader, of="costs"):
        """Relative to the floor before and after the same round, or, for a run
        of its own, to the floor of all rounds."""
        ratios = []
        for i, ns in enumerate(getattr(self, of).get(reader, [])):
            around = [self.floor_ns()]
            if reader in IN_ROUNDS:
                around = self.floors[i : i + 2]
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
        timeout=process.DEADLINE_SECONDS,
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


def watch_apart(body, interval, truth, n_errors):
    """Errors of a daemon that runs with its own interval."""
    with collectd.Daemon(body, interval) as daemon:
        daemon.find_cycle()
        truth.watch(daemon, n_errors)
    return daemon


def measure_smaps(results, load, plan, mode, idle, n_errors):
    """Measures the cost before the errors: reading the truth would warm the
    caches."""
    options = collectd.refresh_options(
        mode, plan.adaptive_options if mode == "adaptive" else ()
    )
    if options is None:
        results.missing[mode] = "not in this build"
        return
    is_adaptive = mode == "adaptive"
    body = collectd.smaps_body(load.groups, plan.n_rules, options)
    interval = error_interval(results, plan, mode)
    is_apart = interval != plan.interval
    with Truth(load.groups) as truth:

        def watch(daemon):
            if n_errors and not is_apart:
                truth.watch(daemon, n_errors)

        metered = collectd.meter_daemon(
            body,
            idle=idle,
            interval=plan.interval,
            warm=plan.adaptive_warm if is_adaptive else plan.warm,
            cycles=plan.adaptive_cycles if is_adaptive else plan.cycles,
            windows=plan.rounds if is_adaptive else 1,
            then=watch,
        )
        daemon = metered.daemon
        if n_errors and is_apart:
            daemon = watch_apart(body, interval, truth, n_errors)
    if n_errors:
        results.errors.setdefault(mode, Errors()).add(daemon, truth)
    for cost in metered.costs:
        results.add_cost(mode, cost.cpu_ns, cost.reader_ns)
    results.reads.setdefault(mode, []).append(
        collectd.mean_of(metered.cycles, "count-rollup_reads")
    )


def measure_processes(results, load, plan, idle):
    """collectd's own plugin, with the same rules."""
    metered = collectd.meter_daemon(
        collectd.processes_body(load.groups, plan.n_rules),
        idle=idle,
        interval=plan.interval,
        warm=plan.warm,
        cycles=plan.cycles,
        plugin="processes",
    )
    cost = metered.costs[0]
    results.add_cost("processes", cost.cpu_ns, cost.reader_ns)


def measure_peers(results, load, plan):
    for peer in PEERS:
        package = peer.missing()
        if package:
            results.missing[peer.name] = "not installed"
            continue
        note(f"  {peer.name}")
        try:
            results.add_cost(peer.name, peer.cpu_ns(load, plan))
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            note(f"  {peer.name}: {error}")
            results.missing[peer.name] = "failed"


def measure_round(results, load, plan, number, idle):
    """The order of the readers changes from round to round. Errors are
    compared in the first round."""
    n_errors = plan.exact_error_cycles if number == 0 else 0

    def always():
        measure_smaps(results, load, plan, "always", idle, n_errors)

    def processes():
        measure_processes(results, load, plan, idle)

    note(f"{load.name}, round {number + 1}")
    for measure in [always, processes][:: -1 if number % 2 else 1]:
        measure()
    measure_floor(results, plan)


def measure_all(results, load, plan, idle):
    measure_floor(results, plan)
    for number in range(plan.rounds):
        measure_round(results, load, plan, number, idle)
    note(f"{load.name}: adaptive")
    measure_smaps(results, load, plan, "adaptive", idle, plan.error_cycles)
    if plan.peers:
        measure_peers(results, load, plan)


def measure_load(load, plan):
    """Starts the load, measures it, ends it. Never raises a BenchError."""
    results = Results(load.name, load.words)
    idle = collectd.meter_idle()
    note(f"{load.name}: starting")
    try:
        load.start()
        measure_all(results, load, plan, idle)
    except (BenchError, OSError, subprocess.SubprocessError) as error:
        note(f"{load.name}: {error}")
        results.failure = str(error)
    finally:
        load.stop()
    return results
