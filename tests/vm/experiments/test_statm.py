# SPDX-License-Identifier: MIT
"""Before Linux 6.2 statm lacks the pages of the last faults of each thread."""

from daemon import HOME
from experiment import Experiment, Holder, wait_for
from kernel import MIB, parse_kib, read_statm, release

MEMORY_MIB = 900
INTERVALS = 20
LACKS = release() < (6, 2)


def lacking_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        rollup = parse_kib(file.read())
    return rollup["Rss"] - read_statm(pid)["resident"]


class Statm(Experiment):
    # Every walk that takes longer than was predicted raises the prediction,
    # until it is above the limit.
    options = """
        MaxLockHold 1
        <Group "%{unit}">
          UnitMatch "^(reader|nginx)[.]service$"
          Refresh "always"
        </Group>
        """

    def test_a_process_of_many_threads_is_sampled(self):
        """Most of its memory is not in statm, but its pages show it."""
        text = HOME / "text"
        self.addCleanup(text.unlink, missing_ok=True)
        reader = Holder(
            self, "reader", "text", MEMORY_MIB, properties=["TasksMax=infinity"]
        )
        self.intervals = 0
        wait_for(self.is_sampled, "a sample")
        cycle = self.assert_matches([reader.group])
        self.assertGreater(cycle.own("count-sampled"), 0)
        if LACKS:
            self.assertGreater(
                lacking_bytes(reader.pid()), MEMORY_MIB * MIB / 2
            )

    def is_sampled(self):
        if self.intervals == INTERVALS:
            self.skipTest("this machine walks the process within MaxLockHold")
        self.intervals += 1
        return self.next_cycle().own("count-sampled", 0) > 0
