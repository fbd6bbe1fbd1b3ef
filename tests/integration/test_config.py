"""Configurations in the real `collectd -T`: the bad ones keep the daemon from
starting and say why in one line, the good ones pass."""

import os
import re

import harness
from harness import (
    PLUGIN_SAYS,
    ROOT,
    IntegrationTest,
    check_config,
    stage,
    unprivileged_user,
)

PLUGIN_LINE = re.compile(PLUGIN_SAYS)
MISTAKE = re.compile(r"smaps plugin: .*expected")

LONG = "x" * 500


def plugin(text):
    return harness.plugin(text) + "\n"


def group(text, name="g"):
    return plugin(harness.group(name, text))


# A configuration, and what its one line must hold: the option, its value as it
# is written in the line, and (as a regular expression) what was expected.
BAD = (
    # Unknown options, with the nearest name there is.
    (plugin('Prozess "sshd"'), "Prozess", '"sshd"', r"Process\b"),
    (plugin("MaxGruops 5"), "MaxGruops", "5", r"MaxGroups\b"),
    (plugin('Comm "sshd"'), "Comm", '"sshd"', r"option"),
    (group('Exceutable "/bin/sh"'), "Exceutable", '"/bin/sh"', r"Executable\b"),
    (group('UserMatches "x"'), "UserMatches", '"x"', r"UserMatch\b"),
    (group('PidFileMatch "x"'), "PidFileMatch", '"x"', r"selector"),
    (group('Comm "a"\nMaxGroups 3'), "MaxGroups", "3", r"option"),
    (plugin("<Grupp \"g\">\nComm \"a\"\n</Grupp>"), "Grupp", '"g"', r"Group\b"),
    (plugin('<Ignore>\nComm "a"\nContinue true\n</Ignore>'), "Continue", "true",
     r"option"),
    (group('Comm "a"\nZzzzzzzzzz "x"'), "Zzzzzzzzzz", '"x"', r"option"),
    # Number and type of arguments. None at all is a syntax error to collectd,
    # except for a block.
    (plugin('Process "a" "b"'), "Process", '"a" "b"', r"one string"),
    (plugin("Process 5"), "Process", "5", r"one string"),
    (plugin("Process true"), "Process", "true", r"one string"),
    (plugin('ProcessMatch "a"'), "ProcessMatch", '"a"', r"regular expression"),
    (plugin('ProcessMatch "a" 5'), "ProcessMatch", '"a" 5', r"regular expr"),
    (group("Comm 5"), "Comm", "5", r"one string"),
    (group('Comm "a" "b"'), "Comm", '"a" "b"', r"one string"),
    (group('Comm "a"\nChildren "yes"'), "Children", '"yes"', r"true"),
    (group('Comm "a"\nContinue 1'), "Continue", "1", r"true"),
    (group('Comm "a"\nContinue true true'), "Continue", "true", r"true"),
    (plugin('ValuesAbsolute "maybe"'), "ValuesAbsolute", '"maybe"', r"true"),
    (plugin("ValuesPercentage 100"), "ValuesPercentage", "100", r"true"),
    (plugin('MaxGroups "many"'), "MaxGroups", '"many"', r"number"),
    (plugin("MaxGroups 1 2"), "MaxGroups", "1 2", r"number"),
    (plugin("Other 5"), "Other", "5", r"string"),
    (plugin('Other ""'), "Other", '""', r"not empty"),
    (plugin("Report 5"), "Report", "5", r"string"),
    (plugin("ProcRoot true"), "ProcRoot", "true", r"string"),
    (plugin('<Group>\nComm "a"\n</Group>'), "Group", "Group", r"string"),
    (plugin('<Group 5>\nComm "a"\n</Group>'), "Group", "5", r"string"),
    (group('Comm "a"', name=""), "Group", '""', r"not empty"),
    (plugin('<Group "a" "b">\nComm "a"\n</Group>'), "Group", '"a" "b"',
     r"string"),
    (plugin('<Ignore "x">\nComm "a"\n</Ignore>'), "Ignore", '"x"', r"no name"),
    # Patterns.
    (group('CommMatch "("'), "CommMatch", '"("', r"[Uu]nmatched \("),
    (group('UnitMatch "[a"'), "UnitMatch", '"[a"', r"[Uu]nmatched \["),
    (group('UserMatch "a{2,1}"'), "UserMatch", '"a{2,1}"', r"[Ii]nvalid"),
    (group('CommMatch "*a{"'), "CommMatch", '"*a{"', r"expression"),
    (plugin('ProcessMatch "a" "("'), "ProcessMatch", '"("', r"[Uu]nmatched \("),
    (group('Comm "[a"'), "Comm", '"[a"', r"glob"),
    (group('Executable "/x[a"'), "Executable", '"/x[a"', r"glob"),
    (group('Unit "[[:alpha:]"'), "Unit", '"[[:alpha:]"', r"glob"),
    (group('Comm "a\\\\"'), "Comm", "a", r"glob"),
    (group('Comm ""'), "Comm", '""', r"not empty"),
    (group('CommMatch ""'), "CommMatch", '""', r"not empty"),
    (group('PidFile "x.pid"'), "PidFile", '"x.pid"', r"absolute"),
    # Names.
    (group('CommMatch "(a)"', name="x-%{7}"), "Group", "x-%{7}",
     r"7 captures.* has 1|has 1 .*7"),
    (group('Comm "a"', name="x-%{1}"), "Group", "x-%{1}", r"capture"),
    (group('CommMatch "(a)"\nCommMatch "b"', name="%{1}"), "Group", "%{1}",
     r'"b"'),
    (group('Comm "a"', name="%{usr}"), "Group", "%{usr}", r"%\{user\}"),
    (group('Comm "a"', name="%{zzzzzz}"), "Group", "%{zzzzzz}", r"%\{comm\}"),
    (group('Comm "a"', name="%{10}"), "Group", "%{10}", r"%\{9\}"),
    (group('Comm "a"', name="%{0}"), "Group", "%{0}", r"%\{1\}"),
    (group('Comm "a"', name="%{comm"), "Group", "%{comm", r"\}"),
    (plugin('ProcessMatch "x-%{2}" "(a)"'), "ProcessMatch", "x-%{2}",
     r"capture"),
    (plugin('Other "o-%{comm}"'), "Other", "o-%{comm}", r"placeholder"),
    # Groups that cannot be.
    (group(""), "Group", '"g"', r"selector"),
    (group("Children true"), "Group", '"g"', r"selector"),
    (plugin("<Ignore>\nChildren true\n</Ignore>"), "Ignore", "", r"selector"),
    (plugin('Process "a"\nProcess "a"'), "Process", '"a"', r"name"),
    (plugin('Process "a"\n<Group "a">\nComm "b"\n</Group>'), "Group", '"a"',
     r"name"),
    # Two names that are not the same and become it.
    (plugin('ProcessMatch "a/b" "x"\nProcessMatch "a_b" "y"'), "ProcessMatch",
     '"a_b"', r"name"),
    (plugin('Process "a"\nOther "a"'), "Other", '"a"', r"name"),
    (plugin('Other "a"\nProcess "a"'), "Process", '"a"', r"name"),
    (plugin('Other "a"') + plugin('Other "b"'), "Other", '"b"', r"once"),
    (plugin('Process "a"') * 2, "Process", '"a"', r"name"),
    (plugin('Process "sixteen-letters-"'), "Process", '"sixteen-letters-"',
     r"15"),
    (group('Comm "sixteen-letters-"'), "Comm", "sixteen", r"15"),
    # Numbers.
    (plugin("MaxGroups 0"), "MaxGroups", "0", r"from 1"),
    (plugin('Refresh "sometimes"'), "Refresh", '"sometimes"', r'"adaptive"'),
    (plugin("Refresh true"), "Refresh", "true", r"one string"),
    (plugin("ReadBudget -1"), "ReadBudget", "-1", r"percentage of one CPU"),
    (plugin("ReadBudget 0"), "ReadBudget", "0", r"from 0.01 to 100"),
    (plugin("ReadBudget 200"), "ReadBudget", "200", r"from 0.01 to 100"),
    (plugin("MaxAge 0"), "MaxAge", "0", r"seconds from 1"),
    (plugin("MaxAge 10m"), "MaxAge", '"10m"', r"seconds, without quotes and unit"),
    (plugin("Interval 5"), "Interval", "5", r"in <LoadPlugin smaps>"),
    (
        plugin("GrowthWindow 59"),
        "GrowthWindow",
        "59",
        r"seconds from 60 to 604800",
    ),
    (plugin("MaxLockHold 0"), "MaxLockHold", "0", r"milliseconds from 0.1"),
    (plugin("MaxLockHold 1500"), "MaxLockHold", "1500", r"1000 milliseconds"),
    (plugin("MaxLockHold 300\nReadTimeout 0.2"), "MaxLockHold", "300", r"at most"),
    (plugin("ReadTimeout 0.2\nMaxLockHold 300"), "MaxLockHold", "300", r"at most"),
    (group('Comm "a"\nMaxLockHold 1500'), "MaxLockHold", "1500", r"ReadTimeout"),
    (group('Comm "a"\nMaxLockHold 150') + plugin("ReadTimeout 0.1"),
     "ReadTimeout", "0.1", r"0.15 seconds of a MaxLockHold"),
    (group('Comm "a"\nReadBudget 5'), "ReadBudget", "5", r"option"),
    (plugin("MaxGroups -1"), "MaxGroups", "-1", r"from 1"),
    (plugin("MaxGroups 1.5"), "MaxGroups", "1.5", r"whole number"),
    (plugin(f"MaxGroups {10**12}"), "MaxGroups", "1000000000000", r"from 1"),
    (plugin(f"MaxGroups {10**300}"), "MaxGroups", "1e+300", r"from 1"),
    (plugin(f"MaxGroups {2**64 + 1}"), "MaxGroups", "1.8446744", r"from 1"),
    # The rest.
    (plugin('ProcRoot "/nonexistent"'), "ProcRoot", "/nonexistent", r"No such"),
    (plugin('ProcRoot "/dev/null"'), "ProcRoot", "/dev/null", r"proc"),
    (plugin('ProcRoot "proc"'), "ProcRoot", '"proc"', r"absolute"),
    (plugin('ProcRoot ""'), "ProcRoot", '""', r"absolute"),
    (plugin('Report "bogus"'), "Report", '"bogus"', r'"default"'),
    (plugin('Report "pss_fiel"'), "Report", '"pss_fiel"', r'"pss_file"'),
    (plugin('Report "pss" "bogus"'), "Report", '"bogus"', r'"default"'),
    (group('Comm "a"\nReport "bogus"'), "Report", '"bogus"', r'"default"'),
    (group('<Comm "a">\nUser "b"\n</Comm>'), "Comm", '"a"', r"block"),
    # A wrong value may be any bytes; the line stays one line, and printable.
    (plugin('Report "a\\\\b\033[1m"'), "Report", "x1b", r"default"),
    (plugin(f'Bogus "{LONG}"'), "Bogus", '"xxx', r"option"),
)

