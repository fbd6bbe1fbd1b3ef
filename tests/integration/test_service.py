# SPDX-License-Identifier: MIT
"""collectd as a service with what contrib/systemd leaves it, and the rules of
contrib/security."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

from harness import (
    ROOT,
    IntegrationTest,
    group,
    need_program,
    plugin,
    stage,
)

DROP_IN = ROOT / "contrib/systemd/collectd.service.d/smaps.conf"
SECURITY = ROOT / "contrib/security"

UNIT = """\
[Service]
Type=notify
ExecStart=/bin/true
Restart=always
"""


def output(*command, **options):
    """Returns both outputs, after the status."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    return done.returncode, done.stdout


class DropIn(unittest.TestCase):
    def setUp(self):
        self.directory = stage().new_directory()
        self.unit = self.directory / "collectd.service"
        self.unit.write_text(UNIT)

    def put_drop_in(self):
        target = self.directory / "collectd.service.d"
        target.mkdir()
        shutil.copy(DROP_IN, target)

    def analyze(self, *words):
        path = f"{self.directory}:"
        return output(
            need_program("systemd-analyze", "systemd"), *words, self.unit,
            env={"SYSTEMD_UNIT_PATH": path, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip

    def exposure(self):
        status, text = self.analyze("security", "--offline=yes")
        pattern = r"exposure level for collectd.service: ([\d.]+)"
        found = re.search(pattern, text)
        if not found:
            self.skipTest(f"systemd-analyze security: {text.strip()}")
        return float(found.group(1))

    def test_drop_in_keeps_the_capability_to_read_others(self):
        """That it is enough is in test_permission.Capabilities."""
        (words,) = re.findall(
            r"^AmbientCapabilities=(.*)$", DROP_IN.read_text(), re.M
        )
        self.assertEqual(words, "CAP_SYS_PTRACE")

    def test_every_setting_is_known(self):
        """A missing tool is a line, and no failure."""
        self.put_drop_in()
        self.assertEqual(self.analyze("verify", "--man=no"), (0, ""))

    def test_service_is_less_exposed(self):
        before = self.exposure()
        self.put_drop_in()
        self.assertLess(self.exposure(), before - 5)


class AppArmorRules:
    """Knows the files that the abstraction allows."""

    VARIABLES = {
        "@{PROC}": "/proc",
        "@{pids}": "[0-9]+",
        "@{pid}": "[0-9]+",
        "@{tid}": "[0-9]+",
    }

    def __init__(self):
        text = (SECURITY / "apparmor-collectd-smaps").read_text()
        rules = re.findall(r"^ *(?:owner )?([@/]\S+) (r|rw),$", text, re.M)
        self.rules = [(self.pattern(path), modes) for path, modes in rules]

    def pattern(self, path):
        for variable, value in self.VARIABLES.items():
            path = path.replace(variable, value)
        path = path.replace("**", ".+")
        for names in re.findall(r"{([^}]*)}", path):
            path = path.replace(
                "{" + names + "}", f"({names.replace(',', '|')})"
            )
        return re.compile(re.sub(r"(?<!\.)\*", "[^/]*", path))

    def allow(self, path, mode):
        return any(
            pattern.fullmatch(path) and mode in modes
            for pattern, modes in self.rules
        )


def find_opened(trace, root=""):
    """Each (path, "r" or "w") below the root, directories with a slash at their
    end."""
    opened = set()
    for line in trace.read_text().splitlines():
        match = re.search(rf" (O_[A-Z_|]+)\) = \d+<{root}(/.*)>", line)
        if not match or "O_PATH" in match[1]:
            continue
        path = match[2] + "/" * ("O_DIRECTORY" in match[1])
        opened.add((path, "w" if "O_RDWR" in match[1] else "r"))
    return opened


class Opened(IntegrationTest):
    def test_apparmor_allows_every_opened_file(self):
        strace = need_program("strace")
        trace = stage().new_directory() / "trace"
        state = stage().new_directory() / "state"
        words = ("-D", "-f", "-y", "-o", trace, "-e", "trace=open,openat")
        collectd = self.start_collectd(
            plugin(
                f'StateFile "{state}"',
                group("%{user}-%{unit}", 'Executable "*"', 'CommandLine "*"'),
                'Other "other"',
            ),
            wrapper=(strace, *words),
        )
        collectd.next_cycle()
        collectd.next_cycle()
        opened = {
            each
            for each in find_opened(trace)
            if each[0].startswith(("/proc/", "/sys/"))
        }
        self.assertIn(("/proc/meminfo", "r"), opened)
        self.assertIn(("/proc/", "r"), opened)
        rules = AppArmorRules()
        missing = [each for each in sorted(opened) if not rules.allow(*each)]
        self.assertEqual(missing, [])


class Rules(unittest.TestCase):
    def test_apparmor_takes_the_abstraction(self):
        parser = need_program("apparmor_parser", "apparmor")
        profile = stage().new_directory() / "profile"
        profile.write_text(
            "#include <tunables/global>\n"
            "profile collectd /usr/sbin/collectd {\n"
            f'#include "{SECURITY}/apparmor-collectd-smaps"\n}}\n'
        )
        status, text = output(parser, "-Q", "-K", profile)
        self.assertEqual(status, 0, text)

    def test_selinux_takes_the_module(self):
        compiler = need_program("checkmodule", "checkpolicy")
        target = stage().new_directory() / "collectd_smaps.mod"
        source = SECURITY / "collectd_smaps.te"
        status, text = output(compiler, "-M", "-m", "-o", target, source)
        self.assertEqual(status, 0, text)
        self.assertTrue(Path(target).exists())
