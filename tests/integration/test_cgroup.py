"""Groups that are whole control groups: their memory, limits and kills, in real
control groups of the memory controller."""

import contextlib
import math
import os
import signal
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
    return VALUES & set(cycle.groups[name])


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
        self.assertAlmostEqual(
            cycle.value("web", "percent-cgroup_limit"),
            100 * cycle.memory("web", "cgroup") / (64 * MIB),
            3,
        )
        self.assertEqual(cycle.value("web", "count-oom_kill"), 0)


if __name__ == "__main__":
    unittest.main()
