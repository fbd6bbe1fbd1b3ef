#include <smaps/reader.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <smaps/pid_file.h>
#include <smaps/policy.h>

/* A cycle waits no longer for reads that are slow, but for the last of them,
 * which may take its StallTimeout. With the default of one second that makes
 * four, so that collectd, which lets a cycle end, stops within five. */
#define PATIENCE_NS (3 * NS_PER_S)

/* The names of users, for all threads. */
struct shared_users {
  atomic_uint holders;
  struct user_cache cache;
};

/* A job as it lies on a desk. */
struct task {
  struct subject subject;
  char *path;          /* of a PID file; our own */
  struct read_job job; /* without the process, and that path */
  size_t place;        /* among those of the caller */
};

struct desk {
  struct procfs *procfs;
  struct shared_users *users;
  struct sight sight;
  uint64_t (*clock_ns)(void);
  uint64_t (*cpu_clock_ns)(void);
  uint64_t now_ns;
  uint64_t page_size;
  bool has_rollup;
  atomic_uint beats;           /* a long read goes on */
  struct mapping_table *table; /* that is being filled */
  size_t n;                    /* tasks that lie there */
  size_t at;                   /* the one that is stuck, if one is */
  struct task tasks[JOBS_AT_ONCE];
};

/* --- at a desk, in a thread of its own --- */

static size_t feed(void *ctx, const char *text, size_t len) {
  return rollup_sum_feed(ctx, text, len);
}

static int read_smaps(struct procfs *procfs, int fd, struct rollup *ret) {
  struct rollup_sum sum = {0};
  int r = procfs_read_pieces(procfs, fd, "smaps", feed, &sum);

  return r != 0 ? r : rollup_sum_finish(&sum, ret);
}

/*
 * Kernels before 4.14 have smaps only, kernels without
 * CONFIG_PROC_PAGE_MONITOR neither. A missing file looks the same as a process
 * that has ended, so as long as no rollup was ever seen we look further.
 */
static int read_other(struct desk *d, int fd, struct rollup *ret) {
  struct span text;
  int status;

  if (d->has_rollup)
    return PROCFS_GONE;
  status = read_smaps(d->procfs, fd, ret);
  if (status != PROCFS_GONE)
    return status;
  status = procfs_read(d->procfs, fd, "statm", &text);
  return status == 0 ? -ENOSYS : status;
}

static int read_through_directory(struct desk *d, const struct subject *p,
                                  struct rollup *ret) {
  struct span text;
  int fd = -1;
  int status = sight_open_memory(d->procfs, p, &fd);

  if (status != 0)
    return status;
  status = procfs_read(d->procfs, fd, "smaps_rollup", &text);
  if (status == 0) {
    d->has_rollup = true;
    status = rollup_parse(text.text, text.len, ret);
  } else if (status == PROCFS_GONE) {
    status = read_other(d, fd, ret);
  }
  close(fd);
  return status;
}

/* Whether the rollup is of the process whose statm we have: a pid that has come
 * to another since, or an exec, shows in the size, or does little harm. */
static bool agrees(const struct desk *d, const struct subject *p,
                   const struct rollup *rollup) {
  uint64_t rss = rollup->bytes[ROLLUP_RSS];
  uint64_t resident = p->resident_pages * d->page_size;

  return rss / 4 * 3 <= resident && resident / 4 * 3 <= rss;
}

/* By path, which is the shortest way, unless there is more to look at: whether
 * the kernel has such files, which thread to read through, whether it is the
 * same process still. */
static int read_rollup(struct desk *d, const struct subject *p,
                       struct rollup *ret) {
  struct span text;
  int status;

  if (!d->has_rollup || p->is_dead_leader)
    return read_through_directory(d, p, ret);
  status = procfs_read_of(d->procfs, p->pid, "smaps_rollup", &text);
  if (status == 0)
    status = rollup_parse(text.text, text.len, ret);
  if (status != 0 || agrees(d, p, ret))
    return status;
  return read_through_directory(d, p, ret);
}

