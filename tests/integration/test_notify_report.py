# SPDX-License-Identifier: MIT
"""contrib/alerts/notify-report: the mail that it makes of an alarm and of the
notification of a capture. A sendmail of ours takes the mail."""

import email
import email.policy
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness
from capture import CaptureTest
from harness import group, need_root, stage, unprivileged_user, wait_until
from report import CAPTURE, REPORT, STATE, load, run
from server import shipped

PROGRAM = harness.ROOT / "contrib/alerts/notify-report"
OLD = "smaps-20261121T131000Z-postgres.json"
NEW = "smaps-20261121T132100Z-postgres.json"
SENDMAIL = """#!/bin/sh
echo "$*" >"{0}/arguments"
cat >"{0}/mail"
exit "$(cat "{0}/status" 2>/dev/null || echo 0)"
"""


class NotifyReport(unittest.TestCase):
    def setUp(self):
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.programs = self.directory / "bin"
        self.programs.mkdir()
        (self.programs / "smaps-report").symlink_to(REPORT)
        sendmail = self.programs / "sendmail"
        sendmail.write_text(SENDMAIL.format(self.directory))
        sendmail.chmod(0o755)
        self.capture = self.directory / NEW
        shutil.copy(CAPTURE, self.capture)

    def text(self, message):
        """The alarm, and what the notification says."""
        alarm = run("-G", self.capture).text.splitlines()[0]
        self.assertIn("above the warning threshold", alarm)
        return f"{alarm}\n\n{message}\n"

    def notify(self, *addresses, group="postgres", message="PSS 107.4 MiB", **meta):
        lines = {
            "Severity": "OKAY",
            "Time": "1795267262.000",
            "Host": "db1",
            "Plugin": "smaps",
            "PluginInstance": group,
            **meta,
        }
        text = "".join(f"{key}: {value}\n" for key, value in lines.items())
        path = f"{self.programs}:{os.environ['PATH']}"
        return subprocess.run(
            [PROGRAM, *addresses],
            input=f"{text}\n{message}\n".encode(),
            capture_output=True,
            env={**os.environ, "PATH": path},
            timeout=harness.DEADLINE_SECONDS,
            check=False,
        )

    def mail(self, *addresses, **options):
        done = self.notify(*addresses, CaptureFile=self.capture, **options)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, b"", b""))
        return self.last_mail()

    def last_mail(self):
        raw = (self.directory / "mail").read_bytes()
        self.assertLess(max(map(len, raw.split(b"\n"))), 998)
        return email.message_from_bytes(raw, policy=email.policy.default)

    def page(self, mail):
        (part,) = mail.iter_attachments()
        self.assertEqual(part.get_content_type(), "text/html")
        return part.get_filename(), part.get_content()

    def test_the_page_is_attached(self):
        mail = self.mail("ops@example.net", "boss@example.net")
        self.assertEqual(mail["To"], "ops@example.net, boss@example.net")
        self.assertEqual(
            mail["Subject"], "collectd: WARNING: postgres: memory-pss on db1"
        )
        self.assertEqual((self.directory / "arguments").read_text(), "-i -t\n")
        self.assertEqual(
            mail.get_body().get_content(), self.text("PSS 107.4 MiB")
        )
        name, page = self.page(mail)
        self.assertEqual(name, NEW.replace(".json", ".html"))
        self.assertEqual(page, run("html", self.capture).text)

    def assert_compares_with(self, old):
        _, page = self.page(self.mail("ops@example.net"))
        self.assertEqual(page, run("html", self.capture, old).text)

    def keep(self, clock):
        """A capture of 2026-11-21, of another host to tell them apart."""
        path = self.directory / f"smaps-20261121T{clock}Z-postgres.json"
        document = load(CAPTURE)
        document["host"] = clock
        path.write_text(json.dumps(document))
        return path

    def test_a_capture_some_minutes_older_is_compared(self):
        old = self.keep("130000")
        nearest = self.keep("131602")  # 300 s before the notification
        for name in (
            OLD.replace("1000Z", "1603Z"),
            NEW.replace("2100Z", "2050Z"),
            NEW.replace("2100Z", "2200Z"),
            nearest.name.replace("postgres", "other"),
        ):
            (self.directory / name).write_text("not this one")
        self.assert_compares_with(nearest)
        nearest.unlink()
        self.assert_compares_with(old)

    def test_a_state_is_compared_if_no_capture_is_of_the_last_hour(self):
        """The options of smaps-report show which state it was to find."""
        self.keep("122101")  # an hour and a second before
        state = load(STATE)
        state["time"] = 1795266900  # 13:15, five minutes and more before
        state_path = self.directory / "state.json"
        state_path.write_text(json.dumps(state))
        program = self.programs / "smaps-report"
        program.unlink()
        program.write_text(
            f"""#!/bin/sh
case "$1 $2" in
"html --since") [ "$TZ $3" = "UTC0 13:16:02" ] &&
    {REPORT} html -C /nowhere "$2" "$3" "$4" 2>&1 | grep -q '^[^"]*/nowhere: No' &&
    exec {REPORT} html "$4" {state_path} ;;
esac
exec {REPORT} "$@"
"""
        )
        program.chmod(0o755)
        self.assert_compares_with(state_path)

    def test_an_older_capture_is_better_than_none(self):
        old = self.keep("012101")
        self.assert_compares_with(old)
        self.assertIn('"old":{"host":"012101"', run("html", self.capture, old).text)

    def test_an_alarm_is_mailed_without_a_capture(self):
        """With the text of an alarm, and of its end."""
        for severity, message, words in (
            ("FAILURE", "web: killed for memory: 1 process; PSS 4.00 GiB",
             "FAILURE: web: killed for memory: 1 process"),
            ("OKAY", "web: over after 1h00m: a process was killed for memory",
             "OKAY: web: over after 1h00m: a process was killed for memory"),
        ):  # fmt: skip
            with self.subTest(severity):
                done = self.notify(
                    "a@b", group="web", message=message, Severity=severity,
                    Cause="oom_kill",
                )  # fmt: skip
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                mail = self.last_mail()
                self.assertEqual(mail["Subject"], f"collectd: {words} on db1")
                self.assertEqual(mail.get_body().get_content(), f"{message}\n")
                self.assertEqual(list(mail.iter_attachments()), [])

    def test_an_alarm_with_a_capture_says_itself_what_is_wrong(self):
        message = f"web: it grows; capture {self.capture}"
        mail = self.mail(
            "a@b", message=message, Severity="WARNING", Cause="growth"
        )
        self.assertEqual(mail["Subject"], "collectd: WARNING: web: it grows on db1")
        self.assertEqual(mail.get_body().get_content(), f"{message}\n")
        self.assertEqual(len(list(mail.iter_attachments())), 1)

    def test_no_time_is_no_notification(self):
        for text in ("", "x", "a[$(touch /tmp/x)]", "-5"):
            with self.subTest(text):
                done = self.notify("a@b", Cause="growth", Time=text)
                self.assert_fails("its time is", done)

    def test_an_older_capture_that_is_broken_is_left_out(self):
        (self.directory / OLD).write_text("{")
        _, page = self.page(self.mail("ops@example.net"))
        self.assertEqual(page, run("html", self.capture).text)

    def test_a_name_makes_no_header(self):
        group = "a\tb\u00e4\rX-Header: y"
        mail = self.mail("ops@example.net", group=group, message="b\u00e4r\n\n.\nx")
        self.assertTrue(mail["Subject"].endswith("X-Header: y: memory-pss on db1"))
        self.assertTrue((self.directory / "mail").read_bytes().isascii())
        self.assertEqual(set(mail.keys()), {"To", "Subject", "MIME-Version", "Content-Type"})
        self.assertEqual(
            mail.get_body().get_content(), self.text("b\u00e4r\n\n.\nx")
        )

    def test_the_attachment_has_a_name_for_any_system(self):
        for group, want in (
            ("postgresql@15-main.service", "postgresql@15-main.service"),
            ('a"; b=\\x2d:*c', "a___b__x2d__c"),
        ):
            with self.subTest(group):
                self.capture = self.directory / NEW.replace("postgres", group)
                shutil.copy(CAPTURE, self.capture)
                name, page = self.page(self.mail("ops@example.net", group=group))
                self.assertEqual(name, NEW.replace("postgres.json", f"{want}.html"))
                self.assertEqual(page, run("html", self.capture).text)

    def test_other_notifications_are_for_others(self):
        done = self.notify("ops@example.net", Type="memory")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertFalse((self.directory / "mail").exists())

    def assert_fails(self, words, done):
        self.assertEqual(done.returncode, 1)
        self.assertIn(words, done.stderr.decode())

    def test_mistakes(self):
        capture = self.capture
        self.assert_fails("usage: notify-report ADDRESS", self.notify(CaptureFile=capture))
        missing = self.directory / "missing.json"
        self.assert_fails("cannot read", self.notify("a@b", CaptureFile=missing))
        (self.directory / "status").write_text("75")
        self.assert_fails("has not taken the mail", self.notify("a@b", CaptureFile=capture))
        capture.write_text("{")
        self.assert_fails("there is no page", self.notify("a@b", CaptureFile=capture))


