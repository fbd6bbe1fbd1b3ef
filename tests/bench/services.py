# SPDX-License-Identifier: MIT
"""Loads of real applications that mix several, and the table of them all."""

import functools
import shutil
import time
from pathlib import Path

import host
from apps import SECONDS, Apache, App, FullPostgres, Postgres, Redis
from host import FAILURES, BenchError
from processes import DEADLINE_SECONDS

# The server's own scheduler makes the load: no client is needed. One statement
# changes rows all over the buffers, so that they fill; one sorts, which takes
# memory and gives it back.
MARIADB_SQL = """\
CREATE DATABASE bench;
USE bench;
CREATE TABLE item (id INT AUTO_INCREMENT PRIMARY KEY, number INT,\
 filling CHAR(250), KEY (number));
CREATE TABLE result (id INT AUTO_INCREMENT PRIMARY KEY, number INT);
INSERT INTO item (number, filling) SELECT RAND() * 1000000, REPEAT('x', 250)\
 FROM seq_1_to_200000;
CREATE DEFINER = root@localhost EVENT change_items ON SCHEDULE EVERY 1 SECOND\
 DO UPDATE item JOIN (SELECT FLOOR(RAND() * 200000) AS first) AS random\
 ON id BETWEEN first AND first + 500 SET number = RAND() * 1000000;
CREATE DEFINER = root@localhost EVENT sort_items ON SCHEDULE EVERY 7 SECOND\
 DO INSERT INTO result (number) SELECT COUNT(DISTINCT number, filling)\
 FROM item WHERE id < 30000;
SET GLOBAL event_scheduler = ON;
"""


class MariaDb(App):
    name = "mariadb"
    words = "a buffer pool of 128 MB, 500 rows changed a second, and sorts"
    groups = {"mariadb": "^[^ ]*mariadbd "}

    def missing(self):
        """The installer is with the server; a program that it runs is not."""
        if not host.find("mariadbd") or not host.find("mariadb-install-db"):
            return "mariadb-server-core"
        if not host.find("my_print_defaults"):
            return "mariadb-client-core"
        return None

    def start(self):
        self.prepare("mysql")
        server = Path(host.find("mariadbd")).resolve()
        places = [f"--basedir={server.parent.parent}"]
        places.append(f"--datadir={self.directory / 'data'}")
        self.must_run(
            [host.find("mariadb-install-db"), "--no-defaults", *places]
            + ["--auth-root-authentication-method=normal", "--skip-test-db"]
        )
        script = self.directory / "load.sql"
        script.write_text(MARIADB_SQL)
        self.start_child(
            [server, "--no-defaults", *places, f"--init-file={script}"]
            + [f"--socket={self.directory / 'socket'}", "--skip-networking"]
            + ["--innodb-buffer-pool-size=128M", "--innodb-log-file-size=16M"]
            + ["--innodb-flush-log-at-trx-commit=0"]
        )
        self._wait_for_socket()
        self.settle()

    def _wait_for_socket(self):
        """The server makes it after its script."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (self.directory / "socket").exists():
            ended = self.children[0].poll() is not None
            if ended or time.monotonic() > deadline:
                raise BenchError(f"{self.name} did not start: {self.tail()}")
            time.sleep(0.1)


@functools.lru_cache(maxsize=None)
def has_java_compiler():
    """Java runs a source only with its compiler, which a JRE lacks."""
    line = host.first_line(
        host.find("java"), "--describe-module", "jdk.compiler"
    )
    return line.startswith("jdk.compiler@")


class Java(App):
    name = "java"
    words = "a heap of at most 192 MB with a cache of 64 MB, 400 requests/s"
    groups = {"java": "^[^ ]*java .*java_load"}

    def missing(self):
        has = host.find("java") and has_java_compiler()
        return None if has else "default-jdk-headless"

    def start(self):
        self.prepare()
        source = self.directory / "java_load.java"
        shutil.copy(host.HERE / source.name, source)
        self.start_child(
            [host.find("java"), "-Xms32m", "-Xmx192m", "-XX:+UseG1GC"]
            + [f"-Djava.io.tmpdir={self.directory}", "-XX:-UsePerfData"]
            + [source, "64", "400", str(SECONDS)]
        )
        self.settle()


# Gentler than alone: all of them together must leave most of a processor to
# those who measure them.


class SmallPostgres(Postgres):
    clients, rate = 8, 100


class SmallRedis(Redis):
    load = (150000, 900, 500, 30)


class SmallApache(Apache):
    workers = 16


class Mixed(App):
    """Runs several services on one host. Those that are not installed are left
    out."""

    name = "mixed"
    words = "PostgreSQL, Redis with BGSAVE, MariaDB, Java and Apache together"
    kinds = (SmallPostgres, SmallRedis, MariaDb, Java, SmallApache)

    def __init__(self):
        super().__init__()
        made = [kind() for kind in self.kinds]
        self.parts = [part for part in made if not part.missing()]
        self.groups = {}
        for part in self.parts:
            self.groups.update(part.groups)
        left_out = [part.missing() for part in made if part.missing()]
        if left_out:
            names = ", ".join(part.name for part in self.parts)
            self.words = f"{names}; without {', '.join(left_out)}"

    def missing(self):
        if len(self.parts) > 1:
            return None
        return "more than one of " + ", ".join(k.name for k in self.kinds)

    def start(self):
        for part in self.parts:
            host.note(f"  {part.name}")
            part.start()

    def check(self):
        for part in self.parts:
            part.check()

    def stop(self):
        """Ends all of them, also if one cannot be ended."""
        errors = []
        for part in reversed(self.parts):
            try:
                part.stop()
            except FAILURES as error:
                errors.append(f"{part.name}: {error}")
        if errors:
            raise BenchError("; ".join(errors))


KINDS = (Postgres, FullPostgres, Redis, MariaDb, Java, Apache, Mixed)
APPS = {app.name: app for app in KINDS}
