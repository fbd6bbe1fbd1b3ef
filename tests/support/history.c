#include "history.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)
#define MEMBERS_LEAST 4
#define MEMBERS_MOST 8

static const char *const op_names[OP_KINDS] = {
    [OP_START] = "start",       [OP_FORK] = "fork",
    [OP_EXEC] = "exec",         [OP_EXIT] = "exit",
    [OP_GROW] = "grow",         [OP_SHRINK] = "shrink",
    [OP_WRITE] = "write",       [OP_MAP] = "map",
    [OP_MAP_AROUND] = "map",    [OP_UNMAP] = "unmap",
    [OP_SWAP_OUT] = "swap-out", [OP_SWAP_IN] = "swap-in",
    [OP_SWAP_OFF] = "swapoff",  [OP_SWAP_IN_WRITTEN] = "swap-in-written"};

/* --- making --- */

/* splitmix64 */
static uint64_t draw(uint64_t *state) {
  uint64_t x = *state += 0x9e3779b97f4a7c15;

  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

static unsigned below(uint64_t *state, unsigned n) {
  return (unsigned)(draw(state) % n);
}

/* As many of a few pages as of many. */
static uint16_t draw_pages(uint64_t *state) {
  unsigned most = 2U << below(state, 9);

  return (uint16_t)(1 + below(state, most));
}

struct maker {
  struct history *h;
  const struct history_class *class;
  uint64_t random;
  uint16_t alive;
};

static unsigned count_members(const struct maker *m) {
  return (unsigned)__builtin_popcount(m->alive &
                                      ((1U << HISTORY_OUTSIDERS) - 1));
}

/* One that is alive, or not, with a slot from `first` on and below `end`. */
static unsigned draw_slot(struct maker *m, bool is_alive, unsigned first,
                          unsigned end) {
  unsigned from = below(&m->random, end - first);

  for (unsigned i = 0; i < end - first; i++) {
    unsigned slot = first + (from + i) % (end - first);

    if ((m->alive >> slot & 1) == is_alive)
      return slot;
  }
  return end;
}

static void add(struct maker *m, unsigned cycle, enum op_kind kind,
                unsigned slot, unsigned arg) {
  if (m->h->n_ops == HISTORY_OPS)
    return;
  m->h->ops[m->h->n_ops++] = (struct op){.cycle = (uint8_t)cycle,
                                         .kind = (uint8_t)kind,
                                         .slot = (uint8_t)slot,
                                         .arg = (uint8_t)arg,
                                         .pages = draw_pages(&m->random),
                                         .at = (uint16_t)draw(&m->random)};
}

static void map_some(struct maker *m, unsigned cycle, unsigned slot) {
  for (unsigned i = 0; i < MEMORY_OBJECTS; i++)
    if (below(&m->random, 2))
      add(m, cycle, below(&m->random, 2) ? OP_MAP : OP_MAP_AROUND, slot, i);
}

static void start(struct maker *m, unsigned cycle, unsigned slot) {
  add(m, cycle, OP_START, slot, below(&m->random, m->class->groups));
  m->alive |= (uint16_t)(1U << slot);
  if (m->class->is_mapping)
    map_some(m, cycle, slot);
}

static void fork_or_start(struct maker *m, unsigned cycle, bool is_fork) {
  unsigned slot = draw_slot(m, false, 0, HISTORY_OUTSIDERS);
  unsigned parent =
      m->class->is_pool ? 0 : draw_slot(m, true, 0, HISTORY_OUTSIDERS);

  if (!is_fork) {
    start(m, cycle, slot);
    return;
  }
  add(m, cycle, OP_FORK, parent, slot);
  m->alive |= (uint16_t)(1U << slot);
}

static void end(struct maker *m, unsigned cycle, unsigned slot) {
  add(m, cycle, OP_EXIT, slot, 0);
  m->alive = (uint16_t)(m->alive & ~(1U << slot));
}

static void add_op(struct maker *m, unsigned cycle, enum op_kind kind) {
  unsigned first = m->class->is_pool && kind != OP_FORK;
  unsigned slot = draw_slot(m, true, first, HISTORY_OUTSIDERS);
  unsigned members = count_members(m);

  if (m->class->has_outsiders && kind >= OP_GROW && below(&m->random, 8) == 0)
    slot = draw_slot(m, true, HISTORY_OUTSIDERS, MEMORY_SLOTS);
  if (kind == OP_START || kind == OP_FORK) {
    if (members < MEMBERS_MOST)
      fork_or_start(m, cycle, kind == OP_FORK);
  } else if (kind == OP_EXIT) {
    if (members > MEMBERS_LEAST)
      end(m, cycle, slot);
  } else {
    add(m, cycle, kind, slot, below(&m->random, MEMORY_OBJECTS));
    if (kind == OP_EXEC)
      add(m, cycle, OP_GROW, slot, 0);
  }
}

static enum op_kind draw_kind(struct maker *m) {
  unsigned sum = 0, at;

  for (unsigned i = 0; i < OP_KINDS; i++)
    sum += m->class->weights[i];
  at = below(&m->random, sum);
  for (unsigned i = 0;; i++) {
    if (at < m->class->weights[i])
      return (enum op_kind)i;
    at -= m->class->weights[i];
  }
}

static void populate(struct maker *m) {
  unsigned members =
      MEMBERS_LEAST + below(&m->random, MEMBERS_MOST - MEMBERS_LEAST + 1);

  start(m, 0, 0);
  if (m->class->is_forked) {
    add(m, 0, OP_GROW, 0, 0);
    m->h->ops[m->h->n_ops - 1].pages = (uint16_t)(256U << below(&m->random, 3));
  }
  while (count_members(m) < members)
    fork_or_start(m, 0, m->class->is_forked);
  if (!m->class->has_outsiders)
    return;
  start(m, 0, HISTORY_OUTSIDERS);
  start(m, 0, HISTORY_OUTSIDERS + 1);
}

void history_make(struct history *h, const struct history_class *c,
                  uint64_t seed) {
  struct maker m = {.h = h, .class = c, .random = seed};
  unsigned activity;

  *h = (struct history){.seed = seed};
  h->page_size = below(&m.random, 4) ? 4096 : 65536;
  h->interval_ns = (1 + 9 * below(&m.random, 2)) * SECOND;
  h->max_age_ns = (below(&m.random, 2) ? 60 : 3600) * SECOND;
  h->cycles = 10 + below(&m.random, HISTORY_CYCLES - 9);
  h->readings_per_cycle = 1 + below(&m.random, 4);
  h->missed = below(&m.random, 2) * 32;
  for (unsigned i = 0; i < MEMORY_OBJECTS; i++)
    h->object_pages[i] = 32U << below(&m.random, 5);
  populate(&m);
  activity = 1 + below(&m.random, 5);
  for (unsigned cycle = 1; cycle < h->cycles; cycle++)
    for (unsigned n = below(&m.random, activity + 1); n > 0; n--)
      add_op(&m, cycle, draw_kind(&m));
}

/* --- playing --- */

static void play_start(const struct op *op, struct memory_world *w,
                       uint8_t groups[MEMORY_SLOTS]) {
  if (w->processes[op->slot].is_alive)
    return;
  memory_start(w, op->slot);
  memory_grow(w, op->slot, op->pages);
  groups[op->slot] = op->arg;
}

static void play_fork(const struct op *op, struct memory_world *w,
                      uint8_t groups[MEMORY_SLOTS]) {
  if (!w->processes[op->slot].is_alive || w->processes[op->arg].is_alive)
    return;
  memory_fork(w, op->slot, op->arg, op->pages);
  groups[op->arg] = groups[op->slot];
}

static void play(const struct op *op, struct memory_world *w,
                 uint8_t groups[MEMORY_SLOTS]) {
  switch ((enum op_kind)op->kind) {
  case OP_START:
    play_start(op, w, groups);
    break;
  case OP_FORK:
    play_fork(op, w, groups);
    break;
  case OP_EXEC:
    memory_exec(w, op->slot);
    break;
  case OP_EXIT:
    memory_exit(w, op->slot);
    break;
  case OP_GROW:
    memory_grow(w, op->slot, op->pages);
    break;
  case OP_SHRINK:
    memory_shrink(w, op->slot, op->pages, op->at);
    break;
  case OP_WRITE:
    memory_write(w, op->slot, op->pages, op->at);
    break;
  case OP_MAP:
  case OP_MAP_AROUND:
    memory_map(w, op->slot, op->arg, op->pages, op->at,
               op->kind == OP_MAP_AROUND);
    break;
  case OP_UNMAP:
    memory_unmap(w, op->slot, op->arg, op->pages, op->at);
    break;
  case OP_SWAP_OUT:
    memory_swap_out(w, op->slot, op->pages, op->at);
    break;
  case OP_SWAP_IN:
  case OP_SWAP_IN_WRITTEN:
    memory_swap_in(w, op->slot, op->pages, op->at,
                   op->kind == OP_SWAP_IN_WRITTEN);
    break;
  case OP_SWAP_OFF:
    memory_swap_off(w);
    break;
  case OP_KINDS:
    break;
  }
}

void history_play(const struct history *h, unsigned cycle,
                  struct memory_world *w, uint8_t groups[MEMORY_SLOTS]) {
  for (unsigned i = 0; i < h->n_ops; i++)
    if (h->ops[i].cycle == cycle)
      play(&h->ops[i], w, groups);
}

/* --- printing --- */

static void print_op(const struct op *op, FILE *out) {
  fprintf(out, "  %2u: %u %s", op->cycle, op->slot, op_names[op->kind]);
  switch ((enum op_kind)op->kind) {
  case OP_START:
    fprintf(out, ", %u pages, group %u\n", op->pages, op->arg);
    break;
  case OP_FORK:
    fprintf(out, " %u, which touches %u pages\n", op->arg, op->pages);
    break;
  case OP_MAP:
  case OP_MAP_AROUND:
  case OP_UNMAP:
    fprintf(out, " %u pages of %s %u from %.3f%s\n", op->pages,
            op->arg < MEMORY_OBJECTS / 2 ? "file" : "shmem", op->arg,
            op->at / 65536.0, op->kind == OP_MAP_AROUND ? " around" : "");
    break;
  case OP_EXEC:
  case OP_EXIT:
  case OP_SWAP_OFF:
    fprintf(out, "\n");
    break;
  case OP_GROW:
  case OP_SHRINK:
  case OP_WRITE:
  case OP_SWAP_OUT:
  case OP_SWAP_IN:
  case OP_SWAP_IN_WRITTEN:
  case OP_KINDS:
    fprintf(out, " %u pages from %.3f\n", op->pages, op->at / 65536.0);
    break;
  }
}

void history_print(const struct history *h, FILE *out) {
  fprintf(out,
          "seed %llu: pages of %llu, %u cycles of %llu s, MaxAge %llu s, %u "
          "readings, objects of %u %u %u %u pages\n",
          (unsigned long long)h->seed, (unsigned long long)h->page_size,
          h->cycles, (unsigned long long)(h->interval_ns / SECOND),
          (unsigned long long)(h->max_age_ns / SECOND), h->readings_per_cycle,
          h->object_pages[0], h->object_pages[1], h->object_pages[2],
          h->object_pages[3]);
  for (unsigned cycle = 0; cycle < h->cycles; cycle++) {
    for (unsigned i = 0; i < h->n_ops; i++)
      if (h->ops[i].cycle == cycle)
        print_op(&h->ops[i], out);
    for (unsigned slot = 0; h->has_reads && cycle > 0 && slot < MEMORY_SLOTS;
         slot++)
      if (h->reads[cycle] >> slot & 1)
        fprintf(out, "  %2u: %u is read\n", cycle, slot);
  }
}

/* --- reducing --- */

typedef bool (*change_function)(struct history *h, unsigned i);

static bool remove_op(struct history *h, unsigned i) {
  if (i >= h->n_ops)
    return false;
  memmove(&h->ops[i], &h->ops[i + 1], (--h->n_ops - i) * sizeof(h->ops[0]));
  return true;
}

static bool remove_read(struct history *h, unsigned i) {
  uint16_t bit = (uint16_t)(1U << i % MEMORY_SLOTS);
  uint16_t *reads = &h->reads[i / MEMORY_SLOTS];

  if (!(*reads & bit) || i < MEMORY_SLOTS) /* all are read first */
    return false;
  *reads = (uint16_t)(*reads & ~bit);
  return true;
}

/* And what comes behind is earlier. */
static bool remove_cycle(struct history *h, unsigned i) {
  if (i + 1 >= h->cycles)
    return false;
  for (unsigned j = 0; j < h->n_ops; j++)
    h->ops[j].cycle = (uint8_t)(h->ops[j].cycle - (h->ops[j].cycle > i));
  h->reads[i] |= h->reads[i + 1];
  memmove(&h->reads[i + 1], &h->reads[i + 2],
          (h->cycles - i - 2) * sizeof(h->reads[0]));
  h->cycles--;
  return true;
}

static bool cut_end(struct history *h, unsigned i) {
  if (i == 0 || i >= h->cycles)
    return false;
  h->cycles = i;
  return true;
}

static bool start_of_range(struct history *h, unsigned i) {
  if (i >= h->n_ops || h->ops[i].at == 0)
    return false;
  h->ops[i].at = 0;
  return true;
}

static bool same_group(struct history *h, unsigned i) {
  if (i >= h->n_ops || h->ops[i].kind != OP_START || h->ops[i].arg == 0)
    return false;
  h->ops[i].arg = 0;
  return true;
}

static bool take_half(struct history *h, unsigned i) {
  if (i >= h->n_ops || h->ops[i].pages < 2)
    return false;
  h->ops[i].pages /= 2;
  return true;
}

/* To a power of two. */
static bool make_round(struct history *h, unsigned i) {
  uint16_t *pages = &h->ops[i].pages;

  if (i >= h->n_ops || !(*pages & (*pages - 1)))
    return false;
  while (*pages & (*pages - 1))
    *pages &= (uint16_t)(*pages - 1);
  return true;
}

static bool try_all(struct history *h, change_function change, unsigned n,
                    bool (*is_bad)(struct history *h)) {
  bool has_changed = false;

  for (unsigned i = n; i-- > 0;) {
    struct history tried = *h;

    if (!change(&tried, i) || !is_bad(&tried))
      continue;
    *h = tried;
    has_changed = true;
  }
  return has_changed;
}

void history_reduce(struct history *h, bool (*is_bad)(struct history *h)) {
  static const struct {
    change_function change;
    unsigned n;
  } changes[] = {{cut_end, HISTORY_CYCLES},
                 {remove_op, HISTORY_OPS},
                 {remove_read, HISTORY_CYCLES * MEMORY_SLOTS},
                 {remove_cycle, HISTORY_CYCLES},
                 {start_of_range, HISTORY_OPS},
                 {same_group, HISTORY_OPS},
                 {make_round, HISTORY_OPS},
                 {take_half, HISTORY_OPS}};
  bool has_changed = true;

  while (has_changed) {
    has_changed = false;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
      has_changed |= try_all(h, changes[i].change, changes[i].n, is_bad);
  }
}
