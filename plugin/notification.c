#include "notification.h"

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include <smaps/store.h>

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

/* --- the line about a capture --- */

/* Of its text; the message of a notification has room for the path, too. */
#define SUMMARY_SIZE 201

#define AMOUNT_SIZE 24

static const char *format_amount(uint64_t bytes, char ret[AMOUNT_SIZE]) {
  static const char units[] = "KMGTPE";
  double value = (double)bytes / 1024;
  size_t unit = 0;

  for (; value >= 1023.95 && units[unit + 1]; unit++)
    value /= 1024;
  snprintf(ret, AMOUNT_SIZE, "%.1f %ciB", value, units[unit]);
  return ret;
}

#define TIME_SIZE 32

static const char *format_time(uint64_t seconds, char ret[TIME_SIZE]) {
  bool is_long = seconds >= 120;

  snprintf(ret, TIME_SIZE, "%" PRIu64 " %s", is_long ? seconds / 60 : seconds,
           is_long ? "min" : "s");
  return ret;
}

struct line {
  char *text;
  size_t size;
  bool is_full; /* a part did not fit: no other is added */
};

__attribute__((format(printf, 2, 3))) static void
append(struct line *l, const char *format, ...) {
  size_t len = strlen(l->text);
  char part[160];
  va_list args;

  va_start(args, format);
  vsnprintf(part, sizeof(part), format, args);
  va_end(args);
  l->is_full |= len + strlen(part) >= l->size;
  if (!l->is_full)
    strcpy(l->text + len, part);
}

static void append_pss(struct line *l, const struct summary *s) {
  char amount[AMOUNT_SIZE], error[AMOUNT_SIZE];
  bool is_small = s->pss_error * 100 <= s->pss_bytes;

  append(l, "PSS %s%s%s",
         s->has_pss ? format_amount(s->pss_bytes, amount) : "unknown",
         is_small ? "" : " +- ",
         is_small ? "" : format_amount(s->pss_error, error));
}

/* At least a second. */
static uint64_t ended_seconds(const struct summary *s) {
  uint64_t seconds = (s->ended_ns + NS_PER_S / 2) / NS_PER_S;

  return seconds > 0 ? seconds : 1;
}

/*
 * Formats a line of printable ASCII. Parts that do not fit are left out from
 * the end, so that no name and no number is cut.
 *
 *   PSS 1.5 GiB, +300.0 MiB in 62 min, limit 2.0 GiB; 1234 postgres 812.3 MiB
 *
 * An error of 1 % or more follows the PSS: "PSS 1.5 GiB +- 90.0 MiB". The line
 * of a group that has ended begins with "before its end, 10 s ago: ".
 */
static void format_summary(const struct summary *s, char *ret, size_t size) {
  struct line l = {.text = ret,
                   .size = size < SUMMARY_SIZE ? size : SUMMARY_SIZE};
  int64_t change = s->change.bytes;
  char amount[AMOUNT_SIZE], time[TIME_SIZE];

  *ret = '\0';
  if (s->has_ended)
    append(&l, "before its end, %s ago: ", format_time(ended_seconds(s), time));
  append_pss(&l, s);
  if (s->change.age_ns > 0)
    append(&l, ", %c%s in %s", change < 0 ? '-' : '+',
           format_amount(change < 0 ? -(uint64_t)change : (uint64_t)change,
                         amount),
           format_time(s->change.age_ns / NS_PER_S, time));
  if (s->limit_bytes > 0)
    append(&l, ", limit %s", format_amount(s->limit_bytes, amount));
  for (size_t i = 0; i < s->n; i++)
    append(&l, "%s %" PRIu32 " %s %s%s", i == 0 ? ";" : ",", s->largest[i].pid,
           s->largest[i].comm, s->largest[i].has_pss ? "" : "RSS ",
           format_amount(s->largest[i].bytes, amount));
}

/* --- files out --- */

/* Without memory some of it is missing, but not the path: the plugin would take
 * its own notification for an alarm. */
