/* SPDX-License-Identifier: MIT */
#include "report/alarm.h"

#include <assert.h>
#include <math.h>

#include "base/duration.h"

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
    return s->kills > 0 ? ON : OFF;
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
  if (s->new_kills > 0) {
    a->kill_ns = s->time_ns;
    a->since_kill = 0;
  } else if (a->since_kill < UINT8_MAX) {
    a->since_kill++;
  }
  a->has_new_kill |= s->new_kills > 0 && a->causes & BIT(OOM_KILL);
}

unsigned alarm_confirmed(const struct alarm_state *a) {
  unsigned causes = a->causes;

  for (int i = 0; i < ALARM_CAUSES; i++)
    if (a->runs[i] > 0)
      causes &= ~(1U << i);
  return causes;
}

static enum severity severity_of(unsigned causes, bool is_soon) {
  if (causes & (BIT(OOM_KILL) | BIT(ENDED)) ||
      (causes & BIT(GROWTH) && is_soon))
    return SEVERITY_FAILURE;
  return causes ? SEVERITY_WARNING : SEVERITY_NONE;
}

/* Causes that need not be told if they are on. */
static unsigned belong_to_story(const struct alarm_state *a, uint64_t now_ns) {
  bool was_killed = a->has_said_end && a->kill_ns &&
                    (now_ns - a->kill_ns < END_AFTER_KILL_NS ||
                     a->since_kill <= END_AFTER_KILL_INTERVALS);

  return (a->told & FILLING ? FILLING : 0) | (was_killed ? BIT(ENDED) : 0);
}

static void note_story(struct alarm_state *a, uint64_t now_ns) {
  unsigned silent;

  a->told &= a->causes;
  silent = a->causes & ~a->told & belong_to_story(a, now_ns);
  a->wants_evidence |= silent & BIT(CGROUP_LIMIT);
  a->told |= silent;
}

enum severity alarm_note(struct alarm_state *a, const struct alarm_policy *p,
                         const struct alarm_sample *s) {
  enum severity severity;

  a->is_empty = s->is_seen && !s->has_members;
  for (enum alarm_cause i = 0; i < ALARM_CAUSES; i++)
    note_cause(a, i, judge(a, p, s, i), s->time_ns);
  if (!(a->causes & BIT(GROWTH)) && a->runs[ALARM_GROWTH] == 0)
    a->is_soon = false;
  if (a->causes && !a->seen)
    a->since_ns = s->time_ns;
  a->seen |= a->causes;
  alarm_note_kills(a, s);
  note_story(a, s->time_ns);
  if (!a->causes) {
    if (!a->severity) /* it ended before it was told */
      a->seen = 0;
    return a->severity ? SEVERITY_OKAY : SEVERITY_NONE;
  }
  severity = severity_of(alarm_confirmed(a), a->is_soon);
  if (severity > a->severity || alarm_confirmed(a) & ~a->told ||
      (a->has_new_kill && s->time_ns - a->kill_told_ns >= KILLS_TOLD_AGAIN_NS))
    return severity;
  return SEVERITY_NONE;
}

void alarm_told(struct alarm_state *a, enum severity severity,
                uint64_t time_ns) {
  if (severity == SEVERITY_OKAY) {
    a->severity = SEVERITY_NONE;
    a->seen = 0;
    return;
  }
  if (severity > a->severity)
    a->severity = severity;
  a->told = a->causes;
  if (a->causes & BIT(OOM_KILL) && (a->has_new_kill || !a->kill_told_ns)) {
    a->kill_told_ns = time_ns;
    a->has_said_end = a->is_empty;
  }
  a->has_new_kill = false;
}

enum alarm_cause alarm_worst(const struct alarm_state *a) {
  unsigned fresh = alarm_confirmed(a) & ~a->told;
  unsigned causes = fresh ? fresh : a->causes ? a->causes : a->seen;
  enum alarm_cause worst = 0;

  assert(causes);
  while (!(causes >> worst & 1))
    worst++;
  return worst;
}
