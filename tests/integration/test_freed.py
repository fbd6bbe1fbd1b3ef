# SPDX-License-Identifier: MIT
"""What stopping a service gives back: freed, beside what the control group of a
real service has less after its end.

The truth is the kernel's usage of the control group before and after, without
the kernel's own memory, such as page tables: memory that is freed is no longer
charged, and what stays in the page cache or in a tmpfs still is.
"""

import math
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from cgroup import CgroupMixin
from harness import (
    KIB,
    MIB,
    TAG,
    IntegrationTest,
    as_user,
    free_port,
    group,
    plugin,
    stage,
    unprivileged_user,
    wait_until,
)
from processes import Talker

# The part by which freed may be off, and what the kernel charges in advance.
OFF = 0.05
SLACK = 512 * KIB

# Makes its memory, forks, waits, ends its children, and waits again. fill()
# touches every page.
SERVICE = """
import ctypes, mmap, os, signal, sys
children = []
def fill(memory, first=0, end=None):
    for at in range(first, len(memory) if end is None else end, 4096):
        memory[at:at + 8] = (at * 7919 + os.getpid()).to_bytes(8, "little")
def touch(memory):
    return sum(memory[at] for at in range(0, len(memory), 4096))
def small(memory):
    try:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    except OSError:
        pass
    return memory
def fork(count, work):
    for _ in range(count):
        end, begin = os.pipe()
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
            work(len(children))
            os.write(begin, b"x")
            signal.pause()
        os.read(end, 1)
        os.close(end), os.close(begin)
        children.append(pid)
"""
WAIT = """
print("READY", os.getpid(), *children, flush=True)
sys.stdin.readline()
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print("ENDED", flush=True)
sys.stdin.readline()
"""

PREFORK = """
memory = small(mmap.mmap(-1, 120 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
fill(memory)
fork(8, lambda i: i == 3 and fill(memory, 0, 20 << 20))
"""
SHARED = """
memory = mmap.mmap(-1, 64 << 20)
fill(memory)
fork(3, lambda i: touch(memory))
"""
MEMFD = """
file = os.memfd_create("heap")
os.ftruncate(file, 64 << 20)
memory = mmap.mmap(file, 64 << 20)
fill(memory)
fork(3, lambda i: touch(memory))
"""
FILE = """
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 64 << 20)
memory = mmap.mmap(file, 64 << 20)
fill(memory)
fork(3, lambda i: touch(memory))
"""
# Alone, so that all of the file is in its USS.
READ_FILE = """
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 64 << 20)
memory = mmap.mmap(file, 64 << 20)
touch(memory)
"""


