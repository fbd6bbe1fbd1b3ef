/* SPDX-License-Identifier: MIT */
/* Growth in made-up histories of memory: leaks, and what looks like them; what
 * makes a point, and what begins anew. GROWTH_TIMES=5 makes the longest of them
 * five times as long. */
#include "test.h"

#include "report/growth.h"

#include <math.h>
#include <stdlib.h>

#include "draw.h"
#define MB 1e6
#define HOUR 3600.0
#define DAY (24 * HOUR)
#define NEVER ((double)INFINITY)

/* What a history depends on beside the time. */
struct setting {
  double window, interval; /* seconds */
  uint64_t seed;
  double phase;  /* from 0 to 1, of what repeats */
  double height; /* of this repetition, about 1 */
  double turn;   /* number of this repetition */
  double state;  /* of a walk */
  double times;  /* in a window, of what repeats or comes back */
};

typedef double (*history)(struct setting *s, double t);

/* When growth was above 0, in seconds. */
struct finding {
  double first, last;  /* NEVER, 0: not at all */
  double known;        /* the first time that it was not NaN */
  double least, most;  /* bytes a second, while it was above 0 */
  unsigned beginnings; /* how often it rose above 0 */
};

/* Returns a sample after t seconds, of a group that has no limit, and a new
 * member each time. */
static struct growth_sample sample_at(double t, double bytes) {
  return (struct growth_sample){.time_ns = NS + (uint64_t)(t * (double)NS),
                                .has_members = true,
                                .oldest_start = 1,
                                .newest_start = 1 + (uint64_t)t,
                                .is_known = true,
                                .bytes = (uint64_t)fmax(bytes, 0),
                                .whole_bytes = (uint64_t)fmax(bytes, 0),
                                .room_bytes = (double)NAN};
}

static void note(struct growth *g, struct growth_sample s) {
  growth_note(g, &s);
}

static double chance(void) { return (double)draw(1 << 30) / (1 << 30); }

static double bell(void) {
  double sum = 0;

  for (int i = 0; i < 12; i++)
    sum += chance();
  return sum - 6;
}

static void note_finding(struct finding *found, const struct growth *g,
                         double t) {
  double growth = g->bytes_per_second;

  if (!isnan(growth))
    found->known = fmin(found->known, t);
  if (!(growth > 0))
    return;
  found->beginnings += found->last < t - 1.5 * (double)g->window_ns / NS / 64 ||
                       found->first == NEVER;
  found->first = fmin(found->first, t);
  found->last = t;
  found->least = fmin(found->least, growth);
  found->most = fmax(found->most, growth);
}

static struct setting set(double window, double interval, uint64_t seed) {
  struct setting s = {.window = window, .interval = interval, .seed = seed};

  draw_begin(seed * UINT64_C(0x9e3779b97f4a7c15));
  s.phase = chance();
  s.turn = -1;
  return s;
}

static unsigned long_times(void) {
  const char *text = getenv("GROWTH_TIMES");

  return text ? (unsigned)atoi(text) : 1;
}

/* Lets the history last so long, in seconds. */
static struct finding play(struct setting *s, history memory, double length) {
  struct finding found = {.first = NEVER, .known = NEVER, .least = NEVER};
  struct growth g;

  growth_init(&g, (uint64_t)(s->window * (double)NS));
  for (double t = 0; t < length; t += s->interval) {
    note(&g, sample_at(t, memory(s, t)));
    assert_in_range(g.n, 0, GROWTH_POINTS);
    note_finding(&found, &g, t);
  }
  return found;
}

/* --- leaks --- */

static double moves_by_chance(void) { return 50 * MB * chance(); }

static double leak(struct setting *s, double t) {
  (void)s;
  return 500 * MB + moves_by_chance() + MB * t;
}

/* Of a service that has run for two windows. */
static double leak_later(struct setting *s, double t) {
  return 500 * MB + moves_by_chance() + MB * fmax(t - 2 * s->window, 0);
}

static double leak_later_in_waves(struct setting *s, double t) {
  double wave = sin((t / 300 + s->phase) * 2 * acos(-1));

  return 500 * MB + 25 * MB * wave + MB * fmax(t - 2 * s->window, 0);
}

