#include "schedule/price.h"

#include "base/arith.h"
#include "process/back_off.h"

/* On processors of the 2020s, with caches warm or cold. */
#define WALK_LEAST_NS 5000
#define PAGE_NS 12
#define PAGE_NS_MOST 120       /* more than that is the price of page tables */
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
static uint64_t price(uint64_t n, uint64_t ns) {
  return (uint64_t)amount_narrow(n) * ns;
}

uint64_t read_cost_guess_ns(const struct walk *w, uint32_t page_ns) {
  return WALK_LEAST_NS + price(w->resident, max(page_ns, PAGE_NS)) +
         price(w->swapped, SWAPPED_PAGE_NS) + price(w->tables, TABLE_NS);
}

/* The walk asks each page that a fork shares how often it is mapped. */
static uint64_t with_sharing(const struct read_cost *c,
                             const struct walk *now) {
  uint64_t ns = c->ns;

  if (now->relatives <= c->relatives || c->pages < LESSON_LEAST_PAGES)
    return ns;
  return ns + price(c->huge, SHARED_HUGE_PAGE_NS) +
         (c->relatives < 2 ? ns / 2 : 0);
}

uint32_t read_cost_predict(const struct read_cost *c, const struct walk *now) {
  uint64_t ns = amount_narrow(with_sharing(c, now)), scaled;

  if (ns == 0)
    return WALK_LEAST_NS;
  if (c->pages == 0)
    return c->ns;
  scaled = ns * amount_narrow(now->resident + now->swapped) / c->pages;
  return amount_narrow(max(scaled, max(ns / EMPTY_PART, WALK_LEAST_NS)));
}

static void set_price(struct read_cost *c, uint64_t ns, const struct walk *w) {
  c->ns = amount_narrow(ns);
  c->pages = amount_narrow(w->resident + w->swapped);
  c->swapped = amount_narrow(w->swapped);
  c->huge = amount_narrow(w->huge);
  c->relatives = w->relatives;
}

static void set_next_try(struct read_cost *c, const struct policy *p,
                         uint64_t now_ns) {
  uint64_t first_ns = min(p->max_age_ns, COST_TEST_FIRST_NS);

  c->next_try_s = seconds_from(
      now_ns + back_off_length(first_ns, COST_TEST_MAX_NS, c->too_long));
}

bool price_fits(uint64_t ns, const struct policy *p) {
  return ns + ns / SPREAD_PART <= p->max_lock_hold_ns;
}

bool read_cost_apply_guess(struct read_cost *c, const struct walk *guess,
                           const struct policy *p, uint64_t now_ns) {
  bool is_affordable = price_fits(guess->ns, p);

  if (is_affordable || !c->is_learnt)
    set_price(c, guess->ns, guess);
  if (!is_affordable)
    set_next_try(c, p, now_ns);
  return is_affordable;
}

void read_cost_refine(struct read_cost *c, struct walk guess,
                      const struct policy *p, uint64_t now_ns) {
  /* (Before Linux 6.7 the sample knows none.) */
  guess.huge = max(guess.huge, min(c->huge, guess.resident));
  /* No page of a sample is in an empty page table. */
  guess.ns = max(amount_narrow(guess.ns), WALK_LEAST_NS) +
             price(guess.swapped, SWAPPED_PAGE_NS) +
             price(guess.tables, TABLE_NS);
  if (guess.relatives > 1)
    guess.ns += price(guess.huge, SHARED_HUGE_PAGE_NS);
  guess.ns += guess.ns / 2 * c->too_long;
  if (c->pages > 0)
    read_cost_apply_guess(c, &guess, p, now_ns);
}

uint32_t read_cost_mappings_most(const struct read_cost *c,
                                 const struct policy *p, uint64_t possible) {
  uint64_t left_ns = p->max_lock_hold_ns - min(c->ns, p->max_lock_hold_ns);
  uint64_t n = max(left_ns / MAPPING_NS, 1);

  if (c->is_learnt || possible < MAPPINGS_LEAST || n >= possible)
    return 0;
  return amount_narrow(n);
}

void read_cost_refuse(struct read_cost *c, const struct policy *p,
                      uint64_t now_ns) {
  c->ns = amount_narrow(max(p->max_lock_hold_ns + 1, c->ns));
  c->pages = 0; /* whatever is resident */
  if (c->too_long < UINT8_MAX)
    c->too_long++;
  set_next_try(c, p, now_ns);
}

void read_cost_learn(struct read_cost *c, const struct walk *w,
                     const struct policy *p, uint64_t now_ns) {
  uint64_t ns = read_cost_predict(c, w);

  ns = w->ns < p->max_lock_hold_ns / NEAR_PART ? min(w->ns, 2 * max(c->ns, ns))
                                               : w->ns;
  if (ns <= p->max_lock_hold_ns)
    c->too_long = 0;
  else if (c->too_long < UINT8_MAX)
    c->too_long++;
  set_price(c, max(ns, 1), w); /* 0 would be none */
  c->is_learnt = true;
  set_next_try(c, p, now_ns);
}

