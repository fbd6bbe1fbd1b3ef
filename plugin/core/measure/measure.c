/* SPDX-License-Identifier: MIT */
#include "measure/measure.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/array.h"
#include "estimate/estimator.h"
#include "member/address_space.h"
#include "member/member.h"
#include "member/newborn.h"
#include "proc/cheap_files.h"
#include "process/diag.h"
#include "read/reader.h"

/* A smaller error is worth a reading only if readings are cheap. */
#define ERROR_LEAST_BYTES 4096.0

/* Every kernel with a rollup has these (4.14). */
#define FIELDS_SINCE_4_14                                                      \
  (1U << ROLLUP_RSS | 1U << ROLLUP_PSS | 1U << ROLLUP_SHARED_CLEAN |           \
   1U << ROLLUP_SHARED_DIRTY | 1U << ROLLUP_PRIVATE_CLEAN |                    \
   1U << ROLLUP_PRIVATE_DIRTY | 1U << ROLLUP_REFERENCED |                      \
   1U << ROLLUP_ANONYMOUS | 1U << ROLLUP_LAZY_FREE |                           \
   1U << ROLLUP_ANON_HUGE_PAGES | 1U << ROLLUP_SHMEM_PMD_MAPPED |              \
   1U << ROLLUP_SHARED_HUGETLB | 1U << ROLLUP_PRIVATE_HUGETLB |                \
   1U << ROLLUP_SWAP | 1U << ROLLUP_SWAP_PSS | 1U << ROLLUP_LOCKED)

/* The default of vm.max_map_count. */
#define MAPPINGS_MOST 65530

void measurer_init(struct measurer *m, struct procfs *procfs,
                   struct reader *reader, struct diag *diags) {
  *m = (struct measurer){.reader = reader,
                         .diags = diags,
                         .cycle = {.procfs = procfs,
                                   .page_size = reader->page_size,
                                   .tick_ns = reader->tick_ns,
                                   .kernel_fields = FIELDS_SINCE_4_14,
                                   .mappings_most = MAPPINGS_MOST},
                         .sampler = {.cycle = &m->cycle, .diags = diags},
                         .aggregate = {.cycle = &m->cycle}};
}

void measurer_watch_kernel(struct measurer *m) {
  unsigned major, minor;
  long cpus = sysconf(_SC_NPROCESSORS_CONF);

  m->is_of_kernel = true;
  m->read_ksm = kernel_read_ksm;
  kernel_read_ksm(&m->ksm);
  m->cycle.mappings_most = kernel_mappings_most();
  if (kernel_release(&major, &minor))
    precision_init(&m->cycle.precision, major, minor,
                   cpus > 0 ? (unsigned)cpus : 1);
}

void measurer_done(struct measurer *m) { free(m->candidates); }

/* --- beginning --- */

static int begin_group(struct group *g) {
  if (!g->track) {
    g->track = calloc(1, sizeof(*g->track));
    if (!g->track)
      return -ENOMEM;
    sharing_init(&g->track->sharing, 0);
  }
  g->track->error = (struct error_sum){.common = 0};
  g->track->giants_before = g->track->giants;
  g->track->giants = 0;
  g->track->oldest_start = g->track->newest_start = 0;
  return 0;
}

/* Notes when pages were last merged or separated: older baselines are wrong.
 * KSM has merged pages since the last cycle if it was running then or is
 * running now, or if there are more merged pages. */
static void watch_ksm(struct measurer *m) {
  struct cycle *cycle = &m->cycle;
  struct ksm before = m->ksm;

  if (!m->read_ksm)
    return;
  m->read_ksm(&m->ksm);
  if (ksm_is_merging(&before) || ksm_is_merging(&m->ksm) ||
      m->ksm.pages_sharing > before.pages_sharing)
    cycle->ksm_merged_ns = cycle->now_ns;
  if (m->ksm.run != before.run || m->ksm.pages_sharing != before.pages_sharing)
    cycle->ksm_changed_ns = cycle->now_ns;
}

