/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <smaps/store.h>

#include "proctree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* 2026-11-21 13:45:01 UTC */
#define WHEN_NS (UINT64_C(1795268701) * 1000000000)
#define WHEN "20261121T134501Z"
#define SECOND_NS UINT64_C(1000000000)

/* --- calls that fail, and whose the files are ------------------------------*/

static struct {
  bool writes_nothing;     /* and gives no reason */
  unsigned interrupted;    /* so many writes are */
  bool close_fails;        /* of what can be written to */
  bool makes_no_directory; /* as an automounter, before it has mounted it */
  bool has_owner, has_euid;
  uid_t owner, euid;
} fake;

WRAPPED(ssize_t, write, int fd, const void *text, size_t len);
ssize_t __wrap_write(int fd, const void *text, size_t len) {
  if (fake.writes_nothing)
    return 0;
  if (fake.interrupted > 0) {
    fake.interrupted--;
    errno = EINTR;
    return -1;
  }
  return __real_write(fd, text, len);
}

WRAPPED(int, close, int fd);
int __wrap_close(int fd) {
  bool fails = fake.close_fails && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
  int r = __real_close(fd);

  if (!fails)
    return r;
  errno = EDQUOT;
  return -1;
}

WRAPPED(int, fstat, int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st) {
  int r = __real_fstat(fd, st);

  if (fake.has_owner)
    st->st_uid = fake.owner;
  return r;
}

WRAPPED(int, mkdir, const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode) {
  if (!fake.makes_no_directory)
    return __real_mkdir(path, mode);
  errno = EACCES;
  return -1;
}

WRAPPED(uid_t, geteuid, void);
uid_t __wrap_geteuid(void) {
  return fake.has_euid ? fake.euid : __real_geteuid();
}

/* --- a place ---------------------------------------------------------------*/

/* A directory of our own, with the store's in it, which is not there yet. */
struct place {
  struct proctree tree;
  char directory[PATH_MAX];
  char path[2 * PATH_MAX]; /* scratch, and what store_add() has given */
  struct store store;
};

static int make(void **state) {
  static struct place p;

  memset(&fake, 0, sizeof(fake));
  proctree_make(&p.tree);
  snprintf(p.directory, sizeof(p.directory), "%s/captures", p.tree.root);
  p.store = (struct store){
      .directory = p.directory, .max_files = 10, .max_bytes = 1000};
  umask(022);
  *state = &p;
  return 0;
}

static int unmake(void **state) {
  struct place *p = *state;

  memset(&fake, 0, sizeof(fake));
  umask(022);
  chmod(p->directory, 0700);
  proctree_remove(&p->tree);
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct place *p)

/* Returns the path of a file in the tree. */
static const char *at(struct place *p, const char *name) {
  snprintf(p->path, sizeof(p->path), "%s/%s", p->tree.root, name);
  return p->path;
}

static void queue_document(struct place *p, const char *name,
                           const char *text) {
  proctree_write(&p->tree, name, text, strlen(text));
}

static bool exists(struct place *p, const char *name) {
  struct stat st;

  return lstat(at(p, name), &st) == 0;
}

static void assert_file(struct place *p, const char *name, const char *text) {
  char read_back[200];
  FILE *file = fopen(at(p, name), "r");
  size_t len;

  if (!file)
    fail_msg("there is no %s", name);
  len = fread(read_back, 1, sizeof(read_back) - 1, file);
  fclose(file);
  read_back[len] = '\0';
  assert_string_equal(read_back, text);
}

static unsigned mode_of(struct place *p, const char *name) {
  struct stat st;

  assert_int_equal(lstat(at(p, name), &st), 0);
  return st.st_mode & 07777;
}

/* How many names there are, those that begin with a dot included. */
static unsigned names_in(const char *directory) {
  DIR *dir = opendir(directory);
  unsigned n = 0;

  assert_non_null(dir);
  while (readdir(dir))
    n++;
  closedir(dir);
  return n - 2;
}

