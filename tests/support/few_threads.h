/*
 * Lets threads run out where a test wants it. For programs that are linked with
 * --wrap=pthread_create (see the Makefile).
 */
#ifndef SMAPS_TESTS_FEW_THREADS_H
#define SMAPS_TESTS_FEW_THREADS_H

/* What a further thread fails with, an errno; 0 for not at all. */
extern int threads_fail;

#endif
