/* SPDX-License-Identifier: MIT */
#include "snapshot/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/array.h"

int recorder_init(struct recorder *r, const struct settings *settings,
                  struct reader *reader,
                  void (*written)(const struct document *w)) {
  r->settings = settings;
  r->reader = reader;
  r->written = written;
  if (!settings->state_file && !settings->state_history &&
      !settings->capture.directory)
    return 0;
  pthread_mutex_init(&r->mutex, NULL);
  return writer_new(settings, written, &r->writer);
}

static void capture_done(struct capture *c) {
  json_done(&c->json);
  mapping_table_done(&c->all);
  free(c->members);
  *c = (struct capture){.is_running = false};
}

/* Reports a capture that is not made. */
static void give_up(const struct recorder *r, const struct alarm *alarm,
                    const struct summary *summary) {
  struct document d = {.kind = DOCUMENT_CAPTURE,
                       .path = r->settings->capture.directory,
                       .alarm = *alarm,
                       .summary = *summary,
                       .error = -ECANCELED};

  memcpy(d.subject, alarm->group, sizeof(d.subject));
  r->written(&d);
}

void recorder_done(struct recorder *r, uint64_t timeout_ns) {
  const struct document *d = &r->capture.document;

  if (r->writer) {
    writer_free(r->writer, timeout_ns);
    if (r->capture.is_running)
      give_up(r, &d->alarm, &d->summary);
    for (size_t i = 0; i < r->n_alarms; i++)
      give_up(r, &r->alarms[i], &r->alarms[i].summary);
    pthread_mutex_destroy(&r->mutex);
  }
  capture_done(&r->capture);
  resume_free(r->resume);
}

/* --- alarms --- */

/* True if the alarm is about processes that were killed for memory. */
static bool is_of_kill(const struct alarm *alarm) {
  return strcmp(alarm->type_instance, "oom_kill") == 0;
}

static bool is_cooling(const struct recorder *r, const struct alarm *alarm,
                       uint64_t now_ns) {
  for (size_t i = 0; i < min(r->cooldowns.n, COOLDOWNS_MAX); i++) {
    const struct cooldown *a = &r->cooldowns.at[i];

    if (a->until_ns > now_ns && a->severity == alarm->severity &&
        strcmp(a->group, alarm->group) == 0 &&
        strcmp(a->type, alarm->type) == 0 &&
        strcmp(a->type_instance, alarm->type_instance) == 0)
      return true;
  }
  return false;
}

/* True if a capture will be made that serves this alarm as well: one of the
 * same group and severity. Alarms about kills share none with other alarms,
 * because their captures show the processes that were killed. The capture of an
 * own alarm is not announced, as alarms of others have it. */
static bool is_waiting(const struct recorder *r, const struct alarm *alarm) {
  for (size_t i = 0; i < r->n_alarms; i++) {
    const struct alarm *a = &r->alarms[i];

    if (a->severity == alarm->severity && strcmp(a->group, alarm->group) == 0 &&
        is_of_kill(a) == is_of_kill(alarm) && (alarm->is_own || !a->is_own))
      return true;
  }
  return false;
}

/* If the queue is full, the alarm is dropped, or the last one of the queue if
 * that is less severe. */
static void add_alarm(struct recorder *r, const struct alarm *alarm) {
  size_t i = r->n_alarms;

  if (i == ALARMS_MAX && r->alarms[--i].severity >= alarm->severity)
    return;
  r->n_alarms = i + 1;
  for (; i > 0 && r->alarms[i - 1].severity < alarm->severity; i--)
    r->alarms[i] = r->alarms[i - 1];
  r->alarms[i] = *alarm;
}

void recorder_raise(struct recorder *r, const struct alarm *alarm) {
  if (!r->writer || !r->settings->capture.directory ||
      !(alarm->severity & r->settings->capture.severities))
    return;
  pthread_mutex_lock(&r->mutex);
  /* Its capture is made in the next cycle at the earliest. */
  if (!is_cooling(r, alarm, r->cycle_ns + r->settings->interval_ns) &&
      !is_waiting(r, alarm))
    add_alarm(r, alarm);
  pthread_mutex_unlock(&r->mutex);
}

bool recorder_has_captured(const struct recorder *r, uint64_t id) {
  return r->captured == id;
}

/* --- members --- */

static int compare(const void *left, const void *right) {
  const struct capture_member *a = left, *b = right;

  if (a->weight != b->weight)
    return a->weight < b->weight ? 1 : -1;
  return (a->pid > b->pid) - (a->pid < b->pid);
}

