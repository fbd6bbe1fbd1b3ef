/*
 * A capture for one alarm: the largest members of the group and their mappings.
 * Reading smaps costs more than a rollup, so each cycle reads within a time
 * budget, and a capture takes several cycles.
 */
#ifndef SMAPS_CAPTURE_H
#define SMAPS_CAPTURE_H

#include "read/reader.h"
#include "snapshot/snapshot.h"
#include "snapshot/summary.h"

struct capture_member {
  uint32_t pid;
  uint64_t starttime_ticks;
  uint64_t weight; /* of last_known_weigh() */
};

/* Zero if no capture is running. */
struct capture {
  bool is_running;
  struct alarm alarm;
  struct summary summary; /* whole after the first capture_continue() */
  uint64_t time_ns;       /* of the first scene */
  struct json json;
  struct mapping_table all;
  struct capture_member *members; /* the largest first */
  size_t n, next;
  uint64_t in_group; /* members of the group, as in its ps_count */
  uint64_t written;  /* members in the document */
};

/* True if the alarm is about processes that were killed for memory. */
bool capture_is_of_kill(const struct alarm *alarm);

/*
 * Begins a capture with the sums of this scene, which last_known_note() has
 * noted, or, for a group whose processes have ended, with its last known state.
 * -ENOENT if there is no such group, or -ENOMEM; c is then zero.
 */
int capture_begin(struct capture *c, const struct scene *s,
                  const struct last_known_table *last_known,
                  const struct alarm *alarm);

/* Reads the limit of the group, at first, if none is known, and the next
 * members, at least one, until `budget_ns` is used up. True if all are read. */
bool capture_continue(struct capture *c, const struct scene *s,
                      struct reader *reader, uint64_t budget_ns);

/* Ends the capture. Returns 0 and the document, which the caller frees, or a
 * negative errno. */
int capture_finish(struct capture *c, const struct settings *settings,
                   char **ret_text, size_t *ret_len);

/*
 * Reads the mappings of a process that the last cycle has seen, within
 * ReadTimeout, and makes the snapshot of it alone. Returns 0 and the document,
 * which the caller frees; -ESRCH if the process has ended or has no memory,
 * -EACCES if the kernel refuses, -ETIMEDOUT if reading it hangs; or -ENOMEM.
 */
int capture_close_up(const struct scene *s, struct reader *reader, uint32_t pid,
                     char **ret_text, size_t *ret_len);

/* Drops the capture, if there is one. */
void capture_done(struct capture *c);

#endif
