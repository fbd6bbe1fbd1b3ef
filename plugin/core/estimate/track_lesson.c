#include "estimate/track_lesson.h"

#include "estimate/fork_family.h"
#include "estimate/track_change.h"
#include "estimate/track_error.h"
#include "proc/amount.h"
#include "proc/arith.h"

/* A few pages teach little; a reading that tells of LEARN_WELL_BYTES weighs as
 * much as all that was learnt before. */
#define LEARN_LEAST_BYTES (UINT64_C(64) << 10)
#define LEARN_WELL_BYTES 3145728.0
#define COW_BREAKS_LEAST 0.01
/* Fewer do not tell how far off many will be. */
#define COW_LESSON_LEAST_BYTES 1048576.0
/* The weight of one first reading. */
#define NEWBORN_RATE 0.25
#define NEWBORN_LEAST_BYTES 16384
#define NEWBORN_BREAKS_LEAST 0.05

/* A reading, beside the estimate that it takes the place of. */
struct lesson {
  struct change change;     /* since the baseline */
  struct error_parts usual; /* of the estimate */
  struct rollup expected;
  const struct rollup *found;
};

/* How many of the faults since the baseline broke copy on write. */
static void learn_faults(const struct cycle *cycle, const struct track *t,
                         const struct lesson *l) {
  struct fork_family *family = t->family;
  double broken = (double)t->broken_bytes;
  double more, breaks;

  if (!family || broken < (double)LEARN_LEAST_BYTES ||
      (double)t->derived_anon > 0)
    return;
  more = (double)rollup_uss(l->found) - (double)rollup_uss(&l->expected);
  breaks = clamp(family->cow_breaks * (1 + more / broken), COW_BREAKS_LEAST, 1);
  family->cow_breaks +=
      (breaks - family->cow_breaks) * broken / (broken + LEARN_WELL_BYTES);
  if (broken >= COW_LESSON_LEAST_BYTES)
    error_ratio_add(&family->cow_error, cycle->now_ns, more, broken);
}

/* The part of an error that another cause does not explain. */
static double beyond(double off, double explained) {
  if (off < 0)
    return off < -explained ? off + explained : 0;
  return off > explained ? off - explained : 0;
}

/* How far off what others do with files or shmem has made the estimate. */
static void learn_sharing(const struct cycle *cycle, const struct track *t,
                          const struct lesson *l) {
  const struct baseline *b = &t->baseline;
  uint64_t was = estimate_shared_pss(b, &l->expected, l->change.is_of_shmem);
  uint64_t is = estimate_shared_pss(b, l->found, l->change.is_of_shmem);

  if (was < LEARN_LEAST_BYTES || !rollup_has(l->found, ROLLUP_PSS_FILE))
    return;
  sharing_learn_error(track_set(t), cycle->now_ns,
                      beyond((double)is - (double)was,
                             l->change.derived_files * l->usual.newborn_files),
                      (double)estimate_shared_bound(b, &l->change));
}

/* How far off relatives that came or went have made the estimate. */
static void learn_relatives(const struct cycle *cycle, const struct track *t,
                            const struct lesson *l) {
  uint64_t bound = estimate_relatives_bound(&t->baseline, &l->change);

  if (t->family && bound > 0)
    error_ratio_add(&t->family->relatives_error, cycle->now_ns,
                    beyond((double)l->found->bytes[ROLLUP_PSS_ANON] -
                               (double)l->expected.bytes[ROLLUP_PSS_ANON],
                           l->change.derived_anon * l->usual.newborn_anon),
                    (double)bound);
}

/* Memory that relatives got back from swap, too, costs a process less where it
 * is the same memory. */
static void learn_again(const struct cycle *cycle, const struct track *t,
                        const struct lesson *l) {
  uint64_t bound = estimate_again_bound(&t->baseline, &l->change);
  struct error_parts parts = l->usual;
  double off = (double)l->found->bytes[ROLLUP_PSS] -
               (double)l->expected.bytes[ROLLUP_PSS];
  double explained;

  if (!t->family || bound < LEARN_LEAST_BYTES)
    return;
  parts.again = 0;
  explained = doubt_bytes(estimate_error(&t->baseline, &l->change, &parts));
  error_ratio_add(&t->family->again_error, cycle->now_ns,
                  off < 0 ? beyond(off, explained) : 0, (double)bound);
}

