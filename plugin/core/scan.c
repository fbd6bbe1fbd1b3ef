#include <smaps/scan.h>

#include <string.h>

void scan_skip_blanks(struct scan *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
    s->at++;
}

bool scan_char(struct scan *s, char c) {
  if (s->at == s->end || *s->at != c)
    return false;
  s->at++;
  return true;
}

bool scan_word(struct scan *s, const char *word) {
  size_t len = strlen(word);

  if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
    return false;
  s->at += len;
  return true;
}

bool scan_u64(struct scan *s, uint64_t *ret) {
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

bool scan_u32(struct scan *s, uint32_t *ret) {
  struct scan ahead = *s;
  uint64_t value;

  if (!scan_u64(&ahead, &value) || value > UINT32_MAX)
    return false;
  *s = ahead;
  *ret = (uint32_t)value;
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
