#include "estimate/estimator.h"

#include "proc/amount.h"
#include "proc/duration.h"

/* A few pages teach little; a reading that tells of LEARN_WELL_BYTES weighs as
 * much as all that was learnt before. */
#define LEARN_LEAST_BYTES (UINT64_C(64) << 10)
#define LEARN_WELL_BYTES 3145728.0
#define COW_BREAKS_LEAST 0.01
#define COW_ERROR_LEAST 0.01
/* Readings that were right say less of what comes next. */
#define SHARED_PART_LEAST 0.05
/* The usual error is exceeded half the time, and the next reading can be
 * farther off than the worst of late. A published error should hold. */
#define USUAL_PUBLISHED 2
#define WORST_PUBLISHED 1.5
/* Of unseen changes the root of the mean square is to be expected, and six
 * times that is published (see drift.h): WORST_PUBLISHED times this. */
#define DRIFT_WORST 4
/* statm of a small process is not as far off as that of the large one on which
 * it was learnt, which has had more pages to lose count of. */
#define IMPRECISE_PART 4
/* No longer than this is memory in swap unknown. */
#define SWAP_ASKED_NS (60 * NS_PER_S)

static double clamp(double x, double least, double most) {
  return x < least ? least : x > most ? most : x;
}

static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static struct sharing *set_of(const struct track *t) {
  return t->family ? &t->family->sharing : t->group_set;
}

static uint64_t resident_bytes(const struct estimator *e,
                               const struct track *t) {
  return (uint64_t)t->now.resident_pages * e->page_size;
}

void estimator_begin(struct estimator *e, uint64_t now_ns, bool is_swap_used) {
  e->before_ns = e->now_ns;
  e->now_ns = now_ns;
  e->is_swap_used = is_swap_used;
}

bool estimator_has_baseline(const struct track *t) {
  return t->baseline.at_ns != 0;
}

void estimator_forget(struct track *t) { t->baseline.at_ns = 0; }

/* --- what is worth asking for --- */

bool estimator_wants_faults(const struct track *t) {
  return estimator_has_baseline(t) &&
         baseline_cow_bytes(&t->baseline) >= ROLLUP_COW_LEAST_BYTES;
}

/* A process that has just forked shares, whatever its last reading says. */
bool estimator_wants_faults_around(const struct track *t) {
  return estimator_wants_faults(t) || fork_family_size(t) > 1;
}

/* A minute of its baseline's age, or more, has ended. */
static bool is_minute_over(const struct estimator *e, const struct track *t) {
  uint64_t at_ns = t->baseline.at_ns;
  uint64_t before_ns = e->before_ns > at_ns ? e->before_ns : at_ns;

  return (e->now_ns - at_ns) / SWAP_ASKED_NS !=
         (before_ns - at_ns) / SWAP_ASKED_NS;
}

/* Memory goes to swap where resident memory goes, and comes back from there. A
 * process that had none and has not shrunk is taken to have none, since status
 * costs as much as statm again; but others can have taken the place of what
 * went, so that it is asked once a minute. */
bool estimator_wants_swap(const struct estimator *e, const struct track *t,
                          const struct observation *o) {
  if (!estimator_has_baseline(t))
    return false;
  return baseline_bytes(&t->baseline, ROLLUP_SWAP) > 0 ||
         t->now.vm_swap_kb > 0 ||
         (e->is_swap_used && (o->resident_pages < t->baseline.resident_pages ||
                              is_minute_over(e, t)));
}

/* --- what has changed --- */

static bool is_swap_emptied(const struct estimator *e, const struct track *t) {
  return t->was_swap_used && !e->is_swap_used;
}

static uint64_t broken_by_relatives(const struct track *t) {
  int64_t more =
      t->family ? (int64_t)(t->family->cow_broken - t->cow_broken) : 0;

  return min(amount_from((double)more / COW_BROKEN_UNITS),
             baseline_cow_bytes(&t->baseline));
}

static double seconds_since(const struct estimator *e, const struct track *t) {
  return (double)(e->now_ns - t->baseline.at_ns) / 1e9;
}

