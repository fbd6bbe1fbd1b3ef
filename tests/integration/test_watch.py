# SPDX-License-Identifier: MIT
"""Runs smaps-report live --watch in a terminal that a terminal emulator (pyte)
draws. The tests check the screen, the keys, and the terminal after the end."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import harness
from test_hang import Hung
from test_live import LiveTest
from report import REPORT, environment, run

try:
    import pyte
except ImportError:
    pyte = None

ESCAPE, ENTER, BACKSPACE = "\x1b", "\r", "\x7f"
DOWN, UP = "\x1bOB", "\x1bOA"
LEAVES_THE_SCREEN = b"\x1b[?1049l"


class Terminal:
    """Runs the program in a terminal of its own. Its output is drawn, and kept
    in `raw`. TERM is screen, because pyte does not know all that xterm does."""

    def __init__(
        self, test, *args, columns=80, lines=24, program=(REPORT,), **env
    ):
        self.raw = b""
        self.master, self.slave = os.openpty()
        self.emulator = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.emulator)
        self.set_size(columns, lines)
        self.settings = self.stty()
        self.process = subprocess.Popen(
            [*program, "live", *map(str, args)],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=environment(**{"TERM": "screen", **env}),
            start_new_session=True,
            preexec_fn=lambda: (
                fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                # Ignored by whoever is started in the background.
                signal.signal(signal.SIGINT, signal.SIG_DFL),
                signal.signal(signal.SIGQUIT, signal.SIG_DFL),
            ),
        )
        test.addCleanup(self.close)

    def set_size(self, columns, lines):
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, size)

    def resize(self, columns, lines):
        self.read(0)
        self.emulator.resize(lines, columns)
        self.set_size(columns, lines)

    def stty(self):
        return subprocess.check_output(["stty", "-g"], stdin=self.slave)

    def read(self, seconds):
        """Draws what has come, waiting so long for the first of it."""
        while select.select([self.master], [], [], seconds)[0]:
            data = os.read(self.master, 65536)
            self.raw += data
            self.stream.feed(data)
            seconds = 0

    def press(self, keys):
        os.write(self.master, keys.encode())

    @property
    def lines(self):
        return [line.rstrip() for line in self.emulator.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def selected(self):
        """Returns the row in reverse video."""
        for number, row in enumerate(self.lines):
            if self.emulator.buffer[number][0].reverse:
                return row
        return ""

    def wait(self, condition, what):
        def is_so():
            self.read(0.05)
            if self.process.poll() is not None:
                raise AssertionError(f"ended, not {what}:\n{self.text}")
            return condition()

        try:
            harness.wait_until(is_so, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text}") from None

    def wait_for(self, pattern):
        self.wait(lambda: re.search(pattern, self.text), pattern)
        return re.search(pattern, self.text)

    def wait_end(self):
        harness.wait_until(
            lambda: (self.read(0.05), self.process.poll())[1] is not None,
            "the end",
        )
        self.read(0)
        return self.process.returncode

    def close(self):
        harness.end_process(self.process)
        for end in (self.master, self.slave):
            if end is not None:
                os.close(end)


@unittest.skipUnless(pyte, "needs python3-pyte")
class WatchTest(LiveTest):
    def config(self, *names, more=""):
        groups = (
            f'<Group "{name}">\nComm "{name}{harness.TAG}"\n</Group>\n'
            for name in names
        )
        return self.configure(f"{''.join(groups)}\n{more}")

    def watch(self, config, *args, **options):
        return Terminal(
            self, "-C", config, "--watch", "0.5", *args, **options
        )

    def two(self, **options):
        """Two groups, of which "big" is shown first."""
        self.big = self.start_shape("anon", name="big", mib=24)
        self.small = self.start_shape("anon", name="small", mib=8)
        terminal = self.watch(self.config("small", "big"), **options)
        terminal.wait_for(r"(?s) big\n.* small\n")
        return terminal


class Screen(WatchTest):
    def test_groups_are_shown_by_pss(self):
        terminal = self.two()
        host, path, titles, big, small, *_, foot = terminal.lines
        self.assertRegex(
            host,
            r"\d\d:\d\d:\d\d  every 0\.5 s  memory [\d.]+[MGT], "
            r"available [\d.]+[MGT]  read \d+ of \d+",
        )
        self.assertEqual(path, "groups  2")
        self.assertEqual(
            titles.split(),
            [">PSS", "USS", "RSS", "SWAP", "+START", "+LAST", "PROCS", "GROUP"],
        )
        self.assertRegex(big, r"^ *24\.\dM~? .* 1 big$")
        self.assertRegex(small, r"^ *8\.\d+M~? .* 1 small$")
        self.assertIn("q: end", foot)
        self.assertIn(" big", terminal.selected())

    def test_later_refreshes_read_less(self):
        """In one process, so that what was read need not be read again."""
        terminal = self.two()
        first = int(terminal.wait_for(r"read (\d+) of")[1])
        self.assertGreaterEqual(first, 2)
        terminal.wait(
            lambda: int(re.search(r"read (\d+) of", terminal.text)[1]) < first,
            "a refresh that reads less",
        )

    def test_keys_lead_down_to_the_mappings_and_back(self):
        terminal = self.two()
        terminal.press(DOWN)
        terminal.wait(lambda: " small" in terminal.selected(), "selection")
        terminal.press(ENTER)
        row = terminal.wait_for(rf"\n( *8\.\d.* {self.small.root} .*)\n")[1]
        self.assertIn("small" + harness.TAG, row)
        self.assertEqual(terminal.lines[1], "groups > small  1")
        self.assertIn("PID COMMAND", terminal.lines[2])
        terminal.press(ENTER)
        row = terminal.wait_for(r"\n( *8\.\d.*\[anon\])\n")[1]
        self.assertRegex(row, r" \[anon\]$")
        self.assertIn(f"> {self.small.root} small", terminal.lines[1])
        self.assertIn("AREAS MAPPING", terminal.lines[2])
        terminal.press(ESCAPE)
        terminal.wait_for("groups > small  1\n")
        terminal.press(BACKSPACE)
        terminal.wait_for("groups  2\n")
        self.assertIn(" small", terminal.selected())

    def test_growth_is_shown_and_sorts(self):
        terminal = self.two()
        self.small.grow(8)
        terminal.wait_for(r"16\.\dM~? .* \+8\.\d+M .*small")
        self.assertNotIn("+8", terminal.lines[3])
        terminal.press("g")
        terminal.wait(lambda: " small" in terminal.lines[3], "new order")
        self.assertRegex(terminal.lines[2], "^ +PSS .* >[+]START .* GROUP$")
        terminal.press("<")
        terminal.press("<<")
        terminal.wait(lambda: " big" in terminal.lines[3], "order of RSS")
        terminal.press("R")
        terminal.wait(lambda: " small" in terminal.lines[3], "its reverse")

    def test_a_filter_leaves_the_others_out(self):
        terminal = self.two()
        terminal.press("/SMx")
        terminal.wait_for(r"show names with: SMx_")
        terminal.press(BACKSPACE + ENTER)
        terminal.wait_for(r"groups  1 of 2  /SM\n")
        self.assertNotIn(" big", terminal.text)
        terminal.press("/" + BACKSPACE * 2 + ENTER)
        terminal.wait_for(r"groups  2\n")
        terminal.press("/big" + ESCAPE)
        terminal.wait_for(r"q: end")
        self.assertEqual(terminal.lines[1], "groups  2")
        terminal.press("/big" + "\x15sm" + ENTER)
        terminal.wait_for(r"groups  1 of 2  /sm\n")
        terminal.press(ESCAPE)
        terminal.wait_for(r"groups  2\n")

    def test_frozen_screen_stays_until_it_is_released(self):
        terminal = self.two()
        terminal.press(" ")
        terminal.wait_for("FROZEN")
        before = terminal.lines
        self.small.grow(8)
        time.sleep(2)  # in which it would refresh
        terminal.press("?")
        terminal.wait_for("Any key goes back")
        terminal.press("x")
        terminal.wait_for("FROZEN")
        self.assertEqual(terminal.lines, before)
        terminal.press(ENTER + ENTER)
        terminal.wait_for(r"\[anon\]")
        terminal.press(ESCAPE)
        terminal.wait_for("groups > big")
        terminal.press(ESCAPE)
        terminal.wait_for("groups  2")
        terminal.press(" ")
        terminal.wait_for(r"16\.\dM~? .*small")
        self.assertNotIn("FROZEN", terminal.text)

    def test_every_size_of_the_terminal_works(self):
        terminal = self.two(COLUMNS="70", LINES="20")
        for columns, lines in ((120, 40), (40, 10), (3, 2), (1, 1), (80, 24)):
            with self.subTest(f"{columns}x{lines}"):
                terminal.resize(columns, lines)
                if lines < 10:
                    continue
                terminal.wait(
                    lambda: terminal.lines[-1].startswith("Enter: in"),
                    "the last line",
                )
                self.assertIn("PSS", terminal.lines[2])
        terminal.resize(120, 40)
        terminal.press(ENTER)
        terminal.wait_for("PID USER")
        terminal.wait_for(rf"{self.big.root} \S+ +/.*big{harness.TAG}")

    def test_numbers_make_room_for_names(self):
        terminal = self.two(COLUMNS="70", LINES="20")
        for columns, titles in (
            (70, ">PSS USS RSS SWAP [+]START [+]LAST PROCS GROUP"),
            (69, ">PSS SWAP [+]START PROCS GROUP"),
            (40, ">PSS PROCS GROUP"),
        ):
            terminal.resize(columns, 20)
            terminal.wait_for(r"\n *" + titles.replace(" ", " +") + r"\n")
            terminal.wait_for(r"\dM~?( .*)? \d big")

    def test_a_wide_screen_has_total_error_limit_and_growth(self):
        terminal = self.two(columns=100)
        terminal.wait_for(r"groups  2  total 3\d\.\dM")
        self.assertRegex(
            terminal.lines[2], r"PROCS   ERROR   LIMIT  GROWTH GROUP$"
        )
        # Neither is a control group of its own.
        self.assertRegex(terminal.lines[3], r" 1 +\S+ +- +\S+ big$")
        terminal.press(ENTER)
        terminal.wait_for("PID USER")
        self.assertNotIn("LIMIT", terminal.text)

    def test_names_of_strangers_do_nothing_to_the_terminal(self):
        name = f"a\x1b]0;owned\x07\x9b2J{harness.TAG}\u202e"
        process = subprocess.Popen(
            [name, "1000"], executable="/bin/sleep", text=True
        )
        self.addCleanup(harness.end_process, process)
        config = self.write_file(
            "collectd.conf",
            '<Plugin smaps>\n<Group "us">\nCommandLineMatch "owned.*'
            f'{harness.TAG}"\n</Group>\n</Plugin>\n',
        )
        terminal = self.watch(config, columns=160)
        terminal.wait_for(r" us\n")
        terminal.press(ENTER)
        terminal.wait_for(r"a\\x1b\]0;owned\\x07.*2J")
        terminal.press(ENTER)
        terminal.wait_for("/sleep")
        self.assertNotIn(b"\x1b]0;", terminal.raw)
        self.assertNotIn("\u202e".encode(), terminal.raw)

    def test_a_process_that_hangs_does_not_hang_the_screen(self):
        harness.need_root("mounts FUSE, to hang a process")
        well = self.start_shape("anon", name="well", mib=8)
        hung = Hung(self, "mmap")
        config = self.config("well", more='Other "rest"\nReadTimeout 1')
        terminal = self.watch(config)
        terminal.wait_for(r" well\n")
        well.grow(8)
        terminal.wait_for(r"16\.\dM~? .*well")
        terminal.press("/well" + ENTER + ENTER + ENTER)
        terminal.wait_for(r"\[anon\]")
        terminal.press("q")
        self.assertEqual(terminal.wait_end(), 0)
        self.assertIn(f'process {hung.pid} "hung', terminal.text)


class End(WatchTest):
    """However it ends, the terminal is as it was."""

    def assert_restored(self, terminal):
        self.assertEqual(terminal.stty(), terminal.settings)
        entered = terminal.raw.rindex(b"\x1b[?1049h")
        self.assertGreater(terminal.raw.rfind(LEAVES_THE_SCREEN), entered)
        self.assertFalse(terminal.emulator.cursor.hidden)

    def start(self, **options):
        terminal = self.watch(self.config("none"), **options)
        terminal.wait_for("groups  2|groups  1")
        self.assertNotEqual(terminal.stty(), terminal.settings)
        self.assertTrue(terminal.emulator.cursor.hidden)
        return terminal

    def test_the_interrupt_key(self):
        terminal = self.start()
        terminal.press("\x03")
        self.assertEqual(terminal.wait_end(), -signal.SIGINT)
        self.assert_restored(terminal)

    def test_signals(self):
        for number in (
            signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
            signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE,
            signal.SIGUSR1, signal.SIGALRM, signal.SIGPIPE, signal.SIGXCPU,
        ):  # fmt: skip
            with self.subTest(number):
                terminal = self.start()
                terminal.process.send_signal(number)
                status = terminal.wait_end()
                # A sanitizer has its own end for defects.
                if b"__asan_init" not in REPORT.read_bytes():
                    self.assertEqual(status, -number)
                self.assert_restored(terminal)

    def test_stopped_and_continued(self):
        """By a shell, which has the terminal in between."""
        script = '"$0" "$@"; stty -g; read; fg >/dev/null'
        terminal = self.start(program=["bash", "-mc", script, REPORT])
        terminal.press("\x1a")
        terminal.wait(
            lambda: terminal.settings.strip() in terminal.raw, "the stop"
        )
        self.assertEqual(terminal.stty(), terminal.settings)
        terminal.press("\n")
        terminal.wait(
            lambda: terminal.stty() != terminal.settings, "its settings"
        )
        terminal.press("q")
        self.assertEqual(terminal.wait_end(), 0)
        self.assert_restored(terminal)

    def test_program_ends_while_it_is_stopped(self):
        """By a shell, whose terminal it leaves alone."""
        script = '"$0" "$@"; kill %1; while kill -0 %1; do :; done; read'
        terminal = self.start(program=["bash", "-mc", script, REPORT])
        terminal.press("\x1a")
        terminal.wait(lambda: b"kill: " in terminal.raw, "the end")
        self.assertEqual(terminal.raw.count(LEAVES_THE_SCREEN), 1)
        self.assert_restored(terminal)

    def test_a_terminal_that_is_gone(self):
        terminal = self.start()
        os.close(terminal.slave)
        os.close(terminal.master)
        terminal.master = terminal.slave = None
        terminal.process.wait(harness.DEADLINE_SECONDS)

    def test_log_lines_of_the_plugin_are_printed_at_the_end(self):
        config = self.config("none")
        config.write_text(
            f'Include "{self.directory}/absent"\n' + config.read_text()
        )
        terminal = self.watch(config)
        terminal.wait_for("groups  ")
        self.assertNotIn("No such file", terminal.text)
        terminal.press("q")
        self.assertEqual(terminal.wait_end(), 0)
        behind = terminal.raw.rindex(LEAVES_THE_SCREEN)
        self.assertIn(b"absent: No such file", terminal.raw[behind:])


class Refused(WatchTest):
    """With one error, and the terminal is left alone."""

    def assert_refused(self, words, terminal, lines=1):
        self.assertEqual(terminal.wait_end(), 2)
        said = terminal.raw.decode().splitlines()
        self.assertEqual(len(said), lines, said)
        self.assertTrue(said[-1].startswith("smaps-report: "), said)
        self.assertIn(words, "\n".join(said))
        self.assertNotIn(b"\x1b", terminal.raw)
        self.assertEqual(terminal.stty(), terminal.settings)

    def test_terminals_without_a_cursor(self):
        for term in ("dumb", "no-such-terminal", "", None):
            with self.subTest(term):
                terminal = self.watch(self.config("none"), TERM=term)
                self.assert_refused(
                    f'--watch: TERM "{term or ""}": expected a terminal',
                    terminal,
                )

    def test_mistakes(self):
        terminal = self.watch(self.config("none", more="Foo 1"))
        self.assert_refused("Foo 1: expected", terminal, lines=2)

    def test_program_needs_a_terminal(self):
        done = run("live", "--watch", "1", "-C", self.config("none"))
        self.assertEqual((done.returncode, done.text), (2, ""))
        self.assertEqual(
            done.words,
            "smaps-report: live: --watch: expected a terminal as standard "
            "input and output\n",
        )