GOOD = (
    "",
    plugin(""),
    plugin('Process "sshd"'),
    plugin('process "sshd"'),
    plugin('PROCESSMATCH "php" "^php-fpm: pool"'),
    plugin('ProcessMatch "pool-%{1}" "^php-fpm: pool ([a-z]+)"'),
    plugin('Process "100%{cpu}"'),
    plugin('Process "a"') + plugin('Process "b"\nOther "rest"'),
    plugin('<Ignore>\nComm "kworker*"\n</Ignore>'),
    plugin('Other "other"\nMaxGroups 1\nValuesAbsolute true'),
    plugin("MaxGroups 100000"),
    plugin('ValuesPercentage true\nReport "detail"\nProcRoot "/proc"'),
    plugin('Report "default" "pss_anon"\nReport "PSS_File"'),
    group('Comm "a"\nChildren true\nContinue false\nReport "pss"'),
    group('Comm "[]x]*"\nExecutable "/usr/lib/*/[!a-c]?\\\\*"'),
    group('CommMatch "^(a|b)(c)$"', name="%{2}-%{1}-100%%"),
    group('User "0"\nUser "no-such-user"\nUserMatch "^r"', name="%{user}"),
    group('Cgroup "/a"\nCgroupMatch "b"\nUnit "*.service"\nUnitMatch "x"'),
    group('Slice "a.slice"\nSliceMatch "b"'),
    group('Container "c*"\nContainerMatch "d"'),
    group('CommandLine "a b"\nCommandLineMatch "c"\nExecutableMatch "d"'),
    group('PidFile "/run/not-there.pid"'),
    group('Comm "a"', name="%{comm}%{exe}%{user}%{unit}%{slice}%{container}"),
    group('Comm "a"', name="x" * 300),
    plugin(
        '<Group "%{comm}">\nComm "a"\n</Group>\n'
        '<Group "%{comm}">\nComm "b"\n</Group>'
    ),
)


