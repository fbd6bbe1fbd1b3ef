"""The cost of more processes: CPU on synthetic proc trees, and memory."""

import math
import os
import shutil
import statistics
from pathlib import Path

import collectd
import host
from host import BenchError, note
from populations import Population
from tables import milliseconds, table

SIZES = [200, 1000, 5000, 20000, 50000]
QUICK_SIZES = [200, 2000, 10000]
MODES = ["always", "adaptive", "never"]
INTERVAL = 2.0  # above what the largest takes
GROUPS = {"even": "^even ", "odd": "^odd "}

# Processes of a few sizes; all processes of one size share a file, by hard
# links.
VARIANTS = 97

ROLLUP = """\
55d0c8f7d000-7ffe1d7f2000 ---p 00000000 00:00 0          [rollup]
Rss:            {rss:8} kB
Pss:            {pss:8} kB
Pss_Dirty:      {private:8} kB
Pss_Anon:       {private:8} kB
Pss_File:       {file:8} kB
Pss_Shmem:             0 kB
Shared_Clean:   {shared:8} kB
Shared_Dirty:          0 kB
Private_Clean:         0 kB
Private_Dirty:  {private:8} kB
Referenced:     {rss:8} kB
Anonymous:      {private:8} kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
"""

STATUS = """\
Name:\tfake
State:\tS (sleeping)
Uid:\t1000\t1000\t1000\t1000
VmRSS:\t{rss:8} kB
VmPTE:\t      64 kB
VmSwap:\t       0 kB
Threads:\t1
"""


class Tree:
    """A proc tree with a growing number of processes."""

    def __init__(self):
        self.root = host.new_directory("proc")
        self.shared = host.new_directory("proc-files")
        self.n = 0
        (self.root / "meminfo").write_text("MemTotal:       67108864 kB\n")
        for variant in range(VARIANTS):
            self._write_variant(variant)
        for name in ("even", "odd"):
            text = f"{name}\0--worker\0"
            (self.shared / f"cmdline-{name}").write_text(text)
        (self.shared / "cgroup").write_text("0::/fake.slice/fake.service\n")
        (self.shared / "comm").write_text("fake\n")

    def _write_variant(self, variant):
        private, shared = 4 * (200 + 7 * variant), 4 * (300 + variant)
        rss, file = private + shared, shared // 8
        sizes = {"rss": rss, "private": private, "shared": shared, "file": file}
        files = {
            "smaps_rollup": ROLLUP.format(pss=private + file, **sizes),
            "status": STATUS.format(rss=rss),
            "statm": f"{rss // 2} {rss // 4} {shared // 4} 120 0 "
            f"{private // 4 + 80} 0\n",
        }
        for name, text in files.items():
            (self.shared / f"{name}-{variant}").write_text(text)

    def _link(self, directory, name, source):
        os.link(self.shared / source, directory / name)

    def _add(self, pid):
        directory = self.root / str(pid)
        directory.mkdir()
        stack = 0x7FFC00000000 + pid * 4096
        (directory / "stat").write_text(
            f"{pid} (fake) S 1 {pid} {pid} 0 -1 4194304 500 0 0 0 5 5 0 0 20 0 "
            f"1 0 {pid} 8000000 1000 18446744073709551615 4194304 4294304 "
            f"{stack} 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 4394304 4404304 "
            f"{stack // 2} {stack + 64} {stack + 80} {stack + 80} {stack + 99} "
            "0\n"
        )
        for name in ("statm", "status", "smaps_rollup"):
            self._link(directory, name, f"{name}-{pid % VARIANTS}")
        parity = "odd" if pid % 2 else "even"
        self._link(directory, "cmdline", f"cmdline-{parity}")
        self._link(directory, "cgroup", "cgroup")
        self._link(directory, "comm", "comm")

    def grow_to(self, n):
        for pid in range(100 + self.n, 100 + n):
            self._add(pid)
        self.n = n

    def body(self, options):
        more = [*options, f'ProcRoot "{self.root}"']
        return collectd.smaps_body(GROUPS, 0, more)

    def remove(self):
        shutil.rmtree(self.root)
        shutil.rmtree(self.shared)


