#include "notification.h"

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include <pthread.h>
#include <stdatomic.h>

/* Marks our own notifications; scripts read the path from it. */
#define META_PATH "CaptureFile"

/* Notifications arrive on any thread, also during shutdown. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct collector *collector;
static unsigned severities;

/* The context of our plugin. The daemon sets it in the threads that it starts,
 * which the writer's is not. Plugins that get a notification, such as exec, ask
 * for the interval, and the daemon logs an error if there is no context. It is
 * set before the first cycle, and does not change. */
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

/* A server also gets notifications about groups of other hosts. */
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

static int handle_notification(const notification_t *n, user_data_t *data) {
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

int notification_start(const struct settings *settings, struct collector *c) {
  atomic_store(&has_state_failed, false);
  if (!settings->capture.directory)
    return 0;
  context = plugin_get_ctx();
  pthread_mutex_lock(&mutex);
  collector = c;
  severities = settings->capture.severities;
  pthread_mutex_unlock(&mutex);
  return plugin_register_notification("smaps", handle_notification, NULL) == 0
             ? 0
             : -EIO;
}

void notification_stop(void) {
  pthread_mutex_lock(&mutex);
  collector = NULL;
  pthread_mutex_unlock(&mutex);
}

/* --- files out --- */

static int add_processes(notification_t *n, const struct summary *s) {
  int rc = 0;

  for (size_t i = 0; rc == 0 && i < s->n; i++) {
    char name[32], value[128];

    snprintf(name, sizeof(name), "TopProcess%zu", i + 1);
    summary_format_process(&s->largest[i], value, sizeof(value));
    rc = plugin_notification_meta_add_string(n, name, value);
  }
  return rc;
}

static int add_number(notification_t *n, int rc, const char *name,
                      uint64_t value) {
  return rc == 0 ? plugin_notification_meta_add_unsigned_int(n, name, value)
                 : rc;
}

static int add_meta(notification_t *n, const struct write_result *w) {
  const struct summary *s = w->summary;
  int rc = plugin_notification_meta_add_string(n, META_PATH, w->path);

  if (s->has_ended)
    rc = add_number(n, rc, "EndedSeconds", summary_ended_seconds(s));
  if (s->has_pss) {
    rc = add_number(n, rc, "Pss", s->pss_bytes);
    rc = add_number(n, rc, "PssError", s->pss_error);
  }
  if (rc == 0 && s->change.age_ns > 0) {
    rc = plugin_notification_meta_add_signed_int(n, "PssGrowth",
                                                 s->change.bytes);
    rc = add_number(n, rc, "PssGrowthSeconds", s->change.age_ns / NS_PER_S);
  }
  if (s->limit_bytes > 0)
    rc = add_number(n, rc, "MemoryLimit", s->limit_bytes);
  return rc == 0 ? add_processes(n, s) : rc;
}

/* The message has room for 255 bytes. A path is cut only if it is longer than
 * that; the meta data has the whole path. */
static void format_message(const struct write_result *w, char *ret,
                           size_t size) {
  int len = snprintf(ret, size, "capture %s: ", w->path);

  if (len >= 0 && (size_t)len < size)
    summary_format(w->summary, ret + len, size - (size_t)len);
}

static void notify_of_capture(const struct write_result *w) {
  notification_t n = {.severity = NOTIF_OKAY, .time = cdtime()};
  plugin_ctx_t before;

  copy(n.host, sizeof(n.host), hostname_g);
  copy(n.plugin, sizeof(n.plugin), "smaps");
  copy(n.plugin_instance, sizeof(n.plugin_instance), w->subject);
  format_message(w, n.message, sizeof(n.message));
  /* Without META_PATH the plugin would take its own notification for an alarm.
   */
  if (add_meta(&n, w) != 0) {
    plugin_notification_meta_free(n.meta);
    ERROR("smaps plugin: <Capture>: the capture of group \"%s\" is in \"%s\", "
          "but there is no memory for its notification",
          w->subject, w->path);
    return;
  }
  before = plugin_set_ctx(context);
  plugin_dispatch_notification(&n);
  plugin_set_ctx(before);
  plugin_notification_meta_free(n.meta);
}

static const char *explain(const struct write_result *w) {
  switch (w->error) {
  case -EBUSY:
    return "earlier files are still being written";
  case -EPERM:
    return "access is denied, others can write to the directory, or neither "
           "root nor the user of collectd owns it";
  case -EFBIG:
    return "it is larger than MaxBytes";
  default:
    return strerror(-w->error);
  }
}

static void report_capture(const struct write_result *w) {
  char summary[SUMMARY_MAX + 1];

  if (!w->error) {
    notify_of_capture(w);
    return;
  }
  summary_format(w->summary, summary, sizeof(summary));
  ERROR("smaps plugin: <Capture>: no capture of group \"%s\" in \"%s\": %s; it "
        "%s %s",
        w->subject, w->path, explain(w), w->summary->has_ended ? "had" : "has",
        summary);
}

/* Logs each failure of the history, which is written once an hour at most. */
static void report_state(const struct write_result *w) {
  bool is_history = w->kind == DOCUMENT_HISTORY;

  if (w->error && (is_history || !atomic_exchange(&has_state_failed, true)))
    ERROR("smaps plugin: %s \"%s\" cannot be written: %s",
          is_history ? "StateHistory" : "StateFile", w->path, explain(w));
  if (!w->error && atomic_exchange(&has_state_failed, false))
    NOTICE("smaps plugin: StateFile \"%s\" is written again", w->path);
}

void notification_written(const struct write_result *w) {
  if (w->kind == DOCUMENT_CAPTURE)
    report_capture(w);
  else
    report_state(w);
}
