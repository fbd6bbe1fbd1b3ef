#include "cause.h"

/* Smaller parts of the error are left out, and errors that are less of PSS. */
#define LEAST_PART 0.1
#define LEAST_ERROR 0.001

#define ROW(name, words) {#name, words, 0},
static const struct cause_part table[CAUSES] = {CAUSE_TABLE(ROW)};

/* Equal parts stay in the order of the table. */
static void insert(struct cause_part *parts, size_t n, struct cause_part part) {
  for (; n > 0 && parts[n - 1].bytes < part.bytes; n--)
    parts[n] = parts[n - 1];
  parts[n] = part;
}

static bool is_worth_showing(const struct group *g) {
  uint64_t pss = amounts_get(&g->amounts, AMOUNT_PSS);

  return g->pss_error_by && g->pss_error != UNKNOWN && pss != UNKNOWN &&
         pss > 0 && (double)g->pss_error >= LEAST_ERROR * (double)pss;
}

size_t cause_list(const struct group *g, struct cause_part ret[CAUSES]) {
  size_t n = 0;

  if (!is_worth_showing(g))
    return 0;
  for (int i = 0; i < CAUSES; i++) {
    struct cause_part part = table[i];

    part.bytes = g->pss_error_by->bytes[i];
    if ((double)part.bytes >= LEAST_PART * (double)g->pss_error)
      insert(ret, n++, part);
  }
  return n;
}

void cause_add_percent(struct text *t, const struct group *g, uint64_t bytes) {
  double pss = (double)amounts_get(&g->amounts, AMOUNT_PSS);
  double percent = 100 * (double)bytes / pss;

  text_addf(t, "%.*f %%", percent < 9.95 ? 1 : 0, percent);
}
