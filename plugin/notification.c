/* SPDX-License-Identifier: MIT */
#include "notification.h"

#include <daemon/collectd.h>
#include <daemon/plugin.h>

#include <smaps/format.h>
#include <smaps/store.h>

#include <pthread.h>
#include <stdatomic.h>

/* Mark our own notifications; scripts read the path from the first. */
#define META_PATH "CaptureFile"
#define META_CAUSE "Cause"

/* Notifications arrive on any thread, also during shutdown. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct collector *collector;

/* The context of our plugin. The daemon sets it in the threads that it starts,
 * which the writer's is not. Plugins that get a notification, such as exec, ask
 * for the interval, and the daemon logs an error if there is no context. It is
 * set before the first cycle, and does not change. */
static plugin_ctx_t context;

/*
 * One whose capture is being written waits for its path, until the next
 * interval. The writer's thread may be earlier than the cycle that raised it,
 * or so late that it was sent without.
 */
static struct {
  pthread_mutex_t mutex;
  uint64_t last_id;     /* those up to here were sent, or wait */
  struct alarm waiting; /* id 0: none */
  struct document early;
  char path[PATH_MAX]; /* of early */
} own = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static atomic_bool has_state_failed;

/* --- notifications in --- */

static enum severity severity_of(const notification_t *n) {
  if (n->severity == NOTIF_OKAY)
    return SEVERITY_OKAY;
  return n->severity == NOTIF_WARNING ? SEVERITY_WARNING : SEVERITY_FAILURE;
}

static bool is_our_own(const notification_t *n) {
  for (const notification_meta_t *m = n->meta; m; m = m->next)
    if (strcmp(m->name, META_PATH) == 0 || strcmp(m->name, META_CAUSE) == 0)
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
  if (collector)
    collector_raise(collector, &alarm);
  pthread_mutex_unlock(&mutex);
  return 0;
}

int notification_start(const struct settings *settings, struct collector *c) {
  own.last_id = own.waiting.id = own.early.alarm.id = 0;
  atomic_store(&has_state_failed, false);
  if (!settings->capture.directory)
    return 0;
  context = plugin_get_ctx();
  pthread_mutex_lock(&mutex);
  collector = c;
  pthread_mutex_unlock(&mutex);
  return plugin_register_notification("smaps", handle_notification, NULL) == 0
             ? 0
             : -EIO;
}

/* --- the line about a capture --- */

/* Of its text; the message of a notification has room for the path, too. */
#define SUMMARY_SIZE 201

struct line {
  char *text;
  size_t size;
  bool is_full; /* a part did not fit: no other is added */
};

__attribute__((format(printf, 2, 3))) static void
append(struct line *l, const char *format, ...) {
  size_t len = strlen(l->text);
  char part[NOTIF_MAX_MSG_LEN];
  va_list args;

  va_start(args, format);
  vsnprintf(part, sizeof(part), format, args);
  va_end(args);
  l->is_full |= len + strlen(part) >= l->size;
  if (!l->is_full)
    strcpy(l->text + len, part);
}

/* At least a second. */
static uint64_t ended_ns(const struct summary *s) {
  uint64_t seconds = (s->ended_ns + NS_PER_S / 2) / NS_PER_S;

  return (seconds > 0 ? seconds : 1) * NS_PER_S;
}

static void append_pss(struct line *l, const struct summary *s) {
  char age[FORMAT_SIZE], amount[FORMAT_SIZE], error[FORMAT_SIZE];
  bool is_small = s->pss_error * 100 <= s->pss_bytes;

  append(l, "%s%s%sPSS %s%s%s", s->has_ended ? "before its end, " : "",
         s->has_ended ? format_duration(ended_ns(s), age) : "",
         s->has_ended ? " ago: " : "",
         s->has_pss ? format_amount(s->pss_bytes, amount) : "unknown",
         is_small ? "" : " +- ",
         is_small ? "" : format_amount(s->pss_error, error));
}

