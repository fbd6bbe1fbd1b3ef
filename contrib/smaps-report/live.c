/* SPDX-License-Identifier: MIT */
#include "live.h"
#include "containers.h"
#include "explain.h"
#include "load.h"
#include "view.h"

#include <stdlib.h>

/* All processes are read in one interval, so it is long. */
#define INTERVAL_NS (10 * UINT64_C(1000000000))

static int load(char *text, size_t len, struct pool *pool, struct document *ret,
                struct config_error *reason) {
  int rc = load_document_text(text, len, pool, ret, reason);

  free(text);
  return rc;
}

int live_refresh(struct probe *p, struct document *ret,
                 struct config_error *reason) {
  char *text;
  size_t len;
  int rc = probe_refresh(p, &text, &len, reason);

  if (rc == 0)
    rc = load(text, len, NULL, ret, reason);
  if (rc == 0)
    probe_set_time(p, &ret->time);
  return rc;
}

int live_close_up(struct probe *p, uint64_t pid, struct pool *pool,
                  struct document *ret, struct config_error *reason) {
  char *text;
  size_t len;
  int rc = probe_close_up(p, (uint32_t)pid, &text, &len, reason);

  return rc < 0 ? rc : load(text, len, pool, ret, reason);
}

/* It gets no mappings if it has ended, or the kernel refuses to show them. */
static void read_mappings(struct probe *probe, struct document *d,
                          struct process *p) {
  struct config_error ignored;
  struct document close_up;

  if (live_close_up(probe, p->pid, &d->pool, &close_up, &ignored) < 0)
    return;
  for (size_t i = 0; i < close_up.n_processes; i++) {
    const struct process *from = &close_up.processes[i];

    if (!from->has_mappings)
      continue;
    p->mappings = from->mappings;
    p->n_mappings = from->n_mappings;
    p->has_mappings = true;
    p->mappings_from = from->mappings_from;
  }
  document_done(&close_up);
}

/* Reads the mappings of the processes that are shown. */
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

static void log_hints(const struct probe *p, const struct document *d) {
  bool *is_idle = explain_idle_rules(d);
  char *unknown = containers_unknown(d);

  probe_log_hints(p, is_idle, unknown);
  free(unknown);
  free(is_idle);
}

int live_load(const struct options *o, struct document *ret,
              struct config_error *reason) {
  const struct probe_setup setup = {.config = o->config,
                                    .is_check = o->command == COMMAND_CHECK,
                                    .source = o->source,
                                    .interval_ns = INTERVAL_NS};
  struct probe *p;
  int rc = probe_new(&setup, &p, reason);

  if (rc)
    return rc;
  rc = live_refresh(p, ret, reason);
  if (rc == 0 && setup.is_check)
    log_hints(p, ret);
  if (rc == 0 && options_shows(o, ROW_MAPPING))
    rc = read_all_mappings(o, p, ret, reason);
  probe_free(p);
  return rc;
}