static int read_stat(struct desk *d, const struct subject *p,
                     struct stat_sample *ret) {
  struct span text;
  int status = procfs_read_of(d->procfs, p->pid, "stat", &text);

  if (status == 0)
    status = stat_parse(text.text, text.len, ret);
  ret->comm = (struct span){.text = NULL};
  return status;
}

static uint32_t read_faults(struct desk *d, const struct subject *p) {
  struct stat_sample stat;

  return read_stat(d, p, &stat) == 0 ? (uint32_t)stat.minor_faults : 0;
}

/* What has come since statm was read is in the rollup, and must not be added to
 * it later. (A dead main thread shows nothing.) */
static void read_evidence(struct desk *d, const struct subject *p,
                          struct rollup_reading *ret) {
  struct span text;

  ret->has_statm = procfs_read_of(d->procfs, p->pid, "statm", &text) == 0 &&
                   statm_parse(text.text, text.len, &ret->statm) == 0 &&
                   statm_has_mm(&ret->statm);
  if (rollup_cow_bytes(&ret->rollup) >= COW_LEAST_BYTES)
    ret->faults_after = read_faults(d, p);
}

/* From here on a walk takes so long that to ask for the time of the processor
 * makes no difference (0.3 us of 20). */
#define WORTH_METERING_PAGES 1024

static uint64_t cpu_time(const struct desk *d, const struct subject *p) {
  return d->cpu_clock_ns && p->resident_pages >= WORTH_METERING_PAGES
             ? d->cpu_clock_ns()
             : 0;
}

static void run_rollup(struct desk *d, const struct subject *p,
                       struct read_job *job) {
  bool has_evidence = job->kind == READ_ROLLUP_AND_EVIDENCE;
  uint64_t before, cpu_before, cpu_ns;

  if (has_evidence && p->wants_faults)
    job->rollup.faults_before = read_faults(d, p);
  cpu_before = cpu_time(d, p);
  before = d->clock_ns();
  job->result = read_rollup(d, p, &job->rollup.rollup);
  job->took_ns = d->clock_ns() - before;
  cpu_ns = cpu_time(d, p) - cpu_before;
  job->work_ns = cpu_ns && cpu_ns < job->took_ns ? cpu_ns : job->took_ns;
  if (has_evidence && job->result == 0)
    read_evidence(d, p, &job->rollup);
}

/*
 * Without the right to ask kcmp: a parent that waits in vfork sleeps in state
 * D, and its child, which has not called exec yet, shows the very same numbers.
 */
static int read_same_mm(struct desk *d, const struct subject *p,
                        const struct read_job *job, struct same_mm *ret) {
  struct subject other = {.pid = job->other_pid};
  struct stat_sample stat;
  int status = -EOPNOTSUPP;

  if (job->may_ask_kernel)
    status = procfs_is_same_mm(d->procfs, other.pid, p->pid, &ret->is_same);
  ret->is_certain = status == 0;
  /* Not built in, or filtered, is as good as refused. */
  ret->is_refused = status == -EPERM || status == -EACCES || status == -ENOSYS;
  if (!ret->is_certain)
    ret->is_same = job->may_be_vfork && read_stat(d, &other, &stat) == 0 &&
                   stat.state == 'D';
  return 0;
}

/* A smaps can be so long that only its pieces show that it goes on. */
static size_t feed_mappings(void *ctx, const char *text, size_t len) {
  struct desk *d = ctx;

  atomic_fetch_add_explicit(&d->beats, 1, memory_order_relaxed);
  return mapping_table_feed(d->table, text, len);
}

static int read_mappings(struct desk *d, const struct subject *p,
                         bool has_amounts, struct rollup *ret) {
  int fd = -1;
  int status = sight_open_memory(d->procfs, p, &fd);

  if (status != 0)
    return status;
  status = has_amounts
               ? procfs_read_pieces(d->procfs, fd, "smaps", feed_mappings, d)
               : procfs_read_pieces(d->procfs, fd, "maps", feed_mappings, d);
  close(fd);
  if (status != 0)
    return status;
  return has_amounts ? mapping_table_finish(d->table, ret)
                     : mapping_table_finish_maps(d->table);
}

