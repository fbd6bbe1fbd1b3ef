/* Growth in made-up histories of memory: leaks, and what looks like them. */
#include "test.h"

#include "report/growth.h"

#include <math.h>

#include "draw.h"
#include "growth_sample.h"

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
};

typedef double (*history)(struct setting *s, double t);

/* When growth was told, in seconds. */
struct told {
  double first, last;  /* NEVER, 0: not at all */
  double known;        /* the first time that it was not NaN */
  double least, most;  /* bytes a second, where it was told */
  unsigned beginnings; /* how often it was told after 0 */
};

static double chance(void) { return (double)draw(1 << 30) / (1 << 30); }

static double bell(void) {
  double sum = 0;

  for (int i = 0; i < 12; i++)
    sum += chance();
  return sum - 6;
}

static void note_told(struct told *told, const struct growth *g, double t) {
  double growth = g->bytes_per_second;

  if (!isnan(growth))
    told->known = fmin(told->known, t);
  if (!(growth > 0))
    return;
  told->beginnings += told->last < t - 1.5 * (double)g->window_ns / NS / 64 ||
                      told->first == NEVER;
  told->first = fmin(told->first, t);
  told->last = t;
  told->least = fmin(told->least, growth);
  told->most = fmax(told->most, growth);
}

static struct setting set(double window, double interval, uint64_t seed) {
  struct setting s = {.window = window, .interval = interval, .seed = seed};

  draw_begin(seed * UINT64_C(0x9e3779b97f4a7c15));
  s.phase = chance();
  s.turn = -1;
  return s;
}

/* Lets the history last so long, in seconds. */
static struct told play(struct setting *s, history memory, double length) {
  struct told told = {.first = NEVER, .known = NEVER, .least = NEVER};
  struct growth g;

  growth_init(&g, (uint64_t)(s->window * (double)NS), s->seed);
  for (double t = 0; t < length; t += s->interval) {
    struct growth_sample sample = sample_at(t, memory(s, t));

    growth_note(&g, &sample);
    assert_in_range(g.n, 0, GROWTH_POINTS);
    note_told(&told, &g, t);
  }
  return told;
}

/* --- leaks ------------------------------------------------------------------
 */

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

TEST(a_leak_of_1_mb_a_second_is_told_within_20_minutes) {
  static const history leaks[] = {leak_later, leak_later_in_waves};
  static const double intervals[] = {1, 10, 60};

  for (size_t i = 0; i < LENGTH(intervals); i++)
    for (uint64_t seed = 1; seed <= (i == 0 ? 10 : 100); seed++) {
      struct setting s = set(HOUR, intervals[i], seed);
      struct told told = play(&s, leaks[seed % 2], 4 * HOUR);

      if (!(told.first > 2 * HOUR && told.first <= 2 * HOUR + 1200))
        fail_msg("interval %g, seed %d: after %g s", intervals[i], (int)seed,
                 told.first - 2 * HOUR);
      assert_true(told.last > 4 * HOUR - 120 && told.beginnings == 1);
      assert_true(told.least > 0.8 * MB && told.most < 1.2 * MB);
    }
}

TEST(a_leak_since_the_start_is_told_when_a_third_of_the_window_is_over) {
  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct setting s = set(HOUR, 10, seed);
    struct told told = play(&s, leak, 2 * HOUR);

    assert_true(told.known == 1200);
    if (told.first != 1200)
      fail_msg("seed %d: after %g s", (int)seed, told.first);
    assert_true(told.least > 0.95 * MB && told.most < 1.05 * MB);
  }
}

TEST(a_leak_is_told_in_windows_of_any_length) {
  static const double windows[] = {600, 3600, DAY, 7 * DAY};

  for (size_t i = 0; i < LENGTH(windows); i++) {
    struct setting s = set(windows[i], windows[i] / 600, 1);
    struct told told = play(&s, leak_in_steps, 3 * windows[i]);

    if (!(told.first < windows[i] && told.last > 2.9 * windows[i]))
      fail_msg("window %g: from %g to %g", windows[i], told.first, told.last);
    assert_true(told.least > 0.8 * MB && told.most < 1.2 * MB);
  }
}

