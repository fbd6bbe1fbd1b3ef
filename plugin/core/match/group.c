#include "match/group.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proc/arith.h"
#include "proc/array.h"

#define HOUR_NS (UINT64_C(3600) * NS_PER_S)

static int compare_names(const void *name, const void *element) {
  return strcmp(name, (*(struct group *const *)element)->name);
}

/* The index of the name, or the index to insert it at. */
static size_t find_place(const struct group_table *t, const char *name,
                         bool *ret_found) {
  return array_find(t->groups, t->n, sizeof(*t->groups), name, compare_names,
                    ret_found);
}

/* --- known names ---------------------------------------------------------- */

void group_table_begin(struct group_table *t, uint64_t now_ns) {
  uint64_t passed_ns = t->now_ns && now_ns > t->now_ns ? now_ns - t->now_ns : 0;

  t->spent_ns -= min(passed_ns, minus(t->spent_ns, HOUR_NS));
  t->now_ns = now_ns;
}

/* The part of an hour that each new name uses up. */
static uint64_t price_ns(const struct group_table *t) {
  return HOUR_NS / t->max_templates;
}

static bool can_have_new(const struct group_table *t) {
  return t->spent_ns + price_ns(t) <= 2 * HOUR_NS;
}

static uint64_t make_secret(void) {
  uint64_t secret = UINT64_C(0x9e3779b97f4a7c15);

  (void)!getrandom(&secret, sizeof(secret), GRND_NONBLOCK);
  return secret | 1;
}

/* The hash has a secret: a user who could construct a name with the hash of a
 * known name would get it for free. The upper half is the key of the name, and
 * never 0. */
static uint64_t hash_name(struct group_table *t, const char *name) {
  uint64_t hash;

  if (!t->secret)
    t->secret = make_secret();
  hash = t->secret;
  for (size_t i = 0; name[i]; i++)
    hash = ((hash ^ (unsigned char)name[i]) + 1) * t->secret;
  return hash | UINT64_C(1) << 32;
}

uint32_t group_table_key(struct group_table *t, const char *name) {
  return (uint32_t)(hash_name(t, name) >> 32);
}

static int compare_hashes(const void *hash, const void *element) {
  uint64_t a = *(const uint64_t *)hash;
  uint64_t b = ((const struct known_name *)element)->hash;

  return (a > b) - (a < b);
}

/* The first known name whose hash is not below `hash`. */
static size_t find_known(const struct group_table *t, uint64_t hash,
                         bool *ret_known) {
  return array_find(t->known, t->n_known, sizeof(*t->known), &hash,
                    compare_hashes, ret_known);
}

bool group_table_refuses(const struct group_table *t, uint32_t key) {
  bool is_known;
  size_t at = find_known(t, (uint64_t)key << 32, &is_known);
  bool has_name = at < t->n_known && t->known[at].hash >> 32 == key;

  if (has_name && t->known[at].is_live)
    return false;
  return group_table_is_full(t) || (!has_name && !can_have_new(t));
}

/* Forgets the name that is not live and was used longest ago. More names are
 * stored than can be live. */
static void forget_oldest(struct group_table *t) {
  size_t oldest = SIZE_MAX;

  for (size_t i = 0; i < t->n_known; i++)
    if (!t->known[i].is_live &&
        (oldest == SIZE_MAX || t->known[i].used < t->known[oldest].used))
      oldest = i;
  if (oldest != SIZE_MAX)
    array_remove(t->known, &t->n_known, sizeof(*t->known), oldest);
}

/* The caller has made room for it, if it is new. */
static void use_name(struct group_table *t, const char *name, bool is_live) {
  uint64_t hash = hash_name(t, name);
  bool is_known;
  size_t at = find_known(t, hash, &is_known);

  if (!is_known) {
    if (t->n_known >= KNOWN_PER_GROUP * t->max_templates)
      forget_oldest(t);
    at = find_known(t, hash, &is_known);
    t->known = array_insert(t->known, &t->n_known, &t->cap_known,
                            sizeof(*t->known), at);
    t->spent_ns += price_ns(t);
  }
  t->known[at] =
      (struct known_name){.hash = hash, .used = ++t->uses, .is_live = is_live};
}

/* --- groups --------------------------------------------------------------- */

bool group_table_is_full(const struct group_table *t) {
  return t->made_by_template >= t->max_templates;
}

static int check_name(struct group_table *t, const char *name) {
  bool is_known;

  if (group_table_is_full(t))
    return GROUP_REFUSED;
  find_known(t, hash_name(t, name), &is_known);
  return is_known || can_have_new(t) ? 0 : GROUP_TOO_NEW;
}

int group_table_get_or_add(struct group_table *t, const char *name,
                           bool is_fixed, const struct report *report,
                           struct group **ret) {
  struct group *g, **groups;
  struct known_name *known;
  bool is_found;
  size_t place = find_place(t, name, &is_found);
  int rc;

  if (is_found) {
    *ret = t->groups[place];
    return 0;
  }
  rc = is_fixed ? 0 : check_name(t, name);
  if (rc != 0)
    return rc;
  known = array_room(t->known, t->n_known, &t->cap_known, sizeof(*known));
  t->known = known ? known : t->known;
  g = known ? calloc(1, sizeof(*g)) : NULL;
  groups = g ? array_insert(t->groups, &t->n, &t->cap, sizeof(*groups), place)
             : NULL;
  if (!groups) {
    free(g);
    return -ENOMEM;
  }
  t->groups = groups;
  groups[place] = g;
  snprintf(g->name, sizeof(g->name), "%s", name);
  g->is_fixed = is_fixed;
  g->report = report;
  t->made++;
  t->made_by_template += !is_fixed;
  if (!is_fixed)
    use_name(t, name, true);
  *ret = g;
  return 0;
}

static void group_free(struct group *g) {
  free(g->track);
  free(g);
}

void group_table_release(struct group_table *t, struct group *g) {
  bool is_found;
  size_t place;

  assert(g->references > 0);
  if (--g->references > 0 || g->is_fixed)
    return;
  place = find_place(t, g->name, &is_found);
  array_remove(t->groups, &t->n, sizeof(*t->groups), place);
  t->made_by_template--;
  use_name(t, g->name, false);
  group_free(g);
}

void group_table_reset(struct group_table *t) {
  for (size_t i = 0; i < t->n; i++) {
    struct group *g = t->groups[i];

    g->usage = (struct usage){0};
    memset(g->pss_causes, 0, sizeof(g->pss_causes));
  }
}

void group_table_done(struct group_table *t) {
  for (size_t i = 0; i < t->n; i++)
    group_free(t->groups[i]);
  free(t->groups);
  free(t->known);
  *t = (struct group_table){0};
}
