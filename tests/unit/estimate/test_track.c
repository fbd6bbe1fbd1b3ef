/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <inttypes.h>
#include <math.h>

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

/* It shared memory when it was read, which only now is seen. */
TEST(a_reading_before_the_fork_was_seen_is_of_a_relative) {
  struct fork_family family = {.members = 2};
  struct track parent = {.family = &family, .kinship = KINSHIP_HEAD};
  struct track child = {.kinship = KINSHIP_ALONE, .baseline.at_ns = 1};

  assert_int_equal(fork_family_join(&child, &parent), 0);
  assert_int_equal(child.baseline.relatives, 3);
  assert_int_equal(family.changes, 1);
}

TEST(a_family_begins_with_what_its_founder_counts) {
  struct track parent = {.kinship = KINSHIP_ALONE, .group_pages = 100};
  struct track child = {.kinship = KINSHIP_ALONE, .family_pages = 9};

  assert_int_equal(fork_family_join(&child, &parent), 0);
  assert_int_equal(parent.family->members, 2);
  assert_int_equal(parent.family_pages, 100);
  assert_true(parent.family->sharing.now == 100.0);
  assert_int_equal(child.family_pages, 0);
  assert_true(parent.family->cow_breaks == 1.0);
  assert_true(parent.family->newborns.breaks < 0);
  assert_true(parent.family->newborns.file_share < 0);
  fork_family_leave(&parent);
  fork_family_leave(&child);
}

/* Its size at a baseline has two bytes. */
TEST(size_of_a_family_has_a_limit) {
  struct fork_family family = {.members = UINT16_MAX - 1};
  const struct track t = {.family = &family};

  assert_int_equal(fork_family_size(&t), UINT16_MAX - 1);
  family.members = 3 * UINT16_MAX;
  assert_int_equal(fork_family_size(&t), UINT16_MAX);
}

/* --- sets --- */

static void assert_near(double is, double expected) {
  if (!(fabs(is - expected) < 1e-9))
    fail_msg("%.9f and not %.9f", is, expected);
}

static void assert_set(const struct sharing *s, double before, double left,
                       double now, double moved) {
  assert_near(s->before, before);
  assert_near(s->left, left);
  assert_near(s->now, now);
  assert_near(s->moved, moved);
}

/* 100 pages were mapped 100 times, of which 20 were of members that have gone;
 * now 160 times, with 10 that members have mapped themselves. */
TEST(share_of_a_page_goes_by_how_often_it_is_mapped) {
  struct sharing s = {.before = 100, .left = 80, .now = 160, .moved = 10};
  struct sharing_since since = SHARING_JUST_READ;

  sharing_advance(&s, &since);
  assert_near(since.share, 100 / 160.0);
  assert_near(since.moved_pages, 30);
  assert_near(since.moved, 30 / 160.0);
  s = (struct sharing){.before = 160, .left = 160, .now = 40, .moved = 120};
  sharing_advance(&s, &since);
  assert_near(since.share, 100 / 40.0);
  assert_near(since.moved_pages, 150);
  assert_near(since.moved, 30 / 160.0 + 120 / 160.0);
  sharing_advance(&s, &since);
  assert_near(since.moved, 1);
  /* Nothing is known of a set that had no page, or has none. */
  s = (struct sharing){.before = 0, .now = 5, .moved = 5};
  assert_near(sharing_change(&s), 1);
  s = (struct sharing){.before = 5, .now = 0};
  assert_near(sharing_change(&s), 1);
}

/* Three are in a group; the second comes, the third goes. */
TEST(a_set_counts_the_pages_of_its_members_once_in_a_cycle) {
  struct cycle cycle = {.now_ns = 1, .page_size = 4096};
  struct sharing set = {0};
  struct track t[3] = {0};

  for (int i = 0; i < 3; i++)
    t[i] = (struct track){.group_set = &set, .kinship = KINSHIP_ALONE};
  t[0].now.shared_pages = 100;
  t[2].now.shared_pages = 30;
  track_count(&cycle, &t[0]);
  track_count(&cycle, &t[2]);
  assert_set(&set, 0, 0, 130, 130);
  cycle.now_ns = 2;
  t[0].now.shared_pages = 90;
  t[1].now.shared_pages = 50;
  track_count(&cycle, &t[0]);
  track_count(&cycle, &t[1]);
  assert_set(&set, 130, 100, 140, 10 + 50);
  assert_int_equal(t[0].group_pages, 90);
  /* A reading shows that 25 of its pages are mapped by no other. */
  t[1].baseline =
      (struct baseline){.at_ns = 2,
                        .rollup = {.known = UINT32_MAX,
                                   .bytes = {[ROLLUP_PRIVATE_CLEAN] = 25 * PAGE,
                                             [ROLLUP_PSS_FILE] = 30 * PAGE,
                                             [ROLLUP_PSS] = 30 * PAGE,
                                             [ROLLUP_RSS] = 50 * PAGE}}};
  track_correct_count(&cycle, &t[1], 50);
  assert_set(&set, 130, 100, 115, 60);
  cycle.now_ns = 3;
  track_count(&cycle, &t[0]);
  track_count(&cycle, &t[1]);
  assert_set(&set, 115, 115, 115, 0);
}

/* 10 pages of the parent and 20 and 30 of children are in the set of the
 * family, and those of the parent in that of the group. */
