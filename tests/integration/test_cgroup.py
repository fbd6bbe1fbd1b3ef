# SPDX-License-Identifier: MIT
"""Groups that are whole control groups: their memory, limits and kills, in real
control groups of the memory controller."""

import contextlib
import math
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from cgroup import CgroupMixin
from harness import (
    MIB,
    IntegrationTest,
    group,
    mem_total,
    plugin,
    stage,
    wait_until,
)


class CgroupTest(CgroupMixin, IntegrationTest):
    def setUp(self):
        self.make_top()

    def await_published(self, collectd, name, wanted):
        collectd.find_cycle(
            lambda cycle: published(cycle, name) == wanted,
            f"{name} to have {wanted}",
        )

    def watch(self, *options):
        return self.start_collectd(plugin(*options))

    def await_value(self, collectd, name, metric, is_wanted):
        """Waits for a cycle whose value is wanted, and returns the cycle."""
        seen = []

        def has_wanted(cycle):
            seen.append(cycle.groups.get(name, {}).get(metric))
            return is_wanted(seen[-1])

        return collectd.find_cycle(
            has_wanted, lambda: f"{name}/{metric}: {seen[-5:]}"
        )


VALUES = {
    "memory-cgroup",
    "memory-cgroup_limit",
    "percent-cgroup_limit",
    "count-oom_kill",
}


def published(cycle, name):
    return VALUES & set(cycle.groups.get(name, {}))


class Values(CgroupTest):
    def test_group_has_the_memory_and_the_limit_of_its_cgroup(self):
        web = self.make_below("web")
        web.set_limit(64 * MIB)
        shape = self.start_shape("anon", name="web", mib=16)
        web.add(*shape.pids)
        shape.grow(8)
        collectd = self.watch(
            group("web", f'Cgroup "{web.path}*"'),
            group("others", 'Comm "shaped@"'),
        )
        cycle = collectd.next_cycle()
        self.assertEqual(published(cycle, "web"), VALUES)
        self.assertEqual(published(cycle, "others"), set())
        self.assert_near(
            cycle.memory("web", "cgroup"), web.usage(), MIB, "usage"
        )
        self.assertGreater(cycle.memory("web", "cgroup"), 8 * MIB)
        self.assertEqual(cycle.memory("web", "cgroup_limit"), 64 * MIB)
        self.assert_near(
            cycle.value("web", "percent-cgroup_limit"),
            100 * web.working_set() / (64 * MIB),
            2,
            "percentage",
        )
        self.assertEqual(cycle.value("web", "count-oom_kill"), 0)

    def test_detail_has_the_page_cache_and_the_kernels_memory(self):
        web = self.make_below("web")
        shape = self.start_shape("anon", name="web", mib=1)
        web.add(*shape.pids)
        path = stage().new_directory() / "file"
        # The page cache of a file is charged to its writer.
        web.run(f"head -c {8 * MIB} /dev/zero >{path}")
        collectd = self.watch(
            'Report "detail"', group("web", f'Cgroup "{web.path}*"')
        )
        cycle = collectd.next_cycle()
        stat = web.stat()
        self.assert_near(
            cycle.memory("web", "cgroup_file"), stat["file"], MIB, "file"
        )
        kernel = cycle.memory("web", "cgroup_kernel")
        self.assertTrue(0 < kernel < cycle.memory("web", "cgroup"), kernel)

    def test_limit_on_the_way_up_counts_and_is_followed(self):
        web = self.make_below("web")
        shape = self.start_shape("anon", name="web", mib=1)
        web.add(*shape.pids)
        collectd = self.watch(group("web", f'Cgroup "{web.path}*"'))
        cycle = collectd.next_cycle()
        before = cycle.memory("web", "cgroup_limit")
        self.assertLessEqual(before, mem_total())
        self.top.set_limit(96 * MIB)
        self.await_value(
            collectd, "web", "memory-cgroup_limit", lambda v: v == (96 * MIB,)
        )
        web.set_limit(48 * MIB)
        self.await_value(
            collectd, "web", "memory-cgroup_limit", lambda v: v == (48 * MIB,)
        )

    def test_shared_cgroup_is_not_published_until_it_is_whole_again(self):
        web = self.make_below("web")
        shape = self.start_shape("anon", name="web", mib=1)
        web.add(*shape.pids)
        collectd = self.watch(
            group("web", f'Cgroup "{web.path}*"', 'Comm "web@"')
        )
        self.assertEqual(published(collectd.next_cycle(), "web"), VALUES)
        other = self.start_shape("anon", name="other", mib=1)
        below = self.make_cgroup(f"{web.path}/below", needs_memory=False)
        below.add(*other.pids)
        self.await_published(collectd, "web", set())
        other.stop()
        self.await_published(collectd, "web", VALUES)

    def test_cgroup_that_is_made_again_is_followed(self):
        web = self.make_below("web")
        shape = self.start_shape("anon", name="web", mib=16)
        web.add(*shape.pids)
        shape.grow(16)
        collectd = self.watch(group("web", f'Cgroup "{web.path}*"'))
        collectd.next_cycle()
        self.await_value(
            collectd, "web", "memory-cgroup", lambda v: v and v[0] > 16 * MIB
        )
        shape.stop()
        web.remove()
        self.await_published(collectd, "web", set())
        again = self.make_below("web")
        again.set_limit(32 * MIB)
        shape = self.start_shape("anon", name="web", mib=1)
        again.add(*shape.pids)
        cycle = self.await_value(
            collectd,
            "web",
            "memory-cgroup_limit",
            lambda v: v == (32 * MIB,),
        )
        self.assertLess(cycle.memory("web", "cgroup"), 16 * MIB)


