# SPDX-License-Identifier: MIT
"""Holds the values of one interval."""

import math


class Cycle:
    """groups[group][metric] is a tuple, of one number for most metrics. The
    plugin's metrics about itself are in the group ""; host[metric] is a number
    about the host."""

    def __init__(self, time, groups):
        self.time = time
        host = groups.pop("host", {})
        self.host = {metric: value for metric, (value,) in host.items()}
        self.groups = groups

    def __contains__(self, group):
        return group in self.groups

    def all_groups(self):
        return set(self.groups) - {""}

    def is_known(self, group):
        return not math.isnan(self.memory(group, "pss"))

    def find(self, group, metric, default=None):
        """A metric with one value, or the default where it is not there."""
        (value,) = self.groups.get(group, {}).get(metric, (default,))
        return value

    def value(self, group, metric):
        """Returns a value, which has to be there, e.g. ("web", "memory-pss").
        """
        (value,) = self.groups[group][metric]
        return value

    def memory(self, group, name):
        return self.value(group, f"memory-{name}")

    def counts(self, group):
        """ps_count as (processes, threads)."""
        return self.groups[group]["ps_count"]

    def own(self, metric, default=math.nan):
        return self.find("", metric, default)

    @property
    def begin(self):
        """Values carry the time of the end of the cycle."""
        return self.time - self.own("duration-cycle", 0)
