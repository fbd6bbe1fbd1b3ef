#include "estimate/address_space.h"

#include <errno.h>

#include "config/policy.h"
#include "diag.h"
#include "estimate/track.h"
#include "read/read_batch.h"

/* Each attempt may cost a line in an audit log (AppArmor), so a refused one is
 * not repeated soon, unless the process execs. */
#define REFUSED_BACK_OFF_NS (UINT64_C(3600) * NS_PER_S)

static void prepare(const struct process_table *t, struct process *p,
                    struct diag *diags) {
  if (p->state != PROCESS_ALIVE)
    return;
  if (!p->is_linked)
    process_table_link(t, p);
  if (track_refresh(p) == 0)
    return;
  p->state = PROCESS_UNKNOWN;
  diag_note(diags, DIAG_FAILED, p, -ENOMEM, "statm");
}

/* A parent of higher pid comes after its child, which asks for its parent and
 * for its track: so all are prepared first. */
void address_space_relate(struct process_table *t, struct diag *diags) {
  for (size_t i = 0; i < t->n; i++)
    prepare(t, t->processes[i], diags);
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    /* A zombie has no memory to share. */
    if (p->state == PROCESS_GONE && p->track)
      fork_family_leave(p->track);
    if (p->state == PROCESS_ALIVE)
      fork_family_update(t, p); /* without memory it stands alone */
  }
}

/* A child that waits with its parent's memory for its exec shows the parent's
 * numbers. */
static bool may_be_vfork(const struct process *parent,
                         const struct process *p) {
  const struct statm_sample *a = &parent->statm, *b = &p->statm;

  return parent->image == p->image && a->size_pages == b->size_pages &&
         a->resident_pages == b->resident_pages &&
         a->shared_pages == b->shared_pages && a->data_pages == b->data_pages;
}

static bool is_member(const struct process *p) {
  return p->state == PROCESS_ALIVE && p->n_groups > 0;
}

/*
 * The parent in whose memory the process may run; NULL if there is none. A
 * child has its parent's stack and program until it calls exec, so only such
 * pairs are worth asking about; and once they are apart they stay so: two mms
 * do not become one.
 */
static const struct process *find_candidate(const struct process_table *t,
                                            struct process *p) {
  const struct process *parent;

  if (!is_member(p) || p->has_own_mm || !p->is_linked)
    return NULL;
  parent = process_table_parent(t, p);
  p->has_own_mm = !parent || (parent->state == PROCESS_ALIVE &&
                              !process_is_same_program(parent, p));
  return p->has_own_mm || !is_member(parent) ? NULL : parent;
}

/* Lays out the question about a process, if there is any to ask. */
static bool lay_out(const struct process_table *t, struct process *p,
                    uint64_t now_ns, struct read_job *ret) {
  const struct process *parent = find_candidate(t, p);

  if (!parent) {
    p->is_in_parents_mm = false;
    return false;
  }
  if (quarantine_has(p, now_ns) || quarantine_has(parent, now_ns))
    return false;
  *ret =
      (struct read_job){.process = p,
                        .kind = READ_SAME_MM,
                        .other_pid = parent->pid,
                        .may_be_vfork = may_be_vfork(parent, p),
                        .may_ask_kernel = now_ns >= p->kcmp_refused_until_ns};
  if (ret->may_be_vfork || ret->may_ask_kernel)
    return true;
  p->is_in_parents_mm = false;
  return false;
}

struct question {
  const struct quarantine *quarantine;
  uint64_t now_ns;
};

static void apply_answer(void *ctx, struct read_job *job) {
  const struct question *q = ctx;
  struct process *p = job->process;

  if (quarantine_check(q->quarantine, job) || job->result != 0)
    return;
  p->is_in_parents_mm = job->mm.is_same;
  p->has_own_mm = job->mm.is_certain && !job->mm.is_same;
  if (job->mm.is_refused)
    p->kcmp_refused_until_ns = q->now_ns + REFUSED_BACK_OFF_NS;
}

void address_space_find_shared(const struct process_table *t,
                               struct reader *reader,
                               const struct quarantine *quarantine,
                               uint64_t now_ns) {
  struct question question = {.quarantine = quarantine, .now_ns = now_ns};
  struct read_batch batch;
  struct read_job job;

  read_batch_init(&batch, reader, apply_answer, &question);
  for (size_t i = 0; i < t->n; i++)
    if (lay_out(t, t->processes[i], now_ns, &job))
      read_batch_add(&batch, &job);
  read_batch_flush(&batch);
}
