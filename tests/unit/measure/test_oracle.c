/*
 * The estimator beside the truth. Random histories of processes whose memory is
 * known page by page (memory_world.h) are shown to it as measure.c would show
 * them: all are observed, some are read, the rest are predicted.
 *
 *   ORACLE_SEED       of the first history; else random
 *   ORACLE_HISTORIES  in each class
 *   ORACLE_VERBOSE    1: how far off predictions were
 *
 * A history that breaks a rule is printed; ORACLE_SEED and ORACLE_HISTORIES=1
 * replay it.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "estimate/address_space.h"
#include "estimate/estimator.h"
#include "estimate/group_track.h"
#include "estimate/member.h"
#include "estimate/newborn.h"
#include "estimate/track_change.h"
#include "measure/aggregate.h"
#include "proc/amount.h"
#include "process/process.h"
#include "schedule/schedule.h"

#include "history.h"
#include "memory_table.h"

#define HISTORIES 1500
/* As in measure.c. */
#define ERROR_LEAST_BYTES 4096.0
#define GROUP_ERROR_TOLERATED 0.005
#define READ_NS 1000
#define ALL_FIELDS ((1U << ROLLUP_FIELDS) - 1)
/* A bound that is missed by more, and by 1 %, is worth a look. */
#define FAR_BYTES (UINT64_C(256) << 10)
/* The kernel rounds the Pss of each process down to kB. */
#define ROUNDING 1024

/* --- what is counted --- */

struct tally {
  uint64_t n, missed;   /* bounds that did not hold */
  uint64_t by_percent;  /* by more than 1 % of the true Pss */
  uint64_t far;         /* and by FAR_BYTES */
  uint64_t silent;      /* the bound was zero */
  double excess, worst; /* as parts of Pss: the sum, and the largest */
  double off, width;    /* sums of parts of Pss */
};

struct result {
  struct tally processes, groups;
  uint64_t readings, process_cycles, unread;
  uint64_t anon, file, shmem; /* where single predictions missed by most */
  bool is_wrong;
  char what[512];
};

static uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

static void tally_add(struct tally *t, uint64_t predicted, uint64_t truth,
                      uint64_t error, uint64_t rounding) {
  uint64_t off = distance(predicted, truth);
  double whole = truth ? (double)truth : 1;
  double excess = ((double)off - (double)error) / whole;

  t->n++;
  t->off += (double)off / whole;
  t->width += (double)error / whole;
  if (off <= error + rounding)
    return;
  t->missed++;
  t->by_percent += excess > 0.01;
  t->far += excess > 0.01 && off - error > FAR_BYTES;
  t->silent += error == 0;
  t->excess += excess;
  if (excess > t->worst)
    t->worst = excess;
}

static void tally_merge(struct tally *to, const struct tally *from) {
  to->n += from->n;
  to->missed += from->missed;
  to->by_percent += from->by_percent;
  to->far += from->far;
  to->silent += from->silent;
  to->excess += from->excess;
  to->off += from->off;
  to->width += from->width;
  if (from->worst > to->worst)
    to->worst = from->worst;
}

/* --- a run of one history --- */

struct run {
  struct history *h;
  struct memory_world world;
  uint8_t group_of[MEMORY_SLOTS];
  struct process *process_of[MEMORY_SLOTS];
  struct memory_view views[MEMORY_SLOTS];
  struct process_table table;
  struct cycle host; /* only what the estimates need */
  struct aggregate aggregate;
  struct group groups[HISTORY_GROUPS], *group_list[HISTORY_GROUPS];
  int64_t credit_ns;
  uint64_t random;
  unsigned cycle;
  bool is_exact;
  /* Sums of this cycle. */
  uint64_t true_pss[HISTORY_GROUPS], rounding[HISTORY_GROUPS];
  struct result *result;
};

static struct run the_run; /* too large for a stack */

