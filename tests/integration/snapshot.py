# SPDX-License-Identifier: MIT
"""Snapshots in the tests: documents as smaps-snapshot(5) defines them, what a
process maps as its smaps has it, and daemons that have something to write."""

import json
import os
import re
import subprocess
import time as clock
from pathlib import Path

import harness
from harness import (
    KIB,
    ROLLUP_NAMES,
    is_root,
    read_kernel_memory,
    read_statm,
    wait_until,
)

# ---- what a document may hold ----


def require(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in what))


def whole(value):
    return type(value) is int and 0 <= value < 1 << 63


def number(value):
    return type(value) in (int, float) and value >= 0


def text(value):
    return type(value) is str


def words(*allowed):
    return lambda value: value in allowed


def array(of):
    return lambda value: type(value) is list and all(map(of, value))


def mapping_of_keys(value):
    return type(value) is dict


# What cannot be read is guessed in some groups and in others not.
WITHOUT_PSS = ("statm", "unreadable", "parent")

PERMISSIONS = re.compile(r"[r-][w-][x-](p|s|ps)")

STATM_NAMES = ("size", "resident", "resident_shared", "text", "data")
KERNEL_NAMES = ("page_tables", "kernel_stack")
USAGE = dict.fromkeys(
    (*ROLLUP_NAMES, "uss", "shared", *STATM_NAMES, *KERNEL_NAMES), whole
)

SUMMED = {
    "rss": "Rss",
    "pss": "Pss",
    "shared_clean": "Shared_Clean",
    "shared_dirty": "Shared_Dirty",
    "private_clean": "Private_Clean",
    "private_dirty": "Private_Dirty",
    "anonymous": "Anonymous",
    "swap": "SwapPss",
    "swap_total": "Swap",
}

