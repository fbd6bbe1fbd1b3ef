/* SPDX-License-Identifier: MIT */
/*
 * The alarm of a group: what the plugin knows better than a number shows. One
 * alarm has one or more causes. A cause is told when it begins; growth also
 * when it is full soon; kills again, every 5 minutes at most; and all of it
 * when no cause is left.
 *
 *   oom_kill      a process was killed for memory in the last 15 minutes
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
 * then the end, if the kill was told when no process was left. So a kill is
 * told in the next interval, or after 4 s if that is later, but at once if no
 * process is left: its process may still be ending, and systemd may be stopping
 * the others. A cause that is unknown for an hour is over.
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

/* Kills that were not told, and the last one. */
struct alarm_kill {
  bool is_new;       /* some were not told */
  uint64_t first_ns; /* the first of those */
  uint64_t last_ns;  /* 0: none */
  uint64_t told_ns;  /* 0: never */
  uint8_t intervals; /* since the last, at most 255 */
  bool has_said_end; /* when it was told, no process was left */
};

/* Without pointers, so it can be copied. Zero: no alarm, and nothing known. */
struct alarm_state {
  unsigned causes;                /* bit per cause that is on */
  unsigned told;                  /* those that need not be told any more */
  unsigned told_last;             /* what alarm_told() was about */
  unsigned seen;                  /* since the alarm began */
  uint8_t runs[ALARM_CAUSES];     /* intervals in a row that say the contrary */
  uint64_t sure_ns[ALARM_CAUSES]; /* when it was last known; 0: not yet */
  uint8_t soon_runs; /* in a row, growth is full within a part of FullWithin */
  bool is_soon;      /* it was for 3 intervals */
  bool has_told_soon;
  bool had_members, was_known;
  bool is_empty; /* it has no members now */
  /* The limit is reached, which is not told: evidence is due all the same. The
   * caller clears it. */
  bool wants_evidence;
  bool is_open;      /* a cause was told, and the end of the alarm was not */
  bool is_over;      /* its end is to be told */
  unsigned due;      /* the causes that are to be told */
  uint64_t since_ns; /* when it began */
  struct alarm_kill kill;
};

/* A group in an interval. */
struct alarm_sample {
  uint64_t time_ns; /* never 0, never goes back */
  bool is_fixed;    /* named in the configuration, and not Other */
  bool is_seen;     /* whether it has members is known */
  bool has_members;
  bool is_known;             /* its PSS is */
  uint64_t new_kills;        /* in this interval */
  double used_percent;       /* of its limit; NaN: unknown, or there is none */
  double growth;             /* bytes a second; NaN: unknown */
  double seconds_until_full; /* NaN: unknown, or it does not grow */
};

/* Notes an interval: due and is_over, in each interval until alarm_told(). What
 * has begun to end is not told any more. */
void alarm_note(struct alarm_state *a, const struct alarm_policy *p,
                const struct alarm_sample *s);

/* Notes the kills of an interval that tells nothing; alarm_note() does it, too.
 */
void alarm_note_kills(struct alarm_state *a, const struct alarm_sample *s);

/* The severity of what is to be told: SEVERITY_OKAY at the end, SEVERITY_NONE
 * if there is nothing. */
enum severity alarm_severity(const struct alarm_state *a);

/* True if what has just ended may have to do with the last kill. */
bool alarm_is_after_kill(const struct alarm_state *a, uint64_t now_ns);

/* Notes that it was told. */
void alarm_told(struct alarm_state *a, uint64_t now_ns);

/* What was told last, and is not over, is told again. */
void alarm_tell_again(struct alarm_state *a);

/* The worst cause of those that are to be told, or that were. Only of an
 * alarm. */
enum alarm_cause alarm_worst(const struct alarm_state *a);

#endif
