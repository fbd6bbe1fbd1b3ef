# SPDX-License-Identifier: MIT
"""Captures of a process that takes too long to walk: its mappings are sampled,
and right within their errors.

MaxLockHold is at its lowest here, so that some hundred MiB make a giant."""

from capture import CaptureTest
from harness import (
    MIB,
    TAG,
    Script,
    group,
    read_statm,
    setpriv,
    stage,
    state_of,
    unprivileged_user,
    wait_until,
)
from snapshot import process_of, read_smaps, sum_by_name
from test_giants import (
    CAP_DAC_READ_SEARCH,
    LIBC,
    LOCK_HOLD,
    SLACK,
    WIDTH,
    need_page_counts,
)
from test_permission import CAP_SYS_PTRACE, need_capability
from report import run

PRIVATE = 128 * MIB
SHARED = 96 * MIB
FILE = 64 * MIB

# Memory of its own, a file, and memory that another process maps too, all in
# small pages, where the kernel knows others. A part of the address space is
# reserved and empty.
MAPPER = f"""
import contextlib, ctypes, mmap, os, sys

libc = ctypes.CDLL(None)
name, path = sys.argv[1:]
kept = []


def map_and_touch(fd, size, flags=mmap.MAP_SHARED):
    memory = mmap.mmap(fd, size, flags=flags)
    # Of huge pages nobody knows who maps them without CAP_SYS_ADMIN; files may
    # have some, too.
    with contextlib.suppress(OSError):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 1, size)
    kept.append(memory)


shared = os.memfd_create("shared")
os.ftruncate(shared, {SHARED})
ready, done = os.pipe()
if os.fork() == 0:
    libc.prctl(1, 9, 0, 0, 0)
    map_and_touch(shared, {SHARED})
    os.write(done, b".")
    sys.stdin.read()
    os._exit(0)
os.read(ready, 1)
libc.prctl(15, name.encode(), 0, 0, 0)
map_and_touch(shared, {SHARED})
map_and_touch(-1, {PRIVATE}, mmap.MAP_PRIVATE)
map_and_touch(os.open(path, os.O_RDWR), {FILE})
print(flush=True)
sys.stdin.read()
"""

MEMFD = "/memfd:shared (deleted)"


class Mapper(Script):
    def __init__(self):
        self.file = str(stage().new_directory() / "mapped.dat")
        with open(self.file, "wb") as file:
            file.truncate(FILE)
        super().__init__(MAPPER, f"giant{TAG}", self.file)
        self.read_line()
        wait_until(lambda: state_of(self.pid) == "S", "an idle process")


def uss(mapping):
    return mapping["private_clean"] + mapping["private_dirty"]


class GiantCapture(CaptureTest):
    def start_mapper(self):
        mapper = Mapper()
        self.addCleanup(mapper.stop)
        return mapper

    def start_capable(self, *capabilities, lines=()):
        for capability in capabilities:
            need_capability(capability, f"capability {capability}")
        user = unprivileged_user()
        self.directory = stage().new_directory(user)
        self.start_watching(
            *lines, user=user, wrapper=setpriv(*capabilities, user=user)
        )

    def start_watching(self, *lines, **options):
        """The lines are about the group."""
        self.start_capturing(
            "ReadBudget 50",
            group("giant", 'Comm "giant@"', LOCK_HOLD, *lines),
            self.capture(),
            **options,
        )

    def capture_of(self, pid):
        """Returns its part of a capture, and {name: mapping} of the mappings
        with a name."""
        path, document = self.new_capture(plugin_instance="giant")
        one = process_of(document, pid)
        named = {m["name"]: m for m in one["mappings"] if "name" in m}
        return path, one, named

    def assert_mapping(self, name, found, truth, own):
        """As smaps has it, but for the error. own: the truth of its uss."""
        mapping = found[name]
        slack = SLACK * mapping["pss_error"] + LIBC
        self.assertLess(mapping["pss_error"], WIDTH * truth["rss"])
        self.assert_near(mapping["pss"], truth["pss"], slack, f"pss of {name}")
        self.assert_near(
            mapping["rss"], truth["rss"], WIDTH * truth["rss"], f"rss of {name}"
        )
        self.assert_near(uss(mapping), own, 2 * slack, f"uss of {name}")
        self.assertGreater(mapping["pages_sampled"], 300)
        self.assertEqual(mapping["size"], truth["size"])

    def test_mappings_are_sampled(self):
        need_page_counts()
        mapper = self.start_mapper()
        self.start_watching()
        before = read_statm(mapper.pid)["resident"]
        path, one, found = self.capture_of(mapper.pid)
        after = read_statm(mapper.pid)["resident"]
        truth = sum_by_name([read_smaps(mapper.pid)])
        self.assertEqual(one["mappings_from"], "samples")
        for name in "[anon]", MEMFD, mapper.file:
            own = 0 if name == MEMFD else uss(truth[name])
            self.assert_mapping(name, found, truth[name], own)
        self.assertGreater(found["[anon]"]["private_dirty"], 0.9 * PRIVATE)
        self.assertGreater(found[MEMFD]["shared_dirty"], 0.9 * SHARED)
        self.assertGreater(found[mapper.file]["private_clean"], 0.9 * FILE)
        # They add up to what statm said meanwhile.
        total = sum(m.get("rss", 0) for m in one["mappings"])
        self.assertLessEqual(total, max(before, after))
        self.assertGreaterEqual(total, min(before, after))
        rows = run("-mH", "-c", "name,pss_error,pages_sampled", path).text
        self.assertRegex(rows, rf"(?m)^{mapper.file} +[1-9]\d* +[1-9]\d*$")

    def test_pss_of_shared_mappings_takes_sys_admin(self):
        """And it is not taken to be 0."""
        mapper = self.start_mapper()
        self.start_capable(CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH)
        _, one, found = self.capture_of(mapper.pid)
        truth = sum_by_name([read_smaps(mapper.pid)])
        self.assertEqual(one["mappings_from"], "samples")
        self.assertNotIn("pss", found[MEMFD])
        self.assertEqual(uss(found[MEMFD]), 0)
        self.assert_near(found[MEMFD]["rss"], SHARED, WIDTH * SHARED, "rss")
        name = mapper.file
        self.assert_mapping(name, found, truth[name], uss(truth[name]))

    def test_amounts_take_dac_read_search(self):
        """Without the right, the mappings are those that maps lists.

        The first walk of a small process finds cold caches and may take longer
        than the limit, which would make a giant of it. So none is made, and
        what each of the two would take is guessed from its size."""
        mapper = self.start_mapper()
        small = self.start_shape("anon", name="giant", mib=2)
        self.start_capable(CAP_SYS_PTRACE, lines=['Refresh "never"'])
        path, document = self.new_capture(plugin_instance="giant")
        one = process_of(document, mapper.pid)
        self.assertEqual(one["mappings_from"], "maps")
        found = {m["name"]: m for m in one["mappings"] if "name" in m}
        self.assertEqual(found[mapper.file]["size"], FILE)
        other = process_of(document, small.root)
        self.assertEqual(other["mappings_from"], "smaps")
        self.assertGreater(other["mappings"][0]["pss"], 2 * MIB)
        # The sum of a mapping that both have is not known, and is not 0.
        (stack,) = (
            m for m in document["mappings"] if m.get("name") == "[stack]"
        )
        self.assertEqual(stack["processes"], 2)
        self.assertNotIn("pss", stack)
        columns = "--processes", "-H", "-c", "pid,mappings_from"
        rows = [row.split() for row in run(*columns, path).text.splitlines()]
        self.assertIn([str(mapper.pid), "maps"], rows)
