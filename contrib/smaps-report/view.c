/* SPDX-License-Identifier: MIT */
#include "view.h"
#include "area.h"
#include "filter.h"
#include "heading.h"
#include "memory.h"
#include "sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct view {
  struct document *const *documents;
  size_t n_documents;
  const struct options *options;
  struct filters filters;
  struct sum sum; /* of the rows, for the total */
  bool lacks_sum; /* the total is unknown, because one document's total is */
  struct area area_total;
};

/* ---- rows ---- */

/* The most that all processes can have together: the memory that the kernel
 * counts as mapped, and 1 % that may have come since. All memory if the mapped
 * memory is unknown. */
static uint64_t most_of_processes(const struct document *d) {
  uint64_t mapped =
      d->has_host_memory ? d->host_memory.parts[HOST_GROUPS] : MISSING;

  return mapped == MISSING ? d->mem_total : amount_add(mapped, mapped / 100);
}

static void add_processes(struct view *v, struct document *d, struct table *t) {
  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    if (!filters_take_process(&v->filters, p))
      continue;
    table_add(t, (struct row){.amounts = &p->amounts, .process = p});
    sum_add_process(&v->sum, p);
  }
}

/* ---- groups ---- */

/* True if a document may lack members of its groups: some processes could not
 * be identified, or are hidden. If they are, process 1 is hidden too, and the
 * number of processes of a group is unknown. A capture may lack process 1
 * anyway. */
static bool may_lack_members(const struct document *d) {
  bool has_unknown = false, has_first = document_scope(d) != NULL;
  bool has_unidentified = false;

  for (size_t i = 0; i < d->n_groups; i++)
    has_unknown |= d->groups[i].processes == MISSING;
  for (size_t i = 0; i < d->n_processes; i++) {
    has_first |= d->processes[i].pid == 1;
    has_unidentified |= process_is_unknown(&d->processes[i]);
  }
  return has_unidentified || (has_unknown && !has_first);
}

/* Adds up processes and not groups, because a process may be in several. */
static void sum_members(struct view *v, const struct document *d) {
  for (size_t i = 0; i < d->n_processes; i++)
    if (d->processes[i].n_groups > 0 &&
        filters_take_process(&v->filters, &d->processes[i]))
      sum_add_process(&v->sum, &d->processes[i]);
  if (may_lack_members(d))
    sum_keep_least(&v->sum);
}

static void sum_group(struct view *v, const struct group *g) {
  struct sum *sum = &v->sum;

  sum_add_amounts(sum, &g->amounts);
  sum->processes = amount_add(sum->processes, g->processes);
  sum->threads = amount_add(sum->threads, g->threads);
  sum->unreadable = amount_add(sum->unreadable, g->unreadable);
  sum->pss_error = amount_add(sum->pss_error, g->pss_error);
  sum->uss_error = amount_add(sum->uss_error, g->uss_error);
}

/* False for a capture, which lists the largest members of one group: it does
 * not show the total of several groups. */
static bool has_all_members(const struct document *d) {
  return !document_scope(d) && d->left_out == MISSING;
}

static void add_whole_groups(struct view *v, const struct document *d,
                             struct table *t) {
  const struct group *last = NULL;
  size_t n = 0;

  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    if (!filter_takes(&v->filters.group, g->name))
      continue;
    table_add(t, (struct row){.amounts = &g->amounts, .group = g});
    last = g;
    n++;
  }
  if (n == 1)
    sum_group(v, last);
  else if (has_all_members(d))
    sum_members(v, d);
  else if (n > 1)
    v->lacks_sum = true;
}

/* Groups are sums of their members that the filters take. */
static void add_parts_of_groups(struct view *v, struct document *d,
                                struct table *t) {
  struct sum *sums = sum_groups(d, &v->filters);

  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];
    struct group *part;

    if (sums[i].processes == 0 || !filter_takes(&v->filters.group, g->name))
      continue;
    part = sum_finish(&sums[i], most_of_processes(d), g->name, &d->pool);
    part->rule = g->rule;
    table_add(t, (struct row){.amounts = &part->amounts, .group = part});
  }
  free(sums);
  sum_members(v, d);
}

static void add_groups(struct view *v, struct document *d, struct table *t) {
  if (filters_part_groups(&v->filters))
    add_parts_of_groups(v, d, t);
  else
    add_whole_groups(v, d, t);
}

/* ---- users ---- */

struct owned {
  const char *user;
  const struct process *process;
};

/* The user's name, or the uid if the name is unknown. */
static const char *user_of(struct document *d, const struct process *p) {
  char number[32];

  if (p->user)
    return p->user;
  if (p->uid == MISSING)
    return "-";
  snprintf(number, sizeof(number), "%ju", (uintmax_t)p->uid);
  return pool_intern(&d->pool, number, strlen(number));
}

static int compare_owned(const void *a, const void *b) {
  const struct owned *x = a, *y = b;

  return strcmp(x->user, y->user);
}

static struct owned *list_owned(const struct view *v, struct document *d,
                                size_t *ret_n) {
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

static void add_users(struct view *v, struct document *d, struct table *t) {
  const struct group *user;
  struct sum sum = {0};
  size_t n;
  struct owned *owned = list_owned(v, d, &n);

  for (size_t i = 0; i < n; i++) {
    sum_add_process(&sum, owned[i].process);
    sum_add_process(&v->sum, owned[i].process);
    if (i + 1 < n && strcmp(owned[i].user, owned[i + 1].user) == 0)
      continue;
    user = sum_finish(&sum, most_of_processes(d), owned[i].user, &d->pool);
    table_add(t, (struct row){.amounts = &user->amounts, .group = user});
    sum = (struct sum){0};
  }
  free(owned);
}

/* ---- mappings ---- */

static void add_mappings(struct view *v, struct document *d, struct table *t) {
  struct mappings m;

  if (!mappings_are_known(d, &v->filters))
    return;
  m = mappings_collect(d, &v->filters);
  for (size_t i = 0; i < m.n; i++) {
    if (!filter_takes(&v->filters.mapping, m.all[i].name))
      continue;
    table_add(t,
              (struct row){.amounts = &m.all[i].amounts, .mapping = &m.all[i]});
    sum_add_amounts(&v->sum, &m.all[i].amounts);
    v->sum.pss_error =
        amount_add(v->sum.pss_error, amount_or_0(m.all[i].pss_error));
  }
  v->sum.uss_error = MISSING;
  v->sum.processes += m.processes;
}

/* ---- areas ---- */

static void add_areas(struct view *v, struct document *d, struct table *t) {
  struct areas areas;

  v->lacks_sum |= !d->has_host_memory;
  if (!d->has_host_memory)
    return;
  areas = areas_collect(d);
  for (size_t i = 0; i < areas.n; i++) {
    table_add(t, (struct row){.area = &areas.all[i]});
    area_add(&v->area_total, &areas.all[i]);
  }
}

/* ---- the total ---- */

static uint64_t most_of_hosts(const struct view *v) {
  uint64_t most = 0;

  for (size_t i = 0; i < v->n_documents; i++)
    most = amount_add(most, most_of_processes(v->documents[i]));
  return most;
}

static void set_total(struct view *v, struct table *t) {
  const struct group *total;

  t->has_total = v->options->has_total;
  if (t->kind == ROW_AREA) {
    if (v->lacks_sum)
      v->area_total.used = v->area_total.cache = MISSING;
    t->total = (struct row){
        .kind = ROW_AREA, .is_total = true, .area = &v->area_total};
    return;
  }
  if (v->lacks_sum)
    sum_forget(&v->sum);
  total =
      sum_finish(&v->sum, most_of_hosts(v), "total", &v->documents[0]->pool);
  t->total = (struct row){.kind = ROW_USER,
                          .is_total = true,
                          .amounts = &total->amounts,
                          .group = total};
}

/* ---- tables ---- */

static const char *const default_columns[ROW_KINDS] = {
    [ROW_GROUP] = "pss,uss,freed,rss,swap,processes,coverage,group",
    [ROW_PROCESS] = "pid,user,pss,uss,rss,swap,source,group,command",
    [ROW_USER] = "pss,uss,rss,swap,processes,user",
    [ROW_MAPPING] = "pss,processes,private_dirty,name",
    [ROW_AREA] = "used,cache,noncache,area,group",
};

/* Of groups, while one grows. */
static const char growing_columns[] =
    "pss,uss,freed,rss,swap,processes,coverage,grows_since,full_at,group";

static bool has_column(const struct table *t, unsigned column) {
  for (size_t i = 0; i < t->n_columns; i++)
    if (t->columns[i] == column)
      return true;
  return false;
}

static void add_errors(struct table *t) {
  static const char *const errors[] = {"pss_error", "uss_error", "freed_error"};

  for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
    unsigned column = column_find(errors[i], strlen(errors[i]));

    if (column_is_of(column, t->kind) && !has_column(t, column))
      t->columns[t->n_columns++] = column;
  }
}

