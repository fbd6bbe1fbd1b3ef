#include "diff.h"
#include "column.h"
#include "grid.h"
#include "json_lines.h"
#include "mapping.h"
#include "memory.h"

#include <smaps/group_name.h>

#include <stdlib.h>
#include <string.h>

/* ---- changes ---- */

/* NULL (no name) comes last. */
static int compare_text(const char *a, const char *b) {
  if (!a || !b)
    return (a == NULL) - (b == NULL);
  return strcmp(a, b);
}

static void add(struct changes *changes, struct change c) {
  bool is_known = c.old != UNKNOWN && c.new != UNKNOWN;

  c.is_less = is_known && c.new < c.old;
  c.size = !is_known ? UNKNOWN : c.is_less ? c.old - c.new : c.new - c.old;
  /* A group of unknown size gets a line, a process does not. */
  if (c.how == HOW_STAYED && c.old == c.new && (is_known || c.new_process))
    return;
  changes->all = memory_room(changes->all, changes->n, sizeof(c));
  changes->all[changes->n++] = c;
}

static uint64_t pid_of(const struct change *c) {
  const struct process *p = c->new_process ? c->new_process : c->old_process;

  return p ? p->pid : 0;
}

static int compare_changes(const void *a, const void *b) {
  const struct change *x = a, *y = b;
  bool x_is_known = x->size != UNKNOWN, y_is_known = y->size != UNKNOWN;
  int order;

  if (x_is_known != y_is_known)
    return y_is_known - x_is_known;
  if (x->size != y->size)
    return x->size < y->size ? 1 : -1;
  order = compare_text(x->name, y->name);
  return order ? order : (pid_of(x) > pid_of(y)) - (pid_of(x) < pid_of(y));
}

static void sort(struct changes *changes) {
  if (changes->n > 0)
    qsort(changes->all, changes->n, sizeof(*changes->all), compare_changes);
}

/* UNKNOWN for other amounts. */
static uint64_t error_of(enum amount amount, uint64_t pss, uint64_t uss) {
  return amount == AMOUNT_PSS ? pss : amount == AMOUNT_USS ? uss : UNKNOWN;
}

/* ---- groups ---- */

static uint64_t group_error(const struct group *g, enum amount amount) {
  return g ? error_of(amount, g->pss_error, g->uss_error) : UNKNOWN;
}

static void compare_group(const char *name, const struct group *old,
                          const struct group *new, enum amount amount,
                          struct changes *ret) {
  add(ret, (struct change){
               .how = !old   ? HOW_CAME
                      : !new ? HOW_WENT
                             : HOW_STAYED,
               .name = name,
               .old = old ? amounts_get(&old->amounts, amount) : 0,
               .new = new ? amounts_get(&new->amounts, amount) : 0,
               .old_error = group_error(old, amount),
               .new_error = group_error(new, amount),
           });
}

/* The groups of both documents are sorted by name. */
static void compare_groups(const struct document *old,
                           const struct document *new, enum amount amount,
                           const char *only, struct changes *ret) {
  size_t i = 0, j = 0;

  while (i < old->n_groups || j < new->n_groups) {
    int order = i == old->n_groups ? 1
                : j == new->n_groups
                    ? -1
                    : strcmp(old->groups[i].name, new->groups[j].name);
    const char *name = order <= 0 ? old->groups[i].name : new->groups[j].name;
    const struct group *a = order <= 0 ? &old->groups[i++] : NULL;
    const struct group *b = order >= 0 ? &new->groups[j++] : NULL;

    if (!only || strcmp(name, only) == 0)
      compare_group(name, a, b, amount, ret);
  }
  sort(ret);
}

/* ---- processes ---- */

struct member {
  const struct process *process;
  const char *group;
};

struct members {
  struct member *all;
  size_t n;
};

static void add_member(struct members *m, struct member member) {
  m->all = memory_room(m->all, m->n, sizeof(member));
  m->all[m->n++] = member;
}

static struct members list(const struct document *d, const char *scope,
                           const char *group) {
  struct members m = {0};

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];
    const char *of = group ? group : scope;

    if ((!scope || process_is_in(p, scope)) &&
        (!group || process_is_in(p, group)))
      add_member(&m, (struct member){p, of ? of : process_main_group(d, p)});
  }
  return m;
}

static int compare_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int compare_identity(const void *a, const void *b) {
  const struct process *x = ((const struct member *)a)->process;
  const struct process *y = ((const struct member *)b)->process;
  int order = compare_u64(x->pid, y->pid);

  return order ? order : compare_u64(x->starttime, y->starttime);
}

static int compare_service(const void *a, const void *b) {
  const struct member *x = a, *y = b;
  int order = compare_text(x->group, y->group);

  return order ? order : compare_text(x->process->title, y->process->title);
}

