/* SPDX-License-Identifier: MIT */
/*
 * A snapshot (smaps-snapshot(5)) in memory.
 *
 * Values that the document lacks are NULL, MISSING or NaN. Any user can choose
 * the text (names of processes): print it through text.h and json_lines.h only.
 */
#ifndef REPORT_DOCUMENT_H
#define REPORT_DOCUMENT_H

#include "pool.h"

#include <stdbool.h>

#include <smaps/words.h>

#define MISSING UINT64_MAX

/* Amounts in bytes, in the order of their columns. */
#define AMOUNT_TABLE(FIELD, X)                                                 \
  AMOUNTS_BY_DEFAULT(FIELD, FIELD)                                             \
  AMOUNTS_IN_DETAIL(FIELD)                                                     \
  LOCKED_ROW(FIELD)                                                            \
  SWAP_TOTAL_ROW(FIELD)                                                        \
  AMOUNTS_OF_STATM(X)                                                          \
  AMOUNTS_OF_KERNEL(X)

#define AMOUNT_OF_FIELD(name, key, field) AMOUNT_##name,
#define AMOUNT_NUMBER(name, key) AMOUNT_##name,
enum amount { AMOUNT_TABLE(AMOUNT_OF_FIELD, AMOUNT_NUMBER) AMOUNTS };
#undef AMOUNT_OF_FIELD
#undef AMOUNT_NUMBER
_Static_assert(AMOUNTS <= 32, "struct amounts has a bit per amount");

extern const char *const amount_names[AMOUNTS];

/* The known amounts, packed, because few documents have all. */
struct amounts {
  uint32_t known; /* bit per amount */
  const uint64_t *packed;
};

/* Gets an amount or MISSING. */
uint64_t amounts_get(const struct amounts *a, enum amount which);

/* Packs values[AMOUNTS], without MISSING values. */
void amounts_pack(struct amounts *a, struct pool *p, const uint64_t *values);

/* a + b; MISSING if one of them is unknown, or if the sum overflows. */
uint64_t amount_add(uint64_t a, uint64_t b);

static inline uint64_t amount_or_0(uint64_t bytes) {
  return bytes == MISSING ? 0 : bytes;
}

