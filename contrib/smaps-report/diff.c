/* SPDX-License-Identifier: MIT */
#include "diff.h"
#include "column.h"
#include "grid.h"
#include "heading.h"
#include "json_lines.h"
#include "memory.h"
#include "sum.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The name of all mappings that a document has not listed by name. */
static const char rest[] = "[rest]";

/* ---- changes ---- */

/* A group, a process or a mapping, as it is in one document. */
struct side {
  const char *name;  /* NULL: a process that has none */
  const char *group; /* of a process */
  const struct process *process;
  bool is_worker; /* its parent is a process of the same service */
  uint64_t amount;
  uint64_t error; /* MISSING for amounts other than PSS and USS */
};

struct sides {
  struct side *all;
  size_t n;
  bool is_complete; /* the document lists all of them */
};

static void add_side(struct sides *s, struct side side) {
  s->all = memory_room(s->all, s->n, sizeof(side));
  s->all[s->n++] = side;
}

/* Either side may be NULL. */
static void add(const struct side *old, const struct side *new, enum how how,
                struct changes *ret) {
  struct change c;
  bool is_known;

  assert(old || new);
  c = (struct change){.how = how,
                      .name = new ? new->name : old->name,
                      .old_process = old ? old->process : NULL,
                      .new_process = new ? new->process : NULL,
                      .old = old ? old->amount : 0,
                      .new = new ? new->amount : 0,
                      .old_error = old ? old->error : MISSING,
                      .new_error = new ? new->error : MISSING};
  if (how == HOW_LISTED)
    c.old = MISSING;
  if (how == HOW_UNLISTED)
    c.new = MISSING;
  is_known = c.old != MISSING && c.new != MISSING;
  c.is_less = is_known && c.new < c.old;
  c.size = !is_known ? MISSING : c.is_less ? c.old - c.new : c.new - c.old;
  /* A group of unknown size gets a line, a process does not. */
  if (how == HOW_STAYED && c.old == c.new && (is_known || c.new_process))
    return;
  ret->all = memory_room(ret->all, ret->n, sizeof(c));
  ret->all[ret->n++] = c;
}

static uint64_t pid_of(const struct change *c) {
  const struct process *p = c->new_process ? c->new_process : c->old_process;

  return p ? p->pid : 0;
}

static int compare_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int compare_changes(const void *a, const void *b) {
  const struct change *x = a, *y = b;
  bool x_is_known = x->size != MISSING, y_is_known = y->size != MISSING;
  int order;

  if (x_is_known != y_is_known)
    return y_is_known - x_is_known;
  if (x->size != y->size)
    return x->size < y->size ? 1 : -1;
  order = name_compare(x->name, y->name);
  return order ? order : compare_u64(pid_of(x), pid_of(y));
}

typedef int compare_fn(const void *, const void *);

static void sort(struct sides *s, compare_fn *compare) {
  if (s->n > 0)
    qsort(s->all, s->n, sizeof(*s->all), compare);
}

/* Pairs sides that `compare` finds equal, each with one, in the `order` of
 * both, which has to agree with it. Sides without a partner stay in the arrays.
 */
static void pair(struct sides *old, struct sides *new, compare_fn *order,
                 compare_fn *compare, enum how how, struct changes *ret) {
  size_t i = 0, j = 0, n_old = 0, n_new = 0;

  sort(old, order);
  sort(new, order);
  while (i < old->n || j < new->n) {
    const struct side *a = i < old->n ? &old->all[i] : NULL;
    const struct side *b = j < new->n ? &new->all[j] : NULL;
    int difference = !a ? 1 : !b ? -1 : compare(a, b);

    i += difference <= 0;
    j += difference >= 0;
    if (difference == 0)
      add(a, b, how, ret);
    else if (difference < 0)
      old->all[n_old++] = *a;
    else
      new->all[n_new++] = *b;
  }
  old->n = n_old;
  new->n = n_new;
}

/* Adds sides without a partner, which may be in the rest of the other document.
 */
static void add_single(struct sides *old, struct sides *new,
                       struct changes *ret) {
  for (size_t i = 0; i < old->n; i++)
    add(&old->all[i], NULL,
        new->is_complete || old->all[i].name == rest ? HOW_GONE : HOW_UNLISTED,
        ret);
  for (size_t i = 0; i < new->n; i++)
    add(NULL, &new->all[i],
        old->is_complete || new->all[i].name == rest ? HOW_NEW : HOW_LISTED,
        ret);
  free(old->all);
  free(new->all);
  if (ret->n > 0)
    qsort(ret->all, ret->n, sizeof(*ret->all), compare_changes);
}

