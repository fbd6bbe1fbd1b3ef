"""Containers: their processes are in a group of their own, with the host's
services beside them."""

import subprocess
import time

from daemon import HOME, run
from experiment import Experiment

OPTIONS = """
    Report "default" "pss_error"
    <Group "container-%{container}">
      Container "*"
    </Group>
    <Group "%{unit}">
      Unit "*.service"
    </Group>
    Other "other"
"""
ROOT = HOME / "container"


class Container(Experiment):
    options = OPTIONS

    def wait_for_group(self, prefix, seconds=180):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            cycle = self.next_cycle()
            found = [g for g in cycle.all_groups() if g.startswith(prefix)]
            if found:
                return cycle, found
        raise AssertionError(f"no group {prefix}: {sorted(cycle.all_groups())}")

    def test_nspawn(self):
        process = subprocess.Popen(
            [
                *("systemd-nspawn", "--quiet", "--directory=/"),
                *("--volatile=yes", "--machine=box", "--as-pid2"),
                *("sleep", "1000"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait)
        self.addCleanup(run, "machinectl", "terminate", "box", check=False)
        cycle, found = self.wait_for_group("container-box")
        self.assertEqual(found, ["container-box"])
        # The first one and the stub that is its init.
        cycle = self.next_cycle()
        self.assertEqual(cycle.processes("container-box"), 2)
        self.assertTrue(cycle.is_known("container-box"))
        self.assert_matches(["redis-server.service", "nginx.service"])
        self.assert_quiet()

    def make_root(self):
        """A root with one program and its libraries."""
        for name in ("dev", "proc", "sys", "etc"):
            (ROOT / name).mkdir(parents=True, exist_ok=True)
        run("sh", "-c", f"""
            for file in /bin/sleep $(ldd /bin/sleep | grep -o '/[^ ]*'); do
              install -D $(readlink -f $file) {ROOT}$file
            done""")

    def test_podman(self):
        self.make_root()
        status, text = run(
            "podman", "run", "--detach", "--network=none", "--name=box",
            "--rootfs", ROOT, "/bin/sleep", "1000", check=False,
        )
        self.addCleanup(run, "podman", "rm", "--force", "box", check=False)
        if status != 0:
            self.skipTest(f"podman does not run here: {text.strip()[-200:]}")
        name = run("podman", "ps", "--no-trunc", "-q")[1].strip()
        cycle, found = self.wait_for_group("container-")
        self.assertEqual(found, [f"container-{name}"])
        self.assertTrue(cycle.is_known(found[0]))
        self.assert_matches(["redis-server.service", "nginx.service"])
        self.assert_quiet()