class BadConfiguration(IntegrationTest):
    def test_bad_configurations_are_refused_in_one_line(self):
        for config, option, value, expected in BAD:
            with self.subTest(config):
                self.check_refused(config, option, value, expected)

    def test_mistake_is_on_standard_error_once(self):
        """Wherever the log goes: to a file, to it, and nowhere yet."""
        log = stage().new_directory() / "log"
        for place in (log, "stderr", None):
            with self.subTest(place):
                load = "LoadPlugin smaps"
                if place:
                    load = (
                        "LoadPlugin logfile\n<Plugin logfile>\n"
                        f'File "{place}"\n</Plugin>\n{load}'
                    )
                status, said = check_config(plugin("MaxAge 10m"), load=load)
                self.assertNotEqual(status, 0)
                self.assertEqual(said.count('smaps plugin: MaxAge "10m": '), 1)
        self.assertIn('smaps plugin: MaxAge "10m": ', log.read_text())

    def test_every_mistake_has_a_line(self):
        status, output = check_config(
            plugin('Process 5\nReport "bogus"')
            + group('Com "a"\nMaxAge 0\nUser "x"')
        )
        self.assertNotEqual(status, 0, output)
        lines = [line for line in output.split("\n") if MISTAKE.search(line)]
        self.assertEqual(len(lines), 4, output)
        for line, words in zip(
            lines, ("Process 5", 'Report "bogus"', 'Com "a"', "MaxAge 0")
        ):
            self.assertIn(words, line)

    def test_directory_without_processes_is_no_proc_root(self):
        directory = str(stage().new_directory())
        self.check_refused(
            plugin(f'ProcRoot "{directory}"'), "ProcRoot", directory, r"proc"
        )

    def test_directory_that_cannot_be_entered_is_no_proc_root(self):
        directory = stage().new_directory()
        # Closed to everybody but root, who is not asked.
        directory.chmod(0)
        self.addCleanup(directory.chmod, 0o755)
        self.check_refused(
            plugin(f'ProcRoot "{directory}"'),
            "ProcRoot",
            str(directory),
            r"Permission denied",
            user=unprivileged_user(),
        )

    def check_refused(self, config, option, value, expected, user=None):
        status, output = check_config(config, user)
        lines = [
            line for line in output.split("\n") if PLUGIN_LINE.search(line)
        ]
        self.assertNotEqual(status, 0, output)
        self.assertEqual(len(lines), 1, output)
        (line,) = lines
        self.assertIn(option, line)
        self.assertIn(value, line)
        self.assertRegex(line, "expected")
        self.assertRegex(line, expected)
        self.assertTrue(line.isprintable(), ascii(line))


