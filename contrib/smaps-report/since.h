/* SPDX-License-Identifier: MIT */
/* --since: a time in the past, as people say it, and the state of then. */
#ifndef REPORT_SINCE_H
#define REPORT_SINCE_H

#include <smaps/config_error.h>

#include <stdbool.h>
#include <time.h>

/*
 * Parses an age ("90m", "2h", "1h30m"; s, m, h and d) or a time of the day
 * ("13:20", "13:20:15": of today, or of yesterday if that is yet to come).
 * Times are local. False for any other text.
 */
bool since_parse(const char *text, time_t now, time_t *ret);

/* Finds the youngest state of a history (StateHistory) that is not younger than
 * the time. Returns its path, which the caller frees, or NULL with the reason.
 */
char *since_find(const char *directory, time_t when,
                 struct config_error *reason);

#endif