/* Orders by service, and within a service by start time. */
static int compare_start(const void *a, const void *b) {
  const struct member *x = a, *y = b;
  int order = compare_service(a, b);

  if (!order)
    order = compare_u64(x->process->starttime, y->process->starttime);
  return order ? order : compare_identity(a, b);
}

static uint64_t amount_of(const struct process *p, enum amount amount) {
  if (!p)
    return 0;
  return process_is_in_parent(p) ? 0 : amounts_get(&p->amounts, amount);
}

static uint64_t process_error(const struct process *p, enum amount amount) {
  return p ? error_of(amount, p->pss_error, p->uss_error) : UNKNOWN;
}

/* Either process may be NULL. */
static void compare_process(const struct process *old,
                            const struct process *new, enum how how,
                            enum amount amount, struct changes *ret) {
  struct change c = {.how = how,
                     .name = new   ? new->title
                             : old ? old->title
                                   : NULL,
                     .old_process = old,
                     .new_process = new,
                     .old = amount_of(old, amount),
                     .new = amount_of(new, amount),
                     .old_error = process_error(old, amount),
                     .new_error = process_error(new, amount)};

  if (how == HOW_LISTED)
    c.old = UNKNOWN;
  if (how == HOW_UNLISTED)
    c.new = UNKNOWN;
  add(ret, c);
}

/*
 * Pairs the equal members of two arrays that are sorted by `compare`. Members
 * without a partner go to rest_*.
 */
static void pair(struct members *old, struct members *new,
                 int (*compare)(const void *, const void *), enum how how,
                 enum amount amount, struct members *rest_old,
                 struct members *rest_new, struct changes *ret) {
  size_t i = 0, j = 0;

  while (i < old->n || j < new->n) {
    const struct member *a = i < old->n ? &old->all[i] : NULL;
    const struct member *b = j < new->n ? &new->all[j] : NULL;
    int order = !a ? 1 : !b ? -1 : compare(a, b);

    i += order <= 0;
    j += order >= 0;
    if (order == 0)
      compare_process(a->process, b->process, how, amount, ret);
    else if (order < 0)
      add_member(rest_old, *a);
    else
      add_member(rest_new, *b);
  }
}

static void sort_members(struct members *m,
                         int (*compare)(const void *, const void *)) {
  if (m->n > 0)
    qsort(m->all, m->n, sizeof(*m->all), compare);
}

/* A process may be listed that is younger than its document by so much. */
#define LISTING_SECONDS 1

/* True also where it is unknown. */
static bool has_older(const struct document *d, double than) {
  for (size_t i = 0; i < d->n_processes; i++)
    if (!(d->time - d->processes[i].uptime > than + LISTING_SECONDS))
      return true;
  return d->n_processes == 0;
}

/* Pid and start time identify a process on one host only, and until that is
 * booted: then all processes of one document are younger than the other. */
static bool has_same_ids(const struct document *old,
                         const struct document *new) {
  return (!old->host || !new->host || strcmp(old->host, new->host) == 0) &&
         has_older(old, new->time) && has_older(new, old->time);
}

/* A capture leaves out small processes. */
static bool has_all(const struct document *d) {
  return d->left_out == UNKNOWN || d->left_out == 0;
}

static void compare_members(const struct document *old,
                            const struct document *new, struct members *a,
                            struct members *b, enum amount amount,
                            struct changes *ret) {
  struct members a_rest = {0}, b_rest = {0}, gone = {0}, added = {0};

  sort_members(a, compare_identity);
  sort_members(b, compare_identity);
  if (has_same_ids(old, new)) {
    pair(a, b, compare_identity, HOW_STAYED, amount, &a_rest, &b_rest, ret);
    free(a->all);
    free(b->all);
    *a = a_rest;
    *b = b_rest;
  }
  sort_members(a, compare_start);
  sort_members(b, compare_start);
  pair(a, b, compare_service, HOW_RESTARTED, amount, &gone, &added, ret);
  for (size_t i = 0; i < gone.n; i++)
    compare_process(gone.all[i].process, NULL,
                    has_all(new) ? HOW_WENT : HOW_UNLISTED, amount, ret);
  for (size_t i = 0; i < added.n; i++)
    compare_process(NULL, added.all[i].process,
                    has_all(old) ? HOW_CAME : HOW_LISTED, amount, ret);
  free(gone.all);
  free(added.all);
}

/* False if the captures are of different groups. */
static bool compare_processes(const struct document *old,
                              const struct document *new, enum amount amount,
                              const char *group, struct changes *ret) {
  const char *a_scope = document_scope(old), *b_scope = document_scope(new);
  const char *scope = a_scope ? a_scope : b_scope;
  struct members a, b;

  if (a_scope && b_scope && strcmp(a_scope, b_scope) != 0)
    return false;
  a = list(old, scope, group);
  b = list(new, scope, group);
  compare_members(old, new, &a, &b, amount, ret);
  free(a.all);
  free(b.all);
  sort(ret);
  return true;
}

