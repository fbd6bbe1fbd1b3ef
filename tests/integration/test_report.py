# SPDX-License-Identifier: MIT
"""The tables of smaps-report, of documents written here and of
tests/fixtures/snapshot. `live` and `check`: test_live."""

import json
import re
import time

from report import (
    CAPTURE,
    KIB,
    MIB,
    STATE,
    ReportTest,
    environment,
    group_of,
    load,
    run,
)


class Tables(ReportTest):
    def test_groups_and_processes_are_shown_by_pss(self):
        heading, groups, processes = self.report(STATE).split("\n\n")
        self.assertEqual(heading, "db1.example.org, 2026-11-21 13:20:00 UTC")
        groups = [line.split() for line in groups.splitlines()]
        self.assertEqual(
            groups[0],
            ["PSS", "USS", "FREED", "RSS", "SWAP", "PROCESSES", "COVERAGE", "GROUP"],
        )
        document = load(STATE)
        self.assertEqual(len(groups) - 1, len(document["groups"]))
        for row in groups[1:]:
            usage = group_of(document, row[-1])["usage"]
            # The fixture is of a version without freed.
            for name, cell in zip(("pss", "uss", "freed", "rss", "swap"), row):
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
            [["110000", "86000", "-", "429000", "512", "3", "82.0%", "postgres"]],
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

    def test_tables_sort_by_any_column(self):
        """Unknown values are last in both directions."""

        def pids(*args):
            rows = self.rows("--processes", "-H", "-c", "pid", *args, STATE)
            return [int(row[0]) for row in rows]

        processes = load(STATE)["processes"]
        uss = {p["pid"]: p.get("usage", {}).get("uss") for p in processes}
        for args, is_rising in (("-s", "uss"), False), (("-rs", "uss"), True):
            known = [pid for pid in pids(*args) if uss[pid] is not None]
            self.assertEqual(pids(*args)[: len(known)], known)
            amounts = [uss[pid] for pid in known]
            self.assertEqual(amounts, sorted(amounts, reverse=not is_rising))
        self.assertEqual(pids("-rs", "pid"), sorted(uss, reverse=True))

    def test_epss_is_pss_and_swap(self):
        document = load(CAPTURE)
        for kind in ("groups", "processes"):
            for number, one in enumerate(document[kind]):
                if "pss" in one.get("usage", {}):
                    one["usage"]["swap"] = number * MIB
        path = self.write(document)
        for option, key in ("-G", "groups"), ("--processes", "processes"):
            rows = self.json(option, "-s", "epss", "-c", "epss", path)
            found = [row["epss"] for row in rows if "epss" in row]
            wanted = [
                one["usage"]["pss"] + one["usage"]["swap"]
                for one in document[key]
                if "pss" in one["usage"]
            ]
            self.assertEqual(found, sorted(wanted, reverse=True))
            self.assertGreater(len(found), 1)
        rows = self.json("-m", "-c", "pss,swap,epss", path)[1:]
        self.assertGreater(len(rows), 1)
        for row in rows:
            self.assertEqual(row["epss"], row["pss"] + row["swap"])

    def test_mappings_by_name(self):
        rows = self.rows("-mH", "-M", r"\[heap", CAPTURE)
        self.assertEqual([row[-1] for row in rows], ["[heap]"])
        every = self.rows("-mHt", "-c", "pss,name", CAPTURE)
        some = self.rows("-mHt", "-M", "/", "-c", "pss,name", CAPTURE)
        self.assertLess(int(some[-1][0]), int(every[-1][0]))
        self.assertTrue(all(row[-1].startswith("/") for row in some[:-1]))

    def test_number_of_rows_is_limited(self):
        every = self.rows("--processes", "-Ht", STATE)
        some = self.rows("--processes", "-Ht", "-n", "3", STATE)
        self.assertEqual(some, every[:3] + every[-1:])
        rows = self.json("-n", "2", STATE)
        self.assertEqual(
            [row["row"] for row in rows], ["group"] * 2 + ["process"] * 2
        )

    def test_heading_has_host_time_and_alarm(self):
        text = self.report("-G", "--width", 60, CAPTURE)
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
             "time": load(CAPTURE)["time"], "severity": "warning",
             "type": "memory", "type_instance": "pss",
             "message": trigger["message"]},
        )  # fmt: skip

    def test_the_group_of_the_alarm_is_marked(self):
        rows = self.report("-GH", CAPTURE).splitlines()
        marked = [row.split()[-2:] for row in rows if row.endswith("*")]
        self.assertEqual(marked, [["postgres", "*"]])
        self.assertNotIn("*", self.report("-GHt", STATE))
        self.assertNotIn("*", self.report("-uH", CAPTURE))
        names = [row.get("group") for row in json.loads(self.report("-jG", CAPTURE))]
        self.assertIn("postgres", names)

    def write_ended(self):
        """The capture as if its group had ended 12 seconds before."""
        document = load(CAPTURE)
        for one in document["groups"]:
            if one["name"] == document["trigger"]["group"]:
                one["last_known"] = document["time"] - 12
        for one in document["processes"]:
            one["source"] = "ended"
            for key in ("mappings", "mappings_from"):
                one.pop(key, None)
        document["mappings"] = []
        return self.write(document), document

    def test_a_group_that_had_ended_is_marked(self):
        path, document = self.write_ended()
        line = (
            "The processes of postgres had ended: its values are the last "
            "known, of 2026-11-21 13:2"
        )
        self.assertIn(f"\n{line}", self.report(path))
        self.assertIn(f"\n{line}", self.report("explain", path))
        self.assertNotIn(line, self.report(CAPTURE))
        rows = [one for one in self.json(path) if one["row"] == "process"]
        self.assertEqual({row["source"] for row in rows}, {"ended"})
        heading = json.loads(self.report("-j", path))[0]
        self.assertEqual(heading["last_known"], document["time"] - 12)
        self.assertIn("it has ended: known from", self.report("explain", path))
        self.assert_fails("the processes of the group had ended", "-m", path)

    def write_state(self, age, **keys):
        return self.write(
            {**load(STATE), "time": time.time() - age, "interval": 10, **keys}
        )

    def test_a_state_file_that_is_old_is_marked(self):
        """60 s and two StateIntervals and Intervals are 200 s."""
        line = r"(?m)^This state is \d+m\d\ds old, with StateInterval 60: "
        for age, interval, is_old in (
            (215, 60, True),
            (100, 60, False),
            (215, 86400, False),
            (-1e6, 60, False),
        ):
            path = self.write_state(age, state_interval=interval)
            for args in ([path], ["explain", path], ["diff", STATE, path]):
                with self.subTest(age=age, interval=interval, args=args):
                    find = self.assertRegex if is_old else self.assertNotRegex
                    find(self.report(*args), line if is_old else "StateInt")
        # Neither a state of the history nor a capture has a StateInterval.
        self.assertNotIn("old", self.report(self.write_state(1e6)))

    def test_mappings(self):
        rows = self.rows("-m", "-t", CAPTURE)
        self.assertEqual(rows[0], ["PSS", "PROCESSES", "PRIVATE_DIRTY", "NAME"])
        self.assertEqual(rows[1], ["73000", "2", "73000", "[heap]"])
        self.assertEqual(rows[-2], ["3000", "1", "900", "[rest]"])
        self.assertEqual(rows[-1], ["102000", "2", "74900", "total"])
        self.assert_fails("has no mappings", "-m", STATE)
        self.assert_fails("has no mappings: only", "-m", "-g", "other", CAPTURE)
        self.assert_fails("no process that", "-m", "-P", "nobody", CAPTURE)

    def test_mappings_of_several_processes(self):
        """Pages and errors of samples add up, and what one lacks is unknown."""
        keys = "name", "pss", "pages_sampled", "pss_error"
        mappings = [
            [("a", KIB), ("c", 7 * KIB)],
            [("a", 4 * KIB, 7, KIB), ("b",)],
            [("a", 4 * KIB, 2, 2 * KIB)],
        ]
        document = {"format": "smaps-snapshot", "version": 2}
        document["processes"] = [
            {"pid": pid, "mappings": [dict(zip(keys, m)) for m in own]}
            for pid, own in enumerate(mappings, 1)
        ]
        columns = "pss,pss_error,pages_sampled,processes,name"
        *rows, total = self.rows("-mHt", "-c", columns, self.write(document))
        self.assertEqual(" ".join(total), "≥ 16 ± 3 3 3 total")
        self.assertEqual(
            rows,
            [
                ["9", "3", "9", "3", "a"],
                ["7", "-", "-", "1", "c"],
                ["-", "-", "-", "1", "b"],
            ],
        )

    def test_mappings_that_could_not_be_read_are_reported(self):
        document = load(CAPTURE)
        del document["processes"][1]["mappings"]
        some = self.write(document, "some.json")
        told = "the mappings of 1 process could not be read\n"
        for args in ("-m", some), ("diff", CAPTURE, some):
            done = run(*args)
            self.assertEqual((done.returncode, done.words), (0, told), args)
            self.assertRegex(done.text, r"\[heap\]|MAPPING")
        self.assertEqual(run("-m", "-P", "nobody", some, CAPTURE).words.count("\n"), 1)
        del document["processes"][0]["mappings"]
        document["mappings"] = []
        none = self.write(document, "none.json")
        self.assert_fails("these processes could not be read", "-m", none)
        done = run("diff", CAPTURE, none)
        self.assertEqual(done.words, told.replace("1 process", "2 processes"))
        self.assertNotIn("MAPPING", done.text)

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
            # Errors are there whatever columns are asked for.
            for name in ("pss_error", "uss_error"):
                if name in process:
                    want[name] = process[name]
                elif process["source"] == "read":
                    want[name] = 0
            self.assertEqual(row, want)

    def test_empty_document_is_shown(self):
        path = self.write({"format": "smaps-snapshot", "version": 2})
        self.assertEqual(len(self.rows("-t", path)), 5)
        self.assertEqual(self.json(path), [])
        self.assertEqual(self.report("folded", path), "")
        self.assertIn("MATCHED", self.report("explain", path))
        self.assertEqual(
            json.loads(self.report("diff", "-j", path, path))["groups"], []
        )


