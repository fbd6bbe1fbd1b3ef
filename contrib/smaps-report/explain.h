/* The rule that took each process, and how the process was read. */
#ifndef REPORT_EXPLAIN_H
#define REPORT_EXPLAIN_H

#include "options.h"

/*
 * Explains one process, or all of them with a summary by rule. Returns 0, or
 * -EINVAL with the reason if there is no such process.
 */
int explain_print(const struct document *d, const struct options *o,
                  const struct style *s, struct config_error *reason);

#endif
