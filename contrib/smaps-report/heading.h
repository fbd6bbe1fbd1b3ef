/* SPDX-License-Identifier: MIT */
/* The host, the time and the alarm of a document. */
#ifndef REPORT_HEADING_H
#define REPORT_HEADING_H

#include "document.h"
#include "json_lines.h"
#include "text.h"

/* Prints a line of them, and those that warn. */
void heading_print(const struct document *d, const struct style *s);

/* Prints a line if the document is a StateFile that should be younger. */
void heading_print_age(const struct document *d, const struct style *s);

/* Writes them as keys of an open object. */
void heading_write(const struct document *d, struct json_lines *j);

#endif
