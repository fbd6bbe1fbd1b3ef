/* SPDX-License-Identifier: MIT */
#include "reading.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/policy.h"
#include "few_threads.h"
#include "patience.h"
#include "test.h"

static _Atomic uint64_t now_ns;

static uint64_t clock_ns(void) {
  now_ns += TOOK_NS;
  return now_ns;
}

struct fake reading_server(uint32_t pid) {
  return (struct fake){.pid = pid,
                       .ppid = 1,
                       .comm = "server",
                       .starttime = 100 + pid,
                       .cmdline = "server -v",
                       .private_kb = 6144,
                       .shared_kb = 2048};
}

void reading_make_own(struct reading_world *f) {
  proctree_make_own(&f->tree);
  procfs_free(f->procfs);
  assert_int_equal(procfs_new(f->tree.root, &f->procfs), 0);
  reading_restart(f, 60 * NS_PER_S);
}

void reading_put(const struct reading_world *f, struct fake fake) {
  proctree_put(&f->tree, &fake);
}

void reading_write(const struct reading_world *f, const char *path,
                   const char *text) {
  proctree_write(&f->tree, path, text, strlen(text));
}

void reading_restart(struct reading_world *f, uint64_t read_timeout_ns) {
  const struct reader_setup setup = {.procfs = f->procfs,
                                     .diags = f->diags,
                                     .attributes = 1U << ATTRIBUTE_COMMAND_LINE,
                                     .read_timeout_ns = read_timeout_ns,
                                     .clock_ns = clock_ns,
                                     .cpu_clock_ns = clock_ns};

  reader_done(&f->reader);
  assert_int_equal(reader_init(&f->reader, &setup), 0);
  reader_begin(&f->reader, 1);
}

int reading_make(void **state) {
  static struct reading_world f;

  alarm(300); /* A test that waits in vain fails. */
  now_ns = 1000;
  threads_fail = 0;
  patience_hook = NULL;
  f = (struct reading_world){.p = {.pid = 10,
                                   .starttime_ticks = 110,
                                   .statm = {.size_pages = 9999,
                                             .resident_pages = PAGES(8192),
                                             .shared_pages = PAGES(2048)}}};
  proctree_make(&f.tree);
  reading_put(&f, reading_server(10));
  assert_int_equal(procfs_new(f.tree.root, &f.procfs), 0);
  reading_restart(&f, 60 * NS_PER_S);
  *state = &f;
  return 0;
}

int reading_unmake(void **state) {
  struct reading_world *f = *state;

  reader_done(&f->reader);
  procfs_free(f->procfs);
  proctree_remove(&f->tree);
  return 0;
}

void reading_put_faults(const struct reading_world *f, unsigned faults) {
  proctree_print(
      &f->tree, 10, "stat",
      "10 (server) S 1 1 1 0 -1 0 %u 0 0 0 5 5 0 0 20 0 1 0 110 0 9\n", faults);
}

void reading_put_pages(const struct reading_world *f, uint32_t pid) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  const struct fake_range range = {64 * page, 67 * page, NULL, NULL};

  fake_pages_map(&f->tree, pid, &range, 1);
  fake_pages_put(&f->tree, pid, 64, 3, FAKE_ANON | FAKE_EXCLUSIVE, 100);
  fake_pages_count(&f->tree, 100, 3, 1);
}

struct read_job reading_run(struct reading_world *f, enum read_kind kind) {
  struct read_job job = {.process = &f->p, .kind = kind, .result = 77};

  reader_run(&f->reader, &job, 1);
  return job;
}

static void *feed(void *arg) {
  const struct feeder *d = arg;
  char path[128];
  int fd;

  while (d->begin && sem_wait(d->begin) != 0)
    continue;
  snprintf(path, sizeof(path), "%s/%s", d->f->tree.root, d->path);
  fd = open(path, O_WRONLY); /* waits for the reader */
  if (d->meanwhile)
    d->meanwhile(d->f);
  assert_int_equal(write(fd, d->text, strlen(d->text)), strlen(d->text));
  close(fd);
  return NULL;
}

void reading_run_fed(struct feeder *d, struct read_job *jobs, size_t n) {
  proctree_hang(&d->f->tree, d->path);
  assert_int_equal(pthread_create(&d->thread, NULL, feed, d), 0);
  reader_run(&d->f->reader, jobs, n);
  pthread_join(d->thread, NULL);
  proctree_unlink(&d->f->tree, d->path);
}

uint64_t reading_rss_kb(const struct read_job *job) {
  return job->rollup.rollup.bytes[ROLLUP_RSS] / KIB;
}
