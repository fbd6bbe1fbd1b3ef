/* SPDX-License-Identifier: MIT */
/* What becomes of a sample, and when the mappings are read again for the
 * next. */
#include "test.h"

#include "proctree.h"

#include "match/group.h"
#include "member/member.h"
#include "schedule/sampling.h"

#define LAYOUT_NS NS_PER_MS
#define PAGES INT64_C(100000)

struct fixture {
  struct cycle cycle;
  struct sampler sampler;
  struct sampling sampling;
  struct sharing set;
  struct member member;
  struct process process;
};

/* Its mappings were read two seconds ago. */
static int make(void **state) {
  static struct fixture f;

  f = (struct fixture){
      .cycle = {.now_ns = 102 * NS_PER_S},
      .sampler = {.cycle = &f.cycle},
      .sampling = {.layout_at_ns = 100 * NS_PER_S,
                   .layout_ns = LAYOUT_NS,
                   .layout_size_pages = 2 * PAGES,
                   .layout_resident_pages = PAGES},
      .member = {.sampling = &f.sampling,
                 .track = {.group_set = &f.set,
                           .sample_error = &f.sampling.error}},
      .process = {.member = &f.member,
                  .statm = {.size_pages = 2 * PAGES, .resident_pages = PAGES}}};
  sharing_init(&f.set, 0);
  *state = &f;
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, NULL, struct fixture *f)

static bool reads_mappings(const struct fixture *f) {
  struct fixture without = *f;

  without.sampling.layout_ns = 0;
  without.member.sampling = &without.sampling;
  without.process.member = &without.member;
  return sampling_time_ns(&f->sampler, &f->process) ==
         sampling_time_ns(&without.sampler, &without.process) + LAYOUT_NS;
}

/* They may not show where it is, as in buffers that fill. */
FIXTURE_TEST(mappings_are_read_again_when_they_may_have_changed) {
  static const struct {
    const char *name;
    int64_t resident, size; /* more than then, in pages */
    unsigned after_ms;
    bool are_read;
  } cases[] = {
      {"as it was", 0, 0, 2000, false},
      {"little memory has come", PAGES / 64, 0, 2000, false},
      {"memory has come", PAGES / 32, 0, 2000, true},
      {"memory has gone", -PAGES / 2, 0, 2000, false},
      {"the size is almost the same", 0, PAGES / 300, 2000, false},
      {"the size is another", 0, -PAGES / 128, 2000, true},
      {"a minute has passed", 0, 0, 60000, true},
      /* That takes a thousandth of a processor. */
      {"just before it may be read", PAGES, 0, 999, false},
      {"when it may be read", PAGES, 0, 1000, true},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    f->process.statm.resident_pages = (uint64_t)(PAGES + cases[i].resident);
    f->process.statm.size_pages = (uint64_t)(2 * PAGES + cases[i].size);
    f->cycle.now_ns = 100 * NS_PER_S + cases[i].after_ms * NS_PER_MS;
    if (reads_mappings(f) != cases[i].are_read)
      fail_msg("%s: wrong answer", cases[i].name);
  }
}

/* Of 1,000 for the group; four times as many where nothing is known yet. */
FIXTURE_TEST(giants_of_a_group_share_its_pages) {
  static const struct {
    uint32_t giants, before;
    bool is_new;
    uint32_t pages;
  } cases[] = {{1, 0, false, 500},
               {3, 1, false, 333},
               {1, 3, false, 333},
               {11, 0, false, 100},
               {3, 0, true, 1332}};
  struct group_track track;
  struct group group = {.track = &track}, *groups[] = {&group};

  f->process.groups = groups;
  f->process.n_groups = 1;
  for (size_t i = 0; i < LENGTH(cases); i++) {
    track = (struct group_track){.giants = cases[i].giants,
                                 .giants_before = cases[i].before};
    f->member.track.baseline.at_ns = !cases[i].is_new;
    assert_int_equal(
        sampling_job(&f->sampler, &f->process).request.pages_wanted,
        cases[i].pages);
  }
}