static double leak_in_steps(struct setting *s, double t) {
  double step = s->window / 30;

  return 500 * MB + MB * step * floor(t / step + s->phase);
}

TEST(a_leak_of_1_mb_a_second_is_found_within_20_minutes) {
  static const history leaks[] = {leak_later, leak_later_in_waves};
  static const double intervals[] = {1, 10, 60};

  for (size_t i = 0; i < LENGTH(intervals); i++)
    for (uint64_t seed = 1; seed <= (i == 0 ? 10 : 100); seed++) {
      struct setting s = set(HOUR, intervals[i], seed);
      struct finding found = play(&s, leaks[seed % 2], 4 * HOUR);

      if (!(found.first > 2 * HOUR && found.first <= 2 * HOUR + 1200))
        fail_msg("interval %g, seed %d: after %g s", intervals[i], (int)seed,
                 found.first - 2 * HOUR);
      assert_true(found.last > 4 * HOUR - 120 && found.beginnings == 1);
      assert_true(found.least > 0.8 * MB && found.most < 1.2 * MB);
    }
}

/* The truth is the history's: after two windows, or at the first sample. A
 * point is of the lowest sample in its 64th, and noise hides the first 50 s. */
TEST(growth_has_the_time_of_its_beginning) {
  static const struct {
    history memory;
    double begin, early; /* a wave hides it in its trough */
  } cases[] = {{leak_later, 2 * HOUR, 60},
               {leak_later_in_waves, 2 * HOUR, 210},
               {leak, 0, 0}};

  for (size_t i = 0; i < LENGTH(cases); i++)
    for (uint64_t seed = 1; seed <= 50; seed++) {
      struct setting s = set(HOUR, 10, seed);
      struct growth g;
      bool was_growing = false;

      growth_init(&g, (uint64_t)HOUR * NS);
      for (double t = 0; t < 4 * HOUR; t += s.interval) {
        double since;

        note(&g, sample_at(t, cases[i].memory(&s, t)));
        since = (double)(growth_since_ns(&g) - NS) / (double)NS;
        if (!(g.bytes_per_second > 0)) {
          assert_int_equal(growth_since_ns(&g), 0);
          continue;
        }
        was_growing = true;
        if (since < cases[i].begin - cases[i].early ||
            since > cases[i].begin + 120)
          fail_msg("case %zu, seed %d: since %g s", i, (int)seed, since);
      }
      assert_true(was_growing);
    }
}

/* It goes back, and a second leak has its own beginning. */
TEST(growth_that_has_ended_has_no_beginning) {
  struct growth g;

  growth_init(&g, (uint64_t)HOUR * NS);
  for (double t = 0; t < 2 * HOUR; t += 10)
    note(&g, sample_at(t, 500 * MB + MB * t / 10));
  assert_int_equal(growth_since_ns(&g), NS);
  for (double t = 2 * HOUR; t < 4 * HOUR; t += 10)
    note(&g, sample_at(t, 1220 * MB));
  assert_true(g.bytes_per_second == 0);
  assert_int_equal(growth_since_ns(&g), 0);
  for (double t = 4 * HOUR; t < 5 * HOUR; t += 10)
    note(&g, sample_at(t, 1220 * MB + MB * (t - 4 * HOUR)));
  assert_true(g.bytes_per_second > 0);
  assert_in_range(growth_since_ns(&g) / NS, 4 * 3600 - 60, 4 * 3600 + 180);
}

TEST(a_leak_since_the_start_is_found_after_a_quarter_of_the_window) {
  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct setting s = set(HOUR, 10, seed);
    struct finding found = play(&s, leak, 2 * HOUR);

    if (found.known < 900 || found.known > 1020 || found.first > 1140)
      fail_msg("seed %d: after %g s, %g s", (int)seed, found.known,
               found.first);
    assert_true(found.least > 0.95 * MB && found.most < 1.05 * MB);
  }
}

/* Ten times what leaks in an hour comes at once, and stays for 10 minutes. */
static double leak_below_a_dump(struct setting *s, double t) {
  bool is_dump = t > 2 * s->window && t < 2 * s->window + 600;

  return 500 * MB + moves_by_chance() / 5 + MB * t / 30 +
         (is_dump ? 1200 * MB : 0);
}

