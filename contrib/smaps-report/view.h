/* The tables of a snapshot: groups, processes, users, mappings. */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H

#include "options.h"

/*
 * Prints the tables. The sums are in the document's pool. Returns 0, or -EINVAL
 * with the reason if the document lacks the group or the mappings.
 */
int view_print(struct document *d, const struct options *o,
               const struct style *s, struct config_error *reason);

#endif
