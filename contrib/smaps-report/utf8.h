/* Decides which characters are safe to show. */
#ifndef REPORT_UTF8_H
#define REPORT_UTF8_H

#include <smaps/text.h>

/*
 * True if a character shows as itself and has no other effect. False for C0,
 * DEL and C1, which control terminals, and for invisible characters that
 * reorder, join, break or hide text.
 */
bool utf8_is_plain(uint32_t c);

#endif
