/*
 * Where the memory of the host is (report/host.h), if this host can be seen:
 * meminfo is of the whole host even in a container, but its processes are not.
 */
#ifndef SMAPS_HOST_MEMORY_H
#define SMAPS_HOST_MEMORY_H

#include "proc/meminfo.h"
#include "process/process.h"
#include "report/host.h"

enum host_absence {
  HOST_IS_SEEN,
  HOST_IS_UNWANTED,  /* Host false */
  HOST_IS_NOT_LIVE,  /* meminfo is not in a proc file system: a captured
                        tree, or made up by a container's runtime */
  HOST_IS_HIDDEN,    /* no kernel thread is listed: the pid namespace of a
                        container, or hidepid */
  HOST_IS_MALFORMED, /* meminfo cannot be read, or lacks keys */
};

struct host_memory {
  enum host_absence absence;
  struct host_account account; /* of HOST_IS_SEEN */
};

/* Makes the account of this cycle. processes: their memory together;
 * has_hidden: some processes are not listed. */
void host_memory_update(struct host_memory *h, struct procfs *procfs,
                        const struct host_processes *processes,
                        const struct process_table *t,
                        const struct meminfo_sample *meminfo, bool has_hidden);

#endif
