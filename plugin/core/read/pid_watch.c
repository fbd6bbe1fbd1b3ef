/* SPDX-License-Identifier: MIT */
#include "read/pid_watch.h"

#include "cgroup/cgroup.h"
#include "proc/cheap_files.h"

#define NOTED_AGAIN_NS (3600 * NS_PER_S)
/* Clocks are set by a few seconds without anybody's doing. */
#define SLACK_NS ((int64_t)(5 * NS_PER_S))
/* A process writes its PID file soon, and is listed a cycle later at most. */
#define WRITES_WITHIN_NS ((int64_t)(10 * NS_PER_S))
#define SEEKS_MAX 3

struct watch {
  struct reader *reader;
  const struct process_table *processes;
  uint64_t boot_ns; /* time of day of the host's start; 0: unknown */
};

static void note(const struct reader *r, struct selector *s,
                 enum diag_kind kind, int error) {
  struct diag *t = &r->setup.diags[kind];

  if (s->noted_ns && r->now_ns - s->noted_ns < NOTED_AGAIN_NS)
    return;
  s->noted_ns = r->now_ns;
  if (t->count++ > 0)
    return;
  t->file = s->pattern;
  t->pid = s->claim.number;
  t->error = error;
}

/* --- whom it names -------------------------------------------------------- */

static void find_boot(struct watch *w) {
  struct span text;
  uint64_t s;

  if (!w->boot_ns &&
      procfs_read(w->reader->setup.procfs, 0, "stat", &text) == 0 &&
      cgroup_parse_keyed(text, "btime", &s))
    w->boot_ns = s * NS_PER_S;
}

/* From the start of a process to the last change of the file; 0 if unknown. A
 * file in memory that is older than the host's start has its time from before
 * the clock was set. */
static int64_t age_at_change(const struct watch *w, const struct pid_claim *c,
                             const struct process *p) {
  int64_t changed_ns = (int64_t)(c->changed_ns - w->boot_ns);

  if (!w->boot_ns || !p->starttime_ticks ||
      (c->is_of_boot && changed_ns < -SLACK_NS))
    return 0;
  return changed_ns - (int64_t)(p->starttime_ticks * w->reader->tick_ns);
}

/* Once a process was named, no other is while the file is the same, whatever
 * happens to the clock. */
static bool is_later(const struct watch *w, const struct selector *s,
                     const struct process *p) {
  return s->starttime_ticks ? p->starttime_ticks != s->starttime_ticks
                            : age_at_change(w, &s->claim, p) < -SLACK_NS;
}

static enum pid_doubt doubt_about(const struct watch *w,
                                  const struct selector *s,
                                  const struct process *p) {
  const struct pid_claim *c = &s->claim;
  struct status_sample status;

  if (!p)
    return PID_IS_NOBODY;
  if (p->pid == 1 || p->state == PROCESS_KERNEL)
    return PID_IS_KERNEL;
  if (is_later(w, s, p))
    return PID_IS_LATER;
  if ((c->writer || c->group) &&
      status_read_of(w->reader->setup.procfs, p->pid, &status) == 0 &&
      ((c->writer && status.uid_effective != c->writer) ||
       (c->group && status.gid_effective != c->group)))
    return PID_IS_FORGED;
  return PID_BELIEVED;
}

/* True if it has the number in a pid namespace of its own, and may have written
 * the file when it started. */
static bool has_written(const struct watch *w, const struct selector *s,
                        const struct process *p) {
  struct status_sample status;

  return p->state == PROCESS_ALIVE &&
         age_at_change(w, &s->claim, p) <= WRITES_WITHIN_NS &&
         doubt_about(w, s, p) == PID_BELIEVED &&
         status_read_of(w->reader->setup.procfs, p->pid, &status) == 0 &&
         status.inner_pid == s->claim.number;
}

/* Each container has a process 1: only one that is alone in it is meant. After
 * some cycles none can be added. */