static int add_at(struct place *p, const char *subject, uint64_t when_ns,
                  const char *text) {
  return store_add(&p->store, subject, when_ns, text, strlen(text), p->path,
                   sizeof(p->path));
}

static int add(struct place *p, const char *subject) {
  return add_at(p, subject, WHEN_NS, "text");
}

static void link_to(struct place *p, const char *target, const char *name) {
  char whole[PATH_MAX];

  snprintf(whole, sizeof(whole), "%s/%s", p->tree.root, target);
  assert_int_equal(symlink(whole, at(p, name)), 0);
}

/* --- replacing -------------------------------------------------------------*/

static int replace(struct place *p, const char *name, const char *text) {
  char path[2 * PATH_MAX];

  snprintf(path, sizeof(path), "%s", at(p, name));
  return store_replace(path, text, strlen(text));
}

FIXTURE_TEST(mode_is_the_same_under_any_umask) {
  static const mode_t masks[] = {0377, 0, 022, 077};

  for (size_t i = 0; i < LENGTH(masks); i++) {
    umask(masks[i]);
    assert_int_equal(replace(p, "state", "x"), 0);
    assert_int_equal(mode_of(p, "state"), 0640);
    proctree_unlink(&p->tree, "captures");
    assert_int_equal(add(p, "web"), 0);
    assert_int_equal(mode_of(p, "captures"), 0750);
    assert_int_equal(mode_of(p, "captures/smaps-" WHEN "-web.json"), 0640);
  }
}

/* A link in the place of the file, a link and a hard link in that of the file
 * that is written first, and what an interrupted writer has left there. */
FIXTURE_TEST(existing_file_in_the_way_is_not_written_to) {
  char victim[PATH_MAX];

  queue_document(p, "victim", "precious");
  link_to(p, "victim", "state");
  link_to(p, "victim", "state.unfinished");
  assert_int_equal(replace(p, "state", "one"), 0);
  assert_file(p, "state", "one");
  snprintf(victim, sizeof(victim), "%s/victim", p->tree.root);
  assert_int_equal(link(victim, at(p, "state.unfinished")), 0);
  assert_int_equal(replace(p, "state", "two"), 0);
  assert_file(p, "victim", "precious");
  assert_file(p, "state", "two");
  queue_document(p, "state.unfinished", "much longer than what comes");
  assert_int_equal(replace(p, "state", "three"), 0);
  assert_file(p, "state", "three");
  assert_false(exists(p, "state.unfinished"));
}

FIXTURE_TEST(a_directory_in_the_way_is_an_error) {
  queue_document(p, "state.unfinished/x", "");
  assert_true(replace(p, "state", "x") < 0);
  assert_false(exists(p, "state"));
  queue_document(p, "other/x", "");
  assert_int_equal(replace(p, "other", "x"), -EISDIR);
  assert_false(exists(p, "other.unfinished"));
}

FIXTURE_TEST(a_write_that_is_interrupted_goes_on) {
  fake.interrupted = 3;
  assert_int_equal(replace(p, "state", "new"), 0);
  assert_int_equal(fake.interrupted, 0);
  assert_file(p, "state", "new");
}

/* A write of no byte is not tried for ever. NFS says by close() that a quota
 * was exceeded. The error is the first one. */
FIXTURE_TEST(a_file_that_cannot_be_written_or_closed_is_removed) {
  static const struct {
    bool writes_nothing, close_fails;
    int error;
  } cases[] = {{true, false, -EIO}, {false, true, -EDQUOT}, {true, true, -EIO}};

  queue_document(p, "state", "old");
  alarm(20); /* for where it loops */
  for (size_t i = 0; i < LENGTH(cases); i++) {
    fake.writes_nothing = cases[i].writes_nothing;
    fake.close_fails = cases[i].close_fails;
    assert_int_equal(replace(p, "state", "new"), cases[i].error);
    memset(&fake, 0, sizeof(fake));
    assert_file(p, "state", "old");
    assert_false(exists(p, "state.unfinished"));
  }
  alarm(0);
}

