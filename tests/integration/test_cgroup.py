"""Groups that are whole control groups: their memory, limits and kills, in real
control groups of the memory controller."""

import contextlib
import subprocess
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
