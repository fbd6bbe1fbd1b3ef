/* The plugin as the daemon sees it, against a stub of the daemon. */
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "config.h"
#include "items.h"
#include "proctree.h"
#include "stub_daemon.h"

/* --- the world --------------------------------------------------------------
 */

static struct proctree tree;

static int make(void **state) {
  (void)state;
  alarm(300); /* A test that waits in vain fails. */
  stub_begin(module_register);
  proctree_make(&tree);
  proctree_put(&tree, &(struct fake){.pid = 10,
                                     .comm = "web",
                                     .starttime = 5,
                                     .private_kb = 100,
                                     .shared_kb = 40,
                                     .threads = 3});
  return 0;
}

static int unmake(void **state) {
  (void)state;
  stub.shutdown();
  proctree_remove(&tree);
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, void *none)

static struct item *on_tree(struct item *block) {
  return with(block, item("ProcRoot", tree.root, NULL));
}

static struct item *web_group(void) {
  return with(item("Group", "web", NULL), item("Comm", "web", NULL));
}

static struct item *web_block(void) {
  return with(on_tree(plugin_block()), web_group());
}

/* Reads that hang are given up soon. */
static struct item *impatient_block(void) {
  return with(web_block(), number("ReadTimeout", 0.1));
}

static void start(struct item *block) {
  assert_int_equal(configure(block), 0);
  assert_int_equal(stub.init(), 0);
}

/* The values of one cycle, and no others. */
static void read_once(void) {
  stub.n_values = 0;
  assert_int_equal(stub.read(NULL), 0);
}

static double value(const char *identifier) {
  const struct stub_value *v = stub_find(identifier);

  if (!v)
    fail_msg("%s was not dispatched", identifier);
  return v ? v->values[0] : 0;
}

/* --- values ------------------------------------------------------------------
 */

FIXTURE_TEST(each_value_is_dispatched_as_documented) {
  static const char *const expected[] = {"smaps-web/memory-pss",
                                         "smaps-web/memory-uss",
                                         "smaps-web/memory-rss",
                                         "smaps-web/memory-shared",
                                         "smaps-web/memory-swap",
                                         "smaps-web/memory-pss_error",
                                         "smaps-web/ps_count",
                                         "smaps-web/percent-coverage",
                                         "smaps-web/duration-age",
                                         "smaps-web/count-unreadable",
                                         "smaps-web/gauge-growth",
                                         "smaps-web/duration-until_limit",
                                         "smaps/duration-cycle",
                                         "smaps/duration-rollup",
                                         "smaps/duration-longest_read",
                                         "smaps/count-processes",
                                         "smaps/count-matched",
                                         "smaps/count-groups",
                                         "smaps/count-rollup_reads",
                                         "smaps/count-sampled",
                                         "smaps/count-deferred",
                                         "smaps/count-overdue",
                                         "smaps/count-vanished",
                                         "smaps/count-denied",
                                         "smaps/count-hung",
                                         "smaps/count-unidentified",
                                         "smaps/count-groups_refused"};
  size_t n = LENGTH(expected);

  start(web_block());
  read_once();
  assert_int_equal(stub.n_values, n);
  for (size_t i = 0; i < n; i++)
    value(expected[i]);
  assert_true(value("smaps-web/memory-pss") == 120 * 1024);
  assert_true(value("smaps-web/memory-uss") == 100 * 1024);
  assert_true(value("smaps-web/memory-rss") == 140 * 1024);
  assert_true(value("smaps-web/memory-shared") == 40 * 1024);
  assert_true(value("smaps-web/percent-coverage") == 100);
  assert_int_equal(stub_find("smaps-web/ps_count")->n, 2);
  assert_true(stub_find("smaps-web/ps_count")->values[1] == 3);
  assert_true(value("smaps/count-groups") == 1);
  assert_int_equal(stub.n_logs, 0);
}

/* --- a group that ends ---------------------------------------------------- */

/* A tree without any process is none. */
static void end_web(void) {
  proctree_put(&tree, &(struct fake){.pid = 2, .comm = "x", .starttime = 2});
  proctree_end(&tree, 10);
  read_once();
}