/* --- the directory ---------------------------------------------------------*/

FIXTURE_TEST(directory_is_made_and_file_is_called_by_time_and_subject) {
  char expected[PATH_MAX];

  assert_int_equal(add(p, "web"), 0);
  snprintf(expected, sizeof(expected), "%s/captures/smaps-" WHEN "-web.json",
           p->tree.root);
  assert_string_equal(p->path, expected);
  assert_file(p, "captures/smaps-" WHEN "-web.json", "text");
  assert_int_equal(names_in(p->directory), 1);

  assert_int_equal(add_at(p, "../../x", SECOND_NS, "x"), 0);
  assert_file(p, "captures/smaps-19700101T000001Z-.._.._x.json", "x");
}

FIXTURE_TEST(a_directory_that_is_there_is_not_made) {
  assert_int_equal(add(p, "web"), 0);
  fake.makes_no_directory = true;
  assert_int_equal(add(p, "web"), 0);
}

FIXTURE_TEST(a_file_with_the_path_of_the_directory_is_refused) {
  int r;

  queue_document(p, "captures", "a file");
  assert_int_equal(add(p, "web"), -ENOTDIR);
  proctree_unlink(&p->tree, "captures");
  queue_document(p, "elsewhere/x", "");
  link_to(p, "elsewhere", "captures");
  r = add(p, "web");
  assert_true(r == -ELOOP || r == -ENOTDIR);
  proctree_unlink(&p->tree, "elsewhere");
  r = add(p, "web");
  assert_true(r == -ELOOP || r == -ENOTDIR);
  assert_false(exists(p, "elsewhere"));
}

FIXTURE_TEST(a_directory_is_ours_or_of_root) {
  static const struct {
    uid_t euid, owner;
    int r;
  } cases[] = {{0, 0, 0},
               {0, 1000, -EPERM},
               {1000, 1000, 0},
               {1000, 0, 0},
               {1000, 1001, -EPERM}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    fake.has_euid = fake.has_owner = true;
    fake.euid = cases[i].euid;
    fake.owner = cases[i].owner;
    if (add(p, "web") != cases[i].r)
      fail_msg("%u is let into what is of %u, or is not", (unsigned)fake.euid,
               (unsigned)fake.owner);
  }
}

/* --- names -----------------------------------------------------------------*/

FIXTURE_TEST(a_file_of_the_same_second_is_replaced) {
  queue_document(p, "victim", "precious");
  queue_document(p, "captures/x", "");
  link_to(p, "victim", "captures/smaps-" WHEN "-web.json");
  link_to(p, "victim", "captures/.smaps-unfinished");
  assert_int_equal(add(p, "web"), 0);
  assert_int_equal(add_at(p, "web", WHEN_NS, "newer"), 0);
  assert_file(p, "victim", "precious");
  assert_file(p, "captures/smaps-" WHEN "-web.json", "newer");
}

FIXTURE_TEST(leftovers_of_an_interrupted_writer_go) {
  queue_document(p, "captures/.smaps-unfinished", "half a document");
  assert_int_equal(add(p, "web"), 0);
  assert_int_equal(names_in(p->directory), 1);
}

/* --- limits ----------------------------------------------------------------*/

/* They would be the newest for as long as the clock has not caught up. */
FIXTURE_TEST(files_of_a_clock_that_was_ahead_go_first) {
  queue_document(p, "captures/smaps-20300101T000000Z-x.json", "");
  queue_document(p, "captures/smaps-20310101T000000Z-x.json", "");
  queue_document(p, "captures/smaps-20261122T134500Z-x.json", "");
  p->store.max_files = 4;
  for (uint64_t i = 0; i < 4; i++)
    assert_int_equal(add_at(p, "a", WHEN_NS + i * SECOND_NS, "x"), 0);
  assert_int_equal(names_in(p->directory), 4);
  assert_true(exists(p, "captures/smaps-20261121T134502Z-a.json"));
  /* By less than a day: that may as well be set right. */
  assert_true(exists(p, "captures/smaps-20261122T134500Z-x.json"));
}

