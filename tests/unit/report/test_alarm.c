/* SPDX-License-Identifier: MIT */
/* The alarm of a group: when it is told, and what belongs to one story. */
#include "test.h"

#include "report/alarm.h"

#include <math.h>

#include "base/duration.h"

#define UNKNOWN ((double)NAN)
#define INTERVAL 10 /* seconds */

static const struct alarm_policy all = {.limit_percent = 90,
                                        .full_within_ns = 86400 * NS_PER_S};

static struct alarm_state alarm;
static uint64_t now_s;
static enum alarm_cause worst; /* of what was told last */

/* A group in which nothing is wrong. */
static const struct alarm_sample fine = {.is_fixed = true,
                                         .is_seen = true,
                                         .has_members = true,
                                         .is_known = true,
                                         .used_percent = 50,
                                         .growth = 0,
                                         .seconds_until_full = UNKNOWN};

static int setup(void **ctx) {
  (void)ctx;
  alarm = (struct alarm_state){0};
  now_s = 1000;
  return 0;
}

#define ALARM_TEST(name) TEST_WITH(name, setup, NULL, void *unused)

/* The next interval. What is due is told at once. */
static enum severity note_with(const struct alarm_policy *p,
                               struct alarm_sample s) {
  enum severity severity;

  now_s += INTERVAL;
  s.time_ns = now_s * NS_PER_S;
  alarm_note(&alarm, p, &s);
  severity = alarm_severity(&alarm);
  worst = severity ? alarm_worst(&alarm) : ALARM_CAUSES;
  if (severity)
    alarm_told(&alarm, s.time_ns);
  return severity;
}

static enum severity note(struct alarm_sample s) { return note_with(&all, s); }

/* A letter for each interval: F, W, O or "." for nothing. */
static void expect(struct alarm_sample s, const char *told) {
  for (; *told; told++) {
    enum severity severity = note(s);
    char letter = severity == SEVERITY_FAILURE   ? 'F'
                  : severity == SEVERITY_WARNING ? 'W'
                  : severity == SEVERITY_OKAY    ? 'O'
                                                 : '.';

    if (letter != *told)
      fail_msg("%c at %s, second %u", letter, told, (unsigned)now_s);
  }
}

static struct alarm_sample without_members(void) {
  struct alarm_sample s = fine;

  s.has_members = false;
  s.used_percent = s.growth = UNKNOWN;
  return s;
}

static struct alarm_sample with_limit(double percent) {
  struct alarm_sample s = fine;

  s.used_percent = percent;
  return s;
}

static struct alarm_sample growing(double seconds) {
  struct alarm_sample s = fine;

  s.growth = 1000;
  s.seconds_until_full = seconds;
  return s;
}

static struct alarm_sample killed(void) {
  struct alarm_sample s = fine;

  s.new_kills = 1;
  return s;
}

ALARM_TEST(nothing_is_told_of_a_group_that_is_fine) {
  expect(fine, "..........");
  assert_int_equal(alarm.since_ns, 0);
}

ALARM_TEST(an_end_is_told_after_two_intervals_and_over_after_three) {
  expect(fine, ".");
  expect(without_members(), ".F....");
  assert_int_equal(alarm_worst(&alarm), ALARM_ENDED);
  expect(fine, "..O...");
}

/* As at the start of the daemon, before the service has started. */
ALARM_TEST(a_group_that_never_ran_has_not_ended) {
  expect(without_members(), "......");
}

ALARM_TEST(a_restart_within_an_interval_is_no_end) {
  expect(fine, ".");
  expect(without_members(), ".");
  expect(fine, "..");
  expect(without_members(), ".");
  expect(fine, "..");
}

ALARM_TEST(a_group_of_a_template_may_end) {
  struct alarm_sample s = fine;

  s.is_fixed = false;
  expect(s, "..");
  s = without_members();
  s.is_fixed = false;
  expect(s, "......");
}

