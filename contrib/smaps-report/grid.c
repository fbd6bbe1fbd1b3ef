/* SPDX-License-Identifier: MIT */
#include "grid.h"

#include <assert.h>

#define GAP 2

/* Names do not become shorter than this. */
#define NAME_LEAST 8

static void measure_row(const struct grid *g, size_t row, const struct style *s,
                        size_t *widths) {
  struct text text = {0};

  for (size_t i = 0; i < g->n_columns; i++) {
    text_clear(&text);
    g->cell(g->context, row, i, s, &text);
    if (text.width > widths[i])
      widths[i] = text.width;
  }
  text_done(&text);
}

static void print_row(const struct grid *g, size_t row, const struct style *s,
                      const size_t *widths) {
  struct text line = {0}, cell = {0};

  for (size_t i = 0; i < g->n_columns; i++) {
    text_clear(&cell);
    g->cell(g->context, row, i, s, &cell);
    if (g->is_left[i])
      text_cut_middle(&cell, widths[i], s);
    if (i > 0)
      text_pad(&line, GAP);
    if (!g->is_left[i])
      text_pad(&line, widths[i] - cell.width);
    text_append(&line, &cell);
    if (g->is_left[i] && i + 1 < g->n_columns)
      text_pad(&line, widths[i] - cell.width);
  }
  text_trim(&line);
  text_print(&line, g->colour(g->context, row), s);
  text_done(&line);
  text_done(&cell);
}

static size_t total_width(const struct grid *g, const size_t *widths) {
  size_t width = 0;

  for (size_t i = 0; i < g->n_columns; i++)
    width += widths[i] + (i > 0 ? GAP : 0);
  return width;
}

static size_t widest_name(const struct grid *g, const size_t *widths) {
  size_t widest = g->n_columns;

  for (size_t i = 0; i < g->n_columns; i++)
    if (g->is_left[i] && widths[i] > NAME_LEAST &&
        (widest == g->n_columns || widths[i] >= widths[widest]))
      widest = i;
  return widest;
}

static void fit(const struct grid *g, size_t width, size_t *widths) {
  size_t widest;

  while (total_width(g, widths) > width &&
         (widest = widest_name(g, widths)) < g->n_columns)
    widths[widest]--;
}

void grid_print(const struct grid *g, const struct style *s) {
  size_t widths[GRID_COLUMNS_MAX] = {0};

  assert(g->n_columns <= GRID_COLUMNS_MAX);
  if (s->has_header)
    measure_row(g, GRID_TITLES, s, widths);
  for (size_t i = 0; i < g->n_rows; i++)
    measure_row(g, i, s, widths);
  if (s->width > 0)
    fit(g, s->width, widths);
  if (s->has_header)
    print_row(g, GRID_TITLES, s, widths);
  for (size_t i = 0; i < g->n_rows; i++)
    print_row(g, i, s, widths);
}
