"""That the manual and the example name every option and every value that the
code has, and none that it has not; that the README, which has the most
important ones only, names none that the code has not; and that the manual pages
are well-formed."""

import re
import shutil
import subprocess
import unittest

from harness import ROOT

PAGE = ROOT / "contrib/man/collectd-smaps.5"
EXAMPLE = ROOT / "collectd-smaps.conf.example"

# Tables of options in the code, and the section of the manual that has them.
SECTIONS = {
    "top": "Options of the plugin",
    "group": "Options of a group",
    "ignore": "Options of Ignore",
    "capture": "Options of Capture",
}
# What collectd itself has, in the example.
OF_COLLECTD = {"LoadPlugin", "Plugin"}


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def sources():
    return "\n".join(read(p) for p in sorted((ROOT / "plugin").rglob("*.c")))


# ---- what the code has ----


def code_options():
    """{table: [option …]} of all `const struct option NAME_options[]`."""
    tables = re.findall(
        r"const struct option (\w+)_options\[\] = \{(.*?)\};",
        sources(),
        re.DOTALL,
    )
    return {name: re.findall(r'\{"(\w+)"', body) for name, body in tables}


def code_selectors():
    text = read("plugin/core/selector.c")
    (body,) = re.findall(r"selector_options\[\] = \{(.*?)\};", text, re.DOTALL)
    return [*re.findall(r'"(\w+)"', body), "PidFile"]


def code_metrics():
    """{name in Report: identifier}."""
    text = read("plugin/core/metric.c")
    (body,) = re.findall(
        r"struct metric metrics\[\] = \{(.*?)\n\};", text, re.DOTALL
    )
    kernel_fields = re.findall(r'KERNEL\("(\w+)"', body)
    metrics = {name: f"memory-{name}" for name in kernel_fields}
    for name, type_, instance in re.findall(
        r'\{"(\w+)",\s*"(\w+)",\s*"(\w*)"', body
    ):
        metrics[name] = f"{type_}-{instance}" if instance else type_
    return metrics


def code_own_values():
    rows = re.findall(r'\{"(\w+)", "(\w+)", ', read("plugin/submit.c"))
    return {f"{type_}-{instance}" for type_, instance in rows}


def code_ranges():
    """{option: (least, most)} of those that are times."""
    functions = re.findall(
        r"static int (apply_\w+)\([^)]*\) \{\s*return option_time\("
        r"scope, item, \"\w+\", \w+,\s*([\d.]+),\s*([\d.]+),",
        sources(),
    )
    rows = re.findall(r'\{"(\w+)", (apply_\w+)\}', sources())
    options = {function: option for option, function in rows}
    return {options[f]: (least, most) for f, least, most in functions}


# ---- what the manual has ----


def page_section(title):
    found = re.search(
        rf"^\.S[sh] {re.escape(title)}$(.*?)(?=^\.S[sh] )",
        read(PAGE),
        re.MULTILINE | re.DOTALL,
    )
    return found.group(1) if found else ""


def page_items(title):
    """{option: the rest of the line of .It Cm OPTION}, and of .It Cm A , B."""
    items = {}
    section = page_section(title)
    for line in re.findall(r"^\.It Cm (.+)$", section, re.MULTILINE):
        names, _, value = line.partition(" Ar ")
        for name in re.findall(r"\w+", names):
            items[name] = value
    return items


def page_identifiers(*titles):
    """Of all .It Li A , B."""
    return {
        name
        for title in titles
        for line in re.findall(r"^\.It Li (.+)$", page_section(title), re.M)
        for name in re.findall(r"[\w-]+", line)
    }


# ---- what the example has ----


def example_options():
    """[(option, value)], switched on or off, each time it is there."""
    return re.findall(
        r'^\s*#?<?([A-Z]\w+)(?:[ >]+(.*?))?>?$', read(EXAMPLE), re.MULTILINE
    )


