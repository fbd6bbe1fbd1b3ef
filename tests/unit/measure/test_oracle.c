/* SPDX-License-Identifier: MIT */
/*
 * Compares the measurer with the truth. Random histories of processes whose
 * memory is known page by page (memory_world.h) are measured, cycle by cycle,
 * and what is published of each group, and of each member, is compared with
 * what it has.
 *
 *   ORACLE_SEED     of the first history; 1 by default
 *   ORACLE_PERCENT  of the histories of each class; 100 by default
 *   ORACLE_VERBOSE  1: prints a row for each class; 2: all that happens, too
 *
 * Figures are limited where the first two are what they are by default. A
 * history that breaks a rule is printed.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "measure/measure.h"
#include "member/address_space.h"
#include "proc/cheap_files.h"
#include "read/reader.h"

#include "history.h"
#include "memory_table.h"

/* The kernel rounds each Pss down to kB. */
#define ROUNDING 1024

/* How much worse than they were figures may be: percentage points, and times.
 * The world is the same in each run. Where other readings are not to be had,
 * which is luck, parts that are held have a standard deviation of 0.05 points,
 * and of 0.17 at most, and the other figures mostly one of 1 %, and of 2.3 % at
 * most (but for the errors of private memory: 4.5 %). */
#define LESS_HELD 0.3
#define MORE 1.1
/* As figures are written. */
#define ROUNDED 0.001

/* What a rollup costs: a part, and another for each page. */
#define MEMORY_READ_NS 20000
#define MEMORY_PAGE_NS 20

/* --- how good they are --- */

enum value { GROUP_PSS, GROUP_USS, MEMBER_PSS, MEMBER_USS, VALUES };

/* Values beside the truth; sums are in pages, so that large pages count no more
 * than small ones. */
struct score {
  uint64_t n, held;
  double off, width, truth;
};

struct result {
  struct score scores[VALUES];
  uint64_t readings, members; /* members: once in each cycle */
};

/* In percent: the members that are read in a cycle; and of each value how often
 * it is within its error, how far it is off, and how large its error is, by the
 * truth. */
#define FIGURES (1 + 3 * VALUES)

static double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

static void calculate(const struct result *r, double figures[FIGURES]) {
  figures[0] = percent((double)r->readings, (double)r->members);
  for (unsigned i = 0; i < VALUES; i++) {
    const struct score *s = &r->scores[i];

    figures[1 + 3 * i] = percent((double)s->held, (double)s->n);
    figures[2 + 3 * i] = percent(s->off, s->truth);
    figures[3 + 3 * i] = percent(s->width, s->truth);
  }
}

/* --- a history, and who looks on --- */

static struct run {
  struct history history;
  struct memory_view views[MEMORY_SLOTS];      /* when processes were listed */
  struct memory_view read_views[MEMORY_SLOTS]; /* and when they are read */
  struct process *process_of[MEMORY_SLOTS];
  struct process_table table;
  struct policy policies[HISTORY_GROUPS];
  struct group groups[HISTORY_GROUPS], *group_list[HISTORY_GROUPS];
  struct reader reader;
  struct diag diags[DIAGS];
  struct measurer measurer;
  unsigned cycle;
  const char *broken;
  struct result *result;
  struct memory_world world;
} the_run; /* too large for a stack */

/* --- what is read: memory that is known, and no file --- */

static unsigned slot_of(uint32_t pid) {
  const struct memory_process *p = the_run.world.processes;
  unsigned slot = 0;

  while (slot < MEMORY_SLOTS && (!p[slot].is_alive || p[slot].pid != pid))
    slot++;
  return slot;
}

static bool is_missed(uint32_t pid) {
  uint64_t x = (the_run.history.random + pid) * UINT64_C(0x9e3779b97f4a7c15);

  return ((x ^ x >> 31) * 0xbf58476d1ce4e5b9) >> 56 < the_run.history.missed;
}

