#include "column.h"

#include <math.h>
#include <string.h>

#define BIT(kind) (1U << (kind))
#define GROUP BIT(ROW_GROUP)
#define PROCESS BIT(ROW_PROCESS)
#define USER BIT(ROW_USER)
#define MAPPING BIT(ROW_MAPPING)
#define AREA BIT(ROW_AREA)
#define ALL (BIT(ROW_KINDS) - 1)

enum other {
  HOST,
  NAME,
  PERMISSIONS,
  VMAS,
  GROUP_NAME,
  RULE,
  PROCESSES,
  THREADS,
  UNREADABLE,
  COVERAGE,
  PSS_ERROR,
  USS_ERROR,
  PID,
  PPID,
  STARTTIME,
  UID,
  USER_NAME,
  COMM,
  EXE,
  COMMAND,
  CGROUP,
  UNIT,
  SLICE,
  CONTAINER,
  CONTAINER_NAME,
  POD,
  NAMESPACE,
  SOURCE,
  DEFERRED,
  PAGES_SAMPLED,
  MAPPINGS_FROM,
  AGE,
  COST,
  CGROUP_MEMORY,
  CGROUP_WORKING_SET,
  CGROUP_LIMIT,
  CGROUP_PERCENT,
  CGROUP_FILE,
  CGROUP_KERNEL,
  OOM_KILL,
  AREA_NAME,
  USED,
  CACHE,
  NONCACHE,
  USED_ERROR,
  UPTIME,
  GROWTH,
  UNTIL_LIMIT,
  OTHERS
};

_Static_assert((int)AMOUNTS + (int)OTHERS <= COLUMNS_MAX, "too many columns");

static const struct {
  const char *name;
  unsigned kinds;
  bool is_left;
  bool sorts_upwards;
} others[OTHERS] = {
    [HOST] = {"host", ALL, true, true},
    [NAME] = {"name", MAPPING, true, true},
    [PERMISSIONS] = {"permissions", MAPPING, true, true},
    [VMAS] = {"vmas", MAPPING, false, false},
    [GROUP_NAME] = {"group", GROUP | PROCESS | AREA, true, true},
    [RULE] = {"rule", GROUP | PROCESS, true, true},
    [PROCESSES] = {"processes", GROUP | USER | MAPPING, false, false},
    [THREADS] = {"threads", GROUP | PROCESS | USER, false, false},
    [UNREADABLE] = {"unreadable", GROUP | USER, false, false},
    [COVERAGE] = {"coverage", GROUP, false, false},
    [PSS_ERROR] = {"pss_error", GROUP | PROCESS | USER | MAPPING, false, false},
    [USS_ERROR] = {"uss_error", GROUP | PROCESS | USER, false, false},
    [PID] = {"pid", PROCESS, false, true},
    [PPID] = {"ppid", PROCESS, false, true},
    [STARTTIME] = {"starttime", PROCESS, false, true},
    [UID] = {"uid", PROCESS, false, true},
    [USER_NAME] = {"user", PROCESS | USER, true, true},
    [COMM] = {"comm", PROCESS, true, true},
    [EXE] = {"exe", PROCESS, true, true},
    [COMMAND] = {"command", PROCESS, true, true},
    [CGROUP] = {"cgroup", GROUP | PROCESS, true, true},
    [UNIT] = {"unit", PROCESS, true, true},
    [SLICE] = {"slice", PROCESS, true, true},
    [CONTAINER] = {"container", PROCESS, true, true},
    [CONTAINER_NAME] = {"container_name", PROCESS, true, true},
    [POD] = {"pod", PROCESS, true, true},
    [NAMESPACE] = {"namespace", PROCESS, true, true},
    [SOURCE] = {"source", PROCESS, true, true},
    [DEFERRED] = {"deferred", PROCESS, true, true},
    [PAGES_SAMPLED] = {"pages_sampled", PROCESS | MAPPING, false, false},
    [MAPPINGS_FROM] = {"mappings_from", PROCESS, true, true},
    [AGE] = {"age", GROUP | PROCESS, false, false},
    [COST] = {"cost", PROCESS, false, false},
    [CGROUP_MEMORY] = {"cgroup_memory", GROUP, false, false},
    [CGROUP_WORKING_SET] = {"cgroup_working_set", GROUP, false, false},
    [CGROUP_LIMIT] = {"cgroup_limit", GROUP, false, false},
    [CGROUP_PERCENT] = {"cgroup_percent", GROUP, false, false},
    [CGROUP_FILE] = {"cgroup_file", GROUP, false, false},
    [CGROUP_KERNEL] = {"cgroup_kernel", GROUP, false, false},
    [OOM_KILL] = {"oom_kill", GROUP, false, false},
    [AREA_NAME] = {"area", AREA, true, true},
    [USED] = {"used", AREA, false, false},
    [CACHE] = {"cache", AREA, false, false},
    [NONCACHE] = {"noncache", AREA, false, false},
    [USED_ERROR] = {"used_error", AREA, false, false},
    [UPTIME] = {"uptime", GROUP | PROCESS, false, false},
    [GROWTH] = {"growth", GROUP, false, false},
    [UNTIL_LIMIT] = {"until_limit", GROUP, false, true},
};

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
    return others[column - AMOUNTS].kinds & BIT(kind);
  if (kind == ROW_AREA)
    return false;
  return kind != ROW_MAPPING || ((mapping_amounts >> column) & 1);
}