static struct change change_of(const struct estimator *e,
                               const struct track *t) {
  const struct baseline *b = &t->baseline;
  const struct sharing *set = set_of(t);
  int64_t page_size = (int64_t)e->page_size;
  int64_t shared = (int64_t)t->now.shared_pages - b->shared_pages;
  int64_t resident = (int64_t)t->now.resident_pages - b->resident_pages;
  struct change c = {
      .page_size = e->page_size,
      .seconds = seconds_since(e, t),
      .anon = (resident - shared) * page_size,
      .shared = shared * page_size,
      .swap = ((int64_t)t->now.vm_swap_kb - b->vm_swap_kb) * 1024,
      .swap_left =
          b->vm_swap_kb ? (double)t->now.vm_swap_kb / b->vm_swap_kb : 1,
      .is_swap_emptied = is_swap_emptied(e, t) && t->now.vm_swap_kb == 0,
      .broken = amount_from((double)t->broken_bytes),
      .broken_by_relatives = broken_by_relatives(t),
      .relatives = fork_family_size(t),
      .relatives_moved = (double)t->relatives_moved,
      .is_of_shmem = set->is_shmem,
      .shared_cost = (double)t->since.cost,
      .shared_moved = (double)t->since.moved,
      .moved_pages = (double)t->since.moved_pages,
      .is_ksm_merged = b->at_ns < e->ksm_merged_ns,
      .is_ksm_split = b->at_ns < e->ksm_changed_ns};

  if (c.anon > 0 && c.swap < 0)
    c.returned = min((uint64_t)c.anon, (uint64_t)-c.swap);
  return c;
}

/* --- observing --- */

/* Pages of files and shmem, but for those that no other process mapped at the
 * baseline. */
static uint64_t shared_pages(const struct estimator *e, const struct track *t) {
  uint64_t own = estimator_has_baseline(t)
                     ? baseline_private_file_bytes(&t->baseline) / e->page_size
                     : 0;

  return t->now.shared_pages > own ? t->now.shared_pages - own : 0;
}

static void count(const struct estimator *e, struct track *t) {
  uint64_t pages = shared_pages(e, t);

  sharing_count(set_of(t), e->now_ns, pages, t->counted_pages);
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

    t->family->cow_broken += share;
    t->cow_broken += share; /* which it does not pay itself */
  }
  t->told_bytes = (float)left;
}

static void follow_cow(const struct estimator *e, struct track *t) {
  uint64_t most = baseline_cow_shared(&t->baseline), broken;
  struct change c;

  if (most == 0)
    return;
  c = change_of(e, t);
  broken = min(broken_bytes(t, &c), most);
  t->broken_bytes = (float)broken;
  tell_relatives(t, min(broken + unmapped_bytes(t, &c), most));
}

static uint32_t swap_now(const struct estimator *e, const struct track *t,
                         const struct observation *o) {
  if (o->has_swap)
    return o->vm_swap_kb;
  return is_swap_emptied(e, t) ? 0 : t->baseline.vm_swap_kb;
}

/* They were not read with the baseline, so that those before are unknown. */
static void begin_faults(struct track *t) {
  t->baseline.minor_faults = t->now.minor_faults;
  t->has_faults = true;
  t->unsure_bytes += (float)baseline_cow_bytes(&t->baseline);
}

static void take(const struct estimator *e, struct track *t,
                 const struct observation *o) {
  uint32_t faults = o->has_faults ? o->minor_faults : t->now.minor_faults;
  uint32_t swap = swap_now(e, t, o);

  t->now = *o;
  t->now.minor_faults = faults;
  t->now.vm_swap_kb = swap;
  if (estimator_has_baseline(t) && o->has_faults && !t->has_faults)
    begin_faults(t);
}

void estimator_observe(struct estimator *e, struct track *t,
                       struct sharing *set, const struct observation *o) {
  if (!t->family && t->group_set != set) {
    estimator_forget(t);
    t->counted_pages = 0;
  }
  t->group_set = set;
  if (o)
    take(e, t, o);
  count(e, t);
  if (o && estimator_has_baseline(t))
    follow_cow(e, t);
}

/* --- the error to be expected --- */

static double moved_part(uint32_t before, uint32_t now) {
  uint32_t most = before > now ? before : now;
  uint32_t moved = before > now ? before - now : now - before;

  return most ? (double)moved / most : 0;
}

static struct error_parts usual_parts(const struct estimator *e,
                                      const struct track *t) {
  return (struct error_parts){
      .drift = drift_part(&set_of(t)->drift, seconds_since(e, t)),
      .shared = clamp(set_of(t)->error.usual, SHARED_PART_LEAST, 1),
      .relatives = t->family ? t->family->relatives_error.usual : 0,
      .cow = t->family ? t->family->cow_error : 1};
}

