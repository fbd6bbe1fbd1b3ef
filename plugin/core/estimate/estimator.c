/* SPDX-License-Identifier: MIT */
#include "estimate/estimator.h"

#include <assert.h>
#include <math.h>

#include "base/ablate.h"
#include "base/arith.h"
#include "base/duration.h"

/* A few pages teach little; a reading that shows LEARN_WELL_BYTES weighs as
 * much as all that was learnt before. */
#define LEARN_LEAST_BYTES (UINT64_C(64) << 10)
#define LEARN_WELL_BYTES 3145728.0
#define COW_BREAKS_LEAST 0.01
/* Standard deviations: one of 100 samples is farther off. */
#define SURELY 2.6
/* The weight of one first reading. */
#define NEWBORN_RATE 0.25
#define NEWBORN_LEAST_BYTES 16384
#define NEWBORN_BREAKS_LEAST 0.05
/* statm of a small process is not as far off as that of the large one on which
 * it was learnt, which has had more pages to lose count of. */
#define IMPRECISE_PART 4

/* No longer than this is memory in swap unknown. */
#define SWAP_ASKED_NS (60 * NS_PER_S)

void estimator_forget(struct track *t) {
  t->baseline.at_ns = 0;
  t->derived_bytes = 0;
  t->origin = ORIGIN_READING;
  t->is_sampled = false;
}

/* --- what is worth asking for --- */

/* A minute of its baseline's age, or more, has ended. */
static bool is_minute_over(const struct cycle *cycle, const struct track *t) {
  uint64_t at_ns = t->baseline.at_ns;
  uint64_t before_ns = cycle->before_ns > at_ns ? cycle->before_ns : at_ns;

  return (cycle->now_ns - at_ns) / SWAP_ASKED_NS !=
         (before_ns - at_ns) / SWAP_ASKED_NS;
}

/* Memory goes to swap where resident memory goes, and comes back from there. A
 * process that had none and has not shrunk is taken to have none, since status
 * costs as much as statm again; but others can have taken the place of what
 * went, so that it is asked once a minute. */
bool estimator_wants_swap(const struct cycle *cycle, const struct track *t,
                          const struct observation *o) {
  if (!track_has_baseline(t))
    return false;
  return t->baseline.rollup.bytes[ROLLUP_SWAP] > 0 || t->now.vm_swap_kb > 0 ||
         (cycle->is_swap_used &&
          (o->resident_pages < t->baseline.at.resident_pages ||
           (RULE(swap_each_minute) && is_minute_over(cycle, t))));
}

/* --- observing --- */

/*
 * Memory shared by copy on write that was broken out of it: faults that brought
 * no memory, as many of them as readings have shown.
 */
static uint64_t broken_bytes(const struct cycle *cycle, const struct track *t) {
  /* Half of the kernel's counter, which goes round after 16 TiB of them. */
  int32_t faults = (int32_t)(t->now.minor_faults - t->baseline.at.minor_faults);
  const struct change *c = &t->change;
  int64_t without = faults * (int64_t)cycle->page_size -
                    (c->anon > 0 ? c->anon : 0) -
                    (c->shared > 0 ? c->shared : 0);

  if (!RULE(copies))
    return 0;
  return amount_from((double)without * t->breaks);
}

/* A page that one of n breaks out or unmaps costs the others what it paid for
 * it: a part of n - 1 of its own part of n. */
static void tell_relatives(struct track *t, uint64_t left) {
  double n = (double)fork_family_size(t);
  double more = (double)left - (double)t->told_bytes;

  if (n > 1 && RULE(told_copies)) {
    uint64_t share =
        (uint64_t)amount_change_from(more * COW_BROKEN_UNITS / (n * (n - 1)));

    assert(t->family); /* of n */
    t->family->told.cow_broken += share;
    t->told.cow_broken += share; /* which it does not pay itself */
  }
  t->told_bytes = left;
}

/* Adds what is new of such bytes to a counter of the family; not to what it
 * counts for the process itself. */
static void tell(uint64_t bytes, uint64_t *told, uint64_t *family,
                 uint64_t *own) {
  uint64_t more = minus(bytes, *told);

  *told += more;
  *family += more;
  *own += more;
}

