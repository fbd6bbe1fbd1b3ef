/* SPDX-License-Identifier: MIT */
/* The rows of a table and their columns. */
#ifndef REPORT_COLUMN_H
#define REPORT_COLUMN_H

#include "document.h"

enum row_kind {
  ROW_GROUP,
  ROW_PROCESS,
  ROW_USER,
  ROW_MAPPING,
  ROW_AREA,
  ROW_KINDS
};

enum cell_type {
  CELL_UNKNOWN,
  CELL_BLANK, /* without a meaning, such as the pid of a total */
  CELL_TEXT,
  CELL_RULE, /* of a column; its cells are CELL_TEXT */
  CELL_NAMES,
  CELL_BYTES,
  CELL_COUNT,
  CELL_SECONDS,
  CELL_PERCENT,
  CELL_TIME, /* since the Epoch; text has it in short, beside that of the
                document */
};

struct cell {
  enum cell_type type;
  const char *text; /* of CELL_NAMES the first */
  const char *const *names;
  size_t n_names;
  uint64_t whole; /* of CELL_BYTES, CELL_COUNT */
  /* For CELL_BYTES: the sum is a lower bound, because parts of it are unknown;
   * and its error (0 if it is small). */
  bool is_least;
  uint64_t error;
  double real;   /* of CELL_SECONDS, CELL_PERCENT, CELL_TIME */
  double beside; /* of CELL_TIME: the time of the document */
};

struct row {
  const struct amounts *amounts;
  union { /* by kind; a total has a user, or an area */
    const void *of;
    const struct group *group; /* of groups and users */
    const struct process *process;
    const struct mapping *mapping;
    const struct area *area;
  };
  uint16_t document; /* its number in the table */
  uint8_t kind;      /* enum row_kind */
  bool is_total;
};

/* Columns are numbers: first the amounts (enum amount), then all others. */
unsigned column_count(void);
const char *column_name(unsigned column);
bool column_is_of(unsigned column, enum row_kind kind);

/* Names are aligned left and sorted upwards, amounts right and downwards. */
bool column_is_left(unsigned column);
bool column_sorts_upwards(unsigned column);

/* column_count() if no column has this name. */
unsigned column_find(const char *name, size_t len);

/* True for the columns that diff compares: the amounts, and epss. */
bool column_is_amount(unsigned column);

/* Such an amount, or MISSING. */
uint64_t column_amount(const struct amounts *a, unsigned column);

/* The error, if it is shown beside that amount: more than a twentieth of it.
 * Else 0. */
uint64_t column_shown_error(uint64_t error, uint64_t bytes);

struct cell column_get(const struct document *d, unsigned column,
                       const struct row *row);

/* Compares cells of one column. Unknown ones come last. */
int column_compare(const struct cell *a, const struct cell *b, bool is_upwards);

#endif
