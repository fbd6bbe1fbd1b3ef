#include "record.h"

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include <pthread.h>
#include <stdatomic.h>

/* By this our own notifications are known, and scripts find the path. */
#define META_PATH "CaptureFile"

/* Notifications come on any thread, also while we shut down. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct collector *collector;
static unsigned severities;

/* Of our plugin. The daemon keeps one for each thread that it starts, and the
 * scribe's is none of these: whoever gets a notification there, such as exec,
 * asks for the interval and has an error logged where there is no context. */
static plugin_ctx_t context;

static atomic_bool has_state_failed;

/* --- notifications in --- */

static enum severity severity_of(const notification_t *n) {
  if (n->severity == NOTIF_OKAY)
    return SEVERITY_OKAY;
  return n->severity == NOTIF_WARNING ? SEVERITY_WARNING : SEVERITY_FAILURE;
}

static bool is_our_own(const notification_t *n) {
  for (const notification_meta_t *m = n->meta; m; m = m->next)
    if (strcmp(m->name, META_PATH) == 0)
      return true;
  return false;
}

/* On a server there are also those about the groups of other hosts. */
static bool is_about_a_group(const notification_t *n) {
  return strcmp(n->plugin, "smaps") == 0 && *n->plugin_instance &&
         (!*n->host || strcasecmp(n->host, hostname_g) == 0);
}

static void copy(char *to, size_t size, const char *from) {
  snprintf(to, size, "%s", from);
}

static struct alarm alarm_of(const notification_t *n) {
  struct alarm alarm = {.severity = severity_of(n),
                        .time_ns = CDTIME_T_TO_NS(n->time)};

  copy(alarm.group, sizeof(alarm.group), n->plugin_instance);
  copy(alarm.type, sizeof(alarm.type), n->type);
  copy(alarm.type_instance, sizeof(alarm.type_instance), n->type_instance);
  copy(alarm.message, sizeof(alarm.message), n->message);
  return alarm;
}

static int take_notification(const notification_t *n, user_data_t *data) {
  struct alarm alarm;

  (void)data;
  if (!is_about_a_group(n) || is_our_own(n))
    return 0;
  alarm = alarm_of(n);
  pthread_mutex_lock(&mutex);
  if (collector && (alarm.severity & severities))
    collector_raise(collector, &alarm);
  pthread_mutex_unlock(&mutex);
  return 0;
}

int record_start(const struct settings *settings, struct collector *c) {
  if (!settings->capture.directory)
    return 0;
  pthread_mutex_lock(&mutex);
  collector = c;
  severities = settings->capture.severities;
  context = plugin_get_ctx();
  pthread_mutex_unlock(&mutex);
  return plugin_register_notification("smaps", take_notification, NULL) == 0
             ? 0
             : -EIO;
}

void record_stop(void) {
  pthread_mutex_lock(&mutex);
  collector = NULL;
  pthread_mutex_unlock(&mutex);
  atomic_store(&has_state_failed, false);
}

/* --- files out --- */

static plugin_ctx_t enter_context(void) {
  plugin_ctx_t ours;

  pthread_mutex_lock(&mutex);
  ours = context;
  pthread_mutex_unlock(&mutex);
  return plugin_set_ctx(ours);
}

static void tell_of_capture(const struct written *w) {
  notification_t n = {.severity = NOTIF_OKAY, .time = cdtime()};
  plugin_ctx_t before;

  copy(n.host, sizeof(n.host), hostname_g);
  copy(n.plugin, sizeof(n.plugin), "smaps");
  copy(n.plugin_instance, sizeof(n.plugin_instance), w->subject);
  snprintf(n.message, sizeof(n.message),
           "smaps plugin: which processes use the memory, and for what: %s",
           w->path);
  /* Not without: we would take it for an alarm. */
  if (plugin_notification_meta_add_string(&n, META_PATH, w->path) != 0) {
    ERROR("smaps plugin: <Capture>: the evidence of group \"%s\" is in "
          "\"%s\", but there is no memory for a notification of it",
          w->subject, w->path);
    return;
  }
  before = enter_context();
  plugin_dispatch_notification(&n);
  plugin_set_ctx(before);
  plugin_notification_meta_free(n.meta);
}

static const char *explain(int error) {
  switch (error) {
  case -EBUSY:
    return "those before it are still being written";
  case -EPERM:
    return "others can write to the directory, or it does not let us";
  case -EFBIG:
    return "it is larger than MaxBytes";
  default:
    return strerror(-error);
  }
}

static void say_of_capture(const struct written *w) {
  if (w->error)
    ERROR("smaps plugin: <Capture>: no evidence of group \"%s\" in \"%s\": %s",
          w->subject, w->path, explain(w->error));
  else
    tell_of_capture(w);
}

static void say_of_state(const struct written *w) {
  if (w->error && !atomic_exchange(&has_state_failed, true))
    ERROR("smaps plugin: StateFile \"%s\" cannot be written: %s", w->path,
          explain(w->error));
  if (!w->error && atomic_exchange(&has_state_failed, false))
    NOTICE("smaps plugin: StateFile \"%s\" is written again", w->path);
}

void record_written(const struct written *w) {
  if (w->kind == DOCUMENT_CAPTURE)
    say_of_capture(w);
  else
    say_of_state(w);
}
