#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the integration tests: all, or those named on the command line.

    run.py [test_values | test_values.ValuesInDetail | …]

Files are run side by side, SMAPS_TEST_JOBS at a time (three a processor): tests
wait most of their time for the next interval of a daemon. Ends with a line for
each reason why tests were left out ("left out: N tests: needs root"), and the
line "N passed, N failed, N skipped". See harness.py for the environment.
"""

import os
import re
import signal
import subprocess
import sys
import unittest
from collections import Counter
from concurrent import futures
from pathlib import Path

HERE = Path(__file__).resolve().parent
BACKENDS = HERE / "backends"
sys.path[:0] = [str(HERE), str(BACKENDS), str(HERE.parent / "lib")]
sys.dont_write_bytecode = True

import harness  # noqa: E402  (found by the lines above)


def name_of(test):
    """Of a row (subTest) the name of its test."""
    return getattr(test, "test_case", test).id()


class Result(unittest.TextTestResult):
    """Knows for each test whether it passed. A test with rows (subTest) is one
    test, and has failed if one of its rows has."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}

    def note(self, test, outcome):
        rank = ["passed", "skipped", "failed"]
        name = name_of(test)
        before = self.outcomes.get(name, "passed")
        self.outcomes[name] = max(before, outcome, key=rank.index)

    def startTest(self, test):
        super().startTest(test)
        self.note(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "failed")

    def count(self, outcome):
        return list(self.outcomes.values()).count(outcome)


# These measure the daemon, fill the processor themselves, compare with memory
# that whoever starts a process shares, give the host swap, or have processes
# that hang: these hang for every daemon, and while they do no group is known to
# be empty.
ALONE = ("test_adaptive", "test_descriptors", "test_hang", "test_swap")
# They take a minute, whatever their size; what begins last ends last.
FIRST = ("test_endurance", "test_build")


def all_files():
    """The largest first, since they take longest."""
    paths = [*HERE.glob("test_*.py"), *BACKENDS.glob("test_*.py")]
    paths.sort(
        key=lambda path: (path.stem in FIRST, path.stat().st_size), reverse=True
    )
    return [path.stem for path in paths]


def reason_of(text):
    """Without the details: that of "needs root: mounts FUSE" is "needs root"."""
    return text.partition(":")[0]


def show_left_out(reasons):
    for reason, count in reasons.most_common():
        print(f"left out: {count} test{'s'[count == 1:]}: {reason}")


def run_alone(names):
    """Returns the exit status."""
    try:
        harness.stage()
    except (harness.HarnessError, OSError) as error:
        print(f"integration tests: {error}", file=sys.stderr)
        print("0 passed, 1 failed, 0 skipped")
        return 1
    # What was started ends at our exit; see harness.Collectd.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runner = unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2, descriptions=False, resultclass=Result
    )
    result = runner.run(unittest.defaultTestLoader.loadTestsFromNames(names))
    left_out = {(name_of(test), reason_of(text)) for test, text in result.skipped}
    show_left_out(Counter(reason for _, reason in left_out))
    failed = result.count("failed")
    print(
        f"{result.count('passed')} passed, {failed} failed, "
        f"{result.count('skipped')} skipped"
    )
    return 1 if failed or not result.outcomes else 0


def run_file(name):
    """In a process of its own, which does not outlive us. Returns its output."""
    done = subprocess.run(
        ["setpriv", "--pdeathsig", "TERM", sys.executable, __file__, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        errors="backslashreplace",
    )
    return done.stdout


# What run_alone() prints at its end.
LEFT_OUT = r"left out: (\d+) tests?: (.*)\n"
COUNTS = re.compile(
    rf"^((?:{LEFT_OUT})*)(\d+) passed, (\d+) failed, (\d+) skipped\n\Z", re.M
)


def show(name, output, sums, left_out):
    """Prints the output of a file except its end, which is added to the sums
    and to left_out, a Counter of reasons."""
    end = COUNTS.search(output)
    if end is None:
        print(f"{output}{name} ended before its tests", flush=True)
        sums[1] += 1
        return
    print(output[: end.start()], end="", flush=True)
    for count, reason in re.findall(LEFT_OUT, end[1]):
        left_out[reason] += int(count)
    for i, count in enumerate(end.groups()[-3:]):
        sums[i] += int(count)


def run_side_by_side(names, jobs):
    """Returns the exit status."""
    sums, left_out = [0, 0, 0], Counter()
    with futures.ThreadPoolExecutor(jobs) as pool:
        running = {
            pool.submit(run_file, name): name
            for name in names
            if name not in ALONE
        }
        try:
            for done in futures.as_completed(running):
                show(running[done], done.result(), sums, left_out)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    for name in names:
        if name in ALONE:
            show(name, run_file(name), sums, left_out)
    show_left_out(left_out)
    print(f"{sums[0]} passed, {sums[1]} failed, {sums[2]} skipped")
    return 1 if sums[1] else 0


def main():
    names = sys.argv[1:] or all_files()
    if len(names) == 1:
        return run_alone(names)
    jobs = os.environ.get("SMAPS_TEST_JOBS") or 3 * os.cpu_count()
    return run_side_by_side(names, int(jobs))


if __name__ == "__main__":
    sys.exit(main())
