"""With large folios, the values of a process whose pages are sampled are equal
to the kernel's, also where the kernel counts no mappings of single pages.

Such a kernel (CONFIG_NO_PAGE_MAPCOUNT) takes the average of the folio for each
page, and calls private what one process alone maps, however often."""

import os
from pathlib import Path

from experiment import Experiment, Holder
from groups import private
from kernel import MIB, read_kib

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
            self.skipTest("this kernel has no transparent huge pages")
        before = (THP / name).read_text().split("[")[1].split("]")[0]
        self.addCleanup((THP / name).write_text, before)
        (THP / name).write_text(value)

    def hold(self, kind, field):
        """In huge pages, but for some that the kernel did not find. Returns
        what the kernel says of the process, or of the parent."""
        pid = Holder(self, "folios", kind, SIZE_MIB).pid()
        rollup = read_kib(f"/proc/{pid}/smaps_rollup")
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
        for parent, child in ((SAMPLED, WALKED), (WALKED, SAMPLED)):
            with self.subTest(parent=parent, child=child):
                self.restart(parent=parent, child=child)
                self.assert_all_match(["parent", "child"])

    def test_mapped_twice(self):
        self.want_huge_pages("shmem_enabled", "advise")
        rollup = self.hold("twice", "ShmemPmdMapped")
        self.assertEqual(private(rollup) > rollup["Pss"], IS_AVERAGE)
        self.restart(parent=SAMPLED)
        self.assert_all_match(["parent"])
