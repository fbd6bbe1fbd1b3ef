#include <smaps/process.h>

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
  if (!processes)
    return -ENOMEM;
  t->processes = processes;
  spare = reallocarray(t->spare, cap, sizeof(struct process *));
  if (!spare)
    return -ENOMEM;
  t->spare = spare;
  t->cap = cap;
  return 0;
}

void process_reset(struct process *p,
                   void (*gone)(void *ctx, struct process *p), void *ctx) {
  gone(ctx, p);
  family_leave(p);
  identity_done(&p->identity);
  free(p->groups);
  free(p->claims);
  free(p->why);
  *p = (struct process){.pid = p->pid, .ino = p->ino};
}

static void process_free(struct process *p,
                         void (*gone)(void *ctx, struct process *p),
                         void *ctx) {
  process_reset(p, gone, ctx);
  free(p);
}

static void see_again(struct process *p, uint32_t ino) {
  p->has_new_inode = p->ino != ino;
  if (p->state != PROCESS_KERNEL || p->has_new_inode)
    p->state = PROCESS_UNSEEN;
  p->ino = ino;
}

/* Allocates the newcomers, in the order of the listing, at the spare array's
 * end, before anything is changed. */
static int add_newcomers(struct process_table *t,
                         const struct procfs_entry *entries, size_t n,
                         size_t *ret_first) {
  size_t first = t->cap;

  for (size_t i = n, old = t->n; i-- > 0;) {
    struct process *p;

    while (old > 0 && t->processes[old - 1]->pid > entries[i].pid)
      old--;
    if (old > 0 && t->processes[old - 1]->pid == entries[i].pid)
      continue;
    p = calloc(1, sizeof(*p));
    if (!p) {
      while (first < t->cap)
        free(t->spare[first++]);
      return -ENOMEM;
    }
    p->pid = entries[i].pid;
    p->ino = (uint32_t)entries[i].ino;
    t->spare[--first] = p;
  }
  *ret_first = first;
  return 0;
}

int process_table_update(struct process_table *t,
                         const struct procfs_entry *entries, size_t n,
                         void (*gone)(void *ctx, struct process *p),
                         void *ctx) {
  struct process **before;
  size_t newcomer, old = 0;
  int r = make_room(t, n);

  if (r == 0)
    r = add_newcomers(t, entries, n, &newcomer);
  if (r < 0)
    return r;
  /* A place is filled no later than the newcomer that stands in it is taken:
   * there are at least as many newcomers left as places behind it. */
  before = t->processes;
  for (size_t i = 0; i < n; i++) {
    while (old < t->n && before[old]->pid < entries[i].pid)
      process_free(before[old++], gone, ctx);
    if (old < t->n && before[old]->pid == entries[i].pid) {
      see_again(before[old], (uint32_t)entries[i].ino);
      t->spare[i] = before[old++];
    } else {
      /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): no gaps */
      t->spare[i] = t->spare[newcomer++];
    }
  }
  while (old < t->n)
    process_free(before[old++], gone, ctx);
  t->processes = t->spare;
  t->spare = before;
  t->n = n;
  return 0;
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

bool process_is_same_program(const struct process *a, const struct process *b) {
  return a->start_stack == b->start_stack &&
         a->statm.text_pages == b->statm.text_pages;
}

bool process_wants_faults(const struct process *p) {
  return p->reading.at_ns && reading_cow_bytes(&p->reading) >= COW_LEAST_BYTES;
}

struct sharing *process_sharing(const struct process *p) {
  if (p->family)
    return &p->family->sharing;
  return p->n_groups ? &p->groups[0]->sharing : NULL;
}

void process_table_link(const struct process_table *t, struct process *p) {
  struct process *parent = process_table_find(t, p->parent_pid);

  /* Its stat could not be read; the next cycle may know, be it that it has
   * ended. */
  if (parent && (parent->state == PROCESS_UNKNOWN ||
                 (parent->state == PROCESS_GONE && !parent->starttime_ticks)))
    return;
  p->is_linked = true;
  /* A parent is not younger than its child: that one has its pid by reuse. */
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
