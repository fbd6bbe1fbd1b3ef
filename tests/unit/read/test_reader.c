/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/policy.h"

#include "reading.h"

#define FIXTURE_TEST(name)                                                     \
  TEST_WITH(name, reading_make, reading_unmake, struct reading_world *f)

/* The text of a rollup: 8 MiB, of which Pss is short by so much of what is
 * anonymous. */
static void print_cow(char *ret, size_t size, unsigned cow_kb) {
  snprintf(ret, size,
           "Rss: 8192 kB\nPss: %u kB\nPss_Anon: %u kB\nPss_File: 0 kB\n"
           "Pss_Shmem: 0 kB\nShared_Clean: 0 kB\nShared_Dirty: 4096 kB\n"
           "Private_Clean: 0 kB\nPrivate_Dirty: 4096 kB\nAnonymous: 8192 kB\n",
           8192 - cow_kb, 8192 - cow_kb);
}

static struct read_job run_baseline(struct reading_world *f) {
  struct read_job job = {
      .process = &f->p, .kind = READ_ROLLUP, .is_baseline = true, .result = 77};

  reader_run(&f->reader, &job, 1);
  return job;
}

/* Reads a rollup, during which something happens. */
static struct read_job
run_while(struct reading_world *f, struct read_job job, unsigned cow_kb,
          void (*meanwhile)(const struct reading_world *f)) {
  struct feeder d = {.f = f, .path = "10/smaps_rollup", .meanwhile = meanwhile};

  print_cow(d.text, sizeof(d.text), cow_kb);
  job.process = &f->p;
  reading_run_fed(&d, &job, 1);
  return job;
}

static void free_mappings(struct read_job *job) {
  mapping_table_done(&job->mappings.table);
}

/* The one as it is, with amounts, the other without. */
FIXTURE_TEST(mappings_are_of_smaps_or_of_maps) {
  static const char maps[] = "1000-9000 r--p 00000000 08:01 7 /lib/y\n"
                             "a000-b000 rw-p 00000000 00:00 0 \n";
  const struct fake_mapping mapping = {.name = "/lib/x", .private_kb = 12};
  struct read_job job;

  proctree_put_smaps(&f->tree, 10, &mapping, 1);
  reading_write(f, "10/maps", maps);
  job = reading_run(f, READ_MAPPINGS);
  assert_int_equal(job.result, 0);
  assert_int_equal(job.mappings.table.n, 2);
  assert_int_equal(job.mappings.sum.bytes[ROLLUP_PSS], 12 * KIB);
  free_mappings(&job);
  job = reading_run(f, READ_MAPS);
  assert_int_equal(job.result, 0);
  assert_int_equal(job.mappings.table.n, 3);
  assert_int_equal(job.mappings.sum.known, 0);
  free_mappings(&job);
  reading_write(f, "10/maps", "");
  assert_int_equal(reading_run(f, READ_MAPS).result, PROCFS_NO_MM);
  reading_write(f, "10/maps", "?\n");
  job = reading_run(f, READ_MAPS);
  assert_int_equal(job.result, -EBADMSG);
  assert_null(job.mappings.table.mappings);
}

FIXTURE_TEST(names_are_read_again_by_the_time_of_the_cycle) {
  static const unsigned seconds[] = {1, 2, 61};

  f->p.is_settled = true;
  for (size_t i = 0; i < LENGTH(seconds); i++) {
    struct read_job job;

    assert_int_equal(reader_begin(&f->reader, seconds[i] * NS_PER_S), 0);
    job = reading_run(f, READ_INSPECTION);
    assert_int_equal(job.result, 0);
    assert_int_equal(job.inspection.has_names, i != 1);
    f->p.image = job.inspection.image;
    f->p.identified_ns = NS_PER_S;
    inspection_done(&job.inspection);
  }
}

FIXTURE_TEST(rollup_takes_by_the_clock) {
  assert_int_equal(reading_run(f, READ_ROLLUP).took_ns, TOOK_NS);
  assert_int_equal(run_baseline(f).took_ns, TOOK_NS);
  proctree_end(&f->tree, 10);
  assert_int_equal(reading_run(f, READ_ROLLUP).took_ns, TOOK_NS);
}

static void grow(const struct reading_world *f) {
  reading_write(f, "10/statm", "10000 3000 500 5 0 6 0\n");
}

static void fault(const struct reading_world *f) {
  reading_put_faults(f, 5100);
}

FIXTURE_TEST(evidence_is_read_right_after_the_rollup) {
  struct read_job job = run_while(
      f, (struct read_job){.kind = READ_ROLLUP, .is_baseline = true}, 0, grow);

  assert_true(job.rollup.has_statm);
  assert_int_equal(job.rollup.statm.resident_pages, 3000);
  assert_int_equal(job.rollup.statm.shared_pages, 500);
}

FIXTURE_TEST(faults_are_read_if_they_can_break_sharing) {
  static const struct {
    unsigned cow_kb;
    uint32_t faults;
  } cases[] = {{2048, 5100}, {256, 5100}, {255, 0}, {0, 0}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct read_job job = {.kind = READ_ROLLUP, .is_baseline = true};

    reading_put_faults(f, 5000);
    job = run_while(f, job, cases[i].cow_kb, fault);
    assert_int_equal(job.rollup.faults, cases[i].faults);
  }
}