/* --- a sample --- */

#define NEAR 1024 /* of what is in whole KiB */

static void assert_pages(uint64_t bytes, uint64_t pages) {
  assert_in_range(bytes, pages * PAGE - NEAR, pages * PAGE + NEAR);
}

static struct read_job sample_job(void) {
  return (struct read_job){
      .kind = READ_SAMPLE,
      .request.pages_wanted = 100,
      .sample = {
          .kinds =
              {[PAGE_ANON] = {16, 0, 8, 4, 0}, [PAGE_FILE] = {16, 0, 4, 1, 0}},
          .shmem = {100, 0, 10, 1, 0},
          .has_census = true,
          .pages = 1600,
          .census = {[PAGE_ANON] = {1000, 600}, [PAGE_FILE] = {500, 100}},
          .has_mapcounts = true,
          .statm = {.resident_pages = 10000, .shared_pages = 9000}}};
}

static void take(struct fixture *f, const struct read_job *job) {
  struct diag diags[DIAGS] = {{.count = 0}};

  f->sampler.diags = diags;
  f->cycle.page_size = PAGE;
  sampling_take(&f->sampler, &f->process, job);
}

/* 1,000 anonymous pages, of which 600 are exclusive and the others of two; 500
 * of files, of which 100 are exclusive and the others of four; and 8,500 of
 * shmem, which ten processes share. */
FIXTURE_TEST(counted_pages_and_pages_of_shmem_add_up) {
  struct read_job job = sample_job();
  const struct baseline *b = &f->member.track.baseline;

  take(f, &job);
  assert_pages(b->rollup.bytes[ROLLUP_RSS], 10000);
  assert_pages(b->rollup.bytes[ROLLUP_PSS_ANON], 600 + 400 / 2);
  assert_pages(b->rollup.bytes[ROLLUP_PSS_FILE], 100 + 400 / 4);
  assert_pages(b->rollup.bytes[ROLLUP_PSS_SHMEM], 8500 / 10);
  assert_pages(rollup_uss(&b->rollup), 700);
  assert_int_equal(f->sampling.pages, 1600);
}

/* Anonymous pages are private, and pages of files are shared by two processes.
 * statm has 5,000 of each kind, can lack 4,000, and does not lack what chance
 * may explain. */
FIXTURE_TEST(pages_that_an_inexact_statm_lacks_are_added) {
  static const struct {
    const char *name;
    double anon, files, chance; /* pages that are present */
    bool is_exact, are_unknown;
    uint64_t want_anon, want_files;
  } cases[] = {
      {"exact", 5000, 9000, 0, true, false, 5000, 5000},
      {"not exact", 5000, 9000, 0, false, false, 5000, 9000},
      {"more than it can lack", 5000, 50000, 0, false, false, 5000, 9000},
      {"with unknown mapcounts", 5000, 9000, 0, false, true, 5000, 5000},
      {"less a chance", 5000, 9000, 1000, false, false, 5000, 8000},
      {"a chance", 5000, 9000, 4000, false, false, 5000, 5000},
      {"of both kinds", 6000, 8000, 2000, false, false, 5500, 6500},
      {"of one, fewer of the other", 4000, 9000, 0, false, false, 5000, 8000},
      {"of one, as many fewer", 4000, 6000, 0, false, false, 5000, 5000},
      {"fewer", 4000, 4000, 0, false, false, 5000, 5000},
  };
  const struct baseline *b = &f->member.track.baseline;

  f->member.track.now.resident_pages = 10000;
  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct read_job job = sample_job();

    job.sample = (struct page_sample){
        .kinds = {[PAGE_ANON] = {200, 200, 200, 200, 0},
                  [PAGE_FILE] = {200, 0, 100, 50, 0}},
        .present = {[PAGE_ANON] = cases[i].anon, [PAGE_FILE] = cases[i].files},
        .chance = cases[i].chance,
        .has_mapcounts = !cases[i].are_unknown,
        .statm = {.resident_pages = 10000, .shared_pages = 5000}};
    f->cycle.precision.expected_pages = cases[i].is_exact ? 0 : 4000;
    f->member.track.baseline.at_ns = 0;
    print_message("%s\n", cases[i].name);
    take(f, &job);
    assert_pages(b->rollup.bytes[ROLLUP_ANONYMOUS], cases[i].want_anon);
    assert_pages(b->rollup.bytes[ROLLUP_RSS],
                 cases[i].want_anon + cases[i].want_files);
    assert_pages(b->rollup.bytes[ROLLUP_PSS_FILE], cases[i].want_files / 2);
    assert_pages(rollup_uss(&b->rollup), cases[i].want_anon);
  }
}

