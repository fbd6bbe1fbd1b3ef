/* SPDX-License-Identifier: MIT */
#include "snapshot/alarms.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arith.h"
#include <smaps/format.h>

/* --- what is noted --- */

/* By the kernel and, if Report asks for it, by systemd-oomd. NULL: none. */
static uint64_t kills_of(const struct cgroup_memory *m) {
  return m ? m->kills + m->oomd_kills : 0;
}

static struct alarm_sample sample_of(const struct group *g,
                                     const struct scene *s) {
  const struct cgroup_memory *m = g->cgroup;
  bool has_growth = g->growth && g->usage.processes > 0;

  return (struct alarm_sample){
      .time_ns = s->cycle->now_ns,
      .is_fixed = g->is_fixed && !g->policy->comes_last,
      .is_seen = !g->usage.is_unseen,
      .has_members = g->usage.processes > 0,
      .is_known = last_known_sum_up(g, s).has_pss,
      .new_kills = m ? m->new_kills : 0,
      .used_percent =
          m ? cgroup_memory_used_percent(m, s->meminfo.mem_total_bytes)
            : (double)NAN,
      .growth = has_growth ? g->growth->bytes_per_second : (double)NAN,
      .seconds_until_full =
          has_growth ? growth_seconds_until(g->growth) : (double)NAN};
}

/* The log says what is refused, from the start on. */
static struct alarm_sample sample_of_host(const struct collector_counts *c,
                                          const struct scene *s) {
  return (struct alarm_sample){.time_ns = s->cycle->now_ns,
                               .is_seen = true,
                               .has_members = true,
                               .is_known = c->hung + c->unidentified == 0,
                               .used_percent = (double)NAN,
                               .growth = (double)NAN,
                               .seconds_until_full = (double)NAN};
}

/* --- sentences --- */

/* NULL: the host. */
struct subject {
  const struct group *group;
  const struct alarm_state *state;
  unsigned causes; /* that the sentence is about */
  const struct scene *scene;
  const struct collector_counts *counts;
};

struct sentence {
  char *text;
  size_t size;
  const char *separator;
};

/* A part that does not fit is left out. */
__attribute__((format(printf, 2, 3))) static void add(struct sentence *t,
                                                      const char *format, ...) {
  size_t len = strlen(t->text);
  char part[256];
  va_list args;

  va_start(args, format);
  vsnprintf(part, sizeof(part), format, args);
  va_end(args);
  if (len + strlen(t->separator) + strlen(part) < t->size)
    sprintf(t->text + len, "%s%s", t->separator, part);
  t->separator = ", ";
}

/* The time of day of a time of the cycle's clock. */
static uint64_t time_of_day(const struct scene *s, uint64_t ns) {
  return minus(s->time_ns, s->cycle->now_ns - ns);
}

static void add_number(struct sentence *t, const struct group *g) {
  uint64_t n = max(kills_of(g->cgroup), 1);

  add(t, "%" PRIu64 " process%s killed for memory in the last hour", n,
      n == 1 ? "" : "es");
}

static bool is_about(const struct subject *s, enum alarm_cause cause) {
  return s->causes >> cause & 1;
}

static void add_kills(struct sentence *t, const struct subject *s) {
  const struct last_known *last = s->group->last;
  char amount[FORMAT_SIZE];

  add_number(t, s->group);
  if (last && last->gone.pid)
    add(t, "largest gone: %" PRIu32 " %s, last seen with %s", last->gone.pid,
        last->gone.comm, format_amount(last->gone.bytes, amount));
  if (s->state->is_empty && !is_about(s, ALARM_ENDED))
    add(t, "no process is left");
}

static void add_end(struct sentence *t, const struct subject *s) {
  add(t, "no process is left");
  if (!is_about(s, ALARM_OOM_KILL) &&
      alarm_is_after_kill(s->state, s->scene->cycle->now_ns))
    add_number(t, s->group);
}

