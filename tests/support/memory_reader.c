#include "memory_reader.h"

#include "memory_table.h"
#include "proc/cheap_files.h"
#include "read/reader.h"
#include "test.h"

static struct {
  const struct memory_world *world;
  struct memory_view views[MEMORY_SLOTS];
  unsigned missed;
  uint64_t seed;
} shown;

void __wrap_reader_run(struct reader *r, struct read_job *jobs, size_t n);
int __wrap_statm_read_of(struct procfs *p, uint32_t pid,
                         struct statm_sample *ret);
int __wrap_status_read_of(struct procfs *p, uint32_t pid,
                          struct status_sample *ret);

void memory_reader_show(const struct memory_world *w, unsigned missed,
                        uint64_t seed) {
  shown.world = w;
  shown.missed = missed;
  shown.seed = seed;
  memory_view_all(w, shown.views);
}

static unsigned slot_of(uint32_t pid) {
  const struct memory_process *p = shown.world->processes;
  unsigned slot = 0;

  while (slot < MEMORY_SLOTS && (!p[slot].is_alive || p[slot].pid != pid))
    slot++;
  return slot;
}

static bool is_missed(uint32_t pid) {
  uint64_t x = (shown.seed + pid) * UINT64_C(0x9e3779b97f4a7c15);

  return ((x ^ x >> 31) * 0xbf58476d1ce4e5b9) >> 56 < shown.missed;
}

/* Minor faults are read when rollup_reader.c reads them. */
static void read_rollup(unsigned slot, struct read_job *job) {
  const struct memory_view *v = &shown.views[slot];
  uint32_t faults = shown.world->processes[slot].minor_faults;
  uint64_t pages =
      v->resident_pages + v->rollup.bytes[ROLLUP_SWAP] / shown.world->page_size;

  job->rollup = (struct rollup_reading){
      .rollup = v->rollup, .has_statm = true, .statm = memory_table_statm(v)};
  if (rollup_cow_bytes(&v->rollup) >= ROLLUP_COW_LEAST_BYTES)
    job->rollup.faults = faults;
  job->took_ns = job->work_ns = MEMORY_READ_NS + pages * MEMORY_PAGE_NS;
  job->is_metered = true;
}

static void run(struct read_job *job) {
  unsigned slot = slot_of(job->process->pid);

  job->result = slot == MEMORY_SLOTS ? PROCFS_GONE : 0;
  if (job->result != 0)
    return;
  if (job->kind == READ_ROLLUP && is_missed(job->process->pid))
    job->result = READ_SKIPPED;
  else if (job->kind == READ_ROLLUP)
    read_rollup(slot, job);
  else if (job->kind == READ_STAT)
    job->stat = (struct stat_sample){
        .minor_faults = shown.world->processes[slot].minor_faults};
  else if (job->kind == READ_SAME_MM)
    job->mm = (struct same_mm){.is_certain = true};
  else
    fail_msg("nothing of the kind %d is known", job->kind);
}

void __wrap_reader_run(struct reader *r, struct read_job *jobs, size_t n) {
  (void)r;
  for (size_t i = 0; i < n; i++)
    run(&jobs[i]);
}

int __wrap_statm_read_of(struct procfs *p, uint32_t pid,
                         struct statm_sample *ret) {
  unsigned slot = slot_of(pid);

  (void)p;
  if (slot == MEMORY_SLOTS)
    return PROCFS_GONE;
  *ret = memory_table_statm(&shown.views[slot]);
  return 0;
}

int __wrap_status_read_of(struct procfs *p, uint32_t pid,
                          struct status_sample *ret) {
  unsigned slot = slot_of(pid);

  (void)p;
  if (slot == MEMORY_SLOTS)
    return PROCFS_GONE;
  *ret = (struct status_sample){.known = STATUS_VM_SWAP,
                                .vm_swap_bytes =
                                    shown.views[slot].vm_swap_kb * KIB};
  return 0;
}
