# SPDX-License-Identifier: MIT
"""The rows of contrib/migration/README, side by side: what another tool makes
of its configuration, and what the plugin makes of ours, of the same processes.

process-exporter and netdata's apps.plugin are taken from where their packages
have them, or from PROCESS_EXPORTER and APPS_PLUGIN."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import (
    KIB,
    MIB,
    PAGE_SIZE,
    ROOT,
    TAG,
    IntegrationTest,
    check_config,
    plugin,
    stage,
    wait_until,
)
from server import BackendTest, fetch, free_port

README = (ROOT / "contrib/migration/README").read_text()

# A value that both take of the same idle processes, a moment apart: the libc's
# other users come and go meanwhile.
SLACK = 256 * KIB
# Since Linux 6.2 the rss of stat, which the exporter reads, lags behind by a
# batch of pages for each processor, of files, of anonymous memory and of shmem.
PROCESSORS = os.cpu_count()
STAT_LAG = 3 * PROCESSORS * max(32, 2 * PROCESSORS) * PAGE_SIZE


def tagged(text):
    """The rows say "web" where this run has processes of another name."""
    return text.replace("web", f"web{TAG}")


def group(name, *lines, children=False):
    body = "\n".join([*lines, "Children true" if children else ""])
    return f'<Group "{name}">\n{body}\n</Group>'


class MigrationTest(IntegrationTest):
    def check_rows_are_written(self, *rows):
        words = " ".join(README.split())
        for row in rows:
            self.assertIn(" ".join(row.split()), words)

    def start_web(self):
        """A service has three processes; a fourth one does not belong to it.
        Four have its name in their command line: with who has started them."""
        self.start_shape("anon", name="else", mib=4)
        return self.start_shape("cow", name="web", mib=16, children=2)

    def start_ours(self, config, **options):
        return self.start_collectd(
            f'<Plugin smaps>\nRefresh "always"\nReport "detail"\n'
            f"{tagged(config)}\n</Plugin>",
            **options,
        )


class ControlGroups(MigrationTest):
    def test_groups_of_a_line_are_taken(self):
        lines = re.findall(r'(<Group "\S+">) (\w+) ("\S+")', README)
        self.assertEqual(len(lines), 2)
        for begin, option, value in lines:
            with self.subTest(begin):
                status, said = check_config(
                    plugin(begin, f"{option} {value}", "</Group>")
                )
                self.assertEqual(status, 0, said)


class Processes(MigrationTest, BackendTest):
    """collectd's own plugin runs in the same daemon."""

    def measure(self, theirs, ours):
        self.check_rows_are_written(*theirs.split("\n"))
        daemon = self.start_daemon(
            "LoadPlugin smaps\nLoadPlugin processes\n"
            f"<Plugin processes>\n{tagged(theirs)}\n</Plugin>\n"
            f'<Plugin smaps>\nReport "detail"\n{tagged(ours)}\n</Plugin>\n'
        )
        cycle = daemon.next_cycle()
        groups = daemon.values(plugin="processes")
        last = {
            name: {metric: rows[-1][1:] for metric, rows in metrics.items()}
            for name, metrics in groups.items()
        }
        return cycle, last

    def check(self, theirs, ours, *names):
        self.start_web()
        cycle, groups = self.measure(theirs, ours)
        for name in names:
            self.assertEqual(cycle.counts(name), groups[name]["ps_count"])
            self.assertGreaterEqual(cycle.counts(name)[0], 3)
            for our_name, their_name in (
                ("memory-resident", "ps_rss"),
                ("ps_vm", "ps_vm"),
            ):
                self.assert_near(
                    cycle.value(name, our_name),
                    groups[name][their_name][0],
                    4 * SLACK,
                    our_name,
                )
            # The program alone counts here, its libraries too there.
            self.assertLess(
                cycle.value(name, "ps_code"), groups[name]["ps_code"][0]
            )

    def test_process_is_the_same(self):
        line = 'Process "web"'
        self.check(line, line, "web")

    def test_continue_lets_a_process_match_twice(self):
        ours = (
            '<Group "web"> Comm "web" Continue true </Group> '
            'ProcessMatch "all" "name=web"'
        )
        lines = re.sub(r" (?=Comm|Continue|<.Group|Process)", "\n", ours)
        self.check(
            'Process "web"\nProcessMatch "all" "name=web"', lines, "web", "all"
        )


