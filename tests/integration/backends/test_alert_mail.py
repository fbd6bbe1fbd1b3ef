# SPDX-License-Identifier: MIT
"""notify-email.conf sends notifications as mail."""

import email
import re
import socketserver
import threading

from alerts import GROUPS, ThresholdTest, line_about
from harness import stage, wait_until
from server import BackendTest, free_port, need_plugin, shipped


class Mailbox(socketserver.ThreadingTCPServer):
    """A mail server that takes what it gets: mails are (from, to, text)."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", port), SmtpSession)
        self.mails = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class SmtpSession(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as a client needs to deliver mail."""

    def handle(self):
        self.answer("220 localhost ESMTP")
        self.sender, self.recipients = None, []
        for line in self.rfile:
            text = line.decode().strip()
            if self.do_command(text.upper(), text) == "QUIT":
                return

    def do_command(self, command, text):
        if command.startswith("MAIL FROM:"):
            self.sender, self.recipients = address_in(text), []
        elif command.startswith("RCPT TO:"):
            self.recipients.append(address_in(text))
        elif command == "DATA":
            self.answer("354 go on")
            mail = (self.sender, self.recipients, self.read_data())
            self.server.mails.append(mail)
        elif command == "QUIT":
            self.answer("221 bye")
            return "QUIT"
        elif not command.startswith(("EHLO", "HELO", "RSET", "NOOP")):
            self.answer("502 not implemented")
            return None
        self.answer("250 OK")
        return None

    def read_data(self):
        lines = []
        for line in self.rfile:
            if line == b".\r\n":
                break
            lines.append(line.removeprefix(b"."))
        return email.message_from_bytes(b"".join(lines))

    def answer(self, line):
        self.wfile.write(line.encode() + b"\r\n")


def address_in(text):
    return re.search(r"<(.*?)>", text).group(1)


class Mail(BackendTest):
    def start_mailing(self, mailbox, more):
        """One value only has a limit, of two processes: each notification is a
        mail."""
        need_plugin("notify_email")
        mail = shipped(
            "alerts/notify-email.conf",
            {
                '"localhost"': '"127.0.0.1"',
                "SMTPPort 25": f"SMTPPort {mailbox.server_address[1]}",
            },
        )
        limits = """
        LoadPlugin threshold
        <Plugin threshold>
          <Plugin smaps>
            Instance "postgres"
            <Type ps_count>
              DataSource "processes"
              FailureMin 2
            </Type>
          </Plugin>
        </Plugin>
        """
        return self.start_daemon(
            ThresholdTest.TIMEOUT + GROUPS + more + limits + mail,
            interval=0.1,
        )

    def test_an_alarm_and_its_capture_are_a_mail_each(self):
        """The second names the largest processes."""
        mailbox = Mailbox(free_port())
        self.addCleanup(mailbox.close)
        shape = self.start_shape("anon", name="postgres", mib=60)
        directory = stage().new_directory() / "captures"
        daemon = self.start_mailing(
            mailbox,
            "<Plugin smaps>\n<Capture>\n"
            f'Directory "{directory}"\n</Capture>\n</Plugin>\n',
        )
        wait_until(lambda: len(mailbox.mails) >= 2, "two mails")
        daemon.wait_cycles(len(daemon.times()) + 5)
        self.assertEqual(len(mailbox.mails), 2)
        texts = []
        for mail, severity in zip(mailbox.mails, ("FAILURE", "OKAY")):
            sender, recipients, message = mail
            self.assertEqual(sender, "collectd@example.net")
            self.assertEqual(recipients, ["ops@example.net"])
            self.assertEqual(
                message["Subject"], f"collectd: {severity} on test"
            )
            texts.append(message.get_payload())
            self.assertIn("Plugin instance: postgres", texts[-1])
        self.assertIn("Type: ps_count", texts[0])
        self.assertIn('"processes" is', texts[0].replace(" currently", ""))
        (path,) = directory.glob("*.json")
        self.assertRegex(
            texts[1], re.escape(f"capture {path}") + line_about(shape)
        )
