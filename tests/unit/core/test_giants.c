/* SPDX-License-Identifier: MIT */
/*
 * The whole core beside processes that are too large to be walked, under
 * different loads. The published PSS and USS are beside the truth in each
 * cycle: how far off they are, of the resident memory, and how often they are
 * within their errors.
 *
 * The limit is some 2,000 pages, so that the large ones are sampled and the
 * small ones are read. A load says what happens before each cycle.
 *
 * GIANTS_CYCLES=100000 makes the tests long; STAGE_VERBOSE=1 prints what is
 * missed.
 */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "member/member.h"

#include "draw.h"
#include "stage.h"

enum { OBJECT_FILE, OBJECT_LIBRARY, OBJECT_BUFFERS, OBJECT_SMALL };

/* The anonymous pages that an address space has room for. */
#define ADDRESSES 65536
/* Mappings begin and end at multiples of so many pages: objects, too. */
#define ADDRESSES_BLOCK 64
#define FIRST_PAGE UINT64_C(0x10000)
#define FIRST_FRAME UINT64_C(0x1000)
#define NO_PAGE UINT32_MAX

/* Where each page of a process is. Objects have the same addresses in all
 * processes. A page that was copied on write has the address of the one before.
 * Places are addresses of anonymous memory, numbered from 0. */
struct addresses {
  bool is_sparse;    /* all addresses are mapped, and few are used */
  bool is_wandering; /* it gives memory back, and maps other addresses */
  bool is_placed[MEMORY_PAGES];
  uint32_t page_at[ADDRESSES + ADDRESSES_BLOCK];
  uint32_t next, end;
};

struct load {
  const char *name;
  void (*live)(struct stage *s); /* what happens before a cycle */
  bool is_alone;                 /* each member is a group of its own */
  bool is_sparse;                /* it has reserved addresses */
  /* The goal, as a part of the resident memory; in how many cycles it may be
   * missed; and the mean error that is published. */
  double far, far_most, width_most;
  double beyond_most;    /* errors that do not hold; 0: 1 % */
  double budget_percent; /* 0: the default */
  unsigned seconds;      /* between cycles; 0: 10 */
};

#define SECONDS 10
#define MAX_AGE_SECONDS 600
/* A walk takes so long by page; a sample. */
#define WALK_PAGE_NS 12
#define SAMPLE_NS 700000
/* Some 2,080 pages, by the guess of read_time.c. */
#define LIMIT_NS 30000
#define LIMIT_PAGES 2080
/* A question to the clock of the processor: what a probe sees of a window. */
#define WINDOW_NS (512 * WALK_PAGE_NS)

/* The stage whose files the calls below replace, the test's load, and where
 * each process has its memory. */
static struct stage *staged;
static const struct load *load;
static struct addresses addresses[MEMORY_SLOTS];
static unsigned speed[MEMORY_SLOTS]; /* pages that it writes in a cycle */
static bool hides_frames, is_denied; /* those of pagemap; all of it */

/* --- the address space of a process --- */

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

/* Makes them those of a process without pages. */
static void addresses_clear(struct addresses *a) {
  memset(a, 0, sizeof(*a));
  for (uint32_t i = 0; i < ADDRESSES + ADDRESSES_BLOCK; i++)
    a->page_at[i] = NO_PAGE;
}

/* All anonymous memory of one that wanders is to be at other addresses. */
static void addresses_move(struct addresses *a) {
  memset(a->is_placed, 0, sizeof(a->is_placed));
  for (uint32_t at = 0; at < a->end; at++)
    a->page_at[at] = NO_PAGE;
}

