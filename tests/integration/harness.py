"""The ground of the integration tests.

Collectd is a real daemon with a configuration, a PID file and a base directory
of its own; Shape is a set of real processes of known size; the read_* functions
read the same kernel files as the plugin does, by other code than the plugin's.

Environment: PLUGIN is the smaps.so to test, COLLECTD the daemon, SHAPE the
program that makes the processes (see tests/support/shape.c).
"""

import atexit
import contextlib
import ctypes
import functools
import math
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from csv_files import CsvFiles

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGIN = Path(os.environ.get("PLUGIN") or ROOT / "build/default/smaps.so")
SHAPE = Path(
    os.environ.get("SHAPE") or PLUGIN.parent / "tests/support/shape"
)
COLLECTD = os.environ.get("COLLECTD") or shutil.which(
    "collectd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
)

# A line of the plugin other than the first, and than that of a captured tree.
PLUGIN_SAYS = r"smaps plugin: (?!version |there are no values of the host )"

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1

KIB = 1024
MIB = 1024 * 1024
PAGE_SIZE = os.sysconf("SC_PAGESIZE")

# Two runs at one time must not count each other's processes. So the comm of a
# shape ends in this, as does in a configuration whatever is written with an @:
# `Comm "web@"`. In the names of groups it is taken out again.
TAG = f".{os.getpid():x}"
SHAPE_NAME = "shaped"

# How long anything may take before a test gives up on it. Far above what it
# does take: no test passes or fails by speed. (An interval of 20 seconds was
# seen beside a load of 190, and what waits for a cycle waits for three.)
DEADLINE_SECONDS = 120


class HarnessError(Exception):
    """The test ground itself is broken: no plugin, no daemon."""


# ---- skips ----


def is_root():
    return os.geteuid() == 0


def need_root(reason):
    if not is_root():
        raise unittest.SkipTest(f"needs root: {reason}")


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
    """A user without rights, as (uid, gid); ourselves when not root."""
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
        self.plugin_dir = self._make_plugin_dir()
        self.shape = self._make_shape()

    def _make_plugin_dir(self):
        """collectd loads every plugin from one directory, and from regular
        files only: a symbolic link it refuses."""
        plugin_dir = self.directory / "plugins"
        plugin_dir.mkdir(mode=0o755)
        for name in ("csv.so", "logfile.so"):
            shutil.copy(system_plugin_dir() / name, plugin_dir)
        shutil.copy(PLUGIN, plugin_dir / "smaps.so")
        return plugin_dir

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


@functools.lru_cache(maxsize=None)
def system_plugin_dir():
    """The daemon says in its help where it was built to look."""
    text = subprocess.run(
        [COLLECTD, "-h"], stdout=subprocess.PIPE, check=False, text=True
    ).stdout
    found = re.search(r"Plugin directory\s+(\S+)", text)
    if found is None:
        raise HarnessError("collectd -h names no plugin directory")
    return Path(found.group(1))


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


def end_process(process):
    """Asks a process that we started to end, and makes it if it does not."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError(f"pid {process.pid} did not end on SIGTERM")


INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


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


def as_user(user):
    """Arguments for subprocess; user is (uid, gid) or None for ourselves."""
    if user is None or not is_root():
        return {}
    return {"user": user[0], "group": user[1], "extra_groups": []}


# ---- the daemon ----

CONFIG = """\
Hostname "{host}"
FQDNLookup false
BaseDir "{directory}"
PIDFile "{directory}/collectd.pid"
PluginDir "{plugin_dir}"
Interval {interval}
# One thread each: values are then written in the order they were dispatched.
ReadThreads 1
WriteThreads 1
{outputs}
{load}
{body}
"""

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


def write_config(
    directory,
    body,
    interval=0.1,
    plugin="smaps",
    outputs="",
    host="test",
    load=None,
    plugin_dir=None,
):
    path = directory / "collectd.conf"
    text = CONFIG.format(
        host=host,
        directory=directory,
        plugin_dir=plugin_dir or stage().plugin_dir,
        interval=interval,
        outputs=outputs.format(directory=directory),
        load=f"LoadPlugin {plugin}" if load is None else load,
        body=body,
    )
    # A configuration is bytes: a Comm may be any.
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o644)
    return path


def plugin(*options):
    """A block of our options in a configuration."""
    return "\n".join(["<Plugin smaps>", *options, "</Plugin>"])


def group(name, *options):
    """The block of a group in it."""
    return "\n".join([f'<Group "{name}">', *options, "</Group>"])


def check_config(body, user=None, load=None):
    """`collectd -T` on a configuration: (exit status, what it printed)."""
    body = body.replace("@", TAG)
    path = write_config(stage().new_directory(), body, load=load)
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


# A reader may well wait for a second for its processor on a busy machine, and
# that is no hang.
PATIENCE = plugin("ReadTimeout 10")


def patient(body, plugins):
    """The same, for a test that is not about what hangs."""
    if "smaps" not in plugins or "ReadTimeout" in body:
        return body
    return f"{body}\n{PATIENCE}"


class Cycle:
    """The values of one read cycle: groups[group][metric] is a tuple. The
    plugin's metrics about itself are those of the group ""; host[metric] is a
    number, of those about the host."""

    def __init__(self, time_, groups):
        self.time = time_
        host = groups.pop("host", {})
        self.host = {metric: value for metric, (value,) in host.items()}
        self.groups = groups

    def __contains__(self, group):
        return group in self.groups

    def value(self, group, metric):
        """A metric with one value, e.g. ("web", "memory-pss")."""
        (value,) = self.groups[group][metric]
        return value

    def memory(self, group, name):
        return self.value(group, f"memory-{name}")

    def counts(self, group):
        """ps_count as (processes, threads)."""
        return self.groups[group]["ps_count"]


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


class Collectd:
    """A running collectd. `user` is (uid, gid), for an unprivileged one;
    `wrapper` is a command in front of it that becomes that user itself, such as
    setpriv, or is otherwise to exec collectd.

    All processes of its session end after it: in stop(), or at our own exit if
    the test was interrupted."""

    def __init__(
        self,
        body,
        *,
        interval=0.1,
        user=None,
        plugin="smaps",
        host="test",
        wrapper=(),
    ):
        self.plugin = plugin
        self.host = host
        self._csv = {}
        owner = user if is_root() else None
        self.directory = stage().new_directory(owner)
        config = self._write_config(body, interval)
        stderr = open(self.directory / "stderr", "wb")
        with stderr, uninterrupted():
            self.process = subprocess.Popen(
                [*wrapper, COLLECTD, "-f", "-C", config],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=end_with_parent,
                **as_user(None if wrapper else user),
            )
            self.group = self.process.pid
            atexit.register(self._end_group)

    def _write_config(self, body, interval):
        return write_config(
            self.directory,
            patient(body, [self.plugin]).replace("@", TAG),
            interval,
            self.plugin,
            outputs=OUTPUTS,
            host=self.host,
        )

    def stop(self):
        try:
            return end_process(self.process)
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

    # -- values --

    def _csv_files(self, host, plugin):
        if (host, plugin) not in self._csv:
            directory = f"{self.directory}/csv/{host}"
            self._csv[host, plugin] = CsvFiles(directory, plugin)
        return self._csv[host, plugin]

    def values(self, host=None, plugin=None):
        """{group: {metric: [(time, value...)]}}, in the order of time: our own,
        or what came from another host or another plugin."""
        groups = {}
        files = self._csv_files(host or self.host, plugin or self.plugin)
        for (group, metric), rows in files.read().items():
            metrics = groups.setdefault(group.replace(TAG, ""), {})
            metrics.setdefault(metric, []).extend(rows)
        return groups

    def times(self):
        """The times of the cycles so far."""
        return self._csv_files(self.host, self.plugin).times()

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

        return wait_until(find, lambda: "a cycle" + self._log_tail())

    def wait_cycles(self, count, seconds=DEADLINE_SECONDS):
        """Waits until that many intervals have been written."""

        def find():
            self.check_running()
            return len(self.times()) >= count

        wait_until(
            find,
            lambda: f"{count} intervals" + self._log_tail(),
            seconds,
        )

    def check_running(self):
        if self.process.poll() is not None:
            raise AssertionError("collectd has ended" + self._log_tail())

    def _log_tail(self):
        return "; its log:\n" + "\n".join(self.log()[-20:])


# ---- processes of known shape ----


class Shape:
    """Processes made by tests/support/shape.c, or a copy of its program. pids
    has the root first. Options are those of the program: mib=4,
    child_name="x"; names get the TAG."""

    def __init__(self, kind, *, user=None, program=None, **options):
        command = [program or stage().shape, kind]
        if "name_hex" not in options:
            options.setdefault("name", SHAPE_NAME)
        for option in {"name", "child_name"} & options.keys():
            options[option] += TAG
        for option, value in options.items():
            command.append(f"--{option.replace('_', '-')}={value}")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            **as_user(user),
        )
        ready, *words = self._read_line().split() or [""]
        if ready != "READY":
            end_process(self.process)
            raise AssertionError(f"shape {kind} did not come up")
        self.pids = [int(word) for word in words if word.isdigit()]
        extra = dict(word.split("=") for word in words if "=" in word)
        self.swapped_bytes = int(extra.get("swapped_kib", 0)) * KIB

    @property
    def root(self):
        return self.pids[0]

    def command(self, line):
        """Sends a command and returns the answer."""
        self.process.stdin.write(line.encode() + b"\n")
        answer = self._read_line()
        if answer.startswith("ERROR") or not answer:
            raise AssertionError(f'shape does not do "{line}": {answer}')
        return answer

    def grow(self, mib):
        self.command(f"grow {mib}")

    def count_started(self):
        return int(self.command("count").split()[1])

    def stop(self):
        self.process.stdin.close()
        end_process(self.process)
        self.process.stdout.close()

    def _read_line(self):
        text = b""
        while not text.endswith(b"\n"):
            out = [self.process.stdout]
            if not select.select(out, [], [], DEADLINE_SECONDS)[0]:
                end_process(self.process)
                raise AssertionError("shape does not answer")
            byte = self.process.stdout.read(1)
            if not byte:
                break
            text += byte
        return text.decode().strip()


# ---- the kernel's files, read independently of the plugin ----

# Our names for the lines of smaps_rollup that are reported as they are.
ROLLUP_NAMES = {
    "pss": "Pss",
    "rss": "Rss",
    "swap": "SwapPss",
    "pss_anon": "Pss_Anon",
    "pss_file": "Pss_File",
    "pss_shmem": "Pss_Shmem",
    "pss_dirty": "Pss_Dirty",
    "private_clean": "Private_Clean",
    "private_dirty": "Private_Dirty",
    "shared_clean": "Shared_Clean",
    "shared_dirty": "Shared_Dirty",
    "referenced": "Referenced",
    "anonymous": "Anonymous",
    "lazy_free": "LazyFree",
    "ksm": "KSM",
    "anon_huge_pages": "AnonHugePages",
    "shmem_pmd_mapped": "ShmemPmdMapped",
    "file_pmd_mapped": "FilePmdMapped",
    "shared_hugetlb": "Shared_Hugetlb",
    "private_hugetlb": "Private_Hugetlb",
    "swap_total": "Swap",
    "locked": "Locked",
}
DEFAULT_NAMES = ("pss", "uss", "rss", "shared", "swap")


def parse_rollup(text):
    """The "Key: N kB" lines of a smaps_rollup, or of a smaps summed up, in
    bytes, under the kernel's names."""
    fields = {}
    for key, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE):
        fields[key] = fields.get(key, 0) + int(kib) * KIB
    return fields