static int compare_names(const void *a, const void *b) {
  return name_compare(((const struct side *)a)->name,
                      ((const struct side *)b)->name);
}

static struct changes compare_by_name(struct sides old, struct sides new) {
  struct changes ret = {0};

  pair(&old, &new, compare_names, compare_names, HOW_STAYED, &ret);
  add_single(&old, &new, &ret);
  return ret;
}

/* Swap has no error of its own, so epss has that of PSS. */
static uint64_t error_of(unsigned amount, uint64_t pss, uint64_t uss) {
  bool has_pss = amount == AMOUNT_PSS || amount >= AMOUNTS;

  return has_pss ? pss : amount == AMOUNT_USS ? uss : MISSING;
}

/* ---- groups ---- */

static struct sides list_groups(const struct document *d, unsigned amount,
                                const char *only) {
  struct sides ret = {.is_complete = true};

  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    if (only && strcmp(g->name, only) != 0)
      continue;
    add_side(&ret, (struct side){
                       .name = g->name,
                       .amount = column_amount(&g->amounts, amount),
                       .error = error_of(amount, g->pss_error, g->uss_error)});
  }
  return ret;
}

/* ---- processes ---- */

/* A capture leaves out small processes. */
static struct sides list_processes(const struct document *d, unsigned amount,
                                   const char *scope, const char *group) {
  struct sides ret = {.is_complete = amount_or_0(d->left_out) == 0};
  const char *of = group ? group : scope;

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    if ((scope && !process_is_in(p, scope)) ||
        (group && !process_is_in(p, group)))
      continue;
    add_side(&ret, (struct side){
                       .name = p->title,
                       .group = of ? of : process_main_group(d, p),
                       .process = p,
                       .amount = process_is_in_parent(p)
                                     ? 0
                                     : column_amount(&p->amounts, amount),
                       .error = error_of(amount, p->pss_error, p->uss_error)});
  }
  return ret;
}

static int compare_identity(const void *a, const void *b) {
  const struct process *x = ((const struct side *)a)->process;
  const struct process *y = ((const struct side *)b)->process;
  int order = compare_u64(x->pid, y->pid);

  return order ? order : compare_u64(x->starttime, y->starttime);
}

static int compare_role(const void *a, const void *b) {
  const struct side *x = a, *y = b;
  int order = name_compare(x->group, y->group);

  order = order ? order : name_compare(x->name, y->name);
  return order ? order : x->is_worker - y->is_worker;
}

static int compare_command(const void *a, const void *b) {
  const struct process *x = ((const struct side *)a)->process;
  const struct process *y = ((const struct side *)b)->process;
  int order = compare_role(a, b);

  return order ? order : name_compare(x->command_line, y->command_line);
}

/* The largest first, and unknown amounts last. */
static int compare_size(const void *a, const void *b) {
  const struct side *x = a, *y = b;
  int order = compare_u64(y->amount + 1, x->amount + 1); /* MISSING is 0 */

  return order ? order : compare_identity(a, b);
}

static int order_in_role(const void *a, const void *b) {
  int order = compare_role(a, b);

  return order ? order : compare_size(a, b);
}

static int order_in_command(const void *a, const void *b) {
  int order = compare_command(a, b);

  return order ? order : compare_size(a, b);
}

static int compare_pid(const void *a, const void *b) {
  return compare_u64(((const struct side *)a)->process->pid,
                     ((const struct side *)b)->process->pid);
}

/* The master of a service is never compared with its workers. */
static void find_workers(struct sides *s) {
  sort(s, compare_identity);
  for (size_t i = 0; i < s->n; i++) {
    const struct process id = {.pid = s->all[i].process->ppid};
    const struct side key = {.process = &id};
    const struct side *parent =
        bsearch(&key, s->all, s->n, sizeof(key), compare_pid);

    s->all[i].is_worker = parent &&
                          name_compare(parent->group, s->all[i].group) == 0 &&
                          name_compare(parent->name, s->all[i].name) == 0;
  }
}

/* A listed process may be younger than the document's time by so much. */
#define LISTING_SECONDS 1

/* True also if the time is unknown. */
static bool has_older(const struct document *d, double than) {
  for (size_t i = 0; i < d->n_processes; i++)
    if (!(d->time - d->processes[i].uptime > than + LISTING_SECONDS))
      return true;
  return d->n_processes == 0;
}

