# SPDX-License-Identifier: MIT
"""For the tests of smaps-report html: documents, the words of the page, and one
browser that opens it."""

import unittest

import browser
from snapshot import group_of, process_of
from report import MIB, STATE, ReportTest, load

KIB = 1024


def human(value):
    if value is None:
        return "–"
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    rest = abs(value)
    while rest >= 999.5 and len(units) > 1:
        rest /= 1024
        units.pop(0)
    digits = 0 if units[0] == "B" or rest >= 99.95 else 1 if rest >= 9.995 else 2
    return f"{'−' if value < 0 else ''}{rest:.{digits}f} {units[0]}"


def amount(value, error=None):
    if value is not None and error is not None and error > value / 20:
        return f"{human(value)} ± {human(error)}"
    return human(value)


def usage_of(process):
    return process.get("usage", {})


def many(n, command_len=120, more=0):
    """A state of n processes in sixty groups."""
    document = load(STATE)
    usage = group_of(document, "postgres")["usage"]
    names = [f"service-{i}.service" for i in range(60)]
    document["groups"] = [
        {"name": name, "rule": 0, "processes": n // 60, "usage": usage}
        for name in names
    ]
    base = process_of(document, 700)
    document["processes"] = [
        {
            **base,
            "pid": 1000 + i,
            "groups": [names[i % 60]],
            "command_line": f"/usr/lib/service/bin/worker --number {i} ".ljust(
                command_len, "x"
            ),
            "uptime": 123456.789 + i,
            "source": "estimated",
            "age": 12.345678 + i,
            "pss_error": 1000 * i,
            "usage": {**base["usage"], "pss": 90 * MIB + KIB * (i + more)},
        }
        for i in range(n)
    ]
    return document


class Html(ReportTest):
    def html(self, *args):
        return self.report("html", *args)


the_browser = None


def start_browser():
    """One for all tests of this file: it takes longest to start."""
    global the_browser
    if the_browser is None:
        the_browser = browser.Browser()
        unittest.addModuleCleanup(the_browser.close)
    return the_browser


@unittest.skipUnless(browser.PATH, "needs chromium-headless-shell")


class Page(Html):
    def setUp(self):
        super().setUp()
        self.tab = start_browser()
        self.tab.resize(1280, 900)
        self.tab.emulate("light")

    def open(self, document, old=None, hash_=""):
        paths = [
            self.write(one, f"{i}.json") if isinstance(one, dict) else one
            for i, one in enumerate((document, old))
            if one is not None
        ]
        page = self.directory / "report.html"
        page.write_text(self.html(*paths), encoding="utf-8")
        self.tab.open(page, hash_)
        self.assert_quiet()
        return self.tab

    def assert_quiet(self):
        """No error, and nothing was asked for but the file."""
        self.assertEqual(self.tab.complaints, [])
        files = {url.partition("#")[0] for url in self.tab.requests}
        self.assertEqual(files, {f"file://{self.directory}/report.html"})

    def table(self, section):
        """Returns [{title: text}] of the rows of a table."""
        titles = self.tab.texts(f"{section} thead th button")
        cells = self.tab.evaluate(
            f"[...document.querySelectorAll('{section} tbody tr')]"
            ".map(r => [...r.cells].map(c => c.textContent))"
        )
        return [dict(zip(titles, row)) for row in cells]

    def sort_by(self, section, title):
        titles = self.tab.texts(f"{section} thead th button")
        self.tab.click(f"{section} thead th button", titles.index(title))

    def path(self):
        return self.tab.texts("#path button, #path [aria-current]")

    def tiles(self):
        """{name: amount}, from the labels of the tiles that can be chosen."""
        labels = self.tab.attributes("#tiles .level1", "aria-label")
        rows = [label.split("\n") for label in labels]
        return {row[0]: row[1].split(",")[0] for row in rows}

    def focus(self):
        return self.tab.evaluate("document.activeElement.textContent")
