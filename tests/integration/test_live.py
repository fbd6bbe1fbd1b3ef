"""smaps-report live and check: with a stand-in for collectd, and with the real
one."""

import json
import os
import re
import signal
import stat
import subprocess
import time
import unittest
from pathlib import Path

import harness
from test_report import MIB, REPORT, STATE, ReportTest, environment, run

STAND_IN = r"""#!/bin/sh
# Stands in for collectd -T: keeps what it was given, writes the state file.
{ echo "$@"; ls -ld "$(dirname "$3")"; } >"$KEEP/args"
cp "$3" "$KEEP/config"
dirname "$3" >"$KEEP/directory"
[ -z "$SLEEP" ] || { touch "$KEEP/sleeping"; exec sleep "$SLEEP"; }
printf '%s\n' "[notice] smaps plugin: lacks $(printf '\033')[1mit" >&2
echo 'Initialization complete.'
[ "$STATUS" = 0 ] || {
  echo 'Error: Parsing the config file failed!'
  exit "$STATUS"
}
[ -z "$STATE" ] || cp "$STATE" "$(sed -n 's/^StateFile "\(.*\)"$/\1/p' "$3")"
"""


class Live(ReportTest):
    def setUp(self):
        super().setUp()
        self.keep = self.directory / "keep"
        self.tmp = self.directory / "tmp"
        for directory in (self.keep, self.tmp):
            directory.mkdir()
        self.collectd = self.directory / "bin/collectd"
        self.collectd.parent.mkdir()
        self.collectd.write_text(STAND_IN)
        self.collectd.chmod(0o755)

    def environment(self, status=0, state=STATE, **changes):
        return environment(
            KEEP=str(self.keep), STATUS=str(status), STATE=str(state),
            TMPDIR=str(self.tmp), **changes,
        )  # fmt: skip

    def live(self, *args, **env):
        env = self.environment(**env)
        return run("live", "--collectd", self.collectd, *args, env=env)

    def config(self, *args, **env):
        """The configuration that collectd was given."""
        done = self.live(*args, **env)
        self.assertEqual(done.returncode, 0, done.words)
        return (self.keep / "config").read_text()

    def write_config(self, text, name="collectd.conf"):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        return path

    def assert_clean(self):
        self.assertEqual(list(self.tmp.iterdir()), [])

    def test_tables_of_what_the_plugin_found(self):
        done = self.live("-C", self.write_config(""), "-tk")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.text, self.report("-tk", STATE))
        self.assertEqual(
            done.words, "[notice] smaps plugin: lacks \\x1b[1mit\n"
        )
        args, directory = (self.keep / "args").read_text().splitlines()
        self.assertRegex(args, r"^-T -C /.*/collectd\.conf$")
        self.assertTrue(directory.startswith("drwx------"), directory)
        self.assert_clean()

    def test_configuration_has_our_blocks_alone(self):
        path = self.write_config(
            'Hostname "db1"\nLoadPlugin csv\nPluginDir "/opt/plugins"\n'
            '<Plugin csv>\n  DataDir "/data"\n</Plugin>\n'
            '<Plugin "SMAPS">\n  StateFile "/x"\n  StateAtStart false\n  Other "rest"\n'
            '  <Capture>\n    Directory "/d"\n  </Capture>\n</Plugin>\n'
        )
        config = self.config("-C", path)
        directory = (self.keep / "directory").read_text().strip()
        self.assertEqual(config.count(f'StateFile "{directory}/'), 1)
        self.assertEqual(config.count("StateFile"), 1)
        self.assertEqual(config.count("StateAtStart"), 1)
        for words in ("csv", "/data", "Capture", "/d"):
            self.assertNotIn(f'"{words}"', config)
            self.assertNotIn(f"{words} ", config)
        self.assertIn('Hostname "db1"\n', config)
        self.assertIn('<Plugin "SMAPS">\n  Other "rest"\n</Plugin>\n', config)
        self.assertIn(f'BaseDir "{directory}"\n', config)
        self.assertRegex(
            config, '(?s)PluginDir "/opt.*LoadPlugin smaps.*StateFile.*SMAPS'
        )

    def test_includes_are_followed(self):
        parts = self.directory / "conf.d"
        block = '<Plugin smaps>\nOther "{}"\n</Plugin>\n'
        self.write_config(block.format("a"), "conf.d/a.conf")
        self.write_config(block.format("b"), "conf.d/b.bak")
        self.write_config(f'Include "{parts}/sub"\n', "conf.d/c.conf")
        self.write_config(block.format("d"), "conf.d/sub/d")
        path = self.write_config(
            f'<Include "{parts}">\n  Filter "*.conf"\n</Include>\n'
        )
        config = self.config("-C", path)
        self.assertRegex(config, '(?s)Other "a".*Other "d"')
        self.assertNotIn('"b"', config)
        path = self.write_config(
            f'Include "{parts}/*.bak"\nInclude "/none/*"\n'
        )
        self.assertIn('Other "b"', self.config("-C", path))
        loop = self.write_config(f'Include "{path}"\n')
        done = self.assert_fails_live("Too many levels", "-C", loop)
        self.assertEqual(done.text, "")

    def assert_fails_live(self, words, *args, **env):
        done = self.live(*args, **env)
        self.assertEqual(done.returncode, 2)
        self.assertIn(words, done.words)
        self.assertIn("smaps-report: live: ", done.words.splitlines()[-1])
        self.assert_clean()
        return done

    def test_plugin_directory_is_the_users(self):
        path = self.write_config('PluginDir "/opt/plugins"\n')
        config = self.config("-C", path, "--plugin-dir", self.keep)
        self.assertRegex(
            config, f"(?s)/opt/plugins.*{re.escape(str(self.keep))}.*LoadPlugin"
        )
        self.assert_fails_live(
            "No such file", "-C", path, "--plugin-dir", self.directory / "none"
        )

    def test_collectd_is_found_in_the_path(self):
        path = f"{self.collectd.parent}:{os.environ['PATH']}"
        config = self.write_config("")
        done = run("live", "-C", config, env=self.environment(PATH=path))
        self.assertEqual(done.returncode, 0)
        self.assertTrue((self.keep / "config").exists())

    def test_failures_show_what_collectd_said(self):
        config = self.write_config("")
        done = self.assert_fails_live("with status 3", "-C", config, status=3)
        self.assertIn("Parsing the config file failed!\n", done.words)
        self.assertNotIn("\x1b", done.words)
        self.assert_fails_live("no snapshot", "-C", config, state="")
        foreign = self.collectd
        self.assert_fails_live("no valid JSON", "-C", config, state=foreign)
        self.assert_fails_live("No such file", "-C", self.directory / "none")
        self.collectd.chmod(stat.S_IRUSR)
        self.assert_fails_live("--collectd", "-C", config)

    def test_interrupt_leaves_nothing_behind(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                process = subprocess.Popen(
                    [REPORT, "live", "--collectd", self.collectd,
                     "-C", self.write_config("")],
                    env=self.environment(SLEEP="100"),
                    stderr=subprocess.PIPE,
                    # Ignored by whoever is started in the background.
                    preexec_fn=lambda: signal.signal(
                        signal.SIGINT, signal.SIG_DFL
                    ),
                )  # fmt: skip
                sleeping = self.keep / "sleeping"
                harness.wait_until(sleeping.exists, "the stand-in")
                began = time.monotonic()
                process.send_signal(number)
                self.assertEqual(process.wait(), -number)
                self.assertLess(time.monotonic() - began, 30)
                process.stderr.close()
                self.assert_clean()
                sleeping.unlink()


class RealCollectd(ReportTest):
    """`live` with the daemon and the plugin themselves."""

    def live(self, text, *args, **options):
        config = harness.stage().new_directory() / "collectd.conf"
        config.write_text(text)
        return run(
            "live", "--collectd", harness.COLLECTD, "-C", config,
            "--plugin-dir", harness.stage().plugin_dir, *args, **options
        )  # fmt: skip

    def test_refusal_is_shown(self):
        done = self.live("<Plugin smaps>\nNoSuchOption 5\n</Plugin>\n")
        self.assertEqual(done.returncode, 2)
        self.assertIn("smaps plugin: ", done.words)
        self.assertIn("collectd ended with status", done.words)

    @unittest.skipUnless(
        b"StateFile" in harness.PLUGIN.read_bytes(),
        "the plugin has no StateFile",
    )
    def test_this_process_is_found_in_its_group(self):
        done = self.live(
            '<Plugin smaps>\n<Group "us">\n'
            f'Comm "{self.own_comm()}"\n</Group>\n'
            'StateFile "/nowhere/at/all"\n</Plugin>\n',
            "-j", "--processes", "-c", "pid,pss,source", "-g", "us",
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.words)
        rows = {row.get("pid"): row for row in json.loads(done.text)}
        self.assertEqual(rows[os.getpid()]["source"], "read")
        self.assertGreater(rows[os.getpid()]["pss"], MIB)

    def test_as_nobody_rss_and_counts_are_shown(self):
        harness.need_root("becomes nobody")
        uid, gid = harness.unprivileged_user()
        own = harness.Shape("anon", name="own", mib=4, user=(uid, gid))
        self.addCleanup(own.stop)
        directory = harness.stage().new_directory((uid, gid))
        done = self.live(
            '<Plugin smaps>\n<Group "own">\n'
            f'Comm "own{harness.TAG}"\n</Group>\n'
            f'<Group "us">\nComm "{self.own_comm()}"\n</Group>\n</Plugin>\n',
            "-Gt", user=uid, group=gid, extra_groups=[],
            env=environment(TMPDIR=str(directory)),
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.words)
        rows = [line.split() for line in done.text.splitlines()]
        own, us, total = (
            next(row for row in rows if row and row[-1] == name)
            for name in ("own", "us", "total")
        )
        self.assertEqual(us[:2], ["-", "-"])
        self.assertGreater(int(us[2]), MIB // harness.KIB)
        self.assertGreaterEqual(int(us[4]), 1)
        self.assertEqual(own[4], "1")
        self.assertEqual(total[:2], ["≥", own[0]])

    def own_comm(self):
        return Path("/proc/self/comm").read_text().strip()

    # ---- check ----

    def check(self, config):
        return run(
            "check", "--collectd", harness.COLLECTD, "-C", config,
            "--plugin-dir", harness.stage().plugin_dir,
        )  # fmt: skip

    def write_file(self, name, text):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def test_check_prints_all_mistakes_with_their_files(self):
        """Each in a line; other plugins are not loaded."""
        first = self.write_file(
            "conf.d/a.conf",
            "LoadPlugin no_such_plugin\nLoadPlugin smaps\n"
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
        done = self.check(config)
        self.assertEqual((done.returncode, done.text), (1, ""), done.words)
        lines = done.words.splitlines()
        expected = (
            (first, r"MaxAge 0: expected a number of seconds from 1 to 86400"),
            (first, r'StateFile "x": expected an absolute path'),
            (first, r'<Group "us">: Com "x": expected .*did you mean Comm\?'),
            (first, r'<Group "us">: CommMatch "\(": expected .*'),
            (second, r'<Capture>: MaxFiles "many": expected one number'),
        )
        self.assertEqual(len(lines), len(expected), lines)
        for line, (path, words) in zip(lines, expected):
            self.assertRegex(line, rf"\A{re.escape(str(path))}: {words}\Z")

    def test_check_names_the_line_that_cannot_be_parsed(self):
        for text, line, words in (
            ('\n\n<Plugin smaps>\n  Other "x" <\n</Plugin>\n', ":4", "near"),
            ('<Plugin smaps>\n<Group "g">\n</Ignore>\n</Plugin>\n', ":3",
             "not closed"),
            ('<Plugin smaps>\n<Group "g">\n</Plugin>\n', "",
             "expected the end of a block"),
        ):  # fmt: skip
            with self.subTest(text):
                self.write_file("conf.d/z.conf", "<Plugin smaps>\n</Plugin>\n")
                path = self.write_file("conf.d/a.conf", text)
                config = self.write_file(
                    "collectd.conf",
                    f'Include "{self.directory}/conf.d/*.conf"\n',
                )
                done = self.check(config)
                self.assertEqual(done.returncode, 1, done.words)
                (only,) = done.words.splitlines()
                self.assertTrue(only.startswith(f"{path}{line}: "), only)
                self.assertIn(words, only)

    def test_check_prints_the_rules_and_writes_nothing(self):
        state = self.write_file("state.json", "precious")
        captures = self.directory / "captures"
        config = self.write_file(
            "collectd.conf",
            '<Plugin smaps>\n<Group "us">\n'
            f'Comm "{self.own_comm()}"\n</Group>\n'
            '<Group "nobody">\nComm "no such process"\n</Group>\n'
            f'StateFile "{state}"\nStateAtStart true\nStateInterval 0\n'
            f'<Capture>\nDirectory "{captures}"\n</Capture>\n</Plugin>\n',
        )
        done = self.check(config)
        self.assertEqual(done.returncode, 0, done.words)
        title, us, nobody, none = done.text.splitlines()[:4]
        self.assertIn("MATCHED", title)
        self.assertRegex(us, r'^ *[1-9]\d* .* 1: <Group "us"> Comm ')
        self.assertRegex(nobody, r'^ *0 +0 +0 +0  2: <Group "nobody"> Comm ')
        self.assertRegex(none, r"^ *\d+ +none$")
        self.assertEqual(state.read_text(), "precious")
        self.assertFalse(captures.exists())

    def test_check_of_no_block_says_that_the_rules_are_the_defaults(self):
        self.write_file("conf.d/a.conf", "<Plugin smaps>\n</Plugin>\n")
        for pattern, said in (("*.conf", False), ("*.cnf", True)):
            with self.subTest(pattern):
                config = self.write_file(
                    "collectd.conf",
                    f'Include "{self.directory}/conf.d/{pattern}"\n',
                )
                done = self.check(config)
                self.assertEqual(done.returncode, 0, done.words)
                self.assertIn('<Group "%{unit}">', done.text)
                words = f"{config}: there is no <Plugin smaps> in it"
                self.assertEqual(words in done.words, said, done.words)

    def test_check_that_cannot_be_made_is_an_error(self):
        done = self.check(self.directory / "none")
        self.assertEqual((done.returncode, done.text), (2, ""))
        self.assertIn("smaps-report: check: ", done.words)
        self.assertIn("No such file", done.words)
        config = self.write_file("collectd.conf", "")
        done = run("check", "--collectd", "/bin/false", "-C", config)
        self.assertEqual((done.returncode, done.text), (2, ""))
        self.assertIn("collectd ended with status 1", done.words)


if __name__ == "__main__":
    unittest.main()
