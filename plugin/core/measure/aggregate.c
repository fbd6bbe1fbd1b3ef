/* SPDX-License-Identifier: MIT */
#include "measure/aggregate.h"

#include <math.h>

#include "base/arith.h"
#include "measure/freed.h"
#include "member/member.h"
#include "proc/kernel.h"
#include "read/quarantine.h"

/* The part of a group's PSS that may be wrong before anything is read for it.
 */
#define GROUP_ERROR_TOLERATED 0.005

/* --- estimates --- */

static void scale(struct rollup *r, enum rollup_field f, double by) {
  r->bytes[f] = amount_from((double)r->bytes[f] * by);
}

/* Lessens Pss and uss to that part of them. Rss stays. */
static void lessen(struct rollup *r, double part) {
  if (part >= 1)
    return;
  scale(r, ROLLUP_PSS, part);
  scale(r, ROLLUP_PSS_ANON, part);
  scale(r, ROLLUP_PRIVATE_DIRTY, part);
  scale(r, ROLLUP_PRIVATE_CLEAN, part);
  estimate_settle(r);
}

/* A relative that ended while others were read no longer pays its part of the
 * shared memory; strangers, which the baseline counts, may have ended too. */
static bool has_same_relatives(const struct track *t) {
  return t->baseline.relatives == fork_family_size(t);
}

/* What each outcome of a cycle says of a process that has a baseline. */
static const struct {
  enum estimate_source source;
  enum deferral deferral;
} outcomes[] = {
    [OUTCOME_UNWANTED] = {SOURCE_STATM, DEFERRED_NOT},
    [OUTCOME_UNREADABLE] = {SOURCE_UNREADABLE, DEFERRED_NOT},
    [OUTCOME_NOT_CHOSEN] = {SOURCE_ESTIMATED, DEFERRED_NOT},
    [OUTCOME_READ] = {SOURCE_READ, DEFERRED_NOT},
    [OUTCOME_SAMPLED] = {SOURCE_SAMPLED, DEFERRED_NOT},
    [OUTCOME_NO_TIME] = {SOURCE_ESTIMATED, DEFERRED_BUDGET},
    [OUTCOME_TOO_LONG] = {SOURCE_ESTIMATED, DEFERRED_MAX_LOCK_HOLD},
};

static enum estimate_source source_of(const struct process *p) {
  enum estimate_source source;

  if (p->state != PROCESS_ALIVE)
    return SOURCE_NONE;
  if (p->n_groups == 0)
    return SOURCE_STATM;
  if (p->is_in_parents_mm)
    return SOURCE_PARENT;
  source = outcomes[p->member->outcome].source;
  if (source == SOURCE_READ && !has_same_relatives(&p->member->track))
    return SOURCE_ESTIMATED;
  if (source == SOURCE_ESTIMATED && !track_has_baseline(&p->member->track))
    return SOURCE_GUESSED;
  return source;
}

static bool is_guess(enum estimate_source source) {
  return source == SOURCE_GUESSED || source == SOURCE_UNREADABLE ||
         source == SOURCE_STATM;
}

/* True if the process can be read. If it was not, the reason is published. */
static bool is_readable(enum estimate_source source) {
  return source == SOURCE_READ || source == SOURCE_SAMPLED ||
         source == SOURCE_ESTIMATED || source == SOURCE_GUESSED;
}

/* The quarantine is asked for now, because the reading of a capture's mappings
 * can hang after the cycle. */
static enum deferral deferral_of(const struct aggregate *a,
                                 const struct process *p,
                                 enum estimate_source source) {
  if (!is_readable(source))
    return DEFERRED_NOT;
  return quarantine_has(p, a->cycle->now_ns)
             ? DEFERRED_HUNG
             : outcomes[p->member->outcome].deferral;
}

/*
 * Guesses the process from the other members of a group. Before any of them was
 * read, only processes that will be read are guessed. The error of a guess is
 * the most that it can be wrong by.
 */
