/* SPDX-License-Identifier: MIT */
#include "schema.h"

#include "document.h"

#include <math.h>
#include <string.h>

const char *const schema_type_names[] = {
    [TEXT] = "a string",
    [WHOLE] = "a whole number of 0 or more",
    [AMOUNT] = "a whole number of 0 or more",
    [SECONDS] = "a number",
    [FLAG] = "true or false",
    [OBJECT] = "an object",
    [ARRAY] = "an array",
};

/* Versions of clang-format do not agree about macros that are in braces. */
/* clang-format off */
#define AT(type_, name_, of, field_)                                           \
  { .name = name_, .offset = offsetof(struct of, field_), .type = type_ }
#define IN(type_, name_, of) AT(type_, #name_, of, name_)
#define SHORT(name_, of)                                                       \
  {                                                                            \
    .name = #name_, .offset = offsetof(struct of, name_), .max = UINT32_MAX,   \
    .type = WHOLE                                                              \
  }
#define AMOUNT_KEY(name_, key_)                                                \
  { .name = #key_, .offset = AMOUNT_##name_, .type = AMOUNT },
#define FIELD_KEY(name_, key_, field_) AMOUNT_KEY(name_, key_)
#define AMOUNT_KEYS AMOUNT_TABLE(FIELD_KEY, AMOUNT_KEY)
#define PART_KEYS(name_, key_)                                                 \
  AT(WHOLE, #key_, host_memory, parts[HOST_##name_]),                          \
  AT(WHOLE, #key_ "_error", host_memory, errors[HOST_##name_]),
#define CAUSE_KEY(name_, key_, words_)                                         \
  AT(WHOLE, #key_, causes, bytes[CAUSE_##name_]),
#define ATTRIBUTE_KEY(name_, key_, selector_) IN(TEXT, key_, process),
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
    IN(SECONDS, state_interval, document),
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
    HOST_PART_TABLE(PART_KEYS) IN(WHOLE, outside, host_memory),
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
    IN(WHOLE, freed, group),
    IN(WHOLE, freed_error, group),
    OPEN(OBJECT, pss_error_by, PSS_ERROR_BY),
    IN(TEXT, cgroup, group),
    IN(TEXT, cgroup_absence, group),
    IN(WHOLE, cgroup_memory, group),
    IN(WHOLE, cgroup_working_set, group),
    IN(WHOLE, cgroup_limit, group),
    IN(WHOLE, cgroup_file, group),
    IN(WHOLE, cgroup_kernel, group),
    IN(WHOLE, oom_kill, group),
    IN(WHOLE, oomd_kill, group),
    IN(WHOLE, cgroup_peak, group),
    IN(WHOLE, cgroup_peak_ever, group),
    IN(SECONDS, pressure_some, group),
    IN(SECONDS, pressure_full, group),
    IN(WHOLE, events_high, group),
    IN(WHOLE, events_max, group),
    IN(WHOLE, growth, group),
    IN(SECONDS, until_limit, group),
    IN(SECONDS, grows_since, group),
    IN(SECONDS, last_known, group),
    OPEN(OBJECT, usage, USAGE),
    {0},
};

static const struct key cause_keys[] = {CAUSE_TABLE(CAUSE_KEY){0}};

static const struct key process_keys[] = {
    SHORT(pid, process),
    IN(WHOLE, starttime, process),
    SHORT(ppid, process),
    ATTRIBUTE_TABLE(ATTRIBUTE_KEY, ATTRIBUTE_KEY) SHORT(uid, process),
    OPEN(ARRAY, groups, GROUPS_OF_PROCESS),
    SHORT(rule, process),
    OPEN(ARRAY, also, ALSO),
    AT(FLAG, "inherited", process, is_inherited),
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
    AMOUNT_KEYS IN(TEXT, name, mapping),
    IN(TEXT, permissions, mapping),
    IN(WHOLE, vmas, mapping),
    IN(WHOLE, processes, mapping),
    IN(WHOLE, pages_sampled, mapping),
    IN(WHOLE, pss_error, mapping),
    {0},
};

static const struct key usage_keys[] = {AMOUNT_KEYS{0}};

/* The elements of arrays. */
static const struct key rule_element = {.type = TEXT};
static const struct key group_element = {.type = OBJECT, .place = GROUP};
static const struct key process_element = {.type = OBJECT, .place = PROCESS};
static const struct key mapping_element = {.type = OBJECT, .place = MAPPING};
static const struct key index_element = {.type = WHOLE, .max = UINT32_MAX};
static const struct key top = {.type = OBJECT, .place = DOCUMENT};

#define OBJECT_OF(keys_, struct_)                                              \
  { .keys = keys_, .size = sizeof(struct struct_) }
#define ARRAY_OF(element_)                                                     \
  { .element = &element_ }
const struct place_schema schema_places[PLACES] = {
    [BEFORE] = ARRAY_OF(top),
    [DOCUMENT] = OBJECT_OF(document_keys, document),
    [TRIGGER] = OBJECT_OF(trigger_keys, trigger),
    [HOST_MEMORY] = OBJECT_OF(host_memory_keys, host_memory),
    [RULES] = ARRAY_OF(rule_element),
    [GROUPS] = ARRAY_OF(group_element),
    [GROUP] = OBJECT_OF(group_keys, group),
    [PSS_ERROR_BY] = OBJECT_OF(cause_keys, causes),
    [PROCESSES] = ARRAY_OF(process_element),
    [PROCESS] = OBJECT_OF(process_keys, process),
    [GROUPS_OF_PROCESS] = ARRAY_OF(rule_element),
    [ALSO] = ARRAY_OF(index_element),
    [USAGE] = {.keys = usage_keys},
    [MAPPINGS] = ARRAY_OF(mapping_element),
    [MAPPING] = OBJECT_OF(mapping_keys, mapping),
};

static bool is_name(struct span text, const char *name) {
  return *name == *text.text && strncmp(name, text.text, text.len) == 0 &&
         name[text.len] == '\0';
}

const struct key *schema_find(enum place place, struct span name) {
  if (name.len == 0 || memchr(name.text, '\0', name.len))
    return NULL;
  for (const struct key *key = schema_places[place].keys; key->name; key++)
    if (is_name(name, key->name))
      return key;
  return NULL;
}

void schema_forget(enum place place, void *ret) {
  memset(ret, 0, schema_places[place].size);
  for (const struct key *key = schema_places[place].keys; key->name; key++) {
    void *field;

    if (key->offset == NO_OFFSET)
      continue;
    field = (char *)ret + key->offset;
    if (key->type == WHOLE)
      *(uint64_t *)field = MISSING;
    if (key->type == SECONDS)
      *(double *)field = (double)NAN;
  }
}
