#include <smaps/account.h>

static uint64_t resident_of(const struct circumstances *c,
                            const struct process *p) {
  return p->statm.resident_pages * c->page_size;
}

static void add_statm(const struct circumstances *c, const struct process *p,
                      struct usage *u) {
  usage_add_process(u, p->threads);
  usage_add_statm(u, &p->statm, c->page_size);
}

static void add_rollup(const struct circumstances *c, const struct process *p,
                       const struct rollup *rollup, struct usage *u) {
  usage_add_rollup(u, rollup, resident_of(c, p));
}

static void add_estimated(const struct circumstances *c,
                          const struct process *p, const struct rollup *rollup,
                          struct usage *u) {
  usage_add_estimate(u, rollup, resident_of(c, p), follow_error(c, p),
                     c->now_ns - p->reading.at_ns);
}

static void guess(const struct circumstances *c, const struct process *p,
                  const struct usage *others, struct rollup *ret) {
  usage_guess(others, &p->statm, c->page_size, c->kernel_fields, ret);
}

static void add_guessed(const struct circumstances *c, const struct process *p,
                        const struct rollup *rollup, struct usage *u) {
  usage_add_estimate(u, rollup, resident_of(c, p), resident_of(c, p), 0);
}

static bool is_refused(const struct circumstances *c, const struct process *p) {
  return p->has_failed || c->now_ns < p->denied_until_ns;
}

enum account_source account_source(const struct circumstances *c,
                                   const struct process *p) {
  if (p->state != PROCESS_ALIVE)
    return SOURCE_NONE;
  if (p->n_groups == 0)
    return SOURCE_STATM;
  if (p->is_in_parents_mm)
    return SOURCE_PARENT;
  if (p->is_read)
    return SOURCE_READ;
  if (!p->is_asked)
    return SOURCE_STATM;
  if (is_refused(c, p))
    return SOURCE_UNREADABLE;
  return p->reading.at_ns ? SOURCE_ESTIMATED : SOURCE_GUESSED;
}

/* --- to its groups --- */

void account_add_read(const struct circumstances *c, const struct process *p,
                      const struct rollup *rollup) {
  for (size_t i = 0; i < p->n_groups; i++) {
    struct usage *u = &p->groups[i]->usage;

    add_statm(c, p, u);
    add_rollup(c, p, rollup, u);
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

static void add_without_rollup(const struct circumstances *c,
                               const struct process *p) {
  for (size_t i = 0; i < p->n_groups; i++) {
    struct usage *u = &p->groups[i]->usage;

    add_statm(c, p, u);
    u->unreadable += p->is_asked;
    u->unasked += !p->is_asked;
  }
}

static void add_estimate(const struct circumstances *c,
                         const struct process *p) {
  struct rollup rollup;

  follow_estimate(c, p, &rollup);
  for (size_t i = 0; i < p->n_groups; i++) {
    struct usage *u = &p->groups[i]->usage;

    add_statm(c, p, u);
    add_estimated(c, p, &rollup, u);
  }
}

void account_add_unread(const struct circumstances *c,
                        const struct process *p) {
  if (p->state == PROCESS_UNKNOWN)
    add_count(p, true);
  switch (account_source(c, p)) {
  case SOURCE_PARENT:
    add_count(p, false);
    break;
  case SOURCE_STATM:
  case SOURCE_UNREADABLE:
    add_without_rollup(c, p);
    break;
  case SOURCE_ESTIMATED:
    add_estimate(c, p);
    break;
  case SOURCE_NONE:
  case SOURCE_READ:
  case SOURCE_GUESSED:
    break;
  }
}

void account_add_guess(const struct circumstances *c, const struct process *p) {
  if (account_source(c, p) != SOURCE_GUESSED)
    return;
  for (size_t i = 0; i < p->n_groups; i++) {
    struct usage *u = &p->groups[i]->usage;
    struct rollup rollup;

    guess(c, p, u, &rollup);
    add_statm(c, p, u);
    add_guessed(c, p, &rollup, u);
  }
}

/* --- by itself --- */

static void use_rollup(const struct circumstances *c, const struct process *p,
                       enum account_source source, struct usage *u) {
  struct rollup rollup;

  if (source == SOURCE_READ) {
    reading_get(&p->reading, &rollup);
    add_rollup(c, p, &rollup, u);
  } else if (source == SOURCE_ESTIMATED) {
    follow_estimate(c, p, &rollup);
    add_estimated(c, p, &rollup, u);
  } else {
    guess(c, p, &p->groups[0]->usage, &rollup);
    add_guessed(c, p, &rollup, u);
  }
}

enum account_source account_usage(const struct circumstances *c,
                                  const struct process *p, struct usage *ret) {
  enum account_source source = account_source(c, p);
  bool has_own = source != SOURCE_NONE && source != SOURCE_PARENT;

  *ret = (struct usage){.unreadable = !has_own || source == SOURCE_UNREADABLE,
                        .unknown = !has_own,
                        .unasked = source == SOURCE_STATM};
  if (!has_own)
    return source;
  add_statm(c, p, ret);
  /* Too large for a reading to hold: as if it had not been read. */
  if (source == SOURCE_READ && !p->reading.at_ns)
    source = SOURCE_GUESSED;
  if (source == SOURCE_READ || source == SOURCE_ESTIMATED ||
      source == SOURCE_GUESSED)
    use_rollup(c, p, source, ret);
  return source;
}