static void guess(const struct aggregate *a, const struct process *p,
                  const struct group *g, struct estimate *ret) {
  const struct usage *measured = &g->track->measured;
  uint64_t whole = p->statm.resident_pages * a->cycle->page_size +
                   estimator_statm_bound(a->cycle, &p->member->track);
  struct error all = {.common = (double)whole};

  if (ret->source != SOURCE_GUESSED && !usage_allows_guess(measured))
    return;
  usage_guess(measured, &p->statm, a->cycle->page_size, a->cycle->kernel_fields,
              &ret->rollup);
  lessen(&ret->rollup, a->guess_part);
  ret->error.pss = error_limit(all, ret->rollup.bytes[ROLLUP_PSS], whole);
  ret->error.uss = error_limit(all, rollup_uss(&ret->rollup), whole);
  ret->error.pss_parts[CAUSE_GUESS] = 1;
}

/* The group with the best basis for a guess. */
static const struct group *basis_of(const struct process *p) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (usage_allows_guess(&p->groups[i]->track->measured))
      return p->groups[i];
  return p->groups[0];
}

static void predict(const struct aggregate *a, const struct member *m,
                    struct estimate *ret) {
  struct prediction prediction;

  estimator_predict(a->cycle, &m->track, &prediction);
  ret->rollup = prediction.rollup;
  ret->error = prediction.error;
  ret->age_ns = prediction.age_ns;
  if (m->track.is_sampled)
    ret->pages_sampled = m->sampling->pages;
}

void aggregate_estimate(const struct aggregate *a, const struct process *p,
                        struct estimate *ret) {
  enum estimate_source source = source_of(p);

  *ret = (struct estimate){.source = source,
                           .deferral = deferral_of(a, p, source)};
  if (source == SOURCE_READ)
    ret->rollup = p->member->track.baseline.rollup;
  else if (source == SOURCE_SAMPLED || source == SOURCE_ESTIMATED)
    predict(a, p->member, ret);
  else if (is_guess(source) && p->n_groups > 0)
    guess(a, p, basis_of(p), ret);
}

/* --- sums --- */

/* True for a reading of this cycle; a sample, or one in doubt, has an error. */
static bool is_fresh(const struct estimate *est) {
  return est->source == SOURCE_READ || est->source == SOURCE_SAMPLED ||
         (est->source == SOURCE_ESTIMATED && est->age_ns == 0);
}

/* The time since its start; 0 if stat was not read. */
static uint64_t uptime_ns(const struct aggregate *a, const struct process *p) {
  uint64_t start_ns;

  if (p->threads == 0 ||
      __builtin_mul_overflow(p->starttime_ticks, a->cycle->tick_ns, &start_ns))
    return 0;
  return start_ns < a->cycle->uptime_ns ? a->cycle->uptime_ns - start_ns : 0;
}

static void add_page_tables(const struct process *p, uint64_t page_size,
                            struct usage *u) {
  static const struct page_tables none;
  const struct page_tables *tables = p->member ? &p->member->tables : &none;
  bool is_known = page_tables_are_known(tables);

  u->page_tables +=
      page_tables_bytes(tables, p->statm.resident_pages, page_size);
  u->tables_known += is_known;
  u->tables_unknown += !is_known;
}

/* A guess may take files for anonymous memory, and the other way round: the
 * error of Pss does not show that. */
static struct freed freed_by(const struct aggregate *a, const struct process *p,
                             const struct estimate *est) {
  struct freed f = freed_of(a->cycle, p, &est->rollup);

  if (is_guess(est->source))
    f.unsure += amount_from(error_bytes(est->error.uss));
  return f;
}

static void add(const struct aggregate *a, const struct process *p,
                const struct estimate *est, struct usage *u) {
  uint64_t page_size = a->cycle->page_size;
  bool has_statm = est->source != SOURCE_NONE && est->source != SOURCE_PARENT;

  u->processes++;
  u->threads += p->threads;
  u->kernel_stack += p->threads * kernel_stack_size(page_size);
  u->uptime_ns = max(u->uptime_ns, uptime_ns(a, p));
  u->unreadable +=
      est->source == SOURCE_NONE || est->source == SOURCE_UNREADABLE;
  u->unknown += est->source == SOURCE_NONE;
  u->unasked += est->source == SOURCE_STATM;
  if (has_statm) {
    usage_add_statm(u, &p->statm, page_size);
    add_page_tables(p, page_size, u);
  }
  if (estimate_has_rollup(est))
    usage_add_memory(u,
                     &(struct usage_memory){
                         .rollup = &est->rollup,
                         .resident_bytes = p->statm.resident_pages * page_size,
                         .freed = freed_by(a, p, est),
                         .pss = est->error.pss,
                         .uss = est->error.uss,
                         .is_fresh = is_fresh(est),
                         .is_unread = est->source == SOURCE_UNREADABLE ||
                                      est->source == SOURCE_STATM,
                         .age_ns = est->age_ns});
}

