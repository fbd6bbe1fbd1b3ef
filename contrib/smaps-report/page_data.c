/* SPDX-License-Identifier: MIT */
#include "page_data.h"
#include "area.h"
#include "diff.h"
#include "explain.h"
#include "json_lines.h"
#include "memory.h"
#include "split.h"
#include "sum.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a command line: 5,000 command lines have to fit into a mail. */
#define COMMAND_MAX 200

struct page {
  struct document *document, *old;
  struct sum *members; /* of each group */
};

#define COLUMNS(key, ...)                                                      \
  do {                                                                         \
    static const char *const columns[] = {__VA_ARGS__};                        \
                                                                               \
    json_lines_names(j, key, columns, sizeof(columns) / sizeof(*columns));     \
  } while (0)

/* ---- the head ---- */

static void write_origin(struct json_lines *j, const struct document *d) {
  json_lines_text(j, "host", d->host);
  json_lines_real(j, "time", d->time);
  json_lines_text(j, "scope", document_scope(d));
}

static void write_trigger(struct json_lines *j, const struct trigger *t) {
  json_lines_begin(j, "trigger", '{');
  json_lines_text(j, "kind", t->kind);
  json_lines_text(j, "severity", t->severity);
  json_lines_real(j, "time", t->time);
  json_lines_text(j, "group", t->group);
  json_lines_text(j, "type", t->type);
  json_lines_text(j, "type_instance", t->type_instance);
  json_lines_text(j, "message", t->message);
  json_lines_end(j, '}');
}

static void write_head(struct json_lines *j, const struct document *d) {
  json_lines_text(j, "version", SMAPS_VERSION);
  write_origin(j, d);
  json_lines_text(j, "kernel", d->kernel);
  json_lines_text(j, "plugin_version", d->plugin_version);
  json_lines_real(j, "interval", d->interval);
  json_lines_whole(j, "mem_total", d->mem_total);
  json_lines_whole(j, "mem_available", d->mem_available);
  json_lines_whole(j, "left_out", d->left_out);
  json_lines_real(j, "last_known", document_last_known(d));
  write_trigger(j, &d->trigger);
}

/* ---- areas ---- */

static void write_areas(struct json_lines *j, struct document *d) {
  struct areas a;

  if (!d->has_host_memory)
    return;
  a = areas_collect(d);
  json_lines_begin(j, "areas", '[');
  for (size_t i = 0; i < a.n; i++) {
    json_lines_begin(j, NULL, '{');
    json_lines_text(j, "name", a.all[i].name);
    json_lines_text(j, "group", a.all[i].group);
    json_lines_whole(j, "used", a.all[i].used);
    json_lines_whole(j, "error", a.all[i].error);
    json_lines_end(j, '}');
  }
  json_lines_end(j, ']');
}

/* ---- groups ---- */

/* If a group's own PSS is unknown, the sum of its members with a known PSS is
 * shown as its least. */
static void fill_gaps(struct document *d, const struct sum *members,
                      struct group *g) {
  const struct group *made;

  if (amounts_get(&g->amounts, AMOUNT_PSS) != MISSING || !members->has_parts)
    return;
  made = sum_finish(members, MISSING, g->name, &d->pool);
  if (amounts_get(&made->amounts, AMOUNT_PSS) == MISSING)
    return;
  g->amounts = made->amounts;
  g->pss_error = made->pss_error;
  g->at_least = made->at_least | 1U << AMOUNT_PSS;
}

static void write_amount(struct json_lines *j, const struct amounts *a,
                         enum amount which) {
  json_lines_whole(j, amount_names[which], amounts_get(a, which));
}

static void write_usage(struct json_lines *j, const struct amounts *a,
                        const struct split *s) {
  write_amount(j, a, AMOUNT_PSS);
  write_amount(j, a, AMOUNT_USS);
  write_amount(j, a, AMOUNT_RSS);
  write_amount(j, a, AMOUNT_SWAP);
  json_lines_whole(j, "anon", s->anon);
  json_lines_whole(j, "file", s->file);
  json_lines_whole(j, "shmem", s->shmem);
  json_lines_whole(j, "private_anon", s->private_anon);
  json_lines_whole(j, "private_error", s->error);
}

/* "3.0 %: 2.0 % because ..., 1.0 % because ...". */
static void write_causes(struct json_lines *j, const struct group *g) {
  struct cause_part parts[ALL_CAUSES];
  struct text t = {0};
  size_t n = explain_causes(g, parts);

  if (n == 0)
    return;
  explain_add_percent(&t, g, g->pss_error);
  for (size_t i = 0; i < n; i++) {
    text_add(&t, i == 0 ? ": " : ", ");
    explain_add_percent(&t, g, parts[i].bytes);
    text_addf(&t, " because %s", parts[i].words);
  }
  json_lines_text(j, "causes", t.bytes);
  text_done(&t);
}

