/* SPDX-License-Identifier: MIT */
#include "table.h"
#include "grid.h"
#include "memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[ROW_KINDS] = {
    [ROW_GROUP] = "group",     [ROW_PROCESS] = "process", [ROW_USER] = "user",
    [ROW_MAPPING] = "mapping", [ROW_AREA] = "area",
};

void table_done(struct table *t) {
  free(t->rows);
  t->rows = NULL;
  t->n_rows = 0;
}

void table_add(struct table *t, struct row row) {
  t->rows = memory_room(t->rows, t->n_rows, sizeof(*t->rows));
  row.kind = (uint8_t)t->kind;
  row.document = t->document;
  t->rows[t->n_rows++] = row;
}

static const struct document *document_of(const struct table *t,
                                          const struct row *row) {
  return t->documents[row->document];
}

/* ---- order ---- */

static int compare_names(const struct row *a, const struct row *b) {
  int order = 0;

  if (a->kind == ROW_GROUP || a->kind == ROW_USER)
    order = strcmp(a->group->name, b->group->name);
  else if (a->kind == ROW_PROCESS)
    order = (a->process->pid > b->process->pid) -
            (a->process->pid < b->process->pid);
  else if (a->kind == ROW_AREA)
    order = strcmp(a->area->name, b->area->name);
  else
    order = name_compare(a->mapping->name, b->mapping->name);
  return order ? order : a->document - b->document;
}

struct order {
  const struct table *table;
  unsigned column;
  bool is_upwards;
};

static int compare_rows(const void *a, const void *b, void *context) {
  const struct row *x = a, *y = b;
  const struct order *by = context;
  struct cell c = column_get(document_of(by->table, x), by->column, x);
  struct cell d = column_get(document_of(by->table, y), by->column, y);
  int order = column_compare(&c, &d, by->is_upwards);

  return order ? order : compare_names(x, y);
}

void table_sort(struct table *t, unsigned column, bool is_reversed) {
  struct order by = {.table = t,
                     .column = column,
                     .is_upwards = column_sorts_upwards(column) != is_reversed};

  if (t->n_rows > 0)
    qsort_r(t->rows, t->n_rows, sizeof(*t->rows), compare_rows, &by);
}

/* ---- text ---- */

static void add_names(struct text *t, const struct cell *c,
                      const struct style *s) {
  for (size_t i = 0; i < c->n_names; i++) {
    if (i > 0)
      text_add(t, ",");
    text_add_name(t, c->names[i], s);
  }
}

/* "≥ 9.8G", and "9.8G ± 0.5G". */
static void add_amount(struct text *t, const struct cell *c,
                       const struct style *s) {
  if (c->is_least)
    text_add_name(t, s->is_utf8 ? "≥ " : ">= ", s);
  text_add_bytes(t, c->whole, s);
  text_add_error(t, c->error, s);
}

static void add_cell(struct text *t, const struct cell *c,
                     const struct style *s) {
  switch ((int)c->type) {
  case CELL_BLANK:
    break;
  case CELL_UNKNOWN:
    text_add(t, "-");
    break;
  case CELL_TEXT:
    text_add_name(t, c->text, s);
    break;
  case CELL_NAMES:
    add_names(t, c, s);
    break;
  case CELL_BYTES:
    add_amount(t, c, s);
    break;
  case CELL_COUNT:
    text_addf(t, "%ju", (uintmax_t)c->whole);
    break;
  case CELL_SECONDS:
    text_add_seconds(t, c->real);
    break;
  case CELL_PERCENT:
    text_addf(t, "%.1f%%", c->real);
    break;
  case CELL_TIME:
    text_add_clock(t, c->real, c->beside);
    break;
  }
}

static void add_title(struct text *t, unsigned column) {
  for (const char *c = column_name(column); *c; c++)
    text_addf(t, "%c", toupper((unsigned char)*c));
}

/* "total" stands in the first column that is aligned left. */
static size_t total_column(const struct table *t) {
  for (size_t i = 0; i < t->n_columns; i++)
    if (column_is_left(t->columns[i]))
      return i;
  return t->n_columns;
}

/* The group of the alarm that a capture was made for. */
static bool is_scope(const struct table *t, const struct row *r) {
  const char *scope = r->is_total ? NULL : document_scope(document_of(t, r));

  return scope && r->kind == ROW_GROUP && strcmp(scope, r->group->name) == 0;
}

static void make_cell(const void *context, size_t row, size_t column,
                      const struct style *s, struct text *ret) {
  const struct table *t = context;
  const struct row *r = row < t->n_rows ? &t->rows[row] : &t->total;
  struct style own = *s;
  struct cell cell;

  if (row == GRID_TITLES) {
    add_title(ret, t->columns[column]);
    return;
  }
  if (r->is_total && column == total_column(t)) {
    text_add(ret, "total");
    return;
  }
  cell = column_get(document_of(t, r), t->columns[column], r);
  /* Percent of the memory of its own host; in a total, of all hosts. */
  if (!r->is_total)
    own.mem_total = document_of(t, r)->mem_total;
  add_cell(ret, &cell, &own);
  if (t->columns[column] == column_find("group", 5) && is_scope(t, r))
    text_add(ret, " *");
}

static enum colour row_colour(const void *context, size_t row) {
  const struct table *t = context;

  return row < t->n_rows && !is_scope(t, &t->rows[row]) ? COLOUR_NONE
                                                        : COLOUR_BOLD;
}

void table_print(const struct table *t, const struct style *s) {
  struct grid g = {.n_columns = t->n_columns,
                   .n_rows = t->n_rows + t->has_total,
                   .cell = make_cell,
                   .colour = row_colour,
                   .context = t};

  for (size_t i = 0; i < t->n_columns; i++)
    g.is_left[i] = column_is_left(t->columns[i]);
  grid_print(&g, s);
}

/* ---- JSON ---- */

static void write_cell(struct json_lines *j, const char *name,
                       const struct cell *c) {
  switch ((int)c->type) {
  case CELL_BLANK:
  case CELL_UNKNOWN:
    break;
  case CELL_TEXT:
    json_lines_text(j, name, c->text);
    break;
  case CELL_NAMES:
    json_lines_names(j, "groups", c->names, c->n_names);
    break;
  case CELL_BYTES:
  case CELL_COUNT:
    json_lines_whole(j, name, c->whole);
    break;
  case CELL_SECONDS:
  case CELL_PERCENT:
  case CELL_TIME:
    json_lines_real(j, name, c->real);
    break;
  }
}

static void write_row(const struct table *t, const struct row *row,
                      struct json_lines *j) {
  /* The names of amounts that some parts lack. */
  const char *least[TABLE_COLUMNS_MAX + 2];
  size_t n_least = 0;

  json_lines_begin(j, NULL, '{');
  json_lines_text(j, "row", row->is_total ? "total" : kind_names[t->kind]);
  for (size_t i = 0; i < t->n_columns; i++) {
    struct cell cell = column_get(document_of(t, row), t->columns[i], row);

    write_cell(j, column_name(t->columns[i]), &cell);
    if (cell.is_least)
      least[n_least++] = column_name(t->columns[i]);
  }
  if (n_least > 0)
    json_lines_names(j, "at_least", least, n_least);
  json_lines_end(j, '}');
}

void table_write_json(const struct table *t, struct json_lines *j) {
  for (size_t i = 0; i < t->n_rows; i++)
    write_row(t, &t->rows[i], j);
  if (t->has_total)
    write_row(t, &t->total, j);
}
