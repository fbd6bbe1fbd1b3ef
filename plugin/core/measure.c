#include <smaps/measure.h>

#include <errno.h>
#include <unistd.h>

#include <smaps/identify.h>

/* Each attempt may cost a line in an audit log (AppArmor), so one that was
 * refused is not repeated soon, unless the process execs. */
#define DENIED_BACK_OFF_NS (UINT64_C(3600) * 1000000000)

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
                   struct trouble *troubles, uint64_t (*clock_ns)(void)) {
  *m = (struct measurer){.procfs = procfs,
                         .troubles = troubles,
                         .clock_ns = clock_ns,
                         .page_size = (uint64_t)sysconf(_SC_PAGESIZE),
                         .kernel_fields = FIELDS_SINCE_4_14};
}

static size_t feed(void *ctx, const char *text, size_t len) {
  return rollup_sum_feed(ctx, text, len);
}

static int read_smaps(struct procfs *procfs, int fd, struct rollup *ret) {
  struct rollup_sum sum = {0};
  int r = procfs_read_pieces(procfs, fd, "smaps", feed, &sum);

  return r != 0 ? r : rollup_sum_finish(&sum, ret);
}

/*
 * Kernels before 4.14 have smaps only, kernels without
 * CONFIG_PROC_PAGE_MONITOR neither. A missing file looks the same as a process
 * that has ended, so as long as no rollup was ever seen we look further:
 * -ENOSYS where the process is there and the files are not.
 */
static int read_rollup_or_smaps(struct measurer *m, int fd,
                                struct rollup *ret) {
  struct span text;
  int r = procfs_read(m->procfs, fd, "smaps_rollup", &text);

  if (r == 0) {
    m->has_rollup = true;
    return rollup_parse(text.text, text.len, ret);
  }
  if (r != PROCFS_GONE || m->has_rollup)
    return r;
  r = read_smaps(m->procfs, fd, ret);
  if (r != PROCFS_GONE)
    return r;
  r = procfs_read(m->procfs, fd, "statm", &text);
  return r == 0 ? -ENOSYS : r;
}

static int read_timed(struct measurer *m, int fd, struct rollup *ret) {
  uint64_t start = m->clock_ns();
  int r = read_rollup_or_smaps(m, fd, ret);
  uint64_t took = m->clock_ns() - start;

  m->rollup_ns += took;
  if (took > m->longest_read_ns)
    m->longest_read_ns = took;
  m->rollup_reads += r == 0;
  return r;
}

static void see_fields(struct measurer *m, uint32_t known) {
  m->kernel_fields = m->has_fields ? m->kernel_fields | known : known;
  m->has_fields = true;
}

static int read_rollup(struct measurer *m, const struct process *p,
                       struct rollup *ret) {
  int fd = -1;
  int r = identify_open_memory(m->procfs, p, &fd);

  if (r != 0)
    return r;
  r = read_timed(m, fd, ret);
  close(fd);
  if (r == 0)
    see_fields(m, ret->known);
  return r;
}

static void note_failure(struct measurer *m, struct process *p, int r,
                         uint64_t now_ns) {
  if (r == PROCFS_DENIED) {
    p->denied_until_ns = now_ns + DENIED_BACK_OFF_NS;
    m->denied++;
    identify_note(m->troubles, TROUBLE_ROLLUP_DENIED, p, 0, "smaps_rollup");
  } else if (r == -ENOSYS) {
    identify_note(m->troubles, TROUBLE_NO_ROLLUP, p, 0, "smaps_rollup");
  } else if (r == -EBADMSG) {
    identify_note(m->troubles, TROUBLE_MALFORMED, p, 0, "smaps_rollup");
  } else {
    identify_note(m->troubles, TROUBLE_FAILED, p, r, "smaps_rollup");
  }
}

/* A member without memory of its own, or of which nothing could be read. */
static void add_count(const struct process *p, bool is_unknown) {
  for (size_t i = 0; i < p->n_groups; i++) {
    struct usage *u = &p->groups[i]->usage;

    usage_add_process(u, p->threads);
    u->unreadable += is_unknown;
    u->unknown += is_unknown;
  }
}

static void add_memory(const struct measurer *m, const struct process *p,
                       const struct rollup *rollup) {
  for (size_t i = 0; i < p->n_groups; i++) {
    struct usage *u = &p->groups[i]->usage;

    usage_add_process(u, p->threads);
    usage_add_statm(u, &p->statm, m->page_size);
    if (rollup)
      usage_add_rollup(u, rollup, p->statm.resident_pages * m->page_size);
    else
      u->unreadable++;
  }
}

static void measure(struct measurer *m, struct process *p, uint64_t now_ns) {
  struct rollup rollup;
  int r;

  if (now_ns < p->denied_until_ns) {
    m->denied++;
    add_memory(m, p, NULL);
    return;
  }
  r = read_rollup(m, p, &rollup);
  if (r == 0) {
    add_memory(m, p, &rollup);
    return;
  }
  if (r == PROCFS_GONE || r == PROCFS_NO_MM) {
    p->state = PROCESS_GONE;
    m->vanished++;
    return;
  }
  note_failure(m, p, r, now_ns);
  add_memory(m, p, NULL);
}

/*
 * Without the right to ask kcmp: a parent that waits in vfork sleeps in state
 * D, and its child, which has not called exec yet, shows the very same numbers.
 */
static bool looks_like_vfork(const struct process *parent,
                             const struct process *p) {
  const struct statm_sample *a = &parent->statm, *b = &p->statm;

  return parent->stat_state == 'D' && parent->image == p->image &&
         a->size_pages == b->size_pages &&
         a->resident_pages == b->resident_pages &&
         a->shared_pages == b->shared_pages && a->data_pages == b->data_pages;
}

/*
 * The parent, where the process runs in its address space. A child has its
 * parent's stack and program until it calls exec, so only such pairs are worth
 * asking about, and once is enough: two mms do not become one.
 */
static const struct process *find_mm_owner(struct measurer *m,
                                           const struct process_table *t,
                                           struct process *p) {
  const struct process *parent = process_table_parent(t, p);
  uint64_t pair;
  bool is_same;
  int r;

  if (!parent || parent->state != PROCESS_ALIVE || parent->n_groups == 0 ||
      parent->start_stack != p->start_stack ||
      parent->statm.text_pages != p->statm.text_pages)
    return NULL;
  pair = (parent->image * 31 + p->image) | 1;
  if (pair == p->apart_from_parent)
    return NULL;
  r = procfs_is_same_mm(m->procfs, parent->pid, p->pid, &is_same);
  if (r < 0)
    return looks_like_vfork(parent, p) ? parent : NULL;
  if (!is_same)
    p->apart_from_parent = pair;
  return is_same ? parent : NULL;
}

static bool is_member(const struct process *p) {
  return p->state == PROCESS_ALIVE && p->n_groups > 0;
}

void measurer_run(struct measurer *m, const struct process_table *t,
                  uint64_t now_ns) {
  m->rollup_reads = m->rollup_ns = m->longest_read_ns = 0;
  m->denied = m->vanished = 0;
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    if (p->state == PROCESS_UNKNOWN)
      add_count(p, true);
    p->mm_owner = is_member(p) ? find_mm_owner(m, t, p) : NULL;
    if (is_member(p) && !p->mm_owner)
      measure(m, p, now_ns);
  }
  /* Now it is known whether the owner was there to be measured. */
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    if (!p->mm_owner)
      continue;
    if (is_member(p->mm_owner))
      add_count(p, false);
    else
      measure(m, p, now_ns);
  }
}
