# SPDX-License-Identifier: MIT
"""Runs a collectd of our own: its plugins, its configuration, its process."""

import atexit
import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from processes import (
    DEADLINE_SECONDS,
    end_process,
    end_with_parent,
    uninterrupted,
)

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGIN = Path(os.environ.get("PLUGIN") or ROOT / "build/default/smaps.so")
PLUGIN = PLUGIN.resolve()
# The directories of servers are often not in PATH.
SEARCH_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
COLLECTD = os.environ.get("COLLECTD") or shutil.which(
    "collectd", path=SEARCH_PATH
)

CONFIG = """\
Hostname "{host}"
FQDNLookup false
BaseDir "{directory}"
PIDFile "{directory}/collectd.pid"
PluginDir "{plugins}"
Interval {interval}
# One thread each: values are then written in the order they were dispatched.
ReadThreads 1
WriteThreads 1
{body}
"""


@functools.lru_cache(maxsize=None)
def system_plugin_dir():
    """The daemon says in its help where it was built to look."""
    text = subprocess.run(
        [COLLECTD, "-h"], stdout=subprocess.PIPE, check=False, text=True
    ).stdout
    return Path(re.search(r"Plugin directory\s+(\S+)", text).group(1))


def fill_plugin_dir(directory, names, build=PLUGIN):
    """collectd loads every plugin from one directory, and from regular files
    only: a symbolic link it refuses. A copy of our plugin also stays the same if
    somebody builds a new one."""
    for name in names:
        shutil.copy(system_plugin_dir() / f"{name}.so", directory)
    shutil.copy(build, directory / "smaps.so")
    return directory


def write_config(directory, plugins, body, interval, host="test"):
    path = directory / "collectd.conf"
    text = CONFIG.format(
        host=host,
        directory=directory,
        plugins=plugins,
        interval=interval,
        body=body,
    )
    # A configuration is bytes: a Comm may be any.
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o644)
    return path


class Daemon:
    """A running collectd. `wrapper` is a command in front of it that execs it.

    All processes of its session end after it: in stop(), or at our own exit if
    we were interrupted."""

    def __init__(self, directory, config, *, wrapper=(), stdout=None, **options):
        self.directory = directory
        with open(directory / "stderr", "wb") as stderr, uninterrupted():
            self.process = subprocess.Popen(
                [*wrapper, COLLECTD, "-f", "-C", config],
                stdin=subprocess.DEVNULL,
                stdout=stdout or stderr,
                stderr=stderr,
                preexec_fn=end_with_parent,
                **{"start_new_session": True, **options},
            )
            self.pid = self.group = self.process.pid
            atexit.register(self._end_group)

    def stop(self, seconds=DEADLINE_SECONDS):
        """Ends the daemon, and returns its exit status."""
        try:
            return end_process(self.process, seconds)
        finally:
            self._end_group()

    def _end_group(self):
        """Once: after that the number may be another's. SIGKILL, because a child
        of the exec plugin that hangs before its exec has the daemon's handler of
        SIGTERM."""
        group, self.group = self.group, None
        if group is None:
            return
        atexit.unregister(self._end_group)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)

    def log(self):
        """All that it said: before the logfile plugin stood, and after."""
        text = b""
        for name in ("stderr", "collectd.log"):
            path = self.directory / name
            text += path.read_bytes() if path.exists() else b""
        return text.decode("utf-8", "backslashreplace").splitlines()

    def log_lines(self, pattern):
        return [line for line in self.log() if re.search(pattern, line)]

    def check_running(self):
        if self.process.poll() is not None:
            raise AssertionError("collectd has ended" + self.log_tail())

    def log_tail(self):
        return "; its log:\n" + "\n".join(self.log()[-20:])
