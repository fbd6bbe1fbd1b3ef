# SPDX-License-Identifier: MIT
"""The first commands of a newcomer: which packages contrib/deps installs, what
make says or leaves out where something is missing, and whose files `sudo make`
leaves."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
from harness import ROOT
from report import REPORT

# Programs of the host that the scripts may call.
TOOLS = (
    "awk", "basename", "bash", "cat", "cmp", "cut", "dirname", "env", "grep",
    "ls", "make", "mkdir", "mktemp", "paste", "printf", "rm", "sed", "sh",
    "sort", "stat", "tar", "test", "tr",
)

# Names that packages provide are printed only if the format asks for them.
DPKG_QUERY = """\
#!/bin/sh
case $* in
*Provides*) cat "$FAKE/installed" ;;
*) cut -d' ' -f1-3 "$FAKE/installed" ;;
esac
"""

# It can install what is not in $FAKE/unavailable.
APT_GET = """\
#!/bin/sh
echo "$*" >>"$FAKE/apt.log"
case $* in
*--print-uris*) echo 'Need to get 61.2 MB of archives.'; exit 0 ;;
*' -y '*) echo FETCHED ;;
esac
case $1 in
-s) ! grep -qx "$3" "$FAKE/unavailable" ;;
esac
"""


def clean_environment():
    """As from a shell: the words of a make around us are not for this one."""
    ours = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PROFILE", "CFLAGS", "DEPS")
    return {k: v for k, v in os.environ.items() if k not in ours}


class FakeDebian:
    """A PATH with an apt that installs nothing and writes down its words."""

    def __init__(self, installed=(), unavailable=(), uid=0):
        self.root = harness.stage().new_directory()
        for name in TOOLS:
            (self.root / name).symlink_to(shutil.which(name))
        self.add("dpkg-query", DPKG_QUERY)
        self.add("apt-get", APT_GET)
        self.add("id", f"#!/bin/sh\necho {uid}\n")
        lines = "".join(f"ii  {line}\n" for line in installed)
        (self.root / "installed").write_text(lines)
        lines = "".join(f"{name}\n" for name in unavailable)
        (self.root / "unavailable").write_text(lines)
        self.log = self.root / "apt.log"

    def add(self, name, text):
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)

    def run(self, *command):
        return subprocess.run(
            command,
            cwd=ROOT,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": str(self.root), "FAKE": str(self.root)},
        )

    def packages(self):
        """What apt was told to install."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        wanted = (line for line in lines if " install " in line)
        return {
            word
            for line in wanted
            if not line.startswith("-s")
            for word in line.split(" install ")[1].split()
            if not word.startswith("-")
        }


def packages_of(*sets, **options):
    fake = FakeDebian(**options)
    done = fake.run("contrib/deps", *sets)
    assert done.returncode == 0, done.stdout
    return fake.packages()


def build_depends():
    control = (ROOT / "contrib/packaging/debian/control").read_text()
    field = re.search(r"^Build-Depends:((?:\n? .+)+)", control, re.M).group(1)
    words = [word for word in field.split(",") if "!nocheck" not in word]
    return {re.split(r"[ (:]", word.strip())[0] for word in words}


