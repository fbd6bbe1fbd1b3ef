# SPDX-License-Identifier: MIT
"""Memory and limits of control groups, beside systemd's own figures."""

import contextlib
import os
from pathlib import Path

import daemon
from daemon import HOME, run
from experiment import Experiment, Holder, Service
from kernel import KIB, MIB, mem_total, read_number
from systemd import (
    CGROUPS,
    IS_V1,
    Properties,
    limit_of,
    memory_directory,
    read_keyed,
    running_services,
)

# The unixsock plugin writes seven digits.
DIGITS = 1e-6
# Both read one counter of the kernel, at other moments. A processor charges up
# to 64 pages at once to the group that it works for (MEMCG_CHARGE_BATCH), and
# gives back what is left when it works for another: by that much the counter
# moves although its group does nothing.
AHEAD = 64 * os.sysconf("SC_PAGESIZE") * os.cpu_count() + KIB
USAGE = "memory.usage_in_bytes" if IS_V1 else "memory.current"
# Our own processes come and go, and collectd reads and writes.
MOVING = {"vm-agent.service", "collectd.service"}
# Limits are read in one of six intervals.
LIMIT_INTERVALS = 6
VALUES = {
    "memory-cgroup",
    "memory-cgroup_limit",
    "percent-cgroup_limit",
    "count-oom_kill",
}


def published(cycle, group):
    return VALUES & set(cycle.groups.get(group, {}))


class CgroupExperiment(Experiment):
    def compare_usage(self, units):
        """Returns {unit: what is wrong} for one interval. A group has the name
        of its unit."""
        cycle, looks = self.watch(lambda: Properties(units, "MemoryCurrent"))
        wrong = {}
        for unit in units:
            seen = [look.units[unit]["MemoryCurrent"] for look in looks]
            value = cycle.find(unit, "memory-cgroup")
            if None in seen or value is None or not (
                min(seen) - AHEAD <= value <= max(seen) + AHEAD
            ):
                wrong[unit] = f"{value}, systemd {seen}"
        return wrong

    def assert_usage(self, units, tries=8):
        """Each is right in one of some intervals: it may do a great deal in
        another."""
        wrong = dict.fromkeys(units)
        for _ in range(tries):
            wrong = self.compare_usage(sorted(wrong))
            if not wrong:
                return
        self.fail(wrong)

    def await_limit(self, unit, expected):
        """Of that unit and group: systemd has it already."""
        self.assertEqual(limit_of(unit), expected)
        self.await_value(unit, "memory-cgroup_limit", expected or mem_total())

    def await_value(self, group, name, expected, delta=0):
        delta = delta or DIGITS * expected
        seen = []
        for _ in range(3 * LIMIT_INTERVALS):
            cycle = self.next_cycle()
            seen.append(cycle.find(group, name))
            if seen[-1] is not None and abs(seen[-1] - expected) <= delta:
                return cycle
        raise AssertionError(f"{group}: {name} {seen}, expected {expected}")


def open_paths(pid):
    """Some descriptors are closed meanwhile."""
    paths = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.add(os.readlink(path))
    return paths


class AsShipped(CgroupExperiment):
    def test_each_service_has_the_memory_that_systemd_shows(self):
        services = running_services() - MOVING
        self.assertGreater(len(services), 6, services)
        cycle = self.next_cycle()
        for service in services:
            self.assertEqual(published(cycle, service), VALUES, service)
        self.assertEqual(published(cycle, "other"), set())
        self.assert_usage(services)

    def test_each_service_has_the_limit_that_systemd_shows(self):
        cycle = self.next_cycle()
        for service in running_services() - MOVING:
            limit = limit_of(service) or mem_total()
            self.assertAlmostEqual(
                cycle.memory(service, "cgroup_limit"),
                limit,
                delta=DIGITS * limit,
                msg=service,
            )

    def test_restarted_unit_has_the_same_cgroup_again(self):
        self.restart_units()

    def test_restarted_unit_whose_memory_file_is_kept_open(self):
        """There is room for descriptors above 1,024."""
        self.start_daemon(drop_in="[Service]\nLimitNOFILE=4096\n")
        group = self.restart_units()
        kept = open_paths(daemon.main_pid())
        self.assertIn(str(memory_directory(group) / USAGE), kept)

    def restart_units(self):
        """Each time the unit has more memory, so that what was known of the
        life before would be seen."""
        size = Path("/run/vm-size")
        self.addCleanup(size.unlink)
        size.write_text("16")
        again = Service(
            self, "again", "sh", "-c",
            f"exec python3 {HOME}/holder.py anon $(cat {size})",
            properties=[f"MemoryMax={96 * MIB}"],
        )
        units = [again.group, "redis-server.service"]
        self.assert_usage(units)
        for mib in (32, 48, 64):
            size.write_text(f"{mib}")
            run("systemctl", "restart", *units)
            self.assert_usage(units)
            self.await_limit(again.group, 96 * MIB)
            cycle = self.next_cycle()
            self.assertGreater(cycle.memory(again.group, "cgroup"), mib * MIB)
            self.assertEqual(cycle.value(again.group, "count-oom_kill"), 0)
        self.assert_quiet()
        return again.group


