#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <smaps/policy.h>
#include <smaps/reader.h>

#include "few_threads.h"
#include "proctree.h"

#define KIB UINT64_C(1024)
#define PAGES(kb) ((kb)*KIB / (uint64_t)getpagesize())
#define TOOK_NS 7000

/* The first look at a worker takes no time, if it is to; and by the second one
 * it is known what came of the first. */
static bool first_look_is_over;
static unsigned looks;
static sem_t has_looked;

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *end);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *end);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *end) {
  if (first_look_is_over && looks++ == 0)
    return ETIMEDOUT;
  if (first_look_is_over)
    sem_post(&has_looked);
  return __real_pthread_cond_timedwait(cond, lock, end);
}

struct fixture {
  struct proctree tree;
  struct procfs *procfs;
  struct reader reader;
  struct process p; /* pid 10, alike in the tree */
};

/* Each question takes a while. What is to happen to the tree right after a
 * rollup was read, and before what is read next, is done at the second one. */
static _Atomic uint64_t now_ns;
static _Atomic unsigned questions;
static void (*meanwhile)(void);

static uint64_t clock_ns(void) {
  if (++questions == 2 && meanwhile)
    meanwhile();
  now_ns += TOOK_NS;
  return now_ns;
}

static struct fake process(uint32_t pid) {
  return (struct fake){.pid = pid,
                       .ppid = 1,
                       .comm = "server",
                       .starttime = 100 + pid,
                       .cmdline = "server -v",
                       .private_kb = 6144,
                       .shared_kb = 2048};
}

static void put(const struct fixture *f, struct fake fake) {
  proctree_put(&f->tree, &fake);
}

static void write_file(const struct fixture *f, const char *path,
                       const char *text) {
  proctree_write(&f->tree, path, text, strlen(text));
}

static void start(struct fixture *f, uint64_t stall_timeout_ns) {
  const struct reader_setup setup = {.procfs = f->procfs,
                                     .attributes = 1U << ATTRIBUTE_COMMAND_LINE,
                                     .stall_timeout_ns = stall_timeout_ns,
                                     .clock_ns = clock_ns};

  assert_int_equal(reader_init(&f->reader, &setup), 0);
  reader_begin(&f->reader, 1);
}

static int make(void **state) {
  static struct fixture f;

  now_ns = 1000;
  questions = 0;
  meanwhile = NULL;
  threads_fail = 0;
  first_look_is_over = false;
  looks = 0;
  f = (struct fixture){.p = {.pid = 10,
                             .starttime_ticks = 110,
                             .statm = {.size_pages = 9999,
                                       .resident_pages = PAGES(8192),
                                       .shared_pages = PAGES(2048)}}};
  proctree_make(&f.tree);
  put(&f, process(10));
  assert_int_equal(procfs_new(f.tree.root, &f.procfs), 0);
  start(&f, 60 * NS_PER_S);
  *state = &f;
  return 0;
}

static int unmake(void **state) {
  struct fixture *f = *state;

  reader_done(&f->reader);
  procfs_free(f->procfs);
  proctree_remove(&f->tree);
  return 0;
}

/* 8 MiB, of which Pss is short by so much of what is anonymous. */
static void put_cow(const struct fixture *f, unsigned cow_kb) {
  char text[512];

  snprintf(text, sizeof(text),
           "Rss: 8192 kB\nPss: %u kB\nPss_Anon: %u kB\nPss_File: 0 kB\n"
           "Pss_Shmem: 0 kB\nShared_Clean: 0 kB\nShared_Dirty: 4096 kB\n"
           "Private_Clean: 0 kB\nPrivate_Dirty: 4096 kB\nAnonymous: 8192 kB\n",
           8192 - cow_kb, 8192 - cow_kb);
  write_file(f, "10/smaps_rollup", text);
}

static void put_faults(const struct fixture *f, unsigned faults) {
  char text[128];

  snprintf(text, sizeof(text),
           "10 (server) S 1 1 1 0 -1 0 %u 0 0 0 5 5 0 0 20 0 1 0 110 0 9\n",
           faults);
  write_file(f, "10/stat", text);
}

static void set_cow_before(struct fixture *f, unsigned cow_kb) {
  f->p.reading = (struct reading){.at_ns = 1, .known = 1U << ROLLUP_PSS_ANON};
  f->p.reading.kb[ROLLUP_ANONYMOUS] = 8192;
  f->p.reading.kb[ROLLUP_PSS_ANON] = 8192 - cow_kb;
}