class Packages(unittest.TestCase):
    def test_installing_brings_a_daemon_with_its_configuration(self):
        if os.path.exists("/etc/collectd/collectd.conf"):
            self.skipTest("collectd has a configuration here")
        brought = packages_of("build")
        self.assertLessEqual(
            {"gcc", "collectd-core", "collectd", "libmnl0"}, brought
        )

    def test_demo_and_tests_bring_no_daemon_that_starts_with_the_host(self):
        for sets in (("compile",), ("compile", "check", "backends", "dist")):
            with self.subTest(sets):
                brought = packages_of(*sets)
                self.assertIn("collectd-core", brought)
                self.assertNotIn("collectd", brought)

    def test_package_for_debian_brings_what_it_needs_and_no_more(self):
        brought = packages_of("compile", "deb")
        needed = build_depends() - {"debhelper-compat"}
        self.assertLessEqual(needed, brought)
        self.assertEqual(
            brought - needed,
            {"bash", "build-essential", "debhelper", "gcc", "libc6-dev", "make"},
        )

    def test_installed_packages_are_not_installed_again(self):
        installed = packages_of("compile")
        self.assertEqual(packages_of("compile", installed=installed), set())

    def test_provided_name_is_installed(self):
        """Debian 13 calls the library libmicrohttpd12t64."""
        name = "libmicrohttpd12"
        self.assertIn(name, packages_of("backends"))
        provides = [f"{name}t64 libfoo1, {name} (= 1.0.1-4)"]
        self.assertNotIn(name, packages_of("backends", installed=provides))

    def test_server_that_the_distribution_lacks_is_left_out(self):
        brought = packages_of("check", "backends", unavailable=["netdata-core"])
        self.assertNotIn("netdata-core", brought)
        self.assertLessEqual({"prometheus", "git"}, brought)

    def test_size_is_said_before_anything_is_fetched(self):
        done = FakeDebian().run("contrib/deps", "check")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(
            done.stdout,
            r"^deps: installing .*\ndeps: Need to get 61\.2 MB of archives\.\nFETCHED$",
        )

    def test_user_gets_the_command_to_run(self):
        fake = FakeDebian(uid=1000)
        done = fake.run("contrib/deps", "compile")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing: gcc ", done.stdout)
        self.assertIn("sudo contrib/deps compile", done.stdout)
        self.assertFalse(fake.log.exists())

    def test_demo_of_a_user_is_refused(self):
        fake = FakeDebian(uid=1000)
        done = fake.run("make", "demo")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("demo: run with sudo: sudo make demo\n", done.stdout)

    def test_user_goes_on_without_a_server(self):
        fake = FakeDebian(installed=packages_of("check"), uid=1000)
        done = fake.run("contrib/deps", "check", "backends")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("prometheus", done.stdout)
        self.assertFalse(fake.log.exists())

    def test_unknown_set_is_refused(self):
        fake = FakeDebian()
        done = fake.run("make", "deps-check-bild")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no set bild", done.stdout)
        self.assertFalse(fake.log.exists())

    def test_nothing_is_installed_for_a_package_of_another_system(self):
        for target in ("deb", "rpm"):
            with self.subTest(target):
                fake = FakeDebian()
                done = fake.run("make", target)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("are built in", done.stdout)
                self.assertFalse(fake.log.exists())


