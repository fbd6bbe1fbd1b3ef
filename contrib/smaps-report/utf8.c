#include "utf8.h"

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

bool utf8_is_plain(uint32_t c) {
  static const struct {
    uint32_t first;
    uint32_t last;
  } hidden[] = {
      {0x80, 0x9f},                         /* C1 */
      {0xad, 0xad},                         /* soft hyphen */
      {0x61c, 0x61c},                       /* Arabic letter mark */
      {0x115f, 0x1160},   {0x17b4, 0x17b5}, /* fillers, inherent vowels */
      {0x180b, 0x180f},                     /* Mongolian selectors */
      {0x200b, 0x200f},   {0x2028, 0x202e}, /* zero width; bidi */
      {0x2060, 0x206f},                     /* isolates among them */
      {0x3164, 0x3164},   {0xfe00, 0xfe0f}, /* filler; selectors */
      {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, /* byte order mark; filler */
      {0xfff0, 0xfffb},                     /* annotations */
      {0x1d173, 0x1d17a},                   /* beams and slurs */
      {0xe0000, 0xe0fff},                   /* tags, selectors */
  };

  if (c < 0x80)
    return c >= 0x20 && c != 0x7f;
  for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
    if (c >= hidden[i].first && c <= hidden[i].last)
      return false;
  return true;
}
