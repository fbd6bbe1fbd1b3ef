/*
 * Lets memory run out where a test wants it. For programs that are linked with
 * --wrap for each function of scarce.c (see the Makefile).
 */
#ifndef SMAPS_TESTS_SCARCE_H
#define SMAPS_TESTS_SCARCE_H

#include <stdbool.h>
#include <stddef.h>

/* After `n` more pieces of memory there is none, once. */
void scarce_after(size_t n);

/* There is as much as before; whether it has run out meanwhile. */
bool scarce_end(void);

#endif
