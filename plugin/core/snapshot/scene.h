/* What a cycle hands to snapshots. */
#ifndef SMAPS_SCENE_H
#define SMAPS_SCENE_H

#include "match/group.h"
#include "measure/aggregate.h"
#include "measure/host_memory.h"
#include "proc/meminfo.h"
#include "read/quarantine.h"
#include "schedule/price.h"
#include <smaps/settings.h>

/* The results of the last cycle. */
struct scene {
  const struct settings *settings;
  const struct process_table *processes;
  const struct group_table *groups;
  const struct cycle *cycle;
  const struct aggregate *aggregate;
  const struct prices *prices;
  struct meminfo_sample meminfo;
  const struct host_memory *host;
  uint64_t time_ns; /* of the cycle, since the Epoch */
};

#endif
