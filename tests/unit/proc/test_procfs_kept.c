/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/procfs.h"

#include "proctree.h"

static int make(void **state) {
  proctree_setup(state);
  proctree_write(*state, "10/statm", "1 2 3\n", 6);
  return 0;
}

#define TREE_TEST(name)                                                        \
  TEST_WITH(name, make, proctree_teardown, const struct proctree *tree)

/* The file system that the tree passes for, for files opened from now on. */
static bool is_of_kernel;
static bool is_of_nobody; /* nobody can say */

int __wrap_fstatfs(int fd, struct statfs *ret);
int __wrap_fstatfs(int fd, struct statfs *ret) {
  (void)fd;
  if (is_of_nobody) {
    errno = ENOSYS;
    return -1;
  }
  *ret =
      (struct statfs){.f_type = is_of_kernel ? PROC_SUPER_MAGIC : TMPFS_MAGIC};
  return 0;
}

static bool is_limit_unknown;

int __real_getrlimit(int resource, struct rlimit *ret);
int __wrap_getrlimit(int resource, struct rlimit *ret);
int __wrap_getrlimit(int resource, struct rlimit *ret) {
  if (!is_limit_unknown)
    return __real_getrlimit(resource, ret);
  *ret = (struct rlimit){.rlim_cur = 2048}; /* which is not to be believed */
  errno = EPERM;
  return -1;
}

struct kept {
  struct procfs *procfs;
  struct rlimit before;
};

/* The tree as a kernel's, with a limit on descriptors; skipped where it may not
 * be as high as that. */
static struct kept keep_files(const struct proctree *tree, rlim_t descriptors) {
  struct kept k = {0};
  struct rlimit limit;

  assert_int_equal(getrlimit(RLIMIT_NOFILE, &k.before), 0);
  limit = k.before;
  limit.rlim_cur = descriptors;
  if (descriptors > limit.rlim_max || setrlimit(RLIMIT_NOFILE, &limit) < 0)
    skip();
  is_of_kernel = true;
  assert_int_equal(procfs_new(tree->root, &k.procfs), 0);
  is_of_kernel = false;
  return k;
}

static void end_keeping(struct kept *k) {
  procfs_free(k->procfs);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &k->before), 0);
}

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static void expect_kept_text(struct procfs *p, struct procfs_file *file,
                             const char *wanted) {
  struct span text;

  assert_int_equal(procfs_read_kept(p, 10, "statm", file, &text), 0);
  assert_int_equal(text.len, strlen(wanted));
  assert_string_equal(text.text, wanted);
}

TREE_TEST(kept_file_is_read_again_and_not_opened) {
  struct procfs_file file = {0};
  struct kept k = keep_files(tree, 2048);

  expect_kept_text(k.procfs, &file, "1 2 3\n");
  assert_int_equal(file.fd, PROCFS_KEPT_LEAST_FD);
  assert_int_equal(fcntl(file.fd, F_GETFD), FD_CLOEXEC);
  proctree_write(tree, "10/statm", "40 50 60\n", 9);
  expect_kept_text(k.procfs, &file, "40 50 60\n");
  proctree_unlink(tree, "10/statm");
  expect_kept_text(k.procfs, &file, "40 50 60\n");
  procfs_drop(k.procfs, &file);
  assert_int_equal(file.fd, 0);
  assert_false(is_open(PROCFS_KEPT_LEAST_FD));
  procfs_drop(k.procfs, &file);
  end_keeping(&k);
}

