/* SPDX-License-Identifier: MIT */
/* Groups grow over whole cycles. */
#include "test.h"

#include <math.h>

#include "measure/aggregate.h"
#include "member/member.h"
#include "world.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, world_setup, world_teardown, struct world *w)

/* One cycle of 10 s takes a 60th of the window. */
#define WINDOW_S 600
#define CYCLE_S 10

static void watch(struct world *w) {
  w->settings.report.growth_window_ns = WINDOW_S * NS;
  world_group(w, "g", "Comm", "g", NULL, NULL);
}

/* So many cycles of a process that grows by that in each. */
static struct fake grow(struct world *w, struct fake f, unsigned cycles,
                        unsigned private_kb, unsigned swap_kb) {
  for (unsigned i = 0; i < cycles; i++) {
    world_put(w, f);
    world_run(w, CYCLE_S);
    f.private_kb += private_kb;
    f.swap_kb += swap_kb;
  }
  return f;
}

static double growth(const struct world *w) {
  return world_value(w, "g", "growth");
}

static struct fake service(uint32_t pid) {
  struct fake f = fake_process(pid, "g");

  f.starttime = pid;
  f.private_kb = 10000;
  return f;
}

WORLD_TEST(a_leak_is_published_with_the_time_until_the_limit) {
  struct fake f;

  watch(w);
  f = grow(w, service(10), 15, 500, 0);
  assert_true(isnan(growth(w)));
  grow(w, f, 60, 500, 0);
  assert_true(fabs(growth(w) - 500 * 1024 / 10.0) < 1);
  /* MemAvailable is 524,288 kB. */
  assert_true(fabs(world_value(w, "g", "until_limit") - 10485.76) < 0.1);
}

WORLD_TEST(growth_includes_memory_in_swap) {
  watch(w);
  grow(w, service(10), 60, 0, 500);
  assert_true(fabs(growth(w) - 500 * 1024 / 10.0) < 1);
}

/* A file that is mapped and read; the kernel drops such pages. */
WORLD_TEST(what_is_mapped_of_files_does_not_fill_the_machine) {
  struct fake f = service(10);

  watch(w);
  for (unsigned i = 0; i < 60; i++) {
    world_put(w, f);
    world_run(w, CYCLE_S);
    f.shared_kb += 1000;
  }
  assert_true(world_kb(w, "g", "pss") > 30000);
  assert_true(growth(w) == 0);
  assert_true(isnan(world_value(w, "g", "until_limit")));
}

WORLD_TEST(shmem_grows) {
  struct fake f = service(10);

  watch(w);
  for (unsigned i = 0; i < 60; i++) {
    world_put(w, f);
    world_run(w, CYCLE_S);
    f.shared_kb += 1000;
    f.shmem_kb += 500;
  }
  assert_true(fabs(growth(w) - 500 * 1024 / 10.0) < 1);
}

/* So many cycles of a process that gives back what it gets by MADV_FREE, or a
 * part of it. Returns the most that growth was. */
static double most_with_lazy(struct world *w, unsigned cycles, unsigned get_kb,
                             unsigned lazy_kb) {
  struct fake f = service(10);
  double most = 0;

  for (unsigned i = 0; i < cycles; i++) {
    world_put(w, f);
    world_run(w, CYCLE_S);
    most = fmax(most, growth(w));
    f.private_kb += get_kb;
    f.lazy_kb += lazy_kb;
  }
  return most;
}

WORLD_TEST(what_is_given_back_lazily_does_not_grow) {
  watch(w);
  assert_true(most_with_lazy(w, 60, 500, 500) == 0);
  assert_true(growth(w) == 0);
}

WORLD_TEST(a_leak_beside_what_is_given_back_grows) {
  watch(w);
  most_with_lazy(w, 60, 500, 300);
  assert_true(fabs(growth(w) - 200 * 1024 / 10.0) < 1);
}

static void read_seldom(struct world *w) {
  watch(w);
  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.policy.max_age_ns = 6 * WINDOW_S * NS;
}

/* No cheap file shows it: what seems to grow is read again. */
WORLD_TEST(lazy_memory_is_found_before_growth_is_told) {
  read_seldom(w);
  assert_true(most_with_lazy(w, 300, 500, 500) == 0);
  assert_true(growth(w) == 0);
}

WORLD_TEST(files_are_not_taken_for_shmem_for_long) {
  struct fake f = service(10);
  double most = 0;

  read_seldom(w);
  f.shared_kb = 20000;
  f.shmem_kb = 6000;
  for (unsigned i = 0; i < 300; i++) {
    world_put(w, f);
    world_run(w, CYCLE_S);
    most = fmax(most, growth(w));
    f.shared_kb += 1000;
  }
  assert_true(most == 0);
}

