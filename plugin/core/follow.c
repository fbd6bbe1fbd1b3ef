#include <smaps/follow.h>

#include <smaps/amount.h>
#include <smaps/status.h>

/* Of a few pages there is little to learn; a reading that tells of so much
 * weighs as much as all that was learnt before. */
#define LEARN_LEAST_BYTES (UINT64_C(64) << 10)
#define LEARN_WELL_BYTES 3145728.0
/* The least error that is ever believed in. */
#define COW_ERROR_LEAST 0.01
/* Good experience with sharing says less of what comes next. */
#define SHARED_DOUBT_LEAST 0.05
#define COW_BREAKS_LEAST 0.01
/* The usual error is exceeded every other time; a published bound should not
 * be. */
#define DOUBTS_PUBLISHED 2
/* The next reading can be farther off than the worst of late. */
#define WORST_PUBLISHED 1.5

/* Memory goes to swap where resident memory goes, and comes back from there. A
 * process that had none at its reading and has not shrunk is taken to have
 * none, since status costs as much as statm again. */
static bool may_have_swap(const struct circumstances *c,
                          const struct process *p) {
  return p->reading.kb[ROLLUP_SWAP] > 0 ||
         (c->is_swap_used &&
          p->statm.resident_pages < p->reading.resident_pages);
}

static uint32_t read_swap_kb(const struct circumstances *c,
                             const struct process *p) {
  struct status_sample s;
  struct span text;

  if (may_have_swap(c, p) &&
      procfs_read_of(c->procfs, p->pid, "status", &text) == 0 &&
      status_parse(text.text, text.len, &s) == 0 && (s.known & STATUS_VM_SWAP))
    return (uint32_t)(s.vm_swap_bytes / 1024);
  return p->reading.is_swap_used && !c->is_swap_used ? 0
                                                     : p->reading.vm_swap_kb;
}

static uint64_t broken_by_relatives(const struct process *p) {
  int64_t more =
      p->family ? (int64_t)(p->family->broken_share - p->family_broken) : 0;
  uint64_t bytes = amount_from((double)more / BROKEN_UNITS);
  uint64_t most = reading_cow_bytes(&p->reading);

  return bytes < most ? bytes : most;
}

static double at_least(double x, double least) { return x > least ? x : least; }

static struct evidence evidence_of(const struct circumstances *c,
                                   const struct process *p) {
  struct evidence e = {.now_ns = c->now_ns,
                       .page_size = c->page_size,
                       .statm = p->statm,
                       .minor_faults = p->minor_faults,
                       .vm_swap_kb = p->vm_swap_kb,
                       .relatives = family_size(p),
                       .relatives_moved = (double)p->relatives_moved,
                       .cow_breaks = p->family ? p->family->cow_breaks : 1,
                       .cow_doubt = p->family ? p->family->cow_error : 1,
                       .shared_cost = 1,
                       .is_swap_used = c->is_swap_used,
                       .is_ksm_merged = p->reading.at_ns < c->ksm_merged_ns,
                       .is_ksm_split = p->reading.at_ns < c->ksm_changed_ns};
  struct sharing *sharing = process_sharing(p);

  if (!p->reading.at_ns || !sharing)
    return e;
  e.broken_by_relatives = broken_by_relatives(p);
  e.is_of_shmem = sharing->is_shmem;
  e.shared_cost = p->since.cost;
  e.shared_moved = p->since.moved;
  experience_conclude(&sharing->experience, c->now_ns);
  e.shared_doubt = at_least(sharing->experience.error, SHARED_DOUBT_LEAST);
  if (!p->family)
    return e;
  experience_conclude(&p->family->experience, c->now_ns);
  e.relatives_doubt = p->family->experience.error;
  return e;
}

/* Pages that a member has of files and shmem, but for those that were its own
 * at the last reading. */
static uint64_t shared_pages(const struct circumstances *c,
                             const struct process *p) {
  uint64_t own = p->reading.at_ns
                     ? reading_private_file_bytes(&p->reading) / c->page_size
                     : 0;

  return p->statm.shared_pages > own ? p->statm.shared_pages - own : 0;
}