static int begin(struct measurer *m, const struct process_table *t,
                 const struct group_table *groups,
                 const struct meminfo_sample *meminfo, uint64_t now_ns) {
  while (m->cap_candidates < t->n) {
    void *room = array_room(m->candidates, m->cap_candidates,
                            &m->cap_candidates, sizeof(*m->candidates));

    if (!room)
      return -ENOMEM;
    m->candidates = room;
  }
  for (size_t i = 0; i < groups->n; i++)
    if (begin_group(groups->groups[i]) < 0)
      return -ENOMEM;
  /* Swap may be in use if meminfo cannot be read. */
  m->cycle.before_ns = m->cycle.now_ns;
  m->cycle.now_ns = now_ns;
  m->cycle.is_swap_used =
      meminfo->swap_used_bytes > 0 || meminfo->mem_total_bytes == 0;
  watch_ksm(m);
  m->aggregate.host = (struct host_processes){
      .has_unknown = m->is_of_kernel && t->n > 0 && t->processes[0]->pid != 1};
  m->aggregate.host_bytes =
      m->read_ksm ? (double)(meminfo->anon_pages_bytes + meminfo->mapped_bytes)
                  : 0;
  m->n_candidates = 0;
  m->counts = (struct collector_counts){.rollup_reads = 0};
  m->needed = 0;
  return 0;
}

/* --- 1: the cheap files --- */

/* What the cheap files say: statm, which was read when the process was
 * identified; stat, in `faults`, or NULL where minor faults are not worth it;
 * status, which is read here if there may be swap: otherwise the process has as
 * much there as at its baseline. */
static struct observation observation_of(const struct measurer *m,
                                         const struct process *p,
                                         const struct read_job *faults) {
  const struct track *t = &p->member->track;
  struct observation o = {.resident_pages =
                              amount_narrow(p->statm.resident_pages),
                          .shared_pages = amount_narrow(p->statm.shared_pages),
                          .threads = p->threads,
                          .vm_swap_kb = t->baseline.at.vm_swap_kb};

  if (faults && faults->result == 0) {
    o.minor_faults = (uint32_t)faults->stat.minor_faults;
    o.has_faults = true;
  }
  if (estimator_wants_swap(&m->cycle, t, &o))
    member_read_swap_kb(m->cycle.procfs, p, &o.vm_swap_kb);
  return o;
}

static void observe(const struct measurer *m, struct process *p,
                    const struct read_job *faults) {
  struct observation o;

  p->member->has_new_tables = false;
  o = observation_of(m, p, faults);
  estimator_observe(&m->cycle, &p->member->track, &p->groups[0]->track->sharing,
                    &o);
}

/* True if its minor faults have to be read first. */
static bool wants_faults(const struct measurer *m, const struct process *p) {
  return member_is_measured(p) && track_wants_faults(&p->member->track) &&
         !quarantine_has(p, m->cycle.now_ns) &&
         member_policy(p).refresh == REFRESH_ADAPTIVE;
}

/* Adds the memory that the ended process had at its last reading, and what it
 * got until statm was last read. Called once: a zombie is counted in the cycle
 * in which it ended. */
static void note_end(const struct measurer *m, const struct process *p) {
  const struct baseline *b = &p->member->track.baseline;
  uint64_t resident = p->statm.resident_pages;
  uint64_t more = minus(resident, b->at.resident_pages) * m->cycle.page_size;

  for (size_t i = 0; i < p->n_groups; i++) {
    struct usage *u = &p->groups[i]->usage;

    if (track_has_baseline(&p->member->track)) {
      u->ended_pss += b->rollup.bytes[ROLLUP_PSS] + more;
      u->ended_uss += rollup_uss(&b->rollup) + more;
    } else {
      u->ended_unread++;
      u->ended_unread_bytes += resident * m->cycle.page_size;
    }
  }
}

/* A process that is in no sum of this cycle is forgotten. */
static void observe_without_faults(struct measurer *m, struct process *p) {
  if (member_is_measured(p))
    observe(m, p, NULL);
  else if (member_is_counted(p))
    estimator_observe(&m->cycle, &p->member->track,
                      &p->groups[0]->track->sharing, NULL);
  else if (p->member) {
    if (p->state == PROCESS_GONE && track_has_baseline(&p->member->track))
      note_end(m, p);
    estimator_forget(&p->member->track);
  }
}

static void note_vanished(struct measurer *m, struct process *p) {
  note_end(m, p);
  estimator_forget(&p->member->track);
  fork_family_leave(&p->member->track);
  process_set_state(p, PROCESS_GONE);
  m->counts.vanished++;
}

static void apply_faults(void *ctx, struct read_job *job) {
  if (job->result == PROCFS_GONE) {
    note_vanished(ctx, job->process);
    return;
  }
  observe(ctx, job->process, job);
}