/* That is for readings older than MaxAge. */
WORLD_TEST(a_reading_for_growth_that_has_to_wait_is_not_overdue) {
  read_seldom(w);
  w->settings.read_budget_percent = 1e-6;
  for (unsigned i = 0; i < 60; i++) {
    struct fake f = service(10);

    f.private_kb += 500 * i;
    world_put(w, f);
    world_run(w, CYCLE_S);
    assert_int_equal(world_counts(w)->overdue, 0);
  }
  assert_true(growth(w) > 0);
  assert_int_equal(world_counts(w)->deferred, 1);
}

WORLD_TEST(a_leak_grows_however_seldom_it_is_read) {
  read_seldom(w);
  grow(w, service(10), 20, 500, 0);
  assert_true(fabs(growth(w) - 500 * 1024 / 10.0) < 1);
}

WORLD_TEST(other_members_are_a_restart) {
  watch(w);
  grow(w, service(10), 60, 500, 0);
  assert_true(growth(w) > 0);
  proctree_end(&w->tree, 10);
  grow(w, service(20), 5, 500, 0);
  assert_true(isnan(growth(w)));
}

/* It is a member for all that, and has not begun anew. */
WORLD_TEST(a_member_that_cannot_be_looked_at_stays) {
  watch(w);
  world_put(w, service(5));
  grow(w, service(10), 60, 500, 0);
  proctree_end(&w->tree, 10);
  proctree_write(&w->tree, "5/statm", "no number\n", 10);
  world_put(w, service(20));
  world_run(w, CYCLE_S);
  assert_int_equal(world_members(w, "g"), 2);
  assert_true(!isnan(growth(w)));
}

WORLD_TEST(growth_is_unknown_for_a_group_that_is_never_read) {
  watch(w);
  w->settings.policy.refresh = REFRESH_NEVER;
  grow(w, service(10), 60, 500, 0);
  assert_true(isnan(growth(w)));
}

#define ALL (CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT | CGROUP_HAS_FILE)

/* MemAvailable is 1,000 MiB. */
TEST(limit_of_a_control_group_counts_if_it_leaves_less) {
  static const struct {
    struct cgroup_memory memory;
    uint64_t room;
  } cases[] = {
      {{.known = ALL, .limit = 500 * MIB, .bytes = 300 * MIB}, 200 * MIB},
      {{.known = ALL,
        .limit = 500 * MIB,
        .bytes = 300 * MIB,
        .inactive_file = 50 * MIB},
       250 * MIB},
      {{.known = ALL, .limit = 500 * MIB, .bytes = 501 * MIB}, 0},
      {{.known = ALL, .limit = 5000 * MIB, .bytes = 300 * MIB}, 1000 * MIB},
      {{.known = ALL, .limit = CGROUP_LIMIT_NONE}, 1000 * MIB},
      {{.known = CGROUP_HAS_BYTES, .bytes = 1}, 1000 * MIB},
      {{.known = CGROUP_HAS_LIMIT, .limit = 1}, 1000 * MIB},
  };
  const struct meminfo_sample meminfo = {.known = MEMINFO_AVAILABLE,
                                         .mem_available_bytes = 1000 * MIB};
  const struct meminfo_sample full = {.known = MEMINFO_AVAILABLE};
  const struct report report = {.growth_window_ns = WINDOW_S * NS};
  struct group_track track = {.oldest_start = 0};
  struct group g = {.report = &report, .track = &track};
  struct group *all[] = {&g};
  const struct group_table groups = {.groups = all, .n = 1};

  g.usage.processes = 1;
  for (size_t i = 0; i < LENGTH(cases); i++) {
    g.cgroup = &cases[i].memory;
    group_growth_note(&groups, &meminfo, (i + 1) * NS);
    if (g.growth->room_bytes != (double)cases[i].room)
      fail_msg("case %zu: %f", i, g.growth->room_bytes);
  }
  group_growth_note(&groups, &full, 98 * NS);
  assert_true(g.growth->room_bytes == 0);
  g.cgroup = NULL;
  group_growth_note(&groups, &meminfo, 99 * NS);
  assert_true(g.growth->room_bytes == 1000.0 * MIB);
  group_growth_note(&groups, &(struct meminfo_sample){0}, 100 * NS);
  assert_true(isnan(g.growth->room_bytes));
}
