#include "test.h"

#include <smaps/kernel.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "proctree.h"

/* --- a kernel of our own ---------------------------------------------------
 */

/* The answer of uname(2); NULL for the real answer, "" for a failure. */
static const char *release;

int __real_uname(struct utsname *u);
int __wrap_uname(struct utsname *u);
int __wrap_uname(struct utsname *u) {
  if (!release)
    return __real_uname(u);
  if (!*release) {
    errno = EFAULT;
    return -1;
  }
  snprintf(u->release, sizeof(u->release), "%s", release);
  return 0;
}

/* A path that stands for /sys/kernel/mm/ksm, or NULL. */
static const struct proctree *ksm;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
  static const char real[] = "/sys/kernel/mm/ksm/";
  char whole[128];

  if (!ksm || strncmp(path, real, sizeof(real) - 1) != 0)
    return __real_open(path, flags, 0600);
  snprintf(whole, sizeof(whole), "%s/%s", ksm->root, path + sizeof(real) - 1);
  return __real_open(whole, flags);
}

/* --- tests -----------------------------------------------------------------
 */

TEST(the_running_kernel_says_its_release) {
  unsigned major = 0, minor = 0;
  struct utsname u;
  char begin[32];
  int n;

  assert_int_equal(uname(&u), 0);
  assert_true(kernel_release(&major, &minor));
  n = snprintf(begin, sizeof(begin), "%u.%u", major, minor);
  assert_memory_equal(u.release, begin, (size_t)n);
  assert_true(u.release[n] < '0' || u.release[n] > '9');
}

TEST(release_begins_with_two_numbers) {
  static const struct {
    const char *release;
    bool is_one;
    unsigned major, minor;
  } cases[] = {
      {"6.18.5", true, 6, 18},
      {"6.18", true, 6, 18},
      {"4.14.0-3-amd64", true, 4, 14},
      {"5.10+", true, 5, 10},
      {"6", false, 0, 0},
      {"6-rc1", false, 0, 0},
      {"6.", false, 0, 0},
      {"6.x", false, 0, 0},
      {"x.6", false, 0, 0},
      {".6", false, 0, 0},
      {"", false, 0, 0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    unsigned major = 77, minor = 77;
    bool is_one;

    release = cases[i].release;
    is_one = kernel_release(&major, &minor);
    release = NULL;
    if (is_one != cases[i].is_one)
      fail_msg("\"%s\" is %sone", cases[i].release, is_one ? "" : "n");
    if (is_one) {
      assert_int_equal(major, cases[i].major);
      assert_int_equal(minor, cases[i].minor);
    }
  }
}

/* The texts of run and pages_sharing; NULL where there is no such file. */
TEST(merging_is_where_it_runs_and_has_merged_something) {
  static const struct {
    const char *run, *sharing;
    bool is_merging;
  } cases[] = {
      {"1\n", "1\n", true},
      {"1\n", "18446744073709551615\n", true},
      {"1\n", "0\n", false},
      {"0\n", "1\n", false},
      {"2\n", "1\n", false}, /* all is taken apart */
      {"1\n", NULL, false},
      {NULL, "1\n", false},
      {"1\n", "", false},
      {"", "1\n", false},
      {"1\n", "many\n", false},
      {"on\n", "1\n", false},
      {"1\n", "18446744073709551616\n", false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct proctree tree;
    struct ksm found;

    proctree_make(&tree);
    if (cases[i].run)
      proctree_write(&tree, "run", cases[i].run, strlen(cases[i].run));
    if (cases[i].sharing)
      proctree_write(&tree, "pages_sharing", cases[i].sharing,
                     strlen(cases[i].sharing));
    ksm = &tree;
    kernel_read_ksm(&found);
    ksm = NULL;
    proctree_remove(&tree);
    if (ksm_is_merging(&found) != cases[i].is_merging)
      fail_msg("case %zu: merging is %d", i, ksm_is_merging(&found));
  }
}