static void write_facts(struct json_lines *j, const struct group *g) {
  json_lines_whole(j, "processes", g->processes);
  json_lines_whole(j, "threads", g->threads);
  json_lines_whole(j, "unreadable", g->unreadable);
  json_lines_real(j, "coverage", g->coverage);
  json_lines_real(j, "age", g->age);
  json_lines_real(j, "uptime", g->uptime);
  json_lines_whole(j, "freed", g->freed);
  json_lines_whole(j, "freed_error", g->freed_error);
  json_lines_whole(j, "growth", g->growth);
  json_lines_real(j, "until_limit", g->until_limit);
  json_lines_real(j, "grows_since", g->grows_since);
  if (!g->cgroup_absence)
    json_lines_text(j, "cgroup", g->cgroup);
  json_lines_whole(j, "cgroup_memory", g->cgroup_memory);
  json_lines_whole(j, "cgroup_limit", g->cgroup_limit);
  json_lines_whole(j, "oom_kill", g->oom_kill);
}

static void write_group(const struct page *page, struct json_lines *j,
                        const struct group *original) {
  const struct group *old =
      page->old ? document_group(page->old, original->name) : NULL;
  struct group g = *original;
  struct split split;

  fill_gaps(page->document, &page->members[original - page->document->groups],
            &g);
  split = split_amounts(&g.amounts);
  json_lines_begin(j, NULL, '{');
  json_lines_text(j, "name", g.name);
  write_usage(j, &g.amounts, &split);
  json_lines_whole(j, "pss_error", g.pss_error);
  write_causes(j, &g);
  json_lines_whole(j, "at_least", (g.at_least >> AMOUNT_PSS) & 1 ? 1 : MISSING);
  if (old)
    json_lines_whole(j, "old_pss", amounts_get(&old->amounts, AMOUNT_PSS));
  else if (page->old)
    json_lines_whole(j, "is_new", 1);
  write_facts(j, &g);
  json_lines_end(j, '}');
}

static void write_groups(const struct page *page, struct json_lines *j) {
  const struct document *d = page->document;

  json_lines_begin(j, "groups", '[');
  for (size_t i = 0; i < d->n_groups; i++)
    write_group(page, j, &d->groups[i]);
  json_lines_end(j, ']');
}

/* ---- mappings ---- */

static void write_mapping(struct json_lines *j, const struct mapping *m,
                          uint64_t processes) {
  const struct amounts *a = &m->amounts;
  struct split s = split_mapping(m);

  json_lines_begin_row(j, NULL);
  json_lines_text(j, NULL, m->name);
  json_lines_whole(j, NULL, processes);
  json_lines_whole(j, NULL, amounts_get(a, AMOUNT_PSS));
  json_lines_whole(j, NULL, m->pss_error);
  json_lines_whole(j, NULL, s.anon);
  json_lines_whole(j, NULL, s.shmem);
  json_lines_whole(j, NULL, mapping_uss(m));
  json_lines_whole(j, NULL, amounts_get(a, AMOUNT_RSS));
  json_lines_whole(j, NULL, amounts_get(a, AMOUNT_SWAP));
  json_lines_whole(j, NULL, amounts_get(a, AMOUNT_SIZE));
  json_lines_text(j, NULL, mapping_rights(m));
  json_lines_end(j, ']');
}

static void write_mappings(struct json_lines *j, const struct mappings *all) {
  COLUMNS("mapping_columns", "name", "processes", "pss", "pss_error", "anon",
          "shmem", "uss", "rss", "swap", "size", "permissions");
  json_lines_begin(j, "mappings", '[');
  for (size_t i = 0; i < all->n; i++)
    write_mapping(j, &all->all[i], all->all[i].processes);
  json_lines_end(j, ']');
}

/* ---- processes ---- */

static void write_group_number(const struct document *d, struct json_lines *j,
                               const char *name) {
  const struct group *g = document_group(d, name);

  if (g)
    json_lines_whole(j, NULL, (uint64_t)(g - d->groups));
}

/* The main group comes first. */
static void write_groups_of(const struct document *d, struct json_lines *j,
                            const struct process *p) {
  const char *first = process_main_group(d, p);

  json_lines_begin(j, NULL, '[');
  if (first)
    write_group_number(d, j, first);
  for (size_t i = 0; first && i < p->n_groups; i++)
    if (strcmp(p->groups[i], first) != 0)
      write_group_number(d, j, p->groups[i]);
  json_lines_end(j, ']');
}

