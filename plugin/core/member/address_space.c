/* SPDX-License-Identifier: MIT */
#include "member/address_space.h"

#include <errno.h>

#include "member/member.h"
#include "process/diag.h"
#include "read/reader.h"

static void prepare(const struct process_table *t, struct process *p,
                    struct diag *diags) {
  if (p->state != PROCESS_ALIVE)
    return;
  if (!p->is_linked)
    process_table_link(t, p);
  if (member_make(p) == 0)
    return;
  process_set_state(p, PROCESS_UNKNOWN);
  diag_note(diags, DIAG_FAILED, p, -ENOMEM, "statm");
}

/* --- fork families --- */

static bool is_relative(const struct process *other, const struct process *p) {
  return other && other->member && other->state == PROCESS_ALIVE &&
         process_program(other) == process_program(p);
}

/* The parent; or the oldest, if a reading has shown that it shares memory with
 * somebody: a sibling (CLONE_PARENT), or one whose child has forked it and has
 * ended. */
static struct process *find_relative(const struct process_table *t,
                                     const struct process *p) {
  struct process *parent = process_table_parent(t, p), *oldest = NULL;

  if (is_relative(parent, p) || p->member->track.strangers == STRANGERS_NONE)
    return is_relative(parent, p) ? parent : NULL;
  for (size_t i = 0; i < t->n; i++)
    if (is_relative(t->processes[i], p) &&
        (!oldest || t->processes[i]->starttime_ticks < oldest->starttime_ticks))
      oldest = t->processes[i];
  return oldest != p ? oldest : NULL;
}

/* Parents can come later than their children once pids have wrapped around:
 * they are decided first, in one more call for each time that pids did. All
 * have been prepared. Without memory for a family it stands alone until the
 * next cycle. */
static void update_family(const struct process_table *t, struct process *p) {
  struct track *track = &p->member->track;
  struct process *parent;

  member_refresh(p);
  if (track->kinship != KINSHIP_UNDECIDED || !p->is_linked)
    return;
  kinship_apply(track, KINSHIP_NOT_FOUND, NULL);
  parent = find_relative(t, p);
  if (!parent)
    return;
  update_family(t, parent);
  if (track->family) /* a ring of parents, in a broken tree */
    return;
  if (fork_family_join(track, &parent->member->track) < 0)
    fork_family_leave(track);
  else if (parent->member->read_time.is_learnt &&
           !track->family->read_time.is_learnt)
    track->family->read_time = parent->member->read_time;
}

/* A child needs its parent and the parent's track. A parent with a higher pid
 * comes after its child, so all processes are prepared first. */
void address_space_relate(struct process_table *t, struct diag *diags) {
  for (size_t i = 0; i < t->n; i++)
    prepare(t, t->processes[i], diags);
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    /* A zombie has no memory to share. */
    if (p->state == PROCESS_GONE && p->member)
      fork_family_leave(&p->member->track);
    if (p->state == PROCESS_ALIVE)
      update_family(t, p);
  }
}

/* --- the same memory --- */

static bool is_member(const struct process *p) {
  return p->state == PROCESS_ALIVE && p->n_groups > 0;
}

/*
 * The parent, if the process may run in its memory. A child has its parent's
 * stack and program until it calls exec, so other parents need not be compared.
 * Two mms never become one, so a process with its own mm is not compared again.
 */
static const struct process *find_candidate(const struct process_table *t,
                                            struct process *p) {
  const struct process *parent;

  if (!is_member(p) || p->has_own_mm || !p->is_linked)
    return NULL;
  parent = process_table_parent(t, p);
  p->has_own_mm = !parent || (parent->state == PROCESS_ALIVE &&
                              process_program(parent) != process_program(p));
  return p->has_own_mm || !is_member(parent) ? NULL : parent;
}

/* The kernel compares main threads. Those that have ended have no memory any
 * more, and so all have the same: what was found before holds. */
static bool can_ask(const struct process *p, uint64_t now_ns) {
  return !p->is_dead_leader && !quarantine_has(p, now_ns);
}

/* Each refusal may cost a line in an audit log (AppArmor). ENOSYS: not built
 * in, or filtered. */
static void apply_answer(void *ctx, struct read_job *job) {
  struct process *p = job->process;

  (void)ctx;
  p->is_kcmp_refused =
      job->result == -EPERM || job->result == -EACCES || job->result == -ENOSYS;
  if (job->result != 0)
    return;
  p->is_in_parents_mm = job->is_same_mm;
  p->has_own_mm = !job->is_same_mm;
}

void address_space_find_shared(const struct process_table *t,
                               struct reader *reader, uint64_t now_ns) {
  struct read_batch batch;

  read_batch_init(&batch, reader, apply_answer, NULL);
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];
    const struct process *parent = find_candidate(t, p);
    struct read_job job = {.process = p, .kind = READ_SAME_MM};

    if (!parent || p->is_kcmp_refused) {
      p->is_in_parents_mm = false;
    } else if (can_ask(p, now_ns) && can_ask(parent, now_ns)) {
      job.other_pid = parent->pid;
      read_batch_add(&batch, &job);
    }
  }
  read_batch_flush(&batch);
}
