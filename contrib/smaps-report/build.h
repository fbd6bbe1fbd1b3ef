/* SPDX-License-Identifier: MIT */
/*
 * Builds a document from the events of yajl, a JSON parser. It checks the keys
 * and types (schema.h).
 */
#ifndef REPORT_BUILD_H
#define REPORT_BUILD_H

#include "document.h"

#include <smaps/config_error.h>
#include <smaps/text.h>

/* Bounds. A pid has at most 22 bits; few hosts have a thousandth of that many
 * processes. */
#define BUILD_STRING_MAX ((size_t)1 << 16)
#define BUILD_RULES_MAX ((size_t)1 << 16)
#define BUILD_GROUPS_MAX ((size_t)1 << 17)
#define BUILD_PROCESSES_MAX ((size_t)1 << 20)
#define BUILD_MAPPINGS_MAX ((size_t)1 << 21) /* in all */

struct builder;

/* Both outlive the builder. The pool may be NULL: then it is the document's. */
struct builder *builder_new(struct pool *pool, struct config_error *reason);
void builder_free(struct builder *b);

/*
 * One event each, in the order of the text. 0, with the reason, refuses the
 * document; no event may follow.
 */
int builder_null(void *builder);
int builder_boolean(void *builder, int value);
int builder_number(void *builder, const char *digits, size_t len);
int builder_string(void *builder, const unsigned char *bytes, size_t len);
int builder_key(void *builder, const unsigned char *bytes, size_t len);
int builder_begin_object(void *builder);
int builder_end_object(void *builder);
int builder_begin_array(void *builder);
int builder_end_array(void *builder);

/* True if the key "format" has shown that this is a snapshot. */
bool builder_is_snapshot(const struct builder *b);

/* Gets the document after the last event. Returns 0, or -EINVAL with the
 * reason.
 */
int builder_finish(struct builder *b, struct document *ret);

#endif
