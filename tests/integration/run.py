#!/usr/bin/python3
"""Runs the integration tests: all, or those named on the command line.

    run.py [test_values | test_values.ValuesOfSwap | …]

Ends with the one line "N passed, N failed, N skipped". See harness.py for the
environment.
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BACKENDS = HERE / "backends"
sys.path[:0] = [str(HERE), str(BACKENDS)]
sys.dont_write_bytecode = True

import harness  # noqa: E402  (found by the lines above)


class Result(unittest.TextTestResult):
    """Knows for each test whether it passed. A test with rows (subTest) is one
    test, and has failed if one of its rows has."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}

    def note(self, test, outcome):
        rank = ["passed", "skipped", "failed"]
        name = getattr(test, "test_case", test).id()
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


def load(names):
    loader = unittest.defaultTestLoader
    if names:
        return loader.loadTestsFromNames(names)
    return unittest.TestSuite(
        loader.discover(str(directory), "test_*.py", str(directory))
        for directory in (HERE, BACKENDS)
    )


def main():
    try:
        harness.stage()
    except (harness.HarnessError, OSError) as error:
        print(f"integration tests: {error}", file=sys.stderr)
        print("0 passed, 1 failed, 0 skipped")
        return 1
    runner = unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2, descriptions=False, resultclass=Result
    )
    result = runner.run(load(sys.argv[1:]))
    for test, reason in result.skipped:
        print(f"skipped {test.id()}: {reason}")
    failed = result.count("failed")
    print(
        f"{result.count('passed')} passed, {failed} failed, "
        f"{result.count('skipped')} skipped"
    )
    return 1 if failed or not result.outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
