# SPDX-License-Identifier: MIT
"""Memory that goes to swap, comes back, and has to come back."""

import signal
import time

from daemon import run
from experiment import Experiment, Holder, Shape, start_zram, wait_for
from groups import Sample
from kernel import MIB, read_number

PRIVATE_MIB = 64
FAMILY_MIB = 32
SWAP = "/swapfile"
# An estimate stands on one reading for no longer than MaxAge; then comes the
# next interval, and one for a budget that was used up.
MAX_AGE_SECONDS = 600 + 3 * Experiment.interval


def swap_of(service):
    return Sample([service.group]).groups[service.group].swap


class Swap(Experiment):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_swap)
        run("fallocate", "-l", "512M", SWAP)
        run("chmod", "600", SWAP)
        run("mkswap", SWAP)
        run("swapon", SWAP)

    def end_swap(self):
        run("swapoff", "-a", check=False)
        run("rm", "-f", SWAP)

    def swap_out_both(self):
        """A service with private memory, and one that has forked after its
        memory went out."""
        self.swap_out_private()
        self.family = Shape(
            self, "family", "swap", mib=FAMILY_MIB, children=3
        )
        self.assertGreater(swap_of(self.family), FAMILY_MIB * MIB // 2)
        return [self.private.group, self.family.group]

    def swap_out_private(self):
        self.private = Holder(self, "private", "anon", PRIVATE_MIB)
        self.assert_matches(only=[self.private.group])
        self.private.signal(signal.SIGUSR1)
        wait_for(
            lambda: swap_of(self.private) > PRIVATE_MIB * MIB // 2, "swap"
        )

    def assert_matches_before_max_age(self, groups, names=("pss", "swap")):
        end = time.monotonic() + MAX_AGE_SECONDS
        while True:
            try:
                return self.assert_matches(groups, names, tries=1)
            except AssertionError:
                if time.monotonic() > end:
                    raise

    def test_out_and_in(self):
        groups = self.swap_out_both()
        cycle = self.assert_matches_before_max_age(groups)
        for group in groups:
            self.assertGreater(cycle.memory(group, "swap"), 0)
        little = PRIVATE_MIB * MIB // 10
        self.private.signal(signal.SIGUSR2)
        wait_for(lambda: swap_of(self.private) < little, "what was out")
        cycle = self.assert_matches_before_max_age(groups)
        self.assertLess(cycle.memory(self.private.group, "swap"), little)

    def test_pss_follows_at_once(self):
        self.swap_out_private()
        self.assert_matches(only=[self.private.group], names=("pss", "uss"))

    def test_swapoff(self):
        groups = self.swap_out_both()
        self.assert_matches_before_max_age(groups)
        run("swapoff", "-a")
        # At once: there can be no swap where there is none, and what came back
        # is in pss or in its error.
        self.assert_matches(groups)
        self.assert_matches()

    def test_zram(self):
        run("swapoff", SWAP)
        start_zram(self)
        self.assert_matches_before_max_age(self.swap_out_both())
        run("swapoff", "-a")
        self.assertEqual(read_number("/sys/block/zram0/disksize"), 512 * MIB)
        self.assert_matches([self.private.group, self.family.group])
