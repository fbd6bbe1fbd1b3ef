/* SPDX-License-Identifier: MIT */
/* Reads that hang. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config/policy.h"

#include "few_threads.h"
#include "patience.h"
#include "reading.h"

/* The first look at a worker takes no time, if it is to; and by the second one
 * it is known what came of the first. */
static bool first_look_is_over;
static unsigned looks;
static sem_t has_looked;

static bool look(void) {
  if (first_look_is_over && looks++ == 0)
    return true;
  sem_post(&has_looked);
  return false;
}

static int make(void **state) {
  first_look_is_over = false;
  looks = 0;
  sem_init(&has_looked, 0, 0);
  reading_make(state);
  patience_hook = look;
  return 0;
}

#define FIXTURE_TEST(name)                                                     \
  TEST_WITH(name, make, reading_unmake, struct reading_world *f)

#define SHORT_NS (100 * NS_PER_MS)

static void await_returned(struct reading_world *f) {
  while (reader_count_hung(&f->reader) > 0)
    sched_yield();
  reader_begin(&f->reader, 1);
}

/* Has the job hang in that file, until it is woken. */
static void run_hung(struct reading_world *f, const char *path,
                     struct read_job *job) {
  proctree_hang(&f->tree, path);
  reader_run(&f->reader, job, 1);
  assert_int_equal(job->result, READ_HUNG);
}

static void wake(struct reading_world *f, const char *path) {
  proctree_wake(&f->tree, path);
  await_returned(f);
}

FIXTURE_TEST(hung_read_is_reported_with_its_file) {
  static const struct {
    enum read_kind kind;
    const char *path, *file;
  } cases[] = {
      {READ_INSPECTION, "10/stat", "stat"},
      {READ_INSPECTION, "10/cmdline", "cmdline"},
      {READ_STAT, "10/stat", "stat"},
      {READ_ROLLUP, "10/smaps_rollup", "smaps_rollup"},
      {READ_MAPPINGS, "10/smaps", "smaps"},
      {READ_MAPS, "10/maps", "maps"},
      {READ_SAMPLE, "10/pagemap", "pagemap"},
      {READ_SAMPLE, "10/maps", "maps"},
      {READ_SAMPLE, "kpagecount", "kpagecount"},
      {READ_MAPPING_SAMPLE, "10/maps", "maps"},
      {READ_CGROUP, "10/cgroup", "cgroup"},
      {READ_CGROUP, "sys/fs/cgroup/memory.current", "memory.current"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct read_job job = {.process = &f->p,
                           .kind = cases[i].kind,
                           .cgroup = {.pid = 10, .wants = CGROUP_WANTS_USAGE}};

    if (job.kind == READ_CGROUP)
      job.path = "/";
    reading_restart(f, SHORT_NS);
    reading_put(f, reading_server(10));
    reading_put_pages(f, 10);
    run_hung(f, cases[i].path, &job);
    assert_string_equal(job.file, cases[i].file);
    assert_int_equal(job.inspection.state, PROCESS_UNSEEN);
    assert_ptr_equal(job.process, &f->p);
    wake(f, cases[i].path);
  }
}

static void put_cgroup(struct reading_world *f) {
  reading_write(f, "10/cgroup", "0::/web\n");
  reading_write(f, "sys/fs/cgroup/web/memory.current", "4096\n");
}

FIXTURE_TEST(control_group_that_hangs_is_left_alone) {
  struct read_job job = {.kind = READ_CGROUP,
                         .path = "/web",
                         .cgroup = {.pid = 10, .wants = CGROUP_WANTS_USAGE}};

  reading_put(f, reading_server(10));
  for (int i = 0; i < 2; i++) {
    reading_restart(f, SHORT_NS);
    put_cgroup(f);
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, 0);
    assert_int_equal(job.cgroup.memory.bytes, 4096);
    assert_int_equal(job.cgroup.hierarchy, CGROUP_UNIFIED);
    run_hung(f, "sys/fs/cgroup/web/memory.current", &job);
    assert_string_equal(job.file, "memory.current");
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_STILL_HUNG);
    wake(f, "sys/fs/cgroup/web/memory.current");
  }
}

