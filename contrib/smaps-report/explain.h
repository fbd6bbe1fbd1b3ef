/* Why each process is where it is, and how it was read. */
#ifndef REPORT_EXPLAIN_H
#define REPORT_EXPLAIN_H

#include "options.h"

/*
 * Prints it, of one process or of all, and for all a summary by rule. Returns
 * 0, or -EINVAL with the reason where there is no such process.
 */
int explain_print(const struct document *d, const struct options *o,
                  const struct style *s, struct reason *reason);

#endif
