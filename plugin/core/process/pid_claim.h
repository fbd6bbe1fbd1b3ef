/* SPDX-License-Identifier: MIT */
/* What a PID file says, and why it may not be believed. */
#ifndef SMAPS_PID_CLAIM_H
#define SMAPS_PID_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#define WRITER_IS_ANYBODY UINT32_MAX

struct pid_claim {
  uint32_t number;     /* 0: none */
  uint32_t writer;     /* a user who can write the file; 0: only root and we */
  uint32_t group;      /* a group that can; 0: none, or root's */
  uint64_t ino;        /* of the file */
  uint64_t changed_ns; /* time of day of its last change */
  bool is_of_boot;     /* it is in memory: no reboot leaves it */
};

enum pid_doubt {
  PID_BELIEVED,
  PID_IS_NOBODY,
  PID_IS_KERNEL,
  PID_IS_LATER,
  PID_IS_FORGED,
};

static const char *const pid_doubt_words[] = {
    [PID_IS_NOBODY] = "no such process runs",
    [PID_IS_KERNEL] = "that is init or a kernel thread",
    [PID_IS_LATER] = "that process began after the file was last changed",
    [PID_IS_FORGED] = ("a user who is neither root nor that of the process can "
                       "write the file")};

#endif
