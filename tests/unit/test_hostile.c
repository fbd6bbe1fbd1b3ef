/* What a local user can do to us by the names he gives his processes, and by
 * how many he starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <smaps/process.h>

#include "world.h"

static int make(void **state) {
  static struct world w;

  world_make(&w);
  *state = &w;
  return 0;
}

static int unmake(void **state) {
  world_remove(*state);
  return 0;
}

static void put(struct world *w, uint32_t pid, const char *comm,
                const char *exe) {
  proctree_put(&w->tree, &(struct fake){.pid = pid,
                                        .ppid = 1,
                                        .comm = comm,
                                        .exe = exe,
                                        .starttime = pid,
                                        .start_stack = pid * 4096UL,
                                        .private_kb = 8});
}

static bool is_plain(const char *text) {
  for (; *text; text++)
    if (*text < 0x20 || *text > 0x7e || *text == '/')
      return false;
  return true;
}

static void assert_names_are_plain(const struct world *w) {
  const struct group *g;
  size_t cursor = 0;

  while ((g = collector_next_group(w->collector, &cursor)))
    if (!is_plain(g->name))
      fail_msg("%s", g->name);
}

/* --- names -----------------------------------------------------------------
 */

static void names_of_any_bytes_make_plain_groups(void **state) {
  static const char *const comms[] = {"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
                                      ") R 1 1 1 (",
                                      "\x1b[2J\x1b]0;x\a",
                                      "../../etc",
                                      "a\"b\\c",
                                      "\xff\xfe\x80",
                                      " ",
                                      "%{unit}",
                                      "nginx"};
  static const char exe[] = "/tmp/\"quoted\" \x1b[31mred\n/../x (deleted)";
  size_t n = sizeof(comms) / sizeof(*comms);
  struct world *w = *state;

  world_group(w, "%{exe}-%{comm}", "Comm", "*", NULL, NULL)->is_view = true;
  world_group(w, "%{1}", "CommMatch", "(.*)", NULL, NULL);
  for (size_t i = 0; i < n; i++)
    put(w, (uint32_t)i + 10, comms[i], exe);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_groups(w), 2 * n);
  assert_names_are_plain(w);
  assert_int_equal(world_members(w, "nginx"), 1);
  assert_int_equal(world_members(w, ".._.._etc"), 1);
  assert_int_equal(world_members(w, ") R 1 1 1 ("), 1);
}

static void a_forged_name_is_not_a_forged_program(void **state) {
  struct world *w = *state;

  world_group(w, "nginx", "Comm", "nginx", "Executable", "/usr/sbin/nginx");
  put(w, 10, "nginx", "/usr/sbin/nginx");
  put(w, 11, "nginx", "/home/me/usr/sbin/nginx");
  put(w, 12, "nginx", "/usr/sbin/nginx\n");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "nginx"), 1);
}

/* Only the first 4 KiB count, whatever comes behind. */
static void a_command_line_of_2_mb_is_matched_by_its_beginning(void **state) {
  static const size_t size = 2 << 20;
  struct world *w = *state;
  char *text = malloc(size);

  assert_non_null(text);
  memset(text, 'a', size);
  memcpy(text + 4090, "end", 3);
  memcpy(text + 5000, "beyond", 6);
  put(w, 10, "x", "/x");
  proctree_write(&w->tree, "10/cmdline", text, size);
  free(text);
  world_group(w, "beyond", "CommandLineMatch", "beyond", NULL, NULL);
  world_group(w, "within", "CommandLineMatch", "^a+end", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "beyond"), 0);
  assert_int_equal(world_members(w, "within"), 1);
}

/* --- numbers ---------------------------------------------------------------
 */

#define GENERATIONS 12
#define AT_ONCE 40
#define MAX_GROUPS 15

/* Each generation has names of its own, and takes the place of the last. */
static void short_lived_names_do_not_pile_up(void **state) {
  struct world *w = *state;
  char comm[16];

  w->settings.max_groups = MAX_GROUPS;
  world_group(w, "%{comm}", "Comm", "n*", NULL, NULL);
  world_other(w, "other");
  for (uint32_t generation = 0; generation < GENERATIONS; generation++) {
    for (uint32_t i = 0; i < AT_ONCE; i++) {
      snprintf(comm, sizeof(comm), "n%u-%u", generation, i);
      if (generation > 0)
        proctree_end(&w->tree, 10 + (generation - 1) * AT_ONCE + i);
      put(w, 10 + generation * AT_ONCE + i, comm, "/x");
    }
    /* So many new names there may be. */
    assert_int_equal(world_cycle(w, 3600), 0);
    assert_int_equal(world_groups(w), MAX_GROUPS + 1);
    assert_int_equal(world_members(w, "other"), AT_ONCE - MAX_GROUPS);
    assert_int_equal(collector_counts(w->collector)->groups_refused,
                     AT_ONCE - MAX_GROUPS);
  }
}