/* --- of a process --- */

struct walk price_walk(const struct cycle *cycle, const struct process *p) {
  const struct track *t = &p->member->track;

  return (struct walk){.resident = p->statm.resident_pages,
                       .swapped = track_has_baseline(t)
                                      ? t->now.vm_swap_kb * UINT64_C(1024) /
                                            cycle->page_size
                                      : p->member->cost.swapped,
                       .relatives = fork_family_size(t)};
}

struct walk price_guess(const struct cycle *cycle, const struct process *p) {
  struct walk w = price_walk(cycle, p);
  struct status_sample s;

  w.swapped = 0;
  if (p->statm.size_pages >= TABLES_WORTH_ASKING_PAGES &&
      member_read_status(cycle->procfs, p, &s)) {
    w.swapped = s.vm_swap_bytes / cycle->page_size;
    w.tables = s.vm_pte_bytes / cycle->page_size;
  }
  /* A high guess would keep what cannot be sampled from ever being read. */
  w.ns = read_cost_guess_ns(
      &w, sampling_is_refused(p->member->sampling) ? 0 : cycle->page_ns);
  return w;
}

uint32_t price_ns(const struct cycle *cycle, const struct process *p) {
  struct walk w = price_walk(cycle, p);

  return read_cost_predict(&p->member->cost, &w);
}

uint64_t price_known_ns(const struct cycle *cycle, const struct process *p) {
  return p->member && p->member->cost.ns ? price_ns(cycle, p) : 0;
}

bool price_is_too_large(const struct cycle *cycle, const struct process *p) {
  uint64_t ns =
      p->member->cost.ns ? price_ns(cycle, p) : price_guess(cycle, p).ns;
  struct policy policy = member_policy(p);

  return !price_fits(ns, &policy);
}

bool price_is_unsure(const struct process *p) {
  const struct read_cost *cost = &p->member->cost;

  return !cost->is_learnt ||
         fork_family_size(&p->member->track) > cost->relatives;
}

static bool has_price_of_relatives(const struct track *t) {
  return t->family && t->family->cost.pages >= LESSON_LEAST_PAGES;
}

/* A process has the price of its relatives until a walk has shown its own,
 * among as many relatives as they have. */
static void adopt_price_of_relatives(struct process *p) {
  const struct track *t = &p->member->track;
  struct read_cost *cost = &p->member->cost;

  if (!has_price_of_relatives(t) || t->is_sampled || cost->too_long > 0 ||
      (cost->is_learnt && t->family->cost.relatives <= cost->relatives))
    return;
  *cost = t->family->cost;
  cost->is_learnt = false;
}

/* True if samples, not a guess, show when the price is no longer too high. */
static bool is_priced_by_samples(const struct process *p) {
  const struct track *t = &p->member->track;
  const struct read_cost *cost = &p->member->cost;

  return cost->pages > 0 &&
         (cost->is_learnt || has_price_of_relatives(t) || t->is_sampled) &&
         !sampling_is_refused(p->member->sampling);
}

bool price_update(const struct cycle *cycle, struct process *p,
                  const struct policy *policy) {
  struct read_cost *cost = &p->member->cost;
  struct walk guess;

  adopt_price_of_relatives(p);
  if (cost->ns && price_fits(price_ns(cycle, p), policy))
    return true;
  if (is_priced_by_samples(p) || cycle->now_ns < cost->next_try_s * NS_PER_S)
    return false;
  guess = price_guess(cycle, p);
  return read_cost_apply_guess(cost, &guess, policy, cycle->now_ns);
}

/* The family keeps the price of its largest member, or of one that is dearer
 * for its size, for its next members. Guesses for other processes take the time
 * of a page from the dearest of the last few walks. */
void price_learn(struct cycle *cycle, struct process *p,
                 const struct policy *policy, const struct walk *w) {
  struct fork_family *family = p->member->track.family;
  struct read_cost *c = &p->member->cost;
  uint64_t small = minus(w->resident + w->swapped, w->huge);
  uint32_t kept = cycle->page_ns - cycle->page_ns / LESSONS_KEPT;

  read_cost_learn(c, w, policy, cycle->now_ns);
  if (small > w->huge && small >= LESSON_LEAST_PAGES)
    cycle->page_ns = (uint32_t)max(min(w->ns / small, PAGE_NS_MOST), kept);
  if (family && (c->pages >= family->cost.pages ||
                 c->ns >= read_cost_predict(&family->cost, w)))
    family->cost = *c;
}