/* Pid and start time identify a process on one host, until it is booted: then
 * all processes of one document are younger than the other document. */
static bool has_same_ids(const struct document *old,
                         const struct document *new) {
  return (!old->host || !new->host || strcmp(old->host, new->host) == 0) &&
         has_older(old, new->time) && has_older(new, old->time);
}

/* False if the captures are of different groups. */
static bool compare_processes(const struct document *old,
                              const struct document *new, unsigned amount,
                              const char *group, struct changes *ret) {
  const char *a_scope = document_scope(old), *b_scope = document_scope(new);
  const char *scope = a_scope ? a_scope : b_scope;
  struct sides a, b;

  if (a_scope && b_scope && strcmp(a_scope, b_scope) != 0)
    return false;
  a = list_processes(old, amount, scope, group);
  b = list_processes(new, amount, scope, group);
  find_workers(&a);
  find_workers(&b);
  if (has_same_ids(old, new))
    pair(&a, &b, compare_identity, compare_identity, HOW_STAYED, ret);
  pair(&a, &b, order_in_command, compare_command, HOW_RESTARTED, ret);
  pair(&a, &b, order_in_role, compare_role, HOW_RESTARTED, ret);
  add_single(&a, &b, ret);
  return true;
}

/* ---- mappings ---- */

/* A mapping that one document lacks may be in its rest. */
static struct sides list_mappings(struct document *d, const struct filters *f,
                                  unsigned amount) {
  struct mappings m = mappings_collect(d, f);
  struct sides ret = {.is_complete = true};

  for (size_t i = 0; i < m.n; i++) {
    const struct mapping *one = &m.all[i];

    ret.is_complete &= one->name != NULL;
    add_side(&ret, (struct side){.name = one->name ? one->name : rest,
                                 .amount = column_amount(&one->amounts, amount),
                                 .error = MISSING});
  }
  return ret;
}

void diff_make(struct document *old, struct document *new, unsigned amount,
               const char *group, struct diff *ret) {
  struct filters f = {.group = {.exact = group}};

  *ret = (struct diff){0};
  ret->groups = compare_by_name(list_groups(old, amount, group),
                                list_groups(new, amount, group));
  ret->has_processes =
      compare_processes(old, new, amount, group, &ret->processes);
  ret->has_mappings = ret->has_processes && mappings_are_known(old, &f) &&
                      mappings_are_known(new, &f) &&
                      column_is_of(amount, ROW_MAPPING);
  if (document_scope(old) && document_scope(new))
    ret->missing = mappings_missing(old, &f) + mappings_missing(new, &f);
  if (ret->has_mappings)
    ret->mappings = compare_by_name(list_mappings(old, &f, amount),
                                    list_mappings(new, &f, amount));
}

void diff_done(struct diff *d) {
  free(d->groups.all);
  free(d->processes.all);
  free(d->mappings.all);
  *d = (struct diff){0};
}

/* ---- the limit ---- */

static uint64_t errors_of(const struct change *c) {
  return amount_add(amount_or_0(c->old_error), amount_or_0(c->new_error));
}

/* True if a group has grown by more than the limit and the errors of both
 * sizes. False if the old or the new size is unknown. A new group has grown
 * from 0. */
static bool is_over(const struct change *c, const struct limit *limit) {
  double certain = (double)c->size - (double)errors_of(c);

  if (!limit->is_set || c->size == MISSING || c->is_less || certain <= 0)
    return false;
  if (limit->is_percent)
    return certain * 100 > limit->value * (double)c->old;
  return certain > limit->value;
}

static void report_growth(const struct change *c, const struct limit *limit) {
  struct style plain = {.unit = UNIT_HUMAN, .mem_total = MISSING};
  struct text t = {0};

  text_addf(&t, "smaps-report: group \"%s\": PSS ", QUOTED(c->name));
  if (c->size == MISSING) {
    text_add(&t, "is unknown in at least one snapshot, so it is not checked");
  } else {
    text_add(&t, "grew from ");
    text_add_bytes(&t, c->old, &plain);
    text_add(&t, " to ");
    text_add_bytes(&t, c->new, &plain);
    text_add(&t, " (+");
    text_add_bytes(&t, c->size, &plain);
    text_add_error(&t, column_shown_error(errors_of(c), c->size), &plain);
    text_addf(&t, "), by more than %s", limit->text);
  }
  fprintf(stderr, "%s\n", t.bytes);
  text_done(&t);
}

