/*
 * A cursor over text that somebody else owns and that need not end in NUL.
 *
 * Everything the kernel prints under /proc is read through this: no sscanf, no
 * atoi, no copying. A function that fails leaves the cursor where it was.
 */
#ifndef SMAPS_SCAN_H
#define SMAPS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a text that outlives it. May hold any byte, NUL included. */
struct span {
  const char *text;
  size_t len;
};

struct scan {
  const char *at;
  const char *end;
};

static inline struct scan scan_begin(const char *text, size_t len) {
  return (struct scan){.at = text, .end = text + len};
}

static inline bool scan_is_done(const struct scan *s) {
  return s->at == s->end;
}

/* These four are inline because a cycle calls them some hundred times for each
 * process. */

/* Skips blanks and tabs, not newlines. */
static inline void scan_skip_blanks(struct scan *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
    s->at++;
}

/* Takes exactly this byte. */
static inline bool scan_char(struct scan *s, char c) {
  if (s->at == s->end || *s->at != c)
    return false;
  s->at++;
  return true;
}

/*
 * Takes a decimal number: one digit or more, no sign, no blank before it.
 * False where there is no digit or the value does not fit in 64 bits.
 */
static inline bool scan_u64(struct scan *s, uint64_t *ret) {
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

/* The same, refusing what does not fit in 32 bits. */
static inline bool scan_u32(struct scan *s, uint32_t *ret) {
  struct scan ahead = *s;
  uint64_t value;

  if (!scan_u64(&ahead, &value) || value > UINT32_MAX)
    return false;
  *s = ahead;
  *ret = (uint32_t)value;
  return true;
}

/* Takes a number and " kB", behind blanks; the result is in bytes. False as
 * well where that does not fit. */
bool scan_kb(struct scan *s, uint64_t *ret_bytes);

/* Takes exactly this word. */
bool scan_word(struct scan *s, const char *word);

/*
 * Takes the rest of the line and the newline behind it, if there is one; the
 * span is without the newline. False at the end of the text.
 */
bool scan_line(struct scan *s, struct span *ret);

#endif
