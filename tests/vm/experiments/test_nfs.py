# SPDX-License-Identifier: MIT
"""A server of NFS that does not answer any more."""

import os
import signal
from pathlib import Path

import daemon
from daemon import run
from experiment import Experiment, Service, wait_for

EXPORT = Path("/srv/vm")
MOUNT = Path("/mnt/nfs")
WELL = ["redis-server.service", "nginx.service"]
PORT = "2049"
LEASES = Path("/proc/sys/fs/leases-enable")

# At the signal it maps a file, for which the kernel asks the server while it
# has the lock of the process's memory.
VICTIM = f"""
import mmap, os, signal
fd = os.open("{MOUNT}/file", os.O_RDONLY)
memory = mmap.mmap(-1, 8 << 20)
memory.write(bytes(8 << 20))
def map_file(*_):
    mmap.mmap(fd, 4096, prot=mmap.PROT_READ)
signal.signal(signal.SIGUSR1, map_file)
while True:
    signal.pause()
"""


def waits_for_disk(pid):
    return "\nState:\tD" in Path(f"/proc/{pid}/status").read_text()


def iptables(action):
    for port in ("--dport", "--sport"):
        run("iptables", action, "INPUT", "-p", "tcp", port, PORT, "-j", "DROP",
            check=False)


class DeadNfs(Experiment):
    def setUp(self):
        super().setUp()
        EXPORT.mkdir(parents=True, exist_ok=True)
        MOUNT.mkdir(parents=True, exist_ok=True)
        (EXPORT / "file").write_bytes(bytes(1 << 20))
        Path("/etc/exports").write_text(
            f"{EXPORT} 127.0.0.1(rw,no_root_squash,insecure,no_subtree_check)\n"
        )
        # Or the server, of Linux 7.2, would leave the file to the client.
        self.addCleanup(LEASES.write_text, LEASES.read_text())
        LEASES.write_text("0")
        run("systemctl", "start", "nfs-server")
        self.addCleanup(run, "systemctl", "stop", "nfs-server")
        run("exportfs", "-ra")
        self.addCleanup(run, "umount", "--lazy", "--force", MOUNT, check=False)
        run("mount", "-t", "nfs", "-o", "hard,noac,vers=4.2,timeo=50",
            f"127.0.0.1:{EXPORT}", MOUNT)

    def test_dead_server(self):
        victim = Service(
            self, "victim", "python3", "-c", VICTIM, notify=False
        )
        self.assert_matches([victim.group, *WELL])
        self.addCleanup(iptables, "-D")
        iptables("-A")
        pid = victim.pid()
        os.kill(pid, signal.SIGUSR1)
        wait_for(lambda: waits_for_disk(pid), "a map that waits")
        for _ in range(4):
            cycle = self.assert_matches(WELL)
        self.assertIn(victim.group, cycle)
        # The hang is logged once.
        lines = [line for line in daemon.log() if f"process {pid} " in line]
        self.assertLessEqual(len(lines), 1, "\n".join(lines))
        iptables("-D")
