"""The options of the threshold plugin that thresholds.conf sets or explains."""

import time

from alerts import (
    HYSTERESIS,
    PSS_LIMITS,
    VALUES_FOR_3_HITS,
    WARNING,
    ThresholdTest,
)
from harness import wait_until

# What takes the Hits of the same block away.
NO_HITS = {"# A peak of a few intervals raises no alarm.\n      Hits 3": ""}
PERSIST = {"Persist false": "Persist true"}
PERSIST_OK = {"PersistOK false": "PersistOK true"}


class Options(ThresholdTest):
    """The results of 5.12 where they differ from its manual."""

    def test_each_value_is_reported_as_okay_when_it_is_first_seen(self):
        self.start_shape("anon", name="postgres")
        self.start_alerts()
        for metric in (
            "memory-pss",
            "memory-swap",
            "percent-pss",
            "ps_count",
            "count-unreadable",
            "duration-age",
        ):
            with self.subTest(metric):
                self.wait_severities(["OKAY"], metric)

    def test_hits_3_waits_for_the_fifth_value(self):
        shape = self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts(PSS_LIMITS)
        self.wait_severities(["OKAY"], "memory-pss")
        shape.grow(40)
        alert = self.wait_severities(["OKAY", "WARNING"], "memory-pss")[-1]
        self.assertEqual(self.count_over(alert.time), VALUES_FOR_3_HITS)

    def test_without_hits_the_first_value_is_reported(self):
        shape = self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **NO_HITS})
        self.wait_severities(["OKAY"], "memory-pss")
        shape.grow(40)
        alert = self.wait_severities(["OKAY", "WARNING"], "memory-pss")[-1]
        self.assertEqual(self.count_over(alert.time), 1)

    def count_over(self, end):
        """Values out of range up to that time."""
        return sum(
            value > WARNING and time < end + 0.0005
            for time, value in self.rows("memory-pss")
        )

    def test_hysteresis_keeps_the_warning_a_little_below_the_limit(self):
        self.start_shape("anon", name="postgres", mib=25)
        second = self.start_shape("anon", name="postgres", mib=10)
        self.start_alerts(PSS_LIMITS)
        self.wait_severities(["OKAY"], "memory-pss")
        third = self.start_shape("anon", name="postgres", mib=25)
        self.wait_severities(["OKAY", "WARNING"], "memory-pss")
        third.stop()
        wait_until(
            lambda: self.rows("memory-pss")[-1][1] < WARNING, "a value below"
        )
        self.wait_severities(["OKAY", "WARNING"], "memory-pss")
        second.stop()
        alert = self.wait_severities(
            ["OKAY", "WARNING", "OKAY"], "memory-pss"
        )[-1]
        self.assertLess(alert.value, WARNING - HYSTERESIS)

    def test_persist_repeats_what_is_out_of_range_and_no_okay(self):
        shape = self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **NO_HITS, **PERSIST})
        self.wait_severities(["OKAY"], "memory-pss")
        shape.grow(40)
        self.wait_first(["OKAY"] + 3 * ["WARNING"], "memory-pss")

    def test_persist_with_hits_repeats_after_as_many_values_again(self):
        self.start_shape("anon", name="postgres", mib=60)
        self.start_alerts({**PSS_LIMITS, **PERSIST})
        first, second = self.wait_first(2 * ["WARNING"], "memory-pss")
        self.assertEqual(
            self.count_over(second.time) - self.count_over(first.time),
            VALUES_FOR_3_HITS,
        )

    def test_only_the_most_specific_block_counts(self):
        for name in ("postgres", "redis"):
            self.start_shape("anon", name=name, mib=20)
        any_group = """
          <Plugin smaps>
            <Type memory>
              Instance "pss"
              WarningMax 1
            </Type>
          </Plugin>
        """
        every = "  # Every group.\n"
        self.start_alerts({**PSS_LIMITS, every: any_group})
        self.wait_severities(["WARNING"], "memory-pss", "redis")
        self.wait_severities(["OKAY"], "memory-pss")

    def test_persist_ok_needs_persist(self):
        self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **NO_HITS, **PERSIST_OK})
        self.wait_severities(["OKAY"], "memory-pss")

    def test_persist_ok_repeats_okay(self):
        self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **NO_HITS, **PERSIST, **PERSIST_OK})
        self.wait_first(3 * ["OKAY"], "memory-pss")

    def test_with_persist_ok_values_within_range_are_hits(self):
        self.start_shape("anon", name="postgres", mib=20)
        self.start_alerts({**PSS_LIMITS, **PERSIST_OK})
        alert = self.wait_severities(["OKAY"], "memory-pss")[0]
        times = [time for time, _ in self.rows("memory-pss")]
        before = [time for time in times if time < alert.time + 0.0005]
        self.assertEqual(len(before), VALUES_FOR_3_HITS)
