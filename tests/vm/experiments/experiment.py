# SPDX-License-Identifier: MIT
"""Experiments are built on these classes and functions. This runs inside the
virtual machine, as root; experiment.py ID runs one of them.

Exit status: 0 it has passed, SKIPPED it cannot be had here (the reason is
printed), 1 it has failed.
"""

import io
import math
import os
import re
import sys
import time
import unittest
from pathlib import Path

import daemon
from daemon import HOME, WAIT_SECONDS, run
from groups import Sample, unit_of
from kernel import KIB
from processes import Talker

SKIPPED = 77

# An error that is larger than the value would excuse anything: what the plugin
# publishes counts up to this part of the value.
MOST_ERROR = 0.1
# What the log says of a machine that is slow, and rightly.
SLOW = re.compile(
    "matching process names is too slow|MaxLockHold|not end within ReadTimeout"
)
# For the processes that come and go around us.
FEW_PAGES = 16 * KIB


def wait_for(condition, what, seconds=WAIT_SECONDS):
    """Returns what the condition has at last. what may be a function."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            what = what() if callable(what) else what
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.5)
    return found


def is_active(unit):
    return run("systemctl", "is-active", unit, check=False)[0] == 0


def start_zram(test):
    """Swap in zram until the test has ended, which is skipped without it."""
    if run("modprobe", "zram", check=False)[0] != 0:
        test.skipTest("this kernel has no zram")
    test.addCleanup(wait_for, end_zram, "the end of zram")
    test.addCleanup(run, "swapoff", "-a", check=False)
    Path("/sys/block/zram0/disksize").write_text("512M")
    run("mkswap", "/dev/zram0")
    run("swapon", "/dev/zram0")


def end_zram():
    """Returns true if zram is gone. Right after swapoff udev may still look at
    the device, and keep it."""
    return run("modprobe", "-r", "zram", check=False)[0] == 0


class Session:
    """Runs a user's own systemd, without a login."""

    def __init__(self, test, user):
        self.user = user
        self.uid = run("id", "-u", user)[1].strip()
        self.group = f"user@{self.uid}.service"
        test.addCleanup(self.stop)
        run("loginctl", "enable-linger", user)
        wait_for(lambda: is_active(self.group), f"the session of {user}")

    def run(self, *command, **options):
        """Runs a command as that user, but outside of the session's cgroup."""
        return run(
            *("runuser", "-u", self.user, "--", "env"),
            *("-C", f"/home/{self.user}", f"HOME=/home/{self.user}"),
            f"XDG_RUNTIME_DIR=/run/user/{self.uid}",
            f"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/{self.uid}/bus",
            *command,
            **options,
        )

    def stop(self):
        run("loginctl", "disable-linger", self.user)
        run("systemctl", "stop", self.group)


class Service:
    """Runs a transient service. It has started when its command reports that it
    is ready (sd_notify), unless the command cannot do that."""

    def __init__(self, test, name, *command, notify=True, properties=()):
        self.name = name
        self.group = f"{name}.service"
        test.addCleanup(self.stop)
        options = [f"--property={p}" for p in properties]
        if notify:
            options += ["--property=Type=notify", "--property=NotifyAccess=all"]
        run("systemd-run", "--quiet", "--collect", f"--unit={name}", *options,
            *command)

    def pid(self):
        return daemon.main_pid(self.group)

    def signal(self, number):
        os.kill(self.pid(), number)

    def stop(self):
        run("systemctl", "stop", self.group, check=False)


class Holder(Service):
    """Runs a service of holder.py."""

    def __init__(self, test, name, kind, mib, **options):
        super().__init__(
            test, name, "python3", HOME / "holder.py", kind, mib, **options
        )