static const char *find_defaults(const struct table *t, const struct view *v) {
  bool has_growth = t->kind == ROW_GROUP && !filters_part_groups(&v->filters);

  for (size_t i = 0; has_growth && i < v->n_documents; i++)
    for (size_t j = 0; j < v->documents[i]->n_groups; j++)
      if (!isnan(v->documents[i]->groups[j].grows_since))
        return growing_columns;
  return default_columns[t->kind];
}

/* False if -c names a column that this kind of row does not have. */
static bool choose_columns(struct table *t, const struct view *v) {
  const struct options *o = v->options;
  const char *at = find_defaults(t, v);

  if (o->n_columns == 0 && v->n_documents > 1)
    t->columns[t->n_columns++] = column_find("host", 4);

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
  if (o->is_json)
    add_errors(t);
  return true;
}

static void fill(struct view *v, struct table *t) {
  static void (*const add[ROW_KINDS])(struct view *, struct document *,
                                      struct table *) = {
      [ROW_GROUP] = add_groups, [ROW_PROCESS] = add_processes,
      [ROW_USER] = add_users,   [ROW_MAPPING] = add_mappings,
      [ROW_AREA] = add_areas,
  };
  unsigned sort = v->options->sort;

  v->sum = (struct sum){0};
  v->lacks_sum = false;
  v->area_total = (struct area){.name = "total", .error = MISSING};
  for (size_t i = 0; i < v->n_documents; i++) {
    t->document = (uint16_t)i;
    add[t->kind](v, v->documents[i], t);
  }
  set_total(v, t);
  if (!column_is_of(sort, t->kind))
    sort = AMOUNT_PSS;
  table_sort(t, sort, v->options->is_reversed);
  if (t->n_rows > v->options->rows_max)
    t->n_rows = (size_t)v->options->rows_max;
}

/* True if the filter takes a group of a document. */
static bool has_a_group(const struct view *v) {
  for (size_t i = 0; i < v->n_documents; i++)
    for (size_t j = 0; j < v->documents[i]->n_groups; j++)
      if (filter_takes(&v->filters.group, v->documents[i]->groups[j].name))
        return true;
  return false;
}

/* A text that is the name of a group selects this group alone; any other text
 * is a regular expression. */
static int filter_groups(struct view *v, struct config_error *reason) {
  const char *text = v->options->group;
  int rc;

  v->filters.group.exact = text;
  if (!text || has_a_group(v))
    return 0;
  rc = filter_compile(&v->filters.group, "-g", text, reason);
  if (rc < 0 || has_a_group(v))
    return rc;
  return config_error_set(reason, "there is no group \"%s\"", QUOTED(text));
}

