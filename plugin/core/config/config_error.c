#include <smaps/config_error.h>

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Longer words are not compared. Every option's name is much shorter. */
#define WORD_MAX 32

void config_error_format(struct config_error *r, const char *format, ...) {
  va_list args;

  va_start(args, format);
  vsnprintf(r->text, sizeof(r->text), format, args);
  va_end(args);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static bool is_same_letter(char a, char b) {
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The Levenshtein distance, computed one row of the table at a time. */
static size_t distance(const char *a, const char *b) {
  size_t row[WORD_MAX + 1];
  size_t len = strlen(b);

  for (size_t j = 0; j <= len; j++)
    row[j] = j;
  for (size_t i = 1; a[i - 1]; i++) {
    size_t diagonal = row[0];

    row[0] = i;
    for (size_t j = 1; j <= len; j++) {
      size_t above = row[j];
      size_t swap = diagonal + !is_same_letter(a[i - 1], b[j - 1]);

      row[j] = least(swap, least(above, row[j - 1]) + 1);
      diagonal = above;
    }
  }
  return row[len];
}

const char *config_error_nearest(const char *word, const char *const *known,
                                 size_t n) {
  size_t best = strlen(word) / 3 + 2;
  const char *nearest = NULL;

  if (strlen(word) > WORD_MAX)
    return NULL;
  for (size_t i = 0; i < n; i++) {
    size_t d;

    if (strlen(known[i]) > WORD_MAX)
      continue;
    d = distance(word, known[i]);
    if (d < best) {
      best = d;
      nearest = known[i];
    }
  }
  return nearest;
}
