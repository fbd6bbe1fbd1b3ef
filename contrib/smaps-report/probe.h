/* SPDX-License-Identifier: MIT */
/*
 * The plugin in this program: its core, with the user's configuration, and
 * neither a daemon nor a file. Needs no collectd. Mistakes and warnings are
 * logged: see messages.h.
 */
#ifndef REPORT_PROBE_H
#define REPORT_PROBE_H

#include <smaps/config_error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe;

struct probe_setup {
  /* The file; NULL for the first that exists where collectd has it. */
  const char *config;
  bool is_check; /* of the configuration, without which it fails */
  /* A captured /proc: the directory that contrib/capture-proc makes. NULL: this
   * host. */
  const char *source;
  uint64_t interval_ns;
};

/*
 * Reads the configuration. Returns 0; PROBE_MISTAKES if there are mistakes in
 * it; or a negative errno; with the reason. Free *ret with probe_free(), which
 * accepts NULL.
 */
#define PROBE_MISTAKES 1
int probe_new(const struct probe_setup *setup, struct probe **ret,
              struct config_error *reason);
void probe_free(struct probe *p);

/* Where the daemon writes its states, by a configuration (as in probe_setup).
 */
struct probe_places {
  char *state_file, *state_history; /* NULL: not set */
};

/* Gets them. Returns 0, or as probe_new() with the reason; it is an error if
 * there is no configuration or StateHistory is not set. The caller frees both.
 */
int probe_find_places(const char *config, struct probe_places *ret,
                      struct config_error *reason);

/* Logs why a rule that took no process may be a mistake, see hints.h, and the
 * warning about unknown containers, if there is one. */
void probe_log_hints(const struct probe *p, const bool *is_idle,
                     const char *unknown);

/* Reads the processes, and makes the snapshot (smaps-snapshot(5)) of that.
 * Returns 0 and the text, which the caller frees, or a negative errno with the
 * reason. */
int probe_refresh(struct probe *p, char **ret_text, size_t *ret_len,
                  struct config_error *reason);

/* The same for one process of the last refresh, whose mappings are read for it.
 * It takes no longer than ReadTimeout, also where the process hangs. */
int probe_close_up(struct probe *p, uint32_t pid, char **ret_text,
                   size_t *ret_len, struct config_error *reason);

/* Sets the time, if what is read was captured then. */
void probe_set_time(const struct probe *p, double *ret);

#endif
