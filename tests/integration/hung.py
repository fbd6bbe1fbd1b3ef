# SPDX-License-Identifier: MIT
"""A real process whose files under /proc hang, by a FUSE server that does not
answer.

    hung.py KIND NAME

Mounts a file system of its own, in a mount namespace of its own so that none
is left behind, and runs a process called NAME on it:

    mmap   maps a file while a write to it is not answered: it holds its mmap
           lock, so that smaps_rollup and cmdline hang
    exec   calls exec while the closing of a file is not answered: it holds the
           lock of the exec, so that smaps_rollup hangs when it is opened, and
           on some kernels of 2026 stat and exe too; later ones close files
           before they take the lock
    file   is well, but the file that has its number is on a file system that
           is frozen: nothing on it can even be looked up. (What waits for a
           request that was not taken up can be killed, as with NFS.)

Prints "READY pid path" when it hangs, with a path to the file from outside, or
"SKIP why" where that cannot be had, as without root. A line on standard input
has the answer given: "OK". At its end the process is killed and the connection
closed, which ends all waiting.
"""

import atexit
import contextlib
import ctypes
import errno
import mmap
import os
import signal
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE = 1, 2, 3, 4, 14, 15, 16
RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 18, 25, 26, 36, 42
DIRECT_IO, KEEP_CACHE = 1, 2
ROOT_NODE, FILE_NODE = 1, 2
REQUEST_SIZE = 132 * 1024
FILE_SIZE = 4096
# Longer than reading a small process takes on a busy machine.
READ_SECONDS = 5
# After the start of the process that the file names.
CHANGED_AT = int(time.time()) + 60
FROZEN = -1  # no opcode: no request is taken up at all


class Skip(Exception):
    pass


def attributes(node):
    mode = 0o040755 if node == ROOT_NODE else 0o100644
    times = [0, CHANGED_AT, 0, 0, 0, 0]
    rest = (mode, 1, 0, 0, 0, 4096, 0)
    return struct.pack("=6Q10I", node, FILE_SIZE, 8, *times, *rest)


class Server:
    """Serves one file, "file", of `text` and zeros after it. Requests of the
    opcode `held` wait."""

    def __init__(self, fd, held):
        self.fd = fd
        self.held = held
        self.text = b""
        self.is_held = threading.Event()
        self.may_go_on = threading.Event()
        self.waiting = []
        self.lock = threading.Lock()

    def run(self):
        while True:
            try:
                request = os.read(self.fd, REQUEST_SIZE)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return
            self.handle(request)

    def handle(self, request):
        _, opcode, unique, node = struct.unpack_from("=IIQQ", request)
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            return
        reply = self.reply_to(opcode, node, request[40:])
        with self.lock:
            if opcode == self.held:
                self.waiting.append((unique, reply))
                self.is_held.set()
                return
        self.answer(unique, reply)
        if opcode == INIT and self.held == FROZEN:
            self.is_held.set()
            self.may_go_on.wait()

    def answer(self, unique, reply):
        code, body = (reply, b"") if isinstance(reply, int) else (0, reply)
        head = struct.pack("=IiQ", 16 + len(body), -code, unique)
        try:
            os.write(self.fd, head + body)
        except OSError:
            pass  # who asked has been killed

    def release(self):
        with self.lock:
            waiting, self.waiting, self.held = self.waiting, [], None
        self.may_go_on.set()
        for unique, reply in waiting:
            self.answer(unique, reply)

    def reply_to(self, opcode, node, body):
        """The bytes of an answer, or an errno."""
        if opcode == INIT:
            return struct.pack(
                "=IIIIHHIIHHI28x", 7, 31, 0, 0, 12, 9, 65536, 1, 16, 0, 0
            )
        if opcode == LOOKUP:
            if body.rstrip(b"\0") != b"file":
                return errno.ENOENT
            head = struct.pack("=QQQQII", FILE_NODE, 0, 3600, 3600, 0, 0)
            return head + attributes(FILE_NODE)
        if opcode in (GETATTR, SETATTR):
            return struct.pack("=QII", 3600, 0, 0) + attributes(node)
        if opcode == OPEN:
            # A file opened for reading only bypasses the page cache: to map
            # it writes that out, and so waits for a WRITE, under the mmap lock.
            (flags,) = struct.unpack_from("=I", body)
            is_direct = flags & os.O_ACCMODE == os.O_RDONLY
            flags = KEEP_CACHE | (DIRECT_IO if is_direct else 0)
            return struct.pack("=QII", 0, flags, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("=QQI", body)
            text = self.text.ljust(FILE_SIZE, b"\0")
            return text[offset : offset + size]
        if opcode == WRITE:
            _, _, size = struct.unpack_from("=QQI", body)
            return struct.pack("=II", size, 0)
        if opcode in (RELEASE, FLUSH):
            return b""
        return errno.ENOSYS


def check(result, what):
    if result != 0:
        raise Skip(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount_server(directory, held):
    check(LIBC.unshare(CLONE_NEWNS), "a mount namespace")
    check(
        LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None),
        "a private mount namespace",
    )
    try:
        fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise Skip(f"/dev/fuse: {error.strerror}") from None
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
    check(
        LIBC.mount(b"hung", directory.encode(), b"fuse", 0, options.encode()),
        "a FUSE mount",
    )
    return Server(fd, held)


def hang_in_mmap(path):
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, FILE_SIZE) as shared:
        shared[0] = 1
        direct = os.open(path, os.O_RDONLY)
        mmap.mmap(direct, FILE_SIZE, mmap.MAP_PRIVATE, mmap.PROT_READ)
    signal.pause()


