#!/usr/bin/python3
"""Measures the plugin in the real collectd against the kernel's floor and
against others, and prints Markdown.

    run.py [--quick] [--only NAME]... [--output FILE] [--keep DIRECTORY]
    run.py --join DIRECTORY [--output FILE]

Measures all parts, or the given ones: --populations, --apps, --stall, --scale,
--memory. --quick takes a few minutes; without the options for parts it takes
some populations only. A full run takes most of an hour. A run can join the
pieces that others have kept:

    run.py --populations --share 1/4 --keep DIRECTORY     and 2/4, 3/4, 4/4
    run.py --apps --stall --keep DIRECTORY
    run.py --scale --memory --keep DIRECTORY
    run.py --join DIRECTORY --output FILE

Everything runs in its own pid namespace and ends with it. See host.py for the
environment.
"""

import argparse
import dataclasses
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import host  # noqa: E402  (found by the line above)

def parse_options():
    parser = argparse.ArgumentParser(
        description="Benchmarks of the smaps plugin.",
    )
    add = parser.add_argument
    for part in MEASURES:
        add(f"--{part}", action="store_true", help="this part, not all")
    add("--quick", action="store_true", help="few loads, few rounds")
    add("--only", action="append", metavar="NAME", help="this load only")
    add("--share", metavar="K/N", help="each N-th load, from the K-th on")
    add("--rounds", type=int, metavar="N")
    add("--interval", type=float, metavar="SECONDS", help="of collectd (1)")
    add(
        "--rules",
        type=int,
        metavar="N",
        help="rules, of which those that are no group of the load match "
        "nothing (9)",
    )
    add(
        "--adaptive",
        action="append",
        metavar="LINE",
        help='a line of configuration for adaptive, such as "ReadBudget 10"',
    )
    add("--window", type=int, metavar="N", help="cycles metered of adaptive")
    add("--no-peers", action="store_true", help="only our plugin and processes")
    add("--output", metavar="FILE", help="the tables, also to a file")
    add("--keep", metavar="DIRECTORY", help="results, to be joined")
    add("--join", metavar="DIRECTORY", help="only show what was kept there")
    add("--list", action="store_true", help="names for --only")
    add("--list-packages", action="store_true", help="what could take part")
    return parser.parse_args()


# ---- outside: a place and a namespace ----


def choose_place():
    """A tmpfs: no disk is measured."""
    place = Path("/dev/shm")
    return place if os.access(place, os.W_OK) else None


def namespace_command():
    command = ["unshare", "--fork", "--pid", "--mount-proc"]
    command.append("--kill-child=SIGTERM")
    if os.geteuid() != 0:
        command.append("--map-root-user")
    return command + [sys.executable, "-B", *sys.argv]


def run_outside():
    """Runs this program again inside, and always cleans up after it. Ending
    unshare ends all processes of the namespace."""
    work = tempfile.mkdtemp(prefix="smaps-bench-", dir=choose_place())
    os.chmod(work, 0o755)
    environment = {**os.environ, "SMAPS_BENCH_WORK": work}
    child = subprocess.Popen(namespace_command(), env=environment)

    def end(signum, _):
        child.kill()
        sys.exit(128 + signum)

    signal.signal(signal.SIGTERM, end)
    try:
        return child.wait()
    except KeyboardInterrupt:
        child.kill()
        return 130
    finally:
        child.wait()
        shutil.rmtree(work, ignore_errors=True)


# ---- inside ----


def reap_as_init():
    """The first process of a namespace inherits all orphans. It is separate
    from the working process and forwards the signal to end."""
    worker = os.fork()
    if worker == 0:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(worker, signal.SIGTERM))
    while True:
        pid, status = os.wait()
        if pid == worker:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def make_plan(options):
    from compare import QUICK_PLAN, Plan

    plan = Plan(**(QUICK_PLAN if options.quick else {}))
    plan.rounds = options.rounds or plan.rounds
    plan.interval = options.interval or plan.interval
    plan.adaptive_cycles = options.window or plan.adaptive_cycles
    plan.adaptive_options = tuple(options.adaptive or ())
    plan.peers = not options.no_peers
    if options.rules is not None:
        plan.n_rules = options.rules
    return plan


