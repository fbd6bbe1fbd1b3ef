/* SPDX-License-Identifier: MIT */
#include "stub_daemon.h"

#include <daemon/utils_cache.h>

#include <pthread.h>

struct stub_daemon stub;

static char host[] = "stub";
char *hostname_g = host;

/* Snapshots are announced on a thread of their own. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The daemon has one in the threads that it starts, and in no other. */
static _Thread_local plugin_ctx_t context;

/* Tests that begin thousands of times have no time for megabytes of values. */
void stub_begin(void (*load)(void)) {
  memset(&stub, 0, offsetof(struct stub_daemon, values));
  stub.now = TIME_T_TO_CDTIME_T(1000000);
  load();
}

void stub_clear(void) {
  stub.n_values = 0;
  stub.n_logs = 0;
  stub.n_notifications = 0;
  stub.n_without_context = 0;
  stub.n_infos = 0;
}

size_t stub_logs(void) {
  size_t n;

  pthread_mutex_lock(&mutex);
  n = stub.n_logs;
  pthread_mutex_unlock(&mutex);
  return n;
}

const struct stub_value *stub_find(const char *identifier) {
  for (size_t i = 0; i < stub.n_values; i++)
    if (strcmp(stub.values[i].identifier, identifier) == 0)
      return &stub.values[i];
  return NULL;
}

int plugin_register_complex_config(const char *type,
                                   int (*callback)(oconfig_item_t *)) {
  (void)type;
  stub.config = callback;
  return 0;
}

int plugin_register_init(const char *name, plugin_init_cb callback) {
  (void)name;
  context.interval = plugin_get_interval();
  stub.init = callback;
  return 0;
}

int plugin_register_shutdown(const char *name, plugin_shutdown_cb callback) {
  (void)name;
  stub.shutdown = callback;
  return 0;
}

int plugin_register_complex_read(const char *group, const char *name,
                                 plugin_read_cb callback, cdtime_t interval,
                                 user_data_t const *user_data) {
  (void)group;
  (void)name;
  (void)interval;
  (void)user_data;
  stub.read = callback;
  return 0;
}

int plugin_register_notification(const char *name,
                                 plugin_notification_cb callback,
                                 user_data_t const *user_data) {
  (void)name;
  (void)user_data;
  stub.notification = callback;
  return 0;
}

/* Appends meta data. Returns NULL if there is no memory. */
static notification_meta_t *add_meta(notification_t *n, const char *name,
                                     enum notification_meta_type_e type) {
  notification_meta_t **end = &n->meta;
  notification_meta_t *m = calloc(1, sizeof(*m));

  if (!m)
    return NULL;
  while (*end)
    end = &(*end)->next;
  snprintf(m->name, sizeof(m->name), "%s", name);
  m->type = type;
  *end = m;
  return m;
}

int plugin_notification_meta_add_string(notification_t *n, const char *name,
                                        const char *value) {
  char *copy = strdup(value);
  notification_meta_t *m = copy ? add_meta(n, name, NM_TYPE_STRING) : NULL;

  if (!m) {
    free(copy);
    return -1;
  }
  m->nm_value.nm_string = copy;
  return 0;
}

int plugin_notification_meta_add_signed_int(notification_t *n, const char *name,
                                            int64_t value) {
  notification_meta_t *m = add_meta(n, name, NM_TYPE_SIGNED_INT);

  if (m)
    m->nm_value.nm_signed_int = value;
  return m ? 0 : -1;
}

int plugin_notification_meta_add_unsigned_int(notification_t *n,
                                              const char *name,
                                              uint64_t value) {
  notification_meta_t *m = add_meta(n, name, NM_TYPE_UNSIGNED_INT);

  if (m)
    m->nm_value.nm_unsigned_int = value;
  return m ? 0 : -1;
}

