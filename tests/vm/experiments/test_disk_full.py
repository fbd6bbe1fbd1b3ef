"""A full disk under the state file and the captures."""

import json
import re
import time
from pathlib import Path

import daemon
from daemon import run
from experiment import Experiment, wait_for

DISK = Path("/mnt/small")
STATE = DISK / "state.json"
CAPTURES = DISK / "captures"
REDIS = "redis-server.service"


class DiskFull(Experiment):
    options = f"""
        StateFile "{STATE}"
        StateInterval 0
        <Capture>
          Directory "{CAPTURES}"
          Cooldown 0
        </Capture>
    """

    def setUp(self):
        DISK.mkdir(exist_ok=True)
        self.addCleanup(run, "umount", "--lazy", DISK)
        run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", DISK)
        super().setUp()

    def fill(self):
        ballast = DISK / "ballast"
        self.addCleanup(ballast.unlink, missing_ok=True)
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        return ballast

    def raise_alarm(self):
        connection = daemon.connect()
        self.addCleanup(connection.close)
        host = next(iter(connection.list_times())).split("/")[0]
        connection.ask([
            f"PUTNOTIF message=x severity=warning time={time.time():.0f} "
            f"plugin=smaps plugin_instance={REDIS} type=memory "
            f"type_instance=pss host={host}"
        ])

    def test_state_file_and_capture(self):
        self.assert_matches([REDIS])
        json.loads(STATE.read_text())
        ballast = self.fill()
        self.await_line("StateFile .*cannot be written")
        self.raise_alarm()
        self.await_line("no capture of group")
        for _ in range(2):
            self.assert_matches([REDIS])
        # The old state is whole.
        json.loads(STATE.read_text())
        self.assertEqual(list(CAPTURES.glob("*.json")), [])

        ballast.unlink()
        self.await_line("StateFile .*written again")
        self.raise_alarm()
        wait_for(lambda: list(CAPTURES.glob("*.json")), "a capture")
        (capture,) = CAPTURES.glob("*.json")
        json.loads(capture.read_text())
        self.next_cycle()
        json.loads(STATE.read_text())
        self.assertEqual(
            sum("StateFile" in line for line in daemon.log()), 2
        )
        # What is written has another name until it is whole.
        wait_for(
            lambda: {path.name for path in DISK.iterdir()}
            == {"state.json", "captures"},
            "the end of a write",
        )

    @staticmethod
    def await_line(pattern):
        wait_for(
            lambda: re.search(pattern, "\n".join(daemon.log())), pattern
        )
