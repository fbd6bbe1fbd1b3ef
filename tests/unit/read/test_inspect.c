/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "read/inspect.h"

#include "proctree.h"

#define NOW (1000 * NS)
#define KTHREAD 0x00200000
#define ALL ((1U << ATTRIBUTES) - 1)

struct fixture {
  struct proctree tree;
  struct user_cache users;
  struct container_cache containers;
  struct inspect_ctx inspect;
  struct proc_ref p; /* pid 16, whose names last a whole minute */
};

/* uid 7 is "seven"; no other has a name. */
static int look_up_user(uint32_t uid, char *ret, size_t size) {
  return uid == 7 && snprintf(ret, size, "seven") > 0 ? 0 : -1;
}

static struct fake process(void) {
  return (struct fake){.pid = 16,
                       .ppid = 1,
                       .comm = "server",
                       .starttime = 100,
                       .start_stack = 0x7ff000000000,
                       .exe = "/usr/bin/server",
                       .cmdline = "server -v",
                       .cgroup = "/system.slice/server.service",
                       .uid = 7,
                       .text = 20,
                       .private_kb = 400,
                       .shared_kb = 80};
}

static void put(const struct fixture *f, struct fake fake) {
  proctree_put(&f->tree, &fake);
}

static void begin(struct fixture *f) {
  *f = (struct fixture){.p = {.pid = 16}};
  proctree_make(&f->tree);
  put(f, process());
  user_cache_init(&f->users, look_up_user);
  container_cache_init(&f->containers, f->tree.root);
  f->inspect = (struct inspect_ctx){
      .users = &f->users, .containers = &f->containers, .attributes = ALL};
  assert_int_equal(procfs_new(f->tree.root, &f->inspect.procfs), 0);
}

static void done(struct fixture *f) {
  attributes_done(&f->p.attributes);
  user_cache_done(&f->users);
  container_cache_done(&f->containers);
  procfs_free(f->inspect.procfs);
  proctree_remove(&f->tree);
}

TEST_OBJECT(struct fixture, begin, done)
#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* Looks, and sees to it that what was known stays as it is, whatever is seen.
 */
static int look(struct fixture *f, uint64_t now_ns, struct inspection *seen) {
  struct proc_ref before;
  int r;

  memcpy(&before, &f->p, sizeof(before));
  f->inspect.now_ns = now_ns;
  r = inspect_process(&f->inspect, &f->p, seen);
  assert_memory_equal(&before, &f->p, sizeof(before));
  return r;
}

/* Looks at what it has become. */
static void see(struct fixture *f, const struct fake *fake, uint64_t now_ns,
                struct inspection *seen) {
  proctree_put(&f->tree, fake);
  assert_int_equal(look(f, now_ns, seen), 0);
}

/* Inspects the process for the first time, and takes the result over. */
static void get_to_know(struct fixture *f) {
  struct inspection seen;

  assert_int_equal(look(f, NOW, &seen), 0);
  assert_true(seen.has_changed);
  f->p.starttime_ticks = seen.stat.starttime_ticks;
  f->p.image = seen.image;
  f->p.attributes = seen.attributes;
  f->p.identified_ns = NOW;
  f->p.is_settled = true;
}

static void expect(const struct inspection *seen, enum attribute a,
                   const char *wanted) {
  const char *got = attributes_get(&seen->attributes).value[a];

  assert_string_equal(got ? got : "(none)", wanted ? wanted : "(none)");
}

/* Asserts all attributes, in their order and separated by blanks; "-" is none.
 */
static void expect_all(const struct inspection *seen, const char *wanted) {
  char all[256] = "";

  for (int a = 0; a < ATTRIBUTES; a++) {
    const char *got = attributes_get(&seen->attributes).value[a];

    snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
             a > 0 ? " " : "", got ? got : "-");
  }
  assert_string_equal(all, wanted);
}

#define ALL_NAMES                                                              \
  "server server -v /usr/bin/server seven /system.slice/server.service "       \
  "server.service system.slice - - - -"
#define COMM_ALONE "server - - - - - - - - - -"

FIXTURE_TEST(first_inspection_reads_everything) {
  struct inspection seen;

  assert_int_equal(look(f, NOW, &seen), 0);
  assert_int_equal(seen.stat.ppid, 1);
  assert_int_equal(seen.stat.starttime_ticks, 100);
  assert_int_equal(seen.statm.text_pages, 20);
  assert_true(seen.has_names && seen.has_changed);
  expect_all(&seen, ALL_NAMES);
  assert_int_equal(seen.attributes.uid, 7);
  inspection_done(&seen);
  assert_null(seen.attributes.block);
}

/* The kernel shows longer names for its own threads; and what comes of a file
 * that has been unlinked since. */
