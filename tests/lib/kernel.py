# SPDX-License-Identifier: MIT
"""What the kernel says in its files, read by other code than the plugin's."""

import os
import re
from pathlib import Path

KIB = 1024
MIB = 1024 * 1024
PAGE_SIZE = os.sysconf("SC_PAGESIZE")

# Our names for the lines of smaps_rollup that are reported as they are.
ROLLUP_NAMES = {
    "pss": "Pss",
    "rss": "Rss",
    "swap": "SwapPss",
    "pss_anon": "Pss_Anon",
    "pss_file": "Pss_File",
    "pss_shmem": "Pss_Shmem",
    "pss_dirty": "Pss_Dirty",
    "private_clean": "Private_Clean",
    "private_dirty": "Private_Dirty",
    "shared_clean": "Shared_Clean",
    "shared_dirty": "Shared_Dirty",
    "referenced": "Referenced",
    "anonymous": "Anonymous",
    "lazy_free": "LazyFree",
    "ksm": "KSM",
    "anon_huge_pages": "AnonHugePages",
    "shmem_pmd_mapped": "ShmemPmdMapped",
    "file_pmd_mapped": "FilePmdMapped",
    "shared_hugetlb": "Shared_Hugetlb",
    "private_hugetlb": "Private_Hugetlb",
    "swap_total": "Swap",
    "locked": "Locked",
}


def release():
    """Returns (6, 12) for "6.12.107+deb13-amd64"."""
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def read_number(path):
    return int(Path(path).read_text())


def read_kib(path):
    """Returns the "Key: N kB" lines of meminfo, of smaps_rollup, or of a smaps
    summed up, in bytes, under the kernel's names."""
    text = Path(path).read_text(errors="replace")
    return parse_kib(text)


def parse_kib(text):
    fields = {}
    for key, kib in re.findall(r"(?m)^([\w()]+):\s+(\d+) kB$", text):
        fields[key] = fields.get(key, 0) + int(kib) * KIB
    return fields


def read_meminfo(root="/proc"):
    return read_kib(f"{root}/meminfo")


def mem_total(root="/proc"):
    return read_meminfo(root)["MemTotal"]


# ---- processes ----


def named_values(fields):
    """Returns the fields of a rollup under the plugin's names, with the values
    that the plugin computes from them."""
    values = {
        name: fields[key]
        for name, key in ROLLUP_NAMES.items()
        if key in fields
    }
    values["uss"] = fields["Private_Clean"] + fields["Private_Dirty"]
    values["shared"] = fields["Shared_Clean"] + fields["Shared_Dirty"]
    return values


def read_rollup(pid, root="/proc"):
    return named_values(read_kib(f"{root}/{pid}/smaps_rollup"))


def sum_values(values):
    """Adds up dictionaries of the same names."""
    total = {}
    for one in values:
        for name, value in one.items():
            total[name] = total.get(name, 0) + value
    return total


def sum_rollups(pids, root="/proc"):
    return sum_values(read_rollup(pid, root) for pid in pids)


def read_page_tables(pid, root="/proc"):
    """Returns VmPTE and the page of the top level; None for a process without
    memory."""
    tables = read_kib(f"{root}/{pid}/status").get("VmPTE")
    return None if tables is None else tables + PAGE_SIZE


def kernel_stack_size():
    """Returns the size of a thread's kernel stack, on kernels without KASAN."""
    if os.uname().machine in ("i386", "i686", "armv7l"):
        return 8 * KIB
    return max(16 * KIB, PAGE_SIZE)


def read_kernel_memory(pid):
    return {
        "page_tables": read_page_tables(pid),
        "kernel_stack": count_threads(pid) * kernel_stack_size(),
    }


def read_statm(pid, root="/proc"):
    """Returns bytes: size, resident, shared, text, data."""
    fields = Path(f"{root}/{pid}/statm").read_text().split()
    size, resident, shared, text, _, data, _ = (
        int(field) * PAGE_SIZE for field in fields
    )
    return {
        "size": size,
        "resident": resident,
        "shared": shared,
        "text": text,
        "data": data,
    }


def read_stat(pid, root="/proc"):
    """Returns the fields of stat from the state on. The name may hold anything;
    it ends at the last closing parenthesis."""
    stat = Path(f"{root}/{pid}/stat").read_bytes()
    return stat[stat.rindex(b")") + 2 :].decode().split()


def count_threads(pid, root="/proc"):
    """Returns num_threads of stat."""
    return int(read_stat(pid, root)[17])


def state_of(pid):
    """Returns the letter of the state; None if the process has ended."""
    try:
        return read_stat(pid)[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
