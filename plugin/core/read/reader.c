/* SPDX-License-Identifier: MIT */
#include "read/reader.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "proc/cheap_files.h"
#include "proc/units.h"
#include "read/pid_file.h"
#include "read/rollup_reader.h"

/* A cycle waits at most this long for slow reads, plus ReadTimeout for the last
 * of them. With the default of one second that is four seconds, so that
 * collectd, which waits for the end of a cycle, stops within five. */
#define WAIT_BUDGET_NS (3 * NS_PER_S)

/* Names that are looked up, shared by all threads. */
struct shared_names {
  atomic_uint holders;
  struct user_cache users;
  struct container_cache containers;
};

/* A job in a context. */
struct task {
  struct proc_ref ref;
  char *path;          /* of the job; owned */
  struct read_job job; /* its process and path are the caller's: not used */
  size_t place;        /* index in the caller's jobs */
};

struct worker_context {
  struct procfs *procfs;
  struct shared_names *names;
  struct inspect_ctx inspect;
  struct rollup_reader rollups;
  atomic_uint heartbeat;       /* changes while a long read makes progress */
  struct mapping_table *table; /* the table that is being filled */
  bool is_last;                /* all other workers hang */
  size_t n;                    /* tasks in the batch */
  size_t at;                   /* the task that hangs, or hung last */
  struct task tasks[JOBS_AT_ONCE];
};

/* --- in the thread of a worker --- */

/* smaps can be so long that only its pieces show progress. */
static size_t feed_mappings(void *ctx, const char *text, size_t len) {
  struct worker_context *w = ctx;

  atomic_fetch_add_explicit(&w->heartbeat, 1, memory_order_relaxed);
  return mapping_table_feed(w->table, text, len);
}

static int read_mappings(struct worker_context *w, const struct proc_ref *p,
                         bool has_amounts, struct rollup *ret) {
  const char *name = has_amounts ? "smaps" : "maps";
  uint32_t pid;
  int rc = proc_ref_find_memory(p, w->procfs, &pid);

  if (rc == 0)
    rc = procfs_read_pieces(w->procfs, pid, name, feed_mappings, w);
  if (rc != 0)
    return rc;
  return has_amounts ? mapping_table_finish(w->table, ret) : w->table->error;
}

static void run_mappings(struct worker_context *w, const struct proc_ref *p,
                         struct read_job *job) {
  uint64_t before = w->rollups.clock_ns();

  w->table = &job->mappings.table;
  job->result =
      read_mappings(w, p, job->kind == READ_MAPPINGS, &job->mappings.sum);
  job->took_ns = w->rollups.clock_ns() - before;
  if (job->result != 0)
    mapping_table_done(w->table);
}

static void run_sample(struct worker_context *w, const struct proc_ref *p,
                       struct read_job *job) {
  struct page_reader *pages = &w->rollups.pages;
  uint64_t before = w->rollups.clock_ns(), cpu_before = pages->clock_ns();

  job->result =
      job->kind == READ_SAMPLE
          ? page_sample_read(pages, p, &job->request, &job->sample)
          : mapping_sample_read(pages, p, &job->request, &job->mappings.table);
  job->work_ns = pages->clock_ns() - cpu_before;
  job->took_ns = w->rollups.clock_ns() - before;
}

static unsigned count_heartbeats(void *ctx) {
  struct worker_context *w = ctx;

  return atomic_load_explicit(&w->heartbeat, memory_order_relaxed);
}

static void do_job(void *ctx, size_t i) {
  struct worker_context *w = ctx;
  const struct proc_ref *p = &w->tasks[i].ref;
  struct read_job *job = &w->tasks[i].job;

  /* The last worker is not for processes that may hang. */
  if (w->is_last && !w->tasks[i].path && status_is_blocked(w->procfs, p->pid)) {
    job->result = READ_STILL_HUNG;
    return;
  }
  switch (job->kind) {
  case READ_INSPECTION:
    job->result = inspect_process(&w->inspect, p, &job->inspection);
    break;
  case READ_STAT:
    job->result = inspect_stat(w->procfs, p->pid, &job->stat);
    break;
  case READ_ROLLUP:
    rollup_reader_run(&w->rollups, p, job);
    break;
  case READ_MAPPINGS:
  case READ_MAPS:
    run_mappings(w, p, job);
    break;
  case READ_SAMPLE:
  case READ_MAPPING_SAMPLE:
    run_sample(w, p, job);
    break;
  case READ_SAME_MM:
    job->result =
        procfs_is_same_mm(w->procfs, job->other_pid, p->pid, &job->is_same_mm);
    break;
  case READ_CGROUP:
    job->cgroup.now_ns = w->rollups.clock_ns();
    job->result = memory_cgroup_read(w->procfs, w->tasks[i].path, &job->cgroup);
    break;
  case READ_PID_FILE:
    procfs_announce(w->procfs, "the PID file");
    job->result = pid_file_read(w->tasks[i].path, &job->pid_claim);
    break;
  }
}

/* --- making and clearing contexts --- */