static void begin_web(void) {
  proctree_put(&tree,
               &(struct fake){
                   .pid = 11, .comm = "web", .starttime = 9, .private_kb = 7});
  read_once();
}

FIXTURE_TEST(a_group_that_ends_is_zero) {
  start(web_block());
  read_once();
  end_web();
  assert_true(value("smaps-web/memory-pss") == 0);
  assert_true(value("smaps-web/ps_count") == 0);
  assert_true(isnan(value("smaps-web/gauge-growth")));
}

/* The threshold plugin would say that all is well. */
FIXTURE_TEST(values_with_an_alarm_are_missing_when_the_group_has_ended) {
  start(web_block());
  read_once();
  stub.alarmed = "-pss";
  end_web();
  assert_null(stub_find("smaps-web/memory-pss"));
  assert_null(stub_find("smaps-web/memory-pss_error"));
  assert_true(value("smaps-web/memory-uss") == 0);
  stub.alarmed = NULL; /* the daemon forgets values that are missing */
  read_once();
  assert_null(stub_find("smaps-web/memory-pss"));
  begin_web();
  assert_true(value("smaps-web/memory-pss") == 7 * 1024);
  assert_true(value("smaps-web/memory-pss_error") == 0);
}

FIXTURE_TEST(percentages_have_alarms_of_their_own) {
  start(with(web_block(), boolean("ValuesPercentage", true)));
  read_once();
  stub.alarmed = "percent-pss";
  end_web();
  read_once();
  assert_null(stub_find("smaps-web/percent-pss"));
  assert_true(value("smaps-web/memory-pss") == 0);
}

FIXTURE_TEST(an_alarm_that_comes_when_the_group_has_ended_leaves_its_value) {
  start(web_block());
  read_once();
  end_web();
  stub.alarmed = "memory-pss"; /* it is below a limit */
  read_once();
  assert_true(value("smaps-web/memory-pss") == 0);
}

FIXTURE_TEST(counts_are_there_in_any_case) {
  start(web_block());
  read_once();
  stub.alarmed = "count";
  end_web();
  assert_true(value("smaps-web/ps_count") == 0);
  assert_true(value("smaps-web/count-unreadable") == 0);
}

/* A filter may have renamed them. */
FIXTURE_TEST(values_that_the_daemon_does_not_know_are_dispatched) {
  start(web_block());
  read_once();
  stub.has_cache = false;
  end_web();
  assert_true(value("smaps-web/memory-pss") == 0);
}

FIXTURE_TEST(start_logs_version_and_setup_once) {
  assert_int_equal(configure(web_block()), 0);
  assert_int_equal(stub.n_infos, 0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.n_infos, 1);
  assert_non_null(strstr(stub.info, "version " SMAPS_VERSION ", collectd 5."));
  assert_non_null(strstr(stub.info, tree.root));
  assert_non_null(strstr(stub.info, " 1 rules"));
}

FIXTURE_TEST(a_tree_that_is_no_host_is_said_once) {
  start(web_block());
  stub.n_infos = 0;
  read_once();
  read_once();
  assert_int_equal(stub.n_infos, 1);
  assert_non_null(strstr(stub.info, "no values of the host"));
  assert_non_null(strstr(stub.info, tree.root));
}

FIXTURE_TEST(values_of_the_host_that_are_unwanted_are_not_missed) {
  start(with(web_block(), boolean("Host", false)));
  stub.n_infos = 0;
  read_once();
  assert_int_equal(stub.n_infos, 0);
}

FIXTURE_TEST(start_that_fails_says_no_version) {
  assert_int_equal(configure(web_block()), 0);
  proctree_end(&tree, 10);
  assert_int_not_equal(stub.init(), 0);
  assert_int_equal(stub.n_infos, 0);
}

FIXTURE_TEST(all_values_of_a_cycle_have_one_timestamp) {
  start(web_block());
  read_once();
  for (size_t i = 0; i < stub.n_values; i++)
    assert_int_equal(stub.values[i].time, stub.now);
}

