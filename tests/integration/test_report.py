"""smaps-report on documents written here and on tests/fixtures/snapshot: every
subcommand and option, how it looks on a terminal, hostile and broken
documents. `live` and `check`: test_live."""

import errno
import fcntl
import json
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
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

FLAMEGRAPH = shutil.which("flamegraph.pl") or next(
    (
        path
        for path in ("/usr/share/perl5/Devel/NYTProf/flamegraph.pl",)
        if os.path.exists(path)
    ),
    None,
)

# With sanitizers its address space is no measure.
IS_SANITIZED = REPORT.exists() and b"__asan_init" in REPORT.read_bytes()


def environment(**changes):
    """A plain one, in which text is UTF-8. None takes a variable away."""
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", **changes}
    for name in ("COLUMNS", "NO_COLOR"):
        if name not in changes:
            env.pop(name, None)
    return {name: value for name, value in env.items() if value is not None}


def run(*args, stdin=b"", env=None, **options):
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
        """The lines below the heading, as words."""
        text = self.report(*args, **options)
        text = re.sub(r"\A.*(UTC|time unknown).*\n\n", "", text)
        return [line.split() for line in text.splitlines()]

    def json(self, *args, **options):
        """The rows below the headings."""
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


class Tables(ReportTest):
    def test_groups_and_processes_are_shown_by_pss(self):
        heading, groups, processes = self.report(STATE).split("\n\n")
        self.assertEqual(heading, "db1.example.org, 2026-11-21 13:20:00 UTC")
        groups = [line.split() for line in groups.splitlines()]
        self.assertEqual(
            groups[0],
            ["PSS", "USS", "RSS", "SWAP", "PROCESSES", "COVERAGE", "GROUP"],
        )
        document = load(STATE)
        self.assertEqual(len(groups) - 1, len(document["groups"]))
        for row in groups[1:]:
            usage = group_of(document, row[-1])["usage"]
            for name, cell in zip(("pss", "uss", "rss", "swap"), row):
                want = str(usage[name] // KIB) if name in usage else "-"
                self.assertEqual(cell, want, row)
        known = [int(row[0]) for row in groups[1:] if row[0] != "-"]
        self.assertEqual(known, sorted(known, reverse=True))
        self.assertEqual([row[0] for row in groups[-2:]], ["-", "-"])
        pids = [line.split()[0] for line in processes.splitlines()]
        self.assertEqual(pids[:4], ["PID", "700", "701", "702"])

    def test_standard_input_is_a_file(self):
        self.assertEqual(
            self.report("-", stdin=STATE.read_bytes()), self.report(STATE)
        )

    def test_one_group_and_one_table(self):
        self.assertEqual(
            self.rows("-G", "-H", "-g", "postgres", STATE),
            [["110000", "86000", "429000", "512", "3", "82.0%", "postgres"]],
        )
        rows = self.rows("--processes", "-H", "-c", "pid", "-g", "postgres", STATE)
        self.assertEqual(rows, [["700"], ["701"], ["702"]])
        self.assert_fails('no group "x"', "-g", "x", STATE)

    def test_filters_are_regular_expressions(self):
        def names(*args):
            return [row[-1] for row in self.rows("-GH", *args, STATE)]

        self.assertEqual(
            names("-g", "by-[prw]"), ["by-postgres", "by-root", "by-www-data"]
        )
        self.assertEqual(names("-g", "post"), ["postgres"])
        self.assertEqual(names("-g", ".*post"), ["by-postgres", "postgres"])
        self.assertEqual(names("-g", "by-(root|alice)$", "-t")[-1], "total")
        self.assert_fails('no group "ostgres"', "-g", "ostgres", STATE)

        def pids(*args):
            rows = self.json("--processes", "-c", "pid", *args, STATE)
            return [row["pid"] for row in rows]

        self.assertEqual(pids("-P", "postgres: .*(checkp|walw)"), [701, 702])
        self.assertEqual(pids("-P", "nginx", "-U", "root"), [800])
        self.assertEqual(pids("-U", "0$"), [800, 1, 850])
        self.assertEqual(pids("-U", "nobody"), [])
        self.assertEqual(pids("-P", "nginx", "-g", "by-www"), [801, 802])

    def test_name_of_a_group_means_that_group(self):
        """Though others begin with it."""
        document = load(STATE)
        document["groups"].append({"name": "postgres-old", "processes": 0})
        path = self.write(document)
        rows = self.rows("-GH", "-g", "postgres", path)
        self.assertEqual([row[-1] for row in rows], ["postgres"])
        rows = self.rows("-GH", "-g", "postg", path)
        self.assertEqual({row[-1] for row in rows}, {"postgres", "postgres-old"})

    def test_groups_are_sums_of_the_processes_that_are_left(self):
        args = ("-P", "postgres: ", "-t", "-c", "pss,processes,group", STATE)
        self.assertEqual(
            self.rows("-GH", *args),
            [
                ["20000", "2", "by-postgres"],
                ["20000", "2", "postgres"],
                ["20000", "2", "total"],
            ],
        )

    def test_total_of_some_groups_counts_processes_once(self):
        rows = self.rows("-GHt", "-g", "(by-)?postgres", STATE)
        self.assertEqual(
            rows[-1], ["110000", "86000", "429000", "512", "3", "total"]
        )

    def test_mappings_by_name(self):
        rows = self.rows("-mH", "-M", r"\[heap", CAPTURE)
        self.assertEqual([row[-1] for row in rows], ["[heap]"])
        every = self.rows("-mHt", "-c", "pss,name", CAPTURE)
        some = self.rows("-mHt", "-M", "/", "-c", "pss,name", CAPTURE)
        self.assertLess(int(some[-1][0]), int(every[-1][0]))
        self.assertTrue(all(row[-1].startswith("/") for row in some[:-1]))

    def test_number_of_rows(self):
        every = self.rows("--processes", "-Ht", STATE)
        some = self.rows("--processes", "-Ht", "-n", "3", STATE)
        self.assertEqual(some, every[:3] + every[-1:])
        rows = self.json("-n", "2", STATE)
        self.assertEqual(
            [row["row"] for row in rows], ["group"] * 2 + ["process"] * 2
        )

    def test_heading_has_host_time_and_alarm(self):
        text = self.report("-G", CAPTURE)
        trigger = load(CAPTURE)["trigger"]
        self.assertTrue(
            text.startswith("db1.example.org, 2026-11-21 13:21:0"), text
        )
        self.assertIn(f": {trigger['message']}\n\n", text)
        self.assertNotIn("example.org", self.report("-GH", CAPTURE))
        heading = json.loads(self.report("-j", CAPTURE))[0]
        self.assertEqual(
            heading,
            {"row": "document", "host": "db1.example.org",
             "time": load(CAPTURE)["time"], "message": trigger["message"]},
        )  # fmt: skip

    def test_users_count_processes_once(self):
        rows = {row[-1]: row for row in self.rows("-u", "-H", STATE)}
        self.assertEqual(
            rows["postgres"],
            ["110000", "86000", "429000", "512", "3", "postgres"],
        )
        self.assertEqual(rows["vault"][:4], ["-"] * 4)
        # 802 runs in the memory of its parent.
        self.assertEqual(rows["www-data"][0], "3000")
        self.assertEqual(rows["www-data"][-2], "2")

    def test_mappings(self):
        rows = self.rows("-m", "-t", CAPTURE)
        self.assertEqual(rows[0], ["PSS", "PROCESSES", "PRIVATE_DIRTY", "NAME"])
        self.assertEqual(rows[1], ["73000", "2", "73000", "[heap]"])
        self.assertEqual(rows[-2], ["3000", "1", "900", "[rest]"])
        self.assertEqual(rows[-1], ["102000", "2", "74900", "total"])
        self.assert_fails("has no mappings", "-m", STATE)
        self.assert_fails("has no mappings: only", "-m", "-g", "other", CAPTURE)
        self.assert_fails("no process that", "-m", "-P", "nobody", CAPTURE)

    def test_mappings_that_could_not_be_read_are_told(self):
        document = load(CAPTURE)
        del document["processes"][1]["mappings"]
        some = self.write(document, "some.json")
        told = "the mappings of 1 process could not be read\n"
        for args in ("-m", some), ("diff", CAPTURE, some):
            done = run(*args)
            self.assertEqual((done.returncode, done.words), (0, told), args)
            self.assertRegex(done.text, r"\[heap\]|MAPPING")
        self.assertEqual(run("-m", "-P", "nobody", some, CAPTURE).words.count("\n"), 1)
        self.assertEqual(self.report("explain", some).count("could not be read"), 1)
        del document["processes"][0]["mappings"]
        document["mappings"] = []
        none = self.write(document, "none.json")
        self.assert_fails("these processes could not be read", "-m", none)
        done = run("diff", CAPTURE, none)
        self.assertEqual(done.words, told.replace("1 process", "2 processes"))
        self.assertNotIn("MAPPING", done.text)

    def test_sorting(self):
        def pids(*args):
            return [r[0] for r in self.rows("--processes", "-H", "-c", "pid", *args, STATE)]

        everyone = sorted(p["pid"] for p in load(STATE)["processes"])
        everyone = [str(pid) for pid in everyone]
        self.assertEqual(pids("-s", "pid"), everyone)
        self.assertEqual(pids("-s", "pid", "-r"), everyone[::-1])
        self.assertEqual(pids("-s", "user")[0], "950")
        self.assertEqual(pids("-s", "size", "-r")[-1], "802")

    def test_units(self):
        def pss(*args):
            args = ["-GH", "-g", "postgres", "-c", "pss", *args, STATE]
            return self.rows(*args)[0]

        self.assertEqual(pss(), ["110000"])
        self.assertEqual(pss("-k"), ["107.4M"])
        self.assertEqual(pss("-p"), ["0.66%"])
        document = load(STATE)
        del document["mem_total"]
        path = self.write(document)
        self.assertEqual(self.rows("-GHp", "-c", "pss", path)[0], ["-"])

    def test_columns(self):
        columns = self.rows("-c", "help")
        self.assertGreater(len(columns), 50)
        for option, kind in {
            "-G": "groups", "--processes": "processes", "-u": "users", "-m": "mappings",
        }.items():  # fmt: skip
            with self.subTest(kind):
                self.check_every_column(option, kind, columns)

    def check_every_column(self, option, kind, columns):
        own = [name for name, *kinds in columns if kind in kinds]
        done = self.report(option, "-c", ",".join(own), CAPTURE)
        self.assertEqual(done.splitlines()[2].split(), [n.upper() for n in own])
        for name in {column[0] for column in columns} - set(own):
            args = [option, "-c", name, CAPTURE]
            self.assert_fails("-c: expected columns", *args)

    def test_json_has_the_documents_own_numbers(self):
        rows = self.json("-c", "pid,pss,rss,starttime,unit", STATE)
        processes = load(STATE)["processes"]
        self.assertEqual(len(rows), len(processes))
        for row in rows:
            process = next(p for p in processes if p["pid"] == row["pid"])
            want = {"row": "process"}
            for name in ("pid", "starttime", "unit"):
                if name in process:
                    want[name] = process[name]
            for name in ("pss", "rss"):
                if name in process.get("usage", {}):
                    want[name] = process["usage"][name]
            self.assertEqual(row, want)

    def test_json_of_all_tables_is_one_array(self):
        rows = self.json("-t", STATE)
        kinds = [row["row"] for row in rows]
        self.assertEqual(kinds.count("group"), 10)
        self.assertEqual(kinds.count("process"), 10)
        self.assertEqual(kinds.count("total"), 2)
        group = next(r for r in rows if r.get("group") == "vault.service")
        self.assertNotIn("pss", group)
        self.assertEqual(self.json("-m", CAPTURE)[0]["pss"], 73000 * KIB)
        self.assertEqual(self.json("-u", STATE)[0]["user"], "postgres")

    def test_a_document_of_nothing(self):
        path = self.write({"format": "smaps-snapshot", "version": 2})
        self.assertEqual(len(self.rows("-t", path)), 5)
        self.assertEqual(self.json(path), [])
        self.assertEqual(self.report("folded", path), "")
        self.assertIn("MATCHED", self.report("explain", path))
        self.assertEqual(
            json.loads(self.report("diff", "-j", path, path))["groups"], []
        )


class Hosts(ReportTest):
    """Documents of several hosts in one table."""

    def setUp(self):
        super().setUp()
        document = load(STATE)
        document["host"] = "db2"
        document["mem_total"] *= 3
        group_of(document, "postgres")["usage"]["pss"] *= 2
        for process in document["processes"]:
            if "postgres" in process["groups"]:
                process["usage"]["pss"] *= 2
        document["rules"][0] = 'Group "postgres" Comm "postgres"'
        self.second = self.write(document, "second.json")

    def test_rows_have_their_host_and_totals_are_over_all(self):
        rows = self.rows("-Ht", "-G", "-g", "postgres", STATE, self.second)
        self.assertEqual(
            [[row[0], row[1], row[-1]] for row in rows],
            [
                ["db2", "220000", "postgres"],
                ["db1.example.org", "110000", "postgres"],
                ["total", "330000", "6"],
            ],
        )
        text = self.report("-G", STATE, self.second)
        self.assertRegex(text, r"\Adb1.example.org, .*\ndb2, .*\n\n")

    def test_rows_of_one_name_are_in_the_order_of_the_documents(self):
        rows = self.json("-G", "-s", "group", "-c", "host,group", STATE,
                         self.second)  # fmt: skip
        self.assertEqual(
            [row["host"] for row in rows], ["db1.example.org", "db2"] * 10
        )

    def test_rules_and_shares_are_those_of_the_own_host(self):
        args = ("-GHp", "-g", "postgres", "-c", "host,pss,rule")
        rows = self.report(*args, STATE, self.second).splitlines()
        own = self.report(*args, STATE).splitlines()
        self.assertEqual(rows[1].split(), own[0].split())
        self.assertRegex(rows[0], '^db2 +0.44%  Group "postgres" Comm')

    def test_users_mappings_and_areas(self):
        rows = self.json("-u", "-g", "postgres", STATE, self.second)
        self.assertEqual([row["host"] for row in rows][0], "db2")
        once = self.json("-mt", CAPTURE)
        twice = self.json("-mt", CAPTURE, STATE, CAPTURE)
        self.assertEqual(len(twice) - 1, 2 * (len(once) - 1))
        self.assertEqual(twice[-1]["pss"], 2 * once[-1]["pss"])
        once = self.json("-wt", STATE)
        twice = self.json("-wt", STATE, STATE)
        self.assertEqual(twice[-1]["used"], 2 * once[-1]["used"])
        self.assertEqual(len(twice) - 1, 2 * (len(once) - 1))

    def test_group_of_one_of_the_hosts(self):
        document = load(self.second)
        document["groups"] = [group_of(document, "redis")]
        path = self.write(document)
        rows = self.rows("-GH", "-g", "postgres", STATE, path)
        self.assertEqual(len(rows), 1)
        self.assert_fails('no group "x"', "-g", "x", STATE, path)

    def test_a_total_is_unknown_if_that_of_a_host_is(self):
        for files in (STATE, CAPTURE), (CAPTURE, STATE), (STATE, CAPTURE, STATE):
            total = self.json("-Gt", *files)[-1]
            self.assertEqual(total, {"row": "total"}, files)
        # A host without the groups that are shown adds nothing.
        document = load(CAPTURE)
        document["groups"] = [group_of(document, "redis")]
        path = self.write(document)
        for files in (STATE, path), (path, STATE):
            total = self.json("-Gt", "-g", "(p|n).*", *files)[-1]
            self.assertEqual(total["processes"], 6, files)

    def test_a_total_of_areas_is_unknown_if_those_of_a_host_are(self):
        document = load(STATE)
        del document["host_memory"]
        path = self.write(document)
        for files in (STATE, path), (path, STATE):
            total = self.json("-wt", *files)[-1]
            self.assertEqual(total, {"row": "total"}, files)

    def test_broken_document_is_named(self):
        path = self.write(b"{")
        done = self.assert_fails("ends at byte 1", STATE, path)
        self.assertIn(str(path), done.words)
        self.assert_fails('"-": expected at most once', "-", STATE, "-")
        self.assert_fails("expected at most 256 files", *[STATE] * 257)


class Unknown(ReportTest):
    """Sums of which a part is unknown, or guessed."""

    def last_row(self, *args, **options):
        return self.report(*args, **options).splitlines()[-1]

    def guess(self, error):
        """The state, with such an error of the group postgres."""
        document = load(STATE)
        group_of(document, "postgres")["pss_error"] = error
        return self.write(document)

    def of_postgres(self, *args, **options):
        text = self.report("-GHk", "-g", "postgres", *args, **options)
        return text.splitlines()[0]

    def test_a_total_is_at_least_the_sum_of_what_is_known(self):
        known = sum(
            process.get("usage", {}).get("pss", 0)
            for process in load(STATE)["processes"]
        )
        for option in "-G", "--processes", "-u":
            words = self.last_row(option, "-t", STATE)
            self.assertIn(f"≥ {known // KIB} ", words)
            self.assertNotIn(" - ", words)

    def test_a_total_may_lack_processes_that_cannot_be_seen(self):
        """With hidepid: groups are unknown, and processes are not listed, or
        are in no group and have no amounts."""
        document = load(STATE)
        document["processes"] = [
            {**p, "groups": ["postgres"], "usage": {"pss": KIB, "rss": KIB}}
            for p in document["processes"]
        ]
        document["processes"][0]["pid"] = 1
        group_of(document, "postgres")["usage"] = {}

        def is_at_least():
            total = self.json("-Gt", self.write(document))[-1]
            return total.get("at_least") == ["pss", "rss"]

        self.assertFalse(is_at_least())
        del group_of(document, "postgres")["processes"]
        self.assertFalse(is_at_least())
        document["processes"][0]["pid"] = 2
        self.assertTrue(is_at_least())
        document["processes"][0]["pid"] = 1
        document["processes"][1].update({"groups": [], "usage": {}})
        self.assertTrue(is_at_least())
        document["processes"][1]["usage"] = {"rss": KIB}
        self.assertFalse(is_at_least())

    def test_the_first_of_a_sum_may_be_the_unknown_one(self):
        document = load(STATE)
        document["processes"].sort(key=lambda one: one["pid"] != 900)
        self.assertEqual(
            self.last_row("-Gt", self.write(document)),
            self.last_row("-Gt", STATE),
        )

    def test_a_total_of_groups_of_a_capture_is_unknown(self):
        document = load(CAPTURE)
        document["groups"].append({**document["groups"][0], "name": "zzz"})
        path = self.write(document)
        for args in ((), ("-g", "(p|z).*")):
            words = self.last_row("-Gt", *args, path).split()
            self.assertEqual(words, ["-", "-", "-", "-", "-", "total"], args)
        known = self.last_row("-Gt", "-g", "postgres", path).split()
        self.assertEqual(known[0], "110000")

    def test_a_mapping_of_which_a_part_is_unknown_is_unknown(self):
        document = load(CAPTURE)
        del document["mappings"]
        (*_, last) = [
            mapping
            for process in document["processes"]
            for mapping in process.get("mappings", [])
            if mapping.get("name") == "[heap]"
        ]
        del last["pss"]
        path = self.write(document)
        rows = self.rows("-m", "-c", "pss,processes,name", path)
        self.assertIn(["-", "2", "[heap]"], rows)

    def test_a_total_of_known_amounts_is_that(self):
        document = load(STATE)
        document["processes"] = [
            p for p in document["processes"] if "pss" in p.get("usage", {})
        ]
        self.assertNotIn("≥", self.report("-t", self.write(document)))

    def test_what_no_part_has_is_unknown(self):
        words = self.last_row("-t", "-c", "pss,ksm,group", STATE)
        self.assertRegex(words, r"≥ \d+  +- ")
        row = next(r for r in self.rows("-u", STATE) if r[-1] == "vault")
        self.assertEqual(row, ["-", "-", "-", "-", "1", "vault"])

    def test_an_error_that_is_not_small_is_shown(self):
        words = self.of_postgres(self.guess(30 * MIB))
        self.assertTrue(words.startswith("107.4M ± 30.0M  84.0M "), words)
        for error in 0, 5 * MIB:
            words = self.of_postgres(self.guess(error))
            self.assertTrue(words.startswith("107.4M  84.0M "), words)

    def test_totals_have_the_errors_of_their_processes(self):
        document = load(STATE)
        for process in document["processes"]:
            process.pop("pss_error", None)
        document["processes"][1]["pss_error"] = 10 * MIB
        document["processes"][2]["pss_error"] = 20 * MIB
        path = self.write(document)
        words = self.last_row("-Gtk", "-c", "pss,pss_error,group", path)
        self.assertEqual(words.split()[:4], ["≥", "120.6M", "±", "30.0M"])
        self.assertEqual(words.split()[4:], ["30.0M", "total"])

    def test_totals_may_be_no_farther_off_than_the_host_has_memory(self):
        """Each process alone may be: a hundred that share what there is."""
        document = load(STATE)
        user = document["processes"][1]["user"]
        certain = 0
        for process in document["processes"]:
            usage = process.get("usage", {})
            process["pss_error"] = 1000 * usage.get("rss", 0)
            if process["user"] != user:
                process["pss_error"] = 0
                certain += usage.get("pss", 0)
        known = sum(
            process.get("usage", {}).get("pss", 0)
            for process in document["processes"]
        )
        mapped = document["host_memory"]["groups"] * 101 // 100
        self.assertGreater(mapped, known)
        for most in mapped, document["mem_total"]:
            path = self.write(document)
            for option in "-G", "--processes", "-u":
                total = self.json(option, "-t", "-c", "pss_error", path)[-1]
                error = max(most - known, known - certain)
                self.assertEqual(total["pss_error"], error, option)
            rows = self.json("-u", "-c", "user,pss_error", path)
            guessed = known - certain
            error = max(most - guessed, guessed)
            self.assertIn(
                {"row": "user", "user": user, "pss_error": error}, rows
            )
            document.pop("host_memory", None)

    def test_the_error_of_an_unknown_total_is_unknown(self):
        """And not 0, as where all was read."""
        document = load(STATE)
        for process in document["processes"]:
            process["usage"] = {"rss": KIB}
        path = self.write(document)
        columns = "pss,pss_error,uss_error,rss"
        row = self.rows("--processes", "-t", "-c", columns, path)[-1]
        self.assertEqual(row[:3], ["-", "-", "-"])

    def test_signs_without_utf8(self):
        env = environment(LC_ALL="C")
        words = self.last_row("-Gt", STATE, env=env)
        self.assertRegex(words, r"^>= \d+ ")
        words = self.of_postgres(self.guess(30 * MIB), env=env)
        self.assertTrue(words.startswith("107.4M +- 30.0M "), words)

    def test_json_names_the_amounts_that_may_be_more(self):
        *groups, total = self.json("-Gt", STATE)
        self.assertEqual(total["row"], "total")
        self.assertEqual(total["at_least"], ["pss", "uss", "rss", "swap"])
        self.assertGreater(total["pss"], 100 * MIB)
        self.assertFalse(any("at_least" in row for row in groups))

    def test_the_source_of_a_guess_is_explained(self):
        document = load(STATE)
        refused = next(p for p in document["processes"] if p["pid"] == 900)
        words = "reading it failed; guessed from the rest of its group\n"
        self.assertNotIn(words, self.report("explain", STATE, 900))
        refused["usage"]["pss"] = 5 * MIB
        path = self.write(document)
        self.assertIn(words, self.report("explain", path, 900))


class ControlGroups(ReportTest):
    def setUp(self):
        super().setUp()
        document = load(STATE)
        group_of(document, "postgres").update(
            cgroup="/system.slice/pg.service",
            cgroup_memory=96 * MIB,
            cgroup_working_set=72 * MIB,
            cgroup_limit=96 * MIB,
            oom_kill=2,
        )
        group_of(document, "other")["cgroup_absence"] = "not_asked"
        group_of(document, "by-postgres").update(
            cgroup="/system.slice", cgroup_absence="shared"
        )
        self.path = self.write(document)

    def test_columns(self):
        names = "cgroup,cgroup_memory,cgroup_limit,cgroup_percent,oom_kill"
        rows = self.rows("-GH", "-c", names, "-g", "postgres", self.path)
        self.assertEqual(
            rows[0], ["/system.slice/pg.service", "98304", "98304", "75.0%", "2"]
        )
        rows = self.rows("-GH", "-c", names, "-g", "by-postgres", self.path)
        self.assertEqual(rows[0], ["-"] * 5)

    def test_the_reason_for_none_is_explained(self):
        text = self.report("explain", self.path)
        document = json.loads(self.report("explain", "-j", self.path))
        self.assertIn(
            {"group": "other", "absence": "not_asked"},
            document["without_cgroup"],
        )
        words = "No values of a control group: "
        lines = [x for x in text.splitlines() if x.startswith(words)]
        self.assertEqual(len(lines), 2, text)
        self.assertIn(f"{words}other (the rule goes by no Unit", lines[0])
        self.assertIn(f"{words}by-postgres (other processes are", lines[1])
        self.assertNotIn(words, self.report("explain", STATE))


class Explaining(ReportTest):
    def test_one_process(self):
        text = self.report("explain", STATE, 701)
        self.assertTrue(text.startswith("701 postgres: postgres: 15/main"))
        for words in (
            "groups       postgres, by-postgres\n",
            'rule         1: Group "postgres" User "postgres"',
            "inherited from an ancestor",
            "also in      by-postgres, by rule 2:",
            'shadowed     3: Group "%{unit}"',
            "estimated from an earlier reading, 12.5s old",
            "; pss error at most 20.0K, uss error at most 40.0K\n",
            "takes 120us of CPU time",
        ):
            self.assertIn(words, text)
        self.assert_fails("no process 7", "explain", STATE, 7)
        self.assert_fails("no process 7", "explain", "-j", STATE, 7)

    def test_json_tells_the_same(self):
        document = json.loads(self.report("explain", "-j", STATE))
        self.assertEqual(document["host"], load(STATE)["host"])
        of_rule = {one["rule_number"]: one for one in document["rules"]}
        self.assertEqual(
            of_rule[1],
            {"rule_number": 1, "rule": load(STATE)["rules"][0], "matched": 1,
             "inherited": 2, "continued": 0, "shadowed": 0},
        )  # fmt: skip
        self.assertEqual(document["in_no_rule"], 0)
        process = next(p for p in document["processes"] if p["pid"] == 701)
        self.assertEqual(process["groups"], ["postgres", "by-postgres"])
        self.assertEqual(
            (process["rule_number"], process["inherited"]), (1, True)
        )
        self.assertEqual(process["continued"][0]["group"], "by-postgres")
        self.assertEqual(process["shadowed"][0]["rule_number"], 3)
        self.assertNotIn("group", process["shadowed"][0])
        self.assertEqual(process["source"], "estimated")
        self.assertEqual(process["pss_error"], 20 * KIB)
        one = json.loads(self.report("explain", "-j", STATE, 701))
        self.assertEqual(one["processes"], [process])
        self.assertNotIn("rules", one)

    def test_errors_that_a_document_does_not_have(self):
        """As those of before there was a uss_error."""
        document = load(STATE)
        for one in [*document["groups"], *document["processes"]]:
            one.pop("uss_error", None)
        path = self.write(document)
        text = self.report("explain", path, 701)
        self.assertIn("; pss error at most 20.0K\n", text)
        self.assertNotIn("uss error", text)
        rows = self.json("--processes", "-c", "pid,pss_error,uss_error", path)
        (row,) = (row for row in rows if row["pid"] == 701)
        self.assertEqual(
            row, {"row": "process", "pid": 701, "pss_error": 20 * KIB}
        )

    def test_what_the_kernel_keeps_and_uptime_are_columns(self):
        document = load(STATE)
        for key, name in (("groups", "postgres"), ("processes", 701)):
            (one,) = (
                one
                for one in document[key]
                if one.get("name", one.get("pid")) == name
            )
            one["uptime"] = 259200.5
            one["usage"].update(page_tables=64 * KIB, kernel_stack=16 * KIB)
        path = self.write(document)
        columns = "uptime,page_tables,kernel_stack"
        for kind, key, name in (("-G", "group", "postgres"), ("--processes", "pid", 701)):
            args = (kind, "-s", "uptime", "-c", f"{key},{columns}", path)
            first, *others = self.json(*args)
            self.assertEqual(
                first,
                {
                    "row": "group" if kind == "-G" else "process",
                    key: name,
                    "uptime": 259200.5,
                    "page_tables": 64 * KIB,
                    "kernel_stack": 16 * KIB,
                },
            )
            self.assertNotIn("page_tables", others[0])
            line = self.report("-H", *args).splitlines()[0]
            self.assertEqual(line.split(), [str(name), "3.0d", "64", "16"])

    def test_errors_are_columns(self):
        for kind, key, name in (("-G", "group", "postgres"), ("--processes", "pid", 701)):
            columns = f"{key},pss_error,uss_error"
            rows = self.json(kind, "-c", columns, STATE)
            (row,) = (row for row in rows if row[key] == name)
            self.assertEqual(
                (row["pss_error"], row["uss_error"]), (20 * KIB, 40 * KIB)
            )

    def test_every_way_of_reading_has_words(self):
        for pid, words in {
            700: "read from the kernel",
            702: "ReadBudget was used up",
            802: "shares its parent's memory",
            850: "groups       none",
            900: "the kernel refused the rest",
        }.items():
            self.assertIn(words, self.report("explain", STATE, pid))

    def test_all_with_a_summary_by_rule(self):
        text = self.report("explain", STATE)
        table = text[text.index("  MATCHED") :].splitlines()
        counts = {line.split()[4]: line.split()[:4] for line in table[1:7]}
        self.assertEqual(counts["1:"], ["1", "2", "0", "0"])
        self.assertEqual(counts["2:"], ["0", "0", "9", "0"])
        self.assertEqual(counts["3:"], ["4", "0", "0", "3"])
        self.assertEqual(table[-1], "Rules that took nothing: 5")
        self.assertIn("2026-11-21 13:20:00 UTC", text)


class Differences(ReportTest):
    def changed(self):
        document = load(STATE)
        for name in ("postgres", "by-postgres"):
            group_of(document, name)["usage"]["pss"] += 20000 * KIB
        group_of(document, "other")["usage"]["pss"] -= 1000 * KIB
        processes = document["processes"]
        processes[1]["usage"]["pss"] += 20000 * KIB
        processes[4].update(pid=4800, starttime=99000)
        processes[4]["usage"]["pss"] += 5 * KIB
        del processes[9]
        processes.append(
            {"pid": 5000, "starttime": 1, "comm": "new", "groups": ["other"],
             "usage": {"pss": 7 * KIB}}
        )  # fmt: skip
        return self.write(document, "new.json")

    def test_everything_that_changed_is_listed(self):
        text = self.report("diff", STATE, self.changed())
        groups, processes = text.split("\n\n")
        rows = [line.split() for line in groups.splitlines()]
        self.assertEqual(rows[0], ["CHANGE", "OLD", "NEW", "HOW", "GROUP"])
        self.assertEqual(rows[1], ["+20000", "110000", "130000", "by-postgres"])
        self.assertEqual(rows[3], ["-1000", "4500", "3500", "other"])
        self.assertEqual({row[0] for row in rows[4:]}, {"-"})
        rows = [line.split() for line in processes.splitlines()[1:]]
        self.assertEqual(
            rows,
            [
                ["+20000", "90000", "110000", "700", "postgres"],
                ["-1500", "1500", "0", "went", "950", "bash"],
                ["+7", "0", "7", "came", "5000", "new"],
                ["+5", "6000", "6005", "restarted", "800>4800", "nginx"],
            ],
        )

    def test_options(self):
        new = self.changed()
        rows = self.rows("diff", "-Hk", "-n1", "-g", "postgres", STATE, new)
        self.assertEqual(rows[0], ["+19.5M", "107.4M", "127.0M", "postgres"])
        self.assertEqual(self.rows("diff", "-Hn", "0", STATE, new), [[]])
        rows = self.rows("diff", "-H", "-s", "uss", "-g", "other", STATE, new)
        self.assertEqual(rows[1], ["-1200", "1200", "0", "went", "950", "bash"])
        document = json.loads(self.report("diff", "-j", STATE, new))
        self.assertEqual(
            document["groups"][0],
            {"group": "by-postgres", "how": "stayed", "old": 110000 * KIB,
             "new": 130000 * KIB, "change": 20000 * KIB},
        )  # fmt: skip
        self.assertEqual(
            document["processes"][1],
            {"comm": "bash", "old_pid": 950, "how": "went", "old": 1500 * KIB,
             "change": -1500 * KIB},
        )  # fmt: skip
        self.assertNotIn("mappings", document)
        self.assert_fails('no group "x"', "diff", "-g", "x", STATE, new)

    def test_mappings_of_two_captures(self):
        document = load(CAPTURE)
        document["mappings"][0]["pss"] -= 10 * KIB
        new = self.write(document, "new.json")
        last = self.rows("diff", CAPTURE, new)[-1]
        self.assertEqual(last, ["-10", "73000", "72990", "[heap]"])

    def test_gate_fails_over_the_limit_and_names_the_group(self):
        new = self.changed()
        for limit, status in {
            "18%": 1, "18.2%": 0, "0%": 1, "19M": 1, "20M": 0, "1G": 0,
        }.items():  # fmt: skip
            with self.subTest(limit):
                args = ["--fail-over", limit, "-g", "postgres", STATE, new]
                done = run("diff", *args)
                self.assertEqual(done.returncode, status, done.words)
                if status:
                    self.assertIn('group "postgres": PSS grew from', done.words)
                    words = f"(+19.5M), by more than {limit}\n"
                    self.assertIn(words, done.words)
                else:
                    self.assertEqual(done.words, "")

    def test_gate_knows_no_growth_of_what_is_unknown(self):
        document = load(STATE)
        group_of(document, "vault.service")["usage"]["pss"] = MIB * 900
        new = self.write(document, "new.json")
        for old_new in ((STATE, new), (new, STATE)):
            done = run("diff", "--fail-over", "1K", *old_new)
            self.assertEqual(done.returncode, 0)
            self.assertIn('"vault.service": PSS is unknown', done.words)

    def test_gate_is_of_pss_whatever_is_shown(self):
        new = self.changed()
        done = run("diff", "-s", "uss", "--fail-over", "1M", STATE, new)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.words.count("grew from"), 2)