static void observe_all(struct measurer *m, const struct process_table *t) {
  struct read_batch batch;

  read_batch_init(&batch, m->reader, apply_faults, m);
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];
    struct read_job job = {.process = p, .kind = READ_STAT};

    if (!wants_faults(m, p)) {
      observe_without_faults(m, p);
      continue;
    }
    read_batch_add(&batch, &job);
  }
  read_batch_flush(&batch);
}

/* What others did changes estimates of processes that cannot be looked at, too.
 */
static void advance_all(const struct process_table *t) {
  for (size_t i = 0; i < t->n; i++)
    if (t->processes[i]->member)
      estimator_advance(&t->processes[i]->member->track);
}

/* --- 2: what may be wrong, and what would be worth a reading --- */

/* Decides the outcome of the cycle for a member, once. */
static void settle(struct measurer *m, struct process *p,
                   enum outcome outcome) {
  assert(p->member->outcome == OUTCOME_NOT_CHOSEN);
  p->member->outcome = outcome;
  m->counts.deferred +=
      outcome == OUTCOME_NO_TIME || outcome == OUTCOME_TOO_LONG;
}

static void settle_too_large(struct measurer *m, struct process *p) {
  settle(m, p, OUTCOME_TOO_LONG);
  diag_note(m->diags, DIAG_TOO_LARGE, p, 0, "smaps_rollup");
}

static enum outcome first_outcome(const struct measurer *m,
                                  const struct process *p,
                                  const struct policy *policy) {
  if (policy->refresh == REFRESH_NEVER)
    return OUTCOME_UNWANTED;
  return back_off_is_on(&p->member->denied, m->cycle.now_ns)
             ? OUTCOME_UNREADABLE
             : OUTCOME_NOT_CHOSEN;
}

/* Notes since when a first rollup is wanted. */
static void note_wanted(const struct measurer *m, struct member *t) {
  if (!track_has_baseline(&t->track) && !t->wanted_ns)
    t->wanted_ns = m->cycle.now_ns;
}

/* When its baseline is as old as MaxAge, or its first rollup was wanted. */
static uint64_t due_time_ns(const struct member *t,
                            const struct policy *policy) {
  return track_has_baseline(&t->track)
             ? t->track.baseline.at_ns + policy->max_age_ns
             : t->wanted_ns;
}

/* True if a process with a baseline has grown in a group that seems to grow.
 * That may be files, or memory that was given back: a reading shows it at once,
 * and a sample does not. */
static bool seems_to_grow(const struct measurer *m, const struct process *p) {
  const struct track *t = &p->member->track;
  uint64_t age_ns = m->cycle.now_ns - t->baseline.at_ns;

  if (t->is_sampled || p->statm.resident_pages <= t->baseline.at.resident_pages)
    return false;
  for (size_t i = 0; i < p->n_groups; i++)
    if (growth_wants_reading(&p->groups[i]->track->growth, age_ns))
      return true;
  return false;
}

/* True if a reading would gain nothing: the expected error is below a byte (or
 * below a page while no walk has shown how long a reading takes), and no memory
 * is in swap, since SwapPss has no error of its own. */
static bool is_worth_nothing(const struct member *m, struct error error) {
  return error_bytes(error) <
             (m->read_time.is_learnt ? 1 : ERROR_LEAST_BYTES) &&
         m->track.now.vm_swap_kb == 0;
}

/* The candidate before it is known whether it is walked or sampled. */
static struct candidate candidate_of(const struct measurer *m,
                                     struct process *p,
                                     const struct policy *policy,
                                     struct error error) {
  const struct track *t = &p->member->track;
  uint64_t now_ns = m->cycle.now_ns, due_ns = due_time_ns(p->member, policy);
  bool is_old = now_ns >= due_ns;
  struct candidate c = {.process = p,
                        .groups = p->groups,
                        .n_groups = p->n_groups,
                        .error = error,
                        .is_must = policy->refresh == REFRESH_ALWAYS,
                        .is_slight = error_bytes(error) < ERROR_LEAST_BYTES};

  c.is_due = !c.is_must && (is_old || seems_to_grow(m, p));
  if (c.is_due)
    c.deadline_ns = is_old ? due_ns + policy->max_age_ns : now_ns;
  /* Members of Other come last, but not past their deadline. */
  c.is_last = policy->comes_last && !(c.is_due && c.deadline_ns <= now_ns);
  if (track_has_baseline(t))
    c.intervals =
        (double)(now_ns - t->baseline.at_ns) / (double)m->cycle.interval_ns;
  return c;
}

