#include "measure/aggregate.h"

#include <math.h>

#include "estimate/group_track.h"
#include "estimate/member.h"
#include "proc/arith.h"
#include "read/quarantine.h"

/* The part of a group's PSS that may be wrong before anything is read for it.
 */
#define GROUP_ERROR_TOLERATED 0.005

/* --- what the host has left for guesses --- */

void guess_begin(struct guess_limit *l, const struct meminfo_sample *meminfo) {
  *l = (struct guess_limit){.is_known = false};
  if (!meminfo || !meminfo->anon_pages_bytes || !meminfo->mapped_bytes)
    return;
  l->is_known = true;
  l->host_anon = (double)meminfo->anon_pages_bytes;
  l->host_mapped = (double)meminfo->mapped_bytes;
}

static double anon_of(const struct rollup *r) {
  return (double)r->bytes[ROLLUP_PSS_ANON];
}

static double mapped_of(const struct rollup *r) {
  return fmax((double)r->bytes[ROLLUP_PSS] - anon_of(r), 0);
}

void guess_measured(struct guess_limit *l, const struct rollup *r,
                    struct doubt pss_error) {
  l->is_known = l->is_known && rollup_has(r, ROLLUP_PSS_ANON);
  l->measured_anon += anon_of(r);
  l->measured_mapped += mapped_of(r);
  doubt_add(&l->measured_doubt, pss_error);
}

void guess_made(struct guess_limit *l, const struct rollup *guess) {
  l->guessed_anon += anon_of(guess);
  l->guessed_mapped += mapped_of(guess);
}

static double left(double host, double measured) {
  return fmax(host - measured, 0);
}

static double factor(double guessed, double left) {
  return guessed > left ? left / guessed : 1;
}

static void scale(struct rollup *r, enum rollup_field f, double by) {
  r->bytes[f] = amount_from((double)r->bytes[f] * by);
}

void guess_limit(const struct guess_limit *l, struct rollup *guess) {
  double anon = factor(l->guessed_anon, left(l->host_anon, l->measured_anon));
  double mapped =
      factor(l->guessed_mapped, left(l->host_mapped, l->measured_mapped));
  double pss = anon_of(guess) * anon + mapped_of(guess) * mapped;

  if (!l->is_known || (anon >= 1 && mapped >= 1))
    return;
  guess->bytes[ROLLUP_PSS] = amount_from(pss);
  scale(guess, ROLLUP_PSS_ANON, anon);
  scale(guess, ROLLUP_PRIVATE_DIRTY, anon);
  scale(guess, ROLLUP_PRIVATE_CLEAN, mapped);
  estimate_settle(guess);
}

double guess_beyond(const struct guess_limit *l, const struct doubt_sum *own) {
  double host = l->host_anon + l->host_mapped;
  struct doubt_sum others = {
      .common = fmax(l->measured_doubt.common - own->common, 0),
      .squares = fmax(l->measured_doubt.squares - own->squares, 0)};

  if (!l->is_known)
    return (double)INFINITY;
  return left(l->host_anon, l->measured_anon) +
         left(l->host_mapped, l->measured_mapped) +
         (double)doubt_of_sum(&others) + host * HOST_MOVES;
}

/* --- estimates --- */

/* A relative that ended while others were read no longer pays its part of the
 * shared memory; unknown ones may have ended as well. */
static bool has_same_relatives(const struct track *t) {
  return t->baseline.relatives == fork_family_size(t) &&
         t->strangers != STRANGERS_NEW;
}

static enum estimate_source source_of(const struct process *p) {
  if (p->state != PROCESS_ALIVE)
    return SOURCE_NONE;
  if (p->n_groups == 0)
    return SOURCE_STATM;
  if (p->is_in_parents_mm)
    return SOURCE_PARENT;
  if (p->member->is_read && p->member->track.is_sampled)
    return SOURCE_SAMPLED;
  if (p->member->is_read && has_same_relatives(&p->member->track))
    return SOURCE_READ;
  if (!p->member->is_asked)
    return SOURCE_STATM;
  if (p->member->is_unreadable)
    return SOURCE_UNREADABLE;
  return track_has_baseline(&p->member->track) ? SOURCE_ESTIMATED
                                               : SOURCE_GUESSED;
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

/* Guesses the process from the other members of a group, without the limit.
 * Before any of them was read, only processes that will be read are guessed. */
static void guess_raw(const struct aggregate *a, const struct process *p,
                      const struct group *g, struct estimate *ret) {
  const struct usage *measured = &g->track->measured;

  if (ret->source == SOURCE_GUESSED || usage_allows_guess(measured))
    usage_guess(measured, &p->statm, a->cycle->page_size,
                a->cycle->kernel_fields, &ret->rollup);
}

/* The error of a guess is the most that it can be wrong by, or less if the
 * host's memory leaves less beside the errors of other guesses. */
static void guess(const struct aggregate *a, const struct process *p,
                  const struct group *g, double errors, struct estimate *ret) {
  uint64_t whole = p->statm.resident_pages * a->cycle->page_size +
                   estimator_imprecision(a->cycle, &p->member->track);
  struct doubt all = {.common = (double)whole};
  static const struct doubt_sum none;
  double most = fmax(guess_beyond(&a->guess_limit, &none) - errors, 0);

  guess_raw(a, p, g, ret);
  if (!estimate_has_rollup(ret))
    return;
  guess_limit(&a->guess_limit, &ret->rollup);
  all.common = fmin(all.common, most);
  ret->error.pss = doubt_limit(all, ret->rollup.bytes[ROLLUP_PSS], whole);
  ret->error.uss = doubt_limit(all, rollup_uss(&ret->rollup), whole);
  ret->error.pss_parts[CAUSE_GUESS] = 1;
}

/* The group with the best basis for a guess. */
static const struct group *basis_of(const struct process *p) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (usage_allows_guess(&p->groups[i]->track->measured))
      return p->groups[i];
  return p->groups[0];
}

