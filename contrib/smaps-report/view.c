#include "view.h"
#include "area.h"
#include "filter.h"
#include "heading.h"
#include "mapping.h"
#include "memory.h"
#include "sum.h"

#include <smaps/group_name.h>

#include <stdlib.h>
#include <string.h>

struct view {
  struct document *document;
  const struct options *options;
  struct filters filters;
  struct group total; /* the row of the total points to it */
  struct areas areas;
};

/* ---- rows ---- */

static void set_total(struct view *v, struct table *t, const struct sum *sum) {
  sum_finish(sum, "total", &v->document->pool, &v->total);
  t->total = (struct row){.kind = t->kind,
                          .is_total = true,
                          .amounts = &v->total.amounts,
                          .group = &v->total};
  t->has_total = v->options->has_total;
}

static void add_processes(struct view *v, struct table *t) {
  const struct document *d = v->document;
  struct sum sum;

  sum_begin(&sum);
  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    if (!filters_take_process(&v->filters, p))
      continue;
    table_add(t, (struct row){.amounts = &p->amounts, .process = p});
    sum_add_process(&sum, p);
  }
  set_total(v, t, &sum);
}

/* ---- groups ---- */

/*
 * A process may be in several groups, so the total adds up the processes and
 * not the groups. A capture does not have all processes: its total is unknown.
 */
static void sum_members(const struct document *d, struct sum *sum) {
  sum_begin(sum);
  for (size_t i = 0; i < d->n_processes; i++)
    if (d->processes[i].n_groups > 0)
      sum_add_process(sum, &d->processes[i]);
  if (!document_scope(d) && d->left_out == UNKNOWN)
    return;
  sum_forget(sum);
}

/* Of those that are in a group, and that the filters take. */
static void sum_wanted(const struct view *v, struct sum *sum) {
  const struct document *d = v->document;

  sum_begin(sum);
  for (size_t i = 0; i < d->n_processes; i++)
    if (d->processes[i].n_groups > 0 &&
        filters_take_process(&v->filters, &d->processes[i]))
      sum_add_process(sum, &d->processes[i]);
}

static void sum_group(const struct group *g, struct sum *sum) {
  sum_begin(sum);
  sum_add_amounts(sum, &g->amounts);
  sum->processes = g->processes;
  sum->threads = g->threads;
  sum->unreadable = g->unreadable;
  sum->pss_error = g->pss_error;
  sum->uss_error = g->uss_error;
}

static void add_whole_groups(struct view *v, struct table *t) {
  const struct document *d = v->document;
  size_t n = 0;
  struct sum sum;

  sum_members(d, &sum);
  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    if (!filter_takes(&v->filters.group, g->name))
      continue;
    table_add(t, (struct row){.amounts = &g->amounts, .group = g});
    n++;
  }
  if (n == 1)
    sum_group(t->rows[t->n_rows - 1].group, &sum);
  else if (filter_is_set(&v->filters.group))
    sum_wanted(v, &sum);
  set_total(v, t, &sum);
}

static void add_members(const struct view *v, const struct process *p,
                        struct sum *sums) {
  for (size_t i = 0; i < p->n_groups; i++) {
    const struct group *g = document_group(v->document, p->groups[i]);

    if (g)
      sum_add_process(&sums[g - v->document->groups], p);
  }
}

/* Groups are sums of their members that the filters take. */
static void add_parts_of_groups(struct view *v, struct table *t) {
  struct document *d = v->document;
  struct sum *sums = memory_array(NULL, d->n_groups, sizeof(*sums)), sum;

  for (size_t i = 0; i < d->n_groups; i++)
    sum_begin(&sums[i]);
  for (size_t i = 0; i < d->n_processes; i++)
    if (filters_take_process(&v->filters, &d->processes[i]))
      add_members(v, &d->processes[i], sums);
  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];
    struct group *part;

    if (sums[i].processes == 0 || !filter_takes(&v->filters.group, g->name))
      continue;
    part = memory_check(pool_alloc(&d->pool, sizeof(*part)));
    sum_finish(&sums[i], g->name, &d->pool, part);
    part->rule = g->rule;
    table_add(t, (struct row){.amounts = &part->amounts, .group = part});
  }
  free(sums);
  sum_wanted(v, &sum);
  set_total(v, t, &sum);
}