/* Decides between a walk and a sample: a process that a walk would hold up for
 * too long is sampled, even with Refresh "always". False if it cannot be
 * sampled either. */
static bool find_way(struct measurer *m, struct process *p,
                     const struct policy *policy, struct candidate *c) {
  c->is_sample = !walk_time_update(&m->cycle, p, policy);
  if (c->is_sample && !sampling_prepare(&m->sampler, p))
    return false;
  c->time_ns = c->is_sample ? amount_narrow(sampling_time_ns(&m->sampler, p))
                            : walk_time_ns(&m->cycle, p);
  return true;
}

static void add_candidate(struct measurer *m, struct process *p,
                          const struct policy *policy, struct error error) {
  struct candidate c = candidate_of(m, p, policy, error);

  if (!c.is_must && !c.is_due && is_worth_nothing(p->member, error))
    return;
  if (find_way(m, p, policy, &c))
    m->candidates[m->n_candidates++] = c;
  else
    settle_too_large(m, p);
}

/* The share of a CPU that reading or sampling it once in MaxAge takes. */
static double needed_for(const struct measurer *m, struct process *p,
                         const struct policy *policy) {
  uint64_t time_ns = walk_time_ns(&m->cycle, p);

  if (policy->refresh != REFRESH_ADAPTIVE)
    return 0;
  if (!walk_time_fits(time_ns, policy))
    time_ns =
        sampling_prepare(&m->sampler, p) ? sampling_time_ns(&m->sampler, p) : 0;
  return (double)time_ns / (double)policy->max_age_ns;
}

static void weigh(struct measurer *m, struct process *p) {
  struct policy policy = member_policy(p);
  struct error error;

  m->counts.denied += back_off_is_on(&p->member->denied, m->cycle.now_ns);
  p->member->outcome = first_outcome(m, p, &policy);
  if (p->member->outcome != OUTCOME_NOT_CHOSEN)
    return;
  error = estimator_expect(&m->cycle, &p->member->track);
  for (size_t i = 0; i < p->n_groups; i++)
    error_add(&p->groups[i]->track->error, error);
  if (quarantine_has(p, m->cycle.now_ns))
    return;
  note_wanted(m, p->member);
  add_candidate(m, p, &policy, error);
  for (size_t i = 0; i < p->n_groups; i++)
    p->groups[i]->track->giants += p->member->sampling != NULL;
  m->needed += needed_for(m, p, &policy);
}

static void weigh_all(struct measurer *m, const struct process_table *t) {
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    if (member_is_measured(p))
      weigh(m, p);
  }
}

/* --- 3: choosing --- */

static size_t choose(struct measurer *m, const struct group_table *groups) {
  struct schedule s;

  for (size_t i = 0; i < groups->n; i++)
    sampling_allow(groups->groups[i]->track, m->cycle.interval_ns);
  read_budget_begin(&m->budget, m->cycle.now_ns, m->cycle.interval_ns,
                    m->needed);
  s = schedule_choose(m->candidates, m->n_candidates, &m->budget);
  for (size_t i = 0; i < s.deferred; i++)
    settle(m, m->candidates[s.chosen + i].process, OUTCOME_NO_TIME);
  return s.chosen;
}

/* --- 4: reading --- */

static void note_failure(struct measurer *m, struct process *p, int r) {
  estimator_forget(&p->member->track);
  settle(m, p, OUTCOME_UNREADABLE);
  if (r == PROCFS_DENIED) {
    m->counts.denied++;
    back_off_refuse(&p->member->denied, m->cycle.now_ns);
    diag_note(m->diags, DIAG_ROLLUP_DENIED, p, 0, "smaps_rollup");
  } else if (r == -ENOSYS) {
    diag_note(m->diags, DIAG_NO_ROLLUP, p, 0, "smaps_rollup");
  } else {
    diag_note(m->diags, DIAG_FAILED, p, r, "smaps_rollup");
  }
}

/* If statm is exact on this kernel, the rollup of a process that did not change
 * meanwhile shows the same amount. */
static void learn_precision(struct measurer *m, const struct process *p,
                            const struct rollup_reading *r) {
  uint64_t rss = r->rollup.bytes[ROLLUP_RSS] / m->cycle.page_size;
  const struct observation *now = &p->member->track.now;
  uint64_t resident = now->resident_pages;

  if (r->has_statm && resident == r->statm.resident_pages &&
      now->shared_pages == r->statm.shared_pages)
    precision_learn(&m->cycle.precision, distance(rss, resident));
}

