/*
 * What the members of the groups use: chooses whose rollups are read, reads
 * them, estimates the rest, and adds all up.
 */
#ifndef SMAPS_MEASURE_H
#define SMAPS_MEASURE_H

#include <smaps/follow.h>
#include <smaps/kernel.h>
#include <smaps/meminfo.h>
#include <smaps/plan.h>
#include <smaps/quarantine.h>

struct measurer {
  struct reader *reader;
  const struct quarantine *quarantine;
  struct trouble *troubles; /* by kind */
  uint64_t read_budget_ns;
  void (*read_ksm)(struct ksm *ret); /* NULL for a captured tree */
  struct ksm ksm;                    /* as it was in the last cycle */

  bool has_fields; /* now.kernel_fields was seen and is no guess */
  /* What is read is of interest later, also where it is not estimated from. */
  bool keeps_readings;

  uint64_t owed_ns; /* of cycles before, see plan.h */

  /* Of this cycle. */
  struct circumstances now;
  struct candidate *candidates;
  size_t n_candidates, cap_candidates;
  uint64_t rollup_reads;
  uint64_t rollup_ns;
  uint64_t longest_read_ns;
  uint64_t denied;   /* processes whose rollup the kernel refuses */
  uint64_t vanished; /* processes that ended before it was read */
  uint64_t deferred; /* wanted, and not read: no time, no reader free */
};

void measurer_init(struct measurer *m, struct procfs *procfs,
                   struct reader *reader, const struct quarantine *quarantine,
                   struct trouble *troubles);
/* Lets it take account of the running kernel: for a tree that is of it. */
void measurer_watch_kernel(struct measurer *m);
void measurer_done(struct measurer *m);

/*
 * Adds every process that is alive and in a group to its groups. A process that
 * ends meanwhile is in none of the sums. An address space that two processes
 * share is counted with the parent. -ENOMEM where there is no room to plan.
 */
int measurer_run(struct measurer *m, const struct process_table *t,
                 const struct meminfo_sample *meminfo, uint64_t now_ns);

/* Whether a walk of its page tables is predicted to take longer than its
 * MaxStall. */
bool measurer_is_too_large(const struct measurer *m, const struct process *p);

/* Why it was not read, or in a capture not what it maps, although it was to be.
 */
enum measure_delay {
  DELAY_NONE,
  DELAY_BUDGET,
  DELAY_MAX_STALL,
  DELAY_STALLED, /* it is in quarantine */
};
enum measure_delay measurer_delay(const struct measurer *m,
                                  const struct process *p);

#endif
