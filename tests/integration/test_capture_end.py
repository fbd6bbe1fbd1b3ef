# SPDX-License-Identifier: MIT
"""A daemon that is killed, or told to end, while documents are written."""

import os
import random
import time

import snapshot
from capture import CaptureTest, threshold
from harness import DEADLINE_SECONDS, group, plugin, wait_until
from snapshot import StateFile
from test_captured import SMALL_ON_MODERN, WrittenTree, rollup_text, smaps_text

STOP_SECONDS = 20
TREE_PROCESSES = 200
KILLS = 24


class Ends(CaptureTest):
    """A tree of processes whose documents are large: they take a while to be
    written, and there are always more to come."""

    def setUp(self):
        super().setUp()
        self.tree = WrittenTree()
        for pid in range(100, 100 + TREE_PROCESSES):
            self.tree.add(
                pid,
                smaps_rollup=rollup_text(SMALL_ON_MODERN),
                smaps=smaps_text(SMALL_ON_MODERN),
                cmdline="\x01" * 4000,
            )
        self.state = StateFile()
        self.unfinished = {
            "capture": self.directory / ".smaps-unfinished",
            "state": self.state.path.with_name("state.unfinished"),
        }

    def start_large(self):
        """A state in each interval, and an alarm, which has the time for a
        capture."""
        self.daemon = self.start_daemon(
            "LoadPlugin smaps\n"
            + plugin(
                f'ProcRoot "{self.tree.path}"',
                "ReadBudget 100",
                "Alarms false",
                self.state.config(),
                group("g", 'Comm "*"'),
                self.capture("TopProcesses 200", "MaxFiles 3"),
            )
            + threshold("g", 1, "Persist true"),
            interval=0.05,
        )

    def kill(self):
        self.daemon.process.kill()
        self.daemon.process.wait(DEADLINE_SECONDS)

    def wait_for_writing(self, kind):
        """Without a pause: it lasts but for a moment. What a daemon before has
        left is another file."""
        before = self.mark(kind)
        end = time.monotonic() + DEADLINE_SECONDS
        while self.mark(kind) in (None, before):
            if time.monotonic() > end:
                raise AssertionError(f"no {kind} is written")

    def mark(self, kind):
        try:
            return self.unfinished[kind].stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def check_documents(self):
        """None is half of one."""
        files = self.files()
        self.assertLessEqual(len(files), 3)
        for path in files:
            snapshot.read(path)
        if self.state.path.exists():
            document = snapshot.read(self.state.path)
            self.assertEqual(len(document["processes"]), TREE_PROCESSES)

    def test_a_killed_daemon_leaves_no_half_document(self):
        """Kills the daemon at any moment; every other time while it writes. On
        a busy machine it takes more attempts until one hits that moment."""
        self.start_large()
        wait_until(self.files, "a capture")
        self.kill()
        random.seed(1)
        end = time.monotonic() + DEADLINE_SECONDS
        left_over = set()
        attempts = 0
        while attempts < KILLS or left_over != self.unfinished.keys():
            self.assertLess(time.monotonic(), end, "none killed as it wrote")
            self.start_large()
            if attempts % 2 == 0:
                self.wait_for_writing("state" if attempts % 4 else "capture")
            else:
                time.sleep(random.uniform(0.05, 0.5))
            self.kill()
            attempts += 1
            left_over |= {kind for kind in self.unfinished if self.mark(kind)}
            self.check_documents()
        newest = self.files()[-1]
        self.start_large()
        wait_until(lambda: self.files()[-1] > newest, "a further capture")
        self.state.next(self.daemon)
        self.daemon.stop()
        self.assertIsNone(self.mark("capture"))
        self.assertEqual(os.listdir(self.state.path.parent), ["state"])

    def test_the_end_is_prompt_while_documents_are_written(self):
        took = []
        for kind in ("capture", "state", "capture"):
            self.start_large()
            self.wait_for_writing(kind)
            begin = time.monotonic()
            self.assertEqual(self.daemon.stop(), 0)
            took.append(time.monotonic() - begin)
            self.assertIsNone(self.mark("capture"))
            self.assertEqual(os.listdir(self.state.path.parent), ["state"])
            self.check_documents()
        self.assertLess(max(took), STOP_SECONDS)
        # Less than it would wait for a disk that hangs.
        self.assertLess(min(took), 1.5)