/* VmSwap stays as it was where it cannot be read. */
static struct observation observation_after(const struct measurer *m,
                                            const struct process *p,
                                            const struct rollup_reading *r) {
  struct observation after = p->member->track.now;

  if (r->has_statm) {
    after.resident_pages = amount_narrow(r->statm.resident_pages);
    after.shared_pages = amount_narrow(r->statm.shared_pages);
  }
  if (r->faults) {
    after.minor_faults = r->faults;
    after.has_faults = true;
  }
  if (r->rollup.bytes[ROLLUP_SWAP] == 0)
    after.vm_swap_kb = 0;
  else
    member_read_swap_kb(m->cycle.procfs, p, &after.vm_swap_kb);
  return after;
}

/* Keeps what the mappings of the process, which was just read, say of shmem. */
static void take_shmem(struct process *p, const struct shmem_mappings *found) {
  struct member *member = p->member;

  member->shmem = (struct shmem_known){.mappings = *found,
                                       .size_pages = p->statm.size_pages};
  if (member->track.family)
    member->track.family->shmem = member->shmem;
}

static void correct(struct measurer *m, struct process *p,
                    const struct policy *policy, const struct read_job *job) {
  const struct rollup_reading *read = &job->rollup;
  struct observation after = observation_after(m, p, read);
  struct walk walk = walk_now(&m->cycle, p);

  m->counts.rollup_reads++;
  m->cycle.kernel_fields |= read->rollup.known;
  walk.ns = job->work_ns;
  walk.swapped = after.vm_swap_kb * UINT64_C(1024) / m->cycle.page_size;
  walk.huge = read->rollup.bytes[ROLLUP_ANON_HUGE_PAGES] / m->cycle.page_size;
  walk_time_learn(&m->cycle, p, policy, &walk);
  learn_precision(m, p, read);
  if (read->has_shmem)
    take_shmem(p, &read->shmem);
  estimator_correct(&m->cycle, &p->member->track, &read->rollup, &after);
  if (!sampling_is_refused(p->member->sampling))
    member_end_sampling(p->member);
  settle(m, p, OUTCOME_READ);
}

static void refuse(struct measurer *m, struct process *p,
                   const struct policy *policy) {
  read_time_refuse(&p->member->read_time, policy, m->cycle.now_ns);
  if (sampling_prepare(&m->sampler, p)) /* in the next cycle */
    settle(m, p, OUTCOME_TOO_LONG);
  else
    settle_too_large(m, p);
}

/* The process may be walked in the next cycle, see member_policy(). */
static void refuse_samples(struct measurer *m, struct process *p, int error) {
  sampling_refuse(&m->sampler, p);
  if (error == -EFBIG)
    diag_note(m->diags, DIAG_FAILED, p, error, "maps");
  if (error == -EFBIG || !walk_is_too_long(&m->cycle, p))
    settle(m, p, OUTCOME_TOO_LONG);
  else
    settle_too_large(m, p);
}

static void take_result(struct measurer *m, struct process *p,
                        const struct policy *policy,
                        const struct read_job *job) {
  bool is_sample = job->kind == READ_SAMPLE;
  int r = job->result;

  p->member->wanted_ns = 0;
  if (r == 0 && is_sample) {
    m->counts.sampled++;
    take_shmem(p, page_layout_shmem(job->sample.layout));
    sampling_take(&m->sampler, p, job);
    settle(m, p, OUTCOME_SAMPLED);
  } else if (r == 0) {
    correct(m, p, policy, job);
  } else if (r == PROCFS_GONE || r == PROCFS_NO_MM) {
    note_vanished(m, p);
  } else if (r == PROCFS_DENIED || !is_sample) {
    note_failure(m, p, r);
  } else if (r == -EPERM || r == -ENOSYS || r == -EFBIG) {
    refuse_samples(m, p, r);
  } else {
    diag_note(m->diags, DIAG_FAILED, p, r, "pagemap");
    settle_too_large(m, p);
  }
}

