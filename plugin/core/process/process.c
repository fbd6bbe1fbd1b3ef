#include "process/process.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int make_room(struct process_table *t, size_t n) {
  size_t cap = t->cap ? t->cap : 256;
  struct process **processes, **spare;

  if (n <= t->cap)
    return 0;
  while (cap < n)
    cap *= 2;
  processes = reallocarray(t->processes, cap, sizeof(struct process *));
  t->processes = processes ? processes : t->processes;
  spare = reallocarray(t->spare, cap, sizeof(struct process *));
  t->spare = spare ? spare : t->spare;
  if (!processes || !spare)
    return -ENOMEM;
  t->cap = cap;
  return 0;
}

void process_reset(struct process *p,
                   void (*gone)(void *ctx, struct process *p), void *ctx) {
  gone(ctx, p);
  attributes_done(&p->attributes);
  free(p->groups);
  free(p->claims);
  free(p->perhaps);
  free(p->why);
  *p = (struct process){.pid = p->pid, .ino = p->ino};
}

bool process_is_unidentified(const struct process *p) {
  return p->state == PROCESS_UNKNOWN && (!p->identified_ns || p->is_match_due);
}

static void process_free(struct process *p,
                         void (*gone)(void *ctx, struct process *p),
                         void *ctx) {
  process_reset(p, gone, ctx);
  free(p);
}

static void mark_unseen(struct process *p, uint32_t ino) {
  p->has_new_inode = p->ino != ino;
  if (p->state != PROCESS_KERNEL || p->has_new_inode)
    p->state = PROCESS_UNSEEN;
  p->ino = ino;
}

static struct process *new_process(const struct procfs_entry *entry) {
  struct process *p = calloc(1, sizeof(*p));

  if (!p)
    return NULL;
  p->pid = entry->pid;
  p->ino = (uint32_t)entry->ino;
  return p;
}

/* Lays out the next table in the spare array, and goes through both in step. */
int process_table_update(struct process_table *t,
                         const struct procfs_entry *entries, size_t n,
                         void (*gone)(void *ctx, struct process *p),
                         void *ctx) {
  struct process **before;
  size_t old = 0, filled = 0;
  int rc = make_room(t, n);

  if (rc < 0)
    return rc;
  before = t->processes;
  for (size_t i = 0; i < n; i++) {
    struct process *p;

    assert(i == 0 || entries[i - 1].pid < entries[i].pid);
    while (old < t->n && before[old]->pid < entries[i].pid)
      process_free(before[old++], gone, ctx);
    if (old < t->n && before[old]->pid == entries[i].pid) {
      p = before[old++];
      mark_unseen(p, (uint32_t)entries[i].ino);
    } else {
      p = new_process(&entries[i]);
    }
    if (p)
      t->spare[filled++] = p;
    else
      rc = -ENOMEM;
  }
  while (old < t->n)
    process_free(before[old++], gone, ctx);
  t->processes = t->spare;
  t->spare = before;
  t->n = filled;
  return rc;
}

struct process *process_table_find(const struct process_table *t,
                                   uint32_t pid) {
  size_t low = 0, high = t->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    struct process *p = t->processes[middle];

    if (p->pid == pid)
      return p;
    if (p->pid < pid)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

uint32_t process_program(const struct process *p) {
  uint64_t key = p->start_stack * 31 + p->statm.text_pages;

  return (uint32_t)(key ^ key >> 32) | UINT32_C(1) << 31;
}

bool process_is_same_program(const struct process *a, const struct process *b) {
  return a->start_stack == b->start_stack &&
         a->statm.text_pages == b->statm.text_pages;
}

void process_table_link(const struct process_table *t, struct process *p) {
  struct process *parent = process_table_find(t, p->parent_pid);

  /* The parent's stat could not be read. The next cycle may read it, or find
   * that it has ended. */
  if (parent && (parent->state == PROCESS_UNKNOWN ||
                 (parent->state == PROCESS_GONE && !parent->starttime_ticks)))
    return;
  p->is_linked = true;
  /* A parent is not younger than its child: a younger process has reused its
   * pid. */
  if (parent && parent->starttime_ticks <= p->starttime_ticks)
    p->parent_starttime = parent->starttime_ticks;
  else
    p->parent_pid = 0;
}

struct process *process_table_parent(const struct process_table *t,
                                     const struct process *p) {
  struct process *parent = process_table_find(t, p->parent_pid);

  if (!parent || parent == p || parent->starttime_ticks != p->parent_starttime)
    return NULL;
  return parent;
}

void process_table_done(struct process_table *t,
                        void (*gone)(void *ctx, struct process *p), void *ctx) {
  for (size_t i = 0; i < t->n; i++)
    process_free(t->processes[i], gone, ctx);
  free(t->processes);
  free(t->spare);
  *t = (struct process_table){0};
}
