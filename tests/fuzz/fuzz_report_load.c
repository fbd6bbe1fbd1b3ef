/* SPDX-License-Identifier: MIT */
/* A snapshot that loads can be shown in every way, in text that is safe for any
 * terminal, and does not differ from itself. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "diff.h"
#include "explain.h"
#include "folded.h"
#include "load.h"
#include "page_data.h"
#include "view.h"

#define WORDS_MAX 8

/* Each item is a command line. */
static const char *const shows[][WORDS_MAX] = {
    {"smaps-report", "-t", "x"},
    {"smaps-report", "-tku", "x"},
    {"smaps-report", "-tmp", "x"},
    {"smaps-report", "--json", "x"},
    {"smaps-report", "-mj", "x"},
    {"smaps-report", "-tw", "x"},
    {"smaps-report", "-tP", "a", "-U", "r", "x", "x"},
    {"smaps-report", "-tj", "x", "x"},
    {"smaps-report", "explain", "x"},
    {"smaps-report", "explain", "-j", "x"},
    {"smaps-report", "explain", "x", "1"},
    {"smaps-report", "explain", "-j", "x", "1"},
    {"smaps-report", "explain", "-g", "g", "x"},
    {"smaps-report", "diff", "x", "x"},
    {"smaps-report", "diff", "--json", "-s", "uss", "x", "x"},
};

static int load(const uint8_t *data, size_t size, struct document *ret) {
  struct config_error reason = {""};
  char *copy = fuzz_copy(data, size);
  int rc;

  fuzz_taint(ret, sizeof(*ret));
  rc = load_document_text(copy, size, NULL, ret, &reason);
  free(copy);
  require(rc == 0 || rc == -EINVAL);
  if (rc != 0) {
    fuzz_require_untouched(ret, sizeof(*ret));
    require(reason.text[0] && fuzz_is_printable(reason.text));
  }
  return rc;
}

/* Without UTF-8 the output is lines of printable ASCII. */
static void require_lines(const char *text, size_t len) {
  require(len == 0 || text[len - 1] == '\n');
  for (size_t i = 0; i < len; i++)
    require(text[i] == '\n' || (text[i] >= 0x20 && text[i] <= 0x7e));
}

static void require_json(const char *text, size_t len) {
  yajl_handle parser = yajl_alloc(NULL, NULL, NULL);

  require(yajl_parse(parser, (const unsigned char *)text, len) ==
          yajl_status_ok);
  require(yajl_complete_parse(parser) == yajl_status_ok);
  yajl_free(parser);
}

static int print(const struct options *o, struct document *d,
                 struct document *same, struct style *style,
                 struct config_error *reason) {
  if (o->command == COMMAND_EXPLAIN)
    return explain_print(d, o, style, reason);
  if (o->command == COMMAND_DIFF)
    return diff_print(d, same, o, style, reason);
  return view_print((struct document *[]){d, same}, o->n_files, o, style,
                    reason);
}

static void show(const char *const words[], struct document *d,
                 struct document *same) {
  char *argv[WORDS_MAX + 1] = {NULL}, *text;
  struct config_error reason = {""};
  struct options options;
  struct style style;
  size_t len;
  int argc = 0, r;

  for (; argc < WORDS_MAX && words[argc]; argc++)
    argv[argc] = (char *)(uintptr_t)words[argc];
  require(options_parse(argc, argv, &options, &reason) == 0);
  style = (struct style){.out = open_memstream(&text, &len),
                         .width = 40,
                         .has_header = options.has_header,
                         .unit = options.unit,
                         .mem_total = d->mem_total};
  require(style.out);
  r = print(&options, d, same, &style, &reason);
  fclose(style.out);
  require(r == 0 || r == -EINVAL);
  if (r != 0)
    require(reason.text[0] && fuzz_is_printable(reason.text));
  else if (options.is_json)
    require_json(text, len);
  else
    require_lines(text, len);
  free(text);
}

/* The last word of each line is a number, and the only blank is before it. */
static void require_stacks(const char *text, size_t len) {
  const char *line = text;

  require(len == 0 || text[len - 1] == '\n');
  while (line < text + len) {
    const char *end = memchr(line, '\n', (size_t)(text + len - line));
    const char *blank = memchr(line, ' ', (size_t)(end - line));

    require(blank && blank > line && blank + 1 < end);
    for (const char *c = blank + 1; c < end; c++)
      require(*c >= '0' && *c <= '9');
    for (const char *c = line; c < end; c++)
      require((unsigned char)*c >= 0x20 && *c != 0x7f);
    line = end + 1;
  }
}

static void show_stacks(const struct document *d) {
  size_t len;
  char *text;
  FILE *out = open_memstream(&text, &len);

  require(out);
  require(folded_write(d, out) <= d->n_processes);
  fclose(out);
  require_stacks(text, len);
  free(text);
}

/* The data within a page are JSON, and contain no markup. */
static void show_page(struct document *d, struct document *same) {
  size_t len;
  char *text;
  FILE *out = open_memstream(&text, &len);

  require(out);
  page_data_write(d, same, out);
  fclose(out);
  require_json(text, len);
  require(!memchr(text, '<', len) && !memchr(text, '>', len));
  free(text);
}

/* Only unknown values may count as changed. */
static void require_none(const struct changes *changes) {
  for (size_t i = 0; i < changes->n; i++) {
    require(changes->all[i].how == HOW_STAYED);
    require(changes->all[i].size == MISSING);
  }
}

static void compare(struct document *d, struct document *same) {
  struct diff diff;

  diff_make(d, same, AMOUNT_PSS, NULL, &diff);
  require_none(&diff.groups);
  require_none(&diff.processes);
  require_none(&diff.mappings);
  diff_done(&diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct document d, same;

  if (size == 0 || load(data, size, &d) != 0)
    return 0;
  require(load(data, size, &same) == 0);
  compare(&d, &same);
  show_stacks(&d);
  show_page(&d, &same);
  for (size_t i = 0; i < sizeof(shows) / sizeof(*shows); i++)
    show(shows[i], &d, &same);
  document_done(&d);
  document_done(&same);
  return 0;
}
