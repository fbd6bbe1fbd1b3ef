#include "live.h"

#include "load.h"
#include "memory.h"
#include "mirror.h"
#include "probe.h"
#include "rules.h"
#include "view.h"

#include <smaps/group_name.h>

#include <stdlib.h>
#include <string.h>

/* There is one interval for all readings: it is long, and may cost more. */
#define INTERVAL_NS (10 * UINT64_C(1000000000))
#define READ_BUDGET_PERCENT 10

/* A check of the wrong file, or of an Include that finds nothing, would look
 * like a good one. */
static void tell_if_default(const struct probe *p) {
  const char *config = probe_file_without_block(p);
  struct group_name shown;

  if (config)
    fprintf(stderr,
            "%s: there is no <Plugin smaps> in it or in the files that it "
            "includes: the rules are the defaults\n",
            escape_text(config, strlen(config), shown.text, GROUP_NAME_SIZE));
}

/* ---- mappings ---- */

static const char *copy_text(struct document *d, const char *text) {
  const char *copy = text ? pool_intern(&d->pool, text, strlen(text)) : NULL;

  if (text && !copy)
    memory_check(NULL);
  return copy;
}

static struct mapping copy_mapping(struct document *d,
                                   const struct mapping *from) {
  struct mapping m = *from;
  uint64_t values[AMOUNTS];

  m.name = copy_text(d, from->name);
  m.permissions = copy_text(d, from->permissions);
  for (unsigned i = 0; i < AMOUNTS; i++)
    values[i] = amounts_get(&from->amounts, (enum amount)i);
  amounts_pack(&m.amounts, &d->pool, values);
  return m;
}

static void copy_mappings(struct document *d, struct process *p,
                          const struct process *from) {
  struct mapping *all =
      pool_alloc(&d->pool, from->n_mappings * sizeof(*all) + 1);

  for (size_t i = 0; i < from->n_mappings; i++)
    all[i] = copy_mapping(d, &from->mappings[i]);
  p->mappings = all;
  p->n_mappings = from->n_mappings;
  p->has_mappings = true;
  p->mappings_from = copy_text(d, from->mappings_from);
}

/* It has none if they cannot be read: it has ended, or may not be seen. */
static void read_mappings(struct probe *probe, struct document *d,
                          struct process *p) {
  struct config_error ignored;
  struct document close_up;
  char *text;
  size_t len;

  if (probe_close_up(probe, (uint32_t)p->pid, &text, &len, &ignored) < 0)
    return;
  if (load_document_text(text, len, &close_up, &ignored) == 0) {
    for (size_t i = 0; i < close_up.n_processes; i++)
      if (close_up.processes[i].has_mappings)
        copy_mappings(d, p, &close_up.processes[i]);
    document_done(&close_up);
  }
  free(text);
}

/* Of the processes that are shown. */
static int read_all_mappings(const struct options *o, struct probe *probe,
                             struct document *d, struct config_error *reason) {
  struct filters filters = {.group = {.exact = NULL}};
  int rc = view_filters(&d, 1, o, &filters, reason);

  for (size_t i = 0; rc == 0 && i < d->n_processes; i++) {
    struct process *p = &d->processes[i];

    if (filters_take_process(&filters, p) && !process_is_in_parent(p))
      read_mappings(probe, d, p);
  }
  filters_done(&filters);
  return rc;
}

/* ---- a cycle ---- */

static int load_cycle(struct probe *p, struct document *ret,
                      struct config_error *reason) {
  char *text = NULL;
  size_t len = 0;
  int rc = probe_cycle(p, reason);

  if (rc == 0)
    rc = probe_snapshot(p, &text, &len, reason);
  if (rc < 0)
    return rc;
  rc = load_document_text(text, len, ret, reason);
  free(text);
  return rc;
}

int live_probe(const struct options *o, uint64_t interval_ns,
               const struct mirror *mirror, struct probe **ret,
               struct config_error *reason) {
  bool is_check = o->command == COMMAND_CHECK;
  double time;
  const struct probe_setup setup = {
      .proc_root = mirror ? mirror_root(mirror) : NULL,
      .host = mirror ? mirror_name(mirror) : NULL,
      .is_captured = mirror && mirror_is_captured(mirror, &time),
      .config = o->config,
      .needs_config = is_check,
      .interval_ns = interval_ns,
      .read_budget_percent = is_check ? 0 : READ_BUDGET_PERCENT};

  return probe_new(&setup, ret, reason);
}

static void tell_hints(const struct probe *p, const struct document *d) {
  bool *is_idle = rules_idle(d);

  probe_tell_hints(p, is_idle);
  free(is_idle);
}

static int load_probe(const struct options *o, const struct mirror *mirror,
                      struct document *ret, struct config_error *reason) {
  struct probe *p = NULL;
  double captured;
  int rc = live_probe(o, INTERVAL_NS, mirror, &p, reason);

  if (rc)
    return rc;
  if (o->command == COMMAND_CHECK)
    tell_if_default(p);
  rc = load_cycle(p, ret, reason);
  if (rc == 0 && o->command == COMMAND_CHECK)
    tell_hints(p, ret);
  if (rc == 0 && mirror && mirror_is_captured(mirror, &captured))
    ret->time = captured;
  if (rc == 0 && o->by_mapping)
    rc = read_all_mappings(o, p, ret, reason);
  probe_free(p);
  return rc;
}

static int open_source(const char *path, struct mirror **ret,
                       struct config_error *reason) {
  char shown[GROUP_NAME_SIZE];
  struct config_error why;
  int rc = mirror_open(path, ret, &why);

  if (rc < 0)
    config_error_format(reason, "-S \"%s\": %s",
                        escape_text(path, strlen(path), shown, sizeof(shown)),
                        why.text);
  return rc;
}

int live_load(const struct options *o, struct document *ret,
              struct config_error *reason) {
  struct mirror *mirror = NULL;
  int rc = o->source ? open_source(o->source, &mirror, reason) : 0;

  if (rc == 0)
    rc = load_probe(o, mirror, ret, reason);
  mirror_close(mirror);
  return rc;
}
