# SPDX-License-Identifier: MIT
"""A thousand intervals, while processes start and end all the time and snapshots
are written; or as many as SOAK_INTERVALS says (`make soak`: ten thousand)."""

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import snapshot
from harness import (
    DEADLINE_SECONDS,
    KIB,
    PLUGIN_SAYS,
    TAG,
    count_threads,
    read_statm,
    stage,
)
from server import BackendTest

INTERVALS = int(os.environ.get("SOAK_INTERVALS") or 1000)
INTERVAL_SECONDS = 0.05
STARTS_PER_INTERVAL = 2.5
STARTS = INTERVALS * STARTS_PER_INTERVAL
STARTS_PER_SECOND = 2 * STARTS_PER_INTERVAL / INTERVAL_SECONDS

# Intervals of which the memory is compared: warm, and late.
EARLY = range(INTERVALS // 5, INTERVALS // 5 + INTERVALS // 10 + 1)
LATE = range(INTERVALS - INTERVALS // 10, INTERVALS + 1)
# A document comes and goes, of a KiB for each process of the machine.
RSS_SLACK = 1024 * KIB
# What a further process of the machine may cost: each is in the plugin's table
# and in documents, of which several can be at hand, and malloc() keeps some of
# what it had for them. Other work may start many of them while this test runs.
RSS_OF_PROCESS = 8 * KIB

# Descriptors that the plugin keeps are numbered from here on.
KEPT_LEAST = 1024

MAX_FILES = 5
# An alarm comes in each interval, one at a time. Their captures are written by
# another thread, which a busy machine lets run in few of the intervals.
CAPTURES_LEAST = 10 * MAX_FILES

# All that the plugin can be asked to look at, of processes that hardly live, and
# all that it can write.
CONFIG = """
    LoadPlugin smaps
    <Plugin smaps>
      StateFile "{directory}/state.json"
      StateInterval 0
      ReadTimeout 30
      <Capture>
        Directory "{directory}/captures"
        Cooldown 0
        MaxFiles {max_files}
      </Capture>
      Report "detail"
      ValuesPercentage true
      MaxGroups 50
      <Ignore>
        ExecutableMatch "/no/such/"
      </Ignore>
      <Group "unit-%{{unit}}-of-%{{user}}">
        Slice "*"
        Continue true
      </Group>
      <Group "view-%{{comm}}">
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
    LoadPlugin threshold
    <Plugin threshold>
      <Plugin smaps>
        <Type ps_count>
          DataSource "processes"
          WarningMax 0
          Persist true
        </Type>
      </Plugin>
    </Plugin>
"""


class Sample:
    """What the daemon uses at some moment."""

    def __init__(self, collectd, interval):
        pid = collectd.process.pid
        self.interval = interval
        self.rss = read_statm(pid)["resident"]
        numbers = [int(name) for name in os.listdir(f"/proc/{pid}/fd")]
        self.kept = sum(n >= KEPT_LEAST for n in numbers)
        self.descriptors = len(numbers) - self.kept
        self.threads = count_threads(pid)
        self.processes = sum(name.isdigit() for name in os.listdir("/proc"))


class Endurance(BackendTest):
    def test_many_intervals_under_churn(self):
        still = self.start_shape("cow", name="still", mib=16, rewrite_mib=4)
        churn = self.start_shape(
            "churn", name="churn", rate=int(STARTS_PER_SECOND), seconds=3600
        )
        self.directory = self.make_directory()
        config = CONFIG.format(directory=self.directory, max_files=MAX_FILES)
        collectd = self.start_daemon(
            config.replace("@", TAG), interval=INTERVAL_SECONDS
        )
        samples = self.watch(collectd, churn)
        self.check_log(collectd)
        self.check_snapshots(collectd)
        self.check_descriptors(samples, collectd)
        self.check_threads(samples)
        self.check_memory(samples)
        if INTERVALS > 1000:
            print(f"KiB and processes, at each twentieth: {curve(samples)}")
        churn.stop()
        self.assert_sums_match(collectd, "still", still.pids)
        self.assertEqual(collectd.stop(), 0)

    def make_directory(self):
        """In memory, if it can be: twenty documents a second, each of them
        synced, are not to be a test of the disk."""
        if not os.access("/dev/shm", os.W_OK):
            return stage().new_directory()
        directory = Path(tempfile.mkdtemp(prefix="smaps-test-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        return directory

    def watch(self, collectd, churn):
        """A sample for each interval that we come to see, until there were as
        many intervals and as many processes have started as this test says: on
        a busy machine either may be slower than the other."""
        samples = []
        path = collectd.directory / "csv/test/smaps"
        begin = churn.count_started()
        interval = started = 0
        done = -1
        while interval < INTERVALS or started < STARTS:
            self.assertIsNone(collectd.process.poll(), collectd.log()[-20:])
            interval = sum(
                file.read_bytes().count(b"\n") - 1
                for file in path.glob("duration-cycle-*")
            )
            started = churn.count_started() - begin
            if not samples or interval > samples[-1].interval:
                samples.append(Sample(collectd, interval))
            if min(interval, INTERVALS) + min(started, STARTS) > done:
                done = min(interval, INTERVALS) + min(started, STARTS)
                end = time.monotonic() + DEADLINE_SECONDS
            self.assertLess(
                time.monotonic(), end, f"{interval} intervals, {started} starts"
            )
            time.sleep(INTERVAL_SECONDS / 2)
        return samples

    def check_log(self, collectd):
        """There is no error. The plugin may log only that a process of the
        machine, but none of ours, may not be read, as in a container, or is too
        large to be read as a whole; and late captures of other services."""
        self.assertEqual(collectd.log_lines(r"\[error\]"), [])
        lines = [
            line
            for line in collectd.log_lines(PLUGIN_SAYS)
            if "Notification: " not in line
            and not (TAG not in line and "; the capture" in line)
        ]
        said = [
            [line for line in lines if words in line and TAG not in line]
            for words in (
                "refuses", "longer than MaxLockHold", "too large for MaxLock"
            )
        ]
        self.assertEqual(sum(said, []), lines)
        self.assertLessEqual(max(map(len, said)), 1)

    def check_snapshots(self, collectd):
        """There are many captures, each of them is whole, and no more than
        MaxFiles are left."""
        announced = len(collectd.log_lines("message = capture /"))
        self.assertGreater(announced, CAPTURES_LEAST)
        files = list((self.directory / "captures").glob("*.json"))
        self.assertLessEqual(len(files), MAX_FILES)
        snapshot.read(self.directory / "state.json")

    def check_descriptors(self, samples, collectd):
        """Those that are open for a moment come and go: the csv plugin's, and
        ours. The fewest that were seen are those that stay. The statm of a
        member stays open and is closed when the member ends: there are no more
        such files than processes in an interval."""
        early, late = (
            min(of(samples, part, "descriptors")) for part in (EARLY, LATE)
        )
        self.assertEqual(late, early, "descriptors")
        kept = max(of(samples, LATE, "kept"))
        processes = collectd.values()[""]["count-processes"]
        self.assertLessEqual(
            kept, max(count for _, count in processes), "files kept open"
        )

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
