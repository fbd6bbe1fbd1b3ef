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

static char *copy(const char *text) { return memory_check(strdup(text)); }

static void replace(char **place, const char *text) {
  char *old = *place;

  *place = text ? copy(text) : NULL;
  free(old);
}

void watch_init(struct watch *w) {
  *w = (struct watch){.sort = SORT_PSS, .pid = UNKNOWN};
}

static void drop_close_up(struct watch *w) {
  if (w->has_close_up)
    document_done(&w->close_up);
  w->has_close_up = false;
  replace(&w->trouble, NULL);
}

void watch_done(struct watch *w) {
  drop_close_up(w);
  if (w->has_document)
    document_done(&w->document);
  for (size_t i = 0; i < LEVELS; i++) {
    free(w->views[i].filter);
    free(w->views[i].selected);
    trend_done(&w->trends[i]);
  }
  free(w->group);
  free(w->process);
  free(w->process_name);
  free(w->rows);
}

/* ---- keys ---- */

static void process_key(const struct process *p, char *ret, size_t size) {
  snprintf(ret, size, "%" PRIu64 ":%" PRIu64, p->pid, p->starttime);
}

/* The key of a mapping: its permissions have no blank. */
static char *mapping_key(const struct mapping *m) {
  const char *permissions = m->permissions ? m->permissions : "";
  const char *name = m->name ? m->name : "";
  size_t size = strlen(permissions) + strlen(name) + 3;
  char *key = memory_array(NULL, size, 1);

  snprintf(key, size, "%s %c%s", permissions, m->name ? ' ' : '*', name);
  return key;
}

static void note_document(struct watch *w) {
  struct trend groups = {.marks = NULL}, processes = {.marks = NULL};
  const struct document *d = &w->document;
  char key[48];

  for (size_t i = 0; i < d->n_groups; i++)
    trend_add(&groups, d->groups[i].name,
              amounts_get(&d->groups[i].amounts, AMOUNT_PSS));
  for (size_t i = 0; i < d->n_processes; i++) {
    process_key(&d->processes[i], key, sizeof(key));
    trend_add(&processes, key,
              amounts_get(&d->processes[i].amounts, AMOUNT_PSS));
  }
  trend_update(&w->trends[LEVEL_GROUPS], &groups);
  trend_update(&w->trends[LEVEL_PROCESSES], &processes);
}

static void note_close_up(struct watch *w) {
  struct trend next = {.marks = NULL};

  for (size_t i = 0; i < w->close_up.n_processes; i++) {
    const struct process *p = &w->close_up.processes[i];

    for (size_t j = 0; j < p->n_mappings; j++) {
      char *key = mapping_key(&p->mappings[j]);

      trend_add(&next, key, amounts_get(&p->mappings[j].amounts, AMOUNT_PSS));
      free(key);
    }
  }
  trend_update(&w->trends[LEVEL_MAPPINGS], &next);
}

/* ---- rows ---- */

static bool contains(const char *text, const char *part) {
  return text && strcasestr(text, part);
}

/* A process is found by its number too. */
static bool passes(const struct watch *w, const struct watch_row *row) {
  const char *filter = watch_filter_of(w);
  char pid[24];

  snprintf(pid, sizeof(pid), "%" PRIu64, row->count);
  return !*filter || contains(row->name, filter) ||
         contains(row->comm, filter) || contains(row->user, filter) ||
         (w->level == LEVEL_PROCESSES && strcmp(pid, filter) == 0);
}

static void add_row(struct watch *w, struct watch_row row,
                    const struct amounts *amounts, const char *key) {
  const struct trend_mark *mark = trend_find(&w->trends[w->level], key);

  w->n_all++;
  if (!passes(w, &row))
    return;
  for (unsigned i = 0; i <= SORT_SWAP; i++)
    row.amounts[i] = amounts_get(amounts, amount_of[i]);
  /* Of a mapping it has no name of its own. */
  if (row.amounts[SORT_USS] == UNKNOWN)
    row.amounts[SORT_USS] =
        amount_add(amounts_get(amounts, AMOUNT_PRIVATE_CLEAN),
                   amounts_get(amounts, AMOUNT_PRIVATE_DIRTY));
  row.key = mark->key;
  row.start = change_between(mark->first, mark->now);
  row.last = change_between(mark->before, mark->now);
  w->rows = memory_room(w->rows, w->n, sizeof(*w->rows));
  w->rows[w->n++] = row;
}

