/* SPDX-License-Identifier: MIT */
/* smaps, summed by the name of the mapping. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/mapping.h"

/* As in a reader, the rest of a piece is put before the next piece. */
static size_t feed(struct mapping_table *t, const char *text, size_t len,
                   size_t piece) {
  size_t start = 0, end = 0;

  while (end < len) {
    size_t used;
    char *copy;

    end += len - end < piece ? len - end : piece;
    copy = fuzz_copy((const uint8_t *)text + start, end - start);
    used = mapping_table_feed(t, copy, end - start);
    require(used <= end - start);
    require(used == 0 || copy[used - 1] == '\n');
    free(copy);
    start += used;
  }
  return start;
}

static int finish(struct mapping_table *t, struct rollup *ret) {
  int rc;

  fuzz_taint(ret, sizeof(*ret));
  rc = mapping_table_finish(t, ret);
  require(rc == 0 || rc == -EBADMSG);
  if (rc != 0)
    fuzz_require_untouched(ret, sizeof(*ret));
  return rc;
}

static void require_same_mapping(const struct mapping *a,
                                 const struct mapping *b) {
  require((a->name == NULL) == (b->name == NULL));
  require(a->name_len == b->name_len);
  require(a->name_len == 0 || memcmp(a->name, b->name, a->name_len) == 0);
  require(a->permissions == b->permissions && a->vmas == b->vmas);
  require(a->processes == b->processes && a->size == b->size);
  require(memcmp(a->sum.bytes, b->sum.bytes, sizeof(a->sum.bytes)) == 0);
  require(a->sum.known == b->sum.known);
}

static void require_same_table(const struct mapping_table *a,
                               const struct mapping_table *b) {
  require(a->n == b->n);
  for (size_t i = 0; i < a->n; i++)
    require_same_mapping(&a->mappings[i], &b->mappings[i]);
}

/* The sum of bytes, mappings and names of a table that is not ranked. */
struct total {
  struct rollup sum;
  uint64_t vmas, size;
};

static void add_to_total(struct total *total, const struct mapping *m) {
  total->vmas += m->vmas;
  total->size += m->size;
  total->sum.known |= m->sum.known;
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    total->sum.bytes[f] += m->sum.bytes[f];
}

static void require_unique_names(const struct mapping *m, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      require(m[i].name_len != m[k].name_len ||
              memcmp(m[i].name, m[k].name, m[i].name_len) != 0);
}

/* The same ones in each: a sum with an unknown part is unknown. */
static bool has_amounts(const struct mapping_table *t) {
  uint32_t known = 0;

  for (size_t i = 0; i < t->n; i++) {
    const struct mapping *m = &t->mappings[i];

    if (m->vmas == 0)
      continue;
    if (!m->sum.known || (known && m->sum.known != known))
      return false;
    known = m->sum.known;
  }
  return true;
}

/* Returns the Pss of a mapping, or the most that it can be. */
static uint64_t weight_of(const struct mapping *m) {
  return rollup_has(&m->sum, ROLLUP_PSS) ? m->sum.bytes[ROLLUP_PSS] : m->size;
}

/* Summing up the rest loses nothing; amounts are compared if all are known. */
static void look_at_rank(struct mapping_table *t, const struct rollup *sum,
                         size_t max) {
  struct total before = {.vmas = 0}, after = {.vmas = 0};
  const struct mapping *listed, *rest;
  bool is_known = has_amounts(t);
  size_t n;

  for (size_t i = 0; i < t->n; i++)
    add_to_total(&before, &t->mappings[i]);
  mapping_table_rank(t, max, &listed, &n);
  rest = mapping_table_rest(t);
  require(n <= max);
  for (size_t i = 0; i < n; i++) {
    require(listed[i].name && listed[i].vmas > 0);
    require(i == 0 || weight_of(&listed[i - 1]) >= weight_of(&listed[i]));
    add_to_total(&after, &listed[i]);
  }
  require_unique_names(listed, n);
  if (rest)
    add_to_total(&after, rest);
  require(before.vmas == after.vmas && before.size == after.size);
  require(!is_known ||
          memcmp(before.sum.bytes, after.sum.bytes, sizeof(sum->bytes)) == 0);
  require(!is_known ||
          memcmp(sum->bytes, after.sum.bytes, sizeof(sum->bytes)) == 0);
}

/* The same process added twice doubles each name. */
static void look_at_sum(const struct mapping_table *process) {
  struct mapping_table all = {0};

  require(mapping_table_add(&all, process) == 0);
  require_same_table(&all, process);
  require(mapping_table_add(&all, process) == 0);
  require(all.n == process->n);
  for (size_t i = 0; i < all.n; i++) {
    const struct mapping *m = &all.mappings[i], *one = &process->mappings[i];

    require(m->vmas == 2 * one->vmas && m->processes == 2 * one->processes);
    require(m->permissions == one->permissions);
  }
  mapping_table_done(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t piece = size ? data[0] % 61 + 1 : 1;
  struct mapping_table whole = {0}, pieces = {0};
  struct rollup of_whole, of_pieces, summed;
  char *text = fuzz_copy(data, size);
  size_t used = mapping_table_feed(&whole, text, size);
  int r = finish(&whole, &of_whole);

  require(feed(&pieces, text, size, piece) == used);
  require(finish(&pieces, &of_pieces) == r);
  if (r == 0) {
    require_same_table(&whole, &pieces);
    if (rollup_parse(text, size, &summed) == 0)
      require(memcmp(&of_whole, &summed, sizeof(summed)) == 0);
    look_at_sum(&whole);
    look_at_rank(&whole, &of_whole, size % 5);
  }
  mapping_table_done(&whole);
  mapping_table_done(&pieces);
  free(text);
  return 0;
}