class Folding(ReportTest):
    def test_stacks_add_up_to_the_pss(self):
        lines = self.report("folded", CAPTURE).splitlines()
        total = 0
        for line in lines:
            stack, value = re.fullmatch(r"(\S+) (\d+)", line).groups()
            self.assertEqual(stack.split(";")[0], "postgres")
            total += int(value)
        self.assertIn("postgres;postgres[700];[heap] 71680000", lines)
        self.assertIn("postgres;postgres[700];[rest] 3072000", lines)
        pss = group_of(load(CAPTURE), "postgres")["usage"]["pss"]
        self.assertEqual(total, pss)

    def test_what_is_unknown_is_left_out_and_counted(self):
        done = run("folded", STATE)
        self.assertEqual(done.returncode, 0)
        self.assertIn("2 processes of unknown PSS are left out", done.words)
        self.assertIn("nginx.service;nginx[801] 3072000\n", done.text)

    @unittest.skipUnless(FLAMEGRAPH, "no flamegraph.pl (libdevel-nytprof-perl)")
    def test_flame_graph_is_drawn(self):
        document = load(CAPTURE)
        document["processes"][1]["mappings"][0]["name"] = "a;b <&> 12 34\x1b"
        document["processes"][1]["comm"] = "x 99"
        folded = self.report("folded", self.write(document)).encode()
        done = subprocess.run(
            ["perl", FLAMEGRAPH, "--countname=bytes", "--minwidth=0"],
            input=folded,
            capture_output=True,
            check=True,
        )
        self.assertEqual(done.stderr, b"")
        svg = done.stdout.decode()
        self.assertIn("postgres[700]", svg)
        self.assertIn("x_99[701]", svg)
        self.assertRegex(svg, r"a_b_\S+_12_34_ \(8,192,000 bytes")
        self.assertIn("[heap] (71,680,000 bytes", svg)
        pss = group_of(document, "postgres")["usage"]["pss"]
        self.assertIn(f"all ({pss:,} bytes, 100%)", svg)


