/* SPDX-License-Identifier: MIT */
/* Replaces the part of collectd's daemon that the plugin calls, and records the
 * calls. */
#ifndef SMAPS_TESTS_STUB_DAEMON_H
#define SMAPS_TESTS_STUB_DAEMON_H

#include <daemon/collectd.h>
#include <daemon/plugin.h>

#define STUB_VALUES_MAX 4096
#define STUB_LOGS_MAX 64
#define STUB_NOTIFICATIONS_MAX 16

struct stub_value {
  char identifier[5 * DATA_MAX_NAME_LEN]; /* plugin-instance/type-instance */
  double values[2];
  size_t n;
  cdtime_t time;
};

struct stub_daemon {
  /* The callbacks that the plugin has registered. */
  int (*config)(oconfig_item_t *);
  int (*init)(void);
  int (*shutdown)(void);
  plugin_read_cb read;
  plugin_notification_cb notification; /* NULL where there is none */
  /* Lines that it has logged since stub_clear(). */
  char logs[STUB_LOGS_MAX][1024];
  int levels[STUB_LOGS_MAX];
  size_t n_logs;
  /* Dispatched by it, without their meta data: of these metas has the first,
   * if that is a string, and headers has all as lines of "Name: value". */
  notification_t notifications[STUB_NOTIFICATIONS_MAX];
  char metas[STUB_NOTIFICATIONS_MAX][PATH_MAX];
  char headers[STUB_NOTIFICATIONS_MAX][2 * PATH_MAX];
  size_t n_notifications;
  /* How many of them came on a thread that does not know its plugin. */
  size_t n_without_context;
  /* The last LOG_INFO, which does not count above. */
  char info[1024];
  int n_infos;
  cdtime_t now; /* what cdtime() says */
  /* Values that it has dispatched since stub_clear(). */
  size_t n_values;
  struct stub_value values[STUB_VALUES_MAX];
};

extern struct stub_daemon stub;

/* Clears the stub, at a time of its own, and loads the plugin by its
 * module_register(). */
void stub_begin(void (*load)(void));

/* Forgets values, log lines and notifications. */
void stub_clear(void);

/* n_logs, while another thread may be logging. */
size_t stub_logs(void);

/* Finds a dispatched value by its identifier, or NULL. */
const struct stub_value *stub_find(const char *identifier);

#endif
