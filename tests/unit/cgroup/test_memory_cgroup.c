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

/* A mount at a directory of the tree. Encoded as it stands. */
static void add_mount(char *text, size_t size, const char *root,
                      const char *directory, const char *type,
                      const char *options) {
  size_t len = strlen(text);

  snprintf(text + len, size - len,
           "31 23 0:27 %s %s/%s rw shared:1 - %s x %s\n", root, tree.root,
           directory, type, options);
}

static void put_mount(const char *root, const char *directory, const char *type,
                      const char *options) {
  char text[512] = "";

  add_mount(text, sizeof(text), root, directory, type, options);
  write_file("self/mountinfo", text);
}

/* The cgroup of process 10, in the unified hierarchy at "cg". */
static void put_unified(const char *path) {
  char text[256];

  snprintf(text, sizeof(text), "0::%s\n", path);
  write_file("10/cgroup", text);
  put_mount("/", "cg", "cgroup2", "rw");
}

/* The limit of process 10, or NONE if the reading has none. */
static uint64_t read_limit(void) {
  const struct memory_cgroup_request request = {.pid = 10,
                                                .wants = CGROUP_WANTS_LIMIT};
  struct cgroup_mounts mounts = {.text = NULL};
  struct memory_cgroup_reading r;
  struct procfs *procfs;

  assert_int_equal(procfs_new(tree.root, &procfs), 0);
  assert_int_equal(memory_cgroup_read(procfs, &mounts, NULL, &request, &r), 0);
  procfs_free(procfs);
  free(r.place.directory);
  cgroup_mounts_done(&mounts);
  return r.known & CGROUP_HAS_LIMIT ? r.limit : CGROUP_LIMIT_NONE;
}

/* A process in a unified hierarchy at "cg", or in one of version 1 at "v1". */
FIXTURE_TEST(the_least_limit_of_a_group_and_those_above_counts) {
#define NONE CGROUP_LIMIT_NONE
#define WEB "/a.slice/web"
  static const struct {
    const char *path;
    bool is_v1;
    const char *file, *text;
    uint64_t limit; /* with all files so far */
  } cases[] = {
      {WEB, false, "cg/other/memory.max", "17\n", NONE},
      {WEB, false, "cg" WEB "2/memory.max", "17\n", NONE},
      {WEB, false, "cg" WEB "/memory.max", "max\n", NONE},
      {WEB, false, "cg" WEB "/memory.max", "17", NONE}, /* cut short */
      {WEB, false, "cg" WEB "/memory.max", "1000\n", 1000},
      {WEB, false, "cg" WEB "/memory.high", "max\n", 1000},
      {WEB, false, "cg" WEB "/memory.high", "1100\n", 1000},
      {WEB, false, "cg" WEB "/memory.high", "900\n", 900},
      {WEB, false, "cg/a.slice/memory.max", "500\n", 500},
      {WEB, false, "cg/a.slice/memory.high", "300\n", 300},
      /* The mount point is the root, which a container may have a limit in. */
      {WEB, false, "cg/memory.max", "200\n", 200},
      {WEB, false, "memory.max", "100\n", 200},
      {"/web", true, "v1/web/memory.max", "17\n", NONE},
      {"/web", true, "v1/web/memory.limit_in_bytes", "5000\n", 5000},
      {"/web", true, "v1/memory.limit_in_bytes", "9223372036854771712\n", 5000},
      {"/web", true, "v1/web/memory.limit_in_bytes", "9223372036854771712\n",
       NONE},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    uint64_t limit;

    put_unified(cases[i].path);
    if (cases[i].is_v1) {
      write_file("10/cgroup", "5:cpu,memory:/web\n1:name=systemd:/x\n0::/x\n");
      put_mount("/", "v1", "cgroup", "rw,cpu,memory");
    }
    write_file(cases[i].file, cases[i].text);
    limit = read_limit();
    if (limit != cases[i].limit)
      fail_msg("%s: %ju", cases[i].file, (uintmax_t)limit);
  }
}

