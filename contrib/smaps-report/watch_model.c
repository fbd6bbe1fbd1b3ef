/* SPDX-License-Identifier: MIT */
#include "watch_model.h"

#include "memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum amount amount_of[] = {[SORT_PSS] = AMOUNT_PSS,
                                        [SORT_USS] = AMOUNT_USS,
                                        [SORT_RSS] = AMOUNT_RSS,
                                        [SORT_SWAP] = AMOUNT_SWAP};

static void replace(char **place, const char *text) {
  char *old = *place;

  *place = text ? memory_format("%s", text) : NULL;
  free(old);
}

void watch_init(struct watch *w) {
  *w = (struct watch){.sort = SORT_PSS, .pid = MISSING};
}

static void forget_rows(struct watch_rows *rows) {
  for (size_t i = 0; i < rows->n; i++)
    free(rows->all[i].key);
  free(rows->all);
  *rows = (struct watch_rows){.all = NULL};
}

static void drop_close_up(struct watch *w) {
  document_done(&w->close_up);
  w->has_close_up = false;
  replace(&w->trouble, NULL);
}

void watch_done(struct watch *w) {
  drop_close_up(w);
  document_done(&w->document);
  for (size_t i = 0; i < LEVELS; i++) {
    free(w->views[i].filter);
    free(w->views[i].selected);
    forget_rows(&w->levels[i]);
  }
  free(w->group);
  free(w->process_name);
  free(w->rows);
}

/* ---- all rows ---- */

static void add_row(struct watch_rows *rows, struct watch_row row,
                    const struct amounts *amounts) {
  for (unsigned i = 0; i <= SORT_SWAP; i++)
    row.amounts[i] = amounts_get(amounts, amount_of[i]);
  if (row.mapping)
    row.amounts[SORT_USS] = mapping_uss(row.mapping);
  rows->all = memory_room(rows->all, rows->n, sizeof(row));
  rows->all[rows->n++] = row;
}

static struct watch_rows list_groups(const struct document *d) {
  struct watch_rows rows = {.all = NULL};

  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    add_row(&rows,
            (struct watch_row){.name = g->name,
                               .key = memory_format("%s", g->name),
                               .group = g,
                               .count = g->processes,
                               .pss_error = g->pss_error},
            &g->amounts);
  }
  return rows;
}

/* A process that shares its parent's memory is counted there. */
static struct watch_rows list_processes(const struct document *d) {
  struct watch_rows rows = {.all = NULL};

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];
    const char *name = process_command(p);

    if (process_is_in_parent(p))
      continue;
    add_row(&rows,
            (struct watch_row){.name = name ? name : "?",
                               .key = memory_format("%" PRIu64 ":%" PRIu64,
                                                    p->pid, p->starttime),
                               .process = p,
                               .count = p->pid,
                               .pss_error = p->pss_error},
            &p->amounts);
  }
  return rows;
}

/* The permissions in a key have no blank. */
static struct watch_rows list_mappings(const struct process *p) {
  struct watch_rows rows = {.all = NULL};

  for (size_t i = 0; i < p->n_mappings; i++) {
    const struct mapping *m = &p->mappings[i];

    add_row(
        &rows,
        (struct watch_row){.name = m->name,
                           .key = memory_format(
                               "%s %c%s", m->permissions ? m->permissions : "",
                               m->name ? ' ' : '*', m->name ? m->name : ""),
                           .mapping = m,
                           .count = m->vmas,
                           .pss_error = m->pss_error},
        &m->amounts);
  }
  return rows;
}

/* ---- growth ---- */

static double change_between(uint64_t old, uint64_t new) {
  bool is_known = old != MISSING && new != MISSING;

  return is_known ? (double)new - (double)old : (double)NAN;
}

static int compare_keys(const void *a, const void *b) {
  return strcmp(((const struct watch_row *)a)->key,
                ((const struct watch_row *)b)->key);
}