static struct read_job run(struct fixture *f, enum read_kind kind) {
  struct read_job job = {.process = &f->p, .kind = kind, .result = 77};

  reader_run(&f->reader, &job, 1);
  return job;
}

static uint64_t rss_kb(const struct read_job *job) {
  return job->rollup.rollup.bytes[ROLLUP_RSS] / KIB;
}

static uint64_t pss_kb(const struct read_job *job) {
  return job->rollup.rollup.bytes[ROLLUP_PSS] / KIB;
}

static void each_kind_fills_its_own_result(void **state) {
  struct fixture *f = *state;
  struct read_job job = run(f, READ_SIGHTING);

  assert_int_equal(job.sighting.state, PROCESS_ALIVE);
  assert_string_equal(
      identity_get(&job.sighting.identity).value[ATTRIBUTE_COMMAND_LINE],
      "server -v");
  sighting_done(&job.sighting);
  job = run(f, READ_STAT);
  assert_int_equal(job.stat.starttime_ticks, 110);
  assert_int_equal(job.stat.minor_faults, 10);
  assert_null(job.stat.comm.text);
  job = run(f, READ_ROLLUP);
  assert_int_equal(rss_kb(&job), 8192);
  assert_int_equal(pss_kb(&job), 7168);
  job = run(f, READ_ROLLUP_AND_EVIDENCE);
  assert_int_equal(rss_kb(&job), 8192);
  assert_int_equal(job.rollup.statm.resident_pages, PAGES(8192));
}

static void free_mappings(struct read_job *job) {
  mapping_table_done(job->mappings.table);
  free(job->mappings.table);
}

/* The one as it is, with amounts, the other without. */
static void mappings_are_of_smaps_or_of_maps(void **state) {
  static const char maps[] = "1000-9000 r--p 00000000 08:01 7 /lib/y\n"
                             "a000-b000 rw-p 00000000 00:00 0 \n";
  struct fixture *f = *state;
  const struct fake_mapping mapping = {.name = "/lib/x", .private_kb = 12};
  struct read_job job;

  proctree_put_smaps(&f->tree, 10, &mapping, 1);
  write_file(f, "10/maps", maps);
  job = run(f, READ_MAPPINGS);
  assert_int_equal(job.result, 0);
  assert_int_equal(job.mappings.table->n, 2);
  assert_int_equal(job.mappings.sum.bytes[ROLLUP_PSS], 12 * KIB);
  free_mappings(&job);
  job = run(f, READ_MAPS);
  assert_int_equal(job.result, 0);
  assert_int_equal(job.mappings.table->n, 3);
  assert_int_equal(job.mappings.sum.known, 0);
  free_mappings(&job);
  write_file(f, "10/maps", "");
  assert_int_equal(run(f, READ_MAPS).result, PROCFS_NO_MM);
  write_file(f, "10/maps", "?\n");
  job = run(f, READ_MAPS);
  assert_int_equal(job.result, -EBADMSG);
  assert_null(job.mappings.table);
}

/* Which is of no process. */
static void pid_file_is_read_between_processes(void **state) {
  struct fixture *f = *state;
  char path[128];
  struct read_job jobs[3] = {{.process = &f->p, .kind = READ_STAT},
                             {.kind = READ_PID_FILE, .path = path},
                             {.process = &f->p, .kind = READ_STAT}};

  snprintf(path, sizeof(path), "%s/x.pid", f->tree.root);
  write_file(f, "x.pid", "4711\n");
  reader_run(&f->reader, jobs, 3);
  for (int i = 0; i < 3; i++)
    assert_int_equal(jobs[i].result, 0);
  assert_int_equal(jobs[0].stat.starttime_ticks, 110);
  assert_int_equal(jobs[1].pid, 4711);
  assert_ptr_equal(jobs[1].path, path);
  assert_int_equal(jobs[2].stat.starttime_ticks, 110);
}

/* Those that have ended stand between the others, which are read nonetheless.
 */