static struct error_parts worst_parts(const struct estimator *e,
                                      const struct track *t) {
  return (struct error_parts){
      .drift = DRIFT_WORST * drift_part(&set_of(t)->drift, seconds_since(e, t)),
      .shared = set_of(t)->error.worst,
      .relatives = t->family ? t->family->relatives_error.worst : 0,
      .cow = t->family ? t->family->cow_error : 1};
}

static void conclude_ratios(const struct estimator *e, struct track *t) {
  error_ratio_conclude(&set_of(t)->error, e->now_ns);
  drift_count(&set_of(t)->drift, e->now_ns,
              (double)estimate_unseen_bytes(&t->baseline));
  if (t->family)
    error_ratio_conclude(&t->family->relatives_error, e->now_ns);
}

/* Beside what follows from the baseline: it was not exact itself, and faults
 * that cannot be asked for may have broken all copy on write. */
static uint64_t usual_error(const struct estimator *e, const struct track *t) {
  const struct error_parts parts = usual_parts(e, t);
  struct change c = change_of(e, t);
  uint64_t error = estimate_error(&t->baseline, &c, &parts) +
                   amount_from((double)t->unsure_bytes);

  if (estimator_wants_faults(t) && !t->now.has_faults)
    error += baseline_cow_bytes(&t->baseline);
  return min(error, resident_bytes(e, t));
}

uint64_t estimator_expect(const struct estimator *e, struct track *t) {
  double moved = moved_part(t->baseline.relatives,
                            (uint32_t)min(fork_family_size(t), UINT16_MAX));

  t->expected_error = (float)resident_bytes(e, t);
  if (!estimator_has_baseline(t))
    return resident_bytes(e, t);
  sharing_advance(set_of(t), &t->since);
  conclude_ratios(e, t);
  if (moved > (double)t->relatives_moved)
    t->relatives_moved = (float)moved;
  t->expected_error = (float)usual_error(e, t);
  return amount_from((double)t->expected_error);
}

/* --- learning --- */

/* How many of the faults since the baseline broke copy on write. */
static void learn_faults(const struct track *t, const struct rollup *expected,
                         const struct rollup *found) {
  struct fork_family *family = t->family;
  double broken = (double)t->broken_bytes;
  double more, error, breaks, rate;

  if (!family || broken < (double)LEARN_LEAST_BYTES)
    return;
  more = (double)rollup_uss(found) - (double)rollup_uss(expected);
  error = more / broken;
  breaks = clamp(family->cow_breaks * (1 + error), COW_BREAKS_LEAST, 1);
  error = clamp(error < 0 ? -error : error, COW_ERROR_LEAST, 1);
  rate = broken / (broken + LEARN_WELL_BYTES);
  family->cow_breaks += (breaks - family->cow_breaks) * rate;
  family->cow_error += (error - family->cow_error) * rate;
}

/* How far off what others do with files or shmem has made the estimate. */
static void learn_sharing(const struct estimator *e, const struct track *t,
                          const struct change *c, const struct rollup *expected,
                          const struct rollup *found) {
  const struct baseline *b = &t->baseline;
  uint64_t was = estimate_shared_pss(b, expected, c->is_of_shmem);
  uint64_t is = estimate_shared_pss(b, found, c->is_of_shmem);

  if (was < LEARN_LEAST_BYTES || !rollup_has(found, ROLLUP_PSS_FILE))
    return;
  error_ratio_add(&set_of(t)->error, e->now_ns, (double)is - (double)was,
                  (double)estimate_shared_bound(b, c));
}

/* How far off relatives that came or went have made the estimate. */
static void learn_relatives(const struct estimator *e, const struct track *t,
                            const struct change *c,
                            const struct rollup *expected,
                            const struct rollup *found) {
  uint64_t bound = estimate_relatives_bound(&t->baseline, c);

  if (t->family && bound > 0)
    error_ratio_add(&t->family->relatives_error, e->now_ns,
                    (double)found->bytes[ROLLUP_PSS_ANON] -
                        (double)expected->bytes[ROLLUP_PSS_ANON],
                    (double)bound);
}

static uint64_t imprecision(const struct estimator *e, const struct track *t) {
  uint64_t twice = 2 * (uint64_t)t->baseline.off_pages;
  uint64_t part = t->now.resident_pages / IMPRECISE_PART;
  uint64_t pages =
      precision_pages(&e->precision, t->now.threads, t->baseline.off_pages);

  return min(pages, part > twice ? part : twice) * e->page_size;
}

