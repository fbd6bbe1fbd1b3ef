/* SPDX-License-Identifier: MIT */
/* Stacks of group, process and mapping, for flame graphs. */
#ifndef REPORT_FOLDED_H
#define REPORT_FOLDED_H

#include "document.h"

#include <stdio.h>

/*
 * Writes `group;comm[pid];mapping bytes` lines (PSS). A process in several
 * groups counts in one: the group of the capture, or else process_main_group().
 * In names
 * '_' replaces ';', blanks, control characters and invalid UTF-8, because the
 * programs look for a blank and a number at the end of a stack. Returns the
 * number of processes that were left out because their PSS is unknown.
 */
size_t folded_write(const struct document *d, FILE *out);

#endif