class ProcessExporter(MigrationTest, BackendTest):
    def setUp(self):
        self.program = os.environ.get("PROCESS_EXPORTER") or shutil.which(
            "prometheus-process-exporter"
        )
        if not self.program:
            self.skipTest("needs prometheus-process-exporter")

    def ask(self, item, options):
        path = stage().new_directory() / "config.yml"
        path.write_text("process_names:\n  - " + item.replace("\n", "\n    "))
        port = free_port()
        server = self.start_server(
            [self.program, "-config.path", path, "-web.listen-address",
             f"127.0.0.1:{port}", *options]
        )  # fmt: skip
        server.wait_port(port)
        text = fetch(f"http://127.0.0.1:{port}/metrics")[2].decode()
        return {
            (name, group_, memtype): float(value)
            for name, group_, memtype, value in re.findall(
                r'^namedprocess_namegroup_(\w+)\{groupname="([^"]*)"'
                r'(?:,memtype="(\w+)")?\} (\S+)$',
                text,
                re.MULTILINE,
            )
        }

    def check(self, item, ours, name, *options, count=3):
        """One item of process_names, and the group that it becomes."""
        theirs = self.ask(tagged(item), options)
        cycle = self.start_ours(ours).next_cycle()
        processes, threads = cycle.counts(name)
        their_name = tagged(name)
        self.assertEqual(processes, count)
        self.assertEqual(theirs["num_procs", their_name, ""], processes)
        self.assertEqual(theirs["num_threads", their_name, ""], threads)
        for memtype, ours, lag in (
            ("resident", "memory-resident", STAT_LAG),
            ("virtual", "ps_vm", 0),
            ("proportionalResident", "memory-pss", 0),
            ("proportionalSwapped", "memory-swap", 0),
        ):
            self.assert_near(
                cycle.value(name, ours),
                theirs["memory_bytes", their_name, memtype],
                count * (SLACK + lag),
                memtype,
            )

    def test_items(self):
        shape = stage().shape
        by_name = 'CommandLineMatch "name=web"'
        self.start_web()
        self.check_rows_are_written(
            '- name: "{{.Comm}}" <Group "%{comm}">',
            'comm: [a, b] Comm "a" and, below it, Comm "b"',
            'cmdline: ["a=1", "b=2"] CommandLineMatch "a=1.*b=2|b=2.*a=1"',
        )
        for item, ours, count in (
            ('name: "{{.Comm}}"\ncomm: [web]', group("%{comm}", 'Comm "web"'), 3),
            (f"name: web\ncomm: [web, else{TAG}]",
             group("web", 'Comm "web"', f'Comm "else{TAG}"'), 4),
            ('name: web\ncomm: [web]\ncmdline: ["name=web"]',
             group("web", 'Comm "web"', by_name), 3),
            (f'name: web\nexe: ["{shape}"]\ncmdline: ["name=web"]',
             group("web", f'Executable "{shape}"', by_name), 4),
            ('name: web\nexe: ["shape"]\ncmdline: ["name=web"]',
             group("web", 'Executable "*/shape"', by_name), 4),
            ('name: web\ncmdline: ["mib=16", "name=web"]',
             group("web", 'CommandLineMatch "mib=16.*name=web|name=web.*mib=16"'),
             4),
            ('name: "{{.Matches.pool}}"\ncmdline: ["name=(?P<pool>web)"]',
             group("%{1}", 'CommandLineMatch "name=(web)"'), 4),
        ):  # fmt: skip
            with self.subTest(item):
                self.check(item, ours, "web", count=count)

    def test_names(self):
        self.start_web()
        for theirs, ours, selector in (
            ("{{.ExeFull}}", "%{exe}", 'Executable "*"'),
            ("{{.ExeBase}}", "%{1}", 'ExecutableMatch "([^/]+)$"'),
            ("{{.Username}}", "%{user}", 'UserMatch "."'),
        ):
            with self.subTest(theirs):
                row = f'name: "{theirs}" <Group "{ours}">'
                self.check_rows_are_written(row)
                self.check_name(theirs, ours, selector)

    def check_name(self, theirs, ours, selector):
        """They keep the slashes of a name, as collectd does not."""
        answer = self.ask(tagged(f'name: "{theirs}"\ncomm: [web]'), [])
        cycle = self.start_ours(
            group(ours, 'Comm "web"', selector)
        ).next_cycle()
        (name,) = (g for k, g, _ in answer if k == "num_procs")
        self.assertEqual(cycle.counts(name.lstrip("/").replace("/", "_"))[0], 3)

    def test_children_that_are_called_otherwise(self):
        shape = self.start_shape(
            "forkexec", name="web", child_name="child", mib=8
        )
        shape.command("go")
        item, line = 'name: g\ncomm: [web]', 'Comm "web"'
        self.check(item, group("g", line, children=True), "g", count=2)
        self.check(item, group("g", line), "g", "-children=false", count=1)