/* Minor faults are read when rollup_reader.c reads them. */
static void read_rollup(unsigned slot, struct read_job *job) {
  const struct memory_view *v = &the_run.read_views[slot];
  uint32_t faults = the_run.world.processes[slot].minor_faults;
  uint64_t pages = v->resident_pages +
                   v->rollup.bytes[ROLLUP_SWAP] / the_run.world.page_size;

  job->rollup = (struct rollup_reading){
      .rollup = v->rollup, .has_statm = true, .statm = memory_table_statm(v)};
  if (rollup_cow_bytes(&v->rollup) >= ROLLUP_COW_LEAST_BYTES)
    job->rollup.faults = faults;
  job->took_ns = job->work_ns = MEMORY_READ_NS + pages * MEMORY_PAGE_NS;
}

static void run_job(struct read_job *job) {
  unsigned slot = slot_of(job->process->pid);

  job->result = slot == MEMORY_SLOTS ? PROCFS_GONE : 0;
  if (job->result != 0)
    return;
  if (job->kind == READ_ROLLUP && is_missed(job->process->pid))
    job->result = READ_SKIPPED;
  else if (job->kind == READ_ROLLUP)
    read_rollup(slot, job);
  else if (job->kind == READ_STAT)
    job->stat = (struct stat_sample){
        .minor_faults = the_run.world.processes[slot].minor_faults};
  else
    fail_msg("nothing of the kind %d is known", job->kind);
}

void __wrap_reader_run(struct reader *r, struct read_job *jobs, size_t n);
void __wrap_reader_run(struct reader *r, struct read_job *jobs, size_t n) {
  (void)r;
  for (size_t i = 0; i < n; i++)
    run_job(&jobs[i]);
}

int __wrap_statm_read_of(struct procfs *p, uint32_t pid,
                         struct procfs_file *file, struct statm_sample *ret);
int __wrap_statm_read_of(struct procfs *p, uint32_t pid,
                         struct procfs_file *file, struct statm_sample *ret) {
  unsigned slot = slot_of(pid);

  (void)p;
  (void)file;
  if (slot == MEMORY_SLOTS)
    return PROCFS_GONE;
  *ret = memory_table_statm(&the_run.read_views[slot]);
  return 0;
}

int __wrap_status_read_of(struct procfs *p, uint32_t pid,
                          struct status_sample *ret);
int __wrap_status_read_of(struct procfs *p, uint32_t pid,
                          struct status_sample *ret) {
  unsigned slot = slot_of(pid);

  (void)p;
  if (slot == MEMORY_SLOTS)
    return PROCFS_GONE;
  *ret = (struct status_sample){.known = STATUS_VM_SWAP,
                                .vm_swap_bytes =
                                    the_run.read_views[slot].vm_swap_kb * KIB};
  return 0;
}

static void read_ksm(struct ksm *ret) { memory_read_ksm(&the_run.world, ret); }

static void begin(struct run *r) {
  const struct history *h = &r->history;
  struct measurer *m = &r->measurer;
  double cycle_ns = h->readings * (MEMORY_READ_NS + 500 * MEMORY_PAGE_NS);

  r->reader.page_size = h->page_size;
  measurer_init(m, NULL, &r->reader, r->diags);
  m->read_ksm = read_ksm;
  m->cycle.interval_ns = h->interval_ns;
  read_budget_init(&m->budget, 100 * cycle_ns / (double)h->interval_ns,
                   h->interval_ns);
  for (unsigned i = 0; i < HISTORY_GROUPS; i++) {
    r->policies[i] =
        (struct policy){.refresh = REFRESH_ADAPTIVE,
                        .max_age_ns = h->max_age_ns,
                        .max_lock_hold_ns = NS,
                        .comes_last = i > 0 && h->class->is_mostly_other};
    r->groups[i].policy = &r->policies[i];
    r->group_list[i] = &r->groups[i];
  }
}

static void end(struct run *r) {
  memory_table_done(&r->table);
  measurer_done(&r->measurer);
  for (unsigned i = 0; i < HISTORY_GROUPS; i++)
    free(r->groups[i].track);
}

static bool is_member(const struct run *r, unsigned slot) {
  return slot < HISTORY_OUTSIDERS && r->process_of[slot];
}

static void list(struct run *r) {
  memory_view_all(&r->world, r->views);
  memory_table_update(&r->table, &r->world, r->views, r->process_of);
  for (unsigned slot = 0; slot < HISTORY_OUTSIDERS; slot++) {
    struct process *p = r->process_of[slot];

    if (!p || p->n_groups > 0)
      continue;
    p->groups = malloc(sizeof(struct group *));
    assert_non_null(p->groups);
    p->groups[0] = &r->groups[r->world.processes[slot].group];
    p->n_groups = 1;
  }
  address_space_relate(&r->table, r->diags);
}