# Key: what its value must be. Those that end in "?" may be missing.
DOCUMENT = {
    "format": words("smaps-snapshot"),
    "version": words(2),
    "plugin_version": text,
    "host": text,
    "time": number,
    "interval": number,
    "kernel": text,
    "page_size": whole,
    "mem_total": whole,
    "mem_available?": whole,
    "trigger": mapping_of_keys,
    "rules": array(text),
    "host_memory?": mapping_of_keys,
    "groups": array(mapping_of_keys),
    "processes": array(mapping_of_keys),
    "left_out?": whole,
    "state_interval?": number,
    "resume?": array(text),
    "mappings?": array(mapping_of_keys),
}
PARTS = ("free", "groups", "slab_reclaimable", "slab_unreclaimable")
PARTS += ("page_tables", "kernel_stack", "buffers", "tmpfs", "page_cache")
PARTS += ("unaccounted",)
PARTS_OF_SOME = ("percpu", "hugetlb_used", "hugetlb_free", "zram", "zswap")
PARTS_OF_SOME += ("swap_cache",)
PARTS_WITH_ERRORS = ("groups", "tmpfs", "page_cache", "unaccounted")
HOST_MEMORY = {
    **dict.fromkeys(PARTS, whole),
    **{f"{part}?": whole for part in PARTS_OF_SOME},
    **{f"{part}_error": whole for part in PARTS_WITH_ERRORS},
    "swap_cache_error?": whole,
    "outside": whole,
    "outside_error": whole,
}
NOTIFICATION = {
    "kind": words("notification"),
    "severity": words("okay", "warning", "failure"),
    "time": number,
    "group": text,
    "type?": text,
    "type_instance?": text,
    "message": text,
}
CAUSES = ("files", "relatives", "copies", "freed", "fork", "lent", "swap")
CAUSES += ("time", "ksm", "reading", "statm", "sample", "guess", "ended")
CAUSES += ("unidentified",)
GROUP = {
    "name": text,
    "rule": whole,
    "last_known?": number,
    "processes": whole,
    "threads": whole,
    "unreadable": whole,
    "uptime?": number,
    "coverage?": number,
    "age?": number,
    "pss_error?": whole,
    "uss_error?": whole,
    "freed?": whole,
    "freed_error?": whole,
    "pss_error_by?": mapping_of_keys,
    "cgroup?": text,
    "cgroup_absence?": words(
        "not_asked",
        "empty",
        "unknown",
        "root",
        "shared",
        "out_of_sight",
        "elsewhere",
        "no_memory",
        "hung",
    ),
    "cgroup_memory?": whole,
    "cgroup_working_set?": whole,
    "cgroup_limit?": whole,
    "cgroup_file?": whole,
    "cgroup_kernel?": whole,
    "oom_kill?": whole,
    "oomd_kill?": whole,
    "cgroup_peak?": whole,
    "cgroup_peak_ever?": whole,
    "events_high?": whole,
    "events_max?": whole,
    "pressure_some?": number,
    "pressure_full?": number,
    "growth?": whole,
    "until_limit?": number,
    "grows_since?": number,
    "usage": mapping_of_keys,
}
PROCESS = {
    "pid": whole,
    "starttime?": whole,
    "ppid?": whole,
    "comm?": text,
    "command_line?": text,
    "exe?": text,
    "user?": text,
    "cgroup?": text,
    "unit?": text,
    "slice?": text,
    "container?": text,
    "container_name?": text,
    "pod?": text,
    "namespace?": text,
    "uid?": whole,
    "groups": array(text),
    "rule?": whole,
    "also": array(whole),
    "inherited?": lambda value: value is True,
    "threads?": whole,
    "uptime?": number,
    "source": words(
        "read",
        "sampled",
        "estimated",
        "guessed",
        "statm",
        "unreadable",
        "parent",
        "ended",
    ),
    "age?": number,
    "pages_sampled?": whole,
    "pss_error?": whole,
    "uss_error?": whole,
    "deferred?": words("budget", "max_lock_hold", "hung"),
    "read_cost?": number,
    "usage": mapping_of_keys,
    "mappings_from?": words("smaps", "samples", "maps"),
    "mappings?": array(mapping_of_keys),
}
MAPPING = {
    "name?": text,
    "permissions": lambda value: bool(PERMISSIONS.fullmatch(value)),
    "vmas": lambda value: whole(value) and value > 0,
    "processes?": whole,
    "size": whole,
    **{f"{name}?": whole for name in SUMMED},
    "pages_sampled?": whole,
    "pss_error?": whole,
}


def check_keys(what, value, keys):
    """No key is missing, none is there that is not documented."""
    known = {key.rstrip("?"): check for key, check in keys.items()}
    for key in keys:
        require(key.endswith("?") or key in value, what, "lacks", key)
    for key, item in value.items():
        require(key in known, what, "has an unknown key", key)
        require(known[key](item), what, key, "is", repr(item)[:200])


def check_usage(what, usage):
    check_keys(what, usage, {f"{key}?": item for key, item in USAGE.items()})
    have = set(usage)
    core = {"pss", "uss", "shared"}
    require(have >= core or not have & core, what, "has a part of", core)
    if "rss" in have and not have & core:
        require(usage["rss"] == usage["resident"], what, usage)
    if have >= core:
        require(usage["uss"] <= usage["pss"] <= usage["rss"], what, usage)
        require(usage["rss"] == usage["uss"] + usage["shared"], what, usage)
    if "size" in have:
        require(usage["resident_shared"] <= usage["resident"], what, usage)


# Sums that every mapping has on every kernel, if any.
SUMMED_OF_ALL = {"pss", "rss", "swap"}


def check_mappings(what, mappings, of_all):
    for i, one in enumerate(mappings):
        check_keys(what, one, MAPPING)
        last = i == len(mappings) - 1
        require("name" in one or last, what, "has its rest not at its end")
        require(
            ("processes" in one) == (of_all and "name" in one), what, one
        )
    named = [one for one in mappings if "name" in one]
    names = [one["name"] for one in named]
    require(len(set(names)) == len(names), what, "has a name twice", names)
    # Mappings from maps have no amounts, samples have some.
    for one in mappings:
        known = len(one.keys() & SUMMED_OF_ALL)
        if "pages_sampled" in one:
            require(("pss" in one) == ("pss_error" in one), what, one)
            continue
        require(known in (0, len(SUMMED_OF_ALL)), what, "has a part of", one)
        require("pss_error" not in one, what, one)
    sizes = [one.get("pss", one["size"]) for one in named]
    require(sizes == sorted(sizes, reverse=True), what, "is in no order")


