/* The values and the life of the plugin, as the daemon sees them. */
#include "test.h"

#include "glue.h"

/* --- values --- */

GLUE_TEST(each_value_is_dispatched_as_documented) {
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
  glue_start_web("");
  glue_read();
  for (char *name = strtok(names, " "); name; name = strtok(NULL, " "), n++)
    glue_value(name);
  assert_int_equal(stub.n_values, n);
  for (size_t i = 0; i < n; i++)
    assert_int_equal(stub.values[i].time, stub.now);
  assert_true(glue_value("smaps-web/memory-pss") == 120 * 1024);
  assert_true(glue_value("smaps-web/memory-uss") == 100 * 1024);
  assert_true(glue_value("smaps-web/memory-rss") == 140 * 1024);
  assert_true(glue_value("smaps-web/memory-shared") == 40 * 1024);
  assert_true(glue_value("smaps-web/percent-coverage") == 100);
  assert_int_equal(stub_find("smaps-web/ps_count")->n, 2);
  assert_true(stub_find("smaps-web/ps_count")->values[1] == 3);
  assert_true(glue_value("smaps/count-groups") == 1);
  assert_int_equal(stub.n_logs, 0);
}

/* --- a group that ends ---------------------------------------------------- */

/* The plugin takes a tree without any process for a failure, so that another
 * process takes its place. */
static void end_web(void) {
  proctree_put(&glue_tree,
               &(struct fake){.pid = 2, .comm = "x", .starttime = 2});
  proctree_end(&glue_tree, 10);
  glue_read();
}

static void begin_web(void) {
  proctree_put(&glue_tree,
               &(struct fake){
                   .pid = 11, .comm = "web", .starttime = 9, .private_kb = 7});
  glue_read();
}

/* The threshold plugin would take a 0 for the end of the alarm. */
GLUE_TEST(values_with_an_alarm_are_missing_when_the_group_has_ended) {
  glue_start_web("");
  glue_read();
  stub.alarmed = "-pss";
  end_web();
  assert_null(stub_find("smaps-web/memory-pss"));
  assert_null(stub_find("smaps-web/memory-pss_error"));
  assert_true(glue_value("smaps-web/memory-uss") == 0);
  stub.alarmed = NULL; /* the daemon forgets values that are missing */
  glue_read();
  assert_null(stub_find("smaps-web/memory-pss"));
  begin_web();
  assert_true(glue_value("smaps-web/memory-pss") == 7 * 1024);
  assert_true(glue_value("smaps-web/memory-pss_error") == 0);
}

GLUE_TEST(percentages_have_alarms_of_their_own) {
  glue_start_web("ValuesPercentage true");
  glue_read();
  stub.alarmed = "percent-pss";
  end_web();
  glue_read();
  assert_null(stub_find("smaps-web/percent-pss"));
  assert_true(glue_value("smaps-web/memory-pss") == 0);
}

GLUE_TEST(an_alarm_that_comes_when_the_group_has_ended_leaves_its_value) {
  glue_start_web("");
  glue_read();
  end_web();
  stub.alarmed = "memory-pss"; /* the 0 is below a limit */
  glue_read();
  assert_true(glue_value("smaps-web/memory-pss") == 0);
  assert_true(isnan(glue_value("smaps-web/gauge-growth")));
}

/* Counts are 0 because the group has ended, and an alarm may be about that. */
GLUE_TEST(counts_with_an_alarm_are_dispatched_when_the_group_has_ended) {
  glue_start_web("");
  glue_read();
  stub.alarmed = "count";
  end_web();
  assert_true(glue_value("smaps-web/ps_count") == 0);
  assert_true(glue_value("smaps-web/count-unreadable") == 0);
}

/* A filter of the daemon may have renamed these values. */
GLUE_TEST(values_that_the_daemon_does_not_know_are_dispatched) {
  glue_start_web("");
  glue_read();
  stub.has_cache = false;
  end_web();
  assert_true(glue_value("smaps-web/memory-pss") == 0);
}

GLUE_TEST(start_logs_version_and_setup_once) {
  glue_configure_web("");
  assert_int_equal(stub.n_infos, 0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.n_infos, 1);
  assert_non_null(strstr(stub.info, "version " SMAPS_VERSION ", collectd 5."));
  assert_non_null(strstr(stub.info, glue_tree.root));
  assert_non_null(strstr(stub.info, " 1 rules"));
}

GLUE_TEST(a_tree_that_is_not_a_host_is_logged_once_if_the_host_is_reported) {
  for (int has_host = 0; has_host < 2; has_host++) {
    glue_start_web(has_host ? "Host true" : "Host false");
    stub.n_infos = 0;
    glue_read();
    glue_read();
    assert_int_equal(stub.n_infos, has_host);
    stub.shutdown();
  }
  assert_non_null(strstr(stub.info, "no values of the host"));
  assert_non_null(strstr(stub.info, glue_tree.root));
}

/* --- failures and their log lines --- */

GLUE_TEST(read_fails_only_without_a_proc_tree) {
  glue_start_web("");
  proctree_end(&glue_tree, 10);
  for (int i = 0; i < 3; i++)
    assert_int_not_equal(stub.read(NULL), 0);
  assert_int_equal(stub.n_values, 0);
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_ERR);
  proctree_put(&glue_tree, &(struct fake){.pid = 11, .comm = "web"});
  for (int i = 0; i < 3; i++)
    assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub.n_logs, 2);
  assert_true(glue_value("smaps-web/ps_count") == 1);
}

GLUE_TEST(a_clock_that_jumps_does_no_harm) {
  const long long jumps[] = {3, -86400, 1, 400 * 86400LL, -5, 0, 0};

  proctree_write(&glue_tree, "10/smaps_rollup", "Rss: x\n", 7);
  glue_start_web("");
  for (size_t i = 0; i < LENGTH(jumps); i++) {
    glue_read();
    assert_int_equal(stub_find("smaps-web/ps_count")->time, stub.now);
    assert_true(glue_value("smaps/duration-cycle") < 60);
    /* The first failure is logged, and another one after more than an hour. */
    assert_int_equal(stub.n_logs, i < 4 ? 1 : 2);
    stub.now = (cdtime_t)((long long)stub.now + (jumps[i] * (1LL << 30)));
  }
}

GLUE_TEST(max_groups_is_logged_once) {

  proctree_put(&glue_tree, &(struct fake){.pid = 11, .comm = "b\nd"});
  glue_start("<Group '%{comm}'>\nComm '*'\n</Group>\nMaxGroups 1");
  for (int i = 0; i < 5; i++)
    assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub.n_logs, 1);
  assert_non_null(strstr(stub.logs[0], "MaxGroups"));
  assert_non_null(strstr(stub.logs[0], "b\\x0ad"));
  assert_null(strchr(stub.logs[0], '\n'));
}
