#include <smaps/measure.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <smaps/account.h>
#include <smaps/amount.h>
#include <smaps/identify.h>
#include <smaps/kernel.h>
#include <smaps/status.h>

/* Each attempt may cost a line in an audit log (AppArmor), so one that was
 * refused is not repeated soon, unless the process execs: neither to read its
 * rollup nor to ask whose address space it runs in. */
#define DENIED_BACK_OFF_NS (UINT64_C(3600) * NS_PER_S)

/* A doubt that is never worth a reading. */
#define DOUBT_LEAST_BYTES (UINT64_C(4) << 10)
/* What every kernel with a rollup has (4.14), for as long as none was read. */
#define FIELDS_SINCE_4_14                                                      \
  (1U << ROLLUP_RSS | 1U << ROLLUP_PSS | 1U << ROLLUP_SHARED_CLEAN |           \
   1U << ROLLUP_SHARED_DIRTY | 1U << ROLLUP_PRIVATE_CLEAN |                    \
   1U << ROLLUP_PRIVATE_DIRTY | 1U << ROLLUP_REFERENCED |                      \
   1U << ROLLUP_ANONYMOUS | 1U << ROLLUP_LAZY_FREE |                           \
   1U << ROLLUP_ANON_HUGE_PAGES | 1U << ROLLUP_SHMEM_PMD_MAPPED |              \
   1U << ROLLUP_SHARED_HUGETLB | 1U << ROLLUP_PRIVATE_HUGETLB |                \
   1U << ROLLUP_SWAP | 1U << ROLLUP_SWAP_PSS | 1U << ROLLUP_LOCKED)

void measurer_init(struct measurer *m, struct procfs *procfs,
                   struct reader *reader, const struct quarantine *quarantine,
                   struct trouble *troubles) {
  *m = (struct measurer){.reader = reader,
                         .quarantine = quarantine,
                         .troubles = troubles,
                         .now = {.procfs = procfs,
                                 .page_size = reader->page_size,
                                 .kernel_fields = FIELDS_SINCE_4_14},
                         .read_budget_ns = READ_BUDGET_DEFAULT_NS};
}

void measurer_watch_kernel(struct measurer *m) {
  unsigned major, minor;
  long cpus = sysconf(_SC_NPROCESSORS_CONF);

  m->read_ksm = kernel_read_ksm;
  kernel_read_ksm(&m->ksm);
  if (kernel_release(&major, &minor))
    precision_init(&m->now.precision, major, minor,
                   cpus > 0 ? (unsigned)cpus : 1);
}

void measurer_done(struct measurer *m) { free(m->candidates); }

static bool is_member(const struct process *p) {
  return p->state == PROCESS_ALIVE && p->n_groups > 0;
}

/* --- what cannot be read now --- */

static bool is_quarantined(const struct measurer *m, const struct process *p) {
  return quarantine_has(p, m->now.now_ns);
}

/* --- whose memory is whose --- */

/* What a child shows that waits with its parent's memory for its exec. */
static bool may_be_vfork(const struct process *parent,
                         const struct process *p) {
  const struct statm_sample *a = &parent->statm, *b = &p->statm;

  return parent->image == p->image && a->size_pages == b->size_pages &&
         a->resident_pages == b->resident_pages &&
         a->shared_pages == b->shared_pages && a->data_pages == b->data_pages;
}

/*
 * Whether there is no need to ask if the process runs in its parent's address
 * space. A child has its parent's stack and program until it calls exec, so
 * only such pairs are worth asking about; and once they are apart they stay so:
 * two mms do not become one.
 */
static bool has_own_mm(const struct process_table *t, struct process *p,
                       const struct process **ret_parent) {
  const struct process *parent;

  if (!is_member(p) || p->is_apart || !p->is_linked)
    return true;
  parent = *ret_parent = process_table_parent(t, p);
  p->is_apart = !parent || (parent->state == PROCESS_ALIVE &&
                            !process_is_same_program(parent, p));
  return p->is_apart || parent->state != PROCESS_ALIVE || parent->n_groups == 0;
}

static void ask_same_mm(struct measurer *m, struct read_job *jobs, size_t n) {
  reader_run(m->reader, jobs, n);
  for (size_t i = 0; i < n; i++) {
    struct process *p = jobs[i].process;

    if (quarantine_check(m->quarantine, &jobs[i]) || jobs[i].result != 0)
      continue;
    p->is_in_parents_mm = jobs[i].mm.is_same;
    p->is_apart = jobs[i].mm.is_certain && !jobs[i].mm.is_same;
    if (jobs[i].mm.is_refused)
      p->kcmp_refused_until_ns = m->now.now_ns + DENIED_BACK_OFF_NS;
  }
}

/* --- what is known of a process --- */

static struct policy policy_of(const struct process *p) {
  struct policy policy = {.refresh = REFRESH_UNSET};

  for (size_t i = 0; i < p->n_groups; i++)
    policy_tighten(&policy, p->groups[i]->policy);
  return policy;
}

static void read_faults(struct measurer *m, struct read_job *jobs, size_t n) {
  reader_run(m->reader, jobs, n);
  for (size_t i = 0; i < n; i++)
    if (!quarantine_check(m->quarantine, &jobs[i]) && jobs[i].result == 0)
      jobs[i].process->minor_faults = (uint32_t)jobs[i].stat.minor_faults;
}

/* --- whom to read --- */

/* Below, a few page tables make no difference. */
#define TABLES_WORTH_ASKING_PAGES (UINT64_C(64) << 20 >> 12)

/* What can be had of it without looking at the page tables themselves. */
static struct cost guess_cost(const struct measurer *m,
                              const struct process *p) {
  struct cost_basis basis = {.resident = p->statm.resident_pages};
  struct status_sample s;
  struct span text;

  if (p->statm.size_pages >= TABLES_WORTH_ASKING_PAGES &&
      procfs_read_of(m->now.procfs, p->pid, "status", &text) == 0 &&
      status_parse(text.text, text.len, &s) == 0) {
    basis.swapped = s.vm_swap_bytes / m->now.page_size;
    basis.tables = s.vm_pte_bytes / m->now.page_size;
  }
  return cost_guess(&basis);
}

static uint32_t predict_cost_ns(const struct process *p) {
  return cost_predict(&p->cost, p->statm.resident_pages);
}

/*
 * Whether it is due, and for how long. One that was read: beyond MaxAge; early,
 * for the first time, lest all that were read at the start come due at once.
 * One that was not: since that was first wanted.
 */
static bool is_due(const struct measurer *m, struct process *p,
                   const struct policy *policy, uint64_t *ret_overdue_ns) {
  uint64_t age_ns = m->now.now_ns - p->reading.at_ns;

  if (!p->reading.at_ns) {
    if (!p->wanted_ns)
      p->wanted_ns = m->now.now_ns;
    *ret_overdue_ns = m->now.now_ns - p->wanted_ns;
    return true;
  }
  if (!p->is_staggered)
    age_ns += policy->max_age_ns / 64 * (p->pid % 48);
  if (age_ns < policy->max_age_ns)
    return false;
  *ret_overdue_ns = age_ns - policy->max_age_ns;
  p->is_staggered = true;
  return true;
}

/* How far off the estimate may be. Whose faults cannot be asked for may have
 * broken all that it shares by copy on write. */
static uint64_t doubt_of(const struct measurer *m, const struct process *p) {
  uint64_t doubt = follow_doubt(&m->now, p);
  uint64_t most = p->statm.resident_pages * m->now.page_size;

  if (is_quarantined(m, p) && p->reading.at_ns)
    doubt += reading_cow_bytes(&p->reading);
  return doubt < most ? doubt : most;
}

static void estimate(struct measurer *m, struct process *p) {
  follow_look(&m->now, p);
  p->doubt = (float)doubt_of(m, p);
  for (size_t i = 0; i < p->n_groups; i++)
    p->groups[i]->plan.doubt_bytes += amount_from((double)p->doubt);
}

/* Whether it is cheap enough, or it is time to see whether it has become so. */
static bool is_affordable(struct measurer *m, struct process *p,
                          const struct policy *policy) {
  struct cost guess;

  if (p->cost.ns && predict_cost_ns(p) <= policy->max_stall_ns)
    return true;
  if (!cost_may_try(&p->cost, m->now.now_ns))
    return false;
  guess = guess_cost(m, p);
  return cost_take_guess(&p->cost, &guess, policy, m->now.now_ns);
}

/* No read is made that would hold the process up for longer, not even where
 * every member is to be read. */
static bool is_too_large(struct measurer *m, struct process *p,
                         const struct policy *policy) {
  if (is_affordable(m, p, policy))
    return false;
  m->deferred++;
  identify_note(m->troubles, TROUBLE_TOO_LARGE, p, 0, "smaps_rollup");
  return true;
}

static void consider(struct measurer *m, struct process *p) {
  struct policy policy = policy_of(p);
  struct candidate c = {.process = p,
                        .groups = p->groups,
                        .n_groups = p->n_groups,
                        .is_must = policy.refresh == REFRESH_ALWAYS};

  p->is_asked = policy.refresh != REFRESH_NEVER;
  p->doubt = 0;
  if (!p->is_asked || m->now.now_ns < p->denied_until_ns)
    return;
  estimate(m, p);
  if (is_quarantined(m, p))
    return;
  c.is_due = is_due(m, p, &policy, &c.overdue_ns) && !c.is_must;
  if (!c.is_must && !c.is_due && p->doubt < (float)DOUBT_LEAST_BYTES)
    return;
  if (is_too_large(m, p, &policy))
    return;
  c.doubt_bytes = amount_from((double)p->doubt);
  c.cost_ns = predict_cost_ns(p);
  m->candidates[m->n_candidates++] = c;
}

/* --- reading --- */

static void see_fields(struct measurer *m, uint32_t known) {
  m->now.kernel_fields = m->has_fields ? m->now.kernel_fields | known : known;
  m->has_fields = true;
}

static void note_failure(struct measurer *m, struct process *p, int r) {
  if (r == PROCFS_DENIED) {
    p->denied_until_ns = m->now.now_ns + DENIED_BACK_OFF_NS;
    identify_note(m->troubles, TROUBLE_ROLLUP_DENIED, p, 0, "smaps_rollup");
  } else if (r == -ENOSYS) {
    identify_note(m->troubles, TROUBLE_NO_ROLLUP, p, 0, "smaps_rollup");
  } else if (r == -EBADMSG) {
    identify_note(m->troubles, TROUBLE_MALFORMED, p, 0, "smaps_rollup");
  } else {
    identify_note(m->troubles, TROUBLE_FAILED, p, r, "smaps_rollup");
  }
}

/* Whether the statm of a process that did not change meanwhile shows as much as
 * its rollup. */
static void compare_statm(struct measurer *m, const struct process *p,
                          const struct rollup_reading *read) {
  uint64_t rss = read->rollup.bytes[ROLLUP_RSS] / m->now.page_size;
  uint64_t resident = p->statm.resident_pages;

  if (read->has_statm && resident == read->statm.resident_pages &&
      p->statm.shared_pages == read->statm.shared_pages)
    precision_learn(&m->now.precision,
                    rss > resident ? rss - resident : resident - rss);
}

static void add_read(struct measurer *m, struct process *p,
                     const struct read_job *job) {
  struct policy policy = policy_of(p);

  m->rollup_reads++;
  see_fields(m, job->rollup.rollup.known);
  p->is_read = true;
  cost_learn(&p->cost, job->work_ns, p->statm.resident_pages, &policy,
             m->now.now_ns);
  account_add_read(&m->now, p, &job->rollup.rollup);
  compare_statm(m, p, &job->rollup);
  if (m->keeps_readings || policy.refresh == REFRESH_ADAPTIVE)
    follow_from(&m->now, p, &job->rollup);
}

/* It is estimated from what there was. */
static void put_off(struct measurer *m, struct process *p) {
  p->is_put_off = true;
  m->deferred++;
}

static void finish_job(struct measurer *m, const struct read_job *job) {
  struct process *p = job->process;

  if (quarantine_check(m->quarantine, job)) {
    if (job->result == READ_UNTRIED)
      put_off(m, p);
    return;
  }
  m->rollup_ns += job->took_ns;
  if (job->took_ns > m->longest_read_ns)
    m->longest_read_ns = job->took_ns;
  p->wanted_ns = 0;
  if (job->result == 0 && p->reading.at_ns)
    follow_learn(&m->now, p, &job->rollup.rollup);
  p->reading.at_ns = 0;
  if (job->result == 0) {
    add_read(m, p, job);
  } else if (job->result == PROCFS_GONE || job->result == PROCFS_NO_MM) {
    p->state = PROCESS_GONE;
    m->vanished++;
  } else {
    p->has_failed = true;
    note_failure(m, p, job->result);
  }
}

static struct read_job job_of(struct process *p) {
  return (struct read_job){.process = p,
                           .kind = policy_of(p).refresh == REFRESH_ADAPTIVE
                                       ? READ_ROLLUP_AND_EVIDENCE
                                       : READ_ROLLUP};
}

static void read_chosen(struct measurer *m, size_t n) {
  struct read_job jobs[JOBS_AT_ONCE];

  for (size_t i = 0; i < n; i += JOBS_AT_ONCE) {
    size_t batch = n - i < JOBS_AT_ONCE ? n - i : JOBS_AT_ONCE;

    for (size_t j = 0; j < batch; j++)
      jobs[j] = job_of(m->candidates[i + j].process);
    reader_run(m->reader, jobs, batch);
    for (size_t j = 0; j < batch; j++)
      finish_job(m, &jobs[j]);
  }
}

static void read_now(struct measurer *m, struct process *p) {
  struct policy policy = policy_of(p);
  struct read_job job;

  if (is_quarantined(m, p) || is_too_large(m, p, &policy))
    return;
  job = job_of(p);
  reader_run(m->reader, &job, 1);
  finish_job(m, &job);
}

/* --- the cycle --- */

static int make_room(struct measurer *m, size_t n) {
  struct candidate *candidates;

  candidates = reallocarray(m->candidates, n, sizeof(*candidates));
  if (!candidates)
    return -ENOMEM;
  m->candidates = candidates;
  m->cap_candidates = n;
  return 0;
}

/* A reading from before pages were merged, or taken apart, is about others.
 * What goes on is seen again in the next cycle; where it merged until now it
 * did so after the last reading too. */
static void look_at_ksm(struct measurer *m, uint64_t now_ns) {
  struct ksm before = m->ksm;

  if (!m->read_ksm)
    return;
  m->read_ksm(&m->ksm);
  if (ksm_is_merging(&before) || ksm_is_merging(&m->ksm))
    m->now.ksm_merged_ns = now_ns;
  if (m->ksm.run != before.run || m->ksm.pages_sharing != before.pages_sharing)
    m->now.ksm_changed_ns = now_ns;
}

static void begin(struct measurer *m, const struct meminfo_sample *meminfo,
                  uint64_t now_ns) {
  m->now.now_ns = now_ns;
  /* Where meminfo cannot be read it may be. */
  m->now.is_swap_used =
      meminfo->swap_used_bytes > 0 || meminfo->mem_total_bytes == 0;
  look_at_ksm(m, now_ns);
  m->n_candidates = 0;
  m->rollup_reads = m->rollup_ns = m->longest_read_ns = 0;
  m->denied = m->vanished = m->deferred = 0;
}

static void defer(struct measurer *m, const struct plan *plan) {
  for (size_t i = 0; i < plan->deferred; i++)
    put_off(m, m->candidates[plan->chosen + i].process);
}

static bool has_member_parent(const struct process_table *t,
                              const struct process *p) {
  const struct process *parent = process_table_parent(t, p);

  return parent && is_member(parent);
}

/* Once all are read it is known whether the owners were there. */
static void read_orphans(struct measurer *m, const struct process_table *t) {
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    if (!is_member(p) || !p->is_in_parents_mm || has_member_parent(t, p))
      continue;
    p->is_in_parents_mm = false;
    p->is_asked = true;
    read_now(m, p);
  }
}

static bool is_measured(const struct process *p) {
  return is_member(p) && !p->is_in_parents_mm;
}