static void measure(struct run *r) {
  const struct history *h = &r->history;
  const struct group_table groups = {.groups = r->group_list,
                                     .n = HISTORY_GROUPS};
  struct meminfo_sample meminfo = {
      .mem_total_bytes = MEMORY_PAGES * h->page_size,
      .swap_used_bytes = memory_is_swap_used(&r->world)};

  for (unsigned i = 0; i < HISTORY_GROUPS; i++)
    r->groups[i].usage = (struct usage){0};
  assert_int_equal(measurer_run(&r->measurer, &r->table, &groups, &meminfo,
                                NS + (r->cycle + 1) * h->interval_ns),
                   0);
  r->result->readings += r->measurer.counts.rollup_reads;
}

/* --- judging --- */

static void score(struct run *r, enum value value, uint64_t got, uint64_t truth,
                  uint64_t error, uint64_t rounding) {
  struct score *s = &r->result->scores[value];
  double page_size = (double)r->history.page_size;

  s->n++;
  s->held += distance(got, truth) <= error + rounding;
  s->off += (double)distance(got, truth) / page_size;
  s->width += (double)error / page_size;
  s->truth += (double)truth / page_size;
}

/* As far as kB that are rounded down go. */
static bool are_parts_of(const uint64_t *bytes) {
  uint64_t parts =
      bytes[ROLLUP_PSS_ANON] + bytes[ROLLUP_PSS_FILE] + bytes[ROLLUP_PSS_SHMEM];

  return parts <= bytes[ROLLUP_PSS] && bytes[ROLLUP_PSS] - parts <= 2 * 1024;
}

static const char *broken_relation(const struct rollup *got,
                                   uint64_t resident_bytes) {
  const uint64_t *b = got->bytes;
  uint64_t uss = rollup_uss(got);

  if (uss > b[ROLLUP_PSS] || b[ROLLUP_PSS] > b[ROLLUP_RSS])
    return "uss <= Pss <= Rss does not hold";
  if (!are_parts_of(b))
    return "the parts of Pss do not add up";
  if (b[ROLLUP_PSS_ANON] > b[ROLLUP_ANONYMOUS] ||
      b[ROLLUP_PSS_DIRTY] > b[ROLLUP_PSS] ||
      b[ROLLUP_ANONYMOUS] > b[ROLLUP_RSS])
    return "a part is larger than the whole";
  if (b[ROLLUP_SWAP_PSS] > b[ROLLUP_SWAP])
    return "SwapPss is above Swap";
  if (uss + b[ROLLUP_SHARED_CLEAN] + b[ROLLUP_SHARED_DIRTY] != b[ROLLUP_RSS])
    return "shared and private memory are not Rss";
  if (b[ROLLUP_RSS] != resident_bytes)
    return "Rss is not what statm shows";
  return NULL;
}

static void judge_member(struct run *r, unsigned slot) {
  const struct memory_view *view = &r->views[slot];
  uint64_t pss = view->rollup.bytes[ROLLUP_PSS];
  uint64_t error;
  struct estimate e;

  aggregate_estimate(&r->measurer.aggregate, r->process_of[slot], &e);
  error = amount_from(error_bytes(e.error.pss));
  score(r, MEMBER_PSS, e.rollup.bytes[ROLLUP_PSS], pss, error, ROUNDING);
  score(r, MEMBER_USS, rollup_uss(&e.rollup), rollup_uss(&view->rollup),
        amount_from(error_bytes(e.error.uss)), ROUNDING);
  if (e.source != SOURCE_ESTIMATED || r->broken)
    return;
  r->broken =
      broken_relation(&e.rollup, view->resident_pages * r->history.page_size);
  if (r->history.class->is_private &&
      (error > 0 || e.rollup.bytes[ROLLUP_PSS] != pss))
    r->broken = "private memory is not followed exactly";
}

