#include "estimate/observe.h"

#include "estimate/member.h"
#include "proc/amount.h"
#include "proc/cheap_files.h"
#include "read/read_batch.h"

static void take(struct measurer *m, struct process *p,
                 const struct read_job *faults) {
  struct observation o = {.resident_pages =
                              amount_narrow(p->statm.resident_pages),
                          .shared_pages = amount_narrow(p->statm.shared_pages),
                          .threads = p->threads};

  p->track->has_new_tables = false;
  if (faults && !quarantine_check(m->quarantine, faults) &&
      faults->result == 0) {
    o.minor_faults = (uint32_t)faults->stat.minor_faults;
    o.has_faults = true;
  }
  if (estimator_wants_swap(&m->estimator, p->track, &o))
    o.has_swap = member_read_swap_kb(m->procfs, p, &o.vm_swap_kb);
  estimator_observe(&m->estimator, p->track, &p->groups[0]->track->sharing, &o);
}

/* Whether its minor faults have to be read first. */
static bool wants_faults(const struct measurer *m, const struct process *p) {
  return member_is_measured(p) && estimator_wants_faults(p->track) &&
         !quarantine_has(p, m->estimator.now_ns) &&
         member_policy(p).refresh == REFRESH_ADAPTIVE;
}

/* A zombie has been counted when it ended. */
static void note_end(const struct process *p) {
  for (size_t i = 0; i < p->n_groups; i++)
    p->groups[i]->usage.ended++;
}

static void observe_at_once(struct measurer *m, struct process *p) {
  if (member_is_measured(p))
    take(m, p, NULL);
  else if (member_is_counted(p))
    estimator_observe(&m->estimator, p->track, &p->groups[0]->track->sharing,
                      NULL);
  else if (p->track) {
    if (p->state == PROCESS_GONE && estimator_has_baseline(p->track))
      note_end(p);
    estimator_forget(p->track);
  }
}

void observe_end(struct measurer *m, struct process *p) {
  if (p->state == PROCESS_GONE)
    return;
  note_end(p);
  estimator_forget(p->track);
  fork_family_leave(p->track);
  p->state = PROCESS_GONE;
  m->vanished++;
}

static bool has_ended(const struct measurer *m, const struct process *p) {
  struct statm_sample statm;
  int rc = statm_read_of(m->procfs, p->pid, &statm);

  return rc == 0 ? !statm_has_mm(&statm) : rc == PROCFS_GONE;
}

/* Only what a group would be wrong by is worth a look at all processes. */
static bool is_worth_it(const struct process *p, uint64_t bytes) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (bytes > p->groups[i]->track->tolerated_bytes)
      return true;
  return false;
}

void observe_relatives(struct measurer *m, const struct process *p,
                       const struct rollup *found, uint32_t vm_swap_kb) {
  uint64_t missing =
      estimator_missing_bytes(&m->estimator, p->track, found, vm_swap_kb);

  if (missing < ROLLUP_COW_LEAST_BYTES || !is_worth_it(p, missing))
    return;
  for (size_t i = 0; i < m->table->n; i++) {
    struct process *other = m->table->processes[i];

    if (other != p && other->state == PROCESS_ALIVE && !other->is_dead_leader &&
        other->track->family == p->track->family && has_ended(m, other))
      observe_end(m, other);
  }
}

static void apply_faults(void *ctx, struct read_job *job) {
  if (job->result == PROCFS_GONE) {
    observe_end(ctx, job->process);
    return;
  }
  take(ctx, job->process, job);
}

void observe_all(struct measurer *m, const struct process_table *t) {
  struct read_batch batch;

  read_batch_init(&batch, m->reader, apply_faults, m);
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];
    struct read_job job = {.process = p, .kind = READ_STAT};

    if (!wants_faults(m, p)) {
      observe_at_once(m, p);
      continue;
    }
    read_batch_add(&batch, &job);
  }
  read_batch_flush(&batch);
}

void observe_one(struct measurer *m, struct process *p) { take(m, p, NULL); }

static bool wants_page_tables(const struct process *p) {
  const struct track *t = p->track;

  return !t->has_new_tables &&
         (t->is_read ||
          page_tables_are_due(&t->tables, p->statm.resident_pages));
}

void observe_page_tables(const struct measurer *m,
                         const struct process_table *t) {
  struct status_sample s;

  if (!m->wants_page_tables)
    return;
  for (size_t i = 0; i < t->n; i++)
    if (member_is_measured(t->processes[i]) &&
        wants_page_tables(t->processes[i]))
      member_read_status(m->procfs, t->processes[i], &s);
}
