/* Growth: what makes a point, and what begins anew. */
#include "test.h"

#include "report/growth.h"

#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "growth_sample.h"

#define MB 1e6
#define HOUR 3600.0

static double moves_by_chance(void) {
  return 50 * MB * (double)draw(1 << 20) / (1 << 20);
}

static double leak(double t) { return 500 * MB + moves_by_chance() + MB * t; }

/* --- the group ---------------------------------------------------------------
 */

/* Growth after a leak of so many seconds, with another sample at the end. */
static double growth_after(struct growth *g, double seconds,
                           struct growth_sample last) {
  growth_init(g, (uint64_t)HOUR * NS, 0);
  draw_begin(3);
  for (double t = 0; t < seconds; t += 10) {
    struct growth_sample sample = sample_at(t, leak(t));

    growth_note(g, &sample);
  }
  assert_true(g->bytes_per_second > 0.9 * MB);
  growth_note(g, &last);
  return g->bytes_per_second;
}

TEST(a_restart_begins_anew) {
  struct growth g;
  struct growth_sample last = sample_at(7200, leak(7200));

  last.oldest_start = last.newest_start = 2;
  assert_true(isnan(growth_after(&g, 7200, last)));
  for (double t = 7210; t < 10000; t += 10) {
    struct growth_sample sample = sample_at(t, leak(t));

    sample.oldest_start = sample.newest_start = 2;
    growth_note(&g, &sample);
    assert_true(isnan(g.bytes_per_second) == (t < 7200 + 1200));
  }
}

TEST(while_a_member_stays_it_is_no_restart) {
  struct growth g;
  struct growth_sample last = sample_at(7200, leak(7200));

  last.newest_start = 100;
  assert_true(growth_after(&g, 7200, last) > 0);
  last = sample_at(7200, leak(7200));
  last.oldest_start = last.newest_start = 0; /* not known in this interval */
  assert_true(growth_after(&g, 7200, last) > 0);
}

TEST(start_times_that_come_late_are_no_restart) {
  struct growth g;

  growth_init(&g, (uint64_t)HOUR * NS, 0);
  for (double t = 0; t < 1500; t += 10) {
    struct growth_sample sample = sample_at(t, leak(t));

    if (t < 20)
      sample.oldest_start = sample.newest_start = 0;
    growth_note(&g, &sample);
  }
  assert_true(g.bytes_per_second > 0);
}

TEST(an_empty_group_has_no_growth) {
  struct growth g;
  struct growth_sample last = {.time_ns = 7201 * NS};

  assert_true(isnan(growth_after(&g, 7200, last)));
  assert_int_equal(g.n, 0);
}

TEST(what_is_unknown_or_uncertain_is_no_point) {
  for (int way = 0; way < 3; way++) {
    struct growth g;

    growth_after(&g, 7200, sample_at(7200, leak(7200)));
    for (double t = 7210; t < 9000; t += 10) {
      struct growth_sample sample = sample_at(t, way == 1 ? 0 : 1e9);

      sample.is_known = way != 0;
      sample.error_bytes = way == 2 ? 125000001 : 1;
      growth_note(&g, &sample);
      if (t < 7200 + 1100)
        assert_true(g.bytes_per_second > 0.9 * MB);
      if (t > 7200 + 1400)
        assert_true(isnan(g.bytes_per_second));
    }
  }
}

TEST(a_rise_within_the_error_is_no_growth) {
  for (uint64_t error = 1; error <= 2; error++) {
    struct growth g;
    bool is_told = false;

    growth_init(&g, (uint64_t)HOUR * NS, 0);
    for (double t = 0; t < 2 * HOUR; t += 10) {
      struct growth_sample sample = sample_at(t, 2000 * MB + 30000 * t);

      /* The rise of an hour is 108 MB, five sixths of it 90 MB. */
      sample.error_bytes = error == 1 ? 40000000 : 50000000;
      growth_note(&g, &sample);
      is_told |= g.bytes_per_second > 0;
    }
    assert_true(is_told == (error == 1));
  }
}

/* --- time --------------------------------------------------------------------
 */

/* The clock of a suspended host may stand still, or have gone on. */
static struct growth leak_with_gap(double gap, double after) {
  struct growth g;