static void judge_group(struct run *r, unsigned group) {
  const struct usage *u = &r->groups[group].usage;
  uint64_t pss = 0, uss = 0, members = 0;

  for (unsigned slot = 0; slot < HISTORY_OUTSIDERS; slot++) {
    if (!is_member(r, slot) || r->world.processes[slot].group != group)
      continue;
    pss += r->views[slot].rollup.bytes[ROLLUP_PSS];
    uss += rollup_uss(&r->views[slot].rollup);
    members++;
  }
  r->result->members += members;
  if (members == 0)
    return;
  score(r, GROUP_PSS, u->rollup.bytes[ROLLUP_PSS], pss, usage_pss_error(u),
        members * ROUNDING);
  score(r, GROUP_USS, rollup_uss(&u->rollup), uss, usage_uss_error(u),
        members * ROUNDING);
}

/* --- all together --- */

static void run_cycle(struct run *r) {
  struct history *h = &r->history;

  if (h->log)
    fprintf(h->log, "cycle %u:\n", r->cycle);
  if (r->cycle > 0)
    history_go_on(h);
  list(r);
  history_fork_unlisted(h);
  memory_view_all(&r->world, r->read_views);
  measure(r);
  for (unsigned slot = 0; slot < HISTORY_OUTSIDERS; slot++)
    if (is_member(r, slot))
      judge_member(r, slot);
  for (unsigned group = 0; group < HISTORY_GROUPS; group++)
    judge_group(r, group);
  history_end_unlisted(h);
}

/* Returns what is wrong, or NULL. */
static const char *run(const struct history_class *c, uint64_t seed, FILE *log,
                       struct result *result) {
  struct run *r = &the_run;

  memset(r, 0, offsetof(struct run, world));
  r->result = result;
  history_init(&r->history, c, seed);
  r->history.log = log;
  memory_world_init(&r->world, r->history.page_size, r->history.object_pages);
  begin(r);
  history_begin(&r->history, &r->world);
  while (r->cycle < r->history.cycles && !r->broken) {
    run_cycle(r);
    r->cycle++;
  }
  end(r);
  return r->broken;
}

/* --- what is to hold --- */

static uint64_t number_from(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);

  return text ? strtoull(text, NULL, 10) : otherwise;
}

/* As it stands in the source. */
static void print(const char *name, const double figures[FIGURES]) {
  fprintf(stderr, "%-17s {", name);
  for (unsigned i = 0; i < FIGURES; i++)
    fprintf(stderr, "%s%.3f", i ? ", " : "", figures[i]);
  fprintf(stderr, "}\n");
}

static unsigned count_worse(const double is[FIGURES],
                            const double was[FIGURES]) {
  static const char *const values[] = {"PSS of groups", "USS of groups",
                                       "PSS of members", "USS of members"};
  static const char *const kinds[] = {"held", "off", "width"};
  unsigned n = 0;

  for (unsigned i = 0; i < FIGURES; i++) {
    bool is_held = i % 3 == 1;

    if (is_held ? is[i] >= was[i] - LESS_HELD
                : is[i] <= was[i] * MORE + ROUNDED)
      continue;
    fprintf(stderr, "%s, %s: %.3f %%, and was %.3f %%\n",
            i ? values[(i - 1) / 3] : "members",
            i ? kinds[(i - 1) % 3] : "read", is[i], was[i]);
    n++;
  }
  return n;
}

/* A class, and its figures as they were. */
struct judged {
  struct history_class class;
  unsigned histories; /* 0: 1,500 */
  double was[FIGURES];
};

static void run_class(const struct judged *j) {
  const struct history_class *c = &j->class;
  unsigned histories = j->histories ? j->histories : 1500;
  uint64_t first = number_from("ORACLE_SEED", 1);
  uint64_t share = number_from("ORACLE_PERCENT", 100);
  uint64_t verbose = number_from("ORACLE_VERBOSE", 0);
  uint64_t end = first + (histories * share + 99) / 100;
  struct result result = {0};
  double is[FIGURES];

  for (uint64_t seed = first; seed < end; seed++) {
    const char *broken = run(c, seed, verbose > 1 ? stderr : NULL, &result);

    if (!broken)
      continue;
    run(c, seed, stderr, &result);
    fail_msg("%s, ORACLE_SEED=%llu: %s", c->name, (unsigned long long)seed,
             broken);
  }
  calculate(&result, is);
  if (verbose)
    print(c->name, is);
  if (first == 1 && share == 100 && count_worse(is, j->was) > 0)
    fail_msg("%s: the estimates are worse than they were", c->name);
}

