/* One PID file: a number in front, of the process that a service runs as. */
#ifndef SMAPS_PID_FILE_H
#define SMAPS_PID_FILE_H

#include <stdint.h>

/*
 * Reads it. *ret is the pid that it names; 0 for none, as where the file is
 * missing, is no regular file or has no number in front. A negative errno where
 * it cannot be told what is in it: it is not for us to read, no descriptor is
 * left, or the like.
 *
 * What is no regular file is never opened, wherever a link leads: to open a
 * device can do something to it. May hang (a network file system), so nothing
 * but the reader calls it.
 */
int pid_file_read(const char *path, uint32_t *ret);

#endif
