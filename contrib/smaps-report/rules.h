/* The rules of a document, and how many processes each takes. Rules are
 * numbered from 1, in the order in which they are tried. */
#ifndef REPORT_RULES_H
#define REPORT_RULES_H

#include "document.h"
#include "json_lines.h"
#include "text.h"

/* Adds "2: " and the selectors of a rule. */
void rules_add(struct text *t, const struct document *d, uint64_t rule,
               const struct style *s);
/* The same as two keys of an open object. */
void rules_write(struct json_lines *j, const struct document *d, uint64_t rule);

/* An array with true for each rule that takes nothing and would take nothing
 * without the rules before it. The caller frees it. */
bool *rules_idle(const struct document *d);

/* Prints how many processes each rule takes, and why groups have no values of a
 * control group. */
void rules_print(const struct document *d, const struct style *s);
/* The same as keys of an open object. */
void rules_write_all(struct json_lines *j, const struct document *d);

#endif
