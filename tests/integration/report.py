# SPDX-License-Identifier: MIT
"""Runs smaps-report on documents."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness

KIB = harness.KIB
MIB = harness.MIB
REPORT = Path(
    os.environ.get("REPORT") or harness.PLUGIN.parent / "smaps-report"
).resolve()
FIXTURES = harness.ROOT / "tests/fixtures/snapshot"
STATE = FIXTURES / "state.json"
CAPTURE = FIXTURES / "capture.json"

def environment(**changes):
    """A plain one, in which text is UTF-8. None takes a variable away."""
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC0", **changes}
    for name in ("COLUMNS", "NO_COLOR"):
        if name not in changes:
            env.pop(name, None)
    return {name: value for name, value in env.items() if value is not None}


def run(*args, stdin=b"", env=None, **options):
    if args[:1] == ("check",):
        harness.need_host_name()
    done = subprocess.run(
        [REPORT, *map(str, args)],
        input=stdin,
        capture_output=True,
        env=env or environment(),
        timeout=harness.DEADLINE_SECONDS,
        check=False,
        **options,
    )
    done.text = done.stdout.decode("utf-8")
    done.words = done.stderr.decode("utf-8")
    return done


class ReportTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)

    def write(self, document, name="document.json"):
        path = self.directory / name
        if not isinstance(document, bytes):
            document = json.dumps(document).encode()
        path.write_bytes(document)
        return path

    def report(self, *args, **options):
        """The text that it prints when all is well."""
        done = run(*args, **options)
        self.assertEqual((done.returncode, done.words), (0, ""), args)
        return done.text

    def rows(self, *args, **options):
        """Returns the lines below the heading, as words."""
        text = self.report(*args, **options)
        text = re.sub(r"\A.*(UTC|time unknown).*\n\n", "", text)
        return [line.split() for line in text.splitlines()]

    def json(self, *args, **options):
        """Returns the rows below the headings."""
        rows = json.loads(self.report("-j", *args, **options))
        self.assertEqual(rows[0]["row"], "document")
        return [row for row in rows if row["row"] != "document"]

    def assert_fails(self, words, *args, **options):
        done = run(*args, **options)
        self.assertEqual(done.returncode, 2, (args, done))
        self.assertEqual(done.words.count("\n"), 1, done.words)
        self.assertIn(words, done.words)
        self.assertTrue(done.words.startswith("smaps-report: "), done.words)
        return done


def load(path):
    return json.loads(path.read_text())


def group_of(document, name):
    return next(g for g in document["groups"] if g["name"] == name)
