/* SPDX-License-Identifier: MIT */
/* The tables of snapshots: groups, processes, users, mappings, areas. */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H

#include "filter.h"
#include "options.h"

/*
 * Prints the tables, each of all documents; totals are over all hosts. The sums
 * are in the documents' pools. Returns 0, or -EINVAL with the reason if no
 * document has the group, the mappings or the memory of the host.
 */
int view_print(struct document *const *documents, size_t n,
               const struct options *o, const struct style *s,
               struct config_error *reason);

/* Makes the filters that the options ask for. Free them with filters_done(),
 * also after -EINVAL. */
int view_filters(struct document *const *documents, size_t n,
                 const struct options *o, struct filters *ret,
                 struct config_error *reason);

#endif
