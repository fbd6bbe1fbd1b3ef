# SPDX-License-Identifier: MIT
"""contrib/systemd/oomd/smaps-prekill: what it saves before a kill. A client of
ours speaks as systemd-oomd 260 does (src/oom/oomd-util.c: one connection for each
kill, a call of Notify, which ends in NUL, and a wait for the answer)."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import harness
from harness import KIB, MIB, IntegrationTest, read_rollup, stage, wait_until
from report import REPORT

PROGRAM = harness.ROOT / "contrib/systemd/oomd/smaps-prekill"
METHOD = "io.systemd.oom.Prekill.Notify"


class PrekillTest(IntegrationTest):
    CONSTANTS = {}  # of the program, if others

    def setUp(self):
        super().setUp()
        text = PROGRAM.read_text()
        for name, value in self.CONSTANTS.items():
            text, found = re.subn(
                rf"(?m)^{name} = [^#\n]*#", f"{name} = {value}  #", text
            )
            self.assertEqual(found, 1)
        program = stage().new_directory() / PROGRAM.name
        program.write_text(text)
        program.chmod(0o755)
        self.directory = stage().new_directory()
        self.cgroups = stage().new_directory()
        self.address = str(stage().new_directory() / "smaps")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.address)
        listener.listen()
        self.log = stage().new_directory() / "log"

        def pass_socket():
            """As systemd does."""
            os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)

        with self.log.open("wb") as log:
            self.program = subprocess.Popen(
                [program, self.directory, self.cgroups],
                preexec_fn=pass_socket,
                close_fds=False,
                stdout=log,
                stderr=log,
            )
        listener.close()
        self.addCleanup(self.program.wait)
        self.addCleanup(self.program.kill)

    def start_with_mappings(self, count):
        """Of some 700 bytes of smaps each; shared, because these are not merged."""
        program = f"import mmap, sys; a = [mmap.mmap(-1, 4096) for _ in range({count})]"
        process = subprocess.Popen(
            [sys.executable, "-c", program + "; print(flush=True); sys.stdin.read()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(process.communicate)
        process.stdout.readline()
        return process.pid

    def make_cgroup(self, path, pids):
        directory = self.cgroups / path.lstrip("/")
        directory.mkdir(parents=True)
        (directory / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))

    def send(self, raw):
        """Returns the answer; b"" if there is none."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(harness.DEADLINE_SECONDS)
            client.connect(self.address)
            reply = b""
            try:
                client.sendall(raw)
                client.shutdown(socket.SHUT_WR)
                while piece := client.recv(4096):
                    reply += piece
            except ConnectionError:
                pass  # closed before it was read to its end
        return reply

    def notify(self, cgroup, method=METHOD):
        call = {"method": method, "parameters": {"cgroup": cgroup}}
        reply = self.send(json.dumps(call).encode() + b"\0")
        if not reply:
            return None
        self.assertEqual(reply[-1:], b"\0")
        return json.loads(reply[:-1])

    def await_log(self, text):
        """What is said once a copy is there."""
        wait_until(lambda: text in self.log.read_text(), lambda: self.log.read_text())

    def said(self):
        return self.log.read_text().splitlines()

    def copies(self):
        return sorted(self.directory.iterdir())