static void batch_is_done_whole_whoever_has_vanished(void **state) {
  static const enum read_kind kinds[] = {READ_SIGHTING, READ_STAT, READ_ROLLUP,
                                         READ_ROLLUP_AND_EVIDENCE};
  struct fixture *f = *state;
  struct process processes[8];
  struct read_job jobs[8];

  for (uint32_t i = 0; i < 8; i++) {
    struct fake fake = process(20 + i);

    processes[i] = (struct process){.pid = 20 + i, .starttime_ticks = 120 + i};
    jobs[i] = (struct read_job){
        .process = &processes[i], .kind = kinds[i / 2], .result = 77};
    fake.private_kb = 1024 * i;
    if (i % 2 == 1)
      put(f, fake);
  }
  reader_run(&f->reader, jobs, 8);
  for (size_t i = 0; i < 8; i++)
    assert_int_equal(jobs[i].result, i % 2 == 1 ? 0 : PROCFS_GONE);
  assert_int_equal(jobs[1].sighting.stat.starttime_ticks, 121);
  assert_int_equal(jobs[3].stat.starttime_ticks, 123);
  assert_int_equal(rss_kb(&jobs[5]), 5 * 1024 + 2048);
  assert_int_equal(rss_kb(&jobs[7]), 7 * 1024 + 2048);
  assert_int_equal(jobs[7].rollup.statm.resident_pages, PAGES(9216));
  sighting_done(&jobs[0].sighting);
  sighting_done(&jobs[1].sighting);
}

static void rollup_takes_by_the_clock(void **state) {
  struct fixture *f = *state;

  assert_int_equal(run(f, READ_ROLLUP).took_ns, TOOK_NS);
  assert_int_equal(run(f, READ_ROLLUP_AND_EVIDENCE).took_ns, TOOK_NS);
  proctree_end(&f->tree, 10);
  assert_int_equal(run(f, READ_ROLLUP).took_ns, TOOK_NS);
}

static struct fixture *at_hand;

static void grow(void) {
  write_file(at_hand, "10/statm", "10000 3000 500 5 0 6 0\n");
}

static void fault(void) { put_faults(at_hand, 5100); }

static void evidence_is_read_right_after_the_rollup(void **state) {
  struct fixture *f = at_hand = *state;
  struct read_job job;

  meanwhile = grow;
  job = run(f, READ_ROLLUP_AND_EVIDENCE);
  assert_true(job.rollup.has_statm);
  assert_int_equal(job.rollup.statm.resident_pages, 3000);
  assert_int_equal(job.rollup.statm.shared_pages, 500);
}

static void evidence_may_be_missing(void **state) {
  static const char *const texts[] = {NULL, "1 2\n", "0 0 0 0 0 0 0\n", ""};
  struct fixture *f = *state;

  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    struct read_job job;

    proctree_unlink(&f->tree, "10/statm");
    if (texts[i])
      write_file(f, "10/statm", texts[i]);
    job = run(f, READ_ROLLUP_AND_EVIDENCE);
    assert_int_equal(job.result, 0);
    assert_int_equal(rss_kb(&job), 8192);
    assert_false(job.rollup.has_statm);
  }
}

/* Nobody follows it from there. */
static void rollup_alone_is_without_evidence(void **state) {
  struct fixture *f = at_hand = *state;
  struct read_job job;

  set_cow_before(f, 2048);
  put_cow(f, 2048);
  put_faults(f, 5000);
  meanwhile = fault;
  job = run(f, READ_ROLLUP);
  assert_false(job.rollup.has_statm);
  assert_int_equal(job.rollup.faults_before, 0);
  assert_int_equal(job.rollup.faults_after, 0);
}

/* Before by what was shared at the last reading, after by what is now. */
static void faults_are_asked_for_where_they_can_break_something(void **state) {
  static const struct {
    unsigned cow_before_kb, cow_kb;
    uint32_t before, after;
  } cases[] = {
      {2048, 2048, 5000, 5100}, {1024, 1024, 5000, 5100},
      {1023, 1023, 0, 0},       {0, 0, 0, 0},
      {0, 2048, 0, 5100},       {2048, 0, 5000, 0},
  };
  struct fixture *f = at_hand = *state;

  meanwhile = fault;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct read_job job;

    questions = 0;
    set_cow_before(f, cases[i].cow_before_kb);
    put_cow(f, cases[i].cow_kb);
    put_faults(f, 5000);
    job = run(f, READ_ROLLUP_AND_EVIDENCE);
    assert_int_equal(job.rollup.faults_before, cases[i].before);
    assert_int_equal(job.rollup.faults_after, cases[i].after);
  }
}