int plugin_notification_meta_free(notification_meta_t *m) {
  while (m) {
    notification_meta_t *next = m->next;

    if (m->type == NM_TYPE_STRING)
      free((char *)(uintptr_t)m->nm_value.nm_string);
    free(m);
    m = next;
  }
  return 0;
}

static void print_headers(const notification_meta_t *m, char *ret,
                          size_t size) {
  size_t len = 0;

  *ret = '\0';
  for (; m && len < size; m = m->next) {
    len += (size_t)snprintf(ret + len, size - len, "%s: ", m->name);
    if (m->type == NM_TYPE_STRING)
      len += (size_t)snprintf(ret + len, size - len, "%s\n",
                              m->nm_value.nm_string);
    else if (m->type == NM_TYPE_SIGNED_INT)
      len += (size_t)snprintf(ret + len, size - len, "%jd\n",
                              (intmax_t)m->nm_value.nm_signed_int);
    else
      len += (size_t)snprintf(ret + len, size - len, "%ju\n",
                              (uintmax_t)m->nm_value.nm_unsigned_int);
  }
}

int plugin_dispatch_notification(const notification_t *n) {
  pthread_mutex_lock(&mutex);
  stub.n_without_context += context.interval == 0;
  if (stub.n_notifications < STUB_NOTIFICATIONS_MAX) {
    size_t i = stub.n_notifications++;
    bool has_path = n->meta && n->meta->type == NM_TYPE_STRING;

    stub.notifications[i] = *n;
    stub.notifications[i].meta = NULL;
    snprintf(stub.metas[i], sizeof(stub.metas[i]), "%s",
             has_path ? n->meta->nm_value.nm_string : "");
    print_headers(n->meta, stub.headers[i], sizeof(stub.headers[i]));
  }
  pthread_mutex_unlock(&mutex);
  return 0;
}

plugin_ctx_t plugin_get_ctx(void) { return context; }

plugin_ctx_t plugin_set_ctx(plugin_ctx_t ctx) {
  plugin_ctx_t before = context;

  context = ctx;
  return before;
}

cdtime_t plugin_get_interval(void) { return TIME_T_TO_CDTIME_T(10); }

static void part(char *ret, size_t size, const char *name,
                 const char *instance) {
  snprintf(ret, size, "%s%s%s", name, *instance ? "-" : "", instance);
}

#define IDENTIFIER_SIZE (5 * DATA_MAX_NAME_LEN)

static void identify(value_list_t const *vl, char ret[IDENTIFIER_SIZE]) {
  char plugin[2 * DATA_MAX_NAME_LEN], type[2 * DATA_MAX_NAME_LEN];

  part(plugin, sizeof(plugin), vl->plugin, vl->plugin_instance);
  part(type, sizeof(type), vl->type, vl->type_instance);
  snprintf(ret, IDENTIFIER_SIZE, "%s/%s", plugin, type);
}

int plugin_dispatch_values(value_list_t const *vl) {
  struct stub_value *v = &stub.values[stub.n_values];

  if (stub.n_values == STUB_VALUES_MAX)
    return -1;
  identify(vl, v->identifier);
  v->n = vl->values_len;
  for (size_t i = 0; i < v->n && i < 2; i++)
    v->values[i] = vl->values[i].gauge;
  v->time = vl->time;
  stub.n_values++;
  return 0;
}

void plugin_log(int level, const char *format, ...) {
  bool is_info = level == LOG_INFO;
  va_list args;

  va_start(args, format);
  pthread_mutex_lock(&mutex);
  if (is_info) {
    vsnprintf(stub.info, sizeof(stub.info), format, args);
    stub.n_infos++;
  } else if (stub.n_logs < STUB_LOGS_MAX) {
    vsnprintf(stub.logs[stub.n_logs], sizeof(stub.logs[0]), format, args);
    stub.levels[stub.n_logs++] = level;
  }
  pthread_mutex_unlock(&mutex);
  va_end(args);
}

cdtime_t cdtime(void) { return stub.now; }
