/*
 * Why a rule of a document does not match a process: the selectors of its text
 * are tried again, on the attributes that the document has. Lines are safe on a
 * terminal of that style.
 */
#ifndef REPORT_SELECTORS_H
#define REPORT_SELECTORS_H

#include "document.h"
#include "text.h"

/* Calls add() with a line for each selector that keeps the rule from matching:
 * all selectors of an attribute of which none matches. If there is none, one
 * line says what else can be the reason. */
void selectors_explain(const char *rule, const struct process *p,
                       const struct style *s,
                       void (*add)(void *ctx, const char *line), void *ctx);

/* Calls add() with a line for each attribute, in the order of their table: as a
 * selector has it in its configuration, cut at 200 bytes, or why it has no
 * value. */
void selectors_show(const struct process *p, const struct style *s,
                    void (*add)(void *ctx, const char *line), void *ctx);

#endif
