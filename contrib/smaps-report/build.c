#include "build.h"
#include "load.h"
#include "schema.h"

#include <smaps/name.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "smaps-snapshot"
#define VERSION 1

/* Digits of a number; the longest that makes sense has 24. */
#define NUMBER_MAX 64

/* An object or array that is open. */
struct frame {
  enum place place;
  const struct key *key; /* whose value comes; NULL: an amount or unknown */
  unsigned amount;       /* the last one met; AMOUNTS: none */
  bool is_amount;        /* what comes is its value */
  uint32_t seen;         /* bit per key */
  size_t count;          /* of elements begun */
};

/* The places nest this deep at most. */
#define FRAMES_MAX 8

struct builder {
  struct reason *reason;
  struct frame frames[FRAMES_MAX];
  size_t n_frames;
  unsigned depth;   /* of all that is open */
  unsigned skipped; /* of that, in the value of an unknown key */
  bool is_snapshot;
  struct document document;
  /* What is being put together. */
  struct group group;
  struct process process;
  struct mapping mapping;
  uint64_t values[AMOUNTS];
  const char **names;
  size_t n_names;
  uint64_t *indices;
  size_t n_indices;
  struct mapping *mappings;
  size_t n_mappings;
  size_t n_all_mappings;
};

static void forget_values(struct builder *b) {
  for (size_t i = 0; i < AMOUNTS; i++)
    b->values[i] = UNKNOWN;
}

struct builder *builder_new(struct reason *reason) {
  struct builder *b = calloc(1, sizeof(*b));

  if (!b)
    return NULL;
  b->reason = reason;
  b->n_frames = 1;
  b->document.version = UNKNOWN;
  b->document.time = b->document.interval = (double)NAN;
  b->document.page_size = b->document.left_out = UNKNOWN;
  b->document.mem_total = b->document.mem_available = UNKNOWN;
  b->document.trigger.time = (double)NAN;
  return b;
}

void builder_free(struct builder *b) {
  if (!b)
    return;
  document_done(&b->document);
  free(b->names);
  free(b->indices);
  free(b->mappings);
  free(b);
}

static struct frame *current(struct builder *b) {
  return &b->frames[b->n_frames - 1];
}

/* ---- refusing ---- */

/* "processes[12].usage.pss", of the value that comes or came last. */
static void describe_path(const struct builder *b, char *ret, size_t size) {
  size_t len = 0;

  ret[0] = '\0';
  for (size_t i = 1; i < b->n_frames && len < size; i++) {
    const struct frame *f = &b->frames[i];
    const char *name = f->key         ? f->key->name
                       : f->is_amount ? amount_names[f->amount]
                                      : NULL;

    if (schema_places[f->place].element)
      len += (size_t)snprintf(ret + len, size - len, "[%zu]",
                              f->count ? f->count - 1 : 0);
    else if (name)
      len +=
          (size_t)snprintf(ret + len, size - len, "%s%s", len ? "." : "", name);
  }
  if (!ret[0])
    snprintf(ret, size, "the document");
}

static bool refuse(struct builder *b, const char *why) {
  char path[160];

  describe_path(b, path, sizeof(path));
  reason_format(b->reason, "%s: %s", path, why);
  return false;
}

static bool refuse_type(struct builder *b, enum type expected,
                        const char *found) {
  char why[96];

  snprintf(why, sizeof(why), "expected %s, not %s", schema_type_names[expected],
           found);
  return refuse(b, why);
}

static bool refuse_memory(struct builder *b) {
  reason_format(b->reason, "out of memory");
  return false;
}

/* ---- what a value is for ---- */

/* Whether what comes is within the value of an unknown key. */
static bool is_skipped(struct builder *b) { return b->skipped > 0; }

/* The key that a value is for, NULL where it is unknown. Counts the elements
 * of arrays. */
static const struct key *begin_value(struct builder *b) {
  static const struct key amount = {.type = WHOLE};
  struct frame *f = current(b);

  if (schema_places[f->place].element) {
    f->count++;
    return schema_places[f->place].element;
  }
  return f->is_amount ? &amount : f->key;
}

