/* SPDX-License-Identifier: MIT */
#include "proc/mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/array.h"

#define REST 0

static void set_error(struct mapping_table *t, int error) {
  if (!t->error)
    t->error = error;
}

void mapping_table_done(struct mapping_table *t) {
  for (size_t i = 1; i < t->n; i++)
    free(t->mappings[i].name);
  free(t->mappings);
  free(t->by_name);
  *t = (struct mapping_table){0};
}

/* --- finding a mapping by its name --- */

static int compare_names(const char *a, size_t a_len, const char *b,
                         size_t b_len) {
  int order = memcmp(a, b, (size_t)min(a_len, b_len));

  return order ? order : (a_len > b_len) - (a_len < b_len);
}

struct key {
  const struct mapping *mappings;
  struct span name;
};

static int compare_key(const void *key, const void *element) {
  const struct key *k = key;
  const struct mapping *m = &k->mappings[*(const uint32_t *)element];

  return compare_names(k->name.text, k->name.len, m->name, m->name_len);
}

/* Makes room for another mapping; the first one is the rest. */
static bool make_room(struct mapping_table *t) {
  struct mapping *mappings =
      array_room(t->mappings, t->n, &t->cap, sizeof(*mappings));

  if (!mappings) {
    set_error(t, -ENOMEM);
    return false;
  }
  t->mappings = mappings;
  if (t->n == 0)
    mappings[t->n++] = (struct mapping){.name = NULL};
  return true;
}

/* Returns the index of the mapping of that name and adds it if needed; REST if
 * there is no room for it, or no memory. */
static size_t get_or_add(struct mapping_table *t, struct span name) {
  bool is_found;
  uint32_t *by_name;
  size_t n_names, place;
  char *copy;

  if (!make_room(t))
    return REST;
  n_names = t->n - 1;
  place = array_find(t->by_name, n_names, sizeof(*by_name),
                     &(struct key){t->mappings, name}, compare_key, &is_found);
  if (is_found)
    return t->by_name[place];
  if (t->n > MAPPING_NAMES_MAX ||
      t->name_bytes + name.len > MAPPING_NAME_BYTES_MAX)
    return REST;
  copy = malloc(name.len + 1);
  by_name = copy ? array_insert(t->by_name, &n_names, &t->cap_names,
                                sizeof(*by_name), place)
                 : NULL;
  if (!by_name) {
    free(copy);
    set_error(t, -ENOMEM);
    return REST;
  }
  t->by_name = by_name;
  by_name[place] = (uint32_t)t->n;
  memcpy(copy, name.text, name.len);
  copy[name.len] = '\0';
  t->name_bytes += name.len;
  t->mappings[t->n] = (struct mapping){.name = copy, .name_len = name.len};
  return t->n++;
}

/* --- feeding --- */

static unsigned permissions_of(const struct span *text) {
  static const char letters[] = "rwxps"; /* in the order of enum permission */
  unsigned permissions = 0;

  for (size_t i = 0; i < text->len; i++) {
    const char *at = text->text[i] ? strchr(letters, text->text[i]) : NULL;

    permissions |= at ? 1U << (at - letters) : 0;
  }
  return permissions;
}

size_t mapping_table_add_line(struct mapping_table *t,
                              const struct rollup_line *line) {
  static const struct span anonymous = {"[anon]", 6};
  struct mapping *m;

  t->current = get_or_add(t, line->name.len > 0 ? line->name : anonymous);
  if (t->error)
    return t->current;
  m = &t->mappings[t->current];
  m->permissions |= permissions_of(&line->permissions);
  m->vmas++;
  m->processes = 1;
  m->size += line->end - line->start;
  return t->current;
}

static void add_line(struct mapping_table *t, const struct rollup_line *line) {
  if (line->kind == ROLLUP_LINE_MAPPING)
    mapping_table_add_line(t, line);
  else if (line->kind == ROLLUP_LINE_FIELD &&
           (t->n == 0 || !rollup_add_line(&t->mappings[t->current].sum, line)))
    set_error(t, -EBADMSG);
}