/*
 * Formats a line of printable ASCII. Parts that do not fit are left out from
 * the end, so that no name and no number is cut.
 *
 *   PSS 1.50 GiB, +300 MiB in 1h02m, limit 2.00 GiB; 1234 postgres 812 MiB;
 *   [heap] 700 MiB
 *
 * An error of 1 % or more follows the PSS: "PSS 1.50 GiB +- 90.0 MiB". The line
 * of a group that has ended begins with "before its end, 10s ago: ".
 */
static void format_summary(const struct summary *s, char *ret, size_t size) {
  struct line l = {.text = ret,
                   .size = size < SUMMARY_SIZE ? size : SUMMARY_SIZE};
  int64_t change = s->change.bytes;
  char amount[FORMAT_SIZE], time[FORMAT_SIZE];

  *ret = '\0';
  append_pss(&l, s);
  if (s->change.age_ns > 0 && change != 0)
    append(&l, ", %c%s in %s", change < 0 ? '-' : '+',
           format_amount(change < 0 ? -(uint64_t)change : (uint64_t)change,
                         amount),
           format_duration(s->change.age_ns, time));
  if (s->limit_bytes > 0)
    append(&l, ", limit %s", format_amount(s->limit_bytes, amount));
  for (size_t i = 0; i < s->n; i++)
    append(&l, "%s %" PRIu32 " %s %s%s", i == 0 ? ";" : ",", s->largest[i].pid,
           s->largest[i].comm, s->largest[i].has_pss ? "" : "RSS ",
           format_amount(s->largest[i].bytes, amount));
  for (size_t i = 0; i < s->n_mappings; i++)
    append(&l, "%s %s %s", i == 0 ? ";" : ",", s->mappings[i].name,
           format_amount(s->mappings[i].bytes, amount));
}

/* --- notifications out --- */

/* What is sent: an alarm of the plugin's own, a capture, or both. */
struct outgoing {
  const char *group;
  const struct alarm *alarm; /* NULL: one of another plugin has led to it */
  const struct summary *summary;
  const char *path; /* of the capture; NULL: none */
};

static void add_number(notification_t *n, const char *name, uint64_t value) {
  plugin_notification_meta_add_unsigned_int(n, name, value);
}

static void add_summary(notification_t *n, const struct summary *s) {
  if (s->has_ended)
    add_number(n, "EndedSeconds", ended_ns(s) / NS_PER_S);
  if (s->has_pss) {
    add_number(n, "Pss", s->pss_bytes);
    add_number(n, "PssError", s->pss_error);
  }
  if (s->change.age_ns > 0) {
    plugin_notification_meta_add_signed_int(n, "PssGrowth", s->change.bytes);
    add_number(n, "PssGrowthSeconds", s->change.age_ns / NS_PER_S);
  }
  if (s->limit_bytes > 0)
    add_number(n, "MemoryLimit", s->limit_bytes);
  for (size_t i = 0; i < s->n; i++) {
    const struct summary_process *p = &s->largest[i];
    char name[32], value[128];

    snprintf(name, sizeof(name), "TopProcess%zu", i + 1);
    snprintf(value, sizeof(value), "%" PRIu32 " %s %s%" PRIu64, p->pid, p->comm,
             p->has_pss ? "" : "RSS ", p->bytes);
    plugin_notification_meta_add_string(n, name, value);
  }
  for (size_t i = 0; i < s->n_mappings; i++) {
    const struct summary_mapping *m = &s->mappings[i];
    char name[32], value[sizeof(m->name) + 32];

    snprintf(name, sizeof(name), "TopMapping%zu", i + 1);
    snprintf(value, sizeof(value), "%s %" PRIu64, m->name, m->bytes);
    plugin_notification_meta_add_string(n, name, value);
  }
}

/* Without memory some of it is missing, but not what is_our_own() looks for:
 * the plugin would take its own notification for an alarm. */
