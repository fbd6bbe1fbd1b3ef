"""A thousand intervals, while processes start and end all the time; or as many
as SOAK_INTERVALS says (`make soak`: ten thousand)."""

import os
import statistics
import time

from harness import (
    KIB,
    PLUGIN_SAYS,
    IntegrationTest,
    count_threads,
    read_statm,
)

INTERVALS = int(os.environ.get("SOAK_INTERVALS") or 1000)
INTERVAL_SECONDS = 0.05
STARTS_PER_SECOND = 50

# Intervals of which the memory is compared: warm, and late.
EARLY = range(INTERVALS // 5, INTERVALS // 5 + INTERVALS // 10 + 1)
LATE = range(INTERVALS - INTERVALS // 10, INTERVALS + 1)
RSS_SLACK = 256 * KIB
# What a further process of the machine may cost: each is in the plugin's table,
# and other work may start many of them while this test runs.
RSS_OF_PROCESS = 2 * KIB

# All that the plugin can be asked to look at, of processes that hardly live.
CONFIG = """
    <Plugin smaps>
      Report "detail"
      ValuesPercentage true
      MaxGroups 50
      <Ignore>
        ExecutableMatch "/no/such/"
      </Ignore>
      <Group "unit-%{unit}-of-%{user}">
        Slice "*"
        Continue true
      </Group>
      <Group "view-%{comm}">
        Comm "churn@"
        Continue true
      </Group>
      <Group "still">
        Comm "still@"
        Refresh "always"
      </Group>
      <Group "churn">
        CommMatch "^churn@$"
        ExecutableMatch "/shape$"
        CommandLineMatch "shape"
        UserMatch "."
        Children true
      </Group>
      Other "other"
    </Plugin>
"""


class Sample:
    """The daemon at some moment."""

    def __init__(self, collectd, interval):
        pid = collectd.process.pid
        self.interval = interval
        self.rss = read_statm(pid)["resident"]
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        self.threads = count_threads(pid)
        self.processes = sum(name.isdigit() for name in os.listdir("/proc"))


class Endurance(IntegrationTest):
    def test_many_intervals_under_churn(self):
        still = self.start_shape("cow", name="still", mib=16, rewrite_mib=4)
        churn = self.start_shape(
            "churn", name="churn", rate=2 * STARTS_PER_SECOND, seconds=3600
        )
        collectd = self.start_collectd(CONFIG, interval=INTERVAL_SECONDS)
        begin = time.monotonic()
        started = churn.count_started()
        samples = self.watch(collectd)
        seconds = time.monotonic() - begin
        started = churn.count_started() - started

        # That it was as busy as this test says it is.
        self.assertGreaterEqual(started / seconds, STARTS_PER_SECOND)
        self.check_log(collectd)
        self.check_descriptors(samples)
        self.check_threads(samples)
        self.check_memory(samples)
        self.assert_sums_match(collectd, "still", still.pids)
        self.assertEqual(collectd.stop(), 0)

    def watch(self, collectd):
        """A sample for each interval that we come to see."""
        samples = []
        path = collectd.directory / "csv/test/smaps"
        end = time.monotonic() + 5 * INTERVALS * INTERVAL_SECONDS
        while not samples or samples[-1].interval < INTERVALS:
            self.assertIsNone(collectd.process.poll(), collectd.log()[-20:])
            self.assertLess(time.monotonic(), end, "collectd does not keep up")
            interval = sum(
                file.read_bytes().count(b"\n") - 1
                for file in path.glob("duration-cycle-*")
            )
            if not samples or interval > samples[-1].interval:
                samples.append(Sample(collectd, interval))
            time.sleep(INTERVAL_SECONDS / 2)
        return samples

    def check_log(self, collectd):
        """No error, and nothing from the plugin but that, in a container, some
        process of the machine is not for us to read."""
        self.assertEqual(collectd.log_lines(r"\[error\]"), [])
        lines = collectd.log_lines(PLUGIN_SAYS)
        others = [line for line in lines if "refuses" not in line]
        self.assertEqual(others, [])
        self.assertLessEqual(len(lines), 1)

    def check_descriptors(self, samples):
        """Those that are open for a moment come and go: the csv plugin's, and
        ours. The fewest that were seen are those that stay."""
        early, late = (
            min(of(samples, part, "descriptors")) for part in (EARLY, LATE)
        )
        self.assertEqual(late, early, "descriptors")

    def check_threads(self, samples):
        """The daemon's own, from the start; ours, if we have any, too."""
        threads = set(of(samples, EARLY, "threads"))
        self.assertEqual(set(of(samples, LATE, "threads")), threads)
        self.assertEqual(len(threads), 1, threads)

    def check_memory(self, samples):
        early, late = (
            statistics.median(of(samples, part, "rss"))
            for part in (EARLY, LATE)
        )
        more = max(sample.processes for sample in samples) - min(
            of(samples, EARLY, "processes")
        )
        self.assertLessEqual(
            late - early,
            RSS_SLACK + more * RSS_OF_PROCESS,
            f"growth of the daemon, with {more} more processes; in KiB, with "
            f"processes, at each twentieth: {curve(samples)}",
        )


def curve(samples):
    """How the daemon's memory went, for whoever has to find out why."""
    step = max(1, len(samples) // 20)
    return [(s.rss // KIB, s.processes) for s in samples[::step]]


def of(samples, intervals, attribute):
    return [getattr(s, attribute) for s in samples if s.interval in intervals]
