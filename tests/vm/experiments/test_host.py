# SPDX-License-Identifier: MIT
"""Where the memory of the host is, on this kernel."""

import json
import signal
import time
from pathlib import Path

from daemon import WAIT_SECONDS, run
from experiment import Experiment, Holder, start_zram, wait_for
from groups import Sample
from kernel import MIB, mem_total, read_meminfo

STATE = Path("/dev/shm/collectd-vm.json")
# The key of meminfo, or the sum of keys, that a part is.
PARTS = {
    "free": ["MemFree"],
    "groups": ["AnonPages", "Mapped"],
    "buffers": ["Buffers"],
    "slab_reclaimable": ["SReclaimable"],
    "slab_unreclaimable": ["SUnreclaim"],
    "page_tables": ["PageTables", "SecPageTables"],
    "kernel_stack": ["KernelStack"],
    "percpu": ["Percpu"],
}
# What programs of the system come and go with.
SLACK = 8 * MIB
HUGETLB = Path("/proc/sys/vm/nr_hugepages")
HUGE_PAGE = 2 * MIB
SWAP = "/swapfile"
HOLD_MIB = 64
# As much is in the tables of a "sparse" holder, beside which those of other
# processes and of the kernel are few.
TABLES_MIB = 128


def is_the_kernels_zram(account):
    """It moves while pages go out."""
    stat = Path("/sys/block/zram0/mm_stat").read_text()
    return abs(account["zram"] - int(stat.split()[2])) <= MIB


class Meminfo:
    """As a Sample, with what meminfo says."""

    def __init__(self):
        self.begin = time.time()
        self.bytes = read_meminfo()
        self.end = time.time()

    def sum_of(self, keys):
        return sum(self.bytes.get(key, 0) for key in keys)


class Host(Experiment):
    options = f"""
        Report "detail"
        StateFile "{STATE}"
        StateInterval 0
    """

    def setUp(self):
        self.addCleanup(STATE.unlink, missing_ok=True)
        super().setUp()

    def next_account(self):
        """The account of the next interval, to the byte, which the unixsock
        plugin does not have. It adds up to MemTotal."""
        began = time.time()

        def find():
            try:
                document = json.loads(STATE.read_text())
            except FileNotFoundError:
                return None
            return document if document["time"] > began else None

        document = wait_for(find, "a state file")
        account = document["host_memory"]
        parts = {
            name: value
            for name, value in account.items()
            if not name.endswith("_error") and name != "outside"
        }
        self.assertEqual(document["mem_total"], mem_total())
        self.assertEqual(sum(parts.values()), mem_total(), parts)
        self.assertGreaterEqual(min(account.values()), 0, account)
        return account

    def await_account(self, is_wanted):
        """For what takes an interval, or happens beside others."""
        end = time.monotonic() + WAIT_SECONDS
        while not is_wanted(account := self.next_account()):
            self.assertLess(time.monotonic(), end, account)
        return account

    def compare(self):
        """Returns {part: what is wrong} for one interval."""
        cycle, looks = self.watch(Meminfo)
        wrong = {}
        for part, keys in PARTS.items():
            seen = [look.sum_of(keys) for look in looks]
            value = cycle.host[f"memory-{part}"]
            if not min(seen) - SLACK <= value <= max(seen) + SLACK:
                wrong[part] = f"{value}, meminfo {seen}"
        return wrong

    def test_parts_are_equal_to_meminfo_and_add_up(self):
        for _ in range(3):
            self.next_account()
        wrong = [self.compare() for _ in range(5)]
        self.assertIn({}, wrong)
        # All processes are in groups.
        account = self.await_account(
            lambda a: a["groups_error"] < 0.05 * a["groups"]
        )
        self.assertLess(account["outside"], 0.05 * account["groups"])
        self.assert_quiet()

    def test_groups_are_the_pss_of_all_processes(self):
        wrong = []
        for _ in range(8):
            cycle, samples = self.observe()
            seen = [
                sum(sum_.pss for sum_ in sample.groups.values())
                for sample in samples
            ]
            value = cycle.host["memory-groups"]
            if 0.95 * min(seen) <= value <= 1.05 * max(seen):
                return
            wrong.append(f"{value}, kernel {seen}")
        self.fail(wrong)

    def test_page_tables_of_groups_are_equal_to_meminfo(self):
        sparse = Holder(self, "sparse", "sparse", TABLES_MIB)
        wait_for(lambda: sparse.group in self.next_cycle(), sparse.group)
        wrong = []
        for _ in range(8):
            cycle, looks = self.watch(Meminfo)
            seen = [look.sum_of(["PageTables"]) for look in looks]
            own = cycle.memory(sparse.group, "page_tables")
            # A reading while it was filled may lack a little.
            self.assertGreater(own, 0.95 * TABLES_MIB * MIB)
            value = sum(
                cycle.memory(group, "page_tables")
                for group in cycle.all_groups()
            )
            if 0.95 * min(seen) <= value <= 1.05 * max(seen):
                return
            wrong.append(f"{value}, meminfo {seen}")
        self.fail(wrong)

    def test_huge_pages(self):
        self.addCleanup(HUGETLB.write_text, "0")
        pages = HOLD_MIB * MIB // HUGE_PAGE
        HUGETLB.write_text(str(2 * pages))
        if int(HUGETLB.read_text()) < 2 * pages:
            self.skipTest("no huge pages can be reserved")
        account = self.next_account()
        self.assertEqual(account["hugetlb_free"], 2 * HOLD_MIB * MIB)
        self.assertEqual(account["hugetlb_used"], 0)
        Holder(self, "tlb", "hugetlb", HOLD_MIB)
        account = self.next_account()
        self.assertEqual(account["hugetlb_free"], HOLD_MIB * MIB)
        self.assertEqual(account["hugetlb_used"], HOLD_MIB * MIB)

    def page_out(self):
        holder = Holder(self, "out", "random", HOLD_MIB)
        self.assert_matches([holder.group])
        holder.signal(signal.SIGUSR1)

        def is_out():
            swap = Sample([holder.group]).groups[holder.group].swap
            return swap > HOLD_MIB * MIB * 9 // 10

        wait_for(is_out, "swap")

    def test_swap(self):
        """Memory in a swap file is not memory of the host."""
        self.assertNotIn("swap_cache", self.next_account())
        self.addCleanup(run, "rm", "-f", SWAP)
        self.addCleanup(run, "swapoff", "-a", check=False)
        run("fallocate", "-l", "512M", SWAP)
        run("chmod", "600", SWAP)
        run("mkswap", SWAP)
        run("swapon", SWAP)
        self.page_out()
        account = self.next_account()
        self.assertIn("swap_cache", account)
        self.assertIn({}, [self.compare() for _ in range(5)])

    def test_zram(self):
        """Memory in zram is memory of the host, compressed."""
        self.assertNotIn("zram", self.next_account())
        start_zram(self)
        self.page_out()
        account = self.await_account(is_the_kernels_zram)
        # Random bytes cannot be compressed.
        self.assertGreater(account["zram"], HOLD_MIB * MIB * 9 // 10)