/* Adds the process to the host's sum: once, however many groups it is in. */
static void add_to_host(struct aggregate *a, const struct process *p,
                        const struct estimate *est) {
  uint64_t page_size = a->cycle->page_size;

  if (estimate_has_rollup(est)) {
    host_add_member(&a->host, &est->rollup, est->error.pss);
    a->passable += freed_of(a->cycle, p, &est->rollup).passable;
  } else if (p->state != PROCESS_ALIVE) {
    a->host.has_unknown = true;
  } else if (est->source != SOURCE_PARENT) {
    a->host.outside_resident += p->statm.resident_pages * page_size;
    a->passable += p->statm.shared_pages * page_size;
  }
}

/* A process without a start time was not identified yet. */
static void note_start(struct group_track *t, uint64_t start) {
  if (start == 0)
    return;
  if (t->oldest_start == 0 || start < t->oldest_start)
    t->oldest_start = start;
  t->newest_start = max(t->newest_start, start);
}

static void add_to_group(const struct aggregate *a, const struct process *p,
                         const struct estimate *est, struct group *g) {
  note_start(g->track, p->starttime_ticks);
  add(a, p, est, &g->usage);
  if (error_bytes(est->error.pss) > 0)
    error_divide(g->pss_causes, est->error.pss, est->error.pss_parts);
}

/* Each group gets its own guess, made from its other members. */
static void add_guess(struct aggregate *a, const struct process *p,
                      enum estimate_source source) {
  for (size_t i = 0; i < p->n_groups; i++) {
    struct group *g = p->groups[i];
    struct estimate est = {.source = source};

    guess(a, p, g, &est);
    add_to_group(a, p, &est, g);
    if (g == basis_of(p))
      add_to_host(a, p, &est);
  }
}

static void add_measured(struct aggregate *a, const struct process *p) {
  struct estimate est;

  aggregate_estimate(a, p, &est);
  add_to_host(a, p, &est);
  for (size_t i = 0; i < p->n_groups; i++)
    add_to_group(a, p, &est, p->groups[i]);
}

static bool is_guessed(const struct process *p) {
  return p->n_groups > 0 && is_guess(source_of(p));
}

static void sum_measured(struct aggregate *a, const struct process_table *t) {
  static const struct estimate outside = {.source = SOURCE_STATM};

  for (size_t i = 0; i < t->n; i++) {
    const struct process *p = t->processes[i];

    if ((p->state != PROCESS_ALIVE && p->state != PROCESS_UNKNOWN) ||
        is_guessed(p))
      continue;
    if (p->n_groups > 0)
      add_measured(a, p);
    else if (!p->is_in_parents_mm)
      add_to_host(a, p, &outside);
  }
}

/* Pss adds up over all processes: the guesses can have no more together, nor be
 * wrong by more, than what the host has beside what was measured. Memory moves
 * between the reading of meminfo and those of processes. */
static double most_of_guesses(const struct aggregate *a) {
  double left = fmax(a->host_bytes - (double)a->host.pss, 0);

  return a->host_bytes > 0 ? left + (double)error_of_sum(&a->host.pss_error) +
                                 a->host_bytes * HOST_MOVES
                           : (double)INFINITY;
}

static double part_of_guesses(const struct aggregate *a,
                              const struct process_table *t, double most) {
  double guessed = 0;

  for (size_t i = 0; i < t->n; i++)
    if (is_guessed(t->processes[i])) {
      struct estimate est;

      aggregate_estimate(a, t->processes[i], &est);
      guessed += (double)est.rollup.bytes[ROLLUP_PSS];
    }
  return guessed > most ? most / guessed : 1;
}

static void sum_guesses(struct aggregate *a, const struct process_table *t,
                        double most) {
  a->guess_part = 1;
  a->guess_part = part_of_guesses(a, t, most);
  for (size_t i = 0; i < t->n; i++)
    if (is_guessed(t->processes[i]))
      add_guess(a, t->processes[i], source_of(t->processes[i]));
}

