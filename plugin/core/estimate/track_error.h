/*
 * The errors of the estimate of a process: expected, for the choice of
 * readings, and published. See estimate_error.h for the causes.
 */
#ifndef SMAPS_TRACK_ERROR_H
#define SMAPS_TRACK_ERROR_H

#include "estimate/estimate_error.h"
#include "estimate/track_change.h"

/* Concludes what the cycles before have taught. Once in a cycle. */
void track_conclude_errors(const struct cycle *cycle, struct track *t);

struct error_parts track_usual_parts(const struct cycle *cycle,
                                     const struct track *t);

/* The usual error of Pss, at most all that is resident; and the part of it that
 * is not the error of a sample. */
struct doubt track_usual_error(const struct cycle *cycle,
                               const struct track *t);
struct doubt track_usual_error_since(const struct cycle *cycle,
                                     const struct track *t);

/* The errors to be published: of Pss after such changes, and of uss; both
 * without that of a sample, which comes in addition. */
struct doubt track_pss_error(const struct cycle *cycle, const struct track *t,
                             const struct change *c);
struct doubt track_uss_error(const struct cycle *cycle, const struct track *t,
                             struct doubt pss);

void track_add_sampled_errors(const struct cycle *cycle, const struct track *t,
                              struct doubt *pss, struct doubt *uss);

/* The part of the error of Pss that statm is off by, in bytes. */
uint64_t track_imprecision(const struct cycle *cycle, const struct track *t);

#endif
