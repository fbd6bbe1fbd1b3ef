#include "measure/observe.h"

#include "estimate/estimator.h"
#include "estimate/group_track.h"
#include "estimate/member.h"
#include "match/group.h"
#include "proc/arith.h"
#include "proc/cheap_files.h"
#include "read/read_batch.h"

static void take(const struct observer *observer, struct process *p,
                 const struct read_job *faults) {
  struct observation o = {.resident_pages =
                              amount_narrow(p->statm.resident_pages),
                          .shared_pages = amount_narrow(p->statm.shared_pages),
                          .threads = p->threads};

  p->member->has_new_tables = false;
  if (faults && faults->result == 0) {
    o.minor_faults = (uint32_t)faults->stat.minor_faults;
    o.has_faults = true;
  }
  if (estimator_wants_swap(observer->cycle, &p->member->track, &o))
    o.has_swap = member_read_swap_kb(observer->procfs, p, &o.vm_swap_kb);
  estimator_observe(observer->cycle, &p->member->track,
                    &p->groups[0]->track->sharing, &o);
}

/* True if its minor faults have to be read first. */
static bool wants_faults(const struct observer *o, const struct process *p) {
  return member_is_measured(p) && track_wants_faults(&p->member->track) &&
         !quarantine_has(p, o->cycle->now_ns) &&
         member_policy(p).refresh == REFRESH_ADAPTIVE;
}

/* Adds the memory that the ended process had at its last reading, and what it
 * got until statm was last read. */
static void add_ended(const struct process *p, uint64_t page_size,
                      struct usage *u) {
  const struct baseline *b = &p->member->track.baseline;
  uint64_t resident = p->statm.resident_pages;
  uint64_t more = minus(resident, b->at.resident_pages) * page_size;

  if (!track_has_baseline(&p->member->track)) {
    u->ended_unread++;
    u->ended_unread_bytes += resident * page_size;
    return;
  }
  u->ended_pss += b->rollup.bytes[ROLLUP_PSS] + more;
  u->ended_uss += rollup_uss(&b->rollup) + more;
}

/* Called once: a zombie is counted in the cycle in which it ended. */
static void note_end(const struct observer *o, const struct process *p) {
  for (size_t i = 0; i < p->n_groups; i++)
    add_ended(p, o->cycle->page_size, &p->groups[i]->usage);
}

static void observe_at_once(struct observer *o, struct process *p) {
  if (member_is_measured(p))
    take(o, p, NULL);
  else if (member_is_counted(p))
    estimator_observe(o->cycle, &p->member->track,
                      &p->groups[0]->track->sharing, NULL);
  else if (p->member) {
    if (p->state == PROCESS_GONE && track_has_baseline(&p->member->track))
      note_end(o, p);
    estimator_forget(&p->member->track);
  }
}

void observe_end(struct observer *o, struct process *p) {
  if (p->state == PROCESS_GONE)
    return;
  note_end(o, p);
  estimator_forget(&p->member->track);
  fork_family_leave(&p->member->track);
  p->state = PROCESS_GONE;
  o->vanished++;
}

static void apply_faults(void *ctx, struct read_job *job) {
  if (job->result == PROCFS_GONE) {
    observe_end(ctx, job->process);
    return;
  }
  take(ctx, job->process, job);
}

void observe_all(struct observer *o) {
  const struct process_table *t = o->table;
  struct read_batch batch;

  read_batch_init(&batch, o->reader, apply_faults, o);
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];
    struct read_job job = {.process = p, .kind = READ_STAT};

    if (!wants_faults(o, p)) {
      observe_at_once(o, p);
      continue;
    }
    read_batch_add(&batch, &job);
  }
  read_batch_flush(&batch);
}

static bool wants_page_tables(const struct process *p) {
  const struct member *t = p->member;

  return !t->has_new_tables &&
         (t->is_read ||
          page_tables_are_due(&t->tables, p->statm.resident_pages));
}

void observe_page_tables(const struct observer *o) {
  const struct process_table *t = o->table;
  struct status_sample s;

  for (size_t i = 0; i < t->n; i++)
    if (member_is_measured(t->processes[i]) &&
        wants_page_tables(t->processes[i]))
      member_read_status(o->procfs, t->processes[i], &s);
}
