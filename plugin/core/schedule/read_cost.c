#include "schedule/read_cost.h"

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

bool read_cost_may_try(const struct read_cost *c, uint64_t now_ns) {
  return now_ns >= c->next_try_s * NS_PER_S;
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

static uint64_t test_after_ns(const struct read_cost *c,
                              const struct policy *p) {
  uint64_t wait_ns = first_wait_ns(p);

  for (unsigned i = 0; i < c->failed_tests && wait_ns < COST_TEST_MAX_NS; i++)
    wait_ns *= 2;
  return min(wait_ns, COST_TEST_MAX_NS);
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
  c->next_try_s = seconds_from(now_ns + test_after_ns(c, p));
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
  c->next_try_s = seconds_from(now_ns + test_after_ns(c, p));
}
