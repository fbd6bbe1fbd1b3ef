/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <unistd.h>

#include "proc/units.h"
#include "proctree.h"

static int read_units(struct proctree *tree, struct units *ret) {
  struct procfs *procfs;
  int rc;

  assert_int_equal(procfs_new(tree->root, &procfs), 0);
  rc = units_read(procfs, ret);
  procfs_free(procfs);
  return rc;
}

static int setup(void **state) {
  const struct fake f = fake_process(10, "a");
  int rc = proctree_setup(state);

  proctree_put(*state, &f);
  return rc;
}

#define TREE_TEST(name)                                                        \
  TEST_WITH(name, setup, proctree_teardown, struct proctree *tree)

TREE_TEST(units_are_those_of_this_machine_unless_the_tree_has_others) {
  const uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
  const uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
  const struct {
    const char *text;
    struct units units;
  } cases[] = {
      {NULL, {size, ticks}},
      {"PAGESIZE 65536\nCLK_TCK 250\n", {65536, 250}},
      {"CLK_TCK 1024\nPAGESIZE 16384", {16384, 1024}},
      {"PAGESIZE 1048576\n", {1048576, ticks}},
      {"LONG_BIT 32\n\nCLK_TCK 1\n", {size, 1}},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct units u = {.page_size = 1};

    if (cases[i].text)
      proctree_print(tree, 0, "getconf", "%s", cases[i].text);
    assert_int_equal(read_units(tree, &u), 0);
    assert_int_equal(u.page_size, cases[i].units.page_size);
    assert_int_equal(u.ticks, cases[i].units.ticks);
  }
}

TREE_TEST(impossible_units_are_an_error) {
  static const char *const texts[] = {
      "PAGESIZE 0\n",
      "PAGESIZE 2048\n",
      "PAGESIZE 65535\n",
      "PAGESIZE 2097152\n",
      "PAGESIZE 65536 B\n",
      "PAGESIZE \n",
      "PAGESIZE -4096\n",
      "CLK_TCK 0\n",
      "CLK_TCK 1000001\n",
      "CLK_TCK 100\r\n",
      "CLK_TCK 99999999999999999999\n",
  };

  for (size_t i = 0; i < LENGTH(texts); i++) {
    struct units u = {.page_size = 1, .ticks = 2};

    proctree_print(tree, 0, "getconf", "%s", texts[i]);
    if (read_units(tree, &u) != -EBADMSG || u.page_size != 1 || u.ticks != 2)
      fail_msg("%s", texts[i]);
  }
}
