#include "estimate/estimator.h"

#include <assert.h>
#include <math.h>

#include "estimate/fork_family.h"
#include "estimate/track_change.h"
#include "estimate/track_error.h"
#include "estimate/track_lesson.h"
#include "proc/amount.h"
#include "proc/arith.h"
#include "proc/duration.h"

/* No longer than this is memory in swap unknown. */
#define SWAP_ASKED_NS (60 * NS_PER_S)
/* With one of four gone, a ninth less is shared. */
#define RELATIVES_FEW 4
#define MISSING_PART 16

void estimator_forget(struct track *t) {
  t->baseline.at_ns = 0;
  t->derived_anon = t->derived_files = 0;
  t->is_heir = t->is_sampled = false;
}

/* --- what is worth asking for --- */

/* A process that has just forked shares, whatever its last reading says. */
bool estimator_wants_faults_around(const struct track *t) {
  return track_wants_faults(t) || fork_family_size(t) > 1;
}

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
  return baseline_bytes(&t->baseline, ROLLUP_SWAP) > 0 ||
         t->now.vm_swap_kb > 0 ||
         (cycle->is_swap_used &&
          (o->resident_pages < t->baseline.resident_pages ||
           is_minute_over(cycle, t)));
}

/* --- observing --- */

/* Pages of files and shmem, but for those that no other process mapped at the
 * baseline. */
static uint64_t shared_pages(const struct cycle *cycle, const struct track *t) {
  uint64_t own =
      track_has_baseline(t)
          ? baseline_private_file_bytes(&t->baseline) / cycle->page_size
          : 0;

  return t->now.shared_pages > own ? t->now.shared_pages - own : 0;
}

static void count(const struct cycle *cycle, struct track *t) {
  uint64_t pages = shared_pages(cycle, t);

  sharing_count(track_set(t), cycle->now_ns, pages, t->counted_pages);
  t->counted_pages = (uint32_t)pages;
}

/*
 * Memory shared by copy on write that was broken out of it: faults that brought
 * no memory, as many of them as readings have shown.
 */
static uint64_t broken_bytes(const struct track *t, const struct change *c) {
  double breaks = t->family ? t->family->cow_breaks : 1;
  /* Half of the kernel's counter, which goes round after 16 TiB of them. */
  int32_t faults = (int32_t)(t->now.minor_faults - t->baseline.minor_faults);
  int64_t without = faults * (int64_t)c->page_size -
                    (c->anon > 0 ? c->anon : 0) -
                    (c->shared > 0 ? c->shared : 0);

  if (without <= 0 || !t->has_faults)
    return 0;
  return amount_from((double)without * breaks);
}

/* Memory shared by copy on write that was unmapped: it is gone, and not to
 * swap, beyond the private memory. */
static uint64_t unmapped_bytes(const struct track *t, const struct change *c) {
  int64_t gone =
      -c->anon - c->swap - (int64_t)baseline_private(&t->baseline).anon;

  return gone > 0 ? (uint64_t)gone : 0;
}

/* A page that one of n breaks out or unmaps costs the others what it paid for
 * it: a part of n - 1 of its own part of n. */
static void tell_relatives(struct track *t, uint64_t left) {
  double n = (double)fork_family_size(t);
  double more = (double)left - (double)t->told_bytes;

  if (n > 1) {
    uint64_t share =
        (uint64_t)amount_change_from(more * COW_BROKEN_UNITS / (n * (n - 1)));

    assert(t->family); /* of n */
    t->family->cow_broken += share;
    t->cow_broken += share; /* which it does not pay itself */
  }
  t->told_bytes = (float)left;
}

static void follow_cow(const struct cycle *cycle, struct track *t) {
  uint64_t most = baseline_cow_shared(&t->baseline), broken;
  struct change c;

  if (most == 0)
    return;
  c = track_change(cycle, t);
  broken = min(broken_bytes(t, &c), most);
  t->broken_bytes = (float)broken;
  tell_relatives(t, min(broken + unmapped_bytes(t, &c), most));
}

static void tell_returned(const struct cycle *cycle, struct track *t) {
  double returned, more;

  if (!t->family || t->baseline.vm_swap_kb == 0)
    return;
  returned = (double)track_change(cycle, t).returned;
  more = returned - (double)t->told_returned;
  t->told_returned = (float)returned;
  if (more <= 0)
    return;
  t->family->returned += amount_from(more);
  t->returned += amount_from(more);
  t->got_back += (float)more;
}

static uint32_t swap_now(const struct cycle *cycle, const struct track *t,
                         const struct observation *o) {
  if (o->has_swap)
    return o->vm_swap_kb;
  return track_is_swap_emptied(cycle, t) ? 0 : t->baseline.vm_swap_kb;
}