static int choose_members(struct capture *c, const struct scene *s,
                          const struct group *g) {
  const struct process_table *t = s->processes;

  c->members = calloc(t->n ? t->n : 1, sizeof(*c->members));
  if (!c->members)
    return -ENOMEM;
  for (size_t i = 0; i < t->n; i++) {
    const struct process *p = t->processes[i];

    if (process_counts_in(p, g))
      c->members[c->n++] =
          (struct capture_member){.pid = p->pid,
                                  .starttime_ticks = p->starttime_ticks,
                                  .weight = last_known_weigh(s, p)};
  }
  qsort(c->members, c->n, sizeof(*c->members), compare);
  c->left_out = g->usage.processes;
  if (c->n > s->settings->capture.top_processes)
    c->n = (size_t)s->settings->capture.top_processes;
  return 0;
}

/* NULL if it has ended. */
static struct process *find_member(const struct scene *s,
                                   const struct capture_member *m) {
  struct process *p =
      process_table_find_same(s->processes, m->pid, m->starttime_ticks);

  return p && p->state == PROCESS_ALIVE ? p : NULL;
}

/* --- the beginning --- */

static void begin_ended(struct capture *c, const struct scene *s,
                        const struct alarm *alarm, const struct last_state *l) {
  c->document.summary = last_known_past(l, s);
  snapshot_begin(&c->json, s, alarm, l);
  c->left_out = l->usage.processes;
  for (size_t i = 0; i < l->n && i < s->settings->capture.top_processes; i++) {
    snapshot_ended(&c->json, s, l, &l->members[i]);
    c->left_out--;
  }
}

/* Begins a capture of the group as it is in this scene, which last_known_note()
 * has noted; or as it was last known, if its processes have ended. 0 or
 * -ENOMEM.
 */
static int begin_capture(struct capture *c, const struct scene *s,
                         const struct group *g, const struct alarm *alarm) {
  const struct last_state *ended = last_known_ended(g, s, is_of_kill(alarm));
  struct document *d = &c->document;

  *c = (struct capture){.document = {.kind = DOCUMENT_CAPTURE,
                                     .time_ns = s->time_ns,
                                     .alarm = *alarm},
                        .json.max = JSON_MAX};
  if (!ended && choose_members(c, s, g) < 0)
    return -ENOMEM;
  c->is_running = true;
  memcpy(d->subject, alarm->group, sizeof(d->subject));
  if (ended) {
    begin_ended(c, s, alarm, ended);
    return 0;
  }
  d->summary =
      g->last ? last_known_summary(&g->last->state) : last_known_sum_up(g, s);
  snapshot_begin(&c->json, s, alarm, NULL);
  return 0;
}

static void cool_down(struct recorder *r, const struct alarm *alarm,
                      uint64_t now_ns) {
  struct cooldown *c = &r->cooldowns.at[r->cooldowns.n++ % COOLDOWNS_MAX];

  c->until_ns = now_ns + r->settings->capture.cooldown_ns;
  c->severity = alarm->severity;
  memcpy(c->group, alarm->group, sizeof(c->group));
  memcpy(c->type, alarm->type, sizeof(c->type));
  memcpy(c->type_instance, alarm->type_instance, sizeof(c->type_instance));
}

/* Begins the capture of the next alarm whose group exists. The mutex is held
 * while the head of the document and its groups are made, and threads that
 * raise alarms wait for that: the value cools down only once the capture has
 * begun, and a second alarm about the value has to see it. */
static int begin_next(struct recorder *r, const struct scene *s,
                      uint64_t now_ns) {
  int rc = 0;

  pthread_mutex_lock(&r->mutex);
  r->cycle_ns = now_ns;
  while (rc == 0 && !r->capture.is_running && r->n_alarms > 0) {
    const struct alarm alarm = r->alarms[0];
    const struct group *g = group_table_find(s->groups, alarm.group);

    array_remove(r->alarms, &r->n_alarms, sizeof(alarm), 0);
    if (!g)
      continue;
    rc = begin_capture(&r->capture, s, g, &alarm);
    /* It cools down even if its capture fails later: trying again does not help
     * against a full disk. */
    if (rc == 0)
      cool_down(r, &alarm, now_ns);
  }
  pthread_mutex_unlock(&r->mutex);
  return rc;
}

/* --- reading --- */

/* A process in quarantine is not read. */
static int read_of(const struct scene *s, struct reader *reader,
                   struct process *p, enum read_kind kind,
                   struct read_job *job) {
  *job = (struct read_job){
      .process = p,
      .kind = kind,
      .request = {.pages_wanted = MAPPING_SAMPLE_PAGES,
                  .seed = s->cycle->now_ns ^ (uint64_t)p->pid << 40}};
  if (quarantine_has(p, s->cycle->now_ns))
    return READ_STILL_HUNG;
  reader_run(reader, job, 1);
  return job->result;
}