static void finish_job(void *ctx, struct read_job *job) {
  struct measurer *m = ctx;
  struct process *p = job->process;
  struct policy policy;

  if (!read_has_result(job)) {
    if (job->result == READ_SKIPPED)
      settle(m, p, OUTCOME_NO_TIME);
    return;
  }
  policy = member_policy(p);
  if (policy.refresh == REFRESH_ADAPTIVE) /* "always" is for nothing */
    read_budget_charge(&m->budget, job->work_ns + job->count_ns);
  if (job->result == READ_TOO_LONG) {
    refuse(m, p, &policy);
    return;
  }
  if (job->kind == READ_SAMPLE) {
    m->counts.rollup_ns += job->work_ns;
  } else {
    m->counts.rollup_ns += job->took_ns;
    m->counts.longest_read_ns = max(m->counts.longest_read_ns, job->work_ns);
  }
  take_result(m, p, &policy, job);
}

static struct read_job rollup_job(const struct measurer *m, struct process *p,
                                  const struct policy *policy) {
  bool is_followed = policy->refresh == REFRESH_ADAPTIVE;
  /* Each mapping has at least one page. */
  uint64_t possible = min(p->statm.size_pages, m->cycle.mappings_most);

  return (struct read_job){
      .process = p,
      .kind = READ_ROLLUP,
      .is_baseline = is_followed,
      .wants_shmem =
          m->wants_freed && p->member->shmem.size_pages != p->statm.size_pages,
      .mappings_most =
          read_time_mappings_most(&p->member->read_time, policy, possible)};
}

/* The budget is checked after so many readings, because readings, above all the
 * first, can take longer than predicted. */
#define READINGS_AT_ONCE 16

/* Before a walk that may take longer than guessed, those of relatives are made:
 * they may show that it takes too long. */
#define LONG_GUESS_NS 50000

static void read_chosen(struct measurer *m, size_t n) {
  struct read_batch batch;

  read_batch_init(&batch, m->reader, finish_job, m);
  for (size_t i = 0; i < n; i++) {
    const struct candidate *c = &m->candidates[i];
    struct process *p = c->process;
    struct policy policy = member_policy(p);
    struct read_job job;

    if (i % READINGS_AT_ONCE == READINGS_AT_ONCE - 1 ||
        (walk_time_is_unsure(p) && c->time_ns >= LONG_GUESS_NS))
      read_batch_flush(&batch);
    if (!c->is_must && read_budget_is_spent(&m->budget, c->is_last)) {
      settle(m, p, OUTCOME_NO_TIME);
      continue;
    }
    if (!c->is_sample && !walk_time_update(&m->cycle, p, &policy)) {
      settle(m, p, OUTCOME_TOO_LONG);
      continue;
    }
    job =
        c->is_sample ? sampling_job(&m->sampler, p) : rollup_job(m, p, &policy);
    read_batch_add(&batch, &job);
  }
  read_batch_flush(&batch);
}

/* Counts processes past their deadline because of the budget or hung readers.
 */
static void count_overdue(struct measurer *m) {
  for (size_t i = 0; i < m->n_candidates; i++) {
    const struct candidate *c = &m->candidates[i];
    const struct process *p = c->process;

    m->counts.overdue += c->is_due && p->member->outcome == OUTCOME_NO_TIME &&
                         c->deadline_ns < m->cycle.now_ns;
  }
}

/* True for a member that was read or sampled, whose tables are unknown, or
 * whose memory changed. */
static bool wants_page_tables(const struct process *p) {
  const struct member *t = p->member;

  return !t->has_new_tables &&
         (t->outcome == OUTCOME_READ || t->outcome == OUTCOME_SAMPLED ||
          page_tables_are_due(&t->tables, p->statm.resident_pages));
}

static void read_page_tables(const struct measurer *m,
                             const struct process_table *t) {
  struct status_sample s;

  for (size_t i = 0; i < t->n; i++)
    if (member_is_measured(t->processes[i]) &&
        wants_page_tables(t->processes[i]))
      member_read_status(m->cycle.procfs, t->processes[i], &s);
}

int measurer_run(struct measurer *m, const struct process_table *t,
                 const struct group_table *groups,
                 const struct meminfo_sample *meminfo, uint64_t now_ns) {
  int r = begin(m, t, groups, meminfo, now_ns);

  if (r < 0)
    return r;
  if (m->is_of_kernel)
    address_space_find_shared(t, m->reader, now_ns);
  observe_all(m, t);
  newborn_estimate_all(&m->cycle, t);
  advance_all(t);
  weigh_all(m, t);
  read_chosen(m, choose(m, groups));
  count_overdue(m);
  if (m->wants_page_tables)
    read_page_tables(m, t);
  aggregate_all(&m->aggregate, t, groups);
  return 0;
}