static void *place_struct(struct builder *b, enum place place) {
  if (place == DOCUMENT)
    return &b->document;
  if (place == TRIGGER)
    return &b->document.trigger;
  if (place == GROUP)
    return &b->group;
  return place == PROCESS ? (void *)&b->process : (void *)&b->mapping;
}

static void *field(struct builder *b, const struct key *key) {
  return (char *)place_struct(b, current(b)->place) + key->offset;
}

/* An array with room for one more than n; NULL where memory has run out. It
 * doubles, from 16. */
static void *make_room(void *array, size_t n, size_t size) {
  if (n > 0 && (n < 16 || (n & (n - 1)) != 0))
    return array;
  return realloc(array, (n ? 2 * n : 16) * size);
}

static bool add_name(struct builder *b, const char *name) {
  const char **names = make_room(b->names, b->n_names, sizeof(*names));

  if (!names)
    return refuse_memory(b);
  b->names = names;
  names[b->n_names++] = name;
  return b->n_names <= LOAD_GROUPS_MAX || refuse(b, "too many");
}

static bool add_index(struct builder *b, uint64_t index) {
  uint64_t *indices = make_room(b->indices, b->n_indices, sizeof(*indices));

  if (!indices)
    return refuse_memory(b);
  b->indices = indices;
  indices[b->n_indices++] = index;
  return b->n_indices <= LOAD_RULES_MAX || refuse(b, "too many");
}

static bool add_rule(struct builder *b, const char *rule) {
  struct document *d = &b->document;
  const char **rules = make_room(d->rules, d->n_rules, sizeof(*rules));

  if (!rules)
    return refuse_memory(b);
  d->rules = rules;
  rules[d->n_rules++] = rule;
  return d->n_rules <= LOAD_RULES_MAX || refuse(b, "too many rules");
}

/* ---- scalars ---- */

bool builder_null(struct builder *b) {
  const struct key *key;

  if (is_skipped(b))
    return true;
  key = begin_value(b);
  return !key || refuse_type(b, key->type, "null");
}

bool builder_boolean(struct builder *b, bool value) {
  const struct key *key;

  if (is_skipped(b))
    return true;
  key = begin_value(b);
  if (!key)
    return true;
  if (key->type != FLAG)
    return refuse_type(b, key->type, value ? "true" : "false");
  *(bool *)field(b, key) = value;
  return true;
}

static bool take_version(struct builder *b, uint64_t version) {
  b->document.version = version;
  if (version == VERSION)
    return true;
  reason_format(b->reason,
                "version %ju of the format, and this program reads %d",
                (uintmax_t)version, VERSION);
  return false;
}

static bool keep_whole(struct builder *b, const struct key *key,
                       uint64_t value) {
  struct frame *f = current(b);

  if (f->place == ALSO)
    return add_index(b, value);
  if (f->is_amount)
    b->values[f->amount] = value;
  else if (key->offset == NO_OFFSET)
    return take_version(b, value);
  else
    *(uint64_t *)field(b, key) = value;
  return true;
}

static bool take_whole(struct builder *b, const struct key *key,
                       struct span text) {
  struct scan s = scan_begin(text.text, text.len);
  uint64_t value;

  if (!scan_u64(&s, &value)) {
    bool is_digits = text.len > 0 && *text.text != '-';

    return is_digits ? refuse(b, "the number is too large")
                     : refuse_type(b, WHOLE, "a negative one");
  }
  if (!scan_is_done(&s))
    return refuse_type(b, WHOLE, "one with a fraction or an exponent");
  if (value == UNKNOWN || (key->max && value > key->max))
    return refuse(b, "the number is too large");
  return keep_whole(b, key, value);
}

