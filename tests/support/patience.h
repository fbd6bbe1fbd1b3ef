/*
 * Has a hang depend on what threads do, and not on how long the machine takes
 * to let them do it: pthread_cond_timedwait() ends in ETIMEDOUT only when every
 * other thread of the program sleeps; and does not wait for the time, if that
 * is less than half a second.
 */
#ifndef SMAPS_TESTS_PATIENCE_H
#define SMAPS_TESTS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Called before each such wait; true ends it at once. NULL for none. */
extern bool (*patience_hook)(void);

/* The short waits so far, and how long the last of them would have been. */
extern unsigned patience_waits;
extern uint64_t patience_wait_ns;

#endif