void aggregate_estimate(const struct aggregate *a, const struct process *p,
                        struct estimate *ret) {
  enum estimate_source source = source_of(p);

  *ret = (struct estimate){.source = source};
  if (is_readable(source))
    ret->deferral = quarantine_has(p, a->cycle->now_ns) ? DEFERRED_HUNG
                                                        : p->member->deferral;
  if (source == SOURCE_READ) {
    ret->rollup = p->member->track.baseline.rollup;
  } else if (source == SOURCE_SAMPLED || source == SOURCE_ESTIMATED) {
    estimator_predict(a->cycle, &p->member->track, ret);
    if (p->member->track.is_sampled)
      ret->pages_sampled = p->member->sampling->pages;
  } else if (is_guess(source) && p->n_groups > 0) {
    guess(a, p, basis_of(p), 0, ret);
  }
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

  usage_add_page_tables(
      u, page_tables_bytes(tables, p->statm.resident_pages, page_size),
      page_tables_are_known(tables));
}

static void add(const struct aggregate *a, const struct process *p,
                const struct estimate *est, struct usage *u) {
  uint64_t page_size = a->cycle->page_size;
  bool has_statm = est->source != SOURCE_NONE && est->source != SOURCE_PARENT;

  usage_add_process(u, p->threads, p->threads * a->cycle->kernel_stack_bytes,
                    uptime_ns(a, p));
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
  if (estimate_has_rollup(est))
    host_add_member(&a->host, &est->rollup, est->error.pss);
  else if (p->state != PROCESS_ALIVE)
    a->host.has_unknown = true;
  else if (est->source != SOURCE_PARENT)
    host_add_outside(&a->host, &p->statm, a->cycle->page_size);
}

static void add_to_group(const struct aggregate *a, const struct process *p,
                         const struct estimate *est, struct group *g) {
  add(a, p, est, &g->usage);
  if (doubt_bytes(est->error.pss) > 0)
    doubt_divide(g->pss_causes, est->error.pss, est->error.pss_parts);
}

/* Each group gets its own guess, made from its other members. */
static void add_guess(struct aggregate *a, const struct process *p,
                      enum estimate_source source) {
  for (size_t i = 0; i < p->n_groups; i++) {
    struct group *g = p->groups[i];
    struct estimate est = {.source = source};
    double errors =
        g->usage.pss_doubt.common - g->track->measured.pss_doubt.common;

    guess(a, p, g, errors, &est);
    add_to_group(a, p, &est, g);
    if (g == basis_of(p))
      add_to_host(a, p, &est);
  }
}

static bool has_memory(const struct process *p) {
  return p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN;
}

static bool is_summed(const struct process *p) {
  return p->n_groups > 0 && has_memory(p);
}

static void note_outside(struct aggregate *a, const struct process *p) {
  static const struct estimate nothing = {.source = SOURCE_STATM};

  if (has_memory(p) && !p->is_in_parents_mm)
    add_to_host(a, p, &nothing);
}

static void note_measured(struct aggregate *a, const struct estimate *est) {
  if (estimate_has_rollup(est))
    guess_measured(&a->guess_limit, &est->rollup, est->error.pss);
}

static void note_guess(struct aggregate *a, const struct process *p,
                       enum estimate_source source) {
  struct estimate est = {.source = source};

  guess_raw(a, p, basis_of(p), &est);
  if (estimate_has_rollup(&est))
    guess_made(&a->guess_limit, &est.rollup);
}

/* Returns the number of members that are left to be guessed. */
static size_t sum_measured(struct aggregate *a, const struct process_table *t) {
  size_t n = 0;

  for (size_t i = 0; i < t->n; i++) {
    const struct process *p = t->processes[i];
    struct estimate est;

    if (!is_summed(p)) {
      note_outside(a, p);
      continue;
    }
    if (is_guess(source_of(p))) {
      n++;
      continue;
    }
    aggregate_estimate(a, p, &est);
    note_measured(a, &est);
    add_to_host(a, p, &est);
    for (size_t j = 0; j < p->n_groups; j++)
      add_to_group(a, p, &est, p->groups[j]);
  }
  return n;
}

static void sum_guesses(struct aggregate *a, const struct process_table *t) {
  for (size_t i = 0; i < t->n; i++)
    if (is_summed(t->processes[i]) && is_guess(source_of(t->processes[i])))
      note_guess(a, t->processes[i], source_of(t->processes[i]));
  for (size_t i = 0; i < t->n; i++)
    if (is_summed(t->processes[i]) && is_guess(source_of(t->processes[i])))
      add_guess(a, t->processes[i], source_of(t->processes[i]));
}

void aggregate_all(struct aggregate *a, const struct process_table *t,
                   const struct group_table *groups) {
  size_t guesses = sum_measured(a, t);

  for (size_t i = 0; i < groups->n; i++) {
    struct group *g = groups->groups[i];

    g->usage.was_read = g->track->was_read;
    g->track->measured = g->usage;
  }
  if (guesses > 0)
    sum_guesses(a, t);
  for (size_t i = 0; i < groups->n; i++) {
    struct usage *u = &groups->groups[i]->usage;
    struct group_track *track = groups->groups[i]->track;

    u->is_host_known = a->guess_limit.is_known;
    u->beyond_bytes =
        amount_from(guess_beyond(&a->guess_limit, &track->measured.pss_doubt) -
                    (double)(u->rollup.bytes[ROLLUP_PSS] -
                             track->measured.rollup.bytes[ROLLUP_PSS]));
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
