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

/* Skips blanks and tabs, not newlines. */
void scan_skip_blanks(struct scan *s);

/* Takes exactly this byte. */
bool scan_char(struct scan *s, char c);

/* Takes exactly this word. */
bool scan_word(struct scan *s, const char *word);

/*
 * Takes a decimal number: one digit or more, no sign, no blank before it.
 * False where there is no digit or the value does not fit in 64 bits.
 */
bool scan_u64(struct scan *s, uint64_t *ret);

/* The same, refusing what does not fit in 32 bits. */
bool scan_u32(struct scan *s, uint32_t *ret);

/*
 * Takes the rest of the line and the newline behind it, if there is one; the
 * span is without the newline. False at the end of the text.
 */
bool scan_line(struct scan *s, struct span *ret);

#endif
