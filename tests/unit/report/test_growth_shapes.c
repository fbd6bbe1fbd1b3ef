/* SPDX-License-Identifier: MIT */
/* What growth shows of shapes of memory, and when: what the manual says. */
#include "test.h"

#include "report/growth.h"

#include <math.h>

#include "draw.h"

#define HOUR 3600.0
#define DAY (24 * HOUR)
#define NEVER ((double)INFINITY)

/* What fills, at so many times its scale. */
static double logarithm(double x) { return log1p(x); }
static double root(double x) { return sqrt(x); }
static double power(double x) { return pow(x, 0.6); }
static double saturation(double x) { return 1 - exp(-x); }
static double hyperbola(double x) { return x / (1 + x); }
static double ramp(double x) { return fmin(x, 1); }

/* Amounts are in MB, times in seconds; 0 means that a part is absent. */
struct shape {
  const char *name;
  double window, interval;           /* 0: an hour, 10 s */
  double hours;                      /* that are played; 0: six */
  double leak, leak_from;            /* in kB a second */
  double follows;                    /* the day, by such a part of it */
  bool quiet;                        /* nothing moves by chance */
  double garbage, each;              /* collected so often */
  double step, step_each, step_from; /* once, if not each */
  double (*fills)(double x);
  double cache, scale, fills_from;
  double day;   /* more at noon than at midnight */
  double batch; /* more and more from 2 to 4 o'clock */
  /* In hours: growth shows by `first`, a quarter of the window before it at the
   * earliest, and not after `last` (0: to the end); and in percent of the time
   * between them, at least. */
  double first, last, percent;
};

static const struct shape shapes[] = {
    {.name = "nothing", .first = NEVER},
    {.name = "leak", .leak = 10, .first = 0.4, .percent = 99},
    {.name = "leak after 3 hours",
     .leak = 10,
     .leak_from = 3 * HOUR,
     .first = 3.4,
     .percent = 99},

    {.name = "leak and a step after 2 hours",
     .hours = 24,
     .leak = 5,
     .step = 200,
     .step_from = 2 * HOUR,
     .first = 0.4,
     .percent = 95},
    {.name = "leak and a step after 6 hours",
     .hours = 48,
     .leak = 5,
     .step = 200,
     .step_from = 6 * HOUR,
     .first = 0.4,
     .percent = 97},
    {.name = "leak and a step after 24 hours",
     .hours = 192,
     .leak = 5,
     .step = 200,
     .step_from = 24 * HOUR,
     .first = 0.4,
     .percent = 99},
    {.name = "leak that follows the day by a fifth",
     .hours = 240,
     .leak = 20,
     .follows = 0.2,
     .first = 0.4,
     .percent = 99},
    {.name = "leak that follows the day by 0.7",
     .hours = 240,
     .leak = 20,
     .follows = 0.7,
     .first = 0.4,
     .percent = 93},

    {.name = "garbage, 24 times", .garbage = 50, .each = 150, .first = NEVER},
    {.name = "garbage, 7.5 times", .garbage = 50, .each = 480, .first = NEVER},
    {.name = "garbage, 4 times", .garbage = 50, .each = 900, .first = NEVER},
    {.name = "garbage of 50 MB, each 119.73 s",
     .hours = 48,
     .garbage = 50,
     .each = 119.73,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 50 MB, each 139 s",
     .hours = 48,
     .garbage = 50,
     .each = 139,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 50 MB, each 149.65 s",
     .hours = 48,
     .garbage = 50,
     .each = 149.65,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 50 MB, each 59.88 s",
     .hours = 48,
     .garbage = 50,
     .each = 59.88,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 500 MB, each 99.97 s",
     .hours = 48,
     .garbage = 500,
     .each = 99.97,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 500 MB, each 209 s",
     .hours = 48,
     .garbage = 500,
     .each = 209,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 500 MB, each 279 s",
     .hours = 48,
     .garbage = 500,
     .each = 279,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 500 MB, each 349 s",
     .hours = 48,
     .garbage = 500,
     .each = 349,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 500 MB, each 419 s",
     .hours = 48,
     .garbage = 500,
     .each = 419,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 500 MB, each 309.73 s",
     .hours = 48,
     .garbage = 500,
     .each = 309.73,
     .quiet = true,
     .first = NEVER},
    {.name = "garbage of 500 MB, each 49.99 s",
     .hours = 48,
     .garbage = 500,
     .each = 49.99,
     .quiet = true,
     .first = NEVER},
    {.name = "leak and garbage, 60 times",
     .leak = 10,
     .garbage = 50,
     .each = 60,
     .first = 0.45,
     .percent = 99},
    {.name = "leak and garbage, 24 times",
     .leak = 10,
     .garbage = 50,
     .each = 150,
     .first = 0.4,
     .percent = 99},
    {.name = "leak and garbage, 12 times",
     .leak = 10,
     .garbage = 50,
     .each = 300,
     .first = 0.7,
     .percent = 99},
    {.name = "leak and garbage, 7.5 times",
     .leak = 10,
     .garbage = 50,
     .each = 480,
     .first = 1.1,
     .percent = 99},
    {.name = "leak and garbage, 6 times",
     .leak = 10,
     .garbage = 50,
     .each = 600,
     .first = 1.1,
     .percent = 99},
    {.name = "leak and garbage, 4 times",
     .leak = 10,
     .garbage = 50,
     .each = 900,
     .first = NEVER},
    {.name = "leak and much garbage, 9 times",
     .window = 2 * HOUR,
     .leak = 3,
     .garbage = 400,
     .each = 800,
     .first = 1.7,
     .percent = 99},

    {.name = "steps, 12 in a window",
     .step = 10,
     .step_each = 300,
     .first = 0.7,
     .percent = 99},
    {.name = "steps, 4 in a window",
     .step = 30,
     .step_each = 900,
     .first = NEVER},
    {.name = "steps, each 12 hours",
     .hours = 48,
     .step = 1000,
     .step_each = 12 * HOUR,
     .first = NEVER},

    {.name = "logarithm, a minute",
     .hours = 24,
     .fills = logarithm,
     .cache = 100,
     .scale = 60,
     .first = NEVER},
    {.name = "logarithm, 10 minutes",
     .hours = 24,
     .fills = logarithm,
     .cache = 200,
     .scale = 600,
     .first = 0.6,
     .last = 1.2},
    {.name = "logarithm, an hour",
     .fills = logarithm,
     .cache = 500,
     .scale = HOUR,
     .first = 0.4,
     .last = 3},
    {.name = "logarithm, 4 hours",
     .hours = 12,
     .fills = logarithm,
     .cache = 500,
     .scale = 4 * HOUR,
     .first = 0.4,
     .last = 6},
    {.name = "logarithm, an hour, after 6",
     .hours = 18,
     .fills = logarithm,
     .cache = 500,
     .scale = HOUR,
     .fills_from = 6 * HOUR,
     .first = 6.4,
     .last = 7.8},
    {.name = "logarithm and garbage",
     .fills = logarithm,
     .cache = 200,
     .scale = 600,
     .garbage = 50,
     .each = 150,
     .first = NEVER},
    {.name = "root",
     .fills = root,
     .cache = 360,
     .scale = HOUR,
     .first = 0.6,
     .last = 3.5},
    {.name = "power 0.6",
     .fills = power,
     .cache = 270,
     .scale = HOUR,
     .first = 0.6,
     .percent = 90},
    {.name = "root, after three weeks",
     .interval = 300,
     .hours = 800,
     .fills = root,
     .cache = 2000,
     .scale = HOUR,
     .first = 592.4,
     .percent = 99},
    {.name = "exponential, an hour",
     .fills = saturation,
     .cache = 500,
     .scale = HOUR,
     .first = 0.4,
     .last = 1.1},
    {.name = "exponential, 4 hours",
     .hours = 12,
     .fills = saturation,
     .cache = 2000,
     .scale = 4 * HOUR,
     .first = 0.4,
     .last = 6},
    {.name = "hyperbola",
     .hours = 12,
     .fills = hyperbola,
     .cache = 1000,
     .scale = 1800,
     .first = NEVER},
    {.name = "filled at one speed",
     .fills = ramp,
     .cache = 400,
     .scale = 2400,
     .first = 0.4,
     .last = 1},

    {.name = "leak and logarithm",
     .hours = 20,
     .fills = logarithm,
     .cache = 100,
     .scale = 60,
     .leak = 10,
     .first = 8.4,
     .percent = 99},
    {.name = "leak and exponential",
     .hours = 16,
     .fills = saturation,
     .cache = 500,
     .scale = HOUR,
     .leak = 30,
     .first = 0.4,
     .percent = 30},
    {.name = "filled, then a faster leak",
     .fills = ramp,
     .cache = 400,
     .scale = 2400,
     .leak = 350,
     .leak_from = 1.5 * HOUR,
     .first = 0.4,
     .percent = 80},
    {.name = "filled, then a leak",
     .fills = ramp,
     .cache = 400,
     .scale = 2400,
     .leak = 10,
     .leak_from = HOUR,
     .first = 0.4,
     .percent = 40},

    {.name = "day", .hours = 72, .day = 300, .first = 1, .last = 12},
    {.name = "day and leak",
     .hours = 72,
     .day = 300,
     .leak = 5,
     .first = 0.4,
     .last = 62,
     .percent = 40},
    {.name = "day, window of a week",
     .window = 7 * DAY,
     .interval = 3600,
     .hours = 720,
     .day = 300,
     .first = NEVER},
    {.name = "day and leak, window of a week",
     .window = 7 * DAY,
     .interval = 3600,
     .hours = 720,
     .day = 300,
     .leak = 5,
     .first = 90,
     .percent = 99},
    {.name = "batch", .hours = 72, .batch = 1000, .first = 2.5, .last = 4.2},
    {.name = "batch and leak, window of a week",
     .window = 7 * DAY,
     .interval = 3600,
     .hours = 720,
     .batch = 1000,
     .leak = 5,
     .first = 55,
     .percent = 99},
};

/* In bytes; a MB of it moves by chance. */
static uint64_t memory_at(const struct shape *s, double t) {
  double hour = fmod(t, DAY) / HOUR;
  double wave = 1 - cos(2 * acos(-1) * t / DAY);
  double mb = 200 + (s->quiet ? 0 : draw_unsigned(1000) / 1e3) +
              s->leak / 1e3 * fmax(t - s->leak_from, 0) + s->day * wave / 2 +
              s->leak / 1e3 * s->follows * wave * DAY / 2 / acos(-1);

  if (s->each > 0)
    mb += s->garbage * fmod(t, s->each) / s->each;
  if (s->step_each > 0)
    mb += s->step * floor(t / s->step_each);
  if (s->step_from > 0 && t > s->step_from)
    mb += s->step;
  if (s->fills)
    mb += s->cache * s->fills(fmax(t - s->fills_from, 0) / s->scale);
  if (hour > 2 && hour < 4)
    mb += s->batch * (hour - 2) / 2;
  return (uint64_t)(1e6 * mb);
}

static double given(double value, double otherwise) {
  return value > 0 ? value : otherwise;
}

struct shown {
  double first, last; /* hours; NEVER, 0: not at all */
  double percent;     /* of the intervals from the first to the last */
};

static struct shown play(const struct shape *s) {
  struct shown ret = {.first = NEVER};
  struct growth g;
  double n = 0, all = 0, all_last = 1;

  growth_init(&g, (uint64_t)given(s->window, HOUR) * NS);
  draw_begin(1);
  for (double t = 0; t < given(s->hours, 6) * HOUR;
       t += given(s->interval, 10)) {
    growth_note(&g, &(struct growth_sample){.time_ns = NS + (uint64_t)t * NS,
                                            .has_members = true,
                                            .is_known = true,
                                            .bytes = memory_at(s, t)});
    all += n > 0;
    if (!(g.bytes_per_second > 0))
      continue;
    ret.first = fmin(ret.first, t / HOUR);
    ret.last = t / HOUR;
    all = fmax(all, 1);
    all_last = all;
    n++;
  }
  ret.percent = 100 * n / all_last;
  return ret;
}

static bool is_expected(const struct shape *s, const struct shown *shown) {
  double quarter = given(s->window, HOUR) / HOUR / 4;
  double end = given(s->hours, 6) - quarter;

  if (s->first == NEVER)
    return shown->first == NEVER;
  return shown->first <= s->first && shown->first > s->first - quarter &&
         (s->last > 0 ? shown->last <= s->last : shown->last >= end) &&
         shown->percent >= s->percent;
}

TEST(each_shape_shows_when_the_manual_says) {
  unsigned wrong = 0;

  for (size_t i = 0; i < LENGTH(shapes); i++) {
    struct shown shown = play(&shapes[i]);

    if (is_expected(&shapes[i], &shown))
      continue;
    print_error("%s: from hour %.2f to %.2f, in %.1f %%\n", shapes[i].name,
                shown.first, shown.last, shown.percent);
    wrong++;
  }
  assert_int_equal(wrong, 0);
}