class Limits(CgroupExperiment):
    options = """
        Report "detail"
        <Group "vmtight.slice">
          Slice "vmtight.slice"
          Continue true
        </Group>
        <Group "%{unit}">
          Unit "*.service"
        </Group>
        Other "other"
    """

    def test_max_and_high(self):
        """Version 1 has no MemoryHigh."""
        for name, properties, expected in (
            ("max", [f"MemoryMax={64 * MIB}"], 64 * MIB),
            (
                "high",
                [f"MemoryMax={64 * MIB}", f"MemoryHigh={48 * MIB}"],
                64 * MIB if IS_V1 else 48 * MIB,
            ),
            ("none", [], None),
        ):
            holder = Holder(self, name, "anon", 8, properties=properties)
            self.await_limit(holder.group, expected)
            self.assert_usage([holder.group])

    def test_slice_above(self):
        """Its limit is set while the service runs, and raised again."""
        slice_ = "vmtight.slice"
        self.addCleanup(run, "systemctl", "revert", slice_, check=False)
        holder = Holder(
            self, "inside", "anon", 8,
            properties=[f"Slice={slice_}", f"MemoryMax={64 * MIB}"],
        )
        self.assert_usage([slice_, holder.group])
        self.await_limit(holder.group, 64 * MIB)
        for limit in (40 * MIB, 56 * MIB):
            run("systemctl", "set-property", "--runtime", slice_,
                f"MemoryMax={limit}")
            self.await_limit(holder.group, limit)
            self.await_limit(slice_, limit)
        self.assert_usage([slice_, holder.group])

    def test_percentage_is_without_idle_page_cache(self):
        limit, file = 96 * MIB, Path("/var/tmp/vm-file")
        self.addCleanup(file.unlink, missing_ok=True)
        writer = Service(
            self, "writer", "sh", "-c",
            f"head -c {32 * MIB} /dev/urandom >{file}; sync {file};"
            "systemd-notify --ready; exec sleep infinity",
            properties=[f"MemoryMax={limit}"],
        )
        stat_file = memory_directory(writer.group) / "memory.stat"
        prefix = "total_" if IS_V1 else ""
        cached = prefix + ("cache" if IS_V1 else "file")
        stat = read_keyed(stat_file)
        self.assertGreater(stat[cached], 31 * MIB)
        self.assertGreater(stat[prefix + "inactive_file"], 16 * MIB)
        used = (
            read_number(stat_file.with_name(USAGE))
            - stat[prefix + "inactive_file"]
        )
        # The kernel adds memory.stat up when that many charges have come.
        cycle = self.await_value(
            writer.group,
            "percent-cgroup_limit",
            100 * used / limit,
            delta=100 * 2 * AHEAD / limit,
        )
        self.assertAlmostEqual(
            cycle.memory(writer.group, "cgroup_file"),
            stat[cached],
            delta=2 * AHEAD,
        )
        self.assertGreater(cycle.memory(writer.group, "cgroup"), 32 * MIB)
        kernel = cycle.memory(writer.group, "cgroup_kernel")
        self.assertTrue(0 < kernel < limit - 32 * MIB, kernel)


# The service has two control groups below its own, and no process in its own:
# only so may it hand the controller of version 2 down.
ROOTS = "systemd memory" if IS_V1 else "."
HAND_DOWN = "" if IS_V1 else "echo +memory >$own/cgroup.subtree_control"
NESTED = f"""
move() {{
  for root in {ROOTS}; do
    own={CGROUPS}/$root/system.slice/nested.service
    mkdir $own/$1
    echo 0 >$own/$1/cgroup.procs
  done
}}
move main
{HAND_DOWN}
(move work; exec python3 holder.py anon 32) &
exec sleep infinity
"""


class Nested(CgroupExperiment):
    options = """
        <Group "work">
          Cgroup "*/nested.service/work"
          Continue true
        </Group>
        <Group "%{unit}">
          Unit "*.service"
        </Group>
        Other "other"
    """

    def test_delegated_cgroups_are_of_the_unit(self):
        nested = Service(
            self, "nested", "sh", "-c", NESTED,
            properties=[
                "Delegate=yes", f"MemoryMax={96 * MIB}",
                f"WorkingDirectory={Path(__file__).parent}",
            ],
        )
        self.assert_usage([nested.group])
        self.await_limit(nested.group, 96 * MIB)
        cycle = self.assert_matches([nested.group])
        self.assertEqual(cycle.counts(nested.group)[0], 2)
        self.assertGreater(cycle.memory(nested.group, "cgroup"), 32 * MIB)
        # The inner one has the limit of the one above.
        self.assertEqual(cycle.counts("work")[0], 1)
        self.await_value("work", "memory-cgroup_limit", 96 * MIB)
        inner = memory_directory(nested.group) / "work" / USAGE
        self.await_value(
            "work", "memory-cgroup", read_number(inner), delta=AHEAD
        )