static bool take_seconds(struct builder *b, const struct key *key,
                         struct span text) {
  char digits[NUMBER_MAX];
  double value;

  if (text.len >= sizeof(digits))
    return refuse(b, "the number has too many digits");
  memcpy(digits, text.text, text.len);
  digits[text.len] = '\0';
  value = strtod(digits, NULL);
  if (!isfinite(value) || value < 0)
    return refuse(b, value < 0 ? "expected a number of 0 or more, not a "
                                 "negative one"
                               : "the number is too large");
  *(double *)field(b, key) = value;
  return true;
}

bool builder_number(struct builder *b, struct span text) {
  const struct key *key;

  if (is_skipped(b))
    return true;
  key = begin_value(b);
  if (!key)
    return true;
  if (key->type == WHOLE)
    return take_whole(b, key, text);
  if (key->type == SECONDS)
    return take_seconds(b, key, text);
  return refuse_type(b, key->type, "a number");
}

static bool take_format(struct builder *b, struct span text) {
  char shown[64];

  b->is_snapshot =
      text.len == strlen(FORMAT) && memcmp(text.text, FORMAT, text.len) == 0;
  if (!b->is_snapshot)
    reason_format(b->reason,
                  "no snapshot of the smaps plugin: its format is \"%s\"",
                  name_escape(text.text, text.len, shown, sizeof(shown)));
  return b->is_snapshot;
}

static bool take_text(struct builder *b, const struct key *key,
                      struct span text) {
  const char *copy;

  if (text.len > LOAD_STRING_MAX)
    return refuse(b, "the string is too long");
  if (text.len > 0 && memchr(text.text, '\0', text.len))
    return refuse(b, "expected a string without a NUL in it");
  copy = pool_intern(&b->document.pool, text.text, text.len);
  if (!copy)
    return refuse_memory(b);
  if (current(b)->place == RULES)
    return add_rule(b, copy);
  if (current(b)->place == GROUPS_OF_PROCESS)
    return add_name(b, copy);
  *(const char **)field(b, key) = copy;
  return true;
}

bool builder_string(struct builder *b, struct span text) {
  const struct key *key;

  if (is_skipped(b))
    return true;
  key = begin_value(b);
  if (!key)
    return true;
  if (key->type != TEXT)
    return refuse_type(b, key->type, "a string");
  return key->offset == NO_OFFSET ? take_format(b, text)
                                  : take_text(b, key, text);
}

/* ---- keys ---- */

static bool is_name(struct span text, const char *name) {
  return strncmp(name, text.text, text.len) == 0 && name[text.len] == '\0';
}

static bool refuse_twice(struct builder *b) {
  return refuse(b, "is there twice");
}

/* Starts with the amount behind the last one: the writer keeps to our order,
 * and these are most of a document. */
static bool find_amount(struct frame *f, struct span name) {
  unsigned next = f->amount;

  for (unsigned i = 0; i < AMOUNTS; i++) {
    next = next + 1 < AMOUNTS ? next + 1 : 0;
    if (!is_name(name, amount_names[next]))
      continue;
    f->amount = next;
    f->is_amount = true;
    return true;
  }
  return false;
}

bool builder_key(struct builder *b, struct span name) {
  struct frame *f = current(b);

  if (is_skipped(b))
    return true;
  f->is_amount = false;
  f->key = NULL;
  if (name.len == 0 || memchr(name.text, '\0', name.len))
    return true;
  for (const struct key *k = schema_places[f->place].keys; k->name; k++) {
    uint32_t bit = UINT32_C(1) << (k - schema_places[f->place].keys);

    if (!is_name(name, k->name))
      continue;
    f->key = k;
    if (f->seen & bit)
      return refuse_twice(b);
    f->seen |= bit;
    return true;
  }
  if (schema_places[f->place].has_amounts && find_amount(f, name) &&
      b->values[f->amount] != UNKNOWN)
    return refuse_twice(b);
  return true;
}

/* ---- objects and arrays ---- */

