/* SPDX-License-Identifier: MIT */
/* The keys of a snapshot, their types and places; see smaps-snapshot(5). */
#ifndef REPORT_SCHEMA_H
#define REPORT_SCHEMA_H

#include <smaps/text.h>

enum place {
  BEFORE, /* outside of the document */
  DOCUMENT,
  TRIGGER,
  HOST_MEMORY,
  RULES,
  GROUPS,
  GROUP,
  PSS_ERROR_BY,
  PROCESSES,
  PROCESS,
  GROUPS_OF_PROCESS,
  ALSO,
  USAGE,
  MAPPINGS,
  MAPPING,
  PLACES
};

enum type { TEXT, WHOLE, AMOUNT, SECONDS, FLAG, OBJECT, ARRAY };

/* The name of each type for messages, such as "a string". */
extern const char *const schema_type_names[];

struct key {
  const char *name;
  size_t offset; /* in the struct of its place; of an amount its number */
  uint64_t max;  /* of a whole number; 0: no limit */
  enum type type;
  enum place place; /* of the elements or keys of an array or object */
};

/* The offset of keys without a field: see parse_format(), parse_version(). */
#define NO_OFFSET SIZE_MAX

/* The keys of an object are a bit each in 64. */
#define KEYS_MAX 64

/* The keys of an object, or the element of an array. */
struct place_schema {
  const struct key *keys;    /* the last one has no name */
  const struct key *element; /* NULL for an object */
  size_t size;               /* of the struct that has its fields */
};
extern const struct place_schema schema_places[PLACES];

/* Finds a key of an object; NULL if it has none of this name. */
const struct key *schema_find(enum place place, struct span name);

/* Makes a struct of which nothing is known. */
void schema_forget(enum place place, void *ret);

#endif
