#include "estimate/address_space.h"

#include <errno.h>
#include <stdlib.h>

#include "diag.h"
#include "estimate/member.h"
#include "read/read_batch.h"

/* Each attempt may cost a line in an audit log (AppArmor), so a refused one is
 * not repeated soon, unless the process execs. */
#define REFUSED_BACK_OFF_NS (UINT64_C(3600) * NS_PER_S)
/* Two processes in one memory are compared so often, because their numbers
 * differ if the memory changes between the two readings. */
#define LOOKS 8
/* More generations of forks than are ever alive at once. */
#define ANCESTORS_TRIED 64

static void prepare(const struct process_table *t, struct process *p,
                    struct diag *diags) {
  if (p->state != PROCESS_ALIVE)
    return;
  if (!p->is_linked)
    process_table_link(t, p);
  if (member_refresh(p) == 0)
    return;
  p->state = PROCESS_UNKNOWN;
  diag_note(diags, DIAG_FAILED, p, -ENOMEM, "statm");
}

/* --- fork families --- */

static struct process *find_relative(const struct process_table *t,
                                     const struct process *p) {
  struct process *parent = process_table_parent(t, p);

  return parent && parent->member && parent->state == PROCESS_ALIVE &&
                 process_is_same_program(parent, p)
             ? parent
             : NULL;
}

static bool is_decided(const struct process *p) {
  return p->member->track.is_family_decided &&
         p->member->program == process_program(p);
}

/*
 * Parents can come later than their children once pids have wrapped around:
 * then the nearest ancestor with the same program whose family is known is
 * used, else the topmost. (In a broken tree that can be the process.)
 */
static struct process *find_decided_relative(const struct process_table *t,
                                             const struct process *p) {
  struct process *relative = find_relative(t, p), *above;

  for (int i = 0; relative && !is_decided(relative) && i < ANCESTORS_TRIED;
       i++) {
    above = find_relative(t, relative);
    if (!above || above == p)
      break;
    relative = above;
  }
  return relative;
}

int address_space_update_family(const struct process_table *t,
                                struct process *p) {
  struct process *relative;

  if (is_decided(p))
    return 0;
  fork_family_leave(&p->member->track);
  if (!p->is_linked)
    return 0;
  p->member->track.is_family_decided = true;
  relative = find_decided_relative(t, p);
  if (!relative)
    return 0;
  if (!is_decided(relative))
    fork_family_leave(&relative->member->track);
  if (fork_family_join(&p->member->track, &relative->member->track) == 0)
    return 0;
  p->member->track.is_family_decided = false;
  return -ENOMEM;
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
      address_space_update_family(t, p); /* without memory it stands alone */
  }
}

/* --- the same memory --- */

