/* SPDX-License-Identifier: MIT */
#include "report/alarm.h"

#include <assert.h>
#include <math.h>

#include "base/duration.h"

#define KILL_LASTS_NS (900 * NS_PER_S)
/* An interval of 4 s may end a little early. */
#define KILL_SETTLES_NS (7 * NS_PER_S / 2)
#define KILLS_TOLD_AGAIN_NS (300 * NS_PER_S)
/* The end of a process is seen up to some intervals after its kill. */
#define END_AFTER_KILL_NS (60 * NS_PER_S)
#define END_AFTER_KILL_INTERVALS 3
#define LIMIT_HYSTERESIS 0.98
#define SOON_PARTS 12
#define SOON_RUNS 3
#define UNSURE_NS (3600 * NS_PER_S)

#define BIT(cause) (1U << ALARM_##cause)
/* Causes that tell the same story: the second of them is not told. */
#define FILLING (BIT(CGROUP_LIMIT) | BIT(GROWTH))

/* Whether a cause is on: a sample may not know. */
enum verdict { UNSURE, OFF, ON };

/* Intervals in a row until a cause is on, and until it is off. */
static const uint8_t runs_needed[ALARM_CAUSES][2] = {
    [ALARM_OOM_KILL] = {1, 1},     [ALARM_ENDED] = {2, 3},
    [ALARM_CGROUP_LIMIT] = {1, 3}, [ALARM_GROWTH] = {3, 3},
    [ALARM_UNKNOWN] = {3, 3},
};

static enum verdict judge_kill(const struct alarm_state *a, uint64_t now_ns) {
  const struct alarm_kill *k = &a->kill;

  return k->is_new || (k->last_ns && now_ns - k->last_ns < KILL_LASTS_NS) ? ON
                                                                          : OFF;
}

static enum verdict judge_end(struct alarm_state *a,
                              const struct alarm_sample *s) {
  if (!s->is_fixed)
    return OFF;
  if (!s->is_seen)
    return UNSURE;
  a->had_members |= s->has_members;
  return a->had_members && !s->has_members ? ON : OFF;
}

static enum verdict judge_limit(const struct alarm_state *a,
                                const struct alarm_policy *p,
                                const struct alarm_sample *s) {
  bool is_on = a->causes & BIT(CGROUP_LIMIT);
  double least = (double)p->limit_percent * (is_on ? LIMIT_HYSTERESIS : 1);

  if (isnan(s->used_percent))
    return s->has_members ? UNSURE : OFF;
  return s->used_percent >= least ? ON : OFF;
}

static enum verdict judge_growth(struct alarm_state *a,
                                 const struct alarm_policy *p,
                                 const struct alarm_sample *s) {
  double within = (double)p->full_within_ns / (double)NS_PER_S;
  double until = s->seconds_until_full;

  if (!s->has_members)
    return OFF;
  if (isnan(s->growth) || (s->growth > 0 && isnan(until)))
    return UNSURE;
  if (s->growth <= 0)
    return OFF;
  if (until >= within / SOON_PARTS)
    a->soon_runs = 0;
  else if (a->soon_runs < SOON_RUNS)
    a->soon_runs++;
  a->is_soon |= a->soon_runs == SOON_RUNS;
  return until < within || a->causes & BIT(GROWTH) ? ON : OFF;
}

static enum verdict judge_unknown(struct alarm_state *a,
                                  const struct alarm_sample *s) {
  /* What has ended has no memory that could become unknown. */
  if (!s->has_members && s->is_seen) {
    a->was_known = false;
    return OFF;
  }
  a->was_known |= s->is_known && s->has_members;
  return a->was_known && !s->is_known ? ON : OFF;
}

static enum verdict judge(struct alarm_state *a, const struct alarm_policy *p,
                          const struct alarm_sample *s,
                          enum alarm_cause cause) {
  if (p->causes[cause] == CHOICE_NO)
    return OFF;
  switch (cause) {
  case ALARM_OOM_KILL:
    return judge_kill(a, s->time_ns);
  case ALARM_ENDED:
    return judge_end(a, s);
  case ALARM_CGROUP_LIMIT:
    return judge_limit(a, p, s);
  case ALARM_GROWTH:
    return judge_growth(a, p, s);
  case ALARM_UNKNOWN:
    return judge_unknown(a, s);
  case ALARM_CAUSES:
    break;
  }
  return UNSURE;
}

static void note_cause(struct alarm_state *a, enum alarm_cause cause,
                       enum verdict verdict, uint64_t now_ns) {
  unsigned bit = 1U << cause;
  bool is_on = a->causes & bit;

  if (verdict != UNSURE || !a->sure_ns[cause])
    a->sure_ns[cause] = now_ns;
  if (verdict == UNSURE) {
    if (now_ns - a->sure_ns[cause] >= UNSURE_NS)
      a->causes &= ~bit;
    return;
  }
  if ((verdict == ON) == is_on) {
    a->runs[cause] = 0;
    return;
  }
  if (++a->runs[cause] < runs_needed[cause][is_on])
    return;
  a->runs[cause] = 0;
  a->causes ^= bit;
}

