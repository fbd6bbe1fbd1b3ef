#include "proc/user.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_NS (UINT64_C(3600) * 1000000000)
/* A user namespace gives 65,536 uids to any user: not each of them deserves an
 * entry. */
#define ENTRIES_MAX 4096

/* getpwuid_r(3) has a dozen ways to say that there is no such user. These
 * errors say that the question failed, which must not leave the user without a
 * name. */
static bool is_transient(int error) {
  return error == EIO || error == EMFILE || error == ENFILE ||
         error == ENOMEM || error == EINTR || error == EAGAIN;
}

static int look_up_system(uint32_t uid, char *ret, size_t size) {
  struct passwd pw, *found = NULL;
  char buffer[4096];
  int error = getpwuid_r(uid, &pw, buffer, sizeof(buffer), &found);

  if (!found)
    return is_transient(error) ? -EAGAIN : -ENOENT;
  if (strlen(found->pw_name) >= size)
    return -ENOENT;
  strcpy(ret, found->pw_name);
  return 0;
}

void user_cache_init(struct user_cache *c,
                     int (*look_up)(uint32_t uid, char *ret, size_t size)) {
  *c = (struct user_cache){.look_up = look_up ? look_up : look_up_system};
  pthread_mutex_init(&c->lock, NULL);
}

void user_cache_done(struct user_cache *c) {
  free(c->entries);
  c->entries = NULL;
  c->n = c->cap = 0;
}

void user_cache_expire(struct user_cache *c, uint64_t now_ns) {
  if (now_ns - c->filled_ns < KEPT_NS)
    return;
  c->filled_ns = now_ns;
  pthread_mutex_lock(&c->lock);
  for (size_t i = 0; i < c->n; i++)
    c->entries[i].is_old = true;
  pthread_mutex_unlock(&c->lock);
}

static size_t find_slot(const struct user_cache *c, uint32_t uid) {
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

static bool is_at(const struct user_cache *c, size_t slot, uint32_t uid) {
  return slot < c->n && c->entries[slot].uid == uid;
}

static int make_room(struct user_cache *c) {
  size_t cap = c->cap ? c->cap * 2 : 16;
  struct user_entry *entries;

  if (c->n < c->cap)
    return 0;
  entries = reallocarray(c->entries, cap, sizeof(*entries));
  if (!entries)
    return -ENOMEM;
  c->entries = entries;
  c->cap = cap;
  return 0;
}

/* Without memory the name is not cached and is looked up again. */
static void store_name(struct user_cache *c, uint32_t uid, const char *name) {
  size_t slot = find_slot(c, uid);
  struct user_entry *entry;

  if (!is_at(c, slot, uid)) {
    if (c->n == ENTRIES_MAX)
      c->n = slot = 0;
    if (make_room(c) < 0)
      return;
    entry = &c->entries[slot];
    memmove(entry + 1, entry, (c->n - slot) * sizeof(*entry));
    c->n++;
  }
  entry = &c->entries[slot];
  entry->uid = uid;
  entry->is_old = false;
  strcpy(entry->name, name);
}

static void write_number(uint32_t uid, char ret[USER_NAME_SIZE]) {
  snprintf(ret, USER_NAME_SIZE, "%u", uid);
}

/* False if the caller has to look the name up. */
static bool find_name(struct user_cache *c, uint32_t uid,
                      char ret[USER_NAME_SIZE]) {
  size_t slot = find_slot(c, uid);
  bool is_known = is_at(c, slot, uid);

  if (!c->is_asking && (!is_known || c->entries[slot].is_old)) {
    c->is_asking = true;
    return false;
  }
  if (is_known)
    strcpy(ret, c->entries[slot].name);
  else
    write_number(uid, ret);
  return true;
}

int user_cache_name(struct user_cache *c, uint32_t uid,
                    char ret[USER_NAME_SIZE]) {
  bool is_found;
  int rc;

  pthread_mutex_lock(&c->lock);
  is_found = find_name(c, uid, ret);
  pthread_mutex_unlock(&c->lock);
  if (is_found)
    return 0;
  rc = c->look_up(uid, ret, USER_NAME_SIZE);
  if (rc != 0 && rc != -EAGAIN)
    write_number(uid, ret);
  pthread_mutex_lock(&c->lock);
  if (rc != -EAGAIN)
    store_name(c, uid, ret);
  c->is_asking = false;
  pthread_mutex_unlock(&c->lock);
  return rc == -EAGAIN ? rc : 0;
}