/* Two mappings of 100 kB, of which one is shared by two. */
static const char smaps[] =
    "55d0c8f7d000-55d0c8f96000 rw-p 00000000 00:00 0 \nSize: 100 kB\n"
    "Rss: 100 kB\nPss: 100 kB\nShared_Clean: 0 kB\nShared_Dirty: 0 kB\n"
    "Private_Clean: 0 kB\nPrivate_Dirty: 100 kB\nVmFlags: rd wr mr\n"
    "7ffe1d7d9000-7ffe1d7f2000 r--p 00000000 08:01 7 /lib/x\nSize: 100 kB\n"
    "Rss: 100 kB\nPss: 50 kB\nShared_Clean: 100 kB\nShared_Dirty: 0 kB\n"
    "Private_Clean: 0 kB\nPrivate_Dirty: 0 kB\nVmFlags: rd mr\n";

/* What can be missing, and that a rollup was read before says that it is the
 * process and not the kernel. */
static void kernel_without_rollup_has_its_smaps_summed(void **state) {
  static const struct {
    const char *missing[3];
    bool has_rollup;
    int result;
    unsigned rss_kb, pss_kb;
  } cases[] = {
      {{"10/smaps_rollup"}, false, 0, 200, 150},
      {{NULL}, false, 0, 8192, 7168},
      {{NULL}, true, 0, 8192, 7168},
      {{"10/smaps_rollup"}, true, PROCFS_GONE, 0, 0},
      {{"10/smaps_rollup", "10/smaps"}, false, -ENOSYS, 0, 0},
      {{"10/smaps_rollup", "10/smaps"}, true, PROCFS_GONE, 0, 0},
      {{"10/smaps_rollup", "10/smaps", "10/statm"}, false, PROCFS_GONE, 0, 0},
      {{"10"}, false, PROCFS_GONE, 0, 0},
  };
  struct fixture *f = *state;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct read_job job;

    put(f, process(10));
    write_file(f, "10/smaps", smaps);
    for (int j = 0; j < 3 && cases[i].missing[j]; j++)
      proctree_unlink(&f->tree, cases[i].missing[j]);
    f->reader.has_rollup = cases[i].has_rollup;
    job = run(f, READ_ROLLUP);
    assert_int_equal(job.result, cases[i].result);
    assert_int_equal(rss_kb(&job), cases[i].rss_kb);
    assert_int_equal(pss_kb(&job), cases[i].pss_kb);
    assert_int_equal(f->reader.has_rollup,
                     cases[i].has_rollup || !cases[i].missing[0]);
  }
}

static void malformed_rollup_is_told(void **state) {
  struct fixture *f = *state;

  for (int i = 0; i < 2; i++) {
    f->reader.has_rollup = i;
    write_file(f, "10/smaps_rollup", "Rss: 8192 kB\n");
    assert_int_equal(run(f, READ_ROLLUP_AND_EVIDENCE).result, -EBADMSG);
    write_file(f, "10/smaps_rollup", "");
    assert_int_equal(run(f, READ_ROLLUP_AND_EVIDENCE).result, PROCFS_NO_MM);
  }
}

/* A size that we do not expect: the start time tells whether the pid has come
 * to another, and the inode may, for less, that it has not. */
static void rollup_of_another_process_is_not_taken(void **state) {
  static const struct {
    unsigned kb; /* is 8192 by statm */
    bool is_other_inode, is_other_start;
    int result;
  } cases[] = {
      {400, true, true, PROCFS_GONE}, {90000, true, true, PROCFS_GONE},
      {400, true, false, 0},          {90000, true, false, 0},
      {400, false, false, 0},
  };
  struct fixture *f = *state;

  f->reader.has_rollup = true;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct fake fake = process(10);
    struct read_job job;
    uint64_t ino;
    int fd;

    fake.private_kb = cases[i].kb;
    fake.shared_kb = 0;
    fake.starttime += cases[i].is_other_start;
    put(f, fake);
    assert_int_equal(procfs_open_process(f->procfs, 10, &fd), 0);
    assert_int_equal(procfs_inode(fd, &ino), 0);
    close(fd);
    f->p.ino = (uint32_t)ino + cases[i].is_other_inode;
    job = run(f, READ_ROLLUP_AND_EVIDENCE);
    assert_int_equal(job.result, cases[i].result);
    if (job.result == 0)
      assert_int_equal(rss_kb(&job), cases[i].kb);
  }
}

