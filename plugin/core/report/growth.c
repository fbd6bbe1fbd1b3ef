/* SPDX-License-Identifier: MIT */
#include "report/growth.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/duration.h"

#define PAIRS_MOST (GROWTH_POINTS * (GROWTH_POINTS - 1) / 2)
#define PARTS 6
#define POINTS_AGREED 3
#define WINDOWS_READINGS 16
#define RECENT_POINTS 20
#define RISE_LEAST (UINT64_C(1) << 20)
/* Kendall's tau if 85 of 100 pairs rise, and 15 fall; 95 and 5. */
#define SIGNIFICANT_TAU 0.7
#define SIGNIFICANT_TAU_OF_LOWS 0.9
#define LOWS_LEAST 6
#define LESSON_WINDOWS 30
#define LESSON_LEAST_NS (UINT64_C(30) * 3600 * NS_PER_S)
#define PACE_WINDOWS 48
#define PACE_LEAST_NS (UINT64_C(7) * 24 * 3600 * NS_PER_S)

/* The last points: the lowest of each part of the span, and the newest. */
struct span {
  const struct growth_point *points;
  size_t n;
  const struct growth_point *lows[PARTS + 1];
};

void growth_init(struct growth *g, uint64_t window_ns) {
  *g = (struct growth){.window_ns = window_ns,
                       .bytes_per_second = (double)NAN,
                       .room_bytes = (double)NAN};
}

/* --- points --- */

static size_t first_since(const struct growth *g, uint64_t ns,
                          uint64_t now_ns) {
  size_t first = 0;

  while (first < g->n && now_ns - g->points[first].time_ns > ns)
    first++;
  return first;
}

/* Ends the time of a point. True if it has made a point. Without the points
 * that are older than the window there is room for it, because each takes at
 * least a 64th of the window, unless a state file has them closer together. */
static bool end_point(struct growth *g, uint64_t now_ns) {
  size_t old = max(first_since(g, g->window_ns, now_ns), g->n == GROWTH_POINTS);

  if (now_ns < g->due_ns)
    return false;
  g->due_ns = now_ns + g->window_ns / GROWTH_POINTS;
  if (!g->lowest.time_ns)
    return false;
  g->n -= old;
  memmove(g->points, g->points + old, g->n * sizeof(*g->points));
  assert(g->n < GROWTH_POINTS);
  g->points[g->n++] = g->lowest;
  g->lowest = (struct growth_point){.time_ns = 0};
  return true;
}

static bool is_sure(const struct growth *g, const struct growth_sample *s) {
  bool is_settled = s->time_ns >= g->settled_ns || g->rise.top == 0;

  return s->is_known && s->error_bytes <= s->whole_bytes / 8 &&
         (is_settled || s->error_bytes <= (g->rise.top - g->rise.low) / 4);
}

/* True if the amount is sure enough, and the lowest since the last point. */
static bool is_lowest(const struct growth *g, const struct growth_sample *s) {
  return is_sure(g, s) && (!g->lowest.time_ns || s->bytes < g->lowest.bytes);
}

/* The lowest of the last points: what is left without garbage. */
static const struct growth_point *level_of(const struct growth *g,
                                           uint64_t now_ns) {
  const struct growth_point *ret = &g->points[g->n - 1];

  for (size_t i = first_since(g, g->window_ns / PARTS, now_ns); i < g->n; i++)
    if (g->points[i].bytes < ret->bytes)
      ret = &g->points[i];
  return ret;
}

/* --- what a span shows --- */

/* False if there are too few points to judge. */
static bool find_span(const struct growth *g, size_t first, struct span *ret) {
  const struct growth_point *p = &g->points[first];
  uint64_t length;

  *ret = (struct span){.points = p, .n = g->n - first};
  if (ret->n < GROWTH_POINTS_LEAST)
    return false;
  length = p[ret->n - 1].time_ns - p[0].time_ns;
  if (length < g->window_ns / 4)
    return false;
  for (size_t i = 0; i < ret->n; i++) {
    size_t part =
        (size_t)((p[i].time_ns - p[0].time_ns) * PARTS / (length + 1));

    if (!ret->lows[part] || p[i].bytes < ret->lows[part]->bytes)
      ret->lows[part] = &p[i];
  }
  ret->lows[PARTS] = &p[ret->n - 1];
  for (size_t i = 0; i < PARTS; i++)
    if (!ret->lows[i])
      return false;
  return true;
}