FIXTURE_TEST(report_is_set_for_all_and_for_one_group) {
  struct item *block = on_tree(plugin_block());
  struct item *group = with(web_group(), item("Report", "RSS", "pss", NULL));

  with(group, boolean("ValuesAbsolute", false));
  with(group, boolean("valuespercentage", true));
  with(block, group);
  with(block, item("Other", "rest", NULL));
  with(block, item("Report", "ps_count", NULL));
  start(block);
  read_once();
  /* The tree's MemTotal is 1 GiB. */
  assert_true(value("smaps-web/percent-pss") == 100.0 * 120 / 1048576);
  assert_true(value("smaps-web/percent-rss") == 100.0 * 140 / 1048576);
  assert_true(value("smaps-rest/ps_count") == 0);
  assert_int_equal(stub.n_values, 2 + 1 + 15);
}

FIXTURE_TEST(other_as_a_block_has_options_of_its_own) {
  struct item *block = web_block();
  struct item *other = with(item("Other", "rest", NULL),
                            item("Report", "ps_count", "coverage", NULL));

  proctree_put(&tree, &(struct fake){.pid = 11, .comm = "db"});
  with(block, with(other, item("Refresh", "never", NULL)));
  start(block);
  read_once();
  assert_int_equal(stub.n_values, 12 + 2 + 15);
  assert_true(value("smaps-rest/ps_count") == 1);
  assert_true(value("smaps-rest/percent-coverage") == 0);
  assert_true(value("smaps-web/percent-coverage") == 100);
}

FIXTURE_TEST(a_value_that_is_named_twice_is_dispatched_once) {
  struct item *block = web_block();

  with(block, item("Report", "default", "pss_error", NULL));
  with(block, item("Report", "pss_error", NULL));
  start(block);
  read_once();
  assert_int_equal(stub.n_values, 12 + 15);
  assert_true(value("smaps-web/memory-pss_error") == 0);
}

FIXTURE_TEST(without_configuration_services_are_the_groups) {
  proctree_put(&tree, &(struct fake){.pid = 11,
                                     .comm = "db",
                                     .cgroup = "/system.slice/db.service"});
  start(on_tree(plugin_block()));
  read_once();
  assert_true(value("smaps-db.service/ps_count") == 1);
  assert_true(value("smaps-other/ps_count") == 1);
}

FIXTURE_TEST(blocks_add_up) {
  assert_int_equal(configure(web_block()), 0);
  assert_int_equal(configure(with(plugin_block(), item("Process", "db", NULL))),
                   0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.read(NULL), 0);
  assert_true(value("smaps-web/ps_count") == 1);
  assert_true(value("smaps-db/ps_count") == 0);
}

FIXTURE_TEST(process_options_are_those_of_the_processes_plugin) {
  struct item *block = on_tree(plugin_block());

  proctree_put(&tree, &(struct fake){.pid = 11,
                                     .comm = "100%{x}",
                                     .starttime = 9,
                                     .cmdline = "php-fpm: pool www"});
  with(block, item("PROCESS", "100%{x}", NULL));
  with(block, item("processmatch", "php", "^web$", NULL));
  start(block);
  read_once();
  assert_true(value("smaps-100%{x}/ps_count") == 1);
  /* It has no command line, so its name is matched. */
  assert_true(value("smaps-php/ps_count") == 1);
}

FIXTURE_TEST(unknown_values_are_dispatched_as_nan) {
  proctree_write(&tree, "10/smaps_rollup", "Rss: x\n", 7);
  start(web_block());
  read_once();
  assert_true(isnan(value("smaps-web/memory-pss")));
  assert_true(value("smaps-web/ps_count") == 1);
  assert_true(value("smaps-web/count-unreadable") == 1);
}

/* --- failures and what is said of them ---------------------------------------
 */

FIXTURE_TEST(read_fails_only_without_a_proc_tree) {
  start(web_block());
  proctree_end(&tree, 10);
  for (int i = 0; i < 3; i++)
    assert_int_not_equal(stub.read(NULL), 0);
  assert_int_equal(stub.n_values, 0);
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_ERR);
  proctree_put(&tree, &(struct fake){.pid = 11, .comm = "web"});
  assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub.n_logs, 2);
  assert_true(value("smaps-web/ps_count") == 1);
}