FIXTURE_TEST(as_many_old_files_go_as_the_bytes_need) {
  char text[101];

  memset(text, 'x', sizeof(text));
  text[100] = '\0';
  p->store.max_bytes = 450;
  for (uint64_t i = 0; i < 4; i++)
    assert_int_equal(add_at(p, "a", WHEN_NS + i * SECOND_NS, text), 0);
  assert_int_equal(names_in(p->directory), 4);
  text[50] = '\0'; /* fits to the byte */
  assert_int_equal(add_at(p, "a", WHEN_NS + 4 * SECOND_NS, text), 0);
  assert_int_equal(names_in(p->directory), 5);
  text[1] = '\0';
  assert_int_equal(add_at(p, "a", WHEN_NS + 5 * SECOND_NS, text), 0);
  assert_int_equal(names_in(p->directory), 5);
  assert_false(exists(p, "captures/smaps-20261121T134501Z-a.json"));
  assert_true(exists(p, "captures/smaps-20261121T134502Z-a.json"));
}

FIXTURE_TEST(a_file_that_is_too_large_does_not_remove_others) {
  p->store.max_bytes = 10;
  assert_int_equal(add_at(p, "a", WHEN_NS, "1234567890"), 0);
  assert_int_equal(add_at(p, "b", WHEN_NS, "12345678901"), -EFBIG);
  assert_int_equal(names_in(p->directory), 1);
  assert_true(exists(p, "captures/smaps-" WHEN "-a.json"));
}

/* --- histories -------------------------------------------------------------*/

#define STEP_S 300
#define HOUR_S 3600

/* Adds a state in each step. */
static void add_history(struct place *p, uint64_t begin_s, uint64_t end_s,
                        const char *text) {
  p->store.step_s = STEP_S;
  for (uint64_t t = begin_s; t <= end_s; t += STEP_S)
    assert_int_equal(add_at(p, "state", t * SECOND_NS, text), 0);
}

static bool has_state(struct place *p, uint64_t seconds) {
  char name[128], when[32];
  time_t time = (time_t)seconds;

  strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime(&time));
  snprintf(name, sizeof(name), "captures/smaps-%s-state.json", when);
  return exists(p, name);
}

FIXTURE_TEST(a_step_has_one_state_whoever_has_added_it) {
  p->store.step_s = STEP_S;
  assert_int_equal(add_at(p, "state", 1201 * SECOND_NS, "x"), 0);
  assert_int_equal(add_at(p, "state", 1499 * SECOND_NS, "y"), -EEXIST);
  assert_int_equal(add_at(p, "state", 1199 * SECOND_NS, "y"), 0);
  assert_int_equal(add_at(p, "state", 1500 * SECOND_NS, "y"), 0);
  assert_file(p, "captures/smaps-19700101T002001Z-state.json", "x");
  assert_int_equal(names_in(p->directory), 3);
}

/* The ages in minutes, of a simulation in Python that knows nothing of files:
 * it drops the state with the smallest gap between its neighbours, divided by
 * its age, whenever there are more than 24, and after a day the oldest. */
FIXTURE_TEST(old_states_become_sparse_and_reach_over_a_day) {
  static const unsigned ages[] = {0,   5,   10,  15,  20,  25,  30,   35,
                                  45,  55,  75,  95,  115, 155, 195,  235,
                                  315, 395, 475, 555, 715, 875, 1035, 1355};
  uint64_t end_s = 60 * HOUR_S;

  p->store.max_files = LENGTH(ages);
  add_history(p, STEP_S, end_s, "x");
  assert_int_equal(names_in(p->directory), LENGTH(ages));
  for (size_t i = 0; i < LENGTH(ages); i++)
    if (!has_state(p, end_s - 60 * ages[i]))
      fail_msg("the state of %u minutes ago is missing", ages[i]);
}

