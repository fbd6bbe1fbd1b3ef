# SPDX-License-Identifier: MIT
"""What collectd's csv plugin has written, read again and again while a daemon
writes: each time only what is new, because most of the time of a test goes by
in waiting for the next interval."""

import os


class CsvFile:
    """Reads rows as (time, value...). The plugin only ever adds to a file."""

    def __init__(self, path):
        self.path = path
        self.rows = []
        self._offset = 0

    def read(self):
        """Returns the rows that have come. The last line may be half written."""
        if os.stat(self.path).st_size <= self._offset:
            return []
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self._offset)
            text = file.read()
        begin, self._offset = self._offset, self._offset + text.rfind(b"\n") + 1
        lines = text[: self._offset - begin].splitlines()
        # The first line of the file has the names of the columns.
        rows = [
            tuple(float(field) for field in line.split(b","))
            for line in lines[begin == 0 :]
        ]
        self.rows += rows
        return rows


class CsvFiles:
    """Reads the files with the values of one plugin, below the directory of a
    host."""

    def __init__(self, directory, plugin):
        self.directory = directory
        self.plugin = plugin
        self._files = {}
        self._times = set()

    def read(self):
        """Returns the present content as {(group, metric): [row...]}."""
        values = {}
        for name in sorted(list_directory(self.directory)):
            plugin, _, group = name.partition("-")
            if plugin != self.plugin:
                continue
            path = f"{self.directory}/{name}"
            for file in sorted(list_directory(path)):
                # The date that ends the name: "-2026-01-31".
                rows = values.setdefault((group, file[:-11]), [])
                rows += self._read_file(f"{path}/{file}")
        return values

    def times(self):
        """Returns the times of the rows so far."""
        self.read()
        return sorted(self._times)

    def _read_file(self, path):
        if path not in self._files:
            self._files[path] = CsvFile(path)
        file = self._files[path]
        self._times.update(row[0] for row in file.read())
        return file.rows


def list_directory(path):
    """The names in it; none where it is not there yet."""
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []
