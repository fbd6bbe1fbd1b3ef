/* SPDX-License-Identifier: MIT */
/*
 * The alarm of a group: what the plugin knows better than a number shows. One
 * alarm has one or more causes, and is told when it begins, when it gets worse,
 * when another cause joins it, and when it ends.
 *
 *   oom_kill      a process was killed for memory in the last hour
 *   ended         no process is left of a group that had some; only of groups
 *                 that the configuration names: others come and go
 *   cgroup_limit  the working set takes LimitPercent of the limit (0.98 of that
 *                 until it ends)
 *   growth        growth takes all that is free within FullWithin, until there
 *                 is no growth
 *   unknown       the PSS was known and is not any more
 *
 * A failure is a kill, an end, and growth that is full within a twelfth of
 * FullWithin; the rest is a warning.
 *
 * What belongs to one story is told once: growth and then its limit, a kill and
 * then the end. Further kills are told every 5 minutes. A cause that is unknown
 * for an hour is over.
 */
#ifndef SMAPS_ALARM_H
#define SMAPS_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/choice.h"
#include <smaps/words.h>

/* Bit per severity of a notification, the worst last. */
enum severity {
  SEVERITY_NONE = 0,
  SEVERITY_OKAY = 1,
  SEVERITY_WARNING = 2,
  SEVERITY_FAILURE = 4,
};

#define ALARM_NUMBER(name, key, words) ALARM_##name,
enum alarm_cause { ALARM_TABLE(ALARM_NUMBER) ALARM_CAUSES };
#undef ALARM_NUMBER

/* <Alarms>. */
struct alarm_policy {
  enum choice causes[ALARM_CAUSES];
  uint64_t limit_percent;  /* 0: not set */
  uint64_t full_within_ns; /* likewise */
};

/* Without pointers, so it can be copied. Zero: no alarm, and nothing known. */
struct alarm_state {
  unsigned causes;                /* bit per cause that is on */
  unsigned told;                  /* those of them that were told */
  unsigned seen;                  /* since the alarm began */
  uint8_t runs[ALARM_CAUSES];     /* intervals in a row that say the contrary */
  uint64_t sure_ns[ALARM_CAUSES]; /* when it was last known; 0: not yet */
  uint8_t soon_runs; /* in a row, growth is full within a part of FullWithin */
  bool is_soon;      /* it was for 3 intervals */
  bool had_members, was_known;
  bool has_new_kill;
  /* The limit is reached, which is not told: evidence is due all the same. The
   * caller clears it. */
  bool wants_evidence;
  enum severity due;      /* for the caller: what alarm_note() has returned */
  enum severity severity; /* as it was told; SEVERITY_NONE: there is no alarm */
  uint64_t since_ns;      /* when it began */
  uint64_t kill_told_ns;  /* 0: never */
  uint64_t kill_ns;       /* the last kill; 0: none */
  uint8_t since_kill;     /* intervals since then, at most 255 */
  bool is_empty;          /* it has no members now */
  bool has_said_end;      /* it had none when a kill was told last */
};

/* A group in an interval. */
struct alarm_sample {
  uint64_t time_ns; /* never 0, never goes back */
  bool is_fixed;    /* named in the configuration, and not Other */
  bool is_seen;     /* whether it has members is known */
  bool has_members;
  bool is_known;             /* its PSS is */
  uint64_t kills;            /* in the last hour */
  uint64_t new_kills;        /* in this interval */
  double used_percent;       /* of its limit; NaN: unknown, or there is none */
  double growth;             /* bytes a second; NaN: unknown */
  double seconds_until_full; /* NaN: unknown, or it does not grow */
};

/* Notes an interval. Returns the severity of what is to be told, SEVERITY_OKAY
 * at the end of the alarm, or SEVERITY_NONE: in each interval until
 * alarm_told(). What has begun to end is not told any more. */
enum severity alarm_note(struct alarm_state *a, const struct alarm_policy *p,
                         const struct alarm_sample *s);

/* Notes the kills of an interval that tells nothing; alarm_note() does it, too.
 */
void alarm_note_kills(struct alarm_state *a, const struct alarm_sample *s);

/* The causes that this interval has confirmed: the others are about to end. */
unsigned alarm_confirmed(const struct alarm_state *a);

/* Notes that it was told. */
void alarm_told(struct alarm_state *a, enum severity severity,
                uint64_t time_ns);

/* The worst cause: of those that are to be told, else of those that are on,
 * else of those that were. Only of an alarm. */
enum alarm_cause alarm_worst(const struct alarm_state *a);

#endif