/* a - b, at least 0. */
static inline uint64_t amount_less(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

/* As strcmp(3). NULL, "no name", comes last. */
int name_compare(const char *a, const char *b);

struct mapping {
  const char *name; /* NULL: the sum of all others */
  const char *permissions;
  uint64_t vmas;
  uint64_t processes;
  uint64_t pages_sampled;
  uint64_t pss_error; /* MISSING also if PSS is exact */
  struct amounts amounts;
};

/* The document has no USS of a mapping: it is the private part. */
uint64_t mapping_uss(const struct mapping *m);

/* The parts of the error of a PSS, in bytes. */
struct causes {
  uint64_t bytes[ALL_CAUSES];
};

struct group {
  const char *name;
  uint64_t rule; /* index in the rules */
  uint64_t processes;
  uint64_t threads;
  uint64_t unreadable;
  double uptime;   /* seconds */
  double coverage; /* percent */
  double age;      /* seconds */
  uint64_t pss_error;
  uint64_t uss_error;
  uint64_t freed; /* what would be free if all members ended */
  uint64_t freed_error;
  const struct causes *pss_error_by; /* NULL: unknown */
  /* The control group that has the same processes, and why there is none. */
  const char *cgroup;
  const char *cgroup_absence;
  uint64_t cgroup_memory;
  uint64_t cgroup_working_set; /* without page cache that is not in use */
  uint64_t cgroup_limit;
  uint64_t cgroup_file;
  uint64_t cgroup_kernel;
  uint64_t oom_kill;
  uint64_t oomd_kill;
  uint64_t cgroup_peak;
  uint64_t cgroup_peak_ever;
  double pressure_some; /* percent */
  double pressure_full;
  uint64_t events_high;
  uint64_t events_max;
  uint64_t growth;    /* bytes a second */
  double until_limit; /* seconds */
  double grows_since; /* the time; NaN: it does not grow */
  double last_known;  /* it has ended: its values are of this time */
  struct amounts amounts;
  /* In a sum: bit per amount that some parts lack, so the sum is a lower
   * bound. */
  uint32_t at_least;
};

#define ATTRIBUTE_FIELD(name, key, selector) const char *key;

struct process {
  uint64_t pid;
  uint64_t starttime;
  uint64_t ppid;
  uint64_t uid;
  uint64_t threads;
  uint64_t rule;
  uint64_t pss_error;
  uint64_t uss_error;
  uint64_t pages_sampled;
  double uptime;
  double age;
  double read_cost; /* seconds */
  /* comm, exe, command_line and so on. */
  ATTRIBUTE_TABLE(ATTRIBUTE_FIELD, ATTRIBUTE_FIELD)
  const char *title; /* comm, or the script that an interpreter runs */
  const char *source;
  const char *deferred;
  const char *mappings_from; /* "smaps", "samples", or "maps": no amounts */
  const char *const *groups;
  const uint64_t *also;
  const struct mapping *mappings;
  uint32_t n_groups;
  uint32_t n_also;
  uint32_t n_mappings;
  bool is_inherited;
  bool has_mappings;
  struct amounts amounts;
};

/* The names of the parts of MemTotal. */
extern const char *const part_names[HOST_PARTS];

/* Where the memory of the host is. */
struct host_memory {
  uint64_t parts[HOST_PARTS], errors[HOST_PARTS];
  uint64_t outside, outside_error;
};

/* A row of the table of areas: a part, or a group. */
struct area {
  const char *name;
  const char *group; /* or NULL */
  uint64_t used;
  uint64_t cache;     /* of this, memory that the kernel takes back on demand */
  uint64_t undivided; /* of a total: neither in cache nor in noncache */
  uint64_t error;
};

struct trigger {
  const char *kind;
  const char *severity;
  double time;
  const char *group;
  const char *type;
  const char *type_instance;
  const char *message;
};

struct document {
  struct pool pool;
  const char *plugin_version;
  const char *host;
  const char *kernel;
  double time;
  double interval;
  double state_interval; /* of a StateFile: StateInterval; NaN in others */
  uint64_t page_size;
  uint64_t mem_total;
  uint64_t mem_available;
  uint64_t left_out;
  struct trigger trigger;
  struct host_memory host_memory;
  bool has_host_memory;
  const char **rules;
  size_t n_rules;
  struct group *groups;
  size_t n_groups;
  struct process *processes;
  size_t n_processes;
  const struct mapping *mappings;
  size_t n_mappings;
  bool has_mappings;
};

void document_done(struct document *d);

/* Finds a group; NULL if there is none. Groups are sorted by name. */
const struct group *document_group(const struct document *d, const char *name);

/* The group of a capture, or NULL for a state. */
const char *document_scope(const struct document *d);

/* The time of the values of that group, if it has ended; or else NaN. */
double document_last_known(const struct document *d);

bool process_is_in(const struct process *p, const char *group);

/* True if its values are from this source (smaps-snapshot(5)). */
bool process_is_from(const struct process *p, const char *source);

/* True if the process shares its parent's memory, which counts there. */
bool process_is_in_parent(const struct process *p);

/* True if nothing is known but that it is there: it may be in any group. */
bool process_is_unknown(const struct process *p);

/* NULL for several areas: the document has the union of their permissions. */
static inline const char *mapping_rights(const struct mapping *m) {
  return m->vmas == 1 ? m->permissions : NULL;
}

/* The command line, or comm if that is unknown or empty; may be NULL. */
const char *process_command(const struct process *p);

/* The group into which a rule has put the process, or NULL. */
const char *process_group_of(const struct document *d, const struct process *p,
                             uint64_t rule);

/* The group in which the process counts: the group of the rule that took it, or
 * else its first group. NULL if it is in no group. */
const char *process_main_group(const struct document *d,
                               const struct process *p);

#endif