class Freed(CgroupMixin, IntegrationTest):
    def setUp(self):
        self.make_top()
        self.service = self.make_below("service")

    def start(self, source, *arguments):
        """Runs it in the control group from its exec on: what a process had
        before it came is charged elsewhere."""
        program = [sys.executable, "-c", SERVICE + source + WAIT, *arguments]
        script = Talker(["sh", "-c", 'read go; exec "$@"', "sh", *program])
        self.addCleanup(script.stop)
        self.service.add(script.pid)
        self.pids = [int(pid) for pid in script.ask("go").split()[1:]]
        return script

    def measure(self, *options):
        """The cycle in which all processes of the service are known."""
        collectd = self.start_collectd(
            plugin(
                'Refresh "always"',
                'Report "default" "pss_shmem"',
                group("service", f'Cgroup "{self.service.path}"'),
                *options,
                'Other "rest"',
            )
        )
        return collectd.find_cycle(
            lambda cycle: "service" in cycle.groups
            and cycle.counts("service")[0] == len(self.pids)
            and not math.isnan(cycle.memory("service", "freed")),
            "all processes of the service",
        )

    def usage(self):
        values = []
        for _ in range(5):
            values.append(self.service.usage() - self.service.kernel())
            time.sleep(0.05)
        return statistics.median(values)

    def procs(self):
        return (self.service.directory / "cgroup.procs").read_text().split()

    def assert_freed(self, stop, *, most_error, options=()):
        """Measures the service, stops it, and compares. most_error: in bytes,
        because a test that every error passes would show nothing. Returns what
        was published and what came back."""
        cycle = self.measure(*options)
        before = self.usage()
        stop()
        wait_until(lambda: not self.procs(), "the end of the service")
        gain = before - self.usage()
        freed = cycle.memory("service", "freed")
        error = cycle.memory("service", "freed_error")
        self.assert_near(freed, gain, max(error, OFF * gain, SLACK), "freed")
        self.assertLessEqual(error, most_error)
        self.assertLessEqual(freed, cycle.memory("service", "pss"))
        return cycle, freed, gain

    def test_prefork_server(self):
        """USS has neither the parent's memory, which the workers share, nor
        theirs."""
        script = self.start(PREFORK)
        cycle, freed, gain = self.assert_freed(script.stop, most_error=OFF * 200 * MIB)
        self.assertGreater(gain, 140 * MIB)
        self.assertLess(cycle.memory("service", "uss"), gain / 2)

    def test_shared_anonymous_memory(self):
        script = self.start(SHARED)
        cycle, freed, gain = self.assert_freed(script.stop, most_error=8 * MIB)
        self.assertGreater(gain, 64 * MIB)
        self.assertGreater(cycle.memory("service", "pss_shmem"), 63 * MIB)

    def test_memfd(self):
        """Other processes of the machine may map some of it: the error."""
        script = self.start(MEMFD)
        _, freed, gain = self.assert_freed(script.stop, most_error=80 * MIB)
        self.assertGreater(gain, 64 * MIB)
        self.assertGreater(freed, 64 * MIB)

    def test_file_in_tmpfs_stays(self):
        path = Path(f"/dev/shm/smaps-test{TAG}")
        self.addCleanup(path.unlink)
        script = self.start(FILE, path)
        cycle, freed, gain = self.assert_freed(script.stop, most_error=80 * MIB)
        self.assertLess(gain, 48 * MIB)
        self.assertLess(freed, 48 * MIB)
        # The service could have removed it at its end.
        self.assertGreater(cycle.memory("service", "freed_error"), 63 * MIB)

    def test_file_stays_in_the_page_cache(self):
        path = stage().new_directory() / "file"
        script = self.start(READ_FILE, path)
        cycle, freed, gain = self.assert_freed(script.stop, most_error=2 * MIB)
        self.assertGreater(cycle.memory("service", "uss"), 64 * MIB)
        self.assertLess(gain, 32 * MIB)

    def test_what_relatives_elsewhere_share_stays(self):
        """The parent is in another control group, and goes on."""
        parents = self.make_below("parent")
        script = self.start(
            "memory = small(mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE"
            " | mmap.MAP_ANONYMOUS))\nfill(memory)\n"
            "fork(2, lambda i: fill(memory, 0, 16 << 20))\n"
        )
        parents.add(self.pids.pop(0))
        _, freed, gain = self.assert_freed(
            script.ask, most_error=40 * MIB,
            options=(group("parent", f'Cgroup "{parents.path}"'),),
        )
        self.assertLess(freed, 60 * MIB)

    def test_postgresql(self):
        """Its shared buffers are anonymous memory that it maps before it forks.
        The error has the buffers that only sessions which have ended mapped."""
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        if not programs:
            self.skipTest("needs postgresql")
        server = self.start_postgresql(programs[-1].parent)
        cycle, _, gain = self.assert_freed(
            lambda: server.send_signal(signal.SIGINT),
            most_error=25 * MIB,
        )
        self.assertGreater(gain, 100 * MIB)
        self.assertLess(cycle.memory("service", "uss"), gain / 3)

    def start_postgresql(self, programs):
        """With buffers of 96 MiB, which several sessions have filled."""
        user = as_user(unprivileged_user())
        data = stage().new_directory(unprivileged_user()) / "data"
        port = str(free_port())
        command = [programs / "initdb", "-D", data, "-U", "test", "-A", "trust"]
        quiet = {"stdout": subprocess.DEVNULL, "check": True, **user}
        subprocess.run([*command, "--no-sync", "--locale=C"], **quiet)
        server = Talker(
            ["sh", "-c", 'read go; exec "$@" 2>/dev/null', "sh"]
            + [programs / "postgres", "-D", data, "-p", port]
            + ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
            + ["-c", "unix_socket_directories=", "-c", "shared_buffers=96MB"]
            + ["-c", "autovacuum=off"],
            cwd=data.parent,
            **user,
        )
        self.addCleanup(server.stop)
        self.service.add(server.pid)
        server.tell("go")
        login = ["-h", "127.0.0.1", "-p", port, "-U", "test", "-d", "postgres"]
        psql = [programs / "psql", *login, "-q", "-At"]
        wait_until(
            lambda: subprocess.run(
                [*psql, "-c", "SELECT 1"],
                stderr=subprocess.DEVNULL,
                **{**quiet, "check": False},
            ).returncode
            == 0,
            "PostgreSQL",
        )
        # A table above a quarter of the buffers would use few of them.
        for table in range(4):
            sql = f"CREATE TABLE t{table} AS SELECT repeat('x', 1000) AS x"
            sql += " FROM generate_series(1, 20000)"
            subprocess.run([*psql, "-c", sql], **quiet)
        for _ in range(3):
            session = Talker(psql, cwd=data.parent, **user)
            self.addCleanup(session.stop)
            for table in range(4):
                rows = session.ask(f"SELECT count(*) FROM t{table};")
                self.assertEqual(rows, "20000")
        self.pids = self.procs()
        return server.process
