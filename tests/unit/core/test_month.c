/* SPDX-License-Identifier: MIT */
/*
 * The whole core through a month of mixed services, whose memory is known page
 * by page: forks, exits, execs, growth, copy on write, files, shmem and swap,
 * with reads that hang and come back, a processor that is busy for a while,
 * a machine that is suspended, and a wall clock that is set. The published
 * values are not farther from the truth than memory-pss_error says, but for a
 * share of the cycles; nobody is left unread; memory does not grow.
 *
 * MONTH_CYCLES=1000000 makes it four months at an interval of ten seconds.
 */
#include "test.h"

#include <stdio.h>

#include "history.h"
#include "stage.h"

#define CYCLES_DEFAULT 5000
#define INTERVAL_SECONDS 10
#define MAX_AGE_SECONDS 600
#define SUSPENDED_SECONDS 7200

/* Below, what grows has room. */
#define PAGES_LEAST_FREE 12000

static const struct history_class services[] = {
    {.name = "services that grow",
     .groups = 2,
     .weights = {[OP_START] = 2,
                 [OP_EXIT] = 2,
                 [OP_EXEC] = 1,
                 [OP_GROW] = 6,
                 [OP_SHRINK] = 6,
                 [OP_MAP] = 3,
                 [OP_UNMAP] = 3},
     .is_mapping = true},
    {.name = "a pool of workers",
     .groups = 1,
     .weights = {[OP_FORK] = 3,
                 [OP_EXIT] = 3,
                 [OP_GROW] = 4,
                 [OP_SHRINK] = 2,
                 [OP_WRITE] = 5},
     .is_forked = true,
     .is_pool = true},
    {.name = "backends on shared buffers",
     .groups = 2,
     .weights = {[OP_FORK] = 1,
                 [OP_EXIT] = 1,
                 [OP_GROW] = 2,
                 [OP_WRITE] = 1,
                 [OP_MAP_AROUND] = 8,
                 [OP_UNMAP] = 1},
     .is_forked = true,
     .is_mapping = true,
     .has_outsiders = true},
    {.name = "memory pressure",
     .groups = 2,
     .weights = {[OP_START] = 1,
                 [OP_EXIT] = 1,
                 [OP_GROW] = 3,
                 [OP_SHRINK] = 2,
                 [OP_SWAP_OUT] = 4,
                 [OP_SWAP_IN] = 3,
                 [OP_SWAP_IN_WRITTEN] = 1}},
};

static struct history episode;
static unsigned episodes, at; /* the cycle of the episode */
static bool is_hang_due;      /* the next that begins is to hang */
static unsigned hanging_cycles;

#define MEMBERS ((1U << HISTORY_OUTSIDERS) - 1)

/* --- a rollup that hangs --- */

#define HANG_CYCLES 5

static void put_path(const struct stage *s, char *ret, size_t size) {
  snprintf(ret, size, "%u/smaps_rollup", s->shown[s->hanging_slot].pid);
}

static void wake(struct stage *s) {
  char path[64];

  if (s->hanging_slot == MEMORY_SLOTS)
    return;
  put_path(s, path, sizeof(path));
  proctree_release(&s->world.tree, path);
  s->shown_sizes[s->hanging_slot] = 0; /* to be put */
  s->hanging_slot = MEMORY_SLOTS;
}

/* A process that is read for the first time. */
static void hang(struct stage *s) {
  unsigned born = s->born & MEMBERS;
  char path[64];

  if (!is_hang_due || !born || s->hanging_slot != MEMORY_SLOTS)
    return;
  s->hanging_slot = (unsigned)__builtin_ctz(born);
  put_path(s, path, sizeof(path));
  proctree_hang(&s->world.tree, path);
  hanging_cycles = 0;
  is_hang_due = false;
}

static void follow_hang(struct stage *s) {
  unsigned slot = s->hanging_slot;

  if (s->cycle % 250 == 0)
    is_hang_due = true;
  if (slot != MEMORY_SLOTS &&
      (++hanging_cycles > HANG_CYCLES || !stage_has(s, slot) ||
       s->shown[slot].starttime != s->memory.processes[slot].starttime))
    wake(s);
}

