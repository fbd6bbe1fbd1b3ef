/* Rows and columns, sorted, as text or as JSON. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include "column.h"
#include "grid.h"
#include "json_lines.h"
#include "text.h"

#define TABLE_COLUMNS_MAX GRID_COLUMNS_MAX

struct table {
  const struct document *document;
  enum row_kind kind;
  unsigned columns[TABLE_COLUMNS_MAX];
  size_t n_columns;
  struct row *rows;
  size_t n_rows;
  struct row total;
  bool has_total;
};

void table_done(struct table *t);

/* The fields of the row are set but for its kind and key. */
void table_add(struct table *t, struct row row);

/* By a column, the other way round if asked for; rows that are equal in it by
 * name or pid. */
void table_sort(struct table *t, unsigned column, bool is_reversed);

/* Titles above, the total below. */
void table_print(const struct table *t, const struct style *s);

/* An object for each row, in an array that is open. */
void table_write_json(const struct table *t, struct json_lines *j);

#endif
