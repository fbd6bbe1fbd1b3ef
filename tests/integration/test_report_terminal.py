# SPDX-License-Identifier: MIT
"""smaps-report on a terminal, and hostile, broken and large documents."""

import errno
import fcntl
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import termios
import unittest

import harness
from report import (
    CAPTURE,
    KIB,
    MIB,
    REPORT,
    STATE,
    ReportTest,
    environment,
    load,
    run,
)

# With sanitizers the address space of the program does not show its memory.
IS_SANITIZED = REPORT.exists() and b"__asan_init" in REPORT.read_bytes()


class Terminal(ReportTest):
    """The report is printed on a pseudo terminal."""

    def show(self, *args, columns=60, **env):
        master, slave = pty.openpty()
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        process = subprocess.Popen(
            [REPORT, *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=slave,
            env=environment(**env),
        )
        os.close(slave)
        output = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError as error:
                self.assertEqual(error.errno, errno.EIO)
                break
            if not piece:
                break
            output += piece
        os.close(master)
        self.assertEqual(process.wait(), 0)
        return output.decode().replace("\r\n", "\n")

    def test_lines_are_cut_to_the_width(self):
        for columns in (20, 60, 200):
            with self.subTest(columns):
                text = self.show("--processes", STATE, columns=columns, NO_COLOR="1")
                widths = [len(line) for line in text.splitlines()]
                self.assertLessEqual(max(widths), columns)
                if columns < 100:
                    self.assertEqual(max(widths), columns)
        text = self.show("--processes", STATE, columns=60, COLUMNS="70", NO_COLOR="1")
        self.assertEqual(max(map(len, text.splitlines())), 70)

    def test_without_a_terminal_nothing_is_cut(self):
        document = load(STATE)
        document["processes"][0]["command_line"] = "x" * 3000
        path = self.write(document)
        self.assertIn("x" * 3000, self.report(path))

    def test_names_are_cut_in_the_middle(self):
        """Beside 39 columns, names of groups have 13 characters at most."""

        def names(*args, **env):
            text = self.report("-GH", *args, STATE, env=environment(**env))
            self.assertIn("  by-alice\n", text)
            return [line.split()[-1] for line in text.splitlines()]

        self.assertIn("nginx.service", names())
        self.assertIn("nginx.service", names("--width", 55))
        self.assertIn("nginx…ervice", names("--width", 54))
        self.assertIn("nginx…rvice", names("--width", 53))
        self.assertIn("nginx…rvice", names(COLUMNS="53"))
        self.assertIn("nginx.service", names("--width", 0, COLUMNS="53"))
        self.assertIn("ngin..rvice", names("--width", 53, LC_ALL="C"))
        self.assertIn("by-p…tgres", names("--width", 52))

    def test_colour_is_for_terminals_that_want_it(self):
        self.assertIn("\x1b[1m", self.show(STATE))
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}):
            self.assertNotIn("\x1b", self.show(STATE, **env))
        self.assertIn("\x1b[1m", self.show(STATE, NO_COLOR=""))
        self.assertNotIn("\x1b", self.report(STATE))

    def test_names_do_not_command_the_terminal(self):
        hostile = (
            "\x1b]0;t\x07\x1b[2J\r\n\t\x7f\u009b2J"
            "\u202e\u2066\u200b\ufeff\U000e0041"
        )
        document = load(STATE)
        for process in document["processes"]:
            for name in (
                "comm", "command_line", "exe", "user", "unit", "cgroup",
            ):  # fmt: skip
                process[name] = hostile + name
            process["groups"] = [hostile]
            process["source"] = process["deferred"] = hostile
        document["rules"] = [hostile] * 6
        document["host"] = hostile
        document["groups"].append({"name": hostile, "rule": 0})
        document["trigger"]["message"] = hostile
        path = self.write(document)
        names = "comm,command,exe,user,unit,cgroup,group,rule,source,deferred"
        for args in (
            [path], ["-u", path], ["--processes", "-c", names, path],
            ["-j", path],
            ["explain", path], ["folded", path], ["diff", STATE, path],
            ["diff", "-j", STATE, path],
        ):  # fmt: skip
            with self.subTest(args[0]):
                text = run(*args).text
                self.assertNotRegex(
                    text,
                    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e"
                    "\u2066-\u2069\ufeff\U000e0000-\U000e007f]",
                )
        self.assertIn("\\x1b]0;t\\x07", run(path).text)
        names = [r.get("group") for r in self.json("-G", path)]
        self.assertIn(hostile, names)


