/* SPDX-License-Identifier: MIT */
/*
 * Makes a hang depend on what threads do, and not on how fast the machine is:
 * pthread_cond_timedwait() ends in ETIMEDOUT only when every other thread of
 * the program sleeps; and does not wait for the time, if that is less than half
 * a second.
 */
#ifndef SMAPS_TESTS_PATIENCE_H
#define SMAPS_TESTS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* This is called before each such wait, unless it is NULL; if it returns true
 * the wait ends at once. */
extern bool (*patience_hook)(void);

/* How many short waits there were, and how long the last of them would have
 * been. */
extern unsigned patience_waits;
extern uint64_t patience_wait_ns;

#endif
