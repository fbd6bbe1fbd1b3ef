/* SPDX-License-Identifier: MIT */
#include "process/container_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_LEN 12
/* A user can make any number of control groups that look like containers: not
 * each of them deserves an entry for ever. */
#define ENTRIES_MAX 4096
/* Any number of control groups may lead to a file of CONTAINER_FILE_MOST. So
 * much of users' files is read in a cycle, some 70 ms; and no matter how small
 * they are, each look at them counts like 16 kB. */
#define USERS_MOST ((size_t)4 * CONTAINER_FILE_MOST)
#define LOOK_COST (16 << 10)

void container_cache_init(struct container_cache *c, const char *root) {
  *c = (struct container_cache){.n = 0};
  snprintf(c->root, sizeof(c->root), "%s", root ? root : "");
  pthread_mutex_init(&c->lock, NULL);
}

void container_cache_done(struct container_cache *c) { free(c->entries); }

static struct container_entry *find(const struct container_cache *c,
                                    const struct container_entry *key) {
  for (size_t i = 0; i < c->n; i++)
    if (c->entries[i].uid == key->uid && strcmp(c->entries[i].id, key->id) == 0)
      return &c->entries[i];
  return NULL;
}

/* Completes *e with the known names. True if no files are to be read now: they
 * were checked in this cycle, or another thread reads, or much was read for
 * users. Else the caller reads them. */
static bool begin(struct container_cache *c, struct container_entry *e,
                  uint64_t now_ns) {
  bool *is_reading = &c->is_reading[e->uid != 0], will_do;
  const struct container_entry *known;

  pthread_mutex_lock(&c->lock);
  known = find(c, e);
  if (known)
    *e = *known;
  if (c->cycle_ns != now_ns)
    c->users_bytes = 0;
  c->cycle_ns = now_ns;
  will_do = *is_reading || (e->uid && c->users_bytes >= USERS_MOST) ||
            (known && e->checked_ns == now_ns);
  *is_reading |= !will_do;
  pthread_mutex_unlock(&c->lock);
  return will_do;
}

/* Without memory for another entry, its files are read again. */
static void end(struct container_cache *c, const struct container_lookup *l) {
  const struct container_entry *e = &l->found;
  struct container_entry *place, *grown;

  pthread_mutex_lock(&c->lock);
  place = find(c, e);
  if (!place) {
    c->n = c->n < ENTRIES_MAX ? c->n : 0;
    grown = reallocarray(c->entries, c->n + 1, sizeof(*grown));
    if (grown) {
      c->entries = grown;
      place = &grown[c->n++];
    }
  }
  if (place)
    *place = *e;
  c->users_bytes += e->uid ? LOOK_COST + l->bytes : 0;
  c->is_reading[e->uid != 0] = false;
  pthread_mutex_unlock(&c->lock);
}

/* /user.slice/user-1000.slice/…, with "/.." before it out of sight. */
static uint32_t user_of(struct span path) {
  struct cursor s = cursor_begin(path.text, path.len);
  uint32_t uid;

  while (parse_word(&s, "/.."))
    ;
  return parse_word(&s, "/user.slice/user-") && parse_u32(&s, &uid) &&
                 parse_word(&s, ".slice")
             ? uid
             : 0;
}

/* The names of one of the containers. True if they are known. */
static bool find_one(struct container_cache *c, struct span path,
                     const struct cgroup_container *container,
                     struct container_lookup *l, int *ret_rc) {
  struct container_entry *e = &l->found;

  *e = (struct container_entry){.uid = user_of(path)};
  l->root = c->root;
  l->places = &c->places[e->uid != 0];
  l->error = 0;
  strcpy(e->names.name, container->id + container->name_at);
  if (container->has_digits)
    e->names.name[SHORT_LEN] = '\0';
  else if (container->runtime != CGROUP_LXC)
    return true;
  strcpy(e->id, container->id);
  if (!begin(c, e, l->now_ns)) {
    *ret_rc = container_lookup_run(l, path, container->runtime);
    e->checked_ns = l->now_ns;
    end(c, l);
  }
  return e->path[0] || !container->has_digits;
}

int container_names_find(struct container_cache *c, struct span path,
                         const struct cgroup_containers *containers,
                         uint64_t now_ns, struct container_names *ret,
                         const char **ret_file) {
  struct container_lookup l = {.now_ns = now_ns};
  int rc = 0, result = 0;

  for (size_t i = containers->n; i-- > 0; rc = 0) {
    bool is_known = find_one(c, path, &containers->at[i], &l, &rc);

    if (is_known || i == containers->n - 1) {
      *ret = l.found.names;
      *ret_file = l.file;
      result = rc;
    }
    if (is_known)
      return 0;
  }
  return result;
}
