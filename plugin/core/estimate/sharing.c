#include "estimate/sharing.h"

#include "proc/arith.h"
#include "proc/rule.h"

/* Between two readings a page does not become dearer or cheaper by more: a
 * million members would have to come or go. */
#define COST_MOST 1e6

static double distance(double a, double b) { return a > b ? a - b : b - a; }

void sharing_init(struct sharing *s, uint64_t pages) {
  double n = (double)pages;

  *s = (struct sharing){.now = n, .before = n, .left = n, .grown = n};
}

void sharing_count(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before) {
  if (s->cycle_ns != cycle_ns) {
    s->cycle_ns = cycle_ns;
    s->before = s->now;
    s->left = s->grown = s->now = s->shifted = 0;
  }
  s->now += (double)pages;
  if (before == 0)
    return;
  s->left += (double)before;
  s->grown += (double)pages;
  s->shifted += distance((double)pages, (double)before);
}

void sharing_admit(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before) {
  sharing_count(s, cycle_ns, pages, before);
  s->before += (double)before;
}

void sharing_correct(struct sharing *s, double pages) {
  if (RULE(correct_count))
    s->now += pages;
}

bool sharing_has_lost(const struct sharing *s) { return s->left < s->before; }

/* The pages that members map are taken to be the same as before: the more often
 * they are mapped, the less each of them costs. */
double sharing_change(const struct sharing *s) {
  return s->before > 0 && s->now > 0 ? s->before / s->now : 1;
}

void sharing_advance(const struct sharing *s, struct sharing_since *since) {
  double most = s->before > s->now ? s->before : s->now;
  double moved =
      distance(s->before, s->left) + s->shifted + distance(s->grown, s->now);

  if (RULE(cost_by_mappers))
    since->cost = (float)clamp((double)since->cost * sharing_change(s),
                               1 / COST_MOST, COST_MOST);
  since->moved_pages += (float)moved;
  if (most > 0)
    since->moved = (float)clamp((double)since->moved + moved / most, 0, 1);
}