static void complain(struct run *r, const char *what, unsigned slot,
                     const struct memory_view *truth,
                     const struct prediction *got) {
  const uint64_t *t = truth->rollup.bytes, *g = got->rollup.bytes;

  if (r->result->is_wrong)
    return;
  r->result->is_wrong = true;
  snprintf(r->result->what, sizeof(r->result->what),
           "cycle %u, %u: %s\n"
           "  Pss %llu kB and not %llu, error %llu; anon %llu, %llu; file "
           "%llu, %llu; shmem %llu, %llu; Rss %llu, %llu",
           r->cycle, slot, what, (unsigned long long)g[ROLLUP_PSS] / 1024,
           (unsigned long long)t[ROLLUP_PSS] / 1024,
           (unsigned long long)(doubt_bytes(got->pss_error) / 1024),
           (unsigned long long)g[ROLLUP_PSS_ANON] / 1024,
           (unsigned long long)t[ROLLUP_PSS_ANON] / 1024,
           (unsigned long long)g[ROLLUP_PSS_FILE] / 1024,
           (unsigned long long)t[ROLLUP_PSS_FILE] / 1024,
           (unsigned long long)g[ROLLUP_PSS_SHMEM] / 1024,
           (unsigned long long)t[ROLLUP_PSS_SHMEM] / 1024,
           (unsigned long long)g[ROLLUP_RSS] / 1024,
           (unsigned long long)t[ROLLUP_RSS] / 1024);
}

static bool is_member(unsigned slot) { return slot < HISTORY_OUTSIDERS; }

static unsigned hash(const struct run *r, unsigned slot) {
  uint64_t x = (r->h->seed + r->cycle * MEMORY_SLOTS + slot + 1) *
               UINT64_C(0x9e3779b97f4a7c15);

  x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9;
  return (unsigned)(x >> 56);
}

/* --- the table of processes --- */

static void join_group(struct process *p, struct group *g) {
  p->groups = malloc(sizeof(struct group *));
  assert_non_null(p->groups);
  p->groups[0] = g;
  p->n_groups = 1;
}

static void update_table(struct run *r) {
  memory_table_update(&r->table, &r->world, r->views, r->process_of);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    struct process *p = r->process_of[slot];

    if (p && is_member(slot) && p->n_groups == 0)
      join_group(p, &r->groups[r->group_of[slot]]);
  }
  address_space_relate(&r->table, NULL);
}

/* --- the steps of a cycle, as in measure.c --- */

static unsigned slot_of(const struct run *r, const struct process *p) {
  unsigned slot = 0;

  while (r->process_of[slot] != p)
    slot++;
  return slot;
}

static void begin(struct run *r) {
  for (unsigned i = 0; i < HISTORY_GROUPS; i++) {
    struct group_track *t = r->groups[i].track;

    t->error = (struct doubt_sum){.common = 0};
    t->tolerated_bytes =
        amount_from((double)t->last_pss * GROUP_ERROR_TOLERATED);
    r->true_pss[i] = r->rounding[i] = 0;
    r->groups[i].usage = (struct usage){0};
  }
  r->host.before_ns = r->host.now_ns;
  r->host.now_ns = (r->cycle + 1) * r->h->interval_ns + UINT64_C(1000000000);
  r->host.is_swap_used = memory_is_swap_used(&r->world);
}

static void observe(struct run *r, unsigned slot) {
  struct process *p = r->process_of[slot];
  struct track *t = &p->member->track;
  const struct memory_view *view = &r->views[slot];
  struct observation o = {.resident_pages = (uint32_t)view->resident_pages,
                          .shared_pages = (uint32_t)view->shared_pages,
                          .threads = 1};

  if (!is_member(slot))
    return;
  if (track_wants_faults(t)) {
    o.minor_faults = r->world.processes[slot].minor_faults;
    o.has_faults = true;
  }
  if (estimator_wants_swap(&r->host, t, &o)) {
    o.vm_swap_kb = view->vm_swap_kb;
    o.has_swap = true;
  }
  estimator_observe(&r->host, t, &p->groups[0]->track->sharing, &o);
}

