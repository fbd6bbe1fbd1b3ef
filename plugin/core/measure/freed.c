/* SPDX-License-Identifier: MIT */
#include "measure/freed.h"

#include <math.h>
#include <string.h>

#include "base/arith.h"
#include "member/member.h"

/* --- fork families --- */

static bool is_in_same_groups(const struct process *p,
                              const struct process *other) {
  return p->n_groups == other->n_groups &&
         (p->n_groups == 0 ||
          memcmp(p->groups, other->groups,
                 p->n_groups * sizeof(struct group *)) == 0);
}

static void see(const struct cycle *cycle, struct fork_family *family,
                const struct process *p) {
  if (family->seen_ns != cycle->now_ns) {
    family->seen_ns = cycle->now_ns;
    family->seen = 0;
    family->first = p;
    family->is_split = false;
  }
  family->seen++;
  family->is_split |= !is_in_same_groups(p, family->first);
}

void freed_relate(const struct cycle *cycle, const struct process_table *t) {
  for (size_t i = 0; i < t->n; i++) {
    const struct process *p = t->processes[i];

    if (p->member && p->member->track.family)
      see(cycle, p->member->track.family, p);
  }
}

static bool has_relatives_elsewhere(const struct cycle *cycle,
                                    const struct track *t) {
  const struct fork_family *f = t->family;

  return f &&
         (f->is_split || f->seen_ns != cycle->now_ns || f->seen < f->members);
}

/* It shares memory with processes that are not in its family. Children that it
 * forked a moment ago are in its groups. */
static bool has_strangers(const struct track *t, const struct rollup *r) {
  return t->strangers == STRANGERS_CONFIRMED ||
         (!t->family && rollup_cow_bytes(r) > r->bytes[ROLLUP_KSM]);
}

/* --- the parts of a member --- */

static uint64_t least_private(const struct rollup *r) {
  const uint64_t *bytes = r->bytes;
  uint64_t by_rest =
      minus(rollup_uss(r), bytes[ROLLUP_PSS_FILE] + bytes[ROLLUP_PSS_SHMEM]);
  uint64_t by_half = minus(2 * bytes[ROLLUP_PSS_ANON], bytes[ROLLUP_ANONYMOUS]);

  return min(max(by_rest, by_half), bytes[ROLLUP_PSS_ANON]);
}

static void add_anonymous(const struct cycle *cycle, const struct track *t,
                          const struct rollup *r, struct freed *f) {
  uint64_t lazy = r->bytes[ROLLUP_LAZY_FREE];
  uint64_t least = minus(least_private(r), lazy);
  uint64_t all = minus(r->bytes[ROLLUP_PSS_ANON], lazy);
  uint64_t shared = all - least;

  if (has_relatives_elsewhere(cycle, t)) {
    f->bytes += least;
    f->unsure += shared;
    return;
  }
  f->bytes += all;
  if (has_strangers(t, r) ||
      (!rollup_has(r, ROLLUP_KSM) && cycle->ksm_merged_ns))
    f->unsure += shared;
  else
    f->unsure += min(shared, r->bytes[ROLLUP_KSM]);
}

static const struct shmem_known *shmem_of(const struct member *m) {
  return m->shmem.size_pages == 0 && m->track.family ? &m->track.family->shmem
                                                     : &m->shmem;
}

/* pss: of its shmem, of which the mappings are known. */
static void add_known(const struct shmem_mappings *m, uint64_t pss,
                      bool is_kept_elsewhere, struct freed *f) {
  double all = (double)(m->forked + m->passed + m->lasting);
  uint64_t goes =
      all > 0 ? amount_from((double)pss * (double)(m->forked + m->passed) / all)
              : 0;
  uint64_t least = min(minus(pss, m->lasting), goes);
  uint64_t kept = is_kept_elsewhere ? min(goes, m->forked) : 0;

  f->passable += min(pss, m->passed);
  f->passed += min(goes - kept, m->passed);
  f->bytes += goes - kept;
  f->unsure += kept;
  if (m->lasting > 0 || all == 0)
    f->unsure += max(goes - least, pss - goes);
}

static void add_shmem(const struct cycle *cycle, const struct process *p,
                      const struct rollup *r, struct freed *f) {
  const struct shmem_known *known = shmem_of(p->member);
  const struct track *t = &p->member->track;
  uint64_t pss = r->bytes[ROLLUP_PSS_SHMEM];

  if (known->size_pages) {
    if (t->kinship != KINSHIP_CHILD)
      f->shared_size += known->mappings.forked + known->mappings.passed;
    add_known(&known->mappings, pss,
              has_relatives_elsewhere(cycle, t) || has_strangers(t, r), f);
    return;
  }
  f->bytes += pss;
  f->unsure += pss;
  f->passable += pss;
}

/* Before 5.3. */
static void add_undivided(const struct rollup *r, struct freed *f) {
  uint64_t pss = r->bytes[ROLLUP_PSS], anon = r->bytes[ROLLUP_ANONYMOUS];
  uint64_t others = minus(r->bytes[ROLLUP_RSS], anon);
  uint64_t least = min(minus(rollup_uss(r), others), pss);
  uint64_t bytes = max(min(anon, pss), least);

  f->bytes += bytes;
  f->unsure += max(bytes - least, pss - bytes);
  f->passable += min(pss, others);
}

struct freed freed_of(const struct cycle *cycle, const struct process *p,
                      const struct rollup *r) {
  struct freed f = {.bytes = 0};

  if (rollup_has(r, ROLLUP_PSS_ANON)) {
    add_anonymous(cycle, &p->member->track, r, &f);
    add_shmem(cycle, p, r, &f);
  } else {
    add_undivided(r, &f);
  }
  return f;
}

void freed_finish(struct usage *u, uint64_t outside_passable) {
  double most = (double)outside_passable * (double)u->processes;

  u->freed.unsure += amount_from(fmin(most, (double)u->freed.passed));
}

void freed_note_unmapped(const struct group_table *groups,
                         uint64_t host_unmapped) {
  for (size_t i = 0; i < groups->n; i++) {
    struct group *g = groups->groups[i];
    struct usage *u = &g->usage;
    uint64_t mapped = u->rollup.bytes[ROLLUP_PSS_SHMEM];
    uint64_t most = minus(u->freed.shared_size, mapped);

    if (g->cgroup && cgroup_memory_has(g->cgroup, CGROUP_HAS_SHMEM))
      most = minus(g->cgroup->shmem, mapped);
    u->freed.unmapped = min(most, host_unmapped);
  }
}
