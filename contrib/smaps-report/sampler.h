/*
 * Runs a probe on a thread of its own, so that the screen answers while
 * processes are read. The thread makes one sample at a time.
 */
#ifndef REPORT_SAMPLER_H
#define REPORT_SAMPLER_H

#include "document.h"
#include "probe.h"

struct sampler;

/* What the thread has made. */
struct sample {
  uint64_t pid; /* of a close-up; UNKNOWN: a refresh */
  bool has_document;
  struct document document;   /* the caller's */
  struct config_error reason; /* where there is no document */
};

/* Takes the probe, and frees it at the end. Returns 0 or a negative errno. */
int sampler_new(struct probe *probe, struct sampler **ret);

/* Ends the thread, if it is idle, and frees all. A thread that still reads is
 * left to the end of the program. */
void sampler_free(struct sampler *s);

/* Readable while there is a sample to take. */
int sampler_fd(const struct sampler *s);

/* Asks for a close-up of a process of the last refresh, or, with UNKNOWN, for a
 * refresh. The sampler is then busy until the sample is taken. */
void sampler_ask(struct sampler *s, uint64_t pid);
bool sampler_is_busy(const struct sampler *s);

/* Takes the sample that was made. False if there is none. */
bool sampler_take(struct sampler *s, struct sample *ret);

#endif
