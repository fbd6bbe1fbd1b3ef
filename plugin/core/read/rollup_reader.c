#include "read/rollup_reader.h"

#include <errno.h>
#include <unistd.h>

#include "proc/cheap_files.h"

static size_t feed(void *ctx, const char *text, size_t len) {
  return mapping_table_feed(ctx, text, len);
}

static int read_smaps(struct procfs *procfs, int fd, struct rollup *ret) {
  struct mapping_table t = {0};
  int rc = procfs_read_pieces(procfs, fd, "smaps", feed, &t);

  if (rc == 0)
    rc = mapping_table_finish(&t, ret);
  mapping_table_done(&t);
  return rc;
}

/*
 * Kernels before 4.14 have smaps only, kernels without CONFIG_PROC_PAGE_MONITOR
 * neither. A missing file looks like a process that has ended, so other files
 * are tried until a rollup has been read once.
 */
static int read_other(struct rollup_reader *r, int fd, struct rollup *ret) {
  struct span text;
  int rc;

  if (r->has_rollup)
    return PROCFS_GONE;
  rc = read_smaps(r->procfs, fd, ret);
  if (rc != PROCFS_GONE)
    return rc;
  rc = procfs_read(r->procfs, fd, "statm", &text);
  return rc == 0 ? -ENOSYS : rc;
}

static int read_through_directory(struct rollup_reader *r,
                                  const struct proc_ref *p,
                                  struct rollup *ret) {
  struct span text;
  int fd = -1;
  int rc = inspect_open_memory(r->procfs, p, &fd);

  if (rc != 0)
    return rc;
  rc = procfs_read(r->procfs, fd, "smaps_rollup", &text);
  if (rc == 0) {
    r->has_rollup = true;
    rc = rollup_parse(text.text, text.len, ret);
  } else if (rc == PROCFS_GONE) {
    rc = read_other(r, fd, ret);
  }
  close(fd);
  return rc;
}

/* True if the rollup fits the known statm. If another process has the pid by
 * now, or after an exec, the size differs, or the error is small. */
static bool is_plausible(const struct rollup_reader *r,
                         const struct proc_ref *p,
                         const struct rollup *rollup) {
  uint64_t rss = rollup->bytes[ROLLUP_RSS];
  uint64_t resident = p->resident_pages * r->page_size;

  return rss / 4 * 3 <= resident && resident / 4 * 3 <= rss;
}

/* Reads by path, which is cheapest. The directory is opened only to find out
 * which files the kernel has, to read through another thread, or to check the
 * identity of the process. */
static int read_rollup(struct rollup_reader *r, const struct proc_ref *p,
                       struct rollup *ret) {
  struct span text;
  int rc;

  if (!r->has_rollup || p->is_dead_leader)
    return read_through_directory(r, p, ret);
  rc = procfs_read_of(r->procfs, p->pid, "smaps_rollup", &text);
  if (rc == 0)
    rc = rollup_parse(text.text, text.len, ret);
  if (rc != 0 || is_plausible(r, p, ret))
    return rc;
  return read_through_directory(r, p, ret);
}

/* Memory that was added since statm was read is in the rollup, and must not be
 * added to it later. (A dead main thread shows no memory.) */
static void read_after(struct rollup_reader *r, const struct proc_ref *p,
                       struct rollup_reading *ret) {
  struct stat_sample stat;

  ret->has_statm = statm_read_of(r->procfs, p->pid, &ret->statm) == 0 &&
                   statm_has_mm(&ret->statm);
  if (rollup_cow_bytes(&ret->rollup) >= ROLLUP_COW_LEAST_BYTES &&
      inspect_stat(r->procfs, p->pid, &stat) == 0)
    ret->faults = (uint32_t)stat.minor_faults;
}

/* A walk of this size takes so long that asking for the CPU time makes no
 * difference (0.3 us of 20). */
#define WORTH_METERING_PAGES 1024

static uint64_t cpu_time(const struct rollup_reader *r,
                         const struct proc_ref *p) {
  return r->cpu_clock_ns && p->resident_pages >= WORTH_METERING_PAGES
             ? r->cpu_clock_ns()
             : 0;
}

struct mapping_count {
  atomic_uint *heartbeat;
  uint32_t n, most;
};

static size_t count_lines(void *ctx, const char *text, size_t len) {
  struct mapping_count *count = ctx;

  atomic_fetch_add_explicit(count->heartbeat, 1, memory_order_relaxed);
  for (size_t i = 0; i < len; i++)
    count->n += text[i] == '\n';
  return count->n > count->most ? PROCFS_ENOUGH : len;
}

static bool has_too_many_mappings(struct rollup_reader *r,
                                  const struct proc_ref *p, uint32_t most) {
  struct mapping_count count = {.heartbeat = r->heartbeat, .most = most};
  int fd = -1;

  if (most == 0 || inspect_open_memory(r->procfs, p, &fd) != 0)
    return false;
  procfs_read_pieces(r->procfs, fd, "maps", count_lines, &count);
  close(fd);
  return count.n > most;
}

void rollup_reader_run(struct rollup_reader *r, const struct proc_ref *p,
                       struct read_job *job) {
  uint64_t before, cpu_before, cpu_ns;

  cpu_before = cpu_time(r, p);
  job->result =
      has_too_many_mappings(r, p, job->mappings_most) ? READ_TOO_LONG : 0;
  job->count_ns = job->mappings_most ? cpu_time(r, p) - cpu_before : 0;
  if (job->result == READ_TOO_LONG)
    return;
  cpu_before = cpu_time(r, p);
  before = r->clock_ns();
  job->result = read_rollup(r, p, &job->rollup.rollup);
  job->took_ns = r->clock_ns() - before;
  cpu_ns = cpu_time(r, p) - cpu_before;
  job->is_metered = cpu_ns > 0;
  job->work_ns =
      job->is_metered && cpu_ns < job->took_ns ? cpu_ns : job->took_ns;
  if (job->is_baseline && job->result == 0)
    read_after(r, p, &job->rollup);
}