/* A late result is dropped, with the layout that was made for it. The reading
 * that hangs holds the layout that it was given. */
FIXTURE_TEST(late_sample_is_dropped_with_its_layout) {
  struct read_job job = {
      .process = &f->p, .kind = READ_SAMPLE, .request = {.pages_wanted = 3}};

  reading_put_pages(f, 10);
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, 0);
  reading_restart(f, SHORT_NS);
  for (int i = 0; i < 2; i++) {
    struct page_layout *given = i == 0 ? job.sample.layout : NULL;

    job.request.layout = given;
    reading_put_pages(f, 10);
    run_hung(f, "kpagecount", &job);
    assert_ptr_equal(job.request.layout, given);
    page_layout_drop(given);
    wake(f, "kpagecount");
  }
}

FIXTURE_TEST(late_sample_by_mapping_is_dropped) {
  struct read_job job = {.process = &f->p,
                         .kind = READ_MAPPING_SAMPLE,
                         .request = {.pages_wanted = 3}};

  reading_restart(f, SHORT_NS);
  reading_put_pages(f, 10);
  run_hung(f, "kpagecount", &job);
  wake(f, "kpagecount");
}

/* One in the middle of more than fit one batch. */
FIXTURE_TEST(hung_file_does_not_delay_others) {
  enum { N = JOBS_AT_ONCE + 20 };
  struct process processes[N];
  struct read_job jobs[N];

  reading_restart(f, SHORT_NS);
  for (uint32_t i = 0; i < N; i++) {
    reading_put(f, reading_server(20 + i));
    processes[i] = (struct process){.pid = 20 + i, .starttime_ticks = 120 + i};
    jobs[i] = (struct read_job){.process = &processes[i],
                                .kind = i % 2 ? READ_INSPECTION : READ_ROLLUP};
  }
  proctree_hang(&f->tree, "50/smaps_rollup");
  reader_run(&f->reader, jobs, N);
  for (uint32_t i = 0; i < N; i++) {
    assert_ptr_equal(jobs[i].process, &processes[i]);
    assert_int_equal(jobs[i].result, i == 30 ? READ_HUNG : 0);
    if (i % 2) {
      assert_int_equal(jobs[i].inspection.stat.starttime_ticks, 120 + i);
      inspection_done(&jobs[i].inspection);
    } else if (i != 30) {
      assert_int_equal(reading_rss_kb(&jobs[i]), 8192);
    }
  }
  wake(f, "50/smaps_rollup");
}

/* Makes three jobs: the stat of a, of b, and of a again. */
static void lay_out(struct read_job jobs[3], struct process *a,
                    struct process *b) {
  for (int i = 0; i < 3; i++)
    jobs[i] = (struct read_job){.process = i == 1 ? b : a, .kind = READ_STAT};
}

/* Neither in this batch nor in those to come, unless it is another one. */
FIXTURE_TEST(hung_process_is_not_tried_again) {
  struct read_job jobs[2];

  reading_restart(f, SHORT_NS);
  reading_put(f, reading_server(11));
  proctree_hang(&f->tree, "10/smaps_rollup");
  assert_int_equal(reading_run(f, READ_ROLLUP).result, READ_HUNG);
  for (int i = 0; i < 2 * WORKER_POOL_MAX; i++) {
    struct process other = {.pid = 11, .starttime_ticks = 111};

    jobs[0] = (struct read_job){.process = &f->p, .kind = READ_STAT};
    jobs[1] = (struct read_job){.process = &other, .kind = READ_STAT};
    reader_begin(&f->reader, 1);
    reader_run(&f->reader, jobs, 2);
    assert_int_equal(jobs[0].result, READ_STILL_HUNG);
    assert_string_equal(jobs[0].file, "smaps_rollup");
    assert_int_equal(jobs[1].result, 0);
  }
  assert_int_equal(reader_count_hung(&f->reader), 1);
  f->p.image++;
  assert_int_equal(reading_run(f, READ_STAT).result, 0);
  f->p.image--;
  f->p.starttime_ticks++;
  assert_int_equal(reading_run(f, READ_STAT).result, 0);
  f->p.starttime_ticks--;
  wake(f, "10/smaps_rollup");
  assert_int_equal(reading_run(f, READ_STAT).result, 0);
}