TREE_TEST(files_are_kept_in_half_of_the_room_above_others) {
  struct procfs_file files[3] = {{0}};
  struct kept k = keep_files(tree, PROCFS_KEPT_LEAST_FD + 4);

  for (int i = 0; i < 3; i++)
    expect_kept_text(k.procfs, &files[i], "1 2 3\n");
  assert_int_equal(files[0].fd, PROCFS_KEPT_LEAST_FD);
  assert_int_equal(files[1].fd, PROCFS_KEPT_LEAST_FD + 1);
  assert_int_equal(files[2].fd, 0);
  /* One that is dropped makes room. */
  procfs_drop(k.procfs, &files[0]);
  expect_kept_text(k.procfs, &files[2], "1 2 3\n");
  assert_int_equal(files[2].fd, PROCFS_KEPT_LEAST_FD);
  procfs_drop(k.procfs, &files[1]);
  procfs_drop(k.procfs, &files[2]);
  assert_false(is_open(PROCFS_KEPT_LEAST_FD));
  assert_false(is_open(PROCFS_KEPT_LEAST_FD + 1));
  end_keeping(&k);
}

TREE_TEST(no_more_files_are_kept_than_the_most) {
  static struct procfs_file files[PROCFS_KEPT_MAX + 1];
  struct kept k =
      keep_files(tree, PROCFS_KEPT_LEAST_FD + 2 * PROCFS_KEPT_MAX + 2);

  for (size_t i = 0; i <= PROCFS_KEPT_MAX; i++)
    expect_kept_text(k.procfs, &files[i], "1 2 3\n");
  assert_int_not_equal(files[PROCFS_KEPT_MAX - 1].fd, 0);
  assert_int_equal(files[PROCFS_KEPT_MAX].fd, 0);
  for (size_t i = 0; i < PROCFS_KEPT_MAX; i++)
    procfs_drop(k.procfs, &files[i]);
  end_keeping(&k);
}

/* The numbers are taken by others meanwhile. */
TREE_TEST(no_file_is_kept_if_descriptors_run_out) {
  struct procfs_file file = {0};
  struct kept k = keep_files(tree, PROCFS_KEPT_LEAST_FD + 2);
  int taken[2];

  for (int i = 0; i < 2; i++)
    taken[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, PROCFS_KEPT_LEAST_FD);
  expect_kept_text(k.procfs, &file, "1 2 3\n");
  assert_int_equal(file.fd, 0);
  for (int i = 0; i < 2; i++)
    close(taken[i]);
  expect_kept_text(k.procfs, &file, "1 2 3\n");
  assert_int_equal(file.fd, PROCFS_KEPT_LEAST_FD);
  procfs_drop(k.procfs, &file);
  end_keeping(&k);
}

TREE_TEST(file_outside_of_the_tree_is_kept_until_it_fails) {
  struct procfs_file file = {0};
  struct kept k = keep_files(tree, 2048);
  struct span text;
  char path[96];

  snprintf(path, sizeof(path), "%s/10/statm", tree->root);
  assert_int_equal(procfs_read_open(k.procfs, &file, &text), PROCFS_GONE);
  procfs_keep(k.procfs, path, O_RDONLY, false, &file);
  assert_int_equal(file.fd, PROCFS_KEPT_LEAST_FD);
  procfs_keep(k.procfs, path, O_RDONLY, false, &file);
  assert_false(is_open(PROCFS_KEPT_LEAST_FD + 1));
  proctree_write(tree, "10/statm", "40\n", 3);
  assert_int_equal(procfs_read_open(k.procfs, &file, &text), 0);
  assert_string_equal(text.text, "40\n");
  proctree_write(tree, "10/statm", "", 0);
  assert_int_equal(procfs_read_open(k.procfs, &file, &text), PROCFS_NO_MM);
  assert_false(is_open(PROCFS_KEPT_LEAST_FD));
  assert_int_equal(procfs_read_open(k.procfs, &file, &text), PROCFS_GONE);
  end_keeping(&k);
}