static int add_meta(notification_t *n, const struct outgoing *o) {
  int rc = 0;

  if (o->alarm) {
    rc = plugin_notification_meta_add_string(n, META_CAUSE,
                                             o->alarm->type_instance);
    add_number(n, "Since", o->alarm->since_ns / NS_PER_S);
  }
  if (o->path && plugin_notification_meta_add_string(n, META_PATH, o->path))
    rc = -1;
  add_summary(n, o->summary);
  return rc;
}

/* The message has room for 255 bytes. A path is cut only if it is longer than
 * that; the meta data has the whole path. */
static void format_capture(const struct outgoing *o, char *ret, size_t size) {
  int len = snprintf(ret, size, "capture %s: ", o->path);

  if (len >= 0 && (size_t)len < size)
    format_summary(o->summary, ret + len, size - (size_t)len);
}

/* The sentence, then the summary, as far as the path leaves room for it. A path
 * that does not fit is in the meta data alone. */
static void format_alarm(const struct outgoing *o, char *ret, size_t size) {
  static const char title[] = "; capture ";
  size_t len = strlen(o->alarm->message);
  size_t path_len = o->path ? strlen(title) + strlen(o->path) : 0;
  bool has_path = o->path && len + path_len < size;
  size_t room = size - len - (has_path ? path_len : 0);

  copy(ret, size, o->alarm->message);
  if (o->summary->has_pss && o->summary->pss_bytes > 0 && room > 2) {
    strcpy(ret + len, "; ");
    format_summary(o->summary, ret + len + 2, room - 2);
    if (!ret[len + 2])
      ret[len] = '\0';
  }
  if (has_path)
    strcat(strcat(ret, title), o->path);
}

static int severity_to_send(const struct outgoing *o) {
  if (!o->alarm || o->alarm->severity == SEVERITY_OKAY)
    return NOTIF_OKAY;
  return o->alarm->severity == SEVERITY_WARNING ? NOTIF_WARNING : NOTIF_FAILURE;
}

static void dispatch(const struct outgoing *o) {
  notification_t n = {.severity = severity_to_send(o), .time = cdtime()};

  copy(n.host, sizeof(n.host), hostname_g);
  copy(n.plugin, sizeof(n.plugin), "smaps");
  copy(n.plugin_instance, sizeof(n.plugin_instance), o->group);
  (o->alarm ? format_alarm : format_capture)(o, n.message, sizeof(n.message));
  if (add_meta(&n, o) == 0)
    plugin_dispatch_notification(&n);
  else
    ERROR("smaps plugin: there is no memory for the notification: %s",
          n.message);
  plugin_notification_meta_free(n.meta);
}

/* --- alarms of the plugin's own --- */

static void send_alarm(const struct alarm *alarm, const struct document *w) {
  bool has_path = w && !w->error;

  dispatch(
      &(struct outgoing){.group = alarm->group,
                         .alarm = alarm,
                         .summary = has_path ? &w->summary : &alarm->summary,
                         .path = has_path ? w->path : NULL});
}

/* Takes the alarm that waits, or only the one with that id. */
static bool take_waiting(uint64_t id, struct alarm *ret) {
  bool is_there;

  pthread_mutex_lock(&own.mutex);
  is_there = own.waiting.id && (!id || own.waiting.id == id);
  if (is_there) {
    *ret = own.waiting;
    own.waiting.id = 0;
  }
  pthread_mutex_unlock(&own.mutex);
  return is_there;
}

static void send_waiting(void) {
  struct alarm alarm;

  if (take_waiting(0, &alarm))
    send_alarm(&alarm, NULL);
}

/* True if its capture was written already; else it waits. */
static bool take_early(const struct alarm *alarm, struct document *ret) {
  bool is_there;

  pthread_mutex_lock(&own.mutex);
  own.last_id = alarm->id;
  is_there = own.early.alarm.id == alarm->id;
  if (is_there)
    *ret = own.early;
  else if (alarm->has_capture)
    own.waiting = *alarm;
  pthread_mutex_unlock(&own.mutex);
  return is_there;
}

