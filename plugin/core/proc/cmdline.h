/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/cmdline (proc(5); fs/proc/base.c, get_mm_cmdline): arguments, each
 * ended by NUL, or the text that the process has written over them. Up to 2 MB.
 * Empty for kernel threads, zombies and processes that have cleared it.
 *
 * postgres\0-D\0/srv/data\0
 * sshd: root@pts/0\0\0\0\0\0\0\0
 * postgres: checkpointer            (padded with blanks to the old length)
 */
#ifndef SMAPS_CMDLINE_H
#define SMAPS_CMDLINE_H

#include <stddef.h>

/* Longer command lines are cut; the rest does not distinguish services. */
#define CMDLINE_MAX 4096

/*
 * Joins the arguments with single blanks into ret of `size` bytes (at least 1),
 * which always ends in NUL. NULs and blanks at the end are dropped; all other
 * bytes stay unchanged. Cuts the result if it does not fit. Returns its length.
 */
static inline size_t cmdline_join(const char *text, size_t len, char *ret,
                                  size_t size) {
  if (len > size - 1)
    len = size - 1;
  while (len > 0 && (text[len - 1] == '\0' || text[len - 1] == ' '))
    len--;
  for (size_t i = 0; i < len; i++)
    ret[i] = text[i] ? text[i] : ' ';
  ret[len] = '\0';
  return len;
}

#endif
