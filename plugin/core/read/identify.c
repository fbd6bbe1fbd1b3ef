/* SPDX-License-Identifier: MIT */
#include "read/identify.h"

#include <errno.h>

#include "proc/cheap_files.h"
#include "read/reader.h"

struct identify_ctx {
  struct reader *reader;
  struct procfs *procfs; /* for files that cannot hang */
  const struct process_table *processes;
  uint64_t vanished;
};

static void adopt_names(struct process *p, struct inspection *seen,
                        uint64_t now_ns) {
  bool is_new = !p->identified_ns || p->image != seen->image;

  if (seen->has_changed) {
    attributes_done(&p->attributes);
    p->attributes = seen->attributes;
    seen->attributes = (struct stored_attributes){0};
  }
  p->is_match_due |= seen->has_changed || is_new;
  p->is_settled = !is_new;
  p->is_kcmp_refused &= !is_new;
  p->image = seen->image;
  p->identified_ns = now_ns;
}

static void adopt_stat(struct identify_ctx *in, struct process *p,
                       const struct stat_sample *s) {
  if (!process_is_same(p, s->starttime_ticks))
    process_reset(in->processes, p);
  p->starttime_ticks = s->starttime_ticks;
  if (!p->is_linked)
    p->parent_pid = s->ppid;
  p->threads = s->threads;
  p->start_stack = s->start_stack;
  p->is_dead_leader = stat_is_dead(s) && s->threads > 1;
}

/* Reading comm cannot hang. If that fails, the name may have changed. */
static bool has_other_name(struct identify_ctx *in, const struct process *p) {
  const char *known = attributes_get(&p->attributes).value[ATTRIBUTE_COMM];
  struct span text;
  int rc = comm_read_of(in->procfs, p->pid, &text);

  return rc != 0 ? rc < 0 : !known || !span_is(text, known);
}

/* The end of a process is not a failure. */
static void apply_failure(struct identify_ctx *in, struct process *p, int rc,
                          const char *file) {
  if (rc == PROCFS_GONE || rc == PROCFS_NO_MM) {
    in->vanished++;
    process_set_state(p, PROCESS_GONE);
    return;
  }
  diag_note(in->reader->setup.diags,
            rc == PROCFS_DENIED ? DIAG_PROCESS_DENIED : DIAG_FAILED, p, rc,
            file);
  process_set_state(p, PROCESS_UNKNOWN);
  if (!p->identified_ns || !(p->has_new_inode || has_other_name(in, p)))
    return;
  p->is_settled = false;
  p->is_match_due = true;
}

/* Only members of groups are worth an open descriptor. */
static int read_statm(struct identify_ctx *in, struct process *p,
                      struct statm_sample *ret) {
  return statm_read_of(in->procfs, p->pid,
                       p->n_groups > 0 ? &p->statm_file : NULL, ret);
}

/*
 * True if statm shows no sign of another program. An exec, a new thread (its
 * stack) and the end of the main thread all change the size; so does a malloc
 * now and then, and then stat is read.
 */
static bool is_unchanged(const struct statm_sample *before,
                         const struct statm_sample *now) {
  return now->size_pages == before->size_pages &&
         now->text_pages == before->text_pages;
}

/* Kernel threads and zombies have no further threads. Reading status cannot
 * hang. */
static bool has_further_threads(struct identify_ctx *in,
                                const struct process *p) {
  struct status_sample status;

  return status_read_of(in->procfs, p->pid, &status) == 0 && status.threads > 1;
}

/* True if the pid may belong to another process, or run another program. */
static bool may_be_other(struct identify_ctx *in, const struct process *p,
                         const struct statm_sample *now) {
  return p->has_new_inode || p->is_match_due ||
         (!p->is_dead_leader && now->text_pages != p->statm.text_pages) ||
         has_other_name(in, p);
}

/* Uses statm instead of an inspection, and returns the state that it shows. A
 * known process stays alive as it was, as long as it has memory and shows no
 * change; the reason for an inspection persists. A process that may have
 * changed groups is due to be matched, and counts as unidentified until then.
 */
