/* SPDX-License-Identifier: MIT */
#include "schedule/read_time.h"

#include "base/arith.h"
#include "process/back_off.h"

/* On processors of the 2020s, with caches warm or cold. */
#define WALK_LEAST_NS 5000
#define PAGE_NS 12
#define PAGE_NS_MOST 120 /* more than that is the read time of page tables */
#define SHARED_HUGE_PAGE_NS 10 /* that a fork shares, for each of its pages */
#define SWAPPED_PAGE_NS 20
#define TABLE_NS 470
#define MAPPING_NS 330
/* So many mappings are walked in 5 ms; fewer need not be counted. */
#define MAPPINGS_LEAST 16384

/* Walking an empty page table takes TABLE_NS, which is about this fraction of
 * the time for a full one. */
#define EMPTY_PART 8

/* A walk takes up to this part more than the last one of the same pages. */
#define SPREAD_PART 4
/* A walk that takes this part of MaxLockHold counts as it is. */
#define NEAR_PART 8
/* Of smaller walks the mappings are a large part. */
#define LESSON_LEAST_PAGES 4096
#define LESSONS_KEPT 8

/* The page tables of smaller processes make no difference. */
#define TABLES_WORTH_ASKING_PAGES (UINT64_C(64) << 20 >> 12)

/* --- a walk by itself --- */

/* The sum of three such products cannot overflow. */
static uint64_t time_of(uint64_t n, uint64_t ns) {
  return (uint64_t)amount_narrow(n) * ns;
}

uint64_t read_time_guess_ns(const struct walk *w, uint32_t page_ns) {
  return WALK_LEAST_NS + time_of(w->resident, max(page_ns, PAGE_NS)) +
         time_of(w->swapped, SWAPPED_PAGE_NS) + time_of(w->tables, TABLE_NS);
}

/* The walk asks each page that a fork shares how often it is mapped. */
static uint64_t with_sharing(const struct read_time *c,
                             const struct walk *now) {
  uint64_t ns = c->ns;

  if (now->relatives <= c->relatives || c->pages < LESSON_LEAST_PAGES)
    return ns;
  return ns + time_of(c->huge, SHARED_HUGE_PAGE_NS) +
         (c->relatives < 2 ? ns / 2 : 0);
}

uint32_t read_time_predict(const struct read_time *c, const struct walk *now) {
  uint64_t ns = amount_narrow(with_sharing(c, now)), scaled;

  if (ns == 0)
    return WALK_LEAST_NS;
  if (c->pages == 0)
    return c->ns;
  scaled = ns * amount_narrow(now->resident + now->swapped) / c->pages;
  return amount_narrow(max(scaled, max(ns / EMPTY_PART, WALK_LEAST_NS)));
}

static void set_time(struct read_time *c, uint64_t ns, const struct walk *w) {
  c->ns = amount_narrow(ns);
  c->pages = amount_narrow(w->resident + w->swapped);
  c->swapped = amount_narrow(w->swapped);
  c->huge = amount_narrow(w->huge);
  c->relatives = w->relatives;
}

static void set_next_try(struct read_time *c, const struct policy *p,
                         uint64_t now_ns) {
  uint64_t first_ns = min(p->max_age_ns, RETRY_FIRST_NS);

  c->next_try_s = seconds_from(
      now_ns + back_off_length(first_ns, RETRY_MOST_NS, c->too_long));
}

bool walk_time_fits(uint64_t ns, const struct policy *p) {
  return ns + ns / SPREAD_PART <= p->max_lock_hold_ns;
}

bool read_time_apply_guess(struct read_time *c, const struct walk *guess,
                           const struct policy *p, uint64_t now_ns) {
  bool is_affordable = walk_time_fits(guess->ns, p);

  if (is_affordable || !c->is_learnt)
    set_time(c, guess->ns, guess);
  if (!is_affordable)
    set_next_try(c, p, now_ns);
  return is_affordable;
}

void read_time_refine(struct read_time *c, struct walk guess,
                      const struct policy *p, uint64_t now_ns) {
  /* (Before Linux 6.7 the sample knows none.) */
  guess.huge = max(guess.huge, min(c->huge, guess.resident));
  /* No page of a sample is in an empty page table. */
  guess.ns = max(amount_narrow(guess.ns), WALK_LEAST_NS) +
             time_of(guess.swapped, SWAPPED_PAGE_NS) +
             time_of(guess.tables, TABLE_NS);
  if (guess.relatives > 1)
    guess.ns += time_of(guess.huge, SHARED_HUGE_PAGE_NS);
  guess.ns += guess.ns / 2 * c->too_long;
  if (c->pages > 0)
    read_time_apply_guess(c, &guess, p, now_ns);
}

uint32_t read_time_mappings_most(const struct read_time *c,
                                 const struct policy *p, uint64_t possible) {
  uint64_t left_ns = p->max_lock_hold_ns - min(c->ns, p->max_lock_hold_ns);
  uint64_t n = max(left_ns / MAPPING_NS, 1);

  if (c->is_learnt || possible < MAPPINGS_LEAST || n >= possible)
    return 0;
  return amount_narrow(n);
}

void read_time_refuse(struct read_time *c, const struct policy *p,
                      uint64_t now_ns) {
  c->ns = amount_narrow(max(p->max_lock_hold_ns + 1, c->ns));
  c->pages = 0; /* whatever is resident */
  if (c->too_long < UINT8_MAX)
    c->too_long++;
  set_next_try(c, p, now_ns);
}

