#include "report/alarm.h"

#include <assert.h>
#include <math.h>

#include "base/duration.h"

#define KILLS_TOLD_AGAIN_NS (300 * NS_PER_S)
/* The end of a process is seen up to some intervals after its kill. */
#define END_AFTER_KILL_NS (60 * NS_PER_S)
#define LIMIT_HYSTERESIS 2
#define SOON_PARTS 12

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
  if (!s->is_fixed || !s->is_seen)
    return UNSURE;
  a->had_members |= s->has_members;
  return a->had_members && !s->has_members ? ON : OFF;
}

static enum verdict judge_limit(const struct alarm_state *a,
                                const struct alarm_policy *p,
                                const struct alarm_sample *s) {
  bool is_on = a->causes & BIT(CGROUP_LIMIT);
  double least = (double)p->limit_percent - (is_on ? LIMIT_HYSTERESIS : 0);

  if (isnan(s->used_percent))
    return s->has_members ? UNSURE : OFF;
  return s->used_percent >= least ? ON : OFF;
}

static enum verdict judge_growth(struct alarm_state *a,
                                 const struct alarm_policy *p,
                                 const struct alarm_sample *s) {
  double within = (double)p->full_within_ns / (double)NS_PER_S;

  if (!s->has_members)
    return OFF;
  if (isnan(s->growth) || (s->growth > 0 && isnan(s->seconds_until_full)))
    return UNSURE;
  if (s->growth <= 0)
    return OFF;
  a->is_soon |= s->seconds_until_full < within / SOON_PARTS;
  return s->seconds_until_full < within ? ON : OFF;
}

static enum verdict judge_unknown(struct alarm_state *a,
                                  const struct alarm_sample *s) {
  a->was_known |= s->is_known && s->has_members;
  if (!s->has_members && s->is_seen)
    return OFF;
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
                       enum verdict verdict) {
  unsigned bit = 1U << cause;
  bool is_on = a->causes & bit;

  if (verdict == UNSURE)
    return;
  if ((verdict == ON) == is_on) {
    a->runs[cause] = 0;
    return;
  }
  if (++a->runs[cause] < runs_needed[cause][is_on])
    return;
  a->runs[cause] = 0;
  a->causes ^= bit;
}

static enum severity severity_of(const struct alarm_state *a) {
  if (a->causes & (BIT(OOM_KILL) | BIT(ENDED)) ||
      (a->causes & BIT(GROWTH) && a->is_soon))
    return SEVERITY_FAILURE;
  return a->causes ? SEVERITY_WARNING : SEVERITY_NONE;
}

/* Causes that are on and need not be told. */
static unsigned belong_to_story(const struct alarm_state *a, uint64_t now_ns) {
  bool was_killed =
      a->kill_told_ns && now_ns - a->kill_told_ns < END_AFTER_KILL_NS;

  return (a->told & FILLING ? FILLING : 0) | (was_killed ? BIT(ENDED) : 0);
}

enum severity alarm_note(struct alarm_state *a, const struct alarm_policy *p,
                         const struct alarm_sample *s) {
  enum severity severity;

  for (enum alarm_cause i = 0; i < ALARM_CAUSES; i++)
    note_cause(a, i, judge(a, p, s, i));
  if (!(a->causes & BIT(GROWTH)) && a->runs[ALARM_GROWTH] == 0)
    a->is_soon = false;
  if (a->causes && !a->seen)
    a->since_ns = s->time_ns;
  a->seen |= a->causes;
  a->told &= a->causes;
  a->told |= a->causes & belong_to_story(a, s->time_ns);
  a->has_new_kill |= s->new_kills > 0 && a->causes & BIT(OOM_KILL);
  severity = severity_of(a);
  if (!severity) {
    if (!a->severity) /* it ended before it was told */
      a->seen = 0;
    return a->severity ? SEVERITY_OKAY : SEVERITY_NONE;
  }
  if (severity > a->severity || a->causes & ~a->told ||
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
  if (a->causes & BIT(OOM_KILL) && (a->has_new_kill || !a->kill_told_ns))
    a->kill_told_ns = time_ns;
  a->has_new_kill = false;
}

enum alarm_cause alarm_worst(const struct alarm_state *a) {
  unsigned causes = a->causes ? a->causes : a->seen;
  enum alarm_cause worst = 0;

  assert(causes);
  while (!(causes >> worst & 1))
    worst++;
  return worst;
}
