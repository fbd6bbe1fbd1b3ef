/*
 * User names by uid. A look-up may ask a directory server (NSS), so each answer
 * is kept for an hour; not longer, because systemd hands out and takes back
 * uids (DynamicUser=).
 */
#ifndef SMAPS_USER_H
#define SMAPS_USER_H

#include <stddef.h>
#include <stdint.h>

#define USER_NAME_SIZE 64

struct user_entry {
  uint32_t uid;
  char name[USER_NAME_SIZE];
};

struct user_cache {
  /* Writes the name, with its NUL, and returns 0; -EAGAIN where it cannot be
   * told now, and anything else where the uid has none. */
  int (*look_up)(uint32_t uid, char *ret, size_t size);
  struct user_entry *entries; /* by uid */
  size_t n, cap;
  uint64_t filled_ns;
};

/* look_up NULL asks the system. */
void user_cache_init(struct user_cache *c,
                     int (*look_up)(uint32_t uid, char *ret, size_t size));
void user_cache_done(struct user_cache *c);

/* Forgets all answers when they are an hour old; to be called each cycle. */
void user_cache_expire(struct user_cache *c, uint64_t now_ns);

/*
 * The name, or the uid in decimal where there is none. Holds until the next
 * call. NULL, with errno set, where it cannot be told now.
 */
const char *user_cache_name(struct user_cache *c, uint32_t uid);

#endif
