"""The state file of the real daemon: that it says what is published, why which
process is where, and that there is never half of one."""

import math
import os
import pwd
import random
import time
from pathlib import Path

import snapshot
from harness import (
    DEADLINE_SECONDS,
    KIB,
    MIB,
    PAGE_SIZE,
    TAG,
    IntegrationTest,
    check_config,
    count_threads,
    group,
    need_root,
    plugin,
    read_kernel_memory,
    read_rollup,
    read_statm,
    stage,
    sum_values,
    unprivileged_user,
    wait_until,
)
from snapshot import (
    KERNEL_NAMES,
    STATM_NAMES,
    SmallDisk,
    StateFile,
    complaints,
    fill,
    group_of,
    process_of,
)
from test_captured import (
    SMALL_ON_MODERN,
    WrittenTree,
    rollup_text,
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
    "memory-cgroup": ("cgroup_memory",),
    "memory-cgroup_limit": ("cgroup_limit",),
    "memory-cgroup_file": ("cgroup_file",),
    "memory-cgroup_kernel": ("cgroup_kernel",),
    "count-oom_kill": ("oom_kill",),
    "gauge-growth": ("growth",),
    "duration-until_limit": ("until_limit",),
}

# Made of others, which a document has.
QUOTIENTS = ("percent-relative_error", "percent-swapped")


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


class Values(StateTest):
    def test_state_is_what_is_published_in_the_same_interval(self):
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

    def test_members_add_up_to_their_group(self):
        shape = self.start_shape("cow", name="family", mib=8)
        self.start_state(
            group("family", 'Comm "family@"', 'Refresh "always"')
        )
        document = self.next_state()
        members = [process_of(document, pid) for pid in shape.pids]
        self.assertEqual({one["source"] for one in members}, {"read"})
        self.assertEqual(
            sum_values(one["usage"] for one in members),
            group_of(document, "family")["usage"],
        )

    def test_usage_is_what_the_kernel_has(self):
        shape = self.start_shape("anon", name="loner", mib=8)
        self.start_state(group("g", 'Comm "loner@"', 'Refresh "always"'))

        def is_seen(document):
            seen.append(self.usage_of(shape.root))
            usage = process_of(document, shape.root)["usage"]
            return usage in seen

        # It moves with who else has mapped libc.
        seen = [self.usage_of(shape.root)]
        document = self.next_state(accept=is_seen)
        self.assertGreater(group_of(document, "g")["usage"]["uss"], 8 * MIB)

    @staticmethod
    def usage_of(pid):
        statm = read_statm(pid)
        statm["resident_shared"] = statm.pop("shared")
        return {**read_rollup(pid), **statm, **read_kernel_memory(pid)}

    def test_head(self):
        begin = time.time()
        self.start_state(group("g", 'Comm "x"'), host="head.example")
        document = self.next_state(after=begin)
        self.assertEqual(document["host"], "head.example")
        self.assertEqual(document["interval"], 0.1)
        self.assertEqual(document["kernel"], os.uname().release)
        self.assertEqual(document["page_size"], PAGE_SIZE)
        self.assertTrue(begin <= document["time"] <= time.time())
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                total = int(line.split()[1]) * KIB
        self.assertEqual(document["mem_total"], total)
        self.assertLess(document["mem_available"], total)

    def test_state_interval_is_kept(self):
        self.start_state(group("g", 'Comm "x"'), interval=0.5)
        wait_until(
            lambda: self.state.look() or len(self.state.seen) >= 4,
            "four states",
        )
        times = sorted(self.state.seen)
        # A cycle may be half an interval early.
        for before, after in zip(times, times[1:]):
            self.assertGreater(after - before, 0.44)

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