static void free_places(struct stage *s, unsigned slot) {
  struct addresses *a = &addresses[slot];

  for (uint32_t at = 0; at < a->end; at++) {
    uint32_t i = a->page_at[at];

    if (i == NO_PAGE || has(&s->memory, slot, i))
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

/* Gives an address to each page that has come, and takes those back of pages
 * that have gone. */
static void addresses_update(struct stage *s, unsigned slot) {
  struct addresses *a = &addresses[slot];

  free_places(s, slot);
  if (!a->is_wandering)
    a->next = 0; /* where something has gone */
  for (uint32_t i = n_object_pages(&s->memory); i < s->memory.n_pages; i++)
    if (has(&s->memory, slot, i) && !a->is_placed[i])
      place(a, i);
}

/* Returns the page at an address, pages of objects first; or NO_PAGE. */
static uint32_t page_at(const struct stage *s, unsigned slot, uint32_t at) {
  uint32_t objects = n_object_pages(&s->memory);

  if (at >= objects)
    return addresses[slot].page_at[at - objects];
  return has(&s->memory, slot, at) ? at : NO_PAGE;
}

static uint64_t entry_at(const struct stage *s, unsigned slot, uint32_t at) {
  uint32_t i = page_at(s, slot, at);
  const struct memory_page *page;
  uint64_t entry;

  if (i == NO_PAGE)
    return 0;
  page = &s->memory.pages[i];
  if (page->swapped & bit(slot))
    return FAKE_SWAPPED;
  entry = page->kind == KIND_ANON ? FAKE_ANON : FAKE_FILE;
  if (page->mappers == bit(slot))
    entry |= FAKE_EXCLUSIVE;
  return entry | (hides_frames ? 0 : FIRST_FRAME + i);
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

static bool is_mapped(const struct stage *s, unsigned slot, uint32_t block) {
  if (addresses[slot].is_sparse && block >= n_object_pages(&s->memory))
    return true;
  for (uint32_t at = block; at < block + ADDRESSES_BLOCK; at++)
    if (page_at(s, slot, at) != NO_PAGE)
      return true;
  return false;
}

/* Returns the size of all mappings, in pages. */
static uint64_t put_maps(const struct stage *s, unsigned slot) {
  static struct fake_range ranges[(MEMORY_PAGES + ADDRESSES) / ADDRESSES_BLOCK];
  const struct addresses *a = &addresses[slot];
  uint32_t end =
      n_object_pages(&s->memory) + (a->is_sparse ? ADDRESSES : a->end);
  uint64_t pages = 0, size = ADDRESSES_BLOCK * PAGE;
  size_t n = 0;

  for (uint32_t at = 0; at < end; at += ADDRESSES_BLOCK) {
    const char *name = name_at(&s->memory, at);
    uint64_t start = (FIRST_PAGE + at) * PAGE;

    if (!is_mapped(s, slot, at))
      continue;
    pages += ADDRESSES_BLOCK;
    if (n > 0 && ranges[n - 1].end == start && ranges[n - 1].name == name)
      ranges[n - 1].end += size;
    else
      ranges[n++] = (struct fake_range){
          .start = start, .end = start + size, .name = name};
  }
  fake_pages_map(&s->world.tree, s->memory.processes[slot].pid, ranges, n);
  return pages;
}

static uint64_t put_pages(struct stage *s, unsigned slot) {
  addresses_update(s, slot);
  if (s->shown_sizes[slot] == 0)
    proctree_print(&s->world.tree, s->memory.processes[slot].pid, "pagemap",
                   "%s", "");
  return put_maps(s, slot);
}

/* --- calls of the core --- */

/* pagemap and kpagecount are empty files: their numbers, millions of them, are
 * taken from the world as they are read. */
enum { OTHER_FILE, KPAGECOUNT, PAGEMAP_OF_SLOT };
static unsigned opened[256]; /* by descriptor */

WRAPPED(int, openat, int dir_fd, const char *path, int flags, ...);
WRAPPED(ssize_t, pread, int fd, void *ret, size_t size, off_t at);
WRAPPED(int, nanosleep, const struct timespec *wanted, struct timespec *left);
int __wrap_ioctl(int fd, unsigned long request, ...);

/* MEMORY_SLOTS if it is none of ours. */
static unsigned slot_of(uint32_t pid) {
  unsigned slot = 0;

  while (slot < MEMORY_SLOTS && staged->shown[slot].pid != pid)
    slot++;
  return slot;
}

/* What happens to a process's file that is opened. */
static int open_file_of(unsigned slot, const char *file) {
  if (strcmp(file, "smaps_rollup") == 0)
    world_spend(staged->views[slot].resident_pages * WALK_PAGE_NS);
  if (strcmp(file, "pagemap") != 0)
    return OTHER_FILE;
  world_spend(SAMPLE_NS);
  return PAGEMAP_OF_SLOT + (int)slot;
}

int __wrap_openat(int dir_fd, const char *path, int flags, ...) {
  const char *slash = strchr(path, '/');
  unsigned slot = slash ? slot_of((uint32_t)atoi(path)) : MEMORY_SLOTS;
  unsigned kind = strcmp(path, "kpagecount") == 0 ? KPAGECOUNT : OTHER_FILE;
  int fd;

  if (is_denied && slash && strcmp(slash, "/pagemap") == 0) {
    errno = EACCES;
    return -1;
  }
  if (slot < MEMORY_SLOTS)
    kind = (unsigned)open_file_of(slot, slash + 1);
  fd = __real_openat(dir_fd, path, flags);
  if (fd >= 0 && fd < (int)LENGTH(opened))
    opened[fd] = kind;
  return fd;
}

static uint64_t number_at(unsigned kind, uint64_t i) {
  uint64_t first = kind == KPAGECOUNT ? FIRST_FRAME : FIRST_PAGE;
  uint64_t end = n_object_pages(&staged->memory) + ADDRESSES;

  if (kind == KPAGECOUNT)
    end = staged->memory.n_pages;
  if (i < first || i - first >= end)
    return 0;
  return kind == KPAGECOUNT
             ? (uint64_t)__builtin_popcount(
                   staged->memory.pages[i - first].mappers)
             : entry_at(staged, kind - PAGEMAP_OF_SLOT, (uint32_t)(i - first));
}

ssize_t __wrap_pread(int fd, void *ret, size_t size, off_t at) {
  unsigned kind = fd < (int)LENGTH(opened) ? opened[fd] : OTHER_FILE;
  uint64_t *numbers = ret;

  if (kind == OTHER_FILE)
    return __real_pread(fd, ret, size, at);
  for (size_t i = 0; i < size / sizeof(*numbers); i++)
    numbers[i] = number_at(kind, (uint64_t)at / sizeof(*numbers) + i);
  return (ssize_t)size;
}

/* No file of the tree knows this ioctl (PAGEMAP_SCAN). */
int __wrap_ioctl(int fd, unsigned long request, ...) {
  (void)fd;
  (void)request;
  errno = ENOTTY;
  return -1;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left) {
  (void)wanted;
  (void)left;
  return 0;
}

/* --- a load --- */

static unsigned long cycles(void) { return stage_cycles("GIANTS_CYCLES", 300); }

/* The members are one group, "a"; or each is one, "g0" and so on. */
static struct stage *begin(const struct load *of) {
  static const uint32_t objects[MEMORY_OBJECTS] = {512, 64, 6016, 64};
  struct stage *s = stage_begin(objects);

  staged = s;
  load = of;
  memset(addresses, 0, sizeof(addresses));
  memset(speed, 0, sizeof(speed));
  hides_frames = is_denied = false;
  draw_begin(20261122);
  s->is_alone = load->is_alone;
  s->far = load->far;
  s->put_pages = put_pages;
  s->world.settings.policy.max_age_ns = MAX_AGE_SECONDS * NS;
  /* Walks of a price up to LIMIT_NS fit. */
  s->world.settings.policy.max_lock_hold_ns = LIMIT_NS + LIMIT_NS / 4;
  if (load->budget_percent > 0)
    s->world.settings.read_budget_percent = load->budget_percent;
  world_walks_take(WINDOW_NS);
  proctree_print(&s->world.tree, 0, "kpagecount", "%s", "");
  world_group(&s->world, load->is_alone ? "%{comm}" : "a", "Comm",
              load->is_alone ? "g*" : "a", NULL, NULL);
  return s;
}

static void print(const struct stage *s) {
  const struct tally *t = &s->tally;
  double n = (double)t->n / 100;

  printf("%-28s PSS off %.2f %% (max %.1f), error %.2f %%, beyond %.2f %%, "
         "more than %.1f %% off: %.2f %%; USS beyond %.2f %%; %.1f samples, "
         "%.2f reads\n",
         load->name, t->off / n, 100 * t->worst, t->width / n,
         (double)t->beyond / n, 100 * load->far, (double)t->far / n,
         (double)t->uss_beyond / n, (double)t->samples / (double)cycles(),
         (double)t->reads / (double)cycles());
}

/* Lets the load happen, and runs a cycle. */
static void act(struct stage *s) {
  load->live(s);
  stage_show(s);
  stage_run(s, load->seconds ? load->seconds : SECONDS);
}

static void judge(struct stage *s) {
  if (!load->is_alone)
    stage_judge_group(s, 0);
  for (unsigned slot = 0; load->is_alone && slot < STAGE_OUTSIDERS; slot++)
    if (stage_has(s, slot) && s->views[slot].resident_pages >= LIMIT_PAGES)
      stage_judge(s, stage_comm(s, slot), 1U << slot);
}

static bool is_at_most(unsigned long n, double part, unsigned long of) {
  return (double)n <= part * (double)of + 5;
}

static void check(const struct stage *s) {
  const struct tally *t = &s->tally;
  double beyond = load->beyond_most > 0 ? load->beyond_most : 0.01;

  assert_true(t->n > 0 && t->samples > 0);
  assert_true(is_at_most(t->beyond, beyond, t->n));
  assert_true(is_at_most(t->uss_beyond, beyond, t->n));
  assert_true(is_at_most(t->far, load->far_most, t->n));
  assert_true(t->width <= load->width_most * (double)t->n);
}

/* Plays the load for some hundred cycles (GIANTS_CYCLES), prints how far off
 * the published values were, and checks that. */
static void play(const struct load *of) {
  struct stage *s = begin(of);
  size_t used = 0;

  for (; s->cycle < cycles(); s->cycle++) {
    act(s);
    judge(s);
    if (s->cycle == cycles() / 2)
      used = heap_used();
  }
  print(s);
  check(s);
  assert_true(heap_used() < used + (256 << 10));
  world_remove(&s->world);
}

/* --- loads --- */

static bool happens_once_in(unsigned cycles) {
  return draw_unsigned(cycles) == 0;
}

static uint16_t anywhere(void) { return (uint16_t)draw_unsigned(65536); }

static void start(struct stage *s, unsigned slot, uint32_t pages) {
  addresses_clear(&addresses[slot]);
  memory_start(&s->memory, slot);
  memory_grow(&s->memory, slot, pages);
  memory_map(&s->memory, slot, OBJECT_LIBRARY, 64, 0, true);
}

static uint32_t resident_pages(const struct stage *s, unsigned slot) {
  return (uint32_t)s->views[slot].resident_pages;
}

/* A service that saves in the background, and workers: children break copy on
 * write at different speeds. */
static void live_family(struct stage *s) {
  if (s->cycle == 0) {
    start(s, 0, 4000);
    addresses[0].is_sparse = load->is_sparse;
  }
  for (unsigned slot = 1; slot < 5; slot++) {
    if (stage_has(s, slot) && happens_once_in(60))
      memory_exit(&s->memory, slot);
    else if (!stage_has(s, slot) && happens_once_in(20)) {
      memory_fork(&s->memory, 0, slot, 64);
      addresses[slot] = addresses[0];
      speed[slot] = 1U << draw_unsigned(8);
    }
  }
  speed[0] = 40;
  for (unsigned slot = 0; slot < 5; slot++)
    memory_write(&s->memory, slot, speed[slot], anywhere());
}

static void live_outsiders(struct stage *s) {
  for (unsigned slot = STAGE_OUTSIDERS; slot < MEMORY_SLOTS; slot++) {
    if (!stage_has(s, slot))
      start(s, slot, 0);
    if (happens_once_in(40))
      memory_map(&s->memory, slot, OBJECT_BUFFERS, 3000, anywhere(), true);
    if (happens_once_in(40))
      memory_unmap(&s->memory, slot, OBJECT_BUFFERS, 6016, 0);
  }
}

/* Members of a set touch more of shared buffers; outsiders come and go. */
static void live_buffers(struct stage *s) {
  for (unsigned slot = 0; slot < STAGE_OUTSIDERS; slot++) {
    if (stage_has(s, slot) && happens_once_in(150)) {
      memory_exit(&s->memory, slot);
    } else if (!stage_has(s, slot) && (s->cycle == 0 || happens_once_in(20))) {
      start(s, slot, 50 + draw_unsigned(300));
      memory_map(&s->memory, slot, OBJECT_BUFFERS, 2500, anywhere(), true);
    }
    memory_map(&s->memory, slot, OBJECT_BUFFERS, draw_unsigned(60), anywhere(),
               true);
  }
  live_outsiders(s);
}

/* Memory changes by 5 % in each cycle, around the limit and far above it. Some
 * have reserved all addresses before. */
static void live_change(struct stage *s) {
  static const uint32_t usual[] = {1000, 2000, 2200, 2600, 4000, 6000};

  for (unsigned slot = 0; slot < LENGTH(usual); slot++) {
    uint32_t now = resident_pages(s, slot), most;

    if (s->cycle == 0) {
      start(s, slot, usual[slot]);
      addresses[slot].is_sparse = slot % 2;
      now = usual[slot];
    }
    most = now / 20 + 1;
    if (draw_unsigned(now + usual[slot]) < usual[slot])
      memory_grow(&s->memory, slot, draw_unsigned(most));
    else
      memory_shrink(&s->memory, slot, draw_unsigned(most), anywhere());
  }
}

static void live_service(struct stage *s, unsigned slot) {
  if (!stage_has(s, slot)) {
    if (s->cycle > 0 && !happens_once_in(20))
      return;
    start(s, slot, 300 + draw_unsigned(3000));
    addresses[slot].is_sparse = happens_once_in(3);
    addresses[slot].is_wandering = happens_once_in(3);
    speed[slot] = 1U << draw_unsigned(7);
    return;
  }
  memory_grow(&s->memory, slot, draw_unsigned(speed[slot] + 1));
  memory_shrink(&s->memory, slot, draw_unsigned(speed[slot] + 1), anywhere());
  memory_write(&s->memory, slot, draw_unsigned(speed[slot] + 1), anywhere());
  if (happens_once_in(150)) {
    memory_exec(&s->memory, slot);
    start(s, slot, 0);
    memory_grow(&s->memory, slot, 300 + draw_unsigned(3000));
  }
  if (happens_once_in(150))
    memory_exit(&s->memory, slot);
}

/* Services that begin, exec, fork and end, some of them larger than the limit,
 * while memory goes to swap and comes back. */
static void live_services(struct stage *s) {
  for (unsigned slot = 0; slot < 6; slot++) {
    unsigned child = slot + 6;

    live_service(s, slot);
    memory_write(&s->memory, child, speed[slot], anywhere());
    if (stage_has(s, child) && happens_once_in(10)) {
      memory_exit(&s->memory, child);
    } else if (stage_has(s, slot) && !stage_has(s, child) &&
               happens_once_in(100)) {
      memory_fork(&s->memory, slot, child, 64);
      addresses[child] = addresses[slot];
    }
    memory_map(&s->memory, slot, OBJECT_BUFFERS, draw_unsigned(20), anywhere(),
               true);
    if (happens_once_in(100))
      memory_unmap(&s->memory, slot, OBJECT_BUFFERS, 6016, 0);
    if (s->cycle % 400 > 300)
      memory_swap_out(&s->memory, slot, draw_unsigned(50), anywhere());
    if (happens_once_in(4))
      memory_swap_in(&s->memory, slot, draw_unsigned(50), anywhere(), false);
  }
}

/* The live objects move to other addresses, within what was reserved. */
static void live_collector(struct stage *s) {
  if (s->cycle == 0) {
    start(s, 0, 4000);
    addresses[0].is_sparse = addresses[0].is_wandering = true;
  } else if (s->cycle % 10 == 3) {
    addresses_move(&addresses[0]);
  }
  memory_map(&s->memory, 0, OBJECT_BUFFERS, draw_unsigned(40), anywhere(),
             true);
  memory_unmap(&s->memory, 0, OBJECT_BUFFERS, draw_unsigned(40), anywhere());
  live_outsiders(s);
}

/* The same while page frames are hidden for a while, and then all of pagemap.
 */
static void live_without_rights(struct stage *s) {
  live_services(s);
  hides_frames = s->cycle % 400 >= 100 && s->cycle % 400 < 200;
  is_denied = s->cycle % 400 >= 250 && s->cycle % 400 < 300;
}

/* Plays a load, which is called as the test is. */
#define LOAD_TEST(test, ...)                                                   \
  TEST(test) { play(&(const struct load){.name = #test, __VA_ARGS__}); }

LOAD_TEST(services_come_and_go, .live = live_services, .far = 0.005,
          .far_most = 0.15, .width_most = 0.02)

LOAD_TEST(each_service_is_within_the_error, .live = live_services,
          .is_alone = true, .far = 0.02, .far_most = 0.01, .width_most = 0.02)

LOAD_TEST(services_are_within_the_error_without_rights,
          .live = live_without_rights, .far = 0.005, .far_most = 0.35,
          .width_most = 0.15)

LOAD_TEST(each_service_is_within_the_error_without_rights,
          .live = live_without_rights, .is_alone = true, .far = 0.02,
          .far_most = 0.2, .beyond_most = 0.03, .width_most = 0.25)

LOAD_TEST(services_take_turns, .live = live_services, .far = 0.005,
          .far_most = 0.6, .width_most = 0.15, .budget_percent = 0.005)

LOAD_TEST(a_family_breaks_copy_on_write, .live = live_family, .far = 0.005,
          .far_most = 0.35, .width_most = 0.03)

LOAD_TEST(a_family_has_reserved_addresses, .live = live_family,
          .is_sparse = true, .far = 0.005, .far_most = 0.35, .width_most = 0.03)

LOAD_TEST(each_member_of_a_family_is_within_the_error, .live = live_family,
          .is_alone = true, .far = 0.02, .far_most = 0.02, .width_most = 0.04)

LOAD_TEST(a_set_shares_buffers, .live = live_buffers, .far = 0.005,
          .far_most = 0.2, .beyond_most = 0.015, .width_most = 0.015)

/* There is time for half of them in each cycle. */
LOAD_TEST(a_set_is_sampled_each_second, .live = live_buffers, .seconds = 1,
          .far = 0.005, .far_most = 0.3, .beyond_most = 0.015,
          .width_most = 0.02)

LOAD_TEST(each_member_of_a_set_is_within_the_error, .live = live_buffers,
          .is_alone = true, .far = 0.02, .far_most = 0.01, .width_most = 0.02)

LOAD_TEST(a_garbage_collector_moves_memory, .live = live_collector, .far = 0.02,
          .far_most = 0.01, .width_most = 0.02)

LOAD_TEST(memory_grows_and_shrinks, .live = live_change, .is_alone = true,
          .far = 0.02, .far_most = 0.01, .width_most = 0.02)

/* Eight that are sampled, and nothing to read. */
static void live_unread(struct stage *s) {
  for (unsigned slot = 0; s->cycle == 0 && slot < 8; slot++)
    start(s, slot, 3000);
}

TEST(budget_that_is_too_small_for_samples_is_reported) {
  struct stage *s = begin(
      &(const struct load){.live = live_unread, .budget_percent = 0.0002});

  for (; s->cycle < 20; s->cycle++)
    act(s);
  assert_true(world_counts(&s->world)->read_budget_wanted > 0.0002);
  /* Eight giants share the pages and the time of the group. */
  assert_int_equal(world_find(&s->world, "a")->track->giants, 8);
  world_remove(&s->world);
}

/* The same, and then one that is read. */
static void live_before_small(struct stage *s) {
  live_unread(s);
  if (s->cycle == 1)
    start(s, STAGE_OUTSIDERS, 500);
}

TEST(samples_that_are_always_made_are_not_charged) {
  struct stage *s = begin(&(const struct load){.live = live_before_small,
                                               .budget_percent = 0.0002});

  s->world.settings.rules[0].policy.refresh = REFRESH_ALWAYS;
  world_other(&s->world, "small");
  for (; s->cycle < 2; s->cycle++) {
    act(s);
    assert_int_equal(world_counts(&s->world)->sampled, 8);
  }
  world_assert(&s->world, "small", "coverage=100");
  world_remove(&s->world);
}
