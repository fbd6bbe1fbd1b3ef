/* Why a piece of configuration is refused: the words for the one error line. */
#ifndef SMAPS_REASON_H
#define SMAPS_REASON_H

#include <errno.h>
#include <stddef.h>

struct reason {
  char text[320];
};

/* Formats the reason, cutting what does not fit. The value is -EINVAL, so that
 * it can be returned at once. */
#define reason_set(r, ...) (reason_format((r), __VA_ARGS__), -EINVAL)
void reason_format(struct reason *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The word of known[0 … n-1] that is nearest to `word` in edits, case apart, or
 * NULL where none is near enough to be what was meant.
 */
const char *reason_nearest(const char *word, const char *const *known,
                           size_t n);

#endif
