/* The reason why an option is refused: the text of one error line. */
#ifndef SMAPS_CONFIG_ERROR_H
#define SMAPS_CONFIG_ERROR_H

#include <errno.h>
#include <stddef.h>

struct config_error {
  char text[320];
};

/* Formats the reason and cuts it to its size. The value is -EINVAL, for a
 * return statement. */
#define config_error_set(r, ...)                                               \
  (config_error_format((r), __VA_ARGS__), -EINVAL)
void config_error_format(struct config_error *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Finds the word of known[0 … n-1] with the least edit distance to `word`; the
 * case is ignored. NULL if none is near enough for a suggestion.
 */
const char *config_error_nearest(const char *word, const char *const *known,
                                 size_t n);

#endif