static void ten_thousand_names_stop_at_the_limit(void **state) {
  struct group_table t = {.max_templates = 200};
  const struct report report = {.metrics = 1};
  struct group *kept[200], *g;
  char name[16];

  (void)state;
  for (unsigned i = 0; i < 10000; i++) {
    snprintf(name, sizeof(name), "%u", i * 7919 % 10000);
    assert_int_equal(group_table_take(&t, name, false, &report, &g),
                     i < 200 ? 0 : GROUP_REFUSED);
    if (i < 200)
      (kept[i] = g)->references++;
  }
  assert_int_equal(group_table_take(&t, "fixed", true, &report, &g), 0);
  assert_int_equal(t.n, 201);
  for (unsigned i = 0; i < 200; i++)
    group_table_release(&t, kept[i]);
  assert_int_equal(t.n, 1);
  group_table_done(&t);
}

static size_t gone;

static void count_gone(void *ctx, struct process *p) {
  (void)ctx;
  (void)p;
  gone++;
}

/* Half of them are replaced by others each time. */
static void fifty_thousand_processes_are_kept_apart(void **state) {
  static struct procfs_entry entries[50000];
  const size_t n = sizeof(entries) / sizeof(*entries);
  struct process_table t = {0};

  (void)state;
  for (uint32_t round = 0; round < 4; round++) {
    for (uint32_t i = 0; i < n; i++)
      entries[i] = (struct procfs_entry){.pid = 1 + 4 * i + (i % 2 ? round : 0),
                                         .ino = i + 1};
    gone = 0;
    assert_int_equal(process_table_update(&t, entries, n, count_gone, NULL), 0);
    assert_int_equal(gone, round ? n / 2 : 0);
    for (size_t i = 0; i < n; i += 997)
      assert_int_equal(process_table_find(&t, entries[i].pid)->pid,
                       entries[i].pid);
  }
  gone = 0;
  process_table_done(&t, count_gone, NULL);
  assert_int_equal(gone, n);
}

/* As Linux before 4.14 has them: without a rollup. */
static void sixty_thousand_mappings_are_summed_up(void **state) {
  static const char mapping[] =
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
      "Rss: 4 kB\nPss: 3 kB\nShared_Clean: 0 kB\nShared_Dirty: 1 kB\n"
      "Private_Clean: 0 kB\nPrivate_Dirty: 3 kB\nSwap: 2 kB\n"
      "VmFlags: rd wr mr mw me ac\n";
  const size_t n = 60000, len = strlen(mapping);
  struct world *w = *state;
  char *text = malloc(n * len);

  assert_non_null(text);
  for (size_t i = 0; i < n; i++)
    memcpy(text + i * len, mapping, len);
  put(w, 10, "many", "/x");
  proctree_unlink(&w->tree, "10/smaps_rollup");
  proctree_write(&w->tree, "10/smaps", text, n * len);
  free(text);
  world_group(w, "many", "Comm", "many", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(world_value(w, "many", "pss") == 3.0 * 1024 * (double)n);
  assert_true(world_value(w, "many", "uss") == 3.0 * 1024 * (double)n);
  assert_true(world_value(w, "many", "swap_total") == 2.0 * 1024 * (double)n);
}

/* --- trees that are not as they should be ----------------------------------
 */

static void what_only_has_the_name_of_a_pid_is_no_process(void **state) {
  struct world *w = *state;

  world_group(w, "x", "Comm", "x", NULL, NULL);
  put(w, 10, "x", "/x");
  proctree_write(&w->tree, "11", "a file", 6);
  proctree_write(&w->tree, "12/stat/no", "a directory", 11);
  proctree_write(&w->tree, "007/comm", "x\n", 2);
  proctree_write(&w->tree, "99999999999/comm", "x\n", 2);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(world_cycle(w, 10), 0);
    assert_int_equal(world_members(w, "x"), 1);
  }
}

/* As by umount and mount: the directory is another one afterwards. */
static void a_tree_that_disappears_is_found_again(void **state) {
  struct world *w = *state;

  world_group(w, "x", "Comm", "x", NULL, NULL);
  put(w, 10, "x", "/x");
  assert_int_equal(world_cycle(w, 0), 0);
  for (int i = 0; i < 2; i++) {
    proctree_unlink(&w->tree, "");
    assert_true(world_cycle(w, 10) < 0);
    assert_true(world_cycle(w, 10) < 0);
    put(w, 20, "x", "/x");
    put(w, 21, "x", "/x");
    assert_int_equal(world_cycle(w, 10), 0);
    assert_int_equal(world_members(w, "x"), 2);
  }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(names_of_any_bytes_make_plain_groups),
      TEST(a_forged_name_is_not_a_forged_program),
      TEST(a_command_line_of_2_mb_is_matched_by_its_beginning),
      TEST(short_lived_names_do_not_pile_up),
      TEST(ten_thousand_names_stop_at_the_limit),
      TEST(fifty_thousand_processes_are_kept_apart),
      TEST(sixty_thousand_mappings_are_summed_up),
      TEST(what_only_has_the_name_of_a_pid_is_no_process),
      TEST(a_tree_that_disappears_is_found_again),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
