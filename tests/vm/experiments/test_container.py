"""Containers: their processes are in a group of their own, with the host's
services beside them."""

import re
import subprocess
import time
from pathlib import Path

from daemon import HOME, run
from experiment import Experiment, Session, wait_for

OPTIONS = """
    <Group "container-%{container}">
      Container "*"
    </Group>
    <Group "%{unit}">
      Unit "*.service"
    </Group>
    Other "other"
"""
ROOT = HOME / "container"
WELL = ["redis-server.service", "nginx.service"]
SUBORDINATE = "200000-265535"


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

    def make_root(self, root=ROOT):
        """A root with one program and its libraries."""
        for name in ("dev", "proc", "sys", "etc"):
            (root / name).mkdir(parents=True, exist_ok=True)
        run("sh", "-c", f"""
            for file in /bin/sleep $(ldd /bin/sleep | grep -o '/[^ ]*'); do
              install -D $(readlink -f $file) {root}$file
            done""")

    def assert_one_container(self, name):
        """It has one process; whoever watches it is elsewhere."""
        cycle, found = self.wait_for_group("container-")
        self.assertEqual(found, [f"container-{name}"])
        self.assertTrue(cycle.is_known(found[0]))
        self.assertEqual(self.next_cycle().processes(found[0]), 1)
        self.assert_matches(WELL)
        self.assert_quiet()

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
        self.assert_one_container(name)

    def test_podman_of_a_user(self):
        """As a service of alice's own systemd, to which the cgroups below
        user@UID.service are delegated."""
        if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
            self.skipTest("cgroup v1 is not delegated to users")
        home = Path("/home/alice")
        root, identity = home / "container", home / "box.id"
        self.make_root(root)
        run("chown", "-R", "alice:", root)
        run("usermod", f"--add-subuids={SUBORDINATE}",
            f"--add-subgids={SUBORDINATE}", "alice")
        alice = Session(self, "alice")
        alice.run(
            "systemd-run", "--user", "--quiet", "--unit=box",
            "--property=Delegate=yes", "podman", "run", "--network=none",
            "--name=box", f"--cidfile={identity}", "--rootfs", root,
            "/bin/sleep", "1000",
        )
        self.addCleanup(
            alice.run, "podman", "rm", "--force", "box", check=False
        )
        self.addCleanup(identity.unlink, missing_ok=True)
        wait_for(identity.exists, "alice's container")
        self.assert_one_container(identity.read_text().strip())

    def test_docker(self):
        """An image from an archive: there is no registry."""
        units = ("docker.service", "docker.socket", "containerd.service")
        self.addCleanup(run, "systemctl", "stop", *units)
        run("systemctl", "start", "docker")
        self.make_root()
        run("tar", "-C", ROOT, "-cf", HOME / "tiny.tar", ".")
        run("docker", "import", HOME / "tiny.tar", "tiny")
        name = run(
            "docker", "run", "--detach", "--network=none", "tiny",
            "/bin/sleep", "1000",
        )[1].strip().splitlines()[-1]
        self.addCleanup(run, "docker", "rm", "--force", name)
        self.assertRegex(name, re.compile("^[0-9a-f]{64}$"))
        self.assert_one_container(name)
        cycle = self.assert_matches(["docker.service", "containerd.service"])
        # The shim is containerd's.
        self.assertGreaterEqual(cycle.processes("containerd.service"), 2)
