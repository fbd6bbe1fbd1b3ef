/*
 * Files that appear whole or not at all, and a directory of them that does not
 * grow without end.
 *
 * A file is written under a name of its own, made with O_EXCL and O_NOFOLLOW so
 * that nobody can have put anything in its place, and then renamed (rename(2)
 * replaces a symbolic link, it does not follow it). Mode 0640 under any umask.
 */
#ifndef SMAPS_STORE_H
#define SMAPS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes or replaces a file. A negative errno, and then nothing has changed. */
int store_replace(const char *path, const char *text, size_t len);

struct store {
  const char *directory;
  uint64_t max_files;
  uint64_t max_bytes;
  int fd; /* of the directory, while a file is added; -1 */
};

/* `directory` outlives the store, whose other fields are then to be set. */
void store_init(struct store *s, const char *directory);

/*
 * Adds a file called smaps-WHEN-SUBJECT.json, or smaps-WHEN-SUBJECT.N.json
 * where there is one. WHEN is the time in UTC, so that an older file has a
 * lesser name, but for those of one second; a '/' in the subject becomes '_'.
 *
 * Makes the directory (0750), if only that is missing. Removes regular files
 * that are called so, the oldest first, and what an interrupted writer has
 * left, until the new one is within the limits. Writes the path to ret_path.
 *
 * A negative errno, and no file: -EFBIG where it alone is beyond max_bytes,
 * -EPERM for a directory that is another user's or
 * that others can write to, -ELOOP or -ENOTDIR for one
 * that is a symbolic link or no directory.
 */
int store_add(struct store *s, const char *subject, uint64_t when_ns,
              const char *text, size_t len, char *ret_path, size_t size);

#endif
