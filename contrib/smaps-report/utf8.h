/* UTF-8 (RFC 3629), and which of its characters are safe to show. */
#ifndef REPORT_UTF8_H
#define REPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Takes the first character of text, which is not empty. Returns its bytes, or
 * 0 where it is none: a stray or missing byte, a longer form than needed, a
 * surrogate, beyond U+10FFFF.
 */
size_t utf8_decode(const char *text, size_t len, uint32_t *ret);

/*
 * Whether a character shows as itself and nothing else. Not so C0, DEL and C1,
 * which command terminals, and the invisible ones that reorder, join or break
 * what is around them, or that hide text.
 */
bool utf8_is_plain(uint32_t c);

#endif
