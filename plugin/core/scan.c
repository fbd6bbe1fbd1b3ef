#include <smaps/scan.h>

#include <string.h>

bool scan_kb(struct scan *s, uint64_t *ret_bytes) {
  struct scan ahead = *s;
  uint64_t kb, bytes;

  scan_skip_blanks(&ahead);
  if (!scan_u64(&ahead, &kb) || !scan_word(&ahead, " kB") ||
      __builtin_mul_overflow(kb, 1024u, &bytes))
    return false;
  *s = ahead;
  *ret_bytes = bytes;
  return true;
}

bool scan_word(struct scan *s, const char *word) {
  size_t len = strlen(word);

  if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
    return false;
  s->at += len;
  return true;
}

bool scan_line(struct scan *s, struct span *ret) {
  const char *newline;

  if (scan_is_done(s))
    return false;
  newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
  ret->text = s->at;
  ret->len = (size_t)((newline ? newline : s->end) - s->at);
  s->at = newline ? newline + 1 : s->end;
  return true;
}