static void add_growth(struct sentence *t, const struct subject *s) {
  const struct growth *g = s->group->growth;
  double until = g ? growth_seconds_until(g) : (double)NAN;
  uint64_t now_ns = s->scene->time_ns;
  char rate[FORMAT_SIZE], since[FORMAT_SIZE], full[FORMAT_SIZE],
      in[FORMAT_SIZE];

  if (!g || isnan(until))
    return;
  add(t, "growing by %s a minute since %s, full at %s (in %s)",
      format_amount((uint64_t)(60 * g->bytes_per_second), rate),
      format_clock(time_of_day(s->scene, growth_since_ns(g)), now_ns, since),
      format_clock(now_ns + (uint64_t)(until * 1e9), now_ns, full),
      format_duration((uint64_t)(until * 1e9), in));
}

static void add_limit(struct sentence *t, const struct subject *s) {
  const struct cgroup_memory *m = s->group->cgroup;
  char limit[FORMAT_SIZE];
  uint64_t bytes;

  if (m && cgroup_memory_limit(m, s->scene->meminfo.mem_total_bytes, &bytes))
    add(t, "%.0f %% of %s in use", cgroup_memory_used_percent(m, bytes),
        format_amount(bytes, limit));
}

/* The host has no other cause. */
static void add_unknown_of_host(struct sentence *t,
                                const struct collector_counts *c) {
  add(t, "processes that hang: %" PRIu64 ", unidentified: %" PRIu64, c->hung,
      c->unidentified);
}

static void add_unknown(struct sentence *t, const struct subject *s) {
  if (s->group->usage.is_unseen)
    add(t,
        "its memory is unknown: a process that is hidden or unidentified may "
        "be its last");
  else
    add(t,
        "its memory is unknown: %" PRIu64 " of %" PRIu64
        " processes cannot be read",
        s->group->usage.unreadable, s->group->usage.processes);
}

static void (*const clauses[ALARM_CAUSES])(struct sentence *,
                                           const struct subject *) = {
    [ALARM_OOM_KILL] = add_kills,  [ALARM_ENDED] = add_end,
    [ALARM_GROWTH] = add_growth,   [ALARM_CGROUP_LIMIT] = add_limit,
    [ALARM_UNKNOWN] = add_unknown,
};

/* Why it is over. */
static void add_past(struct sentence *t, const struct subject *s) {
#define WORDS(name, key, words) words,
  static const char *const words[] = {ALARM_TABLE(WORDS)};
#undef WORDS
  char age[FORMAT_SIZE];

  add(t, "over after %s",
      format_duration(s->scene->cycle->now_ns - s->state->since_ns, age));
  t->separator = ": ";
  for (int i = 0; i < ALARM_CAUSES; i++)
    if (s->state->seen >> i & 1)
      add(t, "%s", words[i]);
}

static void describe(const struct subject *s, enum severity severity, char *ret,
                     size_t size) {
  struct sentence t = {.text = ret, .size = size, .separator = ""};

  *ret = '\0';
  add(&t, "%s", s->group ? s->group->name : "host");
  t.separator = ": ";
  if (severity == SEVERITY_OKAY) {
    add_past(&t, s);
    return;
  }
  if (!s->group) {
    add_unknown_of_host(&t, s->counts);
    return;
  }
  for (enum alarm_cause i = 0; i < ALARM_CAUSES; i++)
    if (is_about(s, i))
      clauses[i](&t, s);
}

/* --- telling --- */

#define KEY(name, key, words) #key,
static const char *const keys[] = {ALARM_TABLE(KEY)};
#undef KEY

/* Without members, what it was; nothing if that was not noted. */
static struct summary summary_of(const struct group *g, const struct scene *s) {
  if (g->usage.processes > 0)
    return last_known_now(g, s);
  return g->last ? last_known_past(&g->last->state, s)
                 : (struct summary){.has_pss = false};
}

static void make(const struct subject *s, enum severity severity,
                 struct alarm *ret) {
  bool is_over = severity == SEVERITY_OKAY;

  *ret = (struct alarm){.severity = severity,
                        .time_ns = s->scene->time_ns,
                        .is_own = true,
                        .since_ns = time_of_day(s->scene, s->state->since_ns)};
  if (s->group) {
    memcpy(ret->group, s->group->name, sizeof(ret->group));
    if (!is_over)
      ret->summary = summary_of(s->group, s->scene);
  }
  snprintf(ret->type_instance, sizeof(ret->type_instance), "%s",
           keys[alarm_worst(s->state)]);
  describe(s, severity, ret->message, sizeof(ret->message));
}

