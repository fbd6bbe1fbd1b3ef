# SPDX-License-Identifier: MIT
"""The products of the build: the symbols of the plugin, the layers, install
and uninstall, versions, the tarball of a release."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness


def run(*command):
    return subprocess.run(
        command, cwd=harness.ROOT, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def symbols(path, *options):
    """Names without their version ("close@GLIBC_2.2.5")."""
    nm = harness.need_program("nm", "binutils")
    text = run(nm, "--dynamic", *options, str(path))
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def libraries(path):
    """The files that the dynamic linker would load with it."""
    return re.findall(r"(/\S+) \(0x", run("ldd", str(path)))


class Symbols(unittest.TestCase):
    """collectd loads with RTLD_NOW into one name space with hundreds of generic
    names of its own: a name that nobody exports keeps the plugin from loading,
    and one that two export has been seen to crash the daemon."""

    def test_plugin_exports_module_register_and_nothing_else(self):
        self.assertEqual(
            symbols(harness.PLUGIN, "--defined-only"), {"module_register"}
        )

    def test_all_that_is_undefined_is_exported_by_daemon_or_libraries(self):
        exported = symbols(harness.COLLECTD, "--defined-only")
        for library in libraries(harness.PLUGIN):
            exported |= symbols(library, "--defined-only")
        undefined = symbols(harness.PLUGIN, "--undefined-only")
        weak = {
            line.split()[-1].split("@")[0]
            for line in run("nm", "--dynamic", str(harness.PLUGIN)).splitlines()
            if line.split()[-2] in ("w", "v")
        }
        self.assertEqual(undefined - exported - weak, set())

    def test_plugin_needs_no_library_but_libc_and_yajl(self):
        names = {Path(path).name for path in libraries(harness.PLUGIN)}
        allowed = re.compile(
            r"ld-linux|libc\.so|libm\.so|libpthread|libyajl|lib[at]san|libubsan"
        )
        self.assertEqual({n for n in names if not allowed.search(n)}, set())


class LineLimits(unittest.TestCase):
    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(f"# FILE...\n{text}\n")
            file.flush()
            return subprocess.run(
                ["tests/line_limits", file.name],
                cwd=harness.ROOT,
                text=True,
                stderr=subprocess.PIPE,
                check=False,
            )

    def test_part_that_is_too_long_is_named(self):
        n = len((harness.ROOT / "Makefile").read_text().splitlines())
        self.assertEqual(self.check(f"{n} Makefile").returncode, 0)
        done = self.check(f"{n - 2} Makefile")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"Makefile: {n} lines, 2 over the limit", done.stderr)

    def test_part_that_is_gone_is_named(self):
        done = self.check("9 plugin/gone/*.c")
        self.assertEqual(done.returncode, 1)
        self.assertIn("plugin/gone/*.c: no such files", done.stderr)


class Layers(unittest.TestCase):
    """tests/layering on a made-up tree."""

    TREE = {
        "plugin/core/proc/a.c": '"proc/a.h" <smaps/b.h>',
        "plugin/core/proc/a.h": "",
        "plugin/core/proc/b.c": "<smaps/b.h>",
        "include/smaps/b.h": "",
        "plugin/core/config/f.h": "",
        "contrib/smaps-report/d.h": "",
        "contrib/smaps-report/e.h": "",
    }

    def check(self, problem, **includes):
        """Adds includes by file name; expects one problem, or none."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        for path, names in self.TREE.items():
            file = Path(directory.name) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            names = includes.get(file.name.replace(".", "_"), names)
            file.write_text("".join(f"#include {n}\n" for n in names.split()))
        done = subprocess.run(
            [harness.ROOT / "tests/layering"],
            cwd=directory.name,
            check=False,
            text=True,
            stderr=subprocess.PIPE,
        )
        found = re.findall("^layering: (.*)", done.stderr, re.MULTILINE)
        self.assertEqual(found, [problem] if problem else [])
        self.assertEqual(done.returncode, 1 if problem else 0)

    def test_sources_keep_to_their_layers(self):
        subprocess.run(["tests/layering"], cwd=harness.ROOT, check=True)

    def test_includes_go_down(self):
        self.check(None)
        self.check(
            "proc/a includes config/f of a layer above", a_h='"config/f.h"'
        )

    def test_no_circle_within_a_layer(self):
        circle = "includes in a circle: tsort: -: input contains a loop:"
        self.check(
            f"{circle} tsort: proc/a tsort: proc/b ",
            b_c='<smaps/b.h> "proc/a.h"',
        )
        self.check(
            f"{circle} tsort: contrib/smaps-report/d"
            " tsort: contrib/smaps-report/e ",
            d_h='"e.h"',
            e_h='"d.h"',
        )


