# SPDX-License-Identifier: MIT
"""smaps-report explain and diff."""

import json
import time

from report import KIB, MIB, STATE, ReportTest, group_of, load, run


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
            "estimated from an earlier reading, 12s old",
            "; pss error at most 20.0K, uss error at most 40.0K\n",
        ):
            self.assertIn(words, text)
        self.assert_fails("no process 7", "explain", STATE, 7)
        self.assert_fails("no process 7", "explain", "-j", STATE, 7)

    def test_json_has_the_same_content(self):
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
        (alone,) = one["processes"]
        self.assertEqual(alone, process)
        self.assertNotIn("rules", one)

    def test_one_group(self):
        text = self.report("explain", "-g", "postgres", STATE)
        for line in (
            "group postgres",
            '        1         2         0         0  1: Group "postgres" User ',
            "  pss          107M\n",
        ):
            self.assertIn(f"\n{line}", text)
        for pid in (700, 701, 702):
            self.assertNotIn(str(pid), text)
        document = json.loads(self.report("explain", "-j", "-g", "postgres", STATE))
        self.assertEqual(document["processes"], [])
        self.assertEqual([g["name"] for g in document["groups"]], ["postgres"])
        self.assert_fails('no group "postgre"', "explain", "-g", "postgre", STATE)

    def test_the_control_group_of_a_group(self):
        document = load(STATE)
        group_of(document, "other").update(cgroup="/a", cgroup_absence="shared")
        path = self.write(document)
        words = (
            "\nGroups without values of a control group: other "
            "(its control group has other processes, too)\n"
        )
        self.assertIn(words, self.report("explain", "-g", "other", path))
        text = self.report("explain", "-g", "postgres", path)
        self.assertNotIn("without values", text)

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
        heading, groups, processes = text.split("\n\n")
        self.assertEqual(
            heading,
            "db1.example.org, 2026-11-21 13:20:00 UTC to 2026-11-21 13:20:00 UTC",
        )
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
                ["-1500", "1500", "0", "gone", "950", "bash"],
                ["+7", "0", "7", "new", "5000", "new"],
                ["+5", "6000", "6005", "restarted", "800>4800", "nginx"],
            ],
        )

    def test_options(self):
        new = self.changed()
        rows = self.rows("diff", "-Hk", "-n1", "-g", "postgres", STATE, new)
        self.assertEqual(rows[0], ["+19.5M", "107M", "127M", "postgres"])
        self.assertEqual(self.rows("diff", "-Hn", "0", STATE, new), [[]])
        rows = self.rows("diff", "-H", "-s", "uss", "-g", "other", STATE, new)
        self.assertEqual(rows[1], ["-1200", "1200", "0", "gone", "950", "bash"])
        document = json.loads(self.report("diff", "-j", STATE, new))
        self.assertEqual(
            document["groups"][0],
            {"group": "by-postgres", "how": "stayed", "old": 110000 * KIB,
             "new": 130000 * KIB, "change": 20000 * KIB,
             "old_error": 20 * KIB, "new_error": 20 * KIB},
        )  # fmt: skip
        self.assertEqual(
            document["processes"][1],
            {"comm": "bash", "old_pid": 950, "how": "gone", "old": 1500 * KIB,
             "change": -1500 * KIB, "old_error": 0, "old_source": "read"},
        )  # fmt: skip
        self.assertNotIn("mappings", document)
        self.assert_fails('no group "x"', "diff", "-g", "x", STATE, new)

    def test_growth_within_the_errors_passes_the_gate(self):
        """A group that was guessed is neither judged nor shown as exact."""
        document = load(self.changed())
        group = next(g for g in document["groups"] if g["name"] == "postgres")
        group["pss_error"] = 19000 * KIB
        for process in document["processes"]:
            if process["comm"] == "postgres":
                process["source"] = "guessed"
        new = self.write(document, "guessed.json")
        args = ("-g", "postgres", STATE, new)
        self.assertEqual(run("diff", "--fail-over", "2M", *args).returncode, 0)
        self.assertEqual(run("diff", "--fail-over", "0", *args).returncode, 1)
        text = self.report("diff", "-H", *args)
        self.assertIn("130000 ± 19000", text)
        self.assertIn("guessed", text)
        changes = json.loads(self.report("diff", "-j", *args))
        self.assertEqual(changes["groups"][0]["new_error"], 19000 * KIB)
        self.assertEqual(changes["processes"][0]["source"], "guessed")

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

    def test_unknown_values_pass_the_gate(self):
        document = load(STATE)
        group_of(document, "vault.service")["usage"]["pss"] = MIB * 900
        new = self.write(document, "new.json")
        for old_new in ((STATE, new), (new, STATE)):
            done = run("diff", "--fail-over", "1K", *old_new)
            self.assertEqual(done.returncode, 0)
            self.assertIn('"vault.service": PSS is unknown', done.words)

    def test_gate_compares_pss_whatever_is_shown(self):
        new = self.changed()
        done = run("diff", "-s", "uss", "--fail-over", "1M", STATE, new)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.words.count("grew from"), 2)


