/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>

#include "estimate/estimator.h"
#include "measure/aggregate.h"
#include "member/member.h"
#include "proc/kernel.h"

#define SECOND UINT64_C(1000000000)
#define FIELDS                                                                 \
  (1U << ROLLUP_RSS | 1U << ROLLUP_PSS | 1U << ROLLUP_PRIVATE_DIRTY)

/* A fixture has a member of 8 MiB in two groups. The second has another member
 * of 4 MiB that shares it with processes outside. */
struct fixture {
  struct cycle cycle;
  struct aggregate a;
  struct group_track alone_track, both_track;
  struct group alone, both, *groups[2];
  struct group_table table;
  struct process p, other, *processes[2];
  struct member member, other_member;
};

static const struct rollup shared_by_four = {
    .known = FIELDS | 1U << ROLLUP_ANONYMOUS,
    .bytes = {[ROLLUP_RSS] = 4096 * KIB,
              [ROLLUP_PSS] = 1024 * KIB,
              [ROLLUP_SHARED_DIRTY] = 4096 * KIB,
              [ROLLUP_ANONYMOUS] = 4096 * KIB}};

static const struct rollup halves = {
    .known = FIELDS | 1U << ROLLUP_ANONYMOUS,
    .bytes = {[ROLLUP_RSS] = 8192 * KIB,
              [ROLLUP_PSS] = 5120 * KIB,
              [ROLLUP_PRIVATE_DIRTY] = 2048 * KIB,
              [ROLLUP_SHARED_DIRTY] = 6144 * KIB}};

/* Makes it be read, so many seconds ago. */
static void have_read(struct fixture *f, struct track *t,
                      const struct rollup *rollup, unsigned seconds) {
  struct cycle then = f->cycle;
  struct observation after = t->now;

  then.now_ns -= seconds * SECOND;
  estimator_correct(&then, t, rollup, &after);
}

static void observe(struct fixture *f, struct process *p) {
  struct observation o = {.resident_pages = (uint32_t)p->statm.resident_pages};

  p->member->outcome = OUTCOME_NOT_CHOSEN;
  estimator_observe(&f->cycle, &p->member->track, &f->alone_track.sharing, &o);
}

static int make(void **state) {
  static struct fixture f;

  f = (struct fixture){
      .cycle = {.now_ns = 1000 * SECOND,
                .page_size = PAGE,
                .kernel_fields = FIELDS},
      .a = {.cycle = &f.cycle, .guess_part = 1},
      .alone = {.track = &f.alone_track},
      .both = {.track = &f.both_track},
      .groups = {&f.alone, &f.both},
      .table = {.groups = f.groups, .n = 2},
      .p = {.state = PROCESS_ALIVE,
            .threads = 3,
            .statm = {.size_pages = 4096, .resident_pages = 2048},
            .groups = f.groups,
            .n_groups = 2,
            .member = &f.member},
      .other = {.state = PROCESS_ALIVE,
                .threads = 1,
                .statm = {.size_pages = 1024, .resident_pages = 1024},
                .groups = f.groups + 1,
                .n_groups = 1,
                .member = &f.other_member},
      .processes = {&f.p, &f.other}};
  sharing_init(&f.alone_track.sharing, 0);
  sharing_init(&f.both_track.sharing, 0);
  observe(&f, &f.p);
  observe(&f, &f.other);
  have_read(&f, &f.other_member.track, &shared_by_four, 0);
  f.other_member.outcome = OUTCOME_READ;
  *state = &f;
  return 0;
}

#define AGGREGATE_TEST(name) TEST_WITH(name, make, NULL, struct fixture *f)

static void make_read(struct fixture *f) {
  have_read(f, &f->member.track, &halves, 0);
  f->member.outcome = OUTCOME_READ;
}

static void make_estimated(struct fixture *f) {
  have_read(f, &f->member.track, &halves, 7);
  estimator_advance(&f->member.track);
}

static void make_guessed(struct fixture *f) { (void)f; }

static void make_unasked(struct fixture *f) {
  f->member.outcome = OUTCOME_UNWANTED;
}

static void make_unreadable(struct fixture *f) {
  have_read(f, &f->member.track, &halves, 7);
  f->member.outcome = OUTCOME_UNREADABLE;
}

static void make_vfork(struct fixture *f) {
  f->p.is_in_parents_mm = true;
  f->member.outcome = OUTCOME_READ; /* in the cycle before */
}

static void make_unknown(struct fixture *f) { f->p.state = PROCESS_UNKNOWN; }

static void make_gone(struct fixture *f) {
  make_read(f);
  f->p.state = PROCESS_GONE;
}