int view_filters(struct document *const *documents, size_t n,
                 const struct options *o, struct filters *ret,
                 struct config_error *reason) {
  struct view v = {.documents = documents, .n_documents = n, .options = o};
  int rc = filter_groups(&v, reason);

  if (rc == 0)
    rc = filter_compile(&v.filters.process, "-P", o->process_filter, reason);
  if (rc == 0)
    rc = filter_compile(&v.filters.user, "-U", o->user_filter, reason);
  if (rc == 0)
    rc = filter_compile(&v.filters.mapping, "-M", o->mapping_filter, reason);
  *ret = v.filters;
  return rc;
}

/* A capture of a group has the mappings of its processes. */
static bool should_have_mappings(const struct view *v,
                                 const struct document *d) {
  const char *scope = document_scope(d);

  return v->options->command == COMMAND_LIVE ||
         (scope && filter_takes(&v->filters.group, scope));
}

static size_t count_missing(const struct view *v) {
  size_t n = 0;

  for (size_t i = 0; i < v->n_documents; i++)
    if (should_have_mappings(v, v->documents[i]))
      n += mappings_missing(v->documents[i], &v->filters);
  return n;
}

static const char *why_no_mappings(const struct view *v) {
  bool has_ended = false, should_have_some = false;

  for (size_t i = 0; i < v->n_documents; i++) {
    has_ended |= !isnan(document_last_known(v->documents[i]));
    should_have_some |= should_have_mappings(v, v->documents[i]);
  }
  if (has_ended)
    return "has no mappings: the processes of the group had ended before the "
           "capture";
  if (count_missing(v) > 0)
    return v->options->source
               ? "the mappings of these processes could not be read: only a "
                 "capture with smaps (capture-proc -s) has them"
               : "the mappings of these processes could not be read";
  return should_have_some
             ? "has no process that the filters match"
             : "has no mappings: only a capture of the group has them";
}

static int check(const struct view *v, struct config_error *reason) {
  bool has_mappings = false, has_host = false;

  for (size_t i = 0; i < v->n_documents; i++) {
    has_mappings |= mappings_are_known(v->documents[i], &v->filters);
    has_host |= v->documents[i]->has_host_memory;
  }
  if (options_shows(v->options, ROW_MAPPING) && !has_mappings)
    return config_error_set(reason, "%s", why_no_mappings(v));
  if (options_shows(v->options, ROW_AREA) && !has_host)
    return config_error_set(reason,
                            "has no memory of the host: this is a container, "
                            "hidepid is in force, or Host is false");
  return 0;
}

static void write_heading(const struct document *d, struct json_lines *j) {
  json_lines_begin(j, NULL, '{');
  json_lines_text(j, "row", "document");
  heading_write(d, j);
  json_lines_end(j, '}');
}

static void begin_output(const struct view *v, const struct style *s,
                         struct json_lines *j) {
  if (v->options->is_json)
    json_lines_begin(j, NULL, '[');
  for (size_t i = 0; i < v->n_documents; i++)
    if (v->options->is_json)
      write_heading(v->documents[i], j);
    else if (s->has_header)
      heading_print(v->documents[i], s);
}

static void print_tables(struct view *v, const struct style *s) {
  const struct options *o = v->options;
  struct json_lines j = {.out = s->out};
  bool is_first = !s->has_header;

  begin_output(v, s, &j);
  for (unsigned kind = 0; kind < ROW_KINDS; kind++) {
    struct table t = {.documents = v->documents, .kind = (enum row_kind)kind};

    if (!options_shows(o, t.kind) || !choose_columns(&t, v))
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

int view_print(struct document *const *documents, size_t n,
               const struct options *o, const struct style *s,
               struct config_error *reason) {
  struct view v = {.documents = documents, .n_documents = n, .options = o};
  int rc = view_filters(documents, n, o, &v.filters, reason);

  if (rc == 0)
    rc = check(&v, reason);
  if (rc == 0)
    print_tables(&v, s);
  if (rc == 0 && options_shows(o, ROW_MAPPING))
    mappings_report_missing(count_missing(&v));
  filters_done(&v.filters);
  return rc;
}