/* The limit is for PSS, even if another amount is shown. Returns 1 if a group
 * is over it. */
static int judge(const struct document *old, const struct document *new,
                 const struct options *o) {
  struct changes changes;
  int status = 0;

  if (!o->limit.is_set)
    return 0;
  changes = compare_by_name(list_groups(old, AMOUNT_PSS, o->group),
                            list_groups(new, AMOUNT_PSS, o->group));
  for (size_t i = 0; i < changes.n; i++) {
    const struct change *c = &changes.all[i];
    bool grew = is_over(c, &o->limit);

    if (grew || (c->size == MISSING && c->how != HOW_GONE))
      report_growth(c, &o->limit);
    if (grew)
      status = 1;
  }
  free(changes.all);
  return status;
}

/* ---- text ---- */

const char *const diff_how_names[] = {
    [HOW_STAYED] = "stayed", [HOW_RESTARTED] = "restarted",
    [HOW_NEW] = "new",       [HOW_GONE] = "gone",
    [HOW_LISTED] = "listed", [HOW_UNLISTED] = "unlisted",
};

struct section {
  const struct changes *changes;
  const char *title;
  const char *key, *name; /* in JSON: its key, and the key of its names */
  bool has_pids;
  bool is_shown;
};

#define SECTIONS 3

static void list_sections(const struct diff *d, struct section *ret) {
  ret[0] =
      (struct section){&d->groups, "GROUP", "groups", "group", false, true};
  ret[1] = (struct section){&d->processes, "PROCESS", "processes",
                            "comm",        true,      d->has_processes};
  ret[2] = (struct section){&d->mappings, "MAPPING", "mappings",
                            "name",       false,     d->has_mappings};
}

static void add_pids(const struct change *c, struct text *ret) {
  const struct process *old = c->old_process, *new = c->new_process;

  if (c->how == HOW_RESTARTED)
    text_addf(ret, "%ju>%ju", (uintmax_t)old->pid, (uintmax_t) new->pid);
  else
    text_addf(ret, "%ju", (uintmax_t)pid_of(c));
}

enum { CHANGE, OLD, NEW, HOW, PID };

static void make_title(const struct section *section, size_t column,
                       struct text *ret) {
  static const char *const titles[] = {"CHANGE", "OLD", "NEW", "HOW", "PID"};

  if (column < PID || (column == PID && section->has_pids))
    text_add(ret, titles[column]);
  else
    text_add(ret, section->title);
}

static void add_amount(uint64_t bytes, uint64_t error, const struct style *s,
                       struct text *ret) {
  text_add_bytes(ret, bytes, s);
  text_add_error(ret, column_shown_error(error, bytes), s);
}

/* True if its memory was guessed. */
static bool is_guess(const struct process *p) {
  return p && (process_is_from(p, "guessed") || process_is_from(p, "statm") ||
               process_is_from(p, "unreadable"));
}

static void add_how(const struct change *c, struct text *ret) {
  if (c->how != HOW_STAYED)
    text_add(ret, diff_how_names[c->how]);
  if (is_guess(c->old_process) || is_guess(c->new_process))
    text_add(ret, c->how == HOW_STAYED ? "guessed" : ",guessed");
}

static void make_cell(const void *context, size_t row, size_t column,
                      const struct style *s, struct text *ret) {
  const struct section *section = context;
  const struct change *c;

  if (row == GRID_TITLES) {
    make_title(section, column, ret);
    return;
  }
  c = &section->changes->all[row];
  if (column == CHANGE) {
    text_add_change(ret, c->is_less, c->size, s);
    text_add_error(ret, column_shown_error(errors_of(c), c->size), s);
  } else if (column == OLD)
    add_amount(c->old, c->old_error, s, ret);
  else if (column == NEW)
    add_amount(c->new, c->new_error, s, ret);
  else if (column == HOW)
    add_how(c, ret);
  else if (column == PID && section->has_pids)
    add_pids(c, ret);
  else
    text_add_name(ret, c->name ? c->name : "-", s);
}

static enum colour row_colour(const void *context, size_t row) {
  const struct section *section = context;
  const struct change *c;

  if (row == GRID_TITLES)
    return COLOUR_BOLD;
  c = &section->changes->all[row];
  if (c->size == MISSING || c->size == 0)
    return COLOUR_NONE;
  return c->is_less ? COLOUR_GREEN : COLOUR_RED;
}

