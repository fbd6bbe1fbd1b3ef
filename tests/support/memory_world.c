/* SPDX-License-Identifier: MIT */
#include "memory_world.h"

#include <assert.h>
#include <string.h>

/* PSS_SHIFT: the kernel adds up the parts of pages in bytes of so many bits
 * more, and prints kB rounded down (fs/proc/task_mmu.c). */
#define PSS_SHIFT 12
/* fault_around_bytes is 16 pages of 4 kB. */
#define AROUND_PAGES 16
/* Faults of a process that has just begun. */
#define FAULTS_AT_FIRST 100

#define ALL_FIELDS ((1U << ROLLUP_FIELDS) - 1)

static uint16_t bit(unsigned slot) { return (uint16_t)(1U << slot); }

static uint16_t without(uint16_t set, uint16_t bits) {
  return set & (uint16_t)~bits;
}

static bool is_alive(const struct memory_world *w, unsigned slot) {
  return w->processes[slot].is_alive;
}

/* --- pages --- */

static bool is_full(const struct memory_world *w) {
  return w->n_free == 0 && w->n_pages == MEMORY_PAGES;
}

static struct memory_page *allocate(struct memory_world *w) {
  if (w->n_free > 0)
    return &w->pages[w->free_pages[--w->n_free]];
  assert(!is_full(w));
  return &w->pages[w->n_pages++];
}

static void leave(struct memory_world *w, struct memory_page *page,
                  uint16_t who) {
  page->mappers = without(page->mappers, who);
  page->swapped = without(page->swapped, who);
  page->write_once = without(page->write_once, who);
  if (page->kind != KIND_ANON || page->mappers || page->swapped)
    return;
  page->kind = KIND_FREE;
  w->free_pages[w->n_free++] = (uint32_t)(page - w->pages);
}

static void take_new(struct memory_world *w, unsigned slot) {
  *allocate(w) = (struct memory_page){
      .mappers = bit(slot), .kind = KIND_ANON, .is_dirty = true};
}

typedef bool (*wants_page)(const struct memory_page *page, uint16_t who);
typedef void (*visit_page)(struct memory_world *w, struct memory_page *page,
                           unsigned slot);

/* Calls visit for up to n pages of an object, or of the world, which the slot's
 * process wants. Returns how many there were. */
static uint32_t walk(struct memory_world *w, const struct memory_object *object,
                     unsigned slot, uint32_t n, uint16_t at, wants_page wants,
                     visit_page visit) {
  const struct memory_object range =
      object ? *object : (struct memory_object){.pages = w->n_pages};
  uint32_t from = (uint32_t)((uint64_t)at * range.pages >> 16), done = 0;

  for (uint32_t i = 0; i < range.pages && done < n; i++) {
    struct memory_page *page =
        &w->pages[range.first + (from + i) % range.pages];

    if (!wants(page, bit(slot)))
      continue;
    visit(w, page, slot);
    done++;
  }
  return done;
}

static bool has_anon(const struct memory_page *page, uint16_t who) {
  return page->kind == KIND_ANON && ((page->mappers | page->swapped) & who);
}

static bool has_resident_anon(const struct memory_page *page, uint16_t who) {
  return page->kind == KIND_ANON && (page->mappers & who);
}

static bool has_swapped(const struct memory_page *page, uint16_t who) {
  return page->swapped & who;
}

static bool maps(const struct memory_page *page, uint16_t who) {
  return page->mappers & who;
}

static bool maps_not(const struct memory_page *page, uint16_t who) {
  return !(page->mappers & who);
}

static void visit_leave(struct memory_world *w, struct memory_page *page,
                        unsigned slot) {
  leave(w, page, bit(slot));
}

/* --- the world --- */

void memory_world_init(struct memory_world *w, uint64_t page_size,
                       const uint32_t object_pages[MEMORY_OBJECTS]) {
  memset(w, 0, offsetof(struct memory_world, free_pages));
  w->page_size = page_size;
  for (unsigned i = 0; i < MEMORY_OBJECTS; i++) {
    bool is_file = i < MEMORY_OBJECTS / 2;

    w->objects[i] =
        (struct memory_object){.first = w->n_pages,
                               .pages = object_pages[i],
                               .kind = is_file ? KIND_FILE : KIND_SHMEM};
    for (uint32_t j = 0; j < object_pages[i]; j++)
      w->pages[w->n_pages++] = (struct memory_page){.kind = w->objects[i].kind,
                                                    .is_dirty = !is_file};
  }
}

