# SPDX-License-Identifier: MIT
"""smaps-report live and check: this host, in the groups of a configuration that
is read as the daemon reads it."""

import contextlib
import json
import os
import pwd
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import harness
from report import KIB, MIB, REPORT, ReportTest, environment, run

# Texts that a parser of its own would read in another way, each for an option
# that does not exist: the mistake repeats the values.
ODD = (
    "Foo 1",
    "Foo -1.50 +2 0x1F 017 .5 1.5e+3",
    "Foo 1e5 1.5e5 5abc -5abc",
    "Foo true off no yes on false TRUE trueish",
    'Foo "a\\"b" "a#b" c_d # "e"',
    'Foo "x\\\n   y" z',
    "Foo 1 \\\n  2",
    "Foo 10.1.2.3:80 ::1 fe80::1 [::1]:53 1.2.3 300.1.1.1",
    "foo %1 %2 ;3",
    "Foo\t1\r",
    "<Foo 1>\n Bar 2\n</Foo>",
    "<Foo 1>\n</Foo>",
    "<Foo>\n</Foo>",
    "< Foo 1 >\n Bar 2\n< / Foo >",
    'Foo "a\nb"',
    "Foo",
    "Foo 1 <",
    "<Foo>\nBar 1\n</Bar>",
    "<Foo>\nBar 1\n</FOO>",
    "Foo-Bar 1",
    '"Foo" 1',
    "1 2",
    "Foo 'a'",
    'Foo "a',
    "Foo /a/b",
    "</Foo>",
)


OTHERS_CAN_WRITE = (
    "access is denied, others can write to the directory, or neither root nor the "
    "user of collectd owns it"
)


