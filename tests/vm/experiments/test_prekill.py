# SPDX-License-Identifier: MIT
"""smaps-prekill with the real systemd-oomd, installed as its head says: memory is
saved before a kill, and whatever becomes of that, the kill goes on."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import daemon
from daemon import HOME, run
from experiment import Experiment, Service, start_zram, wait_for
from kernel import MIB, parse_kib

OOMD = Path("/usr/lib/systemd/systemd-oomd")
FIRST_WITH_HOOKS = 260
PROGRAM = Path("/usr/share/collectd-smaps/bin/smaps-prekill")
HOOK = "smaps-prekill.service"
OTHERS = ("smaps-prekill.socket", "systemd-oomd.service", "systemd-oomd.socket")
COPIES = Path("/var/lib/smaps-prekill")
LATER_CONFIG = Path("/etc/systemd/oomd.conf.d/zz-vm.conf")
LIMIT_MIB = 64

# In the journal, of systemd-oomd and of systemd.
CGROUP = "/system.slice/doomed.service"
ASKED = f"Invoking oomd prekill hook smaps for cgroup {CGROUP}"
ANSWERED = f"oomd prekill hook finished for cgroup {CGROUP}"
FAILED = f"oomd prekill hook for {CGROUP} returned error: "
KILLED = "doomed.service: systemd-oomd killed 1 process(es) in this unit."


def read_journal(begin):
    """Returns {text: time} of what these units have said since then."""
    said = run(
        "journalctl", "-b", "-o", "json", "--no-pager",
        "-u", "systemd-oomd", "-u", "doomed",
    )[1]
    messages = {}
    for line in map(json.loads, said.splitlines()):
        at = int(line.get("_SOURCE_REALTIME_TIMESTAMP", 0)) / 1e6
        if at >= begin:
            messages[line["MESSAGE"]] = at
    return messages


class Prekill(Experiment):
    options = """
        Report "default" "oomd_kill"
        <Group "doomed.service">
          Unit "doomed.service"
        </Group>
        Other "other"
    """

    def setUp(self):
        if not OOMD.exists():
            self.skipTest("this system has no systemd-oomd")
        version = int(run("systemctl", "--version")[1].split()[1])
        if version < FIRST_WITH_HOOKS:
            self.skipTest(f"systemd {version} has no hooks")
        super().setUp()
        start_zram(self)
        self.addCleanup(run, "systemctl", "disable", "--now", HOOK, *OTHERS)
        self.install_as_its_head_says()
        for copy in COPIES.iterdir():
            shutil.rmtree(copy)
        # Of another user, whose files root needs a capability to read.
        self.doomed = Service(
            self, "doomed", "python3", "/mnt/holder.py", "thrash", 2 * LIMIT_MIB,
            properties=[
                f"BindReadOnlyPaths={HOME}:/mnt",
                "User=nobody",
                f"MemoryHigh={LIMIT_MIB * MIB}",
                "ManagedOOMMemoryPressure=kill",
                "ManagedOOMMemoryPressureLimit=1%",
                "ManagedOOMMemoryPressureDurationSec=1s",
            ],
        )
        self.pid = self.doomed.pid()

    @staticmethod
    def install_as_its_head_says():
        """Runs the commands, which are indented."""
        text = PROGRAM.read_text().split("To install it, as root:\n")[1]
        run("sh", "-e", "-c", re.match(r"\n((?:  .*\n)+)", text).group(1))

    def await_kill(self):
        """Returns what the journal says of it."""
        begin = time.time()
        self.doomed.signal(signal.SIGUSR1)

        def find():
            said = read_journal(begin)
            return said if KILLED in said else None

        return wait_for(find, lambda: f"the kill: {read_journal(begin)}")

    def give_it_time(self):
        """An emulated machine on a busy host can need more than 0.7 s."""
        text = PROGRAM.read_text()
        slow = text.replace("\nSECONDS = 0.7 ", "\nSECONDS = 300 ")
        self.assertNotEqual(slow, text)
        self.addCleanup(PROGRAM.write_text, text)
        PROGRAM.write_text(slow)
        self.addCleanup(LATER_CONFIG.unlink)
        LATER_CONFIG.write_text("[OOM]\nPrekillHookTimeoutSec=400s\n")
        run("systemctl", "restart", HOOK, "systemd-oomd")

    def assert_is_saved(self, said):
        """A process that is killed has no smaps."""
        self.assertLess(said[ASKED], said[ANSWERED])
        self.assertLess(said[ANSWERED], said[KILLED])
        wait_for(lambda: list(COPIES.glob("*/getconf")), "the copy")
        (copy,) = COPIES.iterdir()
        wait_for(lambda: os.path.lexists(copy / f"{self.pid}/exe"), "all of it")
        rollup = parse_kib((copy / f"{self.pid}/smaps_rollup").read_text())
        self.assertGreater(
            rollup["Pss"] + rollup["SwapPss"], LIMIT_MIB * MIB / 2
        )
        shown = run("smaps-report", "live", "-k", "-m", "-S", copy)[1]
        self.assertIn("[anon]", shown)
        self.assertIn("[stack]", shown)

    def assert_is_killed_unsaved(self):
        said = self.await_kill()
        self.assertIn(ASKED, said)
        self.assertNotIn(ANSWERED, said)
        self.assertEqual(list(COPIES.iterdir()), [])
        return said

    def await_count(self, expected):
        def is_there():
            cycle = self.next_cycle()
            return cycle.find(self.doomed.group, "count-oomd_kill") == expected

        wait_for(is_there, f"{expected} kills")

    def test_memory_is_saved_before_the_kill(self):
        self.give_it_time()
        self.await_count(0)
        self.assert_is_saved(self.await_kill())
        self.await_count(1)

    def test_collectd_is_not_needed(self):
        self.give_it_time()
        run("systemctl", "stop", "collectd")
        self.assert_is_saved(self.await_kill())

    def test_kill_goes_on_if_the_hook_hangs(self):
        hook = daemon.main_pid(HOOK)
        self.addCleanup(os.kill, hook, signal.SIGCONT)
        os.kill(hook, signal.SIGSTOP)
        said = self.assert_is_killed_unsaved()
        self.assertIn(f"{FAILED}io.systemd.TimedOut", said)

    def test_kill_goes_on_if_the_program_was_removed(self):
        """Its units are still there."""
        away = PROGRAM.with_suffix(".away")
        self.addCleanup(away.rename, PROGRAM)
        PROGRAM.rename(away)
        # What systemd tries then may fail so often that it gives up.
        self.addCleanup(run, "systemctl", "reset-failed")
        run("systemctl", "stop", HOOK)
        self.assert_is_killed_unsaved()
