/* Checks that output was written. */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <stdio.h>

/*
 * Exits with status 2 if writing has failed; prints an error, except for a pipe
 * without a reader (EPIPE). Called after each line, while errno is still that
 * of the failure.
 */
void output_check(FILE *out);

/* Flushes the output at the end, and checks it in the same way. */
void output_finish(FILE *out);

#endif
