/* SPDX-License-Identifier: MIT */
#include "read/rollup_reader.h"

#include <errno.h>

#include "proc/cheap_files.h"

/* A missing file looks like a process that has ended, unless statm shows its
 * memory. Then it could not be captured, or the kernel has no smaps_rollup
 * (CONFIG_PROC_PAGE_MONITOR). */
static int explain_missing(const struct rollup_reader *r, uint32_t pid) {
  struct statm_sample statm;

  if (statm_read_of(r->pages.procfs, pid, NULL, &statm) != 0 ||
      !statm_has_mm(&statm))
    return PROCFS_GONE;
  if (procfs_is_captured(r->pages.procfs))
    return PROCFS_DENIED;
  return r->has_rollup ? PROCFS_GONE : -ENOSYS;
}

/* True if another process has come to the pid since the inspection. The audit
 * would take the difference of the two for an error of the estimate, and the
 * published error would be that wide for an hour. */
static bool is_of_another(const struct rollup_reader *r,
                          const struct proc_ref *p,
                          const struct rollup *found) {
  uint64_t rss = found->bytes[ROLLUP_RSS];
  uint64_t resident = p->resident_pages * r->pages.page_size;
  struct stat_sample stat;

  return (rss / 4 * 3 > resident || resident / 4 * 3 > rss) &&
         inspect_stat(r->pages.procfs, p->pid, &stat) == 0 &&
         !proc_ref_is_same(p, &stat);
}

static int read_rollup(struct rollup_reader *r, const struct proc_ref *p,
                       struct rollup *ret) {
  struct procfs *procfs = r->pages.procfs;
  struct span text;
  uint32_t pid;
  int rc = proc_ref_find_memory(p, procfs, &pid);

  if (rc != 0)
    return rc;
  rc = procfs_read(procfs, pid, "smaps_rollup", &text);
  if (rc == PROCFS_GONE)
    return explain_missing(r, pid);
  if (rc != 0)
    return rc;
  r->has_rollup = true;
  rc = rollup_parse(text.text, text.len, ret);
  return rc == 0 && is_of_another(r, p, ret) ? PROCFS_GONE : rc;
}

/* Memory that was added since statm was read is in the rollup, and must not be
 * added to it later. (A dead main thread shows no memory.) */
static void read_after(struct rollup_reader *r, const struct proc_ref *p,
                       struct rollup_reading *ret) {
  struct procfs *procfs = r->pages.procfs;
  struct stat_sample stat;

  ret->has_statm = statm_read_of(procfs, p->pid, NULL, &ret->statm) == 0 &&
                   statm_has_mm(&ret->statm);
  if (rollup_cow_bytes(&ret->rollup) >= ROLLUP_COW_LEAST_BYTES &&
      inspect_stat(procfs, p->pid, &stat) == 0)
    ret->faults = (uint32_t)stat.minor_faults;
}

struct shmem_feed {
  atomic_uint *heartbeat;
  struct rollup_reading *reading;
};

static size_t feed_shmem(void *ctx, const char *text, size_t len) {
  struct shmem_feed *f = ctx;
  size_t used = whole_lines(text, len);
  struct cursor s = cursor_begin(text, used);
  struct rollup_line line = {0};

  atomic_fetch_add_explicit(f->heartbeat, 1, memory_order_relaxed);
  while (!cursor_is_done(&s)) {
    if (!rollup_line_next(&s, &line)) {
      f->reading->has_shmem = false;
      return PROCFS_ENOUGH;
    }
    shmem_mappings_add(&f->reading->shmem, &line);
  }
  return used;
}

/* Without an answer it stays unknown what becomes of its shmem. */
static void read_shmem(struct rollup_reader *r, const struct proc_ref *p,
                       struct rollup_reading *ret) {
  struct shmem_feed f = {.heartbeat = r->pages.heartbeat, .reading = ret};
  uint32_t pid;

  ret->shmem = (struct shmem_mappings){.forked = 0};
  if (ret->rollup.bytes[ROLLUP_PSS_SHMEM] < SHMEM_LEAST_BYTES ||
      proc_ref_find_memory(p, r->pages.procfs, &pid) != 0)
    return;
  ret->has_shmem = true;
  if (procfs_read_pieces(r->pages.procfs, pid, "maps", feed_shmem, &f) != 0)
    ret->has_shmem = false;
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
  struct mapping_count count = {.heartbeat = r->pages.heartbeat, .most = most};
  uint32_t pid;

  if (proc_ref_find_memory(p, r->pages.procfs, &pid) != 0)
    return false;
  procfs_read_pieces(r->pages.procfs, pid, "maps", count_lines, &count);
  return count.n > most;
}

void rollup_reader_run(struct rollup_reader *r, const struct proc_ref *p,
                       struct read_job *job) {
  uint64_t cpu_before = r->pages.clock_ns(), before, cpu_ns;

  if (job->mappings_most) {
    job->result =
        has_too_many_mappings(r, p, job->mappings_most) ? READ_TOO_LONG : 0;
    job->count_ns = r->pages.clock_ns() - cpu_before;
    cpu_before += job->count_ns;
    if (job->result == READ_TOO_LONG)
      return;
  }
  before = r->clock_ns();
  job->result = read_rollup(r, p, &job->rollup.rollup);
  job->took_ns = r->clock_ns() - before;
  cpu_ns = r->pages.clock_ns() - cpu_before;
  job->work_ns = cpu_ns > 0 && cpu_ns < job->took_ns ? cpu_ns : job->took_ns;
  if (job->is_baseline && job->result == 0)
    read_after(r, p, &job->rollup);
  job->rollup.has_shmem = false;
  if (job->wants_shmem && job->result == 0)
    read_shmem(r, p, &job->rollup);
}
