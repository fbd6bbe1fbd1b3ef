# SPDX-License-Identifier: MIT
"""The real daemon makes captures: for alarms of the threshold plugin and of
programs, of real processes."""

import time

import snapshot
from capture import CaptureTest, threshold
from harness import (
    MIB,
    TAG,
    Script,
    group,
    named_values,
    read_rollup,
    stage,
    wait_until,
)
from snapshot import group_of, rank, read_smaps, usage_of

# ---- what is in it ----

# A process that maps and allocates on command, and is idle between.
GROWER = """
import ctypes, mmap, os, sys

libc = ctypes.CDLL(None)
libc.prctl(15, sys.argv[1].encode(), 0, 0, 0)
libc.sbrk.restype = ctypes.c_void_p
libc.sbrk.argtypes = [ctypes.c_ssize_t]
MIB = 1 << 20
kept = []


# Never by a copy: that would be memory too, for a moment.
def grow_heap(mib):
    ctypes.memset(libc.sbrk(mib * MIB), 1, mib * MIB)


def reserve(mib):
    kept.append(mmap.mmap(-1, mib * MIB))


def grow_file(mib):
    fd = os.open(sys.argv[2], os.O_RDWR)
    # Private: what was written stays written, whoever writes the file back.
    kept.append(mmap.mmap(fd, mib * MIB, flags=mmap.MAP_PRIVATE))
    start = ctypes.addressof(ctypes.c_char.from_buffer(kept[-1]))
    ctypes.memset(start, 1, mib * MIB)


for line in sys.stdin:
    what, mib = line.split()
    actions = {"heap": grow_heap, "file": grow_file, "reserve": reserve}
    actions[what](int(mib))
    print(os.getpid(), flush=True)
"""


class Grower(Script):
    def __init__(self, name):
        self.file = stage().new_directory() / "evidence.dat"
        with open(self.file, "wb") as file:
            file.truncate(64 * MIB)
        super().__init__(GROWER, name + TAG, self.file)

    def grow(self, what, mib):
        self.ask(f"{what} {mib}")


