/* SPDX-License-Identifier: MIT */
/* Why rules take nothing, or other processes than are meant. */
#ifndef REPORT_REASONS_H
#define REPORT_REASONS_H

#include "document.h"

/* Calls add() with a line for each reason that the processes show; names in it
 * are safe on a terminal. is_idle: rules that take nothing, and would take
 * nothing without the rules before them. */
void reasons_find(const struct document *d, const bool *is_idle,
                  void (*add)(void *ctx, const char *line), void *ctx);

/* True if rules see the beginning of its command line only. */
bool reasons_is_cut(const struct process *p);

#endif
