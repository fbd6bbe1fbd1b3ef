# SPDX-License-Identifier: MIT
"""Controls the distribution's collectd: its configuration, its values over the
unixsock plugin, its log."""

import socket
import subprocess
import time
from pathlib import Path

from cycle import Cycle

HOME = Path(__file__).resolve().parent
PACKAGE = HOME / "collectd-smaps.deb"
CONTRIB = HOME / "contrib"
CONFIG = Path("/etc/collectd/collectd.conf.d")
DROP_IN = Path("/etc/systemd/system/collectd.service.d/vm.conf")
# Where any user may make it, in no mount of its own (PrivateTmp=).
SOCKET = "/dev/shm/collectd-vm.sock"
# For whatever comes in a second on a machine that is not emulated. Only a
# defect takes so long, even where the host is busy too.
WAIT_SECONDS = 600

# Comes after smaps.conf, because collectd ignores a block that comes before its
# LoadPlugin; an Interval has to come before.
UNIXSOCK = f"""\
LoadPlugin unixsock
<Plugin unixsock>
  SocketFile "{SOCKET}"
</Plugin>
"""


def run(*command, check=True, seconds=WAIT_SECONDS):
    """Runs a command. Returns (exit status, output)."""
    done = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds,
        check=False,
    )
    text = done.stdout.decode("utf-8", "backslashreplace")
    if check and done.returncode != 0:
        raise AssertionError(f"{command} has failed:\n{text}")
    return done.returncode, text


def is_installed():
    status, text = run(
        "dpkg-query", "-W", "-f", "${db:Status-Abbrev}", "collectd-smaps",
        check=False,
    )
    return status == 0 and text.startswith("ii")


def install(package=PACKAGE):
    # apt's own user cannot read the home of root, about which apt warns.
    run("apt-get", "install", "-y", "--no-install-recommends", package)


def configure(options="", interval=None, drop_in=None, more=""):
    """Writes the configuration of an experiment, in the place of the last.
    systemd reads its units again only where it must: under emulation that takes
    it many seconds."""
    for_interval = f"Interval {interval}\n" if interval else ""
    for_smaps = f"<Plugin smaps>\n{options}\n</Plugin>\n" if options else ""
    (CONFIG / "00-vm.conf").write_text(for_interval)
    (CONFIG / "zz-vm.conf").write_text(UNIXSOCK + for_smaps + more + "\n")
    if drop_in == (DROP_IN.read_text() if DROP_IN.exists() else None):
        return
    DROP_IN.unlink(missing_ok=True)
    if drop_in is not None:
        DROP_IN.parent.mkdir(exist_ok=True)
        DROP_IN.write_text(drop_in)
    run("systemctl", "daemon-reload")


def restart():
    run("systemctl", "stop", "collectd")
    run("systemctl", "reset-failed", "collectd", check=False)
    # One that was killed has left it.
    Path(SOCKET).unlink(missing_ok=True)
    # A systemctl that waits has libraries in common with all services while
    # collectd reads these for the first time: they would seem smaller.
    run("systemctl", "start", "--no-block", "collectd")
    end = time.monotonic() + WAIT_SECONDS
    while not Path(SOCKET).exists():
        if time.monotonic() > end:
            raise AssertionError(run("systemctl", "status", "collectd",
                                     check=False)[1])
        time.sleep(0.1)


def show(name, unit="collectd.service"):
    return run("systemctl", "show", "-p", name, "--value", unit)[1].strip()


def main_pid(unit="collectd.service"):
    return int(show("MainPID", unit))


def log():
    """The lines of the plugin since collectd was started. Not by their time:
    somebody may have set the clock."""
    text = run(
        "journalctl", "-o", "cat", "--no-pager",
        f"_SYSTEMD_INVOCATION_ID={show('InvocationID')}",
    )[1]
    return [line for line in text.splitlines() if "smaps plugin:" in line]


class Connection:
    """Speaks the protocol of the unixsock plugin."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(SOCKET)
        self.file = self.socket.makefile("r")

    def close(self):
        self.file.close()
        self.socket.close()

    def ask(self, commands):
        """All commands in one go: the answer to each as lines, or None for an
        error, as that the value has gone."""
        self.socket.sendall("".join(f"{c}\n" for c in commands).encode())
        answers = []
        for _ in commands:
            count = int(self.file.readline().split()[0])
            lines = [self.file.readline().rstrip("\n") for _ in range(count)]
            answers.append(lines if count >= 0 else None)
        return answers

    def list_all(self):
        """Returns [(time, identifier)] of all plugins."""
        (lines,) = self.ask(["LISTVAL"])
        return [line.split(" ", 1) for line in lines or []]

    def list_times(self):
        """Returns {identifier: time} of the plugin's values."""
        return {
            identifier: float(at)
            for at, identifier in self.list_all()
            if split(identifier)[0] is not None
        }


def split(identifier):
    """(group, name) of a value of the plugin, else (None, None)."""
    _, plugin, name = identifier.split("/", 2)
    if plugin != "smaps" and not plugin.startswith("smaps-"):
        return None, None
    return plugin[len("smaps-") :], name


def quote(identifier):
    """Names of units have backslashes."""
    return '"' + identifier.replace("\\", "\\\\") + '"'


def read_cycle(connection, after):
    """The newest interval if it is later than that time. It is read as far as
    it is there, and what there is of it may not change while we read; None when
    it does."""
    before = connection.list_times()
    at = max(before.values(), default=after)
    if at <= after:
        return None
    newest = [name for name, time_ in before.items() if time_ == at]
    answers = connection.ask([f"GETVAL {quote(name)}" for name in newest])
    if connection.list_times() != before:
        return None
    groups = {}
    for identifier, lines in zip(newest, answers):
        group, name = split(identifier)
        if lines is not None:
            values = tuple(float(line.split("=")[1]) for line in lines)
            groups.setdefault(group, {})[name] = values
    # Its own values come last.
    return Cycle(at, groups) if "" in groups else None


def connect():
    try:
        return Connection()
    except OSError:
        return None


def wait_for_plugin(name, seconds=WAIT_SECONDS):
    """Waits for values of that plugin, and returns the names of all plugins
    that have values."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = connect()
        if connection is not None:
            found = {i.split("/")[1] for _, i in connection.list_all()}
            connection.close()
            plugins = {plugin.split("-")[0] for plugin in found}
            if name in plugins:
                return plugins
        time.sleep(0.5)
    raise AssertionError(f"no value of {name} has come for {seconds} s")


def next_cycle(seconds=WAIT_SECONDS, watch=None):
    """Waits for a whole interval whose time is later than now. watch() is
    called all the while."""
    begin = time.time()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if watch:
            watch()
        else:
            time.sleep(0.3)
        connection = connect()
        if connection is None:
            continue
        try:
            cycle = read_cycle(connection, begin)
        except (OSError, ValueError, IndexError):
            cycle = None
        finally:
            connection.close()
        if cycle is not None:
            return cycle
    raise AssertionError(f"no interval has come for {seconds} s")