/* Whether it is read at all in this cycle, and why. */
static bool weigh(struct run *r, unsigned slot, struct candidate *c) {
  struct process *p = r->process_of[slot];
  struct member *m = p->member;
  struct track *t = &m->track;
  uint64_t now_ns = r->host.now_ns;
  struct doubt error = estimator_expect(&r->host, t);
  uint64_t age_ns = now_ns - t->baseline.at_ns;

  m->is_asked = true;
  m->is_read = false;
  doubt_add(&p->groups[0]->track->error, error);
  *c = (struct candidate){.process = p,
                          .groups = p->groups,
                          .n_groups = 1,
                          .error = error,
                          .cost_ns = READ_NS};
  if (r->h->has_reads) {
    c->is_must = true;
    return r->cycle == 0 || (r->h->reads[r->cycle] >> slot & 1);
  }
  if (!track_has_baseline(t)) {
    if (!m->wanted_ns)
      m->wanted_ns = now_ns;
    c->is_due = true;
    c->deadline_ns = m->wanted_ns + r->h->max_age_ns;
  } else if (age_ns >= r->h->max_age_ns) {
    c->is_due = true;
    c->deadline_ns = t->baseline.at_ns + 2 * r->h->max_age_ns;
  }
  return c->is_due || doubt_bytes(error) >= ERROR_LEAST_BYTES;
}

static void read_process(struct run *r, unsigned slot) {
  struct member *m = r->process_of[slot]->member;
  struct track *t = &m->track;
  const struct memory_view *view = &r->views[slot];
  struct rollup kept;
  struct reading reading = {.rollup = &view->rollup,
                            .has_statm = true,
                            .resident_pages = (uint32_t)view->resident_pages,
                            .shared_pages = (uint32_t)view->shared_pages,
                            .vm_swap_kb = view->vm_swap_kb};

  if (estimator_wants_faults_around(t))
    reading.faults_before = reading.faults_after =
        r->world.processes[slot].minor_faults;
  estimator_correct(&r->host, t, &reading);
  m->is_read = true;
  m->wanted_ns = 0;
  r->result->readings++;
  if (!r->h->has_reads)
    r->h->reads[r->cycle] |= (uint16_t)(1U << slot);
  baseline_get(&t->baseline, &kept);
  assert_int_equal(kept.known, view->rollup.known);
  assert_memory_equal(kept.bytes, view->rollup.bytes, sizeof(kept.bytes));
}

static void read_some(struct run *r) {
  const uint64_t budget_ns = r->h->readings_per_cycle * READ_NS;
  const struct read_time time = {.earned_ns = budget_ns,
                                 .spend_ns = budget_ns,
                                 .reach_ns = budget_ns,
                                 .age_part = 0.5};
  struct candidate candidates[MEMORY_SLOTS];
  struct schedule s;
  size_t n = 0;

  for (size_t i = 0; i < r->table.n; i++) {
    unsigned slot = slot_of(r, r->table.processes[i]);

    if (is_member(slot) && weigh(r, slot, &candidates[n]))
      n++;
  }
  s = schedule_choose(candidates, n, &time, &r->credit_ns);
  for (size_t i = 0; i < s.chosen; i++) {
    unsigned slot = slot_of(r, candidates[i].process);

    if (r->h->has_reads || hash(r, slot) >= r->h->missed)
      read_process(r, slot);
  }
}

/* --- judging --- */

/* As far as kB that are rounded down go. */
static bool are_parts_of(const uint64_t *bytes) {
  uint64_t parts =
      bytes[ROLLUP_PSS_ANON] + bytes[ROLLUP_PSS_FILE] + bytes[ROLLUP_PSS_SHMEM];

  return parts <= bytes[ROLLUP_PSS] && bytes[ROLLUP_PSS] - parts <= 2 * 1024;
}

static const char *broken_relation(const struct memory_view *view,
                                   uint64_t page_size,
                                   const struct rollup *got) {
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
  if (b[ROLLUP_RSS] != view->resident_pages * page_size)
    return "Rss is not what statm shows";
  return NULL;
}

static void judge_error(struct run *r, unsigned slot,
                        const struct prediction *got) {
  const struct memory_view *view = &r->views[slot];
  const uint64_t *t = view->rollup.bytes, *g = got->rollup.bytes;
  uint64_t anon = distance(g[ROLLUP_PSS_ANON], t[ROLLUP_PSS_ANON]);
  uint64_t file = distance(g[ROLLUP_PSS_FILE], t[ROLLUP_PSS_FILE]);
  uint64_t shmem = distance(g[ROLLUP_PSS_SHMEM], t[ROLLUP_PSS_SHMEM]);
  uint64_t off = distance(g[ROLLUP_PSS], t[ROLLUP_PSS]);
  uint64_t error = amount_from(doubt_bytes(got->pss_error));

  tally_add(&r->result->processes, g[ROLLUP_PSS], t[ROLLUP_PSS], error,
            ROUNDING);
  if (r->is_exact && (off > 0 || error > 0))
    complain(r, "private memory is not followed exactly", slot, view, got);
  if (off <= error + ROUNDING)
    return;
  r->result->anon += anon >= file && anon >= shmem;
  r->result->file += file > anon && file >= shmem;
  r->result->shmem += shmem > anon && shmem > file;
}

