# SPDX-License-Identifier: MIT
"""Reads systemd's own figures of its units, to compare them with the plugin's.
"""

import time
from pathlib import Path

from daemon import run

CGROUPS = Path("/sys/fs/cgroup")
IS_V1 = not (CGROUPS / "cgroup.controllers").exists()


def running_services():
    text = run(
        "systemctl", "list-units", "--type=service", "--state=running",
        "--no-legend", "--plain",
    )[1]
    return {line.split()[0] for line in text.splitlines()}


def show_units(units, *names):
    """{unit: {name: text}} of properties."""
    text = run(
        "systemctl", "show", f"--property={','.join(('Id', *names))}",
        "--", *units,
    )[1]
    shown = {}
    for block in text.strip().split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines())
        shown[values.pop("Id")] = values
    return shown


def number(text):
    """Returns None for a figure that is infinite or not set."""
    return int(text) if text.isdigit() and int(text) < 2**64 - 1 else None


class Properties:
    """Numbers of some units at one moment, as a Sample has sums."""

    def __init__(self, units, *names):
        self.begin = time.time()
        self.units = {
            unit: {name: number(text) for name, text in values.items()}
            for unit, values in show_units(units, *names).items()
        }
        self.end = time.time()


def limit_of(unit):
    """The least limit of a unit and of the slices above it, None if there is
    none. Version 1 has no MemoryHigh."""
    names = ["MemoryMax"] if IS_V1 else ["MemoryMax", "MemoryHigh"]
    limits = []
    while unit:
        shown = show_units([unit], "Slice", *names)[unit]
        limits += [number(shown[name]) for name in names]
        unit = shown["Slice"]
    return min((one for one in limits if one is not None), default=None)


def memory_directory(unit):
    """Returns the unit's directory of the memory controller."""
    path = show_units([unit], "ControlGroup")[unit]["ControlGroup"]
    return CGROUPS / ("memory" if IS_V1 else "") / path.lstrip("/")


def read_keyed(path):
    """Returns {key: number} of memory.stat, memory.events and the like."""
    lines = path.read_text().splitlines()
    return {key: int(value) for key, value in map(str.split, lines)}
