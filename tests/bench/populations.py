# SPDX-License-Identifier: MIT
"""Loads of synthetic processes; population.c explains the words."""

import host
from processes import Talker

# To touch all memory may take minutes on a busy machine.
START_SECONDS = 600

# The order is that of the tables. All but backends stay below 12 GiB.
POPULATIONS = {
    "small": ["small:count=200,private=5M"],
    "web0": ["web:count=1000,private=8M,shared=64M"],
    "web10": [
        "web:count=1000,private=8M,shared=64M,do=walk,busy=10,rate=512K"
    ],
    "web50": [
        "web:count=1000,private=8M,shared=64M,do=walk,busy=50,rate=512K"
    ],
    "big": [
        "big:count=4,private=2G",
        "small:count=200,private=5M",
    ],
    "many": [
        "many-a:count=2500,private=1M",
        "many-b:count=2500,private=1M",
    ],
    # Not a divisor of the interval, or else every cycle would fall at the same
    # point between two restarts.
    "churn": [
        "churn:count=400,private=1M,inherited=4M,restart_ms=19",
        "still:count=200,private=5M",
    ],
    "vmas": ["vmas:count=400,private=4M,mappings=1500"],
    "grow": [
        "grow:count=100,private=16M,do=grow,rate=512K",
        "still:count=200,private=5M",
    ],
    # Workers live for two minutes, so there is always shared memory to break.
    "cow": [
        "cow:count=64,private=2M,inherited=64M,do=cow,busy=50,rate=256K,"
        "restart_ms=2000"
    ],
    "replace": [
        "pool:count=200,private=2M,inherited=64M,restart_ms=49",
        "still:count=200,private=5M",
    ],
    "shm": [
        "shm:count=100,private=2M,shared=256M,do=shm,busy=30,rate=1M",
        "still:count=200,private=5M",
    ],
    "pools": [
        "pool-a:count=100,private=2M,inherited=32M,restart_ms=99",
        "pool-b:count=100,private=2M,inherited=64M,restart_ms=91",
    ],
    "mix": [
        "mix-shm:count=60,private=2M,shared=128M,do=shm,busy=30,rate=1M",
        "mix-cow:count=32,private=2M,inherited=48M,do=cow,busy=50,rate=256K,"
        "restart_ms=2000",
        "mix-grow:count=60,private=8M,do=grow,rate=256K",
        "still:count=200,private=5M",
    ],
    # This behaves like a Redis of 1 GiB that saves about every ten seconds, but
    # not always at the same point of an interval.
    "fork": [
        "fork:inherited=1G,do=cow,rate=1M,tick=100,save_ms=9730,life_ms=3000",
        "small:count=200,private=5M",
    ],
    "giant": [
        "giant:count=1,private=4G,do=walk,rate=32M",
        "small:count=200,private=5M",
    ],
    "maps": [
        "maps:count=1,mappings=60000",
        "small:count=200,private=5M",
    ],
    # PostgreSQL with 8 GiB of shared_buffers that all backends have touched:
    # 5 GiB more are page tables and private memory.
    "backends": [
        "backends:count=253,private=5M,shared=8G,do=shm,busy=20,rate=256K"
    ],
}
QUICK = ["small", "grow"]

# The loads that are measured at 10 s too, collectd's own interval. There a
# minute has six cycles, so one load takes eight minutes, and few must do: many
# and web10 have most processes, whose readings for age cost the more, the less
# else there is in a cycle. In replace, half of all workers are replaced within
# an interval. mix and mixed have all kinds of changes at once.
AT_TEN_SECONDS = ["web10", "many", "replace", "mix", "mixed"]

# One scan of these takes longer than an interval: measured at 10 s alone.
SLOW_TO_SCAN = ["backends"]

WORDS = {
    "small": "200 × 5 MB",
    "web0": "1,000 × 8 MB + 64 MB shared, idle",
    "web10": "the same, 10 % busy",
    "web50": "the same, 50 % busy",
    "big": "4 × 2 GB + 200 small",
    "many": "5,000 × 1 MB",
    "churn": "600, 50 restarts a second",
    "vmas": "400 with 1,500 mappings each",
    "grow": "100 × 16 to 32 MB, growing + 200 idle",
    "cow": "64 prefork workers breaking copy-on-write",
    "replace": "200 prefork workers, 20 replaced a second + 200 idle",
    "shm": "100 mapping and unmapping of 256 MB shared + 200 idle",
    "pools": "two pools of 100 workers, 10 and 11 replaced a second",
    "mix": "shared memory, copy-on-write and growth, 152 + 200 idle",
    "fork": "1 GB that forks every 10 s and writes + 200 small",
    "giant": "4 GB, growing and shrinking + 200 small",
    "maps": "60,000 mappings + 200 small",
    "backends": "253 that share 8 GiB, like PostgreSQL",
}


class Population:
    """Runs from start() to stop(). groups is {name: regular expression}."""

    def __init__(self, name):
        self.name = name
        self.words = WORDS[name]
        self.specs = POPULATIONS[name]
        names = [spec.split(":")[0] for spec in self.specs]
        self.groups = {n: f"^{n} --group={n}:" for n in names}
        self.talker = None

    def missing(self):
        return None

    def start(self):
        self.talker = Talker([host.program("population"), *self.specs])
        answer = self.talker.read_line(START_SECONDS)
        if not answer.startswith("READY"):
            raise host.BenchError(f"population: {answer}")

    def check(self):
        if self.talker.process.poll() is not None:
            raise host.BenchError("population has ended")

    def stop(self):
        if self.talker:
            self.talker.stop()
