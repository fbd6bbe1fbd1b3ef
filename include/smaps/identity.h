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
};

/* The same, as it is kept: there is one for each process of the host. */
struct stored_identity {
  char *block;             /* a count of its users, then the values */
  uint16_t at[ATTRIBUTES]; /* where in the block; 0 for none */
  uint32_t uid;
};

/* Its values are good until it is changed. */
struct identity identity_get(const struct stored_identity *stored);

/* Another one of the same values, which stay until both are done; they may be
 * in two threads. */
struct stored_identity identity_share(const struct stored_identity *stored);

/* What identity_renew() answers where any value differs. */
#define IDENTITY_CHANGED 1

/*
 * Copies the values to *ret, where any of them is not as in the old ones; else
 * answers 0. A NULL text is one that is not known. They may not hold NULs.
 * -ENOMEM, and -E2BIG for more than 64 KiB in all.
 */
int identity_renew(const struct stored_identity *old,
                   const struct span value[ATTRIBUTES], uint32_t uid,
                   struct stored_identity *ret);

void identity_done(struct stored_identity *stored);

#endif
