# SPDX-License-Identifier: MIT
"""Transparent huge pages are counted, and pages of hugetlbfs are not."""

from pathlib import Path

from daemon import run
from experiment import Experiment, Holder
from kernel import KIB, MIB

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HUGETLB = Path("/proc/sys/vm/nr_hugepages")
SIZE_MIB = 64


class HugePages(Experiment):
    # A reading while pages are touched would stay.
    options = 'Report "detail"\nRefresh "always"'

    def test_transparent(self):
        if not THP.exists():
            self.skipTest("this kernel has no transparent huge pages")
        before = THP.read_text().split("[")[1].split("]")[0]
        self.addCleanup(THP.write_text, before)
        THP.write_text("always")
        holder = Holder(self, "huge", "huge", SIZE_MIB)
        for _ in range(3):
            cycle = self.assert_matches([holder.group])
        self.assertGreater(
            cycle.memory(holder.group, "anon_huge_pages"), SIZE_MIB * MIB // 2
        )

    def reserve(self, pages):
        self.addCleanup(HUGETLB.write_text, "0")
        HUGETLB.write_text(str(pages))
        if int(HUGETLB.read_text()) < pages:
            self.skipTest("no huge pages can be reserved")

    def test_hugetlb_is_not_in_pss(self):
        self.reserve(SIZE_MIB // 2)
        holder = Holder(self, "tlb", "hugetlb", SIZE_MIB)
        cycle = self.assert_matches([holder.group])
        # The unixsock plugin writes seven digits.
        self.assertAlmostEqual(
            cycle.memory(holder.group, "private_hugetlb"),
            SIZE_MIB * MIB,
            delta=KIB,
        )
        self.assertLess(cycle.memory(holder.group, "pss"), SIZE_MIB * MIB // 2)

    def test_postgresql(self):
        """A page counts once for each process that has touched it."""
        (home,) = Path("/etc/postgresql").glob("*/main")
        unit = f"postgresql@{home.parent.name}-main.service"
        conf = home / "conf.d/vm.conf"
        # PostgreSQL is restarted when these pages are gone: by default it
        # takes them.
        self.addCleanup(run, "systemctl", "restart", unit)
        self.reserve(96)
        self.addCleanup(conf.unlink)
        conf.write_text("huge_pages = on\nshared_buffers = 128MB\n")
        run("systemctl", "restart", unit)
        cycle = self.assert_matches([unit])
        self.assertGreater(cycle.memory(unit, "shared_hugetlb"), 0)
        self.assertLess(cycle.memory(unit, "pss"), 128 * MIB)