FIXTURE_TEST(the_hierarchy_is_that_of_the_controller) {
  char mounts[1024] = "";

  write_file("10/cgroup", "5:memory:/web\n0::/web\n");
  write_file("cg/web/memory.max", "1\n");
  write_file("cpu/web/memory.limit_in_bytes", "2\n");
  write_file("v1/web/memory.limit_in_bytes", "3\n");
  add_mount(mounts, sizeof(mounts), "/", "cg", "cgroup2", "rw");
  add_mount(mounts, sizeof(mounts), "/", "cpu", "cgroup", "rw,cpu,memoryless");
  add_mount(mounts, sizeof(mounts), "/", "cg", "tmpfs", "rw,memory");
  add_mount(mounts, sizeof(mounts), "/", "v1", "cgroup", "rw,memory");
  write_file("self/mountinfo", mounts);
  assert_int_equal(read_limit(), 3);
  write_file("10/cgroup", "5:cpu:/web\n0::/web\n");
  assert_int_equal(read_limit(), 1);
}

/* As in a container: the mount shows a part of the hierarchy. */
FIXTURE_TEST(only_groups_below_the_root_of_the_mount_are_found) {
  static const struct {
    const char *root, *path;
    uint64_t limit;
  } cases[] = {
      {"/docker/1", "/docker/1", 20},
      {"/docker/1", "/docker/1/web", 10},
      {"/docker/1", "/docker/12/web", CGROUP_LIMIT_NONE},
      {"/docker/1", "/docker", CGROUP_LIMIT_NONE},
      {"/docker/1", "/web", CGROUP_LIMIT_NONE},
      {"/", "/../web", CGROUP_LIMIT_NONE},
      {"/", "/..", CGROUP_LIMIT_NONE},
      {"/..", "/../web", 10},
      {"/..", "/../../web", CGROUP_LIMIT_NONE},
      {"/a\\040b", "/a b/web", 10},
  };

  write_file("cg/memory.max", "20\n");
  write_file("cg/web/memory.max", "10\n");
  write_file("web/memory.max", "1\n");
  write_file("cg2/web/memory.max", "1\n");
  for (size_t i = 0; i < LENGTH(cases); i++) {
    uint64_t limit;

    put_unified(cases[i].path);
    put_mount(cases[i].root, "cg", "cgroup2", "rw");
    limit = read_limit();
    if (limit != cases[i].limit)
      fail_msg("%s at %s: %ju", cases[i].path, cases[i].root, (uintmax_t)limit);
  }
}

/* The first is more than a buffer away. */
FIXTURE_TEST(the_mount_is_found_among_thousands) {
  static char mounts[1 << 19];
  char *at = mounts;

  put_unified("/web");
  write_file("cg/web/memory.max", "7\n");
  for (int i = 0; i < 5000; i++)
    at += snprintf(at, 80, "%d 23 0:27 / /mnt/%d rw shared:1 - ext4 x rw\n", i,
                   i);
  add_mount(mounts, sizeof(mounts), "/", "cg", "cgroup2", "rw");
  write_file("self/mountinfo", mounts);
  assert_int_equal(read_limit(), 7);
}

/* A captured tree has no mounts: those of this host say nothing about it. */
FIXTURE_TEST(without_mounts_or_a_cgroup_there_is_no_limit) {
  write_file("10/cgroup", "0::/web\n");
  assert_int_equal(read_limit(), CGROUP_LIMIT_NONE);
  put_mount("/", "cg", "cgroup2", "rw");
  write_file("cg/web/memory.max", "17\n");
  assert_int_equal(read_limit(), 17);
  /* As with a kernel without control groups. */
  proctree_unlink(&tree, "10/cgroup");
  assert_int_equal(read_limit(), CGROUP_LIMIT_NONE);
}
