/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <inttypes.h>

#include "estimate/track.h"

/* --- kinship --- */

/* All that is possible; the rest is a defect of a caller, and asserted. */
static const struct {
  const char *label;
  enum kinship before;
  enum fork_role role_before;
  enum kinship_event event;
  enum kinship after;
  enum fork_role role;
} transitions[] = {
    {"no relative is found", KINSHIP_UNDECIDED, ROLE_NONE, KINSHIP_NOT_FOUND,
     KINSHIP_ALONE, ROLE_NONE},
    {"founds before it is decided", KINSHIP_UNDECIDED, ROLE_NONE,
     KINSHIP_FOUNDS, KINSHIP_HEAD, ROLE_NONE},
    {"founds", KINSHIP_ALONE, ROLE_NONE, KINSHIP_FOUNDS, KINSHIP_HEAD,
     ROLE_NONE},
    {"joins", KINSHIP_ALONE, ROLE_NONE, KINSHIP_JOINS, KINSHIP_CHILD,
     ROLE_NEWBORN},
    {"a head forks", KINSHIP_HEAD, ROLE_NONE, KINSHIP_FORKED, KINSHIP_HEAD,
     ROLE_PARENT},
    {"a child forks", KINSHIP_CHILD, ROLE_NONE, KINSHIP_FORKED, KINSHIP_CHILD,
     ROLE_PARENT},
    {"a newborn forks", KINSHIP_CHILD, ROLE_NEWBORN, KINSHIP_FORKED,
     KINSHIP_CHILD, ROLE_NEWBORN},
    {"a newborn succeeds the head", KINSHIP_CHILD, ROLE_NEWBORN,
     KINSHIP_SUCCEEDS, KINSHIP_HEAD, ROLE_NEWBORN},
    {"strangers of a process alone", KINSHIP_ALONE, ROLE_NONE, KINSHIP_DOUBTED,
     KINSHIP_UNDECIDED, ROLE_NONE},
    {"strangers of a head", KINSHIP_HEAD, ROLE_NONE, KINSHIP_DOUBTED,
     KINSHIP_HEAD, ROLE_NONE},
    {"strangers of a child", KINSHIP_CHILD, ROLE_NONE, KINSHIP_DOUBTED,
     KINSHIP_CHILD, ROLE_NONE},
    {"a process alone execs", KINSHIP_ALONE, ROLE_NONE, KINSHIP_LEAVES,
     KINSHIP_UNDECIDED, ROLE_NONE},
    {"a head leaves", KINSHIP_HEAD, ROLE_PARENT, KINSHIP_LEAVES,
     KINSHIP_UNDECIDED, ROLE_PARENT},
    {"a child leaves", KINSHIP_CHILD, ROLE_NONE, KINSHIP_LEAVES,
     KINSHIP_UNDECIDED, ROLE_NONE},
    {"the fork of a newborn is over", KINSHIP_CHILD, ROLE_NEWBORN,
     KINSHIP_FORK_OVER, KINSHIP_CHILD, ROLE_NONE},
    {"the fork of a parent is over", KINSHIP_HEAD, ROLE_PARENT,
     KINSHIP_FORK_OVER, KINSHIP_HEAD, ROLE_NONE},
};

static bool has_family(enum kinship k) {
  return k == KINSHIP_HEAD || k == KINSHIP_CHILD;
}

TEST(kinship_changes_as_its_table_says) {
  for (size_t i = 0; i < LENGTH(transitions); i++) {
    /* Another member keeps the family. */
    struct fork_family family = {.members = 2,
                                 .has_lost_head =
                                     transitions[i].event == KINSHIP_SUCCEEDS};
    struct track t = {.kinship = transitions[i].before,
                      .role = transitions[i].role_before};

    if (has_family(t.kinship))
      t.family = &family;
    kinship_apply(&t, transitions[i].event, &family);
    if (t.kinship != transitions[i].after || t.role != transitions[i].role ||
        (t.family != NULL) != has_family(t.kinship))
      fail_msg("%s: kinship %d, role %d", transitions[i].label, t.kinship,
               t.role);
  }
}