class TalkingService(Talker):
    """A transient service of a program that answers on its standard output."""

    def __init__(self, test, name, *command):
        self.group = f"{name}.service"
        super().__init__(
            [
                *("systemd-run", "--quiet", "--collect", "--pipe", "--wait"),
                *(f"--unit={name}", "--property=TasksMax=infinity", *command),
            ]
        )
        test.addCleanup(self.stop)

    def stop(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        run("systemctl", "stop", self.group, check=False)
        self.process.wait()
        self.process.stdout.close()


class Shape(TalkingService):
    """A service of tests/support/shape.c, which makes processes of known size."""

    def __init__(self, test, name, kind, **options):
        command = [HOME / "shape", kind]
        for option, value in options.items():
            command.append(f"--{option.replace('_', '-')}={value}")
        super().__init__(test, name, *command)
        words = self.read_line(WAIT_SECONDS).split()
        if not words or words[0] != "READY":
            raise AssertionError(f"shape {kind} does not come up")
        self.processes = sum(word.isdigit() for word in words[1:])


def allowed(cycle, group, expected, tolerance, most_error):
    error = cycle.find(group, "memory-pss_error", 0)
    error = min(error, most_error * expected)
    return max(tolerance * expected, error) + FEW_PAGES


def compare(cycle, samples, group, name, tolerance, most_error=MOST_ERROR):
    """None if the value is what the samples have seen, else what differs."""
    seen = [
        getattr(sample.groups[group], name)
        for sample in samples
        if group in sample.groups
    ]
    value = cycle.memory(group, name)
    if not seen:
        return None
    low, high = min(seen), max(seen)
    slack = allowed(cycle, group, high, tolerance, most_error)
    if low - slack <= value <= high + slack:
        return None
    return (
        f"{group}: {name} {value / KIB:.0f} kB, kernel"
        f" {low / KIB:.0f} to {high / KIB:.0f} kB, allowed {slack / KIB:.0f} kB"
    )


def count_members(cycle, samples, group):
    seen = {
        sample.groups[group].processes
        for sample in samples
        if group in sample.groups
    }
    count = cycle.counts(group)[0]
    if not seen or min(seen) <= count <= max(seen):
        return None
    return f"{group}: {count:.0f} processes, kernel {sorted(seen)}"


class Experiment(unittest.TestCase):
    """Begins with the package installed and collectd restarted with the options
    of the class, and the distribution's configuration for the rest."""

    maxDiff = None
    # How long one may take: minutes under emulation, and on a busy host five
    # times as long.
    seconds = 2400
    options = ""
    # Not that of collectd, 10 s, which test_shipped has: most of an experiment is
    # waiting for the next interval.
    interval = 3
    # Which group a process is in, where the options say so.
    find_group = staticmethod(unit_of)
    # Whoever maps the same library while the plugin reads makes that reading
    # smaller until the next. It is test_shipped that asks for 1 %.
    tolerance = 0.05

    def setUp(self):
        if not daemon.is_installed():
            daemon.install()
        self.start_daemon()

    def start_daemon(self, options=None, **more):
        """With other options, or with a drop_in for its unit. Returns the first
        interval in which the groups of all processes are known."""
        daemon.configure(
            self.options if options is None else options,
            interval=more.pop("interval", self.interval),
            **more,
        )
        daemon.restart()
        return self.await_names()

    @staticmethod
    def await_names():
        """An emulated machine on a busy host may not match all names in the
        first interval. That of a process that hangs may never be known."""

        def are_known():
            cycle = daemon.next_cycle()
            unknown = cycle.own("count-unidentified") - cycle.own("count-hung")
            return cycle if unknown <= 0 else None

        return wait_for(are_known, "all names to be known")

    def next_cycle(self):
        return daemon.next_cycle()

    def observe(self, only=None):
        """The next interval, and what the kernel said while it was made."""
        return self.watch(lambda: Sample(only, self.find_group))

    @staticmethod
    def watch(look):
        """The next interval, and the looks while it was made, with the one
        before that. A look has the times of its begin and end."""
        looks = []
        cycle = daemon.next_cycle(watch=lambda: looks.append(look()))
        looks.append(look())
        before = [one for one in looks if one.end <= cycle.begin][-1:]
        return cycle, before + [one for one in looks if one.end > cycle.begin]

    def find_wrong(self, only, names):
        cycle, samples = self.observe(only)
        groups = set().union(*(sample.groups for sample in samples))
        if only is not None:
            groups = set(only)
        wrong = []
        for group in sorted(groups):
            # One that was there for a part of the time may have been missed.
            if group not in cycle:
                if only or all(group in sample.groups for sample in samples):
                    wrong.append(f"{group}: is missing")
                continue
            wrong.append(count_members(cycle, samples, group))
            wrong += [
                compare(cycle, samples, group, name, self.tolerance)
                for name in names
            ]
        return cycle, [one for one in wrong if one]

    def assert_matches(self, only=None, names=("pss", "uss", "swap"), tries=5):
        """All groups, or those named, are there and have what the kernel says,
        within the tolerance or the published error. An interval in which somebody
        forks or ends while it is made may differ, so one of a few must be
        right."""
        for _ in range(tries):
            cycle, wrong = self.find_wrong(only, names)
            if not wrong:
                return cycle
        raise AssertionError("\n".join(wrong))

    def assert_unknown(self, cycle, group):
        for name in ("pss", "uss", "swap"):
            value = cycle.memory(group, name)
            self.assertTrue(math.isnan(value), f"{group}: {name} {value}")

    def assert_quiet(self, expected=()):
        """The log has the line of the start, and for each pattern one line; see
        also SLOW."""
        lines = [line for line in daemon.log() if not SLOW.search(line)]
        self.assertEqual(len(lines), 1 + len(expected), "\n".join(lines))
        self.assertIn("smaps plugin: version", lines[0])
        for line, pattern in zip(lines[1:], expected):
            self.assertRegex(line, pattern)


def main(name):
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    said = io.StringIO()
    result = unittest.TextTestRunner(stream=said, verbosity=0).run(suite)
    if not result.wasSuccessful():
        print(said.getvalue())
        print("--- the log of the plugin")
        print("\n".join(daemon.log()))
        return 1
    if result.skipped:
        print(result.skipped[0][1])
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