/* Above those of severities, which are bits. */
#define RANKS (SEVERITY_FAILURE << 1)

static void raise(struct alarms *a, struct recorder *r, struct alarm *alarm) {
  alarm->id = ++a->last_id;
  if (*alarm->group)
    recorder_raise(r, alarm);
}

static void tell(struct alarms *a, struct subject s, struct alarm_state *state,
                 struct recorder *r) {
  struct alarm *next = &a->told[a->n++];
  uint64_t now_ns = s.scene->cycle->now_ns;

  s.causes = state->due;
  make(&s, alarm_severity(state), next);
  alarm_told(state, now_ns);
  if (s.group && s.group->last && !state->kill.is_new)
    s.group->last->gone.pid = 0;
  raise(a, r, next);
}

/* It shows what is in the group before anything is killed. */
static void capture_silently(struct alarms *a, struct subject s,
                             struct recorder *r) {
  struct alarm alarm;

  s.causes = 1U << ALARM_CGROUP_LIMIT;
  make(&s, SEVERITY_WARNING, &alarm);
  alarm.is_silent = true;
  strcpy(alarm.type_instance, keys[ALARM_CGROUP_LIMIT]);
  raise(a, r, &alarm);
}

/* The end of a killed process is seen up to so many intervals later. */
#define GONE_INTERVALS 3

/* Notes a group, or the host. */
static void note(struct alarms *a, const struct subject *s,
                 struct alarm_state *state, const struct alarm_policy *policy,
                 const struct alarm_sample *sample, struct recorder *r) {
  alarm_note(state, policy, sample);
  if (state->kill.is_new && state->kill.intervals <= GONE_INTERVALS)
    last_known_note_gone(s->group, s->scene);
  if (state->wants_evidence && s->group)
    capture_silently(a, *s, r);
  state->wants_evidence = false;
}

/* The worst first, and kills before what else is a failure. */
static unsigned rank_of(const struct alarm_state *a) {
  return a->due & 1U << ALARM_OOM_KILL ? RANKS : alarm_severity(a);
}

static void tell_all(struct alarms *a, const struct scene *s,
                     const struct collector_counts *counts,
                     struct recorder *r) {
  struct subject host = {.state = &a->host, .scene = s, .counts = counts};

  for (unsigned rank = RANKS; rank > 0; rank >>= 1) {
    if (rank_of(&a->host) == rank && a->n < ALARMS_TOLD_MOST)
      tell(a, host, &a->host, r);
    for (size_t i = 0; i < s->groups->n && a->n < ALARMS_TOLD_MOST; i++) {
      struct group *g = s->groups->groups[i];
      struct subject group = {
          .group = g, .state = &g->alarm, .scene = s, .counts = counts};

      if (rank_of(&g->alarm) == rank)
        tell(a, group, &g->alarm, r);
    }
  }
}

void alarms_note_capture(struct alarms *a, const struct recorder *r) {
  for (size_t i = 0; i < a->n; i++)
    a->told[i].has_capture = recorder_has_captured(r, a->told[i].id);
}

/* Kills since the end of an earlier run, whose alarm about kills goes on. */
static void note_kills_before(const struct scene *s) {
  for (size_t i = 0; i < s->groups->n; i++) {
    struct group *g = s->groups->groups[i];
    struct alarm_sample sample = sample_of(g, s);

    alarm_note_kills(&g->alarm, &sample);
  }
}

void alarms_run(struct alarms *a, const struct scene *s,
                const struct collector_counts *counts, struct recorder *r) {
  struct subject host = {.state = &a->host, .scene = s, .counts = counts};
  struct alarm_sample sample = sample_of_host(counts, s);

  a->n = 0;
  if (!a->has_begun) {
    a->has_begun = true;
    note_kills_before(s);
    return;
  }
  note(a, &host, &a->host, &s->settings->report.alarms, &sample, r);
  for (size_t i = 0; i < s->groups->n; i++) {
    struct group *g = s->groups->groups[i];
    struct subject group = {
        .group = g, .state = &g->alarm, .scene = s, .counts = counts};

    sample = sample_of(g, s);
    note(a, &group, &g->alarm, &g->report->alarms, &sample, r);
  }
  tell_all(a, s, counts, r);
}