static void free_table(struct mapping_table **table) {
  if (*table)
    mapping_table_done(*table);
  free(*table);
  *table = NULL;
}

static void run_mappings(struct desk *d, const struct subject *p,
                         struct read_job *job) {
  uint64_t before = d->clock_ns();

  d->table = calloc(1, sizeof(*d->table));
  job->result = d->table ? read_mappings(d, p, job->kind == READ_MAPPINGS,
                                         &job->mappings.sum)
                         : -ENOMEM;
  job->took_ns = d->clock_ns() - before;
  if (job->result != 0)
    free_table(&d->table);
  job->mappings.table = d->table;
  d->table = NULL;
}

static unsigned count_beats(void *ctx) {
  struct desk *d = ctx;

  return atomic_load_explicit(&d->beats, memory_order_relaxed);
}

static int read_pid_file(struct desk *d, const char *path, uint32_t *ret) {
  procfs_announce(d->procfs, "the PID file");
  return pid_file_read(path, ret);
}

static void do_job(void *ctx, size_t i) {
  struct desk *d = ctx;
  const struct subject *p = &d->tasks[i].subject;
  struct read_job *job = &d->tasks[i].job;

  switch (job->kind) {
  case READ_SIGHTING:
    job->result = sight_look(&d->sight, p, d->now_ns, &job->sighting);
    break;
  case READ_STAT:
    job->result = read_stat(d, p, &job->stat);
    break;
  case READ_ROLLUP:
  case READ_ROLLUP_AND_EVIDENCE:
    run_rollup(d, p, job);
    break;
  case READ_MAPPINGS:
  case READ_MAPS:
    run_mappings(d, p, job);
    break;
  case READ_SAME_MM:
    job->result = read_same_mm(d, p, job, &job->mm);
    break;
  case READ_PID_FILE:
    job->result = read_pid_file(d, d->tasks[i].path, &job->pid);
    break;
  }
}

/* --- making and clearing desks --- */

static void let_go_of_users(struct shared_users *users) {
  if (atomic_fetch_sub(&users->holders, 1) != 1)
    return;
  user_cache_done(&users->cache);
  free(users);
}

/* Frees what a result that nobody takes has of its own. */
static void drop_result(struct read_job *job) {
  if (job->kind == READ_SIGHTING)
    sighting_done(&job->sighting);
  if (job->kind == READ_MAPPINGS || job->kind == READ_MAPS)
    free_table(&job->mappings.table);
}

static void drop_subject(struct task *task) {
  identity_done(&task->subject.identity);
  free(task->path);
  task->path = NULL;
}

static void clear_desk(struct desk *d) {
  for (size_t i = 0; i < d->n; i++) {
    drop_subject(&d->tasks[i]);
    drop_result(&d->tasks[i].job);
  }
  d->n = 0;
}

static void free_desk(void *ctx) {
  struct desk *d = ctx;

  clear_desk(d);
  procfs_free(d->procfs);
  let_go_of_users(d->users);
  free(d);
}

static void *new_desk(void *ctx) {
  struct reader *r = ctx;
  struct desk *d = calloc(1, sizeof(*d));

  if (!d)
    return NULL;
  if (procfs_new_second(&d->procfs) != 0) {
    free(d);
    return NULL;
  }
  atomic_fetch_add(&r->users->holders, 1);
  d->users = r->users;
  d->sight = (struct sight){.procfs = d->procfs,
                            .users = &r->users->cache,
                            .attributes = r->setup.attributes,
                            .rule_attributes = r->setup.rule_attributes,
                            .interval_ns = r->setup.interval_ns};
  d->clock_ns = r->setup.clock_ns;
  d->cpu_clock_ns = r->setup.cpu_clock_ns;
  d->page_size = r->page_size;
  return d;
}