class Evidence(CaptureTest):
    def start_grower(self, name):
        grower = Grower(name)
        self.addCleanup(grower.stop)
        return grower

    def test_growth_past_a_limit_is_captured(self):
        """The capture says the process, the amount and the mapping."""
        self.start_shape("anon", name="web", mib=4)
        grower = self.start_grower("web")
        grower.grow("heap", 1)
        other = self.start_shape("anon", name="other", mib=4)
        limit = read_rollup(grower.pid)["pss"] + 4 * MIB + 62 * MIB
        self.start_capturing(
            "ReadBudget 20",  # both members in one interval, which is short
            group("web", 'Comm "web@"'),
            group("other", 'Comm "other@"'),
            self.capture("Cooldown 300"),
            more=threshold("web", limit),
        )
        self.pass_cycles()
        self.assertEqual(self.files(), [])
        begin = time.time()
        grower.grow("file", 40)
        grower.grow("heap", 20)
        # This growth exceeds the limit. An interval may end before the growth
        # does.
        grower.grow("heap", 4)
        (document,) = self.wait_files(1)
        # The clock of files is a tick behind, 10 ms at most.
        written = self.files()[0].stat().st_mtime + 0.01

        trigger = document["trigger"]
        self.assertEqual(trigger["severity"], "warning")
        self.assertEqual(trigger["group"], "web")
        self.assertEqual(trigger["type"], "memory")
        self.assertEqual(trigger["type_instance"], "pss")
        self.assertIn("above the warning threshold", trigger["message"])
        self.assertTrue(begin <= trigger["time"] <= written)
        self.assertTrue(trigger["time"] <= document["time"] <= written)

        self.assertEqual(len(document["processes"]), 2)
        self.assertEqual(document["left_out"], 0)
        first = document["processes"][0]
        self.assertEqual(first["pid"], grower.pid)
        self.assertGreater(first["usage"]["pss"], limit - 5 * MIB)
        largest, second = first["mappings"][:2]
        self.assertEqual(largest["name"], str(grower.file))
        self.assertEqual(largest["private_dirty"], 40 * MIB)
        # The file was mapped privately and written to: these are copies.
        self.assertEqual(largest["anonymous"], 40 * MIB)
        self.assertEqual(largest["size"], 40 * MIB)
        self.assertEqual(largest["permissions"], "rw-p")
        self.assertEqual(second["name"], "[heap]")
        self.assert_near(second["pss"], 25 * MIB, 2 * MIB, "the heap")
        # The other groups are there, but not their processes.
        self.assertGreater(group_of(document, "web")["usage"]["pss"], limit)
        self.assertEqual(group_of(document, "other")["processes"], 1)
        self.assertNotIn(
            other.root, [one["pid"] for one in document["processes"]]
        )
        self.pass_cycles()
        self.assertEqual(len(self.files()), 1)
        # The first value past the limit is what it was captured for.
        rows = self.daemon.values()["web"]["memory-pss"]
        past = [time_ for time_, pss in rows if pss > limit]
        self.assertAlmostEqual(trigger["time"], past[0], delta=0.001)

    def test_numbers_are_equal_to_those_of_smaps(self):
        """The numbers are equal to the byte: of each process, of all together,
        and of those that are not listed."""
        growers = [self.start_grower("pair") for _ in range(2)]
        for mib, grower in enumerate(growers, 4):
            grower.grow("file", mib)
            grower.grow("heap", 2)
        # The largest is the one that uses most, not the one that maps most.
        growers[0].grow("reserve", 200)
        self.top = 5
        self.start_capturing(
            group("pair", 'Comm "pair@"'),
            self.capture(f"TopMappings {self.top}"),
        )
        pids = [grower.pid for grower in growers[::-1]]
        differences = []

        # PSS moves with who else has mapped libc, and a process that came and
        # went between two looks is not seen: such a capture proves nothing.
        def are_alike():
            differences[:] = self.compare(pids)
            return not differences

        wait_until(are_alike, lambda: f"no difference: {differences}")

    def compare(self, pids):
        before = self.files_before()
        seen = [self.look(pids)]
        self.alarms.notify(plugin_instance="pair")

        def is_there():
            look = self.look(pids)
            if look != seen[-1]:
                seen.append(look)
            return set(self.files()) - before

        (path,) = wait_until(is_there, "a capture")
        document = snapshot.read(path)
        self.assertEqual([one["pid"] for one in document["processes"]], pids)
        self.assertEqual(len(document["mappings"]), self.top + 1)
        self.assertNotIn("name", document["mappings"][-1])
        found = (
            [one["usage"] for one in document["processes"]],
            [one["mappings"] for one in document["processes"]],
            document["mappings"],
        )
        return [] if found in seen else [(found, seen)]

    def look(self, pids):
        processes = [read_smaps(pid) for pid in pids]
        return (
            [self.sum_up(*pair) for pair in zip(pids, processes)],
            [rank([one], self.top, False) for one in processes],
            rank(processes, self.top, True),
        )

    @staticmethod
    def sum_up(pid, mappings):
        fields = {}
        for _, _, of_mapping in mappings:
            for key, value in of_mapping.items():
                fields[key] = fields.get(key, 0) + value
        return usage_of(pid, named_values(fields))


# ---- when there is one ----


class When(CaptureTest):
    def test_the_announcement_of_a_capture_makes_no_other_capture(self):
        self.start_shape("anon", name="web")
        self.start_capturing(
            group("web", 'Comm "web@"'),
            self.capture('OnNotification "okay" "warning" "failure"'),
        )
        path, _ = self.new_capture(plugin_instance="web", severity="warning")

        self.wait_announced()
        self.pass_cycles(6)
        self.assertEqual(self.files(), [path])
        ((headers, message),) = self.announced()
        self.assertEqual(headers["CaptureFile"], str(path))
        self.assertEqual(headers["Severity"], "OKAY")
        self.assertEqual(headers["Host"], "test")
        self.assertEqual(headers["Plugin"], "smaps")
        self.assertEqual(headers["PluginInstance"], "web")
        self.assertTrue(message.startswith(f"capture {path}: PSS "), message)
        # From another plugin, okay is an alarm as any other.
        self.new_capture(plugin_instance="web", severity="okay")
