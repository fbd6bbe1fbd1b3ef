# SPDX-License-Identifier: MIT
"""Estimates between readings, of real processes that share and stop sharing."""

import signal
import time

from harness import (
    MIB,
    TAG,
    IntegrationTest,
    Script,
    group,
    plugin,
    state_of,
    sum_rollups,
    wait_until,
)

# Estimates may be off by this part, in the first interval after a change.
TOLERANCE = 0.01

# Everything that has changed has to be read in the next interval, which is
# short; and walked, however slow the machine is.
CONFIG = plugin(
    "ReadBudget 20",
    "MaxLockHold 500",
    'Report "detail"',
    group("family", 'Comm "family@"', "Children true"),
)

# A process that forks and writes on command. Each command is answered when it
# is carried out, with the pids of the family.
FAMILY = """
import ctypes, mmap, os, sys

ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
MIB = 1 << 20
private = mmap.mmap(-1, 128 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
shared = mmap.mmap(-1, 128 * MIB)
children = []


def write(memory, first, last, value):
    for at in range(first * MIB, last * MIB, 4096):
        memory[at] = value


def child(commands, answers):
    for command in iter(lambda: os.read(commands, 1), b""):
        if command == b"w":
            write(private, 0, 32, 3)
        if command == b"s":
            write(shared, 0, 64, 4)
        os.write(answers, b"x")
    os._exit(0)


def fork():
    to_child, from_child = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(to_child[1])
        child(to_child[0], from_child[1])
    children.append((pid, to_child[1], from_child[0]))


def tell_children(command):
    for pid, commands, answers in children:
        os.write(commands, command)
        os.read(answers, 1)


write(private, 0, 64, 1)
actions = {
    "look": lambda: None,
    "grow": lambda: write(private, 64, 96, 1),
    "fork": fork,
    "copy": lambda: write(private, 0, 24, 2),
    "children copy": lambda: tell_children(b"w"),
    "share": lambda: (write(shared, 0, 64, 1), tell_children(b"s")),
}
for line in sys.stdin:
    actions[line.strip()]()
    print(os.getpid(), *(pid for pid, _, _ in children), flush=True)
"""


class Family(Script):
    def __init__(self):
        super().__init__(FAMILY, "family" + TAG)

    def do(self, action):
        return [int(pid) for pid in self.ask(action).split()]


class Adaptive(IntegrationTest):
    def begin(self):
        self.family = Family()
        self.addCleanup(self.family.stop)
        self.family.do("look")
        self.collectd = self.start_collectd(CONFIG, interval=0.2)
        # Read twice by then: at first sight, and when its names have settled.
        self.collectd.wait_cycles(5)

    def end(self):
        self.collectd.stop()
        self.family.stop()

    def change(self, action):
        """Between two intervals, however long it takes: the daemon is stopped
        meanwhile, when an interval has just ended. Returns the pids, and when
        it was stopped."""
        process, count = self.collectd.process, len(self.collectd.times())
        self.collectd.wait_cycles(count + 1)
        process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: state_of(process.pid) == "T", "its stop")
            stopped = time.time()
            return self.family.do(action), stopped
        finally:
            process.send_signal(signal.SIGCONT)

    def was_running(self, when):
        """Whether an interval was going on then."""
        values = self.collectd.values()[""]["duration-cycle"]
        return any(end - seconds < when < end for end, seconds in values)

    def follow(self, action):
        """The values of the first interval that began after the change show it,
        within the tolerance. None if the change was not between two intervals.
        """
        pids, when = self.change(action)
        cycle = self.collectd.next_cycle()
        truth = sum_rollups(pids)
        if self.was_running(when):
            return None
        for name in ("pss", "uss", "rss"):
            with self.subTest(action=action, value=name):
                self.assert_near(
                    cycle.memory("family", name),
                    truth[name],
                    # Other processes of the machine change how libc is shared.
                    TOLERANCE * truth[name] + MIB / 4,
                    name,
                )
        self.assert_invariants(cycle, "family")
        return cycle

    def follow_all(self, *actions):
        """Follows one action after the other. Returns the cycle of the last. If
        a change did not fall between two intervals, it begins again with
        another family."""
        for _ in range(20):
            self.begin()
            if all(cycle := self.follow(action) for action in actions):
                return cycle
            self.end()
        return self.fail("an interval is always going on")

    def test_idle_family_is_not_read_again(self):
        cycle = self.follow_all("look")
        self.assertEqual(cycle.value("family", "percent-coverage"), 0)
        self.assertGreater(cycle.value("family", "duration-age"), 0)

    def test_private_growth_is_followed(self):
        cycle = self.follow_all("grow")
        self.assertGreater(cycle.memory("family", "uss"), 96 * MIB)

    def test_copy_on_write_is_followed(self):
        self.follow_all("fork", "copy", "children copy")

    def test_growth_of_shared_memory_is_followed(self):
        self.follow_all("fork", "fork", "share")
