/*
 * The whole core beside processes that are too large to be walked, under
 * different loads. The published PSS and USS are beside the truth in each
 * cycle: how far off they are, of the resident memory, and how often they are
 * within their errors.
 *
 * GIANTS_CYCLES=100000 makes the tests long; GIANTS_VERBOSE=1 prints what is
 * missed.
 */
#include "test.h"

#include <stdio.h>

#include "draw.h"
#include "parsed.h"
#include "stage.h"

static struct stage the_stage;

/* --- loads ------------------------------------------------------------------
 */

static bool happens_once_in(unsigned cycles) {
  return draw_unsigned(cycles) == 0;
}

static uint16_t anywhere(void) { return (uint16_t)draw_unsigned(65536); }

static void start(struct stage *s, unsigned slot, uint32_t pages) {
  addresses_clear(&s->addresses[slot]);
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
    s->addresses[0].is_sparse = s->load->is_sparse;
  }
  for (unsigned slot = 1; slot < 5; slot++) {
    if (stage_has(s, slot) && happens_once_in(60))
      memory_exit(&s->memory, slot);
    else if (!stage_has(s, slot) && happens_once_in(20)) {
      memory_fork(&s->memory, 0, slot, 64);
      s->addresses[slot] = s->addresses[0];
      s->speed[slot] = 1U << draw_unsigned(8);
    }
  }
  s->speed[0] = 40;
  for (unsigned slot = 0; slot < 5; slot++)
    memory_write(&s->memory, slot, s->speed[slot], anywhere());
}

