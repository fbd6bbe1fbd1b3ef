# SPDX-License-Identifier: MIT
"""Real control groups of the memory controller, for tests."""

import contextlib
import subprocess
import unittest
from pathlib import Path

from harness import TAG, need_root, wait_until

V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")


class Cgroup:
    """Makes a directory of the memory controller, of either version."""

    def __init__(self, path, needs_memory=True):
        self.is_v1 = V1.is_dir()
        self.path = path
        self.directory = (V1 if self.is_v1 else V2) / path.lstrip("/")
        try:
            self.directory.mkdir()
        except OSError as error:
            raise unittest.SkipTest(f"no control group: {error}") from None
        if needs_memory and not self.usage_file.exists():
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

    def run(self, script):
        """Runs a script of the shell as a process of the group."""
        with subprocess.Popen(
            ["sh", "-c", f"read go; {script}"], stdin=subprocess.PIPE
        ) as process:
            self.add(process.pid)
            process.communicate(b"\n")

    def set_limit(self, bytes_):
        """Of memory; nothing of it goes to the swap of the host."""
        swap = self.file("memory.swappiness", "memory.swap.max")
        if swap.exists():
            swap.write_text("0")
        self.file("memory.limit_in_bytes", "memory.max").write_text(
            f"{bytes_}"
        )

    def set_high(self, bytes_):
        self.file("", "memory.high").write_text(f"{bytes_}")

    def events(self):
        """(high, max); version 1 has no high."""
        text = self.file("memory.failcnt", "memory.events").read_text()
        if self.is_v1:
            return None, int(text)
        words = dict(line.split() for line in text.splitlines())
        return int(words["high"]), int(words["max"])

    def peak(self):
        name = self.file("memory.max_usage_in_bytes", "memory.peak")
        return int(name.read_text())

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

    def kernel(self):
        """The kernel's own memory: stacks, page tables, slab."""
        if self.is_v1:
            path = self.directory / "memory.kmem.usage_in_bytes"
            return int(path.read_text())
        text = (self.directory / "memory.stat").read_text()
        words = dict(line.split() for line in text.splitlines())
        parts = ("slab", "kernel_stack", "pagetables", "percpu")
        return int(
            words.get("kernel", sum(int(words.get(key, 0)) for key in parts))
        )

    def working_set(self):
        return self.usage() - self.stat()["inactive"]

    def remove(self):
        """The last process may take a moment to leave."""

        def is_removed():
            with contextlib.suppress(OSError):
                self.directory.rmdir()
            return not self.directory.exists()

        wait_until(is_removed, f"the end of {self.path}")


class CgroupMixin:
    """For a test case that makes some."""

    def make_top(self):
        need_root("makes control groups")
        self.top = self.make_cgroup(f"/smaps-test{TAG}")

    def make_cgroup(self, path, **options):
        cgroup = Cgroup(path, **options)
        self.addCleanup(cgroup.remove)
        return cgroup

    def make_below(self, name):
        if not self.top.is_v1:
            control = self.top.directory / "cgroup.subtree_control"
            control.write_text("+memory")
        return self.make_cgroup(f"{self.top.path}/{name}")
