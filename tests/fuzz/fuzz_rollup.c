/* SPDX-License-Identifier: MIT */
/* Parses smaps_rollup. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>

#include "proc/rollup.h"

static int parse(const char *text, size_t len, struct rollup *ret) {
  int rc;

  fuzz_taint(ret, sizeof(*ret));
  rc = rollup_parse(text, len, ret);
  require(rc == 0 || rc == -EBADMSG);
  if (rc != 0)
    fuzz_require_untouched(ret, sizeof(*ret));
  return rc;
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
  struct rollup parsed;
  char *text = fuzz_copy(data, size);

  if (parse(text, size, &parsed) == 0)
    require_kernels_relations(&parsed);
  free(text);
  return 0;
}