class InTheDaemon(CaptureTest):
    """The program runs as another user, with the group of collectd's."""

    def setUp(self):
        need_root("a program of another user")
        super().setUp()
        user = unprivileged_user()
        self.home = stage().new_directory(user)
        for path in (PROGRAM, REPORT):
            shutil.copy(path, self.home)
        sendmail = self.home / "sendmail"
        sendmail.write_text(SENDMAIL.format(self.home))
        sendmail.chmod(0o755)
        self.user = pwd.getpwuid(user[0]).pw_name

    def config(self):
        """Without the program that it runs by default."""
        text = shipped(
            "alerts/notify-exec.conf",
            {
                "# NotificationExec": "NotificationExec",
                "/usr/share/collectd-smaps/bin/notify-report": f"/usr/bin/env\" \"PATH={self.home}:"
                "/usr/bin:/bin\" \"notify-report",
            },
        )
        text = re.sub(r".*notify-log.*\n", "", text)
        return text.replace('"collectd-notify', f'"{self.user}')

    def test_a_capture_is_mailed(self):
        self.start_shape("anon", name="web", mib=4)
        self.start_capturing(
            group("web", 'Comm "web@"'), self.capture(), more=self.config()
        )
        path, document = self.new_capture(plugin_instance="web")
        mail = self.home / "mail"
        wait_until(
            lambda: mail.exists() and mail.read_bytes().endswith(b"--\n"),
            lambda: "a mail; " + "\n".join(self.daemon.log()[-20:]),
        )
        message = email.message_from_bytes(
            mail.read_bytes(), policy=email.policy.default
        )
        self.assertRegex(message["Subject"], "^collectd: WARNING: web on ")
        self.assertIn(str(path), message.get_body().get_content())
        (page,) = message.iter_attachments()
        self.assertEqual(page.get_content(), run("html", path).text)
        (one,) = document["processes"]
        self.assertIn('"scope":"web"', page.get_content())
        self.assertIn(f'[[{one["pid"]},', page.get_content())

    def wait_for_subject(self, start):
        mail = self.home / "mail"

        def subject():
            text = mail.read_bytes() if mail.exists() else b""
            found = str(email.message_from_bytes(text)["Subject"])
            return text.endswith(b"--\n") and found.startswith(start)

        wait_until(
            subject, lambda: "a mail; " + "\n".join(self.daemon.log()[-20:])
        )
        return email.message_from_bytes(
            mail.read_bytes(), policy=email.policy.default
        )

    def test_the_end_of_a_service_and_its_return_are_mailed(self):
        shape = self.start_shape("anon", name="web", mib=4)
        block = group("web", 'Comm "web@"', "<Alarms>\nEnded true\n</Alarms>")
        self.start_capturing(block, more=self.config())
        shape.stop()
        mail = self.wait_for_subject("collectd: FAILURE: web: ")
        self.assertEqual(list(mail.iter_attachments()), [])
        self.start_shape("anon", name="web", mib=4)
        self.wait_for_subject("collectd: OKAY: web: over after ")
