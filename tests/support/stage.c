#include "stage.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "draw.h"
#include "memory_tree.h"

#define SECONDS 10
#define MAX_AGE_SECONDS 600
/* A walk takes so long by page; a sample. */
#define WALK_PAGE_NS 12
#define SAMPLE_NS 700000
/* Some 2,080 pages, by the guess of read_cost.c. */
#define LIMIT_NS 30000
#define LIMIT_PAGES 2080
/* A question to the clock of the processor: what a probe sees of a window. */
#define WINDOW_NS (512 * WALK_PAGE_NS)

/* The one that calls of the core are about. */
static struct stage *staged;

/* --- calls of the core ------------------------------------------------------
 */

int __real_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

static uint64_t resident_pages_in(int dir_fd) {
  char path[32], target[128];
  ssize_t n;
  const char *slash;

  snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
  n = readlink(path, target, sizeof(target) - 1);
  target[n > 0 ? n : 0] = '\0';
  slash = strrchr(target, '/');
  for (unsigned slot = 0; slash && slot < MEMORY_SLOTS; slot++)
    if (staged->shown[slot].pid == strtoul(slash + 1, NULL, 10))
      return staged->views[slot].resident_pages;
  return 0;
}

int __wrap_openat(int dir_fd, const char *path, int flags, ...) {
  bool is_pagemap = strcmp(path, "pagemap") == 0;

  if (is_pagemap && staged->is_denied) {
    errno = EACCES;
    return -1;
  }
  if (is_pagemap)
    world_spend(SAMPLE_NS);
  if (strcmp(path, "smaps_rollup") == 0)
    world_spend(resident_pages_in(dir_fd) * WALK_PAGE_NS);
  return __real_openat(dir_fd, path, flags);
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left) {
  (void)wanted;
  (void)left;
  return 0;
}

/* --- the tree ---------------------------------------------------------------
 */

bool stage_has(const struct stage *s, unsigned slot) {
  return s->memory.processes[slot].is_alive;
}

static const char *comm_of(const struct stage *s, unsigned slot) {
  static char comm[16];

  if (slot >= OUTSIDERS)
    return "outsider";
  snprintf(comm, sizeof(comm), s->load->is_alone ? "g%u" : "g", slot);
  return comm;
}

static void show(struct stage *s, unsigned slot) {
  const struct memory_process *p = &s->memory.processes[slot];
  struct memory_process *was = &s->shown[slot];
  bool is_other = was->starttime != p->starttime;
  uint64_t size_pages;

  if (was->is_alive && (!p->is_alive || is_other))
    proctree_end(&s->world.tree, was->pid);
  if (p->is_alive && (!was->is_alive || is_other))
    memory_tree_put(&s->world.tree, p, comm_of(s, slot));
  *was = *p;
  if (!p->is_alive)
    return;
  addresses_update(&s->addresses[slot], &s->memory, slot);
  memory_tree_put_stat(&s->world.tree, p, comm_of(s, slot));
  memory_tree_put_rollup(&s->world.tree, p->pid, &s->views[slot]);
  size_pages = addresses_put(&s->addresses[slot], &s->world.tree, &s->memory,
                             slot, s->hides_frames);
  memory_tree_put_sizes(&s->world.tree, p->pid, size_pages, &s->views[slot]);
}

static void show_all(struct stage *s) {
  memory_view_all(&s->memory, s->views);
  memory_tree_put_meminfo(&s->world.tree, &s->memory);
  addresses_put_counts(&s->world.tree, &s->memory);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    show(s, slot);
}

/* --- judging ----------------------------------------------------------------
 */

/* The kernel and the core each round each process down to a kB. */
#define ROUNDING (2 * 1024 * OUTSIDERS)

struct truth {
  double pss, uss, rss;
};

static void add_truth(const struct stage *s, unsigned slot, struct truth *t) {
  const struct rollup *r = &s->views[slot].rollup;

  t->pss += (double)r->bytes[ROLLUP_PSS];
  t->uss += (double)rollup_uss(r);
  t->rss += (double)r->bytes[ROLLUP_RSS];
}

static double largest(double a, double b) { return a > b ? a : b; }

