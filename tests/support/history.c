/* SPDX-License-Identifier: MIT */
#include "history.h"

#define SECOND UINT64_C(1000000000)
#define MEMBERS 8
/* In two of three cycles one who can has an unlisted child. */
#define UNLISTED_OF_256 170

static const char *const op_names[OP_KINDS] = {
    [OP_START] = "start",
    [OP_FORK] = "fork",
    [OP_EXEC] = "exec",
    [OP_EXIT] = "exit",
    [OP_GROW] = "grow",
    [OP_SHRINK] = "shrink",
    [OP_WRITE] = "write",
    [OP_MAP] = "map",
    [OP_MAP_AROUND] = "map around",
    [OP_UNMAP] = "unmap",
    [OP_SWAP_OUT] = "swap out",
    [OP_SWAP_IN] = "swap in",
    [OP_SWAP_IN_WRITTEN] = "swap in and write",
    [OP_SWAP_OFF] = "swapoff",
    [OP_MERGE] = "merge",
    [OP_STOP_MERGING] = "stop merging",
    [OP_UNMERGE] = "unmerge"};

/* Draws a number from the history's own sequence: splitmix64. */
static unsigned history_draw(struct history *h, unsigned below) {
  uint64_t x = h->random += 0x9e3779b97f4a7c15;

  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return (unsigned)((x ^ x >> 31) % below);
}

/* Small numbers of pages are as frequent as large ones. */
static uint32_t draw_pages(struct history *h) {
  return 1 + history_draw(h, 2U << history_draw(h, 9));
}

static bool is_alive(const struct history *h, unsigned slot) {
  return h->world->processes[slot].is_alive;
}

/* One that is alive, or not, with a slot from `first` on and below `end`; `end`
 * where there is none. */
static unsigned draw_slot(struct history *h, bool wants_alive, unsigned first,
                          unsigned end) {
  unsigned from = history_draw(h, end - first);

  for (unsigned i = 0; i < end - first; i++) {
    unsigned slot = first + (from + i) % (end - first);

    if (is_alive(h, slot) == wants_alive)
      return slot;
  }
  return end;
}

static unsigned members_most(const struct history *h) {
  return h->class->members ? h->class->members : MEMBERS;
}

static unsigned count_members(const struct history *h) {
  unsigned n = 0;

  for (unsigned slot = 0; slot < HISTORY_OUTSIDERS; slot++)
    n += is_alive(h, slot);
  return n;
}

/* --- operations --- */

/* other: a slot, or an object. */
static void play(struct history *h, enum op_kind kind, unsigned slot,
                 unsigned other) {
  struct memory_world *w = h->world;
  uint32_t pages = draw_pages(h);
  uint16_t at = (uint16_t)history_draw(h, 65536);

  if (h->log)
    fprintf(h->log, "  %u %s, %u, %u pages from %.3f\n", slot, op_names[kind],
            other, pages, at / 65536.0);
  switch (kind) {
  case OP_START:
    memory_start(w, slot);
    memory_grow(w, slot, pages);
    break;
  case OP_FORK:
    memory_fork(w, slot, other, pages);
    break;
  case OP_EXEC:
    memory_exec(w, slot);
    memory_grow(w, slot, pages);
    break;
  case OP_EXIT:
    memory_exit(w, slot);
    break;
  case OP_GROW:
    memory_grow(w, slot, pages);
    break;
  case OP_SHRINK:
    memory_shrink(w, slot, pages, at);
    break;
  case OP_WRITE:
    memory_write(w, slot, pages, at);
    break;
  case OP_MAP:
  case OP_MAP_AROUND:
    memory_map(w, slot, other, pages, at, kind == OP_MAP_AROUND);
    break;
  case OP_UNMAP:
    memory_unmap(w, slot, other, pages, at);
    break;
  case OP_SWAP_OUT:
    memory_swap_out(w, slot, pages, at);
    break;
  case OP_SWAP_IN:
  case OP_SWAP_IN_WRITTEN:
    memory_swap_in(w, slot, pages, at, kind == OP_SWAP_IN_WRITTEN);
    break;
  case OP_SWAP_OFF:
    memory_swap_off(w);
    break;
  case OP_MERGE:
    memory_merge(w, slot, other, pages);
    break;
  case OP_STOP_MERGING:
    memory_stop_merging(w);
    break;
  case OP_UNMERGE:
    memory_unmerge(w);
    break;
  case OP_KINDS:
    break;
  }
}