static void dead_main_thread_is_read_through_a_live_one(void **state) {
  struct fixture *f = *state;
  struct fake live = process(12);
  struct read_job job;

  f->p.is_dead_leader = f->reader.has_rollup = true;
  write_file(f, "10/smaps_rollup", "");
  write_file(f, "10/statm", "0 0 0 0 0 0 0\n");
  assert_int_equal(run(f, READ_ROLLUP).result, PROCFS_GONE);
  proctree_put_thread(&f->tree, 10, &live);
  job = run(f, READ_ROLLUP_AND_EVIDENCE);
  assert_int_equal(job.result, 0);
  assert_int_equal(rss_kb(&job), 8192);
  assert_false(job.rollup.has_statm); /* it shows nothing itself */
  proctree_unlink(&f->tree, "10/task/12/smaps_rollup");
  write_file(f, "10/task/12/smaps", smaps);
  assert_int_equal(run(f, READ_ROLLUP).result, PROCFS_GONE);
}

/* --- reads that hang --- */

#define SHORT_NS (100 * NS_PER_MS)

static void restart(struct fixture *f, uint64_t stall_timeout_ns) {
  reader_done(&f->reader);
  start(f, stall_timeout_ns);
}

static void await_returned(struct fixture *f) {
  while (reader_hanging(&f->reader) > 0)
    sched_yield();
  reader_begin(&f->reader, 1);
}

static void what_hangs_is_told_with_its_file(void **state) {
  static const struct {
    enum read_kind kind;
    const char *path, *file;
    bool has_rollup;
  } cases[] = {
      {READ_SIGHTING, "10/stat", "stat", false},
      {READ_SIGHTING, "10/cmdline", "cmdline", false},
      {READ_STAT, "10/stat", "stat", false},
      {READ_ROLLUP, "10/smaps_rollup", "smaps_rollup", false},
      {READ_ROLLUP, "10/smaps_rollup", "smaps_rollup", true},
      {READ_ROLLUP_AND_EVIDENCE, "10/smaps_rollup", "smaps_rollup", true},
      {READ_MAPPINGS, "10/smaps", "smaps", false},
      {READ_MAPS, "10/maps", "maps", false},
      {READ_SAME_MM, "10/stat", "stat", false},
  };
  struct fixture *f = *state;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct read_job job = {.process = &f->p,
                           .kind = cases[i].kind,
                           .other_pid = 10,
                           .may_be_vfork = true};

    restart(f, SHORT_NS);
    f->reader.has_rollup = cases[i].has_rollup;
    put(f, process(10));
    proctree_hang(&f->tree, cases[i].path);
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_STALLED);
    assert_string_equal(job.file, cases[i].file);
    assert_int_equal(job.sighting.state, PROCESS_UNSEEN);
    assert_ptr_equal(job.process, &f->p);
    proctree_wake(&f->tree, cases[i].path);
    await_returned(f);
  }
}

/* One in the middle of more than fit one batch. */
static void what_hangs_holds_up_no_other(void **state) {
  enum { N = JOBS_AT_ONCE + 20 };
  struct fixture *f = *state;
  struct process processes[N];
  struct read_job jobs[N];

  restart(f, SHORT_NS);
  for (uint32_t i = 0; i < N; i++) {
    put(f, process(20 + i));
    processes[i] = (struct process){.pid = 20 + i, .starttime_ticks = 120 + i};
    jobs[i] = (struct read_job){.process = &processes[i],
                                .kind = i % 2 ? READ_SIGHTING
                                              : READ_ROLLUP_AND_EVIDENCE};
  }
  proctree_hang(&f->tree, "50/smaps_rollup");
  reader_run(&f->reader, jobs, N);
  for (uint32_t i = 0; i < N; i++) {
    assert_ptr_equal(jobs[i].process, &processes[i]);
    assert_int_equal(jobs[i].result, i == 30 ? READ_STALLED : 0);
    if (i % 2) {
      assert_int_equal(jobs[i].sighting.stat.starttime_ticks, 120 + i);
      sighting_done(&jobs[i].sighting);
    } else if (i != 30) {
      assert_int_equal(rss_kb(&jobs[i]), 8192);
    }
  }
  proctree_wake(&f->tree, "50/smaps_rollup");
  await_returned(f);
}