FIXTURE_TEST(pages_of_shmem_that_statm_lacks_are_added_and_doubted) {
  struct read_job job = sample_job();
  const struct baseline *b = &f->member.track.baseline;
  double noise;

  job.sample.present[PAGE_ANON] = 1000;
  job.sample.present[PAGE_FILE] = 500 + 12000;
  take(f, &job);
  noise = f->sampling.error.pss[PAGE_FILE].noise;
  f->member.track.now.resident_pages = 10000;
  f->member.track.baseline.at_ns = 0;
  f->cycle.precision.expected_pages = 4000;
  job.sample.chance = 500;
  take(f, &job);
  assert_pages(b->rollup.bytes[ROLLUP_PSS_SHMEM], (8500 + 3000) / 10);
  assert_true(noise < 10 * PAGE);
  assert_in_range(f->sampling.error.pss[PAGE_FILE].noise, 50 * PAGE, 60 * PAGE);
}

/* What its group has charged was predicted. */
FIXTURE_TEST(a_sample_is_paid_and_its_mappings_are_known) {
  struct read_job job = sample_job();
  struct group_track track = {.sampling_ns = 5000};
  const struct policy policy = {.max_age_ns = 60 * NS_PER_S};
  struct group group = {.track = &track, .policy = &policy};
  struct group *groups[] = {&group};

  f->process.groups = groups;
  f->process.n_groups = 1;
  f->cycle.now_ns = 200 * NS_PER_S;
  f->process.statm.size_pages = 7;
  f->process.statm.resident_pages = 5;
  job.sample.layout_ns = 3 * LAYOUT_NS;
  job.work_ns = sampling_time_ns(&f->sampler, &f->process) + 1000;
  take(f, &job);
  assert_int_equal(track.sampling_ns, 4000);
  assert_int_equal(f->sampling.layout_at_ns, 200 * NS_PER_S);
  assert_int_equal(f->sampling.layout_ns, 3 * LAYOUT_NS);
  assert_int_equal(f->sampling.layout_size_pages, 7);
  assert_int_equal(f->sampling.layout_resident_pages, 5);
  job.sample.layout_ns = 0;
  f->cycle.now_ns++;
  take(f, &job);
  assert_int_equal(f->sampling.layout_at_ns, 200 * NS_PER_S);
}

/* Its status has so many page tables. */
static void put_tables(struct fixture *f, struct proctree *tree, unsigned n) {
  struct fake fake = fake_process(10, "giant");

  fake.tables_kb = n * 4;
  proctree_make(tree);
  proctree_put(tree, &fake);
  assert_int_equal(procfs_new(tree->root, &f->cycle.procfs), 0);
  f->cycle.page_size = PAGE;
  f->process.pid = 10;
}

static void remove_tables(struct fixture *f, struct proctree *tree) {
  procfs_free(f->cycle.procfs);
  proctree_remove(tree);
}

/* A walk that was made knows better. Page tables cost 470 ns each: no page that
 * was looked up is in an empty one. */