class Install(unittest.TestCase):
    """Uninstall is the inverse of install. The test compares every path below
    DESTDIR, directories too, with its content."""

    PLUGINDIR = "/usr/lib/somewhere/collectd"
    CONFDIR = "/etc/somewhere/conf.d"
    CONF = CONFDIR + "/smaps.conf"

    def setUp(self):
        self.root = Path(tempfile.mkdtemp(dir=harness.stage().directory))
        self.addCleanup(shutil.rmtree, self.root)

    def make(self, target, **variables):
        variables = {
            "DESTDIR": self.root,
            "PROFILE": harness.PLUGIN.resolve().parent.name,
            "PREFIX": "/usr",
            "PLUGINDIR": self.PLUGINDIR,
            "CONFDIR": self.CONFDIR,
            **variables,
        }
        words = [f"{name}={value}" for name, value in variables.items()]
        return run("make", target, *words)

    def path(self, name):
        return self.root / name.lstrip("/")

    def write(self, name, text):
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text)

    def files(self):
        return {
            str(p.relative_to(self.root)): p.read_bytes() if p.is_file() else ""
            for p in self.root.rglob("*")
        }

    def test_installs_everything_below_prefix(self):
        self.make("install", PREFIX="/opt/x y")
        built = harness.PLUGIN.resolve()
        if built.parent.name == "default":
            built = built.parent.parent / "release" / built.name
        self.assertEqual(
            self.path(self.PLUGINDIR + "/smaps.so").read_bytes(),
            built.read_bytes(),
        )
        program = self.path("/opt/x y/bin/smaps-report")
        self.assertEqual(program.stat().st_mode & 0o777, 0o755)
        self.assertRegex(run(str(program), "-V"), r"\b\d+\.\d+\.\d+\b")
        share = "/opt/x y/share"
        for name in (
            self.CONF,
            self.PLUGINDIR + "/smaps-load.conf",
            share + "/man/man1/smaps-graph.1",
            share + "/man/man1/smaps-report.1",
            share + "/man/man5/collectd-smaps.5",
            share + "/man/man5/smaps-snapshot.5",
            share + "/doc/collectd-smaps/README",
            share + "/doc/collectd-smaps/contrib/graphite/collectd.conf",
            share + "/doc/collectd-smaps/contrib/rrd/collectd.conf",
            share + "/collectd-smaps/alerts/thresholds.conf",
            share + "/collectd-smaps/grafana/smaps-influxdb.json",
            share + "/collectd-smaps/grafana/smaps-prometheus.json",
            share + "/collectd-smaps/prometheus/rules.yml",
        ):
            self.assertTrue(self.path(name).is_file(), name)
        for page in (harness.ROOT / "contrib/man").iterdir():
            target = self.path(f"{share}/man/man{page.suffix[1:]}/{page.name}")
            text = page.read_text()
            for place in "collectd-smaps", "doc/collectd-smaps":
                text = text.replace(f"/usr/share/{place}", f"{share}/{place}")
            self.assertEqual(target.read_text(), text)
        conf = self.path(self.CONF).read_text()
        self.assertIn(f'"{self.PLUGINDIR}/smaps-load.conf"', conf)

    def test_programs_are_where_slim_images_keep_them(self):
        """Images drop /usr/share/doc; a program there is against policy, too."""
        self.make("install", PREFIX="/usr")
        programs = {
            name
            for name in self.files()
            if self.path(name).is_file() and os.access(self.path(name), os.X_OK)
        }
        share = "usr/share/collectd-smaps/bin"
        self.assertEqual(
            programs - {self.PLUGINDIR.lstrip("/") + "/smaps.so"},
            {
                "usr/bin/smaps-graph",
                "usr/bin/smaps-report",
                f"{share}/capture-proc",
                f"{share}/notify-log",
                f"{share}/notify-report",
                f"{share}/smaps-prekill",
            },
        )

    def test_examples_name_the_programs_that_are_installed(self):
        for prefix in ("/usr", "/usr/local", "/opt/a&b"):
            self.make("install", PREFIX=prefix)
            share = self.path(prefix) / "share/collectd-smaps"
            text = "".join(
                file.read_text() for file in share.glob("alerts/notify-*.conf")
            )
            named = set(re.findall(r'"(/[^"]+/bin/notify-[a-z]+)"', text))
            self.assertEqual(
                named,
                {
                    f"{prefix}/share/collectd-smaps/bin/notify-log",
                    f"{prefix}/share/collectd-smaps/bin/notify-report",
                },
            )
            for program in named:
                self.assertTrue(os.access(self.path(program), os.X_OK), program)
            (module,) = re.findall('ModulePath "(.+)"', text)
            self.assertTrue((self.path(module) / "notify_filter.py").is_file())

    def test_local_installation_is_below_usr_local(self):
        """Beside what collectd has to find in its own places."""
        said = run("make", "-n", "uninstall")
        self.assertIn("BINDIR='/usr/local/bin'", said)
        self.assertIn("DATADIR='/usr/local/share/collectd-smaps'", said)
        self.assertNotIn("PLUGINDIR='/usr/local", said)
        self.assertNotIn("CONFDIR='/usr/local", said)

    def test_installed_plugin_has_no_asserts(self):
        """One that fails would end the daemon."""
        self.make("install", PROFILE="default")
        plugin = self.path(self.PLUGINDIR + "/smaps.so")
        self.assertNotIn("__assert_fail", run("nm", "-D", str(plugin)))

    def test_uninstall_removes_what_install_has_put(self):
        for prefix in ("/usr", "/usr/local", "/opt/with blank"):
            with self.subTest(prefix):
                self.write(self.PLUGINDIR + "/csv.so", "another plugin")
                # This directory is empty, and we did not make it.
                self.path(prefix + "/share/man/man5").mkdir(
                    parents=True, exist_ok=True
                )
                before = self.files()
                self.make("install", PREFIX=prefix)
                self.assertGreater(len(self.files()), len(before) + 30)
                self.make("uninstall", PREFIX=prefix)
                self.assertEqual(self.files(), before)

    def test_installing_twice_is_as_installing_once(self):
        before = self.files()
        self.make("install")
        once = self.files()
        self.make("install")
        self.assertEqual(self.files(), once)
        self.make("uninstall")
        self.assertEqual(self.files(), before)

    def test_uninstall_leaves_what_others_have_put_beside(self):
        self.make("install")
        doc = "/usr/share/doc/collectd-smaps/notes"
        self.write(doc, "of the administrator")
        self.make("uninstall")
        self.assertEqual(self.path(doc).read_text(), "of the administrator")
        self.assertFalse(self.path("/usr/share/collectd-smaps").exists())

    def test_configuration_that_was_there_is_left_alone(self):
        self.write(self.CONF, "mine")
        before = self.files()
        self.make("install")
        self.assertEqual(self.path(self.CONF).read_text(), "mine")
        self.make("uninstall")
        self.assertEqual(self.files(), before)

    def test_configuration_that_loads_nothing_is_named(self):
        self.write(self.CONF, "<Plugin smaps>\n</Plugin>\n")
        said = self.make("install")
        line = f'Include "{self.PLUGINDIR}/smaps-load.conf"'
        self.assertIn(f"does not load the plugin: add the line {line}\n", said)
        self.write(self.CONF, f"{line}\n")
        self.assertNotIn("add the line", self.make("install"))

    def test_what_python_has_compiled_goes_as_well(self):
        before = self.files()
        self.make("install")
        directory = "/usr/share/collectd-smaps/alerts/__pycache__"
        self.write(f"{directory}/notify_filter.cpython-311.pyc", "")
        self.make("uninstall")
        self.assertEqual(self.files(), before)

    def test_configuration_that_was_changed_stays(self):
        self.make("install")
        self.write(self.CONF, "changed")
        self.make("install")
        said = self.make("uninstall")
        self.assertIn("was changed and stays", said)
        self.assertEqual(self.path(self.CONF).read_text(), "changed")

    def test_uninstall_of_nothing_fails(self):
        with self.assertRaises(subprocess.CalledProcessError):
            self.make("uninstall")

    def run_beside(self, target, *programs, user=None):
        """Runs contrib/install with these programs in place of the host's."""
        tools = self.path("tools")
        tools.mkdir(exist_ok=True)
        for name, text in programs:
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
        return subprocess.run(
            ["contrib/install", target],
            cwd=harness.ROOT,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                "PATH": f"{tools}:/usr/sbin:/usr/bin:/sbin:/bin",
                "DESTDIR": "",
                "PLUGIN": str(harness.PLUGIN),
                "PLUGINDIR": f"{self.root}/lib",
                "DOCDIR": f"{self.root}/doc",
                "CONFDIR": f"{self.root}/etc",
                "DATADIR": f"{self.root}/share",
                "MANDIR": f"{self.root}/man",
                "BINDIR": f"{self.root}/bin",
                "COLLECTD_CONF": f"{self.root}/collectd.conf",
            },
            **harness.as_user(user),
        )

    def refuse(self, target, *programs, user=None):
        """What contrib/install says, and that it changes nothing."""
        (self.root / "tools").mkdir(exist_ok=True)
        before = set(self.files())
        done = self.run_beside(target, *programs, user=user)
        self.assertEqual(done.returncode, 1, done.stdout)
        changed = set(self.files()) ^ before
        self.assertEqual({c for c in changed if "tools" not in c}, set())
        return done.stdout

    def install_here(self):
        """As for the whole system, which is below self.root."""
        self.make("install", DESTDIR="", CONFDIR=f"{self.root}/etc",
                  PREFIX=f"{self.root}/usr", DOCDIR=f"{self.root}/doc",
                  PLUGINDIR=f"{self.root}/lib")  # fmt: skip

    NOBODY = ("dpkg", "exit 1")

    def test_files_of_a_package_are_not_replaced(self):
        self.install_here()
        for programs, what in (
            ([("dpkg", 'echo "smaps-pkg:amd64: $2"')], "apt"),
            ([self.NOBODY, ("rpm", "echo -n smaps-pkg")], "dnf"),
        ):
            with self.subTest(what):
                self.assertIn(
                    "/lib/smaps.so belongs to the package smaps-pkg: first "
                    f"run: sudo {what} remove smaps-pkg\n",
                    self.refuse("install", *programs),
                )

    def test_files_of_a_package_are_not_removed(self):
        """A package that was installed over them has the plugin now."""
        plugin = f"{self.root}/lib/smaps.so"
        for programs in (
            [("dpkg", f'echo "smaps-pkg:amd64: {plugin}"')],
            [self.NOBODY, ("rpm", f"echo {plugin}; echo /other")],
        ):
            with self.subTest(programs[-1][0]):
                self.install_here()
                done = self.run_beside("uninstall", *programs)
                self.assertEqual(
                    (done.returncode, done.stdout),
                    (0, f"install: {plugin} belongs to a package and stays\n"),
                )
                left = {name for name in self.files() if "tools" not in name}
                self.assertEqual(left, {"lib", "lib/smaps.so"})

    def test_user_without_rights_is_advised_to_use_sudo(self):
        harness.need_root("to become a user who is not root")
        self.root.chmod(0o755)
        for target in ("install", "uninstall"):
            said = self.refuse(target, user=harness.unprivileged_user())
            self.assertEqual(
                said,
                f"install: {self.root} cannot be written: run with sudo: "
                f"sudo make {target}\n",
            )

    def test_package_gets_no_manifest(self):
        self.make("install", MANIFEST="no")
        doc = self.path("/usr/share/doc/collectd-smaps")
        self.assertFalse((doc / "manifest").exists())
        self.assertTrue((doc / "README").exists())

    def test_installed_configuration_is_one(self):
        """As collectd reads it, and also when the plugin is gone."""
        self.make("install", CONFDIR=f"{self.root}/etc", DESTDIR="",
                  PREFIX=f"{self.root}/usr", PLUGINDIR=f"{self.root}/lib")
        include = f'Include "{self.root}/etc/smaps.conf"'
        status, said = harness.check_config(include, load="")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, "smaps plugin: version")
        (self.root / "lib/smaps-load.conf").unlink()
        status, said = harness.check_config(include, load="")
        self.assertEqual(status, 0, said)
        self.assertNotRegex(said, "smaps plugin: version")

    def test_debian_and_fedora_have_paths_of_their_own(self):
        for conf, confdir in (
            ("/etc/collectd/collectd.conf", "/etc/collectd/collectd.conf.d"),
            ("/etc/collectd.conf", "/etc/collectd.d"),
        ):
            with self.subTest(conf):
                said = run(
                    "make", "-n", "uninstall", f"COLLECTD_CONF={conf}"
                )
                self.assertIn(f"CONFDIR='{confdir}'", said)


