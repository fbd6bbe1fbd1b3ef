"""A simulation: PostgreSQL with many backends on large shared buffers, in a
made-up /proc. buffers.c writes the page tables, and knows the exact sums."""

import contextlib
import math
import os
import shutil
import statistics
import subprocess
import threading

import collectd
import host
from host import note
from process import parse_line
from scale import STATUS, resident_kib
from tables import milliseconds, percent, table

OPTIONS = ("MaxLockHold 5",)
BUFFERS = "64G"
DISK_BYTES = 3 << 29  # of the files of buffers.c, with some to spare
GROUP = "backend"
PAGE = 4096
FIRST_PID = 1000

MAPS = """\
{text:x}-{text_end:x} r-xp 00000000 08:01 1234 /usr/lib/postgresql/postgres
{own:x}-{own_end:x} rw-p 00000000 00:00 0 [heap]
{buffers:x}-{buffers_end:x} rw-s 00000000 00:01 1025 /dev/zero (deleted)
"""

# minor faults are written anew in place, so their length stays the same.
STAT = (
    "{pid} (postgres) S {ppid} {pid} {pid} 0 -1 4194304 {faults:08} 0 0 0 5 5 "
    "0 0 20 0 1 0 {pid} 8000000 1000 18446744073709551615 4194304 4294304 "
    "{stack} 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 4394304 4404304 4504304 {stack} "
    "{stack} {stack} {stack} 0\n"
)


class Kind:
    """Backends that have the same pages; amounts are in pages."""

    def __init__(self, layout, fields):
        self.number = fields["kind"]
        self.count = fields["backends"]
        shared = fields["touched"] + layout["text_pages"]
        self.resident = shared + layout["own_pages"]
        self.shared = shared
        self.size = layout["pages"] + layout["text_pages"] + layout["own_pages"]
        self.own = layout["own_pages"]
        self.uss = self.own + fields["exclusive"]
        self.buffers_pss = fields["price_micro"] / 1e6

    def statm(self, text_pages):
        numbers = (self.size, self.resident, self.shared, text_pages, 0)
        return " ".join(map(str, (*numbers, self.own, 0))) + "\n"


