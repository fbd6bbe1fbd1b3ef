/* SPDX-License-Identifier: MIT */
#include "proc/shmem.h"

#include <string.h>

static bool starts_with(const struct span *s, const char *with) {
  size_t len = strlen(with);

  return s->len >= len && memcmp(s->text, with, len) == 0;
}

static bool ends_with(const struct span *s, const char *with) {
  size_t len = strlen(with);

  return s->len >= len && memcmp(s->text + s->len - len, with, len) == 0;
}

/* Shmem has no device: its major number is 0. */
static bool can_be_shmem(const struct rollup_line *line) {
  const struct span *name = &line->name;

  if (line->permissions.len < 4 || line->permissions.text[3] != 's' ||
      !starts_with(&line->device, "00:"))
    return false;
  if (starts_with(name, "/dev/") && !starts_with(name, "/dev/shm/") &&
      !starts_with(name, "/dev/zero"))
    return false; /* memory of a device */
  return starts_with(name, "/") || starts_with(name, "[anon_shmem:");
}

void shmem_mappings_add(struct shmem_mappings *m,
                        const struct rollup_line *line) {
  const struct span *name = &line->name;
  uint64_t bytes = line->end - line->start;

  if (line->kind != ROLLUP_LINE_MAPPING || line->end < line->start ||
      !can_be_shmem(line))
    return;
  if (starts_with(name, "/dev/zero") || starts_with(name, "[anon_shmem:"))
    m->forked += bytes;
  else if (starts_with(name, "/SYSV")) /* is always shown as deleted */
    m->lasting += bytes;
  else if (ends_with(name, " (deleted)"))
    m->passed += bytes;
  else
    m->lasting += bytes;
}
