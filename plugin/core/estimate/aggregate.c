#include "estimate/aggregate.h"

/* --- estimates --- */

static enum estimate_source source_of(const struct process *p) {
  if (p->state != PROCESS_ALIVE)
    return SOURCE_NONE;
  if (p->n_groups == 0)
    return SOURCE_STATM;
  if (p->is_in_parents_mm)
    return SOURCE_PARENT;
  if (p->track->is_read)
    return p->track->is_sampled ? SOURCE_SAMPLED : SOURCE_READ;
  if (!p->track->is_asked)
    return SOURCE_STATM;
  if (p->track->is_unreadable)
    return SOURCE_UNREADABLE;
  return estimator_has_baseline(p->track) ? SOURCE_ESTIMATED : SOURCE_GUESSED;
}

static struct doubt all_of(uint64_t bytes) {
  return (struct doubt){.common = (double)bytes};
}

static void predict(const struct measurer *m, const struct process *p,
                    struct estimate *ret) {
  struct prediction prediction;

  estimator_predict(&m->estimator, p->track, &prediction);
  ret->rollup = prediction.rollup;
  ret->pss_error = prediction.pss_error;
  ret->uss_error = prediction.uss_error;
  ret->age_ns = prediction.age_ns;
  if (p->track->is_sampled)
    ret->pages_sampled = p->track->sampling->pages;
}

void aggregate_estimate(const struct measurer *m, const struct process *p,
                        struct estimate *ret) {
  enum estimate_source source = source_of(p);

  *ret = (struct estimate){.source = source};
  if (estimate_has_rollup(ret))
    ret->deferral = quarantine_has(p, m->estimator.now_ns) ? DEFERRED_HUNG
                                                           : p->track->deferral;
  if (source == SOURCE_READ) {
    baseline_get(&p->track->baseline, &ret->rollup);
  } else if (source == SOURCE_SAMPLED || source == SOURCE_ESTIMATED) {
    predict(m, p, ret);
  } else if (source == SOURCE_GUESSED) {
    usage_guess(&p->groups[0]->usage, &p->statm, m->estimator.page_size,
                m->kernel_fields, &ret->rollup);
    ret->pss_error = ret->uss_error =
        all_of(p->statm.resident_pages * m->estimator.page_size);
  }
}

/* --- sums --- */

static void add_rollup(const struct estimate *est, uint64_t resident_bytes,
                       struct usage *u) {
  if (est->source == SOURCE_READ)
    usage_add_rollup(u, &est->rollup, resident_bytes);
  else if (est->source == SOURCE_SAMPLED)
    usage_add_sample(u, &est->rollup, resident_bytes, est->pss_error,
                     est->uss_error);
  else
    usage_add_estimate(u, &est->rollup, resident_bytes, est->pss_error,
                       est->uss_error, est->age_ns);
}

static void add(const struct process *p, const struct estimate *est,
                uint64_t page_size, struct usage *u) {
  bool has_statm = est->source != SOURCE_NONE && est->source != SOURCE_PARENT;

  usage_add_process(u, p->threads);
  u->unreadable +=
      est->source == SOURCE_NONE || est->source == SOURCE_UNREADABLE;
  u->unknown += est->source == SOURCE_NONE;
  u->unasked += est->source == SOURCE_STATM;
  if (has_statm)
    usage_add_statm(u, &p->statm, page_size);
  if (estimate_has_rollup(est))
    add_rollup(est, p->statm.resident_pages * page_size, u);
}

/* A guess is made for each group apart, like its other members. */
static void add_guess(const struct process *p, uint64_t page_size,
                      uint32_t kernel_fields, struct usage *u) {
  struct doubt whole = all_of(p->statm.resident_pages * page_size);
  struct estimate est = {
      .source = SOURCE_GUESSED, .pss_error = whole, .uss_error = whole};

  usage_guess(u, &p->statm, page_size, kernel_fields, &est.rollup);
  add(p, &est, page_size, u);
}

static void add_to_groups(const struct process *p, const struct estimate *est,
                          uint64_t page_size, uint32_t kernel_fields) {
  for (size_t i = 0; i < p->n_groups; i++) {
    struct usage *u = &p->groups[i]->usage;

    if (est->source == SOURCE_GUESSED)
      add_guess(p, page_size, kernel_fields, u);
    else
      add(p, est, page_size, u);
  }
}

static bool is_summed(const struct process *p) {
  return p->n_groups > 0 &&
         (p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN);
}

static void sum(const struct measurer *m, const struct process_table *t,
                bool is_guessed) {
  for (size_t i = 0; i < t->n; i++) {
    const struct process *p = t->processes[i];
    struct estimate est = {.source = SOURCE_GUESSED};

    if (!is_summed(p) || (source_of(p) == SOURCE_GUESSED) != is_guessed)
      continue;
    if (!is_guessed)
      aggregate_estimate(m, p, &est);
    add_to_groups(p, &est, m->estimator.page_size, m->kernel_fields);
  }
}

void aggregate_all(const struct measurer *m, const struct process_table *t,
                   const struct group_table *groups) {
  sum(m, t, false);
  sum(m, t, true);
  for (size_t i = 0; i < groups->n; i++)
    groups->groups[i]->track->last_pss =
        groups->groups[i]->usage.rollup.bytes[ROLLUP_PSS];
}

void aggregate_one(const struct process *p, const struct estimate *est,
                   uint64_t page_size, struct usage *ret) {
  bool has_own = est->source != SOURCE_NONE && est->source != SOURCE_PARENT;

  *ret = (struct usage){0};
  add(p, est, page_size, ret);
  ret->unreadable = !has_own || est->source == SOURCE_UNREADABLE;
  ret->unknown = !has_own;
}
