/* The mappings of one process, read on demand between cycles. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collected.h"
#include "parsed.h"

static int make(void **state) {
  struct world *w;

  collected_setup(state);
  w = *state;
  w->settings.read_timeout_ns = 100 * NS_PER_MS;
  w->settings.wants_snapshots = true;
  return 0;
}

#define CLOSE_UP_TEST(name)                                                    \
  TEST_WITH(name, make, collected_teardown, struct world *w)

/* Two of a group, of 500 kB each. */
static void start(struct world *w) {
  for (uint32_t pid = 10; pid < 12; pid++) {
    struct fake f = fake_process(pid, "g");

    f.private_kb = 500;
    world_put_mapped(w, f, "/data");
  }
  world_group(w, "g", "Comm", "g", NULL, NULL);
  world_run(w, 0);
}

static int look_at(struct world *w, uint32_t pid, parsed *ret) {
  char *text;
  size_t len;
  int rc = collector_close_up(w->collector, pid, &text, &len);

  if (rc == 0) {
    *ret = parsed_text(text, len);
    free(text);
  }
  return rc;
}

CLOSE_UP_TEST(a_close_up_has_the_mappings_of_one_process) {
  parsed d = NULL;

  start(w);
  assert_int_equal(look_at(w, 11, &d), 0);
  assert_int_equal(parsed_count(d, "processes"), 1);
  parsed_assert(d, "processes.0.pid=11 processes.0.mappings_from=smaps "
                   "processes.0.mappings.0.name=/data "
                   "processes.0.mappings.0.pss=500k");
  parsed_free(d);
  /* It is no cycle, and the next one is as ever. */
  world_expect(w, 1, "g", "ps_count=2 pss=1000k");
}

CLOSE_UP_TEST(why_there_is_no_close_up_is_told) {
  parsed d = NULL;

  start(w);
  assert_int_equal(look_at(w, 99, &d), -ESRCH);
  opens_refuse("smaps", EACCES);
  assert_int_equal(look_at(w, 10, &d), -EACCES);
  opens_refuse("smaps", ESRCH);
  assert_int_equal(look_at(w, 10, &d), -ESRCH);
}

CLOSE_UP_TEST(a_close_up_that_hangs_is_given_up_and_not_tried_again) {
  parsed d = NULL;

  start(w);
  proctree_unlink(&w->tree, "10/smaps");
  proctree_hang(&w->tree, "10/smaps");
  assert_int_equal(look_at(w, 10, &d), -ETIMEDOUT);
  opens.counted = "smaps";
  assert_int_equal(look_at(w, 10, &d), -ETIMEDOUT);
  assert_int_equal(opens.opened, 0);
  assert_int_equal(look_at(w, 11, &d), 0);
  parsed_free(d);
  proctree_wake(&w->tree, "10/smaps");
}