class Compiler(unittest.TestCase):
    """Where it is missing, or one of the headers, make says what to run."""

    def make(self, *words):
        build = harness.stage().new_directory() / "build"
        done = subprocess.run(
            ["make", f"B={build}", *words],
            cwd=ROOT,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=clean_environment(),
        )
        return done, build

    def assert_told(self, what, *words):
        done, build = self.make(*words)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"run: sudo make {what}\n", done.stdout)
        self.assertNotIn("  CC ", done.stdout)
        self.assertEqual(list(build.rglob("*")), [])

    def test_without_a_compiler(self):
        self.assert_told("deps-build", "CC=/nonexistent/cc")

    def test_without_clang(self):
        self.assert_told("deps-build-dist", "CC=/nonexistent/clang")

    def test_without_headers(self):
        self.assert_told("deps-build", "CPPFLAGS=-nostdinc")

    def hide_curses(self):
        directory = harness.stage().new_directory()
        (directory / "curses.h").write_text("#error")
        return f"CPPFLAGS=-I{directory}"

    def test_without_curses(self):
        self.assert_told("deps-build", self.hide_curses())

    def make_sources(self):
        """The tree of collectd, not configured: its headers are where those of
        the package were taken from."""
        tree = harness.stage().new_directory()
        (tree / "src").mkdir()
        installed = pathlib.Path("/usr/include/collectd")
        for path in *installed.glob("core/*/"), installed / "liboconfig":
            (tree / "src" / path.name).symlink_to(path)
        (tree / "version-gen.sh").write_text('DEFAULT_VERSION="5.99.0.git"\n')
        return tree

    def test_plugin_alone_needs_no_tool_and_library_of_the_report(self):
        """Nor a package with collectd's headers."""
        none = harness.stage().new_directory()
        for name in "bison", "flex", "python3":
            (none / name).write_text("#!/bin/sh\nexit 1\n")
            (none / name).chmod(0o755)
        done, build = self.make(
            "-j2", "plugin", "CFLAGS=-O0 -Werror", self.hide_curses(),
            f"PATH={none}:{os.environ['PATH']}", f"PYTHON={none}/python3",
            f"COLLECTD_SRC={self.make_sources()}",
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertFalse((build / "smaps-report").exists())
        self.assertIn(
            b", collectd 5.99.0.git, ", (build / "smaps.so").read_bytes()
        )

    def test_sources_that_are_none_are_refused(self):
        done, _ = self.make("plugin", "COLLECTD_SRC=/nonexistent")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(
            "COLLECTD_SRC=/nonexistent: expected the sources of collectd, with "
            "src/daemon/plugin.h", done.stdout,
        )


class LeftOut(unittest.TestCase):
    """`make check` of a user installs nothing, runs what can run here, and names
    the package that the rest needs."""

    # A compiler that finds no cmocka.h.
    COMPILER = """\
#!/bin/sh
case $* in
*cmocka.h*) exit 1 ;;
esac
PATH={path} exec {name} "$@"
"""

    def setUp(self):
        self.build = harness.PLUGIN.resolve().parent
        if self.build.parent != ROOT / "build":
            self.skipTest("needs a plugin that was built in this tree")
        self.fake = FakeDebian(uid=1000)

    def hide(self, *programs):
        """Puts all programs of this host but these into the PATH. After su, it
        can have directories of root, which a user may not read."""
        for directory in os.environ["PATH"].split(":"):
            if not os.access(directory, os.R_OK | os.X_OK):
                continue
            for path in pathlib.Path(directory).glob("*"):
                link = self.fake.root / path.name
                if path.name not in programs and not os.path.lexists(link):
                    link.symlink_to(path)

    def hide_cmocka(self):
        for name in "cc", "clang":
            link = self.fake.root / name
            link.unlink(missing_ok=True)
            self.fake.add(
                name, self.COMPILER.format(name=name, path=os.environ["PATH"])
            )

    def check(self, *words, **environment):
        """Returns its lines about what was left out. One program of each kind
        runs: all of them would run this test again."""
        done = subprocess.run(
            [
                *("make", "check", f"PROFILE={self.build.name}"),
                f"UNIT_BIN=build/{self.build.name}/tests/unit/proc/test_stat",
                f"FUZZ_BIN=build/{self.build.name}/tests/fuzz/fuzz_stat",
                *words,
            ],
            cwd=ROOT,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                **environment,
                "PATH": str(self.fake.root),
                "FAKE": str(self.fake.root),
                "DEPS": "",
            },
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("Traceback", done.stdout)
        self.assertIn("ok: fuzz_stat", done.stdout)
        self.assertFalse(self.fake.log.exists())
        self.said = done.stdout
        return re.findall("(?m)^left out: (.*)", done.stdout)

    def test_tests_without_their_program_are_left_out(self):
        self.hide("mandoc", "man", "nm")
        # In different files, so that their reasons are added up.
        tests = "TESTS=test_manual.Pages test_build.Symbols"
        self.assertEqual(
            set(self.check(tests)),
            {
                "1 test: needs mandoc",
                "1 test: needs man-db",
                "2 tests: needs binutils",
            },
        )
        self.assertRegex(self.said, r"ok: \S+/test_stat ")
        self.assertIn("\n1 passed, 0 failed, 4 skipped\n", self.said)

    def test_parts_without_their_package_are_left_out(self):
        self.hide()
        self.hide_cmocka()
        self.assertEqual(
            self.check(COLLECTD="/nonexistent/collectd"),
            [
                "all unit tests: needs libcmocka-dev",
                "all integration tests: needs collectd-core",
            ],
        )
        self.assertNotIn("test_stat", self.said)

    def test_integration_tests_are_left_out_without_python(self):
        self.hide("python3")
        self.assertEqual(
            self.check("PYTHON=python3"),
            ["all integration tests: needs python3"],
        )

    def test_root_installs_what_is_missing(self):
        fake = FakeDebian()
        build = harness.stage().new_directory() / "build"
        # Without a compiler in the PATH it ends after that.
        fake.run("make", "check", f"B={build}")
        self.assertLessEqual(
            {"libcmocka-dev", "mandoc", "prometheus"}, fake.packages()
        )


class Owner(unittest.TestCase):
    """Of a tree that root does not own, root owns nothing afterwards."""

    def setUp(self):
        harness.need_root("to be the root of sudo")
        self.user = harness.unprivileged_user()
        self.tree = harness.stage().new_directory() / "tree"
        profile = harness.PLUGIN.resolve().parent
        copied = ["Makefile", "README", "plugin", "include", "contrib", "tests"]
        self.tree.mkdir()
        shutil.copytree(
            profile,
            self.tree / "build" / profile.name,
            ignore=shutil.ignore_patterns("tests"),
        )
        for name in copied:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.tree / name, symlinks=True)
            else:
                shutil.copy2(source, self.tree / name)
        subprocess.run(
            ["chown", "-R", "%d:%d" % self.user, str(self.tree)], check=True
        )

    def test_demo_leaves_nothing_that_the_user_cannot_remove(self):
        # One source is compiled, and the rest is linked: with the words of a
        # make around us, which has built it.
        os.utime(self.tree / "plugin/log.c")
        done = subprocess.run(
            ["make", "demo", f"PROFILE={harness.PLUGIN.resolve().parent.name}"],
            cwd=self.tree,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "DEPS": "skip"},
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("CC plugin/log.c", done.stdout)
        self.assertRegex(done.stdout, r"\btotal\n")
        of_root = [
            str(path.relative_to(self.tree))
            for path in [self.tree, *self.tree.rglob("*")]
            if path.lstat().st_uid != self.user[0]
        ]
        self.assertEqual(of_root, [])


