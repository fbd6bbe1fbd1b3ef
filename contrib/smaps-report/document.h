/*
 * A snapshot (smaps-snapshot(5)) in memory.
 *
 * Missing values are NULL, UNKNOWN or NaN. Any user can choose the text (names
 * of processes): print it through text.h and json_lines.h only.
 */
#ifndef REPORT_DOCUMENT_H
#define REPORT_DOCUMENT_H

#include "pool.h"

#include <stdbool.h>

#define UNKNOWN UINT64_MAX

/* Amounts in bytes; the names are in document.c in this order. */
enum amount {
  AMOUNT_PSS,
  AMOUNT_USS,
  AMOUNT_RSS,
  AMOUNT_SHARED,
  AMOUNT_SWAP,
  AMOUNT_PSS_ANON,
  AMOUNT_PSS_FILE,
  AMOUNT_PSS_SHMEM,
  AMOUNT_PSS_DIRTY,
  AMOUNT_PRIVATE_CLEAN,
  AMOUNT_PRIVATE_DIRTY,
  AMOUNT_SHARED_CLEAN,
  AMOUNT_SHARED_DIRTY,
  AMOUNT_REFERENCED,
  AMOUNT_ANONYMOUS,
  AMOUNT_LAZY_FREE,
  AMOUNT_KSM,
  AMOUNT_ANON_HUGE_PAGES,
  AMOUNT_SHMEM_PMD_MAPPED,
  AMOUNT_FILE_PMD_MAPPED,
  AMOUNT_SHARED_HUGETLB,
  AMOUNT_PRIVATE_HUGETLB,
  AMOUNT_LOCKED,
  AMOUNT_SWAP_TOTAL,
  AMOUNT_SIZE,
  AMOUNT_RESIDENT,
  AMOUNT_RESIDENT_SHARED,
  AMOUNT_TEXT,
  AMOUNT_DATA,
  AMOUNT_PAGE_TABLES,
  AMOUNT_KERNEL_STACK,
  AMOUNTS
};

extern const char *const amount_names[AMOUNTS];

/* The known amounts, packed, because few documents have all. */
struct amounts {
  uint32_t known; /* bit per amount */
  const uint64_t *packed;
};

/* Gets an amount or UNKNOWN. */
uint64_t amounts_get(const struct amounts *a, enum amount which);

/* Packs values[AMOUNTS] without those that are UNKNOWN. False if memory has run
 * out. */
bool amounts_pack(struct amounts *a, struct pool *p, const uint64_t *values);

/* a + b; UNKNOWN if one of them is unknown, or if the sum overflows. */
uint64_t amount_add(uint64_t a, uint64_t b);

struct mapping {
  const char *name; /* NULL: the sum of all others */
  const char *permissions;
  uint64_t vmas;
  uint64_t processes;
  uint64_t pages_sampled;
  uint64_t pss_error; /* UNKNOWN also if PSS was read whole, without any */
  struct amounts amounts;
};

struct causes;

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
  const struct causes *pss_error_by; /* cause.h; NULL: unknown */
  /* The control group that it is, or might be, and why it is none. */
  const char *cgroup;
  const char *cgroup_absence;
  uint64_t cgroup_memory;
  uint64_t cgroup_working_set; /* without page cache that is not in use */
  uint64_t cgroup_limit;
  uint64_t cgroup_file;
  uint64_t cgroup_kernel;
  uint64_t oom_kill;
  uint64_t growth;    /* bytes a second */
  double until_limit; /* seconds */
  double last_known;  /* it has ended: its values are of this time */
  struct amounts amounts;
  /* In a sum that we have made: bit per amount that some parts lack, so that
   * the amount is at least this. */
  uint32_t at_least;
};

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
  const char *comm;
  const char *title; /* comm, or the script that an interpreter runs */
  const char *exe;
  const char *command_line;
  const char *user;
  const char *cgroup;
  const char *unit;
  const char *slice;
  const char *container;
  const char *container_name;
  const char *pod;
  const char *namespace;
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

/* All values are missing. */
extern const struct mapping mapping_unknown;
extern const struct group group_unknown;
extern const struct process process_unknown;

/* The parts of MemTotal, from the most certain to the least. */
enum part {
  PART_FREE,
  PART_GROUPS,
  PART_HUGETLB_USED,
  PART_HUGETLB_FREE,
  PART_SLAB_RECLAIMABLE,
  PART_SLAB_UNRECLAIMABLE,
  PART_PAGE_TABLES,
  PART_KERNEL_STACK,
  PART_PERCPU,
  PART_ZRAM,
  PART_ZSWAP,
  PART_BUFFERS,
  PART_TMPFS,
  PART_PAGE_CACHE,
  PART_SWAP_CACHE,
  PART_UNACCOUNTED,
  PARTS
};

extern const char *const area_names[PARTS];

/* Where the memory of the host is. */
struct host_memory {
  uint64_t parts[PARTS], errors[PARTS];
  uint64_t outside, outside_error;
};

/* A row of it: a part, or a group. */
struct area {
  const char *name;
  const char *group; /* NULL: of none */
  uint64_t used;
  uint64_t cache;     /* of this, what the kernel takes back when it needs it */
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
  uint64_t version;
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

/* Makes a host_memory of which nothing is known. */
void document_add_host_memory(struct document *d);

/* Finds a group; NULL if there is none. Groups are sorted by name. */
const struct group *document_group(const struct document *d, const char *name);

/* The group of a capture, or NULL for a state. */
const char *document_scope(const struct document *d);

/* The time of the values of that group, if it has ended; or else NaN. */
double document_last_known(const struct document *d);

bool process_is_in(const struct process *p, const char *group);

/* True if the process shares its parent's memory, which counts there. */
bool process_is_in_parent(const struct process *p);

/* NULL for several areas: the document has what any of them may do. */
static inline const char *mapping_rights(const struct mapping *m) {
  return m->vmas == 1 ? m->permissions : NULL;
}

/* The command line, or comm if that is unknown or empty; may be NULL. */
const char *process_command(const struct process *p);

/* The group that counts the process: that of the rule that took it, or else its
 * first group. NULL if it is in none. */
const char *process_main_group(const struct document *d,
                               const struct process *p);

#endif
