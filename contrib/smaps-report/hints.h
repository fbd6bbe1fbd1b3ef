/* Selectors that are valid, but probably match nothing by mistake. */
#ifndef REPORT_HINTS_H
#define REPORT_HINTS_H

#include <smaps/settings.h>

#include <stdbool.h>

/* Logs a warning (messages.h) for each such selector of the rules, and for such
 * a ContainerRoot. What a rule has taken need not be here: a container has
 * files, users and paths of its own. */
void hints_log(const struct settings *settings, const bool *is_idle);

#endif
