# SPDX-License-Identifier: MIT
"""Files that the plugin keeps open between intervals, and those that it must
not."""

import os
import subprocess

from harness import (
    MIB,
    IntegrationTest,
    end_process,
    group,
    plugin,
    sum_rollups,
    wait_until,
)

# Below, descriptors belong to others: plugins that use select(2) need them.
LEAST = 1024

CONFIG = plugin(group("kept", 'Comm "kept@"'))


def with_limit(descriptors):
    return ["prlimit", f"--nofile={descriptors}:{descriptors}"]


def kept_statm(collectd, least=LEAST):
    """{pid: number} of the statm files that the daemon has open, from that
    number on; lower ones may be open only now."""
    found = {}
    directory = f"/proc/{collectd.process.pid}/fd"
    for number in os.listdir(directory):
        try:
            target = os.readlink(f"{directory}/{number}")
        except FileNotFoundError:
            continue
        words = target.split("/")
        if words[-1] == "statm" and int(number) >= least:
            found[int(words[-2])] = int(number)
    return found


class KeptFiles(IntegrationTest):
    def test_files_of_members_stay_open_above_all_others_until_they_end(self):
        shapes = [self.start_shape("anon", name="kept", mib=8) for _ in "ab"]
        pids = [shape.root for shape in shapes]
        collectd = self.start_collectd(CONFIG, wrapper=with_limit(2 * LEAST))
        wait_until(
            lambda: set(kept_statm(collectd)) == set(pids),
            "statm of the members, and of nobody else, open",
        )
        numbers = sorted(kept_statm(collectd).values())
        self.assertEqual(numbers, [LEAST, LEAST + 1])

        before = sum_rollups(pids)["uss"]
        shapes[0].grow(16)
        cycle = self.assert_sums_match(collectd, "kept", pids, ["uss"])
        self.assertGreaterEqual(cycle.memory("kept", "uss"), before + 16 * MIB)
        self.assertEqual(sorted(kept_statm(collectd).values()), numbers)

        shapes[0].stop()
        wait_until(
            lambda: set(kept_statm(collectd)) == set(pids[1:]),
            "statm of who has ended closed",
        )
        self.assertEqual(collectd.next_cycle().counts("kept")[0], 1)
        shapes[1].stop()
        wait_until(lambda: not kept_statm(collectd), "no statm open")
        self.assertEqual(collectd.next_cycle().counts("kept")[0], 0)
        self.assertEqual(collectd.log_lines(r"smaps plugin: .*kept"), [])
        self.assertEqual(collectd.stop(), 0)

    def test_a_kept_file_shows_the_next_program(self):
        seconds = f"{os.getpid()}.25"
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"read line; exec /bin/sleep {seconds}"],
            stdin=subprocess.PIPE,
        )
        self.addCleanup(end_process, process)
        collectd = self.start_collectd(
            plugin(
                group("kept", f'CommandLineMatch "/bin/sleep {seconds}$"')
            ),
            wrapper=with_limit(2 * LEAST),
        )
        wait_until(lambda: kept_statm(collectd), "statm open")
        before = kept_statm(collectd)
        self.assertEqual(list(before), [process.pid])
        program = os.readlink(f"/proc/{process.pid}/exe")
        process.stdin.close()
        wait_until(
            lambda: os.readlink(f"/proc/{process.pid}/exe") != program,
            "the exec",
        )
        self.assert_sums_match(collectd, "kept", [process.pid], ["rss", "uss"])
        self.assertEqual(kept_statm(collectd), before)

    def test_no_file_stays_open_with_the_usual_limit(self):
        shape = self.start_shape("anon", name="kept", mib=8)
        collectd = self.start_collectd(CONFIG, wrapper=with_limit(LEAST))
        for _ in range(6):
            collectd.next_cycle()
        wait_until(lambda: not kept_statm(collectd, 0), "no statm open")
        self.assert_sums_match(collectd, "kept", [shape.root], ["uss"])