static void release_names(struct shared_names *names) {
  if (atomic_fetch_sub(&names->holders, 1) != 1)
    return;
  user_cache_done(&names->users);
  container_cache_done(&names->containers);
  free(names);
}

/* Frees the memory of a result that is not delivered. */
static void drop_result(struct read_job *job) {
  if (job->result != 0)
    return;
  if (job->kind == READ_INSPECTION)
    inspection_done(&job->inspection);
  if (job->kind == READ_MAPPINGS || job->kind == READ_MAPS ||
      job->kind == READ_MAPPING_SAMPLE)
    mapping_table_done(&job->mappings.table);
  if (job->kind == READ_SAMPLE)
    page_layout_drop(job->sample.layout);
}

static void drop_ref(struct task *task) {
  attributes_done(&task->ref.attributes);
  free(task->path);
  task->path = NULL;
  page_layout_drop(task->job.request.layout);
  task->job.request.layout = NULL;
}

static void clear_context(struct worker_context *w) {
  for (size_t i = 0; i < w->n; i++) {
    drop_ref(&w->tasks[i]);
    drop_result(&w->tasks[i].job);
  }
  w->n = 0;
}

static void free_context(void *ctx) {
  struct worker_context *w = ctx;

  clear_context(w);
  procfs_free(w->procfs);
  release_names(w->names);
  free(w);
}

static int new_context(void *ctx, void **ret) {
  struct reader *r = ctx;
  struct worker_context *w = calloc(1, sizeof(*w));
  int rc = w ? procfs_new_second(r->setup.procfs, &w->procfs) : -ENOMEM;

  if (rc < 0) {
    free(w);
    return rc;
  }
  atomic_fetch_add(&r->names->holders, 1);
  w->names = r->names;
  w->inspect = (struct inspect_ctx){.procfs = w->procfs,
                                    .users = &r->names->users,
                                    .containers = &r->names->containers,
                                    .attributes = r->setup.attributes,
                                    .rule_attributes = r->setup.rule_attributes,
                                    .interval_ns = r->setup.interval_ns};
  w->rollups = (struct rollup_reader){
      .pages = {.procfs = w->procfs,
                .page_size = r->page_size,
                .clock_ns = r->setup.cpu_clock_ns,
                .heartbeat = &w->heartbeat,
                .averages_mapcounts = r->setup.averages_mapcounts},
      .clock_ns = r->setup.clock_ns};
  *ret = w;
  return 0;
}

int reader_init(struct reader *r, const struct reader_setup *setup) {
  const struct worker_ops ops = {.new_context = new_context,
                                 .free_context = free_context,
                                 .work = do_job,
                                 .heartbeat = count_heartbeats,
                                 .ctx = r};
  struct units units;
  int rc;

  *r = (struct reader){.setup = *setup};
  rc = units_read(setup->procfs, &units);
  if (rc < 0)
    return rc;
  r->page_size = units.page_size;
  r->tick_ns = NS_PER_S / units.ticks;
  r->names = calloc(1, sizeof(*r->names));
  if (!r->names)
    return -ENOMEM;
  atomic_init(&r->names->holders, 1);
  user_cache_init(&r->names->users, setup->look_up_user);
  container_cache_init(&r->names->containers, setup->container_root);
  if (worker_pool_new(&ops, setup->read_timeout_ns, WAIT_BUDGET_NS, &r->pool) ==
      0)
    return 0;
  release_names(r->names);
  r->names = NULL;
  return -ENOMEM;
}

void reader_done(struct reader *r) {
  worker_pool_free(r->pool);
  if (r->names)
    release_names(r->names);
}

/* --- in the thread of the cycle --- */

unsigned reader_count_hung(const struct reader *r) {
  unsigned n = 0;

  for (unsigned i = 0; i < WORKER_POOL_MAX; i++)
    n += worker_pool_hung_context(r->pool, i) != NULL;
  return n;
}

/* Fails the cycle if not even one thread can be started: otherwise every
 * process would be unknown and each group would look empty. */
int reader_begin(struct reader *r, uint64_t now_ns) {
  void *context;
  int rc;

  r->now_ns = now_ns;
  worker_pool_begin(r->pool);
  rc = worker_pool_acquire(r->pool, &context);
  return rc < 0 && reader_count_hung(r) == 0 ? rc : 0;
}

/* (The hung read holds the inode, so the kernel cannot drop it.) */
static bool is_same_target(const struct task *task,
                           const struct read_job *job) {
  const struct proc_ref *s = &task->ref;
  const struct process *p = job->process;

  if (task->path || job->path)
    return task->path && job->path && strcmp(task->path, job->path) == 0;
  return s->pid == p->pid && s->ino == p->ino &&
         process_is_same(p, s->starttime_ticks) && s->image == p->image;
}

/* The file in which a read of the process or path still hangs; NULL for none.
 * No other worker may read that target, or it would hang as well. */
static const char *still_hung_file(const struct reader *r,
                                   const struct read_job *job) {
  for (unsigned i = 0; i < WORKER_POOL_MAX; i++) {
    const struct worker_context *w = worker_pool_hung_context(r->pool, i);

    if (w && is_same_target(&w->tasks[w->at], job))
      return procfs_announced(w->procfs);
  }
  return NULL;
}