ALARM_TEST(an_end_that_is_not_sure_is_unknown_memory) {
  struct alarm_sample unseen = without_members();

  unseen.is_seen = false;
  unseen.is_known = false;
  expect(fine, ".");
  expect(unseen, "..W...");
  assert_int_equal(alarm_worst(&alarm), ALARM_UNKNOWN);
}

ALARM_TEST(limit_has_hysteresis) {
  expect(with_limit(89.9), "...");
  expect(with_limit(90), "W..");
  expect(with_limit(88.3), "......");
  expect(with_limit(88.1), "..O...");
}

ALARM_TEST(unknown_limit_changes_nothing) {
  expect(with_limit(95), "W");
  expect(with_limit(UNKNOWN), "......");
  expect(with_limit(50), "..O");
}

ALARM_TEST(growth_warns_a_day_before_and_fails_two_hours_before) {
  expect(growing(90000), "....");
  expect(growing(86000), "..W...");
  expect(growing(7201), "..");
  expect(growing(7199), "..");
  expect(growing(7201), ".");
  expect(growing(7199), "..F...");
  expect(growing(7300), "....");
  expect(growing(90000), "......");
  expect(fine, "..O");
  expect(growing(86000), "..W");
}

/* A later growth begins anew. */
ALARM_TEST(growth_is_a_failure_only_after_three_intervals) {
  expect(growing(5000), "..F");
  expect(fine, "..O");
  expect(growing(5000), ".");
  expect(growing(72000), ".W...");
}

ALARM_TEST(unknown_growth_changes_nothing) {
  expect(growing(86000), "..W");
  expect(growing(UNKNOWN), "....");
  expect(fine, "..O");
}

/* One leak is told once; unless it gets worse. */
ALARM_TEST(limit_after_growth_is_the_same_story) {
  struct alarm_sample both = growing(5000);

  expect(growing(5000), "..F");
  both.used_percent = 95;
  expect(both, "......");
  expect(with_limit(95), "......");
  expect(fine, "..O");
}

/* 15 minutes are 90 intervals: the victim may still be ending in the first. */
ALARM_TEST(kill_is_told_an_interval_later_and_over_after_15_minutes) {
  expect(fine, ".");
  expect(killed(), ".");
  expect(fine, "F");
  for (int i = 2; i < 90; i++)
    expect(fine, ".");
  expect(fine, "O..");
}

ALARM_TEST(kill_of_the_last_process_is_told_at_once) {
  struct alarm_sample s = without_members();

  expect(fine, ".");
  s.new_kills = 1;
  expect(s, "F");
  s.new_kills = 0;
  expect(s, "..........");
}

ALARM_TEST(kill_is_told_although_growth_has_failed) {
  expect(growing(5000), "..F");
  expect(killed(), ".");
  expect(growing(5000), "F");
}

/* systemd stops what is left, which takes a while. */
ALARM_TEST(end_after_kill_is_the_same_story) {
  expect(fine, ".");
  expect(killed(), ".");
  expect(without_members(), "F.........");
  assert_int_equal(alarm.seen, 1 << ALARM_OOM_KILL | 1 << ALARM_ENDED);
}

/* What was told of the kill does not say it. */
ALARM_TEST(end_of_what_was_left_after_a_kill_is_told) {
  expect(fine, ".");
  expect(killed(), ".");
  expect(fine, "F");
  expect(without_members(), ".F........");
}

/* The kill is not why; and it was not told yet when a run of the daemon ended.
 */
ALARM_TEST(end_after_a_later_kill_is_told) {
  struct alarm_sample empty = without_members();

  expect(fine, ".");
  empty.new_kills = 1;
  expect(empty, "F");
  for (int i = 1; i < 90; i++)
    expect(fine, ".");
  expect(fine, "O");
  expect(killed(), ".");
  expect(fine, "F");
  expect(without_members(), ".F........");
}

ALARM_TEST(end_long_after_kill_is_another_story) {
  expect(fine, ".");
  expect(killed(), ".");
  expect(fine, "F.........");
  expect(without_members(), ".F...");
  assert_false(alarm_is_after_kill(&alarm, now_s * NS_PER_S));
}

