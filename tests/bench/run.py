#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures the plugin in the real collectd against the kernel's floor and
collectd's processes plugin, and prints Markdown.

    run.py [--quick] [--only NAME]... [--interval SECONDS]... [--hogs N]
           [--against SMAPS.SO] [--output FILE]

Measures all parts, or the given ones: --populations, --apps, --stall.
--quick takes a few minutes; without the options for parts it takes some
populations only. A full run takes more than two hours.

All loads are measured at an interval of 1 s, and some at 10 s as well
(populations.py says which, and why). Hogs are programs that take all the CPU
time that they get. --against measures another build of the plugin in the same
rounds, on the same processes.

Everything runs in its own pid namespace and ends with it. See host.py for the
environment.
"""

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import host  # noqa: E402  (found by the lines above)

def parse_intervals(text):
    intervals = [float(word) for word in text.split(",")]
    if not all(0.2 <= seconds <= 60 for seconds in intervals):
        raise ValueError
    return intervals


def parse_count(text):
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def parse_options():
    parser = argparse.ArgumentParser(
        description="Benchmarks of the smaps plugin.",
    )
    add = parser.add_argument
    for part in MEASURES:
        add(f"--{part}", action="store_true", help="this part, not all")
    add("--quick", action="store_true", help="few loads, few rounds")
    add("--only", action="append", metavar="NAME", help="this load only")
    add("--rounds", type=int, metavar="N")
    add(
        "--interval",
        action="extend",
        type=parse_intervals,
        metavar="SECONDS",
        help='of collectd, also several ("1,10")',
    )
    add("--hogs", type=parse_count, default=0, metavar="N", help="beside it")
    add("--files", type=parse_count, metavar="N", help="LimitNOFILE, soft")
    add("--against", type=Path, metavar="SMAPS.SO", help="another build")
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
        help='a line of configuration for adaptive, such as "ReadBudget 2"',
    )
    add("--warm", type=float, metavar="SECONDS", help="adaptive, before that")
    add("--window", type=int, metavar="N", help="cycles metered of adaptive")
    add("--compared", type=int, metavar="N", help="cycles compared of adaptive")
    add("--output", metavar="FILE", help="the tables, also to a file")
    add("--list", action="store_true", help="names for --only")
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


def make_plan(options, interval=1.0, name=None):
    from compare import LONG_INTERVAL, LONG_PLAN, QUICK_PLAN, SLOW_PLAN, Plan
    from populations import SLOW_TO_SCAN

    durations = dict(QUICK_PLAN) if options.quick else {}
    if interval > LONG_INTERVAL:
        durations.update(LONG_PLAN)
    if name in SLOW_TO_SCAN:
        durations.update(SLOW_PLAN)
    plan = Plan(**durations, interval=interval, hogs=options.hogs)
    plan.rounds = options.rounds or plan.rounds
    plan.given_window = options.window or 0
    plan.given_compared = options.compared or 0
    if options.warm is not None:
        plan.warm_seconds = options.warm
    plan.adaptive_options = tuple(options.adaptive or ())
    plan.other = options.against
    if options.rules is not None:
        plan.n_rules = options.rules
    return plan


def choose_intervals(options, name):
    from populations import AT_TEN_SECONDS, SLOW_TO_SCAN

    if options.interval:
        return options.interval
    if name in SLOW_TO_SCAN:
        return [10.0]
    is_at_ten = name in AT_TEN_SECONDS and not options.quick
    return [1.0, 10.0] if is_at_ten else [1.0]


def choose_parts(options):
    from giants import CASES
    from services import APPS

    parts = [part for part in MEASURES if getattr(options, part)]
    if parts:
        return parts
    if options.only:
        of_name = dict.fromkeys(APPS, "apps")
        of_name.update(dict.fromkeys(CASES, "stall"))
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


# ---- parts ----


def make_load(name):
    from populations import POPULATIONS, Population
    from services import APPS

    return Population(name) if name in POPULATIONS else APPS[name]()


def measure_named(options, names):
    """Each load, at each of its intervals."""
    from compare import Results, measure_load

    for name in names:
        for interval in choose_intervals(options, name):
            load = make_load(name)
            plan = make_plan(options, interval, name)
            results = Results(name, load.words, interval, plan.hogs)
            if load.missing():
                results.failure = f"{load.missing()} is not installed"
            else:
                results = measure_load(load, plan)
            yield results


def chosen(options, names):
    return [n for n in names if not options.only or n in options.only]


def measure_populations(options):
    from populations import POPULATIONS, QUICK

    names = QUICK if options.quick and not options.only else list(POPULATIONS)
    names = chosen(options, names)
    yield from measure_named(options, names)


def measure_apps(options):
    from services import APPS

    yield from measure_named(options, chosen(options, APPS))


def measure_stall(options):
    import giants

    plan = make_plan(options)
    for name in chosen(options, giants.CASES):
        yield giants.measure(name, plan, options.quick)


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


def show_stall(pieces, output):
    import giants

    for measured in pieces:
        if measured.failure:
            output.fail(f"{measured.words}: not measured, {measured.failure}")
    if any(measured.row for measured in pieces):
        output.add(*giants.show(pieces))


MEASURES = {
    "populations": measure_populations,
    "apps": measure_apps,
    "stall": measure_stall,
}

SHOWS = {
    "populations": ("Populations", show_loads),
    "apps": ("Real applications", show_loads),
    "stall": ("Processes too large to be walked", show_stall),
}


def show(part, pieces, output):
    title, show_pieces = SHOWS[part]
    output.add(f"## {title}")
    show_pieces(pieces, output)


def measure_part(part, options, output):
    """Yields the pieces, including those before a failure."""
    pieces = []
    try:
        for piece in MEASURES[part](options):
            pieces.append(piece)
    except host.FAILURES as error:
        output.fail(f"{part}: not measured, {error}")
    return pieces


def describe_plan(plan):
    """The numbers of a plan that depend on its interval."""
    return (
        f"At {plan.interval:g} s: {plan.n_rules} rules, {plan.rounds} rounds; "
        f"adaptive after {plan.adaptive_warm} cycles, metered over "
        f"{plan.adaptive_cycles}, compared over {plan.error_cycles}"
    )


def head(options):
    lines = host.describe()
    intervals = options.interval or ([1.0] if options.quick else [1.0, 10.0])
    lines += [describe_plan(make_plan(options, i)) for i in intervals]
    if options.adaptive:
        lines.append("Adaptive with " + ", ".join(options.adaptive))
    if options.against:
        lines.append(f"The other build: {options.against}")
    lines.append(
        "Daemons: run time of all threads by the scheduler, less that of an "
        "empty daemon; writer: csv to stdout, into a file on a tmpfs. Floor: "
        "open, read, close of smaps_rollup and statm, after a pause of one "
        "interval."
    )
    return "\n".join(f"- {line}" for line in lines if line)


def limit_files(n):
    """For all that we start."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, most))
    except ValueError:
        sys.exit(f"bench: --files is at most {most} here")


