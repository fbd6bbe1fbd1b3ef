/* The mistakes of a configuration, from the log of a collectd that has read it.
 */
#ifndef REPORT_MISTAKE_H
#define REPORT_MISTAKE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Prints a line for each mistake: what the plugin says of options, and what
 * collectd says of lines that it cannot parse. `config` is the configuration,
 * whose marks (EXTRACT_MARK) tell the file and the number of each line. Returns
 * the number of mistakes.
 */
size_t mistake_print(FILE *log, FILE *config, FILE *out);

#endif