void follow_count(const struct circumstances *c, struct process *p) {
  uint64_t pages = shared_pages(c, p);

  sharing_count(process_sharing(p), c->now_ns, pages, p->shared_pages);
  p->shared_pages = (uint32_t)pages;
}

void follow_set(struct process *p) {
  const struct sharing *sharing = process_sharing(p);

  if (p->reading.at_ns && sharing)
    sharing_advance(sharing, &p->since);
}

/* A page that one of n breaks out costs the others what it paid for it: a part
 * of n - 1 of its own part of n. */
static void tell_relatives(struct process *p, uint64_t broken) {
  double n = p->family ? (double)p->family->members : 1;
  double more = (double)broken - (double)p->broken;

  if (n > 1) {
    uint64_t share =
        (uint64_t)amount_change_from(more * BROKEN_UNITS / (n * (n - 1)));

    p->family->broken_share += share;
    p->family_broken += share; /* which it does not pay itself */
  }
  p->broken = (float)broken;
}

void follow_look(const struct circumstances *c, struct process *p) {
  struct evidence e;

  if (!p->reading.at_ns)
    return;
  p->vm_swap_kb = read_swap_kb(c, p);
  e = evidence_of(c, p);
  p->relatives_moved = (float)estimate_relatives_moved(&p->reading, &e);
  tell_relatives(p, estimate_broken(&p->reading, &e));
}

uint64_t follow_doubt(const struct circumstances *c, const struct process *p) {
  uint64_t resident = p->statm.resident_pages * c->page_size;
  struct evidence e = evidence_of(c, p);
  uint64_t doubt;

  if (!p->reading.at_ns)
    return resident;
  doubt = estimate_doubt(&p->reading, &e) + amount_from((double)p->unsure);
  return doubt < resident ? doubt : resident;
}

/* statm itself may be off: a process of a few pages not by as much as the large
 * one that was seen to be, since it has had no more pages to lose count of. */
#define IMPRECISE_PART 4

static uint64_t imprecision(const struct circumstances *c,
                            const struct process *p) {
  uint64_t most = p->statm.resident_pages / IMPRECISE_PART;
  uint64_t pages =
      precision_pages(&c->precision, p->threads, p->reading.off_pages);

  if (most < 2 * (uint64_t)p->reading.off_pages)
    most = 2 * (uint64_t)p->reading.off_pages;
  return (pages < most ? pages : most) * c->page_size;
}

uint64_t follow_error(const struct circumstances *c, const struct process *p) {
  struct sharing *sharing = process_sharing(p);
  struct evidence e = evidence_of(c, p);
  uint64_t usual = amount_from(DOUBTS_PUBLISHED * (double)p->doubt);
  uint64_t worst = 0;

  if (sharing) {
    e.shared_doubt = sharing->experience.worst;
    e.relatives_doubt = p->family ? p->family->experience.worst : 0;
    worst =
        amount_from(WORST_PUBLISHED * (double)estimate_doubt(&p->reading, &e));
  }
  return (usual > worst ? usual : worst) + imprecision(c, p);
}

void follow_estimate(const struct circumstances *c, const struct process *p,
                     struct rollup *ret) {
  struct evidence e = evidence_of(c, p);

  estimate_rollup(&p->reading, &e, ret);
}

static double clamp(double x, double least, double most) {
  return x < least ? least : x > most ? most : x;
}

/* What the faults since the last reading really were. */
static void learn_of_faults(struct family *family, const struct process *p,
                            const struct rollup *expected,
                            const struct rollup *rollup) {
  double more, error, ratio, rate;

  if (!family || p->broken < (float)LEARN_LEAST_BYTES)
    return;
  more = (double)(rollup->bytes[ROLLUP_PRIVATE_CLEAN] +
                  rollup->bytes[ROLLUP_PRIVATE_DIRTY]) -
         (double)(expected->bytes[ROLLUP_PRIVATE_CLEAN] +
                  expected->bytes[ROLLUP_PRIVATE_DIRTY]);
  error = more / (double)p->broken;
  ratio = clamp(family->cow_breaks * (1 + error), COW_BREAKS_LEAST, 1);
  error = clamp(error < 0 ? -error : error, COW_ERROR_LEAST, 1);
  rate = (double)p->broken / ((double)p->broken + LEARN_WELL_BYTES);
  family->cow_breaks += (ratio - family->cow_breaks) * rate;
  family->cow_error += (error - family->cow_error) * rate;
}