int reader_init(struct reader *r, const struct reader_setup *setup) {
  const struct crew_trade trade = {.new_desk = new_desk,
                                   .free_desk = free_desk,
                                   .work = do_job,
                                   .beats = count_beats,
                                   .ctx = r};

  *r = (struct reader){.setup = *setup,
                       .page_size = (uint64_t)sysconf(_SC_PAGESIZE)};
  r->users = calloc(1, sizeof(*r->users));
  if (!r->users)
    return -ENOMEM;
  atomic_init(&r->users->holders, 1);
  user_cache_init(&r->users->cache, setup->look_up_user);
  if (crew_new(&trade, setup->stall_timeout_ns, PATIENCE_NS, &r->crew) == 0)
    return 0;
  let_go_of_users(r->users);
  r->users = NULL;
  return -ENOMEM;
}

void reader_done(struct reader *r) {
  crew_free(r->crew);
  if (r->users)
    let_go_of_users(r->users);
}

/* --- for the cycle --- */

unsigned reader_hanging(const struct reader *r) {
  unsigned n = 0;

  for (unsigned i = 0; i < CREW_MAX; i++)
    n += crew_stuck_desk(r->crew, i) != NULL;
  return n;
}

/* Without a thread from the start nothing would be known of anybody, and each
 * group looked empty. */
static int need_one_desk(struct reader *r) {
  void *desk;
  int status = crew_desk(r->crew, &desk);

  if (status == 0)
    status = procfs_follow(((struct desk *)desk)->procfs, r->setup.procfs);
  return status < 0 && reader_hanging(r) == 0 ? status : 0;
}

int reader_begin(struct reader *r, uint64_t now_ns) {
  struct desk *d;

  r->now_ns = now_ns;
  crew_begin(r->crew);
  while ((d = crew_next_returned(r->crew)))
    clear_desk(d);
  user_cache_expire(&r->users->cache, now_ns);
  return need_one_desk(r);
}

/* The task in which the i-th worker is stuck; NULL where it is not. */
static const struct task *stuck_task(const struct reader *r, unsigned i) {
  const struct desk *d = crew_stuck_desk(r->crew, i);

  return d ? &d->tasks[d->at] : NULL;
}

/* (The kernel cannot forget the inode meanwhile: the read holds it.) */
static bool is_of_same(const struct task *task, const struct read_job *job) {
  const struct subject *s = &task->subject;
  const struct process *p = job->process;

  if (task->path || job->path)
    return task->path && job->path && strcmp(task->path, job->path) == 0;
  return s->pid == p->pid && s->ino == p->ino &&
         s->starttime_ticks == p->starttime_ticks && s->image == p->image;
}

/* The file in which a read of the process, or of the PID file, still hangs;
 * NULL for none. No other worker looks at it then, or all would come to be
 * stuck with it. */
static const char *hangs_still(const struct reader *r,
                               const struct read_job *job) {
  for (unsigned i = 0; i < CREW_MAX; i++) {
    const struct task *task = stuck_task(r, i);
    const struct desk *d = crew_stuck_desk(r->crew, i);

    if (task && is_of_same(task, job))
      return procfs_announced(d->procfs);
  }
  return NULL;
}

/* Whether no more workers may be lost to such a job. */
static bool has_cost_enough(const struct reader *r,
                            const struct read_job *job) {
  unsigned n = 0;

  if (job->kind != READ_PID_FILE)
    return false;
  for (unsigned i = 0; i < CREW_MAX; i++) {
    const struct task *task = stuck_task(r, i);

    n += task && task->path;
  }
  return n >= PID_FILES_STUCK_MAX;
}

/* What has just forked shares, whatever the last reading says. */
static struct subject subject_of(const struct process *p, enum read_kind kind) {
  return (struct subject){
      .pid = p->pid,
      .ino = p->ino,
      .starttime_ticks = p->starttime_ticks,
      .image = p->image,
      .identified_ns = p->identified_ns,
      .resident_pages = p->statm.resident_pages,
      .identity = kind == READ_SIGHTING ? identity_share(&p->identity)
                                        : (struct stored_identity){0},
      .switches = p->switches,
      .executable_denied_s = p->executable_denied_s,
      .is_settled = p->is_settled,
      .is_dead_leader = p->is_dead_leader,
      .wants_faults = process_wants_faults(p) || family_size(p) > 1};
}

