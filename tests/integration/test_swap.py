# SPDX-License-Identifier: MIT
"""Values of memory in swap. While there is some, the host has values that it
lacks otherwise."""

import contextlib
import os
import subprocess
import unittest

from harness import (
    DEFAULT_NAMES,
    MIB,
    IntegrationTest,
    group,
    need_program,
    need_root,
    plugin,
    read_kib,
    stage,
)

SWAP_MIB = 64
# What a process has beside what it allocates, and its part of libraries.
SLACK = 2 * MIB


def run_tool(*command):
    """Runs a tool of util-linux. Skips the test with the output of a command
    that fails: file systems and containers may refuse a swap file."""
    path = need_program(command[0], "util-linux")
    done = subprocess.run(
        [path, *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        raise unittest.SkipTest(f"{command[0]}: {done.stdout.strip()}")


@contextlib.contextmanager
def swap_file():
    """A swap file of our own, in use. Written whole: it may have no holes."""
    need_root("swapon")
    path = stage().new_directory() / "swap"
    with open(path, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        for _ in range(SWAP_MIB):
            file.write(bytes(MIB))
        os.fsync(file.fileno())
    run_tool("mkswap", str(path))
    run_tool("swapon", str(path))
    try:
        yield
    finally:
        run_tool("swapoff", str(path))
        path.unlink()


class Values(IntegrationTest):
    def test_paged_out_memory_moves_from_rss_to_swap(self):
        with swap_file():
            self.check_swap()

    def check_swap(self):
        shape = self.start_shape("swap", mib=32, children=1)
        swapped = read_kib(f"/proc/{shape.root}/status")["VmSwap"]
        if swapped < 16 * MIB:
            self.skipTest(f"the kernel has paged out {swapped} bytes only")
        collectd = self.start_collectd(
            plugin(
                'Refresh "always"',
                'Report "default" "swap_total"',
                group("shaped", 'Comm "shaped@"'),
            )
        )
        names = [*DEFAULT_NAMES, "swap_total"]
        cycle = self.assert_sums_match(collectd, "shaped", shape.pids, names)
        # The child has inherited all of it: there once, and mapped twice.
        for name, expected in (
            ("swap", swapped),
            ("swap_total", 2 * swapped),
            ("pss", 32 * MIB - swapped),
        ):
            found = cycle.memory("shaped", name)
            self.assert_near(found, expected, SLACK, name)
