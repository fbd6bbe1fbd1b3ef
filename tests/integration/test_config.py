# SPDX-License-Identifier: MIT
"""Configurations in the real `collectd -T`: the bad ones keep the daemon from
starting and say why in one line, the good ones pass."""

import re

import harness
from harness import (
    PLUGIN_SAYS,
    ROOT,
    IntegrationTest,
    check_config,
    stage,
)

PLUGIN_LINE = re.compile(PLUGIN_SAYS)
MISTAKE = re.compile(r"smaps plugin: .*expected")

LONG = "x" * 500


def plugin(text):
    return harness.plugin(text) + "\n"


def group(text, name="g"):
    return plugin(harness.group(name, text))


# A configuration, and what its one line must hold: the option, its value as
# collectd has parsed it, and (as a regular expression) what was expected. All
# other mistakes are in tests/unit/plugin and tests/unit/config.
BAD = (
    (plugin('Prozess "sshd"'), "Prozess", '"sshd"', r"an option of this block"),
    (plugin("Process 5"), "Process", "5", r"one string"),
    (plugin(f"MaxGroups {10**300}"), "MaxGroups", "1e+300", r"from 1"),
    (plugin("MaxAge 10m"), "MaxAge", '"10m"', r"seconds, without quotes and unit"),
    (plugin("Interval 5"), "Interval", "5", r"in <LoadPlugin smaps>"),
    (plugin('<Group>\nComm "a"\n</Group>'), "Group", "Group", r"string"),
    (group('Comm "a"\nContinue true true'), "Continue", "true", r"true"),
    # A wrong value may be any bytes; the line stays one line, and printable.
    (plugin('Report "a\\\\b\033[1m"'), "Report", "x1b", r"default"),
    (plugin(f'Bogus "{LONG}"'), "Bogus", '"xxx', r"option"),
)

# All options at once are in the example, below.
GOOD = (
    "",
    plugin(""),
    plugin('PROCESSMATCH "php" "^php-fpm: pool"'),
    plugin('Other "other"\nMaxGroups 1\nValuesAbsolute true'),
    plugin('ValuesPercentage true\nReport "detail"\nProcRoot "/proc"'),
    group('Comm "a"\nChildren true\nContinue false\nReport "pss"'),
    group('Comm "[]x]*"\nExecutable "/usr/lib/*/[!a-c]?\\\\*"'),
    group('CommMatch "^(a|b)(c)$"', name="%{2}-%{1}-100%%"),
    group('User "0"\nUser "no-such-user"\nUserMatch "^r"', name="%{user}"),
    group('Cgroup "/a"\nCgroupMatch "b"\nUnit "*.service"\nUnitMatch "x"'),
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

    def test_mistake_is_on_standard_error(self):
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
                self.assertIn('smaps plugin: MaxAge "10m": ', said)
        self.assertIn('smaps plugin: MaxAge "10m": ', log.read_text())

    def check_refused(self, config, option, value, expected):
        status, output = check_config(config)
        # Without a plugin for the log both copies are on standard error.
        lines = {
            line[match.start() :]
            for line in output.split("\n")
            if (match := PLUGIN_LINE.search(line))
        }
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
