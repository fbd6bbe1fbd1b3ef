# SPDX-License-Identifier: MIT
"""The shipped notify-log, which collectd runs for notifications."""

import subprocess
import unittest

from alerts import NOTIFY_LOG
from harness import DEADLINE_SECONDS, stage


class Programs(unittest.TestCase):
    def test_a_bad_notification_is_one_line_on_stderr(self):
        out = stage().new_directory() / "out"
        good = "Severity: OKAY\nTime: 1.5\n\nhello\n"
        for text, arguments, expected in (
            (good, [], "usage: notify-log FILE"),
            (good, [out, out], "usage: notify-log FILE"),
            ("", [out], 'severity is ""'),
            ("Severity: BAD\nTime: 1\n\nx\n", [out], 'severity is "BAD"'),
            ("Severity: OKAY\n\nx\n", [out], 'time is ""'),
            ("Severity: OKAY\nTime: 09\n\nx\n", [out], 'time is "09"'),
            ("Severity: OKAY\nTime: a[1]\n\nx\n", [out], 'time is "a[1]"'),
            (good, [out.parent / "none/out"], "cannot write to"),
            (good, ["/dev/full"], "cannot write to"),
        ):
            with self.subTest(text=text, arguments=arguments):
                done = run_notify_log(text, *arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("notify-log: "))
                self.assertIn(expected, done.stderr)
                self.assertFalse(out.exists())

    def test_a_notification_is_one_line_whatever_it_holds(self):
        out = stage().new_directory() / "out"
        for text in (
            "Severity: OKAY\nTime: 1200928930\n\n",
            "Severity: WARNING\nTime: 1200928930.515\nHost: a\x1bb\n"
            "Unknown: header\nPlugin: x\n\nfirst\nsecond\r\n\nthird\n",
            "Severity: FAILURE\nTime: 1200928930.5\nHost: h\nPlugin: p q\n"
            "PluginInstance: 1: 2\nType: t\nTypeInstance: $(id) *\n\n%s %d\\n",
        ):
            done = run_notify_log(text, out)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(
            out.read_text().splitlines(),
            [
                "2008-01-21T15:22:10+0000 OKAY  ",
                "2008-01-21T15:22:10.515+0000 WARNING a b/x "
                "first second   third",
                "2008-01-21T15:22:10.5+0000 FAILURE h/p q-1: 2/t-$(id) * "
                "%s %d\\n",
            ],
        )


def run_notify_log(text, *arguments):
    return subprocess.run(
        [NOTIFY_LOG, *arguments],
        input=text,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={"TZ": "UTC", "LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