/* Replaces the rows by the rows of the next refresh. */
static void update(struct watch_rows *rows, struct watch_rows new) {
  if (new.n > 0)
    qsort(new.all, new.n, sizeof(*new.all), compare_keys);
  for (size_t i = 0; i < new.n; i++) {
    struct watch_row *row = &new.all[i];
    const struct watch_row *old =
        rows->n > 0
            ? bsearch(row, rows->all, rows->n, sizeof(*row), compare_keys)
            : NULL;
    uint64_t pss = row->amounts[SORT_PSS];

    row->first = old && old->first != MISSING ? old->first : pss;
    row->start = change_between(row->first, pss);
    row->last = change_between(old ? old->amounts[SORT_PSS] : MISSING, pss);
  }
  forget_rows(rows);
  *rows = new;
}

/* ---- the rows that are shown ---- */

static bool contains(const char *text, const char *part) {
  return text && strcasestr(text, part);
}

/* A process is found by its number too. */
static bool passes(const struct watch *w, const struct watch_row *row) {
  const char *filter = watch_filter_of(w);
  char pid[24];

  if (!*filter || contains(row->name, filter))
    return true;
  if (!row->process)
    return false;
  snprintf(pid, sizeof(pid), "%" PRIu64, row->process->pid);
  return contains(row->process->comm, filter) ||
         contains(row->process->user, filter) || strcmp(pid, filter) == 0;
}

/* ---- order ---- */

/* Rows are sorted by this number; NaN if it is unknown. */
static double number_of(const struct watch_row *row, enum watch_sort sort) {
  uint64_t whole = sort <= SORT_SWAP ? row->amounts[sort] : row->count;

  if (sort == SORT_START || sort == SORT_LAST)
    return sort == SORT_START ? row->start : row->last;
  return whole == MISSING ? (double)NAN : (double)whole;
}

/* Unknown numbers come last, also in the other direction. */
static int compare_by(const struct watch *w, const struct watch_row *a,
                      const struct watch_row *b) {
  double x = number_of(a, w->sort), y = number_of(b, w->sort);

  if (w->sort == SORT_NAME)
    return w->is_reversed ? name_compare(b->name, a->name)
                          : name_compare(a->name, b->name);
  if (isnan(x) || isnan(y))
    return (isnan(x) != 0) - (isnan(y) != 0);
  return w->is_reversed ? (x > y) - (x < y) : (x < y) - (x > y);
}

static int compare_rows(const void *a, const void *b, void *context) {
  const struct watch_row *x = a, *y = b;
  int order = compare_by(context, x, y);

  if (order == 0)
    order = name_compare(x->name, y->name);
  return order ? order : strcmp(x->key, y->key);
}

/* ---- the selection ---- */

static struct watch_view *view_of(struct watch *w) {
  return &w->views[w->level];
}

/* The row with the selected key, wherever it is now; or, if it is gone, the row
 * that is now in its place. */
static void find_selected(struct watch *w) {
  struct watch_view *v = view_of(w);

  for (size_t i = 0; v->selected && i < w->n; i++)
    if (strcmp(w->rows[i].key, v->selected) == 0) {
      v->at = i;
      return;
    }
  if (v->at >= w->n)
    v->at = w->n > 0 ? w->n - 1 : 0;
}

static void make_rows(struct watch *w) {
  const struct watch_rows *rows = &w->levels[w->level];
  bool has_rows = w->level != LEVEL_MAPPINGS || w->has_close_up;

  free(w->rows);
  w->rows = NULL;
  w->n = w->n_all = 0;
  for (size_t i = 0; has_rows && i < rows->n; i++) {
    if (w->level == LEVEL_PROCESSES &&
        !process_is_in(rows->all[i].process, w->group))
      continue;
    w->n_all++;
    if (!passes(w, &rows->all[i]))
      continue;
    w->rows = memory_room(w->rows, w->n, sizeof(*w->rows));
    w->rows[w->n++] = rows->all[i];
  }
  if (w->n > 0)
    qsort_r(w->rows, w->n, sizeof(*w->rows), compare_rows, w);
  find_selected(w);
}