static double straight(struct setting *s, double t) {
  (void)s;
  return 500 * MB + 3000 * t;
}

/* Two of three amounts are peaks. */
static double leak_under_peaks(struct setting *s, double t) {
  return leak(s, t) + (fmod(t, 30) > 5 ? 3000 * MB * chance() : 0);
}

TEST(a_leak_is_told_under_peaks) {
  struct setting s = set(HOUR, 10, 1);
  struct told told = play(&s, leak_under_peaks, 3 * HOUR);

  assert_true(told.first <= 1300 && told.beginnings == 1);
  assert_true(told.least > 0.9 * MB && told.most < 1.1 * MB);
}

TEST(growth_of_a_straight_line_is_its_slope) {
  struct setting s = set(HOUR, 7, 1);
  struct told told = play(&s, straight, 5 * HOUR);

  assert_true(told.first < HOUR);
  assert_true(fabs(told.least - 3000) < 1 && fabs(told.most - 3000) < 1);
}

static double leak_for_weeks(struct setting *s, double t) {
  return leak(s, t) - MB * t / 2;
}

/* An hour of it is less than a hundredth of the memory after two days. */
TEST(a_leak_is_told_until_it_ends) {
  struct setting s = set(HOUR, 60, 1);
  struct told told = play(&s, leak_for_weeks, 30 * DAY);

  assert_true(told.last > 30 * DAY - 120 && told.beginnings == 1);
}

/* --- no leaks ----------------------------------------------------------------
 */

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

/* Comes back from where it wanders to within a part of the window. */
static double wander(struct setting *s, double part) {
  double keep = exp(-s->interval / (s->window * part));

  s->state = keep * s->state + sqrt(1 - keep * keep) * bell();
  return 1000 * MB + 50 * MB * s->state;
}
static double wanders(struct setting *s, double t) {
  (void)t;
  return wander(s, 1 / 20.0);
}
static double wanders_slowly(struct setting *s, double t) {
  (void)t;
  return wander(s, 1 / 10.0);
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

/* A fifth of the window, once in 24 of them. */
static double dumps_at_night(struct setting *s, double t) {
  double now = fmod(t / s->window + 24 * s->phase, 24) * 5;
  double dump = now < 1 ? now : now < 1.5 ? 1 : 0;

  return 1000 * MB + moves_by_chance() + 1000 * MB * dump;
}

/* Garbage that is collected `times` in a window. */
static double collect(struct setting *s, double t, double times) {
  double at = t / s->window * times + s->phase;

  if (s->turn != floor(at)) {
    s->turn = floor(at);
    s->height = 0.8 + 0.4 * chance();
  }
  return 300 * MB + 1000 * MB * s->height * (at - s->turn) + 20 * MB * chance();
}
static double collects_often(struct setting *s, double t) {
  return collect(s, t, 100);
}
static double collects_12_times(struct setting *s, double t) {
  return collect(s, t, 12);
}
static double collects_6_times(struct setting *s, double t) {
  return collect(s, t, 6);
}
static double collects_4_times(struct setting *s, double t) {
  return collect(s, t, 4);
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
} innocent[] = {
    {"still", still},
    {"noise", noise},
    {"broad noise", broad_noise},
    {"falls", falls},
    {"wanders", wanders},
    {"warms up", warms_up},
    {"is loaded", is_loaded},
    {"dumps at night", dumps_at_night},
    {"collects often", collects_often},
    {"collects 12 times", collects_12_times},
    {"collects 6 times", collects_6_times},
    {"collects 4 times", collects_4_times},
    {"steps up", steps_up},
    {"peaks", peaks},
};

static void assert_innocent(double window, double interval, uint64_t seeds) {
  for (size_t i = 0; i < LENGTH(innocent); i++)
    for (uint64_t seed = 1; seed <= seeds; seed++) {
      struct setting s = set(window, interval, seed);
      struct told told = play(&s, innocent[i].memory, 26 * window);

      if (told.first != NEVER)
        fail_msg("%s, window %g, interval %g, seed %d: %g MB/s from %g to %g",
                 innocent[i].name, window, interval, (int)seed, told.most / MB,
                 told.first, told.last);
      if (told.known == NEVER)
        fail_msg("%s, window %g, interval %g: nothing is known",
                 innocent[i].name, window, interval);
    }
}

TEST(no_leak_is_told_of_10_minutes) {
  assert_innocent(600, 1, 4);
  assert_innocent(600, 10, 20);
  assert_innocent(600, 60, 20);
}

TEST(no_leak_is_told_of_an_hour) {
  assert_innocent(3600, 1, 1);
  assert_innocent(3600, 10, 20);
  assert_innocent(3600, 60, 20);
}

TEST(no_leak_is_told_of_a_day) {
  assert_innocent(DAY, 60, 2);
  assert_innocent(DAY, 600, 20);
}

TEST(what_wanders_slowly_is_rarely_told_as_a_leak) {
  unsigned n = 0;

  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct setting s = set(HOUR, 10, seed);

    n += play(&s, wanders_slowly, DAY).first != NEVER;
  }
  assert_in_range(n, 0, 4);
}

