/* SPDX-License-Identifier: MIT */
#include "snapshot/snapshot.h"

#include "cgroup/cgroup_tree.h"
#include "measure/aggregate.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/arith.h"

#define FORMAT "smaps-snapshot"
#define FORMAT_VERSION 2

static double seconds(uint64_t ns) { return (double)ns / 1e9; }

/* --- the head --- */

static const char *severity_name(enum severity severity) {
  if (severity == SEVERITY_OKAY)
    return "okay";
  return severity == SEVERITY_WARNING ? "warning" : "failure";
}

static void add_trigger(struct json *j, const struct alarm *alarm) {
  json_object(j, "trigger");
  json_string(j, "kind", alarm ? "notification" : "interval");
  if (alarm) {
    json_string(j, "severity", severity_name(alarm->severity));
    json_decimal(j, "time", seconds(alarm->time_ns));
    json_string(j, "group", alarm->group);
    json_string(j, "type", *alarm->type ? alarm->type : NULL);
    json_string(j, "type_instance",
                *alarm->type_instance ? alarm->type_instance : NULL);
    json_string(j, "message", alarm->message);
  }
  json_end_object(j);
}

static void add_head(struct json *j, const struct scene *s) {
  struct utsname system;

  json_string(j, "format", FORMAT);
  json_integer(j, "version", FORMAT_VERSION);
  json_string(j, "plugin_version", SMAPS_VERSION);
  json_string(j, "host", s->settings->host);
  json_decimal(j, "time", seconds(s->time_ns));
  json_decimal(j, "interval", seconds(s->settings->interval_ns));
  if (uname(&system) == 0)
    json_string(j, "kernel", system.release);
  json_integer(j, "page_size", s->cycle->page_size);
  if (s->meminfo.mem_total_bytes)
    json_integer(j, "mem_total", s->meminfo.mem_total_bytes);
  if (s->meminfo.known & MEMINFO_AVAILABLE)
    json_integer(j, "mem_available", s->meminfo.mem_available_bytes);
}

static void add_rules(struct json *j, const struct settings *settings) {
  json_array(j, "rules");
  for (size_t i = 0; i < settings->n_rules; i++)
    json_string(j, NULL,
                settings->rules[i].text ? settings->rules[i].text : "");
  json_string(j, NULL, settings->other.text);
  json_end_array(j);
}

/* --- amounts --- */

#define WRITE(name, key) json_integer(j, #key, u->key);
static void add_usage(struct json *j, const struct scene *s,
                      const struct usage *u) {
  unsigned cursor = 0;
  const char *name;
  uint64_t bytes;

  json_object(j, "usage");
  while (metric_next_amount(u, s->cycle->kernel_fields, &cursor, &name, &bytes))
    json_integer(j, name, bytes);
  if (!u->unknown && !u->is_unseen) {
    AMOUNTS_OF_STATM(WRITE)
    json_integer(j, "kernel_stack", u->kernel_stack);
    if (usage_has_page_tables(u))
      json_integer(j, "page_tables", u->page_tables);
  }
  json_end_object(j);
}

static void add_uptime(struct json *j, const struct scene *s,
                       const struct usage *u) {
  if (s->cycle->uptime_ns)
    json_decimal(j, "uptime", seconds(u->uptime_ns));
}

/* Parts of less than a byte are left out. */
static void add_causes(struct json *j, const struct group *g) {
  double error = (double)usage_pss_error(&g->usage), parts[ALL_CAUSES];

  if (!usage_is_known(&g->usage) || error <= 0)
    return;
  usage_pss_parts(&g->usage, g->pss_causes, parts);
  json_object(j, "pss_error_by");
  for (int k = 0; k < ALL_CAUSES; k++)
    if (parts[k] >= 1)
      json_integer(j, cause_name((enum cause)k), amount_from(parts[k]));
  json_end_object(j);
}

#define ABSENCE(name, key, words) [CGROUP_##name] = #key,
static const char *const absences[] = {[CGROUP_PRESENT] = NULL,
                                       ABSENCE_TABLE(ABSENCE)};

/* Writes one if it is known; some are only if a group reports them. */
static void add_number(struct json *j, const struct cgroup_memory *m,
                       unsigned field, const char *key, uint64_t value) {
  if (cgroup_memory_has(m, field))
    json_integer(j, key, value);
}