/* All different, in no order, as after pids have gone round. */
static uint32_t take_pid(struct memory_world *w) {
  uint32_t pid = (uint32_t)(2 + ++w->births * 7919 % 30000);

  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    if (is_alive(w, slot) && w->processes[slot].pid == pid)
      return take_pid(w);
  return pid;
}

static void be_born(struct memory_world *w, unsigned slot, uint32_t parent_pid,
                    uint64_t program) {
  uint32_t pid = take_pid(w);
  uint64_t n = w->births;

  w->processes[slot] =
      (struct memory_process){.is_alive = true,
                              .pid = pid,
                              .parent_pid = parent_pid,
                              .starttime = 1000 + n,
                              .program = program ? program : n << 8,
                              .minor_faults = FAULTS_AT_FIRST};
}

void memory_start(struct memory_world *w, unsigned slot) {
  if (!is_alive(w, slot))
    be_born(w, slot, 1, 0);
}

void memory_fork(struct memory_world *w, unsigned parent, unsigned child,
                 uint32_t touched) {
  uint16_t from = bit(parent), to = bit(child);
  uint32_t shared = 0;

  if (!is_alive(w, parent) || is_alive(w, child))
    return;
  be_born(w, child, w->processes[parent].pid, w->processes[parent].program);
  w->processes[child].group = w->processes[parent].group;
  for (uint32_t i = 0; i < w->n_pages; i++) {
    struct memory_page *page = &w->pages[i];

    if (page->kind != KIND_ANON) {
      if ((page->mappers & from) && shared < touched) {
        page->mappers |= to;
        shared++;
      }
      continue;
    }
    if (page->mappers & from) {
      page->mappers |= to;
      page->write_once |= from | to;
    }
    if (page->swapped & from)
      page->swapped |= to;
  }
  w->processes[child].minor_faults += shared / AROUND_PAGES;
}

static void leave_all(struct memory_world *w, unsigned slot) {
  for (uint32_t i = 0; i < w->n_pages; i++)
    if (w->pages[i].kind != KIND_FREE)
      leave(w, &w->pages[i], bit(slot));
}

void memory_exec(struct memory_world *w, unsigned slot) {
  if (!is_alive(w, slot))
    return;
  leave_all(w, slot);
  w->processes[slot].program++;
}

void memory_exit(struct memory_world *w, unsigned slot) {
  if (!is_alive(w, slot))
    return;
  leave_all(w, slot);
  w->processes[slot].is_alive = false;
}

/* --- memory that comes and goes --- */

void memory_grow(struct memory_world *w, unsigned slot, uint32_t pages) {
  if (!is_alive(w, slot))
    return;
  for (uint32_t i = 0; i < pages && !is_full(w); i++) {
    take_new(w, slot);
    w->processes[slot].minor_faults++;
  }
}

void memory_shrink(struct memory_world *w, unsigned slot, uint32_t pages,
                   uint16_t at) {
  walk(w, NULL, slot, pages, at, has_anon, visit_leave);
}

static void copy(struct memory_world *w, struct memory_page *page,
                 unsigned slot) {
  leave(w, page, bit(slot));
  take_new(w, slot);
}

static void visit_write(struct memory_world *w, struct memory_page *page,
                        unsigned slot) {
  uint16_t who = bit(slot);
  bool is_shared = without(page->mappers | page->swapped, who) != 0;

  if (!(page->write_once & who) || (is_shared && is_full(w)))
    return;
  w->processes[slot].minor_faults++;
  if (is_shared) {
    copy(w, page, slot);
    return;
  }
  page->write_once = without(page->write_once, who);
  page->is_dirty = true;
  page->is_merged = false;
}

void memory_write(struct memory_world *w, unsigned slot, uint32_t pages,
                  uint16_t at) {
  walk(w, NULL, slot, pages, at, has_resident_anon, visit_write);
}

static void visit_map(struct memory_world *w, struct memory_page *page,
                      unsigned slot) {
  (void)w;
  page->mappers |= bit(slot);
}

void memory_map(struct memory_world *w, unsigned slot, unsigned object,
                uint32_t pages, uint16_t at, bool is_around) {
  uint32_t n;

  if (!is_alive(w, slot))
    return;
  n = walk(w, &w->objects[object], slot, pages, at, maps_not, visit_map);
  w->processes[slot].minor_faults +=
      is_around ? (n + AROUND_PAGES - 1) / AROUND_PAGES : n;
}

void memory_unmap(struct memory_world *w, unsigned slot, unsigned object,
                  uint32_t pages, uint16_t at) {
  walk(w, &w->objects[object], slot, pages, at, maps, visit_leave);
}

/* --- swap --- */

