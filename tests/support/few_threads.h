/* SPDX-License-Identifier: MIT */
/*
 * Lets threads run out where a test wants it. A program that uses this is
 * linked with --wrap=pthread_create (see tests.mk).
 */
#ifndef SMAPS_TESTS_FEW_THREADS_H
#define SMAPS_TESTS_FEW_THREADS_H

/* Starting a further thread fails with this errno; 0: it succeeds. */
extern int threads_fail;

#endif
