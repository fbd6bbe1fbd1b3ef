# SPDX-License-Identifier: MIT
"""Hands collectd's notifications to a program, but no OKAY that ends no alarm.

For collectd's python plugin and Python 3.9 or newer, see notify-python.conf.
The threshold plugin reports OKAY once for each value that it watches, at each
start of collectd: thousands on a host with many groups, and the exec plugin
forks the daemon for each. Here no program is run for these. A program gets the
same text as from the exec plugin, one notification after the other.
"""

import json
import os
import pwd
import queue
import subprocess
import threading

import collectd

WAITING_MOST = 10000
PROGRAM_SECONDS = 60
STOP_SECONDS = 10
SEVERITIES = {
    collectd.NOTIF_FAILURE: "FAILURE",
    collectd.NOTIF_WARNING: "WARNING",
    collectd.NOTIF_OKAY: "OKAY",
}
FIELDS = {
    "Host": "host",
    "Plugin": "plugin",
    "PluginInstance": "plugin_instance",
    "Type": "type",
    "TypeInstance": "type_instance",
}


def format_text(note):
    """As the exec plugin writes it: see collectd-exec(5)."""
    lines = [
        f"Severity: {SEVERITIES[note.severity]}",
        f"Time: {note.time or 0:.3f}",
    ]
    for name, field in FIELDS.items():
        if getattr(note, field):
            lines.append(f"{name}: {getattr(note, field)}")
    lines += [f"{key}: {value}" for key, value in (note.meta or {}).items()]
    return "\n".join(lines) + f"\n\n{note.message}\n"


def find_user(values):
    """What subprocess needs for a program to run as that user; or None."""
    try:
        (name,) = values
        user = pwd.getpwnam(name)
    except (ValueError, KeyError):
        return None
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class Filter:
    def __init__(self):
        self.program, self.user, self.state_file = [], {}, None
        self.is_refused = False  # the configuration has a mistake
        self.alarms = set()
        self.lock = threading.Lock()
        self.waiting = queue.Queue(WAITING_MOST)
        self.thread = threading.Thread(target=self.work, daemon=True)

    def configure(self, block):
        for option in block.children:
            values, key = list(option.values), option.key.lower()
            if key == "program" and values:
                self.program = values
            elif key == "user" and find_user(values):
                self.user = find_user(values)
            elif key == "statefile" and len(values) == 1:
                self.state_file = values[0]
            else:
                # Without the User that was meant programs would run as root.
                self.is_refused = True
                collectd.error(
                    f"notify_filter: {option.key} {values}: expected Program"
                    " with a path and arguments, User with the name of a user,"
                    " or StateFile with a path; nothing is handed on"
                )

    def start(self):
        if not self.program and not self.is_refused:
            self.is_refused = True
            collectd.error(
                "notify_filter: expected Program with a path and arguments;"
                " nothing is handed on"
            )
        if self.is_refused:
            return
        try:
            with open(self.state_file or os.devnull, encoding="utf-8") as file:
                self.alarms = {tuple(alarm) for alarm in json.load(file)}
        except (OSError, ValueError, TypeError):
            pass  # The first start: there is no alarm that could end.
        self.thread.start()

    def save(self):
        if not self.state_file:
            return
        try:
            with open(f"{self.state_file}.new", "w", encoding="utf-8") as file:
                json.dump(sorted(self.alarms), file)
            os.replace(f"{self.state_file}.new", self.state_file)
        except OSError as error:
            collectd.error(f"notify_filter: StateFile: {error}")

    def passes(self, note):
        """Whether it is handed on. One without a type, such as that of a
        capture, is never about a threshold."""
        identifier = tuple(getattr(note, name) or "" for name in FIELDS.values())
        is_okay = note.severity == collectd.NOTIF_OKAY
        if not note.type:
            return True
        with self.lock:
            was_alarm = identifier in self.alarms
            if is_okay == was_alarm:
                self.alarms ^= {identifier}
                self.save()
        return was_alarm or not is_okay

    def take(self, note):
        if self.is_refused or not self.passes(note):
            return
        try:
            self.waiting.put_nowait(format_text(note))
        except queue.Full:
            collectd.error("notify_filter: lost a notification: too many wait")

    def work(self):
        while text := self.waiting.get():
            try:
                subprocess.run(
                    self.program,
                    input=text.encode("utf-8", "surrogateescape"),
                    stdout=subprocess.DEVNULL,
                    timeout=PROGRAM_SECONDS,
                    check=True,
                    **self.user,
                )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                collectd.error(f"notify_filter: Program: {error}")

    def stop(self):
        if not self.thread.is_alive():
            return
        try:
            self.waiting.put(None, timeout=STOP_SECONDS)
        except queue.Full:
            return
        self.thread.join(STOP_SECONDS)


FILTER = Filter()
collectd.register_config(FILTER.configure)
collectd.register_init(FILTER.start)
collectd.register_notification(FILTER.take)
collectd.register_shutdown(FILTER.stop)