static size_t least(uint64_t a, size_t b) { return a < b ? (size_t)a : b; }

static void print_section(const struct section *section, uint64_t rows_max,
                          const struct style *s) {
  struct grid g = {.n_columns = section->has_pids ? PID + 2 : PID + 1,
                   .n_rows = least(rows_max, section->changes->n),
                   .cell = make_cell,
                   .colour = row_colour,
                   .context = section};

  for (size_t i = HOW; i < g.n_columns; i++)
    g.is_left[i] = true;
  grid_print(&g, s);
}

/* db1, 2026-11-21 13:20:00 CET to 2026-11-21 13:41:41 CET (21m41s) */
static void print_heading(const struct document *old,
                          const struct document *new, const struct style *s) {
  bool is_same = name_compare(old->host, new->host) == 0;
  struct text t = {0};

  text_add_name(&t, old->host ? old->host : "-", s);
  text_add(&t, ", ");
  text_add_time(&t, old->time);
  text_add(&t, " to ");
  if (!is_same) {
    text_add_name(&t, new->host ? new->host : "-", s);
    text_add(&t, ", ");
  }
  text_add_time(&t, new->time);
  if (new->time > old->time) {
    text_add(&t, " (");
    text_add_seconds(&t, new->time - old->time);
    text_add(&t, ")");
  }
  text_print(&t, COLOUR_BOLD, s);
  text_done(&t);
  heading_print_age(new, s);
  fputc('\n', s->out);
}

static void print_text(const struct diff *d, uint64_t rows_max,
                       const struct style *s) {
  struct section sections[SECTIONS];

  list_sections(d, sections);
  for (size_t i = 0; i < SECTIONS; i++) {
    if (!sections[i].is_shown)
      continue;
    if (i > 0)
      fputc('\n', s->out);
    print_section(&sections[i], rows_max, s);
  }
}

/* ---- JSON ---- */

static void write_change(struct json_lines *j, const char *name,
                         const struct change *c) {
  const struct process *old = c->old_process, *new = c->new_process;

  json_lines_begin(j, NULL, '{');
  json_lines_text(j, name, new ? new->comm : old ? old->comm : c->name);
  json_lines_whole(j, "old_pid", old ? old->pid : MISSING);
  json_lines_whole(j, "pid", new ? new->pid : MISSING);
  json_lines_text(j, "how", diff_how_names[c->how]);
  json_lines_whole(j, "old", c->how == HOW_NEW ? MISSING : c->old);
  json_lines_whole(j, "new", c->how == HOW_GONE ? MISSING : c->new);
  json_lines_change(j, "change", c->is_less, c->size);
  json_lines_whole(j, "old_error", c->old_error);
  json_lines_whole(j, "new_error", c->new_error);
  json_lines_text(j, "old_source", old ? old->source : NULL);
  json_lines_text(j, "source", new ? new->source : NULL);
  json_lines_end(j, '}');
}

static void write_json(const struct document *old, const struct document *new,
                       const struct diff *d, const struct options *o,
                       FILE *out) {
  struct json_lines j = {.out = out};
  struct section sections[SECTIONS];

  list_sections(d, sections);
  json_lines_begin(&j, NULL, '{');
  json_lines_real(&j, "old_time", old->time);
  json_lines_real(&j, "time", new->time);
  json_lines_text(&j, "amount", column_name(o->sort));
  for (size_t i = 0; i < SECTIONS; i++) {
    const struct section *section = &sections[i];

    if (!section->is_shown)
      continue;
    json_lines_begin(&j, section->key, '[');
    for (size_t k = 0; k < least(o->rows_max, section->changes->n); k++)
      write_change(&j, section->name, &section->changes->all[k]);
    json_lines_end(&j, ']');
  }
  json_lines_end(&j, '}');
}

int diff_print(struct document *old, struct document *new,
               const struct options *o, const struct style *s,
               struct config_error *reason) {
  struct diff d;
  int status;

  if (o->group && !document_group(old, o->group) &&
      !document_group(new, o->group))
    return config_error_set(reason, "there is no group \"%s\"",
                            QUOTED(o->group));
  status = judge(old, new, o);
  diff_make(old, new, o->sort, o->group, &d);
  if (o->is_json)
    write_json(old, new, &d, o, s->out);
  else if (s->has_header)
    print_heading(old, new, s);
  if (!o->is_json)
    print_text(&d, o->rows_max, s);
  mappings_report_missing(d.missing);
  diff_done(&d);
  return status;
}
