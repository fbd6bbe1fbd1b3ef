/* Checks a document as a whole: names of groups, numbers of rules. */
#ifndef REPORT_CHECK_H
#define REPORT_CHECK_H

#include "document.h"

#include <smaps/config_error.h>

/*
 * Sorts the groups by name. False, with the reason, if two groups have the same
 * name or if a rule is used that the document does not have.
 */
bool check_document(struct document *d, struct config_error *reason);

#endif
