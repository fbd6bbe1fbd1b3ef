#include <smaps/cost.h>

/* On processors of the 2020s, with caches warm or cold. */
#define WALK_LEAST_NS 5000
#define PAGE_NS 12
#define SWAPPED_PAGE_NS 20
#define TABLE_NS 470

static uint32_t narrow(uint64_t x) {
  return x < UINT32_MAX ? (uint32_t)x : UINT32_MAX;
}

/* The sum of three such products cannot overflow. */
static uint64_t price(uint64_t n, uint64_t ns) {
  return (uint64_t)narrow(n) * ns;
}

struct cost cost_guess(const struct cost_basis *b) {
  return (struct cost){.ns =
                           narrow(WALK_LEAST_NS + price(b->resident, PAGE_NS) +
                                  price(b->swapped, SWAPPED_PAGE_NS) +
                                  price(b->tables, TABLE_NS)),
                       .pages = narrow(b->resident)};
}

uint32_t cost_predict(const struct cost *c, uint64_t resident_pages) {
  if (c->ns == 0)
    return WALK_LEAST_NS;
  if (resident_pages <= c->pages || c->pages == 0)
    return c->ns;
  return narrow((uint64_t)c->ns * narrow(resident_pages) / c->pages);
}

void cost_learn(struct cost *c, uint64_t took_ns, uint64_t resident_pages) {
  uint64_t most = UINT64_C(2) * cost_predict(c, resident_pages);

  *c = (struct cost){.ns = narrow(took_ns < most ? took_ns : most),
                     .pages = narrow(resident_pages)};
}
