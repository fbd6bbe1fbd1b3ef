# SPDX-License-Identifier: MIT
"""What processes take, and programs beside them that take what they get."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from host import BenchError
from processes import end

def thread_names(pid):
    """{thread id: name}"""
    names = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            names[int(task.name)] = (task / "comm").read_text().strip()
        except OSError:
            pass  # has ended since
    return names


def thread_cpu_ns(pid, tid):
    """The scheduler's count in nanoseconds. It is exact while the thread
    sleeps, and late by up to a tick while it runs."""
    text = Path(f"/proc/{pid}/task/{tid}/schedstat").read_text()
    return int(text.split()[0])


def cpu_ns(pid):
    """All live threads, without those that have ended."""
    total = 0
    for tid in thread_names(pid):
        try:
            total += thread_cpu_ns(pid, tid)
        except OSError:
            pass
    return total


def is_running(pid, threads=None):
    """True if any of these threads (or of all threads) runs, is ready to run,
    or waits in the kernel."""
    for tid in thread_names(pid) if threads is None else threads:
        try:
            text = Path(f"/proc/{pid}/task/{tid}/stat").read_text()
        except OSError:
            continue
        if text[text.rindex(")") + 2] in "RD":
            return True
    return False


HOG_SECONDS = 3600
HOG = f"""
import signal
signal.alarm({HOG_SECONDS})
while True:
    pass
"""


@contextlib.contextmanager
def hogs(n):
    """Meanwhile n programs take all the CPU time that they get, at the usual
    priority."""
    children = []
    try:
        for _ in range(n):
            children.append(
                subprocess.Popen(
                    [sys.executable, "-S", "-c", HOG], stdin=subprocess.DEVNULL
                )
            )
        yield
        if any(child.poll() is not None for child in children):
            raise BenchError("a hog has ended by itself")
    finally:
        for child in children:
            end(child)


@contextlib.contextmanager
def hurried(pid):
    """Meanwhile a process of ours (0 for this one) runs before all others,
    where we have the right."""
    usual = os.getpriority(os.PRIO_PROCESS, pid)
    try:
        os.setpriority(os.PRIO_PROCESS, pid, -15)
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, pid, usual)


def sleep_until(moment):
    """Sleeps until a moment of time.monotonic()."""
    time.sleep(max(0, moment - time.monotonic()))


def parse_line(line):
    """Parses a line of words, some of which are key=value; numbers become
    numbers."""
    fields = {}
    for word in line.split():
        key, equals, value = word.partition("=")
        if equals:
            fields[key] = int(value) if value.isdigit() else value
    return fields
