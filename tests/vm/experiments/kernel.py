"""What the kernel says itself: the sums of smaps_rollup per group, read by
other code than the plugin's."""

import json
import os
import re
import time
from pathlib import Path

KIB = 1024
MIB = 1024 * 1024


def group_of(cgroup):
    """The default groups: one for each service, and "other". As ps -o unit,
    a user's own services are in user@UID.service."""
    for part in cgroup.split("/"):
        if part and not part.endswith(".slice"):
            return part if part.endswith(".service") else "other"
    return "other"


def read_cgroup(pid):
    """The path in systemd's hierarchy, or in that of cgroup v2."""
    paths = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths[controllers] = path
    return paths.get("name=systemd", paths.get("", ""))


def parse_rollup(text):
    return {
        key: int(kib) * KIB
        for key, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    }


class Sum:
    def __init__(self):
        self.processes = 0
        self.unreadable = 0
        self.pss = self.uss = self.swap = 0

    def add(self, pid):
        self.processes += 1
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                fields = parse_rollup(file.read())
        except PermissionError:
            self.unreadable += 1
            return
        self.pss += fields.get("Pss", 0)
        self.uss += fields.get("Private_Clean", 0)
        self.uss += fields.get("Private_Dirty", 0)
        self.swap += fields.get("SwapPss", 0)


def is_member(pid):
    """Neither a zombie nor a thread of the kernel: these have no memory. Of all
    files status is one that never hangs."""
    return "\nVmRSS:" in Path(f"/proc/{pid}/status").read_text(errors="replace")


class Sample:
    """The sums of all groups, or of those asked for, from one walk of /proc."""

    def __init__(self, only=None):
        self.begin = time.time()
        self.groups = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                group = group_of(read_cgroup(pid))
                if (only is None or group in only) and is_member(pid):
                    self.groups.setdefault(group, Sum()).add(pid)
            except (FileNotFoundError, ProcessLookupError):
                pass
        self.end = time.time()


def read_number(path):
    return int(Path(path).read_text())


def release():
    """(6, 12) of "6.12.107+deb13-amd64"."""
    return tuple(map(int, os.uname().release.split(".")[:2]))


def main():
    """For a reader with other rights: {group: [processes, unreadable]}."""
    counts = {
        group: [sum_.processes, sum_.unreadable]
        for group, sum_ in Sample().groups.items()
    }
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
