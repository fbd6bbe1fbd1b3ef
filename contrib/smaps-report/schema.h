/* Which keys a snapshot has, of which type and where; see smaps-snapshot(5). */
#ifndef REPORT_SCHEMA_H
#define REPORT_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum place {
  BEFORE, /* the document's brace */
  DOCUMENT,
  TRIGGER,
  RULES,
  GROUPS,
  GROUP,
  PROCESSES,
  PROCESS,
  GROUPS_OF_PROCESS,
  ALSO,
  USAGE,
  MAPPINGS,
  MAPPING,
  PLACES
};

enum type { TEXT, WHOLE, SECONDS, FLAG, OBJECT, ARRAY };

/* "a string" and so on, by type, for messages. */
extern const char *const schema_type_names[];

struct key {
  const char *name;
  size_t offset; /* in the struct of its place */
  uint64_t max;  /* of a whole number; 0: whatever fits */
  enum type type;
  enum place place; /* that an object or array opens */
};

/* The offset of what goes to no struct: see take_format(), take_version(). */
#define NO_OFFSET SIZE_MAX

/* What may stand in an object or array of a place. */
struct place_schema {
  const struct key *keys;    /* of an object; the last one has no name */
  const struct key *element; /* of an array */
  bool has_amounts;          /* keys besides, as in amount_names[] */
};
extern const struct place_schema schema_places[PLACES];

#endif