/* --- what happens --- */

/* Everybody ends, now and then, and sooner where memory is short. */
static void begin_episode(struct stage *s, uint64_t seed) {
  uint32_t free_pages = MEMORY_PAGES - s->memory.n_pages + s->memory.n_free;

  if (episodes % 16 == 15 || free_pages < PAGES_LEAST_FREE)
    for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
      memory_exit(&s->memory, slot);
  history_init(&episode, &services[episodes / 8 % LENGTH(services)],
               seed + episodes);
  history_begin(&episode, &s->memory);
  episodes++;
  at = 0;
}

static void play(struct stage *s, uint64_t seed) {
  if (at == episode.cycles)
    begin_episode(s, seed);
  if (at++ > 0)
    history_go_on(&episode);
}

/* For one cycle in ten the processor is busy: a reading waits for it. For one
 * in fifty a walk itself is slow. */
static void set_load(unsigned long cycle) {
  world_walks_wait(cycle % 1000 < 100 ? 40 * NS_PER_MS : 0);
  world_walks_take(cycle % 5000 >= 4900 ? 150 * NS_PER_MS : 0);
}

/* Once in two thousand cycles the machine was suspended. */
static unsigned seconds_before(unsigned long cycle) {
  return cycle % 2000 == 1999 ? SUSPENDED_SECONDS : INTERVAL_SECONDS;
}

/* Twice in six hundred cycles somebody sets the wall clock: five hours forward,
 * nine back. */
static int64_t step_before(unsigned long cycle) {
  switch (cycle % 600) {
  case 150:
    return 5 * 3600;
  case 450:
    return -9 * 3600;
  default:
    return 0;
  }
}

/* --- the month --- */

static struct stage *begin(uint64_t seed) {
  static const uint32_t objects[MEMORY_OBJECTS] = {256, 64, 512, 32};
  struct stage *s = stage_begin(objects);

  s->world.settings.policy.max_age_ns = MAX_AGE_SECONDS * NS_PER_S;
  s->world.settings.read_timeout_ns = 20 * NS_PER_MS;
  world_group(&s->world, "a", "Comm", "a", NULL, NULL);
  world_group(&s->world, "b", "Comm", "b", NULL, NULL);
  begin_episode(s, seed);
  return s;
}

static void live(struct stage *s, uint64_t seed) {
  play(s, seed);
  follow_hang(s);
  stage_show(s);
  hang(s);
  set_load(s->cycle);
  world_step(step_before(s->cycle));
  stage_run(s, seconds_before(s->cycle));
  stage_judge_group(s, 0);
  stage_judge_group(s, 1);
}

TEST(mixed_services_stay_within_the_error_for_a_month) {
  unsigned long cycles = stage_cycles("MONTH_CYCLES", CYCLES_DEFAULT);
  struct stage *s = begin(20261122);
  const struct tally *t = &s->tally;
  size_t used = 0;

  for (; s->cycle < cycles; s->cycle++) {
    live(s, 20261122);
    if (s->cycle == cycles / 5)
      used = heap_used();
  }
  printf("%lu values, %.2f %% of them beyond the error, by %.1f %% at most; it "
         "is %.1f %%; USS %.2f %%; oldest reading %.0f s; %.2f readings in "
         "each cycle\n",
         t->n, 100 * (double)t->beyond / (double)t->n, 100 * t->beyond_worst,
         100 * t->pss_width / (double)t->n,
         100 * (double)t->uss_beyond / (double)t->n, t->oldest_seconds,
         (double)t->reads / (double)cycles);
  wake(s);
  assert_in_range(t->beyond, 0, t->n / 100);
  assert_in_range(t->uss_beyond, 0, t->n / 100);
  assert_true(t->oldest_seconds <= 2 * MAX_AGE_SECONDS + SUSPENDED_SECONDS);
  assert_true(heap_used() < used + (64 << 10));
  world_remove(&s->world);
}