bool column_is_left(unsigned column) {
  return column >= AMOUNTS && others[column - AMOUNTS].is_left;
}

bool column_sorts_upwards(unsigned column) {
  return column >= AMOUNTS && others[column - AMOUNTS].sorts_upwards;
}

unsigned column_find(const char *name, size_t len) {
  unsigned i = 0;

  while (i < column_count() && (strncmp(column_name(i), name, len) != 0 ||
                                column_name(i)[len] != '\0'))
    i++;
  return i;
}

/* ---- cells ---- */

static struct cell bytes(uint64_t value) {
  return (struct cell){.type = value == UNKNOWN ? CELL_UNKNOWN : CELL_BYTES,
                       .whole = value};
}

static struct cell count(uint64_t value) {
  return (struct cell){.type = value == UNKNOWN ? CELL_UNKNOWN : CELL_COUNT,
                       .whole = value};
}

static struct cell text(const char *value) {
  return (struct cell){.type = value ? CELL_TEXT : CELL_UNKNOWN, .text = value};
}

static struct cell real(enum cell_type type, double value) {
  return (struct cell){.type = isnan(value) ? CELL_UNKNOWN : type,
                       .real = value};
}

static struct cell rule(const struct document *d, uint64_t index) {
  return text(index < d->n_rules ? d->rules[index] : NULL);
}

static struct cell names(const struct process *p) {
  return (struct cell){.type = p->n_groups > 0 ? CELL_NAMES : CELL_UNKNOWN,
                       .names = p->groups,
                       .n_names = p->n_groups};
}

/* The part of the limit that is used. */
static struct cell cgroup_percent(const struct group *g) {
  double share = (double)NAN;

  if (g->cgroup_working_set != UNKNOWN && g->cgroup_limit != UNKNOWN &&
      g->cgroup_limit > 0)
    share = 100 * (double)g->cgroup_working_set / (double)g->cgroup_limit;
  return real(CELL_PERCENT, share);
}

static struct cell of_cgroup(enum other column, const struct group *g) {
  switch ((int)column) {
  case CGROUP:
    return text(g->cgroup_absence ? NULL : g->cgroup);
  case CGROUP_MEMORY:
    return bytes(g->cgroup_memory);
  case CGROUP_WORKING_SET:
    return bytes(g->cgroup_working_set);
  case CGROUP_LIMIT:
    return bytes(g->cgroup_limit);
  case CGROUP_PERCENT:
    return cgroup_percent(g);
  case CGROUP_FILE:
    return bytes(g->cgroup_file);
  case CGROUP_KERNEL:
    return bytes(g->cgroup_kernel);
  case OOM_KILL:
    return count(g->oom_kill);
  default:
    return (struct cell){.type = CELL_BLANK};
  }
}

