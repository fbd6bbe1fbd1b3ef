#include "document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const amount_names[AMOUNTS] = {
    "pss",
    "uss",
    "rss",
    "shared",
    "swap",
    "pss_anon",
    "pss_file",
    "pss_shmem",
    "pss_dirty",
    "private_clean",
    "private_dirty",
    "shared_clean",
    "shared_dirty",
    "referenced",
    "anonymous",
    "lazy_free",
    "ksm",
    "anon_huge_pages",
    "shmem_pmd_mapped",
    "file_pmd_mapped",
    "shared_hugetlb",
    "private_hugetlb",
    "locked",
    "swap_total",
    "size",
    "resident",
    "resident_shared",
    "text",
    "data",
    "page_tables",
    "kernel_stack",
};

const char *const area_names[PARTS] = {
    [PART_FREE] = "free",
    [PART_GROUPS] = "groups",
    [PART_HUGETLB_USED] = "hugetlb_used",
    [PART_HUGETLB_FREE] = "hugetlb_free",
    [PART_SLAB_RECLAIMABLE] = "slab_reclaimable",
    [PART_SLAB_UNRECLAIMABLE] = "slab_unreclaimable",
    [PART_PAGE_TABLES] = "page_tables",
    [PART_KERNEL_STACK] = "kernel_stack",
    [PART_PERCPU] = "percpu",
    [PART_ZRAM] = "zram",
    [PART_ZSWAP] = "zswap",
    [PART_BUFFERS] = "buffers",
    [PART_TMPFS] = "tmpfs",
    [PART_PAGE_CACHE] = "page_cache",
    [PART_SWAP_CACHE] = "swap_cache",
    [PART_UNACCOUNTED] = "unaccounted",
};

const struct mapping mapping_unknown = {.vmas = UNKNOWN,
                                        .processes = UNKNOWN,
                                        .pages_sampled = UNKNOWN,
                                        .pss_error = UNKNOWN};

const struct group group_unknown = {.rule = UNKNOWN,
                                    .processes = UNKNOWN,
                                    .threads = UNKNOWN,
                                    .unreadable = UNKNOWN,
                                    .pss_error = UNKNOWN,
                                    .uss_error = UNKNOWN,
                                    .cgroup_memory = UNKNOWN,
                                    .cgroup_working_set = UNKNOWN,
                                    .cgroup_limit = UNKNOWN,
                                    .cgroup_file = UNKNOWN,
                                    .cgroup_kernel = UNKNOWN,
                                    .oom_kill = UNKNOWN,
                                    .uptime = (double)NAN,
                                    .growth = UNKNOWN,
                                    .until_limit = (double)NAN,
                                    .last_known = (double)NAN,
                                    .coverage = (double)NAN,
                                    .age = (double)NAN};

const struct process process_unknown = {.pid = UNKNOWN,
                                        .starttime = UNKNOWN,
                                        .ppid = UNKNOWN,
                                        .uid = UNKNOWN,
                                        .threads = UNKNOWN,
                                        .rule = UNKNOWN,
                                        .pss_error = UNKNOWN,
                                        .uss_error = UNKNOWN,
                                        .pages_sampled = UNKNOWN,
                                        .age = (double)NAN,
                                        .uptime = (double)NAN,
                                        .read_cost = (double)NAN};

static unsigned count_below(uint32_t known, unsigned bit) {
  return (unsigned)__builtin_popcount(known & ((UINT32_C(1) << bit) - 1));
}

uint64_t amounts_get(const struct amounts *a, enum amount which) {
  if (!((a->known >> which) & 1))
    return UNKNOWN;
  return a->packed[count_below(a->known, which)];
}

bool amounts_pack(struct amounts *a, struct pool *p, const uint64_t *values) {
  uint64_t *packed;
  uint32_t known = 0;
  size_t n = 0;

  for (unsigned i = 0; i < AMOUNTS; i++)
    if (values[i] != UNKNOWN)
      known |= UINT32_C(1) << i;
  packed = pool_alloc(p, (size_t)__builtin_popcount(known) * sizeof(*packed));
  if (!packed)
    return false;
  for (unsigned i = 0; i < AMOUNTS; i++)
    if (values[i] != UNKNOWN)
      packed[n++] = values[i];
  a->known = known;
  a->packed = packed;
  return true;
}

uint64_t amount_add(uint64_t a, uint64_t b) {
  uint64_t sum;

  if (a == UNKNOWN || b == UNKNOWN || __builtin_add_overflow(a, b, &sum))
    return UNKNOWN;
  return sum;
}

void document_done(struct document *d) {
  pool_done(&d->pool);
  free(d->rules);
  free(d->groups);
  free(d->processes);
  *d = (struct document){0};
}

void document_add_host_memory(struct document *d) {
  struct host_memory *h = &d->host_memory;

  d->has_host_memory = true;
  for (size_t i = 0; i < PARTS; i++)
    h->parts[i] = h->errors[i] = UNKNOWN;
  h->outside = h->outside_error = UNKNOWN;
}

static int compare_name(const void *name, const void *group) {
  return strcmp(name, ((const struct group *)group)->name);
}

const struct group *document_group(const struct document *d, const char *name) {
  if (d->n_groups == 0)
    return NULL;
  return bsearch(name, d->groups, d->n_groups, sizeof(*d->groups),
                 compare_name);
}

const char *document_scope(const struct document *d) {
  if (!d->trigger.kind || strcmp(d->trigger.kind, "notification") != 0)
    return NULL;
  return d->trigger.group;
}

double document_last_known(const struct document *d) {
  const char *scope = document_scope(d);
  const struct group *g = scope ? document_group(d, scope) : NULL;

  return g ? g->last_known : (double)NAN;
}

bool process_is_in(const struct process *p, const char *group) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (strcmp(p->groups[i], group) == 0)
      return true;
  return false;
}

bool process_is_in_parent(const struct process *p) {
  return p->source && strcmp(p->source, "parent") == 0;
}

const char *process_command(const struct process *p) {
  return p->command_line && *p->command_line ? p->command_line : p->comm;
}

const char *process_main_group(const struct document *d,
                               const struct process *p) {
  for (size_t i = 0; i < p->n_groups && p->rule != UNKNOWN; i++) {
    const struct group *g = document_group(d, p->groups[i]);

    if (g && g->rule == p->rule)
      return g->name;
  }
  return p->n_groups > 0 ? p->groups[0] : NULL;
}