static const struct {
  const char *label;
  void (*make)(struct fixture *f);
  enum estimate_source source;
  uint64_t processes, threads, resident, pss, unreadable, unknown, unasked;
  uint64_t own_pss; /* in the group where another member was read */
} cases[] = {
    {"read", make_read, SOURCE_READ, 1, 3, 8192, 5120, 0, 0, 0, 5120},
    {"estimated", make_estimated, SOURCE_ESTIMATED, 1, 3, 8192, 5120, 0, 0, 0,
     5120},
    {"guessed", make_guessed, SOURCE_GUESSED, 1, 3, 8192, 8192, 0, 0, 0, 5120},
    {"unasked", make_unasked, SOURCE_STATM, 1, 3, 8192, 0, 0, 0, 1, 5120},
    {"unreadable", make_unreadable, SOURCE_UNREADABLE, 1, 3, 8192, 0, 1, 0, 0,
     5120},
    {"vfork", make_vfork, SOURCE_PARENT, 1, 3, 0, 0, 0, 0, 0, 0},
    {"unknown", make_unknown, SOURCE_NONE, 1, 3, 0, 0, 1, 1, 0, 0},
    {"gone", make_gone, SOURCE_NONE, 0, 0, 0, 0, 0, 0, 0, 0},
};
#define CASES LENGTH(cases)

static void add(struct fixture *f) {
  const struct process_table t = {.processes = f->processes, .n = 2};

  aggregate_all(&f->a, &t, &f->table);
}

static void check_groups(const struct fixture *f, size_t i) {
  const struct usage *u = &f->alone.usage;

  if (u->processes != cases[i].processes || u->threads != cases[i].threads ||
      u->resident != cases[i].resident * KIB ||
      u->rollup.bytes[ROLLUP_PSS] != cases[i].pss * KIB ||
      u->unreadable != cases[i].unreadable || u->unknown != cases[i].unknown ||
      u->unasked != cases[i].unasked)
    fail_msg("%s", cases[i].label);
  assert_int_equal(f->both.usage.processes, cases[i].processes + 1);
  assert_int_equal(f->both.usage.rollup.bytes[ROLLUP_PSS],
                   (cases[i].own_pss + 1024) * KIB);
  assert_int_equal(usage_is_known(&f->both.usage), cases[i].unknown == 0);
  assert_int_equal(f->alone_track.tolerated_bytes, cases[i].pss * KIB / 200);
}

/* A process that is counted elsewhere has no values of its own. */
static void check_itself(const struct fixture *f, size_t i) {
  bool is_elsewhere =
      cases[i].source == SOURCE_NONE || cases[i].source == SOURCE_PARENT;
  struct estimate est;
  struct usage u;

  aggregate_estimate(&f->a, &f->p, &est);
  assert_int_equal(est.source, cases[i].source);
  aggregate_one(&f->a, &f->p, &est, &u);
  assert_int_equal(u.rollup.bytes[ROLLUP_PSS], cases[i].own_pss * KIB);
  assert_int_equal(usage_is_known(&u), !is_elsewhere);
  assert_int_equal(u.resident, is_elsewhere ? 0 : cases[i].resident * KIB);
  if (is_elsewhere)
    assert_true(u.unknown == 1 && u.unreadable == 1);
}

/* The second group has all processes, and guesses as the host does. */
static void check_host(const struct fixture *f, size_t i) {
  const struct host_processes *host = &f->a.host;

  if (host->pss != f->both.usage.rollup.bytes[ROLLUP_PSS] ||
      host->outside_resident != 0 ||
      host->has_unknown != (f->p.state == PROCESS_UNKNOWN) ||
      error_of_sum(&host->pss_error) != error_of_sum(&f->both.usage.pss_error))
    fail_msg("%s: the host has %ju", cases[i].label, (uintmax_t)host->pss);
}

TEST(each_process_adds_once_to_each_group_to_itself_and_to_the_host) {
  for (size_t i = 0; i < CASES; i++) {
    void *state;

    make(&state);
    cases[i].make(state);
    add(state);
    check_groups(state, i);
    check_itself(state, i);
    check_host(state, i);
  }
}

AGGREGATE_TEST(an_estimate_has_its_age_and_its_error) {
  struct estimate est;

  make_estimated(f);
  add(f);
  aggregate_estimate(&f->a, &f->p, &est);
  assert_int_equal(est.age_ns, 7 * SECOND);
  assert_true(error_bytes(est.error.pss) > 0 &&
              error_bytes(est.error.pss) < 5120 * KIB);
  assert_int_equal(f->alone.usage.oldest_age_ns, 7 * SECOND);
  assert_int_equal(usage_pss_error(&f->alone.usage),
                   (uint64_t)error_bytes(est.error.pss));
  assert_int_equal(f->alone.usage.fresh_pss, 0);
}