/* What the pages cost that are not anonymous, by what we thought. */
static void learn_of_sharing(const struct process *p, const struct evidence *e,
                             const struct rollup *expected,
                             const struct rollup *rollup) {
  double before = (double)p->reading.shared_pages;
  double now = (double)e->statm.shared_pages;
  double own = now > before ? now - before : before - now;
  double most = now > before ? now : before;
  struct sharing_lesson lesson = {
      .expected =
          (double)estimate_shared_pss(&p->reading, expected, e->is_of_shmem),
      .found = (double)estimate_shared_pss(&p->reading, rollup, e->is_of_shmem),
      .doubted = (double)estimate_shared_doubt(&p->reading, e),
      .moved = e->shared_moved + (most > 0 ? own / most : 0)};

  if (lesson.expected < LEARN_LEAST_BYTES ||
      !rollup_has(rollup, ROLLUP_PSS_FILE))
    return;
  sharing_learn(process_sharing(p), &lesson);
}

/* What came of relatives that came or went. */
static void learn_of_relatives(const struct circumstances *c,
                               const struct process *p,
                               const struct evidence *e,
                               const struct rollup *expected,
                               const struct rollup *rollup) {
  double doubted = (double)estimate_relatives_doubt(&p->reading, e);

  if (p->family && doubted > 0)
    experience_add(&p->family->experience, c->now_ns,
                   (double)rollup->bytes[ROLLUP_PSS_ANON] -
                       (double)expected->bytes[ROLLUP_PSS_ANON],
                   doubted);
}

void follow_learn(const struct circumstances *c, const struct process *p,
                  const struct rollup *rollup) {
  struct evidence e = evidence_of(c, p);
  struct rollup expected;

  estimate_rollup(&p->reading, &e, &expected);
  learn_of_faults(p->family, p, &expected, rollup);
  learn_of_sharing(p, &e, &expected, rollup);
  learn_of_relatives(c, p, &e, &expected, rollup);
}

/* The pages that turn out to be its own now were counted as shared. */
static void correct_count(const struct circumstances *c, struct process *p) {
  uint32_t counted = p->shared_pages;

  p->shared_pages = (uint32_t)shared_pages(c, p);
  sharing_correct(process_sharing(p),
                  (double)p->shared_pages - (double)counted);
}

void follow_from(const struct circumstances *c, struct process *p,
                 const struct rollup_reading *read) {
  const struct rollup *rollup = &read->rollup;
  struct evidence e;

  if (read->faults_after)
    p->minor_faults = read->faults_after;
  p->vm_swap_kb = 0;
  e = evidence_of(c, p);
  if (read->has_statm)
    e.statm = read->statm;
  if (!reading_take(&p->reading, rollup, &e))
    return;
  p->vm_swap_kb = read_swap_kb(c, p);
  p->reading.vm_swap_kb = p->vm_swap_kb;
  p->family_broken = p->family ? p->family->broken_share : 0;
  p->broken = p->relatives_moved = 0;
  p->unsure = read->faults_before && read->faults_after
                  ? (float)(read->faults_after - read->faults_before) *
                        (float)c->page_size
                  : 0;
  p->since = SHARING_JUST_READ;
  sharing_see_kind(process_sharing(p), rollup->bytes[ROLLUP_PSS_FILE],
                   rollup->bytes[ROLLUP_PSS_SHMEM]);
  correct_count(c, p);
}

void follow_others(struct process *p) {
  const struct sharing *sharing = process_sharing(p);

  if (p->reading.at_ns && sharing)
    sharing_take_lessons(sharing, &p->since);
}
