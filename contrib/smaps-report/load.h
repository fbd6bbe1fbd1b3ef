/*
 * From the text of a snapshot to a document.
 *
 * The text is read once, in pieces, and never held as a whole. Everything in it
 * has a bound, and a document that breaks one is refused: memory stays in
 * proportion to what is read and time linear in it, whatever the document.
 */
#ifndef REPORT_LOAD_H
#define REPORT_LOAD_H

#include "document.h"

#include <smaps/reason.h>

#include <stdio.h>

/* Bounds. A pid has at most 22 bits; few hosts have a thousandth of that. */
#define LOAD_BYTES_MAX ((uint64_t)1 << 30)
#define LOAD_STRING_MAX ((size_t)1 << 16)
#define LOAD_DEPTH_MAX 32
#define LOAD_RULES_MAX ((size_t)1 << 16)
#define LOAD_GROUPS_MAX ((size_t)1 << 17)
#define LOAD_PROCESSES_MAX ((size_t)1 << 20)
#define LOAD_MAPPINGS_MAX ((size_t)1 << 21) /* in all */

/*
 * Reads to the end of the file. Negative where it is no snapshot that we
 * understand, with why in *reason and *ret left alone: -EINVAL, -ENOMEM, or
 * what reading has given. Unknown keys are skipped with all that they hold; a
 * known one with a value of the wrong type, or twice in an object, is a
 * mistake. Free *ret with document_done().
 */
int load_document(FILE *file, struct document *ret, struct reason *reason);

#endif
