#!/usr/bin/python3
"""Measures the plugin in the real collectd against the kernel's floor and
against others, and prints Markdown.

    run.py [--quick] [--only NAME]... [--output FILE]

All parts are measured, or those that are asked for: --populations, --apps,
--stall, --scale, --memory. --quick is for a first look, in a few minutes, and
without such an option takes some populations only. Everything runs in a pid
namespace of its own and ends with it. See host.py for the environment.
"""

import argparse
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
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
    add("--list", action="store_true", help="names for --only")
    add("--list-packages", action="store_true", help="what could take part")
    return parser.parse_args()


# ---- outside: a place and a namespace ----


def choose_place():
    """A tmpfs, so that no disk is measured."""
    place = Path("/dev/shm")
    return place if os.access(place, os.W_OK) else None


def namespace_command():
    command = ["unshare", "--fork", "--pid", "--mount-proc"]
    command.append("--kill-child=SIGTERM")
    if os.geteuid() != 0:
        command.append("--map-root-user")
    return command + [sys.executable, "-B", *sys.argv]


def run_outside():
    """Runs this program again, inside, and clears up after it whatever
    happens. Ending unshare ends all that is in the namespace."""
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
    """The first process of a namespace inherits all orphans. It is kept apart
    from the one that works, and hands on the signal to end."""
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


def measure_populations(options, plan, output):
    from compare import measure_load
    from populations import POPULATIONS, QUICK, Population

    names = QUICK if options.quick else list(POPULATIONS)
    if options.only:
        names = [n for n in POPULATIONS if n in options.only]
    output.add("## Populations")
    results = [measure_load(Population(name), plan) for name in names]
    add_results(output, results, plan)


def measure_apps(options, plan, output):
    from apps import APPS
    from compare import measure_load

    plan = dataclasses.replace(plan, peers=False)
    output.add("## Real applications")
    results = []
    for name, make in APPS.items():
        app = make()
        if options.only and name not in options.only:
            continue
        if app.missing():
            output.add(f"{name}: not installed ({app.missing()})")
        else:
            results.append(measure_load(app, plan))
    add_results(output, results, plan)


def add_results(output, results, plan):
    import tables

    for r in results:
        if r.failure:
            output.fail(f"{r.name}: not measured, {r.failure}")
    if not any(map(tables.is_measured, results)):
        return
    output.add(
        "### CPU of one pass by the floor: median (and range) of "
        f"{plan.rounds} rounds",
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
    if plan.peers:
        output.add(
            "### Others, CPU of one pass by the floor", tables.peers(results)
        )


def measure_stall(options, plan, output):
    import stalls
    import tables

    latencies, rows = stalls.measure(plan, options.quick)
    output.add(
        "## Waiting for a reader: a process of 4 GiB",
        latencies,
        "### Error where a giant may not be read for long",
        tables.error_table(rows),
    )


def measure_scale(options, plan, output):
    import scale

    text, missing = scale.measure_cpu(plan, options.quick)
    output.add("## CPU by number of processes, on made-up proc trees", text)
    for mode in missing:
        output.add(f"{mode}: not in this build")


def measure_memory(options, plan, output):
    import scale

    del options, plan
    output.add("## Memory of the daemon", scale.measure_memory())


MEASURES = {
    "populations": measure_populations,
    "apps": measure_apps,
    "stall": measure_stall,
    "scale": measure_scale,
    "memory": measure_memory,
}


def head(plan):
    import collectd
    import peers

    has_adaptive = collectd.accepts('Refresh "adaptive"')
    lines = host.describe()
    lines.append("; ".join(filter(None, peers.versions())))
    lines.append(
        f"Interval {plan.interval:g} s, {plan.n_rules} rules, {plan.rounds} "
        f"rounds; adaptive metered over {plan.adaptive_cycles} cycles"
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
    output.add("# Benchmarks of the smaps plugin", head(plan))
    for part in choose_parts(options):
        try:
            MEASURES[part](options, plan, output)
        except (host.BenchError, OSError, subprocess.SubprocessError) as error:
            output.fail(f"{part}: not measured, {error}")
    return 1 if output.failures else 0


def all_names():
    """{name: what it is} of all loads."""
    from apps import APPS
    from populations import WORDS

    return {**WORDS, **{name: app.words for name, app in APPS.items()}}


def main():
    options = parse_options()
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
    if "SMAPS_BENCH_WORK" in os.environ:
        return run_inside(options)
    return run_outside()


if __name__ == "__main__":
    sys.exit(main())
