#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Boots real systems in virtual machines, installs the package there as a user
does, and runs experiments inside.

    run.py [test_swap | test_swap.SwapOff | …]

VM="bookworm trixie" picks systems; without it there are all. Ends with the one
line "N passed, N failed, N skipped". Needs root. All that it makes is under
build/vm; nothing runs on after it, however it ends.
"""

import fcntl
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPERIMENTS = HERE / "experiments"
LIB = HERE.parent / "lib"
sys.path[:0] = [str(HERE), str(EXPERIMENTS), str(LIB)]
sys.dont_write_bytecode = True

import machine  # noqa: E402  (found by the lines above)
from experiment import SKIPPED, Experiment  # noqa: E402

# system: suite, arguments of the kernel, experiments unless some are named
SYSTEMS = {
    "bookworm": ("bookworm", "", ""),
    "trixie": ("trixie", "", ""),
    "bullseye": ("bullseye", "", ""),
    "bullseye-v1": ("bullseye", "systemd.unified_cgroup_hierarchy=0", ""),
    "sid": ("sid", "", ""),
    "experimental": ("experimental", "", ""),
    # A size that the argument does not name is never used.
    "sid-mthp": (
        "sid",
        "thp_anon=16K-1M:always;2M:inherit",
        "test_shipped test_large_folios"
        " test_huge_pages.HugePages.test_transparent",
    ),
    "sid-average": (
        "sid",
        "",
        "test_large_folios test_huge_pages.HugePages.test_transparent",
    ),
    "bookworm-selinux": (
        "bookworm",
        "security=selinux selinux=1",
        "test_selinux",
    ),
}
# Whose kernel is not that of the suite, but made by tests/vm/kernel.
KERNELS = {"sid-average": "average"}

GUEST = "/root/vm"
DESCRIBE = """
. /etc/os-release
echo "$PRETTY_NAME, Linux $(uname -r),\
 cgroup $(stat -fc %T /sys/fs/cgroup | sed 's/cgroup2fs/v2/; s/tmpfs/v1/'),\
 systemd $(dpkg-query -W -f '${Version}' systemd),\
 collectd $(dpkg-query -W -f '${Version}' collectd-core)"
