/* SPDX-License-Identifier: MIT */
/* Sorted tables, as text or as JSON. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include "column.h"
#include "grid.h"
#include "json_lines.h"
#include "text.h"

#define TABLE_COLUMNS_MAX GRID_COLUMNS_MAX

struct table {
  struct document *const *documents;
  uint16_t document; /* of rows that are added */
  enum row_kind kind;
  unsigned columns[TABLE_COLUMNS_MAX + 3]; /* in JSON with all errors */
  size_t n_columns;
  struct row *rows;
  size_t n_rows;
  struct row total;
  bool has_total;
};

void table_done(struct table *t);

/* Adds a row of which the amounts and the member of its kind are set. */
void table_add(struct table *t, struct row row);

/* Sorts by a column, then by name or pid and by document; is_reversed reverses
 * the column. */
void table_sort(struct table *t, unsigned column, bool is_reversed);

/* Prints the titles, the rows and the total. */
void table_print(const struct table *t, const struct style *s);

/* Writes an object per row into an open array. */
void table_write_json(const struct table *t, struct json_lines *j);

#endif