/* Relatives may share what it got back from swap since its baseline, and may
 * have shared what it freed. */
static void follow_cow(const struct cycle *cycle, struct track *t) {
  uint64_t most = baseline_cow_shared(&t->baseline);
  const struct change *c = &t->change;
  struct fork_family *f = t->family;

  if (f && RULE(told_returned))
    tell(c->returned, &t->told_returned, &f->told.got_back, &t->told.got_back);
  if (most == 0)
    return;
  if (f)
    tell(c->freed, &t->told_freed, &f->told.freed, &t->told.freed);
  t->breaks = f ? f->cow_breaks : 1;
  t->broken_bytes = min(broken_bytes(cycle, t), most);
  tell_relatives(t, min(t->broken_bytes + c->unmapped, most));
}

static void take(struct track *t, const struct observation *o) {
  uint32_t faults = o->has_faults ? o->minor_faults : t->now.minor_faults;

  t->now = *o;
  t->now.minor_faults = faults;
  if (track_has_baseline(t) && o->has_faults && !t->baseline.at.has_faults) {
    t->baseline.at.minor_faults = faults; /* those before are unknown */
    t->baseline.at.has_faults = true;
  }
}

void estimator_observe(const struct cycle *cycle, struct track *t,
                       struct sharing *set, const struct observation *o) {
  if (t->group_set != set) {
    if (track_set(t) == t->group_set)
      estimator_forget(t);
    t->group_pages = 0;
  }
  t->group_set = set;
  if (o)
    take(t, o);
  track_count(cycle, t);
  if (!o || !track_has_baseline(t))
    return;
  track_find_change(cycle, t);
  follow_cow(cycle, t);
}

/* --- advancing --- */

void estimator_advance(struct track *t) {
  if (!track_has_baseline(t))
    return;
  sharing_advance(track_set(t), &t->since);
  t->relatives_moved = track_relatives_moved(t);
}

/* --- the error to be expected --- */

/* Faults since the reading that cannot be asked for may have copied all that is
 * shared. */
static struct bounds bounds_now(const struct cycle *cycle,
                                const struct track *t) {
  struct bounds x;

  bounds_of(cycle, t, &x);
  x.bytes[t->origin == ORIGIN_INHERITED ? CAUSE_FORK : CAUSE_LENT] =
      t->derived_bytes;
  x.bytes[CAUSE_READING] = t->unsure_bytes;
  if (track_wants_faults(t) && !t->now.has_faults &&
      t->baseline.at_ns < cycle->now_ns)
    x.bytes[CAUSE_COPIES] += (double)rollup_cow_bytes(&t->baseline.rollup);
  return x;
}

static void add_sample(struct audit_errors *to, const struct sampled_error *s) {
  double error = sampled_pss_error(s), common = sampled_pss_common(s);
  double uss_common = sampled_uss_common(s);

  to->pss.common += common;
  to->pss.independent += error - common;
  to->pss_parts[CAUSE_SAMPLE] = error;
  to->uss.common += uss_common;
  to->uss.independent += sampled_uss_error(s) - uss_common;
}

struct error estimator_expect(const struct cycle *cycle,
                              const struct track *t) {
  uint64_t most = track_resident_bytes(cycle, t);
  struct audit_errors errors;
  struct bounds x;

  if (!track_has_baseline(t))
    return (struct error){.common = (double)most};
  x = bounds_now(cycle, t);
  audit_errors(track_audit(t), &x, AUDIT_CHOSEN, &errors);
  if (t->is_sampled)
    add_sample(&errors, t->sample_error);
  return error_limit(errors.pss, 0, most);
}

uint64_t estimator_statm_bound(const struct cycle *cycle,
                               const struct track *t) {
  uint64_t twice = 2 * (uint64_t)t->baseline.off_pages;
  uint64_t part = t->now.resident_pages / IMPRECISE_PART;
  uint64_t pages =
      precision_pages(&cycle->precision, t->now.threads, track_has_baseline(t),
                      t->baseline.off_pages);

  return min(pages, max(part, twice)) * cycle->page_size;
}

/* --- learning --- */

/* How many of the faults since the baseline broke copy on write. The lesson
 * weighs by all of them: few that did can turn out to be many. */