static unsigned count_hung_paths(const struct reader *r) {
  unsigned n = 0;

  for (unsigned i = 0; i < WORKER_POOL_MAX; i++) {
    const struct worker_context *w = worker_pool_hung_context(r->pool, i);

    n += w && w->tasks[w->at].path;
  }
  return n;
}

static struct proc_ref proc_ref_of(const struct process *p,
                                   enum read_kind kind) {
  return (struct proc_ref){.pid = p->pid,
                           .ino = p->ino,
                           .starttime_ticks = p->starttime_ticks,
                           .image = p->image,
                           .identified_ns = p->identified_ns,
                           .resident_pages = p->statm.resident_pages,
                           .attributes = kind == READ_INSPECTION
                                             ? attributes_share(&p->attributes)
                                             : (struct stored_attributes){0},
                           .is_settled = p->is_settled,
                           .is_dead_leader = p->is_dead_leader};
}

/* Copies what the caller owns. */
static int fill_task(struct task *task, const struct read_job *job,
                     size_t place) {
  *task = (struct task){.job = *job, .place = place};
  task->job.result = READ_SKIPPED; /* no result to release until it is done */
  page_layout_share(job->request.layout);
  if (job->path)
    task->path = strdup(job->path);
  else
    task->ref = proc_ref_of(job->process, job->kind);
  if (!job->path == !task->path)
    return 0;
  drop_ref(task);
  return -ENOMEM;
}

static void end_job(struct read_job *job, int result, const char *file) {
  job->is_pending = false;
  job->result = result;
  job->file = file;
}

/* Copies pending jobs into the context, in place of the last batch and its late
 * results. Returns their number. */
static size_t fill_batch(const struct reader *r, struct worker_context *w,
                         struct read_job *jobs, size_t n) {
  bool has_room_for_paths = count_hung_paths(r) < PATHS_HUNG_MAX;

  clear_context(w);
  w->inspect.now_ns = r->now_ns;
  w->is_last = reader_count_hung(r) + 1 == WORKER_POOL_MAX;
  for (size_t i = 0; i < n && w->n < JOBS_AT_ONCE; i++) {
    int rc;

    if (!jobs[i].is_pending)
      continue;
    if (jobs[i].path && !has_room_for_paths) {
      end_job(&jobs[i], READ_SKIPPED, NULL);
      continue;
    }
    rc = fill_task(&w->tasks[w->n], &jobs[i], i);
    if (rc == 0)
      w->n++;
    else
      end_job(&jobs[i], rc, NULL);
  }
  return w->n;
}

/* Moves the results to the caller's jobs. The context keeps no result that it
 * would have to release. */
static void move_results(struct worker_context *w, struct read_job *jobs,
                         size_t done) {
  for (size_t i = 0; i < done; i++) {
    struct task *task = &w->tasks[i];

    jobs[task->place] = task->job;
    jobs[task->place].is_pending = false;
    task->job.result = READ_SKIPPED;
  }
}

/* Jobs of the batch that were not begun stay pending. */
static void run_batch(struct reader *r, struct worker_context *w,
                      struct read_job *jobs) {
  struct worker_pool_result result = worker_pool_run(r->pool, w->n);

  move_results(w, jobs, result.done);
  if (!result.is_hung)
    return;
  /* The worker keeps its context, and will not begin the rest of the batch. */
  w->at = result.done;
  end_job(&jobs[w->tasks[w->at].place], READ_HUNG, procfs_announced(w->procfs));
}

/* Ends the pending jobs of processes and paths that hang in another worker.
 * Returns the number of jobs that are still pending. */
static size_t end_hung(const struct reader *r, struct read_job *jobs,
                       size_t n) {
  size_t pending = 0;

  for (size_t i = 0; i < n; i++) {
    const char *file;

    if (!jobs[i].is_pending)
      continue;
    file = still_hung_file(r, &jobs[i]);
    if (file)
      end_job(&jobs[i], READ_STILL_HUNG, file);
    else
      pending++;
  }
  return pending;
}

static void end_pending(struct read_job *jobs, size_t n, int result) {
  for (size_t i = 0; i < n; i++)
    if (jobs[i].is_pending)
      end_job(&jobs[i], result, NULL);
}

static void run_all(struct reader *r, struct read_job *jobs, size_t n) {
  for (size_t i = 0; i < n; i++)
    jobs[i].is_pending = true;
  while (end_hung(r, jobs, n) > 0) {
    void *context = NULL;
    int rc = worker_pool_acquire(r->pool, &context);

    if (rc != 0) {
      end_pending(jobs, n, rc < 0 ? rc : READ_SKIPPED);
      return;
    }
    if (fill_batch(r, context, jobs, n) > 0)
      run_batch(r, context, jobs);
  }
}

void reader_run(struct reader *r, struct read_job *jobs, size_t n) {
  run_all(r, jobs, n);
  for (size_t i = 0; i < n; i++)
    if (jobs[i].process)
      quarantine_take(&r->setup, &jobs[i]);
}