/* A process that is too large for smaps is sampled, or, where the kernel
 * refuses that, only maps is read, which walks no page tables. */
static int read_mappings(const struct scene *s, struct reader *reader,
                         struct process *p, struct read_job *job) {
  int rc;

  if (!walk_is_too_long(s->cycle, p))
    return read_of(s, reader, p, READ_MAPPINGS, job);
  rc = read_of(s, reader, p, READ_MAPPING_SAMPLE, job);
  return rc == PROCFS_DENIED || rc == -EPERM || rc == -ENOSYS || rc == -EFBIG
             ? read_of(s, reader, p, READ_MAPS, job)
             : rc;
}

/* A process that has ended is left out; a process that cannot be read is added
 * without mappings. Returns the result of reading. */
static int add_process(struct capture *c, const struct scene *s,
                       struct reader *reader, struct process *p) {
  struct read_job job;
  int rc = read_mappings(s, reader, p, &job);
  bool has_table = rc == 0;

  if (has_table)
    rc = mapping_table_add(&c->all, &job.mappings.table);
  if (rc != PROCFS_GONE && rc != PROCFS_NO_MM) {
    snapshot_process(&c->json, s, p, s->settings->capture.command_lines,
                     rc == 0 ? &job : NULL);
    c->left_out--;
  }
  if (has_table)
    mapping_table_done(&job.mappings.table);
  return rc;
}

/* Reads the next members, at least one, until the time is used up. True if all
 * are read. */
static bool read_members(struct capture *c, const struct scene *s,
                         struct reader *reader, uint64_t budget_ns) {
  uint64_t begin_ns = reader->setup.clock_ns();

  while (c->next < c->n) {
    struct process *p = find_member(s, &c->members[c->next++]);

    if (p)
      add_process(c, s, reader, p);
    if (reader->setup.clock_ns() - begin_ns >= budget_ns)
      break;
  }
  return c->next == c->n;
}

static int close_up_error(int rc) {
  if (rc <= 0)
    return rc;
  if (rc == PROCFS_GONE || rc == PROCFS_NO_MM)
    return -ESRCH;
  return rc == PROCFS_DENIED ? -EACCES : -ETIMEDOUT;
}

int recorder_close_up(const struct scene *s, struct reader *reader,
                      uint32_t pid, char **ret_text, size_t *ret_len) {
  struct process *p = process_table_find(s->processes, pid);
  struct capture c = {.json.max = JSON_MAX};
  int rc;

  if (!p || p->state != PROCESS_ALIVE)
    return -ESRCH;
  snapshot_begin(&c.json, s, NULL, NULL);
  rc = close_up_error(add_process(&c, s, reader, p));
  if (rc == 0) {
    snapshot_end(&c.json, s, 0, NULL);
    rc = json_finish(&c.json, ret_text, ret_len);
  }
  capture_done(&c);
  return rc;
}

/* --- documents --- */

static int submit_document(struct recorder *r, const struct document *d,
                           int error) {
  if (error == 0)
    writer_submit(r->writer, d);
  return error;
}

/* The time for captures in an interval, as a multiple of ReadBudget. It is more
 * than what the plugin takes otherwise, because captures are rare and their
 * processes may end soon. */
#define CAPTURE_TIMES_BUDGET 5

static uint64_t time_for_captures(const struct settings *s) {
  return (uint64_t)(CAPTURE_TIMES_BUDGET * s->read_budget_percent / 100 *
                    (double)s->interval_ns);
}

/* After the table was ranked. */
static void sum_up_mappings(struct summary *s, const struct mapping_table *t) {
  for (size_t i = 1; i < t->n && s->n_mappings < SUMMARY_PROCESSES; i++) {
    const struct mapping *m = &t->mappings[i];
    struct summary_mapping *to = &s->mappings[s->n_mappings];
    size_t excess = minus(strlen(m->name), SUMMARY_MAPPING_NAME);

    if (!rollup_has(&m->sum, ROLLUP_PSS) || !m->sum.bytes[ROLLUP_PSS])
      continue;
    to->bytes = m->sum.bytes[ROLLUP_PSS];
    escape_word(m->name + excess, to->name, sizeof(to->name));
    s->n_mappings++;
  }
}

