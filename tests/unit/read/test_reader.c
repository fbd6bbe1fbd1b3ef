#include "test.h"

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

#include "config/policy.h"
#include "read/reader.h"

#include "fake_pages.h"
#include "few_threads.h"
#include "patience.h"
#include "proctree.h"

#define PAGES(kb) (KIB * (kb) / (uint64_t)sysconf(_SC_PAGESIZE))
#define TOOK_NS 7000

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

struct fixture {
  struct proctree tree;
  struct procfs *procfs;
  struct reader reader;
  struct process p; /* pid 10, alike in the tree */
};

/* Each question takes a while. */
static _Atomic uint64_t now_ns;

static uint64_t clock_ns(void) {
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

static void start(struct fixture *f, uint64_t read_timeout_ns) {
  const struct reader_setup setup = {.procfs = f->procfs,
                                     .attributes = 1U << ATTRIBUTE_COMMAND_LINE,
                                     .read_timeout_ns = read_timeout_ns,
                                     .clock_ns = clock_ns};

  assert_int_equal(reader_init(&f->reader, &setup), 0);
  reader_begin(&f->reader, 1);
}

static int make(void **state) {
  static struct fixture f;

  alarm(300); /* A test that waits in vain fails. */
  now_ns = 1000;
  threads_fail = 0;
  patience_hook = look;
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

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* The text of a rollup: 8 MiB, of which Pss is short by so much of what is
 * anonymous. */
static void print_cow(char *ret, size_t size, unsigned cow_kb) {
  snprintf(ret, size,
           "Rss: 8192 kB\nPss: %u kB\nPss_Anon: %u kB\nPss_File: 0 kB\n"
           "Pss_Shmem: 0 kB\nShared_Clean: 0 kB\nShared_Dirty: 4096 kB\n"
           "Private_Clean: 0 kB\nPrivate_Dirty: 4096 kB\nAnonymous: 8192 kB\n",
           8192 - cow_kb, 8192 - cow_kb);
}

static void put_faults(const struct fixture *f, unsigned faults) {
  char text[128];

  snprintf(text, sizeof(text),
           "10 (server) S 1 1 1 0 -1 0 %u 0 0 0 5 5 0 0 20 0 1 0 110 0 9\n",
           faults);
  write_file(f, "10/stat", text);
}

/* Three pages that are its own. */
static void put_pages(const struct fixture *f, uint32_t pid) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  const struct fake_range range = {64 * page, 67 * page, NULL, NULL};

  fake_pages_map(&f->tree, pid, &range, 1);
  fake_pages_put(&f->tree, pid, 64, 3, FAKE_ANON | FAKE_EXCLUSIVE, 100);
  fake_pages_count(&f->tree, 100, 3, 1);
}

static struct read_job run(struct fixture *f, enum read_kind kind) {
  struct read_job job = {.process = &f->p, .kind = kind, .result = 77};

  reader_run(&f->reader, &job, 1);
  return job;
}

static struct read_job run_baseline(struct fixture *f, bool wants_faults) {
  struct read_job job = {.process = &f->p,
                         .kind = READ_ROLLUP,
                         .is_baseline = true,
                         .wants_faults = wants_faults,
                         .result = 77};

  reader_run(&f->reader, &job, 1);
  return job;
}

/* Feeds a file that hangs, on a thread of its own. What happens meanwhile
 * happens after the reader has opened the file and before it has the text. */
struct feeder {
  struct fixture *f;
  const char *path;
  char text[512];
  void (*meanwhile)(const struct fixture *f);
  bool waits_for_a_look; /* at the worker */
  pthread_t thread;
};

static void *feed(void *arg) {
  const struct feeder *d = arg;
  char path[128];
  int fd;

  while (d->waits_for_a_look && sem_wait(&has_looked) != 0)
    continue;
  snprintf(path, sizeof(path), "%s/%s", d->f->tree.root, d->path);
  fd = open(path, O_WRONLY); /* waits for the reader */
  if (d->meanwhile)
    d->meanwhile(d->f);
  assert_int_equal(write(fd, d->text, strlen(d->text)), strlen(d->text));
  close(fd);
  return NULL;
}

static void run_while_fed(struct feeder *d, struct read_job *jobs, size_t n) {
  proctree_hang(&d->f->tree, d->path);
  sem_init(&has_looked, 0, 0);
  assert_int_equal(pthread_create(&d->thread, NULL, feed, d), 0);
  reader_run(&d->f->reader, jobs, n);
  pthread_join(d->thread, NULL);
  proctree_unlink(&d->f->tree, d->path);
}

/* Reads a rollup, during which something happens. */
static struct read_job run_while(struct fixture *f, struct read_job job,
                                 unsigned cow_kb,
                                 void (*meanwhile)(const struct fixture *f)) {
  struct feeder d = {.f = f, .path = "10/smaps_rollup", .meanwhile = meanwhile};

  print_cow(d.text, sizeof(d.text), cow_kb);
  job.process = &f->p;
  run_while_fed(&d, &job, 1);
  return job;
}

static uint64_t rss_kb(const struct read_job *job) {
  return job->rollup.rollup.bytes[ROLLUP_RSS] / KIB;
}

static uint64_t pss_kb(const struct read_job *job) {
  return job->rollup.rollup.bytes[ROLLUP_PSS] / KIB;
}

FIXTURE_TEST(each_kind_fills_its_own_result) {
  struct read_job job = run(f, READ_INSPECTION);

  assert_int_equal(job.inspection.state, PROCESS_ALIVE);
  assert_string_equal(
      attributes_get(&job.inspection.attributes).value[ATTRIBUTE_COMMAND_LINE],
      "server -v");
  inspection_done(&job.inspection);
  job = run(f, READ_STAT);
  assert_int_equal(job.stat.starttime_ticks, 110);
  assert_int_equal(job.stat.minor_faults, 10);
  assert_null(job.stat.comm.text);
  job = run(f, READ_ROLLUP);
  assert_int_equal(rss_kb(&job), 8192);
  assert_int_equal(pss_kb(&job), 7168);
  job = run_baseline(f, false);
  assert_int_equal(rss_kb(&job), 8192);
  assert_int_equal(job.rollup.statm.resident_pages, PAGES(8192));
}

static void free_mappings(struct read_job *job) {
  mapping_table_done(job->mappings.table);
  free(job->mappings.table);
}

/* The one as it is, with amounts, the other without. */
FIXTURE_TEST(mappings_are_of_smaps_or_of_maps) {
  static const char maps[] = "1000-9000 r--p 00000000 08:01 7 /lib/y\n"
                             "a000-b000 rw-p 00000000 00:00 0 \n";
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

/* Of the process itself, and not of a later one with its pid. */
FIXTURE_TEST(limit_is_that_of_the_process) {
  char mounts[160];

  snprintf(mounts, sizeof(mounts),
           "30 23 0:26 / %s/cg rw - cgroup2 cgroup2 rw\n", f->tree.root);
  write_file(f, "self/mountinfo", mounts);
  write_file(f, "cg/memory.max", "65536\n");
  assert_int_equal(run(f, READ_MEMORY_LIMIT).result, 0);
  assert_int_equal(run(f, READ_MEMORY_LIMIT).limit_bytes, 65536);
  f->p.starttime_ticks++;
  assert_int_equal(run(f, READ_MEMORY_LIMIT).result, PROCFS_GONE);
}

/* A PID file belongs to no process. */
FIXTURE_TEST(pid_file_is_read_between_processes) {
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
FIXTURE_TEST(batch_is_done_whole_when_processes_have_vanished) {
  static const enum read_kind kinds[] = {READ_INSPECTION, READ_STAT,
                                         READ_ROLLUP, READ_ROLLUP, READ_SAMPLE};
  struct process processes[10];
  struct read_job jobs[10];

  for (uint32_t i = 0; i < 10; i++) {
    struct fake fake = process(20 + i);

    processes[i] = (struct process){.pid = 20 + i, .starttime_ticks = 120 + i};
    jobs[i] = (struct read_job){.process = &processes[i],
                                .kind = kinds[i / 2],
                                .is_baseline = i >= 6,
                                .request = {.pages_wanted = 3},
                                .result = 77};
    fake.private_kb = 1024 * i;
    if (i % 2 == 0)
      continue;
    put(f, fake);
    put_pages(f, 20 + i);
  }
  reader_run(&f->reader, jobs, 10);
  for (size_t i = 0; i < 10; i++)
    assert_int_equal(jobs[i].result, i % 2 == 1 ? 0 : PROCFS_GONE);
  assert_int_equal(jobs[1].inspection.stat.starttime_ticks, 121);
  assert_int_equal(jobs[3].stat.starttime_ticks, 123);
  assert_int_equal(rss_kb(&jobs[5]), 5 * 1024 + 2048);
  assert_int_equal(rss_kb(&jobs[7]), 7 * 1024 + 2048);
  assert_int_equal(jobs[7].rollup.statm.resident_pages, PAGES(9216));
  assert_int_equal(jobs[9].sample.kinds[PAGE_ANON].pages, 3);
  page_layout_drop(jobs[9].sample.layout);
  inspection_done(&jobs[0].inspection);
  inspection_done(&jobs[1].inspection);
}

FIXTURE_TEST(rollup_takes_by_the_clock) {
  assert_int_equal(run(f, READ_ROLLUP).took_ns, TOOK_NS);
  assert_int_equal(run_baseline(f, false).took_ns, TOOK_NS);
  proctree_end(&f->tree, 10);
  assert_int_equal(run(f, READ_ROLLUP).took_ns, TOOK_NS);
}

static void grow(const struct fixture *f) {
  write_file(f, "10/statm", "10000 3000 500 5 0 6 0\n");
}

static void fault(const struct fixture *f) { put_faults(f, 5100); }

FIXTURE_TEST(evidence_is_read_right_after_the_rollup) {
  struct read_job job = run_while(
      f, (struct read_job){.kind = READ_ROLLUP, .is_baseline = true}, 0, grow);

  assert_true(job.rollup.has_statm);
  assert_int_equal(job.rollup.statm.resident_pages, 3000);
  assert_int_equal(job.rollup.statm.shared_pages, 500);
}

FIXTURE_TEST(evidence_may_be_missing) {
  static const char *const texts[] = {NULL, "1 2\n", "0 0 0 0 0 0 0\n", ""};

  for (size_t i = 0; i < LENGTH(texts); i++) {
    struct read_job job;

    proctree_unlink(&f->tree, "10/statm");
    if (texts[i])
      write_file(f, "10/statm", texts[i]);
    job = run_baseline(f, false);
    assert_int_equal(job.result, 0);
    assert_int_equal(rss_kb(&job), 8192);
    assert_false(job.rollup.has_statm);
  }
}

/* Nobody follows it from there. */
FIXTURE_TEST(rollup_alone_is_without_evidence) {
  struct read_job job;

  put_faults(f, 5000);
  job = run_while(f, (struct read_job){.kind = READ_ROLLUP}, 2048, fault);
  assert_false(job.rollup.has_statm);
  assert_int_equal(job.rollup.faults_before, 0);
  assert_int_equal(job.rollup.faults_after, 0);
}

/* Before where the caller wants them, after by what is shared now. */
FIXTURE_TEST(faults_are_asked_for_where_they_can_break_something) {
  static const struct {
    bool wants_faults;
    unsigned cow_kb;
    uint32_t before, after;
  } cases[] = {
      {true, 2048, 5000, 5100}, {true, 256, 5000, 5100}, {true, 255, 5000, 0},
      {false, 255, 0, 0},       {false, 0, 0, 0},        {false, 2048, 0, 5100},
      {true, 0, 5000, 0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct read_job job = {.kind = READ_ROLLUP,
                           .is_baseline = true,
                           .wants_faults = cases[i].wants_faults};

    put_faults(f, 5000);
    job = run_while(f, job, cases[i].cow_kb, fault);
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

/* Files that can be missing; a rollup that was read before says that it is the
 * process and not the kernel. */
FIXTURE_TEST(kernel_without_rollup_has_its_smaps_summed) {
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

  for (size_t i = 0; i < LENGTH(cases); i++) {
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

FIXTURE_TEST(malformed_rollup_is_told) {
  for (int i = 0; i < 2; i++) {
    f->reader.has_rollup = i;
    write_file(f, "10/smaps_rollup", "Rss: 8192 kB\n");
    assert_int_equal(run_baseline(f, false).result, -EBADMSG);
    write_file(f, "10/smaps_rollup", "");
    assert_int_equal(run_baseline(f, false).result, PROCFS_NO_MM);
  }
}

/* A size that we do not expect: the start time tells whether the pid has come
 * to another, and the inode may, for less, that it has not. */
FIXTURE_TEST(rollup_of_another_process_is_not_taken) {
  static const struct {
    unsigned kb; /* is 8192 by statm */
    bool is_other_inode, is_other_start;
    int result;
  } cases[] = {
      {400, true, true, PROCFS_GONE}, {90000, true, true, PROCFS_GONE},
      {400, true, false, 0},          {90000, true, false, 0},
      {400, false, false, 0},
  };

  f->reader.has_rollup = true;
  for (size_t i = 0; i < LENGTH(cases); i++) {
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
    job = run_baseline(f, false);
    assert_int_equal(job.result, cases[i].result);
    if (job.result == 0)
      assert_int_equal(rss_kb(&job), cases[i].kb);
  }
}

FIXTURE_TEST(dead_main_thread_is_read_through_a_live_one) {
  struct fake live = process(12);
  struct read_job job;

  f->p.is_dead_leader = f->reader.has_rollup = true;
  write_file(f, "10/smaps_rollup", "");
  write_file(f, "10/statm", "0 0 0 0 0 0 0\n");
  assert_int_equal(run(f, READ_ROLLUP).result, PROCFS_GONE);
  proctree_put_thread(&f->tree, 10, &live);
  job = run_baseline(f, false);
  assert_int_equal(job.result, 0);
  assert_int_equal(rss_kb(&job), 8192);
  assert_false(job.rollup.has_statm); /* it shows nothing itself */
  proctree_unlink(&f->tree, "10/task/12/smaps_rollup");
  write_file(f, "10/task/12/smaps", smaps);
  assert_int_equal(run(f, READ_ROLLUP).result, PROCFS_GONE);
}

FIXTURE_TEST(sample_by_mapping_is_the_callers) {
  struct read_job job = {.process = &f->p,
                         .kind = READ_MAPPING_SAMPLE,
                         .request = {.pages_wanted = 3}};

  put_pages(f, 10);
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, 0);
  assert_true(job.took_ns >= TOOK_NS && job.work_ns >= TOOK_NS);
  assert_int_equal(job.mapping_sample.table->n, 2);
  assert_int_equal(job.mapping_sample.tallies[1].kinds[PAGE_ANON].exclusive, 3);
  mapping_sample_done(&job.mapping_sample);
}

/* The caller's layout stays the caller's, and the result's is another
 * reference to it. */
FIXTURE_TEST(sample_takes_and_gives_references_to_its_layout) {
  struct read_job job = {
      .process = &f->p, .kind = READ_SAMPLE, .request = {.pages_wanted = 3}};
  struct page_layout *layout;

  put_pages(f, 10);
  write_file(f, "10/statm", "3 3 0 0 0 3 0\n"); /* the layout has all */
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

/* --- reads that hang --- */

#define SHORT_NS (100 * NS_PER_MS)

static void restart(struct fixture *f, uint64_t read_timeout_ns) {
  reader_done(&f->reader);
  start(f, read_timeout_ns);
}

static void await_returned(struct fixture *f) {
  while (reader_count_hung(&f->reader) > 0)
    sched_yield();
  reader_begin(&f->reader, 1);
}

FIXTURE_TEST(hung_read_is_told_with_its_file) {
  static const struct {
    enum read_kind kind;
    const char *path, *file;
    bool has_rollup;
  } cases[] = {
      {READ_INSPECTION, "10/stat", "stat", false},
      {READ_INSPECTION, "10/cmdline", "cmdline", false},
      {READ_STAT, "10/stat", "stat", false},
      {READ_ROLLUP, "10/smaps_rollup", "smaps_rollup", false},
      {READ_ROLLUP, "10/smaps_rollup", "smaps_rollup", true},
      {READ_MAPPINGS, "10/smaps", "smaps", false},
      {READ_MAPS, "10/maps", "maps", false},
      {READ_SAMPLE, "10/pagemap", "pagemap", false},
      {READ_SAMPLE, "10/maps", "maps", false},
      {READ_SAMPLE, "kpagecount", "kpagecount", false},
      {READ_MAPPING_SAMPLE, "10/maps", "maps", false},
      {READ_SAME_MM, "10/stat", "stat", false},
      {READ_MEMORY_LIMIT, "10/cgroup", "cgroup", false},
      {READ_MEMORY_LIMIT, "self/mountinfo", "self/mountinfo", false},
      {READ_CGROUP, "10/cgroup", "cgroup", false},
      {READ_CGROUP, "self/mountinfo", "self/mountinfo", false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct read_job job = {.process = &f->p,
                           .kind = cases[i].kind,
                           .other_pid = 10,
                           .may_be_vfork = true,
                           .cgroup.pid = 10};

    if (job.kind == READ_CGROUP)
      job.path = "/";
    restart(f, SHORT_NS);
    f->reader.has_rollup = cases[i].has_rollup;
    put(f, process(10));
    put_pages(f, 10);
    proctree_hang(&f->tree, cases[i].path);
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_HUNG);
    assert_string_equal(job.file, cases[i].file);
    assert_int_equal(job.inspection.state, PROCESS_UNSEEN);
    assert_ptr_equal(job.process, &f->p);
    proctree_wake(&f->tree, cases[i].path);
    await_returned(f);
  }
}

/* A control group has a hierarchy of its own, at "cg". */
static void put_cgroup(struct fixture *f) {
  char mounts[160];

  snprintf(mounts, sizeof(mounts),
           "30 23 0:26 / %s/cg rw - cgroup2 cgroup2 rw\n", f->tree.root);
  write_file(f, "self/mountinfo", mounts);
  write_file(f, "10/cgroup", "0::/web\n");
  write_file(f, "cg/web/memory.current", "4096\n");
}

/* The place that is found is the caller's, and what hangs has a copy of it. */
FIXTURE_TEST(late_control_group_is_dropped_with_its_place) {
  struct read_job job = {.kind = READ_CGROUP,
                         .path = "/web",
                         .cgroup = {.pid = 10, .wants = CGROUP_WANTS_USAGE}};

  put(f, process(10));
  for (int i = 0; i < 2; i++) {
    restart(f, SHORT_NS);
    put_cgroup(f);
    job.cgroup.place.directory = NULL;
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, 0);
    assert_int_equal(job.cgroup_memory.bytes, 4096);
    assert_null(job.cgroup.place.directory);
    if (i == 0)
      free(job.cgroup_memory.place.directory);
    else
      job.cgroup.place = job.cgroup_memory.place;
    proctree_hang(&f->tree, "cg/web/memory.current");
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_HUNG);
    assert_string_equal(job.file, "the cgroup");
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_STILL_HUNG);
    free(job.cgroup.place.directory);
    proctree_wake(&f->tree, "cg/web/memory.current");
    await_returned(f);
  }
}

/* A late result is dropped, with the layout that was made for it. The reading
 * that hangs holds the layout that it was given. */
FIXTURE_TEST(late_sample_is_dropped_with_its_layout) {
  struct read_job job = {
      .process = &f->p, .kind = READ_SAMPLE, .request = {.pages_wanted = 3}};

  put_pages(f, 10);
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, 0);
  restart(f, SHORT_NS);
  for (int i = 0; i < 2; i++) {
    struct page_layout *given = i == 0 ? job.sample.layout : NULL;

    job.request.layout = given;
    put_pages(f, 10);
    proctree_hang(&f->tree, "kpagecount");
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_HUNG);
    assert_ptr_equal(job.request.layout, given);
    page_layout_drop(given);
    proctree_wake(&f->tree, "kpagecount");
    await_returned(f);
  }
}

FIXTURE_TEST(late_sample_by_mapping_is_dropped) {
  struct read_job job = {.process = &f->p,
                         .kind = READ_MAPPING_SAMPLE,
                         .request = {.pages_wanted = 3}};

  restart(f, SHORT_NS);
  put_pages(f, 10);
  proctree_hang(&f->tree, "kpagecount");
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, READ_HUNG);
  proctree_wake(&f->tree, "kpagecount");
  await_returned(f);
}

/* One in the middle of more than fit one batch. */
FIXTURE_TEST(hung_file_delays_no_other) {
  enum { N = JOBS_AT_ONCE + 20 };
  struct process processes[N];
  struct read_job jobs[N];

  restart(f, SHORT_NS);
  for (uint32_t i = 0; i < N; i++) {
    put(f, process(20 + i));
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
FIXTURE_TEST(while_it_hangs_it_is_not_tried_again) {
  struct read_job jobs[2];

  restart(f, SHORT_NS);
  put(f, process(11));
  proctree_hang(&f->tree, "10/smaps_rollup");
  assert_int_equal(run(f, READ_ROLLUP).result, READ_HUNG);
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
  assert_int_equal(run(f, READ_STAT).result, 0);
  f->p.image--;
  f->p.starttime_ticks++;
  assert_int_equal(run(f, READ_STAT).result, 0);
  f->p.starttime_ticks--;
  proctree_wake(&f->tree, "10/smaps_rollup");
  await_returned(f);
  assert_int_equal(run(f, READ_STAT).result, 0);
}

FIXTURE_TEST(when_all_hang_no_other_is_tried) {
  struct process processes[WORKER_POOL_MAX];
  char path[32];

  restart(f, SHORT_NS);
  for (uint32_t i = 0; i < WORKER_POOL_MAX; i++) {
    struct read_job job = {.process = &processes[i], .kind = READ_STAT};

    processes[i] = (struct process){.pid = 20 + i};
    put(f, process(20 + i));
    snprintf(path, sizeof(path), "%u/stat", 20 + i);
    proctree_hang(&f->tree, path);
    assert_int_equal(reader_count_hung(&f->reader), i);
    reader_run(&f->reader, &job, 1);
    assert_int_equal(job.result, READ_HUNG);
  }
  assert_int_equal(reader_count_hung(&f->reader), WORKER_POOL_MAX);
  assert_int_equal(run(f, READ_STAT).result, READ_SKIPPED);
  for (uint32_t i = 0; i < WORKER_POOL_MAX; i++) {
    snprintf(path, sizeof(path), "%u/stat", 20 + i);
    proctree_wake(&f->tree, path);
  }
  await_returned(f);
  assert_int_equal(run(f, READ_STAT).result, 0);
}

/* The first one hangs, and there is no thread to go on with the rest: these
 * have failed, but for one that is known to hang. */
FIXTURE_TEST(without_another_thread_the_rest_of_a_batch_fails) {
  struct process other = {.pid = 11, .starttime_ticks = 111};
  struct read_job jobs[3];

  restart(f, SHORT_NS);
  put(f, process(11));
  proctree_hang(&f->tree, "10/stat");
  threads_fail = EAGAIN;
  lay_out(jobs, &f->p, &other);
  reader_run(&f->reader, jobs, 3);
  assert_int_equal(jobs[0].result, READ_HUNG);
  assert_int_equal(jobs[1].result, -EAGAIN);
  assert_int_equal(jobs[2].result, -EAGAIN);
  /* While one hangs that is no reason for the cycle to fail. */
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
  proctree_wake(&f->tree, "10/stat");
  await_returned(f);
}

FIXTURE_TEST(without_any_thread_there_is_no_cycle) {
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

/* Attributes that an inspection has read by then are freed: ASan and valgrind
 * watch. The process itself is gone, with its names. */
FIXTURE_TEST(late_inspection_is_dropped) {
  struct process *p = malloc(sizeof(*p));
  struct read_job job = {.process = p, .kind = READ_INSPECTION};

  assert_non_null(p);
  restart(f, SHORT_NS);
  *p = f->p;
  reader_run(&f->reader, &job, 1);
  p->attributes = job.inspection.attributes;
  p->identified_ns = 1;
  put_faults(f, 1);
  job = (struct read_job){.process = p, .kind = READ_INSPECTION};
  proctree_hang(&f->tree, "10/cmdline");
  reader_run(&f->reader, &job, 1);
  assert_int_equal(job.result, READ_HUNG);
  attributes_done(&p->attributes);
  memset(p, 0xff, sizeof(*p));
  free(p);
  proctree_wake(&f->tree, "10/cmdline");
  await_returned(f);
}

#define STAT_TEXT                                                              \
  "10 (server) S 1 1 1 0 -1 0 7 0 0 0 5 5 0 0 20 0 1 0 110 0 9\n"

FIXTURE_TEST(slow_file_is_waited_for) {
  struct read_job job = {.process = &f->p, .kind = READ_STAT};
  struct feeder d = {
      .f = f, .path = "10/stat", .text = STAT_TEXT, .waits_for_a_look = true};

  restart(f, NS_PER_S);
  run_while_fed(&d, &job, 1);
  assert_int_equal(job.result, 0);
  assert_int_equal(job.stat.minor_faults, 7);
}

/* The timeout is so long that a single poll is the whole wait budget. The file
 * that is read meanwhile counts, and the rest is for the next cycle. */
FIXTURE_TEST(without_wait_budget_the_rest_of_a_batch_is_skipped) {
  struct process other = {.pid = 11, .starttime_ticks = 111};
  struct feeder d = {
      .f = f, .path = "10/stat", .text = STAT_TEXT, .waits_for_a_look = true};
  struct read_job jobs[3];

  put(f, process(11));
  assert_int_equal(run(f, READ_STAT).result, 0); /* the thread is there */
  lay_out(jobs, &other, &f->p);
  jobs[0].process = &f->p;
  jobs[1].process = &other;
  jobs[2].kind = READ_INSPECTION;
  first_look_is_over = true;
  run_while_fed(&d, jobs, 3);
  first_look_is_over = false;
  assert_int_equal(jobs[0].result, 0);
  assert_int_equal(jobs[0].stat.minor_faults, 7);
  assert_int_equal(jobs[1].result, READ_SKIPPED);
  assert_int_equal(jobs[2].result, READ_SKIPPED);
  assert_int_equal(reader_count_hung(&f->reader), 0);
  assert_int_equal(run(f, READ_ROLLUP).result, READ_SKIPPED);
  assert_int_equal(reader_begin(&f->reader, 2), 0);
  write_file(f, "10/stat", STAT_TEXT);
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
  struct fake fake = process(11);
  struct read_job job;

  sem_init(&may_answer, 0, 0);
  setup.attributes = 1U << ATTRIBUTE_USER;
  setup.read_timeout_ns = SHORT_NS;
  setup.look_up_user = look_up_user;
  reader_done(&f->reader);
  assert_int_equal(reader_init(&f->reader, &setup), 0);
  job = run(f, READ_INSPECTION);
  assert_int_equal(job.result, READ_HUNG);
  assert_string_equal(job.file, "the user's name");
  for (fake.uid = 0; fake.uid < 2 * WORKER_POOL_MAX; fake.uid++) {
    char wanted[16];

    put(f, fake);
    f->p.pid = 11;
    reader_begin(&f->reader, 1);
    job = run(f, READ_INSPECTION);
    assert_int_equal(job.result, 0);
    snprintf(wanted, sizeof(wanted), "%u", fake.uid);
    assert_string_equal(user_of(&job), wanted);
    inspection_done(&job.inspection);
  }
  for (int i = 0; i < 2; i++)
    sem_post(&may_answer);
  await_returned(f);
  job = run(f, READ_INSPECTION);
  assert_string_equal(user_of(&job), "user-7");
  inspection_done(&job.inspection);
}

/* --- whose mm it is --- */

/* A tree's pids are not ours, so the kernel is not asked. */
FIXTURE_TEST(without_kcmp_a_parent_that_waits_tells) {
  static const struct {
    char state;
    bool may_be_vfork, is_same;
  } cases[] = {{'D', true, true}, {'D', false, false}, {'S', true, false}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
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
