/* SPDX-License-Identifier: MIT */
#include "build.h"
#include "memory.h"
#include "schema.h"
#include "text.h"

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
  const struct key *key; /* of the next value; NULL: unknown */
  uint64_t seen;         /* bit per key */
  size_t count;          /* elements begun */
};

/* The maximum depth of nested places. */
#define FRAMES_MAX 8

struct builder {
  struct config_error *reason;
  struct frame frames[FRAMES_MAX];
  size_t n_frames;
  unsigned skipped; /* open ones inside the value of an unknown key */
  bool is_snapshot;
  bool has_version;
  struct document document;
  struct pool *pool;
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

struct builder *builder_new(struct pool *pool, struct config_error *reason) {
  struct builder *b = memory_array(NULL, 1, sizeof(*b));

  *b = (struct builder){.reason = reason, .n_frames = 1};
  b->pool = pool ? pool : &b->document.pool;
  schema_forget(DOCUMENT, &b->document);
  schema_forget(TRIGGER, &b->document.trigger);
  return b;
}

void builder_free(struct builder *b) {
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

    if (schema_places[f->place].element)
      len += (size_t)snprintf(ret + len, size - len, "[%zu]",
                              f->count ? f->count - 1 : 0);
    else if (f->key)
      len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? "." : "",
                              f->key->name);
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

/* ---- the destination of a value ---- */

/* The key of the next value; NULL if the key, or a key above it, is unknown.
 * Counts the elements of arrays. */
static const struct key *begin_value(struct builder *b) {
  struct frame *f = current(b);

  if (b->skipped > 0)
    return NULL;
  if (!schema_places[f->place].element)
    return f->key;
  f->count++;
  return schema_places[f->place].element;
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

static bool add_name(struct builder *b, const char *name) {
  b->names = memory_room(b->names, b->n_names, sizeof(*b->names));
  b->names[b->n_names++] = name;
  return b->n_names <= BUILD_GROUPS_MAX || refuse(b, "too many");
}

static bool add_index(struct builder *b, uint64_t index) {
  b->indices = memory_room(b->indices, b->n_indices, sizeof(*b->indices));
  b->indices[b->n_indices++] = index;
  return b->n_indices <= BUILD_RULES_MAX || refuse(b, "too many");
}

static bool add_rule(struct builder *b, const char *rule) {
  struct document *d = &b->document;

  d->rules = memory_room(d->rules, d->n_rules, sizeof(*d->rules));
  d->rules[d->n_rules++] = rule;
  return d->n_rules <= BUILD_RULES_MAX || refuse(b, "too many rules");
}

/* ---- scalars ---- */

int builder_null(void *builder) {
  struct builder *b = builder;
  const struct key *key = begin_value(b);

  return !key || refuse_type(b, key->type, "null");
}

int builder_boolean(void *builder, int value) {
  struct builder *b = builder;
  const struct key *key = begin_value(b);

  if (!key)
    return true;
  if (key->type != FLAG)
    return refuse_type(b, key->type, value ? "true" : "false");
  *(bool *)field(b, key) = value;
  return true;
}

static bool parse_version(struct builder *b, uint64_t version) {
  b->has_version = true;
  if (version == VERSION)
    return true;
  config_error_format(b->reason,
                      "format version %ju, but this program reads version %d",
                      (uintmax_t)version, VERSION);
  return false;
}

static bool store_whole(struct builder *b, const struct key *key,
                        uint64_t value) {
  if (current(b)->place == ALSO)
    return add_index(b, value);
  if (key->type == AMOUNT)
    b->values[key->offset] = value;
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
  if (value == MISSING || (key->max && value > key->max))
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

int builder_number(void *builder, const char *digits, size_t len) {
  struct builder *b = builder;
  const struct key *key = begin_value(b);
  struct span text = {.text = digits, .len = len};

  if (!key)
    return true;
  if (key->type == WHOLE || key->type == AMOUNT)
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
    config_error_format(
        b->reason, "not a snapshot of the smaps plugin: its format is \"%s\"",
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
  copy = pool_intern(b->pool, text.text, text.len);
  if (current(b)->place == RULES)
    return add_rule(b, copy);
  if (current(b)->place == GROUPS_OF_PROCESS)
    return add_name(b, copy);
  *(const char **)field(b, key) = copy;
  return true;
}

int builder_string(void *builder, const unsigned char *bytes, size_t len) {
  struct builder *b = builder;
  const struct key *key = begin_value(b);
  struct span text = {.text = (const char *)bytes, .len = len};

  if (!key)
    return true;
  if (key->type != TEXT)
    return refuse_type(b, key->type, "a string");
  return key->offset == NO_OFFSET ? parse_format(b, text)
                                  : parse_text(b, key, text);
}

/* ---- keys ---- */

/* Notes the key; true if it was there before. */
static bool is_repeated(struct frame *f) {
  ptrdiff_t number = f->key - schema_places[f->place].keys;
  bool is_seen = (f->seen >> number) & 1;

  assert(number < KEYS_MAX);
  f->seen |= UINT64_C(1) << number;
  return is_seen;
}

int builder_key(void *builder, const unsigned char *bytes, size_t len) {
  struct builder *b = builder;
  struct frame *f = current(b);
  struct span name = {.text = (const char *)bytes, .len = len};

  if (b->skipped > 0)
    return true;
  f->key = schema_find(f->place, name);
  if (!f->key)
    return true;
  return !is_repeated(f) || refuse(b, "appears twice");
}

/* ---- objects and arrays ---- */

static void begin_place(struct builder *b, enum place place) {
  if (place == GROUP || place == PROCESS || place == MAPPING ||
      place == HOST_MEMORY)
    schema_forget(place, place_struct(b, place));
  if (place == USAGE || place == MAPPING)
    for (size_t i = 0; i < AMOUNTS; i++)
      b->values[i] = MISSING;
  if (place == HOST_MEMORY)
    b->document.has_host_memory = true;
  if (place == PSS_ERROR_BY)
    b->causes = (struct causes){0};
  if (place == MAPPINGS)
    b->n_mappings = 0;
  if (place == GROUPS_OF_PROCESS)
    b->n_names = 0;
  if (place == ALSO)
    b->n_indices = 0;
}

static bool begin(struct builder *b, enum type type) {
  const struct key *key = begin_value(b);

  if (!key) {
    b->skipped++;
    return true;
  }
  if (key->type != type)
    return refuse_type(b, key->type, schema_type_names[type]);
  begin_place(b, key->place);
  assert(b->n_frames < FRAMES_MAX);
  b->frames[b->n_frames++] = (struct frame){.place = key->place};
  return true;
}

int builder_begin_object(void *b) { return begin(b, OBJECT); }
int builder_begin_array(void *b) { return begin(b, ARRAY); }

static bool end_group(struct builder *b) {
  struct document *d = &b->document;

  if (!b->group.name)
    return refuse(b, "a group without a name");
  d->groups = memory_room(d->groups, d->n_groups, sizeof(*d->groups));
  d->groups[d->n_groups++] = b->group;
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

/* True for the options of java (JDK 21) whose value is the next argument. */
static bool takes_next(const char *word) {
  static const char options[] =
      " -cp -classpath --class-path -p --module-path --upgrade-module-path "
      "--add-modules --limit-modules --add-exports --add-opens --add-reads "
      "--patch-module --enable-native-access ";
  char wanted[40];

  snprintf(wanted, sizeof(wanted), " %.*s ", (int)strcspn(word, " "), word);
  return strstr(options, wanted);
}

static const char *next_word(const char *word) {
  word += strcspn(word, " ");
  return word + strspn(word, " ");
}

/* Sets the title. An interpreter of scripts gets the base name of its first
 * argument that is not an option, if that looks like a file: of java the class
 * or the archive. */
static void name_process(struct builder *b) {
  struct process *p = &b->process;
  const char *word = p->command_line, *end, *slash;
  bool is_java;

  p->title = p->comm;
  if (!p->comm || !word || !is_interpreter(p->comm))
    return;
  is_java = strcmp(p->comm, "java") == 0;
  for (word = next_word(word); *word == '-'; word = next_word(word))
    if (is_java && takes_next(word))
      word = next_word(word);
  end = word + strcspn(word, " ");
  slash = memrchr(word, '/', (size_t)(end - word));
  if (!slash && !memchr(word, '.', (size_t)(end - word)))
    return;
  word = slash ? slash + 1 : word;
  if (word != end)
    p->title = pool_intern(b->pool, word, (size_t)(end - word));
}

/* A process that was read in this interval is exact. */
static void know_errors(struct process *p) {
  if (!process_is_from(p, "read"))
    return;
  if (p->pss_error == MISSING)
    p->pss_error = 0;
  if (p->uss_error == MISSING)
    p->uss_error = 0;
}

static bool end_process(struct builder *b) {
  struct document *d = &b->document;

  if (b->process.pid == MISSING)
    return refuse(b, "a process without a pid");
  know_errors(&b->process);
  name_process(b);
  d->processes =
      memory_room(d->processes, d->n_processes, sizeof(*d->processes));
  d->processes[d->n_processes++] = b->process;
  return d->n_processes <= BUILD_PROCESSES_MAX ||
         refuse(b, "too many processes");
}

static bool end_mapping(struct builder *b) {
  b->mappings = memory_room(b->mappings, b->n_mappings, sizeof(*b->mappings));
  if (b->n_mappings > 0 && !b->mappings[b->n_mappings - 1].name)
    return refuse(b, "follows a mapping without a name, which has to be the "
                     "last");
  amounts_pack(&b->mapping.amounts, b->pool, b->values);
  b->mappings[b->n_mappings++] = b->mapping;
  return ++b->n_all_mappings <= BUILD_MAPPINGS_MAX ||
         refuse(b, "too many mappings");
}

/* Copies a complete array into the pool. */
static void *store_array(struct builder *b, const void *array, size_t n,
                         size_t size) {
  void *copy = pool_alloc(b->pool, n * size);

  if (n > 0)
    memcpy(copy, array, n * size);
  return copy;
}

static void end_mappings(struct builder *b, enum place of) {
  size_t n = b->n_mappings;
  struct mapping *kept = store_array(b, b->mappings, n, sizeof(*kept));

  if (of == PROCESS) {
    b->process.mappings = kept;
    b->process.n_mappings = (uint32_t)n;
    b->process.has_mappings = true;
  } else {
    b->document.mappings = kept;
    b->document.n_mappings = n;
    b->document.has_mappings = true;
  }
}

static void end_names(struct builder *b) {
  b->process.n_groups = (uint32_t)b->n_names;
  b->process.groups = store_array(b, b->names, b->n_names, sizeof(*b->names));
}

static void end_also(struct builder *b) {
  b->process.n_also = (uint32_t)b->n_indices;
  b->process.also =
      store_array(b, b->indices, b->n_indices, sizeof(*b->indices));
}

static bool end_place(struct builder *b, enum place place, enum place of) {
  if (place == GROUP)
    return end_group(b);
  if (place == PROCESS)
    return end_process(b);
  if (place == MAPPING)
    return end_mapping(b);
  if (place == PSS_ERROR_BY)
    b->group.pss_error_by = store_array(b, &b->causes, 1, sizeof(b->causes));
  if (place == USAGE)
    amounts_pack(of == GROUP ? &b->group.amounts : &b->process.amounts, b->pool,
                 b->values);
  if (place == MAPPINGS)
    end_mappings(b, of);
  if (place == GROUPS_OF_PROCESS)
    end_names(b);
  if (place == ALSO)
    end_also(b);
  return true;
}

static bool end(struct builder *b) {
  enum place place;

  if (b->skipped > 0) {
    b->skipped--;
    return true;
  }
  place = current(b)->place;
  b->n_frames--;
  return end_place(b, place, current(b)->place);
}

int builder_end_object(void *b) { return end(b); }
int builder_end_array(void *b) { return end(b); }

/* ---- the document ---- */

static int compare_groups(const void *a, const void *b) {
  return strcmp(((const struct group *)a)->name,
                ((const struct group *)b)->name);
}

/* Sorts the groups by name, and refuses two of the same name. */
static int check_groups(struct document *d, struct config_error *reason) {
  if (d->n_groups > 0)
    qsort(d->groups, d->n_groups, sizeof(*d->groups), compare_groups);
  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    if (i > 0 && strcmp(d->groups[i - 1].name, g->name) == 0)
      return config_error_set(reason, "group \"%s\" appears twice",
                              QUOTED(g->name));
    if (g->rule != MISSING && g->rule >= d->n_rules)
      return config_error_set(reason, "group \"%s\": there is no rule %ju",
                              QUOTED(g->name), (uintmax_t)g->rule);
  }
  return 0;
}

/* Refuses a rule number that the document does not have. */
static int check_rules(const struct document *d, struct config_error *reason) {
  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];
    uint64_t wrong = p->rule;

    for (size_t j = 0;
         j < p->n_also && (wrong == MISSING || wrong < d->n_rules); j++)
      wrong = p->also[j];
    if (wrong != MISSING && wrong >= d->n_rules)
      return config_error_set(reason, "process %ju: there is no rule %ju",
                              (uintmax_t)p->pid, (uintmax_t)wrong);
  }
  return 0;
}

bool builder_is_snapshot(const struct builder *b) { return b->is_snapshot; }

int builder_finish(struct builder *b, struct document *ret) {
  int rc;

  if (!b->is_snapshot)
    return config_error_set(b->reason, "not a snapshot of the smaps plugin");
  if (!b->has_version)
    return config_error_set(b->reason, "no version of the format is given");
  rc = check_groups(&b->document, b->reason);
  if (rc == 0)
    rc = check_rules(&b->document, b->reason);
  if (rc < 0)
    return rc;
  *ret = b->document;
  b->document = (struct document){0};
  return 0;
}