/* Five states have room: the day is kept all the same. */
FIXTURE_TEST(states_become_sparser_where_bytes_are_short) {
  static const unsigned ages[] = {0, 10, 40, 255, 1040};

  p->store.max_files = 60;
  p->store.max_bytes = 20;
  add_history(p, STEP_S, 60 * HOUR_S, "1234");
  for (size_t i = 0; i < LENGTH(ages); i++)
    assert_true(has_state(p, 60 * HOUR_S - 60 * ages[i]));
  /* This one needs all the room. */
  assert_int_equal(
      add_at(p, "state", 61 * HOUR_S * SECOND_NS, "12345678901234567890"), 0);
  assert_int_equal(names_in(p->directory), 1);
}

/* Of the version that kept the first state of each hour: all of the last day
 * stay as long as they have room, and those before make it. */
FIXTURE_TEST(states_of_each_hour_stay_beside_newer_ones) {
  p->store.max_files = 60;
  for (uint64_t hour = 1; hour <= 30; hour++)
    assert_int_equal(add_at(p, "state", hour * HOUR_S * SECOND_NS, "x"), 0);
  add_history(p, 30 * HOUR_S + STEP_S, 33 * HOUR_S, "x");
  assert_int_equal(names_in(p->directory), 60);
  assert_false(has_state(p, 6 * HOUR_S));
  for (uint64_t hour = 9; hour <= 33; hour++)
    assert_true(has_state(p, hour * HOUR_S));
}

/* After a weekend the states of before are needed, until newer ones are. */
FIXTURE_TEST(states_of_before_a_pause_go_last_week_first) {
  p->store.max_files = 10;
  add_history(p, STEP_S, 10 * STEP_S, "x");
  add_history(p, 80 * HOUR_S, 80 * HOUR_S + 2 * STEP_S, "x");
  assert_false(has_state(p, 3 * STEP_S));
  assert_true(has_state(p, 4 * STEP_S));
  assert_true(has_state(p, 80 * HOUR_S));
}

FIXTURE_TEST(names_have_their_time) {
  uint64_t seconds = 7;

  assert_true(store_parse_name("smaps-" WHEN "-a-b.json", &seconds));
  assert_int_equal(seconds, WHEN_NS / SECOND_NS);
  assert_false(store_parse_name("smaps-20261321T134501Z-a.json", &seconds));
  assert_false(store_parse_name("smaps-" WHEN ".json", &seconds));
  assert_int_equal(seconds, WHEN_NS / SECOND_NS);
}

FIXTURE_TEST(foreign_files_stay_and_are_not_counted) {
  static const char *const names[] = {
      "captures/smaps-20200101T000000Z-a.json.gz",
      "captures/smaps-20200101T000000Z.json",
      "captures/smaps-20200101T000000Z-.json",
      "captures/smaps-20200101T00000Z-a.json",
      "captures/smaps-2020010dT000000Z-a.json",
      "captures/smaps-20200101T000000z-a.json",
      "captures/smapz-20200101T000000Z-a.json",
      /* This is a directory with a file in it. */
      "captures/smaps-20200101T000000Z-a.json/smaps-20200101T000000Z-a.json",
  };
  const size_t n = LENGTH(names);

  for (size_t i = 0; i < n; i++)
    queue_document(p, names[i], "0123456789");
  queue_document(p, "victim", "0123456789");
  link_to(p, "victim", "captures/smaps-20200101T000000Z-b.json");
  p->store.max_files = 1;
  p->store.max_bytes = 10;
  assert_int_equal(add_at(p, "a", WHEN_NS, "0123456789"), 0);
  assert_int_equal(add_at(p, "b", WHEN_NS, "0123456789"), 0);
  for (size_t i = 0; i < n; i++)
    if (!exists(p, names[i]))
      fail_msg("%s is gone", names[i]);
  assert_true(exists(p, "captures/smaps-20200101T000000Z-b.json"));
  assert_int_equal(names_in(p->directory), n + 2);
}
