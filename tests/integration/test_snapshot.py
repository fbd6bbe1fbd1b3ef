# SPDX-License-Identifier: MIT
"""The state file of the real daemon has the published values of groups, and the
kernel's values of processes. That there is never half of one: test_capture_end.
"""

import json
import math
import os
import pwd
import time
from pathlib import Path

import report
import snapshot
from harness import (
    MIB,
    PAGE_SIZE,
    TAG,
    IntegrationTest,
    check_config,
    count_threads,
    group,
    mem_total,
    need_root,
    plugin,
    read_rollup,
    stage,
    unprivileged_user,
    wait_until,
)
from report import run
from snapshot import (
    SmallDisk,
    StateFile,
    complaints,
    fill,
    group_of,
    process_of,
    usage_of,
)

# Metric: where a document has the same.
PLACES = {
    "ps_vm": ("usage", "size"),
    "ps_code": ("usage", "text"),
    "ps_data": ("usage", "data"),
    "percent-coverage": ("coverage",),
    "duration-age": ("age",),
    "count-unreadable": ("unreadable",),
    "uptime": ("uptime",),
    "memory-pss_error": ("pss_error",),
    "memory-uss_error": ("uss_error",),
    "memory-freed": ("freed",),
    "memory-freed_error": ("freed_error",),
    "memory-cgroup": ("cgroup_memory",),
    "memory-cgroup_limit": ("cgroup_limit",),
    "memory-cgroup_file": ("cgroup_file",),
    "memory-cgroup_kernel": ("cgroup_kernel",),
    "count-oom_kill": ("oom_kill",),
    "count-oomd_kill": ("oomd_kill",),
    "memory-cgroup_peak": ("cgroup_peak",),
    "memory-cgroup_peak_ever": ("cgroup_peak_ever",),
    "percent-pressure_some": ("pressure_some",),
    "percent-pressure_full": ("pressure_full",),
    "total_events-events_high": ("events_high",),
    "total_events-events_max": ("events_max",),
    "gauge-growth": ("growth",),
    "duration-until_limit": ("until_limit",),
}

# Made of others, which a document has.
QUOTIENTS = ("memory-epss", "percent-relative_error", "percent-swapped")


def place_of(metric):
    return PLACES.get(metric) or ("usage", metric.replace("memory-", ""))


def look_up(group, place):
    for key in place:
        if key not in group:
            return None
        group = group[key]
    return group


class StateTest(IntegrationTest):
    def start_state(self, *lines, state=None, interval=0, **options):
        self.state = state or StateFile()
        self.collectd = self.start_collectd(
            plugin(self.state.config(interval), *lines), **options
        )
        return self.collectd

    def next_state(self, **options):
        return self.state.next(self.collectd, **options)

    def pass_cycles(self, count):
        self.collectd.wait_cycles(len(self.collectd.times()) + count)

    def assert_one_line(self, pattern):
        """A failure is said once, and the values go on."""
        wait_until(
            lambda: self.collectd.log_lines(pattern), f'a line with "{pattern}"'
        )
        self.pass_cycles(4)
        lines = complaints(self.collectd)
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], pattern)


