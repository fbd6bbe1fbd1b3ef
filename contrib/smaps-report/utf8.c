#include "utf8.h"

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