FIXTURE_TEST(a_probe_shows_what_a_walk_would_cost) {
  const struct {
    double page_ns;
    unsigned tables;
    bool is_learnt;
    uint32_t ns;
  } cases[] = {{100, 0, false, 100 * PAGES},
               {100, 0, true, 77},
               {0, 0, false, 77},
               {100, 3000, false, 100 * PAGES + 3000 * 470}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct read_job job = sample_job();
    struct proctree tree;

    put_tables(f, &tree, cases[i].tables);
    job.sample.walk_page_ns = cases[i].page_ns;
    f->member.read_time = (struct read_time){
        .ns = 77, .pages = PAGES, .is_learnt = cases[i].is_learnt};
    take(f, &job);
    assert_int_equal(f->member.read_time.ns, cases[i].ns);
    remove_tables(f, &tree);
  }
}

/* While samples are refused, a longer walk would be allowed. */
FIXTURE_TEST(the_first_sample_after_a_refusal_goes_by_max_lock_hold) {
  struct policy policy = {.max_lock_hold_ns = 50 * PAGES,
                          .unsampled_lock_hold_ns = 200 * PAGES};
  struct group_track track = {.sampling_ns = 0};
  struct group group = {.policy = &policy, .track = &track};
  struct group *groups[] = {&group};
  struct read_job job = sample_job();
  struct proctree tree;

  put_tables(f, &tree, 0);
  job.sample.walk_page_ns = 100;
  f->process.groups = groups;
  f->process.n_groups = 1;
  f->sampling.refused.failures = 1;
  f->member.read_time =
      (struct read_time){.ns = 300 * PAGES, .pages = PAGES, .is_learnt = true};
  take(f, &job);
  assert_int_equal(f->member.read_time.ns, 300 * PAGES);
  remove_tables(f, &tree);
}

/* For each page of a huge one, if a fork shares it, 10 ns more. */
FIXTURE_TEST(a_probe_prices_huge_pages_of_relatives_as_shared) {
  static struct fork_family family;
  struct read_job job = sample_job();
  struct proctree tree;

  put_tables(f, &tree, 0);
  job.sample.walk_page_ns = 1;
  job.sample.huge = 0.5;
  f->member.track.family = &family;
  f->member.track.kinship = KINSHIP_HEAD;
  for (family.members = 1; family.members <= 2; family.members++) {
    f->member.read_time = (struct read_time){.ns = 77, .pages = PAGES};
    take(f, &job);
    assert_int_equal(f->member.read_time.ns,
                     family.members == 1 ? PAGES : PAGES + PAGES / 2 * 10);
    assert_int_equal(f->member.read_time.huge, PAGES / 2);
  }
  remove_tables(f, &tree);
}

/* The process does not exist. */
FIXTURE_TEST(swap_stays_known_if_status_cannot_be_read) {
  struct read_job job = sample_job();

  assert_int_equal(procfs_new("/proc", &f->cycle.procfs), 0);
  f->process.pid = INT32_MAX;
  f->cycle.is_swap_used = true;
  f->member.track.now.vm_swap_kb = 4096;
  take(f, &job);
  assert_int_equal(f->member.track.baseline.at.vm_swap_kb, 4096);
  assert_int_equal(f->member.track.baseline.rollup.bytes[ROLLUP_SWAP], 4 * MIB);
  f->cycle.is_swap_used = false;
  take(f, &job);
  assert_int_equal(f->member.track.baseline.at.vm_swap_kb, 0);
  procfs_free(f->cycle.procfs);
}

FIXTURE_TEST(a_sample_that_was_interrupted_is_not_the_price_of_the_next) {
  struct read_job job = sample_job();

  job.work_ns = 100000;
  take(f, &job);
  assert_true(f->sampler.page_ns == 1000);
  job.work_ns = NS_PER_S;
  take(f, &job);
  assert_in_range(f->sampler.page_ns, 1001, 1100);
}
