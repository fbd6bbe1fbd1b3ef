# SPDX-License-Identifier: MIT
"""The real collectd: its cost and its published values.

The writer is collectd's csv plugin with the data directory "stdout", and
stdout is a file on a tmpfs: one printf() per value and no opened file, the
same in every daemon. The cost is the scheduler's count of the run time of all
threads.
"""

import functools
import math
import re
import statistics
import time

import collectd
import host
import process
from cycle import Cycle
from host import BenchError
from processes import DEADLINE_SECONDS

CSV = """\
LoadPlugin csv
<Plugin csv>
  DataDir "stdout"
  StoreRates false
</Plugin>
"""

# Patterns that match nothing, for rules without processes.
FILLERS = ["sshd", "cron", "nginx", "mysqld", "java", "dovecot", "exim", "php"]


@functools.lru_cache(maxsize=None)
def plugin_directory(build):
    """`build` is the path of a smaps.so."""
    directory = host.new_directory("plugins")
    return collectd.fill_plugin_dir(directory, ("csv", "processes"), build)


# ---- configurations ----


def match_rules(groups, n_rules):
    """The same groups for our plugin and for collectd's own: those of the
    load, and patterns that match nothing until there are n_rules."""
    rules = list(groups.items())
    fillers = [name for name in FILLERS if name not in groups]
    for name in fillers[: max(0, n_rules - len(rules))]:
        rules.append((name, f"^{name}: "))
    return "\n".join(
        f'  ProcessMatch "{name}" "{pattern}"' for name, pattern in rules
    )


def smaps_body(groups, n_rules, mode, options=()):
    """Mode is that of Refresh."""
    lines = (f'Refresh "{mode}"', 'Report "default" "uss_error"', *options)
    text = "\n".join(f"  {line}" for line in lines)
    return (
        "LoadPlugin smaps\n<Plugin smaps>\n"
        f"{match_rules(groups, n_rules)}\n"
        f'  Other "rest"\n{text}\n</Plugin>'
    )


def processes_body(groups, n_rules=0):
    return (
        "LoadPlugin processes\n<Plugin processes>\n"
        f"{match_rules(groups, n_rules)}\n</Plugin>"
    )


# ---- the daemon ----


class Usage:
    """Measures the CPU time of the daemon between two moments."""

    def __init__(self, begin, end):
        self.begin_time, self.end_time = begin[0], end[0]
        self.cpu_ns = end[1] - begin[1]
        self.reader_ns = end[2] - begin[2]

    @property
    def seconds(self):
        return self.end_time - self.begin_time


