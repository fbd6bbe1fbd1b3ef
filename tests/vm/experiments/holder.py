# SPDX-License-Identifier: MIT
"""Holds memory of a known kind, for a service of an experiment.

    holder.py KIND MIB
      anon        private pages, each different
      random      the same, and nothing can compress them
      sparse      a page in each 2 MiB, so that its table is for it alone; MIB
                  are those pages, and as much is in tables
      mergeable   private pages in eight different texts, for KSM
      huge        private memory in which huge pages are wanted
      family      the same in a "parent" and its "child", which has given back
                  half of each other huge page and 3/4 of the rest; half as much
                  is private in each
      middle      a family in folios of 64 KiB, of each of which the child has
                  given back a part
      twice       shared memory in huge pages, which the "parent" maps twice
      hugetlb     pages of hugetlbfs
      text        a file that is mapped by threads, of which each has few faults
      leap        nothing, until SIGUSR1 tells it to take all at once, or
                  SIGUSR2 a child of it, which the kernel would rather kill
      thrash      nothing, until SIGUSR1 tells it to write all again and again

For the others, SIGUSR1 pages it out, SIGUSR2 writes every page anew.
"""

import mmap
import os
import signal
import socket
import sys
import threading
from pathlib import Path

PAGE = mmap.PAGESIZE
HUGE_PAGE = 2 << 20
MIDDLE_FOLIO = 64 << 10
MIB = 1 << 20
MAP_HUGETLB = 0x40000
MADV_PAGEOUT = 21
MAP_NORESERVE = 0x4000
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
NO_RESERVE = PRIVATE | MAP_NORESERVE
TEXT_OF_THREAD = 3 * MIB


def say_ready():
    path = os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.connect(path)
        channel.send(b"READY=1")


def write_pages(memory, text_of):
    for at in range(0, len(memory), PAGE):
        memory[at : at + PAGE] = text_of(at // PAGE)


def unique(number):
    return number.to_bytes(8, "little") * (PAGE // 8)


def one_of_eight(number):
    return bytes([number % 8 + 1]) * PAGE


def incompressible(_):
    return os.urandom(PAGE)


TEXTS = {"mergeable": one_of_eight, "random": incompressible}


def hold_sparse(size):
    memory = mmap.mmap(-1, size // PAGE * HUGE_PAGE, flags=NO_RESERVE)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, len(memory), HUGE_PAGE):
        memory[at] = 1
    return memory, None


def hold_text(size):
    """A fault maps the sixteen pages around it, if they are in memory."""
    path = Path(__file__).parent / "text"
    with open(path, "wb") as file:
        file.truncate(size)
    with open(path, "rb") as file:
        while file.read(MIB):
            pass
        memory = mmap.mmap(
            file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ
        )
    every_thread = threading.Barrier(size // TEXT_OF_THREAD + 1)

    def touch(begin):
        for at in range(begin, begin + TEXT_OF_THREAD, 16 * PAGE):
            memory[at]
        every_thread.wait()
        signal.pause()

    threading.stack_size(16 * PAGE)
    for begin in range(0, size, TEXT_OF_THREAD):
        threading.Thread(target=touch, args=(begin,), daemon=True).start()
    every_thread.wait()
    return memory, None


def rename(name):
    Path("/proc/self/comm").write_text(name)


def hold_family(size, folio=HUGE_PAGE):
    """The kernel does not fill again with huge pages what the child has given
    back."""
    memory, _ = hold("huge", size)
    rename("parent")
    done, theirs = os.pipe()
    is_child = os.fork() == 0
    own = hold("anon", size // 2)
    if not is_child:
        os.read(done, 1)
        return (memory, own), None
    rename("child")
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for number, at in enumerate(range(0, size, folio)):
        kept = folio // (4 if number % 2 else 2)
        memory.madvise(mmap.MADV_DONTNEED, at + kept, folio - kept)
    os.write(theirs, b"x")
    while True:
        signal.pause()


def hold_twice(size):
    """Each page is touched in both mappings."""
    rename("parent")
    file = os.memfd_create("twice")
    os.ftruncate(file, size)
    both = [mmap.mmap(file, size) for _ in range(2)]
    for memory in both:
        memory.madvise(mmap.MADV_HUGEPAGE)
        write_pages(memory, unique)
    return both, None


def hold(kind, size):
    if kind == "sparse":
        return hold_sparse(size)
    if kind == "text":
        return hold_text(size)
    if kind == "family":
        return hold_family(size)
    if kind == "middle":
        return hold_family(size, MIDDLE_FOLIO)
    if kind == "twice":
        return hold_twice(size)
    if kind == "hugetlb":
        memory = mmap.mmap(-1, size, flags=PRIVATE | MAP_HUGETLB)
        for at in range(0, size, HUGE_PAGE):
            memory[at] = 1
        return memory, None
    memory = mmap.mmap(-1, size, flags=PRIVATE)
    text_of = TEXTS.get(kind, unique)
    is_huge = kind == "huge"
    memory.madvise(mmap.MADV_HUGEPAGE if is_huge else mmap.MADV_NOHUGEPAGE)
    write_pages(memory, text_of)
    if kind == "mergeable":
        memory.madvise(mmap.MADV_MERGEABLE)
    return memory, lambda: write_pages(memory, unique)


def leap(size):
    def take(*_):
        hold("anon", size)

    def let_child_take(*_):
        if os.fork() == 0:
            Path("/proc/self/oom_score_adj").write_text("1000")
            take()
            os._exit(0)
        os.wait()

    signal.signal(signal.SIGUSR1, take)
    signal.signal(signal.SIGUSR2, let_child_take)
    say_ready()
    while True:
        signal.pause()


def thrash(size):
    def begin(*_):
        _, rewrite = hold("anon", size)
        while True:
            rewrite()

    signal.signal(signal.SIGUSR1, begin)
    say_ready()
    signal.pause()


def main():
    kind, size = sys.argv[1], int(sys.argv[2]) * MIB
    if kind == "leap":
        leap(size)
    if kind == "thrash":
        thrash(size)
    memory, rewrite = hold(kind, size)
    signal.signal(signal.SIGUSR1, lambda *_: memory.madvise(MADV_PAGEOUT))
    signal.signal(signal.SIGUSR2, lambda *_: rewrite())
    say_ready()
    while True:
        signal.pause()


main()