/* --- classes --- */

#define CLASS_TEST(test, ...)                                                  \
  TEST(test) {                                                                 \
    static const struct judged judged = {__VA_ARGS__};                         \
                                                                               \
    run_class(&judged);                                                        \
  }

#define PRIVATE_WEIGHTS                                                        \
  [OP_START] = 1, [OP_EXEC] = 1, [OP_EXIT] = 1, [OP_GROW] = 6, [OP_SHRINK] = 6
#define POOL_WEIGHTS                                                           \
  [OP_FORK] = 4, [OP_EXIT] = 4, [OP_GROW] = 3, [OP_SHRINK] = 2,                \
  [OP_WRITE] = 6, [OP_MAP] = 2, [OP_MAP_AROUND] = 2
#define SWAP_WEIGHTS                                                           \
  [OP_FORK] = 1, [OP_EXIT] = 1, [OP_GROW] = 3, [OP_SHRINK] = 2,                \
  [OP_SWAP_OUT] = 6, [OP_SWAP_IN] = 3, [OP_SWAP_IN_WRITTEN] = 3,               \
  [OP_SWAP_OFF] = 1
#define BUFFER_WEIGHTS                                                         \
  [OP_FORK] = 1, [OP_EXIT] = 1, [OP_GROW] = 2, [OP_WRITE] = 1,                 \
  [OP_MAP_AROUND] = 8
#define MERGE_WEIGHTS                                                          \
  [OP_START] = 1, [OP_EXIT] = 1, [OP_GROW] = 6, [OP_SHRINK] = 3,               \
  [OP_WRITE] = 6, [OP_MERGE] = 6, [OP_STOP_MERGING] = 3, [OP_UNMERGE] = 1
#define FILES_WEIGHTS                                                          \
  [OP_START] = 1, [OP_EXIT] = 1, [OP_GROW] = 3, [OP_SHRINK] = 3, [OP_MAP] = 3, \
  [OP_UNMAP] = 6, [OP_MAP_AROUND] = 3
#define COPY_WEIGHTS                                                           \
  [OP_FORK] = 2, [OP_EXEC] = 1, [OP_EXIT] = 1, [OP_GROW] = 3, [OP_SHRINK] = 3, \
  [OP_WRITE] = 6
#define ALL_WEIGHTS                                                            \
  [OP_START] = 1, [OP_FORK] = 3, [OP_EXEC] = 1, [OP_EXIT] = 2, [OP_GROW] = 3,  \
  [OP_SHRINK] = 3, [OP_WRITE] = 4, [OP_MAP] = 2, [OP_MAP_AROUND] = 2,          \
  [OP_UNMAP] = 3, [OP_SWAP_OUT] = 2, [OP_SWAP_IN] = 1,                         \
  [OP_SWAP_IN_WRITTEN] = 1, [OP_SWAP_OFF] = 1

/* Two groups: that there is another makes no difference here. */
CLASS_TEST(private_memory_is_followed_exactly,
           .was = {11.043, 100.000, 0.000, 0.756, 100.000, 0.000, 0.756,
                   100.000, 0.000, 0.756, 100.000, 0.000, 0.756},
           .class = {.name = "private",
                     .is_private = true,
                     .groups = 2,
                     .weights = {PRIVATE_WEIGHTS}})

CLASS_TEST(files_shared_in_a_group,
           .was = {29.734, 98.595, 1.423, 8.667, 98.740, 2.078, 11.989, 98.010,
                   1.747, 9.261, 99.051, 2.424, 12.945},
           .class = {.name = "files",
                     .groups = 1,
                     .is_mapping = true,
                     .weights = {FILES_WEIGHTS}})

/* No cheap file of a process shows that others outside its group have mapped
 * its pages, or have left them. */
CLASS_TEST(files_shared_with_strangers,
           .was = {29.383, 93.091, 1.494, 6.555, 94.676, 2.065, 9.235, 94.817,
                   1.646, 6.715, 97.064, 2.218, 9.513},
           .class = {.name = "strangers' files",
                     .groups = 2,
                     .is_mapping = true,
                     .has_outsiders = true,
                     .weights = {FILES_WEIGHTS}})

