#include <smaps/user.h>

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_NS (UINT64_C(3600) * 1000000000)
/* A user namespace hands 65,536 uids to anybody: that is no reason to hold a
 * name for each. */
#define ENTRIES_MAX 4096

static int look_up_system(uint32_t uid, char *ret, size_t size) {
  struct passwd pw, *found = NULL;
  char buffer[4096];

  if (getpwuid_r(uid, &pw, buffer, sizeof(buffer), &found) != 0 || !found)
    return -1;
  if (strlen(found->pw_name) >= size)
    return -1;
  strcpy(ret, found->pw_name);
  return 0;
}

void user_cache_init(struct user_cache *c,
                     int (*look_up)(uint32_t uid, char *ret, size_t size)) {
  *c = (struct user_cache){.look_up = look_up ? look_up : look_up_system};
}

void user_cache_done(struct user_cache *c) {
  free(c->entries);
  *c = (struct user_cache){0};
}

void user_cache_expire(struct user_cache *c, uint64_t now_ns) {
  if (now_ns - c->filled_ns < KEPT_NS)
    return;
  c->n = 0;
  c->filled_ns = now_ns;
}

static size_t find_place(const struct user_cache *c, uint32_t uid) {
  size_t low = 0, high = c->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;

    if (c->entries[middle].uid < uid)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int make_room(struct user_cache *c) {
  size_t cap = c->cap ? c->cap * 2 : 16;
  struct user_entry *entries;

  if (c->n < c->cap)
    return 0;
  entries = reallocarray(c->entries, cap, sizeof(*entries));
  if (!entries)
    return -1;
  c->entries = entries;
  c->cap = cap;
  return 0;
}

const char *user_cache_name(struct user_cache *c, uint32_t uid) {
  size_t place = find_place(c, uid);
  struct user_entry *entry;

  if (place < c->n && c->entries[place].uid == uid)
    return c->entries[place].name;
  if (c->n == ENTRIES_MAX)
    c->n = place = 0;
  if (make_room(c) < 0)
    return NULL;
  entry = &c->entries[place];
  memmove(entry + 1, entry, (c->n - place) * sizeof(*entry));
  c->n++;
  entry->uid = uid;
  if (c->look_up(uid, entry->name, sizeof(entry->name)) != 0)
    snprintf(entry->name, sizeof(entry->name), "%u", uid);
  return entry->name;
}
