/* SPDX-License-Identifier: MIT */
/* The values and the life of the plugin, as the daemon sees them. */
#include "test.h"

#include "glue.h"

/* --- values --- */

GLUE_TEST(each_value_is_dispatched_as_documented) {
  static const char expected[] =
      "smaps-web/memory-pss smaps-web/memory-uss smaps-web/memory-rss "
      "smaps-web/memory-shared smaps-web/memory-swap "
      "smaps-web/memory-pss_error smaps-web/memory-freed "
      "smaps-web/memory-freed_error smaps-web/ps_count "
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

/* The alarm says that it has ended; the values say 0. */
GLUE_TEST(values_of_a_group_that_has_ended_are_dispatched) {
  glue_start_web("");
  glue_read();
  end_web();
  assert_true(glue_value("smaps-web/memory-pss") == 0);
  assert_true(glue_value("smaps-web/ps_count") == 0);
  assert_true(glue_value("smaps-web/count-unreadable") == 0);
  assert_true(isnan(glue_value("smaps-web/gauge-growth")));
}

GLUE_TEST(an_alarm_is_sent_once) {
  const notification_t *n = &stub.notifications[0];

  glue_start_web("");
  for (int i = 0; i < 3; i++)
    glue_read();
  end_web();
  assert_int_equal(stub.n_notifications, 0);
  for (int i = 0; i < 5; i++)
    glue_read();
  assert_int_equal(stub.n_notifications, 1);
  assert_int_equal(n->severity, NOTIF_FAILURE);
  assert_int_equal(n->time, stub.now);
  assert_string_equal(n->host, "stub");
  assert_string_equal(n->plugin, "smaps");
  assert_string_equal(n->plugin_instance, "web");
  assert_string_equal(n->type, "");
  assert_string_equal(n->type_instance, "");
  assert_string_equal(n->message, "web: no process is left");
  assert_memory_equal(stub.headers[0], "Cause: ended\nSince: ", 20);
}

GLUE_TEST(alarms_may_be_off) {
  glue_start_web("Alarms false");
  for (int i = 0; i < 3; i++)
    glue_read();
  end_web();
  for (int i = 0; i < 5; i++)
    glue_read();
  assert_int_equal(stub.n_notifications, 0);
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
