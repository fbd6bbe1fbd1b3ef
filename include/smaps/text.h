/* SPDX-License-Identifier: MIT */
/*
 * A cursor over text that the caller owns and that need not end in NUL.
 *
 * All text of the kernel under /proc is read with this: no sscanf, no atoi, no
 * copying. A function that fails leaves the cursor where it was.
 */
#ifndef SMAPS_TEXT_H
#define SMAPS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes within a longer-lived text. Any byte is allowed, NUL included. */
struct span {
  const char *text;
  size_t len;
};

/* True if it is this word. */
bool span_is(struct span s, const char *word);

struct cursor {
  const char *at;
  const char *end;
};

/* The text may be NULL if it is empty. */
static inline struct cursor cursor_begin(const char *text, size_t len) {
  return (struct cursor){.at = text, .end = len > 0 ? text + len : text};
}

static inline bool cursor_is_done(const struct cursor *s) {
  return s->at == s->end;
}

/* The next four are inline because a cycle calls them some hundred times per
 * process. */

/* Skips blanks and tabs, but not newlines. */
static inline void skip_blanks(struct cursor *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
    s->at++;
}

/* Consumes exactly this byte. */
static inline bool parse_char(struct cursor *s, char c) {
  if (s->at == s->end || *s->at != c)
    return false;
  s->at++;
  return true;
}

/*
 * Consumes a decimal number: one digit or more, no sign, no blank before it.
 * False if there is no digit or the value does not fit in 64 bits.
 */
static inline bool parse_u64(struct cursor *s, uint64_t *ret) {
  const char *at = s->at;
  uint64_t value = 0;

  for (; at < s->end && *at >= '0' && *at <= '9'; at++)
    if (__builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, (unsigned)(*at - '0'), &value))
      return false;
  if (at == s->at)
    return false;
  s->at = at;
  *ret = value;
  return true;
}

/* The same for 32 bits. */
static inline bool parse_u32(struct cursor *s, uint32_t *ret) {
  struct cursor ahead = *s;
  uint64_t value;

  if (!parse_u64(&ahead, &value) || value > UINT32_MAX)
    return false;
  *s = ahead;
  *ret = (uint32_t)value;
  return true;
}

static inline bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Consumes blanks, a number and " kB"; the result is in bytes. False also if
 * that does not fit. */
bool parse_kb(struct cursor *s, uint64_t *ret_bytes);

/* Consumes 1 to 16 hexadecimal digits, of which letters are small, and no more
 * may follow. */
bool parse_hex(struct cursor *s, uint64_t *ret);

/* Consumes exactly this word. */
bool parse_word(struct cursor *s, const char *word);

/*
 * Consumes the text before the separator and the separator, or all text that is
 * left; the span excludes the separator. False at the end of the text.
 */
bool parse_part(struct cursor *s, char separator, struct span *ret);

/* The same with newlines. */
bool parse_line(struct cursor *s, struct span *ret);

/* The length of the whole lines at the beginning of a piece of text. */
size_t whole_lines(const char *text, size_t len);

/*
 * Escapes untrusted text for a log line: printable ASCII is copied; any other
 * byte, the quotation mark and the backslash become \xNN. Text that does not
 * fit is cut and ends in "...". `size` is 8 at least. Returns ret.
 */
const char *escape_text(const char *text, size_t len, char *ret, size_t size);

/* The same for a word in a line: blanks, too, and `size` has room for all. */
void escape_word(const char *word, char *ret, size_t size);

/* The same for a string of collectd.conf, as it stands there between quotation
 * marks: that mark and the backslash have a backslash before them. */
const char *quote_text(const char *text, char *ret, size_t size);

/*
 * Decodes the first character of text in UTF-8 (RFC 3629), which is not empty.
 * Returns its length in bytes, or 0 if it is invalid: a stray or missing byte,
 * an overlong form, a surrogate, beyond U+10FFFF.
 */
size_t utf8_decode(const char *text, size_t len, uint32_t *ret);

#endif