static void add_cgroup_memory(struct json *j, const struct scene *s,
                              const struct cgroup_memory *m) {
  uint64_t limit;

  add_number(j, m, CGROUP_HAS_BYTES, "cgroup_memory", m->bytes);
  if (cgroup_memory_has(m, CGROUP_HAS_BYTES | CGROUP_HAS_FILE))
    json_integer(j, "cgroup_working_set", cgroup_memory_working_set(m));
  if (cgroup_memory_limit(m, s->meminfo.mem_total_bytes, &limit))
    json_integer(j, "cgroup_limit", limit);
  add_number(j, m, CGROUP_HAS_FILE, "cgroup_file", m->file);
  add_number(j, m, CGROUP_HAS_KERNEL, "cgroup_kernel", m->kernel);
  add_number(j, m, CGROUP_HAS_KILLS, "oom_kill", m->kills);
  add_number(j, m, CGROUP_HAS_OOMD_KILLS, "oomd_kill", m->oomd_kills);
  add_number(j, m, CGROUP_HAS_PEAK, "cgroup_peak", m->peak);
  add_number(j, m, CGROUP_HAS_PEAK_EVER, "cgroup_peak_ever", m->peak_ever);
  add_number(j, m, CGROUP_HAS_EVENTS_HIGH, "events_high", m->events_high);
  add_number(j, m, CGROUP_HAS_EVENTS_MAX, "events_max", m->events_max);
  if (!cgroup_memory_has(m, CGROUP_HAS_PRESSURE))
    return;
  json_decimal(j, "pressure_some", m->pressure_some);
  json_decimal(j, "pressure_full", m->pressure_full);
}

/* Writes the group's control group; or the nearest one, and why it is not the
 * group's. */
static void add_cgroup(struct json *j, const struct scene *s,
                       const struct group *g) {
  if (g->cgroup)
    json_string(j, "cgroup", g->cgroup->path);
  else if (g->cgroup_node)
    json_string(j, "cgroup", g->cgroup_node->path);
  json_string(j, "cgroup_absence", absences[g->cgroup_absence]);
  if (g->cgroup)
    add_cgroup_memory(j, s, g->cgroup);
}

/* The beginning of the growth is shown by the clock that people use. */
static void add_growth(struct json *j, const struct scene *s,
                       const struct growth *growth) {
  uint64_t since_ns;

  if (!growth || isnan(growth->bytes_per_second))
    return;
  since_ns = growth_since_ns(growth);
  json_integer(j, "growth", amount_from(growth->bytes_per_second));
  if (since_ns > 0)
    json_decimal(j, "grows_since",
                 seconds(s->time_ns) - seconds(s->cycle->now_ns - since_ns));
  json_decimal(j, "until_limit", growth_seconds_until(growth));
}

static void add_members(struct json *j, const struct scene *s,
                        const struct usage *u) {
  json_integer(j, "processes", u->processes);
  json_integer(j, "threads", u->threads);
  json_integer(j, "unreadable", u->unreadable);
  add_uptime(j, s, u);
  json_decimal(j, "coverage", usage_coverage_percent(u));
  json_decimal(j, "age", usage_age_seconds(u));
  if (!usage_is_known(u))
    return;
  json_integer(j, "pss_error", usage_pss_error(u));
  json_integer(j, "uss_error", usage_uss_error(u));
  json_integer(j, "freed", u->freed.bytes);
  json_integer(j, "freed_error", usage_freed_error(u));
}

/* last: the state of a group that has ended. Values of its control group, such
 * as kills, are of this cycle all the same. */
static void add_group(struct json *j, const struct scene *s,
                      const struct group *g, const struct last_state *last) {
  const struct usage *u = last ? &last->usage : &g->usage;

  json_object(j, NULL);
  json_string(j, "name", g->name);
  json_integer(j, "rule", g->rule);
  if (last)
    json_decimal(j, "last_known", seconds(last->time_ns));
  if (!u->is_unseen)
    add_members(j, s, u);
  if (!last && !u->is_unseen)
    add_causes(j, g);
  add_cgroup(j, s, g);
  if (!last)
    add_growth(j, s, g->growth);
  add_usage(j, s, u);
  json_end_object(j);
}

static void add_groups(struct json *j, const struct scene *s,
                       const struct last_state *last) {
  json_array(j, "groups");
  for (size_t i = 0; i < s->groups->n; i++) {
    const struct group *g = s->groups->groups[i];
    bool has_ended = last && last->group == g;

    if (has_ended || group_is_reported(g))
      add_group(j, s, g, has_ended ? last : NULL);
  }
  json_end_array(j);
}

static void add_host(struct json *j, const struct host_account *host) {
  struct host_value value;
  unsigned cursor = 0;

  json_object(j, "host_memory");
  while (host_next(host, &cursor, &value))
    json_integer(j, value.name, value.bytes);
  json_end_object(j);
}

void snapshot_begin(struct json *j, const struct scene *s,
                    const struct alarm *alarm, const struct last_state *last) {
  json_object(j, NULL);
  add_head(j, s);
  add_trigger(j, alarm);
  add_rules(j, s->settings);
  if (s->host->known)
    add_host(j, s->host);
  add_groups(j, s, last);
  json_array(j, "processes");
}

