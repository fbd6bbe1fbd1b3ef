#include "snapshot/capture.h"

#include "cgroup/memory_cgroup.h"
#include "measure/aggregate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct group *find_group(const struct scene *s, const char *name) {
  for (size_t i = 0; i < s->groups->n; i++)
    if (strcmp(s->groups->groups[i]->name, name) == 0)
      return s->groups->groups[i];
  return NULL;
}

static bool is_member(const struct process *p, const struct group *g) {
  if (p->state != PROCESS_ALIVE || p->is_in_parents_mm)
    return false;
  for (size_t i = 0; i < p->n_groups; i++)
    if (p->groups[i] == g)
      return true;
  return false;
}

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
    bool has_pss;

    if (is_member(p, g))
      c->members[c->n++] =
          (struct capture_member){.pid = p->pid,
                                  .starttime_ticks = p->starttime_ticks,
                                  .weight = last_known_weigh(s, p, &has_pss)};
  }
  qsort(c->members, c->n, sizeof(*c->members), compare);
  c->in_group = g->usage.processes;
  if (c->n > s->settings->capture.top_processes)
    c->n = (size_t)s->settings->capture.top_processes;
  return 0;
}

/* NULL if it has ended. */
static struct process *find_member(const struct scene *s,
                                   const struct capture_member *m) {
  struct process *p = process_table_find(s->processes, m->pid);

  return p && p->starttime_ticks == m->starttime_ticks &&
                 p->state == PROCESS_ALIVE
             ? p
             : NULL;
}

/* Escapes blanks too: they separate the words of a summary. */
static void escape_comm(const char *comm, char *ret, size_t size) {
  size_t at = 0;

  for (; *comm; comm++, at += strlen(ret + at))
    if (*comm == ' ')
      snprintf(ret + at, size - at, "\\x20");
    else
      escape_text(comm, 1, ret + at, size - at);
}

static void summarize(struct summary *sum, const struct last_state *l) {
  *sum = l->summary;
  for (size_t i = 0; i < l->n && i < SUMMARY_PROCESSES; i++) {
    const struct last_member *m = &l->members[i];
    const char *comm = attributes_get(&m->attributes).value[ATTRIBUTE_COMM];
    struct summary_process *p = &sum->largest[sum->n++];

    *p = (struct summary_process){
        .pid = m->pid, .has_pss = m->has_pss, .bytes = m->weight};
    escape_comm(comm ? comm : "?", p->comm, sizeof(p->comm));
  }
}

/* --- a group that has ended ----------------------------------------------- */

static void begin_ended(struct capture *c, const struct scene *s,
                        const struct last_state *l) {
  bool has_command_line = s->settings->capture.command_lines == CHOICE_YES;

  summarize(&c->summary, l);
  c->summary.has_ended = true;
  c->summary.ended_ns = s->cycle->now_ns - l->cycle_ns;
  snapshot_begin(&c->json, s, &c->alarm, l);
  for (size_t i = 0; i < l->n && i < s->settings->capture.top_processes; i++) {
    snapshot_ended(&c->json, s, l, &l->members[i], has_command_line);
    c->written++;
  }
  c->in_group = l->usage.processes;
}

bool capture_is_of_kill(const struct alarm *alarm) {
  return strcmp(alarm->type_instance, "oom_kill") == 0;
}

/* The last known state, if the capture has to show that; NULL for the members
 * of now. Only an alarm about a kill is about processes from before a restart.
 */
static const struct last_state *ended_state(const struct scene *s,
                                            const struct last_known *last,
                                            const struct group *g,
                                            const struct alarm *alarm) {
  bool has_members = g && g->usage.processes > 0;
  bool is_kill = capture_is_of_kill(alarm);

  return last && (is_kill || !has_members)
             ? last_known_ended(last, s, has_members, is_kill)
             : NULL;
}

/* --- the beginning -------------------------------------------------------- */

int capture_begin(struct capture *c, const struct scene *s,
                  const struct last_known_table *last_known,
                  const struct alarm *alarm) {
  const struct group *g = find_group(s, alarm->group);
  const struct last_known *last = last_known_find(last_known, alarm->group);
  const struct last_state *ended = ended_state(s, last, g, alarm);
  int rc;

  if (!g && !ended)
    return -ENOENT;
  *c = (struct capture){.is_running = true,
                        .alarm = *alarm,
                        .time_ns = s->time_ns,
                        .json.max = JSON_MAX};
  if (ended) {
    begin_ended(c, s, ended);
    return 0;
  }
  rc = choose_members(c, s, g);
  if (rc < 0) {
    capture_done(c);
    return rc;
  }
  if (g->last)
    summarize(&c->summary, &g->last->state);
  else
    c->summary = last_known_sum_up(g, s);
  snapshot_begin(&c->json, s, &c->alarm, NULL);
  return 0;
}

