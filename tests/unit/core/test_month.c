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

#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "history.h"
#include "memory_tree.h"
#include "world.h"

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

struct month {
  struct world world;
  struct memory_world memory;
  struct history episode;
  unsigned episodes, at; /* the cycle of the episode */
  struct memory_view views[MEMORY_SLOTS];
  /* The tree shows these. */
  struct memory_process shown[MEMORY_SLOTS];
  struct memory_view shown_views[MEMORY_SLOTS];
  bool is_hang_due;        /* the next that begins is to hang */
  unsigned hanging_slot;   /* or MEMORY_SLOTS */
  unsigned hanging_cycles; /* how long so far */
  struct month_tally {
    unsigned long values, beyond, uss_beyond, unknown;
    double worst, width, oldest_seconds;
    uint64_t reads;
  } tally;
};

static struct month the_month; /* too large for a stack */

static const char *const group_names[] = {"a", "b"};

static bool is_member(unsigned slot) { return slot < HISTORY_OUTSIDERS; }

/* --- the tree ---------------------------------------------------------------
 */

static const char *comm_of(const struct month *m, unsigned slot) {
  return is_member(slot) ? group_names[m->memory.processes[slot].group]
                         : "outsider";
}

static void put_memory(const struct month *m, unsigned slot) {
  uint32_t pid = m->memory.processes[slot].pid;

  if (slot != m->hanging_slot)
    memory_tree_put_rollup(&m->world.tree, pid, &m->views[slot]);
  memory_tree_put_sizes(&m->world.tree, pid, 100000, &m->views[slot]);
}

#define HANG_CYCLES 5

static void put_path(const struct month *m, unsigned slot, char *ret,
                     size_t size) {
  snprintf(ret, size, "%u/smaps_rollup", m->shown[slot].pid);
}

/* Whether anybody has come to read it or not. */
static void wake(struct month *m) {
  char path[64], whole[128];
  int fd;

  if (m->hanging_slot == MEMORY_SLOTS)
    return;
  put_path(m, m->hanging_slot, path, sizeof(path));
  snprintf(whole, sizeof(whole), "%s/%s", m->world.tree.root, path);
  fd = open(whole, O_WRONLY | O_NONBLOCK);
  proctree_unlink(&m->world.tree, path);
  if (fd >= 0)
    close(fd);
  m->shown_views[m->hanging_slot] = (struct memory_view){0}; /* to be put */
  m->hanging_slot = MEMORY_SLOTS;
}

/* A process that is read for the first time. */
static void hang(struct month *m, unsigned slot) {
  char path[64];

  put_path(m, slot, path, sizeof(path));
  proctree_hang(&m->world.tree, path);
  m->hanging_slot = slot;
  m->hanging_cycles = 0;
}

static void show(struct month *m, unsigned slot) {
  const struct memory_process *p = &m->memory.processes[slot];
  struct memory_process *was = &m->shown[slot];
  bool is_other = was->starttime != p->starttime, is_new;

  if (was->is_alive && (!p->is_alive || is_other)) {
    if (slot == m->hanging_slot)
      wake(m);
    proctree_end(&m->world.tree, was->pid);
  }
  if (p->is_alive && (!was->is_alive || is_other)) {
    memory_tree_put(&m->world.tree, p, comm_of(m, slot));
    m->shown_views[slot] = (struct memory_view){0};
  }
  if (p->is_alive && memcmp(was, p, sizeof(*p)) != 0)
    memory_tree_put_stat(&m->world.tree, p, comm_of(m, slot));
  if (p->is_alive && memcmp(&m->shown_views[slot], &m->views[slot],
                            sizeof(m->views[slot])) != 0)
    put_memory(m, slot);
  is_new = p->is_alive && (!was->is_alive || is_other);
  *was = *p;
  m->shown_views[slot] = m->views[slot];
  if (is_new && m->is_hang_due && m->hanging_slot == MEMORY_SLOTS &&
      is_member(slot)) {
    hang(m, slot);
    m->is_hang_due = false;
  }
}

static void show_all(struct month *m) {
  memory_view_all(&m->memory, m->views);
  memory_tree_put_meminfo(&m->world.tree, &m->memory);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    show(m, slot);
}

/* --- what happens -----------------------------------------------------------
 */

static unsigned long cycles(void) {
  const char *n = getenv("MONTH_CYCLES");

  return n ? strtoul(n, NULL, 10) : CYCLES_DEFAULT;
}

/* Everybody ends, now and then, and sooner where memory is short. */
static void begin_episode(struct month *m, uint64_t seed) {
  uint32_t free_pages = MEMORY_PAGES - m->memory.n_pages + m->memory.n_free;

  if (m->episodes % 16 == 15 || free_pages < PAGES_LEAST_FREE)
    for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
      memory_exit(&m->memory, slot);
  history_init(&m->episode, &services[m->episodes / 8 % LENGTH(services)],
               seed + m->episodes);
  history_begin(&m->episode, &m->memory);
  m->episodes++;
  m->at = 0;
}