class Sources(StateTest):
    """The source of a process's numbers."""

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

    def test_never_read(self):
        shape = self.start_shape("anon", name="never", mib=4)
        self.start_state(group("g", 'Comm "never@"', 'Refresh "never"'))
        document = self.assert_source(shape.root, "statm")
        usage = process_of(document, shape.root)["usage"]
        # Tasks that come and go can hide the size of a stack for a cycle.
        self.assertEqual(
            {"kernel_stack", *usage}, {"rss", *STATM_NAMES, *KERNEL_NAMES}
        )
        self.assertGreater(usage["resident"], 4 * MIB)
        self.assertEqual(usage["rss"], usage["resident"])
        self.assertEqual(group_of(document, "g")["usage"], usage)
        self.assertEqual(group_of(document, "g")["processes"], 1)
        self.assertNotIn("pss_error", group_of(document, "g"))
        self.assertNotIn("uss_error", group_of(document, "g"))

    def test_in_the_memory_of_its_parent(self):
        shape = self.start_shape("vfork", name="sharing", mib=8)
        self.start_state(group("g", 'Comm "sharing@"'))
        document = self.next_state()
        parent, child = (process_of(document, pid) for pid in shape.pids)
        self.assertEqual(child["source"], "parent")
        self.assertNotEqual(parent["source"], "parent")
        self.assertEqual(group_of(document, "g")["processes"], 2)
        self.assertEqual(
            group_of(document, "g")["usage"]["uss"], parent["usage"]["uss"]
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

    def test_refused_in_a_group_without_readings(self):
        need_root("has processes of two users")
        user = unprivileged_user()
        foreign = self.start_shape("anon", name="foreign", mib=4)
        self.start_state(
            group("g", 'Comm "foreign@"'),
            state=StateFile(stage().new_directory(user)),
            user=user,
        )
        document = self.assert_source(foreign.root, "unreadable")
        refused = process_of(document, foreign.root)
        self.assertEqual(
            set(refused["usage"]), {"rss", *STATM_NAMES, *KERNEL_NAMES}
        )
        self.assertNotIn("pss_error", refused)
        in_document = group_of(document, "g")
        self.assertEqual(in_document["usage"], refused["usage"])
        self.assertEqual(
            in_document["usage"]["rss"], in_document["usage"]["resident"]
        )

    def test_one_that_makes_no_sense_is_there(self):
        tree = WrittenTree()
        tree.add(100, smaps_rollup=rollup_text(SMALL_ON_MODERN))
        tree.add(101, stat="nonsense\n")
        self.start_state(f'ProcRoot "{tree.path}"', group("g", 'Comm "*"'))
        document = self.next_state()
        self.assertEqual(process_of(document, 100)["groups"], ["g"])
        one = process_of(document, 101)
        self.assertEqual((one["source"], one["usage"]), ("unreadable", {}))


# Bytes of a comm, and of an argument.
HOSTILE = (
    (b'new\nline"q"', b'\n"}],"processes":[],"x":"'),
    (b"\x1b[31mred\x07", b"\x1b]0;title\x07\x1b[2J\r"),
    (b"\xff\xfe\xc3", b"\xc3\x28 \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf"),
    (b"\xe2\x82", b"\xe2\x82"),
    (b"\\x41\\n", "ä € 𝄞 \u2028".encode()),
    (b"\x7f\x01", b"\x7f\x01\x1f"),
)


class Names(StateTest):
    def test_hostile_names_are_valid_text(self):
        shapes = [
            self.start_shape(
                "named",
                name_hex=name.hex(),
                argv_hex=(f"hostile{TAG}".encode() + b"\0" + argument).hex(),
            )
            for name, argument in HOSTILE
        ]
        self.start_state(group("g-%{comm}", 'CommandLine "hostile@*"'))
        document = self.next_state()
        for shape, (name, argument) in zip(shapes, HOSTILE):
            with self.subTest(name):
                one = process_of(document, shape.root)
                self.assertEqual(one["comm"], snapshot.printable(name))
                self.assertEqual(
                    one["command_line"],
                    f"hostile{TAG} {snapshot.printable(argument)}",
                )
                self.assertEqual(len(one["groups"]), 1)
        self.assert_harmless(self.state.path.read_bytes())

    def assert_harmless(self, raw):
        """Not even a program that copies it to a terminal does harm."""
        control = [byte for byte in raw if byte < 0x20 and byte != 0x0A]
        self.assertEqual(control, [])


class Files(StateTest):
    def test_full_disk_is_one_line_and_leaves_the_last_state(self):
        shape = self.start_shape("anon", name="web", mib=4)
        disk = SmallDisk(self, 1024)
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


# A tree of so many processes with long command lines that a state takes a while
# to write.
TREE_PROCESSES = 300
KILLS = 24


class Kills(StateTest):
    def make_tree(self):
        tree = WrittenTree()
        for pid in range(100, 100 + TREE_PROCESSES):
            tree.add(
                pid,
                smaps_rollup=rollup_text(SMALL_ON_MODERN),
                cmdline="\x01" * 4000,
            )
        return tree

    def test_a_killed_daemon_leaves_no_half_state(self):
        """At any moment; every other time in the midst of writing. On a busy
        machine it takes more attempts until one is in the midst."""
        tree = self.make_tree()
        state = StateFile()
        body = plugin(
            f'ProcRoot "{tree.path}"', state.config(), group("g", 'Comm "*"')
        )
        random.seed(1)
        end = time.monotonic() + DEADLINE_SECONDS
        left_over = 0
        attempts = 0
        while attempts < KILLS or left_over == 0 or not state.path.exists():
            self.assertLess(time.monotonic(), end, "none killed as it wrote")
            collectd = self.start_collectd(body, interval=0.05)
            left_over += self.kill(collectd, state, attempts % 2 == 0)
            attempts += 1
            if state.path.exists():
                document = snapshot.read(state.path)
                self.assertEqual(len(document["processes"]), TREE_PROCESSES)
            self.assertLessEqual(
                set(os.listdir(state.path.parent)),
                {"state", "state.unfinished"},
            )
        self.collectd = self.start_collectd(body)
        state.next(self.collectd)
        self.collectd.stop()
        self.assertEqual(os.listdir(state.path.parent), ["state"])

    @staticmethod
    def kill(collectd, state, in_the_midst):
        """True where that left something."""
        unfinished = f"{state.path}.unfinished"
        if in_the_midst:
            wait_for(unfinished)
        else:
            time.sleep(random.uniform(0.05, 0.35))
        collectd.process.kill()
        collectd.process.wait(DEADLINE_SECONDS)
        return os.path.exists(unfinished)

    def test_the_end_waits_for_what_is_being_written(self):
        tree = self.make_tree()
        self.start_state(
            f'ProcRoot "{tree.path}"', group("g", 'Comm "*"'), interval=0
        )
        self.next_state()
        begin = time.monotonic()
        self.assertEqual(self.collectd.stop(), 0)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(os.listdir(self.state.path.parent), ["state"])
        snapshot.read(self.state.path)


def wait_for(path):
    """Does not pause: it is there but for a moment. A file of that name that
    a daemon before has left is another one than will be made."""
    end = time.monotonic() + DEADLINE_SECONDS
    before = inode_of(path)
    while inode_of(path) in (None, before):
        if time.monotonic() > end:
            raise AssertionError(f"no {path}")


def inode_of(path):
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None
