"""Groups that are whole control groups: their memory, limits and kills, in real
control groups of the memory controller."""

import contextlib
import subprocess
import unittest
from pathlib import Path

from harness import (
    MIB,
    TAG,
    IntegrationTest,
    group,
    need_root,
    plugin,
    stage,
    wait_until,
)

V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")


class Cgroup:
    """A directory of the memory controller, of either version."""

    def __init__(self, path):
        self.is_v1 = V1.is_dir()
        self.path = path
        self.directory = (V1 if self.is_v1 else V2) / path.lstrip("/")
        try:
            self.directory.mkdir()
        except OSError as error:
            raise unittest.SkipTest(f"no control group: {error}") from None
        if not self.usage_file.exists():
            self.remove()
            raise unittest.SkipTest("the memory controller is not enabled")

    @property
    def usage_file(self):
        return self.file("memory.usage_in_bytes", "memory.current")

    def file(self, v1, v2):
        return self.directory / (v1 if self.is_v1 else v2)

    def add(self, *pids):
        for pid in pids:
            (self.directory / "cgroup.procs").write_text(f"{pid}")

    def set_limit(self, bytes_):
        self.file("memory.limit_in_bytes", "memory.max").write_text(
            f"{bytes_}"
        )

    def usage(self):
        return int(self.usage_file.read_text())

    def kills(self):
        text = self.file("memory.oom_control", "memory.events").read_text()
        words = dict(line.split() for line in text.splitlines())
        return int(words["oom_kill"])

    def stat(self):
        """memory.stat under the names of version 2."""
        words = dict(
            line.split()
            for line in (self.directory / "memory.stat").read_text().splitlines()
        )
        file, inactive = (
            ("total_cache", "total_inactive_file")
            if self.is_v1
            else ("file", "inactive_file")
        )
        return {"file": int(words[file]), "inactive": int(words[inactive])}

    def working_set(self):
        return self.usage() - self.stat()["inactive"]

    def remove(self):
        """The last process may take a moment to leave."""

        def is_removed():
            with contextlib.suppress(OSError):
                self.directory.rmdir()
            return not self.directory.exists()

        wait_until(is_removed, f"the end of {self.path}")


def mem_total():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no MemTotal")


class CgroupTest(IntegrationTest):
    def setUp(self):
        need_root("makes control groups")
        self.top = self.make_cgroup(f"/smaps-test{TAG}")

    def make_cgroup(self, path):
        cgroup = Cgroup(path)
        self.addCleanup(cgroup.remove)
        return cgroup

    def make_below(self, name):
        if not self.top.is_v1:
            control = self.top.directory / "cgroup.subtree_control"
            control.write_text("+memory")
        return self.make_cgroup(f"{self.top.path}/{name}")

    def await_published(self, collectd, name, wanted):
        def is_so():
            cycle = collectd.next_cycle()
            return published(cycle, name) == wanted

        wait_until(is_so, f"{name} to have {wanted}")

    def watch(self, *options):
        return self.start_collectd(plugin(*options))

    def await_value(self, collectd, name, metric, is_wanted):
        """Waits for a cycle whose value is wanted, and returns the cycle."""
        seen = []

        def find():
            cycle = collectd.next_cycle()
            value = cycle.groups.get(name, {}).get(metric)
            seen.append(value)
            return cycle if is_wanted(value) else None

        return wait_until(find, lambda: f"{name}/{metric}: {seen[-5:]}")


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
        # Who writes a file has it charged.
        writer = subprocess.Popen(
            ["sh", "-c", f"read x; head -c {8 * MIB} /dev/zero >{path}"],
            stdin=subprocess.PIPE,
        )
        web.add(writer.pid)
        writer.communicate(b"\n")
        collectd = self.watch('Report "detail"', group("web", f'Cgroup "{web.path}*"'))
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
        below = self.make_cgroup(f"{web.path}/below")
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


if __name__ == "__main__":
    unittest.main()