static void judge_prediction(struct run *r, unsigned slot,
                             const struct prediction *got) {
  const struct memory_view *view = &r->views[slot];
  const char *broken = broken_relation(view, r->world.page_size, &got->rollup);

  judge_error(r, slot, got);
  if (broken)
    complain(r, broken, slot, view, got);
}

static void judge_process(struct run *r, struct process *p) {
  unsigned slot = slot_of(r, p);
  struct prediction got;

  r->true_pss[r->group_of[slot]] += r->views[slot].rollup.bytes[ROLLUP_PSS];
  r->result->process_cycles++;
  if (p->member->is_read)
    return;
  r->rounding[r->group_of[slot]] += ROUNDING;
  if (!track_has_baseline(&p->member->track)) {
    r->result->unread++;
    return;
  }
  estimator_predict(&r->host, &p->member->track, &got);
  judge_prediction(r, slot, &got);
}

static void judge(struct run *r) {
  const struct group_table groups = {.groups = r->group_list,
                                     .n = HISTORY_GROUPS};

  aggregate_all(&r->aggregate, &r->table, &groups);
  for (size_t i = 0; i < r->table.n; i++)
    if (is_member(slot_of(r, r->table.processes[i])))
      judge_process(r, r->table.processes[i]);
  for (unsigned i = 0; i < HISTORY_GROUPS; i++) {
    const struct usage *u = &r->groups[i].usage;

    if (r->rounding[i])
      tally_add(&r->result->groups, u->rollup.bytes[ROLLUP_PSS], r->true_pss[i],
                usage_pss_error(u), r->rounding[i]);
  }
}

/* --- all together --- */

static void run_cycle(struct run *r) {
  history_play(r->h, r->cycle, &r->world, r->group_of);
  memory_view_all(&r->world, r->views);
  update_table(r);
  begin(r);
  for (size_t i = 0; i < r->table.n; i++)
    observe(r, slot_of(r, r->table.processes[i]));
  newborn_estimate_all(&r->host, &r->table);
  read_some(r);
  judge(r);
}

static void run_history(struct history *h, bool is_exact,
                        struct result *result) {
  struct run *r = &the_run;
  struct group_track tracks[HISTORY_GROUPS] = {0};

  memset(r, 0, offsetof(struct run, world));
  memory_world_init(&r->world, h->page_size, h->object_pages);
  memset(&r->group_of, 0, sizeof(*r) - offsetof(struct run, group_of));
  *result = (struct result){0};
  r->h = h;
  r->is_exact = is_exact;
  r->result = result;
  r->host.page_size = h->page_size;
  r->host.kernel_fields = ALL_FIELDS;
  r->aggregate.cycle = &r->host;
  for (unsigned i = 0; i < HISTORY_GROUPS; i++) {
    sharing_init(&tracks[i].sharing, 0);
    r->groups[i].track = &tracks[i];
    r->group_list[i] = &r->groups[i];
  }
  if (!h->has_reads)
    memset(h->reads, 0, sizeof(h->reads));
  for (r->cycle = 0; r->cycle < h->cycles; r->cycle++)
    run_cycle(r);
  memory_table_done(&r->table);
}

/* --- what makes the bound of a group be missed --- */

/* --- classes --- */

static uint64_t number_from(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);

  return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t first_seed(void) {
  uint64_t seed = 1;

  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
    seed = 1;
  return number_from("ORACLE_SEED", seed >> 1);
}

static double held_percent(const struct tally *t) {
  return t->n ? 100 - 100 * (double)t->missed / (double)t->n : 100;
}

