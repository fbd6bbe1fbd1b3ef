"""What stands in the way of a capture in the file system of a real host."""

import os

import snapshot
from capture import CaptureTest
from harness import group, is_root, stage, unprivileged_user
from snapshot import SmallDisk, complaints, fill


class Directory(CaptureTest):
    def start_web(self, **more):
        if not hasattr(self, "shape"):
            self.shape = self.start_shape("anon", name="web")
        return self.start_capturing(
            group("web", 'Comm "web@"'), self.capture(), **more
        )

    def new(self):
        return self.new_capture(plugin_instance="web")[0]

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