class Asked(CgroupTest):
    """What is read only if Report has it."""

    def start_web(self, **options):
        self.web = self.make_below("web")
        self.shape = self.start_shape("anon", name="web", mib=4)
        self.web.add(*self.shape.pids)
        path = f"{self.web.path}*"
        return self.start_collectd(
            plugin('Report "detail"', group("web", f'Cgroup "{path}"')), **options
        )

    def need_v2(self):
        if self.top.is_v1:
            self.skipTest("the memory controller is of version 1")

    def write_files(self, mib):
        """Their page cache is charged to the control group, and given back.
        That of a tmpfs, as /tmp often is, could not be; nor can dirty pages
        be at once, so each piece is clean before the next."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            self.web.run(
                f"dd if=/dev/zero of={directory}/file bs=1M count={mib} "
                "oflag=dsync status=none"
            )

    def test_hits_of_the_limit_are_counted(self):
        collectd = self.start_web()
        collectd.next_cycle()
        self.assertEqual(self.web.events()[1], 0)
        self.web.set_limit(16 * MIB)
        self.write_files(64)
        high, most = self.web.events()
        self.assertGreater(most, 0)
        cycle = self.await_value(
            collectd, "web", "total_events-events_max", lambda v: v == (most,)
        )
        if self.top.is_v1:
            self.assertNotIn("total_events-events_high", cycle.groups["web"])
            self.assertTrue(math.isnan(cycle.value("web", "count-oomd_kill")))
            for name in "some", "full":
                value = cycle.value("web", f"percent-pressure_{name}")
                self.assertTrue(math.isnan(value), name)
        else:
            self.assertEqual(cycle.value("web", "total_events-events_high"), high)

    def test_peak_of_its_life_is_the_kernels(self):
        collectd = self.start_web()
        collectd.next_cycle()
        self.write_files(32)
        peak = self.web.peak()
        self.assertGreater(peak, 32 * MIB)
        self.await_value(
            collectd, "web", "memory-cgroup_peak_ever", lambda v: v == (peak,)
        )
        self.assertLess(self.web.usage(), 24 * MIB)

    def test_peak_between_two_cycles_is_seen_and_forgotten(self):
        self.need_v2()
        collectd = self.start_web()
        cycle = self.await_value(
            collectd, "web", "memory-cgroup_peak", lambda v: v and v[0] >= 0
        )
        quiet = cycle.memory("web", "cgroup_peak")
        self.assert_near(quiet, self.web.usage(), MIB, "peak")
        self.write_files(32)
        peak = self.web.peak()
        cycle = self.await_value(
            collectd, "web", "memory-cgroup_peak", lambda v: v and v[0] < peak
        )
        rows = collectd.values()["web"]["memory-cgroup_peak"]
        self.assertIn(peak, [value for _, value in rows])
        self.assert_near(
            cycle.memory("web", "cgroup_peak"), self.web.usage(), MIB, "peak"
        )
        self.assertEqual(cycle.memory("web", "cgroup_peak_ever"), peak)

    def test_pressure_above_memory_high(self):
        self.need_v2()
        collectd = self.start_web()
        cycle = self.await_value(
            collectd, "web", "percent-pressure_some", lambda v: v == (0,)
        )
        before = self.stalls()
        self.web.set_high(6 * MIB)
        # It cannot have that, and is throttled.
        grower = threading.Thread(target=self.shape.grow, args=(8,))
        grower.start()
        self.addCleanup(grower.join)
        pressed = self.await_value(
            collectd, "web", "percent-pressure_some", lambda v: v and v[0] > 0
        )
        self.web.set_high("max")
        grower.join()
        self.assertGreater(pressed.value("web", "percent-pressure_full"), 0)
        cycle = self.await_value(
            collectd,
            "web",
            "total_events-events_high",
            lambda v: v == (self.web.events()[0],),
        )
        self.assertGreater(cycle.value("web", "total_events-events_high"), 0)
        self.assert_stalls(collectd, before)

    def stalls(self):
        """The microseconds of the lines some and full."""
        text = (self.web.directory / "memory.pressure").read_text()
        return [int(line.split("total=")[1]) for line in text.splitlines()]

    def assert_stalls(self, collectd, before):
        """The percentages of all intervals add up to what the kernel has
        counted."""
        collectd.next_cycle()
        after = self.stalls()
        values = collectd.values()["web"]
        for name, begin, end in zip(("some", "full"), before, after):
            rows = values[f"percent-pressure_{name}"]
            seconds = sum(
                percent / 100 * (time_ - earlier)
                for (earlier, _), (time_, percent) in zip(rows, rows[1:])
                if not math.isnan(percent)
            )
            self.assertGreater(end - begin, 0, name)
            self.assert_near(seconds, (end - begin) / 1e6, 0.05 + seconds / 10, name)

    def note(self, directory, name, count):
        """As systemd-oomd does."""
        try:
            os.setxattr(directory, f"user.{name}", str(count).encode())
        except OSError as error:
            self.skipTest(f"no attributes: {error}")

    def test_kills_by_systemd_oomd_are_seen_though_the_group_is_gone(self):
        self.need_v2()
        collectd = self.start_web()
        self.await_value(collectd, "web", "count-oomd_kill", lambda v: v == (0,))
        self.note(self.web.directory, "oomd_ooms", 1)
        self.note(self.web.directory, "oomd_kill", 2)
        self.await_value(collectd, "web", "count-oomd_kill", lambda v: v == (2,))
        # In one interval, as after a kill, and no number is noted any more.
        collectd.process.send_signal(signal.SIGSTOP)
        self.note(self.web.directory, "oomd_ooms", 2)
        self.shape.stop()
        self.web.remove()
        collectd.process.send_signal(signal.SIGCONT)
        cycle = self.await_value(
            collectd, "web", "count-oomd_kill", lambda v: v == (3,)
        )
        self.assertEqual(cycle.value("web", "count-oom_kill"), 0)


class KeptFiles(CgroupTest):
    """The daemon may have more than 1,024 descriptors."""

    def kept(self, collectd):
        """The numbers of the files with a usage that are open for good: others
        have lower ones."""
        found = []
        for number in Path(f"/proc/{collectd.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if number.readlink().name == self.top.usage_file.name:
                    found.append(int(number.name))
        return sorted(number for number in found if number >= 1024)

    def test_usage_stays_open_as_long_as_there_is_a_control_group(self):
        web = self.make_below("web")
        shape = self.start_shape("anon", name="web", mib=1)
        web.add(*shape.pids)
        collectd = self.start_collectd(
            plugin(group("web", f'Cgroup "{web.path}*"')),
            wrapper=["prlimit", "--nofile=2048:2048"],
        )
        kept = wait_until(lambda: self.kept(collectd), "the usage to be open")
        self.assertEqual(len(kept), 1)
        shape.grow(16)
        self.await_value(
            collectd, "web", "memory-cgroup", lambda v: v and v[0] > 16 * MIB
        )
        self.assertEqual(self.kept(collectd), kept)
        # Another control group takes its place.
        shape.stop()
        web.remove()
        again = self.make_below("web")
        shape = self.start_shape("anon", name="web", mib=1)
        again.add(*shape.pids)
        shape.grow(32)
        self.await_value(
            collectd, "web", "memory-cgroup", lambda v: v and v[0] > 32 * MIB
        )
        wait_until(lambda: len(self.kept(collectd)) == 1, "one to be open")
        shape.stop()
        wait_until(lambda: not self.kept(collectd), "none to be open")
        self.assertEqual(collectd.stop(), 0)

    def test_file_of_another_file_system_is_not_kept(self):
        """It could hang the daemon, as with LXCFS; and a file that is replaced
        would keep its value."""
        web = self.make_below("web")
        shape = self.start_shape("anon", name="web", mib=1)
        web.add(*shape.pids)
        usage = web.usage_file
        write = f"echo %d >{usage}.new && mv {usage}.new {usage}"
        collectd = self.start_collectd(
            plugin(group("web", f'Cgroup "{web.path}*"')),
            wrapper=[
                *("prlimit", "--nofile=2048:2048", "unshare", "-m", "sh", "-c"),
                f"mount -t tmpfs tmpfs {self.top.directory}; "
                f"mkdir {web.directory}; {write % MIB}; " + 'exec "$@"',
                "sh",
            ],
        )
        for mib in (1, 2, 3):
            self.await_value(
                collectd, "web", "memory-cgroup",
                lambda v, mib=mib: v and v[0] == mib * MIB,
            )  # fmt: skip
            enter = ("nsenter", "-m", "-t", f"{collectd.process.pid}")
            subprocess.run(
                [*enter, "sh", "-c", write % ((mib + 1) * MIB)], check=True
            )
        self.assertEqual(self.kept(collectd), [])


class Kills(CgroupTest):
    def test_killed_process_is_counted(self):
        web = self.make_below("web")
        quiet = self.start_shape("anon", name="quiet", mib=1)
        victim = self.start_shape("anon", name="victim", mib=1)
        web.add(*quiet.pids, *victim.pids)
        web.set_limit(24 * MIB)
        collectd = self.watch(group("web", f'Cgroup "{web.path}*"'))
        cycle = collectd.next_cycle()
        self.assertEqual(cycle.value("web", "count-oom_kill"), 0)
        self.assertEqual(cycle.counts("web")[0], 2)
        # The kernel kills it first.
        Path(f"/proc/{victim.root}/oom_score_adj").write_text("1000")
        with self.assertRaisesRegex(AssertionError, "has ended"):
            victim.grow(64)
        self.assertEqual(web.kills(), 1)
        cycle = self.await_value(
            collectd, "web", "count-oom_kill", lambda v: v == (1,)
        )
        self.assertEqual(cycle.counts("web")[0], 1)
        # It is not counted twice.
        self.assertEqual(collectd.next_cycle().value("web", "count-oom_kill"), 1)
