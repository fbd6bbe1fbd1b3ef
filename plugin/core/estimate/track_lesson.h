/*
 * Learns from the reading of a process: how far off its estimate was, and from
 * which cause. Its set, its fork family and the whole host go by that.
 */
#ifndef SMAPS_TRACK_LESSON_H
#define SMAPS_TRACK_LESSON_H

#include "estimate/cycle.h"
#include "estimate/track.h"

/* For one with a baseline, before the reading takes its place. */
void track_learn(const struct cycle *cycle, const struct track *t,
                 const struct rollup *found);

/* The first reading of a process that was estimated as a newborn, when it is
 * the baseline. */
void track_learn_newborn(const struct cycle *cycle, const struct track *t);

#endif
