"""Growth of real processes: of one that leaks, beside others that only move."""

import subprocess
import sys

from harness import (
    MIB,
    TAG,
    IntegrationTest,
    end_process,
    end_with_parent,
    group,
    plugin,
    wait_until,
)

# The shortest window: twenty seconds can show a leak.
CONFIG = plugin(
    "GrowthWindow 60",
    'Refresh "always"',
    group("leaks", 'Comm "leaks@"'),
    group("moves", 'Comm "moves@"'),
)

# Backends that take memory for their work, up to 20 MiB, and give it back; each
# at another time. Those that leak keep so many bytes a second of it.
BACKENDS = """
import ctypes, mmap, os, random, signal, sys, time

name, leak, backends = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
for _ in range(backends - 1):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
        break
else:
    print("ready", flush=True)
draw = random.Random(os.getpid())
kept = []
began = time.monotonic()
while True:
    size = draw.randrange(1, 20) << 20
    work = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    work.write(b"x" * size)
    while len(kept) < leak * (time.monotonic() - began) / (1 << 18):
        kept.append(b"x" * (1 << 18))
    time.sleep(draw.random() / 5)
    work.close()
"""
LEAK = 2 * MIB


class Growth(IntegrationTest):
    def start_backends(self, name, leak, backends):
        process = subprocess.Popen(
            [sys.executable, "-c", BACKENDS, name + TAG, str(leak), str(backends)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(end_process, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def last(self, group, metric):
        """The last value, or None before the first."""
        rows = self.collectd.values().get(group, {}).get(metric)
        return rows[-1][1] if rows else None

    def wait_last(self, group, metric, condition):
        def find():
            self.collectd.check_running()
            value = self.last(group, metric)
            return value is not None and condition(value)

        wait_until(
            find,
            lambda: f"{metric} of {group}: {self.last(group, metric)}",
            300,
        )

    def test_a_leak_is_told_and_what_moves_is_not(self):
        leaking = self.start_backends("leaks", LEAK, 1)
        self.start_backends("moves", 0, 4)
        self.collectd = self.start_collectd(CONFIG)
        self.wait_last("leaks", "gauge-growth", lambda value: value > 0)
        self.wait_last(
            "leaks",
            "gauge-growth",
            lambda value: 0.7 * LEAK < value < 1.4 * LEAK,
        )
        self.wait_last("leaks", "duration-until_limit", lambda value: value > 0)
        values = self.collectd.values()
        told = [row[1] for row in values["moves"]["gauge-growth"]]
        self.assertIn(0, told)
        self.assertFalse([value for value in told if value > 0])
        left = [row[1] for row in values["moves"]["duration-until_limit"]]
        self.assertFalse([seconds for seconds in left if seconds == seconds])
        # The next service of that name has not leaked yet.
        end_process(leaking)
        self.start_backends("leaks", 0, 1)
        self.wait_last("leaks", "gauge-growth", lambda value: value != value)
        self.wait_last("leaks", "gauge-growth", lambda value: value == 0)
