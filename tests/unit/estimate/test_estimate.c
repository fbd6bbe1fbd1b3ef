#include "test.h"

#include "estimate/estimate.h"

/* A process of 8 MiB of its own, and 2 MiB that it shares by copy on write,
 * with so many altogether; and 16 MiB of files of which it pays a quarter. */
static struct baseline sharing(uint64_t sharers, uint16_t relatives) {
  struct rollup r = {.known = UINT32_MAX};
  struct observation o = {.resident_pages = 26 * MIB / 4096,
                          .shared_pages = 16 * MIB / 4096};
  struct baseline b;

  r.bytes[ROLLUP_RSS] = 26 * MIB;
  r.bytes[ROLLUP_ANONYMOUS] = 10 * MIB;
  r.bytes[ROLLUP_PSS_ANON] = 8 * MIB + 2 * MIB / sharers;
  r.bytes[ROLLUP_PSS_FILE] = 4 * MIB;
  r.bytes[ROLLUP_PSS] = r.bytes[ROLLUP_PSS_ANON] + 4 * MIB;
  r.bytes[ROLLUP_PRIVATE_DIRTY] = 8 * MIB;
  r.bytes[ROLLUP_SHARED_DIRTY] = 2 * MIB;
  r.bytes[ROLLUP_SHARED_CLEAN] = 16 * MIB;
  baseline_take(&b, &r, &o, 4096);
  b.at_ns = 1;
  b.relatives = relatives;
  return b;
}

static struct change last_of_all(void) {
  return (struct change){
      .page_size = 4096, .seconds = 1, .relatives = 1, .shared_cost = 1};
}

TEST(relatives_that_did_not_share_everything_leave_no_more_than_there_is) {
  struct baseline b = sharing(2, 4);
  struct change c = last_of_all();
  struct rollup u;

  estimate_rollup(&b, &c, &u);
  assert_true(u.bytes[ROLLUP_PSS_ANON] <= 10 * MIB);
  assert_int_equal(u.bytes[ROLLUP_PSS_FILE], 4 * MIB);
}

/* The set knows the cost of one kind of pages; that of the other goes by the
 * number of relatives, which may not map them. */
TEST(pages_of_the_other_kind_are_in_doubt_with_the_relatives) {
  struct baseline b = sharing(2, 2);
  struct change c = last_of_all();
  struct exposure x;

  c.relatives_moved = 0.5;
  exposure_of(&b, &c, &x);
  assert_true(x.bytes[CAUSE_RELATIVES] == 5 * MIB);
  c.is_of_shmem = true;
  exposure_of(&b, &c, &x);
  assert_true(x.bytes[CAUSE_RELATIVES] == 7 * MIB);
}
