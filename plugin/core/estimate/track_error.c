#include "estimate/track_error.h"

#include "estimate/fork_family.h"
#include "estimate/track_change.h"
#include "proc/arith.h"
#include "sample/sampled.h"

/* Readings that were right say less of what comes next. */
#define SHARED_PART_LEAST 0.05
/* The usual error is exceeded half the time, and the next reading can be
 * farther off than the worst of late. A published error should hold. */
#define USUAL_PUBLISHED 2
#define WORST_PUBLISHED 1.5
/* The root of the mean square of unseen changes is to be expected, and six
 * times that is published (see drift.h): WORST_PUBLISHED times this. */
#define DRIFT_WORST 4
#define WORST_NEWBORN_LEAST 0.05
/* statm of a small process is not as far off as that of the large one on which
 * it was learnt, which has had more pages to lose count of. */
#define IMPRECISE_PART 4

/* The part that the members of a set have in common of an error which is
 * usually so large, of all. */
static double common_part(double common, double all) {
  return all > common ? common / all : 1;
}

/* The estimate of a child can be off by all that it has, that of its parent by
 * what this has lent. */
static const struct error_ratio *derived_anon_error(const struct track *t) {
  const struct newborn_lessons *lessons = &t->family->newborns;

  return t->is_heir ? &lessons->anon : &lessons->lent;
}

struct error_parts track_usual_parts(const struct cycle *cycle,
                                     const struct track *t) {
  const struct sharing *set = track_set(t);
  double shared = clamp(set->error.usual, SHARED_PART_LEAST, 1);

  return (struct error_parts){
      .drift = drift_part(&set->drift, track_seconds(cycle, t)),
      .shared = shared,
      .shared_in_common = common_part(set->common_error.usual, shared),
      .relatives = t->family ? t->family->relatives_error.usual : 0,
      .again = t->family ? t->family->again_error.usual : 0,
      .cow = t->family ? t->family->cow_error.usual : 1,
      .newborn_anon = t->family ? derived_anon_error(t)->usual : 1,
      .newborn_files = t->family ? t->family->newborns.files.usual : 1,
      .newborn_in_common = 1};
}

/* The next one need not be like those before. */
static double worst_newborn(const struct error_ratio *r) {
  double worst = error_ratio_worst(r);

  return worst > WORST_NEWBORN_LEAST ? worst : WORST_NEWBORN_LEAST;
}

/* The usual error may have one cause, and one sign, in all newborns of a
 * family. A child that is much farther off was caught at a moment of its own.
 */
static double newborn_in_common(const struct track *t) {
  const struct error_ratio *anon;

  if (!t->family)
    return 1;
  anon = derived_anon_error(t);
  return common_part(anon->usual, worst_newborn(anon));
}

static struct error_parts worst_parts(const struct cycle *cycle,
                                      const struct track *t) {
  const struct sharing *set = track_set(t);
  double shared = error_ratio_worst(&set->error);

  return (struct error_parts){
      .drift = DRIFT_WORST * drift_part(&set->drift, track_seconds(cycle, t)),
      .shared = shared,
      .shared_in_common =
          common_part(error_ratio_worst(&set->common_error), shared),
      .relatives =
          t->family ? error_ratio_worst(&t->family->relatives_error) : 0,
      .again = t->family ? error_ratio_worst(&t->family->again_error) : 0,
      .cow = t->family ? error_ratio_worst(&t->family->cow_error) : 1,
      .newborn_anon = t->family ? worst_newborn(derived_anon_error(t)) : 1,
      .newborn_files =
          t->family ? worst_newborn(&t->family->newborns.files) : 1,
      .newborn_in_common = newborn_in_common(t)};
}

