/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/user.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#define HOUR_NS (UINT64_C(3600) * NS)
/* How many names the cache holds at most. */
#define ENTRIES_MAX 4096

static unsigned asked;   /* how often */
static unsigned version; /* of the names */
static uint64_t now_ns;

/* Even uids have a name. */
static int look_up(uint32_t uid, char *ret, size_t size) {
  asked++;
  assert_int_equal(size, USER_NAME_SIZE);
  snprintf(ret, size, "user-%u-%u", uid, version);
  return uid % 2;
}

static void begin(struct user_cache *c) {
  asked = version = 0;
  user_cache_init(c, look_up);
  now_ns = 1000 * HOUR_NS;
}

TEST_OBJECT(struct user_cache, begin, user_cache_done)
#define CACHE_TEST(name) TEST_WITH(name, make, unmake, struct user_cache *c)

/* Holds until the next call. */
static const char *name_of(struct user_cache *c, uint32_t uid) {
  static char name[USER_NAME_SIZE];

  user_cache_name(c, uid, now_ns, name);
  return name;
}

CACHE_TEST(a_uid_without_name_is_written_as_a_number) {
  for (int i = 0; i < 2; i++) {
    assert_string_equal(name_of(c, 1001), "1001");
    assert_string_equal(name_of(c, UINT32_MAX), "4294967295");
  }
  assert_int_equal(asked, 2); /* that there is none is kept too */
}

CACHE_TEST(any_number_of_uids_takes_limited_memory) {
  char want[32];

  for (uint32_t uid = 165536; uid-- > 100000;) {
    snprintf(want, sizeof(want), uid % 2 ? "%u" : "user-%u-0", uid);
    assert_string_equal(name_of(c, uid), want);
    assert_in_range(c->n, 1, ENTRIES_MAX);
    assert_in_range(c->cap, c->n, ENTRIES_MAX);
  }
}

CACHE_TEST(each_user_in_a_full_cache_is_looked_up_once) {
  for (int again = 0; again < 2; again++)
    for (uint32_t uid = 0; uid < ENTRIES_MAX; uid++)
      name_of(c, uid);
  assert_int_equal(asked, ENTRIES_MAX);
  user_cache_done(c);
  assert_null(c->entries);
  assert_int_equal(c->n, 0);
}

TEST(the_system_is_asked_without_another_lookup) {
  static const uint32_t uids[] = {0, 3999999999}; /* the latter has no name */
  struct user_cache c;
  char number[16];

  user_cache_init(&c, NULL);
  for (size_t i = 0; i < LENGTH(uids); i++) {
    const struct passwd *pw = getpwuid(uids[i]);

    snprintf(number, sizeof(number), "%u", uids[i]);
    assert_string_equal(name_of(&c, uids[i]), pw ? pw->pw_name : number);
  }
  user_cache_done(&c);
}

/* Stands for a directory server that answers when the test posts may_answer. */
static sem_t is_asked, may_answer;
static struct user_cache *shared;

static int look_up_slowly(uint32_t uid, char *ret, size_t size) {
  sem_post(&is_asked);
  sem_wait(&may_answer);
  return look_up(uid, ret, size);
}

static void *ask(void *uid) {
  name_of(shared, *(uint32_t *)uid);
  return NULL;
}

CACHE_TEST(only_one_lookup_runs_at_a_time) {
  char name[USER_NAME_SIZE];
  uint32_t uid = 1002;
  pthread_t thread;

  user_cache_name(c, 1000, now_ns, name);
  c->look_up = look_up_slowly;
  shared = c;
  sem_init(&is_asked, 0, 0);
  sem_init(&may_answer, 0, 0);
  version = 1;
  now_ns = 1001 * HOUR_NS;
  assert_int_equal(pthread_create(&thread, NULL, ask, &uid), 0);
  sem_wait(&is_asked);
  /* The old name of one that is known, and the number of any other. */
  user_cache_name(c, 1000, now_ns, name);
  assert_string_equal(name, "user-1000-0");
  user_cache_name(c, 1002, now_ns, name);
  assert_string_equal(name, "1002");
  user_cache_name(c, 1004, now_ns, name);
  assert_string_equal(name, "1004");
  sem_post(&may_answer);
  pthread_join(thread, NULL);
  assert_int_equal(asked, 2);

  c->look_up = look_up;
  assert_string_equal(name_of(c, 1002), "user-1002-1");
  assert_string_equal(name_of(c, 1004), "user-1004-1");
  assert_string_equal(name_of(c, 1000), "user-1000-1");
  assert_int_equal(asked, 4);
}

/* The answer of getpwuid_r(3): a failure, or a user of that name; the system
 * itself where there is neither. */
static int lookup_error;
static const char *lookup_name;
static unsigned system_asked;

int __real_getpwuid_r(uid_t uid, struct passwd *pw, char *buffer, size_t size,
                      struct passwd **ret);
int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buffer, size_t size,
                      struct passwd **ret);
int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buffer, size_t size,
                      struct passwd **ret) {
  system_asked++;
  if (!lookup_error && !lookup_name)
    return __real_getpwuid_r(uid, pw, buffer, size, ret);
  *ret = NULL;
  if (lookup_error)
    return lookup_error;
  snprintf(buffer, size, "%s", lookup_name);
  *pw = (struct passwd){.pw_name = buffer, .pw_uid = uid};
  *ret = pw;
  return 0;
}

/* A user that is not there is kept as a number; one that could not be asked for
 * is asked for again. */
TEST(temporary_failures_differ_from_unknown_users) {
  static const struct {
    int error;
    bool is_passing;
  } cases[] = {
      {EIO, true},    {EMFILE, true}, {ENFILE, true},  {ENOMEM, true},
      {EINTR, true},  {EAGAIN, true}, {ENOENT, false}, {ESRCH, false},
      {EBADF, false}, {EPERM, false}, {ERANGE, false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char name[USER_NAME_SIZE];
    struct user_cache c;

    user_cache_init(&c, NULL);
    lookup_error = cases[i].error;
    system_asked = 0;
    for (int again = 0; again < 2; again++) {
      int r = user_cache_name(&c, 1000, now_ns, name);

      if (r != (cases[i].is_passing ? -EAGAIN : 0))
        fail_msg("%s: %d", strerror(cases[i].error), r);
      if (r == 0)
        assert_string_equal(name, "1000");
    }
    assert_int_equal(system_asked, cases[i].is_passing ? 2 : 1);
    lookup_error = 0;
    user_cache_done(&c);
  }
}

TEST(a_name_that_does_not_fit_is_not_used) {
  char name[USER_NAME_SIZE + 1], got[USER_NAME_SIZE];

  for (size_t len = USER_NAME_SIZE - 1; len <= USER_NAME_SIZE; len++) {
    struct user_cache c;

    memset(name, 'u', len);
    name[len] = '\0';
    user_cache_init(&c, NULL);
    lookup_name = name;
    assert_int_equal(user_cache_name(&c, 1000, now_ns, got), 0);
    lookup_name = NULL;
    assert_string_equal(got, len < USER_NAME_SIZE ? name : "1000");
    user_cache_done(&c);
  }
}