static void live_outsiders(struct stage *s) {
  for (unsigned slot = OUTSIDERS; slot < MEMORY_SLOTS; slot++) {
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
  for (unsigned slot = 0; slot < OUTSIDERS; slot++) {
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

/* By 5 % in each cycle, around the limit and far above. Some have reserved all
 * addresses before. */
static void live_change(struct stage *s) {
  static const uint32_t usual[] = {1000, 2000, 2200, 2600, 4000, 6000};

  for (unsigned slot = 0; slot < LENGTH(usual); slot++) {
    uint32_t now = resident_pages(s, slot), most;

    if (s->cycle == 0) {
      start(s, slot, usual[slot]);
      s->addresses[slot].is_sparse = slot % 2;
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
    s->addresses[slot].is_sparse = happens_once_in(3);
    s->addresses[slot].is_wandering = happens_once_in(3);
    s->speed[slot] = 1U << draw_unsigned(7);
    return;
  }
  memory_grow(&s->memory, slot, draw_unsigned(s->speed[slot] + 1));
  memory_shrink(&s->memory, slot, draw_unsigned(s->speed[slot] + 1),
                anywhere());
  memory_write(&s->memory, slot, draw_unsigned(s->speed[slot] + 1), anywhere());
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
    memory_write(&s->memory, child, s->speed[slot], anywhere());
    if (stage_has(s, child) && happens_once_in(10)) {
      memory_exit(&s->memory, child);
    } else if (stage_has(s, slot) && !stage_has(s, child) &&
               happens_once_in(100)) {
      memory_fork(&s->memory, slot, child, 64);
      s->addresses[child] = s->addresses[slot];
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
    s->addresses[0].is_sparse = s->addresses[0].is_wandering = true;
  } else if (s->cycle % 10 == 3) {
    addresses_move(&s->addresses[0]);
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
  s->hides_frames = s->cycle % 400 >= 100 && s->cycle % 400 < 200;
  s->is_denied = s->cycle % 400 >= 250 && s->cycle % 400 < 300;
}

/* Plays a load (stage.h), which is called as the test is. */
#define LOAD_TEST(test, ...)                                                   \
  TEST(test) {                                                                 \
    static const struct load load = {.name = #test, __VA_ARGS__};              \
                                                                               \
    stage_play(&the_stage, &load);                                             \
  }

LOAD_TEST(services_come_and_go, .live = live_services, .far = 0.005,
          .far_most = 0.15, .width_most = 0.02)

LOAD_TEST(each_of_services, .live = live_services, .is_alone = true,
          .far = 0.02, .far_most = 0.01, .width_most = 0.02)

LOAD_TEST(services_without_rights, .live = live_without_rights, .far = 0.005,
          .far_most = 0.35, .width_most = 0.15)

LOAD_TEST(each_service_without_rights, .live = live_without_rights,
          .is_alone = true, .far = 0.02, .far_most = 0.2, .beyond_most = 0.03,
          .width_most = 0.25)

LOAD_TEST(services_take_turns, .live = live_services, .far = 0.005,
          .far_most = 0.6, .width_most = 0.15, .budget_percent = 0.005)

LOAD_TEST(a_family_breaks_copy_on_write, .live = live_family, .far = 0.005,
          .far_most = 0.35, .width_most = 0.03)

LOAD_TEST(a_family_that_has_reserved_addresses, .live = live_family,
          .is_sparse = true, .far = 0.005, .far_most = 0.35, .width_most = 0.03)

LOAD_TEST(members_of_a_family, .live = live_family, .is_alone = true,
          .far = 0.02, .far_most = 0.02, .width_most = 0.04)

LOAD_TEST(a_set_shares_buffers, .live = live_buffers, .far = 0.005,
          .far_most = 0.2, .beyond_most = 0.015, .width_most = 0.015)

/* There is time for half of them in each cycle. */
LOAD_TEST(a_set_is_sampled_each_second, .live = live_buffers, .seconds = 1,
          .far = 0.005, .far_most = 0.3, .beyond_most = 0.015,
          .width_most = 0.02)

LOAD_TEST(members_of_a_set, .live = live_buffers, .is_alone = true, .far = 0.02,
          .far_most = 0.01, .width_most = 0.02)

LOAD_TEST(a_garbage_collector_moves_memory, .live = live_collector, .far = 0.02,
          .far_most = 0.01, .width_most = 0.02)

LOAD_TEST(memory_grows_and_shrinks, .live = live_change, .is_alone = true,
          .far = 0.02, .far_most = 0.01, .width_most = 0.02)

/* The largest number of pages that a process was sampled by, as the state file
 * tells. */
static uint64_t most_pages_sampled(const struct stage *s) {
  uint64_t most = 0;
  char path[128];
  parsed d;

  snprintf(path, sizeof(path), "%s/state", s->world.tree.root);
  d = parsed_file(path);
  for (size_t i = 0; i < parsed_count(d, "processes"); i++) {
    snprintf(path, sizeof(path), "processes.%zu.pages_sampled", i);
    if (parsed_get(d, path) && parsed_integer(d, path) > most)
      most = parsed_integer(d, path);
  }
  parsed_free(d);
  return most;
}

/* Slots 1 to 7 shrink, later. */
static void live_shrinking(struct stage *s) {
  live_outsiders(s);
  for (unsigned slot = 0; slot < 8; slot++) {
    if (s->cycle == 0)
      start(s, slot, 3000);
    if (s->cycle == 10 && slot > 0)
      memory_shrink(&s->memory, slot, 2000, 0);
    memory_map(&s->memory, slot, OBJECT_FILE, 5, anywhere(), true);
    memory_unmap(&s->memory, slot, OBJECT_FILE, 4, anywhere());
  }
}

/* 1000 pages in all, of eight giants and then of one, which has 500. */
TEST(former_giants_leave_their_pages_to_others) {
  static const struct load load = {.live = live_shrinking};
  struct stage *s = &the_stage;

  stage_begin(s, &load);
  world_keep_state(&s->world);
  for (; s->cycle < 200; s->cycle++)
    stage_act(s);
  assert_in_range(most_pages_sampled(s), 450, 550);
  stage_end(s);
}

/* Eight that are sampled, and nothing to read. */
static void live_unread(struct stage *s) {
  for (unsigned slot = 0; s->cycle == 0 && slot < 8; slot++)
    start(s, slot, 3000);
}

TEST(budget_that_is_too_small_for_samples_is_told) {
  static const struct load load = {.live = live_unread,
                                   .budget_percent = 0.0002};
  struct stage *s = &the_stage;

  stage_begin(s, &load);
  for (; s->cycle < 20; s->cycle++)
    stage_act(s);
  assert_true(world_counts(&s->world)->read_budget_wanted > 0.0002);
  stage_end(s);
}

/* The same, and then one that is read. */
static void live_before_small(struct stage *s) {
  live_unread(s);
  if (s->cycle == 1)
    start(s, OUTSIDERS, 500);
}

TEST(samples_that_are_always_made_are_not_charged) {
  static const struct load load = {.live = live_before_small,
                                   .budget_percent = 0.0002};
  struct stage *s = &the_stage;

  stage_begin(s, &load);
  s->world.settings.rules[0].policy.refresh = REFRESH_ALWAYS;
  world_other(&s->world, "small");
  for (; s->cycle < 2; s->cycle++) {
    stage_act(s);
    assert_int_equal(world_counts(&s->world)->sampled, 8);
  }
  world_assert(&s->world, "small", "coverage=100");
  stage_end(s);
}
