/* Attacks by a local user through the names that he gives his processes, and by
 * how many he starts. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/process.h"

#include "world.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, world_setup, world_teardown, struct world *w)

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

WORLD_TEST(names_of_any_bytes_make_plain_groups) {
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
  size_t n = LENGTH(comms);

  world_group(w, "%{exe}-%{comm}", "Comm", "*", NULL, NULL)->is_view = true;
  world_group(w, "%{1}", "CommMatch", "(.*)", NULL, NULL);
  for (size_t i = 0; i < n; i++)
    put(w, (uint32_t)i + 10, comms[i], exe);
  world_run(w, 0);
  assert_int_equal(world_groups(w), 2 * n);
  assert_names_are_plain(w);
  world_assert_members(w, "nginx=1 .._.._etc=1");
  assert_int_equal(world_members(w, ") R 1 1 1 ("), 1);
}

WORLD_TEST(a_forged_name_is_not_a_forged_program) {
  world_group(w, "nginx", "Comm", "nginx", "Executable", "/usr/sbin/nginx");
  put(w, 10, "nginx", "/usr/sbin/nginx");
  put(w, 11, "nginx", "/home/me/usr/sbin/nginx");
  put(w, 12, "nginx", "/usr/sbin/nginx\n");
  world_run(w, 0);
  assert_int_equal(world_members(w, "nginx"), 1);
}

/* Only the first 4 KiB count, whatever comes behind. */
WORLD_TEST(a_command_line_of_2_mb_is_matched_by_its_beginning) {
  static const size_t size = 2 << 20;
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
  world_run(w, 0);
  world_assert_members(w, "beyond=0 within=1");
}

/* --- numbers ---------------------------------------------------------------
 */

#define GENERATIONS 12
#define AT_ONCE 40
#define MAX_GROUPS 15

/* Each generation has names of its own, and takes the place of the last. */
WORLD_TEST(short_lived_names_do_not_pile_up) {
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
    world_run(w, 3600);
    assert_int_equal(world_groups(w), MAX_GROUPS + 1);
    assert_int_equal(world_members(w, "other"), AT_ONCE - MAX_GROUPS);
    assert_int_equal(world_counts(w)->groups_refused, AT_ONCE - MAX_GROUPS);
  }
}

WORLD_TEST(ten_thousand_names_stop_at_the_limit) {
  struct group_table t = {.max_templates = 200};
  const struct report report = {.metrics = 1};
  struct group *kept[200], *g;
  char name[16];

  for (unsigned i = 0; i < 10000; i++) {
    snprintf(name, sizeof(name), "%u", i * 7919 % 10000);
    assert_int_equal(group_table_get_or_add(&t, name, false, &report, &g),
                     i < 200 ? 0 : GROUP_REFUSED);
    if (i < 200)
      (kept[i] = g)->references++;
  }
  assert_int_equal(group_table_get_or_add(&t, "fixed", true, &report, &g), 0);
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
WORLD_TEST(fifty_thousand_processes_are_kept_apart) {
  static struct procfs_entry entries[50000];
  const size_t n = LENGTH(entries);
  struct process_table t = {0};

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
WORLD_TEST(sixty_thousand_mappings_are_summed_up) {
  static const char mapping[] =
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
      "Rss: 4 kB\nPss: 3 kB\nShared_Clean: 0 kB\nShared_Dirty: 1 kB\n"
      "Private_Clean: 0 kB\nPrivate_Dirty: 3 kB\nSwap: 2 kB\n"
      "VmFlags: rd wr mr mw me ac\n";
  const size_t n = 60000, len = strlen(mapping);
  char *text = malloc(n * len);

  assert_non_null(text);
  for (size_t i = 0; i < n; i++)
    memcpy(text + i * len, mapping, len);
  w->settings.read_timeout_ns = 60 * NS_PER_S; /* valgrind takes its time */
  put(w, 10, "many", "/x");
  proctree_unlink(&w->tree, "10/smaps_rollup");
  proctree_write(&w->tree, "10/smaps", text, n * len);
  free(text);
  world_group(w, "many", "Comm", "many", NULL, NULL);
  world_run(w, 0);
  assert_true(world_value(w, "many", "pss") == 3.0 * 1024 * (double)n);
  assert_true(world_value(w, "many", "uss") == 3.0 * 1024 * (double)n);
  assert_true(world_value(w, "many", "swap_total") == 2.0 * 1024 * (double)n);
}

/* --- trees that are not as they should be ----------------------------------
 */

WORLD_TEST(file_with_the_name_of_a_pid_is_no_process) {
  world_group(w, "x", "Comm", "x", NULL, NULL);
  put(w, 10, "x", "/x");
  proctree_write(&w->tree, "11", "a file", 6);
  proctree_write(&w->tree, "12/stat/no", "a directory", 11);
  proctree_write(&w->tree, "007/comm", "x\n", 2);
  proctree_write(&w->tree, "99999999999/comm", "x\n", 2);
  for (int i = 0; i < 3; i++) {
    world_run(w, 10);
    assert_int_equal(world_members(w, "x"), 1);
  }
}

/* As by umount and mount: the directory is another one afterwards. */
WORLD_TEST(a_tree_that_disappears_is_found_again) {
  world_group(w, "x", "Comm", "x", NULL, NULL);
  put(w, 10, "x", "/x");
  world_run(w, 0);
  for (int i = 0; i < 2; i++) {
    proctree_unlink(&w->tree, "");
    assert_true(world_cycle(w, 10) < 0);
    assert_true(world_cycle(w, 10) < 0);
    put(w, 20, "x", "/x");
    put(w, 21, "x", "/x");
    world_run(w, 10);
    assert_int_equal(world_members(w, "x"), 2);
  }
}