/* As it was when the number was one of milliseconds. */
FIXTURE_TEST(large_read_budget_is_said_to_be_a_percentage) {
  assert_int_equal(configure(with(web_block(), number("ReadBudget", 20))), 0);
  assert_int_equal(stub.n_logs, 0);
  assert_int_equal(configure(with(plugin_block(), number("ReadBudget", 50))),
                   0);
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_NOTICE);
  assert_non_null(strstr(stub.logs[0], "ReadBudget 50 allows readings 50 % of "
                                       "a CPU"));
}

/* The interval is ten seconds. */
FIXTURE_TEST(growth_window_of_few_intervals_is_said_to_be_too_short) {
  start(with(web_block(), number("GrowthWindow", 99)));
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_WARNING);
  assert_non_null(strstr(stub.logs[0],
                         "GrowthWindow 99: expected ten intervals at least, "
                         "which are 100 seconds; gauge-growth stays unknown "
                         "for <Group \"web\">"));
}

FIXTURE_TEST(growth_window_of_ten_intervals_is_well) {
  start(with(web_block(), number("GrowthWindow", 100)));
  assert_int_equal(stub.n_logs, 0);
}

FIXTURE_TEST(growth_window_says_nothing_where_growth_is_not_reported) {
  start(with(with(web_block(), number("GrowthWindow", 60)),
             item("Report", "pss", NULL)));
  assert_int_equal(stub.n_logs, 0);
}

FIXTURE_TEST(trouble_is_said_once_an_hour) {
  proctree_write(&tree, "10/smaps_rollup", "Rss: x\n", 7);
  start(web_block());
  for (int i = 0; i < 100; i++) {
    read_once();
    stub.now += TIME_T_TO_CDTIME_T(10);
  }
  assert_int_equal(stub.n_logs, 1);
  assert_non_null(strstr(stub.logs[0], "smaps_rollup of process 10 \"web\""));
  stub.now += TIME_T_TO_CDTIME_T(3600);
  assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub.n_logs, 2);
}

FIXTURE_TEST(a_clock_that_jumps_does_no_harm) {
  const long long jumps[] = {3, -86400, 1, 400 * 86400LL, -5, 0, 0};

  proctree_write(&tree, "10/smaps_rollup", "Rss: x\n", 7);
  start(web_block());
  for (size_t i = 0; i < LENGTH(jumps); i++) {
    read_once();
    assert_int_equal(stub_find("smaps-web/ps_count")->time, stub.now);
    assert_true(value("smaps/duration-cycle") < 60);
    /* The first, and another one when more than an hour has passed. */
    assert_int_equal(stub.n_logs, i < 4 ? 1 : 2);
    stub.now = (cdtime_t)((long long)stub.now + (jumps[i] * (1LL << 30)));
  }
}

/* Reads once and again until the process is no longer hung. */
static void read_until_well(void) {
  do
    read_once();
  while (value("smaps/count-hung") > 0);
}

FIXTURE_TEST(process_that_hangs_is_named_once) {
  proctree_hang(&tree, "10/smaps_rollup");
  start(impatient_block());
  for (int i = 0; i < 3; i++) {
    read_once();
    assert_true(value("smaps/count-hung") == 1);
    assert_true(value("smaps-web/ps_count") == 1);
    assert_true(value("smaps-web/count-unreadable") == 0);
  }
  assert_int_equal(stub.n_logs, 1);
  assert_non_null(strstr(stub.logs[0], "smaps_rollup of process 10 \"web\""));
  proctree_wake(&tree, "10/smaps_rollup");
  proctree_put(&tree, &(struct fake){.pid = 10, .comm = "web", .starttime = 5});
  read_until_well();
  assert_int_equal(stub.n_logs, 1);
}

FIXTURE_TEST(hang_of_all_readers_is_logged_until_a_reader_is_free) {
  char path[32];

  for (uint32_t pid = 10; pid < 14; pid++) {
    proctree_put(&tree, &(struct fake){.pid = pid, .comm = "web"});
    snprintf(path, sizeof(path), "%u/smaps_rollup", pid);
    proctree_hang(&tree, path);
  }
  start(impatient_block());
  for (int i = 0; i < 3; i++)
    read_once();
  assert_int_equal(stub.n_logs, 2);
  assert_non_null(strstr(stub.logs[0], "3 more"));
  assert_non_null(strstr(stub.logs[1], "4 reads hang"));
  for (uint32_t pid = 10; pid < 14; pid++) {
    snprintf(path, sizeof(path), "%u/smaps_rollup", pid);
    proctree_wake(&tree, path);
    proctree_put(&tree, &(struct fake){.pid = pid, .comm = "web"});
  }
  read_until_well();
  assert_int_equal(stub.n_logs, 3);
  assert_non_null(strstr(stub.logs[2], "has returned"));
}