TEST(a_dump_does_not_change_the_speed_of_a_leak) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct setting s = set(HOUR, 10, seed);
    struct finding found = play(&s, leak_below_a_dump, 3 * HOUR);

    assert_true(found.first < HOUR && found.last > 2 * HOUR);
    assert_true(found.least > 0.8 * MB / 30 && found.most < 1.2 * MB / 30);
  }
}

TEST(a_leak_is_found_in_windows_of_any_length) {
  static const double windows[] = {600, 3600, DAY, 7 * DAY};

  for (size_t i = 0; i < LENGTH(windows); i++) {
    struct setting s = set(windows[i], windows[i] / 600, 1);
    struct finding found = play(&s, leak_in_steps, 3 * windows[i]);

    if (!(found.first < windows[i] && found.last > 2.9 * windows[i]))
      fail_msg("window %g: from %g to %g", windows[i], found.first, found.last);
    assert_true(found.least > 0.8 * MB && found.most < 1.2 * MB);
  }
}

static double leak_for_weeks(struct setting *s, double t) {
  return leak(s, t) - MB * t / 2;
}

/* An hour of it is less than a hundredth of the memory after two days. */
TEST(a_leak_is_reported_until_it_ends) {
  struct setting s = set(HOUR, 60, 1);
  double end = 6 * DAY * long_times();
  struct finding found = play(&s, leak_for_weeks, end);

  assert_true(found.last > end - 120 && found.beginnings == 1);
}

/* --- no leaks --- */

static double still(struct setting *s, double t) {
  (void)s, (void)t;
  return 700 * MB;
}

static double noise(struct setting *s, double t) {
  (void)s, (void)t;
  return 500 * MB + moves_by_chance();
}

static double broad_noise(struct setting *s, double t) {
  (void)s, (void)t;
  return 500 * MB + 50 * MB * bell();
}

static double falls(struct setting *s, double t) {
  return 9000 * MB - 5000 * MB * t / s->window / 30 + moves_by_chance();
}

/* Comes back from where it wanders to so often. */
static double wanders(struct setting *s, double t) {
  double keep = exp(-s->interval / (s->window / s->times));

  (void)t;

  s->state = keep * s->state + sqrt(1 - keep * keep) * bell();
  return 1000 * MB + 50 * MB * s->state;
}

static double warms_up(struct setting *s, double t) {
  double part = 1 - exp(-t / (s->window * (0.02 + 0.15 * s->phase)));

  return 100 * MB + 2000 * MB * part + moves_by_chance();
}

/* A cache that is loaded, at one speed. */
static double is_loaded(struct setting *s, double t) {
  double part = fmin(t / (s->window * 0.22 * s->phase), 1);

  return 100 * MB + 2000 * MB * part + moves_by_chance();
}

/* A dump lasts a fifth of the window, and comes once in 24 windows. */
static double dumps_at_night(struct setting *s, double t) {
  double now = fmod(t / s->window + 24 * s->phase, 24) * 5;
  double dump = now < 1 ? now : now < 1.5 ? 1 : 0;

  return 1000 * MB + moves_by_chance() + 1000 * MB * dump;
}

/* Garbage that is collected so often. */
static double collects(struct setting *s, double t) {
  double at = t / s->window * s->times + s->phase;

  if (s->turn != floor(at)) {
    s->turn = floor(at);
    s->height = 0.8 + 0.4 * chance();
  }
  return 300 * MB + 1000 * MB * s->height * (at - s->turn) + 20 * MB * chance();
}

static double steps_up(struct setting *s, double t) {
  return 500 * MB + moves_by_chance() +
         (t > 3 * s->phase * s->window ? 800 * MB : 0);
}

static double peaks(struct setting *s, double t) {
  double at = fmod(t / s->window + s->phase, 1.0) * 20;

  return 500 * MB + moves_by_chance() + (at < 1 ? 3000 * MB * at : 0);
}

