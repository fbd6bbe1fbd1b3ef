/*
 * Lines for people: text of strangers made safe for any terminal, amounts in
 * the unit that was asked for, and how wide all that is.
 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum unit { UNIT_KIB, UNIT_HUMAN, UNIT_PERCENT };

/* How output is to look. */
struct style {
  FILE *out;
  size_t width; /* of the terminal; 0: there is none, nothing is cut */
  bool has_colour;
  bool is_utf8; /* the locale's; otherwise all but ASCII is escaped */
  bool has_header;
  enum unit unit;
  uint64_t mem_total; /* for UNIT_PERCENT; may be UNKNOWN */
};

/* A line in the making. A text of zeros is empty; memory_check()ed. */
struct text {
  char *bytes; /* NUL behind them; NULL while nothing was added */
  size_t len;
  size_t size;
  size_t width; /* in columns */
};

void text_done(struct text *t);
void text_clear(struct text *t);

/* Adds printable ASCII of our own. */
void text_add(struct text *t, const char *words);
void text_addf(struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Adds text of strangers. Every byte of what utf8_is_plain() is not, of what
 * has no width of its own in this locale, and of what is no UTF-8 becomes \xNN.
 */
void text_add_name(struct text *t, const char *name, const struct style *s);

/* Adds bytes in the style's unit: 1234 (KiB), 1.2M or 3.45%; "-" for
 * UNKNOWN. */
void text_add_bytes(struct text *t, uint64_t bytes, const struct style *s);

/* The same with a sign, for bytes that were added or taken away. */
void text_add_change(struct text *t, bool is_less, uint64_t bytes,
                     const struct style *s);

/* Adds a time: 120us, 3.4ms, 5.6s; "-" for NaN. */
void text_add_seconds(struct text *t, double seconds);

/* Takes the blanks at its end away. */
void text_trim(struct text *t);

/* Cuts it between characters, to this width at most. */
void text_cut(struct text *t, size_t width);

/* Adds n blanks. */
void text_pad(struct text *t, size_t n);

/* Adds what another text has. */
void text_append(struct text *t, const struct text *other);

/* The line of text, in colour if the style has that; cut to the terminal. */
enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_RED, COLOUR_GREEN };
void text_print(struct text *t, enum colour colour, const struct style *s);

#endif