FIXTURE_TEST(if_all_workers_hang_nothing_else_is_read) {
  struct process processes[WORKER_POOL_MAX];
  char path[32];

  reading_restart(f, SHORT_NS);
  for (uint32_t i = 0; i < WORKER_POOL_MAX; i++) {
    struct read_job job = {.process = &processes[i], .kind = READ_STAT};

    processes[i] = (struct process){.pid = 20 + i};
    reading_put(f, reading_server(20 + i));
    snprintf(path, sizeof(path), "%u/stat", 20 + i);
    proctree_hang(&f->tree, path);
    assert_int_equal(reader_count_hung(&f->reader), i);
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_HUNG);
  }
  assert_int_equal(reader_count_hung(&f->reader), WORKER_POOL_MAX);
  assert_int_equal(reading_run(f, READ_STAT).result, READ_SKIPPED);
  for (uint32_t i = 0; i < WORKER_POOL_MAX; i++) {
    snprintf(path, sizeof(path), "%u/stat", 20 + i);
    proctree_wake(&f->tree, path);
  }
  await_returned(f);
  assert_int_equal(reading_run(f, READ_STAT).result, 0);
}

/* The first one hangs, and there is no thread to go on with the rest: these
 * have failed, but for one that is known to hang. */
FIXTURE_TEST(without_another_thread_the_rest_of_a_batch_fails) {
  struct process other = {.pid = 11, .starttime_ticks = 111};
  struct read_job jobs[3];

  reading_restart(f, SHORT_NS);
  reading_put(f, reading_server(11));
  proctree_hang(&f->tree, "10/stat");
  threads_fail = EAGAIN;
  lay_out(jobs, &f->p, &other);
  reader_run(&f->reader, jobs, 3);
  assert_int_equal(jobs[0].result, READ_HUNG);
  assert_int_equal(jobs[1].result, -EAGAIN);
  assert_int_equal(jobs[2].result, READ_STILL_HUNG);
  /* The cycle does not fail because one hangs. */
  assert_int_equal(reader_begin(&f->reader, 1), 0);
  lay_out(jobs, &other, &f->p);
  reader_run(&f->reader, jobs, 3);
  assert_int_equal(jobs[0].result, -EAGAIN);
  assert_int_equal(jobs[1].result, READ_STILL_HUNG);
  assert_int_equal(jobs[2].result, -EAGAIN);
  threads_fail = 0;
  reader_run(&f->reader, jobs, 3);
  assert_int_equal(jobs[0].result, 0);
  assert_int_equal(jobs[1].result, READ_STILL_HUNG);
  assert_int_equal(jobs[2].result, 0);
  wake(f, "10/stat");
}

FIXTURE_TEST(cycle_fails_if_no_thread_can_be_started) {
  const struct reader_setup setup = f->reader.setup;

  reader_done(&f->reader);
  assert_int_equal(reader_init(&f->reader, &setup), 0);
  threads_fail = EAGAIN;
  assert_int_equal(reader_begin(&f->reader, 1), -EAGAIN);
  assert_int_equal(reading_run(f, READ_STAT).result, -EAGAIN);
  threads_fail = 0;
  assert_int_equal(reader_begin(&f->reader, 1), 0);
  assert_int_equal(reading_run(f, READ_STAT).result, 0);
}

/* Attributes that an inspection has read by then are freed: ASan and valgrind
 * would report a leak. The process itself is gone, with its names. */
FIXTURE_TEST(late_inspection_is_dropped) {
  struct process *p = malloc(sizeof(*p));
  struct read_job job = {.process = p, .kind = READ_INSPECTION};

  reading_restart(f, SHORT_NS);
  *p = f->p;
  reader_run(&f->reader, &job, 1);
  p->attributes = job.inspection.attributes;
  p->identified_ns = 1;
  reading_put_faults(f, 1);
  job = (struct read_job){.process = p, .kind = READ_INSPECTION};
  run_hung(f, "10/cmdline", &job);
  attributes_done(&p->attributes);
  memset(p, 0xff, sizeof(*p));
  free(p);
  wake(f, "10/cmdline");
}

