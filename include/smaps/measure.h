/* What the members of the groups use: reads their rollups and adds them up. */
#ifndef SMAPS_MEASURE_H
#define SMAPS_MEASURE_H

#include <smaps/process.h>
#include <smaps/trouble.h>

struct measurer {
  struct procfs *procfs;
  struct trouble *troubles; /* by kind */
  uint64_t (*clock_ns)(void);
  uint64_t page_size;

  /* Bit per rollup_field that this kernel has, as far as was seen. */
  uint32_t kernel_fields;
  bool has_rollup; /* a smaps_rollup was read, so there are such files */
  bool has_fields; /* kernel_fields was seen and is no guess */

  /* Of this cycle. */
  uint64_t rollup_reads;
  uint64_t rollup_ns;
  uint64_t longest_read_ns;
  uint64_t denied;   /* processes whose rollup the kernel refuses */
  uint64_t vanished; /* processes that ended before it was read */
};

void measurer_init(struct measurer *m, struct procfs *procfs,
                   struct trouble *troubles, uint64_t (*clock_ns)(void));

/*
 * Adds every process that is alive and in a group to its groups, with its
 * rollup read now. A process that ends meanwhile is in none of the sums. An
 * address space that two processes share is counted with the parent.
 */
void measurer_run(struct measurer *m, const struct process_table *t,
                  uint64_t now_ns);

#endif