static void start(struct history *h, unsigned slot) {
  uint8_t group = h->class->is_mostly_other
                      ? history_draw(h, 5) > 0
                      : (uint8_t)history_draw(h, h->class->groups);

  play(h, OP_START, slot, 0);
  h->world->processes[slot].group = group;
  for (unsigned i = 0; h->class->is_mapping && i < MEMORY_OBJECTS; i++)
    if (history_draw(h, 2))
      play(h, history_draw(h, 2) ? OP_MAP : OP_MAP_AROUND, slot, i);
}

static void fork_or_start(struct history *h, bool is_fork) {
  unsigned slot = draw_slot(h, false, 0, HISTORY_OUTSIDERS);
  unsigned parent =
      h->class->is_pool ? 0 : draw_slot(h, true, 0, HISTORY_OUTSIDERS);

  if (is_fork)
    play(h, OP_FORK, parent, slot);
  else
    start(h, slot);
}

static enum op_kind draw_kind(struct history *h) {
  const uint8_t *weights = h->class->weights;
  unsigned sum = 0, at, i = 0;

  for (unsigned kind = 0; kind < OP_KINDS; kind++)
    sum += weights[kind];
  at = history_draw(h, sum);
  while (at >= weights[i])
    at -= weights[i++];
  return (enum op_kind)i;
}

static void happen(struct history *h, enum op_kind kind) {
  unsigned first = h->class->is_pool && kind != OP_FORK;
  unsigned slot = draw_slot(h, true, first, HISTORY_OUTSIDERS);
  unsigned members = count_members(h), most = members_most(h);

  if (h->class->has_outsiders && kind >= OP_GROW && history_draw(h, 8) == 0)
    slot = draw_slot(h, true, HISTORY_OUTSIDERS, MEMORY_SLOTS);
  if (kind == OP_START || kind == OP_FORK) {
    if (members < most)
      fork_or_start(h, kind == OP_FORK);
  } else if (kind != OP_EXIT || members > most / 2) {
    play(h, kind, slot,
         kind == OP_MERGE ? draw_slot(h, true, 0, HISTORY_OUTSIDERS)
                          : history_draw(h, MEMORY_OBJECTS));
  }
}

/* --- histories --- */

void history_init(struct history *h, const struct history_class *c,
                  uint64_t seed) {
  *h = (struct history){.class = c, .random = seed};
  h->page_size = history_draw(h, 4) ? 4096 : 65536;
  h->interval_ns = (1 + 9 * history_draw(h, 2)) * SECOND;
  h->max_age_ns = (history_draw(h, 2) ? 60 : 3600) * SECOND;
  h->cycles = c->cycles ? c->cycles : 10 + history_draw(h, 16);
  h->readings = 1 + history_draw(h, 4);
  if (c->is_scarce)
    h->readings /= 10;
  h->missed = history_draw(h, 2) * 32;
  for (unsigned i = 0; i < MEMORY_OBJECTS; i++)
    h->object_pages[i] = 32U << history_draw(h, 5);
  h->activity = 1 + history_draw(h, 5);
}

void history_begin(struct history *h, struct memory_world *w) {
  unsigned most = members_most(h);
  unsigned members = most / 2 + history_draw(h, most - most / 2 + 1);

  h->world = w;
  w->has_no_ksm_field = h->class->weights[OP_MERGE] && history_draw(h, 2);
  if (!is_alive(h, 0))
    start(h, 0);
  if (h->class->is_forked)
    memory_grow(w, 0, 256U << history_draw(h, 3));
  while (count_members(h) < members)
    fork_or_start(h, h->class->is_forked);
  for (unsigned i = 0; h->class->has_outsiders && i < 2; i++)
    if (!is_alive(h, HISTORY_OUTSIDERS + i))
      start(h, HISTORY_OUTSIDERS + i);
}

void history_go_on(struct history *h) {
  for (unsigned n = history_draw(h, h->activity + 1); n > 0; n--)
    happen(h, draw_kind(h));
}

void history_fork_unlisted(struct history *h) {
  unsigned child = draw_slot(h, false, 0, HISTORY_OUTSIDERS);
  unsigned parent = draw_slot(h, true, 0, HISTORY_OUTSIDERS);

  if (!h->class->has_unlisted || child == HISTORY_OUTSIDERS ||
      history_draw(h, 256) >= UNLISTED_OF_256)
    return;
  play(h, OP_FORK, parent, child);
  play(h, OP_WRITE, history_draw(h, 2) ? parent : child, 0);
  h->unlisted |= 1U << child;
}

void history_end_unlisted(struct history *h) {
  for (unsigned slot = 0; slot < HISTORY_OUTSIDERS; slot++)
    if (h->unlisted >> slot & 1)
      play(h, OP_EXIT, slot, 0);
  h->unlisted = 0;
}
