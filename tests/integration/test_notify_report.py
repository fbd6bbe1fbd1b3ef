"""contrib/alerts/notify-report: the mail that it makes of the notification of a
capture. A sendmail of ours takes the mail."""

import email
import email.policy
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
from report import CAPTURE, REPORT, load, run
from server import shipped

PROGRAM = harness.ROOT / "contrib/alerts/notify-report"
OLD = "smaps-20261121T132000Z-postgres.json"
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
        self.assertEqual(mail["Subject"], "collectd: memory of postgres on db1")
        self.assertEqual((self.directory / "arguments").read_text(), "-i -t\n")
        self.assertEqual(
            mail.get_body().get_content(), self.text("PSS 107.4 MiB")
        )
        name, page = self.page(mail)
        self.assertEqual(name, NEW.replace(".json", ".html"))
        self.assertEqual(page, run("html", self.capture).text)

    def test_the_capture_before_is_compared(self):
        older = load(CAPTURE)["host"]
        shutil.copy(CAPTURE, self.directory / OLD)
        for name in (
            OLD.replace("2000Z", "1900Z"),
            OLD.replace("postgres", "other"),
            NEW.replace("2100Z", "2200Z"),
        ):
            (self.directory / name).write_text("not this one")
        _, page = self.page(self.mail("ops@example.net"))
        want = run("html", self.capture, self.directory / OLD).text
        self.assertEqual(page, want)
        self.assertIn(f'"old":{{"host":"{older}"', page)

    def test_an_older_capture_that_is_broken_is_left_out(self):
        (self.directory / OLD).write_text("{")
        _, page = self.page(self.mail("ops@example.net"))
        self.assertEqual(page, run("html", self.capture).text)

    def test_a_name_makes_no_header(self):
        group = "a\tb\u00e4\rX-Header: y"
        mail = self.mail("ops@example.net", group=group, message="b\u00e4r\n\n.\nx")
        self.assertTrue(mail["Subject"].endswith("X-Header: y on db1"))
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
        self.assertIn("memory of web on", message["Subject"])
        self.assertIn(str(path), message.get_body().get_content())
        (page,) = message.iter_attachments()
        self.assertEqual(page.get_content(), run("html", path).text)
        (one,) = document["processes"]
        self.assertIn('"scope":"web"', page.get_content())
        self.assertIn(f'[[{one["pid"]},', page.get_content())
