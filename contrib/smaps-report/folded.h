/* Stacks of group, process and mapping, for flame graphs. */
#ifndef REPORT_FOLDED_H
#define REPORT_FOLDED_H

#include "document.h"

#include <stdio.h>

/*
 * Writes `group;comm[pid];mapping bytes` lines (PSS). A process in several
 * groups counts in one: in a capture that which it is about, and else that of
 * process_main_group(). In names ';', blanks, control
 * characters and what is no UTF-8 are replaced: a blank and a number at the end
 * of a stack is what the programs look for. Returns how many processes were
 * left out because their PSS is not known.
 */
size_t folded_write(const struct document *d, FILE *out);

#endif
