/* SPDX-License-Identifier: MIT */
#include <smaps/text.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define ELLIPSIS "..."

bool span_is(struct span s, const char *word) {
  return s.len == strlen(word) && memcmp(s.text, word, s.len) == 0;
}

bool parse_kb(struct cursor *s, uint64_t *ret_bytes) {
  struct cursor ahead = *s;
  uint64_t kb, bytes;

  skip_blanks(&ahead);
  if (!parse_u64(&ahead, &kb) || !parse_word(&ahead, " kB") ||
      __builtin_mul_overflow(kb, 1024u, &bytes))
    return false;
  *s = ahead;
  *ret_bytes = bytes;
  return true;
}

bool parse_hex(struct cursor *s, uint64_t *ret) {
  const char *at = s->at;
  uint64_t value = 0;

  for (; at < s->end && is_hex_digit(*at); at++)
    value = value << 4 | (unsigned)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
  if (at == s->at || at - s->at > 16)
    return false;
  s->at = at;
  *ret = value;
  return true;
}

bool parse_word(struct cursor *s, const char *word) {
  size_t len = strlen(word);

  if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
    return false;
  s->at += len;
  return true;
}

bool parse_part(struct cursor *s, char separator, struct span *ret) {
  const char *end;

  if (cursor_is_done(s))
    return false;
  end = memchr(s->at, separator, (size_t)(s->end - s->at));
  ret->text = s->at;
  ret->len = (size_t)((end ? end : s->end) - s->at);
  s->at = end ? end + 1 : s->end;
  return true;
}

bool parse_line(struct cursor *s, struct span *ret) {
  return parse_part(s, '\n', ret);
}

size_t whole_lines(const char *text, size_t len) {
  const char *newline = memrchr(text, '\n', len);

  return newline ? (size_t)(newline - text) + 1 : 0;
}

/* Returns the length of a byte as it is written. */
static size_t escape_byte(unsigned char c, bool is_quoted, char ret[5]) {
  bool is_special = c == '"' || c == '\\';

  if (c < 0x20 || c >= 0x7f || (is_special && !is_quoted))
    return (size_t)sprintf(ret, "\\x%02x", c);
  return (size_t)sprintf(ret, is_special ? "\\%c" : "%c", c);
}

static const char *escape(const char *text, size_t len, bool is_quoted,
                          char *ret, size_t size) {
  size_t at = 0, cut = 0; /* after the last byte that leaves room for "..." */

  assert(size >= 8);
  for (size_t i = 0; i < len; i++) {
    char byte[5];
    size_t n = escape_byte((unsigned char)text[i], is_quoted, byte);

    if (at + n >= size) {
      strcpy(ret + cut, ELLIPSIS);
      return ret;
    }
    memcpy(ret + at, byte, n);
    at += n;
    if (at + sizeof(ELLIPSIS) <= size)
      cut = at;
  }
  ret[at] = '\0';
  return ret;
}

const char *escape_text(const char *text, size_t len, char *ret, size_t size) {
  return escape(text, len, false, ret, size);
}

void escape_word(const char *word, char *ret, size_t size) {
  size_t at = 0;

  *ret = '\0';
  for (; *word; word++, at += strlen(ret + at))
    if (*word == ' ')
      snprintf(ret + at, size - at, "\\x20");
    else
      escape_text(word, 1, ret + at, size - at);
}

const char *quote_text(const char *text, char *ret, size_t size) {
  return escape(text, strlen(text), true, ret, size);
}

/* --- UTF-8 --- */

/* The length of a character by its first byte, and the least valid value. */
static size_t sequence_length(unsigned char first, uint32_t *ret_least) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t n = first < 0x80             ? 1
             : (first & 0xe0) == 0xc0 ? 2
             : (first & 0xf0) == 0xe0 ? 3
             : (first & 0xf8) == 0xf0 ? 4
                                      : 0;

  *ret_least = least[n];
  return n;
}

size_t utf8_decode(const char *text, size_t len, uint32_t *ret) {
  static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  unsigned char first = (unsigned char)*text;
  uint32_t least, c;
  size_t n = sequence_length(first, &least);

  if (n == 0 || n > len)
    return 0;
  c = first & mask[n];
  for (size_t i = 1; i < n; i++) {
    unsigned char next = (unsigned char)text[i];

    if ((next & 0xc0) != 0x80)
      return 0;
    c = c << 6 | (next & 0x3f);
  }
  if (c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
    return 0;
  *ret = c;
  return n;
}
