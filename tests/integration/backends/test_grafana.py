# SPDX-License-Identifier: MIT
"""The dashboards: well-formed, and every query in them brings what it should.

Grafana is in no distribution, so that it is not run here. What it does to a
query before it sends it, putting in the values of variables, is done in
Dashboard.fill; the query then goes to a real Prometheus or InfluxDB that the
real plugin has filled.
"""

import json
import math
import re
import subprocess
import sys
import time
import unittest

from harness import ROOT, mem_total, need_host, sees_host, wait_until
from server import BackendTest, free_port, load_smaps, shape_group
from test_influxdb import Influx
from test_prometheus import Prometheus, of_an_interval, write_prometheus

FILES = ROOT / "contrib/grafana"
KINDS = ("prometheus", "influxdb")

# A name that means something in a regular expression, and to the servers'
# languages.
ODD_GROUP = "odd (a.b|c)* 'x' \"y\""

SMAPS = load_smaps(
    'Report "detail"',
    shape_group("web"),
    shape_group("odd", r"odd (a.b|c)* 'x' \"y\""),
    shape_group("none", "oddXaYb"),
)
GROUPS = {"web", ODD_GROUP, "oddXaYb"}

# The panels of values that only some groups have: test_grafana_limits.
OF_SOME = {
    "Use of the limit",
    "Memory and limits of control groups",
    "OOM kills",
    "Growth by group",
    "Time until the limit",
}

# What a variable's value is where the user has chosen All.
ALL = ["$__all"]

RANGE_SECONDS = 900

UNITS = {"bytes", "binBps", "percent", "s", "short"}


class Dashboard:
    """One of the files, read as Grafana does."""

    def __init__(self, kind):
        self.kind = kind
        self.model = json.loads((FILES / f"smaps-{kind}.json").read_text())
        self.variables = {
            variable["name"]: variable
            for variable in self.model["templating"]["list"]
        }

    def panels(self):
        return [p for p in self.model["panels"] if p["type"] != "row"]

    def targets(self):
        """Yields (title of the panel, panel, target) of each query."""
        return [
            (panel["title"], panel, target)
            for panel in self.panels()
            for target in panel["targets"]
        ]

    def fill(self, text, **chosen):
        """A query with the values put in. Nothing may be left to put in."""
        now = int(time.time() * 1000)
        begin = now - RANGE_SECONDS * 1000
        built_in = {
            "__interval": "20s",
            "__rate_interval": "1m20s",
            "__range": f"{RANGE_SECONDS}s",
            "timeFilter": f"time >= {begin}ms and time <= {now}ms",
        }

        def value(found):
            name = found["plain"] or found["braced"]
            if name in built_in:
                return built_in[name]
            return self._value(name, found["format"], chosen[name])

        filled = re.sub(
            r"\$(?P<plain>[a-zA-Z_]\w*)"
            r"|\$\{(?P<braced>\w+)(:(?P<format>\w+))?\}",
            value,
            text,
        )
        if re.search(r"\$[\w{]|\[\[", filled):
            raise AssertionError(f"not understood: {filled}")
        return filled

    def _value(self, name, form, value):
        variable = self.variables[name]
        if isinstance(value, str):
            return value
        if value == ALL:
            # The value configured for All is put in as it is.
            return variable["allValue"]
        if form != "regex":
            raise AssertionError(f"{name} may have several values")
        escaped = [escape_regex(one) for one in value]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def escape_regex(text):
    """Does the same as Grafana for the format "regex"."""
    return re.sub(r"[\\^$*+?.()|[\]{}/]", r"\\\g<0>", text)


# ---- asking as Grafana does ----


class PrometheusSource:
    """Answers are [(labels, value...)]."""

    def __init__(self, server):
        self.server = server
        self.dashboard = Dashboard("prometheus")

    def ask(self, target, **chosen):
        query = self.dashboard.fill(target["expr"], **chosen)
        if target["instant"]:
            return self.server.query(query)
        now = time.time()
        result = self.server.get(
            "/api/v1/query_range",
            query=query,
            start=now - RANGE_SECONDS,
            end=now,
            step=5,
        )["result"]
        return [
            (series["metric"], *(float(value) for _, value in series["values"]))
            for series in result
        ]

    def options(self, name, **chosen):
        """Returns the values of label_values(METRIC, LABEL)."""
        query = self.dashboard.variables[name]["query"]["query"]
        query = self.dashboard.fill(query, **chosen)
        metric, label = re.fullmatch(
            r"label_values\((.+), (\w+)\)", query
        ).groups()
        return self.server.get(
            f"/api/v1/label/{label}/values",
            **{"match[]": metric, "start": time.time() - RANGE_SECONDS},
        )

    @staticmethod
    def legend(target, labels):
        """Returns the text of the legend, or the labels by which rows of a
        table differ."""
        if target["instant"]:
            return f"{labels['instance']} {labels['group']}"
        return re.sub(
            r"{{(\w+)}}",
            lambda found: labels[found[1]],
            target["legendFormat"],
        )


