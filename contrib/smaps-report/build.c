#include "build.h"
#include "cause.h"
#include "check.h"
#include "keys.h"
#include "schema.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "smaps-snapshot"
#define VERSION 2

/* Digits of a number. The longest valid number has 24. */
#define NUMBER_MAX 64

/* An open object or array. */
struct frame {
  enum place place;
  key_id key;    /* of the next value; KEY_NONE: unknown */
  key_id last;   /* the last key that was not unknown */
  uint32_t seen; /* bit per key */
  size_t count;  /* elements begun */
};

/* The maximum depth of nested places. */
#define FRAMES_MAX 8

struct builder {
  struct config_error *reason;
  struct frame frames[FRAMES_MAX];
  size_t n_frames;
  unsigned depth;   /* open objects and arrays */
  unsigned skipped; /* open ones inside the value of an unknown key */
  bool is_snapshot;
  struct key_order order;
  struct document document;
  /* The parts under construction. */
  struct group group;
  struct causes causes;
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

static void clear_values(struct builder *b) {
  for (size_t i = 0; i < AMOUNTS; i++)
    b->values[i] = UNKNOWN;
}

struct builder *builder_new(struct config_error *reason) {
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

/* The path of the current value, such as "processes[12].usage.pss". */
static void describe_path(const struct builder *b, char *ret, size_t size) {
  size_t len = 0;

  ret[0] = '\0';
  for (size_t i = 1; i < b->n_frames && len < size; i++) {
    const struct frame *f = &b->frames[i];
    const char *name = key_name(f->place, f->key);

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
  config_error_format(b->reason, "%s: %s", path, why);
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
  config_error_format(b->reason, "out of memory");
  return false;
}

/* ---- the destination of a value ---- */

/* True inside the value of an unknown key. */
static bool is_skipped(struct builder *b) { return b->skipped > 0; }

/* The key of the next value, NULL if unknown. Counts the elements of arrays. */
static const struct key *begin_value(struct builder *b) {
  static const struct key amount = {.type = WHOLE};
  struct frame *f = current(b);

  if (schema_places[f->place].element) {
    f->count++;
    return schema_places[f->place].element;
  }
  if (f->key == KEY_NONE)
    return NULL;
  return key_is_amount(f->key) ? &amount
                               : &schema_places[f->place].keys[f->key];
}

static void *place_struct(struct builder *b, enum place place) {
  if (place == DOCUMENT)
    return &b->document;
  if (place == TRIGGER)
    return &b->document.trigger;
  if (place == HOST_MEMORY)
    return &b->document.host_memory;
  if (place == GROUP)
    return &b->group;
  if (place == PSS_ERROR_BY)
    return &b->causes;
  return place == PROCESS ? (void *)&b->process : (void *)&b->mapping;
}

static void *field(struct builder *b, const struct key *key) {
  return (char *)place_struct(b, current(b)->place) + key->offset;
}

/* Makes room for one more than n elements: 16, then doubled each time. NULL if
 * memory has run out. */
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
  return b->n_names <= BUILD_GROUPS_MAX || refuse(b, "too many");
}

static bool add_index(struct builder *b, uint64_t index) {
  uint64_t *indices = make_room(b->indices, b->n_indices, sizeof(*indices));

  if (!indices)
    return refuse_memory(b);
  b->indices = indices;
  indices[b->n_indices++] = index;
  return b->n_indices <= BUILD_RULES_MAX || refuse(b, "too many");
}

static bool add_rule(struct builder *b, const char *rule) {
  struct document *d = &b->document;
  const char **rules = make_room(d->rules, d->n_rules, sizeof(*rules));

  if (!rules)
    return refuse_memory(b);
  d->rules = rules;
  rules[d->n_rules++] = rule;
  return d->n_rules <= BUILD_RULES_MAX || refuse(b, "too many rules");
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

static bool parse_version(struct builder *b, uint64_t version) {
  b->document.version = version;
  if (version == VERSION)
    return true;
  config_error_format(b->reason,
                      "format version %ju, but this program reads version %d",
                      (uintmax_t)version, VERSION);
  return false;
}

static bool store_whole(struct builder *b, const struct key *key,
                        uint64_t value) {
  struct frame *f = current(b);

  if (f->place == ALSO)
    return add_index(b, value);
  if (key_is_amount(f->key))
    b->values[f->key - KEYS_MAX] = value;
  else if (key->offset == NO_OFFSET)
    return parse_version(b, value);
  else
    *(uint64_t *)field(b, key) = value;
  return true;
}

static bool parse_whole(struct builder *b, const struct key *key,
                        struct span text) {
  struct cursor s = cursor_begin(text.text, text.len);
  uint64_t value;

  if (!parse_u64(&s, &value)) {
    bool is_digits = text.len > 0 && *text.text != '-';

    return is_digits ? refuse(b, "the number is too large")
                     : refuse_type(b, WHOLE, "a negative number");
  }
  if (!cursor_is_done(&s))
    return refuse_type(b, WHOLE, "a number with a fraction or an exponent");
  if (value == UNKNOWN || (key->max && value > key->max))
    return refuse(b, "the number is too large");
  return store_whole(b, key, value);
}

static bool parse_seconds(struct builder *b, const struct key *key,
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
                                 "negative number"
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
    return parse_whole(b, key, text);
  if (key->type == SECONDS)
    return parse_seconds(b, key, text);
  return refuse_type(b, key->type, "a number");
}

static bool parse_format(struct builder *b, struct span text) {
  char shown[64];

  b->is_snapshot =
      text.len == strlen(FORMAT) && memcmp(text.text, FORMAT, text.len) == 0;
  if (!b->is_snapshot)
    config_error_format(b->reason,
                        "no snapshot of the smaps plugin: its format is \"%s\"",
                        escape_text(text.text, text.len, shown, sizeof(shown)));
  return b->is_snapshot;
}

static bool parse_text(struct builder *b, const struct key *key,
                       struct span text) {
  const char *copy;

  if (text.len > BUILD_STRING_MAX)
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
  return key->offset == NO_OFFSET ? parse_format(b, text)
                                  : parse_text(b, key, text);
}

/* ---- keys ---- */

/* Notes the key; true if it was there before. */
static bool is_repeated(struct builder *b, struct frame *f) {
  uint32_t bit;
  bool is_seen;

  if (key_is_amount(f->key))
    return b->values[f->key - KEYS_MAX] != UNKNOWN;
  bit = UINT32_C(1) << f->key;
  is_seen = f->seen & bit;
  f->seen |= bit;
  return is_seen;
}

bool builder_key(struct builder *b, struct span name) {
  struct frame *f = current(b);

  if (is_skipped(b))
    return true;
  f->key = key_order_find(&b->order, f->place, f->last, name);
  if (f->key == KEY_NONE)
    return true;
  f->last = f->key;
  return !is_repeated(b, f) || refuse(b, "appears twice");
}

/* ---- objects and arrays ---- */

static void begin_place(struct builder *b, enum place place) {
  if (schema_places[place].has_amounts)
    clear_values(b);
  if (place == HOST_MEMORY)
    document_add_host_memory(&b->document);
  if (place == GROUP)
    b->group = group_unknown;
  if (place == PSS_ERROR_BY)
    b->causes = (struct causes){0};
  if (place == PROCESS)
    b->process = process_unknown;
  if (place == MAPPING)
    b->mapping = mapping_unknown;
  if (place == MAPPINGS)
    b->n_mappings = 0;
  if (place == GROUPS_OF_PROCESS)
    b->n_names = 0;
  if (place == ALSO)
    b->n_indices = 0;
}

static bool begin(struct builder *b, enum type type) {
  const struct key *key;

  if (++b->depth > BUILD_DEPTH_MAX) {
    config_error_format(b->reason, "nested more than %d deep", BUILD_DEPTH_MAX);
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
  assert(b->n_frames < FRAMES_MAX);
  b->frames[b->n_frames++] =
      (struct frame){.place = key->place, .key = KEY_NONE, .last = KEY_NONE};
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
  return d->n_groups <= BUILD_GROUPS_MAX || refuse(b, "too many groups");
}

static bool is_interpreter(const char *comm) {
  static const char *const names[] = {"bash", "dash",   "java", "node", "perl",
                                      "php",  "python", "ruby", "sh"};

  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
    size_t len = strlen(names[i]);

    /* Such as python3.11. */
    if (strncmp(comm, names[i], len) == 0 &&
        comm[len + strspn(comm + len, "0123456789.")] == '\0')
      return true;
  }
  return false;
}

/* Sets the title. A program that runs scripts has the base name of its first
 * argument that is not an option, if that looks like a file. */
static bool name_process(struct builder *b) {
  struct process *p = &b->process;
  const char *word = p->command_line, *end, *slash;

  p->title = p->comm;
  if (!p->comm || !word || !is_interpreter(p->comm))
    return true;
  do {
    word += strcspn(word, " ");
    word += strspn(word, " ");
  } while (*word == '-');
  end = word + strcspn(word, " ");
  slash = memrchr(word, '/', (size_t)(end - word));
  if (!slash && !memchr(word, '.', (size_t)(end - word)))
    return true;
  word = slash ? slash + 1 : word;
  if (word == end)
    return true;
  p->title = pool_intern(&b->document.pool, word, (size_t)(end - word));
  return p->title || refuse_memory(b);
}

/* A process that was read in this interval is exact. */
static void know_errors(struct process *p) {
  if (!p->source || strcmp(p->source, "read") != 0)
    return;
  if (p->pss_error == UNKNOWN)
    p->pss_error = 0;
  if (p->uss_error == UNKNOWN)
    p->uss_error = 0;
}

static bool end_process(struct builder *b) {
  struct document *d = &b->document;
  struct process *processes;

  if (b->process.pid == UNKNOWN)
    return refuse(b, "a process without a pid");
  know_errors(&b->process);
  if (!name_process(b))
    return false;
  processes = make_room(d->processes, d->n_processes, sizeof(*processes));
  if (!processes)
    return refuse_memory(b);
  d->processes = processes;
  processes[d->n_processes++] = b->process;
  return d->n_processes <= BUILD_PROCESSES_MAX ||
         refuse(b, "too many processes");
}

static bool end_mapping(struct builder *b) {
  struct mapping *mappings =
      make_room(b->mappings, b->n_mappings, sizeof(*mappings));

  if (!mappings)
    return refuse_memory(b);
  b->mappings = mappings;
  if (b->n_mappings > 0 && !mappings[b->n_mappings - 1].name)
    return refuse(b, "follows a mapping without a name, which has to be the "
                     "last");
  if (!amounts_pack(&b->mapping.amounts, &b->document.pool, b->values))
    return refuse_memory(b);
  mappings[b->n_mappings++] = b->mapping;
  return ++b->n_all_mappings <= BUILD_MAPPINGS_MAX ||
         refuse(b, "too many mappings");
}

static bool end_usage(struct builder *b, enum place of) {
  struct amounts *amounts =
      of == GROUP ? &b->group.amounts : &b->process.amounts;

  return amounts_pack(amounts, &b->document.pool, b->values) ||
         refuse_memory(b);
}

/* Copies a complete array into the pool. */
static void *store_array(struct builder *b, const void *array, size_t n,
                         size_t size) {
  void *copy = pool_alloc(&b->document.pool, n * size);

  if (copy && n > 0)
    memcpy(copy, array, n * size);
  return copy;
}

static bool end_causes(struct builder *b) {
  b->group.pss_error_by = store_array(b, &b->causes, 1, sizeof(b->causes));
  return b->group.pss_error_by || refuse_memory(b);
}

static bool end_mappings(struct builder *b, enum place of) {
  size_t n = b->n_mappings;
  struct mapping *kept = store_array(b, b->mappings, n, sizeof(*kept));

  if (!kept)
    return refuse_memory(b);
  if (of == PROCESS) {
    b->process.mappings = kept;
    b->process.n_mappings = (uint32_t)n;
    b->process.has_mappings = true;
    return true;
  }
  b->document.mappings = kept;
  b->document.n_mappings = n;
  b->document.has_mappings = true;
  return true;
}

/* Most processes are in the same groups as the one before. */
static const char *const *same_groups(const struct builder *b) {
  const struct document *d = &b->document;
  const struct process *before =
      d->n_processes > 0 ? &d->processes[d->n_processes - 1] : NULL;

  if (!before || before->n_groups != b->n_names || b->n_names == 0 ||
      memcmp(before->groups, b->names, b->n_names * sizeof(*b->names)) != 0)
    return NULL;
  return before->groups;
}

static bool end_names(struct builder *b) {
  b->process.n_groups = (uint32_t)b->n_names;
  b->process.groups = same_groups(b);
  if (!b->process.groups)
    b->process.groups = store_array(b, b->names, b->n_names, sizeof(*b->names));
  return b->process.groups || refuse_memory(b);
}

static bool end_also(struct builder *b) {
  b->process.n_also = (uint32_t)b->n_indices;
  b->process.also =
      store_array(b, b->indices, b->n_indices, sizeof(*b->indices));
  return b->process.also || refuse_memory(b);
}

static bool end_place(struct builder *b, enum place place, enum place of) {
  if (place == GROUP)
    return end_group(b);
  if (place == PSS_ERROR_BY)
    return end_causes(b);
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

/* ---- the document ---- */

bool builder_is_snapshot(const struct builder *b) { return b->is_snapshot; }

bool builder_finish(struct builder *b, struct document *ret) {
  if (!b->is_snapshot) {
    config_error_format(b->reason, "no snapshot of the smaps plugin");
    return false;
  }
  if (b->document.version == UNKNOWN) {
    config_error_format(b->reason, "no version of the format is given");
    return false;
  }
  if (!check_document(&b->document, b->reason))
    return false;
  *ret = b->document;
  b->document = (struct document){0};
  return true;
}