static void add_groups(struct view *v, struct table *t) {
  if (filters_part_groups(&v->filters))
    add_parts_of_groups(v, t);
  else
    add_whole_groups(v, t);
}

/* ---- users ---- */

struct owned {
  const char *user;
  const struct process *process;
};

/* The user's name, or the uid if the name is unknown. */
static const char *user_of(struct document *d, const struct process *p) {
  const char *name;
  char number[32];

  if (p->user)
    return p->user;
  if (p->uid == UNKNOWN)
    return "-";
  snprintf(number, sizeof(number), "%ju", (uintmax_t)p->uid);
  name = pool_intern(&d->pool, number, strlen(number));
  if (!name)
    memory_check(NULL);
  return name;
}

static int compare_owned(const void *a, const void *b) {
  const struct owned *x = a, *y = b;

  return strcmp(x->user, y->user);
}

static struct owned *list_owned(struct view *v, size_t *ret_n) {
  struct document *d = v->document;
  struct owned *owned = memory_array(NULL, d->n_processes, sizeof(*owned));
  size_t n = 0;

  for (size_t i = 0; i < d->n_processes; i++)
    if (filters_take_process(&v->filters, &d->processes[i]))
      owned[n++] = (struct owned){.user = user_of(d, &d->processes[i]),
                                  .process = &d->processes[i]};
  if (n > 0)
    qsort(owned, n, sizeof(*owned), compare_owned);
  *ret_n = n;
  return owned;
}

static void add_user(struct view *v, struct table *t, const char *name,
                     const struct sum *sum) {
  struct group *user =
      memory_check(pool_alloc(&v->document->pool, sizeof(*user)));

  sum_finish(sum, name, &v->document->pool, user);
  table_add(t, (struct row){.amounts = &user->amounts, .group = user});
}

static void add_users(struct view *v, struct table *t) {
  struct sum sum, all;
  size_t n;
  struct owned *owned = list_owned(v, &n);

  sum_begin(&sum);
  sum_begin(&all);
  for (size_t i = 0; i < n; i++) {
    sum_add_process(&sum, owned[i].process);
    sum_add_process(&all, owned[i].process);
    if (i + 1 < n && strcmp(owned[i].user, owned[i + 1].user) == 0)
      continue;
    add_user(v, t, owned[i].user, &sum);
    sum_begin(&sum);
  }
  free(owned);
  set_total(v, t, &all);
}

/* ---- mappings ---- */

static void add_mappings(struct view *v, struct table *t) {
  struct mappings m = mappings_collect(v->document, &v->filters);
  struct sum sum;

  sum_begin(&sum);
  for (size_t i = 0; i < m.n; i++) {
    if (!filter_takes(&v->filters.mapping, m.all[i].name))
      continue;
    table_add(t,
              (struct row){.amounts = &m.all[i].amounts, .mapping = &m.all[i]});
    sum_add_amounts(&sum, &m.all[i].amounts);
  }
  sum.processes = m.processes;
  set_total(v, t, &sum);
}

/* ---- areas ---- */

static void add_areas(struct view *v, struct table *t) {
  v->areas = areas_collect(v->document);
  for (size_t i = 0; i < v->areas.n; i++)
    table_add(t, (struct row){.area = &v->areas.all[i]});
  t->total =
      (struct row){.kind = t->kind, .is_total = true, .area = &v->areas.total};
  t->has_total = v->options->has_total;
}

/* ---- tables ---- */

static const char *const default_columns[ROW_KINDS] = {
    [ROW_GROUP] = "pss,uss,rss,swap,processes,coverage,group",
    [ROW_PROCESS] = "pid,user,pss,uss,rss,swap,source,group,command",
    [ROW_USER] = "pss,uss,rss,swap,processes,user",
    [ROW_MAPPING] = "pss,processes,private_dirty,name",
    [ROW_AREA] = "used,cache,noncache,area,group",
};

