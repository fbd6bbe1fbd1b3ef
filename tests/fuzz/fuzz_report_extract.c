/* Our blocks of a collectd configuration are copied unchanged, and nothing
 * else. */
#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extract.h"

static const char other[] = "# a \"comment\nLoadPlugin csv\n<Plugin csv>\n"
                            "<Plugin smaps>\nDataDir \"</Plugin>\"\n"
                            "</Plugin>\n</Plugin>\n";

static const char ours[] = "<Plugin \"smaps\">\nStateFile \"x\"\n<Capture>\n"
                           "Directory \"</Capture>\"\n</Capture>\n"
                           "<Group \"g\">\nComm \"x\"\n</Group>\n</Plugin>\n";
static const char ours_taken[] = "<Plugin \"smaps\">\n<Group \"g\">\n"
                                 "Comm \"x\"\n</Group>\n</Plugin>\n";

static int note_include(void *context, const char *pattern,
                        const char *filter) {
  unsigned *count = context;

  (*count)++;
  require(strlen(pattern) < 4096);
  require(!filter || (*filter && strlen(filter) < 4096));
  return 0;
}

static char *extract(const char *text, size_t len, enum extract_what what,
                     size_t *ret_len, unsigned *ret_includes) {
  char *ret;
  FILE *out = open_memstream(&ret, ret_len);

  *ret_includes = 0;
  require(out);
  require(extract_text((struct span){text, len}, "x", what, out, note_include,
                       ret_includes) == 0);
  fclose(out);
  require(*ret_len <= len + 1);
  require(*ret_len == 0 || ret[*ret_len - 1] == '\n');
  return ret;
}

/* The copied lines are lines of the text, in the same order; a newline is added
 * to the last line if it has none. */
static void require_part(const char *part, size_t part_len, const char *text,
                         size_t len) {
  size_t at = 0;

  for (size_t i = 0; i < part_len; i++, at++) {
    while (at < len && text[at] != part[i])
      at++;
    require(at < len || (i == part_len - 1 && part[i] == '\n'));
  }
}

static void require_same(const char *a, size_t a_len, const char *b,
                         size_t b_len) {
  require(a_len == b_len && memcmp(a, b, a_len) == 0);
}

/* Extracting from the result gives the same result, unless the text ends in a
 * string: the added newline is then part of the string. */
static void take_again(const char *taken, size_t taken_len) {
  unsigned includes;
  size_t len;
  char *again = extract(taken, taken_len, EXTRACT_BLOCKS, &len, &includes);

  require(includes == 0);
  require_same(again, len, taken, taken_len);
  free(again);
}

/* Blocks before the text do not change its result, and are extracted if they
 * are ours. */
static void take_behind(const char *before, const char *taken_before,
                        struct span text, struct span expected) {
  size_t before_len = strlen(before), len = strlen(taken_before), taken_len;
  char *copy = malloc(before_len + text.len), *taken;
  unsigned includes;

  memcpy(copy, before, before_len);
  memcpy(copy + before_len, text.text, text.len);
  taken = extract(copy, before_len + text.len, EXTRACT_BLOCKS, &taken_len,
                  &includes);
  require(taken_len == len + expected.len);
  require(memcmp(taken, taken_before, len) == 0);
  require(memcmp(taken + len, expected.text, expected.len) == 0);
  free(taken);
  free(copy);
}

/* Each block that is taken whole has a mark of its own. */
static void look_at_named(const char *text, size_t len) {
  unsigned includes = 0;
  char *named;
  size_t size;
  FILE *out = open_memstream(&named, &size);
  int rc;

  require(out);
  rc = extract_text((struct span){text, len}, "/x", EXTRACT_NAMED, out,
                    note_include, &includes);
  require(rc == 0 || rc == -EBADMSG);
  fclose(out);
  require(size == 0 || strncmp(named, EXTRACT_MARK " ", 15) == 0);
  require(size == 0 || strstr(named, " /x\n<Plugin smaps \"/x\">\n"));
  free(named);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = fuzz_copy(data, size), *blocks, *globals;
  unsigned includes, includes_again;
  size_t blocks_len, globals_len;

  blocks = extract(text, size, EXTRACT_BLOCKS, &blocks_len, &includes);
  globals = extract(text, size, EXTRACT_GLOBALS, &globals_len, &includes_again);
  require(includes == includes_again);
  require_part(blocks, blocks_len, text, size);
  require_part(globals, globals_len, text, size);
  if (size > 0 && text[size - 1] == '\n')
    take_again(blocks, blocks_len);
  take_behind(other, "", (struct span){text, size},
              (struct span){blocks, blocks_len});
  take_behind(ours, ours_taken, (struct span){text, size},
              (struct span){blocks, blocks_len});
  look_at_named(text, size);
  free(blocks);
  free(globals);
  free(text);
  return 0;
}
