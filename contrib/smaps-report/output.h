/* Whether what was printed has got out. */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <stdio.h>

/*
 * Ends the program with status 2 where writing has failed: with a message, but
 * for a pipe that nobody reads any more. To be called after each line, while
 * errno still is that of the failure.
 */
void output_check(FILE *out);

/* The same when all is printed, with what is still buffered. */
void output_finish(FILE *out);

#endif