def named_values(fields):
    """The same under the plugin's names, with what it computes."""
    values = {
        name: fields[key]
        for name, key in ROLLUP_NAMES.items()
        if key in fields
    }
    values["uss"] = fields["Private_Clean"] + fields["Private_Dirty"]
    values["shared"] = fields["Shared_Clean"] + fields["Shared_Dirty"]
    return values


def read_rollup(pid, root="/proc"):
    return named_values(
        parse_rollup(Path(f"{root}/{pid}/smaps_rollup").read_text())
    )


def sum_values(values):
    """Adds up dictionaries of the same names."""
    total = {}
    for one in values:
        for name, value in one.items():
            total[name] = total.get(name, 0) + value
    return total


def sum_rollups(pids, root="/proc"):
    return sum_values(read_rollup(pid, root) for pid in pids)


def read_page_tables(pid, root="/proc"):
    """VmPTE and the page of the top level; None without."""
    found = re.search(
        r"^VmPTE:\s+(\d+) kB$",
        Path(f"{root}/{pid}/status").read_text(errors="replace"),
        re.MULTILINE,
    )
    return int(found[1]) * KIB + PAGE_SIZE if found else None


def kernel_stack_size():
    """Of a thread, on kernels without KASAN."""
    if os.uname().machine in ("i386", "i686", "armv7l"):
        return 8 * KIB
    return max(16 * KIB, PAGE_SIZE)


def read_kernel_memory(pid):
    return {
        "page_tables": read_page_tables(pid),
        "kernel_stack": count_threads(pid) * kernel_stack_size(),
    }


def read_statm(pid, root="/proc"):
    """Bytes: size, resident, shared, text, data."""
    fields = Path(f"{root}/{pid}/statm").read_text().split()
    size, resident, shared, text, _, data, _ = (
        int(field) * PAGE_SIZE for field in fields
    )
    return {
        "size": size,
        "resident": resident,
        "shared": shared,
        "text": text,
        "data": data,
    }


def read_stat(pid, root="/proc"):
    """Its fields from the state on. The name may hold anything; it ends at the
    last closing parenthesis."""
    stat = Path(f"{root}/{pid}/stat").read_bytes()
    return stat[stat.rindex(b")") + 2 :].decode().split()


def count_threads(pid, root="/proc"):
    """num_threads of stat."""
    return int(read_stat(pid, root)[17])


def state_of(pid):
    """A letter; None for a process that is no more."""
    try:
        return read_stat(pid)[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


# ---- the test case ----


class IntegrationTest(unittest.TestCase):
    """Starts and ends things, and compares them."""

    maxDiff = None

    def start_shape(self, kind, **options):
        shape = Shape(kind, **options)
        self.addCleanup(shape.stop)
        return shape

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