TEST(a_family_counts_in_its_group_by_its_head) {
  struct cycle cycle = {.now_ns = 1, .page_size = 4096};
  struct sharing set = {0};
  struct fork_family family = {.members = 3};
  struct track t[3] = {0};

  for (unsigned i = 0; i < 3; i++) {
    t[i] = (struct track){.group_set = &set,
                          .family = &family,
                          .kinship = i ? KINSHIP_CHILD : KINSHIP_HEAD,
                          .now.shared_pages = 10 * (i + 1)};
    track_count(&cycle, &t[i]);
  }
  assert_set(&set, 0, 0, 10, 10);
  assert_set(&family.sharing, 0, 0, 60, 60);
  assert_int_equal(t[1].group_pages, 0);
  track_correct_count(&cycle, &t[1], 25);
  assert_set(&set, 0, 0, 10, 10);
  assert_near(family.sharing.now, 65);
  /* The first child that is counted takes its place, with what it had. */
  fork_family_leave(&t[0]);
  cycle.now_ns = 2;
  track_count(&cycle, &t[1]);
  track_count(&cycle, &t[2]);
  assert_set(&set, 10 + 25, 25, 20, 5);
  assert_int_equal(t[1].kinship, KINSHIP_HEAD);
  assert_int_equal(t[2].kinship, KINSHIP_CHILD);
  assert_int_equal(t[1].group_pages, 20);
}

/* The one that is left goes on with its group, once those that went are not
 * counted any more. */
TEST(a_process_shares_with_its_family_while_it_has_one) {
  struct sharing set = {0};
  struct fork_family family = {.members = 2};
  struct track t = {.group_set = &set};

  assert_ptr_equal(track_set(&t), &set);
  assert_ptr_equal(track_audit(&t), &set.audit);
  t.family = &family;
  assert_ptr_equal(track_set(&t), &family.sharing);
  assert_ptr_equal(track_audit(&t), &family.sharing.audit);
  family.members = 1;
  assert_ptr_equal(track_set(&t), &set);
  family.sharing.before = 1;
  assert_ptr_equal(track_set(&t), &family.sharing);
}

/* --- changes --- */

/* From 256 KiB on that it shares, or while it is in a fork. */
TEST(faults_are_asked_where_they_can_copy_memory) {
  struct track t = {.baseline.at_ns = 1};

  t.baseline.rollup = (struct rollup){
      .known = UINT32_MAX,
      .bytes = {[ROLLUP_ANONYMOUS] = MIB,
                [ROLLUP_PSS_ANON] = MIB - ROLLUP_COW_LEAST_BYTES}};
  assert_true(track_wants_faults(&t));
  t.baseline.rollup.bytes[ROLLUP_PSS_ANON]++;
  assert_false(track_wants_faults(&t));
  t.role = ROLE_PARENT;
  assert_true(track_wants_faults(&t));
  t.role = ROLE_NONE;
  t.baseline.rollup.bytes[ROLLUP_PSS_ANON] = 0;
  t.baseline.at_ns = 0;
  assert_false(track_wants_faults(&t));
}

/* And a bound that was higher stays until the next reading. */
TEST(relatives_move_by_those_that_came_or_went) {
  static const struct {
    uint16_t before;
    uint32_t now;
    double at_least, moved;
  } rows[] = {{2, 4, 0, 0.5}, {4, 2, 0, 0.5},    {4, 4, 0, 0},
              {0, 4, 0, 0},   {3, 4, 0.2, 0.25}, {3, 4, 0.5, 0.5}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct fork_family family = {.members = rows[i].now};
    const struct track t = {.family = &family,
                            .baseline.relatives = rows[i].before,
                            .relatives_moved = rows[i].at_least};

    assert_near(track_relatives_moved(&t), rows[i].moved);
  }
}

/* A fault maps 64 KiB of a file, or a page that is as large. */
TEST(faults_that_mapped_files_have_copied_nothing) {
  static const struct {
    uint64_t page_size;
    uint32_t faults, shared_pages;
    uint64_t pages;
  } rows[] = {{4096, 100, 0, 100},   {4096, 100, 320, 80}, {4096, 10, 320, 0},
              {16384, 100, 320, 20}, {65536, 100, 30, 70}, {262144, 9, 3, 6}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    const struct cycle cycle = {.page_size = rows[i].page_size};
    const struct observation at = {.minor_faults = rows[i].faults,
                                   .shared_pages = rows[i].shared_pages};

    assert_int_equal(track_faulted_bytes(&cycle, &at),
                     rows[i].pages * rows[i].page_size);
  }
}

/* At most what it shares. The counter goes round. */
TEST(what_relatives_copied_is_shared_no_more) {
  struct fork_family family = {.members = 2};
  struct track t = {.family = &family, .told.cow_broken = UINT64_MAX - 1023};

  t.baseline.rollup = (struct rollup){
      .known = UINT32_MAX,
      .bytes = {[ROLLUP_ANONYMOUS] = 3 * MIB, [ROLLUP_PSS_ANON] = 2 * MIB}};
  family.told.cow_broken = 1024 * 999;
  assert_int_equal(track_broken_by_relatives(&t), 1000);
  family.told.cow_broken = 1024 * 5 * MIB;
  assert_int_equal(track_broken_by_relatives(&t), MIB);
  t.family = NULL;
  assert_int_equal(track_broken_by_relatives(&t), 0);
}

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