# ---- CPU ----


def measure_size(tree, plan, options, mode, idle):
    runs = []
    for _ in range(plan.rounds):
        metered = collectd.meter_daemon(
            tree.body(options),
            idle=idle,
            interval=INTERVAL,
            warm=8 if mode == "adaptive" else 2,
            cycles=4,
        )
        runs.append(metered.costs[0].cpu_ns)
    return statistics.median(runs)


def growth(costs, sizes, i):
    """The factor of the cost when the number of processes doubles."""
    if i == 0:
        return "–"
    doublings = math.log2(sizes[i] / sizes[i - 1])
    return f"{(costs[i] / costs[i - 1]) ** (1 / doublings):.2f}"


def measure_cpu(plan, is_quick):
    sizes = QUICK_SIZES if is_quick else SIZES
    modes = {mode: collectd.refresh_options(mode) for mode in MODES}
    costs = {mode: [] for mode, options in modes.items() if options is not None}
    idle = collectd.meter_idle()
    tree = Tree()
    try:
        for size in sizes:
            note(f"scale: {size} processes")
            tree.grow_to(size)
            for mode in costs:
                costs[mode].append(
                    measure_size(tree, plan, modes[mode], mode, idle)
                )
    finally:
        tree.remove()
    heads = ["processes"]
    for mode in costs:
        heads += [f"{mode}, ms a cycle", "µs a process", "× per doubling"]
    rows = []
    for i, size in enumerate(sizes):
        row = [f"{size:,}"]
        for of_mode in costs.values():
            row.append(milliseconds(of_mode[i]))
            row.append(f"{of_mode[i] / size / 1000:.2f}")
            row.append(growth(of_mode, sizes, i))
        rows.append(row)
    return table(heads, rows), [m for m in MODES if m not in costs]


# ---- memory ----


def resident_kib(daemon):
    """(all, anonymous)"""
    fields = {}
    for line in Path(f"/proc/{daemon.pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            fields[name] = int(value.split()[0])
    return fields["VmRSS"], fields["RssAnon"]


def memory_of(body, seconds):
    with collectd.Daemon(body) as daemon:
        daemon.wait_cycles(seconds)
        return resident_kib(daemon)


def memory_row(name, body, empty):
    rss, anon = memory_of(body, 12)
    more, more_anon = rss - empty[0], anon - empty[1]
    return [name, f"{rss:,}", f"{more:,}", f"{more_anon:,}"], more_anon


def measure_real_memory(options, mode, empty):
    load = Population("many")
    load.start()
    try:
        body = collectd.smaps_body(load.groups, 0, options)
        return memory_row(f"{mode}, {load.words}", body, empty)[0]
    finally:
        load.stop()


def measure_tree_memory(options, mode, empty):
    """Runs 5,000 and 10,000 processes on a tree: the difference gives the
    memory per process."""
    tree = Tree()
    rows, anons = [], []
    try:
        for size in (5000, 10000):
            tree.grow_to(size)
            row, anon = memory_row(
                f"{mode}, tree of {size:,}", tree.body(options), empty
            )
            rows.append(row + ["–"])
            anons.append(anon)
    finally:
        tree.remove()
    rows[-1][-1] = f"{(anons[1] - anons[0]) * 1024 / 5000:.0f}"
    return rows


def measure_memory():
    empty = memory_of("", 5)
    rows = [["empty daemon", f"{empty[0]:,}", "–", "–", "–"]]
    for mode in ("always", "adaptive"):
        options = collectd.refresh_options(mode)
        if options is None:
            rows.append([mode, "not in this build", *["–"] * 3])
            continue
        note(f"memory: {mode}")
        try:
            rows.append(measure_real_memory(options, mode, empty) + ["–"])
        except BenchError as error:
            rows.append([f"{mode}: {error}", *["–"] * 4])
        rows += measure_tree_memory(options, mode, empty)
    heads = ["daemon", "RSS, KiB", "above the empty one", "of that anonymous"]
    return table([*heads, "bytes a process, names and all"], rows)
