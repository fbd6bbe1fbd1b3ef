/* Attacks by a local user through the names that he gives his processes, and by
 * how many he starts. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

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

/* --- names --- */

WORLD_TEST(a_forged_name_is_not_a_forged_program) {
  world_group(w, "nginx", "Comm", "nginx", "Executable", "/usr/sbin/nginx");
  put(w, 10, "nginx", "/usr/sbin/nginx");
  put(w, 11, "nginx", "/home/me/usr/sbin/nginx");
  put(w, 12, "nginx", "/usr/sbin/nginx\n");
  world_expect(w, 0, "nginx", "ps_count=1");
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

/* --- numbers --- */

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

/* --- trees that are not as they should be --- */

WORLD_TEST(file_with_the_name_of_a_pid_is_no_process) {
  world_group(w, "x", "Comm", "x", NULL, NULL);
  put(w, 10, "x", "/x");
  proctree_write(&w->tree, "11", "a file", 6);
  proctree_write(&w->tree, "12/stat/no", "a directory", 11);
  proctree_write(&w->tree, "007/comm", "x\n", 2);
  proctree_write(&w->tree, "99999999999/comm", "x\n", 2);
  for (int i = 0; i < 3; i++) {
    world_expect(w, 10, "x", "ps_count=1");
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
    world_expect(w, 10, "x", "ps_count=2");
  }
}