static void play(struct month *m, uint64_t seed) {
  if (m->at == m->episode.cycles)
    begin_episode(m, seed);
  if (m->at++ > 0)
    history_go_on(&m->episode);
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

static void follow_hang(struct month *m, unsigned long cycle) {
  if (cycle % 250 == 0)
    m->is_hang_due = true;
  if (m->hanging_slot != MEMORY_SLOTS && ++m->hanging_cycles > HANG_CYCLES)
    wake(m);
}

/* --- judging ----------------------------------------------------------------
 */

/* The kernel and the core each round each process down to a kB. */
#define ROUNDING (2 * 1024 * HISTORY_OUTSIDERS)

static bool is_in(const struct month *m, unsigned slot, unsigned group) {
  const struct memory_process *p = &m->memory.processes[slot];

  return p->is_alive && p->group == group;
}

static bool is_uss_beyond(const struct month *m, unsigned group) {
  const char *name = group_names[group];
  double uss = world_value(&m->world, name, "uss");
  double error = world_value(&m->world, name, "uss_error"), truth = 0;

  for (unsigned slot = 0; slot < HISTORY_OUTSIDERS; slot++)
    if (is_in(m, slot, group))
      truth += (double)rollup_uss(&m->views[slot].rollup);
  return fabs(uss - truth) > error + ROUNDING;
}

static void judge_group(struct month *m, unsigned group) {
  const char *name = group_names[group];
  double pss = world_value(&m->world, name, "pss");
  double error = world_value(&m->world, name, "pss_error");
  double truth = 0, beyond;

  for (unsigned slot = 0; slot < HISTORY_OUTSIDERS; slot++)
    if (is_in(m, slot, group))
      truth += (double)m->views[slot].rollup.bytes[ROLLUP_PSS];
  m->tally.uss_beyond += is_uss_beyond(m, group);
  m->tally.values++;
  m->tally.unknown += isnan(pss) != 0;
  beyond = (pss > truth ? pss - truth : truth - pss) - error - ROUNDING;
  m->tally.width += truth > 0 ? error / truth : 0;
  if (!(beyond > 0))
    return;
  m->tally.beyond++;
  if (getenv("MONTH_VERBOSE"))
    printf("%s, cycle %u of episode %u: group %s has %.0f kB, and not %.0f "
           "kB, +- %.0f kB\n",
           m->episode.class->name, m->at - 1, m->episodes, name, truth / 1024,
           pss / 1024, error / 1024);
  if (beyond / truth > m->tally.worst)
    m->tally.worst = beyond / truth;
}

static void judge(struct month *m) {
  for (unsigned group = 0; group < LENGTH(group_names); group++) {
    double age = world_value(&m->world, group_names[group], "age");

    judge_group(m, group);
    if (age > m->tally.oldest_seconds)
      m->tally.oldest_seconds = age;
  }
  m->tally.reads += world_counts(&m->world)->rollup_reads;
}

/* --- the month --------------------------------------------------------------
 */

static void begin(struct month *m, uint64_t seed) {
  static const uint32_t objects[MEMORY_OBJECTS] = {256, 64, 512, 32};

  memset(m, 0, sizeof(*m));
  m->hanging_slot = MEMORY_SLOTS;
  memory_world_init(&m->memory, 4096, objects);
  world_make(&m->world);
  m->world.settings.policy.refresh = REFRESH_ADAPTIVE;
  m->world.settings.policy.max_age_ns = MAX_AGE_SECONDS * NS_PER_S;
  m->world.settings.read_timeout_ns = 20 * NS_PER_MS;
  for (unsigned i = 0; i < LENGTH(group_names); i++)
    world_group(&m->world, group_names[i], "Comm", group_names[i], NULL, NULL);
  begin_episode(m, seed);
}

static void live(struct month *m, uint64_t seed, unsigned long cycle) {
  play(m, seed);
  follow_hang(m, cycle);
  show_all(m);
  set_load(cycle);
  world_step(step_before(cycle));
  world_run(&m->world, seconds_before(cycle));
  judge(m);
}

TEST(a_month_of_mixed_services) {
  struct month *m = &the_month;
  const struct month_tally *t = &m->tally;
  size_t used = 0;

  begin(m, 20261122);
  for (unsigned long i = 0; i < cycles(); i++) {
    live(m, 20261122, i);
    if (i == cycles() / 5)
      used = mallinfo2().uordblks;
  }
  printf("%lu values, %.2f %% of them beyond the error, by %.1f %% at most; it "
         "is %.1f %%; USS %.2f %%; %lu unknown; oldest reading %.0f s; %.2f "
         "readings in each "
         "cycle\n",
         t->values, 100 * (double)t->beyond / (double)t->values, 100 * t->worst,
         100 * t->width / (double)t->values,
         100 * (double)t->uss_beyond / (double)t->values, t->unknown,
         t->oldest_seconds, (double)t->reads / (double)cycles());
  wake(m);
  assert_in_range(t->beyond, 0, t->values / 100);
  assert_in_range(t->uss_beyond, 0, t->values / 100);
  assert_true(t->oldest_seconds <= 2 * MAX_AGE_SECONDS + SUSPENDED_SECONDS);
  assert_true(mallinfo2().uordblks < used + (64 << 10));
  world_remove(&m->world);
}
