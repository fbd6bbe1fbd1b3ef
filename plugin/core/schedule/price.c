#include "schedule/price.h"

#include "proc/arith.h"

/* On processors of the 2020s, with caches warm or cold. */
#define WALK_LEAST_NS 5000
#define PAGE_NS 12
#define SWAPPED_PAGE_NS 20
#define TABLE_NS 470
#define MAPPING_NS 330
/* So many mappings are walked in 5 ms; fewer need not be counted. */
#define MAPPINGS_LEAST 16384

/* Walking an empty page table takes TABLE_NS, which is about this fraction of
 * the time for a full one. */
#define EMPTY_PART 8

/* The page tables of smaller processes make no difference. */
#define TABLES_WORTH_ASKING_PAGES (UINT64_C(64) << 20 >> 12)
/* Enough to make an hour of a second. */
#define DOUBLED_MOST 12

/* --- a walk by itself --- */

/* The sum of three such products cannot overflow. */
static uint64_t price(uint64_t n, uint64_t ns) {
  return (uint64_t)amount_narrow(n) * ns;
}

struct read_cost read_cost_guess(uint64_t resident, uint64_t swapped,
                                 uint64_t tables) {
  return (struct read_cost){
      .ns = amount_narrow(WALK_LEAST_NS + price(resident, PAGE_NS) +
                          price(swapped, SWAPPED_PAGE_NS) +
                          price(tables, TABLE_NS)),
      .pages = amount_narrow(resident + swapped),
      .swapped = amount_narrow(swapped)};
}

uint32_t read_cost_predict(const struct read_cost *c, uint64_t pages) {
  uint64_t scaled;

  if (c->ns == 0)
    return WALK_LEAST_NS;
  if (c->pages == 0)
    return c->ns;
  scaled = (uint64_t)c->ns * amount_narrow(pages) / c->pages;
  return amount_narrow(max(scaled, max(c->ns / EMPTY_PART, WALK_LEAST_NS)));
}

static void set_pages(struct read_cost *c, uint64_t resident,
                      uint64_t swapped) {
  c->pages = amount_narrow(resident + swapped);
  c->swapped = amount_narrow(swapped);
}

void read_cost_refine(struct read_cost *c, uint64_t ns, uint64_t resident,
                      uint64_t swapped) {
  if (c->is_learnt || c->pages == 0)
    return;
  c->ns = amount_narrow(max(amount_narrow(ns), WALK_LEAST_NS) +
                        price(swapped, SWAPPED_PAGE_NS));
  set_pages(c, resident, swapped);
}

static uint64_t first_wait_ns(const struct policy *p) {
  return min(p->max_age_ns, COST_TEST_FIRST_NS);
}

bool read_cost_apply_guess(struct read_cost *c, const struct read_cost *guess,
                           const struct policy *p, uint64_t now_ns) {
  if (!c->is_learnt) {
    c->ns = guess->ns;
    c->pages = guess->pages;
    c->swapped = guess->swapped;
  }
  if (guess->ns <= p->max_lock_hold_ns)
    return true;
  c->next_try_s = seconds_from(now_ns + first_wait_ns(p));
  return false;
}

static void set_next_try(struct read_cost *c, const struct policy *p,
                         uint64_t now_ns) {
  uint64_t wait_ns = first_wait_ns(p) << min(c->failed_tests, DOUBLED_MOST);

  c->next_try_s = seconds_from(now_ns + min(wait_ns, COST_TEST_MAX_NS));
}

static void count_test(struct read_cost *c, uint64_t took_ns, bool was_test,
                       const struct policy *p) {
  if (took_ns <= p->max_lock_hold_ns)
    c->failed_tests = 0;
  else if (was_test && c->failed_tests < UINT8_MAX)
    c->failed_tests++;
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
  if (c->failed_tests < UINT8_MAX)
    c->failed_tests++;
  set_next_try(c, p, now_ns);
}

void read_cost_learn(struct read_cost *c, uint64_t took_ns, uint64_t resident,
                     uint64_t swapped, const struct policy *p,
                     uint64_t now_ns) {
  uint32_t predicted_ns = read_cost_predict(c, resident + swapped);

  count_test(c, took_ns, c->is_learnt && predicted_ns > p->max_lock_hold_ns, p);
  took_ns = min(took_ns, UINT64_C(2) * max(c->ns, predicted_ns));
  c->ns = amount_narrow(max(took_ns, 1)); /* 0 would be none */
  set_pages(c, resident, swapped);
  c->is_learnt = true;
  set_next_try(c, p, now_ns);
}

/* --- of a process --- */

/* Guesses the price from files whose reading walks no page tables. */
static struct read_cost guess_of(const struct cycle *cycle,
                                 const struct process *p) {
  uint64_t swapped = 0, tables = 0;
  struct status_sample s;

  if (p->statm.size_pages >= TABLES_WORTH_ASKING_PAGES &&
      member_read_status(cycle->procfs, p, &s)) {
    swapped = s.vm_swap_bytes / cycle->page_size;
    tables = s.vm_pte_bytes / cycle->page_size;
  }
  return read_cost_guess(p->statm.resident_pages, swapped, tables);
}

uint64_t price_swapped_pages(const struct cycle *cycle,
                             const struct process *p) {
  if (!track_has_baseline(&p->member->track))
    return p->member->cost.swapped;
  return p->member->track.now.vm_swap_kb * UINT64_C(1024) / cycle->page_size;
}

uint32_t price_ns(const struct cycle *cycle, const struct process *p) {
  return read_cost_predict(&p->member->cost, p->statm.resident_pages +
                                                 price_swapped_pages(cycle, p));
}

uint64_t price_known_ns(const struct cycle *cycle, const struct process *p) {
  return p->member && p->member->cost.ns ? price_ns(cycle, p) : 0;
}

bool price_is_too_large(const struct cycle *cycle, const struct process *p) {
  uint64_t ns = p->member->cost.ns ? price_ns(cycle, p) : guess_of(cycle, p).ns;

  return ns > member_policy(p).max_lock_hold_ns;
}

/* True if the reading is cheap enough, or if it is time to try it again. */
bool price_is_affordable(const struct cycle *cycle, struct process *p,
                         const struct policy *policy) {
  struct read_cost *cost = &p->member->cost, guess;

  if (cost->ns && price_ns(cycle, p) <= policy->max_lock_hold_ns)
    return true;
  if (cycle->now_ns < cost->next_try_s * NS_PER_S)
    return false;
  guess = guess_of(cycle, p);
  return read_cost_apply_guess(cost, &guess, policy, cycle->now_ns);
}