/* --- mappings --- */

static void add_permissions(struct json *j, unsigned permissions) {
  char text[6] = "---";

  for (size_t n = 0; n < 3; n++)
    if (permissions & 1u << n)
      text[n] = "rwx"[n];
  if (permissions & MAPPING_PRIVATE)
    strcat(text, "p");
  if (permissions & MAPPING_SHARED)
    strcat(text, "s");
  json_string(j, "permissions", text);
}

static void add_mapping(struct json *j, const struct mapping *m,
                        bool has_processes) {
  static const struct {
    const char *key;
    enum rollup_field field;
  } fields[] = {{"rss", ROLLUP_RSS},
                {"pss", ROLLUP_PSS},
                {"shared_clean", ROLLUP_SHARED_CLEAN},
                {"shared_dirty", ROLLUP_SHARED_DIRTY},
                {"private_clean", ROLLUP_PRIVATE_CLEAN},
                {"private_dirty", ROLLUP_PRIVATE_DIRTY},
                {"anonymous", ROLLUP_ANONYMOUS},
                {"swap", ROLLUP_SWAP_PSS},
                {"swap_total", ROLLUP_SWAP}};

  json_object(j, NULL);
  if (m->name)
    json_text(j, "name", m->name, m->name_len);
  add_permissions(j, m->permissions);
  json_integer(j, "vmas", m->vmas);
  if (has_processes && m->name)
    json_integer(j, "processes", m->processes);
  json_integer(j, "size", m->size);
  for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
    if (rollup_has(&m->sum, fields[i].field))
      json_integer(j, fields[i].key, m->sum.bytes[fields[i].field]);
  if (m->is_sampled)
    json_integer(j, "pages_sampled", m->pages_sampled);
  if (m->is_sampled && rollup_has(&m->sum, ROLLUP_PSS))
    json_integer(j, "pss_error", m->pss_error);
  json_end_object(j);
}

static void add_mappings(struct json *j, const struct scene *s,
                         struct mapping_table *table, bool has_processes) {
  const struct mapping *mappings, *rest;
  size_t n;

  mapping_table_rank(table, (size_t)s->settings->capture.top_mappings,
                     &mappings, &n);
  rest = mapping_table_rest(table);
  json_array(j, "mappings");
  for (size_t i = 0; i < n; i++)
    add_mapping(j, &mappings[i], has_processes);
  if (rest)
    add_mapping(j, rest, has_processes);
  json_end_array(j);
}

/* --- processes --- */

#define KEY(name, key, selector) #key,
static void add_names(struct json *j,
                      const struct stored_attributes *attributes,
                      enum choice command_lines) {
  static const char *const keys[] = {ATTRIBUTE_TABLE(KEY, KEY)};
  struct attributes id = attributes_get(attributes);

  for (int a = 0; a < ATTRIBUTES; a++)
    if (a != ATTRIBUTE_COMMAND_LINE || command_lines == CHOICE_YES)
      json_string(j, keys[a], id.value[a]);
  if (id.value[ATTRIBUTE_USER])
    json_integer(j, "uid", id.uid);
}

static void add_rule(struct json *j, const struct process *p) {
  const struct explanation *why = p->membership.why;

  json_array(j, "groups");
  for (size_t i = 0; i < p->n_groups; i++)
    json_string(j, NULL, p->groups[i]->name);
  json_end_array(j);
  if (why && why->rule != NO_RULE)
    json_integer(j, "rule", why->rule);
  json_array(j, "also");
  for (size_t i = 0; why && i < why->n_also; i++)
    json_integer(j, NULL, why->also[i]);
  json_end_array(j);
  if (why && why->is_inherited)
    json_true(j, "inherited");
}

#define SOURCE(name, key, words) [SOURCE_##name] = #key,
static const char *const sources[] = {[SOURCE_NONE] = "unreadable",
                                      SOURCE_TABLE(SOURCE)};

#define DEFERRAL(name, key, words) [DEFERRED_##name] = #key,
static const char *const deferrals[] = {[DEFERRED_NOT] = NULL,
                                        DEFERRAL_TABLE(DEFERRAL)};

/* The source and the errors of the amounts, and why the rollup was not read. */
static void add_quality(struct json *j, const struct scene *s,
                        const struct process *p, const struct estimate *est,
                        const struct usage *u) {
  uint64_t read_cost_ns = walk_time_known_ns(s->cycle, p);

  json_string(j, "source", sources[est->source]);
  if (est->source == SOURCE_ESTIMATED)
    json_decimal(j, "age", seconds(est->age_ns));
  if (est->pages_sampled)
    json_integer(j, "pages_sampled", est->pages_sampled);
  if (est->source != SOURCE_READ && estimate_has_rollup(est)) {
    json_integer(j, "pss_error", usage_pss_error(u));
    json_integer(j, "uss_error", usage_uss_error(u));
  }
  json_string(j, "deferred", deferrals[est->deferral]);
  if (read_cost_ns)
    json_decimal(j, "read_cost", seconds(read_cost_ns));
}

