/* What captures have beside a state. */
#include "test.h"

#include <stdio.h>

#include "documented.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, documented_setup, documented_teardown, struct world *w)

static const struct fake_mapping some_mappings[] = {
    {.name = "/usr/lib/libc.so.6",
     .permissions = "r-xp",
     .private_kb = 4,
     .shared_kb = 1000,
     .pss_kb = 100},
    {.name = "/usr/lib/libc.so.6", .permissions = "rw-p", .private_kb = 16},
    {.name = "[heap]", .private_kb = 6000, .swap_kb = 12},
    {.name = NULL, .private_kb = 100, .size_kb = 4096},
    {.name = "/dev/shm/a\\012\xff", .permissions = "rw-s", .shared_kb = 48},
    {.name = "[stack]", .private_kb = 24},
};
#define SOME LENGTH(some_mappings)

static void watch_mapped(struct world *w) {
  world_watch(w, fake_member(10, "g"));
  proctree_put_smaps(&w->tree, 10, some_mappings, SOME);
}

WORLD_TEST(a_capture_says_why_it_was_made) {
  parsed d;

  watch_mapped(w);
  d = capture(w, "g");
  assert_string_equal(parsed_keys(d, ""),
                      "format version plugin_version host time interval kernel "
                      "page_size mem_total mem_available trigger rules groups "
                      "processes left_out mappings ");
  assert_string_equal(parsed_keys(d, "trigger"),
                      "kind severity time group type type_instance message ");
  parsed_assert(d, "trigger.kind=notification trigger.severity=warning");
  assert_true(parsed_decimal(d, "trigger.time") ==
              (double)(WORLD_WALL_NS / NS_PER_S) - 1);
  parsed_assert(
      d, "trigger.group=g trigger.type=memory trigger.type_instance=pss");
  assert_string_equal(parsed_string(d, "trigger.message"),
                      "it is more than 1 GB");
  assert_int_equal(parsed_integer(d, "left_out"), 0);
}

WORLD_TEST(a_trigger_without_a_value_prints_no_value) {
  static const struct {
    enum severity severity;
    const char *name;
  } severities[] = {{SEVERITY_OKAY, "okay"},
                    {SEVERITY_WARNING, "warning"},
                    {SEVERITY_FAILURE, "failure"}};

  world_watch(w, fake_member(10, "g"));
  w->settings.capture.cooldown_ns = 0;
  capture(w, "g");
  for (size_t i = 0; i < 3; i++) {
    struct alarm alarm = {.group = "g",
                          .severity = severities[i].severity,
                          .message = "\x1b[2J\xff\""};
    parsed d;

    collector_raise(w->collector, &alarm);
    d = next_state(w);
    assert_string_equal(parsed_keys(d, "trigger"),
                        "kind severity time group message ");
    assert_string_equal(parsed_string(d, "trigger.severity"),
                        severities[i].name);
    assert_string_equal(parsed_string(d, "trigger.message"), "\x1b[2J\\xff\"");
  }
}

static uint64_t sum_of(parsed p, const char *array, const char *key) {
  uint64_t sum = 0;

  for (size_t i = 0; i < parsed_count(p, array); i++) {
    char path[64];

    snprintf(path, sizeof(path), "%s.%zu.%s", array, i, key);
    sum += parsed_integer(p, path);
  }
  return sum;
}

static void assert_mappings_are_the_usage(parsed p) {
  static const char *const keys[] = {
      "rss",          "pss",           "shared_clean",
      "shared_dirty", "private_clean", "private_dirty",
      "anonymous",    "swap",          "swap_total"};

  for (size_t i = 0; i < LENGTH(keys); i++) {
    char path[64];

    snprintf(path, sizeof(path), "usage.%s", keys[i]);
    assert_int_equal(sum_of(p, "mappings", keys[i]), parsed_integer(p, path));
  }
}

