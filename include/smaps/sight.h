/*
 * The closer look at a process: all that is read of it to tell which process it
 * is, whether it lives, and what it is called. stat, the command line and the
 * executable can hang in the kernel (they wait for the mmap lock or for an
 * exec), so nothing but the reader calls this, and it knows of the process no
 * more than a copy has; what was seen is taken in later, by identify.h.
 */
#ifndef SMAPS_SIGHT_H
#define SMAPS_SIGHT_H

#include <limits.h>

#include <smaps/cmdline.h>
#include <smaps/process.h>
#include <smaps/user.h>

/* What has to be known of a process to read of it; complete in itself, since
 * the process may be gone, for us, before a read comes back. */
struct subject {
  uint32_t pid;
  uint32_t ino;
  uint64_t starttime_ticks;
  uint64_t image;
  uint64_t identified_ns;
  uint64_t resident_pages;
  struct stored_identity identity; /* shared, for a sighting; or nothing */
  uint32_t switches, executable_denied_s; /* as in struct process */
  bool is_settled;
  bool is_dead_leader;
  bool wants_faults; /* read before the rollup */
};

struct sighting {
  enum process_state state; /* PROCESS_KERNEL, _GONE or _ALIVE */
  const char *file;         /* that was read last, for an error */
  struct stat_sample stat;  /* without comm */
  char comm[16];            /* as the kernel has it: 15 bytes at most */
  struct statm_sample statm;
  uint64_t image; /* as in struct process */
  bool has_names; /* they were read again */
  bool is_executable_denied;
  uint32_t switches, executable_denied_s; /* likewise, if it has names */
  /* If they are not the same as before: to be taken over. */
  bool has_changed;
  struct stored_identity identity;
};

/* What it takes to look. */
struct sight {
  struct procfs *procfs;
  struct user_cache *users;
  unsigned attributes;      /* bit per attribute to read */
  unsigned rule_attributes; /* of these, those that rules look at */
  uint64_t interval_ns;

  /* The values of the process at hand. */
  char user[USER_NAME_SIZE];
  char command_line[CMDLINE_MAX + 1];
  char executable[PATH_MAX];
};

/*
 * Looks. 0, an outcome as of procfs.h, or a negative errno; *ret is filled in
 * as far as it went, and sighting_done() is due.
 */
int sight_look(struct sight *s, const struct subject *p, uint64_t now_ns,
               struct sighting *ret);
void sighting_done(struct sighting *s);

/* Whether names are so old that the process wants a closer look for that: in
 * the next cycle they would be older than a minute. */
bool sight_is_old(uint32_t pid, uint64_t identified_ns, uint64_t now_ns,
                  uint64_t interval_ns);

/*
 * Opens what a process's memory is read through: its directory, or that of a
 * live thread where the main thread has exited. As procfs_open_process(), and
 * PROCFS_GONE where the pid has come to another process.
 */
int sight_open_memory(struct procfs *procfs, const struct subject *p,
                      int *ret_fd);

#endif
