#include "test.h"

#include "proc/host_files.h"

TEST(the_size_is_the_nearest_power_of_two) {
  static const struct {
    const char *what;
    uint64_t kib, tasks, size_kib;
  } cases[] = {
      /* Measured on x86-64 and two processors, among starting processes. */
      {"exact", 2560, 160, 16},
      {"the sum is behind", 2464, 160, 16},
      {"the sum is ahead", 2860, 162, 16},
      {"5,600 tasks", 89964, 5618, 16},
      {"i386, armhf", 800, 100, 8},
      {"pages of 64 KiB", 64 * 300, 300, 64},
      {"KASAN and these", 128 * 300, 300, 128},
      {"a quarter less", 12 * 1000, 1000, 16},
      {"a half more", 24 * 1000 - 1, 1000, 16},
      {"the least", 3 * 1000, 1000, 4},
      {"too small", 3 * 1000 - 1, 1000, 0},
      {"too large", 192 * 1000, 1000, 0},
      {"tasks of a container", 89964, 20, 0},
      {"no sum", 0, 100, 0},
      {"no tasks", 2560, 0, 0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    if (kernel_stack_size(cases[i].kib * KIB, cases[i].tasks) !=
        cases[i].size_kib * KIB)
      fail_msg("%s", cases[i].what);
}
