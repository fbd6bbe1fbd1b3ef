/* SPDX-License-Identifier: MIT */
/*
 * Values stay right over a long time. Processes map and unmap windows of a
 * file, grow, shrink, exit and are replaced, and in no cycle is a value farther
 * from the truth than memory-pss_error.
 *
 * UPTIME_CYCLES=1000000 makes it more than a month at an interval of ten
 * seconds, which takes some minutes.
 */
#include "test.h"

#include <stdio.h>

#include "draw.h"
#include "stage.h"

#define CYCLES_DEFAULT 5000
#define INTERVAL_SECONDS 10

#define MEMBERS 6
#define WINDOWS 16
#define WINDOW_PAGES 256

/* Two files are mapped: one in windows, and another. */
enum { OBJECT_WINDOWS, OBJECT_MORE };

static void change_window(struct stage *s, unsigned slot, unsigned window) {
  const struct memory_page *first = &s->memory.pages[window * WINDOW_PAGES];
  uint16_t at = (uint16_t)(window * 65536 / WINDOWS);

  if (first->mappers >> slot & 1)
    memory_unmap(&s->memory, slot, OBJECT_WINDOWS, WINDOW_PAGES, at);
  else
    memory_map(&s->memory, slot, OBJECT_WINDOWS, WINDOW_PAGES, at, true);
}

static void change_windows(struct stage *s, unsigned slot, unsigned windows) {
  for (unsigned i = 0; i < WINDOWS; i++)
    if (windows >> i & 1)
      change_window(s, slot, i);
}

/* So many processes outside of all groups map a window. */
static void map_outside(struct stage *s, unsigned window, unsigned n) {
  for (unsigned slot = STAGE_OUTSIDERS; n > 0; slot++, n--) {
    memory_start(&s->memory, slot);
    change_window(s, slot, window);
  }
}

static void start(struct stage *s, unsigned slot) {
  memory_start(&s->memory, slot);
  memory_grow(&s->memory, slot, 25 + draw_unsigned(1250));
  change_windows(s, slot, draw_unsigned(1U << WINDOWS));
}

static void change_size(struct stage *s, unsigned slot) {
  memory_grow(&s->memory, slot, draw_unsigned(500));
  if (s->views[slot].resident_pages - s->views[slot].shared_pages > 4096)
    memory_shrink(&s->memory, slot, 3840, 0);
}

static void change(struct stage *s) {
  unsigned slot = draw_unsigned(MEMBERS), what = draw_unsigned(8);

  if (!stage_has(s, slot))
    start(s, slot);
  else if (what == 0)
    memory_exit(&s->memory, slot);
  else if (what < 4)
    change_size(s, slot);
  else
    change_window(s, slot, draw_unsigned(WINDOWS));
}

static struct stage *begin(uint64_t seed) {
  static const uint32_t objects[] = {WINDOWS * WINDOW_PAGES, 8, 0, 0};
  struct stage *s = stage_begin(objects);

  draw_begin(seed);
  s->rounding = 1024 * MEMBERS; /* of the kernel */
  world_group(&s->world, "a", "Comm", "a", NULL, NULL);
  return s;
}

static void cycle(struct stage *s) {
  stage_show(s);
  stage_run(s, INTERVAL_SECONDS);
  stage_judge_group(s, 0);
  s->cycle++;
}

/* In each `share` cycles a single value may be farther off, by so much of its
 * PSS. */
static void end(struct stage *s, unsigned long share, double most) {
  const struct tally *t = &s->tally;

  printf("%lu cycles, %lu of them beyond the error, by %.2f %% at most; it is "
         "%.2f %%; %.2f readings in each\n",
         t->n, t->beyond, 100 * t->beyond_worst,
         100 * t->pss_width / (double)t->n, (double)t->reads / (double)t->n);
  assert_in_range(t->beyond, 0, t->n / share);
  assert_true(t->beyond_worst <= most);
  world_remove(&s->world);
}

static void live(struct stage *s, unsigned changes_most) {
  unsigned long n = stage_cycles("UPTIME_CYCLES", CYCLES_DEFAULT);

  for (unsigned slot = 0; slot < MEMBERS; slot++)
    start(s, slot);
  while (s->cycle < n) {
    for (unsigned i = draw_unsigned(changes_most + 1); i > 0; i--)
      change(s);
    cycle(s);
  }
}

/* With the default budget, which suffices to read each of them each time. */
TEST(a_quiet_month_is_within_the_error) {
  struct stage *s = begin(20261121);

  for (unsigned i = 0; i < WINDOWS; i++)
    map_outside(s, i, 2);
  live(s, 1);
  end(s, 10001, 0.005);
}

/* Some windows are of nobody else, and several processes change between two
 * looks: statm does not show all that this does to the others, and there is
 * time to read one of them, which those with a deadline may exceed. */
TEST(a_busy_month_is_within_the_error) {
  struct stage *s = begin(20261121);

  world_budget_for_one(&s->world);
  for (unsigned i = 0; i < WINDOWS; i++)
    map_outside(s, i, draw_unsigned(3));
  live(s, 2);
  end(s, 100, 0.05);
}

/* One process maps and unmaps a window that another has, hour after hour, and
 * then rests: what it costs does not depend on how often that was. */
TEST(errors_stay_small_while_windows_come_and_go) {
  static const unsigned outsiders[] = {0, 1, 4};

  for (size_t i = 0; i < LENGTH(outsiders); i++) {
    struct stage *s = begin(7 + i);

    world_budget_for_one(&s->world);
    for (unsigned window = 0; window < WINDOWS; window++)
      map_outside(s, window, outsiders[i]);
    memory_start(&s->memory, STAGE_OUTSIDERS);
    memory_map(&s->memory, STAGE_OUTSIDERS, OBJECT_MORE, 8, 0, true);
    memory_start(&s->memory, 0);
    memory_grow(&s->memory, 0, 2048);
    change_window(s, 0, 0);
    start(s, 1);
    for (int n = 0; n < 3000; n++) {
      if (n % 100 < 80) {
        change_windows(s, 0, 0xfff0);
      } else {
        memory_unmap(&s->memory, 0, OBJECT_MORE, 8, 0);
        memory_map(&s->memory, 0, OBJECT_MORE, draw_unsigned(5), 0, true);
      }
      cycle(s);
    }
    end(s, 3001, 0.001);
  }
}
