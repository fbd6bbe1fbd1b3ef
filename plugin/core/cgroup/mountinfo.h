/*
 * /proc/PID/mountinfo (proc(5); fs/proc_namespace.c, show_mountinfo): a line
 * for each mount. Blanks, newlines and backslashes of paths are octal: \040.
 */
#ifndef SMAPS_MOUNTINFO_H
#define SMAPS_MOUNTINFO_H

#include <smaps/text.h>

/* The text of one mount, within the line and still encoded. */
struct mountinfo {
  struct span root;        /* the directory of the file system at mount_point */
  struct span mount_point; /* as the reader of the file sees it */
  struct span type;
  struct span super_options; /* separated by commas */
};

/* Returns 0 and fills *ret, or returns -EBADMSG and leaves *ret unchanged. */
int mountinfo_parse_line(struct span line, struct mountinfo *ret);

/* Decodes a path into a string. False, with *ret undefined, if it does not fit
 * into `size` bytes or contains a NUL. */
bool mountinfo_decode(struct span path, char *ret, size_t size);

#endif
