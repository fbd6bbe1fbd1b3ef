#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes the recording that tests/unit/core/test_replay.c replays.

    record.py FILE.tar.gz [SECONDS COUNT]

For five minutes, unless told otherwise, contrib/capture-proc records what runs
in a pid namespace of its own: PostgreSQL under pgbench, Redis with BGSAVE,
Apache with prefork workers under wrk, and a pool of Python workers that is
deployed anew in the middle: the new one starts, and the old one ends 15 seconds
later. Paths and control groups, which would be this machine's, are replaced.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import run  # noqa: E402  (found by the lines above)

CAPTURE = HERE.parent.parent / "contrib/capture-proc"

# A master with 40 MB of objects forks workers that use them, which writes their
# reference counts; a worker keeps what it has made, and drops all at times.
POOL = """
import ctypes, os, random, time

ctypes.CDLL(None).prctl(15, b"pool", 0, 0, 0)
objects = [[number, str(number)] for number in range(250000)]
parent = os.getpid()
if all(os.fork() for _ in range(6)):
    while True:
        time.sleep(60)
random.seed(os.getpid())
pages = list(range(0, len(objects), 30))
random.shuffle(pages)
kept = []
while os.getppid() == parent:
    at = random.choice(pages) if random.random() < 0.5 else pages[0]
    copies = [list(one) for one in objects[at : at + 30]]
    kept.append("x" * random.randrange(4000, 40000))
    if random.random() < 0.004:
        kept.clear()
    time.sleep(random.expovariate(15))
"""


def make_apps():
    from apps import App
    from services import SmallApache, SmallPostgres, SmallRedis

    class Pool(App):
        name = "pool"

        def start(self):
            self.prepare("nobody")
            self.start_child([sys.executable, "-S", "-c", POOL])

    class SavingRedis(SmallRedis):
        """A child that saves is there in some of the moments."""

        load = (150000, 900, 500, 4)

    return [SmallPostgres(), SavingRedis(), SmallApache()], Pool


def deploy(old, new, seconds):
    time.sleep(seconds)
    new.start()
    time.sleep(15)
    old.stop()


def record(directory, every, count):
    apps, pool = make_apps()
    old, new = pool(), pool()
    try:
        for app in (*apps, old):
            app.start()
        deployment = threading.Thread(
            target=deploy, args=(old, new, every * count * 0.5)
        )
        deployment.start()
        subprocess.run(
            [CAPTURE, "-m", "--every", str(every), "--count", str(count)]
            + [directory],
            check=True,
        )
        deployment.join()
        for app in (*apps, new):
            app.check()
    finally:
        for app in (new, old, *reversed(apps)):
            app.stop()


# ---- the archive ----


def replace_names(process):
    """In place: other links to the same file keep what they have."""
    exe = process / "exe"
    if exe.is_symlink():
        name = Path(os.readlink(exe)).name
        exe.unlink()
        exe.symlink_to(f"/usr/bin/{name}")
    for name, text in (("cgroup", "0::/\n"), ("cmdline", None)):
        path = process / name
        first = re.split(rb"[ \0]", path.read_bytes())[0]
        if text is None:
            text = Path(os.fsdecode(first)).name + "\0"
        path.unlink()
        path.write_text(text)


def pack(directory, path):
    """Orders the files by process: gzip finds what was there already within
    32 KiB."""
    for version in directory.glob("*/version"):
        version.write_text(" ".join(version.read_text().split()[:3]) + "\n")
    for process in directory.glob("*/[0-9]*"):
        replace_names(process)
    files = [p for p in directory.rglob("*") if p.is_symlink() or p.is_file()]
    names = [file.relative_to(directory).parts for file in files]
    names.sort(key=lambda parts: (parts[1:], parts[0]))
    archive = subprocess.run(
        ["tar", "-c", "--no-recursion", "--owner=0", "--group=0"]
        + ["--numeric-owner", "--mtime=@0", "--format=ustar"]
        + ["-C", directory, "-T", "-"],
        input="\n".join("/".join(parts) for parts in names).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    with open(path, "wb") as file:
        subprocess.run(
            ["gzip", "-9n"], input=archive.stdout, stdout=file, check=True
        )


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    if "SMAPS_BENCH_WORK" not in os.environ:
        return run.run_outside()
    run.reap_as_init()
    every, count = map(int, sys.argv[2:] or (10, 30))
    directory = Path(os.environ["SMAPS_BENCH_WORK"]) / "recording"
    record(directory, every, count)
    pack(directory, sys.argv[1])
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
