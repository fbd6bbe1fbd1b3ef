/*
 * From the events of a JSON parser to a document. Knows which keys a snapshot
 * has, of which type and where; knows no parser.
 */
#ifndef REPORT_BUILD_H
#define REPORT_BUILD_H

#include "document.h"

#include <smaps/reason.h>
#include <smaps/scan.h>

struct builder;

/* NULL where memory has run out. The reason outlives the builder. */
struct builder *builder_new(struct reason *reason);
void builder_free(struct builder *b);

/*
 * One event each, in the order of the text. They return false where the
 * document is refused, with why in the reason; nothing may follow then.
 */
bool builder_null(struct builder *b);
bool builder_boolean(struct builder *b, bool value);
bool builder_number(struct builder *b, struct span text);
bool builder_string(struct builder *b, struct span text);
bool builder_key(struct builder *b, struct span name);
bool builder_begin_object(struct builder *b);
bool builder_end_object(struct builder *b);
bool builder_begin_array(struct builder *b);
bool builder_end_array(struct builder *b);

/* Whether it has said yet that it is a snapshot. */
bool builder_is_snapshot(const struct builder *b);

/* Hands over the document when all has come; false as above. */
bool builder_finish(struct builder *b, struct document *ret);

#endif
