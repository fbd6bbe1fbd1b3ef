/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/stat (proc(5); fs/proc/array.c, do_task_stat).
 *
 * Only this file has the start time that makes a pid an identity, the state,
 * the parent, the flag of a kernel thread, and addresses that change with every
 * exec. Its rss is not used: on 6.2 and later it is approximate even where
 * statm is exact.
 */
#ifndef SMAPS_STAT_H
#define SMAPS_STAT_H

#include <smaps/text.h>

#define STAT_COMM_SIZE 16

struct stat_sample {
  uint32_t ppid;
  char comm[STAT_COMM_SIZE]; /* as the process chose it: any bytes but NUL */
  char state;                /* R S D T t Z X x I … */
  uint64_t flags;
  uint64_t minor_faults;
  uint32_t threads;
  uint64_t starttime_ticks; /* since boot, in USER_HZ */
  /*
   * Address space randomisation changes these three on exec. 0 if the kernel is
   * too old to print them; 0 or 1 if the reader may not see them
   * (PTRACE_MODE_READ).
   */
  uint64_t start_code;
  uint64_t start_stack;
  uint64_t arg_start;
};

/*
 * Parses the whole file. The name ends at the last ')' of the text, because a
 * process may put any bracket into its name. Fields after the 22nd may be
 * missing (older kernels print fewer), but not the newline.
 *
 * Returns 0 and fills *ret, or returns -EBADMSG and leaves *ret unchanged.
 */
int stat_parse(const char *text, size_t len, struct stat_sample *ret);

/* PF_KTHREAD (linux/sched.h, since 2.6.27): it never has an mm, an executable
 * or a command line. */
static inline bool stat_is_kernel_thread(const struct stat_sample *s) {
  return s->flags & 0x00200000;
}

/* State Z, X or x: the main thread has exited. Other threads may still run. */
static inline bool stat_is_dead(const struct stat_sample *s) {
  return s->state == 'Z' || s->state == 'X' || s->state == 'x';
}

/* True if the kernel let us see the addresses above: it prints startcode as 1
 * without the permission, as 0 without mm. */
static inline bool stat_has_addresses(const struct stat_sample *s) {
  return s->start_code > 1;
}

#endif
