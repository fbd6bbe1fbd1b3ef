/* SPDX-License-Identifier: MIT */
#include "split.h"

#include <string.h>

static const struct split unknown_split = {MISSING, MISSING, MISSING, MISSING,
                                           MISSING};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t twice(uint64_t a) {
  uint64_t sum = amount_add(a, a);

  return sum == MISSING ? MISSING - 1 : sum;
}

struct range {
  uint64_t low, high;
};

/* If estimates contradict each other, the middle between them is used. */
static void set_private(struct split *s, struct range r) {
  uint64_t low = least(r.low, r.high), high = most(r.low, r.high);

  s->error = (high - low + 1) / 2;
  s->private_anon = low + (high - low) / 2;
}

/* ---- of a rollup ---- */

/*
 * A page that is shared has two users or more, so that the shared pages count
 * half in PSS at most: of `rss` bytes, at least this many are private.
 */
static uint64_t least_private(uint64_t rss, uint64_t pss) {
  return amount_less(twice(pss), rss);
}

static struct range private_range(const struct amounts *a, uint64_t pss_anon,
                                  uint64_t pss_other) {
  uint64_t uss = amounts_get(a, AMOUNT_USS);
  uint64_t rss = amounts_get(a, AMOUNT_RSS);
  uint64_t anonymous = amounts_get(a, AMOUNT_ANONYMOUS);
  struct range r = {.low = amount_less(uss, pss_other),
                    .high = least(uss, pss_anon)};

  if (anonymous == MISSING || rss == MISSING)
    return r;
  r.low = least(most(r.low, least_private(anonymous, pss_anon)),
                least(uss, pss_anon));
  r.high = least(
      r.high,
      amount_less(uss, least_private(amount_less(rss, anonymous), pss_other)));
  return r;
}

struct split split_amounts(const struct amounts *a) {
  uint64_t pss = amounts_get(a, AMOUNT_PSS);
  uint64_t anon = amounts_get(a, AMOUNT_PSS_ANON);
  uint64_t shmem = amounts_get(a, AMOUNT_PSS_SHMEM);
  struct split s;

  if (pss == MISSING || anon == MISSING || shmem == MISSING ||
      amounts_get(a, AMOUNT_USS) == MISSING)
    return unknown_split;
  s.anon = least(anon, pss);
  s.shmem = least(shmem, pss - s.anon);
  s.file = pss - s.anon - s.shmem;
  set_private(&s, private_range(a, s.anon, pss - s.anon));
  return s;
}

/* ---- of mappings ---- */

static bool begins_with(const char *text, const char *words) {
  return strncmp(text, words, strlen(words)) == 0;
}

static bool is_shmem(const struct mapping *m) {
  static const char *const names[] = {"/dev/shm/", "/memfd:", "/SYSV",
                                      "/dev/zero", "[anon_shmem:"};

  for (size_t i = 0; m->name && i < sizeof(names) / sizeof(*names); i++)
    if (begins_with(m->name, names[i]))
      return true;
  return false;
}

static uint64_t anonymous_of(const struct mapping *m, uint64_t rss) {
  uint64_t known = amounts_get(&m->amounts, AMOUNT_ANONYMOUS);

  if (known != MISSING)
    return least(known, rss);
  if (!m->name)
    return MISSING;
  return m->name[0] == '[' && !is_shmem(m) ? rss : 0;
}

/* Divides the shared part of the PSS as the shared pages are divided. */
static uint64_t part(uint64_t shared_pss, uint64_t pages, uint64_t all) {
  double share = all > 0 ? (double)pages / (double)all : 0;

  return least((uint64_t)((double)shared_pss * share), shared_pss);
}

struct split split_mapping(const struct mapping *m) {
  const struct amounts *a = &m->amounts;
  uint64_t pss = amounts_get(a, AMOUNT_PSS);
  uint64_t rss = amounts_get(a, AMOUNT_RSS);
  uint64_t uss = mapping_uss(m);
  uint64_t anonymous = rss == MISSING ? MISSING : anonymous_of(m, rss);
  struct split s = {.anon = 0};

  if (pss == MISSING || uss == MISSING || anonymous == MISSING)
    return unknown_split;
  uss = least(uss, least(pss, rss));
  set_private(&s, (struct range){.low = amount_less(uss, rss - anonymous),
                                 .high = least(uss, anonymous)});
  s.anon =
      s.private_anon + part(pss - uss, anonymous - s.private_anon, rss - uss);
  *(is_shmem(m) ? &s.shmem : &s.file) = amount_less(pss, s.anon);
  return s;
}

static void add(struct split *sum, const struct split *s) {
  sum->anon = amount_add(sum->anon, amount_or_0(s->anon));
  sum->file = amount_add(sum->file, amount_or_0(s->file));
  sum->shmem = amount_add(sum->shmem, amount_or_0(s->shmem));
  sum->private_anon = amount_add(sum->private_anon, s->private_anon);
  sum->error = amount_add(sum->error, s->error);
}

struct split split_process(const struct process *p) {
  struct split sum = split_amounts(&p->amounts);

  if (sum.anon != MISSING || p->n_mappings == 0)
    return sum;
  sum = (struct split){.anon = 0};
  for (size_t i = 0; i < p->n_mappings; i++) {
    struct split s = split_mapping(&p->mappings[i]);

    add(&sum, &s);
  }
  return sum;
}
