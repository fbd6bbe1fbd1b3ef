# SPDX-License-Identifier: MIT
"""The ground of the integration tests.

Collectd is a real daemon with a configuration, a PID file and a base directory
of its own; Shape is a set of real processes of known size; what the kernel says
of them is in tests/lib/kernel.py, whose names can be imported from here.

Environment: PLUGIN is the smaps.so to test, COLLECTD the daemon, SHAPE the
program that makes the processes (see tests/support/shape.c).
"""

import atexit
import ctypes
import functools
import math
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import collectd as daemon
from collectd import (  # noqa: F401  (some for those who import us)
    COLLECTD,
    PLUGIN,
    ROOT,
    SEARCH_PATH,
    system_plugin_dir,
)
from csv_files import CsvFiles
from cycle import Cycle
from kernel import *  # noqa: F401, F403
from kernel import read_rollup, sum_rollups
from processes import (  # noqa: F401
    DEADLINE_SECONDS,
    Script,
    Talker,
    end_process,
    end_with_parent,
    free_port,
)

SHAPE = Path(
    os.environ.get("SHAPE") or PLUGIN.parent / "tests/support/shape"
)

# Finds a line of the plugin, except the first one and the one about a captured
# tree.
PLUGIN_SAYS = r"smaps plugin: (?!version |there are no values of the host )"

# Two runs at one time must not count each other's processes. So the comm of a
# shape ends in this, as does in a configuration whatever is written with an @:
# `Comm "web@"`. In the names of groups it is taken out again.
TAG = f".{os.getpid():x}"
SHAPE_NAME = "shaped"
DEFAULT_NAMES = ("pss", "uss", "rss", "shared", "swap")


class HarnessError(Exception):
    """The test ground itself is broken: no plugin, no daemon."""


# ---- skips ----


def is_root():
    return os.geteuid() == 0


def need_root(reason):
    if not is_root():
        raise unittest.SkipTest(f"needs root: {reason}")


def need_program(name, package=None):
    """Its path; skips the test where it is not installed. The package is that
    of Debian, if it has another name."""
    path = shutil.which(name, path=SEARCH_PATH)
    if path is None:
        raise unittest.SkipTest(f"needs {package or name}")
    return path


def sees_host():
    """False in a pid namespace of its own, where the plugin has no values of
    the host."""
    try:
        return Path("/proc/2/comm").read_text(encoding="ascii") == "kthreadd\n"
    except OSError:
        return False


def need_host():
    if not sees_host():
        raise unittest.SkipTest("needs the first pid namespace of the host")


CLONE_NEWUTS = 0x04000000


def is_looked_up(name):
    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False


@functools.cache
def has_host_name():
    """False if collectd would not start with FQDNLookup, and smaps-report check
    say so. Root is on a host of another name then, as far as it can."""
    if is_looked_up(socket.gethostname()):
        return True
    if not is_root() or ctypes.CDLL(None).unshare(CLONE_NEWUTS) != 0:
        return False
    socket.sethostname("localhost")
    return is_looked_up("localhost")


def need_host_name():
    if not has_host_name():
        raise unittest.SkipTest("needs a name of the host that can be looked up")


def need_namespace(kind):
    """unshare needs rights, and a root directory that is mounted."""
    if not shutil.which("unshare") or subprocess.run(["unshare", *kind, "true"]).returncode:
        raise unittest.SkipTest("needs unshare, and the right to use it")


def need_readable(pid):
    """Root of a container may lack the capability to read other users'."""
    try:
        read_rollup(pid)
    except PermissionError:
        raise unittest.SkipTest(
            "needs CAP_SYS_PTRACE, for a process of another user"
        ) from None


@functools.lru_cache(maxsize=None)
def unprivileged_user():
    """Returns a user without rights as (uid, gid); our own user if we are not
    root."""
    if not is_root():
        return os.getuid(), os.getgid()
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


# ---- the stage: what all tests share ----


class Stage:
    """A temporary directory that every user can read, with the plugin and the
    shape program in it. The checkout may be where only its owner can go."""

    def __init__(self):
        if COLLECTD is None:
            raise HarnessError("no collectd found: install it or set COLLECTD")
        if not PLUGIN.is_file():
            raise HarnessError(f"no plugin at {PLUGIN}: run make or set PLUGIN")
        self.directory = Path(tempfile.mkdtemp(prefix="smaps-test-"))
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        self.directory.chmod(0o755)
        self.plugin_dir = self.directory / "plugins"
        self.plugin_dir.mkdir(mode=0o755)
        daemon.fill_plugin_dir(self.plugin_dir, ("csv", "logfile"))
        self.shape = self._make_shape()

    def _make_shape(self):
        shape = self.directory / "shape"
        if SHAPE.is_file():
            shutil.copy(SHAPE, shape)
        else:
            compile_shape(shape)
        shape.chmod(0o755)
        return shape

    def new_directory(self, owner=None):
        directory = Path(tempfile.mkdtemp(dir=self.directory))
        directory.chmod(0o755)
        if owner is not None:
            os.chown(directory, *owner)
        return directory