static void judge_group(struct stage *s, const char *name,
                        const struct truth *t) {
  struct tally *sum = &s->tally;
  double pss = world_value(&s->world, name, "pss");
  double error = world_value(&s->world, name, "pss_error");
  double uss = world_value(&s->world, name, "uss");
  double uss_error = world_value(&s->world, name, "uss_error");
  double off = fabs(pss - t->pss), uss_off = fabs(uss - t->uss);
  bool is_beyond = !(off <= error + ROUNDING);
  bool is_uss_beyond = !(uss_off <= uss_error + ROUNDING);

  sum->n++;
  sum->beyond += is_beyond;
  sum->uss_beyond += is_uss_beyond;
  sum->far += off > s->load->far * t->rss;
  sum->uss_far += uss_off > s->load->far * t->rss;
  sum->off += off / t->rss;
  sum->uss_off += uss_off / t->rss;
  sum->width += error / t->rss;
  sum->uss_width += uss_error / t->rss;
  sum->worst = largest(sum->worst, off / t->rss);
  sum->uss_worst = largest(sum->uss_worst, uss_off / t->rss);
  if (getenv("GIANTS_VERBOSE") && (is_beyond || is_uss_beyond))
    printf("%lu: %s has %.0f kB: pss %.0f, not %.0f +- %.0f; uss %.0f, not "
           "%.0f +- %.0f\n",
           s->cycle, name, t->rss / 1024, t->pss / 1024, pss / 1024,
           error / 1024, t->uss / 1024, uss / 1024, uss_error / 1024);
}

static void judge(struct stage *s) {
  struct truth all = {.pss = 0};

  for (unsigned slot = 0; slot < OUTSIDERS; slot++) {
    struct truth one = {.pss = 0};

    if (!stage_has(s, slot))
      continue;
    add_truth(s, slot, &one);
    add_truth(s, slot, &all);
    if (s->load->is_alone && s->views[slot].resident_pages >= LIMIT_PAGES)
      judge_group(s, comm_of(s, slot), &one);
  }
  if (!s->load->is_alone)
    judge_group(s, "g", &all);
  s->samples += world_counts(&s->world)->sampled;
  s->reads += world_counts(&s->world)->rollup_reads;
}

/* --- a test ----------------------------------------------------------------
 */

static unsigned long cycles(void) {
  const char *n = getenv("GIANTS_CYCLES");

  return n ? strtoul(n, NULL, 10) : 300;
}

void stage_begin(struct stage *s, const struct load *load) {
  static const uint32_t objects[MEMORY_OBJECTS] = {512, 64, 6016, 64};

  memset(s, 0, sizeof(*s));
  s->load = load;
  staged = s;
  draw_begin(20261122);
  memory_world_init(&s->memory, PAGE, objects);
  world_make(&s->world);
  s->world.settings.policy.refresh = REFRESH_ADAPTIVE;
  s->world.settings.policy.max_age_ns = MAX_AGE_SECONDS * NS;
  s->world.settings.policy.max_lock_hold_ns = LIMIT_NS;
  if (load->budget_percent > 0)
    s->world.settings.read_budget_percent = load->budget_percent;
  world_walks_take(WINDOW_NS);
  world_group(&s->world, load->is_alone ? "%{comm}" : "g", "Comm", "g*", NULL,
              NULL);
}

static void print(const struct stage *s) {
  const struct tally *t = &s->tally;
  double n = (double)t->n / 100;

  printf("%-28s PSS off %.2f %% (max %.1f), error %.2f %%, beyond %.2f %%, "
         "more than %.1f %% off: %.2f %%; USS off %.2f %% (max %.1f), error "
         "%.2f %%, beyond %.2f %%, more than that: %.2f %%; %.1f samples, %.2f "
         "reads\n",
         s->load->name, t->off / n, 100 * t->worst, t->width / n,
         (double)t->beyond / n, 100 * s->load->far, (double)t->far / n,
         t->uss_off / n, 100 * t->uss_worst, t->uss_width / n,
         (double)t->uss_beyond / n, (double)t->uss_far / n,
         (double)s->samples / (double)cycles(),
         (double)s->reads / (double)cycles());
}

void stage_end(struct stage *s) { world_remove(&s->world); }

void stage_act(struct stage *s) {
  s->load->live(s);
  show_all(s);
  world_run(&s->world, s->load->seconds ? s->load->seconds : SECONDS);
}

static bool is_at_most(unsigned long n, double part, unsigned long of) {
  return (double)n <= part * (double)of + 5;
}

static void check(const struct stage *s) {
  const struct tally *t = &s->tally;
  double beyond = s->load->beyond_most > 0 ? s->load->beyond_most : 0.01;

  assert_true(t->n > 0 && s->samples > 0);
  assert_true(is_at_most(t->beyond, beyond, t->n));
  assert_true(is_at_most(t->uss_beyond, beyond, t->n));
  assert_true(is_at_most(t->far, s->load->far_most, t->n));
  assert_true(t->width <= s->load->width_most * (double)t->n);
}

void stage_play(struct stage *s, const struct load *load) {
  size_t used = 0;

  stage_begin(s, load);
  for (s->cycle = 0; s->cycle < cycles(); s->cycle++) {
    stage_act(s);
    judge(s);
    if (s->cycle == cycles() / 2)
      used = mallinfo2().uordblks;
  }
  print(s);
  check(s);
  assert_true(mallinfo2().uordblks < used + (256 << 10));
  stage_end(s);
}
