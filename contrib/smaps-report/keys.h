/*
 * Finds the keys of a snapshot's objects, the amounts (document.h) among them.
 * It learns which key follows which, because most of the time of loading goes
 * into the keys of a million processes, and a writer keeps its order.
 */
#ifndef REPORT_KEYS_H
#define REPORT_KEYS_H

#include "document.h"
#include "schema.h"

#include <smaps/text.h>

/* The keys of an object without its amounts: a bit each in 32. */
#define KEYS_MAX 32

/* A key by its number in the schema, or an amount by KEYS_MAX + its number. */
typedef uint8_t key_id;
#define KEY_NONE ((key_id)(KEYS_MAX + AMOUNTS))

static inline bool key_is_amount(key_id id) {
  return id >= KEYS_MAX && id != KEY_NONE;
}

/* NULL for KEY_NONE. */
const char *key_name(enum place place, key_id id);

/* A zeroed one has learnt nothing. */
struct key_order {
  key_id follower[PLACES][KEYS_MAX + AMOUNTS + 1];
};

/* Gets the key after the key `last`, KEY_NONE at the beginning of an object;
 * KEY_NONE if the objects of this place have no such key. */
key_id key_order_find(struct key_order *o, enum place place, key_id last,
                      struct span name);

#endif