static int fill_in(struct task *task, const struct read_job *job,
                   size_t place) {
  memset(task, 0, sizeof(*task));
  if (job->kind == READ_PID_FILE && !(task->path = strdup(job->path)))
    return -ENOMEM;
  if (job->kind != READ_PID_FILE)
    task->subject = subject_of(job->process, job->kind);
  task->place = place;
  task->job.kind = job->kind;
  task->job.other_pid = job->other_pid;
  task->job.may_be_vfork = job->may_be_vfork;
  task->job.may_ask_kernel = job->may_ask_kernel;
  return 0;
}

/* Lays out what is to be tried, from the first job on, as much as fits. */
static size_t lay_out(const struct reader *r, struct desk *d,
                      struct read_job *jobs, size_t first, size_t n) {
  d->now_ns = r->now_ns;
  d->has_rollup = r->has_rollup;
  for (size_t i = first; i < n && d->n < JOBS_AT_ONCE; i++) {
    int status;

    if (jobs[i].result != READ_UNTRIED || has_cost_enough(r, &jobs[i]))
      continue;
    status = fill_in(&d->tasks[d->n], &jobs[i], i);
    if (status == 0)
      d->n++;
    else
      jobs[i].result = status;
  }
  return d->n;
}

/* Takes the results that are there over from the desk, on which nothing is left
 * of these jobs. */
static void take_done(struct desk *d, struct read_job *jobs, size_t done) {
  for (size_t i = 0; i < done; i++) {
    struct task *task = &d->tasks[i];
    struct read_job *job = &jobs[task->place];

    task->job.process = job->process;
    task->job.path = job->path;
    *job = task->job;
    drop_subject(task);
    memset(&task->job, 0, sizeof(task->job));
  }
}

/* Where the worker is stuck it has its desk to itself, but for the rest of the
 * batch, which it will not begin. Returns where to go on. */
static size_t leave_stuck(struct desk *d, struct read_job *jobs, size_t at) {
  struct read_job *job = &jobs[d->tasks[at].place];

  d->at = at;
  for (size_t i = at + 1; i < d->n; i++)
    drop_subject(&d->tasks[i]);
  d->n = at + 1;
  job->result = READ_STALLED;
  job->file = procfs_announced(d->procfs);
  return d->tasks[at].place + 1;
}

/* Returns where to go on. */
static size_t run_batch(struct reader *r, struct desk *d,
                        struct read_job *jobs) {
  size_t next = d->tasks[d->n - 1].place + 1;
  struct crew_result result = crew_run(r->crew, d->n);

  take_done(d, jobs, result.done);
  if (result.is_stuck)
    return leave_stuck(d, jobs, result.done);
  if (result.done < d->n)
    next = d->tasks[result.done].place;
  r->has_rollup |= d->has_rollup;
  clear_desk(d);
  return next;
}

static void fail_untried(struct read_job *jobs, size_t n, int error) {
  for (size_t i = 0; i < n; i++)
    if (jobs[i].result == READ_UNTRIED)
      jobs[i].result = error;
}

void reader_run(struct reader *r, struct read_job *jobs, size_t n) {
  size_t next = 0;

  for (size_t i = 0; i < n; i++) {
    jobs[i].file = hangs_still(r, &jobs[i]);
    jobs[i].result = jobs[i].file ? READ_HANGING : READ_UNTRIED;
  }
  while (next < n) {
    void *desk = NULL;
    int status = crew_desk(r->crew, &desk);

    if (status == 0) /* the tree may have been opened anew */
      status = procfs_follow(((struct desk *)desk)->procfs, r->setup.procfs);
    if (status < 0)
      fail_untried(jobs + next, n - next, status);
    if (status != 0 || lay_out(r, desk, jobs, next, n) == 0)
      return;
    next = run_batch(r, desk, jobs);
  }
}
