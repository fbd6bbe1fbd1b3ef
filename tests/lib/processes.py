# SPDX-License-Identifier: MIT
"""Starts processes, talks to them, and ends them."""

import contextlib
import ctypes
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
INTERRUPTS = (signal.SIGINT, signal.SIGTERM)

# How long anything may take before it is given up. Far above what it does take:
# nothing passes or fails by speed. (An interval of 20 seconds was seen beside a
# load of 190, and what waits for a cycle waits for three.)
DEADLINE_SECONDS = 120


def end(process, seconds=DEADLINE_SECONDS):
    """Asks a process that we started to end, and makes it if it does not.
    Returns its status, or None if it was killed; closes its pipes."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        status = None
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
    return status


def end_process(process, seconds=DEADLINE_SECONDS):
    """Does the same for a program that has to end by itself."""
    status = end(process, seconds)
    if status is None:
        raise AssertionError(f"pid {process.pid} did not end on SIGTERM")
    return status


def end_with_parent():
    """Run in a new child: it gets a SIGTERM when we are killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)


@contextlib.contextmanager
def uninterrupted():
    """We know what is started here before we can be interrupted."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Talker:
    """A program that answers each line of its standard input with a line, and
    ends at the end of its input."""

    def __init__(self, command, **options):
        self.name = Path(command[0]).name
        self.process = subprocess.Popen(
            list(map(str, command)),
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
                raise AssertionError(f"{self.name} does not answer")
            byte = self.process.stdout.read(1)
            if not byte:
                raise AssertionError(f"{self.name} has ended")
            text += byte
        return text.decode().rstrip("\n")

    def tell(self, line=""):
        self.process.stdin.write(f"{line}\n".encode())

    def ask(self, line=""):
        self.tell(line)
        return self.read_line()

    def stop(self, seconds=20):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return end(self.process)


class Script(Talker):
    """Runs a program of Python."""

    def __init__(self, source, *arguments, **options):
        super().__init__([sys.executable, "-c", source, *arguments], **options)


def free_port():
    """Returns a port of the loopback device on which nobody listens, by TCP or
    UDP. If another program takes it first, what is started on it fails with an
    error."""
    while True:
        with socket.socket() as tcp:
            tcp.bind(("127.0.0.1", 0))
            port = tcp.getsockname()[1]
            with socket.socket(type=socket.SOCK_DGRAM) as udp:
                with contextlib.suppress(OSError):
                    udp.bind(("127.0.0.1", port))
                    return port