void notification_send(const struct alarm *alarms, size_t n) {
  send_waiting();
  for (size_t i = 0; i < n; i++) {
    struct document early;

    if (take_early(&alarms[i], &early))
      send_alarm(&alarms[i], &early);
    else if (!alarms[i].has_capture)
      send_alarm(&alarms[i], NULL);
  }
}

/* Programs may not get it any more, because the daemon ends plugins in an order
 * that this one does not know: so it is told again after the start. */
void notification_stop(void) {
  struct alarm alarm;
  bool is_waiting = take_waiting(0, &alarm);

  if (is_waiting)
    send_alarm(&alarm, NULL);
  pthread_mutex_lock(&mutex);
  if (is_waiting && collector)
    collector_tell_again(collector, alarm.group);
  collector = NULL;
  pthread_mutex_unlock(&mutex);
}

/* False if the alarm was sent before its capture was written. */
static bool send_with_capture(const struct document *w) {
  struct alarm alarm;
  bool is_early;

  pthread_mutex_lock(&own.mutex);
  is_early = w->alarm.id > own.last_id;
  if (is_early) {
    own.early = *w;
    copy(own.path, sizeof(own.path), w->path);
    own.early.path = own.path;
  }
  pthread_mutex_unlock(&own.mutex);
  if (is_early)
    return true;
  if (!take_waiting(w->alarm.id, &alarm))
    return false;
  send_alarm(&alarm, w);
  return true;
}

/* --- files out --- */

static const char *explain(const struct document *w) {
  if (w->error == -ECANCELED)
    return "collectd stops";
  return w->error == -EBUSY ? "earlier files are still being written"
                            : store_error(w->error);
}

/* A capture that is late may show a group whose processes were killed since. */
static void log_capture(const struct document *w) {
  bool is_late = w->time_ns > w->alarm.time_ns;
  uint64_t late_ns = is_late ? w->time_ns - w->alarm.time_ns : 0;
  char duration[FORMAT_SIZE], late[FORMAT_SIZE + 16] = "";

  if (late_ns >= NS_PER_S)
    snprintf(late, sizeof(late), ", made %s later,",
             format_duration(late_ns, duration));
  NOTICE("smaps plugin: <Capture>: %s; the capture%s is in \"%s\"",
         w->alarm.message, late, w->path);
}

static void report_capture(const struct document *w) {
  const struct summary *sum = &w->summary;
  char summary[SUMMARY_SIZE];
  bool is_sent;

  plugin_set_ctx(context);
  is_sent = w->alarm.is_own && !w->alarm.is_silent && send_with_capture(w);
  if (!w->error && w->alarm.is_own && !is_sent)
    log_capture(w);
  else if (!w->error && !is_sent)
    dispatch(&(struct outgoing){
        .group = w->subject, .summary = sum, .path = w->path});
  if (!w->error)
    return;
  format_summary(sum, summary, sizeof(summary));
  ERROR("smaps plugin: <Capture>: no capture of group \"%s\" in \"%s\": %s%s%s",
        w->subject, w->path, explain(w),
        !sum->has_pss    ? ""
        : sum->has_ended ? "; it had "
                         : "; it has ",
        sum->has_pss ? summary : "");
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

static void report_resume(const struct document *w) {
  WARNING("smaps plugin: StateFile \"%s\": %s; nothing is remembered of the "
          "time before this start",
          w->path,
          w->error == -EBADMSG ? "it is damaged"
          : w->error == -EPERM ? "access is denied, it is not a regular file, "
                                 "others can write to it, or neither root nor "
                                 "the user of collectd owns it"
                               : strerror(-w->error));
}

void notification_written(const struct document *w) {
  if (w->kind == DOCUMENT_CAPTURE)
    report_capture(w);
  else if (w->kind == DOCUMENT_RESUME)
    report_resume(w);
  else
    report_place(w);
}