/* How far off the estimate was, beyond all that explains it. */
static void learn_drift(const struct estimator *e, const struct track *t,
                        const struct change *c, const struct rollup *expected,
                        const struct rollup *found) {
  struct error_parts parts = usual_parts(e, t);
  double memory = (double)estimate_unseen_bytes(&t->baseline);
  double off =
      (double)found->bytes[ROLLUP_PSS] - (double)expected->bytes[ROLLUP_PSS];
  double explained;

  if (memory < (double)LEARN_LEAST_BYTES || c->seconds <= 0)
    return;
  parts.drift = 0;
  explained = (double)estimate_error(&t->baseline, c, &parts) +
              (double)imprecision(e, t);
  off = off < 0 ? -off : off;
  drift_learn(&set_of(t)->drift, e->now_ns,
              off > explained ? off - explained : 0, memory, c->seconds);
}

static void learn(const struct estimator *e, const struct track *t,
                  const struct rollup *found) {
  struct change c = change_of(e, t);
  struct rollup expected;

  estimate_rollup(&t->baseline, &c, &expected);
  learn_faults(t, &expected, found);
  learn_sharing(e, t, &c, &expected, found);
  learn_relatives(e, t, &c, &expected, found);
  learn_drift(e, t, &c, &expected, found);
}

/* Where the process did not change meanwhile, the rollup shows as much as statm
 * if that is exact. */
static void learn_precision(struct estimator *e, const struct track *t,
                            const struct reading *r) {
  uint64_t rss = r->rollup->bytes[ROLLUP_RSS] / e->page_size;
  uint64_t resident = t->now.resident_pages;

  if (r->has_statm && resident == r->resident_pages &&
      t->now.shared_pages == r->shared_pages)
    precision_learn(&e->precision,
                    rss > resident ? rss - resident : resident - rss);
}

/* --- correcting --- */

static void restart(const struct estimator *e, struct track *t) {
  t->baseline.at_ns = e->now_ns;
  t->baseline.relatives = (uint16_t)min(fork_family_size(t), UINT16_MAX);
  t->was_swap_used = e->is_swap_used;
  t->cow_broken = t->family ? t->family->cow_broken : 0;
  t->broken_bytes = t->told_bytes = t->relatives_moved = 0;
  t->since = SHARING_JUST_READ;
}

/* Pages that no other process maps, as it turns out, were counted as shared. */
static void correct_count(const struct estimator *e, struct track *t) {
  uint32_t counted = t->counted_pages;

  t->counted_pages = (uint32_t)shared_pages(e, t);
  sharing_correct(set_of(t), (double)t->counted_pages - (double)counted);
}

static float unsure_bytes(const struct estimator *e, const struct reading *r) {
  if (!r->faults_before || !r->faults_after)
    return 0;
  return (float)(r->faults_after - r->faults_before) * (float)e->page_size;
}

void estimator_correct(struct estimator *e, struct track *t,
                       const struct reading *r) {
  struct observation at = t->now;

  if (estimator_has_baseline(t))
    learn(e, t, r->rollup);
  learn_precision(e, t, r);
  if (r->has_statm) {
    at.resident_pages = r->resident_pages;
    at.shared_pages = r->shared_pages;
  }
  if (r->faults_after) {
    at.minor_faults = t->now.minor_faults = r->faults_after;
    at.has_faults = true;
  }
  baseline_take(&t->baseline, r->rollup, &at, e->page_size);
  t->has_faults = at.has_faults;
  t->baseline.vm_swap_kb = t->now.vm_swap_kb = r->vm_swap_kb;
  restart(e, t);
  t->unsure_bytes = unsure_bytes(e, r);
  sharing_learn_kind(set_of(t), r->rollup->bytes[ROLLUP_PSS_FILE],
                     r->rollup->bytes[ROLLUP_PSS_SHMEM]);
  correct_count(e, t);
}

/* --- predicting --- */

static uint64_t published_error(const struct estimator *e,
                                const struct track *t, const struct change *c) {
  const struct error_parts parts = worst_parts(e, t);
  uint64_t worst =
      min(estimate_error(&t->baseline, c, &parts), resident_bytes(e, t));
  uint64_t of_usual = amount_from(USUAL_PUBLISHED * (double)t->expected_error);
  uint64_t of_worst = amount_from(WORST_PUBLISHED * (double)worst);

  return (of_usual > of_worst ? of_usual : of_worst) + imprecision(e, t);
}

void estimator_predict(const struct estimator *e, const struct track *t,
                       struct prediction *ret) {
  struct change c = change_of(e, t);

  estimate_rollup(&t->baseline, &c, &ret->rollup);
  ret->error_bytes = published_error(e, t, &c);
  ret->age_ns = e->now_ns - t->baseline.at_ns;
}
