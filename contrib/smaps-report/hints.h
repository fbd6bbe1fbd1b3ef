/* What is no mistake to the daemon, and yet selects nothing that is here. */
#ifndef REPORT_HINTS_H
#define REPORT_HINTS_H

#include <smaps/settings.h>

#include <stdbool.h>

/* Tells (messages.h) a warning for each such selector of the rules. What a rule
 * has taken need not be here: a container has files, users and paths of its
 * own. */
void hints_log(const struct settings *settings, const bool *is_idle);

#endif
