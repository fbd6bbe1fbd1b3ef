# SPDX-License-Identifier: MIT
"""With large folios, the values of a process whose pages are sampled are equal
to the kernel's, also where the kernel counts no mappings of single pages.

Such a kernel (CONFIG_NO_PAGE_MAPCOUNT) takes the average of the folio for each
page, and calls private what one process alone maps, however often."""

import os
from pathlib import Path

from experiment import Experiment, Holder
from groups import private
from kernel import KIB, MIB, read_kib

THP = Path("/sys/kernel/mm/transparent_hugepage")
IS_AVERAGE = os.uname().release.endswith("-average")
SIZE_MIB = 128
INTERVALS = 10

# MaxLockHold is in milliseconds.
WALKED, SAMPLED = 1000, 0.1


def read_comm(pid):
    """The process has the name of the group."""
    return Path(f"/proc/{pid}/comm").read_text().strip()


class LargeFolios(Experiment):
    find_group = staticmethod(read_comm)

    def want_huge_pages(self, name, value):
        if not (THP / name).exists():
            self.skipTest(f"this kernel has no transparent huge pages: {name}")
        before = (THP / name).read_text().split("[")[1].split("]")[0]
        self.addCleanup((THP / name).write_text, before)
        (THP / name).write_text(value)

    def start_holder(self, kind):
        """Returns what the kernel says of the process, or of the parent."""
        pid = Holder(self, "folios", kind, SIZE_MIB).pid()
        return read_kib(f"/proc/{pid}/smaps_rollup")

    def hold(self, kind, field):
        """In huge pages, but for some that the kernel did not find."""
        rollup = self.start_holder(kind)
        self.assertGreater(rollup[field], SIZE_MIB * MIB // 2)
        return rollup

    def restart(self, **limits):
        """Restarts the daemon with the MaxLockHold of each group."""
        self.start_daemon(
            "\n".join(
                f'<Group "{name}">\n  Comm "{name}"\n  MaxLockHold {limit}\n'
                '  Refresh "always"\n</Group>'
                for name, limit in limits.items()
            )
        )

    def assert_all_match(self, groups):
        """In an interval in which one of the processes is sampled: from time to
        time it is walked, to see how long that takes."""
        for _ in range(INTERVALS):
            cycle = self.assert_matches(groups, names=("pss", "uss"))
            if cycle.own("count-sampled") == 1:
                return
        self.fail("not one process is sampled")

    def test_family(self):
        """The sample is of the parent, which maps its huge pages whole, and
        then of the child, which maps parts of them."""
        self.want_huge_pages("enabled", "madvise")
        self.hold("family", "AnonHugePages")
        self.assert_family_matches()

    def assert_family_matches(self):
        for parent, child in ((SAMPLED, WALKED), (WALKED, SAMPLED)):
            with self.subTest(parent=parent, child=child):
                self.restart(parent=parent, child=child)
                self.assert_all_match(["parent", "child"])

    def test_sizes_in_between(self):
        """Folios of 64 KiB (mTHP): the kernel maps each of their pages with an
        entry of its own, and the child has a part of each."""
        wanted = "hugepages-64kB"
        # Linux 6.12
        count = THP / wanted / "stats/nr_anon"
        if not count.exists():
            self.skipTest("this kernel does not count folios of a size")
        # It takes the largest size that is switched on.
        for path in THP.glob("hugepages-*kB/enabled"):
            is_wanted = path.parent.name == wanted
            self.want_huge_pages(
                path.relative_to(THP), "madvise" if is_wanted else "never"
            )
        before = int(count.read_text())
        self.start_holder("middle")
        folios = int(count.read_text()) - before
        self.assertGreater(folios * 64 * KIB, SIZE_MIB * MIB // 2)
        self.assert_family_matches()

    def test_mapped_twice(self):
        self.want_huge_pages("shmem_enabled", "advise")
        rollup = self.hold("twice", "ShmemPmdMapped")
        self.assertEqual(private(rollup) > rollup["Pss"], IS_AVERAGE)
        self.restart(parent=SAMPLED)
        self.assert_all_match(["parent"])