/* Also for users and totals, which have fewer fields. */
static struct cell of_group(const struct document *d, enum other column,
                            const struct group *g) {
  switch ((int)column) {
  case USER_NAME:
  case GROUP_NAME:
    return text(g->name);
  case RULE:
    return rule(d, g->rule);
  case PROCESSES:
    return count(g->processes);
  case THREADS:
    return count(g->threads);
  case UNREADABLE:
    return count(g->unreadable);
  case COVERAGE:
    return real(CELL_PERCENT, g->coverage);
  case PSS_ERROR:
    return bytes(g->pss_error);
  case USS_ERROR:
    return bytes(g->uss_error);
  case AGE:
    return real(CELL_SECONDS, g->age);
  case UPTIME:
    return real(CELL_SECONDS, g->uptime);
  case GROWTH:
    return bytes(g->growth);
  case UNTIL_LIMIT:
    return real(CELL_SECONDS, g->until_limit);
  default:
    return of_cgroup(column, g);
  }
}

static struct cell of_mapping(enum other column, const struct mapping *m) {
  switch ((int)column) {
  case NAME:
    return text(m->name ? m->name : "[rest]");
  case PERMISSIONS:
    return text(m->permissions);
  case VMAS:
    return count(m->vmas);
  case PROCESSES:
    return count(m->processes);
  case PAGES_SAMPLED:
    return count(m->pages_sampled);
  case PSS_ERROR:
    return bytes(m->pss_error);
  default:
    return (struct cell){.type = CELL_BLANK};
  }
}

uint64_t column_shown_error(uint64_t error, uint64_t bytes) {
  return error != UNKNOWN && error > bytes / 20 ? error : 0;
}

/* A total lacks what is neither in cache nor in noncache. */
static struct cell divided_part(const struct area *a, uint64_t part) {
  struct cell cell = bytes(part);

  cell.is_least = cell.type == CELL_BYTES && a->undivided > 0;
  return cell;
}

static struct cell of_area(enum other column, const struct area *a) {
  uint64_t divided = amount_add(a->cache, a->undivided);
  struct cell cell = bytes(a->used);

  switch ((int)column) {
  case AREA_NAME:
    return text(a->name);
  case GROUP_NAME:
    return text(a->group);
  case USED:
    cell.error = column_shown_error(a->error, a->used);
    return cell;
  case CACHE:
    return divided_part(a, a->cache);
  case NONCACHE:
    if (divided == UNKNOWN || a->used == UNKNOWN)
      return bytes(UNKNOWN);
    return divided_part(a, a->used > divided ? a->used - divided : 0);
  case USED_ERROR:
    return bytes(a->error);
  default:
    return (struct cell){.type = CELL_BLANK};
  }
}

static struct cell number_of_process(enum other column,
                                     const struct process *p) {
  switch ((int)column) {
  case PID:
    return count(p->pid);
  case PPID:
    return count(p->ppid);
  case STARTTIME:
    return count(p->starttime);
  case UID:
    return count(p->uid);
  case THREADS:
    return count(p->threads);
  case PAGES_SAMPLED:
    return count(p->pages_sampled);
  case AGE:
    return real(CELL_SECONDS, p->age);
  case PSS_ERROR:
    return bytes(p->pss_error);
  case USS_ERROR:
    return bytes(p->uss_error);
  case COST:
    return real(CELL_SECONDS, p->read_cost);
  case UPTIME:
    return real(CELL_SECONDS, p->uptime);
  default:
    return (struct cell){.type = CELL_BLANK};
  }
}

