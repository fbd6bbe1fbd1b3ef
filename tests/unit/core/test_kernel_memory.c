/* Page tables, kernel stacks and the time since start, from a proc tree to the
 * values of groups. */
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#include "collected.h"

static struct fake process_of(uint32_t pid, const char *comm,
                              unsigned tables_kb) {
  struct fake f = process(pid, comm);

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

/* The second grows by what has a table of its own for each page. */
WORLD_TEST(between_readings_page_tables_are_read_where_memory_has_moved) {
  struct fake f = process_of(10, "a", 60);

  w->settings.policy.refresh = REFRESH_NEVER;
  watch(w, f);
  world_expect(w, 1, "a", "page_tables=64k");
  f.tables_kb = 300;
  f.private_kb += 63 * 4;
  world_put(w, f);
  world_expect(w, 1, "a", "page_tables=%d", 64 * 1024 + 63 * 8);
  f.private_kb += 4;
  world_put(w, f);
  world_expect(w, 1, "a", "page_tables=304k");
}

WORLD_TEST(an_exec_has_tables_of_its_own) {
  struct fake f = process_of(10, "a", 60);

  w->settings.policy.refresh = REFRESH_NEVER;
  watch(w, f);
  world_run(w, 1);
  f.start_stack += 4096;
  f.text += 100;
  f.tables_kb = 40;
  world_put(w, f);
  world_expect(w, 1, "a", "page_tables=44k");
}

WORLD_TEST(where_nobody_reports_page_tables_no_status_is_read) {
  w->settings.report.metrics = metric_default_set();
  opens.counted = "status";
  world_start(w, process_of(10, "a", 60));
  world_run_reading(w, 1, 1);
  assert_int_equal(opens.opened, 0);
}

/* --- kernel stacks --- */

static void put_stacks(struct world *w, unsigned all_kb) {
  proctree_print(&w->tree, 0, "meminfo",
                 "MemTotal: 1048576 kB\nKernelStack: %u kB\n", all_kb);
}

static void put_tasks(struct world *w, unsigned tasks) {
  proctree_print(&w->tree, 0, "loadavg", "0.20 0.18 0.12 1/%u 11206\n", tasks);
}

/* One process, on a host that shows these. */
static void watch_on_host(struct world *w, unsigned stacks_kb, unsigned tasks) {
  watch(w, process_of(10, "a", 60));
  put_stacks(w, stacks_kb);
  put_tasks(w, tasks);
}

WORLD_TEST(stacks_are_of_the_size_that_the_host_shows) {
  struct fake f = process_of(10, "a", 60);

  f.threads = 5;
  watch(w, f);
  put_stacks(w, 808);
  put_tasks(w, 50);
  world_expect(w, 1, "a", "kernel_stack=80k");
  world_run(w, 1);
  /* It does not change. */
  put_tasks(w, 100);
  world_run_times(w, 100, 1);
  world_assert(w, "a", "kernel_stack=80k");
}

WORLD_TEST(stacks_keep_their_size_where_loadavg_cannot_be_read) {
  watch_on_host(w, 800, 50);
  world_run(w, 1);
  proctree_print(&w->tree, 0, "loadavg", "none\n");
  world_expect(w, 1, "a", "kernel_stack=16k");
  proctree_print(&w->tree, 0, "meminfo", "MemTotal: 1048576 kB\n");
  put_tasks(w, 50);
  world_expect(w, 1, "a", "kernel_stack=16k");
}

/* Tasks end between meminfo and loadavg, and in the next cycle none do: a look
 * that shows a size is followed by another in the next cycle, also where looks
 * have become rare. */
WORLD_TEST(stacks_of_a_wrong_size_are_found_out_at_once) {
  watch_on_host(w, 800, 1);
  for (unsigned i = 1; i < 64; i++)
    world_run(w, 1);
  put_tasks(w, 25);
  world_expect(w, 1, "a", "kernel_stack=32k");
  put_tasks(w, 50);
  world_expect(w, 1, "a", "kernel_stack=16k");
}

/* As where loadavg is that of a container: it is asked less and less often. */
WORLD_TEST(stacks_that_the_host_does_not_show_are_hardly_looked_for) {
  watch_on_host(w, 800, 1);
  opens.counted = "loadavg";
  world_run_times(w, 1000, 1);
  assert_in_range(opens.opened, 5, 20);
  put_tasks(w, 50);
  world_run_times(w, 1000, 1);
  world_assert(w, "a", "kernel_stack=16k");
}

/* Half of the tasks of the host. */
WORLD_TEST(zombies_have_no_stack) {
  watch_on_host(w, 400, 50);
  for (uint32_t pid = 100; pid < 125; pid++) {
    struct fake zombie = process(pid, "z");

    zombie.state = 'Z';
    world_put(w, zombie);
  }
  world_expect(w, 1, "a", "kernel_stack=16k");
}

static bool is_published(const struct world *w, const char *metric) {
  const struct group *g = world_find(w, "a");
  struct report report = {.absolute = CHOICE_YES};
  struct metric_value value;
  struct config_error reason;
  unsigned cursor = 0;

  report.metrics = metric_find(metric, &reason);
  return metric_next(&(struct metric_subject){.usage = &g->usage}, &report,
                     &collector_results(w->collector)->context, &cursor,
                     &value);
}

/* The files are of this host, but not of the tree's file system: a container's
 * runtime mounts such a loadavg. */
WORLD_TEST(a_foreign_loadavg_is_not_asked) {
  char path[4200];

  watch(w, process_of(10, "a", 60));
  for (unsigned i = 0; i < 2; i++) {
    static const char *const names[] = {"meminfo", "loadavg"};
    char target[32];

    snprintf(path, sizeof(path), "%s/%s", w->tree.root, names[i]);
    snprintf(target, sizeof(target), "/proc/%s", names[i]);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
  }
  world_run(w, 1);
  assert_false(is_published(w, "kernel_stack"));
}

WORLD_TEST(without_the_files_of_the_host_two_values_are_not_published) {
  watch(w, process_of(10, "a", 60));
  world_run(w, 1);
  assert_false(is_published(w, "kernel_stack"));
  assert_false(is_published(w, "uptime"));
  assert_true(is_published(w, "page_tables"));
}

/* --- uptime --- */

/* A container may have an uptime of its own, and start times of the host. */
WORLD_TEST(a_tree_of_this_host_has_its_clock) {
  struct fake f = process_of(10, "a", 60);

  f.starttime = 0;
  world_make_own(w);
  watch(w, f);
  proctree_print(&w->tree, 0, "uptime", "1.00 1.00\n");
  world_run(w, 1);
  assert_true(world_value(w, "a", "uptime") > 1.5);
}
