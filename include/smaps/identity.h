/*
 * What a process is called: the attributes that rules look at. Read once for
 * each (pid, start time) and again after an exec; any of them may be unknown.
 */
#ifndef SMAPS_IDENTITY_H
#define SMAPS_IDENTITY_H

#include <smaps/scan.h>

enum attribute {
  ATTRIBUTE_COMM,         /* at most 15 bytes */
  ATTRIBUTE_COMMAND_LINE, /* joined by blanks, first 4 KiB; comm if empty */
  ATTRIBUTE_EXECUTABLE,   /* path, without " (deleted)" */
  ATTRIBUTE_USER,         /* name of the effective uid, or the number */
  ATTRIBUTE_CGROUP,       /* path */
  ATTRIBUTE_UNIT,
  ATTRIBUTE_SLICE,
  ATTRIBUTE_CONTAINER,
  ATTRIBUTES
};

struct identity {
  const char *value[ATTRIBUTES]; /* NULL where not known or not read */
  uint32_t uid;                  /* effective, where the user is known */
  char *block;                   /* holds the values */
};

/*
 * Copies the values; a NULL text is one that is not known. They may not hold
 * NULs. *ret_changed tells whether any value differs from before. -ENOMEM
 * leaves the identity as it was.
 */
int identity_set(struct identity *id, const struct span value[ATTRIBUTES],
                 uint32_t uid, bool *ret_changed);

void identity_done(struct identity *id);

#endif