class History(StateTest):
    """StateHistory, and smaps-report diff --since."""

    def files(self):
        return sorted(self.history.glob("smaps-*-state.json"))

    def test_diff_compares_with_the_history(self):
        self.state = StateFile()
        self.history = self.state.path.parent / "history"
        self.history.mkdir(mode=0o750)
        hour_ago = time.time() - 3600
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(hour_ago))
        old = self.history / f"smaps-{when}-state.json"
        document = report.load(report.STATE) | {"time": hour_ago}
        old.write_text(json.dumps(document))

        shape = self.start_shape("anon", name="grower", mib=4)
        self.start_state(
            f'StateHistory "{self.history}"',
            group("grower", 'Comm "grower@"'),
            state=self.state,
        )
        new = wait_until(lambda: self.files()[1:], "a state in the history")[0]
        kept = report.load(new)
        # 30 intervals of 0.1 s after the beginning of the first.
        cycles = self.collectd.values()[""]["duration-cycle"]
        begin = min(end - seconds for end, seconds in cycles)
        self.assertGreater(kept["time"], begin + 30 * 0.1 - 0.1)
        named = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(kept["time"]))
        self.assertEqual(new.name, f"smaps-{named}-state.json")
        self.assertEqual(self.files()[0], old)

        before = group_of(kept, "grower")["usage"]["pss"]
        shape.grow(30)
        # Pages of libraries move with who else has mapped them.
        self.next_state(
            accept=lambda d: group_of(d, "grower")["usage"]["pss"]
            > before + 29 * MIB
        )
        since = time.strftime("%H:%M:%S", time.gmtime(kept["time"]))
        changes = self.diff(since)
        self.assertAlmostEqual(changes["old_time"], kept["time"], delta=0.001)
        self.assertGreater(changes["time"], kept["time"])
        self.assertGreaterEqual(changes["groups"][0]["change"], 29 * MIB)
        self.assertLess(changes["groups"][0]["change"], 31 * MIB)
        self.assertEqual(changes["processes"][0]["pid"], shape.root)
        self.assertAlmostEqual(self.diff("59m")["old_time"], hour_ago, delta=1)

    def diff(self, since):
        config = self.collectd.directory / "collectd.conf"
        args = ("diff", "-j", "-C", config, "--since", since, "-g", "grower")
        done = report.run(*args)
        self.assertEqual((done.returncode, done.words), (0, ""))
        return json.loads(done.text)


class Values(StateTest):
    def test_state_is_equal_to_the_values_of_the_same_interval(self):
        self.start_shape("cow", name="family", mib=8)
        self.start_shape("anon", name="loner", mib=4)
        self.start_state(
            'Report "detail"',
            group("always", 'Comm "family@"', 'Refresh "always"'),
            group("adaptive", 'Comm "loner@"'),
            group("empty", 'Comm "nobody"'),
            'Other "rest"',
            # As beside load: each interval begins as soon as one has ended.
            interval=0.002,
        )
        for _ in range(5):
            document = self.next_state()
            cycle = self.cycle_of(document)
            for name in ("always", "adaptive", "empty", "rest"):
                with self.subTest(name):
                    self.assert_published(cycle, document, name)

    def cycle_of(self, document):
        """A document has the time at which its interval began, and values that
        at which it had ended, which may be when the next one begins."""

        def find():
            values = self.collectd.values()
            cycles = sorted(values.get("", {}).get("duration-cycle", ()))
            later = [
                time_
                for time_, seconds in cycles
                if time_ - seconds > document["time"] - 0.001
            ]
            # A later file says that this file is whole.
            return len(later) >= 2 and self.collectd.cycle_at(later[0])

        return wait_until(find, "the values of the interval")

    def assert_published(self, cycle, document, name):
        in_document = group_of(document, name)
        metrics = dict(cycle.groups[name])
        if math.isnan(metrics["ps_count"][0]):
            self.assert_unknown(metrics, in_document)
            return
        self.assertEqual(
            metrics.pop("ps_count"),
            (in_document["processes"], in_document["threads"]),
        )
        # Without processes they say nothing.
        for metric, (value,) in metrics.items():
            if metric in QUOTIENTS:
                continue
            found = look_up(in_document, place_of(metric))
            if value != value:
                self.assertIsNone(found, metric)
            elif isinstance(found, float):
                self.assertAlmostEqual(found, value, delta=1.1e-6, msg=metric)
            else:
                self.assertEqual(found, value, metric)
        self.assertGreater(len(metrics), 20)
        known = {
            key for key in in_document["usage"] if key not in ("text", "data")
        }
        published = {place_of(metric)[-1] for metric in metrics}
        self.assertLessEqual(known, published)

    def assert_unknown(self, metrics, in_document):
        """A process that could not be looked at in time may be in the group."""
        for metric, values in metrics.items():
            self.assertTrue(all(map(math.isnan, values)), metric)
        self.assertEqual(
            in_document,
            {
                "name": in_document["name"],
                "rule": in_document["rule"],
                "cgroup_absence": in_document["cgroup_absence"],
                "usage": {},
            },
        )

    def test_usage_is_equal_to_the_kernels(self):
        shape = self.start_shape("anon", name="loner", mib=8)
        self.start_state(group("g", 'Comm "loner@"', 'Refresh "always"'))

        def is_seen(document):
            seen.append(usage_of(shape.root, read_rollup(shape.root)))
            usage = process_of(document, shape.root)["usage"]
            return usage in seen

        # It moves with who else has mapped libc.
        seen = [usage_of(shape.root, read_rollup(shape.root))]
        document = self.next_state(accept=is_seen)
        self.assertGreater(group_of(document, "g")["usage"]["uss"], 8 * MIB)

    def test_head(self):
        begin = time.time()
        self.start_state(group("g", 'Comm "x"'), host="head.example")
        document = self.next_state(after=begin)
        self.assertEqual(document["host"], "head.example")
        self.assertEqual(document["interval"], 0.1)
        self.assertEqual(document["kernel"], os.uname().release)
        self.assertEqual(document["page_size"], PAGE_SIZE)
        self.assertTrue(begin <= document["time"] <= time.time())
        self.assertEqual(document["mem_total"], mem_total())
        self.assertLess(document["mem_available"], mem_total())

    def test_processes_are_described(self):
        user = unprivileged_user()
        shape = self.start_shape("threads", name="named", threads=3, user=user)
        self.start_state(group("g", 'Comm "named@"'))
        one = process_of(self.next_state(), shape.root)
        proc = Path(f"/proc/{shape.root}")
        fields = proc.joinpath("stat").read_text().rpartition(") ")[2].split()
        self.assertEqual(one["comm"], "named" + TAG)
        self.assertEqual(one["exe"], os.readlink(proc / "exe"))
        self.assertEqual(
            one["command_line"],
            snapshot.printable(
                (proc / "cmdline").read_bytes().rstrip(b"\0")
            ).replace("\0", " "),
        )
        self.assertEqual(one["uid"], user[0])
        self.assertEqual(one["user"], pwd.getpwuid(user[0]).pw_name)
        self.assertEqual(one["ppid"], int(fields[1]))
        self.assertEqual(one["starttime"], int(fields[19]))
        self.assertEqual(one["threads"], count_threads(shape.root))
        self.assertEqual(one["threads"], 3)


