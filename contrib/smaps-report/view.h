/* The tables of one snapshot: of groups and processes, of users, of
 * mappings. */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H

#include "options.h"

/*
 * Prints them. Uses the document's pool for what it adds up. Returns 0, or
 * -EINVAL with the reason where the document does not have what was asked for.
 */
int view_print(struct document *d, const struct options *o,
               const struct style *s, struct reason *reason);

#endif