static int add_meta(notification_t *n, const struct document *w) {
  const struct summary *s = &w->summary;
  int rc = plugin_notification_meta_add_string(n, META_PATH, w->path);

  if (s->has_ended)
    plugin_notification_meta_add_unsigned_int(n, "EndedSeconds",
                                              ended_seconds(s));
  if (s->has_pss) {
    plugin_notification_meta_add_unsigned_int(n, "Pss", s->pss_bytes);
    plugin_notification_meta_add_unsigned_int(n, "PssError", s->pss_error);
  }
  if (s->change.age_ns > 0) {
    plugin_notification_meta_add_signed_int(n, "PssGrowth", s->change.bytes);
    plugin_notification_meta_add_unsigned_int(n, "PssGrowthSeconds",
                                              s->change.age_ns / NS_PER_S);
  }
  if (s->limit_bytes > 0)
    plugin_notification_meta_add_unsigned_int(n, "MemoryLimit", s->limit_bytes);
  for (size_t i = 0; i < s->n; i++) {
    const struct summary_process *p = &s->largest[i];
    char name[32], value[128];

    snprintf(name, sizeof(name), "TopProcess%zu", i + 1);
    snprintf(value, sizeof(value), "%" PRIu32 " %s %s%" PRIu64, p->pid, p->comm,
             p->has_pss ? "" : "RSS ", p->bytes);
    plugin_notification_meta_add_string(n, name, value);
  }
  return rc;
}

/* The message has room for 255 bytes. A path is cut only if it is longer than
 * that; the meta data has the whole path. */
static void format_message(const struct document *w, char *ret, size_t size) {
  int len = snprintf(ret, size, "capture %s: ", w->path);

  if (len >= 0 && (size_t)len < size)
    format_summary(&w->summary, ret + len, size - (size_t)len);
}

static void notify_of_capture(const struct document *w) {
  notification_t n = {.severity = NOTIF_OKAY, .time = cdtime()};

  copy(n.host, sizeof(n.host), hostname_g);
  copy(n.plugin, sizeof(n.plugin), "smaps");
  copy(n.plugin_instance, sizeof(n.plugin_instance), w->subject);
  format_message(w, n.message, sizeof(n.message));
  if (add_meta(&n, w) != 0) {
    plugin_notification_meta_free(n.meta);
    ERROR("smaps plugin: <Capture>: the capture of group \"%s\" is in \"%s\", "
          "but there is no memory for its notification",
          w->subject, w->path);
    return;
  }
  plugin_set_ctx(context);
  plugin_dispatch_notification(&n);
  plugin_notification_meta_free(n.meta);
}

static const char *explain(const struct document *w) {
  return w->error == -EBUSY ? "earlier files are still being written"
                            : store_error(w->error);
}

static void report_capture(const struct document *w) {
  char summary[SUMMARY_SIZE];

  if (!w->error) {
    notify_of_capture(w);
    return;
  }
  format_summary(&w->summary, summary, sizeof(summary));
  ERROR("smaps plugin: <Capture>: no capture of group \"%s\" in \"%s\": %s; it "
        "%s %s",
        w->subject, w->path, explain(w), w->summary.has_ended ? "had" : "has",
        summary);
}

/* Logs each failure of the history, which is written once an hour at most, and
 * of the directory of captures, which is checked at start. */
static void report_place(const struct document *w) {
  static const char *const options[DOCUMENT_KINDS] = {
      [DOCUMENT_STATE] = "StateFile",
      [DOCUMENT_HISTORY] = "StateHistory",
      [DOCUMENT_PLACE] = "<Capture>: Directory"};
  bool is_state = w->kind == DOCUMENT_STATE;

  if (w->error && (!is_state || !atomic_exchange(&has_state_failed, true)))
    ERROR("smaps plugin: %s \"%s\" cannot be written: %s", options[w->kind],
          w->path, explain(w));
  if (!w->error && atomic_exchange(&has_state_failed, false))
    NOTICE("smaps plugin: StateFile \"%s\" is written again", w->path);
}

void notification_written(const struct document *w) {
  if (w->kind == DOCUMENT_CAPTURE)
    report_capture(w);
  else
    report_place(w);
}
