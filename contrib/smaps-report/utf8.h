/* Decodes UTF-8 (RFC 3629) and tells which characters are safe to show. */
#ifndef REPORT_UTF8_H
#define REPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the first character of text, which is not empty. Returns its length
 * in bytes, or 0 if it is invalid: a stray or missing byte, an overlong form, a
 * surrogate, beyond U+10FFFF.
 */
size_t utf8_decode(const char *text, size_t len, uint32_t *ret);

/*
 * True if a character shows as itself and has no other effect. False for C0,
 * DEL and C1, which control terminals, and for invisible characters that
 * reorder, join, break or hide text.
 */
bool utf8_is_plain(uint32_t c);

#endif