/* They were not read with the baseline, so that those before are unknown. */
static void begin_faults(struct track *t) {
  t->baseline.minor_faults = t->now.minor_faults;
  t->has_faults = true;
  t->unsure_bytes += (float)baseline_cow_bytes(&t->baseline);
}

static void take(const struct cycle *cycle, struct track *t,
                 const struct observation *o) {
  uint32_t faults = o->has_faults ? o->minor_faults : t->now.minor_faults;
  uint32_t swap = swap_now(cycle, t, o);

  t->now = *o;
  t->now.minor_faults = faults;
  t->now.vm_swap_kb = swap;
  if (track_has_baseline(t) && o->has_faults && !t->has_faults)
    begin_faults(t);
}

void estimator_observe(const struct cycle *cycle, struct track *t,
                       struct sharing *set, const struct observation *o) {
  if (!t->family && t->group_set != set) {
    estimator_forget(t);
    t->counted_pages = 0;
  }
  t->group_set = set;
  if (o)
    take(cycle, t, o);
  count(cycle, t);
  if (o && track_has_baseline(t)) {
    follow_cow(cycle, t);
    tell_returned(cycle, t);
  }
}

/* --- the error to be expected --- */

static void set_expected(struct track *t, struct doubt error) {
  t->expected_common = (float)error.common;
  t->expected_independent = (float)error.independent;
}

struct doubt estimator_expect(const struct cycle *cycle, struct track *t) {
  struct doubt all = {.common = (double)track_resident_bytes(cycle, t)};

  if (!track_has_baseline(t)) {
    set_expected(t, all);
    return all;
  }
  sharing_advance(track_set(t), &t->since);
  track_conclude_errors(cycle, t);
  t->relatives_moved = (float)track_change(cycle, t).relatives_moved;
  set_expected(t, track_usual_error_since(cycle, t));
  return track_usual_error(cycle, t);
}

/* --- correcting --- */

static uint32_t family_changes(const struct track *t) {
  return t->family ? t->family->changes : 0;
}

static void restart(const struct cycle *cycle, struct track *t,
                    uint64_t at_ns) {
  t->baseline.at_ns = at_ns;
  t->baseline.relatives = fork_family_relatives(t);
  t->was_swap_used = cycle->is_swap_used;
  t->cow_broken = t->family ? t->family->cow_broken : 0;
  t->returned = t->family ? t->family->returned : 0;
  t->told_returned = 0;
  t->family_changes = family_changes(t);
  t->broken_bytes = t->told_bytes = t->relatives_moved = 0;
  t->strangers = STRANGERS_NONE;
  t->strangers_counted = 0;
  t->since = SHARING_JUST_READ;
}

/* Pages that no other process maps, as it turns out, were counted as shared. */
static void correct_count(const struct cycle *cycle, struct track *t) {
  uint32_t counted = t->counted_pages;

  t->counted_pages = (uint32_t)shared_pages(cycle, t);
  sharing_correct(track_set(t), (double)t->counted_pages - (double)counted);
}

static float unsure_bytes(const struct cycle *cycle, const struct reading *r) {
  if (!r->faults_before || !r->faults_after)
    return 0;
  return (float)(r->faults_after - r->faults_before) * (float)cycle->page_size;
}

/* Faults since the beginning of the cycle are news to the relatives, too: the
 * baseline that is about to be taken has them behind it. */
static void catch_up(const struct cycle *cycle, struct track *t,
                     uint32_t faults) {
  if (!faults || !t->now.has_faults)
    return;
  t->now.minor_faults = faults;
  follow_cow(cycle, t);
}

/* Relatives are told also what came back from swap since then. */
static void catch_up_returned(const struct cycle *cycle, struct track *t,
                              const struct reading *r) {
  struct observation before = t->now;

  if (!r->has_statm)
    return;
  t->now.resident_pages = r->resident_pages;
  t->now.shared_pages = r->shared_pages;
  t->now.vm_swap_kb = r->vm_swap_kb;
  tell_returned(cycle, t);
  t->now = before;
}