class Clean(unittest.TestCase):
    def test_dashboards_stay_where_they_are_sources(self):
        """git ignores them in a clone; a tarball ships them."""
        harness.need_program("git")
        directory = tempfile.TemporaryDirectory(dir=harness.stage().directory)
        self.addCleanup(directory.cleanup)
        tree = Path(directory.name)
        for name in ("Makefile", ".gitignore", "tests/tests.mk"):
            (tree / name).parent.mkdir(exist_ok=True)
            shutil.copy(harness.ROOT / name, tree / name)
        dashboard = tree / "contrib/grafana/smaps-prometheus.json"
        dashboard.parent.mkdir(parents=True)
        for is_clone in (False, True):
            with self.subTest(is_clone):
                dashboard.touch()
                if is_clone:
                    run_in(tree, "git", "init", "-q")
                run_in(tree, "make", "clean")
                self.assertEqual(dashboard.exists(), not is_clone)


class Versions(unittest.TestCase):
    def test_all_files_name_the_same_version(self):
        version = re.search(
            r"^VERSION := (\S+)$", read("Makefile"), re.MULTILINE
        ).group(1)
        contrib = harness.ROOT / "contrib"
        for path, pattern in (
            ("CHANGELOG", r"\n(\d\S+), "),
            ("packaging/debian/changelog", r"\((.+?)\)"),
            ("packaging/rpm/collectd-smaps.spec", r"\nVersion: +(\S+)"),
            ("packaging/alpine/APKBUILD", r"\npkgver=(\S+)"),
            ("packaging/openwrt/Makefile", r"\nPKG_VERSION:=(\S+)"),
            ("container/daemonset.yaml", r"/smaps:(\S+)"),
        ):
            with self.subTest(path):
                found = re.search(pattern, (contrib / path).read_text())
                self.assertEqual(found.group(1), version)