void alarm_note_kills(struct alarm_state *a, const struct alarm_sample *s) {
  struct alarm_kill *k = &a->kill;

  if (s->new_kills == 0) {
    if (k->intervals < UINT8_MAX)
      k->intervals++;
    return;
  }
  if (!k->is_new)
    k->first_ns = s->time_ns;
  k->is_new = true;
  k->last_ns = s->time_ns;
  k->intervals = 0;
}

bool alarm_is_after_kill(const struct alarm_state *a, uint64_t now_ns) {
  const struct alarm_kill *k = &a->kill;

  return k->last_ns && (now_ns - k->last_ns < END_AFTER_KILL_NS ||
                        k->intervals <= END_AFTER_KILL_INTERVALS);
}

/* --- what is to be told --- */

/* Those that are on, as this interval shows. */
static unsigned confirmed(const struct alarm_state *a, uint64_t now_ns) {
  unsigned causes = a->causes;

  for (int i = 0; i < ALARM_CAUSES; i++)
    if (a->runs[i] > 0 || a->sure_ns[i] != now_ns)
      causes &= ~(1U << i);
  return causes;
}

/* What belongs to a story that was told counts as told. */
static void note_stories(struct alarm_state *a, uint64_t now_ns) {
  unsigned silent = a->told & FILLING ? FILLING : 0;

  if (a->kill.has_said_end && alarm_is_after_kill(a, now_ns))
    silent |= BIT(ENDED);
  silent &= a->causes & ~a->told;
  a->wants_evidence |= silent & BIT(CGROUP_LIMIT);
  a->told |= silent;
}

/* The process that was killed may not have ended yet. */
static bool is_kill_due(const struct alarm_state *a, uint64_t now_ns) {
  const struct alarm_kill *k = &a->kill;

  if (!k->is_new || !(a->causes & BIT(OOM_KILL)))
    return false;
  return (a->is_empty || now_ns - k->first_ns >= KILL_SETTLES_NS) &&
         (!k->told_ns || now_ns - k->told_ns >= KILLS_TOLD_AGAIN_NS);
}

static unsigned find_due(const struct alarm_state *a, uint64_t now_ns) {
  unsigned on = confirmed(a, now_ns);
  unsigned due = on & ~a->told & ~BIT(OOM_KILL);

  if (a->is_soon && !a->has_told_soon)
    due |= on & BIT(GROWTH);
  if (is_kill_due(a, now_ns) || (due & BIT(ENDED) && a->kill.is_new))
    due |= BIT(OOM_KILL);
  return due;
}

static void forget_what_is_over(struct alarm_state *a) {
  a->told &= a->causes;
  if (!(a->causes & BIT(GROWTH)) && a->runs[ALARM_GROWTH] == 0) {
    a->soon_runs = 0;
    a->is_soon = a->has_told_soon = false;
  }
  if (!a->causes && !a->is_open) /* it ended before it was told */
    a->seen = 0;
}

void alarm_note(struct alarm_state *a, const struct alarm_policy *p,
                const struct alarm_sample *s) {
  a->is_empty = s->is_seen && !s->has_members;
  alarm_note_kills(a, s);
  if (p->causes[ALARM_OOM_KILL] == CHOICE_NO)
    a->kill = (struct alarm_kill){.is_new = false};
  for (enum alarm_cause i = 0; i < ALARM_CAUSES; i++)
    note_cause(a, i, judge(a, p, s, i), s->time_ns);
  if (a->causes && !a->seen)
    a->since_ns = s->time_ns;
  a->seen |= a->causes;
  forget_what_is_over(a);
  note_stories(a, s->time_ns);
  a->due = find_due(a, s->time_ns);
  a->is_over = a->is_open && !a->causes;
}

enum severity alarm_severity(const struct alarm_state *a) {
  if (a->due & (BIT(OOM_KILL) | BIT(ENDED)) ||
      (a->due & BIT(GROWTH) && a->is_soon))
    return SEVERITY_FAILURE;
  if (a->due)
    return SEVERITY_WARNING;
  return a->is_over ? SEVERITY_OKAY : SEVERITY_NONE;
}

void alarm_told(struct alarm_state *a, uint64_t now_ns) {
  if (a->is_over)
    a->seen = 0;
  a->is_open = !a->is_over;
  a->told |= a->due;
  a->has_told_soon |= a->due & BIT(GROWTH) && a->is_soon;
  if (a->due & BIT(OOM_KILL)) {
    a->kill.told_ns = now_ns;
    a->kill.is_new = false;
    a->kill.has_said_end = a->is_empty;
  }
  a->told_last = a->due;
  a->due = 0;
  a->is_over = false;
}

void alarm_tell_again(struct alarm_state *a) {
  a->told &= ~a->told_last;
  if (a->told_last & BIT(GROWTH))
    a->has_told_soon = false;
  if (a->told_last & BIT(OOM_KILL))
    a->kill = (struct alarm_kill){.is_new = true,
                                  .first_ns = a->kill.last_ns,
                                  .last_ns = a->kill.last_ns,
                                  .intervals = a->kill.intervals};
}

enum alarm_cause alarm_worst(const struct alarm_state *a) {
  unsigned causes = a->due ? a->due : a->seen;
  enum alarm_cause worst = 0;

  assert(causes);
  while (!(causes >> worst & 1))
    worst++;
  return worst;
}