static const struct process *seek_inner(const struct watch *w,
                                        struct selector *s) {
  const struct process_table *t = w->processes;
  const struct process *found = NULL;

  if (s->starttime_ticks || s->seeks++ >= SEEKS_MAX)
    return NULL;
  for (size_t i = 0; i < t->n; i++)
    if (has_written(w, s, t->processes[i])) {
      if (found)
        return NULL;
      found = t->processes[i];
    }
  return found;
}

static void choose(const struct watch *w, struct selector *s) {
  const struct process *p = process_table_find(w->processes, s->claim.number);
  enum pid_doubt before = s->doubt;

  s->doubt = doubt_about(w, s, p);
  if (s->doubt != PID_BELIEVED)
    p = seek_inner(w, s);
  s->pid = p ? p->pid : 0;
  if (p) {
    s->doubt = PID_BELIEVED;
    s->starttime_ticks = p->starttime_ticks;
  } else if (s->doubt != before && s->doubt != PID_IS_NOBODY) {
    note(w->reader, s, DIAG_PID_DOUBT, (int)s->doubt);
  }
}

static void adopt(struct watch *w, struct selector *s,
                  const struct pid_claim *c) {
  const struct pid_claim *old = &s->claim;

  back_off_forgive(&s->back_off);
  if (old->number != c->number || old->writer != c->writer ||
      old->group != c->group || old->ino != c->ino ||
      old->changed_ns != c->changed_ns) {
    s->claim = *c;
    s->doubt = PID_BELIEVED;
    s->starttime_ticks = s->pid = s->seeks = 0;
  }
  if (!c->number || s->pid) /* which still runs */
    return;
  find_boot(w);
  choose(w, s);
}

/* --- the file --------------------------------------------------------------
 */

/* The pid stands for the process that had it when the file was read. A job that
 * was skipped, because no reader was free, says nothing about the file. */
static void watch(struct watch *w, struct selector *s) {
  struct reader *r = w->reader;
  struct read_job job = {
      .kind = READ_PID_FILE, .path = s->pattern, .result = READ_SKIPPED};

  if (!back_off_is_on(&s->back_off, r->now_ns))
    reader_run(r, &job, 1);
  if (!s->starttime_ticks ||
      !process_table_find_same(w->processes, s->pid, s->starttime_ticks))
    s->pid = 0;
  s->is_pid_known = job.result == 0;
  if (job.result == 0)
    adopt(w, s, &job.pid_claim);
  if (job.result == 0 || job.result == READ_SKIPPED)
    return;
  back_off_hang(&s->back_off, job.result != READ_STILL_HUNG,
                r->setup.read_timeout_ns, r->setup.clock_ns());
  /* If it still hangs at first sight, another selector names it, too. */
  if (job.result != READ_STILL_HUNG || s->noted_ns)
    note(r, s, DIAG_PID_FILE, job.result < 0 ? -job.result : 0);
}

static void make_due(const struct process_table *t, uint32_t pid) {
  struct process *p = process_table_find(t, pid);

  if (p)
    p->is_match_due = true;
}

static void run(struct watch *w, struct selector *s) {
  uint32_t pid_before = s->pid;
  bool was_known = s->is_pid_known;

  watch(w, s);
  if (s->pid == pid_before && s->is_pid_known == was_known)
    return;
  make_due(w->processes, pid_before);
  make_due(w->processes, s->pid);
}

void pid_watch_run(struct reader *r, const struct settings *settings,
                   const struct process_table *t) {
  struct watch w = {.reader = r, .processes = t};

  for (size_t i = 0; i < settings->n_rules; i++) {
    const struct rule *rule = &settings->rules[i];

    for (size_t j = 0; j < rule->n_selectors; j++)
      if (rule->selectors[j].test == SELECT_PID_FILE)
        run(&w, &rule->selectors[j]);
  }
}
