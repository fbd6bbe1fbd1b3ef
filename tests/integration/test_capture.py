"""Captures by the real daemon: alarms of the threshold plugin and of programs,
what is saved of real processes, and what becomes of the directory."""

import datetime
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import harness
import snapshot
from capture import CaptureTest, threshold
from harness import (
    DEADLINE_SECONDS,
    KIB,
    MIB,
    TAG,
    count_threads,
    group,
    is_root,
    named_values,
    plugin,
    read_kernel_memory,
    read_rollup,
    read_statm,
    stage,
    unprivileged_user,
    wait_until,
)
from snapshot import (
    SmallDisk,
    complaints,
    fill,
    group_of,
    process_of,
    rank,
    read_smaps,
)
from test_captured import SMALL_ON_MODERN, WrittenTree, rollup_text, smaps_text
from test_hang import STOP_SECONDS, HangingTree

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


class Grower:
    def __init__(self, name):
        self.file = stage().new_directory() / "evidence.dat"
        with open(self.file, "wb") as file:
            file.truncate(64 * MIB)
        self.process = subprocess.Popen(
            [sys.executable, "-c", GROWER, name + TAG, self.file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid

    def grow(self, what, mib):
        self.process.stdin.write(f"{what} {mib}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        harness.end_process(self.process)


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
        # This is what takes it past the limit: an interval may well end before
        # the growth does.
        grower.grow("heap", 4)
        (document,) = self.wait_files(1)
        written = self.files()[0].stat().st_mtime

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

    def test_numbers_are_those_of_smaps(self):
        """To the byte, for the processes and for all of them, with the sum of
        what is not listed."""
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
        # went between two looks is not seen: such a capture tells nothing.
        def are_alike():
            differences[:] = self.compare(pids)
            return not differences

        wait_until(are_alike, lambda: f"no difference: {differences}")

    def compare(self, pids):
        before = set(self.files())
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
            [self.usage_of(*pair) for pair in zip(pids, processes)],
            [rank([one], self.top, False) for one in processes],
            rank(processes, self.top, True),
        )

    @staticmethod
    def usage_of(pid, mappings):
        fields = {}
        for _, _, of_mapping in mappings:
            for key, value in of_mapping.items():
                fields[key] = fields.get(key, 0) + value
        statm = read_statm(pid)
        statm["resident_shared"] = statm.pop("shared")
        return {**named_values(fields), **statm, **read_kernel_memory(pid)}

    def test_largest_processes_of_a_large_group(self):
        """Hundreds of them, within ReadBudget in each interval, while values
        go on."""
        crowd = self.start_shape("cow", name="crowd", children=299, mib=1)
        large = [
            self.start_shape("anon", name="crowd", mib=mib) for mib in (9, 8, 7)
        ]
        self.start_capturing(
            "ReadBudget 0.1",
            group("crowd", 'Comm "crowd@"'),
            self.capture("TopProcesses 40"),
        )
        # Before each was read, who is largest is a guess.
        wait_until(
            lambda: self.daemon.values()[""]["count-deferred"][-1][1] == 0,
            "all of them to be read",
        )
        path, document = self.new_capture(plugin_instance="crowd")
        pids = [one["pid"] for one in document["processes"]]
        self.assertEqual(pids[:3], [shape.root for shape in large])
        self.assertEqual(len(pids), 40)
        self.assertLessEqual(set(pids[3:]), set(crowd.pids))
        self.assertEqual(document["left_out"], 303 - 40)
        for one in document["processes"]:
            self.assertEqual(one["threads"], count_threads(one["pid"]))
        # As long as it took, each interval had its values.
        rows = self.daemon.values()["crowd"]["ps_count"]
        self.assertEqual({row[1:] for row in rows}, {(303, 303)})
        during = [
            t
            for t in self.daemon.times()
            if document["time"] < t < path.stat().st_mtime
        ]
        self.assertGreater(len(during), 1)
        self.assertEqual(
            len(during), len([row for row in rows if row[0] in during])
        )
        self.assertEqual(complaints(self.daemon), [])

    def test_a_group_that_is_gone_has_no_processes(self):
        shape = self.start_shape("anon", name="mortal")
        self.start_capturing(group("mortal", 'Comm "mortal@"'), self.capture())
        shape.stop()
        self.pass_cycles()
        _, document = self.new_capture(
            plugin_instance="mortal", severity="failure"
        )
        self.assertEqual(document["processes"], [])
        self.assertEqual(document["mappings"], [])
        self.assertEqual(document["left_out"], 0)
        self.assertEqual(group_of(document, "mortal")["processes"], 0)

    def test_a_process_that_cannot_be_read_is_there_without_mappings(self):
        harness.need_root("has processes of two users")
        user = unprivileged_user()
        foreign = self.start_shape("anon", name="mixed", mib=8)
        own = self.start_shape("anon", name="mixed", mib=4, user=user)
        self.directory = stage().new_directory(user)
        self.start_capturing(
            group("mixed", 'Comm "mixed@"'), self.capture(), user=user
        )
        _, document = self.new_capture(plugin_instance="mixed")
        refused = process_of(document, foreign.root)
        self.assertEqual(refused["source"], "unreadable")
        self.assertNotIn("mappings", refused)
        self.assertIn("[anon]", self.names(process_of(document, own.root)))
        self.assertIn("[anon]", self.names(document))
        self.assertEqual(document["left_out"], 0)

    @staticmethod
    def names(document):
        return [one.get("name") for one in document["mappings"]]

    def test_command_lines_of_captures_alone_can_be_left_out(self):
        secret = "--password=hunter2"
        self.start_shape(
            "named", name="shy", argv_hex=f"program\0{secret}".encode().hex()
        )
        state = snapshot.StateFile()
        self.start_capturing(
            state.config(),
            group("g", f'CommandLineMatch "^program {secret[:8]}"'),
            self.capture("CommandLines false"),
        )
        path, document = self.new_capture(plugin_instance="g")
        self.assertEqual(len(document["processes"]), 1)
        self.assertNotIn(secret.encode(), path.read_bytes())
        self.assertNotIn(b"command_line", path.read_bytes())
        self.assertIn(secret.encode(), state.path.read_bytes())

    def test_hostile_names_are_valid_text(self):
        argument = b'\n"}],\x1b]0;x\x07\xff\xed\xa0\x80'
        shape = self.start_shape(
            "named",
            name_hex=b'\x1b[2J"\n\xff'.hex(),
            argv_hex=(f"hostile{TAG}".encode() + b"\0" + argument).hex(),
        )
        self.start_capturing(
            group("g", 'CommandLine "hostile@*"'), self.capture()
        )
        path, document = self.new_capture(plugin_instance="g")
        one = process_of(document, shape.root)
        self.assertEqual(one["comm"], '\x1b[2J"\n\\xff')
        self.assertEqual(
            one["command_line"],
            f"hostile{TAG} " + snapshot.printable(argument),
        )
        self.assertEqual(
            [byte for byte in path.read_bytes() if byte < 0x20], [0x0A]
        )


# ---- when there is one ----


class When(CaptureTest):
    def start_web(self, *options, **more):
        self.start_shape("anon", name="web")
        self.start_shape("anon", name="db")
        return self.start_capturing(
            group("web", 'Comm "web@"'),
            group("db", 'Comm "db@"'),
            self.capture(*options),
            **more,
        )

    def test_cooldown_is_kept_for_each_group(self):
        self.start_web("Cooldown 3")
        begin = time.monotonic()
        self.new_capture(plugin_instance="web")
        self.assert_no_capture(plugin_instance="web")
        self.assertLess(time.monotonic() - begin, 3, "this machine is too slow")
        _, document = self.new_capture(plugin_instance="db")
        self.assertEqual(document["trigger"]["group"], "db")
        # From the interval in which it began.
        time.sleep(max(0, begin + 3.5 - time.monotonic()))
        self.new_capture(plugin_instance="web")
        self.assertEqual(len(self.files()), 3)

    def test_an_escalation_has_a_capture_of_its_own(self):
        """One for each severity, whatever cools down."""
        self.start_web("Cooldown 300")
        for severity in ("warning", "failure"):
            _, document = self.new_capture(
                plugin_instance="web", severity=severity
            )
            self.assertEqual(document["trigger"]["severity"], severity)
        for severity in ("warning", "failure"):
            self.assert_no_capture(plugin_instance="web", severity=severity)
        self.assertEqual(len(self.files()), 2)

    def test_only_the_severities_that_are_asked_for(self):
        self.start_web('OnNotification "failure"')
        self.assert_no_capture(plugin_instance="web", severity="warning")
        self.assert_no_capture(plugin_instance="web", severity="okay")
        _, document = self.new_capture(
            plugin_instance="web", severity="failure"
        )
        self.assertEqual(document["trigger"]["severity"], "failure")

    def test_warnings_and_failures_by_default(self):
        self.start_web()
        self.assert_no_capture(plugin_instance="web", severity="okay")
        for severity in ("warning", "failure"):
            _, document = self.new_capture(
                plugin_instance="web", severity=severity
            )
            self.assertEqual(document["trigger"]["severity"], severity)

    def test_a_warning_of_a_threshold_is_no_failure(self):
        self.start_web('OnNotification "failure"', more=threshold("web", 1))
        wait_until(
            lambda: self.daemon.log_lines("above the warning threshold"),
            "a warning",
        )
        # As beside load: no value comes for a while. That is no failure either.
        self.daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        self.daemon.process.send_signal(signal.SIGCONT)
        self.pass_cycles()
        self.assertEqual(self.files(), [])

    def test_whatever_is_about_a_group_counts(self):
        """A notification of a program, with as little as may be in it."""
        self.start_web()
        word = self.alarms.notify(plugin_instance="web", type="memory")
        (document,) = self.wait_files(1)
        trigger = document["trigger"]
        self.assertEqual(trigger["type"], "memory")
        self.assertNotIn("type_instance", trigger)
        self.assertEqual(trigger["message"], word)
        self.assertAlmostEqual(trigger["time"], time.time(), delta=10)
        _, document = self.new_capture(plugin_instance="web", host="TEST")
        self.assertNotIn("type", document["trigger"])

    def test_what_is_about_something_else_does_not(self):
        self.start_web()
        for fields in (
            {"plugin_instance": "web", "host": "another"},
            {"plugin_instance": "web", "plugin": "smapsy"},
            {"plugin_instance": "web", "plugin": "cpu"},
            {"plugin_instance": "unknown"},
            {"plugin_instance": "web2"},
            {"plugin_instance": "we"},
            {},
        ):
            with self.subTest(fields):
                self.assert_no_capture(**fields)
        self.assertEqual(complaints(self.daemon), [])
        self.new_capture(plugin_instance="web")

    def test_a_capture_is_announced_and_makes_no_other(self):
        self.start_web('OnNotification "okay" "warning" "failure"')
        path, _ = self.new_capture(plugin_instance="web", severity="warning")

        self.wait_told()
        self.pass_cycles(6)
        self.assertEqual(self.files(), [path])
        ((headers, message),) = self.told()
        self.assertEqual(headers["CaptureFile"], str(path))
        self.assertEqual(headers["Severity"], "OKAY")
        self.assertEqual(headers["Host"], "test")
        self.assertEqual(headers["Plugin"], "smaps")
        self.assertEqual(headers["PluginInstance"], "web")
        self.assertTrue(message.startswith(f"capture {path}: PSS "), message)
        # From another plugin, okay is an alarm as any other.
        self.new_capture(plugin_instance="web", severity="okay")

    def test_alarms_of_many_groups_at_once(self):
        names = [f"g{i}" for i in range(10)]
        for name in names:
            self.start_shape("anon", name=name)
        self.start_capturing(
            *(group(name, f'Comm "{name}@"') for name in names),
            self.capture("Cooldown 300"),
        )
        for name in names:
            self.alarms.notify(plugin_instance=name)
            self.alarms.notify(plugin_instance=name)
        documents = self.wait_files(len(names))
        self.pass_cycles()
        self.assertEqual(len(self.files()), len(names))
        self.assertEqual(
            sorted(document["trigger"]["group"] for document in documents),
            names,
        )


# ---- what is told of it ----


class MemoryCgroup:
    """A real cgroup with a limit, below that of this process; skips the test
    where there can be none."""

    def __init__(self, test, limit):
        harness.need_root("to make a cgroup")
        paths = dict(
            line.split(":", 2)[1:]
            for line in Path("/proc/self/cgroup").read_text().splitlines()
        )
        v1 = paths.get("memory")
        root, path = "/sys/fs/cgroup", paths.get("")
        if v1:
            root, path = "/sys/fs/cgroup/memory", v1
        self.path = Path(f"{root}{path}/smaps-test-{os.getpid()}")
        name = "memory.limit_in_bytes" if v1 else "memory.max"
        try:
            self.path.mkdir()
            test.addCleanup(self.path.rmdir)
            (self.path / name).write_text(f"{limit}\n")
        except OSError as error:
            test.skipTest(f"no memory cgroup can be made: {error}")

    def add(self, pid):
        (self.path / "cgroup.procs").write_text(f"{pid}\n")


AMOUNT = r"\d+\.\d [KMG]iB"


class Told(CaptureTest):
    def headers(self, **fields):
        """The meta data of the notification of a new capture, its message and
        the capture."""
        _, document = self.new_capture(**fields)
        headers, message = self.wait_told()[-1]
        return headers, message, document

    def test_a_notification_names_the_largest_processes(self):
        self.start_shape("anon", name="web", mib=3)
        sizes = [60, 40, 20]
        shapes = [self.start_shape("anon", name="web", mib=m) for m in sizes]
        self.start_capturing(group("web", 'Comm "web@"'), self.capture())
        headers, message, document = self.headers(plugin_instance="web")
        usage = group_of(document, "web")["usage"]
        self.assertEqual(int(headers["Pss"]), usage["pss"])
        for i, (mib, shape) in enumerate(zip(sizes, shapes), 1):
            pid, comm, pss = headers[f"TopProcess{i}"].split(" ")
            self.assertEqual((int(pid), comm), (shape.root, f"web{TAG}"))
            self.assert_near(int(pss), mib * MIB, 2 * MIB, "its PSS")
        self.assertNotIn("TopProcess4", headers)
        # A path may take the room of the last ones.
        line = message.strip().removeprefix(f"capture {headers['CaptureFile']}")
        self.assertRegex(
            line,
            rf"\A: PSS {AMOUNT}(, [+-]{AMOUNT} in \d+ s)?; "
            rf"{shapes[0].root} web{TAG} 6\d\.\d MiB, "
            rf"{shapes[1].root} web{TAG} 4\d\.\d MiB",
        )
        self.assertLessEqual(len(line), 202)

    def test_a_notification_tells_the_growth(self):
        """Of as much of the last hour as the daemon has seen."""
        shape = self.start_shape("anon", name="web", mib=4)
        self.start_capturing(group("web", 'Comm "web@"'), self.capture())
        self.wait_read()
        shape.grow(40)
        wait_until(
            lambda: self.daemon.values()["web"]["memory-pss"][-1][1] > 40 * MIB,
            "the growth to be seen",
        )
        self.wait_a_second()
        headers, message, _ = self.headers(plugin_instance="web")
        self.assert_near(int(headers["PssGrowth"]), 40 * MIB, MIB, "growth")
        self.assertGreaterEqual(int(headers["PssGrowthSeconds"]), 1)
        self.assertRegex(message, r", \+(39|40)\.\d MiB in \d+ s; ")

    def wait_read(self):
        wait_until(
            lambda: self.daemon.values()["web"]["percent-coverage"],
            "a reading",
        )

    def wait_a_second(self):
        """Of intervals: less is not told."""
        first = self.daemon.times()[0]
        wait_until(
            lambda: self.daemon.times()[-1] > first + 1.5,
            "intervals for a second and a half",
        )

    def test_a_notification_has_the_limit_of_a_real_cgroup(self):
        cgroup = MemoryCgroup(self, 512 * MIB)
        shape = self.start_shape("anon", name="web", mib=8)
        self.addCleanup(shape.stop)
        cgroup.add(shape.root)
        self.start_capturing(group("web", 'Comm "web@"'), self.capture())
        headers, message, _ = self.headers(plugin_instance="web")
        self.assertEqual(int(headers["MemoryLimit"]), 512 * MIB)
        self.assertIn(", limit 512.0 MiB; ", message)

    def test_hostile_names_add_no_line(self):
        """A line of its own would be a header for programs."""
        shape = self.start_shape(
            "named",
            name_hex=b'\nTime: 7\n"\xff'.hex(),
            argv_hex=f"hostile{TAG}".encode().hex(),
        )
        self.start_capturing(
            group("g", 'CommandLine "hostile@*"'), self.capture()
        )
        headers, message, _ = self.headers(plugin_instance="g")
        name = r"\x0aTime:\x207\x0a\x22\xff"
        self.assertTrue(
            headers["TopProcess1"].startswith(f"{shape.root} {name} ")
        )
        self.assertNotEqual(headers["Time"], "7")
        self.assertIn(f"; {shape.root} {name} ", message)
        self.assertEqual(message.count("\n"), 1)


# ---- the directory ----


def stamp(path):
    return re.fullmatch(r"smaps-(\d{8}T\d{6}Z)-.*\.json", path.name)[1]


class Directory(CaptureTest):
    def start_web(self, *options, **more):
        if not hasattr(self, "shape"):
            self.shape = self.start_shape("anon", name="web")
        return self.start_capturing(
            group("web", 'Comm "web@"'), self.capture(*options), **more
        )

    def new(self):
        return self.new_capture(plugin_instance="web")[0]

    def test_name_tells_time_and_group(self):
        self.start_shape("anon", name="web")
        self.start_capturing(
            group("a/b c", 'Comm "web@"'), self.capture()
        )
        path, document = self.new_capture(plugin_instance="a_b c")
        self.assertRegex(
            path.name, r"\Asmaps-\d{8}T\d{6}Z-a_b c(\.\d+)?\.json\Z"
        )
        when = datetime.datetime.fromtimestamp(
            int(document["time"]), datetime.timezone.utc
        )
        self.assertEqual(stamp(path), when.strftime("%Y%m%dT%H%M%SZ"))

    def test_modes_under_any_umask(self):
        for umask in ("077", "000"):
            with self.subTest(umask):
                self.directory = stage().new_directory() / "captures"
                self.start_web(
                    wrapper=("sh", "-c", f'umask {umask} && exec "$@"', "sh")
                )
                path = self.new()
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o640)
                mode = stat.S_IMODE(self.directory.stat().st_mode)
                self.assertEqual(mode, 0o750)
                self.daemon.stop()

    def test_no_more_than_max_files(self):
        self.start_web("MaxFiles 3")
        made = [self.new() for _ in range(6)]
        self.assertEqual(set(self.files()), set(made[-3:]))

    def test_no_more_than_max_bytes(self):
        limit = 64 * KIB
        self.start_web('MaxBytes "64K"')
        made = []
        while all(path.exists() for path in made):
            self.assertLess(len(made), 60)
            made.append(self.new())
            self.assertLessEqual(self.bytes(), limit)
        self.assertGreater(len(made), 2)
        self.assertEqual(set(self.files()), set(made[1:]))
        # It has removed no more than had to be.
        self.assertGreater(self.bytes() + 2 * made[-1].stat().st_size, limit)

    def bytes(self):
        return sum(path.stat().st_size for path in self.files())

    def test_one_that_is_larger_than_max_bytes_is_one_line(self):
        self.start_shape("cow", name="web", children=60)
        self.start_web('MaxBytes "64K"', "TopProcesses 60")
        self.assert_failure("larger than MaxBytes", plugin_instance="web")
        self.assertEqual(self.files(), [])

    def test_a_restart_honours_what_is_there(self):
        self.start_web("MaxFiles 3")
        made = [self.new(), self.new()]
        self.daemon.stop()
        foreign = self.plant_foreign()
        old = self.directory / "smaps-20200101T000000Z-gone.json"
        old.write_text("{}")
        self.start_web("MaxFiles 3")
        self.assertTrue(old.exists())
        made.append(self.new())
        self.assertFalse(old.exists())
        self.assertTrue(all(path.exists() for path in made))
        made.append(self.new())
        self.assertFalse(made[0].exists())
        self.assertTrue(all(path.exists() for path in made[1:]))
        self.assert_untouched(foreign)

    FOREIGN = (
        "smaps-notes.json",
        "smaps-20200101T000000Z-old.json.gz",
        "smaps-2020-01-01T000000Z-old.json",
        "smaps-2020010xT000000Z-old.json",
        "smaps-20200101T000000Z.json",
        "other-20200101T000000Z-old.json",
        "SMAPS-20200101T000000Z-old.json",
        "smaps-20200101T000000Z-old.txt",
        "collectd.json",
    )

    def plant_foreign(self):
        for name in self.FOREIGN:
            (self.directory / name).write_text(name)
        # It has a name like ours, but we never make a directory.
        inside = self.directory / "smaps-20200101T000000Z-dir.json"
        inside.mkdir()
        (inside / "file").write_text("kept")
        return inside / "file"

    def assert_untouched(self, inside):
        for name in self.FOREIGN:
            self.assertEqual((self.directory / name).read_text(), name)
        self.assertEqual(inside.read_text(), "kept")

    def files(self, directory=None):
        """Without the foreign ones."""
        return [
            path
            for path in super().files(directory)
            if path.name not in self.FOREIGN and not path.is_dir()
        ]

    def test_what_was_left_unfinished_is_removed(self):
        self.directory.mkdir(0o750)
        victim = stage().new_directory() / "victim"
        for make in (Path.hardlink_to, Path.symlink_to):
            with self.subTest(make.__name__):
                victim.write_text("precious")
                make(self.directory / ".smaps-unfinished", victim)
                self.start_web()
                path = self.new()
                self.assertEqual(victim.read_text(), "precious")
                self.assertEqual(victim.stat().st_nlink, 1)
                self.assertFalse(path.is_symlink())
                self.assertNotIn(
                    ".smaps-unfinished", os.listdir(self.directory)
                )
                self.daemon.stop()

    def test_a_directory_that_has_vanished_is_made_again(self):
        self.start_web()
        self.new()
        shutil.rmtree(self.directory)
        self.new()
        self.assertEqual(len(self.files()), 1)
        self.assertEqual(complaints(self.daemon), [])

    def test_no_place_for_the_directory_is_one_line(self):
        self.directory = stage().new_directory() / "none/captures"
        self.start_web()
        self.assert_failure("No such file", plugin_instance="web")
        self.directory.parent.mkdir()
        self.new()

    def test_a_directory_that_was_replaced_by_a_link(self):
        """Neither what it leads to nor what was there gets anything."""
        self.start_web()
        first = self.new()
        elsewhere = stage().new_directory()
        moved = self.directory.with_name("moved")
        self.directory.rename(moved)
        self.directory.symlink_to(elsewhere)
        self.assert_failure(
            "(Not a directory|Too many levels)", plugin_instance="web"
        )
        self.assertEqual(os.listdir(elsewhere), [])
        self.assertEqual(os.listdir(moved), [first.name])
        self.directory.unlink()
        self.new()

    def test_a_link_at_the_start(self):
        elsewhere = stage().new_directory()
        self.directory.symlink_to(elsewhere)
        self.start_web()
        self.assert_failure(
            "(Not a directory|Too many levels)", plugin_instance="web"
        )
        self.assertEqual(os.listdir(elsewhere), [])

    def test_a_directory_that_others_can_write_to(self):
        """From the start, and since a capture was made."""
        self.directory.mkdir()
        self.directory.chmod(0o777)
        self.start_web()
        refusal = "others can write to the directory"
        self.assert_failure(refusal, plugin_instance="web")
        self.assertEqual(os.listdir(self.directory), [])
        self.directory.chmod(0o755)
        self.new()
        self.directory.chmod(0o1777)
        self.assert_failure(refusal, plugin_instance="web")
        self.assertEqual(len(self.files()), 1)

    def test_a_directory_of_somebody_else(self):
        harness.need_root("to give a directory away")
        self.directory.mkdir()
        os.chown(self.directory, *unprivileged_user())
        self.start_web()
        self.assert_failure("others can write", plugin_instance="web")
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_directory_without_permission_is_one_line(self):
        user = unprivileged_user()
        self.directory = stage().new_directory(user if is_root() else None)
        self.directory.chmod(0o555)
        self.addCleanup(self.directory.chmod, 0o755)
        self.shape = self.start_shape("anon", name="web", user=user)
        self.start_web(user=user)
        self.assert_failure("Permission denied", plugin_instance="web")
        self.directory.chmod(0o755)
        self.new()

    def test_full_disk_is_one_line_and_no_half_file(self):
        disk = SmallDisk(self, 1024)
        told = disk.mount_point / "captures"
        self.shape = self.start_shape("anon", name="web")
        self.start_capturing(
            group("web", 'Comm "web@"'),
            self.capture(directory=told),
            wrapper=disk.prefix,
        )
        inside = disk.seen_by(self.daemon)
        self.directory = inside / "captures"
        first = self.new()
        filler = fill(inside)
        self.assert_failure("No space left", plugin_instance="web")
        self.assertEqual(os.listdir(self.directory), [first.name])
        snapshot.read(first)
        filler.unlink()
        self.new()
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(len(complaints(self.daemon)), 1)


# ---- the end of the daemon ----

TREE_PROCESSES = 200
KILLS = 22


class Hangs(CaptureTest):
    """One of several processes has a smaps that hangs its reader."""

    def start_hung(self, timeout, *options):
        self.tree = HangingTree()
        for pid in (100, 200, 201, 202):
            path = self.tree.path / str(pid) / "smaps"
            path.write_text(smaps_text(SMALL_ON_MODERN))
        self.text = self.tree.hang(100, "smaps")
        self.start_capturing(
            f'ProcRoot "{self.tree.path}"',
            f"ReadTimeout {timeout}",
            'Refresh "always"',
            group("g", 'Comm "*"'),
            self.capture(),
        )

    def assert_mappings(self, document, hung):
        """All have them but for those."""
        processes = document["processes"]
        self.assertEqual(len(processes), 4)
        self.assertEqual(document["left_out"], 0)
        for one in processes:
            is_hung = one["pid"] in hung
            self.assertEqual("mappings" not in one, is_hung)
            self.assertEqual(one.get("deferred"), "hung" if is_hung else None)

    def hung(self):
        return self.daemon.values()[""]["count-hung"][-1][1]

    def test_the_others_are_captured(self):
        self.start_hung(0.5)
        _, document = self.new_capture(plugin_instance="g")
        self.assert_mappings(document, [100])
        wait_until(lambda: self.hung() == 1, "count-hung to be 1")
        cycle = self.daemon.next_cycle()
        self.assertEqual(cycle.counts("g"), (4, 4))
        _, document = self.new_capture(plugin_instance="g")
        self.assert_mappings(document, [100])
        lines = complaints(self.daemon)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn('reading smaps of process 100 "name-100"', lines[0])
        self.tree.mend(100, "smaps", self.text)
        wait_until(lambda: self.hung() == 0, "count-hung to be 0")
        _, document = self.new_capture(plugin_instance="g")
        self.assert_mappings(document, [])
        self.assertEqual(len(complaints(self.daemon)), 1)

    def test_the_end_is_prompt_while_one_hangs(self):
        """In the midst of the read, which nobody has given up yet."""
        self.start_hung(2)
        self.alarms.notify(plugin_instance="g")
        wait_until(
            lambda: time.time() - self.daemon.times()[-1] > 0.5,
            "an interval that does not end",
        )
        self.assertEqual(complaints(self.daemon), [])
        self.assert_stops()
        for path in self.files():
            snapshot.read(path)

    def test_the_end_is_prompt_when_one_has_hung(self):
        """The reader that was given up hangs still."""
        self.start_hung(0.5)
        _, document = self.new_capture(plugin_instance="g")
        self.assert_mappings(document, [100])
        self.wait_filed()
        self.assert_stops()

    def assert_stops(self):
        begin = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.process.wait(DEADLINE_SECONDS), 0)
        self.assertLess(time.monotonic() - begin, STOP_SECONDS)