class Demo(unittest.TestCase):
    def run_with(self, script):
        daemon = harness.stage().new_directory() / "collectd"
        daemon.write_text(f"#!/bin/sh\n{script}\n")
        daemon.chmod(0o755)
        return self.run_demo(daemon, TMPDIR=str(daemon.parent))

    @staticmethod
    def run_demo(daemon, **environment):
        return subprocess.run(
            [ROOT / "contrib/demo", daemon, harness.PLUGIN, REPORT],
            check=False,
            env={**os.environ, **environment},
            text=True,
            timeout=60,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def test_daemon_that_does_not_run_is_reported(self):
        done = self.run_with("echo unknown option >&2\nexit 1")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertIn("unknown option", done.stderr)

    def test_daemon_that_does_not_end_is_killed(self):
        """It writes no valid state, which ends the demo at once."""
        done = self.run_with(
            'trap "" TERM\n'
            "echo $$ >${0%/*}/daemon-pid\n"
            "while sleep 0.2; do\n"
            "  for state in ${0%/*}/tmp.*; do\n"
            "    echo >$state/new\n"
            "    mv $state/new $state/state || exit\n"
            "  done\n"
            "done"
        )
        self.assertNotEqual(done.returncode, 0)
        directory = pathlib.Path(done.args[1]).parent
        self.assertEqual(list(directory.glob("tmp.*")), [])
        pid = (directory / "daemon-pid").read_text().strip()
        self.assertFalse(pathlib.Path("/proc", pid).exists())

    def test_demo_does_not_report_its_own_configuration(self):
        done = self.run_demo(harness.COLLECTD)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("total", done.stdout)
        for option in "ReadBudget", "ProcRoot", "(Host)":
            self.assertNotIn(option, done.stdout)

    def test_demo_ends_with_the_first_steps_on_this_host(self):
        text = (ROOT / "README").read_text()
        (steps,) = re.findall(r"^First steps.*\n\n((?:    .*\n)+)", text, re.M)
        expected = re.sub("(?m)^    ", "  ", steps)
        place, other = "/etc/collectd/collectd.conf.d", "/opt/collectd.d"
        self.assertIn(place, expected)
        expected = expected.replace(place, other)
        done = self.run_demo(harness.COLLECTD, CONFDIR=other)
        self.assertTrue(done.stdout.endswith(f"\n\n{expected}"), done.stdout)
