#include "test.h"

#include "proc/host_files.h"

#include "fixture.h"

FIXTURE_PARSER(loadavg_parse, uint32_t)

TEST(tasks_stand_behind_the_runnable_ones) {
  uint32_t tasks;

  assert_int_equal(parse(TEXT("0.20 0.18 0.12 1/80 11206\n"), &tasks), 0);
  assert_int_equal(tasks, 80);
  assert_int_equal(
      parse(TEXT("1024.00 99.05 7.12 900/4194303 4194303\n"), &tasks), 0);
  assert_int_equal(tasks, 4194303);
}

TEST(malformed_text_is_rejected) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"two loads", TEXT("0.20 0.18 1/80 11206\n")},
      {"no tasks", TEXT("0.20 0.18 0.12 1 11206\n")},
      {"no last pid", TEXT("0.20 0.18 0.12 1/80\n")},
      {"cut", TEXT("0.20 0.18 0.12 1/80 112")},
      {"negative", TEXT("0.20 0.18 0.12 -1/80 11206\n")},
      {"overflow", TEXT("0.20 0.18 0.12 1/4294967296 11206\n")},
      {"further line", TEXT("0.20 0.18 0.12 1/80 11206\n\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}
