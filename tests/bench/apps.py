# SPDX-License-Identifier: MIT
"""Loads of real applications. Each runs on loopback with its own data
directory and is ended by its pid. As root they run as another user.

A group's expression begins at the program's name: the command line of our
program that reads the truth contains all expressions, and must match none."""

import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import host
from host import BenchError
from processes import DEADLINE_SECONDS, Talker, end, free_port

SECONDS = 3600  # after that a load ends by itself


def as_user(*names):
    """Arguments for subprocess: the first of these users that exists, or our
    own user if we cannot choose."""
    if os.geteuid() != 0:
        return {}
    for name in (*names, "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return {}


class App:
    """Like a Population; missing() names what is not installed."""

    name = ""
    words = ""
    groups = {}

    def __init__(self):
        self.children = []
        self.directory = None
        self.user = {}

    def prepare(self, *users):
        self.user = as_user(*users)
        self.directory = host.new_directory(self.name)
        if self.user:
            os.chown(self.directory, self.user["user"], self.user["group"])

    def start_child(self, command, **options):
        with open(self.directory / "log", "ab") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                **self.user,
                **options,
            )
        self.children.append(child)
        return child

    def run(self, command, seconds=DEADLINE_SECONDS):
        """Runs a command to its end. False if it fails."""
        child = self.start_child(command)
        try:
            child.wait(seconds)
        finally:
            end(child)
            self.children.remove(child)
        return child.returncode == 0

    def must_run(self, command):
        if not self.run(command):
            raise BenchError(f"{Path(command[0]).name} failed: {self.tail()}")

    def tail(self):
        text = (self.directory / "log").read_text(errors="replace")
        return " ".join(text.splitlines()[-2:])

    def wait_for_port(self, port, server):
        deadline = time.monotonic() + 60
        while not is_open(port):
            if server.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"{self.name} did not start: {self.tail()}")
            time.sleep(0.1)

    def settle(self):
        """Waits until the load is steady."""
        time.sleep(5)
        self.check()

    def check(self):
        for child in self.children:
            if child.poll() is not None:
                raise BenchError(f"{self.name} has ended: {self.tail()}")

    def stop(self):
        """Ends the programs in the reverse order of their start."""
        for child in reversed(self.children):
            end(child, 60)
        self.children = []


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Postgres(App):
    name = "postgresql"
    words = "shared_buffers 256 MB filling, pgbench with 16 clients, 400/s"
    clients, rate, scale = 16, 400, 20
    load = []  # further arguments of pgbench
    # Clients share with the server, and are a group of their own.
    groups = {
        "pg-clients": r"^postgres: [^ ]+ [^ ]+ 127[.]0[.]0[.]1[(]",
        "pg-server": r"^postgres: |^[^ ]*/postgres -D ",
    }

    def _programs(self):
        """Returns the directory of the newest version, or None."""
        found = Path("/usr/lib/postgresql").glob("*/bin/pgbench")
        for path in sorted(found, key=lambda p: p.parts[-3].zfill(4)):
            if (path.parent / "initdb").exists():
                return path.parent
        return None

    def missing(self):
        return None if self._programs() else "postgresql"

    def start(self):
        programs = self._programs()
        self.prepare("postgres")
        data, port = self.directory / "data", str(free_port())
        login = ["-h", "127.0.0.1", "-p", port, "-U", "bench"]
        self.must_run(
            [programs / "initdb", "-D", data, "-U", "bench", "-A", "trust"]
            + ["--no-sync", "--locale=C"]
        )
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "shared_buffers": "256MB",
            "fsync": "off",
            "max_parallel_workers_per_gather": "0",
        }
        command = [programs / "postgres", "-D", data]
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        server = self.start_child(command)
        self.wait_for_port(int(port), server)
        scale = str(self.scale)
        self.must_run(
            [programs / "pgbench", *login, "-i", "-s", scale, "-q", "postgres"]
        )
        self.prepare_load(programs, login)
        self.start_child(
            [programs / "pgbench", *login, "-c", str(self.clients), "-j", "1"]
            + ["-R", str(self.rate), "-T", str(SECONDS), *self.load, "postgres"]
        )
        self.settle()

    def prepare_load(self, programs, login):
        pass

    def stop(self):
        """With SIGINT the server ends its clients and does not wait for
        them."""
        if self.children and self.children[0].poll() is None:
            for child in self.children[1:]:
                end(child)
            self.children[0].send_signal(signal.SIGINT)
        super().stop()


