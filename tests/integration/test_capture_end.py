"""Captures while a process hangs, and when the daemon ends."""

import random
import signal
import time

import snapshot
from capture import CaptureTest, threshold
from harness import DEADLINE_SECONDS, group, plugin, wait_until
from snapshot import complaints
from test_captured import SMALL_ON_MODERN, WrittenTree, rollup_text, smaps_text
from test_hang import STOP_SECONDS, HangingTree

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
        self.assertLess(max(took), STOP_SECONDS)
        # Less than it would wait for a disk that hangs.
        self.assertLess(min(took), 1.5)
