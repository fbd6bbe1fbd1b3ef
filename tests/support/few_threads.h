/*
 * Lets threads run out where a test wants it. For programs that are linked with
 * --wrap=pthread_create (see the Makefile).
 */
#ifndef SMAPS_TESTS_FEW_THREADS_H
#define SMAPS_TESTS_FEW_THREADS_H

/* The errno with which a further thread fails; 0 for success. */
extern int threads_fail;

#endif
