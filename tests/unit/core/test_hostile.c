/* Attacks by a local user through the names that he gives his processes, and a
 * tree that goes. */
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

/* --- trees that are not as they should be --- */

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