FIXTURE_TEST(max_groups_is_said_once) {
  struct item *block = on_tree(plugin_block());

  proctree_put(&tree, &(struct fake){.pid = 11, .comm = "b\nd"});
  with(block, with(item("Group", "%{comm}", NULL), item("Comm", "*", NULL)));
  with(block, number("MaxGroups", 1));
  start(block);
  for (int i = 0; i < 5; i++)
    assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub.n_logs, 1);
  assert_non_null(strstr(stub.logs[0], "MaxGroups"));
  assert_non_null(strstr(stub.logs[0], "b\\x0ad"));
  assert_null(strchr(stub.logs[0], '\n'));
}

/* --- mistakes in the configuration -------------------------------------------
 */

static void assert_says(const char *line, const char *words) {
  if (!strstr(line, words))
    fail_msg("\"%s\" is not in: %s", words, line);
}

/* In one line, that says what is wrong and what was expected. */
static void assert_refused(struct item *block, const char *what,
                           const char *reason) {
  stub_clear();
  assert_int_not_equal(configure(block), 0);
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_ERR);
  assert_says(stub.logs[0], what);
  assert_says(stub.logs[0], "expected");
  assert_says(stub.logs[0], reason);
  assert_null(strchr(stub.logs[0], '\n'));
}

static struct item *in_plugin(struct item *it) {
  return with(plugin_block(), it);
}

static struct item *in_group(struct item *it) {
  return in_plugin(with(item("Group", "g", NULL), it));
}

/* smaps-report check gives each block the name of its file. */
FIXTURE_TEST(all_mistakes_are_named_with_their_file_and_block) {
  static const char *const beginnings[] = {
      "smaps plugin: /etc/a \\x22b: MaxAge 0: expected",
      "smaps plugin: /etc/a \\x22b: <Group \"g\">: Com \"x\": expected",
      "smaps plugin: /etc/a \\x22b: <Group \"g\">: MaxAge -1: expected",
      "smaps plugin: /etc/a \\x22b: <Capture>: MaxFile 1: expected"};
  struct item *block = item("Plugin", "smaps", NULL);
  struct settings settings;

  settings_init(&settings);
  settings.source = "/etc/a \"b";
  with(block, number("MaxAge", 0));
  with(block, number("MaxGroups", 5));
  with(block, with(with(item("Group", "g", NULL), item("Com", "x", NULL)),
                   number("MaxAge", -1)));
  with(block, with(item("Capture", NULL), number("MaxFile", 1)));
  assert_int_equal(config_add_block(&settings, &block->self), -1);
  settings_done(&settings);
  item_free(block);
  assert_int_equal(stub.n_logs, LENGTH(beginnings));
  for (size_t i = 0; i < LENGTH(beginnings); i++)
    if (strncmp(stub.logs[i], beginnings[i], strlen(beginnings[i])) != 0)
      fail_msg("%s", stub.logs[i]);
  /* The daemon does not tell the file. */
  stub_clear();
  assert_int_not_equal(configure(in_plugin(number("MaxAge", 0))), 0);
  assert_ptr_equal(strstr(stub.logs[0], "smaps plugin: MaxAge 0: expected"),
                   stub.logs[0]);
}

