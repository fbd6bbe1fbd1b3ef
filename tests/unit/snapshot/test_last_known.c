/* The PSS of an hour ago. */
#include "test.h"

#include "snapshot/last_known.h"

#define MINUTE (60 * NS_PER_S)
#define KERNEL (1U << ROLLUP_PSS)

/* A group whose members were all read. */
struct fixture {
  struct group group;
  struct group *groups[1];
  struct group_table table;
  struct process_table processes;
  struct settings settings;
  struct cycle cycle;
  struct last_known_table known;
};

static void begin(struct fixture *f) {
  *f = (struct fixture){.table = {.n = 1}, .cycle = {.kernel_fields = KERNEL}};
  f->groups[0] = &f->group;
  f->table.groups = f->groups;
  f->group.usage = (struct usage){
      .processes = 1, .rolled_up = 1, .rollup = {.known = KERNEL}};
}

static void done(struct fixture *f) { last_known_done(&f->known); }

TEST_OBJECT(struct fixture, begin, done)

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

static struct pss_change note_at(struct fixture *f, uint64_t now_ns,
                                 uint64_t pss) {
  const struct scene scene = {.settings = &f->settings,
                              .processes = &f->processes,
                              .groups = &f->table,
                              .cycle = &f->cycle};

  f->group.usage.rollup.bytes[ROLLUP_PSS] = pss;
  f->cycle.now_ns = now_ns;
  last_known_note(&f->known, &scene);
  return f->group.last ? f->group.last->state.summary.change
                       : (struct pss_change){0};
}

/* An interval at that minute. */
static void assert_change(struct fixture *f, uint64_t minute, uint64_t pss,
                          int64_t bytes, uint64_t age_minutes) {
  struct pss_change g = note_at(f, minute * MINUTE, pss);

  assert_int_equal(g.bytes, bytes);
  assert_int_equal(g.age_ns, age_minutes * MINUTE);
}

FIXTURE_TEST(change_counts_from_the_first_sample) {
  assert_change(f, 100, 5000, 0, 0);
  assert_change(f, 103, 5700, 700, 3);
  assert_change(f, 103, 4000, -1000, 3);
}

FIXTURE_TEST(change_counts_from_an_hour_ago) {
  for (uint64_t minute = 100; minute < 160; minute++)
    assert_change(f, minute, 1000 * minute, 1000 * ((int64_t)minute - 100),
                  minute - 100);
  for (uint64_t minute = 160; minute <= 400; minute++)
    assert_change(f, minute, 1000 * minute, 1000 * (60 + (int64_t)minute % 10),
                  60 + minute % 10);
}

/* Its first reading would be a change. */
FIXTURE_TEST(a_guess_is_no_sample) {
  f->group.usage.unmeasured = 1;
  assert_change(f, 100, 5000, 0, 0);
  f->group.usage.unmeasured = 0;
  assert_change(f, 101, 3000, 0, 0);
  assert_change(f, 103, 3500, 500, 2);
}