void watch_move(struct watch *w, long rows) {
  struct watch_view *v = view_of(w);
  size_t by = rows < 0 ? -(size_t)rows : (size_t)rows;

  if (w->n == 0)
    return;
  if (rows < 0)
    v->at -= by < v->at ? by : v->at;
  else
    v->at += by < w->n - 1 - v->at ? by : w->n - 1 - v->at;
  replace(&v->selected, w->rows[v->at].key);
}

void watch_scroll(struct watch *w, size_t shown) {
  struct watch_view *v = view_of(w);

  if (v->top > v->at)
    v->top = v->at;
  if (shown > 0 && v->at - v->top >= shown)
    v->top = v->at - shown + 1;
  /* No empty lines below the last row while there are rows above. */
  if (v->top + shown > w->n)
    v->top = w->n > shown ? w->n - shown : 0;
}

/* ---- what comes in ---- */

void watch_take(struct watch *w, struct document *d) {
  if (w->is_frozen) {
    document_done(d);
    return;
  }
  document_done(&w->document);
  w->document = *d;
  w->has_document = true;
  update(&w->levels[LEVEL_GROUPS], list_groups(&w->document));
  update(&w->levels[LEVEL_PROCESSES], list_processes(&w->document));
  make_rows(w);
}

/* The pid may belong to another process by now. */
static bool is_of_process(const struct watch *w, const struct document *d) {
  return d->n_processes > 0 && d->processes[0].pid == w->pid &&
         d->processes[0].starttime == w->starttime;
}

void watch_take_close_up(struct watch *w, uint64_t pid, struct document *d,
                         const char *trouble) {
  bool is_wanted = watch_pid(w) == pid && !(w->is_frozen && w->has_close_up);
  bool is_same = is_wanted && d && is_of_process(w, d);

  if (is_wanted) {
    drop_close_up(w);
    replace(&w->trouble, d && !is_same ? "the process has ended" : trouble);
  }
  if (is_same) {
    w->close_up = *d;
    w->has_close_up = true;
    update(&w->levels[LEVEL_MAPPINGS], list_mappings(d->processes));
  } else if (d) {
    document_done(d);
  }
  if (is_wanted)
    make_rows(w);
}

/* ---- levels ---- */

static void forget_view(struct watch_view *v) {
  free(v->filter);
  free(v->selected);
  *v = (struct watch_view){.filter = NULL};
}

static void enter_process(struct watch *w, const struct process *p,
                          const char *name) {
  drop_close_up(w);
  forget_rows(&w->levels[LEVEL_MAPPINGS]);
  w->pid = p->pid;
  w->starttime = p->starttime;
  replace(&w->process_name, p->comm ? p->comm : name);
}

bool watch_enter(struct watch *w) {
  const struct watch_row *row;

  if (w->n == 0 || w->level == LEVEL_MAPPINGS)
    return false;
  watch_move(w, 0);
  row = &w->rows[view_of(w)->at];
  if (w->level == LEVEL_GROUPS)
    replace(&w->group, row->name);
  else
    enter_process(w, row->process, row->name);
  w->level++;
  forget_view(view_of(w));
  make_rows(w);
  return true;
}

bool watch_leave(struct watch *w) {
  if (w->level == LEVEL_GROUPS)
    return false;
  w->level--;
  make_rows(w);
  return true;
}

uint64_t watch_pid(const struct watch *w) {
  return w->level == LEVEL_MAPPINGS ? w->pid : MISSING;
}

/* ---- settings ---- */

void watch_sort_by(struct watch *w, enum watch_sort sort) {
  w->sort = sort;
  make_rows(w);
}

void watch_reverse(struct watch *w) {
  w->is_reversed = !w->is_reversed;
  make_rows(w);
}

void watch_filter(struct watch *w, const char *text) {
  replace(&view_of(w)->filter, text && *text ? text : NULL);
  make_rows(w);
}

const char *watch_filter_of(const struct watch *w) {
  const char *filter = w->views[w->level].filter;

  return filter ? filter : "";
}
