/* SPDX-License-Identifier: MIT */
/*
 * Parses the text of a snapshot into a document.
 *
 * The text is read once, in pieces. Every part has a bound (build.h), and a
 * document that exceeds one is refused: memory and time stay linear in the
 * bytes read, for any document.
 */
#ifndef REPORT_LOAD_H
#define REPORT_LOAD_H

#include "document.h"

#include <smaps/config_error.h>

#define LOAD_BYTES_MAX ((uint64_t)1 << 30)

/*
 * Reads a file, or standard input ("-"), to its end. Returns 0, or with the
 * reason -EINVAL (not valid snapshot) or a read error; *ret is then unchanged.
 * Unknown keys and their values are skipped. A known key with a value of the
 * wrong type, or twice in an object, is an error. Free *ret with
 * document_done().
 */
int load_document_file(const char *path, struct document *ret,
                       struct config_error *reason);

/* Does the same for a text in memory. The document's parts go into the pool, or
 * into a pool of the document's own if that is NULL. */
int load_document_text(char *text, size_t len, struct pool *pool,
                       struct document *ret, struct config_error *reason);

#endif
