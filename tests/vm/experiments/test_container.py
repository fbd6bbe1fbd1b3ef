# SPDX-License-Identifier: MIT
"""Containers: their processes are in a group of their own, with the host's
services beside them."""

import re
import subprocess
from pathlib import Path

from daemon import HOME, run
from experiment import Experiment, Session, wait_for
from groups import read_cgroup

OPTIONS = """
    <Group "container-%{container}">
      Container "*"
    </Group>
    <Group "%{unit}">
      Unit "*.service"
    </Group>
    Other "other"
"""
# A process is in the first group that takes it: by id or by name.
NAMED = OPTIONS.replace("%{container}", "%{container_name}")
ROOT = HOME / "container"
WELL = ["redis-server.service", "nginx.service"]
SUBORDINATE = "200000-265535"
# In a service, which has an INVOCATION_ID, podman leaves its monitor where it
# is. By hand, as here, it gives conmon a scope beside that of the container.
PODMAN = ("env", "-u", "INVOCATION_ID", "podman")


def scopes_of_monitors():
    pids = run("pidof", "conmon", check=False)[1].split()
    return [Path(read_cgroup(pid)).name for pid in pids]


class Container(Experiment):
    options = OPTIONS

    def await_container(self, name, processes):
        """It is the only one, and comes to have so many processes: its runtime
        is in its cgroup before its program is."""
        group = f"container-{name}"

        def is_whole():
            cycle = self.next_cycle()
            found = {
                g: cycle.counts(g)[0]
                for g in cycle.all_groups()
                if g.startswith("container-")
            }
            self.assertLessEqual(set(found), {group})
            return found == {group: processes} and cycle

        cycle = wait_for(is_whole, f"{group} with {processes} processes")
        self.assertTrue(cycle.is_known(group))
        self.assert_matches(WELL)
        self.assertEqual(self.next_cycle().counts(group)[0], processes)
        self.assert_quiet()

    def await_name(self, name):
        """A group whose container has another name now may be there still,
        without processes."""

        def is_alone():
            cycle = self.next_cycle()
            return {
                g
                for g in cycle.all_groups()
                if g.startswith("container-") and cycle.counts(g)[0] > 0
            } == {f"container-{name}"}

        wait_for(is_alone, f"a container of the name {name}")

    def test_nspawn(self):
        self.make_root()
        said = HOME / "nspawn.log"
        with open(said, "w") as log:
            process = subprocess.Popen(
                [
                    *("systemd-nspawn", "--quiet",),
                    *("--directory", ROOT, "--machine=box", "--as-pid2"),
                    *("/bin/sleep", "1000"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.addCleanup(process.wait)
        self.addCleanup(run, "machinectl", "terminate", "box", check=False)
        wait_for(
            lambda: process.poll() is not None
            or run("machinectl", "show", "box", check=False)[0] == 0,
            "the machine",
        )
        self.assertIsNone(process.poll(), said.read_text())
        # The first one and the stub that is its init.
        self.await_container("box", 2)

    def make_root(self, root=ROOT):
        """A root with one program and its libraries, and with a name: nspawn
        takes no other."""
        for name in ("dev", "proc", "sys", "etc", "usr"):
            (root / name).mkdir(parents=True, exist_ok=True)
        run("cp", "--dereference", "/etc/os-release", root / "etc")
        run("sh", "-c", f"""
            for file in /bin/sleep $(ldd /bin/sleep | grep -o '/[^ ]*'); do
              install -D $(readlink -f $file) {root}$file
            done""")

    def test_podman(self):
        self.make_root()
        status, text = run(
            *PODMAN, "run", "--detach", "--network=none", "--name=box",
            "--rootfs", ROOT, "/bin/sleep", "1000", check=False,
        )
        self.addCleanup(run, "podman", "rm", "--force", "box", check=False)
        if status != 0:
            self.skipTest(f"podman does not run here: {text.strip()[-200:]}")
        name = run("podman", "ps", "--no-trunc", "-q")[1].strip()
        self.await_container_of_podman(name)

    def await_container_of_podman(self, name):
        """The monitor is no member, though its scope has the same number."""
        wait_for(
            lambda: scopes_of_monitors() == [f"libpod-conmon-{name}.scope"],
            "the scope of conmon",
        )
        self.await_container(name, 1)
        self.start_daemon(NAMED)
        self.await_name("box")

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
            "--property=Delegate=yes", *PODMAN, "run", "--network=none",
            "--name=box", f"--cidfile={identity}", "--rootfs", root,
            "/bin/sleep", "1000",
        )
        self.addCleanup(
            alice.run, "podman", "rm", "--force", "box", check=False
        )
        self.addCleanup(identity.unlink, missing_ok=True)
        wait_for(identity.exists, "alice's container")
        self.await_container_of_podman(identity.read_text().strip())

    def test_docker(self):
        """An image from an archive: there is no registry."""
        units = ("docker.service", "docker.socket", "containerd.service")
        self.addCleanup(run, "systemctl", "stop", *units)
        run("systemctl", "start", "docker")
        self.make_root()
        run("tar", "-C", ROOT, "-cf", HOME / "tiny.tar", ".")
        run("docker", "import", HOME / "tiny.tar", "tiny")
        self.addCleanup(
            run, "docker", "rm", "--force", "web", "shop", check=False
        )
        name = self.start_docker("web")
        self.await_container(name, 1)
        # dockerd has run itself to unpack the image, and until the next sample
        # seems to share its program with that process.
        cycle = self.assert_matches(
            ["docker.service", "containerd.service"], tries=40
        )
        # The shim is containerd's.
        self.assertGreaterEqual(cycle.counts("containerd.service")[0], 2)
        self.start_daemon(NAMED)
        self.await_name("web")
        run("docker", "rename", "web", "shop")
        self.await_name("shop")
        run("docker", "rm", "--force", "shop")
        # Another container, whose series goes on.
        self.assertNotEqual(self.start_docker("shop"), name)
        self.await_name("shop")

    def start_docker(self, name):
        """Returns the id."""
        identity = run(
            "docker", "run", "--detach", "--network=none", f"--name={name}",
            "tiny", "/bin/sleep", "1000",
        )[1].strip().splitlines()[-1]
        self.assertRegex(identity, re.compile("^[0-9a-f]{64}$"))
        return identity