static int64_t between(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

/* Pages that came behind the kernel's walk are in statm after it and not in the
 * rollup: they came since the baseline. They are no more than resident memory
 * has moved since it was observed; a further difference has another cause. */
static uint32_t missed_pages(const struct cycle *cycle, const struct track *t,
                             const struct reading *r) {
  int64_t moved = (int64_t)r->resident_pages - t->now.resident_pages;
  int64_t missed = (int64_t)r->resident_pages -
                   (int64_t)(r->rollup->bytes[ROLLUP_RSS] / cycle->page_size);

  return (uint32_t)(moved < 0 ? between(missed, moved, 0)
                              : between(missed, 0, moved));
}

/* Whether the strangers of the last reading, which share so much now, may have
 * made place for others. Where children come and go, others do unseen. */
static bool are_others(const struct track *t, uint64_t bytes) {
  struct rollup before;

  baseline_get(&t->baseline, &before);
  return strangers_have_come(strangers_bytes(&before, t->baseline.vm_swap_kb),
                             bytes) ||
         (t->strangers == STRANGERS_NEW &&
          t->family_changes != family_changes(t));
}

/* Whether KSM can be why it shares with strangers. Before 6.7 the kernel does
 * not say what is merged, and never what of that is in swap. */
static bool are_merged(const struct cycle *cycle, const struct track *t,
                       const struct rollup *found) {
  if (!rollup_has(found, ROLLUP_KSM))
    return t->baseline.at_ns < cycle->ksm_merged_ns;
  return track_has_baseline(t) &&
         baseline_bytes(&t->baseline, ROLLUP_KSM) > 0 &&
         strangers_seen(found, 0, fork_family_size(t)) == 0;
}

/* The strangers that a reading shows, before it is taken in. */
static enum strangers strangers_in(const struct cycle *cycle,
                                   const struct track *t,
                                   const struct rollup *found,
                                   uint32_t vm_swap_kb) {
  if (strangers_seen(found, vm_swap_kb, fork_family_size(t)) == 0)
    return STRANGERS_NONE;
  if (are_merged(cycle, t, found))
    return STRANGERS_LASTING;
  if (!track_has_baseline(t) || t->strangers == STRANGERS_NONE ||
      are_others(t, strangers_bytes(found, vm_swap_kb)))
    return STRANGERS_NEW;
  return STRANGERS_LASTING;
}

uint64_t estimator_missing_bytes(const struct cycle *cycle,
                                 const struct track *t,
                                 const struct rollup *found,
                                 uint32_t vm_swap_kb) {
  uint32_t relatives = fork_family_size(t);
  uint64_t shared = strangers_bytes(found, vm_swap_kb), expected;
  struct prediction prediction;

  if (relatives == 1 || relatives > RELATIVES_FEW || !track_has_baseline(t))
    return 0;
  estimator_predict(cycle, t, &prediction);
  expected = strangers_bytes(&prediction.rollup, t->now.vm_swap_kb);
  return expected - min(shared, expected) > expected / MISSING_PART
             ? expected - shared
             : 0;
}

/* What strangers do is nobody's usual error. */
static bool is_lesson(const struct cycle *cycle, const struct track *t,
                      const struct rollup *found, uint32_t vm_swap_kb) {
  return t->strangers != STRANGERS_NEW &&
         t->strangers == strangers_in(cycle, t, found, vm_swap_kb);
}

/* Children that came after the processes were listed are counted as ones that
 * have ended: nobody else pays their part. What is shared at the first reading
 * may be so for good. The next reading has to confirm either. */
static void doubt_strangers(struct track *t, const struct rollup *found,
                            bool had_baseline) {
  uint32_t known = fork_family_size(t);
  uint32_t seen = strangers_seen(found, t->baseline.vm_swap_kb, known);

  t->unsure_bytes += (float)strangers_part(found, known, seen);
  if (!had_baseline) {
    t->baseline.relatives = 0;
  } else if (known + seen <= UINT16_MAX) {
    t->baseline.relatives = (uint16_t)(known + seen);
    t->strangers_counted = (uint8_t)seen;
  }
}

void estimator_settle_relatives(struct track *t) {
  uint32_t now = fork_family_size(t);
  struct rollup found;

  if (t->baseline.relatives <= now || t->strangers_counted)
    return;
  baseline_get(&t->baseline, &found);
  if (strangers_are_ruled_out(&found, t->baseline.vm_swap_kb, now))
    t->baseline.relatives = fork_family_relatives(t);
}

/* Takes what was measured for the new baseline. */
static void begin_anew(const struct cycle *cycle, struct track *t,
                       const struct rollup *rollup,
                       const struct observation *at) {
  enum strangers strangers = strangers_in(cycle, t, rollup, t->now.vm_swap_kb);
  bool had_baseline = track_has_baseline(t);

  baseline_take(&t->baseline, rollup, at, cycle->page_size);
  t->has_faults = at->has_faults;
  t->baseline.vm_swap_kb = t->now.vm_swap_kb;
  restart(cycle, t, cycle->now_ns);
  t->strangers = strangers;
  if (strangers == STRANGERS_NEW)
    doubt_strangers(t, rollup, had_baseline);
  /* It is predicted from the new baseline in this cycle already. */
  set_expected(t, (struct doubt){.common = (double)t->unsure_bytes});
  if (t->is_heir && t->family)
    track_learn_newborn(cycle, t);
  t->is_heir = false;
  t->derived_anon = t->derived_files = 0;
  sharing_learn_kind(track_set(t), rollup->bytes[ROLLUP_PSS_FILE],
                     rollup->bytes[ROLLUP_PSS_SHMEM]);
  correct_count(cycle, t);
}

void estimator_correct(const struct cycle *cycle, struct track *t,
                       const struct reading *r) {
  struct observation at = t->now;

  if (track_has_baseline(t)) {
    catch_up(cycle, t, r->faults_before);
    if (is_lesson(cycle, t, r->rollup, r->vm_swap_kb))
      track_learn(cycle, t, r->rollup);
    catch_up(cycle, t, r->faults_after);
    catch_up_returned(cycle, t, r);
  }
  if (r->has_statm) {
    at.resident_pages = r->resident_pages - missed_pages(cycle, t, r);
    at.shared_pages = r->shared_pages;
  }
  if (r->faults_after) {
    at.minor_faults = t->now.minor_faults = r->faults_after;
    at.has_faults = true;
  }
  t->now.vm_swap_kb = r->vm_swap_kb;
  t->unsure_bytes = unsure_bytes(cycle, r);
  t->is_sampled = false;
  begin_anew(cycle, t, r->rollup, &at);
}

/* The standard deviation of the estimate that a sample meets. */
static struct sampled_error deviation(const struct cycle *cycle,
                                      const struct track *t) {
  struct doubt since = track_usual_error_since(cycle, t);
  double pss = doubt_bytes(since);
  double uss = doubt_bytes(track_uss_error(cycle, t, since));
  struct sampled_error d = {.pss_bound = 0};

  if (t->is_sampled)
    d = *t->sample_error;
  d.pss_anon.noise = hypot(d.pss_anon.noise, pss);
  d.pss_files.noise = hypot(d.pss_files.noise, pss);
  d.uss.noise = hypot(d.uss.noise, uss);
  return d;
}

/* Learns from the sample, and takes the mean of it and of the estimate. */
static bool meet(const struct cycle *cycle, struct track *t,
                 struct sampled *s) {
  struct sampled_error error = deviation(cycle, t);
  struct change c = track_change(cycle, t);
  struct rollup expected, found;
  struct sampled lesson;

  estimate_rollup(&t->baseline, &c, &expected);
  sampled_lesson(s, &expected, &lesson);
  sampled_rollup(&lesson, &found);
  if (is_lesson(cycle, t, &found, t->now.vm_swap_kb))
    track_learn(cycle, t, &found);
  return sampled_fuse(s, &expected, &error);
}

bool estimator_sample(const struct cycle *cycle, struct track *t,
                      struct sampled *s, uint32_t resident_pages,
                      uint32_t shared_pages) {
  struct observation before = t->now;
  struct rollup rollup;
  bool agrees = true;

  t->now.resident_pages = resident_pages;
  t->now.shared_pages = shared_pages;
  t->now.vm_swap_kb = amount_narrow(amount_from(s->swap) / 1024);
  before.vm_swap_kb = t->now.vm_swap_kb;
  if (track_has_baseline(t)) {
    agrees = meet(cycle, t, s);
    tell_returned(cycle, t);
  }
  sampled_rollup(s, &rollup);
  t->unsure_bytes = 0;
  t->is_sampled = true;
  *t->sample_error = s->error;
  begin_anew(cycle, t, &rollup, &t->now);
  t->now = before;
  return agrees;
}

void estimator_derive(const struct cycle *cycle, struct track *t,
                      const struct derivation *from) {
  uint32_t off_pages = t->baseline.off_pages;
  double unsure = track_has_baseline(t)
                      ? doubt_bytes(track_usual_error_since(cycle, t))
                      : 0;

  baseline_take(&t->baseline, from->rollup, &t->now, cycle->page_size);
  t->baseline.off_pages = off_pages;
  t->baseline.vm_swap_kb = t->now.vm_swap_kb;
  t->has_faults = t->now.has_faults;
  restart(cycle, t, from->at_ns);
  t->unsure_bytes = (float)unsure;
  t->derived_anon = (float)from->anon_bound;
  t->derived_files = (float)from->files_bound;
  correct_count(cycle, t);
}

/* --- predicting --- */

void estimator_predict(const struct cycle *cycle, const struct track *t,
                       struct prediction *ret) {
  struct change c = track_change(cycle, t);

  estimate_rollup(&t->baseline, &c, &ret->rollup);
  ret->pss_error = track_pss_error(cycle, t, &c);
  ret->uss_error = track_uss_error(cycle, t, ret->pss_error);
  track_add_sampled_errors(cycle, t, &ret->pss_error, &ret->uss_error);
  ret->age_ns = cycle->now_ns - t->baseline.at_ns;
}
