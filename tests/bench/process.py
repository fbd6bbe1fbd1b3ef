"""Starts, ends and measures processes."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from host import BenchError

# The time limit of everything that has no limit of its own.
DEADLINE_SECONDS = 120


def end(process, seconds=20):
    """Ends a process that we have started, and closes its input and output."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


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


def resident_bytes(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024


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
    """A moment of time.monotonic()."""
    time.sleep(max(0, moment - time.monotonic()))


class Talker:
    """One of our programs: it answers each line of standard input with a line
    on standard output, and ends at the end of its input."""

    def __init__(self, command, **options):
        self.name = Path(command[0]).name
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            **options,
        )
        self.pid = self.process.pid

    def read_line(self, seconds=DEADLINE_SECONDS):
        text = b""
        deadline = time.monotonic() + seconds
        while not text.endswith(b"\n"):
            left = max(0, deadline - time.monotonic())
            if not select.select([self.process.stdout], [], [], left)[0]:
                raise BenchError(f"{self.name} does not answer")
            byte = self.process.stdout.read(1)
            if not byte:
                raise BenchError(f"{self.name} has ended")
            text += byte
        return text.decode().rstrip("\n")

    def tell(self, line=""):
        self.process.stdin.write(line.encode() + b"\n")

    def stop(self):
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        end(self.process)


def parse_line(line):
    """Parses a line of words, some of which are key=value; numbers become
    numbers."""
    fields = {}
    for word in line.split():
        key, equals, value = word.partition("=")
        if equals:
            fields[key] = int(value) if value.isdigit() else value
    return fields