/* Bytes a second; 0 for the same point. */
static double slope_of(const struct growth_point *a,
                       const struct growth_point *b) {
  double seconds = (double)(b->time_ns - a->time_ns) / (double)NS_PER_S;

  return a == b ? 0 : ((double)b->bytes - (double)a->bytes) / seconds;
}

static double slope_between(const struct span *s, size_t from, size_t to) {
  return slope_of(s->lows[from], s->lows[to]);
}

static bool is_steady(const struct span *s) {
  double mean = slope_between(s, 0, PARTS - 1);

  for (size_t i = 0; i < PARTS; i++)
    if (slope_between(s, i, i + 1) < 0.25 * mean)
      return false;
  return mean > 0;
}

static bool goes_on(const struct span *s) {
  return slope_between(s, PARTS / 2, PARTS - 1) >=
         0.75 * slope_between(s, 0, PARTS / 2 - 1);
}

/* The lowest amounts of the first and the last part; the last is higher. */
static struct growth_range rise_of(const struct span *s) {
  assert(s->lows[0] && s->lows[PARTS - 1]); /* find_span() was true */
  return (struct growth_range){s->lows[0]->bytes, s->lows[PARTS - 1]->bytes};
}

/* If growth is published already, the rise counts from its beginning, so that
 * it still matters when the memory has become large. */
static bool matters(const struct growth *g, const struct span *s,
                    uint64_t error_bytes) {
  struct growth_range r = rise_of(s);
  bool is_followed = g->is_growing && g->rise.top > 0;
  uint64_t low = is_followed ? min(g->rise.low, r.low) : r.low;

  return r.top - r.low >= max(RISE_LEAST, 2 * error_bytes) &&
         r.top - low >= r.top / 100;
}

static bool has_left(struct growth_range r, uint64_t bytes) {
  return bytes > r.top + (r.top - r.low) / 4;
}

static bool is_new(const struct growth *g, const struct span *s) {
  struct growth_range before = {.low = UINT64_MAX};

  for (const struct growth_point *p = g->points; p < s->points; p++) {
    before.low = min(before.low, p->bytes);
    before.top = max(before.top, p->bytes);
  }
  return before.top == 0 || has_left(before, rise_of(s).top);
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;

  return (a > b) - (a < b);
}

/* The median slope of all pairs of points, which a step at the end of the span
 * hardly changes; 0 if Kendall's tau is below `tau`. */
static double median_slope(const struct growth_point *points, size_t n,
                           double tau) {
  double slopes[PAIRS_MOST], score = 0;
  size_t pairs = 0;

  for (const struct growth_point *a = points; a < points + n; a++)
    for (const struct growth_point *b = a + 1; b < points + n; b++) {
      double slope = slope_of(a, b);

      score += (slope > 0) - (slope < 0);
      slopes[pairs++] = slope;
    }
  if (score < tau * (double)pairs)
    return 0;
  qsort(slopes, pairs, sizeof(*slopes), compare);
  return slopes[pairs / 2];
}

/* A sample that comes later after each collection than the one before finds
 * more garbage each time, up to what an interval adds. That is told from what
 * comes after the points, by its median: a step there is no garbage. */
static bool is_beyond_garbage(const struct span *s) {
  struct growth_range r = rise_of(s);
  double added[GROWTH_POINTS] = {0};
  size_t middle = s->n / 2;

  for (size_t i = 0; i < s->n; i++)
    added[i] = (double)s->points[i].added;
  qsort(added, s->n, sizeof(*added), compare);
  return (double)(r.top - r.low) >= 1.25 * added[middle];
}