def check_process(document, one):
    what = f"process {one.get('pid')}"
    check_keys(what, one, PROCESS)
    check_usage(what, one["usage"])
    source = one["source"]
    require(("age" in one) == (source == "estimated"), what, one)
    for key in ("pss_error", "uss_error"):
        has_error = "pss" in one["usage"] and source != "read"
        require((key in one) == has_error, what, one)
    require("pss" in one["usage"] or source in WITHOUT_PSS, what, one)
    # Or it would be in a sum twice.
    require(source != "parent" or one["usage"] == {}, what, one)
    rules = [*one["also"], *([one["rule"]] if "rule" in one else [])]
    require(len(set(rules)) == len(rules), what, "has a rule twice", rules)
    require(all(r < len(document["rules"]) for r in rules), what, rules)
    names = [group["name"] for group in document["groups"]]
    require(
        document["trigger"]["kind"] != "interval"
        or all(group in names for group in one["groups"]),
        what,
        "is in a group that is not there",
    )
    require(("mappings" in one) == ("mappings_from" in one), what, one.keys())
    if one.get("mappings_from") == "maps":
        check_mappings(what, one["mappings"], False)
        require(one["deferred"] == "max_lock_hold", what, one["deferred"])
        for mapping in one["mappings"]:
            require(not mapping.keys() & SUMMED_OF_ALL, what, mapping)
    elif one.get("mappings_from") == "samples":
        check_mappings(what, one["mappings"], False)
        for mapping in one["mappings"]:
            require("pages_sampled" in mapping, what, mapping)
            require("swap" not in mapping, what, mapping)
    elif "mappings" in one:
        check_mappings(what, one["mappings"], False)
        for key in ("pss", "rss", "swap"):
            total = sum(mapping[key] for mapping in one["mappings"])
            require(total == one["usage"][key], what, key, "is not their sum")


def check_host_memory(document):
    parts = document["host_memory"]
    check_keys("host_memory", parts, HOST_MEMORY)
    total = sum(parts.get(part, 0) for part in (*PARTS, *PARTS_OF_SOME))
    require(total == document["mem_total"], total, document["mem_total"])
    require(parts["outside"] <= parts["groups"], parts)


def check_state(document):
    require(document["trigger"] == {"kind": "interval"}, document["trigger"])
    require("left_out" not in document and "mappings" not in document)
    pids = [one["pid"] for one in document["processes"]]
    require(pids == sorted(set(pids)), "pids are in no order", pids)
    for group in document["groups"]:
        members = sum(
            group["name"] in one["groups"] for one in document["processes"]
        )
        require(members == group["processes"], group, "has", members)
    for one in document["processes"]:
        require("mappings" not in one, one["pid"], "has mappings")
        require(one["source"] != "ended", one["pid"], "has ended")
    for group in document["groups"]:
        require("last_known" not in group, group)


def check_capture(document):
    trigger = document["trigger"]
    check_keys("trigger", trigger, NOTIFICATION)
    for one in document["processes"]:
        require(trigger["group"] in one["groups"], one["pid"], one["groups"])
    check_mappings("the document", document["mappings"], True)
    close = [one for one in document["processes"] if "mappings" in one]
    is_whole = all(one["mappings_from"] == "smaps" for one in close)
    for key in ("size", "vmas", *(SUMMED_OF_ALL if is_whole else ())):
        require(
            sum(mapping[key] for mapping in document["mappings"])
            == sum(m[key] for one in close for m in one["mappings"]),
            key,
            "of all is not the sum over the processes",
        )
    (group,) = (
        one for one in document["groups"] if one["name"] == trigger["group"]
    )
    has_ended = "last_known" in group
    require(not has_ended or group["last_known"] < document["time"], group)
    for one in document["processes"]:
        require((one["source"] == "ended") == has_ended, one["pid"], one)
    # None of the tests captures processes that run in their parent's memory;
    # these would have to be taken away.
    require(
        len(document["processes"]) + document["left_out"] == group["processes"],
        "left_out is",
        document["left_out"],
    )