def choose_parts(options):
    from apps import APPS

    parts = [part for part in MEASURES if getattr(options, part)]
    if parts:
        return parts
    if options.only:
        of_name = {name: "apps" for name in APPS}
        parts = {of_name.get(name, "populations") for name in options.only}
        return [part for part in MEASURES if part in parts]
    return ["populations"] if options.quick else list(MEASURES)


class Output:
    def __init__(self, path):
        self.failures = 0
        self.file = open(path, "w", encoding="utf-8") if path else None

    def fail(self, text):
        self.failures += 1
        self.add(text)

    def add(self, *blocks):
        for block in blocks:
            print(block, end="\n\n", flush=True)
            if self.file:
                print(block, end="\n\n", file=self.file, flush=True)


# ---- parts: measured in pieces, which can be kept and printed later ----


def take_share(names, share):
    if not share:
        return names
    k, n = map(int, share.split("/"))
    return names[k - 1 :: n]


def measure_populations(options, plan):
    from compare import measure_load
    from populations import POPULATIONS, QUICK, Population

    names = QUICK if options.quick else list(POPULATIONS)
    if options.only:
        names = [n for n in POPULATIONS if n in options.only]
    for name in take_share(names, options.share):
        yield name, measure_load(Population(name), plan)


def measure_apps(options, plan):
    from apps import APPS
    from compare import Results, measure_load

    plan = dataclasses.replace(plan, peers=False)
    for name, make in APPS.items():
        app = make()
        if options.only and name not in options.only:
            continue
        if app.missing():
            failure = f"{app.missing()} is not installed"
            yield name, Results(name, app.words, failure=failure)
        else:
            yield name, measure_load(app, plan)


def measure_stall(options, plan):
    import stalls

    yield "stall", stalls.measure(plan, options.quick)


def measure_scale(options, plan):
    import scale

    yield "scale", scale.measure_cpu(plan, options.quick)


def measure_memory(options, plan):
    import scale

    del options, plan
    yield "memory", scale.measure_memory()


def show_loads(pieces, output):
    import tables

    for r in pieces:
        if r.failure:
            output.fail(f"{r.name}: not measured, {r.failure}")
    results = [r for r in pieces if tables.is_measured(r)]
    if not results:
        return
    output.add(
        "### CPU of one pass by the floor: median (and range)",
        tables.costs(results),
        "### Of that, the thread that reads; the rest is collectd carrying "
        "values",
        tables.threads(results),
        "### Error against exact sums right before and after the cycle",
        tables.errors(results),
    )
    by_group = tables.group_errors(results)
    if by_group:
        output.add("### The same for each group", by_group)
    if tables.has_peers(results):
        output.add(
            "### Others, CPU of one pass by the floor", tables.peers(results)
        )


def show_stall(pieces, output):
    import tables

    for latencies, rows in pieces:
        output.add(
            latencies,
            "### Error where a giant may not be read for long",
            tables.error_table(rows),
        )


def show_scale(pieces, output):
    for text, missing in pieces:
        output.add(text)
        for mode in missing:
            output.add(f"{mode}: not in this build")


def show_memory(pieces, output):
    output.add(*pieces)


MEASURES = {
    "populations": measure_populations,
    "apps": measure_apps,
    "stall": measure_stall,
    "scale": measure_scale,
    "memory": measure_memory,
}

SHOWS = {
    "populations": ("Populations", show_loads),
    "apps": ("Real applications", show_loads),
    "stall": ("Waiting for a reader: a process of 4 GiB", show_stall),
    "scale": ("CPU by number of processes, on made-up trees", show_scale),
    "memory": ("Memory of the daemon", show_memory),
}