def run_inside(options):
    reap_as_init()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if host.COLLECTD is None:
        sys.exit("bench: no collectd found: install it or set COLLECTD")
    if not host.PLUGIN.is_file():
        sys.exit(f"bench: no plugin at {host.PLUGIN}: run make or set PLUGIN")
    if options.files:
        limit_files(options.files)
    output = Output(options.output)
    output.add("# Benchmarks of the smaps plugin", head(options))
    for part in choose_parts(options):
        show(part, measure_part(part, options, output), output)
    return 1 if output.failures else 0


def all_names():
    """{name: description} of all loads."""
    from giants import CASES
    from services import APPS
    from populations import WORDS

    others = {**APPS, **CASES}
    return {**WORDS, **{name: load.words for name, load in others.items()}}


def main():
    options = parse_options()
    if options.against and not options.against.is_file():
        sys.exit(f"bench: no plugin at {options.against}")
    unknown = set(options.only or ()) - set(all_names())
    if unknown:
        sys.exit(f"bench: no load is called {', '.join(sorted(unknown))}")
    if options.list:
        for name, words in all_names().items():
            print(f"{name:12} {words}")
        return 0
    if "SMAPS_BENCH_WORK" in os.environ:
        return run_inside(options)
    return run_outside()


if __name__ == "__main__":
    sys.exit(main())
