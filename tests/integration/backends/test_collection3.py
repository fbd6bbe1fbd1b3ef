"""collection3, the web pages that come with collectd, with what contrib/rrd
adds to them: the real CGI programs under a real web server, on RRD files that
a real collectd writes."""

import html
import json
import re
import shutil
import struct
import subprocess
import unittest
from pathlib import Path

from harness import (
    DEADLINE_SECONDS,
    ROOT,
    HarnessError,
    Shape,
    plugin,
    sees_host,
    stage,
    wait_until,
)
from server import (
    BackendTest,
    Daemon,
    Server,
    fetch,
    free_port,
    need_plugin,
    need_program,
    shape_group,
    shipped,
)

INSTALL = ROOT / "contrib/rrd/collection3/install"

# Where Debian's collectd-core and Fedora's collectd-web have it.
PLACES = (
    "/usr/share/doc/collectd-core/examples/collection3",
    "/usr/share/collectd/collection3",
)
# Debian's and Fedora's package of what it is written with.
PERL_MODULES = {
    "CGI": "libcgi-pm-perl or perl-CGI",
    "Config::General": "libconfig-general-perl or perl-Config-General",
    "HTML::Entities": "libhtml-parser-perl or perl-HTML-Parser",
    "JSON": "libjson-perl or perl-JSON",
    "RRDs": "librrds-perl or rrdtool-perl",
    "URI::Escape": "liburi-perl or perl-URI",
}

# A name of which every character means something to somebody.
ODD_NAME = "a b: 5%;c=d&e+f#g\\h"

CONFIG = "LoadPlugin memory\n" + plugin(
    shape_group("odd", ODD_NAME.replace("%", "%%").replace("\\", "\\\\")),
    shape_group("detail", None, 'Report "detail"', "ValuesPercentage true"),
)

LIGHTTPD = """\
server.document-root = "{root}"
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ("mod_cgi")
cgi.assign = (".cgi" => "")
"""


