/* SPDX-License-Identifier: MIT */
/* Selectors that are valid, but probably match nothing by mistake. */
#ifndef REPORT_HINTS_H
#define REPORT_HINTS_H

#include <smaps/settings.h>

#include <stdbool.h>

/* Logs a warning (messages.h) for each such selector of the rules, and for a
 * ContainerRoot that does not exist. is_idle: rules that took no process. The
 * others are not checked for files and users that do not exist here: a
 * container has its own. */
void hints_log(const struct settings *settings, const bool *is_idle,
               bool averages_mapcounts);

/* Logs another warning. */
void hints_log_text(const char *text);

#endif