class Terminal(ReportTest):
    """On a pseudo terminal."""

    def show(self, *args, columns=60, **env):
        master, slave = pty.openpty()
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        process = subprocess.Popen(
            [REPORT, *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=slave,
            env=environment(**env),
        )
        os.close(slave)
        output = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError as error:
                self.assertEqual(error.errno, errno.EIO)
                break
            if not piece:
                break
            output += piece
        os.close(master)
        self.assertEqual(process.wait(), 0)
        return output.decode().replace("\r\n", "\n")

    def test_lines_are_cut_to_the_width(self):
        for columns in (20, 60, 200):
            with self.subTest(columns):
                text = self.show("--processes", STATE, columns=columns, NO_COLOR="1")
                widths = [len(line) for line in text.splitlines()]
                self.assertLessEqual(max(widths), columns)
                if columns < 100:
                    self.assertEqual(max(widths), columns)
        text = self.show("--processes", STATE, columns=60, COLUMNS="70", NO_COLOR="1")
        self.assertEqual(max(map(len, text.splitlines())), 70)

    def test_nothing_is_cut_where_there_is_no_terminal(self):
        document = load(STATE)
        document["processes"][0]["command_line"] = "x" * 3000
        path = self.write(document)
        self.assertIn("x" * 3000, self.report(path))

    def test_names_are_cut_in_the_middle(self):
        """Groups of 13 characters at most, beside 39 columns."""

        def names(*args, **env):
            text = self.report("-GH", *args, STATE, env=environment(**env))
            self.assertIn("  by-alice\n", text)
            return [line.split()[-1] for line in text.splitlines()]

        self.assertIn("nginx.service", names())
        self.assertIn("nginx.service", names("--width", 52))
        self.assertIn("nginx…ervice", names("--width", 51))
        self.assertIn("nginx…rvice", names("--width", 50))
        self.assertIn("nginx…rvice", names(COLUMNS="50"))
        self.assertIn("nginx.service", names("--width", 0, COLUMNS="50"))
        self.assertIn("ngin..rvice", names("--width", 50, LC_ALL="C"))
        self.assertIn("by-p…tgres", names("--width", 49))

    def test_wide_characters_are_not_halved(self):
        document = load(STATE)
        wide = "日本語" * 10
        group_of(document, "vault.service")["name"] = wide
        document["processes"] = []
        path = self.write(document)
        for width in range(47, 80):
            with self.subTest(width):
                text = self.report("-GH", "--width", width, path)
                (line,) = [one for one in text.splitlines() if "日" in one]
                columns = len(line) + sum(c in wide for c in line)
                self.assertLessEqual(columns, width)
                self.assertGreaterEqual(columns, width - 2)
                self.assertRegex(line, "  [日本語]+…[日本語]+$")

    def test_colour_is_for_terminals_that_want_it(self):
        self.assertIn("\x1b[1m", self.show(STATE))
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}):
            self.assertNotIn("\x1b", self.show(STATE, **env))
        self.assertIn("\x1b[1m", self.show(STATE, NO_COLOR=""))
        self.assertNotIn("\x1b", self.report(STATE))

    def test_names_do_not_command_the_terminal(self):
        hostile = (
            "\x1b]0;t\x07\x1b[2J\r\n\t\x7f\u009b2J"
            "\u202e\u2066\u200b\ufeff\U000e0041"
        )
        document = load(STATE)
        for process in document["processes"]:
            for name in (
                "comm", "command_line", "exe", "user", "unit", "cgroup",
            ):  # fmt: skip
                process[name] = hostile + name
            process["groups"] = [hostile]
            process["source"] = process["deferred"] = hostile
        document["rules"] = [hostile] * 6
        document["host"] = hostile
        document["groups"].append({"name": hostile, "rule": 0})
        document["trigger"]["message"] = hostile
        path = self.write(document)
        names = "comm,command,exe,user,unit,cgroup,group,rule,source,deferred"
        for args in (
            [path], ["-u", path], ["--processes", "-c", names, path],
            ["-j", path],
            ["explain", path], ["folded", path], ["diff", STATE, path],
            ["diff", "-j", STATE, path],
        ):  # fmt: skip
            with self.subTest(args[0]):
                text = run(*args).text
                self.assertNotRegex(
                    text,
                    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e"
                    "\u2066-\u2069\ufeff\U000e0000-\U000e007f]",
                )
        self.assertIn("\\x1b]0;t\\x07", run(path).text)
        names = [r.get("group") for r in self.json("-G", path)]
        self.assertIn(hostile, names)

    def test_width_is_counted_in_columns_and_locale_is_kept_to(self):
        document = load(STATE)
        document["processes"] = document["processes"][:2]
        document["processes"][0]["user"] = "日本語"
        document["processes"][1]["user"] = "é"
        path = self.write(document)
        lines = self.report("--processes", "-H", "-c", "user,pid", path).splitlines()
        self.assertEqual(sorted(lines), ["é       700", "日本語    1"])
        ascii_only = environment(LC_ALL="C")
        text = self.report("--processes", "-H", "-c", "user,pid", path, env=ascii_only)
        self.assertIn("\\xc3\\xa9 ", text)
        self.assertTrue(text.isascii())


