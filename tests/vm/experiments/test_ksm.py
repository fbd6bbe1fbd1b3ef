# SPDX-License-Identifier: MIT
"""Pages that KSM merges and takes apart again."""

from experiment import Experiment, Holder, wait_for
from groups import Sample
from kernel import MIB, read_number

KSM = "/sys/kernel/mm/ksm/"
MIB_EACH = 32


def write(name, value):
    with open(KSM + name, "w") as file:
        file.write(str(value))


class Ksm(Experiment):
    # The samples of a process take a part of a CPU that is too small where they
    # are emulated, and come minutes after the merging.
    options = """
        MaxLockHold 1000
        <Group "%{unit}">
          Unit "*.service"
        </Group>
    """

    def setUp(self):
        super().setUp()
        self.addCleanup(write, "run", 0)
        self.addCleanup(write, "run", 2)
        write("pages_to_scan", 5000)
        write("sleep_millisecs", 10)
        services = [
            Holder(self, f"mergeable{n}", "mergeable", MIB_EACH) for n in (1, 2)
        ]
        self.groups = [service.group for service in services]
        self.assert_matches(self.groups)

    def merge(self):
        """Nearly all pages of both are one of eight."""
        write("run", 1)
        wanted = 2 * MIB_EACH * MIB // 4096 * 9 // 10
        wait_for(
            lambda: read_number(KSM + "pages_sharing") >= wanted, "merged pages"
        )
        for group in self.groups:
            pss = Sample([group]).groups[group].pss
            self.assertLess(pss, MIB_EACH * MIB // 2, group)

    def test_unmerge(self):
        self.merge()
        self.assert_matches(self.groups, names=("pss", "uss"))
        write("run", 2)
        self.assertEqual(read_number(KSM + "pages_sharing"), 0)
        self.assert_matches(self.groups, names=("pss", "uss"))

    def test_stopped_ksm_keeps_merged_pages(self):
        self.merge()
        write("run", 0)
        for _ in range(4):
            self.assert_matches(self.groups, names=("pss", "uss"))