static enum process_state refresh_from_statm(struct identify_ctx *in,
                                             struct process *p) {
  struct statm_sample statm = {0};
  int rc = read_statm(in, p, &statm);
  bool shows_none = rc == 0 && !p->is_dead_leader && !statm_has_mm(&statm);
  bool is_other;

  /* If only the main thread has ended, its file shows no memory either. */
  if (rc == PROCFS_GONE || (shows_none && !has_further_threads(in, p)))
    return PROCESS_GONE;
  if (rc != 0 || shows_none)
    return PROCESS_UNKNOWN;
  is_other = p->identified_ns && may_be_other(in, p, &statm);
  if (!p->is_dead_leader) { /* which shows no memory */
    p->is_settled &= is_unchanged(&p->statm, &statm);
    p->statm = statm;
  }
  p->is_settled &= !is_other;
  p->is_match_due |= is_other;
  return p->identified_ns && !is_other ? PROCESS_ALIVE : PROCESS_UNKNOWN;
}

static void apply_inspection(struct identify_ctx *in,
                             const struct read_job *job,
                             struct inspection *seen) {
  struct process *p = job->process;

  if (!read_has_result(job)) {
    process_set_state(p, refresh_from_statm(in, p));
    return;
  }
  if (seen->state != PROCESS_UNSEEN)
    adopt_stat(in, p, &seen->stat);
  if (job->result != 0) {
    p->is_match_due |= seen->image && seen->image != p->image;
    apply_failure(in, p, job->result, seen->file);
    return;
  }
  process_set_state(p, seen->state);
  if (seen->state != PROCESS_ALIVE)
    return;
  p->statm = seen->statm;
  if (seen->has_names)
    adopt_names(p, seen, in->reader->now_ns);
  /* The names are known by now, for the log. */
  if (seen->is_executable_denied &&
      (in->reader->setup.rule_attributes >> ATTRIBUTE_EXECUTABLE) & 1)
    diag_note(in->reader->setup.diags, DIAG_EXECUTABLE_DENIED, p, 0, "exe");
  if (seen->container_error)
    diag_note(in->reader->setup.diags, DIAG_CONTAINER_FILE, p,
              seen->container_error, seen->container_file);
}

static void finish_job(void *ctx, struct read_job *job) {
  apply_inspection(ctx, job, &job->inspection);
  inspection_done(&job->inspection);
}

/* Checks a known process by statm alone. True if that is enough. */
static bool quick_check(struct identify_ctx *in, struct process *p) {
  struct statm_sample statm;

  if (!p->identified_ns || p->has_new_inode || !p->is_settled ||
      p->is_dead_leader ||
      inspect_is_due(p->pid, p->identified_ns, in->reader->now_ns,
                     in->reader->setup.interval_ns))
    return false;
  if (read_statm(in, p, &statm) != 0 || !is_unchanged(&p->statm, &statm))
    return false;
  /* A new thread may reuse the stack of an ended one, so the size does not
   * count threads; but one cannot become two without a change of size. */
  if (p->threads > 1 &&
      procfs_count_threads(in->procfs, p->pid, &p->threads) != 0)
    return false;
  p->statm = statm;
  process_set_state(p, PROCESS_ALIVE);
  return true;
}

uint64_t identify_all(struct reader *r, const struct process_table *t) {
  struct identify_ctx in = {
      .reader = r, .procfs = r->setup.procfs, .processes = t};
  struct read_batch batch;

  read_batch_init(&batch, r, finish_job, &in);
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];
    struct read_job job = {.process = p, .kind = READ_INSPECTION};

    if (p->state != PROCESS_UNSEEN)
      continue;
    if (p->has_new_inode)
      p->hung.until_ns = 0;
    if (quarantine_has(p, r->now_ns))
      process_set_state(p, refresh_from_statm(&in, p));
    else if (!quick_check(&in, p))
      read_batch_add(&batch, &job);
  }
  read_batch_flush(&batch);
  return in.vanished;
}