class Explained(StateTest):
    """smaps-report explain, on the document of a real daemon."""

    def test_why_rules_do_not_take_a_process(self):
        shape = self.start_shape("anon", name="web", mib=4)
        line = Path(f"/proc/{shape.root}/cmdline").read_bytes().split(b"\0")[0]
        exe = os.readlink(f"/proc/{shape.root}/exe")
        self.start_state(
            group("wrong", 'Comm "web@"', 'Unit "no-such.service"'),
            group("name", 'Comm "web"', 'Comm "wib@"', f'Executable "{exe}"'),
            group("pid", 'PidFile "/run/no such.pid"'),
            'ProcessMatch "line" "^no such (line|program)$"',
            group("view", f'CommandLineMatch "{exe[:3]}"', "Continue true"),
            group("taken", f'Executable "{exe}"'),
        )
        document = self.next_state()
        path = stage().new_directory() / "document.json"
        path.write_text(json.dumps(document) + "\n")
        text = run("explain", path, shape.root).text
        self.assertIn("  groups       view, taken\n", text)
        self.assertIn(f'\n  seen as      Comm "web{TAG}"\n', text)
        self.assertIn(f'\n               CommandLine "{line.decode()}', text)
        self.assertIn(f'\n               Executable "{exe}"\n', text)
        passed = "".join(
            f"  not in rule  {i + 1}: {document['rules'][i]}\n" for i in range(4)
        )
        self.assertIn(f"\n{passed}  memory ", text)