class Ends(CaptureTest):
    """A tree of processes whose captures are large: they take a while to be
    written, and there are always more to come."""

    def make_tree(self):
        tree = WrittenTree()
        for pid in range(100, 100 + TREE_PROCESSES):
            tree.add(
                pid,
                smaps_rollup=rollup_text(SMALL_ON_MODERN),
                smaps=smaps_text(SMALL_ON_MODERN),
                cmdline="\x01" * 4000,
            )
        return tree

    def start_large(self, tree):
        """An alarm in each interval, which has the time for a capture."""
        self.daemon = self.start_daemon(
            "LoadPlugin smaps\n"
            + plugin(
                f'ProcRoot "{tree.path}"',
                "ReadBudget 100",
                group("g", 'Comm "*"'),
                self.capture("TopProcesses 200", "MaxFiles 3"),
            )
            + threshold("g", 1, "Persist true"),
            interval=0.05,
        )

    def is_unfinished(self):
        return (self.directory / ".smaps-unfinished").exists()

    def test_a_killed_daemon_leaves_no_half_capture(self):
        """At any moment; every other time in the midst of writing. On a busy
        machine it takes more attempts until one is in the midst."""
        tree = self.make_tree()
        self.start_large(tree)
        wait_until(self.files, "a capture")
        self.kill()
        random.seed(1)
        end = time.monotonic() + DEADLINE_SECONDS
        left_over = 0
        attempts = 0
        while attempts < KILLS or left_over == 0:
            self.assertLess(time.monotonic(), end, "none killed as it wrote")
            self.start_large(tree)
            if attempts % 2 == 0:
                self.wait_for_writing()
            else:
                time.sleep(random.uniform(0.05, 0.5))
            self.kill()
            attempts += 1
            left_over += self.is_unfinished()
            for path in self.files():
                snapshot.read(path)
            self.assertLessEqual(len(self.files()), 3)
        newest = self.files()[-1]
        self.start_large(tree)
        wait_until(lambda: self.files()[-1] > newest, "a further capture")
        self.daemon.stop()
        self.assertFalse(self.is_unfinished())

    def kill(self):
        self.daemon.process.kill()
        self.daemon.process.wait(DEADLINE_SECONDS)

    def wait_for_writing(self):
        """Without a pause: it lasts but for a moment."""
        before = self.unfinished_mark()
        end = time.monotonic() + DEADLINE_SECONDS
        while self.unfinished_mark() in (None, before):
            if time.monotonic() > end:
                raise AssertionError("nothing is written")

    def unfinished_mark(self):
        try:
            return (self.directory / ".smaps-unfinished").stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def test_the_end_is_prompt_while_captures_are_written(self):
        tree = self.make_tree()
        took = []
        for _ in range(3):
            self.start_large(tree)
            self.wait_for_writing()
            begin = time.monotonic()
            self.assertEqual(self.daemon.stop(), 0)
            took.append(time.monotonic() - begin)
            self.assertFalse(self.is_unfinished())
            for path in self.files():
                snapshot.read(path)
        self.assertLess(max(took), 5)
        # Less than it would wait for a disk that hangs.
        self.assertLess(min(took), 1.5)