class Broken(ReportTest):
    def test_mistakes_are_one_line_with_the_file(self):
        whole = STATE.read_bytes()
        for name, data, words in (
            ("empty", b"", "is empty"),
            ("truncated", whole[: len(whole) // 2], "ends at byte"),
            ("text", b"PID USER\n", "no snapshot: no valid JSON"),
            ("foreign", b'{"groups":[]}', "no snapshot of the smaps plugin"),
            ("future", whole.replace(b'"version": 2', b'"version": 3', 1),
             "format version 3, but this program reads version 2"),
            ("type", whole.replace(b'"pid": 700', b'"pid": "700"', 1),
             "processes[1].pid: expected a whole number"),
            ("deep", b'{"a":' + b"[" * 1000000, "no snapshot"),
            ("binary", bytes(range(256)) * 100, "no valid JSON"),
        ):  # fmt: skip
            with self.subTest(name):
                path = self.write(data)
                for command in ([], ["explain"], ["folded"]):
                    done = self.assert_fails(words, *command, path)
                    self.assertIn(str(path), done.words)
                    self.assertEqual(done.text, "")
                self.assert_fails(words, "diff", STATE, path)
                self.assert_fails(words, "diff", path, STATE)

    def test_files_that_cannot_be_read(self):
        self.assert_fails("No such file", self.directory / "none")
        self.assert_fails("cannot be read: Is a directory", self.directory)
        self.assert_fails("standard input: is empty", "-")
        done = self.assert_fails("No such file", "a\x1b[2J\nb")
        self.assertIn("a\\x1b[2J\\x0ab", done.words)

    def test_pipe_without_a_writer_is_an_error(self):
        path = self.directory / "pipe"
        os.mkfifo(path)
        self.assert_fails("a pipe, and no program writes into it", path)

    def test_pipe_with_a_slow_writer_is_read(self):
        path = self.directory / "pipe"
        os.mkfifo(path)
        reader = subprocess.Popen(
            [REPORT, "-H", path], stdout=subprocess.PIPE, env=environment()
        )
        with open(path, "wb") as pipe:
            time.sleep(6)  # longer than it waits for a writer
            pipe.write(STATE.read_bytes())
        self.assertEqual(
            reader.communicate()[0].decode(), self.report("-H", STATE)
        )
        self.assertEqual(reader.returncode, 0)

    def test_usage_errors(self):
        for words, *args in (
            ["expected FILE"],
            ["-x: no such option", "-x"],
            ['-s "x": expected', "-s", "x", STATE],
            ["--fail-over", "diff", "--fail-over", "x", STATE, STATE],
            ["expected OLD NEW", "diff", STATE],
            ['PID "x"', "explain", STATE, "x"],
            ['-c "pss": expected help', "diff", "-c", "pss", STATE, STATE],
        ):
            self.assert_fails(words, *args)

    def test_columns_are_listed(self):
        self.assertIn("comm               processes\n", self.report("-c", "help"))
        amounts = self.report("diff", "-c", "help").split()
        self.assertEqual(amounts[:2], ["pss", "uss"])
        for amount in amounts:
            self.report("diff", "-s", amount, STATE, STATE)
        self.assertNotIn("comm", amounts)

    def test_help_and_version(self):
        for command in (
            [], ["explain"], ["diff"], ["folded"], ["html"], ["live"], ["check"]
        ):  # fmt: skip
            text = self.report(*command, "--help")
            self.assertIn("Usage: smaps-report", text)
            for line in text.splitlines():
                self.assertEqual(line, line.rstrip())
                self.assertLess(len(line), 80, line)
                if "  --" in line or ", --" in line:
                    self.assertRegex(line, r"^.{27}  \S", line)
            self.assertRegex(
                self.report(*command, "--version"), r"^smaps-report \d+\.\d+"
            )

    def test_manual_has_every_option(self):
        manual = (harness.ROOT / "contrib/man/smaps-report.1").read_text()
        manual = manual.replace("\\-", "-")
        for command in ([], ["diff"], ["live"]):
            help_ = self.report(*command, "--help")
            for name in re.findall(r"--([a-z-]+)", help_):
                self.assertRegex(manual, rf"(\\|-|, -){name}\b", name)

    def test_full_disk_is_an_error(self):
        for args in (
            [STATE], ["-j", STATE], ["folded", STATE], ["explain", STATE],
            ["diff", STATE, CAPTURE], ["--help"],
        ):  # fmt: skip
            with self.subTest(args), open("/dev/full", "wb") as full:
                done = subprocess.run(
                    [REPORT, *args], stdout=full, stderr=subprocess.PIPE
                )
                self.assertEqual(done.returncode, 2)
                self.assertIn(b"cannot write: No space left", done.stderr)

    def test_closed_pipe_is_quiet(self):
        for ignored in (False, True):
            read, write = os.pipe()
            os.close(read)
            done = subprocess.run(
                [REPORT, STATE],
                stdout=write,
                stderr=subprocess.PIPE,
                restore_signals=not ignored,
            )
            os.close(write)
            self.assertEqual(done.stderr, b"")
            self.assertEqual(done.returncode, 2 if ignored else -signal.SIGPIPE)


class Large(ReportTest):
    def write_large(self, megabytes):
        """Processes as the plugin writes them, of a kilobyte each."""
        process = load(STATE)["processes"][1]
        amounts = self.report("-c", "help").split("\npermissions")[0]
        names = [line.split()[0] for line in amounts.splitlines()][:29]
        path = self.directory / "large.json"
        size = 0
        with open(path, "w") as file:
            head = {**load(STATE), "processes": []}
            file.write(json.dumps(head)[:-2])
            pid = 0
            while size < megabytes * 1000000:
                pid += 1
                process["pid"] = pid
                process["command_line"] = f"worker {pid} " * 10
                process["usage"] = {
                    name: pid * KIB + i for i, name in enumerate(names)
                }
                size += file.write("," if pid > 1 else "")
                size += file.write(json.dumps(process))
            file.write("]}")
        return path, pid

    @unittest.skipIf(IS_SANITIZED, "the sanitizer needs more address space")
    def test_memory_is_in_proportion_to_the_document(self):
        path, count = self.write_large(20)
        limit = 40 * MIB

        def bound():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        for args in (["-t"], ["-u"], ["-j"], ["folded"], ["explain"]):
            with self.subTest(args):
                done = run(*args, path, preexec_fn=bound)
                self.assertEqual((done.returncode, done.words), (0, ""))
        lines = self.report("--processes", "-H", "-c", "pid", path).splitlines()
        self.assertEqual(len(lines), count)

    @unittest.skipIf(IS_SANITIZED, "the sanitizer needs more address space")
    def test_out_of_memory_is_an_error_and_no_crash(self):
        path, _ = self.write_large(20)
        for mebibytes in (5, 8, 12, 16):

            def bound():
                limit = mebibytes * MIB
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

            done = run(path, preexec_fn=bound)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("out of memory", done.words)


if __name__ == "__main__":
    unittest.main()