def refuse(what):
    raise AssertionError(f"there is a {what}")


def unique(pairs):
    keys = [key for key, _ in pairs]
    require(len(set(keys)) == len(keys), "a key is there twice:", keys)
    require(all(value is not None for _, value in pairs), "null:", pairs)
    return dict(pairs)


def check_causes(group):
    """They add up to the error, but for the rounding of each."""
    parts, error = group["pss_error_by"], group["pss_error"]
    check_keys("causes", parts, {f"{cause}?": whole for cause in CAUSES})
    require(all(part > 0 for part in parts.values()), group)
    require(error - len(CAUSES) <= sum(parts.values()) <= error, group)


def parse(raw):
    """Returns the document in these bytes, after checking it against
    smaps-snapshot(5)."""
    require(raw.endswith(b"}\n"), "it has no end:", raw[-40:])
    document = json.loads(
        raw.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse
    )
    check_keys("the document", document, DOCUMENT)
    if "host_memory" in document:
        check_host_memory(document)
    order = [key.rstrip("?") for key in DOCUMENT]
    keys = list(document)
    require(keys == [key for key in order if key in keys], "order:", keys)
    for group in document["groups"]:
        check_keys("group", group, GROUP)
        check_usage(group["name"], group["usage"])
        has_error = group.get("pss_error", 0) > 0 and "last_known" not in group
        require(("pss_error_by" in group) == has_error, group)
        if has_error:
            check_causes(group)
        require(group["rule"] < len(document["rules"]), group)
    names = [group["name"] for group in document["groups"]]
    require(names == sorted(set(names)), "groups are in no order:", names)
    for one in document["processes"]:
        check_process(document, one)
    if document["trigger"]["kind"] == "interval":
        check_state(document)
    else:
        check_capture(document)
    return document


def read(path):
    return parse(Path(path).read_bytes())


def group_of(document, name):
    (group,) = (one for one in document["groups"] if one["name"] == name)
    return group


def process_of(document, pid):
    (process,) = (one for one in document["processes"] if one["pid"] == pid)
    return process


def printable(raw):
    """Bytes as a snapshot has them."""
    return raw.decode("utf-8", "backslashreplace")


def usage_of(pid, rollup):
    """As the kernel has it, with these values of its rollup."""
    statm = read_statm(pid)
    statm["resident_shared"] = statm.pop("shared")
    return {**rollup, **statm, **read_kernel_memory(pid)}


# ---- a daemon ----


def complaints(collectd):
    """Returns the lines about our files. A line that says that a program of
    this machine refuses us its name, as pid 1 of a container does, is not about
    our files."""
    lines = collectd.log_lines(r"\[(warning|error)\] smaps plugin:")
    return [line for line in lines if "kernel refuses to show" not in line]


# ---- a state file ----


class StateFile:
    """The states that a daemon writes, and all that was ever seen of them."""

    def __init__(self, directory=None):
        self.path = (directory or harness.stage().new_directory()) / "state"
        self.seen = {}
        self.last = None

    def config(self, interval=0):
        return f'StateFile "{self.path}"\nStateInterval {interval}\n'

    def look(self):
        """Reads it, if it is another one than the last time."""
        try:
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                mark = (status.st_ino, status.st_mtime_ns)
                raw = b"" if mark == self.last else file.read()
        except FileNotFoundError:
            return
        if raw:
            self.last = mark
            document = parse(raw)
            self.seen[document["time"]] = document

    def next(self, collectd, accept=lambda document: True, after=None):
        """The first that began after this call and is as is asked for."""
        after = clock.time() if after is None else after

        def find():
            collectd.check_running()
            self.look()
            for time, document in sorted(self.seen.items()):
                if time > after and accept(document):
                    return document
            return None

        return wait_until(find, f"a state in {self.path} as it should be")


