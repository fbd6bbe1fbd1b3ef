/* The plugin as the daemon sees it, against a stub of the daemon. */
#include "test.h"

#include <unistd.h>

#include "config.h"
#include "items.h"
#include "notification.h"
#include "parsed.h"
#include "proctree.h"
#include "stub_daemon.h"

/* --- the world --- */

static struct proctree tree;

static int make(void **state) {
  const struct fake_mapping mapping = {.name = "[heap]", .private_kb = 100};

  (void)state;
  alarm(300); /* A test that waits in vain fails. */
  stub_begin(module_register);
  proctree_make(&tree);
  proctree_put(&tree, &(struct fake){.pid = 10,
                                     .comm = "web",
                                     .starttime = 5,
                                     .cmdline = "web --secret",
                                     .private_kb = 100,
                                     .shared_kb = 40,
                                     .threads = 3});
  proctree_put_smaps(&tree, 10, &mapping, 1);
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

/* They are 0 because it has ended, which an alarm may be about. */
FIXTURE_TEST(counts_with_an_alarm_are_there_when_the_group_has_ended) {
  start_web("");
  read_once();
  stub.alarmed = "count";
  end_web();
  assert_true(value("smaps-web/ps_count") == 0);
  assert_true(value("smaps-web/count-unreadable") == 0);
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
  start("PROCESS '100%x'\nprocessmatch 'php' '^web --s'");
  read_once();
  assert_true(value("smaps-100%x/ps_count") == 1);
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
  for (int i = 0; i < 3; i++)
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

/* --- the fields of options, and their units --- */

static void set(struct settings *s, const char *options) {
  oconfig_item_t block = items_parse(options);

  settings_init(s);
  assert_int_equal(config_add_block(s, &block), 0);
  items_free(&block);
}

FIXTURE_TEST(options_have_fields_and_units_of_their_own) {
  struct config_error reason;
  struct settings s;

  set(&s, "Report 'pss'\nReport 'uss'\nMaxAge 2\nMaxLockHold 3\nReadTimeout "
          "4.5\nReadBudget 0.5\n"
          "MaxGroups 6\nStateInterval 7\nGrowthWindow 80\nHost false\n"
          "StateAtStart true\nCommandLines false\nValuesAbsolute false\n"
          "ValuesPercentage true\nRefresh 'always'\nStateFile '/a/'\n"
          "StateHistory '/b'\nContainerRoot '/c'\n"
          "<Capture>\nDirectory '/d'\nTopProcesses 9\nTopMappings 10\n"
          "Cooldown 11\nMaxFiles 12\nMaxBytes '13M'\nCommandLines true\n"
          "OnNotification 'okay' 'failure'\n</Capture>\n"
          "<Group 'g'>\nComm 'g'\nMaxAge 14\nMaxLockHold 0.5\n"
          "GrowthWindow 90\nValuesAbsolute true\nRefresh 'never'\n"
          "Children true\nContinue true\n</Group>");
  assert_int_equal(s.report.metrics,
                   metric_find("pss", &reason) | metric_find("uss", &reason));
  assert_int_equal(s.policy.max_age_ns, 2 * NS_PER_S);
  assert_int_equal(s.policy.max_lock_hold_ns, 3 * NS_PER_MS);
  assert_int_equal(s.policy.refresh, REFRESH_ALWAYS);
  assert_int_equal(s.read_timeout_ns, 4500 * NS_PER_MS);
  assert_true(s.read_budget_percent == 0.5);
  assert_int_equal(s.max_groups, 6);
  assert_int_equal(s.state_interval_ns, 7 * NS_PER_S);
  assert_true(s.has_state_at_start && !s.reports_host);
  assert_int_equal(s.command_lines, CHOICE_NO);
  assert_int_equal(s.report.growth_window_ns, 80 * NS_PER_S);
  assert_int_equal(s.report.absolute, CHOICE_NO);
  assert_int_equal(s.report.percentage, CHOICE_YES);
  assert_string_equal(s.state_file, "/a");
  assert_string_equal(s.state_history, "/b");
  assert_string_equal(s.container_root, "/c");
  assert_string_equal(s.capture.directory, "/d");
  assert_int_equal(s.capture.top_processes, 9);
  assert_int_equal(s.capture.top_mappings, 10);
  assert_int_equal(s.capture.cooldown_ns, 11 * NS_PER_S);
  assert_int_equal(s.capture.max_files, 12);
  assert_int_equal(s.capture.max_bytes, 13 << 20);
  assert_int_equal(s.capture.command_lines, CHOICE_YES);
  assert_int_equal(s.capture.severities, SEVERITY_OKAY | SEVERITY_FAILURE);
  assert_int_equal(s.rules[0].policy.max_age_ns, 14 * NS_PER_S);
  assert_int_equal(s.rules[0].policy.max_lock_hold_ns, NS_PER_MS / 2);
  assert_int_equal(s.rules[0].policy.refresh, REFRESH_NEVER);
  assert_int_equal(s.rules[0].report.growth_window_ns, 90 * NS_PER_S);
  assert_int_equal(s.rules[0].report.absolute, CHOICE_YES);
  assert_true(s.rules[0].takes_children && s.rules[0].is_view);
  assert_int_equal(settings_finish(&s), 0);
  assert_int_equal(s.rules[0].policy.unsampled_lock_hold_ns, NS_PER_MS / 2);
  assert_int_equal(s.other.policy.unsampled_lock_hold_ns, 3 * NS_PER_MS);
  settings_done(&s);
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
      {"MaxGrups '5'", "MaxGrups '5'",
       "expected an option of this block; there is no such option: see "
       "collectd-smaps(5)"},
      {"<Group 'g'>\nCom 'x'\n</Group>", "<Group 'g'>: Com 'x'",
       "a selector or an option"},
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
       "shell glob"},
      {"Other 'a'\nOther 'a'", "Other 'a'", "only once"},
      {"MaxGroups 0", "MaxGroups 0", "from 1 to"},
      {"MaxGroups 1e30", "MaxGroups 1e+30", "from 1 to"},
      {"ProcRoot '/nowhere'", "ProcRoot '/nowhere'", "proc file system"},
      {"Report 'psss'", "Report 'psss'", "names of values"},
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
      {"<Ignore 'x'>\nComm 'a'\n</Ignore>", "Ignore 'x'", "without a name"},
      {"<Capture 'x'>\nDirectory '/x'\n</Capture>", "Capture 'x'",
       "without a name"},
      {"<MaxGroups 1>\nx 'y'\n</MaxGroups>", "MaxGroups 1", "not a block"},
      {"<Group 'g'>\n<Comm 'c'>\nUser 'u'\n</Comm>\n</Group>",
       "<Group 'g'>: Comm 'c'", "not a block"},
      {"<Capture>\nMaxFiles 5\n</Capture>", "Capture", "a Directory"},
      {"<Capture>\nDirectory 'relative'\n</Capture>",
       "<Capture>: Directory 'relative'", "absolute path"},
      {"<Capture>\nDirectory 1\n</Capture>", "Directory 1", "one string"},
      {"<Capture>\nDirectory '/x'\n<OnNotification>\n</OnNotification>\n"
       "</Capture>",
       "OnNotification", "at least one of"},
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
      {"MaxFile '5'", "an option of this block; there is no such option"},
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

/* --- snapshots: options, notifications in and out --- */

static char path[256];

/* Something in the tree. */
static const char *at(const char *name) {
  snprintf(path, sizeof(path), "%s/%s", tree.root, name);
  return path;
}

/* With captures, and more options of these. Nothing is estimated. */
static void start_captures(const char *directory, const char *more) {
  char options[1024];

  snprintf(options, sizeof(options),
           "Refresh 'always'\n<Capture>\nDirectory '%s'\n%s\n</Capture>",
           directory, more);
  start_web(options);
  assert_int_equal(stub.read(NULL), 0);
}

/* With an option for a file, and more. */
static void start_with(const char *option, const char *file, const char *more) {
  char options[1024];

  snprintf(options, sizeof(options), "%s '%s'\n%s", option, file, more);
  start_web(options);
  assert_int_equal(stub.read(NULL), 0);
}

/* Ends the plugin, and with it all that was being written. */
static void stop_plugin(void) { assert_int_equal(stub.shutdown(), 0); }

/* One as the threshold plugin makes it. */
static notification_t alarm_about(const char *group) {
  notification_t n = {.severity = NOTIF_FAILURE,
                      .time = TIME_T_TO_CDTIME_T(999990)};

  strcpy(n.message, "Host stub, plugin smaps: too much");
  strcpy(n.host, "stub");
  strcpy(n.plugin, "smaps");
  snprintf(n.plugin_instance, sizeof(n.plugin_instance), "%s", group);
  strcpy(n.type, "memory");
  strcpy(n.type_instance, "pss");
  return n;
}

/* Sends a notification, and runs the cycle that may make a capture of it. */
static void notify(const notification_t *n) {
  assert_int_equal(stub.notification(n, NULL), 0);
  assert_int_equal(stub.read(NULL), 0);
}

/* Whether the notification has a capture made. */
static bool is_captured(const notification_t *n) {
  size_t before;

  stub_clear();
  start_captures(at("captures"), "OnNotification 'okay' 'warning' 'failure'");
  before = stub.n_notifications;
  notify(n);
  stop_plugin();
  return stub.n_notifications > before;
}

/* --- notifications --- */

/* The message, and the meta data as a program gets it. The tree's process is of
 * 120 kB. */
static void assert_is_told(const char *message, size_t i) {
  char wanted[PATH_MAX + 128];

  snprintf(wanted, sizeof(wanted),
           "capture %s: PSS 120.0 KiB; 10 web 120.0 KiB", stub.metas[i]);
  assert_string_equal(message, wanted);
  snprintf(
      wanted, sizeof(wanted),
      "CaptureFile: %s\nPss: 122880\nPssError: 0\nTopProcess1: 10 web 122880\n",
      stub.metas[i]);
  assert_string_equal(stub.headers[i], wanted);
}

FIXTURE_TEST(an_alarm_makes_a_capture_and_that_is_told) {
  notification_t n = alarm_about("web"), *told = &stub.notifications[0];
  parsed d;

  assert_true(is_captured(&n));
  assert_int_equal(stub.n_notifications, 1);
  assert_int_equal(stub.n_without_context, 0);
  assert_int_equal(told->severity, NOTIF_OKAY);
  assert_int_equal(told->time, stub.now);
  assert_string_equal(told->host, "stub");
  assert_string_equal(told->plugin, "smaps");
  assert_string_equal(told->plugin_instance, "web");
  assert_string_equal(told->type, "");
  assert_memory_equal(stub.metas[0], at("captures/smaps-"),
                      strlen(at("captures/smaps-")));
  assert_is_told(told->message, 0);
  d = parsed_file(stub.metas[0]);
  parsed_assert(
      d,
      "host=stub interval=10.0 trigger.time=999990.0 trigger.severity=failure "
      "trigger.group=web trigger.type=memory trigger.type_instance=pss");
  assert_string_equal(parsed_string(d, "trigger.message"),
                      "Host stub, plugin smaps: too much");
  assert_string_equal(parsed_string(d, "rules.0"),
                      "<Group \"web\"> Comm \"web\"");
  assert_string_equal(parsed_string(d, "processes.0.command_line"),
                      "web --secret");
  parsed_free(d);
}

/* What is told of a capture with that summary, after its path. */
static const char *line_of(const struct summary *s) {
  stub_clear();
  notification_written(&(struct document){
      .kind = DOCUMENT_CAPTURE, .subject = "web", .summary = *s, .path = "/p"});
  return stub.notifications[0].message + strlen("capture /p: ");
}

FIXTURE_TEST(a_line_has_all_that_is_known) {
  struct summary s = {
      .has_pss = true,
      .pss_bytes = 1536 * MIB,
      .pss_error = 15 * MIB,
      .change = {.bytes = (int64_t)(300 * MIB), .age_ns = 3720 * NS},
      .limit_bytes = 2048 * MIB,
      .largest =
          {{.pid = 1234, .has_pss = true, .bytes = 812 * MIB, .comm = "db"},
           {.pid = 4194304, .has_pss = true, .bytes = 100 * KIB, .comm = "a b"},
           {.pid = 7, .has_pss = false, .bytes = 5 * MIB, .comm = "?"}},
      .n = 3};

  assert_string_equal(
      line_of(&s),
      "PSS 1.5 GiB, +300.0 MiB in 62 min, limit 2.0 GiB; 1234 db 812.0 MiB, "
      "4194304 a b 100.0 KiB, 7 ? RSS 5.0 MiB");
  assert_string_equal(
      stub.headers[0],
      "CaptureFile: /p\nPss: 1610612736\nPssError: 15728640\n"
      "PssGrowth: 314572800\nPssGrowthSeconds: 3720\nMemoryLimit: 2147483648\n"
      "TopProcess1: 1234 db 851443712\nTopProcess2: 4194304 a b 102400\n"
      "TopProcess3: 7 ? RSS 5242880\n");
  s.pss_error = 90 * MIB;
  s.change.age_ns = s.limit_bytes = 0;
  s.n = 1;
  s.has_ended = true;
  s.ended_ns = NS / 10;
  assert_string_equal(line_of(&s),
                      "before its end, 1 s ago: PSS 1.5 GiB +- 90.0 MiB; "
                      "1234 db 812.0 MiB");
  s.n = 3;
  for (int i = 0; i < 3; i++)
    memset(s.largest[i].comm, 'x', sizeof(s.largest[i].comm) - 1);
  assert_in_range(strlen(line_of(&s)), 100, 200);
  assert_string_equal(line_of(&(struct summary){.n = 0}), "PSS unknown");
}

FIXTURE_TEST(changes_have_a_sign_and_amounts_a_unit) {
  static const struct {
    uint64_t pss;
    struct pss_change change;
    const char *line;
  } cases[] = {
      {0, {0}, "PSS 0.0 KiB"},
      {1024 * KIB - 1, {0}, "PSS 1.0 MiB"},
      {UINT64_MAX, {0}, "PSS 16.0 EiB"},
      {MIB, {-(int64_t)(3 * MIB), 119 * NS}, "PSS 1.0 MiB, -3.0 MiB in 119 s"},
      {MIB, {INT64_MIN, 120 * NS}, "PSS 1.0 MiB, -8.0 EiB in 2 min"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    assert_string_equal(line_of(&(struct summary){.has_pss = true,
                                                  .pss_bytes = cases[i].pss,
                                                  .change = cases[i].change}),
                        cases[i].line);
}

/* The directory, so that the path of a capture of "web" has that length. */
static const char *directory_for(size_t path_len) {
  static char directory[256];
  size_t len = path_len - strlen("/smaps-20010109T014640Z-web.json");

  memset(directory, 'x', len);
  memcpy(directory, at(""), strlen(at("")));
  directory[len] = '\0';
  return directory;
}

/* The message has 255 bytes. */
FIXTURE_TEST(a_long_path_leaves_less_room_for_the_rest) {
  static const struct {
    size_t path_len;
    const char *rest;
  } cases[] = {{150, ": PSS 120.0 KiB; 10 web 120.0 KiB"},
               {214, ": PSS 120.0 KiB; 10 web 120.0 KiB"},
               {215, ": PSS 120.0 KiB"},
               {232, ": PSS 120.0 KiB"},
               {233, ": "}};
  notification_t n = alarm_about("web");

  for (size_t i = 0; i < LENGTH(cases); i++) {
    const char *message = stub.notifications[0].message;

    stub_clear();
    start_captures(directory_for(cases[i].path_len), "");
    notify(&n);
    stop_plugin();
    assert_int_equal(stub.n_notifications, 1);
    assert_int_equal(strlen(stub.metas[0]), cases[i].path_len);
    assert_memory_equal(message, "capture ", 8);
    assert_memory_equal(message + 8, stub.metas[0], cases[i].path_len);
    assert_string_equal(message + 8 + cases[i].path_len, cases[i].rest);
    assert_non_null(strstr(stub.headers[0], "TopProcess1: 10 web 122880\n"));
  }
}

/* A host is ours without a name, and in any case. */
FIXTURE_TEST(notifications_about_others_make_no_capture) {
  static const struct {
    const char *host, *plugin, *group;
    bool is_ours;
  } cases[] = {
      {"", "smaps", "web", true},       {"STUB", "smaps", "web", true},
      {"other", "smaps", "web", false}, {"stub", "memory", "web", false},
      {"stub", "smaps", "", false},     {"stub", "smaps", "db", false},
      {"stub", "smaps", "we", false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    notification_t n = alarm_about(cases[i].group);

    strcpy(n.host, cases[i].host);
    strcpy(n.plugin, cases[i].plugin);
    if (is_captured(&n) != cases[i].is_ours)
      fail_msg("case %zu", i);
  }
}

FIXTURE_TEST(severities_are_chosen) {
  static const int severities[] = {NOTIF_OKAY, NOTIF_WARNING, NOTIF_FAILURE};
  static const struct {
    const char *options;
    size_t captured[3]; /* of each severity */
  } cases[] = {{"", {0, 1, 1}},
               {"OnNotification 'FAILURE'", {0, 0, 1}},
               {"OnNotification 'warning' 'okay'", {1, 1, 0}}};

  for (size_t i = 0; i < 3 * LENGTH(cases); i++) {
    notification_t n = alarm_about("web");

    n.severity = severities[i % 3];
    stub_clear();
    start_captures(at((char[]){(char)('a' + i), '\0'}), cases[i / 3].options);
    notify(&n);
    stop_plugin();
    assert_int_equal(stub.n_notifications, cases[i / 3].captured[i % 3]);
  }
}

/* A second alarm within the cooldown makes no capture. */
FIXTURE_TEST(an_alarm_at_any_time_is_fine) {
  notification_t n = alarm_about("web");

  start_captures(at("a"), "Cooldown 1000");
  stop_plugin();
  assert_int_equal(stub.notification(&n, NULL), 0);
  /* The same once it has been started anew. */
  start_captures(at("a"), "Cooldown 1000");
  for (int i = 0; i < 3; i++)
    notify(&n);
  stop_plugin();
  assert_int_equal(stub.n_notifications, 1);
}

FIXTURE_TEST(without_captures_notifications_are_none_of_ours) {
  start_with("StateFile", at("state"), "");
  assert_null(stub.notification);
}

FIXTURE_TEST(failed_writes_are_logged) {
  notification_t n = alarm_about("web");

  proctree_write(&tree, "captures", "", 0);
  assert_false(is_captured(&n));
  assert_int_equal(stub.n_logs, 2);
  assert_int_equal(stub.levels[0], LOG_ERR);
  assert_non_null(strstr(stub.logs[0], "<Capture>: Directory"));
  assert_non_null(
      strstr(stub.logs[0], "cannot be written: it is a symbolic link, or"));
  assert_int_equal(stub.levels[1], LOG_ERR);
  assert_non_null(strstr(stub.logs[1], "<Capture>"));
  assert_non_null(strstr(stub.logs[1], "group \"web\""));
  assert_non_null(strstr(stub.logs[1], at("captures")));
  assert_non_null(
      strstr(stub.logs[1], "it is a symbolic link, or no directory"));
  /* What a person would want to know from it all the same. */
  assert_non_null(strstr(stub.logs[1], "; it has PSS 120.0 KiB; 10 web 120.0"));
}

/* --- the state --- */

FIXTURE_TEST(a_state_is_written_without_command_lines) {
  parsed d;

  start_with("StateFile", at("state"), "CommandLines false");
  assert_int_equal(stub.read(NULL), 0);
  stop_plugin();
  d = parsed_file(at("state"));
  parsed_assert(d, "trigger.kind=interval processes.0.comm=web");
  assert_null(parsed_get(d, "processes.0.command_line"));
  parsed_free(d);
  assert_int_equal(stub.n_logs, 0);
  assert_int_equal(stub.n_notifications, 0);
}

/* Reads until a line is logged: the writer has a thread of its own. */
static void read_until_logged(size_t n) {
  time_t deadline = time(NULL) + 30;

  while (stub_logs() < n && time(NULL) < deadline)
    assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub_logs(), n);
}

FIXTURE_TEST(a_state_that_fails_is_logged_once_and_when_it_is_back) {
  start_with("StateFile", at("no/state"), "StateInterval 0");
  read_until_logged(1);
  for (int i = 0; i < 20; i++)
    assert_int_equal(stub.read(NULL), 0);
  proctree_write(&tree, "no/x", "", 0);
  read_until_logged(2);
  proctree_rename(&tree, "no", "gone");
  read_until_logged(3);
  stop_plugin();
  assert_int_equal(stub.n_logs, 3);
  assert_int_equal(stub.levels[0], LOG_ERR);
  assert_non_null(strstr(stub.logs[0], at("no/state")));
  assert_non_null(strstr(stub.logs[0], strerror(ENOENT)));
  assert_int_equal(stub.levels[1], LOG_NOTICE);
  assert_non_null(strstr(stub.logs[1], "is written again"));
  assert_int_equal(stub.levels[2], LOG_ERR);
  assert_non_null(strstr(stub.logs[2], strerror(ENOENT)));
}

/* --- options --- */

FIXTURE_TEST(options_reach_the_captures) {

  notification_t n = alarm_about("web");
  parsed d;

  proctree_put(&tree, &(struct fake){.pid = 11, .comm = "web", .starttime = 9});
  start_captures(at("a"), "topprocesses 1\nTopMappings 1\nMaxFiles 7\n"
                          "MaxBytes '64k'\nCommandLines false");
  notify(&n);
  stop_plugin();
  assert_int_equal(stub.n_notifications, 1);
  d = parsed_file(stub.metas[0]);
  assert_int_equal(parsed_count(d, "processes"), 1);
  assert_int_equal(parsed_integer(d, "left_out"), 1);
  assert_null(parsed_get(d, "processes.0.command_line"));
  parsed_free(d);
}