/* A kill that waits does not hide what else begins, and is told with an end. */
ALARM_TEST(further_kills_join_an_end) {
  expect(fine, ".");
  expect(killed(), ".");
  expect(fine, "F......");
  expect(killed(), ".");
  expect(with_limit(95), "W");
  assert_int_equal(worst, ALARM_CGROUP_LIMIT);
  expect(without_members(), ".F");
  assert_int_equal(worst, ALARM_OOM_KILL);
  for (int i = 0; i < 60; i++)
    expect(without_members(), ".");
}

/* It waits for its 5 minutes when the daemon stops, for longer than it lasts.
 */
ALARM_TEST(a_kill_is_over_only_when_it_was_told) {
  expect(killed(), ".");
  expect(fine, "F..");
  expect(killed(), ".");
  now_s += 1000;
  expect(fine, "FO");
}

ALARM_TEST(a_kill_that_is_turned_off_changes_no_end) {
  struct alarm_policy p = all;
  struct alarm_sample s = without_members();

  p.causes[ALARM_OOM_KILL] = CHOICE_NO;
  note_with(&p, fine);
  for (int i = 0; i < 3; i++) {
    s.new_kills = 1;
    assert_int_equal(note_with(&p, s), SEVERITY_NONE);
    s.new_kills = 0;
    assert_int_equal(note_with(&p, s), SEVERITY_FAILURE);
    assert_int_equal(worst, ALARM_ENDED);
    for (int j = 0; j < 2; j++)
      note_with(&p, fine);
    assert_int_equal(note_with(&p, fine), SEVERITY_OKAY);
  }
}

/* Later it is as bad as it is without a kill. */
ALARM_TEST(kill_does_not_make_a_warning_worse) {
  expect(fine, ".");
  expect(killed(), ".");
  expect(fine, "F..");
  expect(growing(86000), "..W");
  expect(growing(7000), "..F");
}

/* A service that is killed again and again is told of every 5 minutes. */
ALARM_TEST(further_kills_are_summed_up) {
  expect(killed(), ".F");
  for (int i = 1; i < 30; i++)
    expect(killed(), ".");
  expect(killed(), "F");
  expect(fine, ".");
}

/* Without a word, the last was more than five minutes before. */
ALARM_TEST(a_single_later_kill_is_told_alike) {
  expect(killed(), ".");
  expect(fine, "F");
  for (int i = 0; i < 80; i++)
    expect(fine, ".");
  expect(killed(), ".");
  expect(fine, "F.");
}

ALARM_TEST(what_a_stop_may_have_lost_is_told_again) {
  struct alarm_sample s = without_members();

  expect(fine, ".");
  s.new_kills = 1;
  expect(s, "F");
  s.new_kills = 0;
  expect(s, "..");
  alarm_tell_again(&alarm);
  expect(s, "F...");
  expect(fine, "...");
  expect(growing(5000), "..F.");
  alarm_tell_again(&alarm);
  expect(growing(UNKNOWN), "..");
  expect(growing(5000), "F...");
  assert_int_equal(alarm_worst(&alarm), ALARM_OOM_KILL);
}

ALARM_TEST(unknown_is_told_only_of_what_was_known) {
  struct alarm_sample s = fine;

  s.is_known = false;
  expect(s, ".....");
  expect(fine, ".");
  expect(s, "..W...");
  expect(fine, "..O");
}

/* What is not told in an interval is due in the next. */
ALARM_TEST(what_was_not_told_is_still_due) {
  struct alarm_sample s = with_limit(95);

  for (int i = 1; i <= 2; i++) {
    s.time_ns = (uint64_t)i * NS_PER_S;
    alarm_note(&alarm, &all, &s);
    assert_int_equal(alarm_severity(&alarm), SEVERITY_WARNING);
  }
  alarm_told(&alarm, s.time_ns);
  s.time_ns += NS_PER_S;
  alarm_note(&alarm, &all, &s);
  assert_int_equal(alarm_severity(&alarm), SEVERITY_NONE);
}