static void begin_place(struct builder *b, enum place place) {
  const double unknown = (double)NAN;

  if (schema_places[place].has_amounts)
    forget_values(b);
  if (place == GROUP)
    b->group = (struct group){.rule = UNKNOWN,
                              .processes = UNKNOWN,
                              .threads = UNKNOWN,
                              .unreadable = UNKNOWN,
                              .pss_error = UNKNOWN,
                              .coverage = unknown,
                              .age = unknown};
  if (place == PROCESS)
    b->process = (struct process){.pid = UNKNOWN,
                                  .starttime = UNKNOWN,
                                  .ppid = UNKNOWN,
                                  .uid = UNKNOWN,
                                  .threads = UNKNOWN,
                                  .rule = UNKNOWN,
                                  .doubt = UNKNOWN,
                                  .age = unknown,
                                  .read_cost = unknown};
  if (place == MAPPING)
    b->mapping = (struct mapping){.vmas = UNKNOWN, .processes = UNKNOWN};
  if (place == MAPPINGS)
    b->n_mappings = 0;
  if (place == GROUPS_OF_PROCESS)
    b->n_names = 0;
  if (place == ALSO)
    b->n_indices = 0;
}

static bool begin(struct builder *b, enum type type) {
  const struct key *key;

  if (++b->depth > LOAD_DEPTH_MAX) {
    reason_format(b->reason, "nested more than %d deep", LOAD_DEPTH_MAX);
    return false;
  }
  key = is_skipped(b) ? NULL : begin_value(b);
  if (!key) {
    b->skipped++;
    return true;
  }
  if (key->type != type)
    return refuse_type(b, key->type, schema_type_names[type]);
  begin_place(b, key->place);
  b->frames[b->n_frames++] =
      (struct frame){.place = key->place, .amount = AMOUNTS - 1};
  return true;
}

bool builder_begin_object(struct builder *b) { return begin(b, OBJECT); }
bool builder_begin_array(struct builder *b) { return begin(b, ARRAY); }

static bool end_group(struct builder *b) {
  struct document *d = &b->document;
  struct group *groups;

  if (!b->group.name)
    return refuse(b, "a group without a name");
  groups = make_room(d->groups, d->n_groups, sizeof(*groups));
  if (!groups)
    return refuse_memory(b);
  d->groups = groups;
  groups[d->n_groups++] = b->group;
  return d->n_groups <= LOAD_GROUPS_MAX || refuse(b, "too many groups");
}

static bool end_process(struct builder *b) {
  struct document *d = &b->document;
  struct process *processes;

  if (b->process.pid == UNKNOWN)
    return refuse(b, "a process without a pid");
  processes = make_room(d->processes, d->n_processes, sizeof(*processes));
  if (!processes)
    return refuse_memory(b);
  d->processes = processes;
  processes[d->n_processes++] = b->process;
  return d->n_processes <= LOAD_PROCESSES_MAX ||
         refuse(b, "too many processes");
}

static bool end_mapping(struct builder *b) {
  struct mapping *mappings =
      make_room(b->mappings, b->n_mappings, sizeof(*mappings));

  if (!mappings)
    return refuse_memory(b);
  b->mappings = mappings;
  if (b->n_mappings > 0 && !mappings[b->n_mappings - 1].name)
    return refuse(b, "follows one without a name, which has to be the last");
  if (!amounts_pack(&b->mapping.amounts, &b->document.pool, b->values))
    return refuse_memory(b);
  mappings[b->n_mappings++] = b->mapping;
  return ++b->n_all_mappings <= LOAD_MAPPINGS_MAX ||
         refuse(b, "too many mappings");
}

static bool end_usage(struct builder *b, enum place of) {
  struct amounts *amounts =
      of == GROUP ? &b->group.amounts : &b->process.amounts;

  return amounts_pack(amounts, &b->document.pool, b->values) ||
         refuse_memory(b);
}

/* Copies an array that is whole into the pool. */
static void *keep(struct builder *b, const void *array, size_t n, size_t size) {
  void *copy = pool_alloc(&b->document.pool, n * size);

  if (copy && n > 0)
    memcpy(copy, array, n * size);
  return copy;
}

