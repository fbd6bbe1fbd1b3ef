/* SPDX-License-Identifier: MIT */
/*
 * The growth of a group: the bytes a second by which its memory has grown so
 * steadily that it may be a leak.
 *
 * The memory is what fills the machine (usage_filling): files, which the kernel
 * can drop, are not in it, and swap is, because a process that leaks while its
 * pages are swapped out keeps its PSS. Of each 64th of the window
 * (GrowthWindow) the lowest amount is kept, as a point: neither a shorter peak
 * nor garbage that is collected within that time leaves a trace.
 *
 * Two spans are judged whenever there is a new point: the whole window, or what
 * there is of it, and the time of its last 20 points, which is a little less
 * than a third. A span shows growth if all this holds:
 *   - It is steady. The span has six parts. The slope from the lowest amount of
 *     each part to the lowest of the next, and from the last to the newest
 * amount, is at least a quarter of the mean slope. This excludes steps, peaks
 * and memory that has stopped growing.
 *   - It goes on. The slope of the younger three parts is three quarters of
 *     the slope of the older three at least. A cache that warms up slows down.
 *   - It is significant. Of 100 pairs of points 85 rise (Kendall's tau is 0.7),
 *     as independent numbers do in 1 of 400 cases for ten points, and in 1 of
 *     100,000 for twenty. That is more than usual, because the amounts of a
 *     process depend on those before. Or 95 of 100 pairs of lows rise: of
 *     points below those before and after, six of them at least. That shows
 *     a leak beside garbage, by what each collection leaves.
 *   - It matters. The rise is at least a MiB and twice the present error of
 *     PSS, and at least a hundredth of the memory, counted from the time at
 *     which growth was first published.
 *   - It is more than garbage. The lowest amounts rise by a quarter more than
 *     what an interval adds, which is the median of what the intervals after
 *     the points have added: collections whose period is not a multiple of the
 *     interval leave, as it seems, a little more each time, up to that.
 *   - It is new. The memory has left the range that it moved in before the span
 *     by a quarter of that range: garbage that gathers again goes where it was.
 * Three points in a row have to agree that there is growth, or that there is
 * none any more. The growth is the median of the slopes between the points, or
 * lows (Theil and Sen), of the longer span that shows it, and otherwise 0.
 *
 * Growth that slows down over longer times is a cache, and published as 0. The
 * mean slope of each of these times is compared with the one before: they begin
 * where a quarter of the window has passed, and end whenever the age of the
 * rise has doubled, but take 48 windows and a week at most. The slope is that
 * between their lowest amounts, but the mean of the growth that was shown, if
 * that is less: it has no step in it. Below 0.75 of the slope before, growth is
 * 0 until the next such time has ended, or it is 0.75 of that slope itself, as
 * a leak that follows the load of the day comes to be. So a leak beside a cache
 * shows after four to eight times the time in which the cache filled, and a
 * logarithm (which comes to 0.5) and a root (0.7) not for weeks, but a power of
 * 0.6 (0.76) does.
 * The age counts from the first point, or from the beginning of a span whose
 * growth is more than twice both mean slopes: that is another rise.
 *
 * A rise that comes down again by half, with the lowest amount of a sixth of
 * the window, was not a leak. That is learnt: for 30 windows, and 30 hours at
 * least, growth up to that level and a quarter of the rise more is published as
 * 0, so that the dump of each night and the load of each day show once. A rise
 * that has stayed up when growth begins again, such as a cache that has filled,
 * is over. If a later rise comes down from a lower level, the learnt level goes
 * down half the way to it. A restart of the group forgets all.
 *
 * The growth is unknown (NaN) until the points span a quarter of the window,
 * while there are fewer than ten points (so always if an interval takes more
 * than a tenth of the window), and when no point has come for a third of the
 * window. A rise that is steady for more than a third of the window is
 * published, even if a cache is filling, until it has slowed down: choose a
 * window that is longer than the service takes to warm up.
 */
#ifndef SMAPS_GROWTH_H
#define SMAPS_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROWTH_POINTS 64
#define GROWTH_POINTS_LEAST 10

struct growth_point {
  uint64_t time_ns; /* 0: there is none */
  uint64_t bytes;
  uint64_t added; /* in the interval after it */
};

/* The range in which memory moved; top 0: none. */
struct growth_range {
  uint64_t low, top;
};

/* How fast a rise goes on. */
struct growth_pace {
  uint64_t begin_ns;        /* 0: not yet */
  struct growth_point mark; /* of when its age had doubled last */
  double sum, n;            /* of the growth that was shown since then */
  double slope, before;     /* bytes a second up to that, and before; or 0 */
};

/* Without pointers, so it can be copied and freed; about 1.7 KiB. */
struct growth {
  uint64_t window_ns;
  size_t n;
  /* The lowest amount since the last point, and when it will be one. */
  struct growth_point lowest;
  bool is_at_lowest;     /* the last sample is the lowest */
  uint64_t due_ns;       /* 0: not set yet */
  uint64_t newest_start; /* of the members when the history began; 0: unknown */
  bool is_judged;        /* there were enough points */
  bool is_growing;       /* as POINTS_AGREED points in a row have shown */
  unsigned against;      /* points in a row that have shown the contrary */
  double slope;          /* bytes a second, when growth was shown last */
  uint64_t since_ns;     /* when this growth began; 0: it is not growing */
  struct growth_range rise;   /* growth that has not come down */
  struct growth_range lesson; /* growth that has come down again */
  struct growth_pace pace;
  uint64_t learnt_ns;
  /* After growth_resume(): until then, sums that are not sure are ignored. */
  uint64_t settled_ns;
  double bytes_per_second;                   /* NaN: unknown */
  double room_bytes;                         /* likewise */
  struct growth_point points[GROWTH_POINTS]; /* the oldest first */
};

/* The state of a group in an interval. */
struct growth_sample {
  uint64_t time_ns; /* never 0, never goes back */
  bool has_members;
  /* Start times of the members in one unit; 0: unknown. */
  uint64_t oldest_start, newest_start;
  bool is_known; /* the amount is known, from readings */
  uint64_t bytes;
  /* The error of all memory of the group, files included; above an eighth of
   * that, growth is unknown. */
  uint64_t error_bytes, whole_bytes;
  double room_bytes; /* free memory for it to grow into; NaN: unknown */
};

void growth_init(struct growth *g, uint64_t window_ns);

/* Notes the state of the group, in each interval. Begins anew if it has no
 * member, or none of those that it had when the history began. */
void growth_note(struct growth *g, const struct growth_sample *s);

/* True if there is growth, or seems to be some, and a member whose reading is
 * so old should be read: a 16th of the window. So a rise of which a reading
 * shows that it is none ends before three points agree. */
bool growth_wants_reading(const struct growth *g, uint64_t age_ns);

/*
 * When the growth began: the time of the last point at which the memory had not
 * yet risen by a twentieth of its rise until the growth was found. Points older
 * than the window are unknown then. 0 if the growth is 0 or unknown.
 */
uint64_t growth_since_ns(const struct growth *g);

/*
 * Goes on with growth that an earlier run of the daemon has noted: by
 * growth_note(), which begins anew if all members are others. The first sums
 * after a start are guesses in part, and one that is too low would end a rise:
 * for a 16th of the window a sum counts only if its error is a quarter of the
 * rise at most.
 */
void growth_resume(struct growth *g, uint64_t now_ns);

/* The seconds until the growth has taken the room; NaN if it is 0 or unknown,
 * or the room is. */
double growth_seconds_until(const struct growth *g);

#endif