void track_conclude_errors(const struct cycle *cycle, struct track *t) {
  sharing_conclude_errors(track_set(t), cycle->now_ns);
  drift_count(&track_set(t)->drift, cycle->now_ns,
              (double)estimate_unseen_bytes(&t->baseline));
  if (!t->family)
    return;
  error_ratio_conclude(&t->family->cow_error, cycle->now_ns);
  error_ratio_conclude(&t->family->relatives_error, cycle->now_ns);
  error_ratio_conclude(&t->family->again_error, cycle->now_ns);
  error_ratio_conclude(&t->family->newborns.anon, cycle->now_ns);
  error_ratio_conclude(&t->family->newborns.files, cycle->now_ns);
  error_ratio_conclude(&t->family->newborns.lent, cycle->now_ns);
}

/* At most all that is resident. */
static struct doubt limit(const struct cycle *cycle, const struct track *t,
                          struct doubt d) {
  double most = (double)track_resident_bytes(cycle, t), all = doubt_bytes(d);

  return all > most ? doubt_scale(d, most / all) : d;
}

/* Beside what follows from the baseline: it was not exact itself, and faults
 * that cannot be asked for may have broken all copy on write. */
struct doubt track_usual_error_since(const struct cycle *cycle,
                                     const struct track *t) {
  const struct error_parts parts = track_usual_parts(cycle, t);
  struct change c = track_change(cycle, t);
  struct doubt error = estimate_error(&t->baseline, &c, &parts);

  error.common += (double)t->unsure_bytes;
  if (track_wants_faults(t) && !t->now.has_faults)
    error.common += (double)baseline_cow_bytes(&t->baseline);
  return limit(cycle, t, error);
}

struct doubt track_usual_error(const struct cycle *cycle,
                               const struct track *t) {
  struct doubt error = track_usual_error_since(cycle, t);

  if (t->is_sampled) {
    error.common += t->sample_error->pss_bound;
    error.independent += sampled_pss_error(t->sample_error) / 2;
  }
  return limit(cycle, t, error);
}

uint64_t track_imprecision(const struct cycle *cycle, const struct track *t) {
  uint64_t twice = 2 * (uint64_t)t->baseline.off_pages;
  uint64_t part = t->now.resident_pages / IMPRECISE_PART;
  uint64_t pages =
      precision_pages(&cycle->precision, t->now.threads, t->baseline.off_pages);

  return min(pages, part > twice ? part : twice) * cycle->page_size;
}

/* statm is as far off for all, on the kernels where it is. */
struct doubt track_pss_error(const struct cycle *cycle, const struct track *t,
                             const struct change *c) {
  const struct error_parts parts = worst_parts(cycle, t);
  struct doubt usual = {.common = (double)t->expected_common,
                        .independent = (double)t->expected_independent};
  struct doubt worst = limit(cycle, t, estimate_error(&t->baseline, c, &parts));
  struct doubt ret;

  usual = doubt_scale(usual, USUAL_PUBLISHED);
  worst = doubt_scale(worst, WORST_PUBLISHED);
  ret = doubt_bytes(usual) > doubt_bytes(worst) ? usual : worst;
  ret.common += (double)track_imprecision(cycle, t);
  return ret;
}

/* Samples are too rare and too rough to teach that it is less than all, and
 * strangers teach nothing. */
static double uss_part(const struct track *t) {
  if (t->is_sampled || t->strangers == STRANGERS_NEW)
    return 1;
  return clamp(WORST_PUBLISHED * error_ratio_worst(&track_set(t)->uss_error), 0,
               1);
}

struct doubt track_uss_error(const struct cycle *cycle, const struct track *t,
                             struct doubt pss) {
  return limit(cycle, t, doubt_scale(pss, 2 * uss_part(t)));
}

void track_add_sampled_errors(const struct cycle *cycle, const struct track *t,
                              struct doubt *pss, struct doubt *uss) {
  const struct sampled_error *error;
  double common;

  if (!t->is_sampled)
    return;
  error = t->sample_error;
  common = sampled_pss_common(error);
  pss->common += common;
  pss->independent += sampled_pss_error(error) - common;
  uss->independent += sampled_uss_error(error);
  *pss = limit(cycle, t, *pss);
  *uss = limit(cycle, t, *uss);
}
