"""The group of a process: rules, selectors, names."""

import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import harness
from harness import (
    TAG,
    IntegrationTest,
    group,
    need_readable,
    need_root,
    stage,
    unprivileged_user,
    wait_until,
)


def plugin(*options):
    # An estimate would not follow the processes of the machine that come and
    # go, all of which map libc.
    return harness.plugin('Refresh "always"', *options)


class Titled:
    """A process with one thread that sets its title when it is told to. Names
    are read anew once a minute, but a quarter earlier with such a pid."""

    PROGRAM = """
import sys
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
start, end = int(fields[45]), int(fields[46])
title = sys.stdin.readline().strip().encode()
with open("/proc/self/mem", "r+b", 0) as memory:
    memory.seek(start)
    memory.write(title.ljust(end - start, bytes(1)))
print(flush=True)
sys.stdin.read()
"""

    def __init__(self, test):
        for _ in range(100):
            self.process = subprocess.Popen(
                [sys.executable, "-c", self.PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            if self.process.pid % 16 >= 14:
                break
            self.stop()
        test.addCleanup(self.stop)

    def set(self, title):
        self.process.stdin.write(title + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def stop(self):
        if not self.process.stdin.closed:
            self.process.communicate()


class Rules(IntegrationTest):
    def count(self, *options):
        """{group: processes} of one cycle, without the plugin's own."""
        collectd = self.start_collectd(plugin(*options))
        return self.count_in(collectd.next_cycle())

    @staticmethod
    def count_in(cycle):
        return {
            name: cycle.counts(name)[0] for name in cycle.groups if name
        }

    def start_named(self, *names):
        for name in names:
            self.start_shape("anon", name=name)

    def test_first_rule_that_matches_takes_the_process(self):
        self.start_named("gr-a", "gr-b")
        counts = self.count(
            group("first", 'Comm "gr-a@"'),
            group("second", 'Comm "gr-*@"'),
            'Process "gr-b@"',
        )
        self.assertEqual(counts, {"first": 1, "second": 1, "gr-b": 0})

    def test_continue_offers_the_process_to_the_rules_below(self):
        self.start_named("gr-a")
        counts = self.count(
            group("view", 'Comm "gr-*@"', "Continue true"),
            group("view-%{comm}", 'Comm "gr-*@"', "Continue true"),
            'Process "gr-a@"',
        )
        self.assertEqual(counts, {"view": 1, "view-gr-a": 1, "gr-a": 1})

    def test_ignored_process_is_in_no_group(self):
        self.start_named("gr-a", "gr-b")
        counts = self.count(
            '<Ignore>\nComm "gr-a@"\n</Ignore>',
            group("rest", 'Comm "gr-*@"'),
        )
        self.assertEqual(counts, {"rest": 1})

    def test_other_takes_what_is_left(self):
        self.start_shape("anon", name="gr-a", children=2)
        collectd = self.start_collectd(
            plugin('Process "gr-a@"', 'Other "the rest"')
        )
        cycle = collectd.next_cycle()
        counts = self.count_in(cycle)
        self.assertEqual(set(counts), {"gr-a", "the rest"})
        self.assertEqual(counts["gr-a"], 3)
        # All that have memory, and each once.
        self.assertEqual(
            sum(counts.values()), cycle.value("", "count-processes")
        )
        self.assertEqual(
            sum(counts.values()), cycle.value("", "count-matched")
        )

    def test_selectors_of_one_kind_are_alternatives(self):
        self.start_named("gr-a", "gr-b", "gr-c")
        counts = self.count(
            group("either", 'Comm "gr-a@"', 'CommMatch "^gr-b@$"')
        )
        self.assertEqual(counts, {"either": 2})

    def test_globs_and_regexes_tell_upper_case_from_lower(self):
        self.start_named("gr-a")
        counts = self.count(
            group("glob", 'Comm "GR-A@"'),
            group("regex", 'CommMatch "GR-A@"'),
            'Process "GR-A@"',
        )
        self.assertEqual(counts, {"glob": 0, "regex": 0, "GR-A": 0})

    def test_user_goes_by_name_and_by_number(self):
        need_root("becomes another user")
        uid = unprivileged_user()[0]
        name = pwd.getpwuid(uid).pw_name
        shape = self.start_shape("anon", uid=uid, name="gr-a")
        need_readable(shape.root)
        view = ('Comm "gr-a@"', "Continue true")
        collectd = self.start_collectd(
            plugin(
                group("name", f'User "{name}"', *view),
                group("number", f'User "{uid}"', *view),
                group("by-%{user}", f'UserMatch "^{name}$"', 'Comm "gr-a@"'),
            )
        )
        for found in ("name", "number", f"by-{name}"):
            with self.subTest(found):
                self.assert_sums_match(collectd, found, shape.pids)

    def test_selectors_of_different_kinds_have_all_to_hold(self):
        for name in ("gr-a", "gr-b"):
            for word in (f"one{TAG}", "two"):
                self.start_shape("named", name=name, argv_hex=as_hex(word))
        counts = self.count(
            group("both", 'Comm "gr-a@"', 'CommandLine "one@"')
        )
        self.assertEqual(counts, {"both": 1})

    def test_children_come_along(self):
        self.start_shape(
            "anon", name="gr-root", child_name="gr-leaf", children=3
        )
        self.start_named("gr-leaf")
        counts = self.count(
            group("family", 'Comm "gr-root@"', "Children true"),
            group("strangers", 'Comm "gr-leaf@"'),
        )
        self.assertEqual(counts, {"family": 4, "strangers": 1})

    def test_names_are_made_from_captures(self):
        for pool in ("www", "admin", "www"):
            title = f"fpm{TAG}: pool {pool} x"
            self.start_shape("named", argv_hex=as_hex(title))
        counts = self.count(
            group(
                "pool-%{1}", 'CommandLineMatch "^fpm@: pool ([a-z0-9_]+)"'
            )
        )
        self.assertEqual(counts, {"pool-www": 2, "pool-admin": 1})

    def test_pid_file_is_followed(self):
        first, second = self.start_shape("anon"), self.start_shape("anon")
        path = stage().new_directory() / "pid"
        collectd = self.start_collectd(
            plugin(group("service", f'PidFile "{path}"'))
        )
        self.assertEqual(
            self.count_in(collectd.next_cycle()), {"service": 0}
        )
        for shape in (first, second):
            path.write_text(f"{shape.root}\n")
            self.assert_sums_match(collectd, "service", shape.pids)
        path.unlink()
        self.assertEqual(
            self.count_in(collectd.next_cycle()), {"service": 0}
        )

    def test_max_groups_bounds_what_templates_make(self):
        self.start_named("gr-a", "gr-b", "gr-c", "gr-d")
        collectd = self.start_collectd(
            plugin(
                "MaxGroups 2",
                group("fixed", 'Comm "gr-a@"'),
                group("t-%{comm}", 'Comm "gr-*@"'),
                'Other "other"',
            )
        )
        cycle = collectd.next_cycle()
        counts = self.count_in(cycle)
        made = [name for name in counts if name.startswith("t-")]
        self.assertEqual(len(made), 2)
        self.assertEqual(counts["fixed"], 1)
        self.assertEqual(cycle.value("", "count-groups_refused"), 1)
        # Refused processes are in Other, and nothing is lost.
        self.assertEqual(
            sum(counts.values()), cycle.value("", "count-processes")
        )
        collectd.wait_cycles(8)
        self.assertEqual(len(collectd.log_lines(r"MaxGroups")), 1)

    def test_title_that_is_set_late_is_seen(self):
        """As Ruby's $0= does it: argv is written over, and the name stays."""
        titled = Titled(self)
        collectd = self.start_collectd(
            plugin(group("late", 'CommandLineMatch "^late-title@"'))
        )
        collectd.wait_cycles(3)
        titled.set("late-title" + TAG)
        self.assertEqual(collectd.next_cycle().counts("late"), (0, 0))
        wait_until(
            lambda: collectd.next_cycle().counts("late") == (1, 1),
            "the title to be seen",
            60,
        )

    def test_name_that_is_no_longer_made_counts_no_more(self):
        first = self.start_shape("anon", name="gr-a")
        collectd = self.start_collectd(
            plugin("MaxGroups 1", group("t-%{comm}", 'Comm "gr-*@"'))
        )
        self.assertEqual(self.count_in(collectd.next_cycle()), {"t-gr-a": 1})
        second = self.start_shape("anon", name="gr-b")
        self.assertEqual(self.count_in(collectd.next_cycle()), {"t-gr-a": 1})
        first.stop()
        self.assert_sums_match(collectd, "t-gr-b", second.pids)

    def test_without_any_group_there_are_services_and_the_rest(self):
        counts = self.count()
        self.assertGreater(counts.pop("other"), 0)
        for name in counts:
            self.assertTrue(name.endswith(".service"), name)

    def test_without_a_block_it_is_the_same(self):
        collectd = self.start_collectd("")
        self.assertIn("other", collectd.next_cycle())

    def test_blocks_add_up(self):
        self.start_named("gr-a", "gr-b")
        collectd = self.start_collectd(
            plugin('Process "gr-a@"') + "\n" + plugin('Process "gr-b@"')
        )
        self.assertEqual(
            self.count_in(collectd.next_cycle()), {"gr-a": 1, "gr-b": 1}
        )


def as_hex(text):
    return text.encode().hex()


def cgroup_root():
    """The mount point of systemd's hierarchy, if any: that of its name, or
    the unified one."""
    mounts = Path("/proc/mounts").read_text().splitlines()
    named, unified = r"\S+ (\S+) cgroup \S*name=systemd", r"\S+ (\S+) cgroup2 "
    for pattern in (named, unified):
        for line in mounts:
            found = re.match(pattern, line)
            if found:
                return Path(found.group(1))
    return None


class Cgroups(IntegrationTest):
    """Processes in cgroups such as systemd and the container runtimes make."""

    def setUp(self):
        need_root("makes a cgroup")
        self.root = cgroup_root()
        if self.root is None:
            self.skipTest("no cgroup hierarchy is mounted")

    def put(self, shape, path):
        """Moves the processes to a cgroup made for them."""
        made = self.root
        try:
            for name in path.split("/"):
                made = made / name
                if not made.exists():
                    made.mkdir()
                    self.addCleanup(made.rmdir)
            for pid in shape.pids:
                (made / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            self.skipTest(f"cgroup {made}: {error.strerror}")
        # Before its directory goes.
        self.addCleanup(shape.stop)

    def test_processes_are_grouped_by_unit_slice_and_container(self):
        tag = f"smapstest{os.getpid()}"
        container = "0123456789abcdef" * 4
        view = "Continue true"
        service = self.start_shape("anon", mib=4)
        self.put(service, f"{tag}.slice/{tag}-a.service")
        scope = self.start_shape("anon", mib=8)
        self.put(scope, f"{tag}.slice/docker-{container}.scope")
        collectd = self.start_collectd(
            plugin(
                group("slice-%{slice}", f'Slice "{tag}.slice"', view),
                group("in-%{container}", 'Container "0123*"', view),
                group("path", f'CgroupMatch "/{tag}[.]slice/"', view),
                group("%{unit}", f'Unit "{tag}-*.service"'),
            )
        )
        both = service.pids + scope.pids
        for name, pids in (
            (f"slice-{tag}.slice", both),
            (f"in-{container}", scope.pids),
            ("path", both),
            (f"{tag}-a.service", service.pids),
        ):
            with self.subTest(name):
                self.assert_sums_match(collectd, name, pids)