class Daemon(collectd.Daemon):
    def __init__(
        self, body, interval=1.0, plugin="smaps", build=host.PLUGIN
    ):
        self.interval = interval
        self.plugin = plugin
        directory = host.new_directory("collectd")
        config = collectd.write_config(
            directory, plugin_directory(build), CSV + body, interval
        )
        with open(directory / "values", "wb") as values:
            # In our session, whose processes share processors evenly.
            super().__init__(
                directory, config, stdout=values, start_new_session=False
            )
        self.start = None  # of some cycle, on the monotonic clock
        self._cycles = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # -- cost --

    def _readers(self):
        names = process.thread_names(self.pid)
        return [tid for tid, name in names.items() if name.startswith("reader")]

    def _sample(self):
        """Returns (time, CPU of all threads, CPU of the reading threads).
        Threads of the plugin count as reading threads."""
        self.check_running()
        others = [self.pid] + [
            tid
            for tid, name in process.thread_names(self.pid).items()
            if name.startswith("writer")
        ]
        cpu = process.cpu_ns(self.pid)
        other = sum(process.thread_cpu_ns(self.pid, tid) for tid in others)
        return time.time(), cpu, cpu - other

    def find_cycle(self):
        """Watches the reading thread until it wakes up: from then on cycles
        begin at whole intervals. If it never sleeps, any moment will do."""
        quiet = 0.08 * self.interval
        deadline = time.monotonic() + 6 * self.interval + 5
        last, changed = None, time.monotonic()
        while time.monotonic() < deadline:
            time.sleep(0.002)
            self.check_running()
            readers = self._readers()
            if not readers:
                continue
            now = time.monotonic()
            cpu = process.thread_cpu_ns(self.pid, readers[0])
            if last is not None and cpu != last:
                if now - changed > quiet:
                    self.start = now
                    return
                changed = now
            last = cpu
        self.start = time.monotonic()

    def next_start(self, after):
        """The time at which the first cycle after a moment begins."""
        n = math.ceil((after - self.start) / self.interval)
        return self.start + n * self.interval

    def wait_values(self):
        """Waits for the end of the first cycle, which takes seconds on a busy
        machine: its values fill more than a buffer of stdout."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (self.directory / "values").stat().st_size == 0:
            self.check_running()
            if time.monotonic() > deadline:
                raise BenchError("the daemon published nothing")
            time.sleep(0.05)

    def wait_cycles(self, n):
        time.sleep(n * self.interval)
        self.check_running()

    def meter(self, n):
        """Lets n cycles pass, from shortly before one to shortly before
        another; the next window can follow without a gap."""
        margin = 0.05 * self.interval
        begin = self.next_start(time.monotonic()) - margin
        process.sleep_until(begin)
        first = self._sample()
        process.sleep_until(begin + n * self.interval)
        return Usage(first, self._sample())

    def _reading_ns(self):
        return sum(
            process.thread_cpu_ns(self.pid, tid) for tid in self._readers()
        )

    def wait_cycle(self, start):
        """Waits for the cycle that is due to begin and to end: all threads
        have been asleep for some milliseconds. False if no cycle comes or if
        it has already begun."""
        if process.is_running(self.pid, self._readers()):
            return False
        before = last = self._reading_ns()
        awake = time.monotonic()
        while awake < start + 0.9 * self.interval:
            time.sleep(0.001)
            reading, now = self._reading_ns(), time.monotonic()
            if before == last != reading:
                self.start = now
            if reading != last or reading == before:
                awake = now
            elif process.is_running(self.pid):
                awake = now
            elif now - awake > 0.005:
                return True
            last = reading
        return False

    # -- values; all of them are there when the daemon has stopped --

    def cycles(self):
        if self._cycles is None:
            self._cycles = read_cycles(
                self.directory / "values", self.plugin, self.interval
            )
        return self._cycles

    def cycles_between(self, begin, end):
        return [c for c in self.cycles() if begin <= c.time < end]


def read_cycles(path, plugin, interval):
    """Reads all values of the plugin. The values of one cycle have nearly the
    same time."""
    line_pattern = re.compile(
        rf'^PUTVAL "?test/{plugin}(?:-([^/]*))?/(\S+?)"? interval=\S+ (\S+)$'
    )
    cycles = []
    for line in path.read_text().splitlines():
        found = line_pattern.match(line)
        if not found:
            continue
        group, metric, values = found.groups()
        time_, *numbers = (float(x) for x in values.split(":"))
        if not cycles or time_ - cycles[-1].time > 0.4 * interval:
            cycles.append(Cycle(time_, {}))
        metrics = cycles[-1].groups.setdefault(group or "", {})
        metrics[metric] = tuple(numbers)
    return cycles


class Cost:
    """Counts nanoseconds of CPU per cycle, above an empty daemon."""

    def __init__(self, usage, n_cycles, idle_ns_per_second):
        idle_ns = idle_ns_per_second * usage.seconds
        self.cycles = n_cycles
        self.cpu_ns = (usage.cpu_ns - idle_ns) / n_cycles
        self.reader_ns = usage.reader_ns / n_cycles


class Metered:
    """costs has one item per window, cycles the values published in them."""

    def __init__(self, daemon, usages, n_cycles, idle):
        self.daemon = daemon
        self.costs, self.cycles = [], []
        for usage in usages:
            cycles = daemon.cycles_between(usage.begin_time, usage.end_time)
            if not cycles:
                raise BenchError("the daemon published nothing")
            if abs(len(cycles) - n_cycles) > max(1, 0.1 * n_cycles):
                host.note(f"  {len(cycles)} cycles where {n_cycles} were due")
            self.costs.append(Cost(usage, len(cycles), idle))
            self.cycles += cycles


def meter_daemon(
    body,
    *,
    idle,
    interval,
    warm,
    cycles,
    windows=1,
    plugin="smaps",
    build=host.PLUGIN,
    then=None,
):
    """Runs a daemon for warm + cycles intervals and returns the cost of the
    latter, in that many windows. Calls then(daemon) before it is stopped."""
    n = max(1, cycles // windows)
    with Daemon(body, interval, plugin, build) as daemon:
        daemon.wait_values()
        daemon.wait_cycles(warm)
        daemon.find_cycle()
        usages = [daemon.meter(n) for _ in range(windows)]
        if then:
            then(daemon)
    return Metered(daemon, usages, n, idle)


@functools.lru_cache(maxsize=None)
def meter_idle(seconds=10):
    """Returns the nanoseconds per second that a daemon without a reading plugin
    takes."""
    with Daemon("", 1.0, "none") as daemon:
        time.sleep(2)
        begin = daemon._sample()
        time.sleep(seconds)
        usage = Usage(begin, daemon._sample())
    return usage.cpu_ns / usage.seconds


def mean_of(cycles, metric):
    """Returns statistics of one of the plugin's own metrics."""
    values = [c.own(metric) for c in cycles]
    values = [v for v in values if not math.isnan(v)]
    return statistics.fmean(values) if values else math.nan