/* The stat of a, of b, and of a again. */
static void lay_out(struct read_job jobs[3], struct process *a,
                    struct process *b) {
  for (int i = 0; i < 3; i++)
    jobs[i] = (struct read_job){.process = i == 1 ? b : a, .kind = READ_STAT};
}

/* Neither in this batch nor in those to come, unless it is another one. */
static void while_it_hangs_it_is_not_tried_again(void **state) {
  struct fixture *f = *state;
  struct read_job jobs[2];

  restart(f, SHORT_NS);
  put(f, process(11));
  proctree_hang(&f->tree, "10/smaps_rollup");
  assert_int_equal(run(f, READ_ROLLUP).result, READ_STALLED);
  for (int i = 0; i < 2 * CREW_MAX; i++) {
    struct process other = {.pid = 11, .starttime_ticks = 111};

    jobs[0] = (struct read_job){.process = &f->p, .kind = READ_STAT};
    jobs[1] = (struct read_job){.process = &other, .kind = READ_STAT};
    reader_begin(&f->reader, 1);
    reader_run(&f->reader, jobs, 2);
    assert_int_equal(jobs[0].result, READ_HANGING);
    assert_string_equal(jobs[0].file, "smaps_rollup");
    assert_int_equal(jobs[1].result, 0);
  }
  assert_int_equal(reader_hanging(&f->reader), 1);
  f->p.image++;
  assert_int_equal(run(f, READ_STAT).result, 0);
  f->p.image--;
  f->p.starttime_ticks++;
  assert_int_equal(run(f, READ_STAT).result, 0);
  f->p.starttime_ticks--;
  proctree_wake(&f->tree, "10/smaps_rollup");
  await_returned(f);
  assert_int_equal(run(f, READ_STAT).result, 0);
}

static void when_all_hang_no_other_is_tried(void **state) {
  struct fixture *f = *state;
  struct process processes[CREW_MAX];
  char path[32];

  restart(f, SHORT_NS);
  for (uint32_t i = 0; i < CREW_MAX; i++) {
    struct read_job job = {.process = &processes[i], .kind = READ_STAT};

    processes[i] = (struct process){.pid = 20 + i};
    put(f, process(20 + i));
    snprintf(path, sizeof(path), "%u/stat", 20 + i);
    proctree_hang(&f->tree, path);
    assert_int_equal(reader_hanging(&f->reader), i);
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_STALLED);
  }
  assert_int_equal(reader_hanging(&f->reader), CREW_MAX);
  assert_int_equal(run(f, READ_STAT).result, READ_UNTRIED);
  for (uint32_t i = 0; i < CREW_MAX; i++) {
    snprintf(path, sizeof(path), "%u/stat", 20 + i);
    proctree_wake(&f->tree, path);
  }
  await_returned(f);
  assert_int_equal(run(f, READ_STAT).result, 0);
}

/* The first one hangs, and there is no thread to go on with the rest: these
 * have failed, but for one that is known to hang. */
static void without_another_thread_the_rest_of_a_batch_fails(void **state) {
  struct fixture *f = *state;
  struct process other = {.pid = 11, .starttime_ticks = 111};
  struct read_job jobs[3];

  restart(f, SHORT_NS);
  put(f, process(11));
  proctree_hang(&f->tree, "10/stat");
  threads_fail = EAGAIN;
  lay_out(jobs, &f->p, &other);
  reader_run(&f->reader, jobs, 3);
  assert_int_equal(jobs[0].result, READ_STALLED);
  assert_int_equal(jobs[1].result, -EAGAIN);
  assert_int_equal(jobs[2].result, -EAGAIN);
  /* While one hangs that is no reason for the cycle to fail. */
  assert_int_equal(reader_begin(&f->reader, 1), 0);
  lay_out(jobs, &other, &f->p);
  reader_run(&f->reader, jobs, 3);
  assert_int_equal(jobs[0].result, -EAGAIN);
  assert_int_equal(jobs[1].result, READ_HANGING);
  assert_int_equal(jobs[2].result, -EAGAIN);
  threads_fail = 0;
  reader_run(&f->reader, jobs, 3);
  assert_int_equal(jobs[0].result, 0);
  assert_int_equal(jobs[1].result, READ_HANGING);
  assert_int_equal(jobs[2].result, 0);
  proctree_wake(&f->tree, "10/stat");
  await_returned(f);
}