def need_collection3():
    for place in map(Path, PLACES):
        if (place / "bin/graph.cgi").is_file():
            break
    else:
        raise unittest.SkipTest("needs collection3: install collectd-web")
    perl = need_program("perl", "perl")
    for module, package in PERL_MODULES.items():
        done = subprocess.run(
            [perl, f"-M{module}", "-e", "1"],
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0:
            raise unittest.SkipTest(f"needs {module}: install {package}")
    return place


def install(*arguments):
    return subprocess.run(
        [INSTALL, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=DEADLINE_SECONDS,
        check=False,
        text=True,
    )


def replace_in(path, old, new):
    text = path.read_text()
    if old not in text:
        raise HarnessError(f'{path} has no "{old}" to replace')
    path.write_text(text.replace(old, new))


class RrdDaemon(Daemon):
    def _write_config(self, body, interval):
        text = shipped(
            "rrd/collectd.conf",
            {
                "/var/lib/collectd/rrd": self.directory / "rrd",
                "/var/run/collectd-unixsock": self.directory / "socket",
            },
        )
        return super()._write_config(text + body, interval)


class Collection3:
    """A copy of it on the data of a daemon, and a server for it."""

    def __init__(self, daemon, *, installed=True):
        self.directory = stage().new_directory() / "collection3"
        shutil.copytree(need_collection3(), self.directory)
        conf = self.directory / "etc/collection.conf"
        replace_in(
            conf,
            '#DataDir "/var/lib/collectd/rrd"',
            f'DataDir "{daemon.directory}/rrd"\nInterval 2',
        )
        replace_in(
            conf,
            '#UnixSockAddr "/var/run/collectd-unixsock"',
            f'UnixSockAddr "{daemon.directory}/socket"',
        )
        if installed:
            done = install(self.directory)
            if done.returncode != 0:
                raise AssertionError(done.stderr)
        self.port = free_port()
        self.server = self.start_server()

    def start_server(self):
        config = self.directory.parent / "lighttpd.conf"
        config.write_text(LIGHTTPD.format(root=self.directory, port=self.port))
        lighttpd = need_program("lighttpd", "lighttpd")
        server = Server([lighttpd, "-D", "-f", config])
        server.wait_port(self.port)
        return server

    def get(self, path):
        """(type, body) of an answer that has to be one."""
        status, headers, body = fetch(f"http://127.0.0.1:{self.port}/{path}")
        if status != 200:
            raise AssertionError(f"{path}: {status}{self.server.log_tail()}")
        return headers.get_content_type(), body

    def page(self, query):
        return self.get(f"bin/index.cgi?{query}")[1].decode()

    def pictures(self, query):
        """The requests of the page, decoded once, as a browser does."""
        page = self.page(f"action=show_selection;timespan=3600;{query}")
        found = re.findall(r'src="(graph\.cgi\?[^"]*)"', page)
        return [html.unescape(path) for path in found]

    def arguments(self, picture):
        """The arguments of RRDtool for it: the program says so itself."""
        text = self.get(f"bin/{picture};debug=1")[1].decode()
        found = re.search(r"^-t,\n.*?(?=\nLast-Modified)", text, re.M | re.S)
        return found.group().split(",\n")

    def stop(self):
        self.server.stop()


class Collection3Test(BackendTest):
    @classmethod
    def setUpClass(cls):
        need_collection3()
        need_program("lighttpd", "lighttpd")
        need_plugin("rrdtool")
        for name in ("odd", "detail"):
            shape = Shape("cow", name=name, mib=4, rewrite_mib=1, children=1)
            cls.addClassCleanup(shape.stop)
        cls.daemon = RrdDaemon(CONFIG, interval=2)
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.wait_cycles(3)
        cls.web = Collection3(cls.daemon)
        cls.addClassCleanup(cls.web.stop)

    def pictures(self, kind, name=None):
        """Files of a type, and of a group if a name is given."""
        found = []
        for picture in self.web.pictures("hostname=test;plugin=smaps"):
            args = dict(
                arg.split("=", 1)
                for arg in picture.partition("?")[2].split(";")
            )
            if args["type"] == kind:
                if name in (None, args.get("plugin_instance")):
                    found.append(picture)
        return found

    def get_some(self, path):
        got = self.web.get(path)
        return got if got[1] else None

    def assert_is_drawn(self, picture):
        # A file that is being made just now is none yet.
        kind, body = wait_until(
            lambda: self.get_some(f"bin/{picture}"), f"the picture {picture}"
        )
        self.assertEqual(kind, "image/png", picture)
        self.assertEqual(body[:8], b"\x89PNG\r\n\x1a\n", picture)
        width, height = struct.unpack_from(">II", body, 16)
        # As GraphWidth and graph.cgi have it, with the scales and the legend.
        self.assertGreater(width, 400)
        self.assertGreater(height, 100)

    def test_the_page_offers_the_host_and_the_plugin(self):
        page = self.web.page("")
        self.assertIn("action=show_selection;hostname=test", page)
        page = self.web.page("action=show_selection;hostname=test")
        self.assertIn('<option value="smaps">smaps</option>', page)

    def test_the_page_shows_every_file_of_every_group_once(self):
        shown = set()
        for picture in self.web.pictures("hostname=test;plugin=smaps"):
            args = picture.partition("?")[2].split(";")
            kind = args[[a[:5] for a in args].index("type=")][5:]
            group = [a[16:] for a in args if a.startswith("plugin_instance=")]
            instances = [a[14:] for a in args if a.startswith("type_instance=")]
            for instance in instances or [""]:
                file = (kind, *group, instance)
                self.assertNotIn(file, shown)
                shown.add(file)
        files = list((self.daemon.directory / "rrd/test").glob("smaps*/*.rrd"))
        self.assertEqual(len(shown), len(files))

    def test_each_picture_of_the_page_is_drawn(self):
        pictures = self.web.pictures("hostname=test;plugin=smaps")
        kinds = {re.search(r";type=(\w+)", path).group(1) for path in pictures}
        self.assertEqual(
            kinds,
            {"memory", "ps_count", "percent", "duration", "count", "uptime"}
            | {"ps_vm", "ps_code", "ps_data", "gauge"}
            | ({"bytes"} if sees_host() else set()),
        )
        for picture in pictures:
            self.assert_is_drawn(picture)
        # collectd locks a file while it writes; the next request finds it free.
        log = self.web.server.log().splitlines()
        failures = [line for line in log if "failed" in line]
        busy = [line for line in failures if "could not lock RRD" in line]
        self.assertEqual(failures, busy)

    def test_uss_and_the_part_of_what_is_shared_are_stacked(self):
        stacked, further = self.pictures("memory", "detail")
        arguments = self.web.arguments(stacked)
        shapes = [line for line in arguments if line[:4] in ("AREA", "LINE")]
        self.assertEqual(
            [re.sub("#.*?(:STACK)?$", r"\1", shape) for shape in shapes],
            [
                "AREA:avg_uss",
                "AREA:part:STACK",
                "LINE1:avg_pss",
                "LINE2:avg_swap",
            ],
        )
        # In MiB, as the prefixes of rrdtool are those of 1000.
        self.assertIn("MiB", arguments)
        for line in arguments:
            self.assertNotIn("%s", line)
        self.assertIn("CDEF:avg_pss=avg_bytes_pss,1048576,/", arguments)
        # Values that do not add up are not stacked.
        for line in self.web.arguments(further):
            self.assertFalse(line.startswith("AREA"), line)
            self.assertNotIn("STACK", line)

    def test_titles_name_the_group(self):
        for kind in ("memory", "ps_count", "percent", "duration", "count"):
            for picture in self.pictures(kind, "detail"):
                _, title, *_ = self.web.arguments(picture)
                self.assertIn("detail", title)

    def test_the_memory_plugin_is_drawn_as_before(self):
        before = Collection3(self.daemon, installed=False)
        self.addCleanup(before.stop)
        query = "hostname=test;plugin=memory"
        (stock,) = before.pictures(query)
        (ours,) = self.web.pictures(query)
        self.assertEqual(self.web.arguments(ours), before.arguments(stock))
        self.assert_is_drawn(ours)

    def test_values_that_are_held_back_are_written_for_a_picture(self):
        """Uses the socket that the configuration opens, as CacheTimeout is far
        above the time that this takes."""
        path = self.daemon.directory / f"rrd/test/smaps-{ODD_NAME}"
        path /= "percent-coverage.rrd"
        (picture,) = [
            one for one in self.pictures("percent") if "detail" not in one
        ]
        before = self.last_time(path)

        def look():
            self.web.get(f"bin/{picture}")
            return self.last_time(path) > before

        wait_until(look, "values to be written")

    @staticmethod
    def last_time(path):
        rrdtool = need_program("rrdtool", "rrdtool")
        return int(subprocess.check_output([rrdtool, "last", path]))

    def test_the_list_for_programs_has_the_pictures(self):
        kind, body = self.web.get("bin/json.cgi")
        self.assertEqual(kind, "application/json")
        pictures = json.loads(body)["test"]
        self.assertIn("memory", pictures)
        # It names a host of its author.
        for url in pictures["memory"] + pictures["ps_count"]:
            self.assert_is_drawn(url[url.index("graph.cgi") :])


class Install(BackendTest):
    def setUp(self):
        self.copy = stage().new_directory() / "a copy"
        shutil.copytree(need_collection3(), self.copy)

    def files(self):
        return {
            path.relative_to(self.copy): path.read_text(errors="replace")
            for path in self.copy.rglob("*")
            if path.is_file()
        }

    def test_to_install_again_changes_nothing(self):
        self.assertEqual(install(self.copy).returncode, 0)
        files = self.files()
        done = install(self.copy)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.files(), files)

    def test_all_else_stays_as_it_was(self):
        before = self.files()
        install(self.copy)
        after = self.files()
        changed = {str(p) for p in after if after[p] != before.get(p)}
        self.assertEqual(
            changed,
            {
                "etc/collection.conf",
                "etc/smaps.conf",
                "lib/Collectd/Graph/Type/SmapsMemory.pm",
            },
        )

    def assert_refused(self, words, *arguments):
        done = install(*arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_what_is_no_copy_of_collection3_is_refused(self):
        self.assert_refused(["one directory"])
        self.assert_refused(["no directory"], self.copy / "missing")
        self.assert_refused(["no copy of collection3"], self.copy / "etc")

    def test_a_configuration_that_is_not_as_expected_is_refused(self):
        conf = self.copy / "etc/collection.conf"
        replace_in(conf, "<Type memory>", "<Type memories>")
        text = conf.read_text()
        self.assert_refused(["collection.conf", "memory"], self.copy)
        self.assertEqual(conf.read_text(), text)