"""


class Tally:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def add(self, outcome, name, remark="", text=""):
        self.counts[outcome] += 1
        verdict = "ok" if outcome == "passed" else outcome
        print(f"{name} ... {verdict}{remark and ' ' + remark}")
        for line in text.strip().splitlines():
            print(f"    {line}")
        sys.stdout.flush()

    def finish(self):
        print(", ".join(f"{n} {outcome}" for outcome, n in self.counts.items()))
        return 1 if self.counts["failed"] or not self.counts["passed"] else 0


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def load(names):
    loader = unittest.defaultTestLoader
    if names:
        return list(flatten(loader.loadTestsFromNames(names)))
    tests = flatten(loader.discover(str(EXPERIMENTS), "test_*.py"))

    # First of all the question whether it works as it is shipped.
    def comes_later(test):
        return not test.id().startswith("test_shipped.")

    return sorted(tests, key=comes_later)


class System:
    """One system with its machine, which is booted again when it has died."""

    def __init__(self, name, tally):
        self.name = name
        self.suite, self.kernel_arguments, self.own = SYSTEMS[name]
        self.kernel = KERNELS.get(name, self.suite)
        self.tally = tally
        self.console = machine.CACHE / f"{name}.console.log"
        self.machine = None
        self.can_boot = True

    def list_steps(self):
        yield "image", self.suite
        yield "package", self.suite
        if self.kernel != self.suite:
            yield ("kernel",)

    def prepare(self):
        print(f"{self.name}: image and package")
        sys.stdout.flush()
        machine.CACHE.mkdir(parents=True, exist_ok=True)
        log = machine.CACHE / f"{self.name}.build.log"
        with open(log, "wb") as output:
            for step, *arguments in self.list_steps():
                try:
                    machine.isolated(
                        [HERE / step, *arguments],
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                except subprocess.CalledProcessError:
                    tail = machine.read_tail(log)
                    self.tally.add("failed", f"{self.name} {step}", text=tail)
                    return False
        return True

    def boot(self):
        begin = time.monotonic()
        how = machine.accelerator()[1]
        self.can_boot = False
        booted = machine.Machine(
            self.suite, self.kernel, self.kernel_arguments, self.console
        )
        try:
            files = machine.CACHE / self.suite / "packages"
            booted.put(
                GUEST,
                {path.name: path for path in files.iterdir()}
                | {path.name: path for path in EXPERIMENTS.glob("*.py")}
                | {path.name: path for path in LIB.glob("*.py")}
                | {
                    f"contrib/{name}": machine.ROOT / "contrib" / name
                    for name in ("alerts", "security", "systemd")
                }
                | {
                    "hung.py": machine.ROOT / "tests/integration/hung.py",
                },
            )
            _, description = booted.shell(DESCRIBE, 60)
        except BaseException:
            booted.stop()
            raise
        took = time.monotonic() - begin
        print(f"{self.name}: {description.strip()}; {how}, up in {took:.0f} s")
        sys.stdout.flush()
        self.can_boot = True
        self.machine = booted

    def run(self, test):
        name = f"{self.name} {test.id()}"
        try:
            if self.machine is None:
                self.boot()
            begin = time.monotonic()
            status, said = self.machine.shell(
                f"cd {GUEST} && timeout -k 10 {test.seconds} "
                f"python3 experiment.py {test.id()}",
                test.seconds + machine.GRACE_SECONDS,
            )
        except machine.MachineError as error:
            self.end()
            tail = machine.read_tail(self.console)
            self.tally.add("failed", name, f"the machine {error}", tail)
            return
        remark = f"({time.monotonic() - begin:.0f} s)"
        if status == 0:
            self.tally.add("passed", name, remark)
        elif status == SKIPPED:
            self.tally.add("skipped", name, said.strip())
        else:
            if status in (124, 137):
                remark = f"took more than {test.seconds} s"
            self.tally.add("failed", name, remark, said)

    def end(self):
        if self.machine is not None:
            self.machine.stop()
        self.machine = None

    def run_all(self, tests):
        try:
            if self.prepare():
                for test in tests:
                    if self.can_boot:
                        self.run(test)
        finally:
            self.end()


def complain(names, tests):
    """The reason that keeps us from running at all, or None."""
    unknown = [name for name in names if name not in SYSTEMS]
    if unknown:
        return f"no system {' '.join(unknown)}; there are {' '.join(SYSTEMS)}"
    # The loader puts a test of its own in the place of one that it cannot find.
    unknown = [
        test.id().split(".")[-1]
        for test in tests
        if not isinstance(test, Experiment)
    ]
    if unknown or not tests:
        return f"no experiment {' '.join(unknown)}"
    if os.geteuid() != 0:
        return "needs root, to make images"
    if platform.machine() != "x86_64":
        return "runs on x86-64 only"
    path = os.environ["PATH"] + ":/usr/sbin"
    for program in ("mmdebstrap", "qemu-system-x86_64", "mke2fs"):
        if shutil.which(program, path=path) is None:
            return f"{program} is missing: make deps-vm"
    return None


def lock():
    """Held until we end: two runs would make the same images."""
    machine.CACHE.mkdir(parents=True, exist_ok=True)
    handle = open(machine.CACHE / "lock", "w")
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    names = os.environ.get("VM", "").split() or list(SYSTEMS)
    tests = load(sys.argv[1:])
    problem = complain(names, tests)
    if problem:
        print(f"check-vm: {problem}", file=sys.stderr)
        return 1
    try:
        held = lock()
    except BlockingIOError:
        print("check-vm: another run is under way", file=sys.stderr)
        return 1
    tally = Tally()
    for name in names:
        system = System(name, tally)
        named = sys.argv[1:] or system.own.split()
        system.run_all(load(named) if named else tests)
    held.close()
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