def hang_in_exec(path):
    os.open(path, os.O_RDWR)  # which Python has closed on exec
    os.execv("/bin/sleep", ["sleep", "1000"])


def clean_up(directory):
    LIBC.umount2(directory.encode(), 2)  # MNT_DETACH
    os.rmdir(directory)


def be_well(_):
    signal.pause()


KINDS = {
    "mmap": (WRITE, hang_in_mmap),
    "exec": (FLUSH, hang_in_exec),
    "file": (FROZEN, be_well),
}


def can_be_read(pid):
    """A read that hangs ends with the process."""

    def read():
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/smaps_rollup").read_bytes()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(READ_SECONDS)
    return not reader.is_alive()


def start_victim(action, name, path, server):
    """The child keeps no descriptor of the server, or the connection would
    outlive us."""
    parent = os.getpid()
    pid = os.fork()
    if pid != 0:
        return pid
    try:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.close(server.fd)
        LIBC.prctl(PR_SET_NAME, name.encode())
        action(path)
    finally:
        os._exit(1)


def main():
    held, action = KINDS[sys.argv[1]]
    directory = tempfile.mkdtemp(prefix="smaps-hung-")
    atexit.register(clean_up, directory)
    try:
        server = mount_server(directory, held)
    except Skip as skip:
        print("SKIP", skip, flush=True)
        return
    path = f"{directory}/file"
    pid = start_victim(action, sys.argv[2], path, server)
    server.text = b"%d\n" % pid
    # Not before the fork: Python warns of one beside threads.
    threading.Thread(target=server.run, daemon=True).start()
    if not server.is_held.wait(60):
        os.kill(pid, signal.SIGKILL)
        print("SKIP the kernel asks for no", sys.argv[1], flush=True)
        return
    # The request is here; what has sent it now waits for the answer.
    time.sleep(0.05)
    if held == FLUSH and can_be_read(pid):
        os.kill(pid, signal.SIGKILL)
        print("SKIP the kernel holds no lock", flush=True)
        return
    print("READY", pid, f"/proc/{os.getpid()}/root{path}", flush=True)
    for _ in sys.stdin:
        server.release()
        print("OK", flush=True)
    os.kill(pid, signal.SIGKILL)
    server.release()
    os.close(server.fd)
    os.waitpid(pid, 0)


main()