static void print_tally(const char *of, const struct tally *t) {
  double n = t->n ? (double)t->n : 1, million = 1e6 / n;

  fprintf(
      stderr,
      "  %-7s %7llu predicted, held %.2f %%; of a million %.0f missed, %.0f "
      "by 1 %% of Pss, %.0f by 256 kB too, %.0f silent; excess %.2f %%, at "
      "most %.0f %%; off by %.3f %%, bound %.3f %%\n",
      of, (unsigned long long)t->n, held_percent(t),
      million * (double)t->missed, million * (double)t->by_percent,
      million * (double)t->far, million * (double)t->silent,
      t->missed ? 100 * t->excess / (double)t->missed : 0, 100 * t->worst,
      100 * t->off / n, 100 * t->width / n);
}

static void print_result(const char *name, const struct result *r) {
  double n = r->process_cycles ? (double)r->process_cycles : 1;

  fprintf(stderr,
          "%s: %llu process-cycles, read %.1f %%, never read %.1f %%; missed "
          "by anon %llu, file %llu, shmem %llu\n",
          name, (unsigned long long)r->process_cycles,
          100 * (double)r->readings / n, 100 * (double)r->unread / n,
          (unsigned long long)r->anon, (unsigned long long)r->file,
          (unsigned long long)r->shmem);
  print_tally("process", &r->processes);
  print_tally("group", &r->groups);
}

static void result_merge(struct result *to, const struct result *from) {
  tally_merge(&to->processes, &from->processes);
  tally_merge(&to->groups, &from->groups);
  to->readings += from->readings;
  to->process_cycles += from->process_cycles;
  to->unread += from->unread;
  to->anon += from->anon;
  to->file += from->file;
  to->shmem += from->shmem;
}

static bool is_exact_wanted; /* of the history that is reduced */

static bool is_wrong(struct history *h) {
  struct result result;

  run_history(h, is_exact_wanted, &result);
  return result.is_wrong;
}

static void fail_with(const struct history_class *c, struct history *h,
                      bool is_exact) {
  struct history reduced = *h;
  struct result result;

  history_print(h, stderr);
  is_exact_wanted = is_exact;
  reduced.has_reads = true;
  if (is_wrong(&reduced)) {
    history_reduce(&reduced, is_wrong);
    fprintf(stderr, "the same in short:\n");
    history_print(&reduced, stderr);
    run_history(&reduced, is_exact, &result);
    fprintf(stderr, "%s\n", result.what);
  }
  run_history(h, is_exact, &result);
  fail_msg("%s: ORACLE_SEED=%llu ORACLE_HISTORIES=1: %s", c->name,
           (unsigned long long)h->seed, result.what);
}

/* The least parts of the bounds that hold, in percent: as many as are measured,
 * less what differs from seed to seed. Few histories do not tell. */
#define ENOUGH_HISTORIES 500

struct least {
  double processes, groups;
};

static void run_seed(const struct history_class *c, uint64_t seed,
                     bool is_exact, struct result *ret) {
  struct history h;

  history_make(&h, c, seed);
  run_history(&h, is_exact, ret);
  if (ret->is_wrong)
    fail_with(c, &h, is_exact);
}

static void run_class(const struct history_class *c, struct least least) {
  uint64_t seed = first_seed(), verbose = number_from("ORACLE_VERBOSE", 0);
  uint64_t n = number_from("ORACLE_HISTORIES", HISTORIES);
  bool is_exact = least.processes >= 100;
  struct result sum = {0}, result;

  if (c->broken_once)
    run_seed(c, c->broken_once, is_exact, &result);
  for (uint64_t i = 0; i < n; i++) {
    run_seed(c, seed + i, is_exact, &result);
    result_merge(&sum, &result);
  }
  if (verbose)
    print_result(c->name, &sum);
  if (n >= ENOUGH_HISTORIES &&
      (held_percent(&sum.processes) < least.processes ||
       held_percent(&sum.groups) < least.groups)) {
    print_result(c->name, &sum);
    fail_msg("%s from seed %llu: too many bounds do not hold", c->name,
             (unsigned long long)seed);
  }
}

