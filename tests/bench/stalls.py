"""The time that a process of 4 GiB waits for memory while it is watched, and
the loss of accuracy by a limit to that."""

import dataclasses
import statistics

import collectd
import host
from compare import Results, measure_smaps
from host import note
from populations import Population
from process import Talker, parse_line
from tables import ERROR_HEADS, error_row, table

GROUPS = {"stall": "/stall$"}

# The watchers, and the lines that each adds to `Refresh`; None is no watcher.
WATCHERS = [
    ("nobody", None, ()),
    ("always", "always", ()),
    ("adaptive", "adaptive", ()),
    ("adaptive, MaxLockHold 5", "adaptive", ("MaxLockHold 5",)),
]


def ask(talker, seconds):
    """{"map": …, "fault": …} with latencies in ns."""
    talker.tell(str(round(seconds * 1000)))
    lines = [parse_line(talker.read_line(seconds + 60)) for _ in range(2)]
    return {line["what"]: line for line in lines}


def measure_watched(talker, mode, more, seconds):
    """None if the plugin has no such mode."""
    if mode is None:
        return ask(talker, seconds)
    options = collectd.refresh_options(mode, more)
    if options is None:
        return None
    with collectd.Daemon(collectd.smaps_body(GROUPS, 0, options)) as daemon:
        daemon.wait_cycles(4)
        return ask(talker, seconds)


def microseconds(ns):
    return f"{ns / 1000:,.1f}"


def latency_row(name, what, runs):
    lines = [run[what] for run in runs]

    def median(key):
        return microseconds(statistics.median(line[key] for line in lines))

    worst = max(line["max_ns"] for line in lines)
    keys = ("p50_ns", "p99_ns", "p999_ns")
    return [name, what, *(median(k) for k in keys), microseconds(worst)]


def latencies(rounds, seconds):
    runs = {}
    talker = Talker([host.program("stall")])
    try:
        talker.read_line()
        for number in range(rounds):
            for name, mode, more in WATCHERS:
                note(f"stall, round {number + 1}: {name}")
                run = measure_watched(talker, mode, more, seconds)
                runs.setdefault(name, []).append(run)
    finally:
        talker.stop()
    heads = ["watched by", "waits for", "p50, µs", "p99", "p99.9", "max"]
    rows = []
    for name, found in runs.items():
        if None in found:
            rows.append([name, "not in this build", *["–"] * 4])
            continue
        rows += [latency_row(name, what, found) for what in ("map", "fault")]
    return table(heads, rows)


def exactness(plan):
    """Errors of values that may not be read, on a giant that grows and
    shrinks."""
    load = Population("giant")
    rows = []
    load.start()
    try:
        for name, mode, more in WATCHERS[2:]:
            note(f"stall: error of {name}")
            results = Results(load.name, load.words, floors=[0])
            with_more = dataclasses.replace(plan, adaptive_options=more)
            measure_smaps(
                results, load, with_more, mode, 0, plan.error_cycles
            )
            if mode in results.missing:
                cells = [load.name, "1", name, "not in this build"]
                empty = len(ERROR_HEADS) - len(cells)
                rows.append([*cells, *["–"] * empty])
                continue
            rows.append(error_row(results, mode, name))
    finally:
        load.stop()
    return rows


def measure(plan, is_quick):
    seconds, rounds = (5, 1) if is_quick else (20, plan.rounds)
    return latencies(rounds, seconds), exactness(plan)