@functools.lru_cache(maxsize=None)
def stage():
    return Stage()


def compile_shape(output):
    """For a run without make."""
    sources = sorted((ROOT / "tests/support").glob("shape*.c"))
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-O2"]
    subprocess.run([*command, "-o", output, *sources], check=True)


# ---- waiting ----


def wait_until(condition, what, seconds=DEADLINE_SECONDS):
    """Calls condition() until it returns something true, and returns that."""
    begin = time.monotonic()
    while True:
        result = condition()
        if result:
            return result
        waited = time.monotonic() - begin
        if waited > seconds:
            what = what() if callable(what) else what
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        # What takes long may be seen a twentieth later.
        time.sleep(min(max(waited / 20, 0.01), 0.1))


def as_user(user):
    """Arguments for subprocess; user is (uid, gid) or None for ourselves."""
    if user is None or not is_root():
        return {}
    return {"user": user[0], "group": user[1], "extra_groups": []}


# ---- the daemon ----

OUTPUTS = """\
LoadPlugin logfile
<Plugin logfile>
  LogLevel "info"
  File "{directory}/collectd.log"
  Timestamp true
  PrintSeverity true
</Plugin>
LoadPlugin csv
<Plugin csv>
  DataDir "{directory}/csv"
  StoreRates false
</Plugin>
"""


def plugin(*options):
    """Returns a block with our options, as it is in a configuration."""
    return "\n".join(["<Plugin smaps>", *options, "</Plugin>"])


def group(name, *options):
    """Returns the block of a group in our options."""
    return "\n".join([f'<Group "{name}">', *options, "</Group>"])