/* 0 if it is not significant. Garbage hides a leak from the pairs of all
 * points, but not from those of the lows, which each collection leaves. */
static double significant_slope(const struct span *s) {
  const struct growth_point *p = s->points;
  struct growth_point lows[GROWTH_POINTS];
  double slope = median_slope(p, s->n, SIGNIFICANT_TAU);
  size_t n = 0;

  for (size_t i = 1; i + 1 < s->n; i++)
    if (p[i].bytes <= p[i - 1].bytes && p[i].bytes < p[i + 1].bytes)
      lows[n++] = p[i];
  if (slope > 0 || n < LOWS_LEAST)
    return slope;
  return median_slope(lows, n, SIGNIFICANT_TAU_OF_LOWS);
}

/* The growth that the span shows; 0 for none. The pairs are compared last,
 * because that takes most of the time. */
static double growth_of(const struct growth *g, const struct span *s,
                        uint64_t error_bytes) {
  if (!is_steady(s) || !goes_on(s) || !matters(g, s, error_bytes) ||
      !is_new(g, s) || !is_beyond_garbage(s))
    return 0;
  return significant_slope(s);
}

/* --- lessons --- */

static bool has_lesson(const struct growth *g, uint64_t now_ns) {
  return g->lesson.top > 0 &&
         now_ns - g->learnt_ns <=
             max(LESSON_WINDOWS * g->window_ns, LESSON_LEAST_NS);
}

static void learn(struct growth *g, uint64_t now_ns) {
  uint64_t top = has_lesson(g, now_ns) ? g->lesson.top : 0;

  g->lesson.low = g->rise.low;
  g->lesson.top = max(g->rise.top, g->rise.top / 2 + top / 2);
  g->learnt_ns = now_ns;
  g->rise = (struct growth_range){.top = 0};
}

/* Follows a rise until it has come down by half, and then how far it goes on
 * down. */
static void follow_rise(struct growth *g, uint64_t bytes, uint64_t now_ns) {
  if (g->rise.top == 0) {
    g->lesson.low = min(g->lesson.low, bytes);
    return;
  }
  g->rise.top = max(g->rise.top, bytes);
  if (bytes < g->rise.low + (g->rise.top - g->rise.low) / 2)
    learn(g, now_ns);
}

/* --- the pace of a rise --- */

/* Marks the level whenever the age of the rise has doubled. */
static void follow_pace(struct growth *g, const struct growth_point *level) {
  struct growth_pace *p = &g->pace;
  uint64_t most_ns = max(PACE_WINDOWS * g->window_ns, PACE_LEAST_NS);
  uint64_t age_ns;

  if (!p->begin_ns)
    *p = (struct growth_pace){.begin_ns = level->time_ns, .mark = *level};
  age_ns = p->mark.time_ns - p->begin_ns;
  if (level->time_ns <
      p->mark.time_ns + min(max(age_ns, g->window_ns / 4), most_ns))
    return;
  p->before = p->slope;
  p->slope = age_ns > 0 ? slope_of(&p->mark, level) : 0;
  if (p->n > 0) /* a step is in the slope, but not in the growth */
    p->slope = fmin(p->slope, p->sum / p->n);
  p->mark = *level;
  p->sum = p->n = 0;
}

/* A leak keeps its pace, or comes back to it. A logarithm has half of it, and a
 * root 0.7. */
static bool has_slowed(const struct growth_pace *p, double growth) {
  return fmax(p->slope, growth) < 0.75 * p->before;
}

/* --- all together --- */

/* The growth that the points show, and the span that shows it; NaN if there are
 * too few points. */
static double judge(const struct growth *g, const struct growth_sample *now,
                    struct span *ret) {
  uint64_t recent_ns = g->window_ns / GROWTH_POINTS * RECENT_POINTS;
  const size_t firsts[] = {0, first_since(g, recent_ns, now->time_ns)};
  double growth = (double)NAN;

  for (size_t i = 0; i < 2 && !(growth > 0); i++)
    if (find_span(g, firsts[i], ret))
      growth = growth_of(g, ret, now->error_bytes);
  return growth;
}

