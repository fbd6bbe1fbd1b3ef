# SPDX-License-Identifier: MIT
"""Prints results as Markdown."""

import math
import statistics

from compare import OTHER

MODES = ["always", "adaptive"]
READERS = [*MODES, *(mode + OTHER for mode in MODES)]


def table(heads, rows):
    """The first column is text, the others are numbers."""
    marks = ["---"] + ["---:"] * (len(heads) - 1)
    lines = [heads, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ---- numbers ----


def ratio(x):
    if math.isnan(x):
        return "–"
    return f"{x:.3f}" if x < 0.2 else f"{x:.2f}" if x < 20 else f"{x:.0f}"


def spread(ratios):
    """The median and the range of the rounds."""
    text = ratio(statistics.median(ratios))
    if len(ratios) < 2:
        return text
    return f"{text} ({ratio(min(ratios))}–{ratio(max(ratios))})"


def percent(share, digits=2):
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def milliseconds(ns):
    ms = ns / 1e6
    return f"{ms:.2f}" if ms < 10 else f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def count(n):
    return f"{n:,.0f}"


# ---- loads ----


def is_measured(results):
    return not results.failure and results.floors


def short_name(results):
    """The load, and where it was measured."""
    hogs = f" beside {results.hogs} hogs" if results.hogs else ""
    return results.name + hogs


LOAD_HEADS = ["load", "interval, s"]


def cost_of(results, reader, text=spread):
    ratios = results.ratios(reader)
    return text(ratios) if ratios else "–"


def own_us(results):
    """The cost that the daemon adds to the kernel's floor, per process."""
    costs = results.costs.get("always")
    if not costs:
        return "–"
    own_ns = statistics.median(costs) - results.floor_ns()
    return f"{own_ns / results.process_count() / 1000:.2f}"


def costs(all_results):
    """The CPU time of one pass of the floor."""
    others = [
        reader
        for reader in READERS[len(MODES) :]
        if any(reader in r.costs for r in all_results)
    ]
    heads = [*LOAD_HEADS, "processes", "floor, ms", "µs a process"]
    heads += ["smaps, always", "own µs a process", "smaps, adaptive"]
    heads += ["processes (RSS only)", "adaptive by processes", *others]
    rows = []
    for r in filter(is_measured, all_results):
        floor_ns, n = r.floor_ns(), r.process_count()
        rows.append(
            [
                f"{short_name(r)}: {r.words}",
                f"{r.interval:g}",
                count(n),
                milliseconds(floor_ns),
                f"{floor_ns / n / 1000:.0f}",
                cost_of(r, "always"),
                own_us(r),
                cost_of(r, "adaptive"),
                cost_of(r, "processes"),
                adaptive_by_processes(r),
                *(cost_of(r, reader) for reader in others),
            ]
        )
    return table(heads, rows)


def adaptive_by_processes(results):
    a, b = results.costs.get("adaptive"), results.costs.get("processes")
    if not a or not b:
        return "–"
    return ratio(statistics.median(a) / statistics.median(b))


def threads(all_results):
    """Splits our cost into the reading thread and the part of collectd that
    carries the values to its writer."""
    heads = [*LOAD_HEADS, "always, reading thread", "adaptive, reading thread"]
    heads.append("adaptive, RSS of the daemon, MiB")
    rows = []
    for r in filter(is_measured, all_results):
        row = [short_name(r), f"{r.interval:g}"]
        for mode in MODES:
            ratios = r.ratios(mode, "readers")
            row.append(spread(ratios) if ratios else "–")
        resident = r.resident.get("adaptive")
        row.append(f"{resident / 2**20:.1f}" if resident else "–")
        rows.append(row)
    return table(heads, rows)


# ---- errors ----


def worst(errors, what):
    share, group = errors.worst(what)
    name = f" ({group})" if len(errors.groups) > 1 else ""
    return percent(share) + name


def cycles(errors):
    """The number of compared cycles, and of those that could not be
    compared."""
    text = str(errors.cycles)
    if errors.missed:
        text += f" ({errors.missed} not met)"
    return text + (f", {errors.unknown} NaN" if errors.unknown else "")


def scan_times(errors):
    """The duration of a scan, and the distance of the two scans around a
    cycle."""
    if not errors.cycles:
        return "–"
    times = (errors.scan_seconds, errors.gaps)
    return ", ".join(f"{1000 * statistics.median(t):.0f}" for t in times)


def held(shares):
    return percent(statistics.fmean(shares), 1) if shares else "not published"


def mean_cell(means, of=""):
    return f"{statistics.median(means):.1f}{of}" if means else "–"


def error_row(results, reader, name=None):
    """The errors of a reader, which may be shown by another name."""
    errors = results.errors[reader]
    processes = ""
    if results.processes:
        processes = f" of {count(results.process_count())}"
    ages = errors.all("age")
    worst_middle, _ = errors.worst("middle")
    worst_moved, _ = errors.worst("moved")
    return [
        short_name(results),
        f"{results.interval:g}",
        name or reader,
        percent(errors.mean("pss"), 3),
        worst(errors, "pss"),
        percent(errors.mean("uss"), 3),
        worst(errors, "uss"),
        f"{percent(errors.mean('moved'))}, {percent(worst_moved)}",
        f"{percent(errors.mean('middle'))}, {percent(worst_middle)}",
        held(errors.all("held")),
        percent(errors.mean("bounds")),
        held(errors.all("uss_held")),
        percent(errors.mean("uss_bounds")),
        percent(errors.coverage(), 1),
        f"{max(ages):.0f}" if ages else "–",
        mean_cell(results.reads.get(reader), processes),
        mean_cell(results.deferred.get(reader)),
        scan_times(errors),
        cycles(errors),
    ]


ERROR_HEADS = [
    *LOAD_HEADS,
    *("mode", "PSS, mean", "PSS, worst", "USS, mean", "USS, worst"),
    *("moved meanwhile, mean and worst", "PSS from the middle"),
    *("PSS bound held", "its width", "USS bound held", "its width"),
    *("coverage", "oldest, s", "readings a cycle", "deferred a cycle"),
    *("scan and gap, ms", "cycles"),
]


def errors(all_results):
    rows = []
    for r in filter(is_measured, all_results):
        readers = [reader for reader in READERS if reader in r.errors]
        rows += [error_row(r, reader) for reader in readers]
    return table(ERROR_HEADS, rows)


def mean_share(shares, digits=2):
    return percent(statistics.fmean(shares), digits) if shares else "–"


def group_cells(errors):
    e = errors
    return [
        *(mean_share(e.pss, 3), percent(max(e.pss))),
        *(held(e.held), mean_share(e.bounds)),
        *(mean_share(e.uss, 3), percent(max(e.uss))),
        *(held(e.uss_held), mean_share(e.uss_bounds)),
    ]


def group_errors(all_results):
    """The same per group, for loads with more than one group."""
    heads = [*LOAD_HEADS, "group", "mode", "PSS, mean", "PSS, worst"]
    heads += ["PSS bound held", "its width", "USS, mean", "USS, worst"]
    heads += ["USS bound held", "its width"]
    rows = []
    for r in filter(is_measured, all_results):
        for reader, e in r.errors.items():
            if len(e.groups) < 2:
                continue
            for name, g in e.groups.items():
                where = [short_name(r), f"{r.interval:g}", name, reader]
                rows.append([*where, *group_cells(g)])
    return table(heads, rows) if rows else ""