WORLD_TEST(mappings_add_up_to_the_usage_to_the_byte) {
  parsed d, p, m;

  /* So that it would be an estimate by now. */
  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  watch_mapped(w);
  d = capture(w, "g");
  p = of(d, 10);
  assert_string_equal(parsed_string(p, "source"), "read");
  assert_int_equal(parsed_count(p, "mappings"), 5);
  assert_mappings_are_the_usage(p);
  assert_int_equal(parsed_integer(p, "usage.rss"), (7144 + 48) * KIB);
  assert_int_equal(parsed_integer(p, "usage.resident"), 8 * MIB);
  /* The kernel has these only for a rollup. */
  assert_lacks(p, "usage.pss_anon");
  m = parsed_get(p, "mappings.0");
  assert_string_equal(parsed_keys(m, ""),
                      "name permissions vmas size rss pss shared_clean "
                      "shared_dirty private_clean private_dirty anonymous "
                      "swap swap_total ");
  parsed_assert(m, "name=[heap] anonymous=6000k");
  m = parsed_get(p, "mappings.1");
  parsed_assert(
      m, "name=/usr/lib/libc.so.6 permissions=rwxp vmas=2 size=1020k pss=116k "
         "anonymous=20k");
  assert_string_equal(parsed_string(p, "mappings.2.name"), "[anon]");
  parsed_assert(p, "mappings.2.size=4m mappings.3.permissions=rw-s");
}

WORLD_TEST(unknown_fields_of_a_mapping_are_left_out) {
  static const char smaps[] =
      "1000-2000 rw-p 00000000 00:00 0 [heap]\nRss: 4 kB\nPss: 4 kB\n"
      "Shared_Clean: 0 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 0 kB\n"
      "Private_Dirty: 4 kB\n";

  world_watch(w, fake_member(10, "g"));
  proctree_write(&w->tree, "10/smaps", smaps, sizeof(smaps) - 1);
  assert_string_equal(parsed_keys(of(capture(w, "g"), 10), "mappings.0"),
                      "name permissions vmas size rss pss shared_clean "
                      "shared_dirty private_clean private_dirty ");
  assert_lacks(of(document, 10), "usage.swap");
}

WORLD_TEST(mappings_beyond_the_top_are_summed_without_a_name) {
  parsed p;

  w->settings.capture.top_mappings = 2;
  watch_mapped(w);
  p = of(capture(w, "g"), 10);
  assert_int_equal(parsed_count(p, "mappings"), 3);
  assert_mappings_are_the_usage(p);
  assert_string_equal(parsed_keys(p, "mappings.2"),
                      "permissions vmas size rss pss shared_clean "
                      "shared_dirty private_clean private_dirty anonymous "
                      "swap swap_total ");
  parsed_assert(p, "mappings.2.permissions=rw-ps mappings.2.vmas=3");
  parsed_assert(document, "mappings.2.vmas=3");
  assert_lacks(document, "mappings.2.processes");
}

WORLD_TEST(mappings_of_all_are_summed_by_name) {
  static const struct fake_mapping own[] = {
      {.name = "/usr/lib/libc.so.6", .permissions = "r-xp", .private_kb = 8},
      {.name = "/own", .permissions = "---p", .private_kb = 9000}};
  parsed d, m;

  world_put(w, fake_member(10, "g"));
  world_put(w, fake_member(11, "g"));
  world_put(w, fake_member(12, "other"));
  proctree_put_smaps(&w->tree, 10, some_mappings, SOME);
  proctree_put_smaps(&w->tree, 11, own, 2);
  proctree_put_smaps(&w->tree, 12, own, 2);
  add_group(w, "g");
  d = capture(w, "g");
  assert_int_equal(parsed_count(d, "processes"), 2);
  m = parsed_find(d, "mappings", "name", "/usr/lib/libc.so.6");
  parsed_assert(m, "processes=2 pss=124k vmas=3");
  m = parsed_get(d, "mappings.0");
  parsed_assert(m, "name=/own permissions=---p processes=1");
  assert_int_equal(sum_of(d, "mappings", "pss"),
                   parsed_integer(of(d, 10), "usage.pss") +
                       parsed_integer(of(d, 11), "usage.pss"));
}

WORLD_TEST(captures_have_a_choice_of_command_lines_of_their_own) {
  struct fake f = fake_member(10, "g");
  parsed p;

  f.cmdline = "g --password=1234";
  w->settings.capture.command_lines = CHOICE_NO;
  world_put(w, f);
  world_group(w, "g", "CommandLine", "g *", NULL, NULL);
  proctree_put_smaps(&w->tree, 10, some_mappings, SOME);
  world_put(w, fake_member(50, "other"));
  w->settings.capture.cooldown_ns = 0;
  assert_lacks(of(capture(w, "g"), 10), "command_line");
  proctree_end(&w->tree, 10);
  world_run(w, 10);
  world_raise(w, "g");
  p = of(next_state(w), 10);
  parsed_assert(p, "source=ended comm=g");
  assert_lacks(p, "command_line");
}
