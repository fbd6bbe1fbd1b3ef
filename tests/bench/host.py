# SPDX-License-Identifier: MIT
"""Finds out about the machine: programs, versions, memory, a place for files.

Environment: PLUGIN is the smaps.so to measure, COLLECTD the daemon, BENCH the
directory with floor, population and giant; missing ones are compiled. All three
have defaults.
"""

import functools
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from collectd import COLLECTD, PLUGIN, ROOT, SEARCH_PATH
from kernel import read_meminfo

HERE = Path(__file__).resolve().parent
BENCH = Path(os.environ.get("BENCH") or PLUGIN.parent / "tests/bench")
BENCH = BENCH.resolve()


class BenchError(AssertionError):
    """This measurement cannot be made; the others can."""


# How a measurement can fail; tests/lib raises AssertionError.
FAILURES = (AssertionError, OSError, subprocess.SubprocessError)


def note(text):
    """Prints progress to stderr; the table goes to standard output."""
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


# ---- programs ----


def find(*names):
    """The path of the first of these programs that exists, or None."""
    for name in names:
        path = shutil.which(name, path=SEARCH_PATH)
        if path:
            return path
    return None


@functools.lru_cache(maxsize=None)
def work_directory():
    """Set by the process that removes it at the end; see run.py."""
    return Path(os.environ["SMAPS_BENCH_WORK"])


_directories = {}


def new_directory(name):
    """An empty directory that every user can read."""
    number = _directories.get(name, 0)
    _directories[name] = number + 1
    path = work_directory() / f"{name}-{number}"
    path.mkdir(mode=0o755)
    return path


@functools.lru_cache(maxsize=None)
def program(name):
    """Returns the path of one of our programs."""
    if (BENCH / name).is_file():
        return BENCH / name
    output = work_directory() / name
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-pthread"]
    source = HERE / f"{name}.c"
    subprocess.run(
        [*compiler, "-D_GNU_SOURCE", "-o", output, source], check=True
    )
    return output


# ---- descriptions ----


def cpu_model():
    found = re.search(
        r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M
    )
    return found.group(1) if found else platform.machine()


def first_line(*command):
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=20,
            check=False,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.splitlines() or [""])[0].strip()


def collectd_version():
    text = subprocess.run(
        [COLLECTD, "-h"], stdout=subprocess.PIPE, check=False, text=True
    ).stdout
    found = re.search(r"collectd (\d\S*?),", text)
    return found.group(1) if found else "?"


def plugin_version():
    """The commit that last changed it, and true if it has changed since."""
    git = ["git", "-C", ROOT]
    log = ["log", "-1", "--format=%h", "--abbrev=7", "--", "plugin", "include"]
    commit = first_line(*git, *log)
    if not re.fullmatch(r"[0-9a-f]+", commit):
        return "unknown"
    changed = first_line(*git, "status", "--porcelain", "plugin", "include")
    return commit + (" with changes" if changed else "")


def describe():
    """Returns lines about the machine, for the head of the tables."""
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    memory = read_meminfo()["MemTotal"] / 2**30
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [
        f"{date}; {os.cpu_count()} cores ({cpu_model()}), {memory:.0f} GiB, "
        f"Linux {platform.release()} {platform.machine()}",
        f"collectd {collectd_version()}, which may have {files} files open; "
        f"smaps plugin {plugin_version()}",
    ]