static void add_groups(struct watch *w) {
  for (size_t i = 0; i < w->document.n_groups; i++) {
    const struct group *g = &w->document.groups[i];

    add_row(w,
            (struct watch_row){.name = g->name,
                               .count = g->processes,
                               .pss_error = g->pss_error},
            &g->amounts, g->name);
  }
}

/* A process that shares its parent's memory is counted there. */
static void add_processes(struct watch *w) {
  char key[48];

  for (size_t i = 0; i < w->document.n_processes; i++) {
    const struct process *p = &w->document.processes[i];
    const char *name = process_command(p);

    if (!process_is_in(p, w->group) || process_is_in_parent(p))
      continue;
    process_key(p, key, sizeof(key));
    add_row(w,
            (struct watch_row){.name = name ? name : "?",
                               .comm = p->comm,
                               .user = p->user,
                               .count = p->pid,
                               .pss_error = p->pss_error},
            &p->amounts, key);
  }
}

static void add_mappings(struct watch *w) {
  const struct process *p = &w->close_up.processes[0];

  if (!w->has_close_up || w->close_up.n_processes == 0)
    return;
  for (size_t i = 0; i < p->n_mappings; i++) {
    const struct mapping *m = &p->mappings[i];
    char *key = mapping_key(m);

    add_row(w,
            (struct watch_row){.name = m->name,
                               .permissions = mapping_rights(m),
                               .count = m->vmas,
                               .pss_error = m->pss_error},
            &m->amounts, key);
    free(key);
  }
}

/* ---- order ---- */

/* What a row is sorted by; NaN if that is unknown. */
static double number_of(const struct watch_row *row, enum watch_sort sort) {
  const struct change *c = sort == SORT_START ? &row->start : &row->last;
  uint64_t whole = sort <= SORT_SWAP ? row->amounts[sort] : row->count;

  if (sort == SORT_START || sort == SORT_LAST)
    return !c->is_known ? (double)NAN
           : c->is_less ? -(double)c->bytes
                        : (double)c->bytes;
  return whole == UNKNOWN ? (double)NAN : (double)whole;
}

/* What is unknown comes last, also in the other direction. */
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

/* The row with the selected key, wherever it is now, or, if it is gone, the one
 * that has come to its place. */
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

/* Rows point into the document and into the keys of the trend. */
static void make_rows(struct watch *w) {
  free(w->rows);
  w->rows = NULL;
  w->n = w->n_all = 0;
  if (w->has_document && w->level == LEVEL_GROUPS)
    add_groups(w);
  else if (w->has_document && w->level == LEVEL_PROCESSES)
    add_processes(w);
  else if (w->level == LEVEL_MAPPINGS)
    add_mappings(w);
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
  if (w->has_document)
    document_done(&w->document);
  w->document = *d;
  w->has_document = true;
  note_document(w);
  make_rows(w);
}

/* Its pid may have come to another. */
static bool is_of_process(const struct watch *w, const struct document *d) {
  char key[48];

  if (d->n_processes == 0)
    return false;
  process_key(&d->processes[0], key, sizeof(key));
  return strcmp(key, w->process) == 0;
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
    note_close_up(w);
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

static void enter_process(struct watch *w, const struct watch_row *row) {
  drop_close_up(w);
  trend_done(&w->trends[LEVEL_MAPPINGS]);
  w->pid = row->count;
  replace(&w->process, row->key);
  replace(&w->process_name, row->comm ? row->comm : row->name);
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
    enter_process(w, row);
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
  return w->level == LEVEL_MAPPINGS ? w->pid : UNKNOWN;
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