/* Its group counts the family by its head, so another one has to succeed. */
TEST(a_family_has_lost_its_head_when_the_head_leaves) {
  for (int is_head = 0; is_head < 2; is_head++) {
    struct fork_family family = {.members = 2, .changes = 7};
    struct track t = {.family = &family,
                      .kinship = is_head ? KINSHIP_HEAD : KINSHIP_CHILD,
                      .family_pages = 5};

    fork_family_leave(&t);
    assert_int_equal(family.has_lost_head, is_head);
    assert_int_equal(family.members, 1);
    assert_int_equal(family.changes, 8);
    assert_int_equal(t.family_pages, 0);
  }
}

/* What they told each other before does not concern a newcomer. */
TEST(a_newcomer_starts_with_the_counters_of_its_family) {
  struct fork_family family = {.members = 1, .told = {.freed = 3}};
  struct track parent = {.family = &family, .kinship = KINSHIP_HEAD};
  struct track child = {.kinship = KINSHIP_ALONE};

  assert_int_equal(fork_family_join(&child, &parent), 0);
  assert_int_equal(child.told.freed, 3);
  assert_int_equal(fork_family_size(&child), 2);
  assert_int_equal(parent.role, ROLE_PARENT);
}

/* --- changes --- */

/* 4 MiB came of files, and 6 MiB of anonymous memory, 2 of them from swap. */
TEST(a_change_is_what_statm_and_swap_differ_by) {
  const struct cycle cycle = {.page_size = 4096};
  struct track t = {
      .now = {.resident_pages = 5000, .shared_pages = 2048, .vm_swap_kb = 1024},
      .baseline = {.at_ns = 1,
                   .at = {.resident_pages = 5000 - 2560,
                          .shared_pages = 1024,
                          .vm_swap_kb = 3072}}};

  track_find_change(&cycle, &t);
  assert_int_equal(t.change.shared, 4 * MIB);
  assert_int_equal(t.change.anon, 6 * MIB);
  assert_int_equal(t.change.swap, -2 * (int64_t)MIB);
  assert_int_equal(t.change.returned, 2 * MIB);
  assert_int_equal(t.change.unmapped + t.change.freed, 0);
}

/* Of 4 MiB, 2 are shared with another. What goes is private first; of the rest
 * each page is another's then. What was swapped out is not gone. */
TEST(what_goes_beyond_private_memory_was_shared) {
  static const struct {
    int32_t pages, swap_kb;
    uint64_t unmapped, freed;
  } rows[] = {{512, 0, 0, 0},      {0, 0, 0, 0},         {-256, 0, 0, MIB},
              {-768, 0, MIB, MIB}, {-768, 2048, 0, MIB}, {-1024, 0, 2 * MIB, 0},
              {-256, 1024, 0, 0}};
  const struct cycle cycle = {.page_size = 4096};
  struct track t = {.baseline = {.at_ns = 1, .relatives = 2}};

  t.baseline.rollup =
      (struct rollup){.known = UINT32_MAX,
                      .bytes = {[ROLLUP_RSS] = 4 * MIB,
                                [ROLLUP_ANONYMOUS] = 4 * MIB,
                                [ROLLUP_PSS] = 3 * MIB,
                                [ROLLUP_PSS_ANON] = 3 * MIB,
                                [ROLLUP_PRIVATE_DIRTY] = 2 * MIB,
                                [ROLLUP_SHARED_DIRTY] = 2 * MIB}};
  t.baseline.at.resident_pages = 1024;
  for (size_t i = 0; i < LENGTH(rows); i++) {
    t.now.resident_pages = 1024 + (uint32_t)rows[i].pages;
    t.now.vm_swap_kb = (uint32_t)rows[i].swap_kb;
    track_find_change(&cycle, &t);
    if (t.change.unmapped != rows[i].unmapped ||
        t.change.freed != rows[i].freed)
      fail_msg("row %zu: %" PRIu64 " and %" PRIu64, i, t.change.unmapped,
               t.change.freed);
  }
}
