#include <smaps/reader.h>

#include <errno.h>
#include <unistd.h>

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
static int read_other(struct reader *r, int fd, struct rollup *ret) {
  struct span text;
  int status;

  if (r->has_rollup)
    return PROCFS_GONE;
  status = read_smaps(r->procfs, fd, ret);
  if (status != PROCFS_GONE)
    return status;
  status = procfs_read(r->procfs, fd, "statm", &text);
  return status == 0 ? -ENOSYS : status;
}

static int read_through_directory(struct reader *r, const struct process *p,
                                  struct rollup *ret) {
  struct span text;
  int fd = -1;
  int status = sight_open_memory(r->procfs, p, &fd);

  if (status != 0)
    return status;
  status = procfs_read(r->procfs, fd, "smaps_rollup", &text);
  if (status == 0) {
    r->has_rollup = true;
    status = rollup_parse(text.text, text.len, ret);
  } else if (status == PROCFS_GONE) {
    status = read_other(r, fd, ret);
  }
  close(fd);
  return status;
}

/* Whether the rollup is of the process whose statm we have: a pid that has come
 * to another since, or an exec, shows in the size, or does little harm. */
static bool agrees(const struct reader *r, const struct process *p,
                   const struct rollup *rollup) {
  uint64_t rss = rollup->bytes[ROLLUP_RSS];
  uint64_t resident = p->statm.resident_pages * r->page_size;

  return rss / 4 * 3 <= resident && resident / 4 * 3 <= rss;
}

/* By path, which is the shortest way, unless there is more to look at: whether
 * the kernel has such files, which thread to read through, whether it is the
 * same process still. */
static int read_rollup(struct reader *r, const struct process *p,
                       struct rollup *ret) {
  struct span text;
  int status;

  if (!r->has_rollup || p->is_dead_leader)
    return read_through_directory(r, p, ret);
  status = procfs_read_of(r->procfs, p->pid, "smaps_rollup", &text);
  if (status == 0)
    status = rollup_parse(text.text, text.len, ret);
  if (status != 0 || agrees(r, p, ret))
    return status;
  return read_through_directory(r, p, ret);
}

static int read_stat(struct reader *r, const struct process *p,
                     struct stat_sample *ret) {
  struct span text;
  int status = procfs_read_of(r->procfs, p->pid, "stat", &text);

  if (status == 0)
    status = stat_parse(text.text, text.len, ret);
  ret->comm = (struct span){.text = NULL};
  return status;
}

static uint32_t read_faults(struct reader *r, const struct process *p) {
  struct stat_sample stat;

  return read_stat(r, p, &stat) == 0 ? (uint32_t)stat.minor_faults : 0;
}

/* What has come since statm was read is in the rollup, and must not be added to
 * it later. (A dead main thread shows nothing.) */
static void read_evidence(struct reader *r, const struct process *p,
                          struct rollup_reading *ret) {
  struct span text;

  ret->has_statm = procfs_read_of(r->procfs, p->pid, "statm", &text) == 0 &&
                   statm_parse(text.text, text.len, &ret->statm) == 0 &&
                   statm_has_mm(&ret->statm);
  if (rollup_cow_bytes(&ret->rollup) >= COW_LEAST_BYTES)
    ret->faults_after = read_faults(r, p);
}

static void run_rollup(struct reader *r, struct read_job *job) {
  const struct process *p = job->process;
  bool has_evidence = job->kind == READ_ROLLUP_AND_EVIDENCE;
  uint64_t before;

  job->rollup = (struct rollup_reading){.has_statm = false};
  /* What has just forked shares, whatever the last reading says. */
  if (has_evidence && (process_wants_faults(p) || family_size(p) > 1))
    job->rollup.faults_before = read_faults(r, p);
  before = r->clock_ns();
  job->result = read_rollup(r, p, &job->rollup.rollup);
  job->took_ns = r->clock_ns() - before;
  if (has_evidence && job->result == 0)
    read_evidence(r, p, &job->rollup);
}

static size_t feed_mappings(void *ctx, const char *text, size_t len) {
  return mapping_table_feed(ctx, text, len);
}

static int read_mappings(struct reader *r, const struct process *p,
                         struct mappings_reading *ret) {
  int fd = -1;
  int status = sight_open_memory(r->procfs, p, &fd);

  if (status != 0)
    return status;
  status =
      procfs_read_pieces(r->procfs, fd, "smaps", feed_mappings, ret->table);
  close(fd);
  return status != 0 ? status : mapping_table_finish(ret->table, &ret->sum);
}

static void run_mappings(struct reader *r, struct read_job *job) {
  uint64_t before = r->clock_ns();

  job->result = read_mappings(r, job->process, &job->mappings);
  job->took_ns = r->clock_ns() - before;
}

void reader_run(struct reader *r, struct read_job *jobs, size_t n) {
  for (size_t i = 0; i < n; i++) {
    struct read_job *job = &jobs[i];

    switch (job->kind) {
    case READ_SIGHTING:
      job->result =
          sight_look(&r->sight, job->process, r->now_ns, &job->sighting);
      break;
    case READ_STAT:
      job->result = read_stat(r, job->process, &job->stat);
      break;
    case READ_ROLLUP:
    case READ_ROLLUP_AND_EVIDENCE:
      run_rollup(r, job);
      break;
    case READ_MAPPINGS:
      run_mappings(r, job);
      break;
    }
  }
}