def began(pid):
    """The time of day at which a process began."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return boot + int(ticks) / os.sysconf("SC_CLK_TCK")


class LiveTest(ReportTest):
    def write_file(self, name, text):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        return path

    def configure(self, text):
        return self.write_file(
            "collectd.conf", f"<Plugin smaps>\n{text}\n</Plugin>\n"
        )

    def start_shape(self, kind, **options):
        shape = harness.Shape(kind, **options)
        self.addCleanup(shape.stop)
        return shape

    def own_comm(self):
        return Path("/proc/self/comm").read_text().strip()

    def us(self, *options):
        """Returns a configuration with a group of this process."""
        return self.write_file(
            "collectd.conf",
            f'LoadPlugin smaps\n<Plugin smaps>\n<Group "us">\nComm "{self.own_comm()}"\n'
            "</Group>\n" + "\n".join(options) + "\n</Plugin>\n",
        )


class Live(LiveTest):
    def live(self, *args, **options):
        done = run("live", *args, **options)
        self.assertEqual(done.returncode, 0, done.words)
        return done

    def row(self, done, name):
        return next(
            row
            for row in map(str.split, done.text.splitlines())
            if row and row[-1] == name
        )

    def test_this_process_is_found_in_its_group(self):
        """collectd is not in the path, and nothing is written."""
        state = self.directory / "state"
        captures = self.directory / "captures"
        config = self.us(
            f'StateFile "{state}"', "StateAtStart true",
            f'<Capture>\nDirectory "{captures}"\n</Capture>',
        )  # fmt: skip
        done = self.live(
            "-C", config, "-j", "--processes", "-c", "pid,pss,source",
            "-g", "us",
            env=environment(PATH="/nowhere", TMPDIR="/nowhere"),
        )  # fmt: skip
        rows = {row.get("pid"): row for row in json.loads(done.text)}
        self.assertEqual(rows[os.getpid()]["source"], "read")
        self.assertGreater(rows[os.getpid()]["pss"], MIB)
        self.assertEqual(os.listdir(self.directory), ["collectd.conf"])

    def test_live_shows_a_table_of_the_host(self):
        harness.need_host()
        whole = self.live("-C", self.us('Other "rest"'), "-w")
        self.assertRegex(whole.text, r"(?m)^ *\d.* us$")

    def test_a_tree_of_proc_may_stand_for_the_host(self):
        root = harness.ROOT / "tests/fixtures/proc"
        config = self.us(f'ProcRoot "{root}"', 'Other "rest"')
        done = self.live("-C", config, "-j", "--processes", "-c", "pid")
        pids = {row.get("pid") for row in json.loads(done.text)} - {None}
        self.assertTrue(pids)
        self.assertLessEqual(
            pids, {int(p.name) for p in root.iterdir() if p.name.isdigit()}
        )

    def test_mistakes_are_shown_and_refused(self):
        config = self.us("NoSuchOption 5")
        done = run("live", "-C", config)
        self.assertEqual((done.returncode, done.text), (2, ""))
        first, last = done.words.splitlines()
        self.assertTrue(first.startswith(f"{config}: NoSuchOption 5: "), first)
        self.assertEqual(
            last, "smaps-report: live: the configuration has mistakes"
        )

    def test_log_lines_of_the_plugin_follow_the_table(self):
        config = self.us()
        config.write_text(
            f'Include "{self.directory}/none\x1b"\n' + config.read_text()
        )
        done = subprocess.run(
            [REPORT, "live", "-G", "-C", config],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=True,
        )
        lines = done.stdout.decode().splitlines()
        self.assertIn("GROUP", lines[2])
        (told,) = (i for i, line in enumerate(lines) if "No such" in line)
        self.assertIn("none\\x1b: ", lines[told])
        self.assertGreater(told, 1)

    def test_messages_that_cannot_be_printed_are_not_a_failure(self):
        config = self.write_file(
            "told.conf", f'Include "{self.directory}/none"\n'
        )
        args = [REPORT, "live", "-G", "-C", config]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                args, env=environment(), stdout=subprocess.PIPE, stderr=full
            )
        self.assertIn(b"GROUP", done.stdout)
        self.assertEqual(done.returncode, 0)
        done = subprocess.run(
            args, env=environment(), stdout=subprocess.PIPE,
            preexec_fn=lambda: os.close(2),
        )  # fmt: skip
        self.assertIn(b"GROUP", done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_live_shows_mappings_of_this_host(self):
        own = self.start_shape("anon", name="own", mib=8)
        config = self.configure(f'<Group "own">\nComm "own{harness.TAG}"\n</Group>')
        done = self.live(
            "-C", config, "-mtj", "-g", "own", "-c", "pss,name"
        )
        _, *rows, total = json.loads(done.text)
        self.assertEqual(total["pss"], sum(row["pss"] for row in rows))
        (anon,) = [row for row in rows if row["name"] == "[anon]"]
        self.assertGreaterEqual(anon["pss"], 8 * MIB)

    def capture(self):
        """Of this process and a helper: the directory and its name."""
        own = self.start_shape("anon", name="own", mib=8)
        target = self.directory / "db1"
        subprocess.run(
            [harness.ROOT / "contrib/capture-proc", "-s", "-p", str(os.getpid()),
             "-p", str(own.pids[0]), target],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return target, own.pids[0]

    def test_captured_proc_is_shown_as_a_host(self):
        target, pid = self.capture()
        config = self.configure('Other "all"')
        smaps = (target / str(pid) / "smaps").read_text()
        pss = KIB * sum(map(int, re.findall(r"^Pss: +(\d+) kB", smaps, re.M)))
        for source in target, f"{target}/":
            with self.subTest(source=source):
                done = self.live(
                    "-C", config, "-S", source, "-mjt", "-P", "own"
                )
                heading, *rows = json.loads(done.text)
                self.assertEqual(heading["host"], "db1")
                self.assertEqual(rows[-1]["pss"], pss)
        done = self.live("-C", config, "-S", target, "--processes", "-j")
        pids = {row["pid"] for row in json.loads(done.text)[1:]}
        self.assertEqual(pids, {os.getpid(), pid})

    def test_captured_proc_is_read_whole_and_has_its_time(self):
        """Also a process that is too large to be read on a live host."""
        target, pid = self.capture()
        rollup = (target / str(pid) / "smaps_rollup").read_text()
        pss = KIB * int(re.search(r"(?m)^Pss: +(\d+) kB", rollup)[1])
        pages = 256 << 18
        statm = target / str(pid) / "statm"
        statm.chmod(0o644)
        statm.write_text(f"{pages} {pages} 9 9 0 9 0\n")
        os.utime(target / "meminfo", (1700000000.5, 1700000000.5))
        config = self.configure('Other "all"')
        columns = "pid,pss,source"
        done = self.live(
            "-C", config, "-S", target, "--processes", "-jc", columns
        )
        heading, *rows = json.loads(done.text)
        self.assertEqual(heading["time"], 1700000000.5)
        (row,) = (row for row in rows if row["pid"] == pid)
        self.assertEqual((row["source"], row["pss"]), ("read", pss))
        before = time.time()
        done = self.live("-C", config, "-S", "/proc", "-jG")
        self.assertGreaterEqual(json.loads(done.text)[0]["time"], before)

    def test_source_that_is_not_a_capture_is_refused(self):
        bare, piped, empty = (self.directory / name for name in "abc")
        for directory in bare, piped, empty:
            directory.mkdir()
        os.mkfifo(piped / "meminfo")
        (empty / "meminfo").touch()
        for source, words in (
            (bare, "has no meminfo: expected a capture of /proc"),
            (piped, "has no meminfo: expected a capture of /proc"),
            (
                __file__,
                "expected a directory; unpack an archive first, with tar",
            ),
            (self.directory / "none", "No such file or directory"),
        ):
            done = run("live", "-S", source)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(
                done.words, f'smaps-report: live: -S "{source}": {words}\n'
            )
        done = run("live", "-S", empty)
        self.assertIn("it has no processes", done.words)
        (empty / "1").mkdir()
        (empty / "getconf").write_text("PAGESIZE 4K\n")
        done = run("live", "-S", empty)
        self.assertEqual(done.returncode, 2)
        self.assertIn("its file getconf is malformed", done.words)

    def test_captured_process_without_a_rollup_is_shown_as_unreadable(self):
        """As one that a user other than root has captured."""
        target, pid = self.capture()
        (target / str(pid) / "smaps_rollup").unlink()
        rss = harness.PAGE_SIZE * int((target / str(pid) / "statm").read_text().split()[1])
        config = self.configure('Other "all"')
        columns = "pid,rss,source"
        done = self.live(
            "-C", config, "-S", target, "--processes", "-jc", columns
        )
        rows = {row["pid"]: row for row in json.loads(done.text)[1:]}
        self.assertEqual(rows[pid]["source"], "unreadable")
        # Guessed: the parts of rss are rounded.
        self.assertAlmostEqual(rows[pid]["rss"], rss, delta=KIB)
        self.assertEqual(rows[os.getpid()]["source"], "read")
        self.assertIn("capture ProcRoot as root: it lacks", done.words)

    def test_user_nobody_sees_rss_and_counts(self):
        harness.need_root("becomes nobody")
        uid, gid = harness.unprivileged_user()
        own = self.start_shape("anon", name="own", mib=4, user=(uid, gid))
        directory = harness.stage().new_directory((uid, gid))
        config = directory / "collectd.conf"
        rights = {"user": uid, "group": gid, "extra_groups": []}
        config.write_text(
            '<Plugin smaps>\n<Group "own">\n'
            f'Comm "own{harness.TAG}"\n</Group>\n'
            f'<Group "us">\nComm "{self.own_comm()}"\n</Group>\n</Plugin>\n'
        )
        done = self.live("-C", config, "-Gt", **rights)
        own, us, total = (self.row(done, n) for n in ("own", "us", "total"))
        # PSS, USS and freed are unknown, and RSS is not.
        self.assertEqual(us[:3], ["-", "-", "-"])
        self.assertGreater(int(us[3]), MIB // harness.KIB)
        self.assertGreaterEqual(int(us[5]), 1)
        self.assertEqual(own[5], "1")
        self.assertEqual(total[:2], ["≥", own[0]])
        self.assertIn("kernel refuses to show", done.words)
        self.assertIn("run smaps-report as root", done.words)
        done = run("live", "-C", config, "-m", "-g", "us", **rights)
        self.assertEqual(done.returncode, 2)
        why = "live: the mappings of these processes could not be read\n"
        self.assertIn(why, done.words)


class Check(LiveTest):
    def check(self, config, *args):
        return run("check", "-C", config, *args)

    def accepted(self, config):
        """What it says of a configuration without mistakes."""
        done = self.check(config)
        self.assertEqual(done.returncode, 0, done.words)
        return done

    def mistakes(self, config):
        done = self.check(config)
        self.assertEqual((done.returncode, done.text), (1, ""), done.words)
        return done.words.splitlines()

    def test_missing_configuration_is_a_mistake_with_a_remedy(self):
        """As after the package alone, whose daemon does not start."""
        harness.need_root("to hide the configuration of this host")
        harness.need_namespace(["--mount"])
        if Path("/etc/collectd.conf").exists():
            self.skipTest("this host has /etc/collectd.conf")
        hide = (
            "for d in /etc/collectd /opt/collectd; do"
            ' [ ! -d $d ] || mount -t tmpfs none $d; done; exec "$@"'
        )
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", hide, "sh", REPORT, "check"],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        (line,) = done.stderr.splitlines()
        self.assertIn("there is no /etc/collectd/collectd.conf", line)
        self.assertIn("sudo apt install --no-install-recommends collectd libmnl0", line)
        self.assertIn("-C FILE", line)

    def test_all_mistakes_are_printed_with_their_files(self):
        """Each in a line; the options of other plugins are not checked."""
        first = self.write_file(
            "conf.d/a.conf",
            "LoadPlugin smaps\n"
            "<Plugin smaps>\n  MaxAge 0\n  StateFile \"x\"\n"
            '  <Group "us">\n    Com "x"\n    CommMatch "("\n  </Group>\n'
            "</Plugin>\n",
        )
        second = self.write_file(
            "conf.d/b.conf",
            "<Plugin no_such_plugin>\n  Foo 1\n</Plugin>\n"
            '<Plugin "smaps">\n  <Capture>\n    MaxFiles "many"\n'
            "  </Capture>\n</Plugin>\n",
        )
        config = self.write_file(
            "collectd.conf", f'Include "{self.directory}/conf.d/*.conf"\n'
        )
        lines = self.mistakes(config)
        expected = (
            (first, r"MaxAge 0: expected a number of seconds, .* from 1 to 86400"),
            (first, r'StateFile "x": expected an absolute path'),
            (first, r'<Group "us">: Com "x": expected .*: see collectd-smaps\(5\)'),
            (first, r'<Group "us">: CommMatch "\(": expected .*'),
            (second, r'<Capture>: MaxFiles "many": expected a whole number, .*'),
        )
        self.assertEqual(len(lines), len(expected), lines)
        for line, (path, words) in zip(lines, expected):
            self.assertRegex(line, rf"\A{re.escape(str(path))}: {words}\Z")

    def test_the_line_that_cannot_be_parsed_is_named(self):
        """In its own file, and other files are checked as well."""
        for text, line, words in (
            ('\n\n<Plugin smaps>\n  Other "x" <\n</Plugin>\n', 4, "near"),
            ('<Plugin smaps>\n<Group "g">\n</Ignore>\n</Plugin>\n', 3,
             "not closed"),
            ('<Plugin smaps>\n<Group "g">\n</Plugin>\n', 3, "not closed"),
            ('<Plugin smaps>\n"\x1b"\n</Plugin>\n', 2, "\\x1b"),
        ):  # fmt: skip
            with self.subTest(text):
                last = self.write_file(
                    "conf.d/z.conf",
                    "\nLoadPlugin smaps\n<Plugin smaps>\n  Foo 1\n</Plugin>\n",
                )
                path = self.write_file("conf.d/a.conf", text)
                config = self.write_file(
                    "collectd.conf",
                    f'\n\n\n\nInclude "{self.directory}/conf.d/*.conf"\n',
                )
                broken, foo = self.mistakes(config)
                self.assertTrue(broken.startswith(f"{path}:{line}: "), broken)
                self.assertIn(words, broken)
                self.assertTrue(foo.startswith(f"{last}: Foo 1: "), foo)

    def test_rules_are_printed_and_nothing_is_written(self):
        state = self.write_file("state.json", "precious")
        captures = self.directory / "captures"
        config = self.us(
            '<Group "nobody">\nComm "no such process"\n</Group>',
            f'StateFile "{state}"\nStateAtStart true\nStateInterval 0',
            f'<Capture>\nDirectory "{captures}"\n</Capture>',
        )
        done = self.accepted(config)
        title, us, nobody, none = done.text.splitlines()[:4]
        self.assertIn("MATCHED", title)
        self.assertRegex(us, r'^ *[1-9]\d* .* 1: <Group "us"> Comm ')
        self.assertRegex(nobody, r'^ *0 +0 +0 +0  2: <Group "nobody"> Comm ')
        self.assertRegex(none, r"^ *\d+ +none$")
        self.assertEqual(state.read_text(), "precious")
        self.assertFalse(captures.exists())

    def place_hint(self, option, path, prefix=()):
        """What check says of the option, and whether the place is as before."""
        harness.need_host_name()
        block = f'<Capture>\nDirectory "{path}"\n</Capture>'
        if option == "StateFile":
            block = f'StateFile "{path}"'
        config = self.us(block)
        before = sorted(self.directory.rglob("*"))
        done = subprocess.run(
            [*prefix, REPORT, "check", "-C", config],
            capture_output=True, env=environment(), check=False, text=True,
        )  # fmt: skip
        self.assertEqual(sorted(self.directory.rglob("*")), before)
        user = pwd.getpwuid(os.geteuid()).pw_name
        self.assertIn(f"checked as user {user}. If collectd runs", done.stderr)
        causes = re.findall(rf'{option} ".*" cannot be .*?: (.*)', done.stderr)
        self.assertEqual(done.returncode, 1 if causes else 0, done.stderr)
        return causes

    def test_no_path_is_checked_if_none_is_configured(self):
        self.assertNotIn("checked as user", self.check(self.us()).words)

    def test_path_that_cannot_be_written_is_reported_with_its_cause(self):
        d = self.directory
        self.write_file("file", "")
        (d / "link").symlink_to(d)
        for name, mode in (("open", 0o1777), ("good", 0o755)):
            (d / name).mkdir()
            (d / name).chmod(mode)
        no_directory = ["it is a symbolic link, or no directory"]
        for option, path, causes in (
            ("StateFile", d / "state", []),
            ("StateFile", d / "file", []),
            ("StateFile", d / "open/state", []),
            ("StateFile", d / "good", ["Is a directory"]),
            ("StateFile", d / "no/state", ["No such file or directory"]),
            ("StateFile", d / "file/state", ["Not a directory"]),
            ("Directory", d / "good", []),
            ("Directory", d / "new", []),
            ("Directory", d / "no/new", ["No such file or directory"]),
            ("Directory", d / "file", no_directory),
            ("Directory", d / "link", no_directory),
            ("Directory", f"{d}/new/", []),
            ("Directory", f"{d}/link/", no_directory),
            ("Directory", d / "open", [OTHERS_CAN_WRITE]),
        ):
            with self.subTest(f"{option} {path}"):
                self.assertEqual(self.place_hint(option, path), causes)

    def test_path_that_is_mounted_read_only_is_reported(self):
        harness.need_root("to mount")
        harness.need_namespace(["--mount"])
        place = self.directory / "place"
        place.mkdir()
        script = 'mount -t tmpfs -o mode=755,ro x $0; exec "$@"'
        prefix = ("unshare", "--mount", "sh", "-c", script, place)
        (cause,) = self.place_hint("Directory", place, prefix)
        self.assertEqual(cause, "Read-only file system")

    def test_path_of_somebody_else_is_reported(self):
        harness.need_root("to give a directory away")
        os.chown(self.directory, 65534, 65534)
        (cause,) = self.place_hint("Directory", self.directory)
        self.assertEqual(cause, OTHERS_CAN_WRITE)

    def test_missing_container_root_is_reported(self):
        for root, is_told in (self.directory, False), ("/no/such", True):
            words = self.accepted(self.us(f'ContainerRoot "{root}"')).words
            self.assertEqual(f'"{root}" does not exist' in words, is_told)

    def hints(self, *selectors):
        """The lines about a group with these, without its name."""
        config = self.us('<Group "g">', *selectors, "</Group>")
        done = self.accepted(config)
        return re.findall(
            r'(?m)^(?:<Group "g">.*: ("[^"]*" .*)|.*:\d+: (.*))$', done.words
        )

    def test_selector_that_takes_nothing_has_a_hint(self):
        d = self.directory
        lazy = "lazy repetition"
        (d / "link").symlink_to("pid")
        self.write_file("pid", str(os.getpid()))
        for selector, words in (
            ('User "nosuch"', '"nosuch" is not a user here'),
            ('User "nosuch*"', None),
            ('User "root"', None),
            ('User "4711"', None),
            (f'Executable "{d}/no"', "does not exist"),
            (f'Executable "{d}/no*"', None),
            (f'Executable "{d}/pid"', None),
            ('Executable "bin/x"', "begins with a slash"),
            ('Cgroup "system.slice/*"', "begins with a slash"),
            ('Cgroup "/sys/fs/cgroup/x"', "leave out /sys/fs/cgroup"),
            ('Cgroup "*"', None),
            ('Unit "cron"', '"cron" lacks a suffix such as .service'),
            ('Unit "cron*"', None),
            ('UserMatch "a.*?b"', lazy),
            ('UserMatch "^\\\\w+?$"', lazy),
            ('UserMatch "a{2}?"', lazy),
            ('UserMatch "[*?]a?\\\\*?[]*?]"', None),
            ('UserMatch "x\\\\d"', "the letter d"),
            ('UnitMatch "my\\\\x2dweb"', "write four backslashes"),
            ('UnitMatch "my\\\\\\\\x2dweb\\\\.service"', None),
            ('Unit "my\\\\\\\\x2dweb.service"', "two backslashes in a row"),
            ('Unit "my\\\\x2dweb.service"', None),
            ('CommandLine "a\\\\*"', "before a wildcard"),
            (f'Executable "{d}/link"', "a symbolic link is on the way"),
            (f'Executable "{d}/link*"', None),
            ('Slice "user"', "lacks the suffix .slice"),
            ('Slice "user.slice"', None),
            (f'PidFile "{d}/no"', "does not exist"),
            (f'PidFile "{d}/pid"', None),
        ):
            with self.subTest(selector):
                found = self.hints(selector)
                self.assertEqual(len(found), 1 if words else 0, found)
                if words:
                    self.assertIn(words, found[0][0])

    def test_path_that_may_not_be_seen_may_exist(self):
        harness.need_root("to become another user")
        closed = self.directory / "closed"
        closed.mkdir(mode=0o700)
        self.directory.chmod(0o755)
        config = self.us(
            f'<Group "g">\nPidFile "{closed}/pid"\nExecutable "{closed}/x"\n</Group>'
        )
        Path(config).chmod(0o644)
        done = subprocess.run(
            [REPORT, "check", "-C", config],
            capture_output=True, env=environment(), check=False, text=True,
            user=65534, group=65534, extra_groups=[],
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("does not exist", done.stderr)

    def test_missing_program_may_be_in_a_container(self):
        """A program on a file system that only its own namespace has."""
        harness.need_root("to mount")
        harness.need_namespace(["--mount"])
        inner = self.directory / "root"
        inner.mkdir()
        script = 'mount -t tmpfs x "$0" && cp "$1" "$0/sleep" && exec "$0/sleep" 600'
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, inner, shutil.which("sleep")]
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        program = Path(f"/proc/{process.pid}/exe")
        harness.wait_until(
            lambda: program.readlink() == inner / "sleep", "the program"
        )
        self.assertEqual(self.hints(f'Executable "{inner}/sleep"'), [])
        (hint,) = self.hints(f'Executable "{inner}/other"')
        self.assertIn("does not exist", hint[0])

    def test_number_that_is_not_believed_has_a_hint(self):
        me = str(os.getpid())
        path = self.directory / "x.pid"
        for text, mode, is_older, words in (
            ("1", 0o644, True, "names process 1, but that is init"),
            (me, 0o644, True, "began after the file was last changed"),
            (me, 0o666, False, "a user who is neither root nor"),
            ("4194304", 0o644, False, "no such process runs"),
            (me, 0o644, False, None),
        ):
            with self.subTest(words):
                path.write_text(text, encoding="ascii")
                path.chmod(mode)
                if is_older:  # than this, and than any container
                    os.utime(path, (0, began("1") + 1))
                found = self.hints(f'PidFile "{path}"')
                self.assertEqual(len(found), 1 if words else 0, found)
                if words:
                    self.assertIn(words, found[0][0])

    def start_inside(self, script, path):
        """Runs a script as process 1 of a namespace of its own, which writes a
        PID file. Returns how many processes the file selects."""
        process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script, path]
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        harness.wait_until(lambda: path.exists() and path.read_text(), "the file")
        config = self.write_file(
            "collectd.conf",
            "LoadPlugin smaps\n<Plugin smaps>\n"
            f'<Group "g">\nPidFile "{path}"\nChildren true\n</Group>\n'
            'Other "rest"\n</Plugin>\n',
        )
        done = run("live", "-G", "--json", "-C", config)
        _, *rows = json.loads(done.text)
        groups = {row["group"]: row["processes"] for row in rows}
        self.assertGreater(groups["rest"], 1)
        return groups["g"]

    def test_pid_of_a_namespace_is_not_process_1(self):
        """Not even with Children. Other namespaces may be too young to know
        which wrote the file, and then it selects none."""
        harness.need_namespace(["--pid", "--fork"])
        path = self.directory / "inner.pid"
        n = self.start_inside('echo $$ >"$0"; exec sleep 600', path)
        self.assertEqual(path.read_text(encoding="ascii"), "1\n")
        self.assertIn(n, (0, 1))

    def test_pid_of_a_namespace_selects_its_process(self):
        """By a number that no other process has."""
        harness.need_namespace(["--pid", "--fork"])
        last = Path("/proc/sys/kernel/ns_last_pid")
        if not os.access(last, os.W_OK):
            self.skipTest("needs a kernel in which the next pid can be chosen")
        most = int(Path("/proc/sys/kernel/pid_max").read_text())
        number = random.randrange(most // 2, most - 10)
        path = self.directory / "inner.pid"
        script = f'echo {number} >{last}; sleep 600 & echo $! >"$0"; wait'
        self.assertEqual(self.start_inside(script, path), 1)
        self.assertGreater(int(path.read_text()), number)

    def test_value_without_quotes_has_a_hint(self):
        hint, suffix = self.hints("Unit *.service")
        self.assertIn("ignores the character * outside quotes", hint[1])
        self.assertIn('"service" lacks a suffix', suffix[0])

    def test_backslash_that_is_lost_has_a_hint(self):
        """In any string of the plugin, and of thresholds; not of others."""
        config = self.us(
            r'<Group "a\x2db">', r'CommandLineMatch "^a\w+ \"b\" \\w"', "</Group>",
            r'<Group "g">', r'CommMatch "a\\.b"', r'Unit "my\\x2dweb.service"',
            r'Slice "my\x2dweb.slice"', "</Group>", "</Plugin>",
            r'<Plugin "threshold">', '<Plugin "smaps">', r'Instance "c\x2dd"',
            "</Plugin>", "</Plugin>", r'<Plugin "exec">', r'Exec "user" "e\x2df"',
        )  # fmt: skip
        said = re.findall(
            r"(?m)^.*: ([A-Z]\w+ .*): collectd has removed the backslash before "
            r"(.): write \\\\(.)$",
            "\n".join(self.mistakes(config)),
        )
        self.assertEqual(
            said,
            [
                ('Group "ax2db"', "x", "x"),
                (r'CommandLineMatch "^aw+ \"b\" \\w"', "w", "w"),
                ('Slice "myx2dweb.slice"', "x", "x"),
                ('Instance "cx2dd"', "x", "x"),
            ],
        )

    def test_names_are_printed_as_they_are_written(self):
        written = r'Unit "my\\x2dweb.service"'
        done = self.accepted(self.us('<Group "g">', written, "</Group>"))
        self.assertIn(f'<Group "g"> {written}', done.text)

    def test_rule_that_comes_too_late_gets_no_hint(self):
        """Its service runs, and another rule has the process."""
        pid = self.write_file("pid", str(os.getpid()))
        config = self.us(
            f'<Group "late">\nPidFile "{pid}"\n</Group>',
            '<Group "none">\nComm "no such"\n</Group>',
        )
        text = self.check(config).text
        self.assertIn("\nRules that took nothing: 3\n", text)
        self.assertIn("\nRules whose processes earlier rules take: 2\n", text)

    def test_missing_plugin_block_is_reported(self):
        self.write_file("conf.d/a.conf", "<Plugin smaps>\nMaxAge 1\n</Plugin>\n")
        load = "LoadPlugin smaps\n"
        for pattern, said in (("*.conf", False), ("*.cnf", True)):
            with self.subTest(pattern):
                config = self.write_file(
                    "collectd.conf",
                    f'{load}Include "{self.directory}/conf.d/{pattern}"\n',
                )
                done = self.accepted(config)
                self.assertIn('<Group "%{unit_template}">', done.text)
                words = f"{config}: there is no <Plugin smaps> in it"
                self.assertEqual(words in done.words, said, done.words)

    def compile(self, name, *words):
        source = self.write_file(f"{name}.c", "void module_register(void) {}\n")
        output = self.directory / "plugins" / name
        output.parent.mkdir(exist_ok=True)
        subprocess.run(
            [os.environ.get("CC", "cc"), "-shared", "-o", output, source, *words],
            check=True,
        )
        return output

    def test_plugin_that_collectd_cannot_load_is_a_mistake(self):
        """The daemon does not start with it, although `collectd -t` has no error."""
        if not shutil.which(os.environ.get("CC", "cc")):
            self.skipTest("needs a compiler")
        library = self.compile("libgone.so", "-Wl,-soname,libgone.so.1")
        self.compile("Beside.so", "-Wl,--no-as-needed", library)
        self.compile("good.so")
        library.unlink()
        shutil.copy(harness.PLUGIN, self.directory / "plugins")
        place = f'BaseDir "{self.directory}"\nPluginDir "{self.directory}/plugins"\n'
        smaps = "LoadPlugin smaps\n<Plugin smaps>\n</Plugin>\n"
        for load, words in (
            ("LoadPlugin good", None),
            ("<Plugin beside>\n</Plugin>", None),
            ("LoadPlugin beside", r'"beside": .*: libgone\.so\.1 => not found$'),
            ("<LoadPlugin beside>\nInterval 7\n</LoadPlugin>", r"\blibgone\.so\.1 => "),
            ("AutoLoadPlugin true\n<Plugin beside>\n</Plugin>", r"\blibgone\.so\.1 => "),
            ('LoadPlugin "none"', r'"none": expected the file .*/plugins/none\.so: '),
        ):
            with self.subTest(load):
                config = self.write_file(
                    "collectd.conf", f"FQDNLookup false\n{place}{load}\n{smaps}"
                )
                daemon = subprocess.run(
                    [harness.COLLECTD, "-T", "-C", config],
                    capture_output=True, check=False, text=True,
                )  # fmt: skip
                started = "smaps plugin: version" in daemon.stderr
                self.assertEqual(started, words is None, daemon.stderr)
                if words:
                    (line,) = self.mistakes(config)
                    self.assertRegex(line, words)
                else:
                    self.accepted(config)

    def test_plugins_are_not_sought_without_their_directory(self):
        config = self.write_file(
            "collectd.conf",
            f'PluginDir "{self.directory}/no"\nLoadPlugin csv\nLoadPlugin smaps\n'
            "<Plugin smaps>\n</Plugin>\n",
        )
        self.accepted(config)

    # Runs the other words on a host of this name.
    CALLED = (
        "import os, socket, sys; socket.sethostname(sys.argv[1]);"
        " os.execv(sys.argv[2], sys.argv[2:])"
    )

    def run_called(self, name, *words):
        done = subprocess.run(
            ["unshare", "--uts", sys.executable, "-c", self.CALLED, name, *words],
            capture_output=True, check=False, text=True,
            env=environment(RES_OPTIONS="timeout:1 attempts:1"),
        )  # fmt: skip
        return done.returncode, done.stderr

    def test_host_name_that_collectd_does_not_find_is_a_mistake(self):
        """The daemon does not start, and says nothing if its log is syslog. It
        is asked for each: nss-myhostname would find any name."""
        harness.need_root("to have a host name of its own")
        harness.need_namespace(["--uts"])
        shutil.copy(harness.PLUGIN, self.directory)
        place = f'BaseDir "{self.directory}"\nPluginDir "{self.directory}"\n'
        smaps = "LoadPlugin smaps\n<Plugin smaps>\n</Plugin>\n"
        for name, text in (
            ("localhost", ""),
            ("gone.invalid", ""),
            ("gone.invalid", "FQDNLookup true"),
            ("gone.invalid", "FQDNLookup false"),
            ("gone.invalid", 'FQDNLookup "Off"'),
            ("gone.invalid", "FQDNLookup 0"),
            ("gone.invalid", "FQDNLookup false\nfqdnlookup yes"),
            ("gone.invalid", "FQDNLookup true\nFQDNLookup no"),
            ("gone.invalid", 'Hostname "a"'),
            ("gone.invalid", "Hostname 17"),
            ("gone.invalid", 'Hostname "a"\nHostname ""'),
        ):
            with self.subTest(name=name, text=text):
                config = self.write_file("collectd.conf", f"{place}{text}\n{smaps}")
                status, said = self.run_called(name, harness.COLLECTD, "-T", "-C", config)
                starts = "Looking up" not in said
                self.assertEqual(status == 0, starts, said)
                status, said = self.run_called(name, REPORT, "check", "-C", config)
                self.assertEqual(status == 0, starts, said)
                words = f'{config}: FQDNLookup (default true): expected a host name'
                self.assertEqual(words in said, not starts, said)

    # Runs the other words where $1 and $2 set up the resolver.
    ASKING = (
        'mount --bind "$1" /etc/resolv.conf && mount --bind "$2" /etc/nsswitch.conf'
        ' && shift 2 && exec "$@"'
    )

    def bind_name_server(self):
        harness.need_root("to have a host name of its own")
        harness.need_namespace(["--uts", "--mount"])
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(server.close)
        server.bind(("127.0.0.153", 53))
        return server

    def start_check(self, text):
        """On a host whose name only that server may know."""
        config = self.write_file(
            "collectd.conf",
            f'BaseDir "{self.directory}"\nPluginDir "{self.directory}"\n{text}\n'
            "LoadPlugin smaps\n<Plugin smaps>\n</Plugin>\n",
        )
        shutil.copy(harness.PLUGIN, self.directory)
        files = (
            self.write_file("resolv.conf", "nameserver 127.0.0.153\n"),
            self.write_file("nsswitch.conf", "hosts: dns\npasswd: files\n"),
        )
        check = subprocess.Popen(
            ["unshare", "--uts", "--mount", "sh", "-c", self.ASKING, "sh", *files,
             sys.executable, "-c", self.CALLED, "asked.invalid",
             REPORT, "check", "-C", config],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=environment(RES_OPTIONS="timeout:30 attempts:1"),
        )  # fmt: skip
        self.addCleanup(check.wait)
        self.addCleanup(check.stderr.close)
        return check

    @staticmethod
    def refuse_questions(server):
        """NXDOMAIN for each (RFC 1035, 4.1.1: a response with code 3)."""
        server.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                question, client = server.recvfrom(512)
                server.sendto(question[:2] + b"\x81\x83" + question[4:], client)

    def test_host_name_that_no_server_answers_for_is_a_warning(self):
        self.bind_name_server()
        check = self.start_check("")
        said = check.stderr.read()
        self.assertEqual(check.wait(), 0, said)
        self.assertRegex(
            said,
            "^smaps-report: waiting up to 5 s for the look-up of this host's name.*"
            "Hostname or FQDNLookup false avoids it\n"
            '(.+\n)*.*host name "asked.invalid" takes longer than 5 s; .*'
            "or set Hostname, or FQDNLookup false\n",
        )

    def test_look_up_that_is_waited_for_has_its_result(self):
        server = self.bind_name_server()
        check = self.start_check("")
        self.assertIn("waiting up to 5 s", check.stderr.readline())
        # For each family of addresses there is a question, and for each search
        # domain.
        while check.poll() is None:
            self.refuse_questions(server)
            time.sleep(0.01)
        said = check.stderr.read()
        self.assertEqual(check.returncode, 1, said)
        self.assertIn('can be looked up, not "asked.invalid"', said)

    def test_host_name_that_is_set_is_not_waited_for(self):
        self.bind_name_server()
        check = self.start_check('Hostname "a"')
        said = check.stderr.read()
        self.assertEqual(check.wait(), 0, said)
        self.assertNotIn("look-up", said)

    def test_host_name_of_another_host_is_not_looked_up(self):
        harness.need_root("to have a host name of its own")
        harness.need_namespace(["--uts"])
        config = self.write_file(
            "collectd.conf",
            f'PluginDir "{self.directory}/no"\nLoadPlugin smaps\n'
            "<Plugin smaps>\n</Plugin>\n",
        )
        status, said = self.run_called("gone.invalid", REPORT, "check", "-C", config)
        self.assertEqual(status, 0, said)

    def test_block_that_collectd_ignores_is_a_mistake(self):
        """The daemon starts with the value that is out of range."""
        status, said = harness.check_config(
            "<Plugin smaps>\nMaxAge 0\n</Plugin>\nLoadPlugin smaps", load=""
        )
        self.assertEqual(status, 0, said)
        self.assertIn("smaps plugin: version", said)
        load, auto = "LoadPlugin smaps", "AutoLoadPlugin true"
        block = "<Plugin smaps>\nMaxAge 9\n</Plugin>"
        early = "<Plugin smaps> comes before LoadPlugin smaps ("
        for parts, words in (
            ((block, load), early),
            ((block, f"<{load}>\nInterval 7\n</LoadPlugin>"), early),
            ((block, load, block), early),
            ((block,), "expected the line LoadPlugin smaps"),
            ((block, auto), early),
            ((load, block), None),
            (('LoadPlugin "SMAPS"', block), None),
            ((auto, block), None),
        ):
            with self.subTest(parts):
                for i, part in enumerate(parts):
                    self.write_file(f"conf.d/{i}.conf", f"\n{part}\n")
                config = self.write_file(
                    "collectd.conf", f'Include "{self.directory}/conf.d/*"\n'
                )
                if words:
                    (line,) = self.mistakes(config)
                    self.assertIn(words, line)
                    if words == early:
                        self.assertIn(f"{self.directory}/conf.d/0.conf: ", line)
                        self.assertIn(f"{self.directory}/conf.d/1.conf)", line)
                else:
                    self.accepted(config)
                shutil.rmtree(self.directory / "conf.d")

    def test_unreadable_file_is_a_mistake(self):
        lines = self.mistakes(self.directory / "none")
        self.assertEqual(
            lines, [f"{self.directory}/none: No such file or directory"]
        )
        lines = self.mistakes(self.directory)
        self.assertEqual(lines, [f"{self.directory}: Is a directory"])
        lines = self.mistakes("/dev/zero")
        self.assertEqual(lines, ["/dev/zero: expected a file or a pipe"])
    def test_line_that_collectd_ignores_is_a_mistake(self):
        """The daemon goes on without it; or ends, for two plugins in a line."""
        load, block = "LoadPlugin smaps", "<Plugin smaps>\n</Plugin>"
        for text, words in (
            (f"<{load}>\nInterval 7\nGlobals true\n</LoadPlugin>\n{block}", None),
            (f'<{load}>\nInterval "7"\n</LoadPlugin>\n{block}',
             'Interval "7": expected a number of seconds, without quotes'),
            (f"<{load}>\nIntervall 7\n</LoadPlugin>\n{block}",
             "Intervall 7: expected Interval or"),
            (f"{load} threshold\n{block}",
             'LoadPlugin "smaps" "threshold": expected the name of one plugin'),
            (f"{load}\nPlugin smaps\nMaxAge 9",
             "MaxAge 9: expected in a <Plugin smaps> block"),
            (f'{load}\n{block}\n<Group "g">\nComm "x"\n</Group>',
             'Group "g": expected in a <Plugin smaps> block'),
            (f'{load}\n{block}\n<Capture>\nDirectory "/x"\n</Capture>',
             "Capture: expected in a <Plugin smaps> block"),
            (f'AutoLoadPlugin "yes"\n{block}', None),
        ):  # fmt: skip
            with self.subTest(text):
                config = self.write_file("collectd.conf", f"{text}\n")
                if words:
                    (line,) = self.mistakes(config)
                    self.assertIn(f"{config}: {words}", line)
                else:
                    self.accepted(config)

    def test_file_without_a_line_that_loads_the_plugin(self):
        (line,) = self.mistakes("/dev/null")
        self.assertIn("/dev/null: expected the line LoadPlugin smaps", line)
        os.mkfifo(self.directory / "pipe")
        config = self.write_file(
            "collectd.conf",
            f'LoadPlugin smaps\nInclude "{self.directory}/pipe"\n',
        )
        (line,) = self.mistakes(config)
        self.assertIn("pipe: expected a file or a directory", line)


class Includes(LiveTest):
    """The groups that a configuration makes show which files were read."""

    def groups(self, config, **env):
        done = run("check", "-C", config, env=environment(**env))
        self.assertEqual(done.returncode, 0, done.words)
        return re.findall(r'<Group "([a-z]+)">', done.text.split("none\n")[0])

    def block(self, name, more=""):
        return (
            f'<Plugin smaps>\n<Group "{name}">\nComm "{name}"\n</Group>\n'
            f"</Plugin>\n{more}"
        )

    def test_includes_take_files_directories_and_filters(self):
        parts = self.directory / "conf.d"
        self.write_file("conf.d/b.conf", self.block("b"))
        self.write_file("conf.d/a.conf", self.block("a"))
        self.write_file("conf.d/b.bak", self.block("backup"))
        self.write_file("conf.d/.hidden.conf", self.block("hidden"))
        self.write_file("conf.d/c.conf", f'Include "{parts}/sub/d"\n')
        self.write_file("conf.d/sub/d", self.block("d"))
        for text, expected in (
            (f'<Include "{parts}">\n  Filter "*.conf"\n</Include>', "abd"),
            (f'Include "{parts}/*.conf"', "abd"),
            (f'include "{parts}/?.bak {parts}/a.conf"', ["a", "backup"]),
            (f'Include "{parts}/sub"\n' + self.block("z"), "dz"),
            (f'Include "{parts}/[z]"\n' + self.block("z"), "z"),
            ('Include "$PARTS/a.conf"', "a"),
            ('Include "~/a.conf"', "a"),
            (f'<Plugin smaps>\nOther "x"\n</Plugin>\nInclude "{parts}/a.conf"',
             "a"),
        ):  # fmt: skip
            with self.subTest(text):
                config = self.write_file(
                    "collectd.conf", f"LoadPlugin smaps\n{text}\n"
                )
                self.assertEqual(
                    self.groups(config, PARTS=str(parts), HOME=str(parts)),
                    list(expected),
                )

    def test_no_command_is_run(self):
        mark = self.directory / "mark"
        for words in (f"$(touch {mark})", f"`touch {mark}`"):
            config = self.write_file("collectd.conf", f'Include "{words}"\n')
            done = run("check", "-C", config)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot be expanded", done.words)
        self.assertFalse(mark.exists())

    def test_circles_end(self):
        loop = self.directory / "loop.conf"
        loop.write_text(f'Include "{loop}"\n')
        done = run("check", "-C", loop)
        self.assertEqual(done.returncode, 1)
        self.assertIn("at most 8 files", done.words)
        parts = self.directory / "parts"
        parts.mkdir()
        (parts / "again").symlink_to(parts)
        config = self.write_file("collectd.conf", f'Include "{parts}"\n')
        done = run("check", "-C", config)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Too many levels", done.words)


class SameAsTheDaemon(LiveTest):
    """What check says of a file is what collectd says of it."""

    def daemon(self, text):
        status, said = harness.check_config(text)
        self.assertNotEqual(status, 0, said)
        # The log is standard error, which has each mistake besides.
        options = re.findall("smaps plugin: (.*: expected .*)", said)[::2]
        parse = re.findall(r"(?s)near `(.*?)': (.*?)\n", said)
        return options, parse

    def report(self, text):
        path = self.write_file("collectd.conf", "LoadPlugin smaps\n\n" + text)
        done = run("check", "-C", path)
        lines = done.words.splitlines()
        options = [
            line.removeprefix(f"{path}: ")
            for line in lines
            if line.startswith(f"{path}: ")
        ]
        parse = re.findall(r"(?m)^.*?:\d+: near `(.*?)': (.*)$", done.words)
        self.assertEqual(done.returncode, 1 if options or parse else 0, lines)
        return options, parse

    def test_odd_texts(self):
        for odd in ODD:
            with self.subTest(odd):
                text = f"<Plugin smaps>\n{odd}\nMaxAge 0\n</Plugin>\n"
                options, parse = self.daemon(text)
                ours, our_parse = self.report(text)
                ours = [o for o in ours if "there is no <Plugin" not in o]
                self.assertEqual(ours, options)
                self.assertTrue(options or parse)
                self.assertEqual(
                    our_parse,
                    [(near.replace("\n", "\\n"), w) for near, w in parse],
                )
