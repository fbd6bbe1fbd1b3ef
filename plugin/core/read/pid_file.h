/* SPDX-License-Identifier: MIT */
/* A PID file: it begins with the pid of a service. */
#ifndef SMAPS_PID_FILE_H
#define SMAPS_PID_FILE_H

#include "process/pid_claim.h"

/*
 * Reads a PID file. The number is 0 if the file is missing, is not a regular
 * file, or does not begin with a number. A negative errno if its content is
 * unknown: reading is not permitted, no descriptor is left, or the like.
 *
 * A file that is not regular is never opened, even if a link leads there:
 * opening a device can have an effect. May hang (a network file system), so
 * only the reader calls it.
 */
int pid_file_read(const char *path, struct pid_claim *ret);

#endif
