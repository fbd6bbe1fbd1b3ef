#include "test.h"

#include "since.h"

#include "proctree.h"

#include <stdlib.h>
#include <string.h>

/* ---- times ---- */

/* 2026-03-29 12:00:00 in Berlin, whose clock went from 2:00 to 3:00 that day;
 * the times are of date(1). */
#define NOW 1774778400
#define ZONE "CET-1CEST,M3.5.0,M10.5.0/3"

TEST(times_are_ages_clock_times_and_dates) {
  static const struct {
    const char *text;
    time_t when;
  } cases[] = {
      {"90m", NOW - 5400},
      {"2h", NOW - 7200},
      {"1h30m", NOW - 5400},
      {"2d12h", NOW - 216000},
      {"45s", NOW - 45},
      {"0s", NOW},
      {"11:59", NOW - 60},
      {"12:00", NOW},
      {"11:59:59", NOW - 1},
      {"01:30", NOW - 34200}, /* 9 h 30 min ago, because an hour is missing */
      {"12:01", NOW - 82740}, /* yesterday, a day of 23 h ago */
      {"23:59", NOW - 39660},
      {"03-29 11:00", NOW - 3600},
      {"03-28 11:00", NOW - 86400},
      {"2026-03-28 11:00", NOW - 86400},
      {"2026-03-28T11:00:30", NOW - 86370},
      {"2026-03-29", NOW - 39600},
      {"12-31 12:00", 1767178800}, /* of 2025 */
  };

  setenv("TZ", ZONE, 1);
  tzset();
  for (size_t i = 0; i < LENGTH(cases); i++) {
    time_t when = 0;

    if (!since_parse(cases[i].text, NOW, &when) || when != cases[i].when)
      fail_msg("%s: %jd, not %jd", cases[i].text, (intmax_t)when,
               (intmax_t)cases[i].when);
  }
}

TEST(other_texts_and_the_future_are_refused) {
  static const char *const texts[] = {
      "",
      "2",
      "h",
      "2x",
      "-2h",
      "2h ",
      "30m1h",
      "1h1h",
      "1.5h",
      "24:00",
      "13:60",
      "13",
      "13:20x",
      "yesterday",
      "2026-13-01",
      "2026-02-30 10:00",
      "2026-03-30",
      "2027-01-01 00:00",
      "99999999999999999999d",
      "20000000d",
      "\x1b",
  };

  setenv("TZ", ZONE, 1);
  tzset();
  for (size_t i = 0; i < LENGTH(texts); i++) {
    time_t when = 7;

    if (since_parse(texts[i], NOW, &when) || when != 7)
      fail_msg("\"%s\" is taken", texts[i]);
  }
}

/* ---- the history ---- */

static int make(void **state) {
  static struct proctree tree;

  setenv("TZ", "UTC0", 1);
  tzset();
  proctree_make(&tree);
  *state = &tree;
  return 0;
}

static int unmake(void **state) {
  proctree_remove(*state);
  return 0;
}

#define HISTORY_TEST(name) TEST_WITH(name, make, unmake, struct proctree *t)

/* A state with this time in its name, and that one in it. */
static void put(struct proctree *t, const char *name, unsigned seconds) {
  char path[100], text[200];

  snprintf(path, sizeof(path), "smaps-19700101T%sZ-state.json", name);
  snprintf(text, sizeof(text),
           "{\"format\":\"smaps-snapshot\",\"version\":2,\"time\":%u.5}",
           seconds);
  proctree_write(t, path, text, strlen(text));
}

/* The time of the state, or -1. */
static double load(const struct proctree *t, time_t when,
                   struct config_error *reason) {
  struct document d;
  double time;

  if (since_load(t->root, when, &d, reason) < 0)
    return -1;
  time = d.time;
  document_done(&d);
  return time;
}

HISTORY_TEST(the_state_is_the_youngest_that_is_old_enough) {
  struct config_error reason = {""};

  put(t, "010000", 3600);
  put(t, "010500", 3900);
  put(t, "011000", 4200);
  proctree_write(t, "smaps.json", "{}", 2);
  assert_true(load(t, 9999, &reason) == 4200.5);
  assert_true(load(t, 4200, &reason) == 4200.5);
  assert_true(load(t, 4199, &reason) == 3900.5);
  assert_true(load(t, 3600, &reason) == 3600.5);
  assert_true(load(t, 3599, &reason) < 0);
  assert_string_equal(reason.text, "has no state of 1970-01-01 00:59:59 UTC or "
                                   "before; the oldest is of 1970-01-01 "
                                   "01:00:00 UTC");
}

/* A version that kept one for each hour named it by the hour. */
HISTORY_TEST(a_state_counts_by_its_own_time) {
  struct config_error reason = {""};

  put(t, "010000", 3600 + 1800);
  put(t, "020000", 7200 + 2400);
  assert_true(load(t, 9000, &reason) == 5400.5);
  assert_true(load(t, 9600, &reason) == 9600.5);
}

HISTORY_TEST(a_bad_file_is_passed_over) {
  struct config_error reason = {""};

  put(t, "010000", 3600);
  proctree_write(t, "smaps-19700101T010500Z-state.json", "x", 1);
  proctree_write(t, "smaps-19700101T011000Z-state.json/x", "", 0);
  assert_true(load(t, 9999, &reason) == 3600.5);
}

HISTORY_TEST(a_directory_without_states_is_an_error) {
  struct config_error reason = {""};

  assert_true(load(t, 9999, &reason) < 0);
  assert_string_equal(reason.text, "has no state yet: expected a StateHistory");
  proctree_remove(t);
  assert_true(load(t, 9999, &reason) < 0);
  assert_string_equal(reason.text, "No such file or directory");
  proctree_make(t);
}
