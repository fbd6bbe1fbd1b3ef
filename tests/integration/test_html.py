# SPDX-License-Identifier: MIT
"""smaps-report html: the file, and what a real browser makes of it. The browser
is a headless Chromium (browser.py); without one its tests are skipped."""

import base64
import copy
import hashlib
import random
import re

from html_page import Html, Page, amount, human, many, usage_of
from snapshot import group_of, process_of
from report import CAPTURE, MIB, STATE, load

# Names that strangers may choose, for whatever takes names.
HOSTILE = (
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<!--<script>",
    "\"' onmouseover=window.hit=1 x='",
    "javascript:window.hit=1",
    "&lt;b&gt;${window.hit=1}`",
    "__proto__",
    "a\u2028b\u202ec\u0007",
    "]]>--></style><svg onload=window.hit=1>",
)


def shown(name):
    """A name as the page shows it: what hides or reorders text is bytes."""
    return re.sub(
        "[\u2028\u202e\u0007]",
        lambda c: "".join(f"\\x{b:02x}" for b in c.group().encode()),
        name,
    )


class File(Html):
    def test_page_refers_to_nothing_outside(self):
        text = self.html(STATE)
        self.assertTrue(text.startswith("<!doctype html>\n"))
        self.assertTrue(text.endswith("</html>\n"))
        outside = r"https?:|//[a-z]|\b(src|href)=|@import|url\(|\bfetch\(|innerHTML|\beval\b"
        self.assertEqual(re.findall(outside, text), [])

    def test_the_policy_allows_its_own_script_and_style_alone(self):
        text = self.html(STATE)
        (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', text)
        self.assertTrue(policy.startswith("default-src 'none'; "), policy)
        for directive, element in (("script", "<script>"), ("style", "<style>")):
            (body,) = re.findall(f"{element}(.*?)</", text, re.DOTALL)
            digest = hashlib.sha256(body.encode()).digest()
            known = base64.b64encode(digest).decode()
            self.assertIn(f"{directive}-src 'sha256-{known}';", policy)
        self.assertNotIn("unsafe", policy)

    def test_page_is_small_compared_with_its_data(self):
        text = self.html(STATE)
        data = re.sub(r'(id="data">).*?(</script>)', r"\1\2", text, flags=re.DOTALL)
        self.assertLess(len(data.encode()), 60_000)

    def test_5000_processes_fit_into_6_mb(self):
        path = self.write(many(5000, 4096))
        old = self.write(many(5000, 4096, 7), "old.json")
        self.assertLess(len(self.html(path, old).encode()), 6_000_000)

    def test_mistakes(self):
        self.assert_fails("expected FILE [OLD]", "html")
        self.assert_fails("expected only FILE [OLD]", "html", STATE, STATE, STATE)
        self.assert_fails("-j: no such option", "html", "-j", STATE)
        self.assert_fails("--width: no such option", "html", "--width", 9, STATE)
        self.assert_fails("at most once", "html", "-", "-")
        self.assert_fails("No such file", "html", STATE, "/nonexistent")
        self.assert_fails("JSON", "html", self.write(b"no"))


class Shown(Page):
    def test_head_names_host_and_time(self):
        document = load(CAPTURE)
        tab = self.open(document)
        self.assertEqual(tab.texts("h1"), [document["host"]])
        (origin,) = tab.texts("#origin")
        for words in (
            "2026-11-21 13:21:00 UTC",
            "Linux 6.18.0",
            "16.0 GiB of memory",
            f"{human(document['mem_available'])} available",
            "2 processes of 3 listed",
        ):
            self.assertIn(words, origin)
        (alarm,) = tab.texts("#alarm")
        self.assertIn("WARNING about postgres at 2026-11-21 13:21:01", alarm)
        self.assertIn(document["trigger"]["message"], alarm)
        self.assertNotIn("had ended", alarm)
        self.assertNotIn("limit", alarm.replace("threshold", ""))
        group_of(document, "postgres").update(
            cgroup_limit=256 * MIB, cgroup_memory=192 * MIB
        )
        self.open(document)
        (alarm,) = tab.texts("#alarm")
        self.assertIn("The limit of the group is 256 MiB, 75 % in use.", alarm)
        group_of(document, "postgres")["last_known"] = document["time"] - 12
        self.open(document)
        (alarm,) = tab.texts("#alarm")
        self.assertIn("had ended: its values are the last known, of", alarm)
        self.assertIn("2026-11-21 13:20:48 UTC", alarm)
        self.open(STATE)
        self.assertEqual(tab.texts("#alarm"), [""])

    def test_the_strip_is_the_memory_of_the_host(self):
        document = load(STATE)
        tab = self.open(document)
        host = document["host_memory"]
        self.assertEqual(
            tab.texts("#memory h2"), ["Memory of the host: 16.0 GiB"]
        )
        titles = tab.attributes("#strip .part", "title")
        parts = dict(title.split("\n")[:2] for title in titles)
        for name in ("free", "page_cache", "tmpfs", "slab_reclaimable"):
            self.assertIn(f"{host[name]:,} bytes", parts[name])
        pss = group_of(document, "postgres")["usage"]["pss"]
        self.assertIn(f"{pss:,} bytes", parts["postgres"])
        widths = tab.evaluate(
            "[...document.querySelectorAll('#strip .part')]"
            ".map(e => e.getBoundingClientRect().width)"
        )
        all_of_it = tab.evaluate("document.querySelector('#strip').clientWidth")
        self.assertAlmostEqual(sum(widths), all_of_it, delta=2)
        (free,) = [w for w, t in zip(widths, titles) if t.startswith("free\n")]
        share = host["free"] / document["mem_total"]
        self.assertAlmostEqual(free, share * all_of_it, delta=2)

    def test_without_the_host_the_strip_shows_the_available_memory(self):
        document = load(STATE)
        del document["host_memory"]
        tab = self.open(document)
        words = " ".join(tab.texts("#areas li"))
        self.assertIn(f"available {human(document['mem_available'])}", words)

    def test_groups_are_sorted_and_marked(self):
        document = load(STATE)
        group_of(document, "other")["pss_error"] = 2 * MIB
        del group_of(document, "nginx.service")["usage"]["pss"]
        tab = self.open(document)
        names = tab.texts(".group-name")
        shown_pss = dict(zip(names, tab.texts(".group .pss")))
        for group in document["groups"]:
            usage, error = group["usage"], group.get("pss_error")
            if group["name"] != "nginx.service":
                want = amount(usage.get("pss"), error)
                self.assertEqual(shown_pss[group["name"]], want)
        self.assertEqual(shown_pss["other"], "4.39 MiB ± 2.00 MiB")
        members = [
            usage_of(p).get("pss", 0)
            for p in document["processes"]
            if "nginx.service" in p["groups"]
        ]
        least = shown_pss["nginx.service"]
        self.assertTrue(least.startswith(f"≥ {human(sum(members))}"), least)
        self.assertEqual(len(tab.texts(".bar .more")), 1)
        self.assertEqual(len(tab.texts(".bar .error")), 1)
        known = [g for g in document["groups"] if "pss" in g["usage"]]
        known.sort(key=lambda g: -g["usage"]["pss"])
        order = [n for n in names if n in [g["name"] for g in known]]
        self.assertEqual(order, [g["name"] for g in known])

    def test_a_bar_has_the_parts_of_its_group(self):
        document = load(STATE)
        usage = group_of(document, "postgres")["usage"]
        usage.update(
            {"pss": 100 * MIB, "uss": 60 * MIB, "rss": 200 * MIB, "pss_anon": 40 * MIB}
        )
        usage.update({"pss_file": 30 * MIB, "pss_shmem": 30 * MIB, "swap": 20 * MIB})
        usage["anonymous"] = 40 * MIB
        document["groups"] = [group_of(document, "postgres")]
        del document["groups"][0]["pss_error"]
        tab = self.open(document)
        pieces = tab.evaluate(
            "[...document.querySelectorAll('.bar .piece')]"
            ".map(e => [e.className, parseFloat(e.style.width), e.title])"
        )
        self.assertEqual(
            [(name, round(width, 1)) for name, width, _ in pieces],
            [
                ("piece anon", 33.3),
                ("piece file", 16.7),
                ("piece file hatched", 8.3),
                ("piece shmem hatched", 25.0),
                ("piece swap", 16.7),
            ],
        )
        self.assertIn("files, shared with others 10.0 MiB", pieces[2][2])
        cells = tab.texts(".details .quadrant")
        self.assertEqual(
            [cell.split("\n")[0] for cell in cells],
            ["40.0 MiB", "0 B", "20.0 MiB", "40.0 MiB"],
        )

    def test_a_huge_error_ends_at_the_scale(self):
        document = load(STATE)
        document["groups"] = [
            group_of(document, name) for name in ("postgres", "nginx.service", "other")
        ]
        group_of(document, "nginx.service")["pss_error"] = 900 * MIB
        group_of(document, "other")["pss_error"] = 2 * MIB
        tab = self.open(document)
        ends = tab.evaluate(
            "[...document.querySelectorAll('.bar')].map(bar =>"
            " Math.max(...[...bar.children].map(e => parseFloat(e.style.left)"
            " + parseFloat(e.style.width))))"
        )
        self.assertAlmostEqual(ends[0], 100, delta=0.1)
        self.assertAlmostEqual(ends[1], 100, delta=0.1)
        kinds = tab.attributes(".bar .error", "class")
        self.assertEqual(kinds, ["error cut", "error"])
        self.assertIn("± 900 MiB", tab.attributes(".bar .error", "title")[0])
        self.assertIn("± beyond the scale", tab.texts("#kinds li"))
        self.open(STATE)
        self.assertNotIn("± beyond the scale", tab.texts("#kinds li"))

    def test_a_group_has_the_causes_of_its_error(self):
        document = load(STATE)
        group = group_of(document, "other")
        group["usage"]["pss"] = 100 * MIB
        group.update(pss_error=2 * MIB, pss_error_by={"fork": 2 * MIB})
        document["groups"] = [group]
        tab = self.open(document)
        facts = " ".join(tab.texts(".details dl"))
        words = "because members were forked and have not been read since"
        self.assertIn(f"± 2.0 %: 2.0 % {words}", facts)
        del group["pss_error_by"]
        tab = self.open(document)
        self.assertNotIn("error of PSS", " ".join(tab.texts(".details dl")))

    def test_growth_has_its_times(self):
        document = load(STATE)
        group = group_of(document, "other")
        group.update(growth=30000, until_limit=1301, grows_since=document["time"] - 7200)
        document["groups"] = [group]
        facts = " ".join(self.open(document).texts(".details dl"))
        self.assertIn("2026-11-21 11:20:00 UTC", facts)
        self.assertIn("21m41s, at 2026-11-21 13:41:41 UTC", facts)

    def test_an_error_is_drawn_as_in_the_legend(self):
        document = load(STATE)
        group_of(document, "other")["pss_error"] = 2 * MIB
        tab = self.open(document)
        legend, bar = tab.evaluate(
            "['#kinds .error', '.bar .error'].map(s => {"
            " const c = getComputedStyle(document.querySelector(s));"
            " return ['backgroundImage', 'backgroundSize', 'backgroundPosition',"
            " 'backgroundRepeat', 'borderLeft', 'borderRight', 'borderTopWidth']"
            ".map(key => c[key]); })"
        )
        self.assertEqual(legend, bar)
        height = tab.evaluate("document.querySelector('.bar .error').clientHeight")
        self.assertGreater(height, 8)

    def test_tables_have_the_numbers_of_the_document(self):
        document = load(STATE)
        self.open(document)
        rows = {row["PID"]: row for row in self.table("#processes")}
        self.assertEqual(len(rows), len(document["processes"]))
        for one in document["processes"]:
            row, usage = rows[str(one["pid"])], usage_of(one)
            want = amount(usage.get("pss"), one.get("pss_error"))
            self.assertEqual(row["PSS"], want)
            for title in ("USS", "RSS", "Swap"):
                self.assertEqual(row[title], human(usage.get(title.lower())), one)
            self.assertEqual(row["User"], one["user"])
            self.assertEqual(set(row["Group"].split(", ")) - {""}, set(one["groups"]))

    def test_mappings_have_the_numbers_of_the_capture(self):
        document = load(CAPTURE)
        self.open(document)
        rows = {row["Name"]: row for row in self.table("#mappings")}
        for one in document["mappings"]:
            row = rows[one.get("name", "[rest]")]
            self.assertEqual(row["PSS"], human(one["pss"]))
            self.assertEqual(row["Size"], human(one["size"]))
            private = one["private_clean"] + one["private_dirty"]
            self.assertEqual(row["Private"], human(private))
        self.assertEqual(rows["[heap]"]["Anonymous"], rows["[heap]"]["PSS"])
        self.assertEqual(rows["/dev/shm/PostgreSQL.42"]["Shmem"], "22.5 MiB")
        self.open(STATE)
        self.assertIn("Only a capture", " ".join(self.tab.texts("#mappings p")))
        del document["processes"][0]["mappings"]
        self.open(document)
        note = "The mappings of 1 process could not be read."
        self.assertEqual(self.tab.texts("#mappings p"), [note])
        document["mappings"] = []
        self.open(document)
        self.assertEqual(self.tab.texts("#mappings p"), [note])
        group_of(document, "postgres")["last_known"] = document["time"] - 12
        self.open(document)
        (note,) = self.tab.texts("#mappings p")
        self.assertIn("had ended before", note)

    def test_changes_since_an_older_document(self):
        old, new = load(STATE), load(STATE)
        new["time"] += 600
        group_of(new, "postgres")["usage"]["pss"] += 50 * MIB
        process_of(new, 700)["usage"]["pss"] += 50 * MIB
        new["processes"] = [p for p in new["processes"] if p["pid"] != 950]
        new["processes"].append({**process_of(old, 702), "pid": 703, "comm": "new"})
        tab = self.open(new, old)
        self.assertIn("10m00s before", tab.texts("#since")[0])
        (first, *_) = self.table("#tables .table:nth-child(1)")
        self.assertEqual(
            (first["Name"], first["Change"], first["What"]),
            ("postgres", "+50.0 MiB", "grew"),
        )
        rows = {row["PID"]: row for row in self.table("#tables .table:nth-child(2)")}
        self.assertEqual(rows["700"]["Change"], "+50.0 MiB")
        self.assertEqual(rows["950"]["What"], "gone")
        self.assertEqual(rows["950"]["Change"], "−" + human(1536000))
        self.assertEqual(rows["703"]["What"], "new")
        changes = {row["PID"]: row["Change"] for row in self.table("#processes")}
        self.assertEqual(changes["700"], "+50.0 MiB")
        self.assertEqual(changes["701"], "0 B")
        names = tab.texts(".group-name")
        marks = tab.attributes(".bar .old", "title")
        pss = group_of(old, "postgres")["usage"]["pss"]
        at = [n for n in names if "pss" in group_of(old, n)["usage"]]
        self.assertIn(f"{pss:,} bytes", marks[at.index("postgres")])


class Used(Page):
    def test_tiles_lead_to_mappings_and_back(self):
        document = load(CAPTURE)
        tab = self.open(document)
        pss = group_of(document, "postgres")["usage"]["pss"]
        self.assertEqual(self.tiles(), {"postgres": f"PSS {human(pss)}"})
        tab.click("#tiles .level1")
        want = {
            f"postgres {p['pid']}": f"PSS {human(p['usage']['pss'])}"
            for p in document["processes"]
        }
        listed = sum(p["usage"]["pss"] for p in document["processes"])
        want["[rest]"] = f"PSS {human(pss - listed)}"
        self.assertEqual(self.tiles(), want)
        # A click on a tile within a tile opens the inner one.
        tab.click("#tiles .level2")
        mappings = process_of(document, 700)["mappings"]
        self.assertEqual(
            self.tiles(),
            {m.get("name", "[rest]"): f"PSS {human(m['pss'])}" for m in mappings},
        )
        self.assertEqual(
            [step.split("\n")[0].rsplit(" ", 2)[0] for step in self.path()],
            ["Capture", "postgres", "postgres 700"],
        )
        # A click on a mapping opens nothing.
        tab.click("#tiles .level1")
        self.assertEqual(len(self.path()), 3)
        tab.click("#path button", 1)
        self.assertEqual(self.tiles(), want)
        tab.click("#path button", 0)
        self.assertEqual(len(self.path()), 1)
        for length in (2, 1):
            tab.evaluate(
                "new Promise(done => { addEventListener('hashchange',"
                " () => setTimeout(done), {once: true}); history.back(); })"
            )
            self.assertEqual(len(self.path()), 3 if length == 1 else 2)
        self.assert_quiet()

    def test_an_address_leads_to_its_place(self):
        self.open(load(CAPTURE), hash_="#map=postgres/701")
        self.assertEqual(len(self.path()), 3)
        for place in ("#map=nobody/1", "#map=%", "#%3Cscript%3E", "#map=postgres/x"):
            self.open(load(CAPTURE), hash_=place)
            self.assertLess(len(self.path()), 3)

    def test_keys(self):
        tab = self.open(load(CAPTURE))
        tab.evaluate("document.querySelector('#tiles .level1').focus()")
        tab.press("Enter")
        self.assertIn("postgres 700", self.focus())
        tab.press("ArrowRight")
        self.assertIn("postgres 701", self.focus())
        tab.press("ArrowDown")
        self.assertIn("[rest]", self.focus())
        tab.press("ArrowDown")
        self.assertIn("[rest]", self.focus())
        tab.press("Enter")
        self.assertEqual(len(self.path()), 2)
        tab.press("ArrowUp")
        tab.press("Enter")
        self.assertEqual(len(self.path()), 3)
        tab.press("Escape")
        self.assertIn("postgres 701", self.focus())
        tab.press("Escape")
        tab.press("Escape")
        self.assertEqual(len(self.path()), 1)
        # One stop of Tab, whatever the number of tiles.
        stops = tab.evaluate("document.querySelectorAll('#tiles [tabindex=\"0\"]').length")
        self.assertEqual(stops, 1)
        tab.press("/")
        tab.type("702")
        self.assertEqual(tab.evaluate("document.activeElement.value"), "702")
        self.assertEqual(self.table("#processes"), [])
        self.assert_quiet()

    def test_tables_sort_by_each_column(self):
        document = load(STATE)
        tab = self.open(document)
        by_pid = {str(p["pid"]): p for p in document["processes"]}
        for title, key in (("PSS", "pss"), ("RSS", "rss"), ("Swap", "swap")):
            for _ in range(2):
                self.sort_by("#processes", title)
                (order,) = filter(None, tab.attributes("#processes th", "aria-sort"))
                values = [
                    usage_of(by_pid[row["PID"]]).get(key)
                    for row in self.table("#processes")
                ]
                known = [v for v in values if v is not None]
                self.assertEqual(values[: len(known)], known, "unknown come last")
                want = sorted(known, reverse=order == "descending")
                self.assertEqual(known, want, (title, order))
        self.sort_by("#processes", "PID")
        pids = [int(row["PID"]) for row in self.table("#processes")]
        self.assertEqual(pids, sorted(pids))
        self.sort_by("#processes", "User")
        users = [row["User"] for row in self.table("#processes")]
        self.assertEqual(users, sorted(users))

    def test_search(self):
        tab = self.open(STATE)
        tab.click("#processes input")
        tab.type("POSTGRES checkpointer")
        rows = self.table("#processes")
        self.assertEqual([row["PID"] for row in rows], ["701"])
        self.assertIn("1 of 10", tab.texts("#processes [role=status]")[0])

    def test_groups_open_and_lead_to_the_map(self):
        tab = self.open(STATE)
        names = tab.texts(".group-name")
        n = names.index("nginx.service")
        tab.click(".group-name", n)
        self.assertEqual(tab.attributes(".group-name", "aria-expanded")[n], "true")
        opened = tab.evaluate(
            f"document.querySelectorAll('.group')[{n}].querySelectorAll('.quadrant').length"
        )
        self.assertEqual(opened, 4)
        tab.evaluate(f"document.querySelectorAll('.group')[{n}].querySelector('.details button').click()")
        self.assertEqual(len(self.path()), 2)
        self.assertIn("nginx 800", self.tiles())

    def test_themes(self):
        tab = self.open(STATE)
        ground = "getComputedStyle(document.body).backgroundColor"
        light = tab.evaluate(ground)
        tab.emulate("dark")
        dark = tab.evaluate(ground)
        self.assertNotEqual(light, dark)
        tab.click("#theme")
        self.assertEqual(tab.evaluate(ground), light)
        tab.click("#theme")
        self.assertEqual(tab.evaluate(ground), dark)
        tab.emulate("dark", "print")
        self.assertEqual(tab.evaluate(ground), light)
        self.assertEqual(
            tab.evaluate("getComputedStyle(document.querySelector('input')).display"),
            "none",
        )

    def test_no_column_is_cut_and_commands_are_in_the_middle(self):
        document, old = many(60, 2000), many(60, 2000, 7)
        java = document["processes"][-1]
        java["comm"] = "java"
        java["command_line"] = (
            f"/usr/bin/java -cp {'/opt/lib/a.jar:' * 99} org.x.Main /etc/x.conf"
        )
        for width in (1000, 1240, 1300, 1520, 1700):
            with self.subTest(width):
                self.tab.resize(width, 900)
                tab = self.open(document, old)
                room, needed = tab.evaluate(
                    "(e => [e.clientWidth, e.scrollWidth])"
                    "(document.querySelector('#processes .scroll'))"
                )
                self.assertLessEqual(needed, room)
                head, tail = tab.evaluate(
                    "[...document.querySelectorAll('#processes td.long span')]"
                    ".slice(0, 2).map(e => [e.textContent, e.scrollWidth,"
                    " e.clientWidth, e.getBoundingClientRect().right])"
                )
                self.assertTrue(head[0].startswith("org.x.Main: /usr/bin/java"))
                self.assertGreater(head[1], head[2], "it is cut")
                self.assertTrue(tail[0].endswith("org.x.Main /etc/x.conf"[-20:]))
                cell = tab.evaluate(
                    "document.querySelector('#processes td.long')"
                    ".getBoundingClientRect().right"
                )
                self.assertLessEqual(tail[3], cell)

    def test_a_narrow_screen_has_room_for_names(self):
        """Beside an error, and beside a change."""
        name = "postgresql@15-main.service"
        document, old = load(STATE), load(STATE)
        for one in (document, old):
            group_of(one, "postgres").update(name=name, pss_error=99 * MIB)
        group_of(old, name)["usage"]["pss"] -= 20 * MIB
        self.tab.resize(400, 800)
        tab = self.open(document, old)
        n = tab.texts(".group-name").index(name)
        width, text_width = tab.evaluate(
            f"(e => [e.clientWidth, e.scrollWidth])"
            f"(document.querySelectorAll('.group-name')[{n}])"
        )
        self.assertGreater(width, 170)
        self.assertEqual(width, text_width, "nothing is cut off")
        pss = tab.texts(".group .pss")[n]
        self.assertEqual(pss.split(), "107 MiB ± 99.0 MiB".split())
        self.open(CAPTURE, STATE)
        width = tab.evaluate("document.documentElement.scrollWidth")
        self.assertLessEqual(width, 400)

    def test_a_tap_shows_what_a_mouse_would(self):
        tab = self.open(CAPTURE, STATE)
        self.assertEqual(tab.texts("#tip"), [""])

        def tip():
            return tab.evaluate(
                "(e => e.hidden ? null : e.textContent)(document.querySelector('#tip'))"
            )

        tab.tap("#strip .part.free")
        self.assertIn("free\n", tip())
        # The pieces of a bar are small: all of them.
        tab.tap(".bar")
        pieces = tab.evaluate(
            "[...document.querySelector('.bar').children].map(e => e.title)"
        )
        self.assertEqual(tip(), "\n".join(pieces))
        box = tab.evaluate(
            "(b => [b.left, b.top, innerWidth - b.right, innerHeight - b.bottom])"
            "(document.querySelector('#tip').getBoundingClientRect())"
        )
        self.assertTrue(all(side >= 0 for side in box), box)
        tab.tap("h1")
        self.assertIsNone(tip())
        # A tap that opens something shows no tip, and a tap that opens nothing does.
        tab.tap("#tiles .level1.open")
        self.assertEqual(len(self.path()), 2)
        self.assertIsNone(tip())
        tab.tap("#tiles .level2")
        tab.tap("#tiles .level1")
        self.assertEqual(tip(), tab.attributes("#tiles .level1", "title")[0])
        # With a mouse the browser shows the title, and the page shows no tip.
        tab.click("#strip .part.free")
        self.assertIsNone(tip())
        self.assert_quiet()

    def test_5000_processes(self):
        tab = self.open(many(5000), many(5000, more=9))
        self.assertEqual(len(self.table("#processes")), 50)
        tab.evaluate("document.querySelector('#processes .table > button').click()")
        self.assertEqual(len(self.table("#processes")), 5000)
        tab.click("#processes input")
        tab.type("worker 5999")
        self.assertEqual([row["PID"] for row in self.table("#processes")], ["5999"])
        tab.click("#tiles .level1")
        self.assertEqual(len(self.path()), 2)
        self.assert_quiet()


def thin(value, chance):
    """Returns the value without some of its keys and elements."""
    kept = ("format", "version", "name", "pid", "rules", "rule", "usage")
    if isinstance(value, dict):
        return {
            key: thin(item, chance)
            for key, item in value.items()
            if key in kept or chance.random() > 0.3
        }
    if isinstance(value, list):
        return [thin(item, chance) for item in value]
    return value


class Partial(Page):
    def assert_whole(self, *documents):
        """Unknown values are shown as unknown, also in titles."""
        tab = self.open(*documents)
        tab.evaluate(
            "document.querySelectorAll('.group-name, .level1, .level1')"
            ".forEach(e => e.click())"
        )
        text = tab.evaluate(
            "document.body.innerText + [...document.querySelectorAll('[title]')]"
            ".map(e => e.title).join('\\n')"
        )
        for word in ("NaN", "undefined", "null", "Infinity", "[object"):
            self.assertNotIn(word, text)
        self.assert_quiet()

    def test_any_key_may_be_missing(self):
        for seed in range(10):
            with self.subTest(seed):
                chance = random.Random(seed)
                self.assert_whole(
                    thin(load(chance.choice((STATE, CAPTURE))), chance),
                    thin(load(STATE), chance) if seed % 2 else None,
                )

    def test_empty_document_is_shown(self):
        nothing = {"format": "smaps-snapshot", "version": 2}
        self.assert_whole(nothing)
        self.assert_whole(nothing, nothing)
        self.assert_whole({**nothing, "time": 1e300, "mem_total": 0})


class Hostile(Page):
    def hostile(self, source):
        document = copy.deepcopy(load(source))
        for i, one in enumerate(document["processes"]):
            name = HOSTILE[i % len(HOSTILE)]
            for key in ("comm", "exe", "command_line", "user", "cgroup", "unit"):
                one[key] = name
            one["groups"] = [name]
            one["source"] = one["deferred"] = name
            for mapping in one.get("mappings", []):
                mapping["name"] = name + mapping.get("name", "")
        for one in document.get("mappings", []):
            one["name"] = HOSTILE[0] + one.get("name", "")
        usage = group_of(document, "postgres")["usage"]
        document["groups"] = [
            {"name": name, "rule": 0, "processes": 1, "usage": usage, "cgroup": name}
            for name in HOSTILE
        ]
        document["host"] = document["kernel"] = HOSTILE[1]
        document["plugin_version"] = HOSTILE[0]
        for key in ("group", "message", "severity", "type"):
            if key in document["trigger"]:
                document["trigger"][key] = HOSTILE[0]
        return document

    def assert_harmless(self):
        tab = self.tab
        self.assert_quiet()
        self.assertIsNone(tab.evaluate("window.hit"))
        self.assertEqual(tab.evaluate("document.scripts.length"), 2)
        strange = "document.querySelectorAll('img, svg, b[onmouseover], [onload], iframe, a').length"
        self.assertEqual(tab.evaluate(strange), 0)

    def test_names_are_text(self):
        tab = self.open(self.hostile(STATE), self.hostile(CAPTURE))
        self.assertEqual(tab.texts("h1"), [HOSTILE[1]])
        names = tab.evaluate(
            "[...document.querySelectorAll('.group-name')].map(e => e.textContent)"
        )
        self.assertEqual(set(names), set(map(shown, HOSTILE)))
        for row in self.table("#processes"):
            self.assertIn(row["Command"], set(map(shown, HOSTILE)))
            self.assertIn(row["Group"], set(map(shown, HOSTILE)))
        self.assertTrue(tab.evaluate("document.title").startswith(HOSTILE[1]))
        tab.click("#tiles .level1")
        self.assertEqual(len(self.path()), 2)
        self.assert_harmless()

    def test_names_of_mappings_are_text(self):
        document = self.hostile(CAPTURE)
        for one in document["processes"]:
            one["groups"] = [HOSTILE[0]]
        tab = self.open(document)
        self.assertIn(HOSTILE[0], tab.texts("#alarm")[0])
        tab.click("#tiles .level1")
        tab.click("#tiles .level1")
        self.assertEqual(len(self.path()), 3)
        self.assertTrue(all(n.startswith(HOSTILE[0]) for n in self.tiles()))
        self.assert_harmless()

    def test_only_its_own_script_runs(self):
        tab = self.open(STATE)
        tab.evaluate(
            "{ const e = document.createElement('script');"
            " e.textContent = 'window.hit = 1'; document.body.append(e);"
            " document.body.setAttribute('onclick', 'window.hit = 1');"
            " document.body.click(); }"
        )
        self.assertIsNone(tab.evaluate("window.hit"))
        self.assertIn("Content Security Policy", " ".join(tab.complaints))
