/* SPDX-License-Identifier: MIT */
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

TEST(times_are_ages_and_clock_times) {
  static const struct {
    const char *text;
    time_t when;
  } cases[] = {
      {"90m", NOW - 5400},     {"2h", NOW - 7200}, {"1h30m", NOW - 5400},
      {"2d12h", NOW - 216000}, {"45s", NOW - 45},  {"0s", NOW},
      {"11:59", NOW - 60},     {"12:00", NOW},     {"11:59:59", NOW - 1},
      {"01:30", NOW - 34200}, /* 9 h 30 min ago, because an hour is missing */
      {"12:01", NOW - 82740}, /* yesterday, a day of 23 h ago */
      {"23:59", NOW - 39660},
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

TEST(other_texts_are_refused) {
  static const char *const texts[] = {
      "",
      "2",
      "h",
      "2x",
      "-2h",
      "2h ",
      "1.5h",
      "24:00",
      "13:60",
      "13",
      "13:20x",
      "yesterday",
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

/* The name of the state that is found for a time, or the reason. */
static const char *find(const struct proctree *t, time_t when) {
  static struct config_error found;
  char *path = since_find(t->root, when, &found);

  if (path)
    config_error_format(&found, "%s", path + strlen(t->root) + 1);
  free(path);
  return found.text;
}

HISTORY_TEST(the_state_is_the_youngest_that_is_old_enough) {
  static const char *const names[] = {
      "smaps-19700101T010500Z-state.json", "smaps-19700101T010000Z-state.json",
      "smaps-19700101T011000Z-state.json", "smaps.json"};

  for (size_t i = 0; i < LENGTH(names); i++)
    proctree_write(t, names[i], "{}", 2);
  assert_string_equal(find(t, 9999), names[2]);
  assert_string_equal(find(t, 4200), names[2]);
  assert_string_equal(find(t, 4199), names[0]);
  assert_string_equal(find(t, 3600), names[1]);
  assert_string_equal(
      find(t, 3599),
      "has no state that old; the oldest is of 1970-01-01 01:00:00 UTC");
}

HISTORY_TEST(a_directory_without_states_is_an_error) {
  assert_string_equal(find(t, 9999),
                      "has no state yet: expected a StateHistory");
  proctree_remove(t);
  assert_string_equal(find(t, 9999), "No such file or directory");
  proctree_make(t);
}
