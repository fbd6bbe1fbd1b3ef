/* SPDX-License-Identifier: MIT */
/* Options as users write them take effect, or are refused with a reason. */
#include "test.h"

#include "config.h"
#include "glue.h"
#include "items.h"

/* --- blocks --- */

GLUE_TEST(other_as_a_block_has_options_of_its_own) {
  proctree_put(&glue_tree, &(struct fake){.pid = 11, .comm = "db"});
  glue_start_web("<Other 'rest'>\nReport 'ps_count' 'coverage'\n"
                 "Refresh 'never'\n</Other>");
  glue_read();
  assert_int_equal(stub.n_values, 14 + 2 + 15);
  assert_true(glue_value("smaps-rest/ps_count") == 1);
  assert_true(glue_value("smaps-rest/percent-coverage") == 0);
  assert_true(glue_value("smaps-web/percent-coverage") == 100);
}

GLUE_TEST(blocks_add_up) {
  assert_int_equal(stub.shutdown(), 0); /* without having started */
  glue_configure_web("");
  assert_int_equal(items_configure("Process 'db'"), 0);
  assert_int_equal(stub.init(), 0);
  glue_read();
  assert_true(glue_value("smaps-web/ps_count") == 1);
  assert_true(glue_value("smaps-db/ps_count") == 0);
}

GLUE_TEST(process_options_work_as_in_the_processes_plugin) {

  proctree_put(&glue_tree, &(struct fake){.pid = 11,
                                          .comm = "100%x",
                                          .starttime = 9,
                                          .cmdline = "php-fpm: pool www"});
  glue_start("PROCESS '100%x'\nprocessmatch 'php' '^web --s'");
  glue_read();
  assert_true(glue_value("smaps-100%x/ps_count") == 1);
  assert_true(glue_value("smaps-php/ps_count") == 1);
}

/* --- the fields of options, and their units --- */

static void set(struct settings *s, const char *options) {
  oconfig_item_t block = items_parse(options);

  settings_init(s);
  assert_int_equal(config_add_block(s, &block), 0);
  items_free(&block);
}

GLUE_TEST(options_have_fields_and_units_of_their_own) {
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

GLUE_TEST(a_group_inherits_the_alarms_that_it_does_not_set) {
  const struct alarm_policy *g, *h;
  struct settings s;

  set(&s, "<Alarms>\nUnknown false\nLimitPercent 80\n</Alarms>\n"
          "<Group 'g'>\nComm 'g'\n<Alarms>\nEnded false\nFullWithin 60\n"
          "</Alarms>\n</Group>\n"
          "<Group 'h'>\nComm 'h'\nAlarms false\n</Group>");
  assert_int_equal(settings_finish(&s), 0);
  g = &s.rules[0].report.alarms;
  h = &s.rules[1].report.alarms;
  assert_int_equal(g->limit_percent, 80);
  assert_int_equal(g->full_within_ns, 60 * NS_PER_S);
  assert_int_equal(h->full_within_ns, 86400 * NS_PER_S);
  for (int i = 0; i < ALARM_CAUSES; i++) {
    bool is_off = i == ALARM_UNKNOWN || i == ALARM_ENDED;

    assert_int_equal(g->causes[i], is_off ? CHOICE_NO : CHOICE_YES);
    assert_int_equal(h->causes[i], CHOICE_NO);
  }
  settings_done(&s);
}

/* --- mistakes in the configuration --- */

/* Asserts that the options are refused in one line, which has the option as it
 * was written, what was expected, and the text `why`. */
static void assert_refused(const char *options, const char *option,
                           const char *why) {
  char quoted[64];

  snprintf(quoted, sizeof(quoted), "%s", option);
  for (char *quote = quoted; (quote = strchr(quote, '\''));)
    *quote = '"';
  stub_clear();
  assert_int_not_equal(items_configure("%s", options), 0);
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_ERR);
  if (!strstr(stub.logs[0], quoted) || !strstr(stub.logs[0], "expected") ||
      !strstr(stub.logs[0], why) || strchr(stub.logs[0], '\n'))
    fail_msg("%s: %s", options, stub.logs[0]);
  stub.shutdown();
}

/* smaps-report check gives each block the name of its file. */
GLUE_TEST(all_mistakes_are_named_with_their_file_and_block) {
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
  /* The daemon does not report which file a block is from. */
  assert_refused("MaxAge 0", "smaps plugin: MaxAge 0: expected", "");
}

GLUE_TEST(mistakes_are_named_with_option_value_and_reason) {
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
       "regular expression: "},
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
      {"Alarms 1", "Alarms 1", "true or false"},
      {"<Alarms>\nLimitPercent 101\n</Alarms>", "LimitPercent 101",
       "from 1 to 100"},
      {"<Alarms>\nFullWithin 59\n</Alarms>", "FullWithin 59",
       "from 60 to 604800"},
      {"<Alarms>\nGrowths true\n</Alarms>", "Growths true", "no such option"},
      {"<Alarms>\nEnded 'no'\n</Alarms>", "Ended 'no'", "true or false"},
      {"<Alarms 'x'>\nEnded true\n</Alarms>", "Alarms 'x'", "without a name"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    assert_refused(cases[i][0], cases[i][1], cases[i][2]);
}

GLUE_TEST(mistakes_in_the_options_of_a_capture_are_named) {
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

GLUE_TEST(numbers_at_the_ends_of_their_ranges_are_accepted) {
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
        items_configure("<Capture>\nDirectory '/x'\n%s\n</Capture>",
                        in_capture[i]),
        0);
  assert_int_equal(items_configure("StateInterval 0\nStateHistory '/y'"), 0);
  assert_int_equal(items_configure("StateInterval 86400"), 0);
  assert_int_equal(stub.n_logs, 0);
}
