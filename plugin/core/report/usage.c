/* SPDX-License-Identifier: MIT */
#include "report/usage.h"

#include <math.h>

#include "base/arith.h"

void usage_add_statm(struct usage *u, const struct statm_sample *s,
                     uint64_t page_size) {
  u->size += s->size_pages * page_size;
  u->text += s->text_pages * page_size;
  u->data += s->data_pages * page_size;
  u->resident += s->resident_pages * page_size;
  u->resident_shared += s->shared_pages * page_size;
}

bool usage_has_page_tables(const struct usage *u) {
  return u->unknown == 0 && (u->tables_known > 0 || u->tables_unknown == 0);
}

void usage_add_memory(struct usage *u, const struct usage_memory *m) {
  const struct rollup *r = m->rollup;
  uint64_t pss = r->bytes[ROLLUP_PSS];

  u->uss += min(rollup_uss(r), pss);
  u->rollup.known = u->rolled_up ? u->rollup.known & r->known : r->known;
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    u->rollup.bytes[f] += r->bytes[f];
  u->rolled_up++;
  u->freed.bytes += m->freed.bytes;
  u->freed.unsure += m->freed.unsure;
  u->freed.passed += m->freed.passed;
  u->freed.passable += m->freed.passable;
  u->freed.shared_size += m->freed.shared_size;
  u->largest_anonymous = max(u->largest_anonymous, r->bytes[ROLLUP_ANONYMOUS]);
  error_add(&u->pss_error, m->pss);
  error_add(&u->uss_error, m->uss);
  if (m->is_fresh) {
    u->fresh_pss += minus(pss, amount_from(error_bytes(m->pss)));
  } else {
    u->unmeasured += m->age_ns == 0;
    u->oldest_age_ns = max(u->oldest_age_ns, m->age_ns);
  }
  if (m->is_unread)
    u->unread_pss += pss;
  else
    u->resident_rolled_up += m->resident_bytes;
}

static uint64_t unread_of(const struct usage *u, uint64_t bytes) {
  return u->rolled_up ? min(u->ended_unread * (bytes / u->rolled_up),
                            u->ended_unread_bytes)
                      : u->ended_unread_bytes;
}

/* bytes: the whole sum; ended: the part of members that have ended. */
static uint64_t error_of(const struct usage *u,
                         const struct error_sum *of_members, uint64_t bytes,
                         uint64_t ended) {
  return error_of_sum(of_members) + ended + unread_of(u, bytes) +
         u->perhaps_bytes;
}

uint64_t usage_pss_error(const struct usage *u) {
  return error_of(u, &u->pss_error, u->rollup.bytes[ROLLUP_PSS], u->ended_pss);
}

uint64_t usage_uss_error(const struct usage *u) {
  return error_of(u, &u->uss_error, u->uss, u->ended_uss);
}

/* No more than the distance to 0 or to all that is possible. */
uint64_t usage_freed_error(const struct usage *u) {
  uint64_t off = usage_pss_error(u) + u->freed.unmapped;
  uint64_t most = u->rollup.bytes[ROLLUP_PSS] + off;

  return min(u->freed.unsure + off,
             max(u->freed.bytes, minus(most, u->freed.bytes)));
}

void usage_pss_parts(const struct usage *u,
                     const struct error_sum members[ALL_CAUSES],
                     double ret[ALL_CAUSES]) {
  double root = sqrt(u->pss_error.squares);

  for (int k = 0; k < ALL_CAUSES; k++)
    ret[k] = members[k].common + (root > 0 ? members[k].squares / root : 0);
  ret[CAUSE_ENDED] =
      (double)(u->ended_pss + unread_of(u, u->rollup.bytes[ROLLUP_PSS]));
  ret[CAUSE_UNIDENTIFIED] = (double)u->perhaps_bytes;
}

/* Without another member: anonymous memory counts as private, the rest as
 * shared by two. */
static void guess_alone(const struct statm_sample *s, uint64_t page_size,
                        struct rollup *ret) {
  uint64_t shared = s->shared_pages * page_size;
  uint64_t anon = s->resident_pages * page_size - shared;

  ret->bytes[ROLLUP_RSS] = anon + shared;
  ret->bytes[ROLLUP_PSS] = anon + shared / 2;
  ret->bytes[ROLLUP_PSS_ANON] = ret->bytes[ROLLUP_ANONYMOUS] = anon;
  ret->bytes[ROLLUP_PSS_FILE] = shared / 2;
  ret->bytes[ROLLUP_PRIVATE_DIRTY] = ret->bytes[ROLLUP_PSS_DIRTY] = anon;
  ret->bytes[ROLLUP_SHARED_CLEAN] = shared;
}

