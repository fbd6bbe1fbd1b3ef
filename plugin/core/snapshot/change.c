#include "snapshot/change.h"

#include <stdlib.h>
#include <string.h>

#include "proc/duration.h"

bool change_pss(const struct usage *u, uint32_t kernel_fields,
                uint64_t *ret_bytes) {
  unsigned cursor = 0;
  const char *name;
  uint64_t bytes;

  while (metric_next_amount(u, kernel_fields, &cursor, &name, &bytes))
    if (strcmp(name, "pss") == 0) {
      *ret_bytes = bytes;
      return true;
    }
  return false;
}

static bool is_due(const struct pss_history *h, uint64_t now_ns) {
  return h->n == 0 ||
         now_ns - h->samples[h->n - 1].time_ns >= PSS_HISTORY_STEP_NS;
}

static void add_sample(struct pss_history *h, uint64_t now_ns,
                       uint64_t pss_bytes) {
  if (h->n == PSS_HISTORY_SAMPLES) {
    h->n--;
    memmove(&h->samples[0], &h->samples[1], h->n * sizeof(*h->samples));
  }
  h->samples[h->n++] =
      (struct pss_sample){.time_ns = now_ns, .pss_bytes = pss_bytes};
}

/* True if a member that will be read is guessed now: its first reading corrects
 * that, and is not a change. */
static bool has_guess_for_now(const struct usage *u) {
  return u->unmeasured > u->unreadable + u->unasked;
}

static void note(struct group *g, uint32_t kernel_fields, uint64_t now_ns) {
  uint64_t pss_bytes;

  if ((g->history && !is_due(g->history, now_ns)) ||
      has_guess_for_now(&g->usage) ||
      !change_pss(&g->usage, kernel_fields, &pss_bytes))
    return;
  if (!g->history)
    g->history = calloc(1, sizeof(*g->history));
  if (g->history)
    add_sample(g->history, now_ns, pss_bytes);
}

void change_note(const struct group_table *groups, uint32_t kernel_fields,
                 uint64_t now_ns) {
  for (size_t i = 0; i < groups->n; i++)
    note(groups->groups[i], kernel_fields, now_ns);
}

struct pss_change change_get(const struct group *g, uint64_t pss_bytes,
                             uint64_t now_ns) {
  const struct pss_sample *first = g->history ? g->history->samples : NULL;

  if (!first || now_ns - first->time_ns < NS_PER_S)
    return (struct pss_change){.age_ns = 0};
  return (struct pss_change){.bytes = (int64_t)(pss_bytes - first->pss_bytes),
                             .age_ns = now_ns - first->time_ns};
}
