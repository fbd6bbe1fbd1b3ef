# SPDX-License-Identifier: MIT
"""What the kernel says itself of the default groups: the sums of smaps_rollup of
each."""

import json
import os
import time
from pathlib import Path

from kernel import parse_kib


def group_of(cgroup):
    """Knows the default groups: one for each service, and "other". As in ps -o
    unit, a user's own services are in user@UID.service."""
    for part in cgroup.split("/"):
        if part and not part.endswith(".slice"):
            return part if part.endswith(".service") else "other"
    return "other"


def read_cgroup(pid):
    """Returns the path in systemd's hierarchy, or in that of cgroup v2."""
    paths = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths[controllers] = path
    return paths.get("name=systemd", paths.get("", ""))


def unit_of(pid):
    return group_of(read_cgroup(pid))


def private(fields):
    return fields.get("Private_Clean", 0) + fields.get("Private_Dirty", 0)


class Sum:
    """As the plugin publishes it: uss is at most pss, of each process."""

    def __init__(self):
        self.processes = 0
        self.unreadable = 0
        self.pss = self.uss = self.swap = 0

    def add(self, pid):
        self.processes += 1
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                fields = parse_kib(file.read())
        except PermissionError:
            self.unreadable += 1
            return
        pss = fields.get("Pss", 0)
        self.pss += pss
        self.uss += min(private(fields), pss)
        self.swap += fields.get("SwapPss", 0)


def is_member(pid):
    """Neither a zombie nor a thread of the kernel: these have no memory. Of all
    files status is one that never hangs."""
    return "\nVmRSS:" in Path(f"/proc/{pid}/status").read_text(errors="replace")


class Sample:
    """Returns the sums of all groups, or of the given ones, from one walk of
    /proc."""

    def __init__(self, only=None, find_group=unit_of):
        self.begin = time.time()
        self.groups = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                group = find_group(pid)
                if (only is None or group in only) and is_member(pid):
                    self.groups.setdefault(group, Sum()).add(pid)
            except (FileNotFoundError, ProcessLookupError):
                pass
        self.end = time.time()


def main():
    """For a reader with other rights: {group: [processes, unreadable]}."""
    counts = {
        group: [sum_.processes, sum_.unreadable]
        for group, sum_ in Sample().groups.items()
    }
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