class Saved(PrekillTest):
    CONSTANTS = {"SECONDS": 60}  # a busy machine may need more than 0.7

    def test_processes_are_saved_before_they_are_killed(self):
        shape = self.start_shape("cow", name="doomed", mib=8, children=2)
        other = self.start_shape("anon", name="other", mib=4)
        root, *children = shape.pids
        self.make_cgroup("/a.slice/web@1.service", [root])
        self.make_cgroup("/a.slice/web@1.service/part", children)
        self.make_cgroup("/a.slice/other.service", [other.root])
        truth = {pid: read_rollup(pid) for pid in shape.pids}
        executable = os.readlink(f"/proc/{root}/exe")
        asked = time.time()
        self.assertEqual(self.notify("/a.slice/web@1.service"), {"parameters": {}})
        answered = time.time()
        for pid in shape.pids:
            os.kill(pid, signal.SIGKILL)
        self.await_log("processes: 3, in")
        (copy,) = self.copies()
        self.assertRegex(copy.name, r"^\d{8}T\d{6}Z-web@1\.service-\d+$")
        self.assertEqual(copy.stat().st_mode & 0o777, 0o700)
        saved = {int(path.name) for path in copy.iterdir() if path.name.isdigit()}
        self.assertEqual(saved, set(shape.pids))
        document, *rows = self.show(copy, "--processes")
        self.assertEqual(os.readlink(copy / f"{root}/exe"), executable)
        self.assertLess(asked, document["time"])
        self.assertLess(document["time"], answered)
        rows = {row["pid"]: row for row in rows}
        for pid, rollup in truth.items():
            # Pages of libraries move with who else has mapped them.
            for amount in "pss", "uss":
                self.assertAlmostEqual(
                    rows[pid][amount], rollup[amount], delta=512 * KIB
                )
        mappings = {row["name"] for row in self.show(copy, "-m")[1:]}
        self.assertLessEqual({"[anon]", "[stack]"}, mappings)

    def test_copy_stays_although_the_answer_came_too_late(self):
        shape = self.start_shape("anon", name="doomed", mib=4)
        self.make_cgroup("/late", [shape.root])
        call = {"method": METHOD, "parameters": {"cgroup": "/late"}}
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.address)
            client.sendall(json.dumps(call).encode() + b"\0")
        self.await_log("late-")
        self.assertIn("processes: 1, in", self.log.read_text())
        self.assertEqual(len(self.copies()), 1)

    def test_first_copy_stays_if_systemd_oomd_asks_again(self):
        """In the same second; what is killed has less memory by then."""
        self.make_cgroup("/again", [os.getpid()])
        inode = (self.cgroups / "again").stat().st_ino
        now = time.time()
        for second in range(120):
            name = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now + second))
            (self.directory / f"{name}-again-{inode}").mkdir()
        self.notify("/again")
        self.await_log(f"-again-{inode}: processes: 1, in")
        self.assertEqual(list(self.directory.glob("*/*")), [])

    def test_control_groups_of_the_same_name_have_copies_of_their_own(self):
        """Within one second, at least at one of these pairs."""
        pids = [self.start_shape("anon", name="a", mib=1).root for _ in range(2)]
        for slice_, pid in zip("ab", pids, strict=True):
            self.make_cgroup(f"/{slice_}.slice/app.slice", [pid])
        for _ in range(3):
            self.notify("/a.slice/app.slice")
            self.notify("/b.slice/app.slice")
        wait_until(lambda: self.log.read_text().count("\n") == 6, self.log.read_text)
        saved = {}
        for copy in self.copies():
            (pid,) = (int(path.name) for path in copy.iterdir() if path.name.isdigit())
            saved.setdefault(copy.name[:16], set()).add(pid)
        self.assertIn(set(pids), saved.values())

    def show(self, copy, *options):
        done = subprocess.run(
            [REPORT, "live", *options, "-j", "-S", copy],
            capture_output=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)


class Large(PrekillTest):
    CONSTANTS = {"SECONDS": 60, "BYTES": 1 << 20, "LARGEST": 1}

    def test_only_the_file_that_is_too_large_is_left_out(self):
        large = self.start_with_mappings(4000)
        others = [self.start_shape("anon", name="o", mib=1).root for _ in range(3)]
        size = {p: len(Path(f"/proc/{p}/smaps").read_bytes()) for p in (large, *others)}
        self.assertGreater(size.pop(large), 1 << 20)
        self.assertLess(sum(size.values()), 1 << 19)
        self.make_cgroup("/large", [large, *others])
        self.assertEqual(self.notify("/large"), {"parameters": {}})
        self.await_log(f"; left out as too large: 1, first {large}/smaps\n")
        self.assertIn("processes: 4, in", self.log.read_text())
        (copy,) = self.copies()
        for pid in large, *others:
            names = {path.name for path in (copy / str(pid)).iterdir()}
            self.assertIn("smaps_rollup", names)
            self.assertEqual("smaps" in names, pid != large)
        last = (copy / f"{others[0]}/smaps").read_text().splitlines()[-1]
        self.assertRegex(last, "^VmFlags:")


