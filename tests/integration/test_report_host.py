# SPDX-License-Identifier: MIT
"""smaps-report -w: groups and the rest of the host in one table that ends at
MemTotal."""

from snapshot import PARTS, PARTS_OF_SOME
from report import CAPTURE, KIB, STATE, ReportTest, load

# Of the fixture: in the order in which they are cut.
LAST_PARTS = ["unaccounted", "swap_cache", "page_cache", "tmpfs", "buffers"]


def main_groups(document):
    """{group: PSS}, each process in the group of the rule that took it."""
    rules = {group["name"]: group["rule"] for group in document["groups"]}
    sums = {}
    for one in document["processes"]:
        for name in one["groups"]:
            if rules[name] == one.get("rule"):
                pss = one.get("usage", {}).get("pss", 0)
                sums[name] = sums.get(name, 0) + pss
    return sums


class Areas(ReportTest):
    def areas(self, document, *args):
        """Returns {area or group: row}."""
        path = self.write(document)
        columns = "used,cache,noncache,used_error,area,group"
        rows = self.json("-w", "-c", columns, *args, path)
        self.assertEqual({row["row"] for row in rows}, {"area"})
        return {row.get("group", row["area"]): row for row in rows}

    def assert_ends_at_mem_total(self, document, areas):
        total = sum(row.get("used", 0) for row in areas.values())
        self.assertEqual(total, document["mem_total"])

    def test_areas_end_at_mem_total(self):
        document = load(STATE)
        host = document["host_memory"]
        areas = self.areas(document)
        self.assert_ends_at_mem_total(document, areas)
        for part in {*PARTS, *PARTS_OF_SOME} - {"groups"}:
            self.assertEqual(part in areas, part in host, part)
            if part in host:
                self.assertEqual(areas[part]["used"], host[part], part)
                error = host.get(f"{part}_error", 0)
                self.assertEqual(areas[part]["used_error"], error, part)

    def test_a_process_of_two_groups_counts_once(self):
        """A process counts in the group of its rule, and not in the view."""
        document = load(STATE)
        areas = self.areas(document)
        sums = main_groups(document)
        self.assertIn("by-postgres", {g["name"] for g in document["groups"]})
        self.assertNotIn("by-postgres", areas)
        for name, pss in sums.items():
            self.assertEqual(areas.get(name, {}).get("used", 0), pss, name)
        rest = document["host_memory"]["groups"] - sum(sums.values())
        self.assertGreater(rest, 0)
        self.assertEqual(areas["outside"]["used"], rest)

    def test_groups_that_do_not_overlap_are_as_in_their_table(self):
        """And not as the sum of their processes, of which some are unknown."""
        document = load(STATE)
        for one in document["processes"]:
            one["groups"] = one["groups"][-1:]
        areas = self.areas(document)
        for group in document["groups"]:
            row = areas[group["name"]]
            self.assertEqual(row.get("used"), group["usage"].get("pss"))
            self.assertEqual(row.get("cache"), group["usage"].get("pss_file"))

    def test_cache_is_memory_that_the_kernel_can_take_back(self):
        areas = self.areas(load(STATE))
        for name, row in areas.items():
            if name in ("free", "page_cache", "buffers", "slab_reclaimable"):
                self.assertEqual(row["cache"], row["used"], name)
            if name in ("tmpfs", "page_tables", "unaccounted"):
                self.assertEqual(row["cache"], 0, name)
            if "cache" in row:
                self.assertEqual(row["cache"] + row["noncache"], row["used"])

    def test_groups_that_have_more_take_from_the_least_certain(self):
        document = load(STATE)
        host = document["host_memory"]
        measured = sum(main_groups(document).values())
        for missing in (5_000_000, 1_080_000_000, 7_000_000_000):
            with self.subTest(missing):
                gone = host["groups"] - (measured - missing)
                changed = {**host, "groups": measured - missing}
                if measured < missing:
                    gone = host["groups"]
                    changed["groups"] = 0
                changed["free"] += gone
                one = {**document, "host_memory": changed}
                left = measured - changed["groups"]
                areas = self.areas(one)
                self.assert_ends_at_mem_total(one, areas)
                self.assertNotIn("outside", areas)
                for part in LAST_PARTS:
                    cut = min(left, changed[part])
                    row = areas[part]
                    self.assertEqual(row["used"], changed[part] - cut, part)
                    error = changed.get(f"{part}_error", 0) + cut
                    self.assertEqual(row["used_error"], error, part)
                    left -= cut

    def test_a_capture_has_groups_as_one(self):
        document = load(CAPTURE)
        areas = self.areas(document)
        self.assert_ends_at_mem_total(document, areas)
        host = document["host_memory"]
        self.assertEqual(areas["groups"]["used"], host["groups"])
        self.assertNotIn("group", areas["groups"])
        self.assertNotIn("postgres", areas)


class Tables(ReportTest):
    def test_the_total_is_mem_total(self):
        total = load(STATE)["mem_total"]
        self.assertEqual(self.rows("-wt", STATE)[-1][0], str(total // KIB))
        self.assertEqual(self.rows("-wt", STATE)[-1][-1], "total")
        row = self.json("-wt", STATE)[-1]
        self.assertEqual((row["row"], row["used"]), ("total", total))

    def test_undivided_areas_are_in_neither_sum(self):
        for path, undivided in (STATE, "outside"), (CAPTURE, "groups"):
            with self.subTest(path):
                *areas, total = self.json("-wt", path)
                areas = [row for row in areas if row["row"] == "area"]
                lacks = [row for row in areas if "cache" not in row]
                self.assertEqual([row["area"] for row in lacks], [undivided])
                for key in "cache", "noncache":
                    parts = sum(row.get(key, 0) for row in areas)
                    self.assertEqual(total[key], parts, key)
                self.assertEqual(total["at_least"], ["cache", "noncache"])
                last = self.report("-wt", path).splitlines()[-1]
                self.assertEqual(last.count("≥ "), 2, last)

    def test_an_error_that_is_not_small_is_shown(self):
        document = load(STATE)
        document["host_memory"]["tmpfs_error"] = 4 << 20
        document["host_memory"]["page_cache_error"] = 4 << 20
        text = self.report("-wk", self.write(document))
        (tmpfs,) = (line for line in text.splitlines() if "tmpfs" in line)
        (cache,) = (line for line in text.splitlines() if "page_cache" in line)
        self.assertIn("40.0M ± 4.00M", tmpfs)
        self.assertNotIn("±", cache)

    def test_document_without_the_host_is_refused(self):
        document = load(STATE)
        del document["host_memory"]
        path = self.write(document)
        self.assert_fails("has no memory of the host", "-w", path)

    def test_numbers_that_do_not_add_up_are_no_error(self):
        document = load(STATE)
        for key in document["host_memory"]:
            document["host_memory"][key] = (1 << 64) - 2
        self.assertTrue(self.report("-wt", self.write(document)))
        document["host_memory"] = {}
        self.assertTrue(self.report("-wt", self.write(document)))