/* Files that can be missing; a rollup that was read before says that it is the
 * process and not the kernel. A captured tree lacks what could not be read. */
FIXTURE_TEST(kernel_without_rollup_differs_from_a_process_that_ended) {
  static const struct {
    const char *missing[2];
    bool has_rollup, has_mm;
    int of_kernel, captured;
  } cases[] = {
      {{NULL}, false, true, 0, 0},
      {{"10/smaps_rollup"}, false, true, -ENOSYS, PROCFS_DENIED},
      {{"10/smaps_rollup"}, false, false, PROCFS_GONE, PROCFS_GONE},
      {{"10/smaps_rollup"}, true, true, PROCFS_GONE, PROCFS_DENIED},
      {{"10/smaps_rollup", "10/statm"}, false, true, PROCFS_GONE, PROCFS_GONE},
      {{"10"}, false, true, PROCFS_GONE, PROCFS_GONE},
  };

  for (size_t n = 0; n < 2 * LENGTH(cases); n++) {
    size_t i = n % LENGTH(cases);
    bool is_captured = n < LENGTH(cases);

    reading_put(f, reading_server(10));
    if (n == LENGTH(cases))
      reading_make_own(f);
    reading_restart(f, 60 * NS_PER_S);
    if (cases[i].has_rollup)
      assert_int_equal(reading_run(f, READ_ROLLUP).result, 0);
    if (!cases[i].has_mm)
      reading_write(f, "10/statm", "0 0 0 0 0 0 0\n");
    for (int j = 0; j < 2 && cases[i].missing[j]; j++)
      proctree_unlink(&f->tree, cases[i].missing[j]);
    assert_int_equal(reading_run(f, READ_ROLLUP).result,
                     is_captured ? cases[i].captured : cases[i].of_kernel);
  }
}

/* The size is not the expected one: then the start time shows whether another
 * process has got the pid. */
FIXTURE_TEST(rollup_of_another_process_is_not_taken) {
  static const struct {
    unsigned kb; /* is 8192 by statm */
    bool is_other;
    int result;
  } cases[] = {{400, true, PROCFS_GONE},
               {90000, true, PROCFS_GONE},
               {400, false, 0},
               {90000, false, 0}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct fake fake = reading_server(10);
    struct read_job job;

    fake.private_kb = cases[i].kb;
    fake.shared_kb = 0;
    fake.starttime += cases[i].is_other;
    reading_put(f, fake);
    job = run_baseline(f);
    assert_int_equal(job.result, cases[i].result);
    if (job.result == 0)
      assert_int_equal(reading_rss_kb(&job), cases[i].kb);
  }
}

FIXTURE_TEST(dead_main_thread_is_read_through_a_live_one) {
  struct fake live = reading_server(12);
  struct read_job job;

  reading_make_own(f);
  f->p.is_dead_leader = true;
  reading_write(f, "10/smaps_rollup", "");
  reading_write(f, "10/statm", "0 0 0 0 0 0 0\n");
  assert_int_equal(reading_run(f, READ_ROLLUP).result, PROCFS_GONE);
  proctree_put_thread(&f->tree, 10, &live);
  job = run_baseline(f);
  assert_int_equal(job.result, 0);
  assert_int_equal(reading_rss_kb(&job), 8192);
  assert_false(job.rollup.has_statm); /* it shows nothing itself */
  proctree_unlink(&f->tree, "10/task/12/smaps_rollup");
  assert_int_equal(reading_run(f, READ_ROLLUP).result, PROCFS_GONE);
  /* It is missing from the kernel, as far as this reader knows. */
  reading_restart(f, NS_PER_S);
  assert_int_equal(reading_run(f, READ_ROLLUP).result, -ENOSYS);
}

FIXTURE_TEST(sample_by_mapping_is_the_callers) {
  struct read_job job = {.process = &f->p,
                         .kind = READ_MAPPING_SAMPLE,
                         .request = {.pages_wanted = 3}};

  reading_put_pages(f, 10);
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, 0);
  assert_true(job.took_ns >= TOOK_NS && job.work_ns >= TOOK_NS);
  assert_int_equal(job.mappings.table.n, 2);
  assert_int_equal(job.mappings.table.mappings[1].pages_sampled, 3);
  free_mappings(&job);
}

/* The caller's layout stays the caller's, and the result's is another
 * reference to it. */
FIXTURE_TEST(sample_takes_and_gives_references_to_its_layout) {
  struct read_job job = {
      .process = &f->p, .kind = READ_SAMPLE, .request = {.pages_wanted = 3}};
  struct page_layout *layout;

  reading_put_pages(f, 10);
  reading_write(f, "10/statm", "3 3 0 0 0 3 0\n"); /* the layout has all */
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, 0);
  assert_null(job.request.layout);
  assert_true(job.took_ns >= TOOK_NS && job.work_ns >= TOOK_NS);
  layout = job.sample.layout;
  assert_non_null(layout);
  job.request.layout = layout;
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, 0);
  assert_ptr_equal(job.request.layout, layout);
  assert_ptr_equal(job.sample.layout, layout);
  page_layout_drop(job.sample.layout);
  proctree_unlink(&f->tree, "10/pagemap");
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, -ENOSYS);
  assert_ptr_equal(job.request.layout, layout);
  assert_null(job.sample.layout);
  page_layout_drop(layout);
}