static void add_close_up(struct json *j, const struct scene *s,
                         struct read_job *close_up) {
  json_string(j, "mappings_from",
              close_up->kind == READ_MAPPINGS ? "smaps"
              : close_up->kind == READ_MAPS   ? "maps"
                                              : "samples");
  add_mappings(j, s, &close_up->mappings.table, false);
}

/* Uses the sums of smaps instead of the sums of the cycle. */
static void apply_close_up(const struct read_job *close_up,
                           struct estimate *est) {
  if (close_up->kind == READ_MAPS)
    est->deferral = DEFERRED_MAX_LOCK_HOLD;
  if (close_up->kind != READ_MAPPINGS)
    return;
  est->source = SOURCE_READ;
  est->error = (struct audit_errors){.pss = {0}};
  est->pages_sampled = 0;
  est->rollup = close_up->mappings.sum;
}

void snapshot_process(struct json *j, const struct scene *s,
                      const struct process *p, enum choice command_lines,
                      struct read_job *close_up) {
  struct estimate est;
  struct usage u;
  bool has_stat = p->threads > 0; /* it was read at least once */

  aggregate_estimate(s->aggregate, p, &est);
  if (close_up)
    apply_close_up(close_up, &est);
  aggregate_one(s->aggregate, p, &est, &u);
  json_object(j, NULL);
  json_integer(j, "pid", p->pid);
  if (has_stat)
    json_integer(j, "starttime", p->starttime_ticks);
  if (p->parent_pid)
    json_integer(j, "ppid", p->parent_pid);
  add_names(j, &p->attributes, command_lines);
  add_rule(j, p);
  if (has_stat) {
    json_integer(j, "threads", p->threads);
    add_uptime(j, s, &u);
  }
  add_quality(j, s, p, &est, &u);
  add_usage(j, s, &u);
  if (close_up)
    add_close_up(j, s, close_up);
  json_end_object(j);
}

/* The rule of its group may be one with Continue. */
static void add_ended_rule(struct json *j, const struct scene *s,
                           const struct group *g) {
  const struct settings *settings = s->settings;
  bool is_view =
      g->rule < settings->n_rules && settings->rules[g->rule].is_view;

  json_array(j, "groups");
  json_string(j, NULL, g->name);
  json_end_array(j);
  if (!is_view)
    json_integer(j, "rule", g->rule);
  json_array(j, "also");
  if (is_view)
    json_integer(j, NULL, g->rule);
  json_end_array(j);
}

void snapshot_ended(struct json *j, const struct scene *s,
                    const struct last_state *last,
                    const struct last_member *m) {
  json_object(j, NULL);
  json_integer(j, "pid", m->pid);
  json_integer(j, "starttime", m->starttime_ticks);
  if (m->parent_pid)
    json_integer(j, "ppid", m->parent_pid);
  add_names(j, &m->attributes, s->settings->capture.command_lines);
  add_ended_rule(j, s, last->group);
  json_integer(j, "threads", m->usage.threads);
  add_uptime(j, s, &m->usage);
  json_string(j, "source", "ended");
  if (m->usage.rolled_up > 0) {
    json_integer(j, "pss_error", usage_pss_error(&m->usage));
    json_integer(j, "uss_error", usage_uss_error(&m->usage));
  }
  add_usage(j, s, &m->usage);
  json_end_object(j);
}

void snapshot_end(struct json *j, const struct scene *s, uint64_t left_out,
                  struct mapping_table *all) {
  json_end_array(j);
  if (all) {
    json_integer(j, "left_out", left_out);
    add_mappings(j, s, all, true);
  }
  json_end_object(j);
}

int snapshot_make(const struct scene *s, const struct resume_owners *from,
                  struct document *ret) {
  struct json json = {.max = JSON_MAX};
  size_t len;
  int rc;

  snapshot_begin(&json, s, NULL, NULL);
  for (size_t i = 0; i < s->processes->n; i++) {
    const struct process *p = s->processes->processes[i];

    if (p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN)
      snapshot_process(&json, s, p, s->settings->command_lines, NULL);
  }
  json_end_array(&json);
  len = json.len;
  if (from && s->settings->state_file) {
    json_decimal(&json, "state_interval",
                 seconds(s->settings->state_interval_ns));
    resume_write(&json, from);
  }
  ret->resume_at = json.len > len ? len : 0;
  json_end_object(&json);
  rc = json_finish(&json, &ret->text, &ret->len);
  json_done(&json);
  return rc;
}
