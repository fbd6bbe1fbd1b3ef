/*
 * Values over a long time: processes map and unmap windows of a file, grow,
 * shrink, exit and are replaced, and in each cycle what is published is as far
 * from the truth as memory-pss_error says, and no farther.
 *
 * UPTIME_CYCLES=1000000 makes it more than a month at an interval of ten
 * seconds, which takes some minutes.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "draw.h"
#include "world.h"

#define CYCLES_DEFAULT 10000
#define INTERVAL_SECONDS 10

#define MEMBERS 6
#define WINDOWS 16
#define WINDOW_KB 4096
#define PAGE_KB 4

struct worker {
  uint32_t pid; /* 0: none */
  unsigned anon_kb;
  unsigned windows; /* bit per window of the file that it maps */
  unsigned more_kb; /* of another file, that another process maps as well */
};

struct life {
  struct world world;
  struct worker members[MEMBERS];
  unsigned outsiders[WINDOWS]; /* processes in no group that map it */
  uint32_t next_pid;
  uint64_t reads;
};

static unsigned mappers(const struct life *l, unsigned window) {
  unsigned n = l->outsiders[window];

  for (int i = 0; i < MEMBERS; i++)
    n += l->members[i].pid && (l->members[i].windows >> window & 1);
  return n;
}

/* In kB, as the kernel would count it. */
struct truth {
  double pss;
  unsigned uss, file, rss;
};

static struct truth truth_of(const struct life *l, const struct worker *m) {
  struct truth t = {.pss = m->anon_kb + m->more_kb / 2.0,
                    .uss = m->anon_kb,
                    .file = m->more_kb};

  for (unsigned w = 0; w < WINDOWS; w++) {
    unsigned n = mappers(l, w);

    if (!(m->windows >> w & 1))
      continue;
    t.pss += (double)WINDOW_KB / n;
    t.uss += n == 1 ? WINDOW_KB : 0;
    t.file += WINDOW_KB;
  }
  t.rss = m->anon_kb + t.file;
  return t;
}

static void put_memory(const struct life *l, const struct worker *m) {
  struct truth t = truth_of(l, m);

  proctree_print(&l->world.tree, m->pid, "statm", "100000 %u %u 200 0 1000 0\n",
                 t.rss / PAGE_KB, t.file / PAGE_KB);
  proctree_print(
      &l->world.tree, m->pid, "smaps_rollup",
      "55d0c8f7d000-7ffe1d7f2000 ---p 00000000 00:00 0          [rollup]\n"
      "Rss: %u kB\nPss: %u kB\nPss_Dirty: %u kB\nPss_Anon: %u kB\n"
      "Pss_File: %u kB\nPss_Shmem: 0 kB\nShared_Clean: %u kB\n"
      "Shared_Dirty: 0 kB\nPrivate_Clean: %u kB\nPrivate_Dirty: %u kB\n"
      "Referenced: %u kB\nAnonymous: %u kB\nSwap: 0 kB\nSwapPss: 0 kB\n"
      "Locked: 0 kB\n",
      t.rss, (unsigned)t.pss, m->anon_kb, m->anon_kb,
      (unsigned)t.pss - m->anon_kb, t.rss - t.uss, t.uss - m->anon_kb,
      m->anon_kb, t.rss, m->anon_kb);
}

static void put_all_memory(const struct life *l) {
  for (int i = 0; i < MEMBERS; i++)
    if (l->members[i].pid)
      put_memory(l, &l->members[i]);
}

/* One that is free: they go round. */
static uint32_t take_pid(struct life *l) {
  bool is_free;

  do {
    l->next_pid = l->next_pid == 30000 ? 100 : l->next_pid + 1;
    is_free = true;
    for (int i = 0; i < MEMBERS; i++)
      is_free &= l->members[i].pid != l->next_pid;
  } while (!is_free);
  return l->next_pid;
}

static void start(struct life *l, struct worker *m) {
  struct fake f;

  *m = (struct worker){.pid = take_pid(l),
                       .anon_kb = PAGE_KB * (100 + draw_unsigned(5000)),
                       .windows = draw_unsigned(1U << WINDOWS)};
  f = (struct fake){.pid = m->pid,
                    .ppid = 1,
                    .comm = "g",
                    .starttime = 100 + m->pid,
                    .start_stack = 0x7ff000000000 + m->pid * 0x100000ULL};
  proctree_put(&l->world.tree, &f);
}

static void end(struct life *l, struct worker *m) {
  proctree_end(&l->world.tree, m->pid);
  *m = (struct worker){.pid = 0};
}

static void make(struct life *l, uint64_t seed) {
  *l = (struct life){.next_pid = 100};
  draw_begin(seed);
  world_make(&l->world);
  l->world.settings.policy.refresh = REFRESH_ADAPTIVE;
  world_group(&l->world, "g", "Comm", "g", NULL, NULL);
}