static int continue_capture(struct recorder *r, const struct scene *s) {
  struct capture *c = &r->capture;
  struct document *d = &c->document;
  int rc;

  if (!read_members(c, s, r->reader, time_for_captures(r->settings)))
    return NOTHING_DUE;
  snapshot_end(&c->json, s, c->left_out, &c->all);
  sum_up_mappings(&d->summary, &c->all);
  rc = json_finish(&c->json, &d->text, &d->len);
  if (rc == 0)
    r->captured = d->alarm.id;
  rc = submit_document(r, d, rc);
  capture_done(c);
  return rc;
}

static int run_captures(struct recorder *r, const struct scene *s,
                        uint64_t now_ns) {
  int rc;

  if (!r->settings->capture.directory)
    return NOTHING_DUE;
  if (r->cycle_ns == 0)
    writer_submit(r->writer, &(struct document){.kind = DOCUMENT_PLACE});
  last_known_note(s);
  rc = begin_next(r, s, now_ns);
  if (rc < 0)
    return rc;
  return r->capture.is_running ? continue_capture(r, s) : NOTHING_DUE;
}

/* After a start many processes are not read yet, and a comparison with such a
 * state would mislead: for so many intervals, but 5 minutes at most. */
#define EARLY_INTERVALS 30
#define EARLY_NS (300 * NS_PER_S)

static bool is_early(const struct recorder *r, uint64_t now_ns) {
  return now_ns - r->begin_ns <
         min(EARLY_INTERVALS * r->settings->interval_ns, EARLY_NS);
}

static int make_state(struct recorder *r, const struct scene *s) {
  struct document d = {.kind = DOCUMENT_STATE,
                       .time_ns = s->time_ns,
                       .cycle_ns = r->of.now_ns,
                       .is_early = is_early(r, r->of.now_ns)};

  r->state_ns = r->of.now_ns;
  return submit_document(r, &d, snapshot_make(s, &r->of, &d));
}

static int run_state(struct recorder *r, const struct scene *s,
                     uint64_t now_ns) {
  /* A cycle may run a little early: half an interval is allowed. */
  if ((!r->settings->state_file && !r->settings->state_history) ||
      r->is_recalling ||
      now_ns + r->settings->interval_ns / 2 < r->next_state_ns)
    return NOTHING_DUE;
  r->next_state_ns = now_ns + r->settings->state_interval_ns;
  return make_state(r, s);
}

void recorder_finish(struct recorder *r, const struct scene *s) {
  if (r->writer && r->settings->state_file && r->next_state_ns > 0 &&
      r->state_ns != r->of.now_ns)
    make_state(r, s);
}

uint64_t recorder_state_age_ns(const struct recorder *r, uint64_t now_ns) {
  uint64_t state_ns = writer_state_ns(r->writer);

  return now_ns - (state_ns ? state_ns : r->begin_ns);
}

/* --- what an earlier run has left --- */

/* Without an id, as in a captured tree, nothing is remembered. */
static void begin_recall(struct recorder *r) {
  struct span text;

  if (!r->writer || !r->settings->state_file ||
      procfs_read(r->reader->setup.procfs, 0, "sys/kernel/random/boot_id",
                  &text) != 0)
    return;
  snprintf(r->boot_id, sizeof(r->boot_id), "%.*s",
           (int)strcspn(text.text, "\n"), text.text);
  r->is_recalling = true;
  writer_submit(r->writer, &(struct document){.kind = DOCUMENT_RESUME});
}

/* Alarms wait meanwhile, for the values that cool down. */
static bool adopt(struct recorder *r) {
  bool waits;

  pthread_mutex_lock(&r->mutex);
  waits = resume_adopt(r->resume, &r->of);
  pthread_mutex_unlock(&r->mutex);
  return waits;
}

void recorder_recall(struct recorder *r, const struct resume_owners *of) {
  r->of = *of;
  r->of.boot_id = r->boot_id;
  r->of.settings = r->settings;
  r->of.cooldowns = &r->cooldowns;
  if (r->begin_ns == 0)
    begin_recall(r);
  if (r->is_recalling)
    r->is_recalling = !writer_recalled(
        r->writer, r->begin_ns ? 0 : r->settings->read_timeout_ns, &r->resume);
  if (r->resume && !adopt(r)) {
    resume_free(r->resume);
    r->resume = NULL;
  }
}

int recorder_run(struct recorder *r, const struct scene *s, uint64_t now_ns) {
  bool is_first = r->begin_ns == 0;
  int captured, stated;

  r->captured = 0;
  if (is_first)
    r->begin_ns = now_ns;
  if (!r->writer || (is_first && !r->settings->has_state_at_start))
    return NOTHING_DUE;
  captured = run_captures(r, s, now_ns);
  stated = run_state(r, s, now_ns);
  return captured < stated ? captured : stated;
}
