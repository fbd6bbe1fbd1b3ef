/* SPDX-License-Identifier: MIT */
#include "column.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Where the field of a column is, in the struct that a row of this kind has. */
#define FIELD(kind, of, field) [kind] = offsetof(struct of, field) + 1
#define G(field) FIELD(ROW_GROUP, group, field)
#define P(field) FIELD(ROW_PROCESS, process, field)
#define U(field) FIELD(ROW_USER, group, field)
#define M(field) FIELD(ROW_MAPPING, mapping, field)
#define A(field) FIELD(ROW_AREA, area, field)

/* ---- cells ---- */

static const struct cell blank = {.type = CELL_BLANK};

static struct cell whole(enum cell_type type, uint64_t value) {
  return (struct cell){.type = value == MISSING ? CELL_UNKNOWN : type,
                       .whole = value};
}

static struct cell bytes(uint64_t value) { return whole(CELL_BYTES, value); }

static struct cell text(const char *value) {
  return (struct cell){.type = value ? CELL_TEXT : CELL_UNKNOWN, .text = value};
}

static struct cell real(enum cell_type type, double value) {
  return (struct cell){.type = isnan(value) ? CELL_UNKNOWN : type,
                       .real = value};
}

/* ---- columns that are made of fields ---- */

static struct cell name(const struct row *row) {
  return text(row->mapping->name ? row->mapping->name : "[rest]");
}

static struct cell group(const struct row *row) {
  const struct process *p = row->process;

  if (row->kind != ROW_PROCESS)
    return text(row->kind == ROW_AREA ? row->area->group : row->group->name);
  return (struct cell){.type = p->n_groups > 0 ? CELL_NAMES : CELL_UNKNOWN,
                       .text = p->n_groups > 0 ? p->groups[0] : NULL,
                       .names = p->groups,
                       .n_names = p->n_groups};
}

static struct cell user(const struct row *row) {
  if (row->kind == ROW_USER)
    return text(row->group->name);
  return row->process->user ? text(row->process->user)
                            : whole(CELL_COUNT, row->process->uid);
}

static struct cell command(const struct row *row) {
  return text(process_command(row->process));
}

static struct cell cgroup(const struct row *row) {
  if (row->kind == ROW_PROCESS)
    return text(row->process->cgroup);
  return text(row->group->cgroup_absence ? NULL : row->group->cgroup);
}

/* PSS and swap, as htop calls it. */
static uint64_t epss_of(const struct amounts *a) {
  return amount_add(amounts_get(a, AMOUNT_PSS), amounts_get(a, AMOUNT_SWAP));
}

static struct cell epss(const struct row *row) {
  struct cell cell = bytes(epss_of(row->amounts));
  const struct group *g = row->group;

  if ((row->kind != ROW_GROUP && row->kind != ROW_USER) ||
      cell.type == CELL_UNKNOWN)
    return cell;
  cell.is_least = (g->at_least & (1U << AMOUNT_PSS | 1U << AMOUNT_SWAP)) != 0;
  cell.error = column_shown_error(g->pss_error, cell.whole);
  return cell;
}

/* The part of the limit that is used. */
static struct cell cgroup_percent(const struct row *row) {
  uint64_t used = row->group->cgroup_working_set;
  uint64_t limit = row->group->cgroup_limit;

  if (used == MISSING || limit == MISSING || limit == 0)
    return (struct cell){.type = CELL_UNKNOWN};
  return real(CELL_PERCENT, 100 * (double)used / (double)limit);
}

uint64_t column_shown_error(uint64_t error, uint64_t bytes) {
  return error != MISSING && error > bytes / 20 ? error : 0;
}

static struct cell freed(const struct row *row) {
  struct cell cell = bytes(row->group->freed);

  cell.error = column_shown_error(row->group->freed_error, cell.whole);
  return cell;
}

static struct cell used(const struct row *row) {
  struct cell cell = bytes(row->area->used);

  cell.error = column_shown_error(row->area->error, row->area->used);
  return cell;
}

/* The total lacks memory that is neither cache nor noncache. */
static struct cell divided_part(const struct area *a, uint64_t part) {
  struct cell cell = bytes(part);

  cell.is_least = cell.type == CELL_BYTES && a->undivided > 0;
  return cell;
}

static struct cell cache(const struct row *row) {
  return divided_part(row->area, row->area->cache);
}

static struct cell noncache(const struct row *row) {
  const struct area *a = row->area;
  uint64_t divided = amount_add(a->cache, a->undivided);

  if (divided == MISSING || a->used == MISSING)
    return bytes(MISSING);
  return divided_part(a, a->used > divided ? a->used - divided : 0);
}

static struct cell used_error(const struct row *row) {
  return row->is_total ? blank : bytes(row->area->error);
}

/* ---- columns ---- */

