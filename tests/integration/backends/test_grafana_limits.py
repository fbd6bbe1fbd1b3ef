# SPDX-License-Identifier: MIT
"""The panels of the dashboards that only some groups have: limits and kills of
control groups, and growth. Of two whole control groups one leaks, and the other
loses a process for want of memory."""

import math
import subprocess
import sys
from pathlib import Path

from cgroup import CgroupMixin
from harness import MIB, end_process, end_with_parent, group
from server import BackendTest, load_smaps, shape_group
from test_grafana import ALL, OF_SOME, QueriesTest, groups_of, wait_answer

LIMITS = {"leaks": 512 * MIB, "kills": 64 * MIB}
LEAK = 1 * MIB

# Keeps so many bytes more each second, half of the limit at most.
LEAKS = """
import sys, time

leak, most = int(sys.argv[1]), int(sys.argv[2])
kept = []
began = time.monotonic()
while True:
    while len(kept) < min(most, leak * (time.monotonic() - began)) / (1 << 16):
        kept.append(b"x" * (1 << 16))
    time.sleep(0.05)
"""


class QueriesOfLimits(CgroupMixin, QueriesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        holder = _Holder()
        cls.addClassCleanup(holder.doCleanups)
        holder.make_top()
        cgroups = {name: holder.make_below(name) for name in LIMITS}
        for name, limit in LIMITS.items():
            cgroups[name].set_limit(limit)
        cgroups["leaks"].add(holder.start_leaking().pid)
        survivor = holder.start_shape("anon", name="survivor", mib=2)
        cgroups["kills"].add(*survivor.pids)
        holder.start_shape("anon", name="web", mib=2)
        groups = (
            group(name, f'Cgroup "{cgroup.path}*"')
            for name, cgroup in cgroups.items()
        )
        smaps = load_smaps(
            "GrowthWindow 60", 'Refresh "always"', *groups, shape_group("web")
        )
        prometheus, influx = cls.fill(holder, smaps, 0.5)
        prometheus.wait_query('smaps_growth_bytes_per_second{group="web"} == 0')
        prometheus.wait_query("smaps_until_limit_seconds > 0")
        holder.lose_a_process(cgroups["kills"])
        prometheus.wait_query('smaps_oom_kill{group="kills"} == 1')
        query = (
            "SELECT value FROM smaps WHERE instance = 'kills' AND"
            " type_instance = 'oom_kill' AND value > 0"
        )
        # What was dispatched before has arrived before.
        influx.server.wait_ready(lambda: influx.query(query), "filled")

    def last(self, title, letter="A"):
        """{source: {group: last value}} of a panel's query."""
        found = {}

        def check(source, _, target):
            if target["refId"] == letter:
                answer = wait_answer(source, target, host="alpha", group=ALL)
                found[source.dashboard.kind] = {
                    source.legend(target, labels): values[-1]
                    for labels, *values in answer
                }

        self.each_target(check, titles={title})
        self.assertEqual(found.keys(), self.sources.keys())
        return found.items()

    def known(self, metric):
        """What was dispatched of the group that leaks, but NaN."""
        # A value that was sent may be in a csv file a moment later.
        self.daemon.next_cycle()
        rows = self.daemon.values()["leaks"][metric]
        return [row[1] for row in rows if not math.isnan(row[1])]

    def test_every_query_returns_the_groups_that_have_the_value(self):
        def check(source, panel, target):
            expected = {
                "Growth by group": {*LIMITS, "web"},
                "Time until the limit": {"leaks"},
            }.get(panel["title"], LIMITS.keys())
            answer = wait_answer(
                source,
                target,
                lambda answer: groups_of(answer) == expected,
                host="alpha",
                group=ALL,
            )
            for _, *values in answer:
                self.assertTrue(values)
                self.assertTrue(all(map(math.isfinite, values)), values)
            for chosen in ("host", "no such"):
                answer = source.ask(target, host="alpha", group=[chosen])
                self.assertEqual(answer, [])
            self.assertEqual(source.ask(target, host="x", group=ALL), [])

        self.each_target(check, titles=OF_SOME)

    def test_the_limit_and_how_much_of_it_is_used(self):
        title = "Memory and limits of control groups"
        for kind, found in self.last(title, "B"):
            limits = {f"{name} limit": LIMITS[name] for name in LIMITS}
            self.assertEqual(found, limits, kind)
        for kind, found in self.last(title, "A"):
            self.check_below(found, LIMITS, kind)
        for kind, found in self.last("Use of the limit"):
            self.check_below(found, {name: 100 for name in LIMITS}, kind)

    def check_below(self, found, limits, kind):
        """Little is left, perhaps nothing, where the victim was killed."""
        self.assertGreater(found["leaks"], 0, (kind, found))
        for name, limit in limits.items():
            self.assertTrue(0 <= found[name] < limit, (kind, found))

    def test_the_killed_process_is_counted(self):
        for kind, found in self.last("OOM kills"):
            # InfluxDB gives averages, also of the time before the kill.
            self.assertTrue(0 < found["kills"] <= 1, (kind, found))
            self.assertEqual(found["leaks"], 0, kind)

    def test_growth_is_in_bytes_a_second_and_the_time_left_in_seconds(self):
        for title, metric in (
            ("Growth by group", "gauge-growth"),
            ("Time until the limit", "duration-until_limit"),
        ):
            last = self.last(title)
            known = self.known(metric)
            for kind, found in last:
                value = found["leaks"]
                self.assertLessEqual(min(known) - 1, value, (kind, title))
                self.assertLessEqual(value, max(known) + 1, (kind, title))
        for kind, found in self.last("Growth by group"):
            self.assertEqual(found["web"], 0, kind)


class _Holder(CgroupMixin, BackendTest):
    def start_leaking(self):
        process = subprocess.Popen(
            [sys.executable, "-c", LEAKS, str(LEAK), str(LIMITS["leaks"] // 2)],
            stdin=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )
        self.addCleanup(end_process, process)
        return process

    def lose_a_process(self, cgroup):
        victim = self.start_shape("anon", name="victim", mib=1)
        cgroup.add(*victim.pids)
        Path(f"/proc/{victim.root}/oom_score_adj").write_text("1000")
        try:
            victim.grow(LIMITS["kills"] // MIB)
        except AssertionError:
            return
        raise AssertionError("the kernel did not kill the victim")
