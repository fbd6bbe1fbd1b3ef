/* SPDX-License-Identifier: MIT */
/*
 * The attributes of a process that rules look at. Read once for each (pid,
 * start time) and again after an exec; any of them may be unknown.
 */
#ifndef SMAPS_ATTRIBUTES_H
#define SMAPS_ATTRIBUTES_H

#include "cgroup/cgroup.h"
#include <smaps/text.h>
#include <smaps/words.h>

/*
 * The values, where the name of an attribute does not say it:
 *   COMM            at most 15 bytes
 *   COMMAND_LINE    joined by blanks, first 4 KiB; comm if empty
 *   EXECUTABLE      path, without " (deleted)"
 *   USER            name of the effective uid, or the number
 *   CGROUP          path
 *   CONTAINER_NAME, POD, NAMESPACE   see container_names.h
 */
#define ATTRIBUTE_NUMBER(name, key, selector) ATTRIBUTE_##name,
enum attribute {
  ATTRIBUTE_TABLE(ATTRIBUTE_NUMBER, ATTRIBUTE_NUMBER) ATTRIBUTES
};
#undef ATTRIBUTE_NUMBER

/* Bit per attribute that a control group is selected by. */
#define CGROUP_ATTRIBUTES                                                      \
  (1U << ATTRIBUTE_CGROUP | 1U << ATTRIBUTE_UNIT | 1U << ATTRIBUTE_SLICE |     \
   1U << ATTRIBUTE_CONTAINER | CONTAINER_ATTRIBUTES)
/* The attributes that need files of the container's runtime, besides the
 * path. */
#define CONTAINER_ATTRIBUTES                                                   \
  (1U << ATTRIBUTE_CONTAINER_NAME | 1U << ATTRIBUTE_POD |                      \
   1U << ATTRIBUTE_NAMESPACE)

/* The kernel may refuse these, and then NULL means "unknown". NULL in another
 * attribute but comm means that the process has none: it is in no unit. */
#define REFUSABLE_ATTRIBUTES                                                   \
  (1U << ATTRIBUTE_COMMAND_LINE | 1U << ATTRIBUTE_EXECUTABLE |                 \
   1U << ATTRIBUTE_USER)

struct attributes {
  const char *value[ATTRIBUTES]; /* NULL if unknown or not read */
  uint32_t uid;                  /* effective; valid if the user is known */
};

/* The same in one block of memory, for each process of the host. */
struct stored_attributes {
  char *block;             /* a reference count, then the values */
  uint16_t at[ATTRIBUTES]; /* offset in the block; 0 for none */
  uint32_t uid;
};

/* The values are valid until `stored` changes. */
struct attributes attributes_get(const struct stored_attributes *stored);

/* Returns another reference to the same values, which live until both are done.
 * The two may be in different threads. */
struct stored_attributes
attributes_share(const struct stored_attributes *stored);

/* Sets the values that follow from the path of a control group alone; they
 * point into the path and into *containers, which are found in it. */
void attributes_set_cgroup(struct span value[ATTRIBUTES], struct span path,
                           struct cgroup_containers *containers);

/* attributes_renew(): at least one value differs. */
#define ATTRIBUTES_CHANGED 1

/*
 * Copies the values to *ret and returns ATTRIBUTES_CHANGED if any differs from
 * the old ones; else returns 0. A NULL text is an unknown value. Values may not
 * contain NULs. -ENOMEM, or -E2BIG for more than 64 KiB in all.
 */
int attributes_renew(const struct stored_attributes *old,
                     const struct span value[ATTRIBUTES], uint32_t uid,
                     struct stored_attributes *ret);

void attributes_done(struct stored_attributes *stored);

#endif
