/*
 * /proc/PID/cmdline (proc(5); fs/proc/base.c, get_mm_cmdline): arguments, each
 * ended by NUL, or whatever the process has written over them. Up to 2 MB; may
 * be empty for a process that has cleared it, as for a kernel thread or zombie.
 */
#ifndef SMAPS_CMDLINE_H
#define SMAPS_CMDLINE_H

#include <stddef.h>

/* What we read of a command line; the rest tells no service from another. */
#define CMDLINE_MAX 4096

/*
 * Joins the arguments with single blanks into ret, which takes `size` bytes
 * (one at least) and always ends in NUL. NULs and blanks at the end are
 * dropped; all other bytes stay as they are. Returns the length of the result,
 * which is cut where it does not fit.
 */
size_t cmdline_join(const char *text, size_t len, char *ret, size_t size);

#endif
