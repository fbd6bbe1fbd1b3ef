/*
 * The changes of a process, and of those that it shares with, since its
 * baseline.
 */
#ifndef SMAPS_TRACK_CHANGE_H
#define SMAPS_TRACK_CHANGE_H

#include "estimate/cycle.h"
#include "estimate/estimate.h"
#include "estimate/track.h"

/* At most so much memory has a child made its own by its faults: others of them
 * mapped its files and shmem, FAULT_AROUND_BYTES at a time or less. That is the
 * kernel's default (fault_around_bytes). */
#define FAULT_AROUND_BYTES 65536
uint64_t track_faulted_bytes(const struct cycle *cycle,
                             const struct observation *at);

/* The set with which it shares files and shmem: the other members of its family
 * if there are any, or else its group. */
struct sharing *track_set(const struct track *t);

/* The audit of the estimates of its family, or else of those of its group. */
struct audit *track_audit(const struct track *t);

uint64_t track_resident_bytes(const struct cycle *cycle, const struct track *t);

/* Whether minor faults are worth asking for before the process is observed. */
bool track_wants_faults(const struct track *t);

/* It had memory in swap at its baseline, and the host has none any more. */
bool track_is_swap_emptied(const struct cycle *cycle, const struct track *t);

/* For one with a baseline: all that has changed since. */
struct change track_change(const struct cycle *cycle, const struct track *t);

#endif