# ---- smaps, read independently of the plugin ----

HEADER = re.compile(
    rb"[0-9a-f]+-[0-9a-f]+ (\S{4}) [0-9a-f]+ \S+ \d+ *(.*)", re.DOTALL
)


def read_smaps(pid):
    """(name, permissions, {key: bytes}) of each mapping."""
    mappings = []
    for line in Path(f"/proc/{pid}/smaps").read_bytes().split(b"\n"):
        header = HEADER.fullmatch(line)
        field = re.fullmatch(rb"(\w+): +(\d+) kB", line)
        if header:
            name = printable(header[2]) or "[anon]"
            mappings.append((name, header[1].decode(), {}))
        elif field:
            mappings[-1][2][field[1].decode()] = int(field[2]) * KIB
    return mappings


def add_to(row, name, permissions, fields):
    row["permissions"] |= set(permissions) - {"-"}
    row["vmas"] += 1
    row["size"] += fields["Size"]
    for key, line in SUMMED.items():
        if line in fields:
            row[key] = row.get(key, 0) + fields[line]


def new_row():
    return {"permissions": set(), "vmas": 0, "size": 0}


def sum_by_name(processes):
    """{name: row} of what some processes map: [read_smaps() of each]."""
    rows = {}
    for mappings in processes:
        for mapping in mappings:
            add_to(rows.setdefault(mapping[0], new_row()), *mapping)
        for name in {name for name, _, _ in mappings}:
            rows[name]["processes"] = rows[name].get("processes", 0) + 1
    return rows


def merge(rows):
    rest = new_row()
    for row in rows:
        for key, value in row.items():
            if key == "permissions":
                rest[key] |= value
            elif key != "processes":
                rest[key] = rest.get(key, 0) + value
    return rest


def finish(row):
    kinds = row["permissions"]
    letters = "".join(c if c in kinds else "-" for c in "rwx")
    letters += "".join(c for c in "ps" if c in kinds)
    return {**row, "permissions": letters}


def rank(processes, top, of_all):
    """The array that a snapshot must have of this."""
    rows = sorted(
        sum_by_name(processes).items(),
        key=lambda item: (
            -item[1]["pss"],
            -item[1]["size"],
            item[0].encode(),
        ),
    )
    ranked = [{"name": name, **finish(row)} for name, row in rows[:top]]
    if not of_all:
        for row in ranked:
            del row["processes"]
    if rows[top:]:
        ranked.append(finish(merge(row for _, row in rows[top:])))
    return ranked


# ---- a small disk ----

MOUNT = (
    'mount -t tmpfs -o size="$2",mode=755 small "$1" && shift 2 && exec "$@"'
)


class SmallDisk:
    """A file system of some KiB that only one daemon and what looks through its
    /proc can see."""

    def __init__(self, case, kib):
        self.mount_point = harness.stage().new_directory()
        self.prefix = self._command(kib)
        done = subprocess.run(
            [*self.prefix, "true"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
        )
        if not is_root() or done.returncode != 0:
            case.skipTest(f"cannot mount a tmpfs: {done.stdout.strip()}")

    def _command(self, kib):
        return [
            *("unshare", "--mount", "--propagation", "private"),
            *("sh", "-c", MOUNT, "sh", self.mount_point, f"{kib}k"),
        ]

    def seen_by(self, collectd):
        """The path by which we see it."""
        root = Path(f"/proc/{collectd.process.pid}/root")
        return root / self.mount_point.relative_to("/")


def fill(directory):
    """Leaves no room in the file system."""
    with open(directory / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4 * KIB))
        except OSError:
            pass
    return directory / "filler"
