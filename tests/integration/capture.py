# SPDX-License-Identifier: MIT
"""Alarms for the real daemon, and the captures that it makes of them."""

import os
import pwd
import shutil
import time
from pathlib import Path

import snapshot
from harness import TAG, plugin, stage, unprivileged_user, wait_until
from server import BackendTest

# After an alarm that is to come to nothing.
CYCLES_TO_BE_SURE = 3


class Alarms:
    """A program of the exec plugin that notifies of whatever we write into a
    pipe, and one that files each notification that there is."""

    FILE_IT = """#!/bin/sh
t=$(mktemp "$1/.XXXXXX") && cat >"$t" && mv "$t" "$1/${t##*/.}"
"""

    def __init__(self):
        user = unprivileged_user()
        self.name = pwd.getpwuid(user[0]).pw_name
        self.directory = stage().new_directory(user)
        self.filed = self.directory / "filed"
        self.filed.mkdir()
        os.chown(self.filed, *user)
        self.script = self.directory / "file-it"
        self.script.write_text(self.FILE_IT)
        self.script.chmod(0o755)
        self.pipe = self.directory / "pipe"
        os.mkfifo(self.pipe, 0o644)
        os.chown(self.pipe, *user)
        # Both ends, so that neither opening it nor a daemon's end closes it.
        self.fd = os.open(self.pipe, os.O_RDWR)
        self.count = 0

    def config(self):
        cat = shutil.which("cat")
        return f"""
            LoadPlugin exec
            <Plugin exec>
              Exec "{self.name}" "{cat}" "{self.pipe}"
              NotificationExec "{self.name}" "{self.script}" "{self.filed}"
            </Plugin>
        """

    def notify(self, **fields):
        """Returns a word by which the notification is known in the log."""
        self.count += 1
        word = f"alarm-{self.count}-"
        fields = {
            "host": "test",
            "plugin": "smaps",
            "severity": "warning",
            "time": f"{time.time():.3f}",
            **fields,
        }
        options = " ".join(
            f'{key}="{value}"' for key, value in fields.items() if value
        )
        line = f'PUTNOTIF {options} message="{word}"\n'
        os.write(self.fd, line.encode())
        return word

    def notifications(self):
        """Returns the notifications that were filed, as ({header: value},
        message)."""
        found = []
        for path in self.filed.iterdir():
            if path.name.startswith("."):
                continue
            head, _, message = path.read_text().partition("\n\n")
            lines = (line.partition(": ") for line in head.splitlines())
            found.append(({key: value for key, _, value in lines}, message))
        return found

    def announced(self):
        """Returns the plugin's own notifications, the oldest first."""
        own = [
            (headers, message)
            for headers, message in self.notifications()
            if "CaptureFile" in headers
        ]
        return sorted(own, key=lambda one: one[0]["CaptureFile"])

    def close(self):
        os.close(self.fd)


def threshold(group_name, limit, *more, severity="Warning", type_="memory"):
    instance = 'Instance "pss"' if type_ == "memory" else ""
    return f"""
        LoadPlugin threshold
        <Plugin threshold>
          <Plugin smaps>
            Instance "{group_name}"
            <Type {type_}>
              {instance}
              {severity}Max {limit}
              {' '.join(more)}
            </Type>
          </Plugin>
        </Plugin>
    """


class CaptureTest(BackendTest):
    """`self.directory` is where captures go: the path that the daemon gets,
    which is also ours."""

    def setUp(self):
        self.directory = stage().new_directory() / "captures"
        self.alarms = Alarms()
        self.addCleanup(self.alarms.close)

    def capture(self, *options, directory=None):
        """Returns the block of captures. Cooldown is 0 unless it is given."""
        lines = [f'Directory "{directory or self.directory}"', *options]
        if not any(line.startswith("Cooldown") for line in options):
            lines.append("Cooldown 0")
        return "\n".join(["<Capture>", *lines, "</Capture>"])

    def start_capturing(self, *lines, more="", **options):
        """The lines are from our block. Alarms are those of the test alone."""
        text = plugin("Alarms false", *lines).replace("@", TAG)
        # Where a machine is busy an interval may come late, and the threshold
        # plugin would send a failure for a value that is missing.
        self.daemon = self.start_daemon(
            "Timeout 1000\nLoadPlugin smaps\n"
            + text
            + more
            + self.alarms.config(),
            interval=options.pop("interval", 0.1),
            **options,
        )
        self.daemon.wait_cycles(2)
        return self.daemon

    def files(self, directory=None):
        """Sorted by name, and so by time."""
        directory = directory or self.directory
        return sorted(Path(directory).glob("*.json"))

    def files_before(self):
        """A capture replaces another of the same second."""
        before = set(self.files())
        if before:
            time.sleep(1)
        return before

    def wait_files(self, count, directory=None):
        def find():
            self.daemon.check_running()
            files = self.files(directory)
            return len(files) >= count and files

        files = wait_until(
            find,
            lambda: f"{count} captures; " + "\n".join(self.daemon.log()[-20:]),
        )
        return [snapshot.read(path) for path in files]

    def new_capture(self, **fields):
        """Raises an alarm, and returns what comes of it."""
        before = self.files_before()
        self.alarms.notify(**fields)
        wait_until(
            lambda: set(self.files()) - before,
            lambda: "a capture; " + "\n".join(self.daemon.log()[-20:]),
        )
        (path,) = set(self.files()) - before
        return path, snapshot.read(path)

    def announced(self):
        return self.alarms.announced()

    def wait_announced(self):
        """Until each capture has its notification."""
        return wait_until(
            lambda: len(self.announced()) == len(self.files()) and self.announced(),
            "our own notification",
        )

    def pass_cycles(self, count=CYCLES_TO_BE_SURE):
        self.daemon.wait_cycles(len(self.daemon.times()) + count)