/* How far off uss was, by what a page that becomes private or shared makes of
 * it: uss changes by all of the page, and Pss by half of it or more. */
static void learn_uss(const struct cycle *cycle, const struct track *t,
                      const struct lesson *l) {
  double bound = 2 * doubt_bytes(track_pss_error(cycle, t, &l->change));

  if (bound >= (double)LEARN_LEAST_BYTES)
    error_ratio_add(
        &track_set(t)->uss_error, cycle->now_ns,
        (double)rollup_uss(l->found) - (double)rollup_uss(&l->expected), bound);
}

/* How far off the estimate was, beyond all that explains it. */
static void learn_drift(const struct cycle *cycle, const struct track *t,
                        const struct lesson *l) {
  struct error_parts parts = l->usual;
  double memory = (double)estimate_unseen_bytes(&t->baseline);
  double off = (double)l->found->bytes[ROLLUP_PSS] -
               (double)l->expected.bytes[ROLLUP_PSS];
  double explained;

  if (memory < (double)LEARN_LEAST_BYTES || l->change.seconds <= 0)
    return;
  parts.drift = 0;
  explained = doubt_bytes(estimate_error(&t->baseline, &l->change, &parts)) +
              (double)track_imprecision(cycle, t);
  drift_learn(&track_set(t)->drift, cycle->now_ns,
              beyond(off < 0 ? -off : off, explained), memory,
              l->change.seconds);
}

static double files_pss(const struct rollup *u) {
  return (double)(u->bytes[ROLLUP_PSS_FILE] + u->bytes[ROLLUP_PSS_SHMEM]);
}

/* How far off the estimate of a newborn, or of its parent, was. */
static void learn_derived(const struct cycle *cycle, const struct track *t,
                          const struct lesson *l) {
  struct newborn_lessons *lessons = &t->family->newborns;

  if ((double)t->derived_anon > (double)LEARN_LEAST_BYTES)
    error_ratio_add(t->is_heir ? &lessons->anon : &lessons->lent, cycle->now_ns,
                    (double)l->found->bytes[ROLLUP_PSS_ANON] -
                        (double)l->expected.bytes[ROLLUP_PSS_ANON],
                    (double)t->derived_anon);
  if ((double)t->derived_files > (double)LEARN_LEAST_BYTES)
    error_ratio_add(&lessons->files, cycle->now_ns,
                    files_pss(l->found) - files_pss(&l->expected),
                    (double)t->derived_files);
}

/* The first one tells more than no lesson. */
static void follow(double *known, double seen, double rate) {
  *known = *known < 0 ? seen : *known + (seen - *known) * rate;
}

/* The first reading of a process that was estimated as a newborn. */
void track_learn_newborn(const struct cycle *cycle, const struct track *t) {
  struct newborn_lessons *lessons = &t->family->newborns;
  const struct observation at = baseline_observation(&t->baseline);
  double faulted = (double)track_faulted_bytes(cycle, &at);
  double own = (double)baseline_private(&t->baseline).anon;
  double cost = baseline_shared_cost(&t->baseline, cycle->page_size);

  if (t->has_faults && faulted >= NEWBORN_LEAST_BYTES)
    follow(&lessons->breaks, clamp(own / faulted, NEWBORN_BREAKS_LEAST, 1),
           faulted / (faulted + LEARN_WELL_BYTES));
  if (t->baseline.shared_pages > 0)
    follow(&lessons->file_cost, cost, NEWBORN_RATE);
}

void track_learn(const struct cycle *cycle, const struct track *t,
                 const struct rollup *found) {
  struct lesson l = {.change = track_change(cycle, t),
                     .usual = track_usual_parts(cycle, t),
                     .found = found};

  estimate_rollup(&t->baseline, &l.change, &l.expected);
  learn_uss(cycle, t, &l);
  learn_faults(cycle, t, &l);
  learn_sharing(cycle, t, &l);
  learn_relatives(cycle, t, &l);
  learn_again(cycle, t, &l);
  if (t->family)
    learn_derived(cycle, t, &l);
  learn_drift(cycle, t, &l);
}
