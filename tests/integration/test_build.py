"""What is built: the symbols of the plugin, the layers, install, uninstall."""

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
    text = run("nm", "--dynamic", *options, str(path))
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

    def test_plugin_needs_no_library_but_libc(self):
        names = {Path(path).name for path in libraries(harness.PLUGIN)}
        allowed = re.compile(r"ld-linux|libc\.so|libm\.so|lib[at]san|libubsan")
        self.assertEqual({n for n in names if not allowed.search(n)}, set())


class Layers(unittest.TestCase):
    def test_sources_keep_to_their_layers(self):
        subprocess.run(["tests/layering"], cwd=harness.ROOT, check=True)


class Install(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(dir=harness.stage().directory))
        self.addCleanup(shutil.rmtree, self.root)

    def make(self, target):
        profile = harness.PLUGIN.resolve().parent.name
        run(
            "make", target, f"DESTDIR={self.root}", f"PROFILE={profile}",
            "PREFIX=/usr", "PLUGINDIR=/usr/lib/somewhere/collectd",
        )  # fmt: skip

    def files(self):
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*")}

    def test_installs_the_plugin_where_it_is_told(self):
        self.make("install")
        path = self.root / "usr/lib/somewhere/collectd/smaps.so"
        self.assertEqual(path.read_bytes(), harness.PLUGIN.read_bytes())

    def test_uninstall_takes_away_what_install_has_put(self):
        kept = self.root / "usr/lib/somewhere/collectd/csv.so"
        kept.parent.mkdir(parents=True)
        kept.write_text("another plugin")
        before = self.files()
        self.make("install")
        self.assertGreater(self.files(), before)
        self.make("uninstall")
        after = self.files() - {"usr/share", "usr/share/doc"}
        self.assertEqual(after, before)
