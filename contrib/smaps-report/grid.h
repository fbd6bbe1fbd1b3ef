/* SPDX-License-Identifier: MIT */
/*
 * Prints aligned columns. libsmartcols keeps each cell: 720 bytes a row, which
 * are 720 MB where a document has a million processes. It also cuts names at
 * their end, where those of units and pools differ.
 */
#ifndef REPORT_GRID_H
#define REPORT_GRID_H

#include "text.h"

#define GRID_COLUMNS_MAX 64
#define GRID_TITLES SIZE_MAX /* the row of titles */

struct grid {
  size_t n_columns;
  size_t n_rows;
  bool is_left[GRID_COLUMNS_MAX];
  /* Adds the text of a cell to an empty *ret. Called twice per cell instead of
   * storing the texts, because a document may have a million rows. */
  void (*cell)(const void *context, size_t row, size_t column,
               const struct style *s, struct text *ret);
  enum colour (*colour)(const void *context, size_t row);
  const void *context;
};

/*
 * Prints the titles, if the style has them, and the rows. Where they are wider
 * than the style allows, the columns that are aligned left become narrower, the
 * widest first, and their texts are cut in the middle; if that does not do,
 * lines are cut at the edge. The last column is not padded.
 */
void grid_print(const struct grid *g, const struct style *s);

#endif