static double part_of_group(const struct group *g, enum cause cause) {
  double parts[ALL_CAUSES];

  usage_pss_parts(&g->usage, g->pss_causes, parts);
  return parts[cause];
}

/* In each group that it is in, and none of a member that was read. */
AGGREGATE_TEST(a_group_has_its_error_by_cause) {
  make_estimated(f);
  add(f);
  assert_true(part_of_group(&f->alone, CAUSE_TIME) > 0);
  assert_true(part_of_group(&f->alone, CAUSE_TIME) ==
              part_of_group(&f->both, CAUSE_TIME));
  assert_int_equal((uint64_t)part_of_group(&f->both, CAUSE_TIME),
                   usage_pss_error(&f->both.usage));
}

AGGREGATE_TEST(the_error_of_a_guess_is_a_cause_of_its_own) {
  add(f);
  assert_int_equal((uint64_t)part_of_group(&f->alone, CAUSE_GUESS), 8192 * KIB);
  assert_int_equal((uint64_t)part_of_group(&f->both, CAUSE_GUESS), 5120 * KIB);
  group_table_begin(&f->table, 0);
  assert_true(part_of_group(&f->both, CAUSE_GUESS) == 0);
  assert_true(f->both.pss_causes[CAUSE_GUESS].common == 0);
}

/* Where no member can be read, nothing is known of how they share. */
AGGREGATE_TEST(unreadable_member_is_guessed_from_readable_ones) {
  struct estimate est;

  make_unreadable(f);
  add(f);
  assert_false(usage_is_known(&f->alone.usage));
  assert_int_equal(f->alone.usage.rolled_up, 0);
  assert_true(usage_is_known(&f->both.usage));
  assert_int_equal(usage_pss_error(&f->both.usage), 5120 * KIB);
  assert_int_equal(usage_uss_error(&f->both.usage), 4096 * KIB);
  assert_int_equal(f->both.usage.unreadable, 1);
  assert_int_equal(f->both.usage.rollup.bytes[ROLLUP_RSS], 12288 * KIB);
  /* A third of resident memory was read. */
  assert_true((int)usage_coverage_percent(&f->both.usage) == 33);
  aggregate_estimate(&f->a, &f->p, &est);
  assert_int_equal(est.source, SOURCE_UNREADABLE);
  /* It was guessed as 5 MiB of 8. */
  assert_true(error_bytes(est.error.pss) == 5120 * (double)KIB);
}

static void begin_cycle(struct fixture *f) {
  f->alone.usage = f->both.usage = (struct usage){.processes = 0};
}

/* The member that was read has ended, or is refused by now. */
AGGREGATE_TEST(a_group_of_which_a_member_was_once_read_is_guessed) {
  make_read(f);
  add(f);
  for (int i = 0; i < 2; i++) {
    begin_cycle(f);
    make_unreadable(f);
    f->other.state = PROCESS_GONE;
    add(f);
    assert_true(usage_is_known(&f->alone.usage));
    assert_true(usage_is_known(&f->both.usage));
    assert_int_equal(f->both.usage.rollup.bytes[ROLLUP_PSS], 8192 * KIB);
    assert_int_equal(usage_pss_error(&f->both.usage), 8192 * KIB);
    assert_true(usage_coverage_percent(&f->both.usage) == 0);
    assert_true(isnan(usage_age_seconds(&f->both.usage)));
  }
  begin_cycle(f);
  f->p.state = PROCESS_UNKNOWN;
  add(f);
  assert_false(usage_is_known(&f->both.usage));
}

/* The counters of 6.8 are off by 128 pages at most on four CPUs. */
AGGREGATE_TEST(a_guess_can_have_more_than_statm_shows) {
  struct estimate exact, est;

  f->p.statm.shared_pages = f->p.statm.resident_pages;
  add(f);
  aggregate_estimate(&f->a, &f->p, &exact);
  assert_int_equal(exact.rollup.bytes[ROLLUP_PSS], 2 * MIB);
  assert_true(error_bytes(exact.error.pss) == 6 * (double)MIB);
  precision_init(&f->cycle.precision, 6, 8, 4);
  aggregate_estimate(&f->a, &f->p, &est);
  assert_true(error_bytes(est.error.pss) == 6.5 * (double)MIB);
}