static void guess_like_others(const struct usage *u, uint64_t resident,
                              struct rollup *ret) {
  double by = (double)resident /
              (double)max(u->resident_rolled_up, u->rollup.bytes[ROLLUP_RSS]);

  for (int f = 0; f < ROLLUP_FIELDS; f++)
    ret->bytes[f] = amount_from((double)u->rollup.bytes[f] * by);
  /* After rounding the sums must still equal the sums of their parts. */
  ret->bytes[ROLLUP_RSS] =
      ret->bytes[ROLLUP_SHARED_CLEAN] + ret->bytes[ROLLUP_SHARED_DIRTY] +
      ret->bytes[ROLLUP_PRIVATE_CLEAN] + ret->bytes[ROLLUP_PRIVATE_DIRTY];
  ret->bytes[ROLLUP_PSS] = min(ret->bytes[ROLLUP_PSS], ret->bytes[ROLLUP_RSS]);
}

static void add_private(struct rollup *r, uint64_t bytes) {
  static const enum rollup_field fields[] = {
      ROLLUP_RSS,           ROLLUP_PSS,       ROLLUP_PSS_ANON,
      ROLLUP_PSS_DIRTY,     ROLLUP_ANONYMOUS, ROLLUP_REFERENCED,
      ROLLUP_PRIVATE_DIRTY,
  };

  for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
    r->bytes[fields[i]] += bytes;
}

void usage_guess(const struct usage *u, const struct statm_sample *s,
                 uint64_t page_size, uint32_t kernel_fields,
                 struct rollup *ret) {
  uint64_t resident = s->resident_pages * page_size;
  uint64_t anon = resident - s->shared_pages * page_size;
  uint64_t own = minus(anon, u->largest_anonymous);

  *ret =
      (struct rollup){.known = u->rolled_up ? u->rollup.known : kernel_fields};
  if (u->rolled_up == 0 || u->resident_rolled_up == 0) {
    guess_alone(s, page_size, ret);
    return;
  }
  guess_like_others(u, resident - own, ret);
  add_private(ret, own);
}

bool usage_has_reading(const struct usage *u) {
  return u->rolled_up > u->unmeasured;
}

bool usage_allows_guess(const struct usage *u) {
  return u->was_read || usage_has_reading(u);
}

static bool is_complete(const struct usage *u) {
  return u->unreadable == 0 && u->unasked == 0;
}

bool usage_is_known(const struct usage *u) {
  return is_complete(u) || (u->unknown == 0 && usage_allows_guess(u));
}

/* Neither LazyFree nor Anonymous is divided by those that share it. */
uint64_t usage_filling(const struct usage *u) {
  const uint64_t *bytes = u->rollup.bytes;
  uint64_t anon = rollup_has(&u->rollup, ROLLUP_PSS_ANON)
                      ? bytes[ROLLUP_PSS_ANON]
                      : min(bytes[ROLLUP_ANONYMOUS], bytes[ROLLUP_PSS]);

  return minus(anon, bytes[ROLLUP_LAZY_FREE]) + bytes[ROLLUP_PSS_SHMEM] +
         bytes[ROLLUP_SWAP_PSS];
}

static double fresh_percent(const struct usage *u) {
  uint64_t pss = u->rollup.bytes[ROLLUP_PSS] - u->unread_pss;

  if (u->rolled_up == 0 || pss == 0)
    return 100;
  return 100 * (double)u->fresh_pss / (double)pss;
}

double usage_coverage_percent(const struct usage *u) {
  if (is_complete(u))
    return fresh_percent(u);
  if (u->resident == 0)
    return 0;
  /* The size of members without a statm is unknown: scale by their number. */
  return fresh_percent(u) * (double)u->resident_rolled_up /
         (double)u->resident * (double)(u->processes - u->unknown) /
         (double)u->processes;
}

double usage_age_seconds(const struct usage *u) {
  if (!usage_has_reading(u) && u->unreadable + u->unmeasured + u->unasked > 0)
    return (double)NAN;
  return (double)u->oldest_age_ns / 1e9;
}
