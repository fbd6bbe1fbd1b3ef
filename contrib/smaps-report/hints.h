/* What is no mistake to the daemon, and yet selects nothing that is here. */
#ifndef REPORT_HINTS_H
#define REPORT_HINTS_H

#include <smaps/settings.h>

/* Tells (told.h) a warning for each such selector of the rules. */
void hints_tell(const struct settings *settings);

#endif