class InfluxSource:
    def __init__(self, server):
        self.server = server
        self.dashboard = Dashboard("influxdb")

    def ask(self, target, **chosen):
        query = self.dashboard.fill(target["query"], **chosen)
        answer = []
        for series in self.server.query(query):
            values = [
                value
                for _, *row in series["values"]
                for value in row
                if value is not None
            ]
            answer.append((series.get("tags", {}), *values))
        return answer

    def options(self, name, **chosen):
        query = self.dashboard.variables[name]["query"]["query"]
        query = self.dashboard.fill(query, **chosen)
        return [
            value
            for series in self.server.query(query)
            for _, value in series["values"]
        ]

    @staticmethod
    def legend(target, tags):
        if target["resultFormat"] == "table":
            return f"{tags['host']} {tags['instance']}"
        return re.sub(
            r"\$tag_(\w+)", lambda found: tags[found[1]], target["alias"]
        )


# ---- queries ----


def wait_answer(source, target, condition=bool, **variables):
    """On a slow machine an interval is late, and series end until it comes."""

    def find():
        answer = source.ask(target, **variables)
        return condition(answer) and (answer,)

    return wait_until(find, lambda: f"an answer to {target}")[0]


def groups_of(answer):
    """"instance" is the host in Prometheus, the group in InfluxDB."""
    return {
        labels.get("group", labels.get("instance")) for labels, *_ in answer
    } - {"alpha", None}


class QueriesTest(BackendTest):
    """For tests that ask both sources."""

    @classmethod
    def fill(cls, holder, smaps, interval):
        """Has a single daemon fill both servers, once for all tests. The holder
        starts things as a test does, but ends them after the last one."""
        port = free_port()
        influx = Influx(holder)
        cls.daemon = holder.start_daemon(
            smaps + write_prometheus(port) + influx.by_network(),
            host="alpha",
            interval=interval,
        )
        prometheus = Prometheus(holder, port)
        cls.sources = {
            "prometheus": PrometheusSource(prometheus),
            "influxdb": InfluxSource(influx),
        }
        return prometheus, influx

    def each_target(self, check, uses="", titles=None):
        """check(source, panel, target) for each query that uses a variable, in
        panels of these titles; all but OF_SOME by default."""
        for kind, source in self.sources.items():
            dashboard = source.dashboard
            chosen = titles or {p["title"] for p in dashboard.panels()} - OF_SOME
            if not sees_host():
                chosen -= {"Where is the memory"}
            for title, panel, target in dashboard.targets():
                text = target.get("expr", target.get("query"))
                if title in chosen and uses in text:
                    with self.subTest(f"{kind}: {title} {target['refId']}"):
                        check(source, panel, target)


