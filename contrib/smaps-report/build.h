/*
 * Builds a document from the events of a JSON parser. It checks the keys and
 * types (schema.h) and does not depend on the parser.
 */
#ifndef REPORT_BUILD_H
#define REPORT_BUILD_H

#include "document.h"

#include <smaps/config_error.h>
#include <smaps/text.h>

/* Bounds. A pid has at most 22 bits; few hosts have a thousandth of that many
 * processes. */
#define BUILD_STRING_MAX ((size_t)1 << 16)
#define BUILD_DEPTH_MAX 32
#define BUILD_RULES_MAX ((size_t)1 << 16)
#define BUILD_GROUPS_MAX ((size_t)1 << 17)
#define BUILD_PROCESSES_MAX ((size_t)1 << 20)
#define BUILD_MAPPINGS_MAX ((size_t)1 << 21) /* in all */

struct builder;

/* NULL if memory has run out. The reason outlives the builder. */
struct builder *builder_new(struct config_error *reason);
void builder_free(struct builder *b);

/*
 * One event each, in the order of the text. False, with the reason, refuses the
 * document; no event may follow.
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

/* True if the key "format" has shown that this is a snapshot. */
bool builder_is_snapshot(const struct builder *b);

/* Gets the document after the last event; false as above. */
bool builder_finish(struct builder *b, struct document *ret);

#endif
