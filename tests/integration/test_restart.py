# SPDX-License-Identifier: MIT
"""What is remembered when collectd is started again, with real processes and
control groups."""

import json
from pathlib import Path

import report
from cgroup import CgroupMixin
from harness import MIB, TAG, IntegrationTest, group, plugin, stage

# The shortest that there is. Growth is known after a quarter of it, and believed
# after three points.
WINDOW_SECONDS = 60

# Keeps so many MiB, and so many more each second.
GROWING = """
import sys, time
name, mib, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
kept = [b"x" * (mib << 20)]
open("/proc/self/comm", "w").write(name)
print("ready", flush=True)
while True:
    time.sleep(0.2)
    if rate:
        kept.append(b"x" * int(rate * 0.2 * (1 << 20)))
"""


class RestartTest(IntegrationTest):
    def setUp(self):
        self.state = stage().new_directory() / "state.json"

    def start(self, *options):
        return self.start_collectd(
            plugin(f'StateFile "{self.state}"', *options)
        )

    def first_cycles(self, collectd, n):
        collectd.wait_cycles(n + 1)
        return [collectd.cycle_at(t) for t in sorted(collectd.times())[:n]]

    def start_growing(self, name, mib, rate):
        script = self.start_script(GROWING, name + TAG, f"{mib}", f"{rate}")
        script.read_line()
        self.addCleanup(script.process.terminate)


class Growth(RestartTest):
    OPTIONS = (
        f"GrowthWindow {WINDOW_SECONDS}",
        'Report "growth"',
        group("leak", 'Comm "leak@"'),
        group("steady", 'Comm "steady@"'),
    )

    def rate(self, cycle, name):
        return cycle.value(name, "gauge-growth")

    def test_leak_is_published_within_two_intervals(self):
        self.start_growing("leak", 1, 4)
        self.start_growing("steady", 30, 0)
        first = self.start(*self.OPTIONS)
        cycle = first.find_cycle(
            lambda c: self.rate(c, "leak") > 0, "growth of the leak"
        )
        self.assertEqual(self.rate(cycle, "steady"), 0)
        first.stop()
        again = self.start(*self.OPTIONS)
        for cycle in self.first_cycles(again, 2):
            # Allocating takes its time, too.
            self.assertTrue(MIB < self.rate(cycle, "leak") < 6 * MIB)
            self.assertEqual(self.rate(cycle, "steady"), 0)
        self.assertEqual(again.log_lines("remembered"), [])

    def test_damaged_file_costs_a_line_and_is_replaced(self):
        first = self.start(*self.OPTIONS)
        first.wait_cycles(3)
        first.stop()
        whole = self.state.read_bytes()
        self.assertIn(b"resume", whole)
        self.state.write_bytes(whole.replace(b'"version ', b'"version 9'))
        again = self.start("StateInterval 0", *self.OPTIONS)
        again.wait_cycles(4)
        again.stop()
        (line,) = again.log_lines("remembered")
        self.assertRegex(
            line,
            f'StateFile "{self.state}": it is damaged; nothing is '
            "remembered of the time before this start",
        )
        self.assertEqual(json.loads(self.state.read_bytes())["host"], "test")
        self.assertNotIn(b'"version 9', self.state.read_bytes())

    def test_report_ignores_what_is_remembered(self):
        self.start_growing("leak", 1, 0)
        first = self.start(*self.OPTIONS)
        first.wait_cycles(3)
        first.stop()
        document = json.loads(self.state.read_bytes())
        self.assertRegex(document["resume"][0], r"^version \d+[.]")
        self.assertTrue(
            any(
                line.startswith(f"growth {b'leak'.hex()}")
                for line in document["resume"]
            )
        )
        done = report.run("-g", "leak", self.state)
        self.assertEqual((done.returncode, done.words), (0, ""))
        self.assertIn("leak", done.text)


class Kills(CgroupMixin, RestartTest):
    def setUp(self):
        super().setUp()
        self.make_top()
        self.web = self.make_below("web")
        self.quiet = self.start_shape("anon", name="quiet", mib=1)
        self.web.add(*self.quiet.pids)
        self.web.set_limit(24 * MIB)
        self.options = (group("web", f'Cgroup "{self.web.path}*"'),)

    def kill_one(self):
        victim = self.start_shape("anon", name="victim", mib=1)
        self.web.add(*victim.pids)
        # The kernel kills it first.
        Path(f"/proc/{victim.root}/oom_score_adj").write_text("1000")
        with self.assertRaisesRegex(AssertionError, "has ended"):
            victim.grow(64)

    def assert_kills(self, collectd, n):
        collectd.find_cycle(
            lambda c: c.value("web", "count-oom_kill") == n, f"{n} kills"
        )

    def test_kills_before_and_between_two_runs_count(self):
        first = self.start(*self.options)
        first.wait_cycles(3)
        self.kill_one()
        self.assert_kills(first, 1)
        first.stop()
        second = self.start(*self.options)
        for cycle in self.first_cycles(second, 3):
            self.assertEqual(cycle.value("web", "count-oom_kill"), 1)
        second.stop()
        self.kill_one()
        self.assertEqual(self.web.kills(), 2)
        for cycle in self.first_cycles(self.start(*self.options), 3):
            self.assertEqual(cycle.value("web", "count-oom_kill"), 2)
