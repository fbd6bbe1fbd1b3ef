"""What the notification of a new capture tells of it."""

import os
from pathlib import Path

import harness
from capture import CaptureTest
from harness import MIB, TAG, group, wait_until
from snapshot import group_of


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
        self.assertLessEqual(int(headers["PssError"]), 4 * MIB)
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
