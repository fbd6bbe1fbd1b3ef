# SPDX-License-Identifier: MIT
"""notify-syslog.conf writes notifications to syslog, where Debian's configuration
of collectd shows none."""

import os
import re
import socket

from alerts import GROUPS, ThresholdTest
from harness import need_namespace, need_root, stage, wait_until
from server import BackendTest, need_plugin, shipped

# A /dev of its own, in which we listen as a syslog daemon does.
IN_DEVICES = 'mount --rbind "$0" /dev && mount --bind "$1" /dev/null; shift; exec "$@"'

# As in Debian's collectd.conf, 5.12.0-14.
OF_DEBIAN = """
LoadPlugin syslog
<Plugin syslog>
  LogLevel info
</Plugin>
"""
LIMIT = """
LoadPlugin threshold
<Plugin threshold>
  <Plugin smaps>
    Instance "postgres"
    <Type ps_count>
      DataSource "processes"
      WarningMin 2
    </Type>
  </Plugin>
</Plugin>
"""


class Syslog(BackendTest):
    def listen(self):
        """Returns a directory that can stand for /dev."""
        directory = stage().new_directory()
        (directory / "null").touch()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.bind(str(directory / "log"))
        self.socket.setblocking(False)
        self.lines = []
        return directory

    def received(self, pattern):
        try:
            while True:
                self.lines.append(self.socket.recv(65536).decode())
        except BlockingIOError:
            return [line for line in self.lines if re.search(pattern, line)]

    def start(self, more):
        need_plugin("syslog")
        need_root("to listen as syslog")
        need_namespace(["--mount"])
        self.start_shape("anon", name="postgres", mib=1)
        wrapper = ["unshare", "--mount", "sh", "-c", IN_DEVICES, self.listen(), os.devnull]
        return self.start_daemon(
            ThresholdTest.TIMEOUT + OF_DEBIAN + GROUPS + LIMIT + more,
            interval=0.1,
            wrapper=wrapper,
        )

    def test_an_alert_is_in_syslog(self):
        self.start(shipped("alerts/notify-syslog.conf"))
        line, *_ = wait_until(
            lambda: self.received("Notification: "), "a line in syslog"
        )
        self.assertRegex(
            line,
            r"collectd\[\d+\]: Notification: severity = WARNING, host = test, "
            "plugin = smaps, plugin_instance = postgres, type = ps_count, message = ",
        )

    def test_without_it_debian_shows_none(self):
        """The alarm is raised in the first intervals."""
        self.start("").wait_cycles(10)
        self.assertTrue(self.received("smaps plugin: version"))
        self.assertEqual(self.received("Notification: "), [])
