/*
 * Measures the members of the groups: observes them, chooses whose rollups are
 * read, reads these, estimates the rest, and adds all up.
 */
#ifndef SMAPS_MEASURE_H
#define SMAPS_MEASURE_H

#include "estimate/estimator.h"
#include "estimate/guess.h"
#include "estimate/schedule.h"
#include "match/group.h"
#include "proc/meminfo.h"
#include "read/quarantine.h"
#include "report/host.h"
#include <smaps/kernel.h>

struct measurer {
  struct procfs *procfs;
  struct reader *reader;
  const struct quarantine *quarantine;
  struct diag *diags;                /* by kind */
  bool is_of_kernel;                 /* and not of a captured tree */
  void (*read_ksm)(struct ksm *ret); /* NULL for a captured tree */
  struct ksm ksm;                    /* as it was in the last cycle */
  /* The rollup's fields that this kernel has, a bit each; a guess until one was
   * read. */
  uint32_t kernel_fields;
  bool has_fields;
  uint64_t mappings_most; /* that a process may have on this kernel */
  /* Prices before the first reading, as they were, by what was guessed. */
  double guess_off;
  struct sampling_cost sampling_cost;

  struct estimator estimator;
  struct read_budget budget;
  struct guess_limit guess_limit; /* of this cycle */
  struct host_processes host;     /* of this cycle */
  uint64_t interval_ns;
  bool wants_page_tables;      /* else nothing is read for them alone */
  uint64_t uptime_ns;          /* of the host, in this cycle; 0: unknown */
  uint64_t kernel_stack_bytes; /* of a thread; 0: unknown */
  uint64_t tick_ns;            /* of start times */
  int64_t credit_ns;           /* of cycles before, see schedule.h */

  const struct process_table *table; /* in measurer_run() */

  /* Plan and counts of this cycle. */
  struct candidate *candidates;
  size_t n_candidates, cap_candidates;
  uint64_t rollup_reads;
  uint64_t samples; /* processes whose pages were sampled instead */
  uint64_t rollup_ns;
  uint64_t longest_read_ns;
  uint64_t denied;   /* processes whose rollup the kernel refuses */
  uint64_t vanished; /* processes that ended before it was read */
  uint64_t deferred; /* wanted, and not read: no time, no reader free */
  uint64_t overdue;  /* of these, those whose deadline has passed */
  double needed;     /* the share of a CPU to read each once in its MaxAge */
};

void measurer_init(struct measurer *m, struct procfs *procfs,
                   struct reader *reader, const struct quarantine *quarantine,
                   struct diag *diags);
/* Lets it take account of the running kernel: for a tree that is of it. */
void measurer_watch_kernel(struct measurer *m);
void measurer_done(struct measurer *m);

/*
 * Adds every process that is alive and in a group to its groups, whose usages
 * are zero. A process that ends meanwhile is in none of the sums. An address
 * space that two processes share is counted with the parent. -ENOMEM where
 * there is no room to plan.
 */
int measurer_run(struct measurer *m, const struct process_table *t,
                 const struct group_table *groups,
                 const struct meminfo_sample *meminfo, uint64_t now_ns);

/* The time that a reading is predicted to take; 0 where nothing is known. */
uint64_t measurer_read_cost_ns(const struct measurer *m,
                               const struct process *p);

/* Whether a walk of its page tables is predicted to take longer than its
 * MaxLockHold. */
bool measurer_is_too_large(const struct measurer *m, const struct process *p);

#endif