static const struct {
  const char *name;
  history memory;
  double times;
} innocent[] = {
    {"still", still, 0},
    {"noise", noise, 0},
    {"broad noise", broad_noise, 0},
    {"falls", falls, 0},
    {"wanders", wanders, 20},
    {"warms up", warms_up, 0},
    {"is loaded", is_loaded, 0},
    {"dumps at night", dumps_at_night, 0},
    {"collects often", collects, 100},
    {"collects 12 times", collects, 12},
    {"collects 6 times", collects, 6},
    {"collects 4 times", collects, 4},
    {"steps up", steps_up, 0},
    {"peaks", peaks, 0},
};

static void assert_innocent(double window, double interval, uint64_t seeds) {
  for (size_t i = 0; i < LENGTH(innocent); i++)
    for (uint64_t seed = 1; seed <= seeds; seed++) {
      struct setting s = set(window, interval, seed);
      struct finding found;

      s.times = innocent[i].times;
      found = play(&s, innocent[i].memory, 26 * window);

      if (found.first != NEVER)
        fail_msg("%s, window %g, interval %g, seed %d: %g MB/s from %g to %g",
                 innocent[i].name, window, interval, (int)seed, found.most / MB,
                 found.first, found.last);
      if (found.known == NEVER)
        fail_msg("%s, window %g, interval %g: nothing is known",
                 innocent[i].name, window, interval);
    }
}

TEST(stable_memory_is_never_taken_for_a_leak) {
  assert_innocent(600, 1, 4);
  assert_innocent(600, 10, 20);
  assert_innocent(600, 60, 20);
  assert_innocent(3600, 1, 1);
  assert_innocent(3600, 10, 20);
  assert_innocent(3600, 60, 20);
  assert_innocent(DAY, 60, 2);
  assert_innocent(DAY, 600, 20);
}

TEST(slow_random_changes_are_rarely_taken_for_a_leak) {
  unsigned n = 0;

  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct setting s = set(HOUR, 10, seed);

    s.times = 10;
    n += play(&s, wanders, DAY).first != NEVER;
  }
  assert_in_range(n, 0, 4);
}

static double trickle(struct setting *s, double t) {
  return 10 * MB + 0.9 * MB * t / s->window;
}

static double one_percent(struct setting *s, double t) {
  return 9000 * MB + 85 * MB * t / s->window;
}

TEST(a_rise_that_does_not_matter_is_not_growth) {
  static const history small[] = {trickle, one_percent};

  for (size_t i = 0; i < LENGTH(small); i++) {
    struct setting s = set(HOUR, 10, 1);

    assert_true(play(&s, small[i], 5 * HOUR).first == NEVER);
  }
}

TEST(growth_is_unknown_with_an_interval_above_a_tenth_of_the_window) {
  struct setting s = set(600, 75, 1);

  assert_true(play(&s, leak, DAY).known == NEVER);
}

/* --- what is learnt --- */

/* The load rises to 5 GB from 6 to 8 o'clock, and falls back at 20. */
static double load_of_a_day(struct setting *s, double t) {
  double hour = fmod(t, DAY) / HOUR;
  double part = hour < 6 ? 0 : fmin((hour - 6) / 2, 1);

  (void)s;
  return 1000 * MB + moves_by_chance() + (hour < 20 ? 4000 * MB * part : 0);
}

/* On the first day a cache fills, in the night. */
static double fills_once(struct setting *s, double t) {
  double part = fmax(0, fmin((t - 2 * HOUR) / 3000, 1));

  return load_of_a_day(s, t) + 6000 * MB * part;
}

TEST(a_daily_load_is_taken_for_growth_once) {
  static const struct {
    history memory;
    double first;        /* within the hour that follows */
    unsigned beginnings; /* the last within three hours after 6 o'clock */
  } cases[] = {{load_of_a_day, 6 * HOUR, 1}, {fills_once, 2 * HOUR, 2}};

  for (size_t i = 0; i < LENGTH(cases); i++)
    for (uint64_t seed = 1; seed <= 6; seed++) {
      struct setting s = set(seed % 2 ? HOUR : HOUR / 2, 10, seed);
      struct finding found = play(&s, cases[i].memory, 6 * DAY);

      assert_true(found.first > cases[i].first &&
                  found.first < cases[i].first + HOUR);
      assert_true(found.last > 6 * HOUR && found.last < 9 * HOUR);
      assert_int_equal(found.beginnings, cases[i].beginnings);
    }
}

