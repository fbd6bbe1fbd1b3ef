/* SPDX-License-Identifier: MIT */
/* Threads of the plugin, and waiting with a limit. */
#ifndef SMAPS_THREAD_H
#define SMAPS_THREAD_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Starts a thread. Signals belong to the program, so the thread blocks all but
 * those of a defect. Returns 0 or a negative errno. */
int thread_start(pthread_t *ret, void *(*run)(void *), void *ctx);

/* A condition whose waits end by the monotonic clock. */
void thread_init_condition(pthread_cond_t *c);

/* The time of the monotonic clock in `ns` nanoseconds from now. */
struct timespec thread_deadline(uint64_t ns);

#endif