/* The first collection may come after growth was told; then it is known. */
static double collects_3_times(struct setting *s, double t) {
  return collect(s, t, 3);
}
static double collects_twice(struct setting *s, double t) {
  return collect(s, t, 2);
}

TEST(garbage_that_gathers_slowly_is_told_before_its_first_collection) {
  static const history slow[] = {collects_3_times, collects_twice};

  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct setting s = set(HOUR, 10, seed);
    struct told told = play(&s, slow[seed % 2], DAY);

    if (told.last > HOUR)
      fail_msg("seed %d: told at %g s", (int)seed, told.last);
  }
}

static double trickle(struct setting *s, double t) {
  return 10 * MB + 0.9 * MB * t / s->window;
}
static double one_percent(struct setting *s, double t) {
  return 9000 * MB + 85 * MB * t / s->window;
}

TEST(a_rise_that_does_not_matter_is_no_growth) {
  static const history small[] = {trickle, one_percent};

  for (size_t i = 0; i < LENGTH(small); i++) {
    struct setting s = set(HOUR, 10, 1);

    assert_true(play(&s, small[i], 5 * HOUR).first == NEVER);
  }
}

TEST(an_interval_above_a_tenth_of_the_window_tells_nothing) {
  struct setting s = set(600, 75, 1);

  assert_true(play(&s, leak, DAY).known == NEVER);
}

/* --- what is learnt ----------------------------------------------------------
 */

/* From 6 to 8 o'clock to 5 GB, and back at 20. */
static double load_of_a_day(struct setting *s, double t) {
  double hour = fmod(t, DAY) / HOUR;
  double part = hour < 6 ? 0 : fmin((hour - 6) / 2, 1);

  (void)s;
  return 1000 * MB + moves_by_chance() + (hour < 20 ? 4000 * MB * part : 0);
}

TEST(the_load_of_each_day_is_told_once) {
  for (uint64_t seed = 1; seed <= 6; seed++) {
    struct setting s = set(seed % 2 ? HOUR : HOUR / 2, 10, seed);
    struct told told = play(&s, load_of_a_day, 10 * DAY);

    assert_true(told.first > 6 * HOUR && told.first < 7 * HOUR);
    assert_true(told.last < 9 * HOUR);
    assert_int_equal(told.beginnings, 1);
  }
}

/* On the first day a cache fills, in the night. */
static double fills_once(struct setting *s, double t) {
  double part = fmax(0, fmin((t - 2 * HOUR) / 3000, 1));

  return load_of_a_day(s, t) + 6000 * MB * part;
}