static void without_any_thread_there_is_no_cycle(void **state) {
  struct fixture *f = *state;
  const struct reader_setup setup = f->reader.setup;

  reader_done(&f->reader);
  assert_int_equal(reader_init(&f->reader, &setup), 0);
  threads_fail = EAGAIN;
  assert_int_equal(reader_begin(&f->reader, 1), -EAGAIN);
  assert_int_equal(run(f, READ_STAT).result, -EAGAIN);
  threads_fail = 0;
  assert_int_equal(reader_begin(&f->reader, 1), 0);
  assert_int_equal(run(f, READ_STAT).result, 0);
}

/* What a sighting has read by then is freed: ASan and valgrind watch. The
 * process itself is gone, with its names. */
static void what_comes_too_late_is_dropped(void **state) {
  struct fixture *f = *state;
  struct process *p = malloc(sizeof(*p));
  struct read_job job = {.process = p, .kind = READ_SIGHTING};

  assert_non_null(p);
  restart(f, SHORT_NS);
  *p = f->p;
  reader_run(&f->reader, &job, 1);
  p->identity = job.sighting.identity;
  p->identified_ns = 1;
  put_faults(f, 1);
  job = (struct read_job){.process = p, .kind = READ_SIGHTING};
  proctree_hang(&f->tree, "10/cmdline");
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, READ_STALLED);
  identity_done(&p->identity);
  memset(p, 0xff, sizeof(*p));
  free(p);
  proctree_wake(&f->tree, "10/cmdline");
  await_returned(f);
}

/* A file that takes its time: who feeds it is another thread. */
static struct fixture *fed;

static void *feed_stat(void *path) {
  static const struct timespec a_while = {.tv_nsec = 30000000};
  static const char text[] =
      "10 (server) S 1 1 1 0 -1 0 7 0 0 0 5 5 0 0 20 0 1 0 110 0 9\n";
  char whole[128];
  int fd;

  snprintf(whole, sizeof(whole), "%s/%s", fed->tree.root, (char *)path);
  fd = open(whole, O_WRONLY); /* waits for the reader */
  nanosleep(&a_while, NULL);
  assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
  close(fd);
  return NULL;
}

static void slow_file_is_waited_for(void **state) {
  static char path[] = "10/stat";
  struct fixture *f = fed = *state;
  struct read_job job;
  pthread_t feeder;

  restart(f, NS_PER_S);
  proctree_hang(&f->tree, path);
  assert_int_equal(pthread_create(&feeder, NULL, feed_stat, path), 0);
  job = run(f, READ_STAT);
  pthread_join(feeder, NULL);
  assert_int_equal(job.result, 0);
  assert_int_equal(job.stat.minor_faults, 7);
}

static void *feed_stat_after_a_look(void *path) {
  while (sem_wait(&has_looked) != 0)
    continue;
  return feed_stat(path);
}

/* With so long a timeout one look is all the patience there is. What is read
 * meanwhile is taken, and the rest is for the next cycle. */
static void without_patience_the_rest_of_a_batch_is_put_off(void **state) {
  static char path[] = "10/stat";
  struct fixture *f = fed = *state;
  struct process other = {.pid = 11, .starttime_ticks = 111};
  struct read_job jobs[3];
  pthread_t feeder;

  put(f, process(11));
  assert_int_equal(run(f, READ_STAT).result, 0); /* the thread is there */
  proctree_hang(&f->tree, path);
  sem_init(&has_looked, 0, 0);
  assert_int_equal(pthread_create(&feeder, NULL, feed_stat_after_a_look, path),
                   0);
  lay_out(jobs, &other, &f->p);
  jobs[0].process = &f->p;
  jobs[1].process = &other;
  jobs[2].kind = READ_SIGHTING;
  first_look_is_over = true;
  reader_run(&f->reader, jobs, 3);
  first_look_is_over = false;
  pthread_join(feeder, NULL);
  assert_int_equal(jobs[0].result, 0);
  assert_int_equal(jobs[0].stat.minor_faults, 7);
  assert_int_equal(jobs[1].result, READ_UNTRIED);
  assert_int_equal(jobs[2].result, READ_UNTRIED);
  assert_int_equal(reader_hanging(&f->reader), 0);
  assert_int_equal(run(f, READ_ROLLUP).result, READ_UNTRIED);
  assert_int_equal(reader_begin(&f->reader, 2), 0);
  reader_run(&f->reader, jobs + 1, 2);
  assert_int_equal(jobs[1].result, 0);
  assert_int_equal(jobs[1].stat.starttime_ticks, 111);
  assert_int_equal(jobs[2].result, 0);
  sighting_done(&jobs[2].sighting);
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
  return identity_get(&job->sighting.identity).value[ATTRIBUTE_USER];
}