class Hosts(ReportTest):
    """Documents of several hosts make one table."""

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

    def test_each_host_has_rules_and_shares_of_its_own(self):
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

    def test_group_may_exist_on_one_host_only(self):
        document = load(self.second)
        document["groups"] = [group_of(document, "redis")]
        path = self.write(document)
        rows = self.rows("-GH", "-g", "postgres", STATE, path)
        self.assertEqual(len(rows), 1)
        self.assert_fails('no group "x"', "-g", "x", STATE, path)

    def test_a_total_is_unknown_if_the_value_of_a_host_is(self):
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

    def test_a_total_of_areas_is_unknown_if_the_areas_of_a_host_are(self):
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
        self.assert_fails("expected at most 256 files", *[STATE] * 257)


class Unknown(ReportTest):
    """Sums of which a part is unknown, or guessed."""

    def last_row(self, *args, **options):
        return self.report(*args, **options).splitlines()[-1]

    def guess(self, error):
        """Returns the state, in which the group postgres has such an error."""
        document = load(STATE)
        group_of(document, "postgres")["pss_error"] = error
        return self.write(document)

    def of_postgres(self, *args, **options):
        text = self.report("-GHk", "-g", "postgres", *args, **options)
        return text.splitlines()[0]

    def test_a_total_is_at_least_the_sum_of_the_known_values(self):
        known = sum(
            process.get("usage", {}).get("pss", 0)
            for process in load(STATE)["processes"]
        )
        for option in "-G", "--processes", "-u":
            words = self.last_row(option, "-t", STATE)
            self.assertIn(f"≥ {known // KIB} ", words)
            self.assertNotIn(" - ", words)
        words = self.last_row("-Gt", STATE, env=environment(LC_ALL="C"))
        self.assertRegex(words, r"^>= \d+ ")
        *groups, total = self.json("-Gt", STATE)
        self.assertEqual(total["at_least"], ["pss", "uss", "rss", "swap"])
        self.assertFalse(any("at_least" in row for row in groups))

    def test_a_total_may_lack_processes_that_cannot_be_seen(self):
        """With hidepid groups are unknown, and processes are not listed. Those
        that cannot be identified are in no group and have no amounts; then
        only groups without members are unknown."""
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
        self.assertFalse(is_at_least())
        group_of(document, "postgres")["processes"] = 2
        nothing = {"groups": [], "usage": {}, "source": "unreadable"}
        document["processes"][1].update(nothing)
        self.assertTrue(is_at_least())
        document["processes"][1]["source"] = "statm"
        self.assertFalse(is_at_least())

    def test_the_first_of_a_sum_may_be_the_unknown_one(self):
        document = load(STATE)
        document["processes"].sort(key=lambda one: one["pid"] != 900)
        self.assertEqual(
            self.last_row("-Gt", self.write(document)),
            self.last_row("-Gt", STATE),
        )

    def test_sum_without_any_known_part_is_unknown(self):
        words = self.last_row("-t", "-c", "pss,ksm,group", STATE)
        self.assertRegex(words, r"≥ \d+  +- ")
        row = next(r for r in self.rows("-u", STATE) if r[-1] == "vault")
        self.assertEqual(row, ["-", "-", "-", "-", "1", "vault"])

    def growing(self):
        """A state of 2026-11-21 13:20:00, in which postgres grows."""
        document = load(STATE)
        group_of(document, "postgres").update(
            growth=30000, until_limit=1301, grows_since=document["time"] - 7200
        )
        return self.write(document)

    def test_growth_has_its_beginning_and_its_end(self):
        rows = self.rows("-G", self.growing())
        self.assertEqual(rows[0][-3:], ["GROWS_SINCE", "FULL_AT", "GROUP"])
        times = {row[-1]: row[-3:-1] for row in rows[1:]}
        self.assertEqual(times["postgres"], ["11:20", "13:41"])
        self.assertEqual(times["other"], ["-", "-"])
        self.assertNotIn("GROWS", self.report("-G", STATE))
        # A part of a group has no growth.
        self.assertNotIn("GROWS", self.report("-G", "-P", "nginx", self.growing()))

    def test_times_are_local_and_of_the_day(self):
        document = load(self.growing())
        group_of(document, "postgres")["until_limit"] = 86400 * 2
        columns = ("-G", "-g", "postgres", "-c", "grows_since,full_at,until_limit")
        path = self.write(document)
        text = self.report(*columns, path)
        self.assertIn("2026-11-21 13:20:00 UTC\n", text)
        self.assertEqual(text.split()[-4:], ["11:20", "11-23", "13:20", "2d00h"])
        text = self.report(*columns, path, env=environment(TZ="IST-5:30"))
        self.assertIn("2026-11-21 18:50:00 IST\n", text)
        self.assertEqual(text.split()[-4:], ["16:50", "11-23", "18:50", "2d00h"])

    def test_times_in_json_are_seconds(self):
        document = load(self.growing())
        rows = {r["group"]: r for r in self.json("-G", self.growing())}
        row = rows["postgres"]
        self.assertEqual(row["grows_since"], document["time"] - 7200)
        self.assertEqual(row["full_at"], document["time"] + 1301)
        self.assertNotIn("full_at", rows["other"])

    def test_an_error_that_is_not_small_is_shown(self):
        words = self.of_postgres(self.guess(30 * MIB))
        self.assertTrue(words.startswith("107M ± 30.0M  84.0M "), words)
        for error in 0, 5 * MIB:
            words = self.of_postgres(self.guess(error))
            self.assertTrue(words.startswith("107M  84.0M "), words)
        words = self.of_postgres(self.guess(30 * MIB), env=environment(LC_ALL="C"))
        self.assertTrue(words.startswith("107M +- 30.0M "), words)

    def test_totals_have_the_errors_of_their_processes(self):
        document = load(STATE)
        for process in document["processes"]:
            process.pop("pss_error", None)
        document["processes"][1]["pss_error"] = 10 * MIB
        document["processes"][2]["pss_error"] = 20 * MIB
        path = self.write(document)
        words = self.last_row("-Gtk", "-c", "pss,pss_error,group", path)
        self.assertEqual(words.split()[:4], ["≥", "121M", "±", "30.0M"])
        self.assertEqual(words.split()[4:], ["30.0M", "total"])

    def test_error_of_a_total_is_limited_by_the_memory_of_the_host(self):
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
                (user, error), [(r["user"], r.get("pss_error")) for r in rows]
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

    def test_the_source_of_a_guess_is_explained(self):
        document = load(STATE)
        refused = next(p for p in document["processes"] if p["pid"] == 900)
        words = "reading it failed; guessed from the rest of its group\n"
        self.assertNotIn(words, self.report("explain", STATE, 900))
        refused["usage"]["pss"] = 5 * MIB
        path = self.write(document)
        self.assertIn(words, self.report("explain", path, 900))

    def test_the_rule_of_an_unidentified_process_is_unknown(self):
        document = load(STATE)
        process = document["processes"][0]
        process.update(groups=[], usage={}, source="unreadable")
        process.pop("rule", None)
        path = self.write(document)
        words = "unknown: the process could not be identified\n"
        self.assertIn(words, self.report("explain", path, process["pid"]))


