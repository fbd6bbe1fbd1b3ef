/*
 * The lines that the plugin's sources tell the daemon. Here this program stands
 * for the daemon: told.c has its plugin_log() and its clock.
 */
#ifndef REPORT_TOLD_H
#define REPORT_TOLD_H

#include <stddef.h>
#include <stdio.h>

/* The number of errors since the last told_print(). */
size_t told_errors(void);

/* Prints and forgets the errors and warnings, a line each, and without the
 * plugin's name. Text of strangers is made safe for a terminal. */
void told_print(FILE *out);

#endif
