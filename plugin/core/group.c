#include <smaps/group.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <smaps/amount.h>

/* Of a group's PSS, as much may be in doubt before anything is read for it. */
#define GROUP_DOUBT_TOLERATED 0.005

#define HOUR_NS (UINT64_C(3600) * NS_PER_S)

/* Where the name is, or where it would stand. */
static size_t find_place(const struct group_table *t, const char *name,
                         bool *ret_found) {
  size_t low = 0, high = t->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(t->groups[middle]->name, name);

    if (order == 0) {
      *ret_found = true;
      return middle;
    }
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  *ret_found = false;
  return low;
}

static int make_room(struct group_table *t) {
  size_t cap = t->cap ? t->cap * 2 : 16;
  struct group **groups;

  if (t->n < t->cap)
    return 0;
  groups = reallocarray(t->groups, cap, sizeof(*groups));
  if (!groups)
    return -ENOMEM;
  t->groups = groups;
  t->cap = cap;
  return 0;
}

/* --- names that are known ------------------------------------------------- */

void group_table_begin(struct group_table *t, uint64_t now_ns) {
  uint64_t passed_ns = t->now_ns && now_ns > t->now_ns ? now_ns - t->now_ns : 0;

  t->spent_ns -= passed_ns < t->spent_ns ? passed_ns : t->spent_ns;
  t->now_ns = now_ns;
}

/* How much of the hour a new name takes. */
static uint64_t price_ns(const struct group_table *t) {
  return HOUR_NS / t->max_templates;
}

static bool can_have_new(const struct group_table *t) {
  return t->granted < t->max_templates || t->spent_ns + price_ns(t) <= HOUR_NS;
}

static uint64_t make_secret(void) {
  uint64_t secret = UINT64_C(0x9e3779b97f4a7c15);

  (void)!getrandom(&secret, sizeof(secret), GRND_NONBLOCK);
  return secret | 1;
}

/* With a secret, because who could make a name with the hash of a known one had
 * it for nothing. The upper half is the key, and not 0. */
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

/* The first whose hash is not below. */
static size_t find_known(const struct group_table *t, uint64_t hash) {
  size_t low = 0, high = t->n_known;

  while (low < high) {
    size_t middle = low + (high - low) / 2;

    if (t->known[middle].hash < hash)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool is_known(const struct group_table *t, size_t at, uint64_t hash) {
  return at < t->n_known && t->known[at].hash == hash;
}

bool group_table_refuses(const struct group_table *t, uint32_t key) {
  size_t at = find_known(t, (uint64_t)key << 32);
  bool knows = at < t->n_known && t->known[at].hash >> 32 == key;

  if (knows && t->known[at].is_live)
    return false;
  return group_table_is_full(t) || (!knows && !can_have_new(t));
}

static int make_known_room(struct group_table *t) {
  size_t cap = t->cap_known ? t->cap_known * 2 : 16;
  struct known_name *known;

  if (t->n_known < t->cap_known)
    return 0;
  known = reallocarray(t->known, cap, sizeof(*known));
  if (!known)
    return -ENOMEM;
  t->known = known;
  t->cap_known = cap;
  return 0;
}

static void remove_known(struct group_table *t, size_t at) {
  t->n_known--;
  memmove(&t->known[at], &t->known[at + 1],
          (t->n_known - at) * sizeof(*t->known));
}

/* The one that was used longest ago; there are more than can be live. */
static void forget_oldest(struct group_table *t) {
  size_t oldest = SIZE_MAX;

  for (size_t i = 0; i < t->n_known; i++)
    if (!t->known[i].is_live &&
        (oldest == SIZE_MAX || t->known[i].used < t->known[oldest].used))
      oldest = i;
  if (oldest != SIZE_MAX)
    remove_known(t, oldest);
}

/* There is room for it. */
static void get_to_know(struct group_table *t, uint64_t hash) {
  size_t at;

  if (t->n_known >= KNOWN_PER_GROUP * t->max_templates)
    forget_oldest(t);
  at = find_known(t, hash);
  memmove(&t->known[at + 1], &t->known[at],
          (t->n_known - at) * sizeof(*t->known));
  t->n_known++;
  t->known[at] = (struct known_name){.hash = hash};
  if (t->granted < t->max_templates)
    t->granted++;
  else
    t->spent_ns += price_ns(t);
}

static void use_name(struct group_table *t, const char *name, bool is_live) {
  uint64_t hash = hash_name(t, name);

  if (!is_known(t, find_known(t, hash), hash))
    get_to_know(t, hash);
  t->known[find_known(t, hash)] =
      (struct known_name){.hash = hash, .used = ++t->uses, .is_live = is_live};
}

/* --- groups --------------------------------------------------------------- */

bool group_table_is_full(const struct group_table *t) {
  return t->made_by_template >= t->max_templates;
}

static int check_name(struct group_table *t, const char *name) {
  uint64_t hash = hash_name(t, name);

  if (group_table_is_full(t))
    return GROUP_REFUSED;
  return is_known(t, find_known(t, hash), hash) || can_have_new(t)
             ? 0
             : GROUP_TOO_NEW;
}

int group_table_take(struct group_table *t, const char *name, bool is_fixed,
                     const struct report *report, struct group **ret) {
  struct group *g;
  bool is_found;
  size_t place = find_place(t, name, &is_found);
  int r;

  if (is_found) {
    *ret = t->groups[place];
    return 0;
  }
  r = is_fixed ? 0 : check_name(t, name);
  if (r == 0)
    r = make_room(t);
  if (r == 0 && !is_fixed)
    r = make_known_room(t);
  if (r != 0)
    return r;
  g = calloc(1, sizeof(*g));
  if (!g)
    return -ENOMEM;
  snprintf(g->name, sizeof(g->name), "%s", name);
  g->is_fixed = is_fixed;
  g->report = report;
  sharing_init(&g->sharing, NULL, 0);
  memmove(&t->groups[place + 1], &t->groups[place],
          (t->n - place) * sizeof(*t->groups));
  t->groups[place] = g;
  t->n++;
  t->made++;
  t->made_by_template += !is_fixed;
  if (!is_fixed)
    use_name(t, name, true);
  *ret = g;
  return 0;
}

void group_table_release(struct group_table *t, struct group *g) {
  bool is_found;
  size_t place;

  if (--g->references > 0 || g->is_fixed)
    return;
  place = find_place(t, g->name, &is_found);
  t->n--;
  memmove(&t->groups[place], &t->groups[place + 1],
          (t->n - place) * sizeof(*t->groups));
  t->made_by_template--;
  use_name(t, g->name, false);
  free(g);
}

void group_table_reset(struct group_table *t) {
  for (size_t i = 0; i < t->n; i++) {
    struct group *g = t->groups[i];

    g->last_pss = g->usage.rollup.bytes[ROLLUP_PSS];
    g->usage = (struct usage){0};
    g->plan =
        (struct plan_group){.tolerated_bytes = amount_from(
                                (double)g->last_pss * GROUP_DOUBT_TOLERATED)};
  }
}

void group_table_done(struct group_table *t) {
  for (size_t i = 0; i < t->n; i++)
    free(t->groups[i]);
  free(t->groups);
  free(t->known);
  *t = (struct group_table){0};
}
