# SPDX-License-Identifier: MIT
"""An alarm about a control group in which a process was killed for memory."""

import snapshot
from alerts import ThresholdTest as _ThresholdTest
from cgroup import CgroupMixin
from harness import MIB, group, stage, wait_until
from server import load_smaps


class ControlGroups(CgroupMixin, _ThresholdTest):
    def setUp(self):
        super().setUp()
        self.make_top()
        self.web = self.make_below("web")
        self.shape = self.start_shape("anon", name="web", mib=1)
        self.web.add(*self.shape.pids)
        self.web.set_limit(64 * MIB)
        self.directory = stage().new_directory() / "captures"
        self.start_alerts(
            groups=load_smaps(
                group("web", f'Cgroup "{self.web.path}*"'),
                f'<Capture>\nDirectory "{self.directory}"\n</Capture>',
            )
        )

    def captured_kills(self):
        documents = map(snapshot.read, self.directory.glob("*.json"))
        return [
            document
            for document in documents
            if document["trigger"]["type_instance"] == "oom_kill"
        ]

    def test_the_process_that_was_killed_is_captured(self):
        """The only one, which had 40 MiB."""
        self.pass_cycles(2)
        self.shape.grow(40)
        wait_until(
            lambda: self.rows("memory-pss", "web")[-1][1] > 40 * MIB,
            "what is to be known last",
        )
        with self.assertRaisesRegex(AssertionError, "has ended"):
            self.shape.grow(128)

        def failures():
            return [
                a.message
                for a in self.own_alarms("web")
                if a.severity == "FAILURE"
            ]

        wait_until(failures, "an alarm about the kill")
        self.assertIn("1 process killed for memory", failures()[0])
        (document,) = wait_until(self.captured_kills, "its capture")
        one = snapshot.process_of(document, self.shape.root)
        # On a busy host the kernel takes its time to end what it has killed.
        self.assertIn(one["source"], ("ended", "read", "estimated"))
        # Pages that were read before it came in do not count for the limit.
        self.assertTrue(40 * MIB < one["usage"]["pss"] < 72 * MIB, one)
        web = snapshot.group_of(document, "web")
        self.assertEqual(web["oom_kill"], 1)
