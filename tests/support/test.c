/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "read/worker_pool.h"

#define TESTS_MAX 128

static struct CMUnitTest tests[TESTS_MAX];
static unsigned lines[TESTS_MAX];
static size_t n_tests;

static CMFixtureFunction group_setup, group_teardown;

/* Compilers call constructors in any order. */
void test_add(const struct CMUnitTest *test, unsigned line) {
  size_t i;

  if (n_tests == TESTS_MAX)
    __builtin_trap();
  for (i = n_tests++; i > 0 && lines[i - 1] > line; i--) {
    tests[i] = tests[i - 1];
    lines[i] = lines[i - 1];
  }
  tests[i] = *test;
  lines[i] = line;
}

void test_group(CMFixtureFunction setup, CMFixtureFunction teardown) {
  group_setup = setup;
  group_teardown = teardown;
}

static long page_size = 4096;

void test_set_page_size(long bytes) { page_size = bytes; }

WRAPPED(long, sysconf, int name);
long __wrap_sysconf(int name) {
  return name == _SC_PAGESIZE ? page_size : __real_sysconf(name);
}

WRAPPED(int, worker_pool_new, const struct worker_ops *ops, uint64_t timeout_ns,
        uint64_t wait_budget_ns, struct worker_pool **ret);
int __wrap_worker_pool_new(const struct worker_ops *ops, uint64_t timeout_ns,
                           uint64_t wait_budget_ns, struct worker_pool **ret) {
  const char *text = getenv("MACHINE_SLOWNESS");
  uint64_t slowness = text ? strtoull(text, NULL, 10) : 1;

  return __real_worker_pool_new(ops, slowness * timeout_ns,
                                slowness * wait_budget_ns, ret);
}

const char *error_name(int error) {
#define NAME(error)                                                            \
  { error, #error }
  static const struct {
    int error;
    const char *name;
  } names[] = {NAME(EACCES),  NAME(EAGAIN),   NAME(EBADMSG), NAME(EDQUOT),
               NAME(EFAULT),  NAME(EFBIG),    NAME(EINTR),   NAME(EIO),
               NAME(EISDIR),  NAME(ELOOP),    NAME(EMFILE),  NAME(ENFILE),
               NAME(ENOENT),  NAME(ENOMEM),   NAME(ENOSPC),  NAME(ENOSYS),
               NAME(ENOTDIR), NAME(EPERM),    NAME(ERANGE),  NAME(EROFS),
               NAME(ESRCH),   NAME(ETIMEDOUT)};
#undef NAME

  for (size_t i = 0; i < LENGTH(names); i++)
    if (names[i].error == error)
      return names[i].name;
  return "an error without a name in test.c";
}

size_t heap_used(void) {
#ifdef __GLIBC__
  return mallinfo2().uordblks;
#else
  return 0;
#endif
}

/* An argument picks tests by a pattern, such as 'every_key*'. (cmocka's macro
 * for the rest counts the elements of an array.) */
int main(int argc, char **argv) {
  const char *seconds = getenv("TEST_SECONDS"); /* 0: any time */

  /* A test that hangs fails; valgrind takes its time. */
  alarm(seconds ? (unsigned)atoi(seconds) : 1800);
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  return _cmocka_run_group_tests("tests", tests, n_tests, group_setup,
                                 group_teardown);
}