static int compare(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* Two processes in one memory show the same numbers, unless they change while
 * they are read. */
static int compare_numbers(const struct process *p, const struct process *q) {
  const struct statm_sample *a = &p->statm, *b = &q->statm;
  int c = compare(p->image, q->image);

  if (c == 0)
    c = compare(a->size_pages, b->size_pages);
  if (c == 0)
    c = compare(a->resident_pages, b->resident_pages);
  if (c == 0)
    c = compare(a->shared_pages, b->shared_pages);
  return c ? c : compare(a->data_pages, b->data_pages);
}

static bool is_member(const struct process *p) {
  return p->state == PROCESS_ALIVE && p->n_groups > 0;
}

/* The process in whose memory it was found, if that is still a member. */
static const struct process *owner_of(const struct process_table *t,
                                      const struct process *p) {
  const struct process *owner =
      p->memory_of ? process_table_find(t, p->memory_of) : NULL;

  return owner && is_member(owner) ? owner : NULL;
}

/*
 * The process in whose memory it may run: the earlier owner of its memory, or
 * its parent; or NULL. A child has its parent's stack and program until it
 * calls exec, so other parents need not be compared. Two mms never become one,
 * so a process with its own mm is not compared again.
 */
static const struct process *find_candidate(const struct process_table *t,
                                            struct process *p) {
  const struct process *parent, *owner = owner_of(t, p);

  if (!is_member(p) || owner)
    return is_member(p) ? owner : NULL;
  if (p->has_own_mm || !p->is_linked)
    return NULL;
  parent = process_table_parent(t, p);
  p->has_own_mm = !parent || (parent->state == PROCESS_ALIVE &&
                              !process_is_same_program(parent, p));
  return p->has_own_mm || !is_member(parent) ? NULL : parent;
}

static void set_apart(struct process *p) {
  if (p->is_in_parents_mm)
    p->looks = 0;
  p->is_in_parents_mm = false;
  p->memory_of = 0;
}

/* The kernel compares main threads. Those that have ended have no memory any
 * more, and so all have the same: what was found before holds. */
static bool can_ask(const struct process *p, const struct process *other,
                    uint64_t now_ns) {
  return !p->is_dead_leader && !other->is_dead_leader &&
         !quarantine_has(p, now_ns) && !quarantine_has(other, now_ns);
}

static struct read_job ask(struct process *p, const struct process *other,
                           uint64_t now_ns) {
  return (struct read_job){.process = p,
                           .kind = READ_SAME_MM,
                           .other_pid = other->pid,
                           .may_ask_kernel =
                               now_ns >= p->kcmp_refused_until_ns};
}

/* Prepares the comparison of a process. False if none is needed. */
static bool lay_out(const struct process_table *t, struct process *p,
                    uint64_t now_ns, struct read_job *ret) {
  const struct process *other = find_candidate(t, p);

  if (!other) {
    set_apart(p);
    return false;
  }
  if (!can_ask(p, other, now_ns))
    return false;
  *ret = ask(p, other, now_ns);
  /* A child of vfork() runs in its parent's memory until its exec. */
  ret->may_be_vfork =
      other->pid == p->parent_pid && compare_numbers(p, other) == 0;
  if (ret->may_be_vfork || ret->may_ask_kernel)
    return true;
  set_apart(p);
  return false;
}

static void apply_answer(void *ctx, struct read_job *job) {
  const struct reader *reader = ctx;
  struct process *p = job->process;

  if (job->result != 0)
    return;
  if (!job->mm.is_same)
    set_apart(p);
  p->is_in_parents_mm = job->mm.is_same;
  p->memory_of = job->mm.is_same ? job->other_pid : 0;
  if (job->mm.is_certain && !job->mm.is_same)
    p->has_own_mm |= job->other_pid == p->parent_pid;
  if (job->mm.is_refused)
    p->kcmp_refused_until_ns = reader->now_ns + REFUSED_BACK_OFF_NS;
}

/* Sorts processes with the same numbers together, the oldest first. */
static int compare_alike(const void *left, const void *right) {
  const struct process *a = *(struct process *const *)left;
  const struct process *b = *(struct process *const *)right;
  int c = compare_numbers(a, b);

  if (c == 0)
    c = compare(a->starttime_ticks, b->starttime_ticks);
  return c ? c : compare(a->pid, b->pid);
}

static bool is_new(const struct process *p) { return p->looks < LOOKS; }

/* Lists the members that are not known to be in another's memory. Returns 0 if
 * all of them were compared before. */
static size_t gather(const struct process_table *t, struct process **ret) {
  bool has_new = false;
  size_t n = 0;

  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    if (!is_member(p) || p->is_in_parents_mm)
      continue;
    ret[n++] = p;
    has_new |= is_new(p);
  }
  return has_new ? n : 0;
}

/* For siblings and orphans: compares each new process with older processes that
 * show the same numbers, one in each cycle. */
static void ask_alike(const struct process_table *t, struct read_batch *batch,
                      uint64_t now_ns) {
  struct process **alike = t->spare;
  size_t n = gather(t, alike), oldest = 0;

  if (n > 0)
    qsort(alike, n, sizeof(*alike), compare_alike);
  for (size_t i = 0; i < n; i++) {
    struct process *p = alike[i];
    const struct process *other;
    struct read_job job;

    if (compare_numbers(p, alike[oldest]) != 0)
      oldest = i;
    other = i > oldest ? alike[oldest + p->looks % (i - oldest)] : p;
    job = ask(p, other, now_ns);
    if (other != p && is_new(p) && job.may_ask_kernel &&
        can_ask(p, other, now_ns))
      read_batch_add(batch, &job);
    p->looks += is_new(p);
  }
}

void address_space_find_shared(const struct process_table *t,
                               struct reader *reader, uint64_t now_ns) {
  struct read_batch batch;
  struct read_job job;

  read_batch_init(&batch, reader, apply_answer, reader);
  for (size_t i = 0; i < t->n; i++)
    if (lay_out(t, t->processes[i], now_ns, &job))
      read_batch_add(&batch, &job);
  read_batch_flush(&batch);
  ask_alike(t, &batch, now_ns);
  read_batch_flush(&batch);
}