  growth_init(&g, (uint64_t)HOUR * NS, 0);
  draw_begin(5);
  for (double t = 0; t < 5400 + after; t += 10) {
    double now = t < 5400 ? t : t + gap;
    struct growth_sample sample = sample_at(now, leak(now));

    growth_note(&g, &sample);
  }
  return g;
}

TEST(a_short_gap_leaves_the_growth) {
  for (double after = 10; after < 1000; after += 100) {
    struct growth g = leak_with_gap(300, after);

    assert_true(g.bytes_per_second > 0.9 * MB && g.bytes_per_second < 1.1 * MB);
  }
}

static double rises_after_gap(double t) {
  return 500 * MB + moves_by_chance() +
         1000 * MB * fmax(0, fmin((t - 3 * HOUR) / 840, 1));
}

TEST(points_after_a_gap_have_to_span_a_quarter_of_the_window) {
  struct growth g;

  growth_init(&g, (uint64_t)HOUR * NS, 0);
  draw_begin(5);
  for (double t = 0; t < 5 * HOUR; t += 10) {
    struct growth_sample sample = sample_at(t, rises_after_gap(t));

    if (t > 2 * HOUR + 1800 && t < 3 * HOUR)
      continue;
    growth_note(&g, &sample);
    assert_true(isnan(g.bytes_per_second) || g.bytes_per_second == 0);
  }
}

TEST(a_gap_longer_than_the_window_begins_anew) {
  assert_true(isnan(leak_with_gap(2 * HOUR, 1000).bytes_per_second));
  assert_true(leak_with_gap(2 * HOUR, 1300).bytes_per_second > 0.9 * MB);
}

TEST(intervals_of_any_length_leave_64_points) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    struct growth g;
    double t = 0;

    draw_begin(seed);
    growth_init(&g, 600 * NS, seed);
    for (int i = 0; i < 2000; i++) {
      struct growth_sample sample = sample_at(t, leak(t));

      growth_note(&g, &sample);
      assert_in_range(g.n, 0, GROWTH_POINTS);
      for (size_t p = 1; p < g.n; p++)
        assert_true(g.points[p].time_ns > g.points[p - 1].time_ns);
      t += draw(20) == 0 ? (double)draw(900) : (double)draw(300) / 10;
    }
  }
}

/* The time to judge must not come in one interval for all. */
TEST(groups_get_their_points_in_turns) {
  enum { GROUPS = 300 };
  struct growth *groups = calloc(GROUPS, sizeof(*groups));

  assert_non_null(groups);
  for (size_t i = 0; i < GROUPS; i++)
    growth_init(&groups[i], (uint64_t)HOUR * NS, i);
  for (double t = 0; t < 2 * HOUR; t += 10) {
    size_t n = 0;

    for (size_t i = 0; i < GROUPS; i++) {
      uint64_t due_ns = groups[i].due_ns;
      struct growth_sample sample = sample_at(t, 1e9);

      growth_note(&groups[i], &sample);
      n += groups[i].due_ns != due_ns;
    }
    assert_true(t == 0 || n <= GROUPS / 4);
  }
  free(groups);
}

/* --- the limit ---------------------------------------------------------------
 */

TEST(the_time_until_the_limit_is_the_room_by_the_growth) {
  struct growth g = {.bytes_per_second = 2 * MB, .room_bytes = 7200 * MB};

  assert_true(growth_seconds_until(&g) == 3600);
  g.room_bytes = 0;
  assert_true(growth_seconds_until(&g) == 0);
  g.room_bytes = (double)NAN;
  assert_true(isnan(growth_seconds_until(&g)));
  g = (struct growth){.bytes_per_second = 0, .room_bytes = 7200 * MB};
  assert_true(isnan(growth_seconds_until(&g)));
  g.bytes_per_second = (double)NAN;
  assert_true(isnan(growth_seconds_until(&g)));
}

TEST(amounts_of_any_size_are_borne) {
  struct growth g;

  growth_init(&g, 600 * NS, 1);
  for (unsigned i = 0; i < 1000; i++) {
    struct growth_sample sample = sample_at(i, 0);

    sample.bytes = i % 3 == 0 ? UINT64_MAX : i % 3 == 1 ? 0 : i;
    growth_note(&g, &sample);
    assert_true(isnan(g.bytes_per_second) || g.bytes_per_second == 0);
  }
}