FIXTURE_TEST(mistakes_are_named_with_option_value_and_reason) {
  assert_refused(in_plugin(item("MaxGrups", "5", NULL)), "MaxGrups \"5\"",
                 "did you mean MaxGroups?");
  assert_refused(in_group(item("Com", "x", NULL)), "<Group \"g\">: Com \"x\"",
                 "did you mean Comm?");
  assert_refused(in_group(item("PidFileMatch", "x", NULL)), "PidFileMatch",
                 "no such option");
  assert_refused(in_group(item("Comm", NULL)), "Comm", "one string");
  assert_refused(in_group(item("Comm", "a", "b", NULL)), "Comm \"a\" \"b\"",
                 "one string");
  assert_refused(in_group(number("User", 1000)), "User 1000",
                 "string in quotes");
  assert_refused(in_group(item("Children", "perhaps", NULL)),
                 "Children \"perhaps\"", "true or false");
  assert_refused(in_group(item("CommMatch", "(", NULL)), "CommMatch \"(\"",
                 "regular expression: Unmatched");
  assert_refused(in_group(item("Comm", "[a", NULL)), "Comm \"[a\"",
                 "glob: '[' without its ']'");
  assert_refused(in_group(item("Comm", "new\nline[", NULL)),
                 "\"new\\x0aline[\"", "glob");
  assert_refused(in_plugin(item("Group", "g", NULL)), "Group \"g\"",
                 "selector");
  assert_refused(in_plugin(item("Ignore", NULL)), "Ignore", "selector");
  assert_refused(
      in_plugin(with(item("Ignore", "x", NULL), item("Comm", "a", NULL))),
      "Ignore \"x\"", "no name");
  assert_refused(in_plugin(with(item("Group", "%{7}", NULL),
                                item("CommMatch", "(a)", NULL))),
                 "Group \"%{7}\"", "expected 7 captures in \"(a)\"");
  assert_refused(
      in_plugin(with(item("Group", "%{uint}", NULL), item("Comm", "a", NULL))),
      "Group \"%{uint}\"", "did you mean %{unit}");
  assert_refused(in_plugin(number("MaxGroups", 0)), "MaxGroups 0", "from 1 to");
  assert_refused(in_plugin(number("MaxGroups", -3)), "MaxGroups -3",
                 "from 1 to");
  assert_refused(in_plugin(number("MaxGroups", 1e30)), "MaxGroups 1e+30",
                 "from 1 to");
  assert_refused(in_plugin(item("ProcRoot", "/nowhere", NULL)),
                 "ProcRoot \"/nowhere\"", "proc file system");
  assert_refused(in_plugin(item("Report", "psss", NULL)), "Report \"psss\"",
                 "did you mean \"pss\"?");
  assert_refused(in_plugin(item("Report", NULL)), "Report", "string");
  assert_refused(in_plugin(item("Refresh", "sometimes", NULL)),
                 "Refresh \"sometimes\"", "\"adaptive\"");
  assert_refused(in_plugin(number("ReadBudget", -1)), "ReadBudget -1",
                 "percentage of one CPU, from 0.01 to 100");
  assert_refused(in_plugin(number("ReadBudget", 0)), "ReadBudget 0",
                 "from 0.01 to 100");
  assert_refused(in_plugin(number("ReadBudget", 101)), "ReadBudget 101",
                 "from 0.01 to 100");
  assert_refused(in_group(number("MaxAge", 0)), "MaxAge 0", "seconds from 1");
  assert_refused(in_group(number("GrowthWindow", 604801)),
                 "GrowthWindow 604801", "seconds from 60 to 604800");
  assert_refused(in_group(number("MaxLockHold", 1e9)), "MaxLockHold 1000000000",
                 "milliseconds from 0.1");
  assert_refused(in_plugin(number("ReadTimeout", 0)), "ReadTimeout 0",
                 "seconds from 0.1 to 60");
  assert_refused(in_plugin(number("ReadTimeout", 61)), "ReadTimeout 61",
                 "seconds from 0.1 to 60");
  assert_refused(in_group(number("ReadTimeout", 1)), "ReadTimeout 1",
                 "no such option");
  assert_refused(in_group(number("ReadBudget", 5)), "ReadBudget 5",
                 "no such option");
  assert_refused(in_plugin(item("ProcessMatch", "x", NULL)),
                 "ProcessMatch \"x\"", "regular expression");
  assert_refused(in_plugin(item("Process", "sixteen-letters-", NULL)),
                 "Process \"sixteen-letters-\"", "15 bytes");
  assert_refused(in_plugin(item("Other", "%{user}", NULL)), "Other \"%{user}\"",
                 "without placeholders");
  assert_refused(
      in_plugin(with(item("Other", "x", NULL), item("User", "y", NULL))),
      "<Other \"x\">: User \"y\"", "an option of this block");
  assert_refused(
      in_plugin(with(item("Other", "x", NULL), number("MaxLockHold", 1001))),
      "MaxLockHold 1001:", "1000 milliseconds");
  assert_refused(in_plugin(with(item("MaxGroups", NULL), item("x", "y", NULL))),
                 "MaxGroups", "not a block");
}

