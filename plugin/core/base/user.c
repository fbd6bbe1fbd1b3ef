/* SPDX-License-Identifier: MIT */
#include "base/user.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/duration.h"

#define KEPT_NS (3600 * NS_PER_S)
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

static struct user_entry *find(const struct user_cache *c, uint32_t uid) {
  for (size_t i = 0; i < c->n; i++)
    if (c->entries[i].uid == uid)
      return &c->entries[i];
  return NULL;
}

/* Without memory the name is not cached and is looked up again. */
static void store_name(struct user_cache *c, uint32_t uid, const char *name,
                       uint64_t now_ns) {
  struct user_entry *entry = find(c, uid), *entries;

  if (!entry) {
    if (c->n == ENTRIES_MAX)
      c->n = 0;
    entries = array_room(c->entries, c->n, &c->cap, sizeof(*entries));
    if (!entries)
      return;
    c->entries = entries;
    entry = &entries[c->n++];
  }
  entry->uid = uid;
  entry->asked_ns = now_ns;
  strcpy(entry->name, name);
}

static void write_number(uint32_t uid, char ret[USER_NAME_SIZE]) {
  snprintf(ret, USER_NAME_SIZE, "%u", uid);
}

/* False if the caller has to look the name up. */
static bool find_name(struct user_cache *c, uint32_t uid, uint64_t now_ns,
                      char ret[USER_NAME_SIZE]) {
  const struct user_entry *known = find(c, uid);

  if (!c->is_asking && (!known || now_ns - known->asked_ns >= KEPT_NS)) {
    c->is_asking = true;
    return false;
  }
  if (known)
    strcpy(ret, known->name);
  else
    write_number(uid, ret);
  return true;
}

int user_cache_name(struct user_cache *c, uint32_t uid, uint64_t now_ns,
                    char ret[USER_NAME_SIZE]) {
  bool is_found;
  int rc;

  pthread_mutex_lock(&c->lock);
  is_found = find_name(c, uid, now_ns, ret);
  pthread_mutex_unlock(&c->lock);
  if (is_found)
    return 0;
  rc = c->look_up(uid, ret, USER_NAME_SIZE);
  if (rc != 0 && rc != -EAGAIN)
    write_number(uid, ret);
  pthread_mutex_lock(&c->lock);
  if (rc != -EAGAIN)
    store_name(c, uid, ret, now_ns);
  c->is_asking = false;
  pthread_mutex_unlock(&c->lock);
  return rc == -EAGAIN ? rc : 0;
}