static struct cell of_process(const struct document *d, enum other column,
                              const struct process *p) {
  switch ((int)column) {
  case GROUP_NAME:
    return names(p);
  case RULE:
    return rule(d, p->rule);
  case USER_NAME:
    return p->user ? text(p->user) : count(p->uid);
  case COMM:
    return text(p->comm);
  case EXE:
    return text(p->exe);
  case COMMAND:
    return text(process_command(p));
  case CGROUP:
    return text(p->cgroup);
  case UNIT:
    return text(p->unit);
  case SLICE:
    return text(p->slice);
  case CONTAINER:
    return text(p->container);
  case CONTAINER_NAME:
    return text(p->container_name);
  case POD:
    return text(p->pod);
  case NAMESPACE:
    return text(p->namespace);
  case SOURCE:
    return text(p->source);
  case DEFERRED:
    return text(p->deferred);
  case MAPPINGS_FROM:
    return text(p->mappings_from);
  default:
    return number_of_process(column, p);
  }
}

/* That of a group, a user or a total of processes, or NULL. */
static const struct group *group_of(const struct row *row) {
  bool is_sum = row->kind == ROW_GROUP || row->kind == ROW_USER ||
                (row->is_total && row->kind != ROW_AREA);

  return is_sum ? row->group : NULL;
}

static struct cell amount(enum amount which, const struct row *row) {
  struct cell cell = bytes(amounts_get(row->amounts, which));
  const struct group *group = group_of(row);

  if (!group || cell.type == CELL_UNKNOWN)
    return cell;
  cell.is_least = (group->at_least >> which) & 1;
  if (which == AMOUNT_PSS)
    cell.error = column_shown_error(group->pss_error, cell.whole);
  else if (which == AMOUNT_USS)
    cell.error = column_shown_error(group->uss_error, cell.whole);
  return cell;
}

static bool has_total(enum other column) {
  return column == PROCESSES || column == THREADS || column == UNREADABLE ||
         column == PSS_ERROR || column == USS_ERROR || column == USED ||
         column == CACHE || column == NONCACHE;
}

struct cell column_get(const struct document *d, unsigned column,
                       const struct row *row) {
  enum other other = (enum other)(column - AMOUNTS);

  if (column < AMOUNTS)
    return amount((enum amount)column, row);
  if (row->is_total && !has_total(other))
    return (struct cell){.type = CELL_BLANK};
  if (other == HOST)
    return text(d->host);
  if (group_of(row))
    return of_group(d, other, row->group);
  if (row->kind == ROW_AREA)
    return of_area(other, row->area);
  return row->kind == ROW_PROCESS ? of_process(d, other, row->process)
                                  : of_mapping(other, row->mapping);
}

/* ---- order ---- */

void column_set_key(const struct document *d, unsigned column,
                    struct row *row) {
  struct cell cell = column_get(d, column, row);

  row->key_type = (uint8_t)cell.type;
  if (cell.type == CELL_NAMES) {
    row->key_type = CELL_TEXT;
    row->key.text = cell.names[0];
  } else if (cell.type == CELL_TEXT) {
    row->key.text = cell.text;
  } else if (cell.type == CELL_SECONDS || cell.type == CELL_PERCENT) {
    row->key.real = cell.real;
  } else {
    row->key.whole = cell.whole;
  }
}

static bool is_text(const struct row *row) {
  return row->key_type == CELL_TEXT;
}

static int compare_known(const struct row *a, const struct row *b) {
  if (is_text(a) != is_text(b))
    return is_text(a) ? -1 : 1; /* the name of a user before a uid */
  if (is_text(a))
    return strcmp(a->key.text, b->key.text);
  if (a->key_type == CELL_SECONDS || a->key_type == CELL_PERCENT)
    return (a->key.real > b->key.real) - (a->key.real < b->key.real);
  return (a->key.whole > b->key.whole) - (a->key.whole < b->key.whole);
}

static bool is_known(const struct row *row) {
  return row->key_type != CELL_UNKNOWN && row->key_type != CELL_BLANK;
}

int column_compare(const struct row *a, const struct row *b, bool is_upwards) {
  if (!is_known(a) || !is_known(b))
    return is_known(b) - is_known(a);
  return is_upwards ? compare_known(a, b) : compare_known(b, a);
}
