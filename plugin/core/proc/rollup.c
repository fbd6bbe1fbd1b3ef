/* SPDX-License-Identifier: MIT */
#include "proc/rollup.h"

#include <errno.h>
#include <string.h>

#define KIB UINT64_C(1024)

#define KEY(name, key) key ":",
static const char *const keys[ROLLUP_FIELDS] = {ROLLUP_TABLE(KEY)};

static const uint32_t needed =
    1 << ROLLUP_RSS | 1 << ROLLUP_PSS | 1 << ROLLUP_SHARED_CLEAN |
    1 << ROLLUP_SHARED_DIRTY | 1 << ROLLUP_PRIVATE_CLEAN |
    1 << ROLLUP_PRIVATE_DIRTY;

/*
 * Consumes the key of a field. The search starts after the last field: while
 * the kernel keeps our order, the first try succeeds.
 */
static bool parse_key(struct cursor *s, unsigned *field) {
  unsigned next = *field;

  do {
    next = (next + 1) % ROLLUP_FIELDS;
    if (parse_word(s, keys[next])) {
      *field = next;
      return true;
    }
  } while (next != *field);
  return false;
}

/* Everything up to the next blank. */
static struct span parse_item(struct cursor *s) {
  const char *start = s->at;

  while (!cursor_is_done(s) && *s->at != ' ' && *s->at != '\n')
    s->at++;
  return (struct span){start, (size_t)(s->at - start)};
}

static struct span parse_next_item(struct cursor *s) {
  skip_blanks(s);
  return parse_item(s);
}

/* Skips offset and inode. */
static bool parse_mapping(struct cursor *s, struct rollup_line *line) {
  if (!parse_hex(s, &line->start) || !parse_char(s, '-') ||
      !parse_hex(s, &line->end) || !parse_char(s, ' '))
    return false;
  line->permissions = parse_item(s);
  parse_next_item(s);
  line->device = parse_next_item(s);
  parse_next_item(s);
  skip_blanks(s);
  return line->end >= line->start && parse_line(s, &line->name);
}

/*
 * 561d761ad000-7ffe85cca000 ---p 00000000 00:00 0                    [rollup]
 * Rss:                1640 kB
 * Pss:                 531 kB
 * …
 * Locked:                0 kB
 *
 * smaps has such a header for every mapping, and lines that the rollup lacks:
 * Size, KernelPageSize, VmFlags … A key starts with a capital letter and an
 * address never does. No process can add a line: the kernel escapes newlines in
 * the path of a mapping, and the name of an anonymous mapping cannot hold any.
 */
bool rollup_line_next(struct cursor *s, struct rollup_line *line) {
  struct span skipped;

  if (is_hex_digit(*s->at)) {
    line->kind = ROLLUP_LINE_MAPPING;
    line->field = ROLLUP_FIELDS - 1; /* Rss comes next */
    return parse_mapping(s, line);
  }
  if (parse_key(s, &line->field)) {
    line->kind = ROLLUP_LINE_FIELD;
    return parse_kb(s, &line->bytes) && parse_char(s, '\n');
  }
  line->kind = ROLLUP_LINE_OTHER;
  return *s->at >= 'A' && *s->at <= 'Z' && parse_line(s, &skipped);
}

/* Kernel rounding can lose up to 1 kB for each part. */
bool rollup_is_consistent(const struct rollup *r) {
  static const enum rollup_field parts[] = {
      ROLLUP_SHARED_CLEAN, ROLLUP_SHARED_DIRTY, ROLLUP_PRIVATE_CLEAN,
      ROLLUP_PRIVATE_DIRTY};
  const uint64_t rounding = sizeof(parts) / sizeof(parts[0]) * KIB;
  uint64_t rss = r->bytes[ROLLUP_RSS], sum = 0;

  if ((r->known & needed) != needed || r->bytes[ROLLUP_PSS] > rss)
    return false;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
    if (__builtin_add_overflow(sum, r->bytes[parts[i]], &sum))
      return false;
  return sum > rss ? sum - rss <= rounding : rss - sum <= rounding;
}

int rollup_parse(const char *text, size_t len, struct rollup *ret) {
  struct cursor s = cursor_begin(text, len);
  struct rollup total = {0};
  struct rollup_line line = {0};

  if (len == 0 || text[len - 1] != '\n') /* truncated */
    return -EBADMSG;
  while (!cursor_is_done(&s)) {
    if (!rollup_line_next(&s, &line))
      return -EBADMSG;
    if (line.kind != ROLLUP_LINE_FIELD)
      continue;
    if (rollup_has(&total, line.field))
      return -EBADMSG;
    total.known |= 1u << line.field;
    total.bytes[line.field] = line.bytes;
  }
  if (!rollup_is_consistent(&total))
    return -EBADMSG;
  *ret = total;
  return 0;
}

bool rollup_add_line(struct rollup *sum, const struct rollup_line *line) {
  uint64_t *bytes = &sum->bytes[line->field];

  sum->known |= 1u << line->field;
  return !__builtin_add_overflow(*bytes, line->bytes, bytes);
}