class Options(unittest.TestCase):
    def test_tables_are_found(self):
        """Of the checks below; what finds nothing proves nothing."""
        tables = code_options()
        self.assertLessEqual({"top", "group", "ignore"}, set(tables))
        self.assertLessEqual(set(tables), set(SECTIONS))
        self.assertIn("Refresh", tables["top"])
        self.assertIn("CommandLineMatch", code_selectors())
        self.assertGreater(len(code_metrics()), 30)
        self.assertGreater(len(code_own_values()), 10)
        self.assertGreaterEqual(len(code_ranges()), 3)

    def test_manual_has_the_options_of_the_code(self):
        tables = code_options()
        for table, title in SECTIONS.items():
            with self.subTest(title):
                options = set(tables.get(table, []))
                self.assertEqual(set(page_items(title)), options)

    def test_manual_has_the_selectors_of_the_code(self):
        self.assertEqual(set(page_items("Selectors")), set(code_selectors()))

    def test_example_has_the_options_of_the_code(self):
        known = {o for options in code_options().values() for o in options}
        known |= set(code_selectors())
        written = {option for option, _ in example_options()} - OF_COLLECTD
        self.assertEqual(written, known)

    def test_readme_has_the_selectors_of_the_code(self):
        words = set(re.findall(r"\w+", read("README")))
        # "With Match at the end".
        known = {s.removesuffix("Match") for s in code_selectors()}
        self.assertEqual(known - words, set())

    def test_readme_has_no_option_that_is_none(self):
        """In its blocks, and CamelCase that is followed by a value in its
        text."""
        text = read("README")
        blocks = re.findall(
            r"^    <Plugin smaps>\n(.*?)^    </Plugin>", text, re.M | re.S
        )
        written = set(
            re.findall(r"^ +<?([A-Z]\w+)[ >]", "".join(blocks), re.MULTILINE)
        )
        self.assertGreater(len(written), 5)
        rules = text[text.index("\nRules, ") : text.index("\nWhat it costs")]
        values = re.findall(r'\b([A-Z]\w+) (?:"\w+"|true|false)', rules)
        self.assertGreater(len(values), 3)
        written |= set(values) | set(re.findall(r"\b[A-Z]\w+[A-Z]\w*", rules))
        known = {o for options in code_options().values() for o in options}
        known |= set(code_selectors())
        # Fields of the kernel's, and of systemd's units.
        known |= {"Pss_Anon", "KSM", "NFS", "POSIX", "MemTotal", "CPUQuota"}
        known |= {"CPUSchedulingPolicy"}
        self.assertEqual(written - known, set())

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

    def test_defaults_are_those_of_the_code(self):
        manual = page_items("Options of the plugin")
        text = sources() + read("include/smaps/settings.h")
        text += read("include/smaps/policy.h")
        for option, pattern in (
            ("MaxGroups", r"MAX_GROUPS_DEFAULT (\d+)"),
            ("ReadBudget", r"READ_BUDGET_DEFAULT_NS \((\d+) \* NS_PER_MS\)"),
            ("MaxAge", r"\.max_age_ns = (\d+) \* NS_PER_S"),
            ("MaxStall", r"\.max_stall_ns = (\d+) \* NS_PER_MS"),
        ):
            with self.subTest(option):
                (default,) = re.findall(pattern, text)
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
        (body,) = re.findall(
            r"placeholder\w*\[\w*\] = \{(.*?)\};",
            read("plugin/core/template.c"),
            re.DOTALL,
        )
        names = set(re.findall(r'"(\w+)"', body))
        self.assertGreater(len(names), 3)
        section = page_section("Names and templates")
        self.assertEqual(set(re.findall(r"%\{([a-z]+)\}", section)), names)


class Values(unittest.TestCase):
    def test_manual_has_the_values_of_groups(self):
        written = page_identifiers("By default", "In detail")
        self.assertEqual(written, set(code_metrics().values()))

    def test_manual_tells_default_from_detail(self):
        text = read("plugin/core/metric.c")
        names = re.findall(r'KERNEL\("(\w+)", \w+, true\)', text)
        names += re.findall(r'\{"(\w+)",[^{}]*?, true,\s+\w+\}', text)
        metrics = code_metrics()
        self.assertEqual(
            page_identifiers("By default"), {metrics[name] for name in names}
        )

    def test_manual_has_the_values_of_the_plugin_itself(self):
        written = page_identifiers("Of the plugin itself")
        self.assertEqual(written, code_own_values())

    def test_readme_has_the_values_that_are_published_by_default(self):
        (table,) = re.findall(
            r"^What comes out: smaps-GROUP.*?\n((?:  .*\n)*)",
            read("README"),
            re.MULTILINE,
        )
        written = re.findall(r"^  ([a-z_]+(?:-[a-z]+)?) {2,}", table, re.M)
        self.assertEqual(set(written), page_identifiers("By default"))

    def test_nothing_names_a_value_that_is_none(self):
        known = {*code_metrics().values(), *code_own_values()}
        known |= {f"percent-{name}" for name in code_metrics()}
        for path in ("README", PAGE.relative_to(ROOT)):
            found = re.findall(
                r"\b(?:memory|count|duration|percent)-[a-z_]+\b", read(path)
            )
            with self.subTest(str(path)):
                self.assertGreater(len(found), 10)
                self.assertEqual(set(found) - known, set())


class Pages(unittest.TestCase):
    def pages(self):
        return sorted((ROOT / "contrib/man").glob("*.[1-8]"))

    def test_pages_are_well_formed(self):
        self.need("mandoc")
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
        self.need("man")
        for page in self.pages():
            with self.subTest(page.name):
                said = self.say("man", "--warnings", "-l", str(page))
                self.assertEqual(said, "")

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(f"needs {program}")

    def say(self, *command):
        """Standard error, and of mandoc's lint standard output."""
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


if __name__ == "__main__":
    unittest.main()
