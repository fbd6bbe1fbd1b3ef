/* SPDX-License-Identifier: MIT */
/* What the end of a group would free, from amounts that can be added by hand.
 * tests/integration/test_freed.py ends real services. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "measure/freed.h"
#include "member/member.h"
#include "world.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, world_setup, world_teardown, struct world *w)

/* The parent has 1000 kB for itself; a child 500 kB. */
#define PARENT_KB 1000
#define CHILD_KB 500

static struct fake make_parent(void) {
  struct fake f = fake_process(10, "g");

  f.private_kb = PARENT_KB;
  return f;
}

static struct fake make_child(const struct fake *parent, const char *comm) {
  struct fake f = fake_child(parent, comm[0] == 'h' ? 12 : 11);

  f.comm = comm;
  f.private_kb = CHILD_KB;
  return f;
}

static void put_groups(struct world *w) {
  world_group(w, "g", "Comm", "g", NULL, NULL);
  world_group(w, "h", "Comm", "h", NULL, NULL);
}

/* --- memory shared since a fork --- */

/* Three share 3000 kB: each pays 1000. */
static void put_family(struct world *w, const char *last) {
  struct fake parent = make_parent(), second, third;

  parent.shared_kb = parent.cow_kb = 3000;
  parent.sharers = 3;
  second = make_child(&parent, "g");
  third = make_child(&parent, "h");
  third.comm = last;
  world_put(w, parent);
  world_put(w, second);
  world_put(w, third);
  put_groups(w);
  world_run(w, 1);
}

WORLD_TEST(a_whole_fork_family_frees_what_it_shares) {
  put_family(w, "g");
  world_assert(w, "g", "uss=2000k pss=5000k freed=5000k freed_error=0");
}

WORLD_TEST(what_a_relative_elsewhere_may_keep_is_the_error) {
  put_family(w, "h");
  world_assert(w, "g", "uss=1500k pss=3500k freed=1500k freed_error=2000k");
  world_assert(w, "h", "uss=500k pss=1500k freed=500k freed_error=1000k");
}

WORLD_TEST(a_relative_in_no_group_is_elsewhere) {
  put_family(w, "nobody's");
  world_assert(w, "g", "freed=1500k freed_error=2000k");
}

/* --- shmem --- */

/* Parent and child map 2048 kB of shmem, and pay half of it each. maps: the
 * sizes of its mappings in kB, by name. */
struct shared {
  const char *name;
  unsigned kb;
};

static void put_shmem(struct world *w, const struct shared *maps, size_t n) {
  struct fake parent = make_parent(), child;
  struct fake_range ranges[2];
  uint64_t at = MIB;

  parent.shared_kb = 2048;
  parent.shmem_kb = 1024;
  child = make_child(&parent, "g");
  child.shmem_kb = 1024;
  world_put(w, parent);
  world_put(w, child);
  for (size_t i = 0; i < n; i++) {
    ranges[i] = (struct fake_range){.start = at,
                                    .end = at + maps[i].kb * KIB,
                                    .permissions = "rw-s",
                                    .name = maps[i].name};
    at = ranges[i].end;
  }
  for (uint32_t pid = 10; n > 0 && pid <= 11; pid++)
    fake_pages_map(&w->tree, pid, ranges, n);
  put_groups(w);
}

WORLD_TEST(shmem_is_freed_unless_it_is_a_file_that_lasts) {
  static const struct {
    struct shared maps[2];
    unsigned freed_kb, error_kb;
  } cases[] = {
      {{{"/dev/zero (deleted)", 2048}}, 2048, 0},
      {{{"[anon_shmem:buffers]", 2048}}, 2048, 0},
      {{{"/memfd:heap (deleted)", 2048}}, 2048, 0},
      {{{"/dev/shm/a (deleted)", 2048}}, 2048, 0},
      /* They stay, unless the service removes them. */
      {{{"/dev/shm/a", 2048}}, 0, 2048},
      {{{"/SYSV00000000 (deleted)", 2048}}, 0, 2048},
      /* By size three quarters of 1024 kB for each; perhaps none, or all. */
      {{{"/memfd:heap (deleted)", 3072}, {"/tmp/a", 1024}}, 1536, 1536},
      /* The file has 100 kB at most; it may be gone then. */
      {{{"/dev/zero (deleted)", 4896}, {"/tmp/a", 100}}, 2007, 159},
      /* maps cannot be read. */
      {{{NULL, 0}}, 2048, 2048},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct world one;
    size_t n = cases[i].maps[1].name ? 2 : cases[i].maps[0].name ? 1 : 0;
    double freed, error;

    world_make(&one);
    put_shmem(&one, cases[i].maps, n);
    world_run(&one, 1);
    freed = world_kb(&one, "g", "freed") - PARENT_KB - CHILD_KB;
    error = world_kb(&one, "g", "freed_error");
    if (freed < cases[i].freed_kb || freed > cases[i].freed_kb + 1 ||
        error < cases[i].error_kb || error > cases[i].error_kb + 1)
      fail_msg("case %zu: %.1f kB, not %u; error %.1f kB, not %u", i, freed,
               cases[i].freed_kb, error, cases[i].error_kb);
    world_remove(&one);
  }
}

/* A process that pays 100 kB of shmem may map the same memfd: the two would pay
 * 200 kB for what the three share. It cannot map what is anonymous. */
WORLD_TEST(what_others_may_map_as_well_is_the_error) {
  static const struct shared memfd = {"/memfd:heap (deleted)", 2048};
  struct fake other = fake_process(20, "h");

  other.shared_kb = 200;
  other.shmem_kb = 100;
  world_put(w, other);
  put_shmem(w, &memfd, 1);
  world_run(w, 1);
  world_assert(w, "g", "freed=3548k freed_error=200k");
}

