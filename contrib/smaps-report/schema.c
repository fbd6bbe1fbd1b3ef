#include "schema.h"

#include "cause.h"
#include "document.h"

const char *const schema_type_names[] = {
    [TEXT] = "a string",    [WHOLE] = "a whole number of 0 or more",
    [SECONDS] = "a number", [FLAG] = "true or false",
    [OBJECT] = "an object", [ARRAY] = "an array",
};

/* Versions of clang-format do not agree about macros that are in braces. */
/* clang-format off */
#define IN(type_, name_, of)                                                   \
  { .name = #name_, .offset = offsetof(struct of, name_), .type = type_ }
#define SHORT(name_, of)                                                       \
  {                                                                            \
    .name = #name_, .offset = offsetof(struct of, name_), .max = UINT32_MAX,   \
    .type = WHOLE                                                              \
  }
#define PART(name_, which_)                                                    \
  {                                                                            \
    .name = name_, .offset = offsetof(struct host_memory, parts[which_]),      \
    .type = WHOLE                                                              \
  }
#define ERROR_OF(name_, which_)                                                \
  {                                                                            \
    .name = name_, .offset = offsetof(struct host_memory, errors[which_]),     \
    .type = WHOLE                                                              \
  }
#define CAUSE(name_, words_)                                                   \
  {                                                                            \
    .name = #name_, .offset = offsetof(struct causes, bytes[CAUSE_OF_##name_]),\
    .type = WHOLE                                                              \
  },
#define OPEN(type_, name_, place_)                                             \
  { .name = #name_, .type = type_, .place = place_ }
/* clang-format on */

static const struct key document_keys[] = {
    {.name = "format", .offset = NO_OFFSET, .type = TEXT},
    {.name = "version", .offset = NO_OFFSET, .type = WHOLE},
    IN(TEXT, plugin_version, document),
    IN(TEXT, host, document),
    IN(SECONDS, time, document),
    IN(SECONDS, interval, document),
    IN(TEXT, kernel, document),
    IN(WHOLE, page_size, document),
    IN(WHOLE, mem_total, document),
    IN(WHOLE, mem_available, document),
    OPEN(OBJECT, trigger, TRIGGER),
    OPEN(ARRAY, rules, RULES),
    OPEN(OBJECT, host_memory, HOST_MEMORY),
    OPEN(ARRAY, groups, GROUPS),
    OPEN(ARRAY, processes, PROCESSES),
    IN(WHOLE, left_out, document),
    OPEN(ARRAY, mappings, MAPPINGS),
    {0},
};

static const struct key trigger_keys[] = {
    IN(TEXT, kind, trigger),    IN(TEXT, severity, trigger),
    IN(SECONDS, time, trigger), IN(TEXT, group, trigger),
    IN(TEXT, type, trigger),    IN(TEXT, type_instance, trigger),
    IN(TEXT, message, trigger), {0},
};

static const struct key host_memory_keys[] = {
    PART("free", PART_FREE),
    PART("groups", PART_GROUPS),
    PART("hugetlb_used", PART_HUGETLB_USED),
    PART("hugetlb_free", PART_HUGETLB_FREE),
    PART("slab_reclaimable", PART_SLAB_RECLAIMABLE),
    PART("slab_unreclaimable", PART_SLAB_UNRECLAIMABLE),
    PART("page_tables", PART_PAGE_TABLES),
    PART("kernel_stack", PART_KERNEL_STACK),
    PART("percpu", PART_PERCPU),
    PART("zram", PART_ZRAM),
    PART("zswap", PART_ZSWAP),
    PART("buffers", PART_BUFFERS),
    PART("tmpfs", PART_TMPFS),
    PART("page_cache", PART_PAGE_CACHE),
    PART("swap_cache", PART_SWAP_CACHE),
    PART("unaccounted", PART_UNACCOUNTED),
    ERROR_OF("groups_error", PART_GROUPS),
    ERROR_OF("tmpfs_error", PART_TMPFS),
    ERROR_OF("page_cache_error", PART_PAGE_CACHE),
    ERROR_OF("swap_cache_error", PART_SWAP_CACHE),
    ERROR_OF("unaccounted_error", PART_UNACCOUNTED),
    IN(WHOLE, outside, host_memory),
    IN(WHOLE, outside_error, host_memory),
    {0},
};

static const struct key group_keys[] = {
    IN(TEXT, name, group),
    SHORT(rule, group),
    IN(WHOLE, processes, group),
    IN(WHOLE, threads, group),
    IN(WHOLE, unreadable, group),
    IN(SECONDS, uptime, group),
    IN(SECONDS, coverage, group),
    IN(SECONDS, age, group),
    IN(WHOLE, pss_error, group),
    IN(WHOLE, uss_error, group),
    OPEN(OBJECT, pss_error_by, PSS_ERROR_BY),
    IN(TEXT, cgroup, group),
    IN(TEXT, cgroup_absence, group),
    IN(WHOLE, cgroup_memory, group),
    IN(WHOLE, cgroup_working_set, group),
    IN(WHOLE, cgroup_limit, group),
    IN(WHOLE, cgroup_file, group),
    IN(WHOLE, cgroup_kernel, group),
    IN(WHOLE, oom_kill, group),
    IN(WHOLE, growth, group),
    IN(SECONDS, until_limit, group),
    IN(SECONDS, last_known, group),
    OPEN(OBJECT, usage, USAGE),
    {0},
};

static const struct key cause_keys[] = {CAUSE_TABLE(CAUSE){0}};

static const struct key process_keys[] = {
    SHORT(pid, process),
    IN(WHOLE, starttime, process),
    SHORT(ppid, process),
    IN(TEXT, comm, process),
    IN(TEXT, exe, process),
    IN(TEXT, command_line, process),
    SHORT(uid, process),
    IN(TEXT, user, process),
    IN(TEXT, cgroup, process),
    IN(TEXT, unit, process),
    IN(TEXT, slice, process),
    IN(TEXT, container, process),
    IN(TEXT, container_name, process),
    IN(TEXT, pod, process),
    IN(TEXT, namespace, process),
    OPEN(ARRAY, groups, GROUPS_OF_PROCESS),
    SHORT(rule, process),
    OPEN(ARRAY, also, ALSO),
    {.name = "inherited",
     .offset = offsetof(struct process, is_inherited),
     .type = FLAG},
    SHORT(threads, process),
    IN(SECONDS, uptime, process),
    IN(TEXT, source, process),
    IN(SECONDS, age, process),
    IN(WHOLE, pss_error, process),
    IN(WHOLE, uss_error, process),
    IN(WHOLE, pages_sampled, process),
    IN(TEXT, deferred, process),
    IN(SECONDS, read_cost, process),
    OPEN(OBJECT, usage, USAGE),
    IN(TEXT, mappings_from, process),
    OPEN(ARRAY, mappings, MAPPINGS),
    {0},
};

static const struct key mapping_keys[] = {
    IN(TEXT, name, mapping),
    IN(TEXT, permissions, mapping),
    IN(WHOLE, vmas, mapping),
    IN(WHOLE, processes, mapping),
    IN(WHOLE, pages_sampled, mapping),
    IN(WHOLE, pss_error, mapping),
    {0},
};

static const struct key no_keys[] = {{0}};

/* The elements of arrays. */
static const struct key rule_element = {.type = TEXT};
static const struct key group_element = {.type = OBJECT, .place = GROUP};
static const struct key process_element = {.type = OBJECT, .place = PROCESS};
static const struct key mapping_element = {.type = OBJECT, .place = MAPPING};
static const struct key index_element = {.type = WHOLE, .max = UINT32_MAX};
static const struct key top = {.type = OBJECT, .place = DOCUMENT};

const struct place_schema schema_places[PLACES] = {
    [BEFORE] = {.element = &top},
    [DOCUMENT] = {.keys = document_keys},
    [TRIGGER] = {.keys = trigger_keys},
    [HOST_MEMORY] = {.keys = host_memory_keys},
    [RULES] = {.element = &rule_element},
    [GROUPS] = {.element = &group_element},
    [GROUP] = {.keys = group_keys},
    [PSS_ERROR_BY] = {.keys = cause_keys},
    [PROCESSES] = {.element = &process_element},
    [PROCESS] = {.keys = process_keys},
    [GROUPS_OF_PROCESS] = {.element = &rule_element},
    [ALSO] = {.element = &index_element},
    [USAGE] = {.keys = no_keys, .has_amounts = true},
    [MAPPINGS] = {.element = &mapping_element},
    [MAPPING] = {.keys = mapping_keys, .has_amounts = true},
};