ALARM_TEST(what_begins_to_end_is_not_told_any_more) {
  struct alarm_sample s = with_limit(95);

  s.time_ns = NS_PER_S;
  alarm_note(&alarm, &all, &s);
  assert_int_equal(alarm_severity(&alarm), SEVERITY_WARNING);
  expect(fine, "......");
  assert_int_equal(alarm.seen, 0);
}

/* What is told of growth does not say that the limit is reached: evidence does.
 */
ALARM_TEST(a_limit_that_is_not_told_wants_evidence_once) {
  struct alarm_sample both = growing(5000);

  expect(growing(5000), "..F");
  assert_false(alarm.wants_evidence);
  both.used_percent = 95;
  expect(both, ".");
  assert_true(alarm.wants_evidence);
  alarm.wants_evidence = false;
  expect(both, "......");
  assert_false(alarm.wants_evidence);
}

ALARM_TEST(what_is_unknown_for_an_hour_is_over) {
  expect(with_limit(95), "W");
  for (int i = 0; i < 359; i++)
    expect(with_limit(UNKNOWN), ".");
  expect(with_limit(UNKNOWN), "O");
}

ALARM_TEST(growth_of_a_group_that_is_restarted_again_and_again_is_over) {
  expect(growing(86000), "..W");
  for (int i = 0; i < 359; i++)
    expect(growing(UNKNOWN), ".");
  expect(growing(UNKNOWN), "O");
}

/* As on a host where another process hangs. */
ALARM_TEST(memory_of_what_has_ended_does_not_become_unknown) {
  struct alarm_sample s = without_members();

  expect(fine, ".");
  expect(s, ".F...");
  s.is_seen = s.is_known = false;
  expect(s, "......");
}

/* An interval of a minute sees the end two intervals after the kill. */
ALARM_TEST(end_after_kill_is_the_same_story_in_long_intervals) {
  struct alarm_sample s = without_members();

  s.new_kills = 1;
  alarm.had_members = true;
  for (int i = 1; i <= 10; i++) {
    s.time_ns = (uint64_t)i * 60 * NS_PER_S;
    alarm_note(&alarm, &all, &s);
    assert_int_equal(alarm_severity(&alarm),
                     i == 1 ? SEVERITY_FAILURE : SEVERITY_NONE);
    if (s.new_kills > 0)
      alarm_told(&alarm, s.time_ns);
    s.new_kills = 0;
  }
}

ALARM_TEST(it_remembers_what_it_was_and_since_when) {
  expect(with_limit(95), "W");
  assert_int_equal(alarm.since_ns, 1010 * NS_PER_S);
  expect(killed(), ".");
  expect(fine, "F");
  assert_int_equal(worst, ALARM_OOM_KILL);
  assert_int_equal(alarm.seen, 1 << ALARM_OOM_KILL | 1 << ALARM_CGROUP_LIMIT);
  for (int i = 2; i < 90; i++)
    expect(fine, ".");
  expect(fine, "O");
  assert_int_equal(worst, ALARM_OOM_KILL);
  assert_int_equal(alarm.since_ns, 1010 * NS_PER_S);
}

ALARM_TEST(each_cause_can_be_turned_off) {
  struct alarm_sample s = killed();

  s.used_percent = 95;
  s.growth = 1000;
  s.seconds_until_full = 5000;
  for (int i = 0; i < ALARM_CAUSES; i++) {
    struct alarm_policy p = all;

    for (int j = 0; j < ALARM_CAUSES; j++)
      p.causes[j] = i == j ? CHOICE_YES : CHOICE_NO;
    alarm = (struct alarm_state){.had_members = true, .was_known = true};
    if (i == ALARM_ENDED)
      s = without_members();
    if (i > ALARM_ENDED) {
      s = growing(5000);
      s.used_percent = 95;
      s.is_known = false;
    }
    for (int j = 0; j < 3; j++)
      note_with(&p, s);
    assert_int_equal(alarm.seen, 1 << i);
  }
}