class GoodConfiguration(IntegrationTest):
    def check_accepted(self, config):
        status, output = check_config(config)
        self.assertEqual(status, 0, output)
        # -T also reads once, and may be refused some process of the machine.
        self.assertIsNone(MISTAKE.search(output), output)

    def test_good_configurations_are_accepted(self):
        for config in GOOD:
            with self.subTest(config):
                self.check_accepted(config)

    def test_a_check_leaves_the_files_of_a_daemon_alone(self):
        directory = stage().new_directory()
        state = directory / "state.json"
        state.write_text("precious")
        self.check_accepted(
            plugin(
                f'StateFile "{state}"\nStateInterval 0\n<Capture>\n'
                f'Directory "{directory}/captures"\n</Capture>\n'
                + harness.group("all", 'Comm "*"')
            )
        )
        self.assertEqual(state.read_text(), "precious")
        self.assertEqual(os.listdir(directory), ["state.json"])

    def test_example_with_every_option_switched_on(self):
        """As the file has it: "#Option value" is an option, "# text" prose."""
        path = ROOT / "collectd-smaps.conf.example"
        if not path.exists():
            self.skipTest(f"there is no {path.name} yet")
        text = path.read_text(encoding="utf-8")
        switched_on, n = re.subn(r"(?m)^(\s*)#(?=[A-Z<])", r"\1", text)
        self.assertGreater(n, 0)
        self.check_accepted(text)
        self.check_accepted(switched_on)