static void learn_faults(const struct track *t, double uss_off) {
  double *breaks = t->family ? &t->family->cow_breaks : NULL, broken, faulted;

  if (!RULE(learnt_breaks) || !breaks || t->derived_bytes > 0)
    return;
  broken = (double)t->broken_bytes;
  faulted = broken > 0 ? broken / t->breaks : 0;
  if (faulted < (double)LEARN_LEAST_BYTES)
    return;
  *breaks +=
      (clamp((broken + uss_off) / faulted, COW_BREAKS_LEAST, 1) - *breaks) *
      faulted / (faulted + LEARN_WELL_BYTES);
}

static double off_by(uint64_t found, uint64_t expected) {
  return (double)found - (double)expected;
}

/* Learns from a reading beside the estimate that was expected in its place.
 * sample: its error, or NULL for a rollup. */
static void learn(const struct cycle *cycle, const struct track *t,
                  const struct rollup *expected, const struct rollup *found,
                  const struct sampled_error *sample) {
  struct bounds x = bounds_now(cycle, t);
  struct audit_lesson l = {
      .pss_off = off_by(found->bytes[ROLLUP_PSS], expected->bytes[ROLLUP_PSS]),
      .uss_off = off_by(rollup_uss(found), rollup_uss(expected))};

  if (sample) {
    l.pss_noise =
        hypot(sample->pss[PAGE_ANON].noise, sample->pss[PAGE_FILE].noise);
    l.uss_noise = sample->uss.noise;
    x.bytes[CAUSE_READING] += sample->pss_bound;
  }
  learn_faults(t, excess(l.uss_off, SURELY * l.uss_noise));
  x.bytes[CAUSE_STATM] = (double)estimator_statm_bound(cycle, t);
  audit_learn(track_audit(t), cycle->now_ns, &x, &l);
}

/* The first lesson counts whole: nothing is known before it. */
static void follow(double *known, double seen, double rate) {
  *known = *known < 0 ? seen : *known + (seen - *known) * rate;
}

/* The first reading of a process that was estimated as a newborn. */
static void learn_newborn(const struct cycle *cycle, const struct track *t) {
  struct newborn_lessons *lessons = &t->family->newborns;
  double faulted = (double)track_faulted_bytes(cycle, &t->baseline.at);
  double own = (double)baseline_private(&t->baseline).anon;

  if (RULE(newborn_breaks) && t->baseline.at.has_faults &&
      faulted >= NEWBORN_LEAST_BYTES)
    follow(&lessons->breaks, clamp(own / faulted, NEWBORN_BREAKS_LEAST, 1),
           faulted / (faulted + LEARN_WELL_BYTES));
  if (RULE(newborn_files) && t->baseline.at.shared_pages > 0)
    follow(&lessons->file_share,
           baseline_file_share(&t->baseline, cycle->page_size), NEWBORN_RATE);
}

/* --- correcting --- */

static uint32_t family_changes(const struct track *t) {
  return t->family ? t->family->changes : 0;
}

static void restart(const struct cycle *cycle, struct track *t,
                    const struct rollup *rollup, const struct observation *at,
                    uint64_t at_ns) {
  baseline_take(&t->baseline, rollup, at, cycle->page_size);
  t->baseline.at_ns = at_ns;
  t->baseline.relatives = fork_family_size(t);
  if (t->family)
    t->told = t->family->told;
  t->broken_bytes = t->told_bytes = t->told_returned = t->told_freed = 0;
  t->family_changes = family_changes(t);
  t->relatives_moved = 0;
  t->strangers = STRANGERS_NONE;
  t->since = SHARING_JUST_READ;
  track_find_change(cycle, t);
}

