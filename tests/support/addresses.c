#include "addresses.h"

#include <string.h>

#include "fake_pages.h"

#define FIRST_PAGE UINT64_C(0x10000)
#define FIRST_FRAME UINT64_C(0x1000)
#define NO_PAGE UINT32_MAX

static uint64_t numbers[MEMORY_PAGES + ADDRESSES];

static uint32_t n_object_pages(const struct memory_world *w) {
  const struct memory_object *last = &w->objects[MEMORY_OBJECTS - 1];

  return last->first + last->pages;
}

static uint16_t bit(unsigned slot) { return (uint16_t)(1U << slot); }

static bool has(const struct memory_world *w, unsigned slot, uint32_t i) {
  const struct memory_page *page = &w->pages[i];

  return page->kind != KIND_FREE &&
         ((page->mappers | page->swapped) & bit(slot));
}

/* --- places: addresses of anonymous memory, numbered from 0 --- */

void addresses_clear(struct addresses *a) {
  memset(a, 0, sizeof(*a));
  for (uint32_t i = 0; i < ADDRESSES + ADDRESSES_BLOCK; i++)
    a->page_at[i] = NO_PAGE;
}

void addresses_move(struct addresses *a) {
  memset(a->is_placed, 0, sizeof(a->is_placed));
  for (uint32_t at = 0; at < a->end; at++)
    a->page_at[at] = NO_PAGE;
}

static void free_places(struct addresses *a, const struct memory_world *w,
                        unsigned slot) {
  for (uint32_t at = 0; at < a->end; at++) {
    uint32_t i = a->page_at[at];

    if (i == NO_PAGE || has(w, slot, i))
      continue;
    a->page_at[at] = NO_PAGE;
    a->is_placed[i] = false;
  }
}

static void place(struct addresses *a, uint32_t i) {
  while (a->page_at[a->next] != NO_PAGE)
    a->next = (a->next + 1) % ADDRESSES;
  a->page_at[a->next] = i;
  a->is_placed[i] = true;
  if (a->next >= a->end)
    a->end = a->next + 1;
}

void addresses_update(struct addresses *a, const struct memory_world *w,
                      unsigned slot) {
  free_places(a, w, slot);
  if (!a->is_wandering)
    a->next = 0; /* where something has gone */
  for (uint32_t i = n_object_pages(w); i < w->n_pages; i++)
    if (has(w, slot, i) && !a->is_placed[i])
      place(a, i);
}

/* --- the files --- */

struct view {
  const struct addresses *a;
  const struct memory_world *w;
  unsigned slot;
  bool hides_frames;
};

/* The page at an address, those of objects first; NO_PAGE for none. */
static uint32_t page_at(const struct view *v, uint32_t at) {
  uint32_t objects = n_object_pages(v->w);

  if (at >= objects)
    return v->a->page_at[at - objects];
  return has(v->w, v->slot, at) ? at : NO_PAGE;
}

static uint64_t entry_at(const struct view *v, uint32_t at) {
  uint32_t i = page_at(v, at);
  const struct memory_page *page;
  uint64_t entry;

  if (i == NO_PAGE)
    return 0;
  page = &v->w->pages[i];
  if (page->swapped & bit(v->slot))
    return FAKE_SWAPPED;
  entry = page->kind == KIND_ANON ? FAKE_ANON : FAKE_FILE;
  if (page->mappers == bit(v->slot))
    entry |= FAKE_EXCLUSIVE;
  return entry | (v->hides_frames ? 0 : FIRST_FRAME + i);
}

/* NULL for anonymous memory. */
static const char *name_at(const struct memory_world *w, uint32_t at) {
  static const char *const names[MEMORY_OBJECTS + 1] = {
      "/data/file", "/lib/library", "/dev/shm/buffers", "/dev/shm/small", NULL};
  unsigned object = 0;

  while (object < MEMORY_OBJECTS &&
         at >= w->objects[object].first + w->objects[object].pages)
    object++;
  return names[object];
}

static bool is_mapped(const struct view *v, uint32_t block) {
  if (v->a->is_sparse && block >= n_object_pages(v->w))
    return true;
  for (uint32_t at = block; at < block + ADDRESSES_BLOCK; at++)
    if (page_at(v, at) != NO_PAGE)
      return true;
  return false;
}

static uint64_t put_maps(const struct proctree *t, const struct view *v) {
  static struct fake_range ranges[(MEMORY_PAGES + ADDRESSES) / ADDRESSES_BLOCK];
  uint32_t end =
      n_object_pages(v->w) + (v->a->is_sparse ? ADDRESSES : v->a->end);
  uint64_t pages = 0, size = ADDRESSES_BLOCK * v->w->page_size;
  size_t n = 0;

  for (uint32_t at = 0; at < end; at += ADDRESSES_BLOCK) {
    const char *name = name_at(v->w, at);
    uint64_t start = (FIRST_PAGE + at) * v->w->page_size;

    if (!is_mapped(v, at))
      continue;
    pages += ADDRESSES_BLOCK;
    if (n > 0 && ranges[n - 1].end == start && ranges[n - 1].name == name)
      ranges[n - 1].end += size;
    else
      ranges[n++] = (struct fake_range){
          .start = start, .end = start + size, .name = name};
  }
  fake_pages_map(t, v->w->processes[v->slot].pid, ranges, n);
  return pages;
}

uint64_t addresses_put(const struct addresses *a, const struct proctree *t,
                       const struct memory_world *w, unsigned slot,
                       bool hides_frames) {
  struct view v = {.a = a, .w = w, .slot = slot, .hides_frames = hides_frames};
  uint32_t n = n_object_pages(w) + a->end;

  for (uint32_t at = 0; at < n; at++)
    numbers[at] = entry_at(&v, at);
  fake_pages_put_each(t, w->processes[slot].pid, FIRST_PAGE, numbers, n);
  return put_maps(t, &v);
}

void addresses_put_counts(const struct proctree *t,
                          const struct memory_world *w) {
  for (uint32_t i = 0; i < w->n_pages; i++)
    numbers[i] = (uint64_t)__builtin_popcount(w->pages[i].mappers);
  fake_pages_count_each(t, FIRST_FRAME, numbers, w->n_pages);
}
