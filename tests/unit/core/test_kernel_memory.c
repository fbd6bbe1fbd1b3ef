/* SPDX-License-Identifier: MIT */
/* Page tables, kernel stacks and the time since start, from a proc tree to the
 * values of groups. */
#include "test.h"

#include <stdint.h>

#include "collected.h"
#include "proc/kernel.h"

static struct fake process_of(uint32_t pid, const char *comm,
                              unsigned tables_kb) {
  struct fake f = collected_process(pid, comm);

  f.private_kb = 4096;
  f.shared_kb = 0;
  f.tables_kb = tables_kb;
  return f;
}

static void watch(struct world *w, struct fake f) {
  world_put(w, f);
  world_group(w, f.comm, "Comm", f.comm, NULL, NULL);
}

/* --- page tables --- */

WORLD_TEST(page_tables_are_read_with_the_memory) {
  watch(w, process_of(10, "a", 60));
  world_put(w, process_of(11, "a", 100));
  world_expect(w, 1, "a", "page_tables=168k");
  world_put(w, process_of(11, "a", 200));
  world_run_reading(w, 1, 2);
  world_assert(w, "a", "page_tables=268k");
}

WORLD_TEST(status_is_not_read_if_page_tables_are_not_reported) {
  struct config_error reason;

  w->settings.report.metrics = metric_find("default", &reason);
  opens.counted = "status";
  world_start(w, process_of(10, "a", 60));
  world_run_reading(w, 1, 1);
  assert_int_equal(opens.opened, 0);
}

/* --- kernel stacks --- */

WORLD_TEST(each_thread_has_a_stack) {
  struct fake f = process_of(10, "a", 60);

  f.threads = 5;
  watch(w, f);
  world_expect(w, 1, "a", "kernel_stack=%ju",
               (uintmax_t)(5 * kernel_stack_size(4096)));
}

/* --- uptime --- */

/* A container may have an uptime of its own, and start times of the host. */
WORLD_TEST(uptime_in_a_tree_of_this_host_is_by_its_clock) {
  struct fake f = process_of(10, "a", 60);

  f.starttime = 0;
  world_make_own(w);
  watch(w, f);
  proctree_print(&w->tree, 0, "uptime", "1.00 1.00\n");
  world_run(w, 1);
  assert_true(world_value(w, "a", "uptime") > 1.5);
}