class Release(unittest.TestCase):
    def setUp(self):
        if not (harness.ROOT / ".git").exists():
            self.skipTest("there is no git repository here")
        harness.need_program("git")
        self.directory = Path(tempfile.mkdtemp(dir=harness.stage().directory))
        self.addCleanup(shutil.rmtree, self.directory)

    def make_tarball(self, name, **environment):
        run_in(harness.ROOT, "make", "release", **environment)
        (made,) = (harness.ROOT / "build").glob("collectd-smaps-*.tar.gz")
        return made.rename(self.directory / name)

    def test_tarball_has_the_same_bytes_twice(self):
        one = self.make_tarball("one")
        two = self.make_tarball("two", TZ="Asia/Tokyo", LC_ALL="C", GZIP="")
        self.assertEqual(one.read_bytes(), two.read_bytes())

    def test_tarball_has_all_that_building_and_testing_need(self):
        """Built, and one test run: what is missing would be missing here. The
        whole of check-unit takes a minute more, and is left to distcheck."""
        tarball = self.make_tarball("tarball")
        run("tar", "-x", "-C", str(self.directory), "-f", str(tarball))
        (tree,) = (p for p in self.directory.iterdir() if p.is_dir())
        binary = "build/default/tests/unit/base/test_text"
        run_in(tree, "make", binary, "DEPS=skip", CFLAGS="-O0")
        # The dashboards of the commit, which nothing has to write again.
        for kind in ("influxdb", "prometheus"):
            dashboard = f"contrib/grafana/smaps-{kind}.json"
            run_in(tree, "make", "-q", dashboard)
            self.assertEqual(
                (tree / dashboard).read_bytes(),
                (harness.ROOT / dashboard).read_bytes(),
            )
        run_in(tree, binary)


def read(path):
    return (harness.ROOT / path).read_text(encoding="utf-8")


def run_in(directory, *command, **environment):
    """Runs a command as from a shell: it does not inherit the options of a make
    around us."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PROFILE", "CFLAGS")
    }
    subprocess.run(
        command,
        cwd=directory,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**inherited, **environment},
    )