static void write_mappings_of(struct json_lines *j, const struct process *p) {
  if (!p->has_mappings)
    return;
  json_lines_begin(j, NULL, '[');
  for (size_t i = 0; i < p->n_mappings; i++)
    write_mapping(j, &p->mappings[i], MISSING);
  json_lines_end(j, ']');
}

static void write_process(const struct page *page, struct json_lines *j,
                          const struct process *p) {
  struct split s = split_process(p);

  json_lines_begin_row(j, NULL);
  json_lines_whole(j, NULL, p->pid);
  json_lines_text(j, NULL, p->title);
  json_lines_text_cut(j, NULL, process_command(p), COMMAND_MAX);
  if (p->user)
    json_lines_text(j, NULL, p->user);
  else
    json_lines_whole(j, NULL, p->uid);
  write_groups_of(page->document, j, p);
  json_lines_whole(j, NULL, p->threads);
  json_lines_real(j, NULL, p->uptime);
  json_lines_text(j, NULL, p->source);
  json_lines_real(j, NULL, p->age);
  write_usage(j, &p->amounts, &s);
  json_lines_whole(j, NULL, p->pss_error);
  write_mappings_of(j, p);
  json_lines_end(j, ']');
  output_check(j->out);
}

static void write_processes(const struct page *page, struct json_lines *j) {
  const struct document *d = page->document;

  COLUMNS("process_columns", "pid", "comm", "command", "user", "groups",
          "threads", "uptime", "source", "age", "pss", "uss", "rss", "swap",
          "anon", "file", "shmem", "private_anon", "private_error", "pss_error",
          "mappings");
  json_lines_begin(j, "processes", '[');
  for (size_t i = 0; i < d->n_processes; i++)
    write_process(page, j, &d->processes[i]);
  json_lines_end(j, ']');
}

/* ---- changes ---- */

static void write_change(const struct page *page, struct json_lines *j,
                         const struct change *c) {
  const struct process *was = c->old_process, *is = c->new_process;

  json_lines_begin_row(j, NULL);
  json_lines_text(j, NULL, diff_how_names[c->how]);
  json_lines_text(j, NULL, c->name);
  json_lines_whole(j, NULL, c->old);
  json_lines_whole(j, NULL, c->new);
  json_lines_whole(j, NULL, was ? was->pid : MISSING);
  json_lines_whole(j, NULL, is ? is->pid : MISSING);
  json_lines_text(j, NULL,
                  is    ? process_main_group(page->document, is)
                  : was ? process_main_group(page->old, was)
                        : NULL);
  json_lines_end(j, ']');
}

static void write_changes(const struct page *page, struct json_lines *j,
                          const char *key, const struct changes *changes) {
  json_lines_begin(j, key, '[');
  for (size_t i = 0; i < changes->n; i++)
    write_change(page, j, &changes->all[i]);
  json_lines_end(j, ']');
}

static void write_diff(const struct page *page, struct json_lines *j) {
  struct diff diff;

  if (!page->old)
    return;
  diff_make(page->old, page->document, AMOUNT_PSS, NULL, &diff);
  json_lines_begin(j, "old", '{');
  write_origin(j, page->old);
  COLUMNS("change_columns", "how", "name", "old", "new", "old_pid", "new_pid",
          "group");
  write_changes(page, j, "groups", &diff.groups);
  if (diff.has_processes)
    write_changes(page, j, "processes", &diff.processes);
  if (diff.has_mappings)
    write_changes(page, j, "mappings", &diff.mappings);
  json_lines_end(j, '}');
  diff_done(&diff);
}

void page_data_write(struct document *d, struct document *old, FILE *out) {
  const struct filters none = {.group = {.exact = NULL}};
  struct page page = {
      .document = d, .old = old, .members = sum_groups(d, &none)};
  struct json_lines json = {.out = out, .is_in_markup = true};
  struct mappings all = {.n = 0};

  if (mappings_are_known(d, &none))
    all = mappings_collect(d, &none);
  json_lines_begin(&json, NULL, '{');
  write_head(&json, d);
  write_areas(&json, d);
  write_groups(&page, &json);
  write_mappings(&json, &all);
  write_processes(&page, &json);
  write_diff(&page, &json);
  json_lines_end(&json, '}');
  free(page.members);
}

void page_write(struct document *d, struct document *old, FILE *out) {
  fwrite(page_head, 1, page_head_size, out);
  output_check(out);
  page_data_write(d, old, out);
  fwrite(page_tail, 1, page_tail_size, out);
  output_check(out);
}