static void visit_swap_out(struct memory_world *w, struct memory_page *page,
                           unsigned slot) {
  (void)w;
  (void)slot;
  page->swapped |= page->mappers;
  page->mappers = page->write_once = 0;
}

void memory_swap_out(struct memory_world *w, unsigned slot, uint32_t pages,
                     uint16_t at) {
  walk(w, NULL, slot, pages, at, has_resident_anon, visit_swap_out);
}

/* Where another has it back already it is in the swap cache, and the fault is a
 * minor one. */
static void visit_swap_in(struct memory_world *w, struct memory_page *page,
                          unsigned slot) {
  uint16_t who = bit(slot);

  if (page->mappers)
    w->processes[slot].minor_faults++;
  page->swapped = without(page->swapped, who);
  page->mappers |= who;
  page->write_once |= who;
  page->is_dirty = page->swapped == 0;
}

static void visit_swap_in_written(struct memory_world *w,
                                  struct memory_page *page, unsigned slot) {
  uint16_t who = bit(slot);
  bool is_shared = without(page->mappers | page->swapped, who) != 0;

  if (is_shared && is_full(w))
    return;
  if (page->mappers)
    w->processes[slot].minor_faults++;
  if (is_shared) {
    copy(w, page, slot);
    return;
  }
  page->swapped = page->write_once = 0;
  page->mappers = who;
  page->is_dirty = true;
}

void memory_swap_in(struct memory_world *w, unsigned slot, uint32_t pages,
                    uint16_t at, bool is_write) {
  walk(w, NULL, slot, pages, at, has_swapped,
       is_write ? visit_swap_in_written : visit_swap_in);
}

void memory_swap_off(struct memory_world *w) {
  for (uint32_t i = 0; i < w->n_pages; i++) {
    struct memory_page *page = &w->pages[i];

    if (page->kind != KIND_ANON || !page->swapped)
      continue;
    page->mappers |= page->swapped;
    page->write_once |= page->swapped;
    page->swapped = 0;
    page->is_dirty = true;
  }
}

bool memory_is_swap_used(const struct memory_world *w) {
  for (uint32_t i = 0; i < w->n_pages; i++)
    if (w->pages[i].kind == KIND_ANON && w->pages[i].swapped)
      return true;
  return false;
}

/* --- KSM --- */

static bool is_alone_with(const struct memory_page *page, uint16_t who) {
  return page->kind == KIND_ANON && page->mappers == who && !page->swapped;
}

static bool takes_another(const struct memory_page *page, uint16_t who,
                          uint16_t other) {
  return is_alone_with(page, who) ||
         (page->is_merged && !page->swapped && (page->mappers & who) &&
          !(page->mappers & other));
}

void memory_merge(struct memory_world *w, unsigned slot, unsigned other,
                  uint32_t pages) {
  uint32_t next = 0;

  if (!is_alive(w, slot) || !is_alive(w, other) || slot == other)
    return;
  w->ksm_run = 1;
  for (uint32_t i = 0; i < w->n_pages && pages > 0; i++) {
    struct memory_page *page = &w->pages[i];

    if (!takes_another(page, bit(slot), bit(other)))
      continue;
    while (next < w->n_pages && !is_alone_with(&w->pages[next], bit(other)))
      next++;
    if (next == w->n_pages)
      return;
    leave(w, &w->pages[next], bit(other));
    page->mappers |= bit(other);
    page->write_once = page->mappers;
    page->is_merged = true;
    pages--;
  }
}

void memory_stop_merging(struct memory_world *w) { w->ksm_run = 0; }

void memory_unmerge(struct memory_world *w) {
  w->ksm_run = 2;
  for (uint32_t i = 0; i < w->n_pages; i++) {
    struct memory_page *page = &w->pages[i];

    while (page->is_merged && page->mappers & (page->mappers - 1) &&
           !is_full(w))
      copy(w, page, (unsigned)__builtin_ctz(page->mappers));
    page->is_merged = false;
  }
}

void memory_read_ksm(const struct memory_world *w, struct ksm *ret) {
  *ret = (struct ksm){.run = w->ksm_run};
  for (uint32_t i = 0; i < w->n_pages; i++)
    if (w->pages[i].is_merged && w->pages[i].mappers)
      ret->pages_sharing +=
          (uint64_t)__builtin_popcount(w->pages[i].mappers) - 1;
}

/* --- what is shown --- */

/* Counts pages by field, and sums shared parts in the kernel's unit. */
struct sums {
  uint64_t pages[KIND_SHMEM + 1];
  uint64_t pss[KIND_SHMEM + 1];
  uint64_t held[2][2]; /* private, dirty */
  uint64_t pss_dirty, merged, swap, swap_pss;
};

