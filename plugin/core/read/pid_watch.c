#include "read/pid_watch.h"

#define NOTED_AGAIN_NS (3600 * NS_PER_S)

static void note_failure(const struct reader *r, struct selector *s,
                         int error) {
  struct diag *t = &r->setup.diags[DIAG_PID_FILE];

  if (s->noted_ns && r->now_ns - s->noted_ns < NOTED_AGAIN_NS)
    return;
  s->noted_ns = r->now_ns;
  if (t->count++ > 0)
    return;
  t->file = s->pattern;
  t->error = -error;
}

static uint64_t starttime_of(const struct process_table *t, uint32_t pid) {
  const struct process *p = pid ? process_table_find(t, pid) : NULL;

  return p ? p->starttime_ticks : 0;
}

static void adopt_pid(const struct process_table *t, struct selector *s,
                      uint32_t pid) {
  s->is_pid_known = true;
  s->pid = pid;
  s->starttime_ticks = starttime_of(t, pid);
  back_off_forgive(&s->back_off);
}

/* The pid stands for the process that had it when the file was read. */
static void check_known_pid(const struct process_table *t, struct selector *s) {
  s->is_pid_known = false;
  if (!s->starttime_ticks ||
      !process_table_find_same(t, s->pid, s->starttime_ticks))
    s->pid = 0;
}

/* A job that was skipped, because no reader was free, says nothing about the
 * file. */
static void watch(struct reader *r, const struct process_table *t,
                  struct selector *s) {
  struct read_job job = {
      .kind = READ_PID_FILE, .path = s->pattern, .result = READ_SKIPPED};

  if (!back_off_is_on(&s->back_off, r->now_ns))
    reader_run(r, &job, 1);
  if (job.result == 0) {
    adopt_pid(t, s, job.pid);
    return;
  }
  check_known_pid(t, s);
  if (job.result == READ_SKIPPED)
    return;
  back_off_hang(&s->back_off, job.result != READ_STILL_HUNG,
                r->setup.read_timeout_ns, r->setup.clock_ns());
  /* If it still hangs at first sight, another selector names it, too. */
  if (job.result != READ_STILL_HUNG || s->noted_ns)
    note_failure(r, s, job.result < 0 ? job.result : 0);
}

static void make_due(const struct process_table *t, uint32_t pid) {
  struct process *p = process_table_find(t, pid);

  if (p)
    p->is_match_due = true;
}

static void run(struct reader *r, const struct process_table *t,
                struct selector *s) {
  uint32_t pid_before = s->pid;
  bool was_known = s->is_pid_known;

  watch(r, t, s);
  if (s->pid == pid_before && s->is_pid_known == was_known)
    return;
  make_due(t, pid_before);
  make_due(t, s->pid);
}

void pid_watch_run(struct reader *r, const struct settings *settings,
                   const struct process_table *t) {
  for (size_t i = 0; i < settings->n_rules; i++) {
    const struct rule *rule = &settings->rules[i];

    for (size_t j = 0; j < rule->n_selectors; j++)
      if (rule->selectors[j].test == SELECT_PID_FILE)
        run(r, t, &rule->selectors[j]);
  }
}