class Since(ReportTest):
    """OLD is found in the history of the configuration, and NEW is its state."""

    def setUp(self):
        super().setUp()
        self.now = int(time.time())
        self.history = self.directory / "history"
        self.history.mkdir()
        for age, mib in ((7200, 50), (3600, 70), (600, 90)):
            self.keep(self.now - age, mib)
        document = self.state(self.now, 100)
        self.new = self.write(document, "smaps.json")
        self.config = self.configure(
            f'StateHistory "{self.history}"', f'StateFile "{self.new}"'
        )

    def configure(self, *options):
        lines = ["LoadPlugin smaps", "<Plugin smaps>", *options, "</Plugin>", ""]
        return self.write("\n".join(lines).encode(), "collectd.conf")

    def state(self, seconds, mib):
        document = load(STATE)
        document["time"] = seconds
        group_of(document, "postgres")["usage"]["pss"] = mib * MIB
        return document

    def keep(self, seconds, mib):
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))
        name = f"history/smaps-{when}-state.json"
        return self.write(self.state(seconds, mib), name)

    def growth(self, since, *more):
        """How much postgres has grown, in MiB."""
        args = ("diff", "-j", "-C", self.config, "--since", since, *more)
        document = json.loads(self.report(*args))
        (group,) = [g for g in document["groups"] if g["group"] == "postgres"]
        return group["change"] // MIB

    def test_an_age_or_a_time_finds_the_state_before_it(self):
        def at(age, pattern):
            return time.strftime(pattern, time.gmtime(self.now - age))

        for since, mib in (
            ("90m", 50), ("1h", 30), ("60s", 10), ("1h59m", 50),
            (at(3700, "%H:%M"), 50), (at(3599, "%H:%M:%S"), 30),
        ):  # fmt: skip
            with self.subTest(since):
                self.assertEqual(self.growth(since), mib)

    def test_new_may_be_another_snapshot(self):
        new = self.write(self.state(self.now, 300), "other.json")
        self.assertEqual(self.growth("1h", new), 230)

    def test_both_times_are_shown(self):
        args = ("diff", "-C", self.config, "--since", "2h")
        heading = self.report(*args).splitlines()[0]
        old, new = (
            time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
            for seconds in (self.now - 7200, self.now)
        )
        self.assertTrue(heading.endswith(f", {old} to {new} (2h00m)"), heading)
        self.assertNotIn("UTC", self.report(*args, "-H"))
        document = json.loads(self.report(*args, "-j"))
        times = document["old_time"], document["time"]
        self.assertEqual(times, (self.now - 7200, self.now))

    def test_html_compares_in_the_same_way(self):
        old = self.keep(self.now - 3000, 80)
        for new in ((), (self.write(self.state(self.now, 300), "other.json"),)):
            with self.subTest(new):
                page = self.report("html", "-C", self.config, "--since", "45m", *new)
                want = self.report("html", *(new or (self.new,)), old)
                self.assertEqual(page, want)
        self.configure(f'StateFile "{self.new}"')
        args = ("html", "--since", "1h", "-C", self.config)
        self.assert_fails("StateHistory is not set in ", *args)

    def test_what_is_missing_is_named(self):
        args = ("diff", "--since", "3h")
        self.assert_fails("the oldest is of ", *args, "-C", self.config)
        done = run(*args, "-C", "/nowhere")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere: No such file", done.words)
        self.configure(f'StateHistory "{self.history}"')
        args = ("diff", "--since", "1h", "-C", self.config)
        self.assert_fails("StateFile is not set: expected NEW", *args)
        self.configure(f'StateFile "{self.new}"')
        self.assert_fails("StateHistory is not set in ", *args)
        self.configure('StateHistory "/nowhere"', f'StateFile "{self.new}"')
        self.assert_fails("/nowhere: No such file", *args)
        self.configure("MaxAge 0")
        done = run(*args)
        self.assertEqual(done.returncode, 2)
        self.assertIn("MaxAge 0: expected", done.words)