FIXTURE_TEST(names_are_cut_and_cleaned) {
  static const struct {
    const char *comm, *exe, *wanted_comm, *wanted_exe;
  } cases[] = {
      {"fifteen-letters", "/bin/x", "fifteen-letters", "/bin/x"},
      {"sixteen-letters!", "/bin/x (deleted)", "sixteen-letters", "/bin/x"},
      {"kworker/u16:3-events_unbound", NULL, "kworker/u16:3-e", NULL},
      {"a) b (c", "/x (deleted) (deleted)", "a) b (c", "/x (deleted)"},
      {"", "/bin/(deleted)", "", "/bin/(deleted)"},
      {"x", " (deleted)", "x", " (deleted)"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct fake fake = process();
    struct inspection seen;

    fake.comm = cases[i].comm;
    fake.exe = cases[i].exe;
    fake.cmdline = NULL;
    see(f, &fake, NOW, &seen);
    expect(&seen, ATTRIBUTE_COMM, cases[i].wanted_comm);
    expect(&seen, ATTRIBUTE_EXECUTABLE, cases[i].wanted_exe);
    /* Comm stands in where there is none. */
    expect(&seen, ATTRIBUTE_COMMAND_LINE, cases[i].wanted_comm);
    inspection_done(&seen);
  }
}

FIXTURE_TEST(dead_main_thread_is_seen_through_a_live_one) {
  struct fake leader = process(), dead = process(), live = process();
  struct inspection seen;

  leader.state = dead.state = 'Z';
  leader.threads = dead.threads = live.threads = 3;
  leader.cmdline = leader.exe = NULL;
  put(f, leader);
  proctree_put_thread(&f->tree, 16, &dead);
  assert_int_equal(look(f, NOW, &seen), PROCFS_GONE);
  assert_string_equal(seen.file, "task");
  live.pid = 18;
  proctree_put_thread(&f->tree, 16, &live);
  assert_int_equal(look(f, NOW, &seen), 0);
  assert_int_equal(seen.state, PROCESS_ALIVE);
  assert_int_equal(seen.statm.text_pages, 20);
  expect_all(&seen, ALL_NAMES);
  inspection_done(&seen);
}

/* The state of a known process when it is inspected, and the part of it that is
 * read: the command line can hang, the user cannot. */
FIXTURE_TEST(names_are_read_when_they_can_have_changed) {
  static const struct {
    const char *name;
    unsigned age_s;
    bool is_settled, is_hidden, is_in_rules; /* the command line is */
    bool has_moved, is_renamed, is_another;
    bool has_names, has_command_line; /* are read */
  } cases[] = {
      {"settled, young", 59, .is_settled = true},
      {"not settled", 0, .has_names = true, .has_command_line = true},
      {"old", 60, .is_settled = true, .has_names = true},
      /* There an exec can go unseen. */
      {"old, hidden", 60, .is_settled = true, .is_hidden = true,
       .has_names = true, .has_command_line = true},
      /* And there the title is of interest. */
      {"young, in rules", 59, .is_settled = true, .is_in_rules = true},
      {"old, in rules", 60, .is_settled = true, .is_in_rules = true,
       .has_names = true, .has_command_line = true},
      {"exec", 0, .is_settled = true, .has_moved = true, .has_names = true,
       .has_command_line = true},
      {"new name", 0, .is_settled = true, .is_renamed = true, .has_names = true,
       .has_command_line = true},
      {"another process", 0, .is_settled = true, .is_another = true,
       .has_names = true, .has_command_line = true},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct fake fake = process();
    struct inspection seen;
    uint64_t now_ns = NOW + cases[i].age_s * NS;

    f->inspect.rule_attributes =
        cases[i].is_in_rules ? 1U << ATTRIBUTE_COMMAND_LINE : 0;
    fake.start_stack = cases[i].is_hidden ? 0 : fake.start_stack;
    put(f, fake);
    attributes_done(&f->p.attributes);
    f->p = (struct proc_ref){.pid = 16};
    get_to_know(f);
    f->p.is_settled = cases[i].is_settled;
    fake.comm = cases[i].is_renamed ? "worker" : fake.comm;
    fake.start_stack += cases[i].has_moved ? 4096 : 0;
    fake.starttime += cases[i].is_another;
    fake.cmdline = "server: worker";
    fake.uid = 33;
    see(f, &fake, now_ns, &seen);
    if (seen.has_names != cases[i].has_names ||
        seen.has_changed != cases[i].has_names)
      fail_msg("%s: names are %sread", cases[i].name,
               seen.has_names ? "" : "not ");
    if (cases[i].has_names) {
      expect(&seen, ATTRIBUTE_USER, "33");
      expect(&seen, ATTRIBUTE_COMMAND_LINE,
             cases[i].has_command_line ? "server: worker" : "server -v");
      expect(&seen, ATTRIBUTE_EXECUTABLE, "/usr/bin/server");
    }
    inspection_done(&seen);
  }
}

FIXTURE_TEST(names_that_are_the_same_are_not_handed_over) {
  struct inspection seen;

  get_to_know(f);
  f->p.is_settled = false;
  assert_int_equal(look(f, NOW, &seen), 0);
  assert_true(seen.has_names);
  assert_false(seen.has_changed);
  assert_null(seen.attributes.block);
}

/* To read it may hang, or wake memory that has gone to swap. */
FIXTURE_TEST(attributes_that_no_rule_asks_for_are_not_read) {
  struct inspection seen;

  /* A command line of nothing but ends is none; without a uid there is no
   * user. */
  proctree_write(&f->tree, "16/cmdline", "\0\0\0", 3);
  proctree_write(&f->tree, "16/status", "Name:\tserver\n", 13);
  assert_int_equal(look(f, NOW, &seen), 0);
  expect(&seen, ATTRIBUTE_COMMAND_LINE, "server");
  expect(&seen, ATTRIBUTE_USER, NULL);
  inspection_done(&seen);
  proctree_unlink(&f->tree, "16/cmdline");
  proctree_unlink(&f->tree, "16/status");
  proctree_unlink(&f->tree, "16/cgroup");
  f->inspect.attributes = 1U << ATTRIBUTE_EXECUTABLE;
  assert_int_equal(look(f, NOW, &seen), 0);
  expect_all(&seen, "server - /usr/bin/server - - - - - - - -");
  inspection_done(&seen);
  f->inspect.attributes = 0;
  assert_int_equal(look(f, NOW, &seen), 0);
  expect_all(&seen, COMM_ALONE);
  inspection_done(&seen);
}

FIXTURE_TEST(failure_is_reported_with_the_file) {
  static const struct {
    const char *path, *text; /* NULL: it is not there */
    int r;
    const char *file;
    enum process_state state;
  } cases[] = {
      {"16", NULL, PROCFS_GONE, "stat", PROCESS_UNSEEN},
      {"16/stat", NULL, PROCFS_GONE, "stat", PROCESS_UNSEEN},
      {"16/stat", "16 (server S 1\n", -EBADMSG, "stat", PROCESS_UNSEEN},
      {"16/statm", NULL, PROCFS_GONE, "statm", PROCESS_ALIVE},
      {"16/statm", "1 2\n", -EBADMSG, "statm", PROCESS_ALIVE},
      /* The process is about to end: it is not a zombie yet, and has no memory
       * any more. */
      {"16/statm", "0 0 0 0 0 0 0\n", PROCFS_GONE, "statm", PROCESS_ALIVE},
      {"16/status", "Uid:\tx\n", -EBADMSG, "names", PROCESS_ALIVE},
      {"16/status", NULL, PROCFS_GONE, "names", PROCESS_ALIVE},
      {"16/cmdline", NULL, PROCFS_GONE, "names", PROCESS_ALIVE},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct inspection seen;

    put(f, process());
    if (cases[i].text)
      proctree_write(&f->tree, cases[i].path, cases[i].text,
                     strlen(cases[i].text));
    else
      proctree_unlink(&f->tree, cases[i].path);
    assert_int_equal(look(f, NOW, &seen), cases[i].r);
    assert_string_equal(seen.file, cases[i].file);
    assert_int_equal(seen.state, cases[i].state);
    assert_false(seen.has_names || seen.has_changed);
    inspection_done(&seen);
  }
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LINKS "var/log/containers/"

/* Its names are known as soon as any of them is wanted. */
FIXTURE_TEST(names_of_a_container_are_looked_up) {
  static const enum attribute names[] = {ATTRIBUTE_CONTAINER_NAME,
                                         ATTRIBUTE_POD, ATTRIBUTE_NAMESPACE};
  struct fake fake = process();

  fake.cgroup = "/kubepods/burstable/podu/" ID;
  put(f, fake);
  proctree_write(&f->tree, LINKS "web-0_prod_nginx-" ID ".log", "", 0);
  for (size_t i = 0; i < LENGTH(names); i++) {
    struct inspection seen;

    f->inspect.attributes = 1U << names[i];
    assert_int_equal(look(f, NOW, &seen), 0);
    expect(&seen, ATTRIBUTE_CONTAINER, ID);
    expect(&seen, ATTRIBUTE_CONTAINER_NAME, "nginx");
    expect(&seen, ATTRIBUTE_POD, "web-0");
    expect(&seen, ATTRIBUTE_NAMESPACE, "prod");
    assert_int_equal(seen.container_error, 0);
    inspection_done(&seen);
  }
}

FIXTURE_TEST(unreadable_name_of_a_container_is_reported) {
  struct fake fake = process();
  struct inspection seen;

  fake.cgroup = "/system.slice/docker-" ID ".scope";
  put(f, fake);
  proctree_write(&f->tree, "var/lib/docker/containers/" ID "/config.v2.json",
                 "{", 1);
  assert_int_equal(look(f, NOW, &seen), 0);
  expect(&seen, ATTRIBUTE_CONTAINER_NAME, "0123456789ab");
  assert_int_equal(seen.container_error, 0); /* no rule asks */
  inspection_done(&seen);
  f->inspect.rule_attributes = 1U << ATTRIBUTE_POD;
  assert_int_equal(look(f, NOW + 1, &seen), 0);
  assert_int_equal(seen.container_error, -EBADMSG);
  assert_string_equal(seen.container_file, "config.v2.json");
  inspection_done(&seen);
}
