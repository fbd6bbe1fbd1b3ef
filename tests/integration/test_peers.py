"""Debian's smem reads smaps by its own code: it has to come to the same."""

import shutil
import subprocess

from harness import KIB, IntegrationTest, group, plugin, sum_values

# What smem may differ by. It adds up the PSS of each mapping, rounded down to
# a KiB each; see also IntegrationTest.assert_sums_match() on the libc.
TOLERANCE = 0.01


def read_smem(pids):
    """{"pss": bytes …} of these processes, as smem prints it."""
    done = subprocess.run(
        ["smem", "-H", "-c", "pid uss pss rss"],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    rows = (map(int, line.split()) for line in done.stdout.splitlines())
    return sum_values(
        {"uss": uss * KIB, "pss": pss * KIB, "rss": rss * KIB}
        for pid, uss, pss, rss in rows
        if pid in pids
    )


class Smem(IntegrationTest):
    def setUp(self):
        if shutil.which("smem") is None:
            self.skipTest("smem is not installed")

    def test_smem_prints_the_same(self):
        shapes = [
            self.start_shape("anon", name="peers", mib=32, children=2),
            self.start_shape("shm", name="peers", mib=48, children=4),
            self.start_shape(
                "cow", name="peers", mib=32, rewrite_mib=8, children=3
            ),
            self.start_shape("file", name="peers", mib=16, children=2),
        ]
        pids = [pid for shape in shapes for pid in shape.pids]
        collectd = self.start_collectd(
            plugin('Refresh "always"', group("peers", 'Comm "peers@"'))
        )
        cycle = collectd.next_cycle()
        self.assertEqual(cycle.counts("peers")[0], len(pids))
        for name, expected in read_smem(pids).items():
            self.assert_near(
                cycle.memory("peers", name),
                expected,
                TOLERANCE * expected,
                name,
            )