def show(part, pieces, output):
    title, show_pieces = SHOWS[part]
    output.add(f"## {title}")
    show_pieces(pieces, output)


def keep(options, part, name, piece):
    """A file for each piece; a new measurement replaces it."""
    if options.keep:
        path = Path(options.keep) / f"{part}-{name}.pickle"
        path.write_bytes(pickle.dumps(piece))


def measure_part(part, options, plan, output):
    """The pieces, including those before a failure."""
    pieces = []
    try:
        for name, piece in MEASURES[part](options, plan):
            keep(options, part, name, piece)
            pieces.append(piece)
    except (host.BenchError, OSError, subprocess.SubprocessError) as error:
        output.fail(f"{part}: not measured, {error}")
    return pieces


def kept_pieces(directory, part):
    """The pieces in the order of measurement."""
    names = [*all_names(), part]
    paths = [Path(directory) / f"{part}-{name}.pickle" for name in names]
    return [pickle.loads(p.read_bytes()) for p in paths if p.is_file()]


def join(options):
    output = Output(options.output)
    output.add("# Benchmarks of the smaps plugin")
    heads = sorted(Path(options.join).glob("head-*"))
    output.add(*(path.read_text() for path in heads))
    for part in SHOWS:
        pieces = kept_pieces(options.join, part)
        if pieces:
            show(part, pieces, output)
    return 1 if output.failures else 0


def head(plan):
    import collectd
    import peers

    has_adaptive = collectd.accepts('Refresh "adaptive"')
    lines = host.describe()
    lines.append("; ".join(filter(None, peers.versions())))
    lines.append(
        f"Interval {plan.interval:g} s, {plan.n_rules} rules, {plan.rounds} "
        f"rounds; adaptive metered once, in as many windows, over "
        f"{plan.adaptive_cycles} cycles"
        + "".join(f", {line}" for line in plan.adaptive_options)
        + ("" if has_adaptive else "; this build has no `Refresh`: always")
    )
    lines.append(
        "Daemons: run time of all threads by the scheduler, less that of an "
        "empty daemon; writer: csv to stdout, into a file on a tmpfs. Floor: "
        "open, read, close of smaps_rollup and statm, after a pause of one "
        "interval."
    )
    return "\n".join(f"- {line}" for line in lines if line)


def run_inside(options):
    reap_as_init()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if host.COLLECTD is None:
        sys.exit("bench: no collectd found: install it or set COLLECTD")
    if not host.PLUGIN.is_file():
        sys.exit(f"bench: no plugin at {host.PLUGIN}: run make or set PLUGIN")
    plan = make_plan(options)
    output = Output(options.output)
    text = head(plan)
    output.add("# Benchmarks of the smaps plugin", text)
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
        name = time.strftime("head-%Y%m%d-%H%M%S", time.gmtime())
        (Path(options.keep) / name).write_text(text)
    for part in choose_parts(options):
        show(part, measure_part(part, options, plan, output), output)
    return 1 if output.failures else 0


def all_names():
    """{name: description} of all loads."""
    from apps import APPS
    from populations import WORDS

    return {**WORDS, **{name: app.words for name, app in APPS.items()}}


def main():
    options = parse_options()
    if options.share and not re.fullmatch("[1-9]/[1-9]", options.share):
        sys.exit("bench: --share is K/N, such as 1/4")
    unknown = set(options.only or ()) - set(all_names())
    if unknown:
        sys.exit(f"bench: no load is called {', '.join(sorted(unknown))}")
    if options.list_packages:
        print("\n".join(host.PACKAGES))
        return 0
    if options.list:
        for name, words in all_names().items():
            print(f"{name:12} {words}")
        return 0
    if options.join:
        return join(options)
    if "SMAPS_BENCH_WORK" in os.environ:
        return run_inside(options)
    return run_outside()


if __name__ == "__main__":
    sys.exit(main())