/* Others get none: plugins that use select(2) need the low numbers. */
TREE_TEST(needed_files_have_low_descriptors_if_there_is_no_room_above) {
  static struct procfs_file files[PROCFS_KEPT_LOW_MAX + 1];
  struct procfs_file other = {0};
  struct kept k = keep_files(tree, PROCFS_KEPT_LEAST_FD);
  struct span text;
  char path[96];

  snprintf(path, sizeof(path), "%s/10/statm", tree->root);
  for (int i = 0; i <= PROCFS_KEPT_LOW_MAX; i++)
    procfs_keep(k.procfs, path, O_RDONLY, true, &files[i]);
  assert_in_range(files[PROCFS_KEPT_LOW_MAX - 1].fd, 3,
                  PROCFS_KEPT_LEAST_FD - 1);
  assert_int_equal(files[PROCFS_KEPT_LOW_MAX].fd, 0);
  assert_int_equal(fcntl(files[0].fd, F_GETFD), FD_CLOEXEC);
  procfs_keep(k.procfs, path, O_RDONLY, false, &other);
  assert_int_equal(other.fd, 0);
  /* One that is dropped makes room. */
  procfs_drop(k.procfs, &files[0]);
  procfs_keep(k.procfs, path, O_RDWR, true, &files[PROCFS_KEPT_LOW_MAX]);
  assert_int_not_equal(files[PROCFS_KEPT_LOW_MAX].fd, 0);
  procfs_write_open(k.procfs, &files[PROCFS_KEPT_LOW_MAX], "9");
  assert_int_equal(procfs_read_open(k.procfs, &files[1], &text), 0);
  assert_string_equal(text.text, "9 2 3\n");
  /* It is not open to be written. */
  procfs_write_open(k.procfs, &files[1], "8");
  assert_int_equal(files[1].fd, 0);
  for (int i = 0; i <= PROCFS_KEPT_LOW_MAX; i++)
    procfs_drop(k.procfs, &files[i]);
  end_keeping(&k);
}

/* With room above, they are there. */
TREE_TEST(needed_files_have_high_descriptors_if_there_is_room) {
  struct procfs_file files[2] = {{0}};
  struct kept k = keep_files(tree, PROCFS_KEPT_LEAST_FD + 2);
  char path[96];

  snprintf(path, sizeof(path), "%s/10/statm", tree->root);
  for (int i = 0; i < 2; i++)
    procfs_keep(k.procfs, path, O_RDONLY, true, &files[i]);
  assert_int_equal(files[0].fd, PROCFS_KEPT_LEAST_FD);
  assert_in_range(files[1].fd, 3, PROCFS_KEPT_LEAST_FD - 1);
  for (int i = 0; i < 2; i++)
    procfs_drop(k.procfs, &files[i]);
  expect_kept_text(k.procfs, &files[0], "1 2 3\n");
  assert_int_equal(files[0].fd, PROCFS_KEPT_LEAST_FD);
  procfs_drop(k.procfs, &files[0]);
  end_keeping(&k);
}

/* In a captured tree, a writer may replace these files. */
TREE_TEST(no_file_is_kept_without_room_or_of_unknown_origin) {
  static const struct {
    const char *name;
    rlim_t descriptors;
    bool is_captured, is_of_nobody, is_limit_unknown;
  } cases[] = {
      {"usual limit", .descriptors = PROCFS_KEPT_LEAST_FD},
      {"captured tree", 2048, .is_captured = true},
      {"file system that is not known", 2048, .is_of_nobody = true},
      {"limit that is not known", 2048, .is_limit_unknown = true},
  };
  char path[96];

  snprintf(path, sizeof(path), "%s/10/statm", tree->root);
  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct kept k = keep_files(tree, cases[i].descriptors);
    struct procfs_file file = {0};
    struct procfs *p;

    is_of_kernel = !cases[i].is_captured;
    is_of_nobody = cases[i].is_of_nobody;
    is_limit_unknown = cases[i].is_limit_unknown;
    assert_int_equal(procfs_new(tree->root, &p), 0);
    is_of_kernel = is_of_nobody = is_limit_unknown = false;
    expect_kept_text(p, &file, "1 2 3\n");
    if (file.fd != 0)
      fail_msg("%s: the file is kept", cases[i].name);
    procfs_keep(p, path, O_RDONLY, false, &file); /* and no other file */
    assert_int_equal(file.fd, 0);
    procfs_keep(p, path, O_RDONLY, cases[i].is_captured, &file);
    assert_int_equal(file.fd, 0);
    procfs_free(p);
    end_keeping(&k);
  }
}
