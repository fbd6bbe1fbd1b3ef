/* smaps_rollup in one text, and smaps in pieces. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/rollup.h"

static bool is_same(const struct rollup *a, const struct rollup *b) {
  return a->known == b->known &&
         memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static int parse(const char *text, size_t len, struct rollup *ret) {
  int rc;

  fuzz_taint(ret, sizeof(*ret));
  rc = rollup_parse(text, len, ret);
  require(rc == 0 || rc == -EBADMSG);
  if (rc != 0)
    fuzz_require_untouched(ret, sizeof(*ret));
  return rc;
}

static int finish(const struct rollup_sum *sum, struct rollup *ret) {
  int rc;

  fuzz_taint(ret, sizeof(*ret));
  rc = rollup_sum_finish(sum, ret);
  require(rc == 0 || rc == -EBADMSG);
  if (rc != 0)
    fuzz_require_untouched(ret, sizeof(*ret));
  return rc;
}

/* As in procfs, the rest of a piece is put before the next piece. */
static size_t feed_in_pieces(struct rollup_sum *sum, const char *text,
                             size_t len, size_t piece) {
  size_t start = 0, end = 0;

  while (end < len) {
    size_t used, room = len - end < piece ? len - end : piece;
    char *copy;

    end += room;
    copy = fuzz_copy((const uint8_t *)text + start, end - start);
    used = rollup_sum_feed(sum, copy, end - start);
    require(used <= end - start);
    require(used == 0 || copy[used - 1] == '\n');
    free(copy);
    start += used;
  }
  return start;
}

static void require_kernels_relations(const struct rollup *r) {
  uint64_t rss = r->bytes[ROLLUP_RSS];
  uint64_t sum = r->bytes[ROLLUP_SHARED_CLEAN] + r->bytes[ROLLUP_SHARED_DIRTY] +
                 r->bytes[ROLLUP_PRIVATE_CLEAN] +
                 r->bytes[ROLLUP_PRIVATE_DIRTY];

  require(rollup_has(r, ROLLUP_RSS) && rollup_has(r, ROLLUP_PSS));
  require(r->bytes[ROLLUP_PSS] <= rss);
  require(sum <= rss + 4096 && rss <= sum + 4096);
  for (unsigned f = 0; f < ROLLUP_FIELDS; f++)
    require(rollup_has(r, f) || r->bytes[f] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t piece = size ? data[0] % 61 + 1 : 1;
  struct rollup_sum whole = {0}, pieces = {0};
  struct rollup parsed, summed, summed_in_pieces;
  char *text = fuzz_copy(data, size);
  int r_parse = parse(text, size, &parsed);
  size_t used = rollup_sum_feed(&whole, text, size);
  int r_sum = finish(&whole, &summed);

  require(feed_in_pieces(&pieces, text, size, piece) == used);
  require(finish(&pieces, &summed_in_pieces) == r_sum);
  require(whole.is_bad == pieces.is_bad);
  if (!whole.is_bad)
    require(is_same(&whole.total, &pieces.total) && whole.vmas == pieces.vmas);
  if (r_parse == 0) {
    require_kernels_relations(&parsed);
    require(r_sum == 0 && is_same(&parsed, &summed));
  }
  if (r_sum == 0) {
    require_kernels_relations(&summed);
    require(is_same(&summed, &summed_in_pieces));
  }
  free(text);
  return 0;
}
