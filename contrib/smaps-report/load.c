/* SPDX-License-Identifier: MIT */
#include "load.h"
#include "build.h"
#include "memory.h"

#include <yajl/yajl_parse.h>

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)1 << 16)

/* Enough for the longest string with each byte escaped, in buffers that double,
 * and one piece more. */
#define PARSER_MAX ((size_t)4 << 20)

/* ---- the parser's memory ---- */

/* yajl buffers a string that crosses pieces without a limit, so its memory is
 * counted and checked after each piece. yajl also does not check allocations.
 */
static void *parser_realloc(void *held, void *memory, size_t size) {
  size_t before = malloc_usable_size(memory);

  memory = memory_array(memory, size, 1);
  *(size_t *)held += malloc_usable_size(memory) - before;
  return memory;
}

static void *parser_alloc(void *held, size_t size) {
  return parser_realloc(held, NULL, size);
}

static void parser_free(void *held, void *memory) {
  *(size_t *)held -= malloc_usable_size(memory);
  free(memory);
}

/* ---- reading ---- */

static const yajl_callbacks callbacks = {
    .yajl_null = builder_null,
    .yajl_boolean = builder_boolean,
    .yajl_number = builder_number,
    .yajl_string = builder_string,
    .yajl_start_map = builder_begin_object,
    .yajl_map_key = builder_key,
    .yajl_end_map = builder_end_object,
    .yajl_start_array = builder_begin_array,
    .yajl_end_array = builder_end_array,
};

struct load {
  struct builder *builder;
  yajl_handle parser;
  size_t held; /* by the parser */
  uint64_t bytes;
  struct config_error *reason;
};

/* yajl's message: one line, without its "parse error: ". */
static void refuse_syntax(struct load *l, uint64_t at) {
  unsigned char *text = yajl_get_error(l->parser, 0, NULL, 0);
  const char *words = strstr((const char *)text, ": ");

  words = words ? words + 2 : (const char *)text;
  config_error_format(l->reason, "%s at byte %ju: %.*s",
                      builder_is_snapshot(l->builder)
                          ? "not valid JSON"
                          : "not a snapshot: not valid JSON",
                      (uintmax_t)at, (int)strcspn(words, "\n"), words);
  yajl_free_error(l->parser, text);
}

static int refuse(struct load *l, yajl_status status, uint64_t before) {
  if (status == yajl_status_client_canceled) {
    if (!builder_is_snapshot(l->builder) &&
        strncmp(l->reason->text, "not ", 4) != 0)
      config_error_format(l->reason, "not a snapshot of the smaps plugin");
    return -EINVAL;
  }
  refuse_syntax(l, before + yajl_get_bytes_consumed(l->parser));
  return -EINVAL;
}

static int parse_piece(struct load *l, const unsigned char *piece, size_t len) {
  yajl_status status = yajl_parse(l->parser, piece, len);

  if (status != yajl_status_ok)
    return refuse(l, status, l->bytes);
  l->bytes += len;
  if (l->held > PARSER_MAX)
    return config_error_set(l->reason,
                            "a string, a number or the nesting before byte "
                            "%ju is too long",
                            (uintmax_t)l->bytes);
  if (l->bytes > LOAD_BYTES_MAX)
    return config_error_set(l->reason, "more than %ju bytes",
                            (uintmax_t)LOAD_BYTES_MAX);
  return 0;
}

static int parse_all(struct load *l, FILE *file) {
  unsigned char piece[PIECE];
  int rc = 0;

  while (rc == 0 && !feof(file)) {
    size_t len = fread(piece, 1, sizeof(piece), file);

    if (ferror(file)) {
      rc = errno ? -errno : -EIO;
      config_error_format(l->reason, "cannot be read: %s", strerror(-rc));
    } else if (len > 0) {
      rc = parse_piece(l, piece, len);
    }
  }
  return rc;
}

static int complete(struct load *l, struct document *ret) {
  yajl_status status;

  if (l->bytes == 0)
    return config_error_set(l->reason, "is empty");
  status = yajl_complete_parse(l->parser);
  if (status == yajl_status_client_canceled)
    return refuse(l, status, l->bytes);
  if (status != yajl_status_ok)
    return config_error_set(l->reason,
                            "ends at byte %ju in the middle of the document",
                            (uintmax_t)l->bytes);
  return builder_finish(l->builder, ret);
}

static int load(FILE *file, struct pool *pool, struct document *ret,
                struct config_error *reason) {
  struct load l = {.builder = builder_new(pool, reason), .reason = reason};
  yajl_alloc_funcs memory = {.malloc = parser_alloc,
                             .realloc = parser_realloc,
                             .free = parser_free,
                             .ctx = &l.held};
  int rc;

  l.parser = yajl_alloc(&callbacks, &memory, l.builder);
  rc = parse_all(&l, file);
  if (rc == 0)
    rc = complete(&l, ret);
  yajl_free(l.parser);
  builder_free(l.builder);
  return rc;
}

/* ---- files ---- */

int load_document_file(const char *path, struct document *ret,
                       struct config_error *reason) {
  bool is_stdin = strcmp(path, "-") == 0;
  FILE *file = is_stdin ? stdin : fopen(path, "re");
  int rc;

  if (!file)
    return config_error_set(reason, "%s", strerror(errno));
  rc = load(file, NULL, ret, reason);
  if (!is_stdin)
    fclose(file);
  return rc;
}

int load_document_text(char *text, size_t len, struct pool *pool,
                       struct document *ret, struct config_error *reason) {
  FILE *file = fmemopen(text, len, "r");
  int rc;

  if (!file)
    return config_error_set(reason, "%s", strerror(errno));
  rc = load(file, pool, ret, reason);
  fclose(file);
  return rc;
}
