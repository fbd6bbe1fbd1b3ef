/* SPDX-License-Identifier: MIT */
/*
 * Files that appear whole or not at all, and a directory of them with limits.
 *
 * A file is written under a temporary name and then renamed. O_EXCL and
 * O_NOFOLLOW refuse a file that another user has put there; rename(2) replaces
 * a symbolic link and does not follow it. The mode is 0640, that of a directory
 * 0750, under any umask.
 */
#ifndef SMAPS_STORE_H
#define SMAPS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes or replaces a file. Returns 0, or a negative errno without a change.
 */
int store_replace(const char *path, const char *text, size_t len);

struct store {
  const char *directory;
  uint64_t max_files, max_bytes;
  /* Of a history: of each step only the first file is added, and the limits
   * make old files sparse. 0: only the newest files are kept. */
  uint64_t step_s;
};

/* Returns 0, or the negative errno with which store_add() would fail. A missing
 * directory is made, or else is -ENOENT. */
int store_check(const char *directory, bool makes);

/* The text of such an error. */
const char *store_error(int error);

/* Gets the time of a file that store_add() has made, in seconds since the
 * Epoch. False for other names. */
bool store_parse_name(const char *name, uint64_t *ret_seconds);

/*
 * Adds a file named smaps-WHEN-SUBJECT.json, or replaces it. WHEN is the time
 * in UTC, in seconds, so the names sort by time; a '/' in the subject becomes
 * '_'.
 *
 * Makes the directory (0750) if only the last component is missing. Removes
 * regular files with such names, as the limits need it, and the unfinished file
 * of an interrupted writer. The oldest files go first, but before them those
 * that are more than a day ahead, by a clock that was wrong. In a history the
 * oldest goes only if it is older than a day. Otherwise the file goes that
 * leaves the smallest gap for its age: all times of the day stay, and the
 * younger ones are closer together. Writes the path to ret_path, which has no
 * room if the caller does not need it.
 *
 * Returns 0, or a negative errno and adds no file: -EFBIG if the text alone is
 * larger than max_bytes, -EEXIST if the step has a file, -ENOMEM, -EPERM if
 * the directory is writable by others or its owner is neither this user nor
 * root, -ELOOP or -ENOTDIR if it is a symbolic link or no directory.
 */
int store_add(const struct store *s, const char *subject, uint64_t when_ns,
              const char *text, size_t len, char *ret_path, size_t size);

#endif
