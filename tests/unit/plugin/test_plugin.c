/* The plugin as the daemon sees it, against a stub of the daemon. */
#include "test.h"

#include <unistd.h>

#include "config.h"
#include "items.h"
#include "proctree.h"
#include "stub_daemon.h"

/* --- the world --- */

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

#define WEB_GROUP "<Group 'web'>\nComm 'web'\n</Group>\n"

/* Configures the plugin with the tree and the group "web", and more options. */
static void configure_web(const char *more) {
  assert_int_equal(configure("ProcRoot '%s'\n" WEB_GROUP "%s", tree.root, more),
                   0);
}

/* The same with other groups, and starts it. */
static void start(const char *options) {
  assert_int_equal(configure("ProcRoot '%s'\n%s", tree.root, options), 0);
  assert_int_equal(stub.init(), 0);
}

static void start_web(const char *more) {
  configure_web(more);
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

/* --- values --- */

FIXTURE_TEST(each_value_is_dispatched_as_documented) {
  static const char expected[] =
      "smaps-web/memory-pss smaps-web/memory-uss smaps-web/memory-rss "
      "smaps-web/memory-shared smaps-web/memory-swap "
      "smaps-web/memory-pss_error smaps-web/ps_count "
      "smaps-web/percent-coverage smaps-web/duration-age "
      "smaps-web/count-unreadable smaps-web/gauge-growth "
      "smaps-web/duration-until_limit smaps/duration-cycle "
      "smaps/duration-rollup smaps/duration-longest_read "
      "smaps/count-processes smaps/count-matched smaps/count-groups "
      "smaps/count-rollup_reads smaps/count-sampled smaps/count-deferred "
      "smaps/count-overdue smaps/count-vanished smaps/count-denied "
      "smaps/count-hung smaps/count-unidentified smaps/count-groups_refused";
  char names[sizeof(expected)];
  size_t n = 0;

  strcpy(names, expected);
  start_web("");
  read_once();
  for (char *name = strtok(names, " "); name; name = strtok(NULL, " "), n++)
    value(name);
  assert_int_equal(stub.n_values, n);
  for (size_t i = 0; i < n; i++)
    assert_int_equal(stub.values[i].time, stub.now);
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

/* The threshold plugin would say that all is well. */
FIXTURE_TEST(values_with_an_alarm_are_missing_when_the_group_has_ended) {
  start_web("");
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
  start_web("ValuesPercentage true");
  read_once();
  stub.alarmed = "percent-pss";
  end_web();
  read_once();
  assert_null(stub_find("smaps-web/percent-pss"));
  assert_true(value("smaps-web/memory-pss") == 0);
}

FIXTURE_TEST(an_alarm_that_comes_when_the_group_has_ended_leaves_its_value) {
  start_web("");
  read_once();
  end_web();
  stub.alarmed = "memory-pss"; /* it is below a limit */
  read_once();
  assert_true(value("smaps-web/memory-pss") == 0);
  assert_true(isnan(value("smaps-web/gauge-growth")));
}

/* A filter may have renamed them. */
FIXTURE_TEST(values_that_the_daemon_does_not_know_are_dispatched) {
  start_web("");
  read_once();
  stub.has_cache = false;
  end_web();
  assert_true(value("smaps-web/memory-pss") == 0);
}

FIXTURE_TEST(start_logs_version_and_setup_once) {
  configure_web("");
  assert_int_equal(stub.n_infos, 0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.n_infos, 1);
  assert_non_null(strstr(stub.info, "version " SMAPS_VERSION ", collectd 5."));
  assert_non_null(strstr(stub.info, tree.root));
  assert_non_null(strstr(stub.info, " 1 rules"));
}

FIXTURE_TEST(a_tree_that_is_no_host_is_said_once_where_it_matters) {
  for (int has_host = 0; has_host < 2; has_host++) {
    start_web(has_host ? "Host true" : "Host false");
    stub.n_infos = 0;
    read_once();
    read_once();
    assert_int_equal(stub.n_infos, has_host);
    stub.shutdown();
  }
  assert_non_null(strstr(stub.info, "no values of the host"));
  assert_non_null(strstr(stub.info, tree.root));
}

FIXTURE_TEST(other_as_a_block_has_options_of_its_own) {
  proctree_put(&tree, &(struct fake){.pid = 11, .comm = "db"});
  start_web("<Other 'rest'>\nReport 'ps_count' 'coverage'\n"
            "Refresh 'never'\n</Other>");
  read_once();
  assert_int_equal(stub.n_values, 12 + 2 + 15);
  assert_true(value("smaps-rest/ps_count") == 1);
  assert_true(value("smaps-rest/percent-coverage") == 0);
  assert_true(value("smaps-web/percent-coverage") == 100);
}

FIXTURE_TEST(blocks_add_up) {
  assert_int_equal(stub.shutdown(), 0); /* without having started */
  configure_web("");
  assert_int_equal(configure("Process 'db'"), 0);
  assert_int_equal(stub.init(), 0);
  read_once();
  assert_true(value("smaps-web/ps_count") == 1);
  assert_true(value("smaps-db/ps_count") == 0);
}

FIXTURE_TEST(process_options_are_those_of_the_processes_plugin) {

  proctree_put(&tree, &(struct fake){.pid = 11,
                                     .comm = "100%x",
                                     .starttime = 9,
                                     .cmdline = "php-fpm: pool www"});
  start("PROCESS '100%x'\nprocessmatch 'php' '^web$'");
  read_once();
  assert_true(value("smaps-100%x/ps_count") == 1);
  /* It has no command line, so its name is matched. */
  assert_true(value("smaps-php/ps_count") == 1);
}

/* --- failures and what is said of them --- */

FIXTURE_TEST(read_fails_only_without_a_proc_tree) {
  start_web("");
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

FIXTURE_TEST(a_clock_that_jumps_does_no_harm) {
  const long long jumps[] = {3, -86400, 1, 400 * 86400LL, -5, 0, 0};

  proctree_write(&tree, "10/smaps_rollup", "Rss: x\n", 7);
  start_web("");
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

/* From now on the rollups of so many processes hang; and no more. */
static void hang_rollups(uint32_t n) {
  char path[32];

  for (uint32_t pid = 10; pid < 10 + n; pid++) {
    proctree_put(&tree, &(struct fake){.pid = pid, .comm = "web"});
    snprintf(path, sizeof(path), "%u/smaps_rollup", pid);
    proctree_hang(&tree, path);
  }
}

static void wake_rollups(uint32_t n) {
  char path[32];

  for (uint32_t pid = 10; pid < 10 + n; pid++) {
    snprintf(path, sizeof(path), "%u/smaps_rollup", pid);
    proctree_wake(&tree, path);
    proctree_put(&tree, &(struct fake){.pid = pid, .comm = "web"});
  }
  read_until_well();
}

FIXTURE_TEST(hang_of_all_readers_is_logged_until_a_reader_is_free) {
  hang_rollups(4);
  start_web("ReadTimeout 0.1");
  for (int i = 0; i < 3; i++)
    read_once();
  assert_int_equal(stub.n_logs, 2);
  assert_non_null(strstr(stub.logs[0], "one of 4)"));
  assert_non_null(strstr(stub.logs[1], "4 reads hang"));
  wake_rollups(4);
  assert_int_equal(stub.n_logs, 3);
  assert_non_null(strstr(stub.logs[2], "has returned"));
}

FIXTURE_TEST(max_groups_is_said_once) {

  proctree_put(&tree, &(struct fake){.pid = 11, .comm = "b\nd"});
  start("<Group '%{comm}'>\nComm '*'\n</Group>\nMaxGroups 1");
  for (int i = 0; i < 5; i++)
    assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub.n_logs, 1);
  assert_non_null(strstr(stub.logs[0], "MaxGroups"));
  assert_non_null(strstr(stub.logs[0], "b\\x0ad"));
  assert_null(strchr(stub.logs[0], '\n'));
}

/* --- mistakes in the configuration --- */

/* In one line, with the option as it was written, what was expected, and all
 * else in `why`. */
static void assert_refused(const char *options, const char *option,
                           const char *why) {
  char said[64];

  snprintf(said, sizeof(said), "%s", option);
  for (char *quote = said; (quote = strchr(quote, '\''));)
    *quote = '"';
  stub_clear();
  assert_int_not_equal(configure("%s", options), 0);
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_ERR);
  if (!strstr(stub.logs[0], said) || !strstr(stub.logs[0], "expected") ||
      !strstr(stub.logs[0], why) || strchr(stub.logs[0], '\n'))
    fail_msg("%s: %s", options, stub.logs[0]);
  stub.shutdown();
}

/* smaps-report check gives each block the name of its file. */
FIXTURE_TEST(all_mistakes_are_named_with_their_file_and_block) {
  static const char *const beginnings[] = {
      "smaps plugin: /etc/a \\x22b: MaxAge 0: expected",
      "smaps plugin: /etc/a \\x22b: <Group \"g\">: Com \"x\": expected",
      "smaps plugin: /etc/a \\x22b: <Group \"g\">: MaxAge -1: expected",
      "smaps plugin: /etc/a \\x22b: <Capture>: MaxFile 1: expected"};
  oconfig_item_t block = items_parse(
      "MaxAge 0\nMaxGroups 5\n<Group 'g'>\nCom 'x'\nMaxAge -1\n</Group>\n"
      "<Capture>\nMaxFile 1\n</Capture>");
  struct settings settings;

  settings_init(&settings);
  settings.source = "/etc/a \"b";
  assert_int_equal(config_add_block(&settings, &block), -1);
  settings_done(&settings);
  items_free(&block);
  assert_int_equal(stub.n_logs, LENGTH(beginnings));
  for (size_t i = 0; i < LENGTH(beginnings); i++)
    if (strncmp(stub.logs[i], beginnings[i], strlen(beginnings[i])) != 0)
      fail_msg("%s", stub.logs[i]);
  /* The daemon does not tell the file. */
  assert_refused("MaxAge 0", "smaps plugin: MaxAge 0: expected", "");
}

FIXTURE_TEST(mistakes_are_named_with_option_value_and_reason) {
  static const char *const cases[][3] = {
      {"MaxGrups '5'", "MaxGrups '5'", "did you mean MaxGroups?"},
      {"<Group 'g'>\nCom 'x'\n</Group>", "<Group 'g'>: Com 'x'",
       "did you mean Comm?"},
      {"<Group 'g'>\nPidFileMatch 'x'\n</Group>", "PidFileMatch",
       "no such option"},
      {"<Group 'g'>\n<Comm>\n</Comm>\n</Group>", "Comm", "one string"},
      {"<Group 'g'>\nComm 'a' 'b'\n</Group>", "Comm 'a' 'b'", "one string"},
      {"<Group 'g'>\nUser 1000\n</Group>", "User 1000", "string in quotes"},
      {"<Group 'g'>\nChildren 'perhaps'\n</Group>", "Children 'perhaps'",
       "true or false"},
      {"<Group 'g'>\nCommMatch '('\n</Group>", "CommMatch '('",
       "regular expression: Unmatched"},
      {"<Group 'g'>\nComm 'new\nline['\n</Group>", "'new\\x0aline['",
       "glob: '[' without its ']'"},
      {"<Ignore 'x'>\nComm 'a'\n</Ignore>", "Ignore 'x'", "without a name"},
      {"MaxGroups 0", "MaxGroups 0", "from 1 to"},
      {"MaxGroups 1e30", "MaxGroups 1e+30", "from 1 to"},
      {"ProcRoot '/nowhere'", "ProcRoot '/nowhere'", "proc file system"},
      {"Report 'psss'", "Report 'psss'", "did you mean \"pss\"?"},
      {"<Report>\n</Report>", "Report", "string"},
      {"Refresh 'sometimes'", "Refresh 'sometimes'", "\"adaptive\""},
      {"ReadBudget 0", "ReadBudget 0",
       "percentage of one CPU, without quotes, from 0.01 to 100"},
      {"ReadBudget 101", "ReadBudget 101", "from 0.01 to 100"},
      {"<Group 'g'>\nMaxAge 0\n</Group>", "MaxAge 0",
       "seconds, without quotes and unit, from 1"},
      {"<Group 'g'>\nGrowthWindow 604801\n</Group>", "GrowthWindow 604801",
       "from 60 to 604800"},
      {"<Group 'g'>\nMaxLockHold 1e9\n</Group>", "MaxLockHold 1000000000",
       "milliseconds, without quotes and unit, from 0.1"},
      {"<Group 'g'>\nReadTimeout 1\n</Group>", "ReadTimeout 1",
       "no such option"},
      {"ProcessMatch 'x'", "ProcessMatch 'x'", "regular expression"},
      {"<Other 'x'>\nUser 'y'\n</Other>", "<Other 'x'>: User 'y'",
       "an option of this block"},
      {"<MaxGroups>\nx 'y'\n</MaxGroups>", "MaxGroups", "not a block"},
      {"<Capture>\nMaxFiles 5\n</Capture>", "Capture", "a Directory"},
      {"<Capture 'x'>\nDirectory '/x'\n</Capture>", "Capture 'x'",
       "without a name"},
      {"<Capture>\nDirectory 'relative'\n</Capture>",
       "<Capture>: Directory 'relative'", "absolute path"},
      {"<Capture>\nDirectory 1\n</Capture>", "Directory 1", "one string"},
      {"<Capture>\nDirectory '/x'\n<OnNotification>\n</OnNotification>\n"
       "</Capture>",
       "OnNotification", "at least one of"},
      {"<Capture>\nDirectory '/x'\n<MaxFiles 1>\nx 1\n</MaxFiles>\n</Capture>",
       "MaxFiles 1", "not a block"},
      {"<Capture>\nDirectory '/x/y/'\n</Capture>\nStateHistory '/x/y'",
       "StateHistory and <Capture>, not '/x/y'", "different directories"},
      {"StateFile ''", "StateFile ''", "absolute path"},
      {"StateInterval -1", "StateInterval -1", "from 0 to 86400"},
      {"CommandLines 0", "CommandLines 0", "true or false"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    assert_refused(cases[i][0], cases[i][1], cases[i][2]);
}

FIXTURE_TEST(mistakes_in_the_options_of_a_capture_are_named) {
  static const char *const cases[][2] = {
      {"MaxFile '5'", "an option of this block; there is no such option, did "
                      "you mean MaxFiles?"},
      {"Comm 'x'", "no such option"},
      {"OnNotification 'okay' 'no'", "\"failure\""},
      {"OnNotification 2", "\"failure\""},
      {"TopProcesses 1.5", "whole number"},
      {"TopMappings 10001", "from 1 to 10000"},
      {"TopMappings '5'", "whole number, without quotes, from 1 to 10000"},
      {"MaxFiles -1", "from 1 to 100000"},
      {"Cooldown 604801", "from 0 to 604800"},
      {"MaxBytes 65535", "from 65536 to 1099511627776"},
      {"MaxBytes 1e+18", "from 65536 to 1099511627776"},
      {"MaxBytes '64M' '65M'", "from 65536 to 1099511627776"},
      {"MaxBytes '64KB'", "from 65536 to 1099511627776"},
      {"MaxBytes '1025G'", "from 65536 to 1099511627776"},
      {"MaxBytes '-64M'", "from 65536 to 1099511627776"},
      {"MaxBytes ''", "from 65536 to 1099511627776"},
      {"MaxBytes '64T'", "from 65536 to 1099511627776"},
      {"MaxBytes '18014398509481985K'", "from 65536 to 1099511627776"},
      {"MaxBytes '18446744073709551617'", "from 65536 to 1099511627776"},
  };
  char options[128];

  for (size_t i = 0; i < LENGTH(cases); i++) {
    snprintf(options, sizeof(options),
             "<Capture>\nDirectory '/x'\n%s\n</Capture>", cases[i][0]);
    assert_refused(options, cases[i][0], cases[i][1]);
  }
}

FIXTURE_TEST(limits_are_taken_to_the_ends_of_their_ranges) {
  static const char *const in_capture[] = {"MaxBytes '64K'",
                                           "MaxBytes '65536'",
                                           "MaxBytes '1M'",
                                           "MaxBytes '1024g'",
                                           "MaxBytes '1099511627776'",
                                           "MaxBytes 65536",
                                           "MaxBytes 1099511627776",
                                           "MaxFiles 1",
                                           "MaxFiles 100000",
                                           "TopProcesses 10000",
                                           "TopMappings 10000",
                                           "Cooldown 0",
                                           "Cooldown 604800"};

  for (size_t i = 0; i < LENGTH(in_capture); i++)
    assert_int_equal(
        configure("<Capture>\nDirectory '/x'\n%s\n</Capture>", in_capture[i]),
        0);
  assert_int_equal(configure("StateInterval 0\nStateHistory '/y'"), 0);
  assert_int_equal(configure("StateInterval 86400"), 0);
  assert_int_equal(stub.n_logs, 0);
}
