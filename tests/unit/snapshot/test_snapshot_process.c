/* The processes of documents. */
#include "test.h"

#include <string.h>
#include <unistd.h>

#include "documented.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, documented_setup, documented_teardown, struct world *w)

static uint64_t page_size(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

WORLD_TEST(a_process_that_was_read_has_all_of_it) {
  struct fake f = fake_member(10, "g");
  parsed p;

  f.exe = "/usr/bin/g";
  f.cmdline = "g -v \xff";
  f.uid = 7;
  f.cgroup = "/system.slice/g.service";
  world_put(w, f);
  world_put(w, (struct fake){.pid = 1, .comm = "init", .starttime = 1});
  add_group(w, "g");
  p = of(next_state(w), 10);
  assert_string_equal(
      parsed_keys(p, ""),
      "pid starttime ppid comm command_line exe user cgroup unit slice uid "
      "groups rule also threads source read_cost usage ");
  parsed_assert(p, "starttime=110 ppid=1 comm=g");
  assert_string_equal(parsed_string(p, "command_line"), "g -v \\xff");
  parsed_assert(
      p, "exe=/usr/bin/g user=seven uid=7 cgroup=/system.slice/g.service "
         "unit=g.service slice=system.slice");
  assert_int_equal(parsed_count(p, "groups"), 1);
  parsed_assert(p, "groups.0=g rule=0");
  assert_int_equal(parsed_count(p, "also"), 0);
  parsed_assert(p, "threads=2 source=read");
  assert_true(parsed_decimal(p, "read_cost") > 0);
  assert_lacks(of(document, 1), "ppid");
  parsed_assert(p, "usage.pss=7m usage.pss_anon=6m usage.uss=6m");
  assert_int_equal(parsed_integer(p, "usage.size"), 10000 * page_size());
}

WORLD_TEST(groups_are_the_sums_of_their_processes) {
  static const char *const keys[] = {"usage.pss", "usage.uss", "usage.rss",
                                     "usage.swap", "usage.resident"};
  parsed d;

  for (uint32_t pid = 10; pid < 20; pid++) {
    struct fake f = fake_member(pid, "g");

    f.private_kb += pid * 4;
    f.swap_kb = pid;
    world_put(w, f);
  }
  add_group(w, "g");
  d = next_state(w);
  for (size_t i = 0; i < LENGTH(keys); i++) {
    uint64_t sum = 0;

    for (uint64_t pid = 10; pid < 20; pid++)
      sum += parsed_integer(of(d, pid), keys[i]);
    assert_int_equal(sum, parsed_integer(parsed_get(d, "groups.0"), keys[i]));
  }
}

WORLD_TEST(all_processes_with_memory_are_in_a_state) {
  struct fake kernel = fake_member(2, "kthreadd"),
              zombie = fake_member(30, "defunct");
  parsed d;

  kernel.flags = 0x200000;
  zombie.state = 'Z';
  zombie.threads = 1;
  zombie.size = 0;
  world_put(w, kernel);
  world_put(w, zombie);
  world_put(w, fake_member(20, "x"));
  world_put(w, fake_member(10, "g"));
  world_put(w, fake_member(5, "ignored"));
  add_group(w, "g");
  world_group(w, NULL, "Comm", "ignored", NULL, NULL);
  d = next_state(w);
  assert_int_equal(parsed_count(d, "processes"), 3);
  parsed_assert(d, "processes.0.pid=5 processes.1.pid=10 processes.2.pid=20");
  assert_source(d, 20, "statm");
  assert_lacks(of(d, 20), "rule");
  assert_int_equal(parsed_count(of(d, 20), "groups"), 0);
  assert_int_equal(parsed_integer(of(d, 20), "usage.resident"), 8 * MIB);
  assert_lacks(of(d, 20), "usage.pss");
  assert_lacks(of(d, 20), "read_cost");
  assert_int_equal(parsed_integer(of(d, 5), "rule"), 1);
}

/* A process that cannot be inspected has its pid, and no 0 for the rest. */
WORLD_TEST(unknown_values_of_a_process_are_left_out) {
  parsed d;

  world_put(w, fake_member(10, "g"));
  world_put(w, fake_member(11, "x"));
  proctree_write(&w->tree, "11/stat", "?\n", 2);
  add_group(w, "g");
  d = next_state(w);
  assert_string_equal(parsed_keys(of(d, 11), ""),
                      "pid groups also source usage ");
  assert_string_equal(parsed_keys(of(d, 11), "usage"), "");
  assert_source(d, 11, "unreadable");
}

WORLD_TEST(an_estimate_has_an_age_and_a_doubt) {
  struct fake f = fake_member(10, "g");
  parsed p;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  world_watch(w, f);
  assert_source(next_state(w), 10, "read");
  f.private_kb += 4;
  world_put(w, f);
  p = of(next_state(w), 10);
  assert_string_equal(parsed_string(p, "source"), "estimated");
  assert_true(parsed_decimal(p, "age") > 9.9);
  assert_true(parsed_decimal(p, "age") < 10.1);
  assert_int_not_equal(parsed_integer(p, "pss_error"), 0);
  assert_int_not_equal(parsed_integer(p, "uss_error"), 0);
  assert_true(parsed_integer(p, "uss_error") <=
              2 * parsed_integer(p, "pss_error") + 1);
  assert_int_equal(parsed_integer(p, "usage.pss"), 7 * MIB + 4 * KIB);
  assert_lacks(p, "deferred");
}

WORLD_TEST(what_was_never_read_is_guessed_and_put_off) {
  parsed p;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  world_budget(w, 0);
  world_watch(w, fake_member(10, "g"));
  p = of(next_state(w), 10);
  parsed_assert(p, "source=guessed deferred=budget pss_error=7m uss_error=6m");
  assert_lacks(p, "age");
}

/* It does not fit into 32 bits of KiB. */
WORLD_TEST(a_very_large_reading_is_kept) {
  static const char rollup[] =
      "1000-2000 ---p 00000000 00:00 0 [rollup]\nRss: 8192 kB\nPss: 7168 kB\n"
      "Shared_Clean: 0 kB\nShared_Dirty: 2048 kB\nPrivate_Clean: 0 kB\n"
      "Private_Dirty: 6144 kB\nReferenced: 5000000000 kB\n";
  parsed d;

  world_watch(w, fake_member(10, "g"));
  proctree_write(&w->tree, "10/smaps_rollup", rollup, sizeof(rollup) - 1);
  d = next_state(w);
  assert_source(d, 10, "read");
  assert_int_equal(parsed_integer(d, "groups.0.usage.referenced"),
                   5000000000 * KIB);
  assert_int_equal(parsed_integer(of(d, 10), "usage.pss"), 7 * MIB);
}

/* A reading there is, but it is too old. */
WORLD_TEST(an_estimate_can_be_put_off_too) {
  unsigned seen = 0;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.policy.max_age_ns = 15 * NS_PER_S;
  world_budget(w, 4000); /* in 10 s for one of them */
  world_walks_take(30000);
  world_put(w, fake_member(10, "g"));
  world_put(w, fake_member(11, "g"));
  world_put(w, fake_member(12, "g"));
  add_group(w, "g");
  for (int i = 0; i < 8; i++) {
    parsed d = next_state(w);

    for (uint64_t pid = 10; pid < 13; pid++) {
      bool is_estimate =
          strcmp(parsed_string(of(d, pid), "source"), "estimated") == 0;

      if (!is_estimate || !parsed_get(of(d, pid), "deferred"))
        continue;
      assert_string_equal(parsed_string(of(d, pid), "deferred"), "budget");
      seen++;
    }
  }
  assert_true(seen > 0);
}

WORLD_TEST(what_would_stall_is_put_off_for_that) {
  static const char status[] = "Uid:\t0\t0\t0\t0\nVmPTE:\t   20480 kB\n"
                               "VmSwap:\t       0 kB\nThreads:\t1\n";
  struct fake f = fake_member(10, "g");
  parsed p;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.policy.max_lock_hold_ns = 2 * NS_PER_MS;
  f.size = 2621440;
  world_put(w, f);
  proctree_write(&w->tree, "10/status", status, sizeof(status) - 1);
  add_group(w, "g");
  p = of(next_state(w), 10);
  parsed_assert(p, "source=guessed deferred=max_lock_hold");
  assert_true(parsed_decimal(p, "read_cost") > 0.002);
}

/* A child in vfork runs in its parent's memory until it calls exec. */
WORLD_TEST(memory_of_the_parent_is_counted_there) {
  struct fake parent = fake_member(10, "g"), child = fake_member(11, "g");
  parsed d;

  world_put(w, parent);
  add_group(w, "g");
  next_state(w);
  parent.state = 'D';
  child.ppid = 10;
  child.start_stack = parent.start_stack;
  world_put(w, parent);
  world_put(w, child);
  d = next_state(w);
  assert_source(d, 10, "read");
  assert_source(d, 11, "parent");
  assert_string_equal(parsed_keys(of(d, 11), "usage"), "");
  assert_int_equal(parsed_integer(d, "groups.0.usage.pss"), 7 * MIB);
}

WORLD_TEST(hostile_names_come_back_as_they_are) {
  struct fake f = fake_member(10, "\"},{\n\x01\xff\xc3\xa4");
  parsed p;

  f.cmdline = "\xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf \xe2\x82";
  f.exe = "/tmp/a\nb \xf0\x9f\x98\x80 (deleted)";
  f.cgroup = "/a\\x2db.slice/\xe9.service";
  world_put(w, f);
  world_group(w, "x-%{comm}", "Comm", "*", NULL, NULL);
  p = of(next_state(w), 10);
  assert_string_equal(parsed_string(p, "comm"), "\"},{\n\x01\\xff\xc3\xa4");
  assert_string_equal(
      parsed_string(p, "command_line"),
      "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xc0\\xaf \\xe2\\x82");
  assert_string_equal(parsed_string(p, "exe"), "/tmp/a\nb \xf0\x9f\x98\x80");
  assert_string_equal(parsed_string(p, "cgroup"),
                      "/a\\x2db.slice/\\xe9.service");
  assert_string_equal(parsed_string(p, "groups.0"),
                      "x-\"},{\\x0a\\x01\\xff\\xc3\\xa4");
}

WORLD_TEST(command_lines_are_left_out_where_they_are_not_wanted) {
  struct fake f = fake_member(10, "g");

  f.cmdline = "g --password=1234";
  w->settings.command_lines = CHOICE_NO;
  world_put(w, f);
  /* Although they are read, for a rule. */
  world_group(w, "g", "CommandLine", "g *", NULL, NULL);
  assert_lacks(of(next_state(w), 10), "command_line");
  assert_string_equal(parsed_string(of(document, 10), "groups.0"), "g");
}

WORLD_TEST(why_a_process_is_in_its_groups_is_told) {
  struct fake child = fake_member(11, "sh");
  struct rule *r;
  parsed d;

  child.ppid = 10;
  world_put(w, fake_member(10, "g"));
  world_put(w, child);
  r = world_group(w, "view-%{comm}", "Comm", "*", NULL, NULL);
  r->is_view = true;
  add_group(w, "g")->takes_children = true;
  world_group(w, "all", "Comm", "*", NULL, NULL);
  d = next_state(w);
  assert_int_equal(parsed_integer(of(d, 10), "rule"), 1);
  assert_lacks(of(d, 10), "inherited");
  assert_int_equal(parsed_count(of(d, 10), "also"), 2);
  parsed_assert(of(d, 10), "also.0=0 also.1=2");
  assert_int_equal(parsed_count(of(d, 10), "groups"), 2);
  assert_int_equal(parsed_integer(of(d, 11), "rule"), 1);
  assert_true(parsed_is_true(of(d, 11), "inherited"));
  assert_int_equal(parsed_count(of(d, 11), "also"), 2);
}