/* ---- mappings ---- */

static int compare_mapping_names(const void *a, const void *b) {
  return compare_text((*(const struct mapping *const *)a)->name,
                      (*(const struct mapping *const *)b)->name);
}

static const struct mapping **sort_mappings(const struct mappings *m) {
  const struct mapping **sorted = memory_array(NULL, m->n, sizeof(*sorted));

  for (size_t i = 0; i < m->n; i++)
    sorted[i] = &m->all[i];
  if (m->n > 0)
    qsort(sorted, m->n, sizeof(*sorted), compare_mapping_names);
  return sorted;
}

static bool has_rest(const struct mappings *m) {
  return m->n > 0 && !m->all[m->n - 1].name;
}

/* Either mapping may be NULL; is_complete is then true if that side names all
 * of its mappings. */
static void compare_mapping(const char *name, const struct mapping *old,
                            const struct mapping *new, enum amount amount,
                            bool is_complete, struct changes *ret) {
  struct change c = {.how = HOW_STAYED,
                     .name = name ? name : "[rest]",
                     .old = old ? amounts_get(&old->amounts, amount) : 0,
                     .new = new ? amounts_get(&new->amounts, amount) : 0,
                     .old_error = UNKNOWN,
                     .new_error = UNKNOWN};

  if (!old)
    c.how = is_complete || !name ? HOW_CAME : HOW_LISTED;
  if (!new)
    c.how = is_complete || !name ? HOW_WENT : HOW_UNLISTED;
  if (c.how == HOW_LISTED)
    c.old = UNKNOWN;
  if (c.how == HOW_UNLISTED)
    c.new = UNKNOWN;
  add(ret, c);
}

/* A mapping that one side lacks may be in its rest. */
static void compare_mappings(const struct mappings *old,
                             const struct mappings *new, enum amount amount,
                             struct changes *ret) {
  const struct mapping **a = sort_mappings(old), **b = sort_mappings(new);
  size_t i = 0, j = 0;

  while (i < old->n || j < new->n) {
    int order = i == old->n   ? 1
                : j == new->n ? -1
                              : compare_mapping_names(&a[i], &b[j]);
    const char *name = order <= 0 ? a[i]->name : b[j]->name;
    const struct mapping *x = order <= 0 ? a[i++] : NULL;
    const struct mapping *y = order >= 0 ? b[j++] : NULL;

    compare_mapping(name, x, y, amount, !has_rest(x ? new : old), ret);
  }
  free(a);
  free(b);
  sort(ret);
}

void diff_make(struct document *old, struct document *new, enum amount amount,
               const char *group, struct diff *ret) {
  struct filters f = {.group = {.exact = group}};

  *ret = (struct diff){0};
  compare_groups(old, new, amount, group, &ret->groups);
  ret->has_processes =
      compare_processes(old, new, amount, group, &ret->processes);
  ret->has_mappings = ret->has_processes && mappings_are_known(old, &f) &&
                      mappings_are_known(new, &f) &&
                      column_is_of(amount, ROW_MAPPING);
  if (document_scope(old) && document_scope(new))
    ret->missing = mappings_missing(old, &f) + mappings_missing(new, &f);
  if (ret->has_mappings) {
    struct mappings a = mappings_collect(old, &f);
    struct mappings b = mappings_collect(new, &f);

    compare_mappings(&a, &b, amount, &ret->mappings);
  }
}

void diff_done(struct diff *d) {
  free(d->groups.all);
  free(d->processes.all);
  free(d->mappings.all);
  *d = (struct diff){0};
}

/* ---- the limit ---- */

static uint64_t known_or_0(uint64_t error) {
  return error == UNKNOWN ? 0 : error;
}

static uint64_t errors_of(const struct change *c) {
  return amount_add(known_or_0(c->old_error), known_or_0(c->new_error));
}

bool diff_is_over(const struct change *c, const struct limit *limit) {
  double certain = (double)c->size - (double)errors_of(c);

  if (!limit->is_set || c->size == UNKNOWN || c->is_less || certain <= 0)
    return false;
  if (limit->is_percent)
    return certain * 100 > limit->value * (double)c->old;
  return certain > limit->value;
}