/* False if the table lacks a column that was asked for. */
static bool choose_columns(struct table *t, const struct options *o) {
  const char *at = default_columns[t->kind];

  for (size_t i = 0; i < o->n_columns; i++) {
    if (!column_is_of(o->columns[i], t->kind))
      return false;
    t->columns[t->n_columns++] = o->columns[i];
  }
  while (o->n_columns == 0 && *at) {
    size_t len = strcspn(at, ",");

    t->columns[t->n_columns++] = column_find(at, len);
    at += len + (at[len] == ',');
  }
  return true;
}

static void fill(struct view *v, struct table *t) {
  static void (*const add[ROW_KINDS])(struct view *, struct table *) = {
      [ROW_GROUP] = add_groups, [ROW_PROCESS] = add_processes,
      [ROW_USER] = add_users,   [ROW_MAPPING] = add_mappings,
      [ROW_AREA] = add_areas,
  };
  unsigned sort = v->options->sort;

  add[t->kind](v, t);
  if (!column_is_of(sort, t->kind))
    sort = AMOUNT_PSS;
  table_sort(t, sort, v->options->is_reversed);
  if (t->n_rows > v->options->rows_max)
    t->n_rows = (size_t)v->options->rows_max;
}

/* The name of a group that there is means that group. */
static int filter_groups(struct view *v, struct config_error *reason) {
  const char *text = v->options->group;
  const struct document *d = v->document;
  char shown[GROUP_NAME_SIZE];
  int rc;

  if (text && document_group(d, text)) {
    v->filters.group.exact = text;
    return 0;
  }
  rc = filter_compile(&v->filters.group, "-g", text, reason);
  if (rc < 0)
    return rc;
  for (size_t i = 0; i < d->n_groups; i++)
    if (filter_takes(&v->filters.group, d->groups[i].name))
      return 0;
  return !text ? 0
               : config_error_set(
                     reason, "there is no group \"%s\"",
                     escape_text(text, strlen(text), shown, sizeof(shown)));
}

static int compile_filters(struct view *v, struct config_error *reason) {
  const struct options *o = v->options;
  int rc = filter_groups(v, reason);

  if (rc == 0)
    rc = filter_compile(&v->filters.process, "-P", o->process_filter, reason);
  if (rc == 0)
    rc = filter_compile(&v->filters.user, "-U", o->user_filter, reason);
  if (rc == 0)
    rc = filter_compile(&v->filters.mapping, "-M", o->mapping_filter, reason);
  return rc;
}

static int check(const struct view *v, struct config_error *reason) {
  const struct document *d = v->document;

  if (v->options->by_mapping && !mappings_are_known(d, &v->filters))
    return config_error_set(reason,
                            "has no mappings: only a capture of the group "
                            "has them");
  if (v->options->by_area && !d->has_host_memory)
    return config_error_set(reason,
                            "has no memory of the host: the plugin did not "
                            "see the host, or had Host false");
  return 0;
}

static void begin_output(const struct view *v, const struct style *s,
                         struct json_lines *j) {
  if (!v->options->is_json) {
    if (s->has_header)
      heading_print(v->document, s);
    return;
  }
  json_lines_begin(j, NULL, '[');
  json_lines_begin(j, NULL, '{');
  json_lines_text(j, "row", "document");
  heading_write(v->document, j);
  json_lines_end(j, '}');
}

static void print_tables(struct view *v, const struct style *s) {
  const struct options *o = v->options;
  struct json_lines j = {.out = s->out};
  bool is_first = !s->has_header;

  begin_output(v, s, &j);
  for (unsigned kind = 0; kind < ROW_KINDS; kind++) {
    struct table t = {.document = v->document, .kind = (enum row_kind)kind};

    if (!options_shows(o, t.kind) || !choose_columns(&t, o))
      continue;
    fill(v, &t);
    if (!o->is_json && !is_first)
      fputc('\n', s->out);
    if (o->is_json)
      table_write_json(&t, &j);
    else
      table_print(&t, s);
    is_first = false;
    table_done(&t);
  }
  if (o->is_json)
    json_lines_end(&j, ']');
}

int view_print(struct document *d, const struct options *o,
               const struct style *s, struct config_error *reason) {
  struct view v = {.document = d, .options = o};
  int rc = compile_filters(&v, reason);

  if (rc == 0)
    rc = check(&v, reason);
  if (rc == 0)
    print_tables(&v, s);
  filters_done(&v.filters);
  return rc;
}
