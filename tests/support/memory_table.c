/* SPDX-License-Identifier: MIT */
#include "memory_table.h"

#include <stdlib.h>

#include "member/member.h"
#include "test.h"

#define STACK_OF(program) (0x7ff000000000 + 0x10000 * (uint64_t)(program))

static void gone(void *ctx, struct process *p) {
  (void)ctx;
  member_free(p);
}

static int compare_entries(const void *left, const void *right) {
  const struct procfs_entry *a = left, *b = right;

  return (a->pid > b->pid) - (a->pid < b->pid);
}

struct statm_sample memory_table_statm(const struct memory_view *view) {
  return (struct statm_sample){.size_pages = view->resident_pages,
                               .resident_pages = view->resident_pages,
                               .shared_pages = view->shared_pages,
                               .text_pages = 40};
}

static void show(struct process *p, const struct memory_process *from,
                 const struct memory_view *view) {
  p->state = PROCESS_ALIVE;
  p->threads = 1;
  p->starttime_ticks = from->starttime;
  p->start_stack = STACK_OF(from->program);
  p->statm = memory_table_statm(view);
  if (!p->is_linked)
    p->parent_pid = from->parent_pid;
}

void memory_table_update(struct process_table *t, const struct memory_world *w,
                         const struct memory_view views[MEMORY_SLOTS],
                         struct process *ret[MEMORY_SLOTS]) {
  struct procfs_entry entries[MEMORY_SLOTS];
  size_t n = 0;

  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    if (w->processes[slot].is_alive)
      entries[n++] = (struct procfs_entry){.pid = w->processes[slot].pid,
                                           .ino = w->processes[slot].starttime};
  qsort(entries, n, sizeof(entries[0]), compare_entries);
  t->gone = gone;
  assert_int_equal(process_table_update(t, entries, n), 0);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    ret[slot] = NULL;
    if (!w->processes[slot].is_alive)
      continue;
    ret[slot] = process_table_find(t, w->processes[slot].pid);
    show(ret[slot], &w->processes[slot], &views[slot]);
  }
}

void memory_table_done(struct process_table *t) {
  t->gone = gone;
  process_table_done(t);
}