class Sources(StateTest):
    """Each process names the source of its numbers."""

    def assert_source(self, pid, source, put_off=None, after=0):
        def is_so(document):
            one = process_of(document, pid)
            return one["source"] == source and one.get("deferred") == put_off

        return self.next_state(accept=is_so, after=after)

    def test_read_and_estimated(self):
        always = self.start_shape("anon", name="always", mib=4)
        idle = self.start_shape("anon", name="idle", mib=4)
        self.start_state(
            group("always", 'Comm "always@"', 'Refresh "always"'),
            group("idle", 'Comm "idle@"'),
        )
        self.pass_cycles(3)
        document = self.assert_source(idle.root, "estimated")
        one = process_of(document, idle.root)
        self.assertGreater(one["age"], 0)
        self.assertEqual(one["usage"]["uss"], read_rollup(idle.root)["uss"])
        one = process_of(document, always.root)
        self.assertEqual(one["source"], "read")
        self.assertGreater(one["read_cost"], 0)
        # An estimate is as old as its reading.
        later = self.assert_source(idle.root, "estimated", after=time.time())
        self.assertAlmostEqual(
            process_of(later, idle.root)["age"]
            - process_of(document, idle.root)["age"],
            later["time"] - document["time"],
            delta=0.02,
        )

    def test_refused_by_the_kernel(self):
        need_root("has processes of two users")
        user = unprivileged_user()
        foreign = self.start_shape("anon", name="mixed", mib=4)
        own = self.start_shape("anon", name="mixed", mib=4, user=user)
        directory = stage().new_directory(user)
        self.start_state(
            group("g", 'Comm "mixed@"'),
            state=StateFile(directory),
            user=user,
        )
        document = self.assert_source(foreign.root, "unreadable")
        self.assertIn(
            process_of(document, own.root)["source"], ("read", "estimated")
        )
        in_document = group_of(document, "g")
        self.assertEqual(in_document["unreadable"], 1)
        self.assertGreater(in_document["usage"]["resident"], 8 * MIB)
        # It is guessed like the other member, and may be wrong by all of it.
        refused = process_of(document, foreign.root)
        usage = refused["usage"]
        self.assertEqual(
            refused["pss_error"],
            max(usage["pss"], usage["rss"] - usage["pss"]),
        )
        self.assert_near(
            refused["usage"]["rss"], refused["usage"]["resident"], 8, "rss"
        )
        self.assertGreaterEqual(in_document["pss_error"], refused["pss_error"])
        self.assertEqual(
            in_document["usage"]["pss"],
            refused["usage"]["pss"]
            + process_of(document, own.root)["usage"]["pss"],
        )


class Files(StateTest):
    def test_full_disk_logs_one_line_and_keeps_the_last_state(self):
        shape = self.start_shape("anon", name="web", mib=4)
        processes = sum(name.isdigit() for name in os.listdir("/proc"))
        disk = SmallDisk(self, 1024 + 4 * processes)
        state = StateFile(disk.mount_point)
        self.start_state(
            "CommandLines false",
            group("g", 'Comm "web@"'),
            state=state,
            wrapper=disk.prefix,
        )
        directory = disk.seen_by(self.collectd)
        inside = StateFile(directory)
        inside.next(self.collectd)
        filler = fill(directory)
        self.assert_one_line("StateFile .*: No space left on device")
        # The last whole one is still there, and nothing else.
        old = snapshot.read(directory / "state")
        self.assertEqual(process_of(old, shape.root)["comm"], "web" + TAG)
        self.assertEqual(set(os.listdir(directory)), {"state", "filler"})
        filler.unlink()
        inside.next(self.collectd)
        self.pass_cycles(2)
        self.assertEqual(len(complaints(self.collectd)), 1)
        self.assertEqual(len(self.collectd.log_lines("is written again")), 1)

    def test_the_check_of_a_configuration_can_write_a_state(self):
        """If it is asked to; by default it writes none."""
        shape = self.start_shape("anon", name="web", mib=4)
        state = StateFile()
        options = state.config(60), group("web", 'Comm "web@"')
        status, said = check_config(plugin(*options))
        self.assertEqual(status, 0, said)
        self.assertEqual(os.listdir(state.path.parent), [])
        status, said = check_config(plugin("StateAtStart true", *options))
        self.assertEqual(status, 0, said)
        document = snapshot.read(state.path)
        one = process_of(document, shape.root)
        self.assertEqual((one["groups"], one["rule"]), (["web"], 0))
        self.assertEqual(group_of(document, "web")["processes"], 1)
        self.assertEqual(os.listdir(state.path.parent), ["state"])
