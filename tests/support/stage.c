/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stage the_stage; /* too large for a stack */

struct stage *stage_begin(const uint32_t object_pages[MEMORY_OBJECTS]) {
  struct stage *s = &the_stage;

  memset(s, 0, sizeof(*s));
  s->hanging_slot = MEMORY_SLOTS;
  /* The kernel and the core each round each process down to a kB. */
  s->rounding = 2 * 1024 * STAGE_OUTSIDERS;
  memory_world_init(&s->memory, PAGE, object_pages);
  world_make(&s->world);
  s->world.settings.policy.refresh = REFRESH_ADAPTIVE;
  return s;
}

unsigned long stage_cycles(const char *variable, unsigned long usual) {
  const char *n = getenv(variable);

  return n ? strtoul(n, NULL, 10) : usual;
}

bool stage_has(const struct stage *s, unsigned slot) {
  return s->memory.processes[slot].is_alive;
}

const char *stage_comm(const struct stage *s, unsigned slot) {
  static char comm[16];

  if (slot >= STAGE_OUTSIDERS)
    return "outsider";
  if (s->is_alone)
    snprintf(comm, sizeof(comm), "g%u", slot);
  else
    snprintf(comm, sizeof(comm), "%c", 'a' + s->memory.processes[slot].group);
  return comm;
}

/* --- the tree --- */

static void put_meminfo(const struct stage *s) {
  proctree_print(&s->world.tree, 0, "meminfo",
                 "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n"
                 "SwapTotal: 1048576 kB\nSwapFree: %u kB\n",
                 memory_is_swap_used(&s->memory) ? 524288U : 1048576U);
}

static struct fake fake_of(const struct stage *s, unsigned slot) {
  const struct memory_process *p = &s->memory.processes[slot];

  return (struct fake){.pid = p->pid,
                       .ppid = p->parent_pid,
                       .comm = stage_comm(s, slot),
                       .starttime = p->starttime,
                       .start_stack =
                           UINT64_C(0x7ff000000000) + (p->program << 16),
                       .faults = p->minor_faults};
}

static void put_rollup(const struct stage *s, uint32_t pid,
                       const struct memory_view *v) {
  static const char *const keys[ROLLUP_FIELDS] = {
      [ROLLUP_RSS] = "Rss",
      [ROLLUP_PSS] = "Pss",
      [ROLLUP_PSS_DIRTY] = "Pss_Dirty",
      [ROLLUP_PSS_ANON] = "Pss_Anon",
      [ROLLUP_PSS_FILE] = "Pss_File",
      [ROLLUP_PSS_SHMEM] = "Pss_Shmem",
      [ROLLUP_SHARED_CLEAN] = "Shared_Clean",
      [ROLLUP_SHARED_DIRTY] = "Shared_Dirty",
      [ROLLUP_PRIVATE_CLEAN] = "Private_Clean",
      [ROLLUP_PRIVATE_DIRTY] = "Private_Dirty",
      [ROLLUP_REFERENCED] = "Referenced",
      [ROLLUP_ANONYMOUS] = "Anonymous",
      [ROLLUP_SWAP] = "Swap",
      [ROLLUP_SWAP_PSS] = "SwapPss"};
  char text[1024];
  int n = snprintf(
      text, sizeof(text),
      "55d0c8f7d000-7ffe1d7f2000 ---p 00000000 00:00 0          [rollup]\n");

  for (int f = 0; f < ROLLUP_FIELDS; f++)
    if (keys[f])
      n += snprintf(text + n, sizeof(text) - (size_t)n, "%s: %llu kB\n",
                    keys[f], (unsigned long long)v->rollup.bytes[f] / 1024);
  proctree_print(&s->world.tree, pid, "smaps_rollup", "%s", text);
}

static void put_sizes(const struct stage *s, uint32_t pid, uint64_t size_pages,
                      const struct memory_view *v) {
  proctree_print(&s->world.tree, pid, "statm", "%llu %llu %llu 40 0 1000 0\n",
                 (unsigned long long)size_pages,
                 (unsigned long long)v->resident_pages,
                 (unsigned long long)v->shared_pages);
  proctree_print(&s->world.tree, pid, "status",
                 "Name:\tx\nUid:\t0\t0\t0\t0\nVmPTE:\t      40 kB\n"
                 "VmSwap:\t%u kB\nThreads:\t1\n",
                 v->vm_swap_kb);
}