class Netdata(MigrationTest):
    PROGRAM = "/usr/lib/netdata/plugins.d/apps.plugin"

    def setUp(self):
        self.program = os.environ.get("APPS_PLUGIN") or self.PROGRAM
        if not os.access(self.program, os.X_OK):
            self.skipTest("needs netdata-core")

    def ask(self, line):
        """Returns {chart: value of the group "app"} in its second interval."""
        directory = stage().new_directory()
        # A parent that no line matches counts with its children. So that not
        # all of the host does, this program has a line.
        own = Path("/proc/self/comm").read_text().strip()
        (directory / "apps_groups.conf").write_text(f"rest: {own}\n{line}\n")
        with open(directory / "out", "wb") as out:
            process = subprocess.Popen(
                [self.program, "1"],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.DEVNULL,
                env={
                    "NETDATA_HOST_PREFIX": "",
                    "NETDATA_USER_CONFIG_DIR": str(directory),
                    "NETDATA_STOCK_CONFIG_DIR": str(directory),
                },
            )
        try:
            return wait_until(
                lambda: parse_charts((directory / "out").read_text()),
                "two intervals of apps.plugin",
            )
        finally:
            process.kill()
            process.stdin.close()
            process.wait()

    def test_patterns(self):
        self.start_web()
        self.check_rows_are_written(
            'app: web <Group "app"> Comm "web"',
            'app: web* Comm "web*"',
            'app: *web Comm "*web"',
            'app: *name=web* CommandLineMatch "name=web"',
            'app: a b Comm "a" and, below it, Comm "b"',
        )
        for line, selector, count in (
            ("app: web", 'Comm "web"', 3),
            ("app: web*", 'Comm "web*"', 3),
            ("app: *web", 'Comm "*web"', 3),
            ("app: *name=web*", 'CommandLineMatch "name=web"', 4),
            (f"app: web else{TAG}", f'Comm "web"\nComm "else{TAG}"', 4),
        ):
            with self.subTest(line):
                theirs = self.ask(tagged(line))
                ours = self.start_ours(group("app", selector, children=True))
                self.assertEqual(ours.next_cycle().counts("app"), (count, count))
                self.assertEqual(theirs["apps.processes"], count)

    def test_memory_of_their_chart_is_anonymous_memory(self):
        self.start_shape("anon", name="web", mib=16)
        theirs = self.ask(tagged("app: web"))
        cycle = self.start_ours(group("app", 'Comm "web"')).next_cycle()
        self.assertGreaterEqual(theirs["apps.mem"], 16 * MIB)
        self.assertGreaterEqual(cycle.memory("app", "uss"), 16 * MIB)


def parse_charts(text):
    """Amounts of memory are in KiB."""
    found = {}
    for chart, body in re.findall(
        r"^BEGIN (apps\.\w+) \d*\n(.*?)^END", text, re.MULTILINE | re.DOTALL
    ):
        value = re.search(r"^SET app = (\d+)", body, re.MULTILINE)
        if value:
            scale = KIB if chart == "apps.mem" else 1
            found.setdefault(chart, []).append(scale * int(value.group(1)))
    if len(found.get("apps.processes", [])) < 2:
        return None
    return {chart: values[-1] for chart, values in found.items()}