size_t mapping_table_feed(struct mapping_table *t, const char *text,
                          size_t len) {
  size_t used = whole_lines(text, len);
  struct cursor s = cursor_begin(text, used);
  struct rollup_line line = {0};

  while (!t->error && !cursor_is_done(&s)) {
    if (!rollup_line_next(&s, &line))
      set_error(t, -EBADMSG);
    else
      add_line(t, &line);
  }
  return used;
}

static bool add_rollup(struct rollup *sum, const struct rollup *more) {
  sum->known |= more->known;
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    if (__builtin_add_overflow(sum->bytes[f], more->bytes[f], &sum->bytes[f]))
      return false;
  return true;
}

int mapping_table_finish(struct mapping_table *t, struct rollup *ret) {
  struct rollup sum = {0};

  for (size_t i = 0; !t->error && i < t->n; i++)
    if (!add_rollup(&sum, &t->mappings[i].sum))
      set_error(t, -EBADMSG);
  if (!t->error && !rollup_is_consistent(&sum))
    set_error(t, -EBADMSG);
  if (t->error)
    return t->error;
  *ret = sum;
  return 0;
}

/* --- merging and sorting --- */

/* A sum with an unknown part is unknown. These are bytes of address space, so
 * no sum of them can overflow. */
static void merge_amounts(struct mapping *m, const struct mapping *more) {
  uint32_t known = m->vmas == 0 ? more->sum.known : m->sum.known;

  known &= more->sum.known;
  add_rollup(&m->sum, &more->sum);
  m->sum.known = known;
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    if (!rollup_has(&m->sum, (enum rollup_field)f))
      m->sum.bytes[f] = 0;
  m->is_sampled |= more->is_sampled;
  m->pages_sampled += more->pages_sampled;
  m->pss_error += more->pss_error;
}

static void merge(struct mapping *m, const struct mapping *more) {
  if (more->vmas == 0) /* an empty rest */
    return;
  merge_amounts(m, more);
  m->permissions |= more->permissions;
  m->vmas += more->vmas;
  m->processes += more->processes;
  m->size += more->size;
}

int mapping_table_add(struct mapping_table *t,
                      const struct mapping_table *process) {
  for (size_t i = 0; !t->error && i < process->n; i++) {
    const struct mapping *m = &process->mappings[i];
    size_t place = REST;

    if (m->name)
      place = get_or_add(t, (struct span){m->name, m->name_len});
    else if (t->n == 0)
      make_room(t);
    if (!t->error)
      merge(&t->mappings[place], m);
  }
  return t->error;
}

/* Its Pss; or its size, an upper bound, if Pss is unknown. */
static uint64_t weight_of(const struct mapping *m) {
  return rollup_has(&m->sum, ROLLUP_PSS) ? m->sum.bytes[ROLLUP_PSS] : m->size;
}

static int compare(const void *left, const void *right) {
  const struct mapping *a = left, *b = right;
  uint64_t x = weight_of(a), y = weight_of(b);

  if (x == y) {
    x = a->size;
    y = b->size;
  }
  if (x == y)
    return compare_names(a->name, a->name_len, b->name, b->name_len);
  return x < y ? 1 : -1;
}

void mapping_table_rank(struct mapping_table *t, size_t max,
                        const struct mapping **ret, size_t *ret_n) {
  *ret = NULL;
  *ret_n = 0;
  if (t->n < 2)
    return;
  qsort(t->mappings + 1, t->n - 1, sizeof(*t->mappings), compare);
  for (; t->n - 1 > max; t->n--) {
    merge(&t->mappings[REST], &t->mappings[t->n - 1]);
    free(t->mappings[t->n - 1].name);
  }
  *ret = t->mappings + 1;
  *ret_n = t->n - 1;
}

const struct mapping *mapping_table_rest(const struct mapping_table *t) {
  return t->n > 0 && t->mappings[REST].vmas > 0 ? &t->mappings[REST] : NULL;
}