/* Two groups: that there is another makes no difference here. */
TEST(private_memory_is_followed_exactly) {
  static const struct history_class class = {.name = "private",
                                             .groups = 2,
                                             .weights = {
                                                 [OP_START] = 1,
                                                 [OP_EXEC] = 1,
                                                 [OP_EXIT] = 1,
                                                 [OP_GROW] = 6,
                                                 [OP_SHRINK] = 6,
                                             }};

  run_class(&class, (struct least){100, 100});
}

#define FILES_WEIGHTS                                                          \
  [OP_START] = 1, [OP_EXIT] = 1, [OP_GROW] = 3, [OP_SHRINK] = 3, [OP_MAP] = 3, \
  [OP_UNMAP] = 6, [OP_MAP_AROUND] = 3

TEST(files_shared_in_a_group_are_mostly_followed) {
  static const struct history_class class = {.name = "files and shmem",
                                             .groups = 1,
                                             .is_mapping = true,
                                             .weights = {FILES_WEIGHTS}};

  run_class(&class, (struct least){96, 97.9});
}

/* No cheap file of a process shows that others outside its group have mapped
 * its pages, or have left them. */
TEST(files_shared_with_strangers_are_followed_less) {
  static const struct history_class class = {.name = "files of strangers",
                                             .groups = 2,
                                             .is_mapping = true,
                                             .has_outsiders = true,
                                             .weights = {FILES_WEIGHTS}};

  run_class(&class, (struct least){90, 89.5});
}

TEST(copy_on_write_is_mostly_followed) {
  static const struct history_class class = {.name = "copy on write",
                                             .groups = 1,
                                             .is_forked = true,
                                             .weights = {
                                                 [OP_FORK] = 2,
                                                 [OP_EXEC] = 1,
                                                 [OP_EXIT] = 1,
                                                 [OP_GROW] = 3,
                                                 [OP_SHRINK] = 3,
                                                 [OP_WRITE] = 6,
                                             }};

  run_class(&class, (struct least){95.5, 96.5});
}

TEST(prefork_pools_are_mostly_followed) {
  static const struct history_class class = {.name = "prefork pools",
                                             .groups = 1,
                                             .is_forked = true,
                                             .is_pool = true,
                                             .is_mapping = true,
                                             .weights = {
                                                 [OP_FORK] = 4,
                                                 [OP_EXIT] = 4,
                                                 [OP_GROW] = 3,
                                                 [OP_SHRINK] = 2,
                                                 [OP_WRITE] = 6,
                                                 [OP_MAP] = 2,
                                                 [OP_MAP_AROUND] = 2,
                                             }};

  run_class(&class, (struct least){98, 98.5});
}

TEST(swapped_memory_is_mostly_followed) {
  static const struct history_class class = {.name = "swap",
                                             .groups = 1,
                                             .is_forked = true,
                                             .weights = {
                                                 [OP_FORK] = 1,
                                                 [OP_EXIT] = 1,
                                                 [OP_GROW] = 3,
                                                 [OP_SHRINK] = 2,
                                                 [OP_SWAP_OUT] = 6,
                                                 [OP_SWAP_IN] = 3,
                                                 [OP_SWAP_IN_WRITTEN] = 3,
                                                 [OP_SWAP_OFF] = 1,
                                             }};

  run_class(&class, (struct least){96.9, 96.9});
}

TEST(everything_together_is_mostly_followed) {
  static const struct history_class class = {.name = "everything",
                                             .broken_once = 731620015737603495,
                                             .groups = 2,
                                             .is_mapping = true,
                                             .has_outsiders = true,
                                             .weights = {
                                                 [OP_START] = 1,
                                                 [OP_FORK] = 3,
                                                 [OP_EXEC] = 1,
                                                 [OP_EXIT] = 2,
                                                 [OP_GROW] = 3,
                                                 [OP_SHRINK] = 3,
                                                 [OP_WRITE] = 4,
                                                 [OP_MAP] = 2,
                                                 [OP_MAP_AROUND] = 2,
                                                 [OP_UNMAP] = 3,
                                                 [OP_SWAP_OUT] = 2,
                                                 [OP_SWAP_IN] = 1,
                                                 [OP_SWAP_IN_WRITTEN] = 1,
                                                 [OP_SWAP_OFF] = 1,
                                             }};

  run_class(&class, (struct least){90, 89.5});
}