# Each client maps all buffers first, and then does what pgbench always does.
FULL_SCRIPT = """\
\\if not :has_all
SELECT sum(abalance) FROM pgbench_accounts;
SET enable_seqscan = off;
SELECT count(aid) FROM pgbench_accounts WHERE aid > 0;
SET enable_seqscan = on;
\\set has_all true
\\endif
\\set aid random(1, 100000 * :scale)
\\set bid random(1, :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
  VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""


class FullPostgres(Postgres):
    """The tables fit into the buffers, and every client has mapped them."""

    name = "postgresql-full"
    words = "the same, with full buffers that every client has mapped"
    scale = 14
    table_bytes = 150 << 20  # a little less than they have

    def prepare_load(self, programs, login):
        script = self.directory / "load.sql"
        script.write_text(FULL_SCRIPT)
        self.load = ["-f", script, "-D", "has_all=false"]
        self.load += ["-D", f"scale={self.scale}"]
        tables = "'pgbench_accounts'), pg_prewarm('pgbench_accounts_pkey'"
        sql = f"CREATE EXTENSION pg_prewarm; SELECT pg_prewarm({tables})"
        self.must_run([programs / "psql", *login, "-qc", sql, "postgres"])

    def settle(self):
        deadline = time.monotonic() + 60
        while not self._is_full():
            self.check()
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name}: the buffers do not fill")
            time.sleep(1)
        super().settle()

    def _is_full(self):
        shared = shared_bytes(self.groups["pg-clients"])
        return len(shared) >= self.clients and min(shared) > self.table_bytes


def shared_bytes(pattern):
    """RssShmem of each process whose command line matches."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            line = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
            status = (directory / "status").read_text()
        except OSError:
            continue  # has ended since
        kib = re.search(r"^RssShmem:\s+(\d+) kB", status, re.M)
        if kib and re.search(pattern.encode(), line):
            found.append(int(kib.group(1)) << 10)
    return found


class Redis(App):
    name = "redis"
    words = "400 MB, 2,000 SETs a second, BGSAVE about every 10 s"
    groups = {"redis": "^redis-|^[^ ]*redis-server "}
    # For redis_load.py: keys, bytes of each, SETs a second, seconds to a save.
    load = (400000, 900, 2000, 10)

    def __init__(self):
        super().__init__()
        self.client = None

    def missing(self):
        return None if host.find("redis-server") else "redis-server"

    def start(self):
        self.prepare()
        port = free_port()
        server = self.start_child(
            [host.find("redis-server"), "--port", str(port)]
            + ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
            + ["--dir", self.directory, "--daemonize", "no"]
        )
        self.wait_for_port(port, server)
        program = host.HERE / "redis_load.py"
        load = [str(number) for number in (port, *self.load)]
        self.client = Talker([sys.executable, program, *load])
        self.client.read_line()
        self.settle()

    def stop(self):
        if self.client:
            end(self.client.process)
            self.client = None
        super().stop()


APACHE_CONFIG = """\
ServerRoot "{directory}"
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile "{directory}/apache.pid"
ErrorLog "{directory}/error.log"
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule filter_module {modules}/mod_filter.so
LoadModule deflate_module {modules}/mod_deflate.so
# Compression takes memory, and a worker keeps it. A request of a millisecond
# or two must map neither files nor malloc() blocks that are large: that would
# hide all errors below one per cent.
EnableMMAP Off
SetOutputFilter DEFLATE
DeflateMemLevel 5
DeflateWindowSize 12
DocumentRoot "{directory}/www"
StartServers {workers}
MinSpareServers 8
MaxSpareServers 64
MaxRequestWorkers 64
MaxConnectionsPerChild 20
MaxKeepAliveRequests 20
"""

WRK_SCRIPT = """\
local names = {"small", "middle", "large"}
wrk.headers["Accept-Encoding"] = "gzip"
function request()
  return wrk.format("GET", "/" .. names[math.random(#names)])
end
function delay()
  return math.random(100, 300)
end
"""


class Apache(App):
    name = "apache"
    words = "48 prefork workers under wrk, each replaced after 20 connections"
    groups = {"apache": "^[^ ]*/apache2 "}
    workers = 48

    def _modules(self):
        prefix = Path(host.find("apache2")).resolve().parent.parent
        return prefix / "lib/apache2/modules"

    def missing(self):
        if not host.find("apache2"):
            return "apache2-bin"
        return None if host.find("wrk") else "wrk"

    def start(self):
        self.prepare("www-data")
        port = free_port()
        www = self.directory / "www"
        www.mkdir(mode=0o755)
        sizes = {"small": 200, "middle": 20000, "large": 200000}
        for name, size in sizes.items():
            (www / name).write_bytes(os.urandom(size // 2).hex().encode())
        config = self.directory / "apache.conf"
        config.write_text(
            APACHE_CONFIG.format(
                directory=self.directory,
                port=port,
                modules=self._modules(),
                workers=self.workers,
            )
        )
        server = self.start_child(
            [host.find("apache2"), "-f", config, "-DFOREGROUND"]
        )
        self.wait_for_port(port, server)
        script = self.directory / "wrk.lua"
        script.write_text(WRK_SCRIPT)
        self.start_child(
            [host.find("wrk"), "-t", "1", "-c", str(self.workers)]
            + ["-d", f"{SECONDS}s", "-s", script, f"http://127.0.0.1:{port}/"]
        )
        self.settle()