static void user_that_nobody_names_is_a_number_and_no_stall(void **state) {
  struct fixture *f = *state;
  struct reader_setup setup = f->reader.setup;
  struct fake fake = process(11);
  struct read_job job;

  sem_init(&may_answer, 0, 0);
  setup.attributes = 1U << ATTRIBUTE_USER;
  setup.stall_timeout_ns = SHORT_NS;
  setup.look_up_user = look_up_user;
  reader_done(&f->reader);
  assert_int_equal(reader_init(&f->reader, &setup), 0);
  job = run(f, READ_SIGHTING);
  assert_int_equal(job.result, READ_STALLED);
  assert_string_equal(job.file, "the user's name");
  for (fake.uid = 0; fake.uid < 2 * CREW_MAX; fake.uid++) {
    char wanted[16];

    put(f, fake);
    f->p.pid = 11;
    reader_begin(&f->reader, 1);
    job = run(f, READ_SIGHTING);
    assert_int_equal(job.result, 0);
    snprintf(wanted, sizeof(wanted), "%u", fake.uid);
    assert_string_equal(user_of(&job), wanted);
    sighting_done(&job.sighting);
  }
  for (int i = 0; i < 2; i++)
    sem_post(&may_answer);
  await_returned(f);
  job = run(f, READ_SIGHTING);
  assert_string_equal(user_of(&job), "user-7");
  sighting_done(&job.sighting);
}

/* --- whose mm it is --- */

/* A tree's pids are not ours, so the kernel is not asked. */
static void without_kcmp_a_parent_that_waits_tells(void **state) {
  static const struct {
    char state;
    bool may_be_vfork, is_same;
  } cases[] = {{'D', true, true}, {'D', false, false}, {'S', true, false}};
  struct fixture *f = *state;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct fake parent = process(9);
    struct read_job job = {.process = &f->p,
                           .kind = READ_SAME_MM,
                           .other_pid = 9,
                           .may_be_vfork = cases[i].may_be_vfork};

    parent.state = cases[i].state;
    put(f, parent);
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, 0);
    assert_int_equal(job.mm.is_same, cases[i].is_same);
    assert_false(job.mm.is_certain);
  }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_kind_fills_its_own_result),
      TEST(mappings_are_of_smaps_or_of_maps),
      TEST(pid_file_is_read_between_processes),
      TEST(batch_is_done_whole_whoever_has_vanished),
      TEST(rollup_takes_by_the_clock),
      TEST(evidence_is_read_right_after_the_rollup),
      TEST(evidence_may_be_missing),
      TEST(rollup_alone_is_without_evidence),
      TEST(faults_are_asked_for_where_they_can_break_something),
      TEST(kernel_without_rollup_has_its_smaps_summed),
      TEST(malformed_rollup_is_told),
      TEST(rollup_of_another_process_is_not_taken),
      TEST(dead_main_thread_is_read_through_a_live_one),
      TEST(what_hangs_is_told_with_its_file),
      TEST(what_hangs_holds_up_no_other),
      TEST(while_it_hangs_it_is_not_tried_again),
      TEST(when_all_hang_no_other_is_tried),
      TEST(what_comes_too_late_is_dropped),
      TEST(slow_file_is_waited_for),
      TEST(user_that_nobody_names_is_a_number_and_no_stall),
      TEST(without_kcmp_a_parent_that_waits_tells),
      TEST(without_another_thread_the_rest_of_a_batch_fails),
      TEST(without_any_thread_there_is_no_cycle),
      TEST(without_patience_the_rest_of_a_batch_is_put_off),
  };

  alarm(300); /* what waits in vain fails */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
