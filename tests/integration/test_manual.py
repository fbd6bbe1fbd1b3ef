# SPDX-License-Identifier: MIT
"""That the manual and the example name every option, every value and every word
of a snapshot that the code has, and none that it has not; that the README, which
has the most important ones only, names none that the code has not; and that the
manual pages are well-formed."""

import functools
import os
import re
import shutil
import subprocess
import unittest

from harness import PLUGIN, ROOT, check_config, need_program

FACTS = os.environ.get("FACTS") or PLUGIN.parent / "tests/support/facts"
PAGE = ROOT / "contrib/man/collectd-smaps.5"
SNAPSHOT_PAGE = ROOT / "contrib/man/smaps-snapshot.5"
EXAMPLE = ROOT / "collectd-smaps.conf.example"

# Tables of options in the code, and the section of the manual that has them.
SECTIONS = {
    "top": "Options of the plugin",
    "group": "Options of a group",
    "ignore": "Options of Ignore",
    "capture": "Options of Capture",
    "alarms": "Options of Alarms",
}
# What collectd itself has, in the example.
OF_COLLECTD = {"LoadPlugin", "Plugin"}


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


# ---- what the code has ----


@functools.lru_cache(maxsize=None)
def facts(kind):
    """The tables of the code, see tests/support/facts.c: words of each line."""
    done = subprocess.run([FACTS], stdout=subprocess.PIPE, check=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    found = [words[1:] for words in lines if words[0] == kind]
    assert found, f"no {kind}"
    return found


def names(kind):
    return {words[0] for words in facts(kind)}


def code_options():
    """Returns all options that the code knows, selectors too."""
    return set.union(*map(names, [*SECTIONS, "selector"]))


def refusal(text):
    """The line that collectd -T says of a configuration."""
    _, said = check_config(f"<Plugin smaps>\n{text}\n</Plugin>\n")
    found = re.search("smaps plugin: .*expected.*", said)
    return found.group() if found else ""


def code_ranges():
    """Returns {option: (least, most)} of times and of a percentage, as the
    message about a value out of range names them."""
    what = r"(?:number of \w+|percentage of one CPU), without quotes[a-z ]*,"
    pattern = rf"expected a {what} from ([\d.]+) to ([\d.]+)"
    texts = {option: f"{option} -1" for option in names("top")}
    for option in names("capture"):
        texts[option] = f"<Capture>\n{option} -1\n</Capture>"
    found = {
        option: re.search(pattern, refusal(text))
        for option, text in texts.items()
    }
    return {option: match.groups() for option, match in found.items() if match}


def code_placeholders():
    said = refusal('<Group "%{nothing-like-it}">\nComm "a"\n</Group>')
    return set(re.findall(r"%{([a-z_]+)}", said.partition("expected")[2]))


# ---- what the manual has ----


def page_section(title):
    found = re.search(
        rf"^\.S[sh] {re.escape(title)}$(.*?)(?=^\.S[sh] )",
        read(PAGE),
        re.MULTILINE | re.DOTALL,
    )
    return found.group(1) if found else ""


def page_items(title):
    """Returns {option: the rest of the line of .It Cm OPTION}, and of .It Cm A
    , B."""
    items = {}
    section = page_section(title)
    for line in re.findall(r"^\.It Cm (.+)$", section, re.MULTILINE):
        names, _, value = line.partition(" Ar ")
        for name in re.findall(r"\w+", names):
            items[name] = value
    return items


def page_identifiers(*titles):
    """Returns the identifiers of all .It Li A , B."""
    return {
        name
        for title in titles
        for line in re.findall(r"^\.It Li (.+)$", page_section(title), re.M)
        for name in re.findall(r"[\w-]+", line)
    }


# ---- what the manual of snapshots has ----


def snapshot_key(key, end=r"^\.It Li "):
    """The text of a key, up to the next one or to another end."""
    found = re.search(
        rf"^\.It Li {key}$(.*?){end}", read(SNAPSHOT_PAGE), re.M | re.S
    )
    return found.group(1)


def snapshot_items(text, macro="Li"):
    """Returns the words of all .It Li A , B."""
    lines = re.findall(rf"^\.It {macro} (.+)$", text, re.MULTILINE)
    return {word for line in lines for word in re.findall(r"\w+", line)}


def snapshot_usage():
    (section,) = re.findall(
        r"^\.Ss Usage$(.*?)^\.Ss ", read(SNAPSHOT_PAGE), re.M | re.S
    )
    return snapshot_items(section)


def snapshot_absences():
    """Returns the reasons in a sentence: explained in parentheses, with an "or"."""
    sentence = snapshot_key("cgroup_absence").partition(":")[2]
    plain = re.sub(r"\([^)]*\)|\\f[BP]", "", sentence)
    return set(re.findall(r"\w+", plain)) - {"or"}


# ---- what the README has ----


def readme_section(title):
    """The lines below a heading that begins so, up to the next heading."""
    (section,) = re.findall(
        rf"^{title}.*\n((?:(?:  .*)?\n)*)", read("README"), re.MULTILINE
    )
    return section


def readme_options():
    """Returns {option: default} of the table; "-" means that there is none."""
    section = readme_section("The ten options that matter most")
    rows = re.findall(r"^  ([A-Z]\w+) +(\S+) {2,}\S", section, re.MULTILINE)
    return {name: value for name, value in rows if name != "Option"}


# ---- what the example has ----


def example_options():
    """[(option, value)], switched on or off, each time it is there."""
    return re.findall(
        r'^\s*#?<?([A-Z]\w+)(?:[ >]+(.*?))?>?$', read(EXAMPLE), re.MULTILINE
    )


class Options(unittest.TestCase):
    def test_tables_are_found(self):
        """A check of the checks below, which prove nothing without them."""
        self.assertIn("Refresh", names("top"))
        self.assertIn("CommandLineMatch", names("selector"))
        self.assertGreater(len(facts("detail")), 30)
        self.assertGreater(len(facts("own")), 10)
        self.assertGreaterEqual(len(code_ranges()), 6)

    def test_manual_has_the_options_of_the_code(self):
        for table, title in {**SECTIONS, "selector": "Selectors"}.items():
            with self.subTest(title):
                self.assertEqual(set(page_items(title)), names(table))

    def test_example_has_the_options_of_the_code(self):
        written = {option for option, _ in example_options()} - OF_COLLECTD
        self.assertEqual(written, code_options())

    def test_readme_has_the_selectors_of_the_code(self):
        words = set(re.findall(r"\w+", read("README")))
        # "With Match at the end".
        known = {s.removesuffix("Match") for s in names("selector")}
        self.assertEqual(known - words, set())

    def test_readme_names_no_unknown_option(self):
        """In its blocks, in its table of options, in angle brackets, and
        CamelCase words and names before a value in the text below the table."""
        blocks = re.findall(
            r"^    <Plugin smaps>\n(.*?)^    </Plugin>", read("README"), re.M | re.S
        )
        written = set(
            re.findall(r"^ +<?([A-Z]\w+)[ >]", "".join(blocks), re.MULTILINE)
        )
        self.assertGreater(len(written), 1)
        written |= set(readme_options())
        written |= set(re.findall(r"<([A-Z]\w+)[> ]", read("README")))
        rules = readme_section("The ten options that matter most")
        values = re.findall(r'\b([A-Z]\w+) (?:"\w+"|true|false)', rules)
        self.assertGreater(len(values), 1)
        written |= set(values) | set(re.findall(r"\b[A-Z]\w+[A-Z]\w*", rules))
        known = code_options()
        # "Must all match (AND)".
        self.assertEqual(written - known - OF_COLLECTD - {"AND"}, set())

    def test_readme_has_ten_options_with_the_defaults_of_the_manual(self):
        table = readme_options()
        self.assertEqual(len(table), 10)
        manual = page_items("Options of the plugin")
        for option, default in table.items():
            with self.subTest(option):
                of_manual = manual[option]
                if default == "-":
                    self.assertIn(of_manual, ("name", "path"))
                else:
                    self.assertEqual(of_manual, default)

    def test_defaults_are_the_same_in_manual_and_example(self):
        """Those of the code are in the example, see test_config.py."""
        manual = {}
        for title in SECTIONS.values():
            manual.update(page_items(title))
        for option, value in example_options():
            default = manual.get(option, "")
            if re.search(r"[0-9]|true|false|^/|^default|^adaptive", default):
                with self.subTest(option):
                    self.assertEqual(value.replace('"', ""), default)

    def test_defaults_are_the_same_as_in_the_code(self):
        manual = page_items("Options of the plugin")
        for option, default in facts("default"):
            with self.subTest(option):
                self.assertEqual(manual[option], default)

    def test_manual_has_the_ranges_of_the_code(self):
        for option, (least, most) in code_ranges().items():
            with self.subTest(option):
                found = re.search(
                    rf"^\.It Cm {option} .*?(?=^\.It|^\.El)",
                    read(PAGE),
                    re.MULTILINE | re.DOTALL,
                )
                words = " ".join(found.group(0).split())
                self.assertIn(f"from {least} to {most}", words)

    def test_manual_has_the_placeholders_of_the_code(self):
        section = page_section("Names and templates")
        written = set(re.findall(r"%\{([a-z_]+)\}", section))
        self.assertGreater(len(written), 3)
        self.assertEqual(written, code_placeholders())
        for name in written:
            self.assertEqual(
                refusal(f'<Group "%{{{name}}}">\nComm "a"\n</Group>'), ""
            )


class Values(unittest.TestCase):
    def test_manual_has_the_values_of_the_code(self):
        for kind, *titles in (
            ("detail", "By default", "Values in detail"),
            ("published", "By default"),
            ("own", "Of the plugin itself"),
            ("host", "Of the host"),
        ):
            with self.subTest(kind):
                self.assertEqual(page_identifiers(*titles), names(kind))

    def test_readme_has_the_values_that_are_published_by_default(self):
        table = readme_section("Values of a group")
        written = re.findall(r"^  ([a-z_]+(?:-[a-z_]+)?) {2,}", table, re.M)
        self.assertEqual(set(written), page_identifiers("By default"))

    def test_thresholds_are_of_values_that_there_are(self):
        text = read("contrib/alerts/thresholds.conf")
        named = re.findall(r'<Type (\w+)>\n +Instance "(\w+)"', text)
        self.assertGreater(len(named), 7)
        known = names("detail") | names("own") | names("percent")
        self.assertEqual({"-".join(name) for name in named} - known, set())

    def test_no_document_names_an_unknown_value(self):
        known = names("detail") | names("own") | names("percent")
        known |= names("host")
        for path in ("README", PAGE.relative_to(ROOT)):
            found = re.findall(
                r"\b(?:memory|bytes|count|duration|percent)-[a-z_]+\b", read(path)
            )
            with self.subTest(str(path)):
                self.assertGreater(len(found), 10)
                self.assertEqual(set(found) - known, set())


class Security(unittest.TestCase):
    """contrib/SECURITY: its limits are those of the code, and its findings are in
    the history."""

    LIMITS = (
        ("4 threads, one of", "read/worker_pool.h", "WORKER_POOL_MAX 4"),
        ("matched for 250 ms", "match/match.h", "MATCH_BUDGET_NS (UINT64_C(250) *"),
        ("at most 8,192, with", "proc/procfs.h", "PROCFS_KEPT_MAX 8192"),
        ("beyond 1,024, at", "proc/procfs.h", "PROCFS_KEPT_LEAST_FD 1024"),
        ("at most 4 MiB", "process/container_lookup.h", "FILE_MOST (4 << 20)"),
        ("16 MiB in an", "process/container_names.c", "USERS_MOST ((size_t)4 * C"),
        ("has 256 MiB at most", "snapshot/json.h", "JSON_MAX ((size_t)256 << 20)"),
        ("have 16,384 names", "proc/mapping.h", "MAPPING_NAMES_MAX 16384"),
        ("of 1 MiB together", "proc/mapping.h", "NAME_BYTES_MAX ((size_t)1 << 20)"),
        ("at most 32 MiB of it", "snapshot/resume.h", "RESUME_MAX ((size_t)32 << 20)"),
        ("100 ms without the", "config/settings.c", "unsampled_lock_hold_ns = 100"),
        ("64 MiB of StateHistory", "snapshot/writer.c", "HISTORY_BYTES (UINT64_C(64)"),
    )
    DEFAULTS = (
        ("1,000 groups in an hour (MaxGroups)", "MaxGroups", "1000"),
        ("ReadBudget: 1 % of a processor", "ReadBudget", "1"),
        ("MaxLockHold (5 ms; 100", "MaxLockHold", "5"),
    )

    def test_limits_are_those_of_the_code(self):
        words = " ".join(read("contrib/SECURITY").split())
        for said, path, defined in self.LIMITS:
            with self.subTest(said):
                self.assertIn(said, words)
                self.assertIn(defined, read(f"plugin/core/{path}"))
        manual = page_items("Options of the plugin")
        for said, option, default in self.DEFAULTS:
            with self.subTest(said):
                self.assertIn(said, words)
                self.assertEqual(manual[option], default)

    def test_findings_are_in_the_history(self):
        found = read("contrib/SECURITY").partition("What was found until now")[2]
        quoted = re.findall(r'"([^"]+)"', " ".join(found.split()))
        self.assertGreater(len(quoted), 10)
        shallow = ROOT / ".git/shallow"
        if not shallow.parent.exists() or shallow.exists() or not shutil.which("git"):
            self.skipTest("needs git and a whole clone")
        log = subprocess.run(
            ["git", "-c", "safe.directory=*", "log", "--format=%s"],
            cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE,
        ).stdout  # fmt: skip
        for words in quoted:
            with self.subTest(words):
                self.assertIn(words, log)


class Snapshots(unittest.TestCase):
    def test_manual_has_the_amounts_of_the_code(self):
        self.assertEqual(snapshot_usage(), names("amount"))

    def test_manual_has_the_causes_of_errors_of_the_code(self):
        causes = snapshot_items(snapshot_key("pss_error_by", r"^\.El$"))
        self.assertEqual(causes, names("cause"))

    def test_manual_has_the_attributes_of_the_code(self):
        attributes = snapshot_items(snapshot_key("ppid", "^Its names"))
        self.assertEqual(attributes, names("attribute") | {"uid"})

    def test_manual_has_the_sources_of_the_code(self):
        sources = snapshot_items(snapshot_key("source", r"^\.El$"), "Dq")
        self.assertEqual(sources, names("source"))

    def test_manual_has_the_deferrals_of_the_code(self):
        quoted = re.findall(r'"(\w+)"', snapshot_key("deferred"))
        self.assertEqual(set(quoted), names("deferral"))

    def test_manual_has_the_absences_of_the_code(self):
        self.assertEqual(snapshot_absences(), names("absence"))


class Pages(unittest.TestCase):
    def pages(self):
        return sorted((ROOT / "contrib/man").glob("*.[1-8]"))

    def test_pages_are_well_formed(self):
        need_program("mandoc")
        for page in self.pages():
            with self.subTest(page.name):
                said = self.say("mandoc", "-T", "lint", str(page))
                # Ours are not installed where they are tested; and what the
                # host has of others is the host's affair.
                lines = [
                    line
                    for line in said.splitlines()
                    if not re.search(r"manual not found|outdated mandoc", line)
                ]
                self.assertEqual(lines, [])

    def test_pages_are_formatted_without_a_warning(self):
        need_program("man", "man-db")
        for page in self.pages():
            with self.subTest(page.name):
                said = self.say("man", "--warnings", "-l", str(page))
                self.assertEqual(said, "")

    def say(self, *command):
        """Returns standard error, and the standard output of mandoc's lint."""
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={
                "PATH": "/usr/bin:/bin",
                "LC_ALL": "C.UTF-8",
                "MANWIDTH": "80",
            },
        )
        is_lint = command[0] == "mandoc"
        return (done.stdout if is_lint else "") + done.stderr