#define STAT_TEXT                                                              \
  "10 (server) S 1 1 1 0 -1 0 7 0 0 0 5 5 0 0 20 0 1 0 110 0 9\n"

/* The timeout is so long that a single poll is the whole wait budget. The file
 * that is read meanwhile counts, and the rest is for the next cycle. */
FIXTURE_TEST(without_wait_budget_the_rest_of_a_batch_is_skipped) {
  struct process other = {.pid = 11, .starttime_ticks = 111};
  struct feeder d = {
      .f = f, .path = "10/stat", .text = STAT_TEXT, .begin = &has_looked};
  struct read_job jobs[3];

  reading_put(f, reading_server(11));
  assert_int_equal(reading_run(f, READ_STAT).result,
                   0); /* the thread is there */
  lay_out(jobs, &other, &f->p);
  jobs[0].process = &f->p;
  jobs[1].process = &other;
  jobs[2].kind = READ_INSPECTION;
  first_look_is_over = true;
  reading_run_fed(&d, jobs, 3);
  first_look_is_over = false;
  assert_int_equal(jobs[0].result, 0);
  assert_int_equal(jobs[0].stat.minor_faults, 7);
  assert_int_equal(jobs[1].result, READ_SKIPPED);
  assert_int_equal(jobs[2].result, READ_SKIPPED);
  assert_int_equal(reader_count_hung(&f->reader), 0);
  assert_int_equal(reading_run(f, READ_ROLLUP).result, READ_SKIPPED);
  assert_int_equal(reader_begin(&f->reader, 2), 0);
  reading_write(f, "10/stat", STAT_TEXT);
  reader_run(&f->reader, jobs + 1, 2);
  assert_int_equal(jobs[1].result, 0);
  assert_int_equal(jobs[1].stat.starttime_ticks, 111);
  assert_int_equal(jobs[2].result, 0);
  inspection_done(&jobs[2].inspection);
}

/* A directory server that does not answer before the test ends. */
static sem_t may_answer;

static int look_up_user(uint32_t uid, char *ret, size_t size) {
  while (sem_wait(&may_answer) != 0)
    continue;
  snprintf(ret, size, "user-%u", uid);
  return 0;
}

static const char *user_of(const struct read_job *job) {
  return attributes_get(&job->inspection.attributes).value[ATTRIBUTE_USER];
}

FIXTURE_TEST(user_whose_lookup_hangs_is_a_number_and_the_process_not_hung) {
  struct reader_setup setup = f->reader.setup;
  struct fake fake = reading_server(11);
  struct read_job job;

  sem_init(&may_answer, 0, 0);
  setup.attributes = 1U << ATTRIBUTE_USER;
  setup.read_timeout_ns = SHORT_NS;
  setup.look_up_user = look_up_user;
  reader_done(&f->reader);
  assert_int_equal(reader_init(&f->reader, &setup), 0);
  job = reading_run(f, READ_INSPECTION);
  assert_int_equal(job.result, READ_HUNG);
  assert_string_equal(job.file, "the user's name");
  for (fake.uid = 0; fake.uid < 2 * WORKER_POOL_MAX; fake.uid++) {
    char wanted[16];

    reading_put(f, fake);
    f->p.pid = 11;
    reader_begin(&f->reader, 1);
    job = reading_run(f, READ_INSPECTION);
    assert_int_equal(job.result, 0);
    snprintf(wanted, sizeof(wanted), "%u", fake.uid);
    assert_string_equal(user_of(&job), wanted);
    inspection_done(&job.inspection);
  }
  for (int i = 0; i < 2; i++)
    sem_post(&may_answer);
  await_returned(f);
  job = reading_run(f, READ_INSPECTION);
  assert_string_equal(user_of(&job), "user-7");
  inspection_done(&job.inspection);
}
