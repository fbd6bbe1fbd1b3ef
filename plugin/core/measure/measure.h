/* SPDX-License-Identifier: MIT */
/*
 * Measures the members of the groups: observes them, chooses whose rollups are
 * read, reads these, estimates the rest, and adds all up.
 */
#ifndef SMAPS_MEASURE_H
#define SMAPS_MEASURE_H

#include "measure/aggregate.h"
#include "proc/kernel.h"
#include "proc/meminfo.h"
#include "read/reader.h"
#include "schedule/read_time.h"
#include "schedule/sampling.h"
#include "schedule/schedule.h"
#include <smaps/counts.h>

/* It must not be moved. */
struct measurer {
  struct reader *reader;
  struct diag *diags; /* by kind */

  /* Its modules, and what each of them keeps. */
  struct cycle cycle;
  struct sampler sampler;
  struct aggregate aggregate;
  struct read_budget budget;

  bool wants_page_tables;            /* else nothing is read for them alone */
  bool wants_freed;                  /* likewise, maps is not read */
  bool is_of_kernel;                 /* not captured: kcmp knows its pids */
  void (*read_ksm)(struct ksm *ret); /* NULL for a captured tree */
  struct ksm ksm;                    /* as it was in the last cycle */

  /* The plan of this cycle. */
  struct candidate *candidates;
  size_t n_candidates, cap_candidates;
  double needed; /* the share of a CPU to read each once in its MaxAge */
  struct collector_counts counts; /* what is counted while measuring */
};

void measurer_init(struct measurer *m, struct procfs *procfs,
                   struct reader *reader, struct diag *diags);
/* To be called if the tree is of the running kernel, not captured. */
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

#endif