WORLD_TEST(shared_anonymous_memory_is_kept_by_relatives_alone) {
  static const struct shared anonymous = {"/dev/zero (deleted)", 2048};
  struct fake parent = make_parent(), relative = fake_child(&parent, 12);
  struct fake other = fake_process(20, "h");

  other.shared_kb = 2000;
  other.shmem_kb = 1000;
  world_put(w, other);
  put_shmem(w, &anonymous, 1);
  world_run(w, 1);
  world_assert(w, "g", "freed=3548k freed_error=0");
  relative.comm = "h";
  relative.private_kb = 1;
  world_put(w, relative);
  world_run(w, 1);
  world_assert(w, "g", "freed=1500k freed_error=2048k");
}

/* 3000 kB of the host's 5048 kB of shmem are mapped by nobody. */
WORLD_TEST(shared_memory_that_nobody_maps_any_more_is_the_error) {
  static const struct shared large = {"/dev/zero (deleted)", 10000};

  put_shmem(w, &large, 1);
  proctree_print(&w->tree, 0, "meminfo",
                 "MemTotal: 1048576 kB\nShmem: 5048 kB\n");
  world_run(w, 1);
  world_assert(w, "g", "freed=3548k freed_error=3000k");
}

static void write_cgroup(struct world *w, const char *file, const char *text) {
  char path[64];

  snprintf(path, sizeof(path), "sys/fs/cgroup/s.service/%s", file);
  proctree_write(&w->tree, path, text, strlen(text));
}

/* The same, but all shmem of its control group is known: 100 kB more. */
WORLD_TEST(a_control_group_shows_its_shared_memory) {
  static const struct shared large = {"/dev/zero (deleted)", 10000};

  world_group(w, "s", "Unit", "s.service", NULL, NULL)->is_view = true;
  put_shmem(w, &large, 1);
  for (uint32_t pid = 10; pid <= 11; pid++)
    proctree_print(&w->tree, pid, "cgroup", "0::/s.service\n");
  write_cgroup(w, "memory.current", "9999999\n");
  write_cgroup(w, "memory.max", "max\n");
  write_cgroup(w, "memory.stat", "file 2199552\nshmem 2199552\n");
  proctree_print(&w->tree, 0, "meminfo",
                 "MemTotal: 1048576 kB\nShmem: 5048 kB\n");
  world_run(w, 1);
  world_assert(w, "s", "freed=3548k freed_error=100k");
}

/* --- the rollup alone --- */

static struct freed freed_alone(const struct rollup *r) {
  struct member member = {.outcome = OUTCOME_READ};
  struct process p = {.member = &member};
  struct cycle cycle = {.now_ns = 1};

  return freed_of(&cycle, &p, r);
}

#define KNOWN                                                                  \
  (1U << ROLLUP_RSS | 1U << ROLLUP_PSS | 1U << ROLLUP_ANONYMOUS |              \
   1U << ROLLUP_PRIVATE_DIRTY)
#define KNOWN_NOW (KNOWN | 1U << ROLLUP_PSS_ANON | 1U << ROLLUP_KSM)

/* Half of 1000 that are shared by two are merged pages. */
TEST(merged_pages_and_unknown_relatives_are_the_error) {
  struct rollup r = {.known = KNOWN_NOW,
                     .bytes = {[ROLLUP_RSS] = 3000,
                               [ROLLUP_PSS] = 2500,
                               [ROLLUP_PSS_ANON] = 2500,
                               [ROLLUP_ANONYMOUS] = 3000,
                               [ROLLUP_PRIVATE_DIRTY] = 2000,
                               [ROLLUP_KSM] = 600}};
  struct freed f = freed_alone(&r);

  assert_int_equal(f.bytes, 2500);
  assert_int_equal(f.unsure, 500);
  r.bytes[ROLLUP_KSM] = 1000;
  r.bytes[ROLLUP_PSS_ANON] = 2900; /* 900 of 1000 by nobody else now */
  r.bytes[ROLLUP_PSS] = 2900;
  f = freed_alone(&r);
  assert_int_equal(f.bytes, 2900);
  assert_int_equal(f.unsure, 100);
}

TEST(what_was_given_back_is_free_already) {
  struct rollup r = {.known = KNOWN_NOW,
                     .bytes = {[ROLLUP_RSS] = 1000,
                               [ROLLUP_PSS] = 1000,
                               [ROLLUP_PSS_ANON] = 1000,
                               [ROLLUP_ANONYMOUS] = 1000,
                               [ROLLUP_PRIVATE_DIRTY] = 1000,
                               [ROLLUP_LAZY_FREE] = 400}};

  assert_int_equal(freed_alone(&r).bytes, 600);
  assert_int_equal(freed_alone(&r).unsure, 0);
}

/* Of 2000 private bytes 1500 may be of files: 500 are free at least. The most
 * that is possible is Pss. */
TEST(before_linux_5_3_all_that_is_possible_is_the_error) {
  struct rollup r = {.known = KNOWN,
                     .bytes = {[ROLLUP_RSS] = 4000,
                               [ROLLUP_PSS] = 3000,
                               [ROLLUP_ANONYMOUS] = 2500,
                               [ROLLUP_PRIVATE_DIRTY] = 2000}};

  assert_int_equal(freed_alone(&r).bytes, 2500);
  assert_int_equal(freed_alone(&r).unsure, 2000);
}
