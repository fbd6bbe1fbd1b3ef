/* --since: a time in the past, as people say it, and the state nearest to it.
 */
#ifndef REPORT_SINCE_H
#define REPORT_SINCE_H

#include "document.h"

#include <smaps/config_error.h>

#include <time.h>

/*
 * Parses an age ("90m", "2h", "1h30m"; s, m, h and d), a time of the day
 * ("13:20": today, or yesterday if that is yet to come) or a date, with or
 * without a time ("2026-11-21 13:20", "11-21 13:20", "2026-11-21"; without a
 * year the last such day). Times are local and may have seconds. False for any
 * other text, and for the future.
 */
bool since_parse(const char *text, time_t now, time_t *ret);

/*
 * Loads the youngest state of a history (StateHistory) that is not younger than
 * the time. A file that cannot be loaded is reported on standard error, and the
 * next older one is taken. Returns 0, or a negative errno with the reason.
 */
int since_load(const char *directory, time_t when, struct document *ret,
               struct config_error *reason);

#endif
