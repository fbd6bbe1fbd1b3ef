# SPDX-License-Identifier: MIT
"""The real daemon under tools that watch what our code does in it. Not part of
`make check`: these are slow and need a plugin that was built for them.

    make PROFILE=debug check-integration TESTS=check_daemon.Memcheck
    make PROFILE=tsan check-integration TESTS=check_daemon.Threads
"""

import re
import shutil
import subprocess
from pathlib import Path

from harness import PLUGIN, IntegrationTest

CONFIG = """
    <Plugin smaps>
      Report "detail"
      <Group "view-%{user}">
        UserMatch "(.*)"
        Continue true
      </Group>
      <Group "churn">
        Comm "churn@"
        ExecutableMatch "/shape$"
        Children true
      </Group>
      <Group "always">
        CommandLineMatch "shape"
        Refresh "always"
      </Group>
      Other "other"
    </Plugin>
"""
CYCLES = 8

# What of a stack is ours: a source file, or the plugin where it has no symbols.
OWN_FRAME = re.compile(
    r"smaps\.so|\((?:%s)\.c:\d+\)"
    % "|".join(
        p.stem
        for p in PLUGIN.resolve().parent.glob("plugin/**/*.o")
        if p.stem != "config"
    )
)


class Watched(IntegrationTest):
    def run_daemon(self, wrapper, interval):
        self.start_shape("churn", name="churn", rate=20, seconds=600)
        self.start_shape("cow", name="always", mib=4, children=2)
        collectd = self.start_collectd(
            CONFIG, interval=interval, wrapper=wrapper
        )
        collectd.wait_cycles(CYCLES, seconds=120)
        self.maps = Path(f"/proc/{collectd.process.pid}/maps").read_text()
        status = collectd.stop()
        self.assertEqual(collectd.log_lines(r"\[error\]"), [])
        return collectd, status

    def assert_none_is_ours(self, reports):
        ours = [report for report in reports if OWN_FRAME.search(report)]
        self.assertEqual(ours, [], "\n\n".join(ours[:3]))


class Memcheck(Watched):
    def test_no_error_and_nothing_lost(self):
        if shutil.which("valgrind") is None:
            self.skipTest("needs valgrind")
        collectd, status = self.run_daemon(
            [
                "valgrind",
                "--leak-check=full",
                "--show-leak-kinds=definite,indirect",
                "--keep-debuginfo=yes",
                "--num-callers=30",
            ],
            interval=1,
        )
        self.assertEqual(status, 0)
        # A line with nothing behind the pid separates reports.
        text = "\n".join(
            re.sub(r"^==\d+== ?", "", line)
            for line in collectd.log_lines(r"^==\d+==")
        )
        self.assertIn("ERROR SUMMARY", text)
        self.assert_none_is_ours(re.split(r"\n\s*\n", text))


class Threads(Watched):
    """The daemon itself is not instrumented: what it locks ThreadSanitizer sees
    (it takes the place of pthread_mutex_lock), what it reads and writes not. So
    this reports races between our own threads only."""

    def test_no_race(self):
        library = subprocess.run(
            ["ldd", PLUGIN], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        found = re.search(r"(/\S*libtsan\S*)", library)
        if not found:
            self.skipTest("needs a plugin built with PROFILE=tsan")
        collectd, status = self.run_daemon(
            [
                "setarch",
                "--addr-no-randomize",
                "env",
                f"LD_PRELOAD={found[1]}",
                "TSAN_OPTIONS=exitcode=0 report_signal_unsafe=0",
            ],
            interval=0.5,
        )
        self.assertIn("libtsan", self.maps)
        self.assertEqual(status, 0)
        text = "\n".join(collectd.log())
        self.assert_none_is_ours(text.split("=================="))