class Queries(QueriesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        holder = BackendTest()
        cls.addClassCleanup(holder.doCleanups)
        holder.start_shape("cow", name="web", mib=8, rewrite_mib=2)
        holder.start_shape("anon", name="odd", mib=2)
        prometheus, influx = cls.fill(holder, SMAPS, 0.2)
        # Growth takes two values.
        prometheus.wait_query(
            'count_over_time(smaps_plugin_denied[1m]) > 2'
        )
        # The last value of a cycle.
        last = "SELECT value FROM smaps WHERE type_instance = 'groups_refused'"
        influx.server.wait_ready(lambda: influx.query(last), "filled")

    def test_every_query_returns_series_for_all_groups(self):
        def check(source, _, target):
            answer = wait_answer(source, target, host="alpha", group=ALL)
            legends = [source.legend(target, row[0]) for row in answer]
            self.assertEqual(len(set(legends)), len(legends), legends)
            for _, *values in answer:
                self.assertTrue(values)
                self.assertTrue(all(map(math.isfinite, values)), values)

        self.each_target(check)

    def test_queries_by_group_return_the_chosen_groups(self):
        by_group = set()

        def check(source, panel, target):
            for chosen in (ALL, ["web"], ["web", ODD_GROUP]):
                expected = GROUPS if chosen == ALL else set(chosen)
                answer = wait_answer(
                    source,
                    target,
                    lambda a, e=expected: a and groups_of(a) in (set(), e),
                    host="alpha",
                    group=chosen,
                )
                if groups_of(answer):
                    by_group.add((source.dashboard.kind, panel["title"]))

        self.each_target(check, uses="${group")
        self.assertEqual(len(by_group), 2 * 12)

    def test_queries_for_another_host_return_nothing(self):
        def check(source, _, target):
            self.assertEqual(source.ask(target, host="x", group=ALL), [])

        self.each_target(check, uses="$host")

    def test_queries_for_a_group_without_data_return_nothing(self):
        def check(source, _, target):
            for chosen in (["no such"], [""]):
                answer = source.ask(target, host="alpha", group=chosen)
                self.assertEqual(answer, [])

        self.each_target(check, uses="${group")

    def test_variables_have_the_hosts_and_the_groups(self):
        for kind, source in self.sources.items():
            with self.subTest(kind):
                self.assertEqual(source.options("host"), ["alpha"])
                options = source.options("group", host="alpha")
                self.assertEqual(set(options), GROUPS)
                self.assertEqual(source.options("group", host="x"), [])

    def test_no_group_is_called_host(self):
        """The values of the host have a name in common with those of groups:
        they would double the sums."""
        need_host()
        written = self.daemon.values()
        common = written["host"].keys() & written["web"].keys()
        self.assertLessEqual(
            {"memory-page_tables", "memory-kernel_stack"}, common
        )

        def check(source, _, target):
            answer = source.ask(target, host="alpha", group=["host"])
            self.assertEqual(answer, [])

        self.each_target(check, uses="${group")

    def test_the_parts_of_the_host_end_at_mem_total(self):
        need_host()

        def parts_of(values):
            return {
                metric.removeprefix("memory-")
                for metric in values["host"]
                if metric.startswith("memory-")
            }

        total = mem_total()

        def check(source, panel, target):
            self.assertEqual(
                panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"],
                "normal",
            )
            def is_whole(answer):
                """Parts come and go with the swap of the host."""
                values = self.daemon.values()
                parts = {source.legend(target, labels) for labels, *_ in answer}
                least = parts_of(of_an_interval(values))
                return least <= parts <= parts_of(values)

            answer = wait_answer(source, target, is_whole, host="alpha")
            # A part may be of the interval before, or an average without it.
            self.assert_near(
                sum(values[-1] for _, *values in answer),
                total,
                0.03 * total,
                "the sum of the parts",
            )

        self.each_target(check, titles={"Where is the memory"})

    def test_values_are_equal_to_the_dispatched_ones(self):
        """Those of a panel, by way of everything, are the plugin's."""
        metrics = {
            "PSS by group": "memory-pss",
            "Page tables by group": "memory-page_tables",
            "Uptime by group": "uptime",
        }

        def check(source, panel, target):
            ((_, *values),) = wait_answer(
                source, target, host="alpha", group=["web"]
            )
            written = self.daemon.values()["web"][metrics[panel["title"]]]
            lowest = min(row[1] for row in written)
            highest = max(row[1] for row in written)
            # InfluxDB gives averages, which rounding may move.
            for value in values:
                self.assertLessEqual(lowest - 1, value)
                self.assertLessEqual(value, highest + 1)

        self.each_target(check, titles=metrics.keys())

    def test_the_total_is_equal_to_the_sum_over_groups(self):
        sums = {}

        def check(source, _, target):
            ((_, *values),) = wait_answer(
                source, target, host="alpha", group=ALL
            )
            sums.setdefault(target["refId"], []).append(values[-1])

        self.each_target(check, titles={"USS and shared part"})
        self.assertEqual({len(values) for values in sums.values()}, {2})
        written = self.daemon.values()
        for letter, metric in {"A": "memory-pss", "B": "memory-uss"}.items():
            expected = sum(written[group][metric][-1][1] for group in GROUPS)
            for value in sums[letter]:
                self.assert_near(value, expected, 0.1 * expected, metric)


# ---- the form ----


class Form(unittest.TestCase):
    """The rules of Grafana's description of the format, as far as a dashboard
    of this kind has it."""

    @staticmethod
    def dashboards():
        return [Dashboard(kind) for kind in KINDS]

    def test_make_dashboards_reports_what_is_wrong(self):
        done = subprocess.run(
            [sys.executable, FILES / "make-dashboards", "/nonexistent"],
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Amake-dashboards: .*nonexistent.*\n\Z")

    def test_every_dashboard_has_what_grafana_needs(self):
        for dashboard in self.dashboards():
            model = dashboard.model
            for name in ("title", "uid", "description"):
                self.assertTrue(model[name], name)
            self.assertLessEqual(len(model["uid"]), 40)
            self.assertGreaterEqual(model["schemaVersion"], 39)
            # An id is one of the instance that it was exported from.
            self.assertNotIn("id", model)
            self.assertEqual(model["time"], {"from": "now-6h", "to": "now"})

    def test_panels_are_within_the_grid_and_do_not_overlap(self):
        for dashboard in self.dashboards():
            taken = set()
            for panel in dashboard.model["panels"]:
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24)
                cells = {
                    (place["x"] + column, place["y"] + line)
                    for column in range(place["w"])
                    for line in range(place["h"])
                }
                self.assertTrue(cells)
                self.assertFalse(cells & taken, panel["title"])
                taken |= cells

    def test_panels_are_of_a_known_kind_and_explained(self):
        for dashboard in self.dashboards():
            for panel in dashboard.panels():
                self.assertIn(panel["type"], {"timeseries", "table"})
                self.assertGreater(len(panel["description"]), 20)
                unit = panel["fieldConfig"]["defaults"]["unit"]
                self.assertIn(unit, UNITS)

    def test_every_query_has_a_letter_and_asks_the_chosen_source(self):
        for dashboard in self.dashboards():
            source = {"type": dashboard.kind, "uid": "${datasource}"}
            for panel in dashboard.panels():
                letters = [target["refId"] for target in panel["targets"]]
                self.assertTrue(letters)
                self.assertEqual(len(set(letters)), len(letters))
                self.assertEqual(panel["datasource"], source)
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"], source)

    def test_the_source_is_a_variable_of_its_kind(self):
        for dashboard in self.dashboards():
            first, *others = dashboard.model["templating"]["list"]
            self.assertEqual(first["name"], "datasource")
            self.assertEqual(first["type"], "datasource")
            self.assertEqual(first["query"], dashboard.kind)
            asked = [v for v in others if v["type"] == "query"]
            self.assertEqual([v["name"] for v in asked], ["host", "group"])
            for variable in asked:
                self.assertEqual(
                    variable["datasource"],
                    {"type": dashboard.kind, "uid": "${datasource}"},
                )

    def test_every_used_variable_is_defined(self):
        for dashboard in self.dashboards():
            text = json.dumps(dashboard.model)
            used = set(re.findall(r"\$\{?([a-z]\w*)", text)) - {
                "timeFilter",
                "tag_host",
                "tag_instance",
                "tag_type_instance",
            }
            self.assertEqual(used, dashboard.variables.keys())

    def test_panels_below_a_host_are_of_that_host(self):
        for dashboard in self.dashboards():
            of_host = False
            for panel in dashboard.model["panels"]:
                if panel["type"] == "row":
                    of_host = "$host" in panel["title"]
                for target in panel.get("targets", []):
                    self.assertEqual("$host" in json.dumps(target), of_host)

    def test_unknown_values_are_drawn_as_a_gap(self):
        for dashboard in self.dashboards():
            for panel in dashboard.panels():
                if panel["type"] == "timeseries":
                    custom = panel["fieldConfig"]["defaults"]["custom"]
                    self.assertIs(custom["spanNulls"], False)
            for _, _, target in dashboard.targets():
                self.assertNotRegex(json.dumps(target), r"fill\((?!null\))")
                self.assertNotIn("or vector(", json.dumps(target))

    def test_one_unknown_group_makes_no_gap_in_a_sum(self):
        """NaN is not above 0."""
        sums = [
            target["expr"]
            for title, _, target in Dashboard("prometheus").targets()
            if title in ("PSS by host", "USS and shared part")
        ]
        self.assertEqual(len(sums), 3)
        for expr in sums:
            self.assertTrue(expr.endswith(" >= 0)"), expr)

    def test_overrides_and_sortings_name_existing_columns(self):
        for dashboard in self.dashboards():
            for panel in dashboard.panels():
                text = json.dumps(
                    [panel["targets"], panel.get("transformations", [])]
                )
                named = [
                    override["matcher"]["options"]
                    for override in panel["fieldConfig"]["overrides"]
                    if override["matcher"]["id"] == "byName"
                ]
                letters = {
                    override["matcher"]["options"]
                    for override in panel["fieldConfig"]["overrides"]
                    if override["matcher"]["id"] == "byFrameRefID"
                }
                asked = {target["refId"] for target in panel["targets"]}
                self.assertLessEqual(letters, asked)
                if panel["type"] == "table":
                    named += [
                        column["displayName"]
                        for column in panel["options"]["sortBy"]
                    ]
                for name in named:
                    self.assertIn(name, text)

    def test_both_have_the_same_panels(self):
        titles = [
            [panel["title"] for panel in Dashboard(kind).model["panels"]]
            for kind in KINDS
        ]
        self.assertEqual(*titles)
        self.assertGreaterEqual(len(titles[0]), 25)
