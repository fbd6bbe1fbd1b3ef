#include "keys.h"

#include <assert.h>
#include <string.h>

static bool is_name(struct span text, const char *name) {
  return *name == *text.text && strncmp(name, text.text, text.len) == 0 &&
         name[text.len] == '\0';
}

const char *key_name(enum place place, key_id id) {
  if (id == KEY_NONE)
    return NULL;
  return key_is_amount(id) ? amount_names[id - KEYS_MAX]
                           : schema_places[place].keys[id].name;
}

static bool is_key(enum place place, key_id id, struct span name) {
  const char *known = key_name(place, id);

  return known && is_name(name, known);
}

static key_id search(enum place place, struct span name) {
  const struct place_schema *schema = &schema_places[place];

  for (key_id i = 0; schema->keys[i].name; i++) {
    assert(i < KEYS_MAX);
    if (is_key(place, i, name))
      return i;
  }
  for (unsigned i = 0; schema->has_amounts && i < AMOUNTS; i++)
    if (is_key(place, (key_id)(KEYS_MAX + i), name))
      return (key_id)(KEYS_MAX + i);
  return KEY_NONE;
}

key_id key_order_find(struct key_order *o, enum place place, key_id last,
                      struct span name) {
  key_id *follower = &o->follower[place][last];
  key_id found;

  if (name.len == 0 || memchr(name.text, '\0', name.len))
    return KEY_NONE;
  /* One that was not learnt is 0: a key, or nothing. */
  if (is_key(place, *follower, name))
    return *follower;
  found = search(place, name);
  if (found != KEY_NONE)
    *follower = found;
  return found;
}
