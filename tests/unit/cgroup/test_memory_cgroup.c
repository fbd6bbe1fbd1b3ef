/* SPDX-License-Identifier: MIT */
/* The limits of control groups, in directories of our own. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup/memory_cgroup.h"
#include "proctree.h"

static struct proctree tree;

static int make(void **state) {
  const struct fake process = {.pid = 10, .comm = "a", .starttime = 1};

  (void)state;
  proctree_make(&tree);
  proctree_put(&tree, &process);
  return 0;
}

static int unmake(void **state) {
  (void)state;
  proctree_remove(&tree);
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, void *none)

static void write_file(const char *path, const char *text) {
  proctree_write(&tree, path, text, strlen(text));
}

/* Puts process 10 into a cgroup of the unified hierarchy. */
static void put_unified(const char *path) {
  char text[256];

  snprintf(text, sizeof(text), "0::%s\n", path);
  write_file("10/cgroup", text);
}

/* The limit of the group, or NONE if the reading has none. */
static uint64_t read_limit(const char *path) {
  struct memory_cgroup m = {.pid = 10, .wants = CGROUP_WANTS_LIMIT};
  struct procfs *procfs;

  assert_int_equal(procfs_new(tree.root, &procfs), 0);
  assert_int_equal(memory_cgroup_read(procfs, path, &m), 0);
  procfs_free(procfs);
  return m.memory.known & CGROUP_HAS_LIMIT ? m.memory.limit : CGROUP_LIMIT_NONE;
}

FIXTURE_TEST(the_least_limit_of_a_group_and_those_above_counts) {
#define NONE CGROUP_LIMIT_NONE
#define WEB "/a.slice/web"
#define CG "sys/fs/cgroup"
#define V1 CG "/memory"
  static const struct {
    const char *path;
    bool is_v1;
    const char *file, *text;
    uint64_t limit; /* with all files so far */
  } cases[] = {
      {WEB, false, CG "/other/memory.max", "17\n", NONE},
      {WEB, false, CG WEB "2/memory.max", "17\n", NONE},
      {WEB, false, CG WEB "/memory.max", "max\n", NONE},
      {WEB, false, CG WEB "/memory.max", "17", NONE}, /* cut short */
      {WEB, false, CG WEB "/memory.max", "1000\n", 1000},
      {WEB, false, CG WEB "/memory.high", "max\n", 1000},
      {WEB, false, CG WEB "/memory.high", "1100\n", 1000},
      {WEB, false, CG WEB "/memory.high", "900\n", 900},
      {WEB, false, CG "/a.slice/memory.max", "500\n", 500},
      {WEB, false, CG "/a.slice/memory.high", "300\n", 300},
      /* A container may have a limit in its root. */
      {WEB, false, CG "/memory.max", "200\n", 200},
      {WEB, false, "memory.max", "100\n", 200},
      {"/web", true, V1 "/web/memory.max", "17\n", NONE},
      {"/web", true, V1 "/web/memory.limit_in_bytes", "5000\n", 5000},
      {"/web", true, V1 "/memory.limit_in_bytes", "9223372036854771712\n",
       5000},
      {"/web", true, V1 "/web/memory.limit_in_bytes", "9223372036854771712\n",
       NONE},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    uint64_t limit;

    put_unified(cases[i].path);
    if (cases[i].is_v1)
      write_file("10/cgroup", "5:cpu,memory:/web\n1:name=systemd:/x\n0::/x\n");
    write_file(cases[i].file, cases[i].text);
    limit = read_limit(cases[i].path);
    if (limit != cases[i].limit)
      fail_msg("%s: %ju", cases[i].file, (uintmax_t)limit);
  }
}

FIXTURE_TEST(limit_is_read_from_the_hierarchy_of_the_memory_controller) {
  write_file("10/cgroup", "5:memory:/web\n0::/web\n");
  write_file(CG "/web/memory.max", "1\n");
  write_file(V1 "/web/memory.limit_in_bytes", "3\n");
  assert_int_equal(read_limit("/web"), 3);
  write_file("10/cgroup", "5:cpu:/web\n0::/web\n");
  assert_int_equal(read_limit("/web"), 1);
}

/* As in a container that has a cgroup namespace of its own. */
FIXTURE_TEST(groups_of_another_namespace_are_not_found) {
  write_file(CG "/web/memory.max", "10\n");
  write_file("sys/fs/web/memory.max", "1\n");
  put_unified("/web");
  assert_int_equal(read_limit("/web"), 10);
  put_unified("/../web");
  assert_int_equal(read_limit("/../web"), CGROUP_LIMIT_NONE);
  put_unified("/..");
  assert_int_equal(read_limit("/.."), CGROUP_LIMIT_NONE);
}

/* The control groups of this host say nothing about a captured tree. */
FIXTURE_TEST(limit_is_unknown_without_a_hierarchy_or_a_cgroup) {
  put_unified("/");
  assert_int_equal(read_limit("/"), CGROUP_LIMIT_NONE);
  write_file(CG "/memory.max", "17\n");
  assert_int_equal(read_limit("/"), 17);
  /* A kernel without control groups has no such file. */
  proctree_unlink(&tree, "10/cgroup");
  assert_int_equal(read_limit("/"), CGROUP_LIMIT_NONE);
}