/* The host has 6 MiB at most, as a hundredth may have moved, and the other
 * member one of these. Each counts once, not once in each of its two groups. */
AGGREGATE_TEST(guesses_are_limited_by_the_remaining_memory_of_the_host) {
  struct process third = f->p;
  struct member member = {.outcome = OUTCOME_UNREADABLE};
  struct process *processes[] = {&f->p, &f->other, &third};
  const struct process_table t = {.processes = processes, .n = 3};
  struct estimate est;

  third.member = &member;
  make_unreadable(f);
  f->a.host_bytes = 6 * (double)MIB / (1 + HOST_MOVES);
  aggregate_all(&f->a, &t, &f->table);
  assert_in_range(f->both.usage.rollup.bytes[ROLLUP_PSS], 6 * MIB - 2, 6 * MIB);
  assert_int_equal(f->both.usage.rollup.bytes[ROLLUP_RSS], 20 * MIB);
  aggregate_estimate(&f->a, &f->p, &est);
  assert_int_equal(est.rollup.bytes[ROLLUP_PSS], 5 * MIB / 2);
  assert_int_equal(rollup_uss(&est.rollup), 2 * MIB);
  /* It may have all that is resident, but both together no more than is left.
   */
  assert_true(error_bytes(est.error.pss) == 5.5 * (double)MIB);
  assert_int_equal(usage_pss_error(&f->both.usage), 5 * MIB);
  assert_int_equal(usage_uss_error(&f->both.usage), 5 * MIB);
  assert_int_equal(f->both.usage.freed.unsure,
                   f->both_track.measured.freed.unsure + 5 * MIB);
  assert_true(part_of_group(&f->both, CAUSE_GUESS) == 5 * (double)MIB);
}

/* The other member has 24 MiB more than before meminfo was read. */
AGGREGATE_TEST(guesses_survive_small_changes_of_the_hosts_memory) {
  struct rollup more = shared_by_four;

  more.bytes[ROLLUP_PSS] = 824 * MIB;
  more.bytes[ROLLUP_RSS] = 828 * MIB;
  have_read(f, &f->other_member.track, &more, 0);
  make_unreadable(f);
  f->a.host_bytes = 800 * (double)MIB;
  add(f);
  assert_in_range(f->both.usage.rollup.bytes[ROLLUP_PSS], 828 * MIB, 832 * MIB);
  assert_in_range(usage_pss_error(&f->both.usage), 3 * MIB, 8 * MIB);
}

AGGREGATE_TEST(guesses_have_the_room_that_estimates_may_have_taken) {
  uint64_t estimated;

  make_unreadable(f);
  have_read(f, &f->other_member.track, &shared_by_four, 7);
  f->other_member.outcome = OUTCOME_NOT_CHOSEN;
  estimator_advance(&f->other_member.track);
  f->a.host_bytes = KIB;
  add(f);
  estimated = error_of_sum(&f->both_track.measured.pss_error);
  assert_true(estimated > 0);
  assert_in_range(usage_pss_error(&f->both.usage), 2 * estimated,
                  2 * estimated + KIB);
}

static const struct {
  const char *label;
  enum outcome outcome;
  /* Without a baseline, and with one. SOURCE_NONE: it always has one. */
  enum estimate_source first, later;
  enum deferral deferral, if_hung;
} outcomes[] = {
    {"unwanted", OUTCOME_UNWANTED, SOURCE_STATM, SOURCE_STATM, DEFERRED_NOT,
     DEFERRED_NOT},
    {"unreadable", OUTCOME_UNREADABLE, SOURCE_UNREADABLE, SOURCE_UNREADABLE,
     DEFERRED_NOT, DEFERRED_NOT},
    {"not chosen", OUTCOME_NOT_CHOSEN, SOURCE_GUESSED, SOURCE_ESTIMATED,
     DEFERRED_NOT, DEFERRED_HUNG},
    {"read", OUTCOME_READ, SOURCE_NONE, SOURCE_READ, DEFERRED_NOT,
     DEFERRED_HUNG},
    {"sampled", OUTCOME_SAMPLED, SOURCE_NONE, SOURCE_SAMPLED, DEFERRED_NOT,
     DEFERRED_HUNG},
    {"no time", OUTCOME_NO_TIME, SOURCE_GUESSED, SOURCE_ESTIMATED,
     DEFERRED_BUDGET, DEFERRED_HUNG},
    {"too long", OUTCOME_TOO_LONG, SOURCE_GUESSED, SOURCE_ESTIMATED,
     DEFERRED_MAX_LOCK_HOLD, DEFERRED_HUNG},
};

