# SPDX-License-Identifier: MIT
"""What the kernel keeps for the processes of a group, page tables;
and how long a group is up. With real processes of known size."""

import time

from harness import (
    MIB,
    PAGE_SIZE,
    TAG,
    IntegrationTest,
    Script,
    group,
    plugin,
    read_meminfo,
    read_page_tables,
    wait_until,
)

# It takes a table for each page that it writes: as much as a table maps, 2 MiB
# where pages have 4 KiB, lies between them. As many as the line that it reads
# says; then it says so. (Shared memory, which need not be there to be mapped. A
# huge page would take no table.)
SPARSE = """
import contextlib, mmap, os, sys
span = mmap.PAGESIZE ** 2 // 8
open("/proc/self/comm", "w").write(sys.argv[1])
file = os.memfd_create("sparse")
os.truncate(file, 32768 * span)
memory = mmap.mmap(file, 32768 * span)
with contextlib.suppress(OSError):
    memory.madvise(mmap.MADV_NOHUGEPAGE)
at = 0
print("ready", flush=True)
for line in sys.stdin:
    end = at + int(line) * span
    for at in range(at, end, span):
        memory[at] = 1
    at = end
    print("done", flush=True)
"""

# Of the sum over all processes, with what starts and ends meanwhile.
TOLERANCE = 0.05


class Sparse(Script):
    def __init__(self):
        super().__init__(SPARSE, f"sparse{TAG}")
        self.read_line()

    def take(self, size):
        """Takes so many bytes of tables."""
        self.ask(size // PAGE_SIZE)


class PageTables(IntegrationTest):
    def start_sparse(self):
        sparse = Sparse()
        self.addCleanup(sparse.stop)
        return sparse

    def watch(self, *options):
        return self.start_collectd(
            plugin(
                'Report "detail"',
                *options,
                group("sparse", 'Comm "sparse@"'),
                'Other "other"',
            )
        )

    def wait_exact(self, collectd, sparse):
        """Returns a cycle with the tables that the process has."""
        expected = read_page_tables(sparse.pid)
        return collectd.find_cycle(
            lambda cycle: cycle.memory("sparse", "page_tables") == expected,
            f"{expected} bytes of page tables",
        )

    def test_tables_are_seen_to_grow(self):
        sparse = self.start_sparse()
        collectd = self.watch()
        small = self.wait_exact(collectd, sparse)
        self.assertLess(small.memory("sparse", "page_tables"), 2 * MIB)
        sparse.take(8 * MIB)
        large = self.wait_exact(collectd, sparse)
        self.assertGreater(large.memory("sparse", "page_tables"), 8 * MIB)
        # They are in nothing else. (It has come to 8 MiB.)
        self.assertLess(
            large.memory("sparse", "pss") - small.memory("sparse", "pss"),
            14 * MIB,
        )

    def test_sum_over_all_groups_is_equal_to_the_host(self):
        """The kernel's own tables are in none; so a large process, beside which
        they are small."""
        sparse = self.start_sparse()
        sparse.take(96 * MIB)
        collectd = self.watch()
        self.wait_exact(collectd, sparse)
        seen = []

        def is_near():
            before = read_meminfo()["PageTables"]
            cycle = collectd.next_cycle()
            after = read_meminfo()["PageTables"]
            found = sum(
                cycle.memory(name, "page_tables")
                for name in ("sparse", "other")
            )
            seen.append((before, found, after))
            return (
                min(before, after) * (1 - TOLERANCE)
                <= found
                <= max(before, after) * (1 + TOLERANCE)
            )

        wait_until(is_near, lambda: f"the sum of the host: {seen}")


def since_boot():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Uptime(IntegrationTest):
    def start_service(self):
        """Returns the service, and two times between which it began."""
        before = since_boot()
        shape = self.start_shape("anon", name="service")
        return shape, before, since_boot()

    def cycle_of(self, collectd, processes):
        return collectd.find_cycle(
            lambda cycle: cycle.counts("service")[0] == processes,
            f"{processes} processes",
        )

    def assert_up_since(self, collectd, before, after):
        """Start times are counted in hundredths."""
        begin = since_boot()
        cycle = self.cycle_of(collectd, 1)
        uptime = cycle.value("service", "uptime")
        self.assertGreaterEqual(uptime, begin - after)
        self.assertLessEqual(uptime, since_boot() - before + 0.02)
        return uptime

    def test_a_restarted_service_begins_anew(self):
        shape, *began = self.start_service()
        collectd = self.start_collectd(
            plugin(group("service", 'Comm "service@"'))
        )
        first = self.assert_up_since(collectd, *began)
        later = self.assert_up_since(collectd, *began)
        self.assertGreater(later, first)
        shape.stop()
        cycle = self.cycle_of(collectd, 0)
        self.assertEqual(cycle.value("service", "uptime"), 0)
        _, *began = self.start_service()
        self.assert_up_since(collectd, *began)
