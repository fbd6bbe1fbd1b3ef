/* SPDX-License-Identifier: MIT */
/*
 * Lines for a terminal: untrusted text made safe, amounts in the unit that the
 * user wants, and the width of the line.
 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <smaps/text.h>

#include <stdio.h>
#include <string.h>

/* The name of a stranger in a message, until the end of the block. */
#define QUOTED_SIZE 128
#define QUOTED(name)                                                           \
  escape_text((name), strlen(name), (char[QUOTED_SIZE]){0}, QUOTED_SIZE)

/*
 * True if a character shows as itself and has no other effect. False for C0,
 * DEL and C1, which control terminals, and for invisible characters that
 * reorder, join, break or hide text.
 */
bool text_is_plain(uint32_t c);

enum unit { UNIT_KIB, UNIT_HUMAN, UNIT_PERCENT };

struct style {
  FILE *out;
  size_t width; /* of lines; 0: nothing is cut */
  bool has_colour;
  bool is_utf8; /* the locale is UTF-8; if not, all but ASCII is escaped */
  bool has_header;
  enum unit unit;
  uint64_t mem_total; /* for UNIT_PERCENT; may be MISSING */
};

/* A line under construction. A zeroed text is empty. Exits if memory runs out.
 */
struct text {
  char *bytes; /* ends in NUL; NULL while nothing was added */
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
 * Adds untrusted text. The bytes of a character become \xNN if text_is_plain()
 * is false or if it has no width in this locale; so does invalid UTF-8.
 */
void text_add_name(struct text *t, const char *name, const struct style *s);

/* Adds an amount in the style's unit: 1234 (KiB), 1.23M or 3.45%; "-" for
 * MISSING. */
void text_add_bytes(struct text *t, uint64_t bytes, const struct style *s);
/* Adds " ± 0.5G"; nothing for 0. */
void text_add_error(struct text *t, uint64_t bytes, const struct style *s);

/* Adds an amount with a sign. */
void text_add_change(struct text *t, bool is_less, uint64_t bytes,
                     const struct style *s);

/* Adds a duration: 120us, 5.6s, 21m41s (format.h); "-" for NaN. */
void text_add_seconds(struct text *t, double seconds);

/* Adds a time since the Epoch: "2026-11-21 13:45:01 CET", in the local zone, or
 * "time unknown". */
void text_add_time(struct text *t, double seconds);

/* Adds a time beside another one, which has the day: "13:45" (format.h); "-"
 * for NaN. */
void text_add_clock(struct text *t, double seconds, double beside);

/* Removes blanks at the end. */
void text_trim(struct text *t);

/* Cuts the text to at most this width, between characters. */
void text_cut(struct text *t, size_t width);

/* Cuts so much out of the middle that the rest and a mark fit into the width.
 */
void text_cut_middle(struct text *t, size_t width, const struct style *s);

/* Adds n blanks. */
void text_pad(struct text *t, size_t n);

/* Adds another text. */
void text_append(struct text *t, const struct text *other);

/* Prints the line, in colour if the style has it, cut to the terminal. */
enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_RED, COLOUR_GREEN };
void text_print(struct text *t, enum colour colour, const struct style *s);

/*
 * Exits with status 2 if writing has failed; prints an error, except for a pipe
 * without a reader (EPIPE). Called after each line, while errno is still that
 * of the failure.
 */
void output_check(FILE *out);

/* Flushes the output at the end, and checks it in the same way. */
void output_finish(FILE *out);

#endif