def check_config(body, user=None, load=None):
    """Runs `collectd -T` on a configuration. Returns (exit status, what it
    printed)."""
    load = "LoadPlugin smaps" if load is None else load
    text = f"{load}\n{body}".replace("@", TAG)
    directory = stage().new_directory()
    path = daemon.write_config(directory, stage().plugin_dir, text, 0.1)
    done = subprocess.run(
        [COLLECTD, "-T", "-C", path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEADLINE_SECONDS,
        check=False,
        **as_user(user),
    )
    return done.returncode, done.stdout.decode("utf-8", "backslashreplace")


# On a busy machine a reader may wait for its processor for a second, and that
# is not a hang.
PATIENCE = plugin("ReadTimeout 10")


def patient(body):
    """The same, for a test that is not about what hangs."""
    return body if "ReadTimeout" in body else f"{body}\n{PATIENCE}"


def setpriv(*capabilities, user=None):
    """The words in front of a command that is to run with these capabilities
    (names, or numbers for those that setpriv does not know) and no others, now
    and later; as this user, if one is given."""
    names = (f"cap_{c}" if isinstance(c, int) else c for c in capabilities)
    caps = ",".join(["-all", *(f"+{name}" for name in names)])
    command = ["setpriv", "--inh-caps", caps, "--bounding-set", caps]
    if user is not None:
        uid, gid = user
        command += ["--reuid", str(uid), "--regid", str(gid)]
        command += ["--clear-groups", "--ambient-caps", caps]
    return command


class Collectd(daemon.Daemon):
    """`user` is (uid, gid), for an unprivileged one; `wrapper` is a command in
    front of it that becomes that user itself, such as setpriv, or is otherwise to
    exec collectd. The body is the configuration but for what all have."""

    def __init__(self, body, *, interval=0.1, user=None, host="test", wrapper=()):
        self.host = host
        self.interval = interval
        self._csv = {}
        self.directory = stage().new_directory(user if is_root() else None)
        text = self.complete(body)
        config = daemon.write_config(
            self.directory,
            self.plugin_dir(text),
            OUTPUTS.format(directory=self.directory) + text,
            interval,
            host,
        )
        super().__init__(
            self.directory,
            config,
            wrapper=wrapper,
            **as_user(None if wrapper else user),
        )

    def plugin_dir(self, text):
        return stage().plugin_dir

    def complete(self, body):
        return "LoadPlugin smaps\n" + patient(body).replace("@", TAG)

    # -- values --

    def _csv_files(self, host, plugin="smaps"):
        if (host, plugin) not in self._csv:
            directory = f"{self.directory}/csv/{host}"
            self._csv[host, plugin] = CsvFiles(directory, plugin)
        return self._csv[host, plugin]

    def values(self, host=None, plugin="smaps"):
        """{group: {metric: [(time, value...)]}}, in the order of time: our own,
        or what came from another host or another plugin."""
        groups = {}
        files = self._csv_files(host or self.host, plugin)
        for (group, metric), rows in files.read().items():
            metrics = groups.setdefault(group.replace(TAG, ""), {})
            metrics.setdefault(metric, []).extend(rows)
        return groups

    def times(self):
        """Returns the times of the cycles so far."""
        return self._csv_files(self.host).times()

    def cycle_at(self, time_):
        groups = {}
        for group, metrics in self.values().items():
            for metric, rows in metrics.items():
                for row in rows:
                    if row[0] == time_:
                        groups.setdefault(group, {})[metric] = row[1:]
        return Cycle(time_, groups)

    def next_cycle(self, watch=lambda: None):
        """Waits for a cycle that has begun after this call, and for all of
        its values. Calls watch() all the while.

        The first one with a later time may have begun before, if the time is
        taken at its end; and that the second is complete is known when there
        is a third.
        """
        begin = time.time()

        def find():
            watch()
            self.check_running()
            later = [t for t in self.times() if t > begin]
            # Read again, now that all of it must be there.
            return len(later) >= 3 and self.cycle_at(later[1])

        return wait_until(find, lambda: "a cycle" + self.log_tail())

    def find_cycle(self, is_wanted, what):
        """Waits for a cycle for which is_wanted(cycle) is true, and returns
        it."""

        def find():
            cycle = self.next_cycle()
            return is_wanted(cycle) and cycle

        return wait_until(find, what)

    def wait_cycles(self, count, seconds=DEADLINE_SECONDS):
        """Waits until that many intervals have been written."""

        def find():
            self.check_running()
            return len(self.times()) >= count

        wait_until(
            find,
            lambda: f"{count} intervals" + self.log_tail(),
            seconds,
        )


# ---- processes of known shape ----


class Shape(Talker):
    """Processes made by tests/support/shape.c, or a copy of its program. pids
    has the root first. The options of the program are arguments: mib=4,
    child_name="x"; names get the TAG."""

    def __init__(self, kind, *, user=None, program=None, **options):
        command = [program or stage().shape, kind]
        if "name_hex" not in options:
            options.setdefault("name", SHAPE_NAME)
        for option in {"name", "child_name"} & options.keys():
            options[option] += TAG
        for option, value in options.items():
            command.append(f"--{option.replace('_', '-')}={value}")
        super().__init__(command, **as_user(user))
        ready, *words = self.read_line().split()
        if ready != "READY":
            self.stop()
            raise AssertionError(f"shape {kind} did not come up")
        self.pids = [int(word) for word in words]

    @property
    def root(self):
        return self.pids[0]

    def command(self, line):
        """Sends a command and returns the answer."""
        answer = self.ask(line)
        if answer.startswith("ERROR"):
            raise AssertionError(f'shape does not do "{line}": {answer}')
        return answer

    def grow(self, mib):
        self.command(f"grow {mib}")

    def count_started(self):
        return int(self.command("count").split()[1])


# ---- the test case ----


class IntegrationTest(unittest.TestCase):
    """Starts and ends things, and compares them."""

    maxDiff = None

    def start_shape(self, kind, **options):
        shape = Shape(kind, **options)
        self.addCleanup(shape.stop)
        return shape

    def start_script(self, source, *arguments):
        script = Script(source, *arguments)
        self.addCleanup(script.stop)
        return script

    def start_collectd(self, body, **options):
        collectd = Collectd(body, **options)
        self.addCleanup(collectd.stop)
        return collectd

    def assert_near(self, value, expected, tolerance, what):
        self.assertLessEqual(
            abs(value - expected),
            tolerance,
            f"{what}: {value:.0f} is not {expected:.0f} ± {tolerance:.0f}",
        )

    def assert_invariants(self, cycle, group):
        """Relations that hold for every set of values."""
        pss, uss, rss, shared = (
            cycle.memory(group, name)
            for name in ("pss", "uss", "rss", "shared")
        )
        self.assertLessEqual(uss, pss)
        self.assertLessEqual(pss, rss)
        self.assertEqual(rss, uss + shared)

    def assert_sums_match(self, collectd, group, pids, names=DEFAULT_NAMES):
        """The group's values are, to the byte, what smaps_rollup has for these
        idle processes. Returns the cycle.

        Their rollups are read all the while until the cycle is there, because
        one thing does move without them: whenever any process of the machine
        starts or ends, it maps or unmaps the same libc, and PSS divides by one
        more or less. Then the value has to be within what was seen. That a
        process comes and goes unseen between two readings is the reason to try
        again.
        """
        for _ in range(20):
            seen = []
            cycle = collectd.next_cycle(lambda: seen.append(sum_rollups(pids)))
            self.assertIn(group, cycle.groups)
            wrong = self._compare(cycle, group, seen, names)
            if not wrong:
                break
        self.assertEqual(wrong, [], f"group {group}: (name, value, seen)")
        self.assert_invariants(cycle, group)
        return cycle

    @staticmethod
    def _compare(cycle, group, seen, names):
        """The values that differ from those seen."""
        wrong = []
        for name in names:
            value = cycle.memory(group, name)
            values = {sample[name] for sample in seen}
            if not min(values) <= value <= max(values):
                wrong.append((name, value, sorted(values)))
        return wrong

    def assert_all_nan(self, cycle, group, names=DEFAULT_NAMES):
        for name in names:
            value = cycle.memory(group, name)
            self.assertTrue(math.isnan(value), f"{name} is {value}, not NaN")

    def assert_unread(self, cycle, group, names=DEFAULT_NAMES):
        """No member was ever read: only what statm has is known."""
        self.assert_all_nan(cycle, group, [n for n in names if n != "rss"])
        self.assertGreater(cycle.memory(group, "rss"), 0)