/* Whichever of them comes first. */
FIXTURE_TEST(max_lock_hold_above_read_timeout_is_refused) {
  struct item *block;

  assert_refused(in_plugin(number("MaxLockHold", 1001)),
                 "MaxLockHold 1001:", "1000 milliseconds");
  block = in_plugin(number("MaxLockHold", 300));
  assert_refused(with(block, number("ReadTimeout", 0.2)),
                 "MaxLockHold 300:", "200 milliseconds of ReadTimeout");
  block = in_plugin(number("ReadTimeout", 0.2));
  assert_refused(with(block, number("MaxLockHold", 300)),
                 "MaxLockHold 300:", "200 milliseconds of ReadTimeout");
}

FIXTURE_TEST(max_lock_hold_of_a_group_above_read_timeout_is_refused) {
  for (int is_before = 0; is_before < 2; is_before++) {
    struct item *block = plugin_block();

    if (is_before)
      with(block, number("ReadTimeout", 2));
    with(block, with(web_group(), number("MaxLockHold", 5000)));
    if (!is_before)
      with(block, number("ReadTimeout", 2));
    assert_refused(block, "<Group \"web\">: MaxLockHold 5000:",
                   "2000 milliseconds of ReadTimeout");
    assert_int_equal(stub.shutdown(), 0);
  }
}

FIXTURE_TEST(read_timeout_below_a_max_lock_hold_of_before_is_refused) {
  assert_int_equal(
      configure(
          with(plugin_block(), with(web_group(), number("MaxLockHold", 900)))),
      0);
  assert_refused(in_plugin(number("ReadTimeout", 0.5)),
                 "ReadTimeout 0.5:", "expected at least the 0.9 seconds");
}

FIXTURE_TEST(read_timeout_below_the_max_lock_hold_of_other_is_refused) {
  assert_int_equal(configure(in_plugin(with(item("Other", "rest", NULL),
                                            number("MaxLockHold", 900)))),
                   0);
  assert_refused(in_plugin(number("ReadTimeout", 0.5)),
                 "ReadTimeout 0.5:", "expected at least the 0.9 seconds");
}

FIXTURE_TEST(max_lock_hold_up_to_read_timeout_is_fine) {
  struct item *block = in_plugin(number("MaxLockHold", 2000));

  assert_int_equal(configure(with(block, number("ReadTimeout", 2))), 0);
  /* The last of two options of the same name holds. */
  block = in_plugin(number("MaxLockHold", 5000));
  assert_int_equal(configure(with(block, number("MaxLockHold", 50))), 0);
  assert_int_equal(stub.n_logs, 0);
}

FIXTURE_TEST(names_that_two_groups_give_are_refused) {
  assert_int_equal(configure(in_plugin(web_group())), 0);
  assert_refused(in_plugin(web_group()), "Group \"web\"", "already exists");
  assert_refused(in_plugin(item("Process", "web", NULL)), "Process \"web\"",
                 "already exists");
  assert_refused(in_plugin(item("Other", "web", NULL)), "Other \"web\"",
                 "already exists; expected another name");
}

/* Not the last one wins, whose name and options are other ones. */
FIXTURE_TEST(a_second_other_is_refused) {
  struct item *never =
      with(item("Other", "a", NULL), item("Refresh", "never", NULL));

  assert_refused(with(in_plugin(never), item("Other", "b", NULL)),
                 "Other \"b\":", "may be given once");
  assert_refused(in_plugin(item("Other", "a", NULL)),
                 "Other \"a\":", "may be given once");
}

FIXTURE_TEST(stopping_without_having_started_is_fine) {
  assert_int_equal(stub.shutdown(), 0);
  assert_int_equal(stub.shutdown(), 0);
}
