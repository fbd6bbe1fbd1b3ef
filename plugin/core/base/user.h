/* SPDX-License-Identifier: MIT */
/*
 * User names by uid. A look-up may ask a directory server (NSS), so answers are
 * cached for an hour; not longer, because systemd assigns and reclaims uids
 * (DynamicUser=).
 *
 * The server may answer late or never. So several threads may use the cache,
 * and only one of them asks at a time: meanwhile the others use the names in
 * the cache.
 */
#ifndef SMAPS_USER_H
#define SMAPS_USER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USER_NAME_SIZE 64

struct user_entry {
  uint32_t uid;
  uint64_t asked_ns;
  char name[USER_NAME_SIZE];
};

struct user_cache {
  /* Writes the name with its NUL and returns 0; -EAGAIN if there is no answer
   * now, -ENOENT (or any other error) if the uid has no name. */
  int (*look_up)(uint32_t uid, char *ret, size_t size);
  pthread_mutex_t lock; /* of all below; not held during a look-up */
  bool is_asking;
  struct user_entry *entries;
  size_t n, cap;
};

/* If look_up is NULL, the system is asked. */
void user_cache_init(struct user_cache *c,
                     int (*look_up)(uint32_t uid, char *ret, size_t size));
void user_cache_done(struct user_cache *c);

/*
 * Writes the name, or the uid in decimal if it has no name. While another
 * thread is asking, it writes the old name, or the uid if there is none.
 * Returns 0, or -EAGAIN if there is no answer now.
 */
int user_cache_name(struct user_cache *c, uint32_t uid, uint64_t now_ns,
                    char ret[USER_NAME_SIZE]);

#endif