class Tree:
    def __init__(self, n):
        if host.meminfo_bytes("MemAvailable") < 2 * DISK_BYTES:
            raise host.BenchError(f"needs {2 * DISK_BYTES >> 30} GiB of memory")
        self.root = host.new_directory("proc")
        self.files = host.new_directory("proc-files")
        self.n = n
        self.busy = 0
        lines = subprocess.run(
            [host.program("buffers"), "-s", BUFFERS, "-n", str(n), self.files],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout.splitlines()
        self.layout = parse_line(lines[0])
        self.kinds = [Kind(self.layout, parse_line(x)) for x in lines[1:]]
        self._write()

    def _write(self):
        buffers = self.layout["pages"] * PAGE
        self._write_root(buffers)
        ends = {
            f"{name}_end": self.layout[name] + bytes_
            for name, bytes_ in (
                ("text", self.layout["text_pages"] * PAGE),
                ("own", self.layout["own_pages"] * PAGE),
                ("buffers", buffers),
            )
        }
        (self.files / "maps").write_text(MAPS.format(**self.layout, **ends))
        (self.files / "cmdline").write_text("postgres: app\0")
        (self.files / "comm").write_text("postgres\n")
        (self.files / "cgroup").write_text("0::/postgresql.service\n")
        pid = FIRST_PID
        for kind in self.kinds:
            self._write_kind(kind)
            for _ in range(kind.count):
                self._add(pid, kind)
                pid += 1

    def _write_root(self, buffers):
        os.link(self.files / "kpagecount", self.root / "kpagecount")
        kib = buffers // 1024
        (self.root / "meminfo").write_text(
            f"MemTotal: {2 * kib} kB\nMemAvailable: {kib} kB\n"
            f"AnonPages: {4 * self.n * self.layout['own_pages']} kB\n"
            f"Mapped: {kib} kB\nShmem: {kib} kB\n"
        )

    def _write_kind(self, kind):
        statm = kind.statm(self.layout["text_pages"])
        (self.files / f"statm-{kind.number}").write_text(statm)
        status = STATUS.format(rss=4 * kind.resident)
        # Buffers that were touched here and there fill all page tables.
        tables = 4 * self.layout["pages"] // 512
        status = status.replace("64 kB", f"{tables} kB")
        (self.files / f"status-{kind.number}").write_text(status)

    def _add(self, pid, kind):
        directory = self.root / str(pid)
        directory.mkdir()
        self._write_stat(pid, 0)
        for name in ("pagemap", "statm", "status"):
            os.link(self.files / f"{name}-{kind.number}", directory / name)
        for name in ("maps", "cmdline", "comm", "cgroup"):
            os.link(self.files / name, directory / name)

    def _write_stat(self, pid, faults):
        ppid = 1 if pid == FIRST_PID else FIRST_PID
        stack = 0x7FFC00000000 + pid * PAGE
        path = self.root / str(pid) / "stat"
        text = STAT.format(pid=pid, ppid=ppid, faults=faults, stack=stack)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(fd, text.encode(), 0)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def at_work(self):
        """Meanwhile all backends fault in 100 pages a second, and free them."""
        end = threading.Event()

        def run():
            while not end.wait(1):
                self.busy += 100
                for pid in range(FIRST_PID, FIRST_PID + self.n):
                    self._write_stat(pid, self.busy)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def bytes_of(self, what):
        """The exact sum over all backends."""
        text = self.layout["text_pages"] / self.n
        of = {
            "rss": lambda kind: kind.resident,
            "uss": lambda kind: kind.uss,
            "pss": lambda kind: kind.own + text + kind.buffers_pss,
        }[what]
        return PAGE * sum(kind.count * of(kind) for kind in self.kinds)

    def remove(self):
        shutil.rmtree(self.root)
        shutil.rmtree(self.files)


HEADS = [
    *("backends", "RSS, GiB", "PSS, GiB"),
    *("PSS off, mean", "worst", "error held", "its width"),
    *("USS off, mean", "worst", "error held", "its width"),
    *("coverage", "CPU an interval, ms", "first three intervals, ms"),
    "memory of the daemon, MiB",
]


def off_cells(tree, cycles, name):
    truth = tree.bytes_of(name)
    shares, held, widths = [], [], []
    for cycle in cycles:
        metrics = cycle.groups[GROUP]
        value = metrics.get(f"memory-{name}", math.nan)
        bound = metrics.get(f"memory-{name}_error", math.nan)
        held.append(abs(value - truth) <= bound)  # False where unknown
        if not math.isnan(value):
            shares.append(abs(value - truth) / truth)
            widths.append(bound / truth)
    if not shares:
        return ["unknown", "–", "0 %", "–"]
    return [
        percent(statistics.fmean(shares)),
        percent(max(shares)),
        percent(statistics.fmean(held), 1),
        percent(statistics.fmean(widths)),
    ]


def measure_row(tree, words, plan, n_cycles):
    note(f"backends: {words}")
    body = collectd.smaps_body(
        {GROUP: "^postgres: "},
        0,
        [*OPTIONS, *plan.adaptive_options, f'ProcRoot "{tree.root}"'],
    )
    kib = []
    metered = collectd.meter_daemon(
        body,
        idle=collectd.meter_idle(),
        interval=plan.interval,
        warm=10,
        cycles=n_cycles,
        windows=min(5, n_cycles),
        then=lambda daemon: kib.append(resident_kib(daemon)[0]),
    )
    cycles = metered.daemon.cycles()
    first = [c.own("duration-cycle") for c in cycles[:3]]
    coverage = [c.groups[GROUP].get("percent-coverage") for c in cycles]
    cpu_ns = statistics.median(cost.cpu_ns for cost in metered.costs)
    return [
        words,
        f"{tree.bytes_of('rss') / 2**30:,.0f}",
        f"{tree.bytes_of('pss') / 2**30:,.1f}",
        *off_cells(tree, cycles, "pss"),
        *off_cells(tree, cycles, "uss"),
        percent(statistics.fmean(coverage) / 100, 1),
        milliseconds(cpu_ns),
        ", ".join(milliseconds(1e9 * seconds) for seconds in first),
        f"{kib[0] / 1024:.0f}",
    ]


def measure(n, plan, is_quick):
    n_cycles = 5 if is_quick else 30
    note(f"backends: {n} on {BUFFERS}")
    tree = Tree(n)
    try:
        rows = [measure_row(tree, f"{n}, idle", plan, n_cycles)]
        with tree.at_work():
            rows.append(measure_row(tree, f"{n}, at work", plan, n_cycles))
    finally:
        tree.remove()
    return rows


def show(rows):
    return [
        f"{BUFFERS} of buffers in a made-up /proc, whose files are cheaper to "
        "read than page tables; " + ", ".join(OPTIONS),
        table(HEADS, rows),
        "Off and width are shares of the sum. Backends at work fault in pages "
        "and free them.",
    ]