TEST(the_load_of_each_day_is_told_once_above_a_cache_that_has_filled) {
  for (uint64_t seed = 1; seed <= 6; seed++) {
    struct setting s = set(seed % 2 ? HOUR : HOUR / 2, 10, seed);
    struct told told = play(&s, fills_once, 10 * DAY);

    assert_true(told.first > 2 * HOUR && told.first < 3 * HOUR);
    assert_true(told.last > 6 * HOUR && told.last < 9 * HOUR);
    assert_int_equal(told.beginnings, 2);
  }
}

/* Up to the noon, and down to the midnight; each day of another height. */
static double swings_each_day(struct setting *s, double t) {
  double day = t / DAY;

  if (s->turn != floor(day)) {
    s->turn = floor(day);
    s->height = 0.8 + 0.4 * chance();
  }
  return 2000 * MB + moves_by_chance() +
         500 * MB * s->height * (1 - cos(day * 2 * acos(-1)));
}

TEST(what_is_learnt_reaches_down_to_where_it_came_to) {
  unsigned n = 0;

  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct setting s = set(HOUR, 20, seed);

    n += play(&s, swings_each_day, 60 * DAY).beginnings;
  }
  assert_in_range(n, 5, 60);
}

/* A rise that comes down is followed by a leak, `wait` seconds after. */
static double wait_seconds, top_mb;
static double rise_and_leak(struct setting *s, double t) {
  double rise = t < 3 * HOUR ? 0 : t < 5 * HOUR ? (t - 3 * HOUR) / 2 / HOUR : 0;

  (void)s;
  return 1000 * MB + moves_by_chance() + top_mb * MB * rise +
         MB * fmax(t - 5 * HOUR - wait_seconds, 0);
}

/* When the leak is told, in seconds after it began. */
static double told_after(double wait, double top) {
  struct growth g;
  double began = 5 * HOUR + wait;

  wait_seconds = wait;
  top_mb = top;
  draw_begin(7);
  growth_init(&g, (uint64_t)HOUR * NS, 0);
  for (double t = 0; t < began + 3 * HOUR; t += 10) {
    struct growth_sample sample = sample_at(t, rise_and_leak(NULL, t));

    growth_note(&g, &sample);
    if (t > began && g.bytes_per_second > 0)
      return t - began;
  }
  return NEVER;
}

TEST(a_leak_is_told_above_what_has_come_down) {
  double after = told_after(4 * HOUR, 4000);
  /* 4,000 MB and a quarter, at 1 MB a second; the lowest amount of the last
   * part of the window may be ten minutes old. */
  assert_true(after > 4900 && after < 5900);
}

TEST(what_was_learnt_is_forgotten) {
  double after = told_after(31 * HOUR, 4000);

  assert_true(after > 0 && after <= 1200);
}

/* Rises of that many MB in two hours each, one after another. */
static const double *tops;
static double rises(struct setting *s, double t) {
  double n = floor(t / (4 * HOUR)), at = t / HOUR - 4 * n;

  (void)s;
  if (at < 1 || at >= 3)
    return 1000 * MB;
  return 1000 * MB + tops[(size_t)n] * (at - 1) / 2 * MB;
}

TEST(lower_rises_bring_down_what_was_learnt) {
  /* 9000, then the half of the way to 3000 each time: 6000, 4500. */
  static const double once[] = {9000, 5500, 0, 0};
  static const double often[] = {9000, 3000, 3000, 7500};
  struct setting s = set(HOUR, 10, 1);
  struct told told;

  tops = once;
  told = play(&s, rises, 16 * HOUR);
  assert_int_equal(told.beginnings, 1);
  tops = often;
  s = set(HOUR, 10, 1);
  told = play(&s, rises, 16 * HOUR);
  assert_int_equal(told.beginnings, 2);
  assert_true(told.last > 13 * HOUR);
}