class Kept(PrekillTest):
    CONSTANTS = {"SECONDS": 60}

    def test_only_the_newest_copies_stay(self):
        for i in range(12):
            (self.directory / f"20260101T0000{i:02}Z-old.service").mkdir()
        (self.directory / "other").mkdir()
        self.make_cgroup("/new", [os.getpid()])
        self.notify("/new")
        self.await_log("processes: 1,")
        names = [path.name for path in self.copies()]
        self.assertEqual(len(names), 11)
        self.assertEqual(names[-1], "other")
        self.assertEqual(names[0], "20260101T000003Z-old.service")
        self.assertIn("Z-new-", names[-2])

    def test_new_copies_stay_after_the_clock_was_set_back(self):
        for i in range(10):
            (self.directory / f"20991231T0000{i:02}Z-old.service").mkdir()
        for name in "first", "second":
            self.make_cgroup(f"/{name}", [os.getpid()])
            self.notify(f"/{name}")
            self.await_log(f"Z-{name}-")
        names = [path.name for path in self.copies()]
        self.assertEqual(len(names), 10)
        self.assertIn("Z-first-", names[0])
        self.assertIn("Z-second-", names[1])
        self.assertEqual(names[2], "20991231T000002Z-old.service")

    def test_full_disk_costs_one_old_copy_and_leaves_no_partial_one(self):
        """Files of more than 4096 bytes cannot be written, as if it were full."""
        resource.prlimit(self.program.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        for i in range(12):
            (self.directory / f"20260101T0000{i:02}Z-old.service").mkdir()
        for i in range(3):
            self.make_cgroup(f"/full{i}", [os.getpid()])
            self.notify(f"/full{i}")
            self.await_log(f"Z-full{i}-")
        names = [path.name for path in self.copies()]
        old = [f"20260101T0000{i:02}Z-old.service" for i in range(3, 12)]
        self.assertEqual(names, old)
        said = self.log.read_text().splitlines()
        self.assertEqual(len(said), 3)
        for line in said:
            self.assertRegex(line, r"Z-full\d-\d+: cannot be written: File too large$")


class Memory(PrekillTest):
    CONSTANTS = {"SECONDS": 60}

    def test_memory_of_a_copy_is_given_back(self):
        pid = self.start_with_mappings(15000)
        size = len(Path(f"/proc/{pid}/smaps").read_bytes())
        self.assertGreater(size, 8 * MIB)
        self.make_cgroup("/large", [pid])
        self.make_cgroup("/small", [])
        self.notify("/small")
        at_rest = self.read_status("VmRSS")
        for i in range(3):
            self.notify("/large")
            wait_until(
                lambda i=i: self.log.read_text().count("-large-") == i + 1,
                self.log.read_text,
            )
        self.assertGreater(self.read_status("VmHWM"), at_rest + size / 2)
        wait_until(
            lambda: self.read_status("VmRSS") < at_rest + 4 * MIB,
            lambda: f"{at_rest} and not {self.read_status('VmRSS')}",
        )

    def test_memory_at_rest_is_what_its_head_says(self):
        self.make_cgroup("/small", [])
        self.notify("/small")
        # Other versions of Python may need half as much again.
        (said,) = re.findall(r"locked in memory \((\d+) MB", PROGRAM.read_text())
        self.assertLess(self.read_status("VmRSS"), int(said) * MIB * 1.5)

    def read_status(self, name):
        text = Path(f"/proc/{self.program.pid}/status").read_text()
        return int(re.search(rf"(?m)^{name}:\s+(\d+) kB", text)[1]) * KIB


class Slow(PrekillTest):
    CONSTANTS = {"SECONDS": 60, "CALL_SECONDS": 600}

    def test_calls_that_do_not_come_delay_no_others(self):
        self.make_cgroup("/well", [])
        for _ in range(50):
            client = socket.socket(socket.AF_UNIX)
            self.addCleanup(client.close)
            client.connect(self.address)
        self.assertEqual(self.notify("/well"), {"parameters": {}})


class Refused(PrekillTest):
    def test_the_answer_comes_although_a_read_hangs(self):
        shape = self.start_shape("anon", name="doomed", mib=4)
        self.make_cgroup("/hung", [])
        (self.cgroups / "hung/cgroup.procs").unlink()
        os.mkfifo(self.cgroups / "hung/cgroup.procs")
        self.make_cgroup("/well", [shape.root])
        self.assertEqual(self.notify("/hung"), {"parameters": {}})
        self.await_log("processes: 0, not all, in")
        self.assertEqual(self.notify("/well"), {"parameters": {}})
        self.await_log("processes: 1,")
        (copy,) = self.copies()
        self.assertIn("Z-well-", copy.name)
        self.assertIn("Pss:", (copy / f"{shape.root}/smaps_rollup").read_text())

    def test_bad_requests(self):
        bad = ["/../etc", "relative", "/a/../../b", "/a/..", "", 7, ["/"], None]
        bad += ["/a\0b", "/\ud800"]
        for count, cgroup in enumerate(bad, 1):
            reply = self.notify(cgroup)
            self.assertEqual(reply, {"error": "org.varlink.service.InvalidParameter"})
            wait_until(lambda: len(self.said()) == count, self.log.read_text)
            said = "smaps-prekill: no copy: ValueError"
            self.assertTrue(self.said()[-1].startswith(said), self.said())
        for method in 1, "org.varlink.service.GetInfo":
            self.assertEqual(list(self.notify("/", method=method)), ["error"], method)
        for raw in b"", b"{\0", b"[]\0", b'{"method": []\0', b"\xff\0", b"x" * 70000:
            self.assertEqual(self.send(raw), b"", raw[:20])
        self.assertEqual(self.copies(), [])
        self.assertNotIn("Traceback", self.log.read_text())
        self.make_cgroup("/fine", [os.getpid()])
        self.assertEqual(self.notify("/fine"), {"parameters": {}})
        self.await_log("processes: 1,")
        self.assertIn("Z-fine-", self.copies()[0].name)

    def test_call_ends_although_bytes_still_come(self):
        """Each within 0.2 s, but all of them not."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.address)
            with self.assertRaises(ConnectionError):
                for _ in range(100):
                    client.send(b" ")
                    time.sleep(0.1)

    def test_units_have_the_socket_of_the_interface(self):
        folder = PROGRAM.parent
        text = (folder / "smaps-prekill.socket").read_text()
        (path,) = re.findall("(?m)^ListenStream=(.*)$", text)
        self.assertEqual(os.path.dirname(path), "/run/systemd/oomd.prekill.hook")
        self.assertIn("SocketMode=0600", text)
        timeout = re.search(
            r"PrekillHookTimeoutSec=(\d+)s", (folder / "smaps.conf").read_text()
        )
        seconds = re.search(r"(?m)^SECONDS = (\S+)", PROGRAM.read_text())
        self.assertLess(float(seconds.group(1)), int(timeout.group(1)))