/* Writes what has changed. */
static void put_memory(struct stage *s, unsigned slot) {
  uint32_t pid = s->memory.processes[slot].pid;
  const struct memory_view *v = &s->views[slot];
  uint64_t size = s->put_pages ? s->put_pages(s, slot) : 100000;

  if (size == s->shown_sizes[slot] &&
      memcmp(v, &s->shown_views[slot], sizeof(*v)) == 0)
    return;
  if (slot != s->hanging_slot)
    put_rollup(s, pid, v);
  put_sizes(s, pid, size, v);
  s->shown_sizes[slot] = size;
  s->shown_views[slot] = *v;
}

static void show(struct stage *s, unsigned slot) {
  const struct memory_process *p = &s->memory.processes[slot];
  struct memory_process *was = &s->shown[slot];
  bool is_other = was->starttime != p->starttime;
  struct fake f = fake_of(s, slot);

  if (was->is_alive && (!p->is_alive || is_other))
    proctree_end(&s->world.tree, was->pid);
  if (p->is_alive && is_other) {
    proctree_put(&s->world.tree, &f);
    s->shown_sizes[slot] = 0;
    s->born |= 1U << slot;
  }
  if (p->is_alive && memcmp(was, p, sizeof(*p)) != 0)
    proctree_put_stat(&s->world.tree, &f);
  *was = *p;
  if (p->is_alive)
    put_memory(s, slot);
}

void stage_show(struct stage *s) {
  s->born = 0;
  memory_view_all(&s->memory, s->views);
  put_meminfo(s);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    show(s, slot);
}

void stage_run(struct stage *s, unsigned seconds) {
  world_run(&s->world, seconds);
  s->tally.samples += world_counts(&s->world)->sampled;
  s->tally.reads += world_counts(&s->world)->rollup_reads;
}

/* --- judging --- */

static double far_off(const struct stage *s, const char *name,
                      const char *metric, double truth) {
  return fabs(world_value(&s->world, name, metric) - truth);
}

void stage_judge(struct stage *s, const char *name, unsigned slots) {
  struct tally *t = &s->tally;
  double pss = 0, uss = 0, rss = 0, off, uss_off;
  double error = world_value(&s->world, name, "pss_error");
  double uss_error = world_value(&s->world, name, "uss_error");
  bool is_beyond, is_uss_beyond;

  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    const struct rollup *r = &s->views[slot].rollup;

    if (!(slots >> slot & 1))
      continue;
    pss += (double)r->bytes[ROLLUP_PSS];
    uss += (double)rollup_uss(r);
    rss += (double)r->bytes[ROLLUP_RSS];
  }
  off = far_off(s, name, "pss", pss);
  uss_off = far_off(s, name, "uss", uss);
  /* So that NaN is beyond. */
  is_beyond = !(off <= error + s->rounding);
  is_uss_beyond = !(uss_off <= uss_error + s->rounding);
  t->n++;
  t->beyond += is_beyond;
  t->uss_beyond += is_uss_beyond;
  t->far += off > s->far * rss;
  if (rss > 0) {
    t->off += off / rss;
    t->width += error / rss;
    t->worst = fmax(t->worst, off / rss);
  }
  t->pss_width += pss > 0 ? error / pss : 0;
  if (is_beyond)
    t->beyond_worst = fmax(t->beyond_worst, (off - error - s->rounding) / pss);
  if (getenv("STAGE_VERBOSE") && (is_beyond || is_uss_beyond))
    printf("%lu: %s has %.0f kB: pss %.0f is off by %.0f +- %.0f; uss %.0f by "
           "%.0f +- %.0f\n",
           s->cycle, name, rss / 1024, pss / 1024, off / 1024, error / 1024,
           uss / 1024, uss_off / 1024, uss_error / 1024);
}

void stage_judge_group(struct stage *s, unsigned group) {
  char name[] = {(char)('a' + (int)group), '\0'};
  unsigned slots = 0;

  for (unsigned slot = 0; slot < STAGE_OUTSIDERS; slot++)
    if (stage_has(s, slot) && s->memory.processes[slot].group == group)
      slots |= 1U << slot;
  stage_judge(s, name, slots);
  s->tally.oldest_seconds =
      fmax(s->tally.oldest_seconds, world_value(&s->world, name, "age"));
}