static void report_growth(const struct change *c, const struct limit *limit) {
  struct style plain = {.unit = UNIT_HUMAN, .mem_total = UNKNOWN};
  struct text t = {0};
  struct group_name shown;

  text_addf(&t, "smaps-report: group \"%s\": PSS ",
            escape_text(c->name, strlen(c->name), shown.text, GROUP_NAME_SIZE));
  if (c->size == UNKNOWN) {
    text_add(&t, "is unknown in one snapshot or both, and is not judged");
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
  struct changes changes = {0};
  int status = 0;

  if (!o->limit.is_set)
    return 0;
  compare_groups(old, new, AMOUNT_PSS, o->group, &changes);
  for (size_t i = 0; i < changes.n; i++) {
    const struct change *c = &changes.all[i];
    bool is_over = diff_is_over(c, &o->limit);

    if (is_over || (c->size == UNKNOWN && c->how != HOW_WENT))
      report_growth(c, &o->limit);
    if (is_over)
      status = 1;
  }
  free(changes.all);
  return status;
}

/* ---- text ---- */

static const char *const how_names[] = {
    [HOW_STAYED] = "",       [HOW_RESTARTED] = "restarted",
    [HOW_CAME] = "came",     [HOW_WENT] = "went",
    [HOW_LISTED] = "listed", [HOW_UNLISTED] = "unlisted",
};

const char *diff_how_name(enum how how) {
  return how == HOW_STAYED ? "stayed" : how_names[how];
}

struct section {
  const struct changes *changes;
  const char *title;
  bool has_pids;
};

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

/* A process whose memory was guessed on either side. */
static bool is_guess(const struct process *p) {
  return p && p->source &&
         (strcmp(p->source, "guessed") == 0 ||
          strcmp(p->source, "unreadable") == 0 ||
          strcmp(p->source, "statm") == 0);
}

static void add_how(const struct change *c, struct text *ret) {
  bool has_guess = is_guess(c->old_process) || is_guess(c->new_process);

  text_add(ret, how_names[c->how]);
  if (has_guess)
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
  if (c->size == UNKNOWN || c->size == 0)
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

static void print_text(const struct diff *d, uint64_t rows_max,
                       const struct style *s) {
  struct section groups = {&d->groups, "GROUP", false};
  struct section processes = {&d->processes, "PROCESS", true};
  struct section mappings = {&d->mappings, "MAPPING", false};

  print_section(&groups, rows_max, s);
  if (d->has_processes) {
    fputc('\n', s->out);
    print_section(&processes, rows_max, s);
  }
  if (d->has_mappings) {
    fputc('\n', s->out);
    print_section(&mappings, rows_max, s);
  }
}

/* ---- JSON ---- */

static void write_change(struct json_lines *j, const char *name,
                         const struct change *c) {
  const struct process *old = c->old_process, *new = c->new_process;

  json_lines_begin(j, NULL, '{');
  json_lines_text(j, name, new ? new->comm : old ? old->comm : c->name);
  json_lines_whole(j, "old_pid", old ? old->pid : UNKNOWN);
  json_lines_whole(j, "pid", new ? new->pid : UNKNOWN);
  json_lines_text(j, "how", diff_how_name(c->how));
  json_lines_whole(j, "old", c->how == HOW_CAME ? UNKNOWN : c->old);
  json_lines_whole(j, "new", c->how == HOW_WENT ? UNKNOWN : c->new);
  json_lines_change(j, "change", c->is_less, c->size);
  json_lines_whole(j, "old_error", c->old_error);
  json_lines_whole(j, "new_error", c->new_error);
  json_lines_text(j, "old_source", old ? old->source : NULL);
  json_lines_text(j, "source", new ? new->source : NULL);
  json_lines_end(j, '}');
}

static void write_changes(struct json_lines *j, const char *key,
                          const char *name, const struct changes *changes,
                          uint64_t rows_max) {
  json_lines_begin(j, key, '[');
  for (size_t i = 0; i < least(rows_max, changes->n); i++)
    write_change(j, name, &changes->all[i]);
  json_lines_end(j, ']');
}

static void write_json(const struct diff *d, const struct options *o,
                       FILE *out) {
  struct json_lines j = {.out = out};

  json_lines_begin(&j, NULL, '{');
  json_lines_text(&j, "amount", amount_names[o->sort]);
  write_changes(&j, "groups", "group", &d->groups, o->rows_max);
  if (d->has_processes)
    write_changes(&j, "processes", "comm", &d->processes, o->rows_max);
  if (d->has_mappings)
    write_changes(&j, "mappings", "name", &d->mappings, o->rows_max);
  json_lines_end(&j, '}');
}

int diff_print(struct document *old, struct document *new,
               const struct options *o, const struct style *s,
               struct config_error *reason) {
  struct group_name shown;
  struct diff d;
  int status;

  if (o->group && !document_group(old, o->group) &&
      !document_group(new, o->group))
    return config_error_set(
        reason, "there is no group \"%s\"",
        escape_text(o->group, strlen(o->group), shown.text, GROUP_NAME_SIZE));
  status = judge(old, new, o);
  diff_make(old, new, o->sort, o->group, &d);
  if (o->is_json)
    write_json(&d, o, s->out);
  else
    print_text(&d, o->rows_max, s);
  mappings_tell_missing(d.missing);
  diff_done(&d);
  return status;
}