/* clang-format off */
#define COLUMN(name_, type_, ...)                                              \
  { .name = name_, .type = CELL_##type_, .fields = {__VA_ARGS__} }
#define UPWARDS(name_, type_, ...)                                             \
  {                                                                            \
    .name = name_, .type = CELL_##type_, .fields = {__VA_ARGS__},              \
    .is_upwards = true                                                         \
  }
#define MADE(name_, type_, ...)                                                \
  {                                                                            \
    .name = #name_, .type = CELL_##type_, .fields = {__VA_ARGS__},             \
    .get = name_                                                               \
  }
/* clang-format on */

#define HOST 0 /* a column of the document, that all kinds have */

static const struct {
  const char *name;
  enum cell_type type;
  size_t fields[ROW_KINDS]; /* the offset and 1; 0: not a column of this kind */
  struct cell (*get)(const struct row *row); /* NULL: the field */
  bool is_upwards;                           /* a number that sorts upwards */
} others[] = {
    [HOST] = COLUMN("host", TEXT, G(name), P(pid), U(name), M(name), A(name)),
    MADE(name, TEXT, M(name)),
    COLUMN("permissions", TEXT, M(permissions)),
    COLUMN("vmas", COUNT, M(vmas)),
    MADE(group, TEXT, G(name), P(groups), A(group)),
    COLUMN("rule", RULE, G(rule), P(rule)),
    COLUMN("processes", COUNT, G(processes), U(processes), M(processes)),
    COLUMN("threads", COUNT, G(threads), P(threads), U(threads)),
    COLUMN("unreadable", COUNT, G(unreadable), U(unreadable)),
    MADE(epss, BYTES, G(amounts), P(amounts), U(amounts), M(amounts)),
    COLUMN("coverage", PERCENT, G(coverage)),
    COLUMN("pss_error", BYTES, G(pss_error), P(pss_error), U(pss_error),
           M(pss_error)),
    COLUMN("uss_error", BYTES, G(uss_error), P(uss_error), U(uss_error)),
    MADE(freed, BYTES, G(freed)),
    COLUMN("freed_error", BYTES, G(freed_error)),
    UPWARDS("pid", COUNT, P(pid)),
    UPWARDS("ppid", COUNT, P(ppid)),
    UPWARDS("starttime", COUNT, P(starttime)),
    UPWARDS("uid", COUNT, P(uid)),
    MADE(user, TEXT, P(user), U(name)),
    COLUMN("comm", TEXT, P(comm)),
    COLUMN("exe", TEXT, P(exe)),
    MADE(command, TEXT, P(command_line)),
    MADE(cgroup, TEXT, G(cgroup), P(cgroup)),
    COLUMN("unit", TEXT, P(unit)),
    COLUMN("slice", TEXT, P(slice)),
    COLUMN("container", TEXT, P(container)),
    COLUMN("container_name", TEXT, P(container_name)),
    COLUMN("pod", TEXT, P(pod)),
    COLUMN("namespace", TEXT, P(namespace)),
    COLUMN("source", TEXT, P(source)),
    COLUMN("deferred", TEXT, P(deferred)),
    COLUMN("pages_sampled", COUNT, P(pages_sampled), M(pages_sampled)),
    COLUMN("mappings_from", TEXT, P(mappings_from)),
    COLUMN("age", SECONDS, G(age), P(age)),
    COLUMN("cost", SECONDS, P(read_cost)),
    COLUMN("cgroup_memory", BYTES, G(cgroup_memory)),
    COLUMN("cgroup_working_set", BYTES, G(cgroup_working_set)),
    COLUMN("cgroup_limit", BYTES, G(cgroup_limit)),
    MADE(cgroup_percent, PERCENT, G(cgroup_limit)),
    COLUMN("cgroup_file", BYTES, G(cgroup_file)),
    COLUMN("cgroup_kernel", BYTES, G(cgroup_kernel)),
    COLUMN("oom_kill", COUNT, G(oom_kill)),
    COLUMN("oomd_kill", COUNT, G(oomd_kill)),
    COLUMN("cgroup_peak", BYTES, G(cgroup_peak)),
    COLUMN("cgroup_peak_ever", BYTES, G(cgroup_peak_ever)),
    COLUMN("pressure_some", PERCENT, G(pressure_some)),
    COLUMN("pressure_full", PERCENT, G(pressure_full)),
    COLUMN("events_high", COUNT, G(events_high)),
    COLUMN("events_max", COUNT, G(events_max)),
    COLUMN("area", TEXT, A(name)),
    MADE(used, BYTES, A(used)),
    MADE(cache, BYTES, A(cache)),
    MADE(noncache, BYTES, A(used)),
    MADE(used_error, BYTES, A(error)),
    COLUMN("uptime", SECONDS, G(uptime), P(uptime)),
    COLUMN("growth", BYTES, G(growth)),
    UPWARDS("until_limit", SECONDS, G(until_limit)),
    UPWARDS("grows_since", TIME, G(grows_since)),
    UPWARDS("full_at", TIME, G(until_limit)),
};
#define OTHERS (sizeof(others) / sizeof(*others))
#define FULL_AT (OTHERS - 1) /* the document's time and a field */

#define ONE(name, key, selector) +1
_Static_assert(0 ATTRIBUTE_TABLE(ONE, ONE) == 11,
               "each attribute has a column above");

/* The amounts of a mapping (smaps-snapshot(5)). */
static const uint32_t mapping_amounts =
    1U << AMOUNT_SIZE | 1U << AMOUNT_RSS | 1U << AMOUNT_PSS |
    1U << AMOUNT_SHARED_CLEAN | 1U << AMOUNT_SHARED_DIRTY |
    1U << AMOUNT_PRIVATE_CLEAN | 1U << AMOUNT_PRIVATE_DIRTY |
    1U << AMOUNT_ANONYMOUS | 1U << AMOUNT_SWAP | 1U << AMOUNT_SWAP_TOTAL;

unsigned column_count(void) { return (unsigned)AMOUNTS + OTHERS; }

const char *column_name(unsigned column) {
  return column < AMOUNTS ? amount_names[column]
                          : others[column - AMOUNTS].name;
}

bool column_is_of(unsigned column, enum row_kind kind) {
  if (column >= AMOUNTS)
    return others[column - AMOUNTS].fields[kind] > 0;
  if (kind == ROW_AREA)
    return false;
  return kind != ROW_MAPPING || ((mapping_amounts >> column) & 1);
}

bool column_is_left(unsigned column) {
  return column >= AMOUNTS && (others[column - AMOUNTS].type == CELL_TEXT ||
                               others[column - AMOUNTS].type == CELL_RULE);
}

bool column_sorts_upwards(unsigned column) {
  return column_is_left(column) ||
         (column >= AMOUNTS && others[column - AMOUNTS].is_upwards);
}

bool column_is_amount(unsigned column) {
  return column < AMOUNTS || others[column - AMOUNTS].get == epss;
}

uint64_t column_amount(const struct amounts *a, unsigned column) {
  assert(column_is_amount(column));
  return column < AMOUNTS ? amounts_get(a, (enum amount)column) : epss_of(a);
}

unsigned column_find(const char *name, size_t len) {
  unsigned i = 0;

  while (i < column_count() && (strncmp(column_name(i), name, len) != 0 ||
                                column_name(i)[len] != '\0'))
    i++;
  return i;
}

/* ---- the cell of a row ---- */

static struct cell amount(enum amount which, const struct row *row) {
  struct cell cell = bytes(amounts_get(row->amounts, which));
  const struct group *g = row->group;

  if ((row->kind != ROW_GROUP && row->kind != ROW_USER) ||
      cell.type == CELL_UNKNOWN)
    return cell;
  cell.is_least = (g->at_least >> which) & 1;
  if (which == AMOUNT_PSS)
    cell.error = column_shown_error(g->pss_error, cell.whole);
  else if (which == AMOUNT_USS)
    cell.error = column_shown_error(g->uss_error, cell.whole);
  return cell;
}

static struct cell time_cell(const struct document *d, double seconds) {
  struct cell cell = real(CELL_TIME, seconds);

  cell.beside = d->time;
  return cell;
}

static struct cell read_field(const struct document *d, enum cell_type type,
                              const void *field) {
  const uint64_t *number = field;

  switch ((int)type) {
  case CELL_TEXT:
    return text(*(const char *const *)field);
  case CELL_RULE:
    return text(*number < d->n_rules ? d->rules[*number] : NULL);
  case CELL_SECONDS:
  case CELL_PERCENT:
    return real(type, *(const double *)field);
  case CELL_TIME:
    return time_cell(d, *(const double *)field);
  default:
    return whole(type, *number);
  }
}

struct cell column_get(const struct document *d, unsigned column,
                       const struct row *row) {
  unsigned other = column - AMOUNTS;
  size_t field;

  if (column < AMOUNTS)
    return amount((enum amount)column, row);
  field = others[other].fields[row->kind];
  if (field == 0 || (row->is_total && column_is_left(column)))
    return blank;
  if (other == HOST)
    return text(d->host);
  if (other == FULL_AT)
    return time_cell(d, d->time + row->group->until_limit);
  if (others[other].get)
    return others[other].get(row);
  return read_field(d, others[other].type, (const char *)row->of + field - 1);
}

/* ---- order ---- */

static int compare_known(const struct cell *a, const struct cell *b) {
  if (!a->text != !b->text)
    return a->text ? -1 : 1; /* the name of a user before a uid */
  if (a->text)
    return strcmp(a->text, b->text);
  if (a->type == CELL_SECONDS || a->type == CELL_PERCENT ||
      a->type == CELL_TIME)
    return (a->real > b->real) - (a->real < b->real);
  return (a->whole > b->whole) - (a->whole < b->whole);
}

static bool is_known(const struct cell *c) {
  return c->type != CELL_UNKNOWN && c->type != CELL_BLANK;
}

int column_compare(const struct cell *a, const struct cell *b,
                   bool is_upwards) {
  if (!is_known(a) || !is_known(b))
    return is_known(b) - is_known(a);
  return is_upwards ? compare_known(a, b) : compare_known(b, a);
}
