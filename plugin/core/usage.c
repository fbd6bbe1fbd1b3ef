#include <smaps/usage.h>

void usage_add_process(struct usage *u, uint32_t threads) {
  u->processes++;
  u->threads += threads;
}

void usage_add_statm(struct usage *u, const struct statm_sample *s,
                     uint64_t page_size) {
  u->size += s->size_pages * page_size;
  u->text += s->text_pages * page_size;
  u->data += s->data_pages * page_size;
  u->resident += s->resident_pages * page_size;
  u->resident_shared += s->shared_pages * page_size;
}

void usage_add_rollup(struct usage *u, const struct rollup *r,
                      uint64_t resident_bytes) {
  uint64_t rss = r->bytes[ROLLUP_RSS];
  uint64_t pss = r->bytes[ROLLUP_PSS];
  uint64_t uss =
      r->bytes[ROLLUP_PRIVATE_CLEAN] + r->bytes[ROLLUP_PRIVATE_DIRTY];

  if (uss > pss)
    uss = pss;
  u->uss += uss;
  u->shared += rss - uss;
  u->rollup.known = u->rolled_up ? u->rollup.known & r->known : r->known;
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    u->rollup.bytes[f] += r->bytes[f];
  u->rolled_up++;
  u->resident_rolled_up += resident_bytes;
}

bool usage_is_whole(const struct usage *u) { return u->unreadable == 0; }

double usage_coverage_percent(const struct usage *u) {
  if (usage_is_whole(u))
    return 100;
  if (u->resident == 0)
    return 0;
  /* Of members without a statm we know no size: they count by head. */
  return 100 * (double)u->resident_rolled_up / (double)u->resident *
         (double)(u->processes - u->unknown) / (double)u->processes;
}
