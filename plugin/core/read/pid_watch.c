#include "read/pid_watch.h"

#include <errno.h>
#include <stdlib.h>

#include "proc/duration.h"

#define NOTED_AGAIN_NS (UINT64_C(3600) * NS_PER_S)

/* Lays out the files, if there is an array for them. Returns their number. */
static size_t find_files(const struct settings *settings,
                         struct watched_file *files) {
  size_t n = 0;

  for (size_t i = 0; i < settings->n_rules; i++)
    for (size_t j = 0; j < settings->rules[i].n_selectors; j++) {
      struct selector *s = &settings->rules[i].selectors[j];

      if (s->test == SELECT_PID_FILE && files)
        files[n].selector = s;
      n += s->test == SELECT_PID_FILE;
    }
  return n;
}

int pid_watch_init(struct pid_watch *w, const struct settings *settings,
                   struct reader *reader) {
  *w = (struct pid_watch){.reader = reader, .n = find_files(settings, NULL)};
  if (w->n == 0)
    return 0;
  w->files = calloc(w->n, sizeof(*w->files));
  if (!w->files)
    return -ENOMEM;
  find_files(settings, w->files);
  return 0;
}

void pid_watch_done(struct pid_watch *w) {
  free(w->files);
  *w = (struct pid_watch){0};
}

/* --- a cycle --- */

static void note_failure(const struct pid_watch *w, struct watched_file *f,
                         int error) {
  struct diag *t = &w->reader->setup.diags[DIAG_PID_FILE];
  uint64_t now_ns = w->reader->now_ns;

  if (f->noted_ns && now_ns - f->noted_ns < NOTED_AGAIN_NS)
    return;
  f->noted_ns = now_ns;
  if (t->count++ > 0)
    return;
  t->file = f->selector->pattern;
  t->error = -error;
}

static uint64_t starttime_of(const struct process_table *t, uint32_t pid) {
  const struct process *p = pid ? process_table_find(t, pid) : NULL;

  return p ? p->starttime_ticks : 0;
}

static void adopt_pid(const struct process_table *t, struct watched_file *f,
                      uint32_t pid) {
  f->selector->is_pid_known = true;
  f->selector->pid = pid;
  f->starttime_ticks = starttime_of(t, pid);
  back_off_forgive(&f->back_off);
}

/* The pid stands for the process that had it when the file was read. */
static void check_known_pid(const struct process_table *t,
                            struct watched_file *f) {
  uint64_t starttime = starttime_of(t, f->selector->pid);

  f->selector->is_pid_known = false;
  if (!starttime || starttime != f->starttime_ticks)
    f->selector->pid = 0;
}

/* job is NULL if the file was not read. A job that was skipped, because no
 * reader was free, says nothing about the file. */
static void apply_result(const struct pid_watch *w,
                         const struct process_table *t, struct watched_file *f,
                         const struct read_job *job) {
  const struct reader_setup *setup = &w->reader->setup;

  if (job && job->result == 0) {
    adopt_pid(t, f, job->pid);
    return;
  }
  check_known_pid(t, f);
  if (!job || job->result == READ_SKIPPED)
    return;
  back_off_extend(&f->back_off, job->result != READ_STILL_HUNG,
                  setup->read_timeout_ns, setup->clock_ns());
  /* If it still hangs at first sight, another selector names it, too. */
  if (job->result != READ_STILL_HUNG || f->noted_ns)
    note_failure(w, f, job->result < 0 ? job->result : 0);
}

static void make_due(const struct process_table *t, uint32_t pid) {
  struct process *p = process_table_find(t, pid);

  if (p)
    p->is_match_due = true;
}

static void watch(const struct pid_watch *w, const struct process_table *t,
                  struct watched_file *f) {
  struct read_job job = {.kind = READ_PID_FILE, .path = f->selector->pattern};
  bool is_left_alone = back_off_is_on(&f->back_off, w->reader->now_ns);

  if (!is_left_alone)
    reader_run(w->reader, &job, 1);
  apply_result(w, t, f, is_left_alone ? NULL : &job);
}

void pid_watch_run(const struct pid_watch *w, const struct process_table *t) {
  for (size_t i = 0; i < w->n; i++) {
    const struct selector *s = w->files[i].selector;
    uint32_t pid_before = s->pid;
    bool was_known = s->is_pid_known;

    watch(w, t, &w->files[i]);
    if (s->pid == pid_before && s->is_pid_known == was_known)
      continue;
    make_due(t, pid_before);
    make_due(t, s->pid);
  }
}