class Broken(ReportTest):
    def test_mistakes_are_one_line_with_the_file(self):
        whole = STATE.read_bytes()
        for name, data, words in (
            ("empty", b"", "is empty"),
            ("truncated", whole[: len(whole) // 2], "ends at byte"),
            ("text", b"PID USER\n", "not a snapshot: not valid JSON"),
            ("foreign", b'{"groups":[]}', "not a snapshot of the smaps plugin"),
            ("future", whole.replace(b'"version": 2', b'"version": 3', 1),
             "format version 3, but this program reads version 2"),
            ("type", whole.replace(b'"pid": 700', b'"pid": "700"', 1),
             "processes[1].pid: expected a whole number"),
            ("deep", b'{"a":' + b"[" * (5 << 20), "the nesting before byte"),
            ("binary", bytes(range(256)) * 100, "not valid JSON"),
        ):  # fmt: skip
            with self.subTest(name):
                path = self.write(data)
                for command in ([], ["explain"], ["folded"]):
                    done = self.assert_fails(words, *command, path)
                    self.assertIn(str(path), done.words)
                    self.assertEqual(done.text, "")
                self.assert_fails(words, "diff", STATE, path)
                self.assert_fails(words, "diff", path, STATE)

    def test_files_that_cannot_be_read(self):
        self.assert_fails("No such file", self.directory / "none")
        self.assert_fails("cannot be read: Is a directory", self.directory)
        self.assert_fails("standard input: is empty", "-")
        done = self.assert_fails("No such file", "a\x1b[2J\nb")
        self.assertIn("a\\x1b[2J\\x0ab", done.words)

    def test_columns_are_listed(self):
        self.assertIn("comm               processes\n", self.report("-c", "help"))
        amounts = self.report("diff", "-c", "help").split()
        self.assertEqual(amounts[:2], ["pss", "uss"])
        for amount in amounts:
            self.report("diff", "-s", amount, STATE, STATE)
        self.assertNotIn("comm", amounts)

    def test_help_and_version_are_printed(self):
        for command in (
            [], ["explain"], ["diff"], ["folded"], ["html"], ["live"], ["check"]
        ):  # fmt: skip
            text = self.report(*command, "--help")
            self.assertIn("Usage: smaps-report", text)
            for line in text.splitlines():
                self.assertEqual(line, line.rstrip())
                self.assertLess(len(line), 80, line)
                if "  --" in line or ", --" in line:
                    self.assertRegex(line, r"^.{27}  \S", line)
            self.assertRegex(
                self.report(*command, "--version"), r"^smaps-report \d+\.\d+"
            )

    def test_manual_has_every_option(self):
        manual = (harness.ROOT / "contrib/man/smaps-report.1").read_text()
        manual = manual.replace("\\-", "-")
        for command in ([], ["diff"], ["live"]):
            help_ = self.report(*command, "--help")
            for name in re.findall(r"--([a-z-]+)", help_):
                self.assertRegex(manual, rf"(\\|-|, -){name}\b", name)

    def test_full_disk_is_an_error(self):
        for args in (
            [STATE], ["-j", STATE], ["folded", STATE], ["explain", STATE],
            ["diff", STATE, CAPTURE], ["--help"],
        ):  # fmt: skip
            with self.subTest(args), open("/dev/full", "wb") as full:
                done = subprocess.run(
                    [REPORT, *args], stdout=full, stderr=subprocess.PIPE
                )
                self.assertEqual(done.returncode, 2)
                self.assertIn(b"cannot write: No space left", done.stderr)

    def test_closed_pipe_is_quiet(self):
        for ignored in (False, True):
            read, write = os.pipe()
            os.close(read)
            done = subprocess.run(
                [REPORT, STATE],
                stdout=write,
                stderr=subprocess.PIPE,
                restore_signals=not ignored,
            )
            os.close(write)
            self.assertEqual(done.stderr, b"")
            self.assertEqual(done.returncode, 2 if ignored else -signal.SIGPIPE)


class Large(ReportTest):
    def write_large(self, megabytes):
        """Processes as the plugin writes them, of a kilobyte each."""
        process = load(STATE)["processes"][1]
        amounts = self.report("-c", "help").split("\npermissions")[0]
        names = [line.split()[0] for line in amounts.splitlines()][:29]
        path = self.directory / "large.json"
        size = 0
        with open(path, "w") as file:
            head = {**load(STATE), "processes": []}
            file.write(json.dumps(head)[:-2])
            pid = 0
            while size < megabytes * 1000000:
                pid += 1
                process["pid"] = pid
                process["command_line"] = f"worker {pid} " * 10
                process["usage"] = {
                    name: pid * KIB + i for i, name in enumerate(names)
                }
                size += file.write("," if pid > 1 else "")
                size += file.write(json.dumps(process))
            file.write("]}")
        return path, pid

    @unittest.skipIf(IS_SANITIZED, "the sanitizer needs more address space")
    def test_memory_is_in_proportion_to_the_document(self):
        path, count = self.write_large(20)
        limit = 40 * MIB

        def bound():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        for args in (["-t"], ["-u"], ["-j"], ["folded"], ["explain"]):
            with self.subTest(args):
                done = run(*args, path, preexec_fn=bound)
                self.assertEqual((done.returncode, done.words), (0, ""))
        lines = self.report("--processes", "-H", "-c", "pid", path).splitlines()
        self.assertEqual(len(lines), count)

    @unittest.skipIf(IS_SANITIZED, "the sanitizer needs more address space")
    def test_out_of_memory_is_an_error_and_not_a_crash(self):
        path, _ = self.write_large(20)
        for mebibytes in (5, 8, 12, 16):

            def bound():
                limit = mebibytes * MIB
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

            done = run(path, preexec_fn=bound)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("out of memory", done.words)
