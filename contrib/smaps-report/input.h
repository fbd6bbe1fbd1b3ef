/* Opens the files that the command line names. */
#ifndef REPORT_INPUT_H
#define REPORT_INPUT_H

#include <stdio.h>

#include <smaps/config_error.h>

/* Seconds that a named pipe is given until a program writes into it. */
#define INPUT_PATIENCE 5

/* Opens a file for reading; NULL with the reason if it cannot be opened, or if
 * it is a named pipe that no program has open for writing. */
FILE *input_open(const char *path, struct config_error *reason);

#endif