/* Memory rises until noon and falls until midnight, each day to another height.
 */
static double swings_each_day(struct setting *s, double t) {
  double day = t / DAY;

  if (s->turn != floor(day)) {
    s->turn = floor(day);
    s->height = 0.8 + 0.4 * chance();
  }
  return 2000 * MB + moves_by_chance() +
         500 * MB * s->height * (1 - cos(day * 2 * acos(-1)));
}

TEST(a_swing_that_was_learnt_is_rarely_taken_for_growth_again) {
  unsigned n = 0, histories = long_times();

  for (uint64_t i = 0; i < histories; i++) {
    struct setting s = set(HOUR, 60, 4 + i);

    n += play(&s, swings_each_day, 60 * DAY).beginnings;
  }
  assert_in_range(n, histories, 12 * histories);
}

/* A rise that comes down is followed by a leak, `wait` seconds after. */
static double wait_seconds, top_mb;
static double rise_and_leak(struct setting *s, double t) {
  double rise = t < 3 * HOUR ? 0 : t < 5 * HOUR ? (t - 3 * HOUR) / 2 / HOUR : 0;

  (void)s;
  return 1000 * MB + moves_by_chance() + top_mb * MB * rise +
         MB * fmax(t - 5 * HOUR - wait_seconds, 0);
}

/* Returns how many seconds after its begin the leak is found. */
static double found_after(double wait, double top) {
  struct growth g;
  double began = 5 * HOUR + wait;

  wait_seconds = wait;
  top_mb = top;
  draw_begin(7);
  growth_init(&g, (uint64_t)HOUR * NS);
  for (double t = 0; t < began + 3 * HOUR; t += 10) {
    note(&g, sample_at(t, rise_and_leak(NULL, t)));
    if (t > began && g.bytes_per_second > 0)
      return t - began;
  }
  return NEVER;
}

TEST(a_leak_is_found_above_a_peak_that_was_learnt) {
  double after = found_after(4 * HOUR, 4000);
  /* 4,000 MB and a quarter, at 1 MB a second; the lowest amount of the last
   * part of the window may be ten minutes old. */
  assert_true(after > 4900 && after < 5900);
}

TEST(learnt_peaks_are_forgotten) {
  double after = found_after(31 * HOUR, 4000);

  assert_true(after > 0 && after <= 1200);
}

/* --- the group --- */

/* Growth after a leak of so many seconds, with another sample at the end. */
static double growth_after(struct growth *g, double seconds,
                           struct growth_sample last) {
  growth_init(g, (uint64_t)HOUR * NS);
  draw_begin(3);
  for (double t = 0; t < seconds; t += 10)
    note(g, sample_at(t, leak(NULL, t)));
  assert_true(g->bytes_per_second > 0.9 * MB);
  growth_note(g, &last);
  return g->bytes_per_second;
}

TEST(a_restart_begins_anew) {
  struct growth g;
  struct growth_sample last = sample_at(7200, leak(NULL, 7200));

  last.oldest_start = last.newest_start = 2;
  assert_true(isnan(growth_after(&g, 7200, last)));
  for (double t = 7210; t < 10000; t += 10) {
    struct growth_sample sample = sample_at(t, leak(NULL, t));

    sample.oldest_start = sample.newest_start = 2;
    growth_note(&g, &sample);
    if (t < 7200 + 900 || t > 7200 + 1020)
      assert_true(isnan(g.bytes_per_second) == (t < 7200 + 900));
  }
}