void read_time_learn(struct read_time *c, const struct walk *w,
                     const struct policy *p, uint64_t now_ns) {
  uint64_t ns = read_time_predict(c, w);

  ns = w->ns < p->max_lock_hold_ns / NEAR_PART ? min(w->ns, 2 * max(c->ns, ns))
                                               : w->ns;
  if (ns <= p->max_lock_hold_ns)
    c->too_long = 0;
  else if (c->too_long < UINT8_MAX)
    c->too_long++;
  set_time(c, max(ns, 1), w); /* 0 would be none */
  c->is_learnt = true;
  set_next_try(c, p, now_ns);
}

/* --- of a process --- */

struct walk walk_now(const struct cycle *cycle, const struct process *p) {
  const struct track *t = &p->member->track;

  return (struct walk){.resident = p->statm.resident_pages,
                       .swapped = track_has_baseline(t)
                                      ? t->now.vm_swap_kb * UINT64_C(1024) /
                                            cycle->page_size
                                      : p->member->read_time.swapped,
                       .relatives = fork_family_size(t)};
}

struct walk walk_guess(const struct cycle *cycle, const struct process *p) {
  struct walk w = walk_now(cycle, p);
  struct status_sample s;

  w.swapped = 0;
  if (p->statm.size_pages >= TABLES_WORTH_ASKING_PAGES &&
      member_read_status(cycle->procfs, p, &s)) {
    w.swapped = s.vm_swap_bytes / cycle->page_size;
    w.tables = s.vm_pte_bytes / cycle->page_size;
  }
  /* A high guess would keep what cannot be sampled from ever being read. */
  w.ns = read_time_guess_ns(
      &w, sampling_is_refused(p->member->sampling) ? 0 : cycle->page_ns);
  return w;
}

uint32_t walk_time_ns(const struct cycle *cycle, const struct process *p) {
  struct walk w = walk_now(cycle, p);

  return read_time_predict(&p->member->read_time, &w);
}

uint64_t walk_time_known_ns(const struct cycle *cycle,
                            const struct process *p) {
  return p->member && p->member->read_time.ns ? walk_time_ns(cycle, p) : 0;
}

bool walk_is_too_long(const struct cycle *cycle, const struct process *p) {
  uint64_t ns = p->member->read_time.ns ? walk_time_ns(cycle, p)
                                        : walk_guess(cycle, p).ns;
  struct policy policy = member_policy(p);

  return !walk_time_fits(ns, &policy);
}

bool walk_time_is_unsure(const struct process *p) {
  const struct read_time *known = &p->member->read_time;

  return !known->is_learnt ||
         fork_family_size(&p->member->track) > known->relatives;
}

static bool has_time_of_relatives(const struct track *t) {
  return t->family && t->family->read_time.pages >= LESSON_LEAST_PAGES;
}

/* A process has the read time of its relatives until a walk has shown its own,
 * among as many relatives as they have. */
static void adopt_time_of_relatives(struct process *p) {
  const struct track *t = &p->member->track;
  struct read_time *known = &p->member->read_time;

  if (!has_time_of_relatives(t) || t->is_sampled || known->too_long > 0 ||
      (known->is_learnt && t->family->read_time.relatives <= known->relatives))
    return;
  *known = t->family->read_time;
  known->is_learnt = false;
}

/* True if samples, not a guess, show when the read time is no longer too high.
 */
static bool is_timed_by_samples(const struct process *p) {
  const struct track *t = &p->member->track;
  const struct read_time *known = &p->member->read_time;

  return known->pages > 0 &&
         (known->is_learnt || has_time_of_relatives(t) || t->is_sampled) &&
         !sampling_is_refused(p->member->sampling);
}

bool walk_time_update(const struct cycle *cycle, struct process *p,
                      const struct policy *policy) {
  struct read_time *known = &p->member->read_time;
  struct walk guess;

  adopt_time_of_relatives(p);
  if (known->ns && walk_time_fits(walk_time_ns(cycle, p), policy))
    return true;
  if (is_timed_by_samples(p) || cycle->now_ns < known->next_try_s * NS_PER_S)
    return false;
  guess = walk_guess(cycle, p);
  return read_time_apply_guess(known, &guess, policy, cycle->now_ns);
}

/* The family keeps the read time of its largest member, or of one that is
 * dearer for its size, for its next members. Guesses for other processes take
 * the time of a page from the dearest of the last few walks. */
void walk_time_learn(struct cycle *cycle, struct process *p,
                     const struct policy *policy, const struct walk *w) {
  struct fork_family *family = p->member->track.family;
  struct read_time *c = &p->member->read_time;
  uint64_t small = minus(w->resident + w->swapped, w->huge);
  uint32_t kept = cycle->page_ns - cycle->page_ns / LESSONS_KEPT;

  read_time_learn(c, w, policy, cycle->now_ns);
  if (small > w->huge && small >= LESSON_LEAST_PAGES)
    cycle->page_ns = (uint32_t)max(min(w->ns / small, PAGE_NS_MOST), kept);
  if (family && (c->pages >= family->read_time.pages ||
                 c->ns >= read_time_predict(&family->read_time, w)))
    family->read_time = *c;
}
