#include "read/pid_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/duration.h"

#define NOTED_AGAIN_NS (UINT64_C(3600) * NS_PER_S)

/* Returns the next selector by PID file, of any rule; NULL at the end. */
struct selector_cursor {
  size_t rule, selector;
};

static struct selector *next_selector(const struct settings *settings,
                                      struct selector_cursor *c) {
  for (; c->rule < settings->n_rules; c->rule++, c->selector = 0) {
    const struct rule *rule = &settings->rules[c->rule];

    while (c->selector < rule->n_selectors) {
      struct selector *s = &rule->selectors[c->selector++];

      if (s->test == SELECT_PID_FILE)
        return s;
    }
  }
  return NULL;
}

static bool has_path(const struct watched_file *files, size_t n,
                     const char *path) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(files[i].path, path) == 0)
      return true;
  return false;
}

int pid_watch_init(struct pid_watch *w, const struct settings *settings,
                   struct reader *reader, const struct quarantine *quarantine) {
  struct selector_cursor counting = {0}, adding = {0};
  const struct selector *s;
  size_t most = 0, n = 0;

  *w = (struct pid_watch){
      .settings = settings, .reader = reader, .quarantine = quarantine};
  while (next_selector(settings, &counting))
    most++;
  if (most == 0)
    return 0;
  w->files = calloc(most, sizeof(*w->files));
  w->jobs = calloc(most, sizeof(*w->jobs));
  if (!w->files || !w->jobs) {
    pid_watch_done(w);
    return -ENOMEM;
  }
  while ((s = next_selector(settings, &adding)))
    if (!has_path(w->files, n, s->pattern))
      w->files[n++].path = s->pattern;
  w->n = n;
  return 0;
}

void pid_watch_done(struct pid_watch *w) {
  free(w->files);
  free(w->jobs);
  *w = (struct pid_watch){0};
}

/* --- a cycle --- */

static void note_failure(const struct pid_watch *w, struct watched_file *f,
                         int error, uint64_t now_ns) {
  struct diag *t = &w->quarantine->diags[DIAG_PID_FILE];

  if (f->noted_ns && now_ns - f->noted_ns < NOTED_AGAIN_NS)
    return;
  f->noted_ns = now_ns;
  if (t->count++ > 0)
    return;
  t->file = f->path;
  t->error = -error;
}

static uint64_t starttime_of(const struct process_table *t, uint32_t pid) {
  const struct process *p = pid ? process_table_find(t, pid) : NULL;

  return p ? p->starttime_ticks : 0;
}

static void adopt_pid(const struct process_table *t, struct watched_file *f,
                      uint32_t pid) {
  f->is_known = true;
  f->pid = pid;
  f->starttime_ticks = starttime_of(t, pid);
  back_off_forgive(&f->back_off);
}

/* The pid stands for the process that had it when the file was read. */
static void check_known_pid(const struct process_table *t,
                            struct watched_file *f) {
  uint64_t starttime = starttime_of(t, f->pid);

  f->is_known = false;
  if (!starttime || starttime != f->starttime_ticks)
    f->pid = 0;
}

/* job is NULL if the file was not read. A job that was skipped, because no
 * reader was free, says nothing about the file. */
static void apply_result(const struct pid_watch *w,
                         const struct process_table *t, struct watched_file *f,
                         const struct read_job *job, uint64_t now_ns) {
  const struct quarantine *q = w->quarantine;

  if (job && job->result == 0) {
    adopt_pid(t, f, job->pid);
    return;
  }
  check_known_pid(t, f);
  if (!job || job->result == READ_SKIPPED)
    return;
  back_off_extend(&f->back_off, job->result != READ_STILL_HUNG,
                  q->read_timeout_ns, q->clock_ns());
  note_failure(w, f, job->result < 0 ? job->result : 0, now_ns);
}

static void make_due(const struct process_table *t, uint32_t pid) {
  struct process *p = process_table_find(t, pid);

  if (p)
    p->is_match_due = true;
}

static void update_selectors(const struct pid_watch *w,
                             const struct watched_file *f) {
  struct selector_cursor c = {0};
  struct selector *s;

  while ((s = next_selector(w->settings, &c))) {
    if (strcmp(s->pattern, f->path) != 0)
      continue;
    s->pid = f->pid;
    s->is_pid_known = f->is_known;
  }
}

static size_t fill_jobs(const struct pid_watch *w, uint64_t now_ns) {
  size_t n = 0;

  for (size_t i = 0; i < w->n; i++)
    if (!back_off_is_on(&w->files[i].back_off, now_ns))
      w->jobs[n++] =
          (struct read_job){.kind = READ_PID_FILE, .path = w->files[i].path};
  return n;
}

void pid_watch_run(struct pid_watch *w, const struct process_table *t,
                   uint64_t now_ns) {
  size_t n = fill_jobs(w, now_ns), next_job = 0;

  reader_run(w->reader, w->jobs, n);
  for (size_t i = 0; i < w->n; i++) {
    struct watched_file *f = &w->files[i], before = *f;
    const struct read_job *job = NULL;

    if (next_job < n && w->jobs[next_job].path == f->path)
      job = &w->jobs[next_job++];
    apply_result(w, t, f, job, now_ns);
    if (f->pid == before.pid && f->is_known == before.is_known)
      continue;
    update_selectors(w, f);
    make_due(t, before.pid);
    make_due(t, f->pid);
  }
}
