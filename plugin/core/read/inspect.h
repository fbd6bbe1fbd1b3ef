/* SPDX-License-Identifier: MIT */
/*
 * Inspects a process: reads the files with its identity, its state and its
 * names. stat, the command line and the executable can hang in the kernel (they
 * wait for the mmap lock or for an exec). So only the reader calls this, with a
 * copy of the process's data; identify.h adopts the result later, and notices
 * if the pid has come to another process.
 */
#ifndef SMAPS_INSPECT_H
#define SMAPS_INSPECT_H

#include <limits.h>

#include "base/user.h"
#include "proc/cmdline.h"
#include "process/container_names.h"
#include "process/proc_ref.h"

struct inspection {
  enum process_state state; /* PROCESS_KERNEL, _GONE or _ALIVE */
  const char *file;         /* the last one read, for errors */
  struct stat_sample stat;
  struct statm_sample statm;
  uint64_t image; /* as in struct process */
  bool has_names; /* names were read again */
  bool is_executable_denied;
  int container_error; /* why its container has no name for the rules; or 0 */
  const char *container_file;
  /* Set if any name has changed: the new names. */
  bool has_changed;
  struct stored_attributes attributes;
};

/* The resources of an inspection. */
struct inspect_ctx {
  struct procfs *procfs;
  struct user_cache *users;
  struct container_cache *containers;
  unsigned attributes;      /* bit per attribute to read */
  unsigned rule_attributes; /* the part of them that rules use */
  uint64_t interval_ns;
  uint64_t now_ns; /* the start of the cycle */

  /* The values of the current process. */
  char user[USER_NAME_SIZE];
  struct cgroup_containers nested;
  struct container_names container;
  char command_line[CMDLINE_MAX + 1];
  char executable[PATH_MAX];
};

/*
 * Inspects a process. Returns 0, an outcome of procfs.h or a negative errno.
 * *ret has what was read before a failure; release it with inspection_done().
 */
int inspect_process(struct inspect_ctx *s, const struct proc_ref *p,
                    struct inspection *ret);
void inspection_done(struct inspection *s);

/* Reads stat alone, by pid. Returns 0, an outcome of procfs.h or a negative
 * errno. */
int inspect_stat(struct procfs *procfs, uint32_t pid, struct stat_sample *ret);

/* True if the names must be read again for their age: in the next cycle they
 * would be older than a minute. */
bool inspect_is_due(uint32_t pid, uint64_t identified_ns, uint64_t now_ns,
                    uint64_t interval_ns);

#endif
