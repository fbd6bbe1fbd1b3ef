/* SPDX-License-Identifier: MIT */
#include "process/process.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void process_reset(const struct process_table *t, struct process *p) {
  t->gone(t->ctx, p);
  attributes_done(&p->attributes);
  free(p->groups);
  free(p->claims);
  free(p->membership.perhaps);
  free(p->membership.why);
  *p = (struct process){.pid = p->pid, .ino = p->ino};
}

bool process_is_unidentified(const struct process *p) {
  return p->state == PROCESS_UNKNOWN && (!p->identified_ns || p->is_match_due);
}

static void process_free(const struct process_table *t, struct process *p) {
  process_reset(t, p);
  free(p);
}

void process_set_state(struct process *p, enum process_state to) {
  switch (to) {
  case PROCESS_UNSEEN:
    /* A cycle begins. A kernel thread stays what it is, unless another inode
     * shows that its pid may belong to another process. */
    assert(p->state != PROCESS_KERNEL || p->has_new_inode);
    break;
  case PROCESS_KERNEL:
  case PROCESS_ALIVE:
    /* The process was looked at. */
    assert(p->state == PROCESS_UNSEEN);
    break;
  case PROCESS_UNKNOWN:
    /* It could not be looked at; or it was alive, and then there was no memory
     * for its state, or neither memory nor time to find its groups. */
    assert(p->state == PROCESS_UNSEEN || p->state == PROCESS_ALIVE);
    break;
  case PROCESS_GONE:
    /* It had ended when it was looked at; or it was alive then, and a later
     * read of the same cycle has found that it ended. */
    assert(p->state == PROCESS_UNSEEN || p->state == PROCESS_ALIVE);
    break;
  }
  p->state = to;
}

static void begin_cycle(struct process *p, uint32_t ino) {
  p->has_new_inode = p->ino != ino;
  if (p->state != PROCESS_KERNEL || p->has_new_inode)
    process_set_state(p, PROCESS_UNSEEN);
}

/* Goes through the table and the listing in step. */
int process_table_update(struct process_table *t,
                         const struct procfs_entry *entries, size_t n) {
  struct process **before = t->processes, **next = calloc(n, sizeof(*next));
  size_t old = 0, filled = 0;
  int rc = 0;

  if (!next)
    return -ENOMEM;
  for (size_t i = 0; i < n; i++) {
    struct process *p;

    assert(i == 0 || entries[i - 1].pid < entries[i].pid);
    while (old < t->n && before[old]->pid < entries[i].pid)
      process_free(t, before[old++]);
    if (old < t->n && before[old]->pid == entries[i].pid) {
      p = before[old++];
      begin_cycle(p, (uint32_t)entries[i].ino);
    } else {
      p = calloc(1, sizeof(*p));
    }
    if (!p) {
      rc = -ENOMEM;
      continue;
    }
    p->pid = entries[i].pid;
    p->ino = (uint32_t)entries[i].ino;
    next[filled++] = p;
  }
  while (old < t->n)
    process_free(t, before[old++]);
  free(before);
  t->processes = next;
  t->n = filled;
  return rc;
}

static int compare_pids(const void *left, const void *right) {
  const uint32_t *pid = left;
  const struct process *p = *(struct process *const *)right;

  return (*pid > p->pid) - (*pid < p->pid);
}

struct process *process_table_find(const struct process_table *t,
                                   uint32_t pid) {
  struct process **found =
      t->n ? bsearch(&pid, t->processes, t->n, sizeof(*found), compare_pids)
           : NULL;

  return found ? *found : NULL;
}

struct process *process_table_find_same(const struct process_table *t,
                                        uint32_t pid,
                                        uint64_t starttime_ticks) {
  struct process *p = process_table_find(t, pid);

  return p && process_is_same(p, starttime_ticks) ? p : NULL;
}

uint32_t process_program(const struct process *p) {
  uint64_t key = p->start_stack * 31 + p->statm.text_pages;

  return (uint32_t)(key ^ key >> 32) | UINT32_C(1) << 31;
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
  struct process *parent =
      process_table_find_same(t, p->parent_pid, p->parent_starttime);

  return parent != p ? parent : NULL;
}

void process_table_done(struct process_table *t) {
  for (size_t i = 0; i < t->n; i++)
    process_free(t, t->processes[i]);
  free(t->processes);
  *t = (struct process_table){0};
}