static void limit_guesses(struct group *g, double most) {
  const struct usage *measured = &g->track->measured;
  struct error_sum *part = &g->pss_causes[CAUSE_GUESS];

  g->usage.pss_error.common =
      fmin(g->usage.pss_error.common, measured->pss_error.common + most);
  g->usage.uss_error.common =
      fmin(g->usage.uss_error.common, measured->uss_error.common + most);
  g->usage.freed.unsure = amount_from(fmin(
      (double)g->usage.freed.unsure, (double)measured->freed.unsure + most));
  part->common = fmin(part->common, most);
}

void aggregate_all(struct aggregate *a, const struct process_table *t,
                   const struct group_table *groups) {
  double most;

  a->passable = 0;
  freed_relate(a->cycle, t);
  sum_measured(a, t);
  for (size_t i = 0; i < groups->n; i++) {
    struct group *g = groups->groups[i];

    g->usage.was_read = g->track->was_read;
    g->track->measured = g->usage;
  }
  most = most_of_guesses(a);
  sum_guesses(a, t, most);
  for (size_t i = 0; i < groups->n; i++) {
    struct usage *u = &groups->groups[i]->usage;
    struct group_track *track = groups->groups[i]->track;

    limit_guesses(groups->groups[i], most);
    freed_finish(u, a->host.has_unknown
                        ? UINT64_MAX
                        : minus(a->passable, u->freed.passable));
    track->tolerated_bytes = amount_from((double)u->rollup.bytes[ROLLUP_PSS] *
                                         GROUP_ERROR_TOLERATED);
    track->was_read |= usage_has_reading(u);
  }
}

void aggregate_one(const struct aggregate *a, const struct process *p,
                   const struct estimate *est, struct usage *ret) {
  bool has_own = est->source != SOURCE_NONE && est->source != SOURCE_PARENT;

  *ret = (struct usage){0};
  add(a, p, est, ret);
  ret->unknown = !has_own;
  if (!has_own)
    ret->unreadable = 1;
  else if (estimate_has_rollup(est))
    ret->unreadable = ret->unasked = 0;
}

/* --- growth --- */

static bool is_known(const struct usage *u) {
  return !u->is_unseen && usage_is_known(u) &&
         rollup_has(&u->rollup, ROLLUP_PSS);
}

/* How much memory a control group can still take: its limit less its usage
 * without reclaimable page cache; NaN without a limit. */
static double room_in_cgroup(const struct cgroup_memory *m) {
  double room;

  if (!m || !cgroup_memory_has(m, CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT) ||
      m->limit >= CGROUP_LIMIT_NONE)
    return (double)NAN;
  room = (double)m->limit - (double)cgroup_memory_working_set(m);
  return fmax(room, 0);
}

static void note_growth(struct group *g, double room_bytes, uint64_t now_ns) {
  const struct usage *u = &g->usage;

  if (!g->growth)
    growth_init(&g->track->growth, g->report->growth_window_ns);
  g->growth = &g->track->growth;
  growth_note(&g->track->growth,
              &(struct growth_sample){
                  .time_ns = now_ns,
                  .has_members = u->processes > 0 || u->is_unseen,
                  .oldest_start = g->track->oldest_start,
                  .newest_start = g->track->newest_start,
                  .is_known = is_known(u),
                  .bytes = usage_filling(u),
                  .error_bytes = usage_pss_error(u),
                  .whole_bytes = u->rollup.bytes[ROLLUP_PSS] +
                                 u->rollup.bytes[ROLLUP_SWAP_PSS],
                  .room_bytes = fmin(room_bytes, room_in_cgroup(g->cgroup))});
}

void group_growth_note(const struct group_table *groups,
                       const struct meminfo_sample *meminfo, uint64_t now_ns) {
  /* 0 also if the control group has no room left. */
  double room_bytes = meminfo->known & MEMINFO_AVAILABLE
                          ? (double)meminfo->mem_available_bytes
                          : (double)NAN;

  for (size_t i = 0; i < groups->n; i++)
    note_growth(groups->groups[i], room_bytes, now_ns);
}
