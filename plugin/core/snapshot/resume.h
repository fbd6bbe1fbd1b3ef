/* SPDX-License-Identifier: MIT */
/*
 * What a restart of the daemon would forget, and the state file keeps: the
 * growth and the alarms of groups, the kills of control groups, and the values
 * that cool down after a capture.
 *
 * It is the last key of a state, an array of strings, each on a line of its
 * own. The first is the version, the boot and the time; the last is the hash of
 * all others, so the rest needs no check: only root and this user can write the
 * file. The others are records: a kind, a name, and the bytes of a struct, as
 * the same program has it in memory.
 *
 * Times are those of CLOCK_MONOTONIC, so the state of another boot counts as
 * nothing. So does what is older than an hour, and growth that is older than
 * its window. A damaged file is refused as a whole, because it is written as a
 * whole.
 */
#ifndef SMAPS_RESUME_H
#define SMAPS_RESUME_H

#include "measure/cgroup_watch.h"
#include "snapshot/document.h"
#include "snapshot/json.h"
#include "snapshot/last_known.h"

/* Bytes that are written and read. Groups beyond that, some 12,000 that are
 * followed, are not remembered. */
#define RESUME_MAX ((size_t)32 << 20)
/* From the end of one run until a group of the next has members. */
#define RESUME_MOST_NS (UINT64_C(3600) * 1000000000)
#define BOOT_ID_SIZE 40

/* After a capture, further alarms of the same severity about the same value of
 * a group cause none. Alarms about other values do: an OOM kill soon after a
 * warning about PSS has its own capture. */
struct cooldown {
  uint64_t until_ns;
  enum severity severity;
  char group[GROUP_NAME_SIZE];
  char type[GROUP_NAME_SIZE], type_instance[GROUP_NAME_SIZE];
};

/* Enough for the default Cooldown of 300 s if a capture begins in each second.
 * Beyond that, the oldest is overwritten, and its value can cause a capture. */
#define COOLDOWNS_MAX 512

struct cooldowns {
  struct cooldown at[COOLDOWNS_MAX];
  size_t n; /* that have begun; the newest is at (n - 1) % COOLDOWNS_MAX */
};

/* Where it comes from when it is written, and goes to. */
struct resume_owners {
  const char *boot_id; /* BOOT_ID_SIZE bytes; empty: nothing is remembered */
  uint64_t now_ns;
  const struct settings *settings;
  const struct group_table *groups;
  struct cgroup_watch *cgroup_watch;
  struct cooldowns *cooldowns;
  struct alarm_state *host_alarm;
};

/* What was read, and waits to be handed over. */
struct resume;

/* Adds it to the document. Nothing if that would become too large. */
void resume_write(struct json *j, const struct resume_owners *from);

/*
 * Reads the end of a state file. Returns 0, and NULL if there is no file or
 * nothing in it; -EPERM if it is no regular file of this user or root, or
 * others can write to it; -EBADMSG if it is damaged; or another negative errno.
 * May hang, so only the writer's thread calls it.
 */
int resume_read(const char *path, struct resume **ret);

/* Hands over what waits, after the members were counted and before
 * cgroup_watch_run(). False if nothing waits any more. */
bool resume_adopt(struct resume *r, const struct resume_owners *to);

/* r may be NULL. */
void resume_free(struct resume *r);

#endif