static void cycle(struct life *l) {
  assert_int_equal(world_cycle(&l->world, INTERVAL_SECONDS), 0);
  l->reads += collector_results(l->world.collector)->counts.rollup_reads;
}

/* The kernel rounds off so much, for each member. */
#define ROUNDING_KB MEMBERS

/* How often, and by how much of the PSS, it was farther off than it said. */
struct tally {
  unsigned long cycles, beyond;
  double worst;
};

static void count(const struct life *l, struct tally *t) {
  double pss = world_value(&l->world, "g", "pss") / 1024;
  double error = world_value(&l->world, "g", "pss_error") / 1024;
  double truth = 0, beyond;

  for (int i = 0; i < MEMBERS; i++)
    if (l->members[i].pid)
      truth += truth_of(l, &l->members[i]).pss;
  beyond = (pss > truth ? pss - truth : truth - pss) - error - ROUNDING_KB;
  t->cycles++;
  if (beyond <= 0)
    return;
  t->beyond++;
  if (beyond / truth > t->worst)
    t->worst = beyond / truth;
}

/* In each `share` cycles a single value may be farther off, by so much of its
 * PSS. */
static void expect(const struct life *l, const struct tally *t,
                   unsigned long share, double most) {
  printf("%lu cycles, %lu of them beyond the error, by %.2f %% at most; %.2f "
         "readings in each\n",
         t->cycles, t->beyond, 100 * t->worst,
         (double)l->reads / (double)t->cycles);
  assert_in_range(t->beyond, 0, t->cycles / share);
  assert_true(t->worst <= most);
}

static void change_window(struct worker *m) {
  m->windows ^= 1U << draw_unsigned(WINDOWS);
}

static void change_size(struct worker *m) {
  m->anon_kb += PAGE_KB * draw_unsigned(2000);
  if (m->anon_kb > 65536)
    m->anon_kb = 4096;
}

static void change(struct life *l) {
  struct worker *m = &l->members[draw_unsigned(MEMBERS)];
  uint32_t what = draw_unsigned(8);

  if (!m->pid)
    start(l, m);
  else if (what == 0 && m != l->members) /* an empty tree is no proc tree */
    end(l, m);
  else if (what < 4)
    change_size(m);
  else
    change_window(m);
}

static unsigned long cycles(void) {
  const char *n = getenv("UPTIME_CYCLES");

  return n ? strtoul(n, NULL, 10) : CYCLES_DEFAULT;
}

static void live(struct life *l, uint32_t changes_most, struct tally *t) {
  for (int i = 0; i < MEMBERS; i++)
    start(l, &l->members[i]);
  for (unsigned long i = 0; i < cycles(); i++) {
    for (uint32_t n = draw_unsigned(changes_most + 1); n > 0; n--)
      change(l);
    put_all_memory(l);
    cycle(l);
    count(l, t);
  }
}

/* --- tests -----------------------------------------------------------------
 */

TEST(a_quiet_month_is_within_the_error) {
  struct tally tally = {.cycles = 0};
  struct life l;

  make(&l, 20261121);
  for (int w = 0; w < WINDOWS; w++)
    l.outsiders[w] = 2;
  live(&l, 1, &tally);
  expect(&l, &tally, 10001, 0.005);
  world_remove(&l.world);
}

/* Some windows are of nobody else, and several processes change between two
 * looks: statm does not show all that this does to the others. */
TEST(a_busy_month_is_within_the_error) {
  struct tally tally = {.cycles = 0};
  struct life l;

  make(&l, 20261121);
  for (int w = 0; w < WINDOWS; w++)
    l.outsiders[w] = draw_unsigned(3);
  live(&l, 2, &tally);
  expect(&l, &tally, 100, 0.05);
  world_remove(&l.world);
}

/* One process maps and unmaps a window that another has, hour after hour, and
 * then rests: what it costs does not depend on how often that was. */
TEST(windows_that_come_and_go_leave_nothing_behind) {
  static const unsigned outsiders[] = {0, 1, 4};

  for (size_t i = 0; i < LENGTH(outsiders); i++) {
    struct tally tally = {.cycles = 0};
    struct life l;

    make(&l, 7 + i);
    for (int w = 0; w < WINDOWS; w++)
      l.outsiders[w] = outsiders[i];
    start(&l, &l.members[0]);
    start(&l, &l.members[1]);
    l.members[0].anon_kb = 8192;
    l.members[0].windows = 1;
    for (int n = 0; n < 3000; n++) {
      if (n % 100 < 80)
        l.members[0].windows ^= 0xfff0;
      else
        l.members[0].more_kb = PAGE_KB * draw_unsigned(5);
      put_all_memory(&l);
      cycle(&l);
      count(&l, &tally);
    }
    expect(&l, &tally, 3001, 0.001);
    world_remove(&l.world);
  }
}