static bool looks_like(const struct memory_page *a,
                       const struct memory_page *b) {
  return a->mappers == b->mappers && a->swapped == b->swapped &&
         a->kind == b->kind && a->is_dirty == b->is_dirty &&
         a->is_merged == b->is_merged;
}

/* Adds so many pages that look the same. */
static void add_mapped(struct sums sums[MEMORY_SLOTS],
                       const struct memory_page *page, uint32_t pages,
                       const uint64_t *parts) {
  int n = __builtin_popcount(page->mappers);

  for (unsigned left = page->mappers; left; left &= left - 1) {
    struct sums *s = &sums[__builtin_ctz(left)];

    s->pages[page->kind] += pages;
    s->pss[page->kind] += pages * parts[n];
    s->held[n == 1][page->is_dirty] += pages;
    s->pss_dirty += page->is_dirty ? pages * parts[n] : 0;
    s->merged += page->is_merged ? pages : 0;
  }
}

static void add_swapped(struct sums sums[MEMORY_SLOTS],
                        const struct memory_page *page, uint32_t pages,
                        const uint64_t *parts) {
  int n = __builtin_popcount(page->swapped);

  for (unsigned left = page->swapped; left; left &= left - 1) {
    struct sums *s = &sums[__builtin_ctz(left)];

    s->swap += pages;
    s->swap_pss += pages * parts[n];
  }
}

static uint64_t kb_down(uint64_t scaled) {
  return scaled >> (PSS_SHIFT + 10) << 10;
}

static void fill(const struct sums *s, uint64_t page_size,
                 struct memory_view *v) {
  uint64_t *bytes = v->rollup.bytes;

  v->shared_pages = s->pages[KIND_FILE] + s->pages[KIND_SHMEM];
  v->resident_pages = s->pages[KIND_ANON] + v->shared_pages;
  v->vm_swap_kb = (uint32_t)(s->swap * page_size >> 10);
  v->rollup.known = ALL_FIELDS;
  bytes[ROLLUP_RSS] = bytes[ROLLUP_REFERENCED] = v->resident_pages * page_size;
  bytes[ROLLUP_PSS] =
      kb_down(s->pss[KIND_ANON] + s->pss[KIND_FILE] + s->pss[KIND_SHMEM]);
  bytes[ROLLUP_PSS_DIRTY] = kb_down(s->pss_dirty);
  bytes[ROLLUP_PSS_ANON] = kb_down(s->pss[KIND_ANON]);
  bytes[ROLLUP_PSS_FILE] = kb_down(s->pss[KIND_FILE]);
  bytes[ROLLUP_PSS_SHMEM] = kb_down(s->pss[KIND_SHMEM]);
  bytes[ROLLUP_SHARED_CLEAN] = s->held[false][false] * page_size;
  bytes[ROLLUP_SHARED_DIRTY] = s->held[false][true] * page_size;
  bytes[ROLLUP_PRIVATE_CLEAN] = s->held[true][false] * page_size;
  bytes[ROLLUP_PRIVATE_DIRTY] = s->held[true][true] * page_size;
  bytes[ROLLUP_ANONYMOUS] = s->pages[KIND_ANON] * page_size;
  bytes[ROLLUP_KSM] = s->merged * page_size;
  bytes[ROLLUP_SWAP] = s->swap * page_size;
  bytes[ROLLUP_SWAP_PSS] = kb_down(s->swap_pss);
}

static void hide(struct rollup *r, enum rollup_field field) {
  r->known &= ~(1U << field);
  r->bytes[field] = 0;
}

void memory_view_all(const struct memory_world *w,
                     struct memory_view ret[MEMORY_SLOTS]) {
  struct sums sums[MEMORY_SLOTS] = {0};
  uint64_t parts[MEMORY_SLOTS + 1] = {0};

  for (unsigned n = 1; n <= MEMORY_SLOTS; n++)
    parts[n] = (w->page_size << PSS_SHIFT) / n;
  for (uint32_t i = 0, end; i < w->n_pages; i = end) {
    const struct memory_page *page = &w->pages[i];

    for (end = i + 1; end < w->n_pages && looks_like(page, &w->pages[end]);)
      end++;
    if (page->kind == KIND_FREE)
      continue;
    add_mapped(sums, page, end - i, parts);
    add_swapped(sums, page, end - i, parts);
  }
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    ret[slot] = (struct memory_view){0};
    if (!is_alive(w, slot))
      continue;
    fill(&sums[slot], w->page_size, &ret[slot]);
    if (w->has_no_ksm_field)
      hide(&ret[slot].rollup, ROLLUP_KSM);
  }
}