static void note_shown(struct growth *g, const struct span *s, double growth,
                       const struct growth_point *level, uint64_t now_ns) {
  bool is_learnt =
      has_lesson(g, now_ns) && !has_left(g->lesson, rise_of(s).top);

  assert(s->points); /* find_span() was true */
  if (growth > 2 * fmax(g->pace.slope, g->pace.before)) /* another rise */
    g->pace = (struct growth_pace){
        .begin_ns = s->points[0].time_ns, .mark = *level, .slope = growth};
  g->pace.sum += growth;
  g->pace.n++;
  g->slope = is_learnt || has_slowed(&g->pace, growth) ? 0 : growth;
  /* The level is above the low, because the span is steady. */
  if (g->is_growing && g->rise.top == 0)
    g->rise = (struct growth_range){rise_of(s).low, level->bytes};
}

static uint64_t find_beginning(const struct growth *g,
                               const struct growth_point *level) {
  uint64_t low = level->bytes;
  size_t last = 0;

  for (size_t i = 0; i < g->n; i++)
    low = min(low, g->points[i].bytes);
  for (size_t i = 0; i < g->n; i++)
    if (g->points[i].bytes <= low + (level->bytes - low) / 20)
      last = i;
  return g->points[last].time_ns;
}

static void judge_point(struct growth *g, const struct growth_sample *now) {
  struct span span = {.n = 0};
  double growth = judge(g, now, &span);
  const struct growth_point *level = level_of(g, now->time_ns);
  bool is_shown = growth > 0;

  g->is_judged = !isnan(growth);
  g->against = is_shown == g->is_growing ? 0 : g->against + 1;
  if (g->against == POINTS_AGREED) {
    g->is_growing = is_shown;
    g->against = 0;
    /* Growth begins again: an earlier rise that has stayed up is forgotten. */
    if (is_shown)
      g->rise.top = 0;
    g->since_ns = is_shown ? find_beginning(g, level) : 0;
  }
  follow_pace(g, level);
  if (is_shown)
    note_shown(g, &span, growth, level, now->time_ns);
  follow_rise(g, level->bytes, now->time_ns);
}

void growth_note(struct growth *g, const struct growth_sample *s) {
  if (!s->has_members || (g->newest_start && s->oldest_start > g->newest_start))
    growth_init(g, g->window_ns);
  if (!s->has_members)
    return;
  if (!g->newest_start)
    g->newest_start = s->newest_start;
  if (g->is_at_lowest && s->is_known && s->bytes > g->lowest.bytes)
    g->lowest.added = s->bytes - g->lowest.bytes;
  if (end_point(g, s->time_ns))
    judge_point(g, s);
  g->is_at_lowest = is_lowest(g, s);
  if (g->is_at_lowest)
    g->lowest = (struct growth_point){s->time_ns, s->bytes, 0};
  g->room_bytes = s->room_bytes;
  g->bytes_per_second = (double)NAN;
  if (g->is_judged &&
      s->time_ns - g->points[g->n - 1].time_ns <= g->window_ns / 3)
    g->bytes_per_second = g->is_growing ? g->slope : 0;
}

bool growth_wants_reading(const struct growth *g, uint64_t age_ns) {
  return (g->is_growing || g->against > 0) &&
         age_ns >= g->window_ns / WINDOWS_READINGS;
}

uint64_t growth_since_ns(const struct growth *g) {
  return g->bytes_per_second > 0 ? g->since_ns : 0;
}

/* --- over a restart of the daemon --- */

void growth_resume(struct growth *g, uint64_t now_ns) {
  g->is_at_lowest = false;
  g->settled_ns = now_ns + g->window_ns / WINDOWS_READINGS;
  g->bytes_per_second = g->room_bytes = (double)NAN;
}

double growth_seconds_until(const struct growth *g) {
  return g->bytes_per_second > 0 ? g->room_bytes / g->bytes_per_second
                                 : (double)NAN;
}
