/*
 * Why a process was not read in a cycle although it should have been. measure.c
 * decides it; aggregate.c adds that the process hangs, and snapshot.c that its
 * mappings were not read. Snapshots show it.
 */
#ifndef SMAPS_DEFERRAL_H
#define SMAPS_DEFERRAL_H

enum deferral {
  DEFERRED_NOT,
  DEFERRED_BUDGET,        /* no time, or no reader free */
  DEFERRED_MAX_LOCK_HOLD, /* predicted to hold the mmap lock for too long */
  DEFERRED_HUNG,          /* in quarantine */
};

#endif
