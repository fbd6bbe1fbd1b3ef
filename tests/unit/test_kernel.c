#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/kernel.h>

#include <stdio.h>
#include <sys/utsname.h>

/* fs/proc/task_mmu.c reads a percpu_counter without its parts, whose batch is
 * max(32, 2 * CPUs) (lib/percpu_counter.c). */
static void statm_is_off_by_a_batch_for_each_cpu(void **state) {
  static const struct {
    unsigned major, minor, cpus;
    uint64_t want;
  } cases[] = {
      {4, 14, 8, 0},
      {5, 3, 8, 0},
      {5, 19, 8, 0},
      {6, 0, 8, 0},
      {6, 1, 8, 0},
      {6, 2, 8, 256},
      {6, 16, 8, 256},
      {6, 17, 8, 0},
      {6, 18, 8, 0},
      {7, 0, 8, 0},
      {7, 2, 8, 0},
      {16, 6, 8, 0},
      {6, 8, 1, 32},
      {6, 8, 2, 64},
      {6, 8, 15, 480},
      {6, 8, 16, 512},
      {6, 8, 17, 578},
      {6, 8, 64, 8192},
      {6, 8, 0, 0},
      {6, 1, 8192, 0},
      {6, 8, 8192, 134217728},
      {6, 8, 100000, UINT64_C(20000000000)},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    uint64_t got =
        kernel_statm_slack_pages(cases[i].major, cases[i].minor, cases[i].cpus);

    if (got != cases[i].want)
      fail_msg("%u.%u with %u CPUs: %ju", cases[i].major, cases[i].minor,
               cases[i].cpus, (uintmax_t)got);
  }
}

static void the_running_kernel_says_its_release(void **state) {
  unsigned major = 0, minor = 0;
  struct utsname u;
  char begin[32];
  int n;

  (void)state;
  assert_int_equal(uname(&u), 0);
  assert_true(kernel_release(&major, &minor));
  n = snprintf(begin, sizeof(begin), "%u.%u", major, minor);
  assert_memory_equal(u.release, begin, (size_t)n);
  assert_true(u.release[n] < '0' || u.release[n] > '9');
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statm_is_off_by_a_batch_for_each_cpu),
      cmocka_unit_test(the_running_kernel_says_its_release),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