CLASS_TEST(copy_on_write,
           .was = {26.569, 98.717, 1.631, 53.772, 98.800, 5.340, 216.486,
                   98.901, 2.133, 55.490, 99.324, 5.983, 223.510},
           .class = {.name = "copy on write",
                     .groups = 1,
                     .is_forked = true,
                     .weights = {COPY_WEIGHTS}})

CLASS_TEST(prefork_pools,
           .was = {29.042, 99.689, 2.143, 66.337, 99.909, 7.327, 305.545,
                   99.603, 2.626, 69.367, 99.931, 8.550, 319.322},
           .class = {.name = "prefork pools",
                     .groups = 1,
                     .is_forked = true,
                     .is_pool = true,
                     .is_mapping = true,
                     .weights = {POOL_WEIGHTS}})

CLASS_TEST(swapped_memory,
           .was = {27.687, 99.100, 4.869, 89.087, 98.770, 17.181, 549.464,
                   99.289, 5.519, 92.280, 99.027, 18.963, 568.734},
           .class = {.name = "swap",
                     .groups = 1,
                     .is_forked = true,
                     .weights = {SWAP_WEIGHTS}})

CLASS_TEST(everything_together,
           .was = {26.511, 92.934, 1.359, 6.158, 94.559, 2.277, 9.267, 94.700,
                   1.495, 6.226, 96.938, 2.430, 9.417},
           .class = {.name = "everything",
                     .groups = 2,
                     .is_mapping = true,
                     .has_outsiders = true,
                     .weights = {ALL_WEIGHTS}})

CLASS_TEST(thousands_of_intervals, .histories = 16,
           .was = {20.478, 95.527, 1.271, 7.823, 96.313, 1.660, 12.243, 95.909,
                   1.419, 8.117, 97.560, 1.740, 12.744},
           .class = {.name = "2,000 intervals",
                     .groups = 2,
                     .cycles = 2000,
                     .is_mapping = true,
                     .has_outsiders = true,
                     .weights = {ALL_WEIGHTS}})

/* There is time for a reading in ten cycles or, at most, in two and a half. */
CLASS_TEST(budget_that_is_scarce,
           .was = {3.473, 99.032, 9.378, 59.909, 98.910, 20.777, 77.420, 98.078,
                   12.254, 60.046, 98.777, 25.796, 81.137},
           .class = {.name = "scarce budget",
                     .groups = 2,
                     .members = 12,
                     .is_mapping = true,
                     .is_scarce = true,
                     .weights = {ALL_WEIGHTS}})

/* The backends of a database do this. */
CLASS_TEST(shared_buffers_that_only_grow,
           .was = {27.897, 99.875, 2.640, 56.630, 99.958, 8.874, 240.701,
                   99.750, 3.311, 59.354, 99.912, 10.839, 252.197},
           .class = {.name = "shared buffers",
                     .groups = 1,
                     .is_forked = true,
                     .is_mapping = true,
                     .weights = {BUFFER_WEIGHTS}})

CLASS_TEST(children_that_live_between_list_and_reading,
           .was = {29.891, 88.231, 7.107, 59.093, 93.478, 14.930, 197.491,
                   82.500, 8.472, 61.843, 95.767, 16.434, 206.992},
           .class = {.name = "unlisted children",
                     .groups = 1,
                     .is_forked = true,
                     .has_unlisted = true,
                     .weights = {COPY_WEIGHTS}})

CLASS_TEST(pages_that_ksm_merges_and_takes_apart,
           .was = {28.966, 100.000, 0.604, 20.663, 99.992, 1.191, 20.863,
                   99.996, 0.618, 20.665, 99.996, 1.218, 20.969},
           .class = {.name = "KSM", .groups = 2, .weights = {MERGE_WEIGHTS}})

/* The second group is Other, of which as much is read as the first leaves. */
CLASS_TEST(most_processes_are_in_other,
           .was = {21.997, 93.487, 1.692, 10.506, 95.312, 3.280, 15.049, 95.134,
                   2.243, 10.736, 97.440, 4.074, 15.505},
           .class = {.name = "Other",
                     .groups = 2,
                     .members = 12,
                     .is_mostly_other = true,
                     .is_mapping = true,
                     .weights = {ALL_WEIGHTS}})