static void check_outcome(struct fixture *f, size_t i,
                          enum estimate_source source) {
  struct estimate now, hung;

  f->p.hung.until_ns = 0;
  aggregate_estimate(&f->a, &f->p, &now);
  f->p.hung.until_ns = f->cycle.now_ns + 1;
  aggregate_estimate(&f->a, &f->p, &hung);
  if (now.source != source || hung.source != source ||
      now.deferral != outcomes[i].deferral ||
      hung.deferral != outcomes[i].if_hung)
    fail_msg("%s: source %d, deferral %d or %d", outcomes[i].label, now.source,
             now.deferral, hung.deferral);
}

AGGREGATE_TEST(an_outcome_decides_the_source_and_the_deferral) {
  for (size_t i = 0; i < LENGTH(outcomes); i++) {
    f->member.outcome = outcomes[i].outcome;
    if (outcomes[i].first != SOURCE_NONE)
      check_outcome(f, i, outcomes[i].first);
  }
  have_read(f, &f->member.track, &halves, 7);
  for (size_t i = 0; i < LENGTH(outcomes); i++) {
    f->member.outcome = outcomes[i].outcome;
    check_outcome(f, i, outcomes[i].later);
  }
}

/* A relative that ended later in the cycle pays nothing any more. */
AGGREGATE_TEST(a_reading_is_an_estimate_once_a_relative_has_ended) {
  struct estimate est;

  make_read(f);
  f->member.track.baseline.relatives = 2;
  aggregate_estimate(&f->a, &f->p, &est);
  assert_int_equal(est.source, SOURCE_ESTIMATED);
  assert_int_equal(est.age_ns, 0);
}

AGGREGATE_TEST(memory_without_a_reading_counts_as_outside) {
  static const struct {
    const char *label;
    enum process_state state;
    bool is_in_a_group, is_in_parents_mm;
    uint64_t resident_kib;
    bool is_unknown;
  } rows[] = {
      {"in no group", PROCESS_ALIVE, false, false, 8192, false},
      {"in its parent's memory", PROCESS_ALIVE, false, true, 0, false},
      {"ended", PROCESS_GONE, false, false, 0, false},
      {"kernel thread", PROCESS_KERNEL, false, false, 0, false},
      {"not to be read at all", PROCESS_UNKNOWN, false, false, 0, true},
      {"of a group of which nothing was read", PROCESS_ALIVE, true, false, 8192,
       false},
  };

  (void)f;
  for (size_t i = 0; i < LENGTH(rows); i++) {
    void *state;
    struct fixture *one;

    make(&state);
    one = state;
    make_unreadable(one);
    one->p.state = rows[i].state;
    one->p.n_groups = rows[i].is_in_a_group;
    one->p.is_in_parents_mm = rows[i].is_in_parents_mm;
    add(one);
    if (one->a.host.outside_resident != rows[i].resident_kib * KIB ||
        one->a.host.has_unknown != rows[i].is_unknown)
      fail_msg("%s: %ju", rows[i].label,
               (uintmax_t)one->a.host.outside_resident);
    assert_int_equal(one->a.host.pss, 1024 * KIB);
  }
}

/* A process that runs in its parent's memory has stacks of its own, and no
 * tables. */
AGGREGATE_TEST(page_tables_stacks_and_uptime_are_of_each_member) {
  const struct usage *u = &f->both.usage;
  struct estimate est;
  struct usage one;

  f->cycle.tick_ns = SECOND / 100;
  f->cycle.uptime_ns = 900 * SECOND;
  f->p.starttime_ticks = 20000;
  f->other.starttime_ticks = 30000;
  f->member.tables = (struct page_tables){.kib = 60, .resident_pages = 2048};
  f->other_member.tables = f->member.tables;
  make_read(f);
  add(f);
  assert_int_equal(u->page_tables, 2 * (60 * KIB + PAGE));
  assert_int_equal(u->kernel_stack, 4 * kernel_stack_size(PAGE));
  assert_true(u->uptime_ns == 700 * SECOND);
  f->p.is_in_parents_mm = true;
  f->both.usage = (struct usage){.processes = 0};
  add(f);
  assert_int_equal(u->page_tables, 60 * KIB + PAGE);
  assert_int_equal(u->kernel_stack, 4 * kernel_stack_size(PAGE));
  aggregate_estimate(&f->a, &f->other, &est);
  aggregate_one(&f->a, &f->other, &est, &one);
  assert_int_equal(one.page_tables, 60 * KIB + PAGE);
  assert_int_equal(one.kernel_stack, kernel_stack_size(PAGE));
  assert_true(one.uptime_ns == 600 * SECOND);
}
