"""The directory of captures: what it is called and who may read it, how many
files there are, and what stands in the way of a new one."""

import datetime
import os
import re
import shutil
import stat
from pathlib import Path

import harness
import snapshot
from capture import CaptureTest
from harness import KIB, group, is_root, stage, unprivileged_user
from snapshot import SmallDisk, complaints, fill


def stamp(path):
    return re.fullmatch(r"smaps-(\d{8}T\d{6}Z)-.*\.json", path.name)[1]


class Directory(CaptureTest):
    def start_web(self, *options, **more):
        if not hasattr(self, "shape"):
            self.shape = self.start_shape("anon", name="web")
        return self.start_capturing(
            group("web", 'Comm "web@"'), self.capture(*options), **more
        )

    def new(self):
        return self.new_capture(plugin_instance="web")[0]

    def test_name_tells_time_and_group(self):
        self.start_shape("anon", name="web")
        self.start_capturing(
            group("a/b c", 'Comm "web@"'), self.capture()
        )
        path, document = self.new_capture(plugin_instance="a_b c")
        self.assertRegex(
            path.name, r"\Asmaps-\d{8}T\d{6}Z-a_b c(\.\d+)?\.json\Z"
        )
        when = datetime.datetime.fromtimestamp(
            int(document["time"]), datetime.timezone.utc
        )
        self.assertEqual(stamp(path), when.strftime("%Y%m%dT%H%M%SZ"))

    def test_modes_under_any_umask(self):
        for umask in ("077", "000"):
            with self.subTest(umask):
                self.directory = stage().new_directory() / "captures"
                self.start_web(
                    wrapper=("sh", "-c", f'umask {umask} && exec "$@"', "sh")
                )
                path = self.new()
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o640)
                mode = stat.S_IMODE(self.directory.stat().st_mode)
                self.assertEqual(mode, 0o750)
                self.daemon.stop()

    def test_no_more_than_max_files(self):
        self.start_web("MaxFiles 3")
        made = [self.new() for _ in range(6)]
        self.assertEqual(set(self.files()), set(made[-3:]))

    def test_no_more_than_max_bytes(self):
        limit = 64 * KIB
        self.start_web('MaxBytes "64K"')
        made = []
        while all(path.exists() for path in made):
            self.assertLess(len(made), 60)
            made.append(self.new())
            self.assertLessEqual(self.bytes(), limit)
        self.assertGreater(len(made), 2)
        self.assertEqual(set(self.files()), set(made[1:]))
        # It has removed no more than had to be.
        self.assertGreater(self.bytes() + 2 * made[-1].stat().st_size, limit)

    def bytes(self):
        return sum(path.stat().st_size for path in self.files())

    def test_one_that_is_larger_than_max_bytes_is_one_line(self):
        self.start_shape("cow", name="web", children=60)
        self.start_web('MaxBytes "64K"', "TopProcesses 60")
        self.assert_failure("larger than MaxBytes", plugin_instance="web")
        self.assertEqual(self.files(), [])

    def test_a_restart_honours_what_is_there(self):
        self.start_web("MaxFiles 3")
        made = [self.new(), self.new()]
        self.daemon.stop()
        foreign = self.plant_foreign()
        old = self.directory / "smaps-20200101T000000Z-gone.json"
        old.write_text("{}")
        self.start_web("MaxFiles 3")
        self.assertTrue(old.exists())
        made.append(self.new())
        self.assertFalse(old.exists())
        self.assertTrue(all(path.exists() for path in made))
        made.append(self.new())
        self.assertFalse(made[0].exists())
        self.assertTrue(all(path.exists() for path in made[1:]))
        self.assert_untouched(foreign)

    FOREIGN = (
        "smaps-notes.json",
        "smaps-20200101T000000Z-old.json.gz",
        "smaps-2020-01-01T000000Z-old.json",
        "smaps-2020010xT000000Z-old.json",
        "smaps-20200101T000000Z.json",
        "other-20200101T000000Z-old.json",
        "SMAPS-20200101T000000Z-old.json",
        "smaps-20200101T000000Z-old.txt",
        "collectd.json",
    )

    def plant_foreign(self):
        for name in self.FOREIGN:
            (self.directory / name).write_text(name)
        # It has a name like ours, but we never make a directory.
        inside = self.directory / "smaps-20200101T000000Z-dir.json"
        inside.mkdir()
        (inside / "file").write_text("kept")
        return inside / "file"

    def assert_untouched(self, inside):
        for name in self.FOREIGN:
            self.assertEqual((self.directory / name).read_text(), name)
        self.assertEqual(inside.read_text(), "kept")

    def files(self, directory=None):
        """Without the foreign ones."""
        return [
            path
            for path in super().files(directory)
            if path.name not in self.FOREIGN and not path.is_dir()
        ]

    def test_what_was_left_unfinished_is_removed(self):
        self.directory.mkdir(0o750)
        victim = stage().new_directory() / "victim"
        for make in (Path.hardlink_to, Path.symlink_to):
            with self.subTest(make.__name__):
                victim.write_text("precious")
                make(self.directory / ".smaps-unfinished", victim)
                self.start_web()
                path = self.new()
                self.assertEqual(victim.read_text(), "precious")
                self.assertEqual(victim.stat().st_nlink, 1)
                self.assertFalse(path.is_symlink())
                self.assertNotIn(
                    ".smaps-unfinished", os.listdir(self.directory)
                )
                self.daemon.stop()

    def test_a_directory_that_has_vanished_is_made_again(self):
        self.start_web()
        self.new()
        shutil.rmtree(self.directory)
        self.new()
        self.assertEqual(len(self.files()), 1)
        self.assertEqual(complaints(self.daemon), [])

    def test_no_place_for_the_directory_is_one_line(self):
        """At the start, and when the evidence is lost."""
        self.directory = stage().new_directory() / "none/captures"
        self.start_web()
        (told,) = complaints(self.daemon)
        self.assertIn(
            f'<Capture>: Directory "{self.directory}" cannot be written: the '
            f'directory "{self.directory.parent}" does not exist',
            told,
        )
        self.assert_failure("No such file", plugin_instance="web")
        self.directory.parent.mkdir()
        self.new()

    def test_a_directory_that_was_replaced_by_a_link(self):
        """Neither what it leads to nor what was there gets anything."""
        self.start_web()
        first = self.new()
        elsewhere = stage().new_directory()
        moved = self.directory.with_name("moved")
        self.directory.rename(moved)
        self.directory.symlink_to(elsewhere)
        self.assert_failure(
            "(Not a directory|Too many levels)", plugin_instance="web"
        )
        self.assertEqual(os.listdir(elsewhere), [])
        self.assertEqual(os.listdir(moved), [first.name])
        self.directory.unlink()
        self.new()

    def test_a_link_at_the_start(self):
        elsewhere = stage().new_directory()
        self.directory.symlink_to(elsewhere)
        self.start_web()
        self.assert_failure(
            "(Not a directory|Too many levels)", plugin_instance="web"
        )
        self.assertEqual(os.listdir(elsewhere), [])

    def test_a_directory_that_others_can_write_to(self):
        """From the start, and since a capture was made."""
        self.directory.mkdir()
        self.directory.chmod(0o777)
        self.start_web()
        refusal = "others can write to it"
        self.assert_failure(refusal, plugin_instance="web")
        self.assertEqual(os.listdir(self.directory), [])
        self.directory.chmod(0o755)
        self.new()
        self.directory.chmod(0o1777)
        self.assert_failure(refusal, plugin_instance="web")
        self.assertEqual(len(self.files()), 1)

    def test_a_directory_of_somebody_else(self):
        harness.need_root("to give a directory away")
        self.directory.mkdir()
        os.chown(self.directory, *unprivileged_user())
        self.start_web()
        refusal = f"user {unprivileged_user()[0]} owns it"
        self.assert_failure(refusal, plugin_instance="web")
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_directory_without_permission_is_one_line(self):
        user = unprivileged_user()
        self.directory = stage().new_directory(user if is_root() else None)
        self.directory.chmod(0o555)
        self.addCleanup(self.directory.chmod, 0o755)
        self.shape = self.start_shape("anon", name="web", user=user)
        self.start_web(user=user)
        self.assert_failure("Permission denied", plugin_instance="web")
        self.directory.chmod(0o755)
        self.new()

    def test_full_disk_is_one_line_and_no_half_file(self):
        disk = SmallDisk(self, 1024)
        told = disk.mount_point / "captures"
        self.shape = self.start_shape("anon", name="web")
        self.start_capturing(
            group("web", 'Comm "web@"'),
            self.capture(directory=told),
            wrapper=disk.prefix,
        )
        inside = disk.seen_by(self.daemon)
        self.directory = inside / "captures"
        first = self.new()
        filler = fill(inside)
        self.assert_failure("No space left", plugin_instance="web")
        self.assertEqual(os.listdir(self.directory), [first.name])
        snapshot.read(first)
        filler.unlink()
        self.new()
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(len(complaints(self.daemon)), 1)