TEST(unknown_and_uncertain_values_make_no_point) {
  for (int way = 0; way < 3; way++) {
    struct growth g;

    growth_after(&g, 7200, sample_at(7200, leak(NULL, 7200)));
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

/* Most of it may be the error of files, which are not in the amount. */
TEST(an_error_counts_by_all_memory_of_the_group) {
  for (int is_beyond = 0; is_beyond < 2; is_beyond++) {
    struct growth g;
    struct growth_sample sample = {.time_ns = 0};

    growth_init(&g, (uint64_t)HOUR * NS);
    for (double t = 0; t < 1200; t += 10) {
      sample = sample_at(t, 10 * MB + MB * t);
      sample.whole_bytes = 2400000000;
      sample.error_bytes = 300000000 + (uint64_t)is_beyond;
      growth_note(&g, &sample);
    }
    assert_true(isnan(g.bytes_per_second) == (is_beyond == 1));
  }
}

TEST(a_rise_within_the_error_is_not_growth) {
  for (uint64_t error = 1; error <= 2; error++) {
    struct growth g;
    bool is_told = false;

    growth_init(&g, (uint64_t)HOUR * NS);
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

/* --- time --- */

/* The clock of a suspended host may stand still, or have gone on. */
static struct growth leak_with_gap(double gap, double after) {
  struct growth g;

  growth_init(&g, (uint64_t)HOUR * NS);
  draw_begin(5);
  for (double t = 0; t < 5400 + after; t += 10) {
    double now = t < 5400 ? t : t + gap;
    note(&g, sample_at(now, leak(NULL, now)));
  }
  return g;
}

static double rises_after_gap(double t) {
  return 500 * MB + moves_by_chance() +
         1000 * MB * fmax(0, fmin((t - 3 * HOUR) / 840, 1));
}

TEST(points_after_a_gap_have_to_span_a_quarter_of_the_window) {
  struct growth g;

  growth_init(&g, (uint64_t)HOUR * NS);
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
  assert_true(isnan(leak_with_gap(2 * HOUR, 900).bytes_per_second));
  assert_true(leak_with_gap(2 * HOUR, 1300).bytes_per_second > 0.9 * MB);
}

TEST(intervals_of_any_length_leave_64_points) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    struct growth g;
    double t = 0;

    draw_begin(seed);
    growth_init(&g, 600 * NS);
    for (int i = 0; i < 2000; i++) {
      note(&g, sample_at(t, leak(NULL, t)));
      assert_in_range(g.n, 0, GROWTH_POINTS);
      for (size_t p = 1; p < g.n; p++)
        assert_true(g.points[p].time_ns > g.points[p - 1].time_ns);
      t += draw(20) == 0 ? (double)draw(900) : (double)draw(300) / 10;
    }
  }
}

/* --- over a restart of the daemon --- */

/* 1 MB/s, in a service that is large: an error of an eighth is more than half
 * of the rise. */
static double large_leak(double t) { return 20000 * MB + t * MB; }

/* It is told, as a later run finds it. */
static struct growth resumed_leak(void) {
  struct growth g;

  growth_init(&g, (uint64_t)HOUR * NS);
  for (double t = 0; t < 5400; t += 10)
    note(&g, sample_at(t, large_leak(t)));
  assert_true(g.bytes_per_second > 0.9 * MB);
  growth_resume(&g, (uint64_t)5400 * NS);
  return g;
}

/* The sums of the first minutes are too low, and their error says so. They
 * would end the rise for 30 windows. */
TEST(guesses_after_a_restart_do_not_end_a_rise) {
  struct growth g = resumed_leak();

  for (double t = 5400; t < 9000; t += 10) {
    bool is_guess = t < 5400 + 220;
    struct growth_sample sample =
        sample_at(t, large_leak(t) * (is_guess ? 0.89 : 1));

    sample.error_bytes = is_guess ? sample.bytes / 8 : 0;
    growth_note(&g, &sample);
    if (!(g.bytes_per_second > 0.9 * MB))
      fail_msg("%g at %g", g.bytes_per_second, t);
  }
}

/* If it is not known better, it counts again. */
TEST(unsure_sums_count_again_soon_after_a_restart) {
  struct growth g = resumed_leak();
  size_t n = 0;

  for (double t = 5400; t < 7200; t += 10) {
    struct growth_sample sample = sample_at(t, large_leak(t));

    sample.error_bytes = sample.bytes / 8;
    growth_note(&g, &sample);
    n += g.lowest.time_ns == sample.time_ns;
  }
  assert_true(n > 0);
}