/* What to ask about a process, if anything is. */
static bool lay_out_same_mm(const struct measurer *m,
                            const struct process_table *t, struct process *p,
                            struct read_job *ret) {
  const struct process *parent = NULL;

  if (has_own_mm(t, p, &parent)) {
    p->is_in_parents_mm = false;
    return false;
  }
  if (is_quarantined(m, p) || is_quarantined(m, parent))
    return false;
  *ret = (struct read_job){.process = p,
                           .kind = READ_SAME_MM,
                           .other_pid = parent->pid,
                           .may_be_vfork = may_be_vfork(parent, p),
                           .may_ask_kernel =
                               m->now.now_ns >= p->kcmp_refused_until_ns};
  if (ret->may_be_vfork || ret->may_ask_kernel)
    return true;
  p->is_in_parents_mm = false;
  return false;
}

/* Who has memory of his own. Where that cannot be asked it is as it was. */
static void tell_apart(struct measurer *m, const struct process_table *t) {
  struct read_job jobs[JOBS_AT_ONCE];
  size_t n = 0;

  for (size_t i = 0; i < t->n; i++) {
    if (lay_out_same_mm(m, t, t->processes[i], &jobs[n]))
      n++;
    if (n == JOBS_AT_ONCE) {
      ask_same_mm(m, jobs, n);
      n = 0;
    }
  }
  ask_same_mm(m, jobs, n);
}

/* One that cannot be looked at in this cycle has not left. */
static bool is_in_set(const struct process *p) {
  return (p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN) &&
         p->n_groups > 0 && !p->is_in_parents_mm;
}

/* All that the estimate of one process depends on of the others. */
static void look_around(struct measurer *m, const struct process_table *t) {
  struct read_job jobs[JOBS_AT_ONCE];
  size_t n = 0;

  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    p->is_read = p->has_failed = p->is_put_off = false;
    if (is_in_set(p))
      follow_count(&m->now, p);
    if (!is_measured(p))
      continue;
    if (process_wants_faults(p) && !is_quarantined(m, p))
      jobs[n++] = (struct read_job){.process = p, .kind = READ_STAT};
    if (n == JOBS_AT_ONCE) {
      read_faults(m, jobs, n);
      n = 0;
    }
  }
  read_faults(m, jobs, n);
  for (size_t i = 0; i < t->n; i++)
    if (is_in_set(t->processes[i]))
      follow_set(t->processes[i]);
}

static void add_up(struct measurer *m, struct process *p) {
  if (is_measured(p) && !p->is_read)
    follow_others(p);
  m->denied += is_member(p) && m->now.now_ns < p->denied_until_ns;
  account_add_unread(&m->now, p);
}

int measurer_run(struct measurer *m, const struct process_table *t,
                 const struct meminfo_sample *meminfo, uint64_t now_ns) {
  struct plan plan;
  /* With some to spare, for those that come. */
  int r = m->cap_candidates < t->n ? make_room(m, t->n + t->n / 8) : 0;

  if (r < 0)
    return r;
  begin(m, meminfo, now_ns);
  tell_apart(m, t);
  look_around(m, t);
  for (size_t i = 0; i < t->n; i++)
    if (is_measured(t->processes[i]))
      consider(m, t->processes[i]);
  plan = plan_choose(m->candidates, m->n_candidates, m->read_budget_ns,
                     &m->owed_ns);
  read_chosen(m, plan.chosen);
  defer(m, &plan);
  read_orphans(m, t);
  for (size_t i = 0; i < t->n; i++)
    add_up(m, t->processes[i]);
  for (size_t i = 0; i < t->n; i++)
    account_add_guess(&m->now, t->processes[i]);
  return 0;
}

bool measurer_is_too_large(const struct measurer *m, const struct process *p) {
  struct cost cost = p->cost.ns ? p->cost : guess_cost(m, p);

  return cost_predict(&cost, p->statm.resident_pages) >
         policy_of(p).max_stall_ns;
}

enum measure_delay measurer_delay(const struct measurer *m,
                                  const struct process *p) {
  enum account_source source = account_source(&m->now, p);

  /* Its rollup was read, and what it maps hung after that. */
  if (source == SOURCE_READ && is_quarantined(m, p))
    return DELAY_STALLED;
  if (source != SOURCE_ESTIMATED && source != SOURCE_GUESSED)
    return DELAY_NONE;
  if (is_quarantined(m, p))
    return DELAY_STALLED;
  if (p->is_put_off)
    return DELAY_BUDGET;
  return predict_cost_ns(p) > policy_of(p).max_stall_ns ? DELAY_MAX_STALL
                                                        : DELAY_NONE;
}
