# SPDX-License-Identifier: MIT
"""The ground of the tests of backends: real servers, and a collectd with
further plugins of its own next to ours.

Server is a program in the foreground with a directory and a log of its own;
Daemon is a collectd whose configuration is that of a file in contrib/, adapted
to this run; fetch() is an HTTP request.
"""

import re
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

import harness
from harness import (  # noqa: F401  (some for those who import us)
    DEADLINE_SECONDS,
    ROOT,
    TAG,
    Collectd,
    HarnessError,
    IntegrationTest,
    free_port,
    group,
    need_program,
    plugin,
    stage,
    wait_until,
)

# The packages of libraries that collectd's own plugins are linked with, although
# no package asks for them (contrib/deps).
PLUGIN_LIBRARIES = {
    "mqtt": "libmosquitto1",
    "network": "libgcrypt20",
    "notify_email": "libesmtp6",
    "write_http": "libcurl3-gnutls",
    "write_prometheus": "libmicrohttpd12 and libprotobuf-c1",
}


def load_smaps(*options):
    """Returns the configuration of our plugin in a Daemon."""
    return f"LoadPlugin smaps\n{plugin(*options)}\n"


def shape_group(comm, name=None, *options):
    """A group of the shapes of that name, in a Daemon."""
    return group(name or comm, f'Comm "{comm}{TAG}"', *options)


def need_plugin(name):
    """Skips the test if one of collectd's own plugins cannot be loaded: it may
    be in another package, or its libraries may be missing."""
    path = harness.system_plugin_dir() / f"{name}.so"
    if not path.is_file():
        raise unittest.SkipTest(f"needs {name}.so of collectd")
    text = subprocess.run(
        ["ldd", path], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    missing = re.findall(r"(\S+) => not found", text)
    if missing:
        package = PLUGIN_LIBRARIES.get(name, f"the libraries of {name}.so")
        raise unittest.SkipTest(f"needs {package}: {', '.join(missing)}")
    return path


def shipped(name, replacements=None):
    """The text of a file of contrib/ for this run: {what it says: instead}.
    Text to be replaced must be there."""
    path = ROOT / "contrib" / name
    text = path.read_text()
    for old, new in (replacements or {}).items():
        if old not in text:
            raise HarnessError(f'{path} has no "{old}" to replace')
        text = text.replace(old, str(new))
    return text


def fetch(url, data=None, headers=None):
    """Sends a GET, or a POST of data (bytes). Returns (status, headers, body).
    """
    request = urllib.request.Request(url, data=data, headers=headers or {})
    # Servers on this host are never behind a proxy of the environment.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


class Server:
    """A program that stays in the foreground. `directory` is where it runs and
    logs to; its standard output and error are the file "log" there."""

    def __init__(
        self,
        command,
        *,
        directory=None,
        env=None,
        user=None,
        stop_signal=signal.SIGTERM,
    ):
        self.directory = directory or stage().new_directory(user)
        self.stop_signal = stop_signal
        self.name = str(command[0])
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=env,
                preexec_fn=harness.end_with_parent,
                **harness.as_user(user),
            )

    def wait_ready(self, condition, what="ready"):
        """Waits until condition() is true. Refused connections mean no."""

        def check():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} has ended{self.log_tail()}")
            try:
                return condition()
            except OSError:
                return False

        return wait_until(
            check, lambda: f"{self.name} to be {what}{self.log_tail()}"
        )

    def wait_port(self, port):
        def connect():
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True

        self.wait_ready(connect, f"listening on port {port}")

    def wait_url(self, url, status=200):
        self.wait_ready(lambda: fetch(url)[0] == status, f"answering {url}")

    def log(self):
        return (self.directory / "log").read_text(errors="backslashreplace")

    def log_tail(self):
        return "; its log:\n" + "\n".join(self.log().splitlines()[-20:])

    def stop(self):
        if self.stop_signal != signal.SIGTERM:
            self.process.send_signal(self.stop_signal)
        return harness.end_process(self.process)


class Daemon(Collectd):
    """A collectd of which the body is the whole configuration but for the
    global options: it has to load what it uses, smaps too. Stock plugins are
    taken from where collectd is installed. It writes CSV files as all others
    do; values(host, plugin) reads what it wrote for another host or plugin.

    An @ is left alone here: names of shapes are put in with harness.TAG.
    """

    def complete(self, body):
        return harness.patient(body) if "smaps" in loaded_plugins(body) else body

    def plugin_dir(self, text):
        """The stage's, and what the text loads: regular files, no links."""
        plugin_dir = self.directory / "plugins"
        shutil.copytree(stage().plugin_dir, plugin_dir)
        for name in loaded_plugins(text):
            if not (plugin_dir / f"{name}.so").exists():
                shutil.copy(need_plugin(name), plugin_dir)
        return plugin_dir


def loaded_plugins(body):
    """LoadPlugin name, and the block <LoadPlugin name>."""
    pattern = r'^\s*<?LoadPlugin\s+"?(\w+)'
    return re.findall(pattern, body, re.MULTILINE | re.IGNORECASE)


class BackendTest(IntegrationTest):
    def start_server(self, command, **options):
        server = Server(command, **options)
        self.addCleanup(server.stop)
        return server

    def start_daemon(self, body, **options):
        daemon = Daemon(body, **options)
        self.addCleanup(daemon.stop)
        return daemon