/* A process in quarantine is not read. */
static int read_of(const struct scene *s, struct reader *reader,
                   struct process *p, enum read_kind kind,
                   struct read_job *job) {
  *job = (struct read_job){
      .process = p,
      .kind = kind,
      .request = {.pages_wanted = MAPPING_SAMPLE_PAGES,
                  .seed = s->cycle->now_ns ^ (uint64_t)p->pid << 40},
      .cgroup = {.pid = p->pid, .wants = CGROUP_WANTS_LIMIT}};
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

  if (!price_is_too_large(s->prices, p))
    return read_of(s, reader, p, READ_MAPPINGS, job);
  rc = read_of(s, reader, p, READ_MAPPING_SAMPLE, job);
  return rc == PROCFS_DENIED || rc == -EPERM || rc == -ENOSYS || rc == -EFBIG
             ? read_of(s, reader, p, READ_MAPS, job)
             : rc;
}

static void write_process(struct capture *c, const struct scene *s,
                          struct process *p, const struct close_up *close_up) {
  bool has_command_line = s->settings->capture.command_lines == CHOICE_YES;

  snapshot_process(&c->json, s, p, has_command_line, close_up);
  c->written++;
}

/* A process that has ended is left out; a process that cannot be read is added
 * without mappings. Returns the result of reading. */
static int add_process(struct capture *c, const struct scene *s,
                       struct reader *reader, struct process *p) {
  struct read_job job;
  int rc = read_mappings(s, reader, p, &job);
  struct mapping_table *table = rc == 0 ? job.mappings.table : NULL;

  if (rc == 0)
    rc = mapping_table_add(&c->all, table);
  if (rc == 0)
    write_process(
        c, s, p,
        &(struct close_up){
            .table = table,
            .sum = job.kind == READ_MAPPINGS ? &job.mappings.sum : NULL,
            .is_sampled = job.kind == READ_MAPPING_SAMPLE,
            .top_mappings = (size_t)s->settings->capture.top_mappings});
  else if (rc != PROCFS_GONE && rc != PROCFS_NO_MM)
    write_process(c, s, p, NULL);
  if (table)
    mapping_table_done(table);
  free(table);
  return rc;
}

/* The largest member stands for its group: usually all are in its control
 * group, or in groups below the one that has the limit. */
static void read_limit(struct capture *c, const struct scene *s,
                       struct reader *reader) {
  struct process *p = c->n > 0 ? find_member(s, &c->members[0]) : NULL;
  struct read_job job;
  int rc;

  if (!p)
    return;
  rc = read_of(s, reader, p, READ_CGROUP, &job);
  if (rc == 0 && job.cgroup.memory.known & CGROUP_HAS_LIMIT &&
      job.cgroup.memory.limit < CGROUP_LIMIT_NONE)
    c->summary.limit_bytes = job.cgroup.memory.limit;
}

bool capture_continue(struct capture *c, const struct scene *s,
                      struct reader *reader, uint64_t budget_ns) {
  uint64_t begin_ns = reader->setup.clock_ns();

  if (c->next == 0 && c->summary.limit_bytes == 0)
    read_limit(c, s, reader);
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

int capture_close_up(const struct scene *s, struct reader *reader, uint32_t pid,
                     char **ret_text, size_t *ret_len) {
  struct process *p = process_table_find(s->processes, pid);
  struct capture c = {.json.max = JSON_MAX};
  int rc;

  if (!p || p->state != PROCESS_ALIVE)
    return -ESRCH;
  snapshot_begin(&c.json, s, NULL, NULL);
  rc = close_up_error(add_process(&c, s, reader, p));
  if (rc == 0) {
    snapshot_end(&c.json, 0, NULL, 0);
    rc = json_finish(&c.json, ret_text, ret_len);
  }
  capture_done(&c);
  return rc;
}

int capture_finish(struct capture *c, const struct settings *settings,
                   char **ret_text, size_t *ret_len) {
  int rc;

  snapshot_end(&c->json, c->in_group - c->written, &c->all,
               (size_t)settings->capture.top_mappings);
  rc = json_finish(&c->json, ret_text, ret_len);
  capture_done(c);
  return rc;
}

void capture_done(struct capture *c) {
  json_done(&c->json);
  mapping_table_done(&c->all);
  free(c->members);
  *c = (struct capture){.is_running = false};
}
