# SPDX-License-Identifier: MIT
"""A virtual machine of one system, and the work that is done for it outside.

The host talks to a shell in the machine over a virtio port: no network, no
keys, no mounts. Everything that starts here ends with this process, however it
ends: qemu and the others get a SIGKILL from the kernel, mounts are those of a
namespace, the copy-on-write file of the disk has no name.
"""

import base64
import contextlib
import ctypes
import io
import json
import os
import re
import select
import signal
import socket
import subprocess
import tarfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / "build/vm"
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1

MEMORY_MIB = 3072
# Under emulation, on a host that has other work.
BOOT_SECONDS = 3600
# After the experiment's own limit, for the machine that has not kept to it.
GRACE_SECONDS = 120
# A machine that sleeps to memory. Its own clock does not always wake it.
ASLEEP_SECONDS = 60


class MachineError(Exception):
    """The machine does not boot, has died or does not answer."""


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def isolated(command, **options):
    """Runs a command with mounts and pids of its own: when it ends, or we do,
    both are gone."""
    return subprocess.run(
        [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
            *("--mount-proc", "--", *map(str, command)),
        ],
        check=True,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent,
        **options,
    )


def has_kvm():
    """/dev/kvm alone proves nothing: nested without the processor's help, it
    interprets every instruction and is slower than TCG."""
    flags = Path("/proc/cpuinfo").read_text()
    return os.access("/dev/kvm", os.R_OK | os.W_OK) and bool(
        re.search(r"^flags\s*:.*\b(vmx|svm)\b", flags, re.MULTILINE)
    )


def accelerator():
    if has_kvm():
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max"]


def read_tail(path, count=15):
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-count:])


class Monitor:
    """Wakes the machine when it has slept, by qemu's monitor (QMP)."""

    def __init__(self):
        self.channel, self.theirs = socket.socketpair()

    def begin(self):
        self.theirs.close()
        self._execute("qmp_capabilities")
        threading.Thread(target=self._watch, daemon=True).start()

    def _execute(self, command):
        self.channel.sendall(json.dumps({"execute": command}).encode())

    def _watch(self):
        """Until qemu has ended."""
        with (
            contextlib.suppress(OSError),
            self.channel,
            self.channel.makefile() as messages,
        ):
            for message in messages:
                if json.loads(message).get("event") == "SUSPEND":
                    time.sleep(ASLEEP_SECONDS)
                    self._execute("system_wakeup")


class Machine:
    """Boots on construction; the shell answers when it returns."""

    def __init__(self, suite, kernel, kernel_arguments, console):
        self.console = console
        self.channel, theirs = socket.socketpair()
        monitor = Monitor()
        self.marks = 0
        self.unread = b""
        try:
            self.process = self._start(
                suite,
                kernel,
                kernel_arguments,
                theirs.fileno(),
                monitor.theirs.fileno(),
            )
        finally:
            theirs.close()
        monitor.begin()
        try:
            self._await_boot()
        except BaseException:
            self.stop()
            raise

    def _start(self, suite, kernel, kernel_arguments, channel, monitor):
        images = CACHE / suite
        append = f"root=/dev/vda rw console=ttyS0 panic=-1 {kernel_arguments}"
        return subprocess.Popen(
            [
                "qemu-system-x86_64",
                *accelerator(),
                *("-smp", "2", "-m", str(MEMORY_MIB)),
                *("-display", "none", "-nodefaults", "-no-reboot"),
                *("-serial", f"file:{self.console}"),
                "-drive",
                f"file={images}/disk.img,format=raw,if=virtio,snapshot=on",
                *("-device", "virtio-rng-pci", "-device", "virtio-serial-pci"),
                *("-chardev", f"socket,id=vm,fd={channel}"),
                *("-device", "virtserialport,chardev=vm,name=vm"),
                *("-chardev", f"socket,id=monitor,fd={monitor}"),
                *("-mon", "chardev=monitor,mode=control"),
                *("-kernel", CACHE / kernel / "vmlinuz"),
                *("-initrd", images / "initrd.img"),
                *("-append", append),
            ],
            stdin=subprocess.DEVNULL,
            pass_fds=[channel, monitor],
            preexec_fn=die_with_parent,
            env={**os.environ, "TMPDIR": str(CACHE)},
        )

    def _await_boot(self):
        # The port keeps this until the shell is there.
        end = time.monotonic() + BOOT_SECONDS
        self.shell("true", BOOT_SECONDS)
        while time.monotonic() < end:
            # It fails as long as there is no bus, and where a service failed.
            _, state = self.shell(
                "systemctl is-system-running --wait", BOOT_SECONDS
            )
            if state.strip() in ("running", "degraded"):
                return
            time.sleep(1)
        raise MachineError(f"has not booted in {BOOT_SECONDS} s")

    def shell(self, script, seconds):
        """Runs a script. Returns (exit status, what it printed)."""
        self.marks += 1
        mark = f"--done-{self.marks}"
        self._send(
            f"( {script}\n) </dev/null 2>&1; status=$?; echo; "
            f"echo {mark} $status\n"
        )
        found = self._read_until(
            re.compile(rb"\n" + mark.encode() + rb" (\d+)\n"), seconds
        )
        return int(found[0]), found[1].decode("utf-8", "backslashreplace")

    def put(self, directory, files):
        """Copies files, {name: path}, into a new directory."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as tar:
            for name, path in files.items():
                tar.add(path, name)
        text = base64.encodebytes(archive.getvalue()).decode()
        status, said = self.shell(
            f"rm -rf {directory} && mkdir -p {directory} && "
            f"base64 -d <<'END' | tar -xzC {directory}\n{text}END",
            600,
        )
        if status != 0:
            raise MachineError(f"does not take files: {said}")

    def _send(self, text):
        try:
            self.channel.sendall(text.encode())
        except OSError as error:
            raise MachineError(f"has ended ({error})") from None

    def _read_until(self, pattern, seconds):
        end = time.monotonic() + seconds
        while True:
            found = pattern.search(self.unread)
            if found:
                before = self.unread[: found.start()]
                self.unread = self.unread[found.end() :]
                return found.group(1), before
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.channel], [], [], left)[0]:
                raise MachineError(f"has not answered for {seconds} s")
            received = self.channel.recv(65536)
            if not received:
                raise MachineError("has ended")
            self.unread += received

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.channel.close()