class CausesOfErrors(ReportTest):
    WORDS = (
        "members were forked and have not been read since",
        "memory went to swap or came back",
    )

    def setUp(self):
        super().setUp()
        document = load(STATE)
        self.group = group_of(document, "postgres")
        self.group["usage"]["pss"] = 100 * MIB
        self.group["pss_error"] = 3 * MIB
        self.group["pss_error_by"] = {
            "swap": MIB,
            "fork": 2 * MIB - 8 * KIB,
            "time": 8 * KIB,
        }
        self.path = self.write(document)

    def test_they_are_explained(self):
        lines = [
            "  pss          100M ± 3.0 %:",
            f"               2.0 % because {self.WORDS[0]},",
            f"               1.0 % because {self.WORDS[1]}",
            "",
        ]
        for args in [], ["-g", "postgres"]:
            text = self.report("explain", *args, self.path)
            self.assertIn("\n".join(lines), text)
            self.assertIn("\ngroup postgres\n", text)
        text = self.report("explain", self.path, env=environment(LC_ALL="C"))
        self.assertIn("100M +- 3.0 %:\n", text)
        self.assertNotIn("±", self.report("explain", STATE))
        self.assertNotIn("3.0 %", self.report("explain", self.path, 701))

    def test_all_of_the_error_is_explained(self):
        """14 of 18 % had a cause of a tenth of the error or more."""
        document = load(STATE)
        group = group_of(document, "postgres")
        group["usage"]["pss"] = 1000 * MIB
        by = {
            "time": 90.4, "copies": 50.3, "reading": 17, "statm": 7.2, "swap": 6.1,
            "files": 5, "freed": 2.4, "ksm": 1, "ended": 0.4,
        }  # fmt: skip
        group["pss_error_by"] = {key: int(mib * MIB) for key, mib in by.items()}
        group["pss_error"] = int(180 * MIB)
        text = self.report("explain", "-g", "postgres", self.write(document))
        parts = re.findall(r"(\S+) % because", text)
        self.assertEqual(parts, "9.0 5.0 1.7 0.7 0.6 0.5 0.2 0.1".split())
        self.assertIn("± 18.0 %:", text)

    def test_they_are_in_json(self):
        groups = json.loads(self.report("explain", "-j", self.path))["groups"]
        (got,) = [one for one in groups if one["name"] == "postgres"]
        self.assertEqual(got["pss_error"], 3 * MIB)
        causes = [(one["cause"], one["bytes"], one["words"]) for one in got["causes"]]
        by = self.group["pss_error_by"]
        self.assertEqual(
            causes,
            [
                ("fork", by["fork"], self.WORDS[0]),
                ("swap", by["swap"], self.WORDS[1]),
            ],
        )
        self.assertEqual(
            {one["name"] for one in groups},
            {one["name"] for one in load(STATE)["groups"]},
        )


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
            oomd_kill=3,
            cgroup_peak=97 * MIB,
            cgroup_peak_ever=98 * MIB,
            pressure_some=12.5,
            pressure_full=0.25,
            events_high=10,
            events_max=11,
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

    def test_columns_of_what_only_some_ask_for(self):
        names = (
            "oomd_kill,cgroup_peak,cgroup_peak_ever,pressure_some,"
            "pressure_full,events_high,events_max"
        )
        rows = self.rows("-GH", "-c", names, "-s", "pressure_some", self.path)
        self.assertEqual(
            rows[0], ["3", "99328", "100352", "12.5%", "0.2%", "10", "11"]
        )
        self.assertEqual(rows[1], ["-"] * 7)

    def test_the_reason_for_missing_values_is_explained(self):
        text = self.report("explain", self.path)
        document = json.loads(self.report("explain", "-j", self.path))
        self.assertIn(
            {"group": "other", "absence": "not_asked"},
            document["without_cgroup"],
        )
        words = "Groups without values of a control group: "
        lines = [x for x in text.splitlines() if x.startswith(words)]
        self.assertEqual(len(lines), 2, text)
        self.assertIn(f"{words}other (the rule does not select by Unit", lines[0])
        self.assertIn(f"{words}by-postgres (its control group has", lines[1])
        self.assertNotIn(words, self.report("explain", STATE))
