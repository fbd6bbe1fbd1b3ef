/*
 * User names by uid. A look-up may ask a directory server (NSS), so each answer
 * is kept for an hour; not longer, because systemd hands out and takes back
 * uids (DynamicUser=).
 *
 * The server may be long in answering, or never answer. So the cache may be
 * used by several threads, and only one of them asks at a time: for as long as
 * that one waits the others make do with what is known.
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
  bool is_old; /* to be asked for again */
  char name[USER_NAME_SIZE];
};

struct user_cache {
  /* Writes the name, with its NUL, and returns 0; -EAGAIN where it cannot be
   * told now, and anything else where the uid has none. */
  int (*look_up)(uint32_t uid, char *ret, size_t size);
  pthread_mutex_t lock; /* of all below; never held while asking */
  bool is_asking;
  struct user_entry *entries; /* by uid */
  size_t n, cap;
  uint64_t filled_ns;
};

/* look_up NULL asks the system. */
void user_cache_init(struct user_cache *c,
                     int (*look_up)(uint32_t uid, char *ret, size_t size));
void user_cache_done(struct user_cache *c);

/* Has all answers asked for again when they are an hour old; to be called each
 * cycle. */
void user_cache_expire(struct user_cache *c, uint64_t now_ns);

/*
 * The name, or the uid in decimal where there is none. Where another thread is
 * waiting for an answer, it is the old name, or the uid if there was none.
 * Returns 0, or -EAGAIN where it cannot be told now.
 */
int user_cache_name(struct user_cache *c, uint32_t uid,
                    char ret[USER_NAME_SIZE]);

#endif