static int64_t between(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

/* Pages that came behind the kernel's walk are in statm after it and not in the
 * rollup: they came since the baseline. They are no more than resident memory
 * has moved since it was observed; a further difference has another cause. */
static uint32_t missed_pages(const struct cycle *cycle, const struct track *t,
                             const struct rollup *rollup,
                             const struct observation *after) {
  int64_t moved = (int64_t)after->resident_pages - t->now.resident_pages;
  int64_t missed = (int64_t)after->resident_pages -
                   (int64_t)(rollup->bytes[ROLLUP_RSS] / cycle->page_size);

  return (uint32_t)(moved < 0 ? between(missed, moved, 0)
                              : between(missed, 0, moved));
}

/*
 * What a reading that shows `seen` strangers makes of those of the last one:
 * they are taken to stay once two readings in a row show them, and the family
 * has not changed in between. Where children come and go, others do so unseen.
 */
static enum strangers strangers_after(const struct cycle *cycle,
                                      const struct track *t,
                                      const struct rollup *found,
                                      uint32_t seen) {
  bool is_in_doubt =
      t->strangers == STRANGERS_NONE || t->family_changes != family_changes(t);

  assert(t->strangers == STRANGERS_NONE || t->origin == ORIGIN_READING);
  if (seen == 0)
    return STRANGERS_NONE;
  /* Before 6.7 the kernel does not say what KSM has merged. */
  if (!rollup_has(found, ROLLUP_KSM) &&
      t->baseline.at_ns < cycle->ksm_merged_ns)
    return STRANGERS_CONFIRMED;
  return !track_has_baseline(t) || is_in_doubt ? STRANGERS_NEW
                                               : STRANGERS_CONFIRMED;
}

/* New strangers are counted as children that came after the processes were
 * listed and have ended: nobody else pays their part. At a first reading they
 * may stay. unsure_bytes is the error if that is wrong. */
static void take_strangers(struct track *t, const struct rollup *found,
                           uint32_t seen, enum strangers strangers,
                           bool is_first) {
  uint32_t known = fork_family_size(t);

  t->strangers = strangers;
  t->unsure_bytes = 0;
  if (strangers != STRANGERS_NEW)
    return;
  kinship_apply(t, KINSHIP_DOUBTED, NULL);
  t->unsure_bytes = strangers_part(found, known, seen);
  t->baseline.relatives =
      is_first ? 0 : (uint16_t)min(known + seen, UINT16_MAX);
}

/* Starts a new baseline with a reading. First its strangers are compared with
 * those of the last baseline; only then is that replaced. The origin is kept
 * until newborns have learnt from it. */
static void begin_anew(const struct cycle *cycle, struct track *t,
                       const struct rollup *rollup,
                       const struct observation *at, uint32_t shared_pages) {
  bool is_first = !track_has_baseline(t);
  uint32_t seen =
      RULE(strangers) ? strangers_seen(rollup, fork_family_size(t)) : 0;
  enum strangers strangers = strangers_after(cycle, t, rollup, seen);

  restart(cycle, t, rollup, at, cycle->now_ns);
  take_strangers(t, rollup, seen, strangers, is_first);
  if (t->origin == ORIGIN_INHERITED && t->family)
    learn_newborn(cycle, t);
  t->origin = ORIGIN_READING;
  t->derived_bytes = 0;
  track_correct_count(cycle, t, shared_pages);
}

void estimator_correct(const struct cycle *cycle, struct track *t,
                       const struct rollup *rollup,
                       const struct observation *after) {
  struct observation at = *after;
  struct rollup expected;

  if (track_has_baseline(t)) {
    estimate_rollup(cycle, t, &expected);
    learn(cycle, t, &expected, rollup, t->is_sampled ? t->sample_error : NULL);
  }
  at.resident_pages -= missed_pages(cycle, t, rollup, after);
  t->now.minor_faults = after->minor_faults;
  t->now.vm_swap_kb = after->vm_swap_kb;
  t->is_sampled = false;
  begin_anew(cycle, t, rollup, &at, t->now.shared_pages);
}

static void add_noise(struct sampled_deviation *to, double noise) {
  to->noise = hypot(to->noise, noise);
}

/* The error of the estimate that a sample is compared with: that of the sample
 * which it stands on, and what has come since. */
static struct sampled_error error_of_estimate(const struct cycle *cycle,
                                              const struct track *t) {
  struct bounds x = bounds_now(cycle, t);
  struct sampled_error e = {.pss_bound = 0};
  struct audit_errors since;

  if (t->is_sampled)
    e = *t->sample_error;
  audit_errors(track_audit(t), &x, AUDIT_EXPECTED, &since);
  add_noise(&e.pss[PAGE_ANON], error_bytes(since.pss));
  add_noise(&e.pss[PAGE_FILE], error_bytes(since.pss));
  add_noise(&e.uss, error_bytes(since.uss));
  return e;
}

/* The track as it would be if the process had been observed at the time of the
 * sample. */
static struct track track_at(const struct cycle *cycle, const struct track *t,
                             const struct observation *o) {
  struct track then = *t;

  then.now = *o;
  track_find_change(cycle, &then);
  return then;
}

/* Learns from the sample, and takes the mean of it and of the estimate. */
static void meet(const struct cycle *cycle, const struct track *then,
                 struct sampled *s) {
  struct sampled_error its = error_of_estimate(cycle, then);
  struct rollup expected, found;

  sampled_rollup(s, &found);
  estimate_rollup(cycle, then, &expected);
  learn(cycle, then, &expected, &found, &s->error);
  sampled_fuse(s, &expected, &its);
}

void estimator_sample(const struct cycle *cycle, struct track *t,
                      struct sampled *s, uint32_t resident_pages,
                      uint32_t shared_pages) {
  struct observation after = t->now;
  struct rollup rollup;

  assert(t->sample_error);
  after.resident_pages = resident_pages;
  after.shared_pages = shared_pages;
  after.vm_swap_kb = amount_narrow(amount_from(s->swap) / 1024);
  if (track_has_baseline(t)) {
    struct track then = track_at(cycle, t, &after);

    meet(cycle, &then, s);
  }
  sampled_rollup(s, &rollup);
  t->now.vm_swap_kb = after.vm_swap_kb;
  t->is_sampled = true;
  *t->sample_error = s->error;
  begin_anew(cycle, t, &rollup, &after, after.shared_pages);
}

/* The bounds that stay when the baseline is derived anew. CAUSE_TIME goes by
 * at_ns, and starts again by itself. */
static double bounds_before(const struct cycle *cycle, const struct track *t) {
  struct bounds x = bounds_now(cycle, t);

  if (!RULE(bounds_before))
    return 0;

  return x.bytes[CAUSE_FILES] + x.bytes[CAUSE_RELATIVES] +
         x.bytes[CAUSE_COPIES] + x.bytes[CAUSE_FORK] + x.bytes[CAUSE_LENT] +
         x.bytes[CAUSE_SWAP] + x.bytes[CAUSE_FREED];
}

void estimator_derive(const struct cycle *cycle, struct track *t,
                      const struct rollup *rollup, uint64_t at_ns,
                      enum origin origin, double off_bytes) {
  uint32_t off_pages = t->baseline.off_pages;
  double before = 0;

  assert(origin != ORIGIN_READING);
  if (track_has_baseline(t)) {
    track_find_change(cycle, t); /* with the swap of its parent */
    before = bounds_before(cycle, t);
  }
  restart(cycle, t, rollup, &t->now, at_ns);
  t->baseline.off_pages = off_pages;
  t->origin = origin;
  t->derived_bytes = off_bytes + before;
  track_correct_count(cycle, t, t->now.shared_pages);
  /* What estimator_advance() adds is in the share of its files already. */
  if (origin == ORIGIN_INHERITED)
    t->since.share = 1 / sharing_change(track_set(t));
}

/* --- predicting --- */

void estimator_predict(const struct cycle *cycle, const struct track *t,
                       struct prediction *ret) {
  struct bounds x = bounds_now(cycle, t);
  struct audit_errors *error = &ret->error;
  uint64_t off = estimator_statm_bound(cycle, t);
  uint64_t most = track_resident_bytes(cycle, t) + off;

  assert(track_has_baseline(t));
  estimate_rollup(cycle, t, &ret->rollup);
  ret->age_ns = cycle->now_ns - t->baseline.at_ns;
  x.bytes[CAUSE_STATM] = (double)off;
  audit_errors(track_audit(t), &x, AUDIT_PUBLISHED, error);
  if (t->is_sampled)
    add_sample(error, t->sample_error);
  error->pss = error_limit(error->pss, ret->rollup.bytes[ROLLUP_PSS], most);
  error->uss = error_limit(error->uss, rollup_uss(&ret->rollup), most);
}
