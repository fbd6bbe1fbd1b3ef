/* The line about a capture. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "proc/duration.h"
#include "snapshot/summary.h"

#define MINUTE (60 * NS_PER_S)

static void assert_line(const struct summary *s, size_t size,
                        const char *wanted) {
  char *line = malloc(size);

  assert_non_null(line);
  summary_format(s, line, size);
  assert_string_equal(line, wanted);
  free(line);
}

static struct summary whole(void) {
  return (struct summary){
      .has_pss = true,
      .pss_bytes = 1536 * MIB,
      .change = {.bytes = (int64_t)(300 * MIB), .age_ns = 62 * MINUTE},
      .limit_bytes = 2048 * MIB,
      .largest =
          {{.pid = 1234,
            .has_pss = true,
            .bytes = 812 * MIB,
            .comm = "postgres"},
           {.pid = 4194304, .has_pss = true, .bytes = 100 * KIB, .comm = "a b"},
           {.pid = 7, .has_pss = false, .bytes = 5 * MIB, .comm = "?"}},
      .n = 3};
}

TEST(a_line_has_all_that_is_known) {
  struct summary s = whole();

  assert_line(&s, 256,
              "PSS 1.5 GiB, +300.0 MiB in 62 min, limit 2.0 GiB; "
              "1234 postgres 812.0 MiB, 4194304 a b 100.0 KiB, 7 ? RSS 5.0 "
              "MiB");
}

TEST(changes_have_a_sign_and_amounts_a_unit) {
  static const struct {
    uint64_t pss;
    struct pss_change change;
    const char *line;
  } cases[] = {
      {0, {0}, "PSS 0.0 KiB"},
      {1023 * KIB, {0}, "PSS 1023.0 KiB"},
      {1024 * KIB - 1, {0}, "PSS 1.0 MiB"},
      {1024 * MIB, {0}, "PSS 1.0 GiB"},
      {UINT64_MAX, {0}, "PSS 16.0 EiB"},
      {MIB,
       {-(int64_t)(3 * MIB), 119 * NS_PER_S},
       "PSS 1.0 MiB, -3.0 MiB in 119 s"},
      {MIB, {0, 2 * MINUTE}, "PSS 1.0 MiB, +0.0 KiB in 2 min"},
      {MIB, {INT64_MIN, NS_PER_S}, "PSS 1.0 MiB, -8.0 EiB in 1 s"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    assert_line(&(struct summary){.has_pss = true,
                                  .pss_bytes = cases[i].pss,
                                  .change = cases[i].change},
                64, cases[i].line);
}

/* Neither a name nor a number is cut, at any size. */
TEST(what_does_not_fit_is_left_out_from_the_end) {
  static const char *const parts[] = {"PSS 1.5 GiB",
                                      ", +300.0 MiB in 62 min",
                                      ", limit 2.0 GiB",
                                      "; 1234 postgres 812.0 MiB",
                                      ", 4194304 a b 100.0 KiB",
                                      ", 7 ? RSS 5.0 MiB"};
  struct summary s = whole();

  for (size_t size = 1; size < 160; size++) {
    char wanted[256] = "";

    for (size_t i = 0; i < LENGTH(parts); i++) {
      if (strlen(wanted) + strlen(parts[i]) >= size)
        break;
      strcat(wanted, parts[i]);
    }
    assert_line(&s, size, wanted);
  }
}

TEST(a_line_says_that_the_group_has_ended) {
  struct summary s = whole();

  s.change.age_ns = 0;
  s.n = 1;
  s.has_ended = true;
  s.ended_ns = 12 * NS_PER_S;
  assert_line(&s, 256,
              "before its end, 12 s ago: PSS 1.5 GiB, limit 2.0 GiB; "
              "1234 postgres 812.0 MiB");
  s.ended_ns = 50 * MINUTE;
  assert_line(&s, 48, "before its end, 50 min ago: PSS 1.5 GiB");
  s.ended_ns = NS_PER_S / 10;
  assert_line(&s, 40, "before its end, 1 s ago: PSS 1.5 GiB");
}

TEST(a_process_is_formatted_in_bytes) {
  struct summary s = whole();
  char text[64];

  summary_format_process(&s.largest[1], text, sizeof(text));
  assert_string_equal(text, "4194304 a b 102400");
  summary_format_process(&s.largest[2], text, sizeof(text));
  assert_string_equal(text, "7 ? RSS 5242880");
}