static bool end_mappings(struct builder *b, enum place of) {
  size_t n = b->n_mappings;
  struct mapping *kept = keep(b, b->mappings, n, sizeof(*kept));

  if (!kept)
    return refuse_memory(b);
  if (of == PROCESS) {
    b->process.mappings = kept;
    b->process.n_mappings = n;
    b->process.has_mappings = true;
    return true;
  }
  b->document.mappings = kept;
  b->document.n_mappings = n;
  b->document.has_mappings = true;
  return true;
}

static bool end_names(struct builder *b) {
  b->process.n_groups = b->n_names;
  b->process.groups = keep(b, b->names, b->n_names, sizeof(*b->names));
  return b->process.groups || refuse_memory(b);
}

static bool end_also(struct builder *b) {
  b->process.n_also = b->n_indices;
  b->process.also = keep(b, b->indices, b->n_indices, sizeof(*b->indices));
  return b->process.also || refuse_memory(b);
}

static bool end_place(struct builder *b, enum place place, enum place of) {
  if (place == GROUP)
    return end_group(b);
  if (place == PROCESS)
    return end_process(b);
  if (place == MAPPING)
    return end_mapping(b);
  if (place == USAGE)
    return end_usage(b, of);
  if (place == MAPPINGS)
    return end_mappings(b, of);
  if (place == GROUPS_OF_PROCESS)
    return end_names(b);
  return place == ALSO ? end_also(b) : true;
}

static bool end(struct builder *b) {
  enum place place;

  b->depth--;
  if (is_skipped(b)) {
    b->skipped--;
    return true;
  }
  place = current(b)->place;
  b->n_frames--;
  return end_place(b, place, current(b)->place);
}

bool builder_end_object(struct builder *b) { return end(b); }
bool builder_end_array(struct builder *b) { return end(b); }

/* ---- the whole ---- */

bool builder_is_snapshot(const struct builder *b) { return b->is_snapshot; }

static int compare_groups(const void *a, const void *b) {
  return strcmp(((const struct group *)a)->name,
                ((const struct group *)b)->name);
}

static bool check_groups(struct builder *b) {
  struct document *d = &b->document;
  char shown[NAME_SIZE];

  if (d->n_groups > 0)
    qsort(d->groups, d->n_groups, sizeof(*d->groups), compare_groups);
  for (size_t i = 0; i < d->n_groups; i++) {
    const char *name = d->groups[i].name;

    name_escape(name, strlen(name), shown, sizeof(shown));
    if (i > 0 && strcmp(d->groups[i - 1].name, name) == 0) {
      reason_format(b->reason, "group \"%s\" is there twice", shown);
      return false;
    }
    if (d->groups[i].rule != UNKNOWN && d->groups[i].rule >= d->n_rules) {
      reason_format(b->reason, "group \"%s\": there is no rule %ju", shown,
                    (uintmax_t)d->groups[i].rule);
      return false;
    }
  }
  return true;
}

static bool check_rules(struct builder *b) {
  const struct document *d = &b->document;

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];
    uint64_t wrong = p->rule;

    for (size_t j = 0;
         j < p->n_also && (wrong == UNKNOWN || wrong < d->n_rules); j++)
      wrong = p->also[j];
    if (wrong == UNKNOWN || wrong < d->n_rules)
      continue;
    reason_format(b->reason, "process %ju: there is no rule %ju",
                  (uintmax_t)p->pid, (uintmax_t)wrong);
    return false;
  }
  return true;
}

bool builder_finish(struct builder *b, struct document *ret) {
  if (!b->is_snapshot) {
    reason_format(b->reason, "no snapshot of the smaps plugin");
    return false;
  }
  if (b->document.version == UNKNOWN) {
    reason_format(b->reason, "no version of the format is given");
    return false;
  }
  if (!check_groups(b) || !check_rules(b))
    return false;
  *ret = b->document;
  b->document = (struct document){0};
  return true;
}
