/* Snapshots as the daemon sees them: options, notifications in and out. */
#include "test.h"

#include "items.h"
#include "parsed.h"
#include "proctree.h"
#include "stub_daemon.h"

static struct proctree tree;
static char path[256];

/* Something in the tree. */
static const char *at(const char *name) {
  snprintf(path, sizeof(path), "%s/%s", tree.root, name);
  return path;
}

static int make(void **state) {
  const struct fake_mapping mapping = {.name = "[heap]", .private_kb = 100};

  (void)state;
  stub_begin(module_register);
  proctree_make(&tree);
  proctree_put(&tree, &(struct fake){.pid = 10,
                                     .comm = "web",
                                     .starttime = 5,
                                     .cmdline = "web --secret",
                                     .private_kb = 100});
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

static struct item *capture_block(void) { return item("Capture", NULL); }

static struct item *capture_at(const char *directory) {
  return with(capture_block(), item("Directory", directory, NULL));
}

static struct item *web_block(void) {
  return with(with(plugin_block(), item("ProcRoot", tree.root, NULL)),
              with(item("Group", "web", NULL), item("Comm", "web", NULL)));
}

static void start(struct item *block) {
  assert_int_equal(configure(block), 0);
  assert_int_equal(stub.init(), 0);
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

/* Whether the notification has a capture made, which needs a cycle. */
static bool is_captured(const notification_t *n) {
  size_t before;

  stub_clear();
  start(with(web_block(),
             with(capture_at(at("captures")),
                  item("OnNotification", "okay", "warning", "failure", NULL))));
  before = stub.n_notifications;
  assert_int_equal(stub.notification(n, NULL), 0);
  assert_int_equal(stub.read(NULL), 0);
  stop_plugin();
  return stub.n_notifications > before;
}

/* --- notifications -----------------------------------------------------------
 */

/* The message, and the meta data as a program gets it. The tree's process is of
 * 100 kB. */
static void assert_is_told(const char *message, size_t i) {
  char wanted[PATH_MAX + 128];

  snprintf(wanted, sizeof(wanted),
           "capture %s: PSS 100.0 KiB; "
           "10 web 100.0 KiB",
           stub.metas[i]);
  assert_string_equal(message, wanted);
  snprintf(
      wanted, sizeof(wanted),
      "CaptureFile: %s\nPss: 102400\nPssError: 0\nTopProcess1: 10 web 102400\n",
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
  } cases[] = {{150, ": PSS 100.0 KiB; 10 web 100.0 KiB"},
               {214, ": PSS 100.0 KiB; 10 web 100.0 KiB"},
               {215, ": PSS 100.0 KiB"},
               {232, ": PSS 100.0 KiB"},
               {233, ": "}};
  notification_t n = alarm_about("web");

  for (size_t i = 0; i < LENGTH(cases); i++) {
    const char *message = stub.notifications[0].message;

    stub_clear();
    start(with(web_block(), capture_at(directory_for(cases[i].path_len))));
    assert_int_equal(stub.notification(&n, NULL), 0);
    assert_int_equal(stub.read(NULL), 0);
    stop_plugin();
    assert_int_equal(stub.n_notifications, 1);
    assert_int_equal(strlen(stub.metas[0]), cases[i].path_len);
    assert_memory_equal(message, "capture ", 8);
    assert_memory_equal(message + 8, stub.metas[0], cases[i].path_len);
    assert_string_equal(message + 8 + cases[i].path_len, cases[i].rest);
    assert_non_null(strstr(stub.headers[0], "TopProcess1: 10 web 102400\n"));
  }
}

/* It is about a group of ours, and would go round in circles. */
FIXTURE_TEST(our_own_notification_makes_no_capture) {
  notification_meta_t meta = {.name = "CaptureFile", .type = NM_TYPE_STRING};
  notification_meta_t other = {.name = "CurrentValue", .type = NM_TYPE_DOUBLE};
  notification_t n = alarm_about("web");

  meta.nm_value.nm_string = "/x";
  n.meta = &meta;
  assert_false(is_captured(&n));
  other.next = &meta;
  n.meta = &other;
  assert_false(is_captured(&n));
  other.next = NULL;
  assert_true(is_captured(&n));
}

FIXTURE_TEST(notifications_about_others_make_no_capture) {
  notification_t n = alarm_about("web");

  strcpy(n.host, "elsewhere");
  assert_false(is_captured(&n));
  n = alarm_about("web");
  strcpy(n.plugin, "memory");
  assert_false(is_captured(&n));
  n = alarm_about("");
  assert_false(is_captured(&n));
  n = alarm_about("db");
  assert_false(is_captured(&n));
  n = alarm_about("we");
  assert_false(is_captured(&n));
}

FIXTURE_TEST(a_host_is_ours_without_a_name_and_in_any_case) {
  notification_t n = alarm_about("web");

  n.host[0] = '\0';
  assert_true(is_captured(&n));
  strcpy(n.host, "STUB");
  assert_true(is_captured(&n));
}

/* Bit per severity: whether a capture comes of okay, warning, failure. */
static unsigned captured_by(struct item *capture) {
  static const int severities[] = {NOTIF_OKAY, NOTIF_WARNING, NOTIF_FAILURE};
  unsigned captured = 0;

  with(capture, number("Cooldown", 0));
  stub_clear();
  start(with(web_block(), capture));
  for (unsigned i = 0; i < 3; i++) {
    notification_t n = alarm_about("web");

    n.severity = severities[i];
    assert_int_equal(stub.notification(&n, NULL), 0);
    assert_int_equal(stub.read(NULL), 0);
  }
  stop_plugin();
  for (size_t i = 0; i < stub.n_notifications; i++) {
    parsed d = parsed_file(stub.metas[i]);
    const char *severity = parsed_string(d, "trigger.severity");

    captured |= strcmp(severity, "okay") == 0      ? 1
                : strcmp(severity, "warning") == 0 ? 2
                                                   : 4;
    parsed_free(d);
  }
  return captured;
}

FIXTURE_TEST(severities_are_chosen) {
  assert_int_equal(captured_by(capture_at(at("a"))), 6);
  assert_int_equal(captured_by(with(capture_at(at("b")),
                                    item("OnNotification", "FAILURE", NULL))),
                   4);
  assert_int_equal(
      captured_by(with(capture_at(at("c")),
                       item("OnNotification", "warning", "okay", NULL))),
      3);
}

FIXTURE_TEST(a_second_alarm_within_the_cooldown_makes_no_capture) {
  notification_t n = alarm_about("web");

  start(with(web_block(), with(capture_at(at("a")), number("Cooldown", 1000))));
  for (int i = 0; i < 5; i++) {
    assert_int_equal(stub.notification(&n, NULL), 0);
    assert_int_equal(stub.read(NULL), 0);
  }
  stop_plugin();
  assert_int_equal(stub.n_notifications, 1);
}

FIXTURE_TEST(an_alarm_at_any_time_is_fine) {
  notification_t n = alarm_about("web");

  start(with(web_block(), capture_at(at("a"))));
  stop_plugin();
  assert_int_equal(stub.notification(&n, NULL), 0);
  /* The same once it has been started anew. */
  assert_int_equal(configure(with(web_block(), capture_at(at("a")))), 0);
  assert_int_equal(stub.notification(&n, NULL), 0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.notification(&n, NULL), 0);
  assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub.read(NULL), 0);
  stop_plugin();
  assert_int_equal(stub.n_notifications, 1);
}

/* The first interval is all that collectd -T runs. */
FIXTURE_TEST(the_first_interval_writes_nothing) {
  notification_t n = alarm_about("web");

  assert_int_equal(configure(with(with(web_block(), capture_at(at("captures"))),
                                  item("StateFile", at("state"), NULL))),
                   0);
  assert_int_equal(stub.init(), 0);
  assert_int_equal(stub.notification(&n, NULL), 0);
  assert_int_equal(stub.read(NULL), 0);
  stop_plugin();
  assert_int_equal(stub.n_notifications, 0);
  assert_int_not_equal(access(at("captures"), F_OK), 0);
  assert_int_not_equal(access(at("state"), F_OK), 0);
}

FIXTURE_TEST(a_state_can_be_written_at_the_start) {
  start(with(with(web_block(), item("StateFile", at("state"), NULL)),
             boolean("StateAtStart", true)));
  stop_plugin();
  assert_int_equal(access(at("state"), F_OK), 0);
}

FIXTURE_TEST(without_captures_notifications_are_none_of_ours) {
  start(web_block());
  assert_null(stub.notification);
  stop_plugin();
  start(with(web_block(), item("StateFile", at("state"), NULL)));
  assert_null(stub.notification);
}

FIXTURE_TEST(failed_writes_are_logged) {
  notification_t n = alarm_about("web");

  proctree_write(&tree, "captures", "", 0);
  assert_false(is_captured(&n));
  assert_int_equal(stub.n_logs, 2);
  assert_int_equal(stub.levels[0], LOG_WARNING);
  assert_non_null(strstr(stub.logs[0], "cannot be written: it is not a dir"));
  assert_int_equal(stub.levels[1], LOG_ERR);
  assert_non_null(strstr(stub.logs[1], "<Capture>"));
  assert_non_null(strstr(stub.logs[1], "group \"web\""));
  assert_non_null(strstr(stub.logs[1], at("captures")));
  assert_non_null(strstr(stub.logs[1], strerror(ENOTDIR)));
  /* What a person would want to know from it all the same. */
  assert_non_null(strstr(stub.logs[1], "; it has PSS 100.0 KiB; 10 web 100.0"));
}

/* --- the state ---------------------------------------------------------------
 */

FIXTURE_TEST(a_state_is_written_without_command_lines) {
  parsed d;

  start(with(with(web_block(), item("StateFile", at("state"), NULL)),
             boolean("CommandLines", false)));
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
  start(with(with(web_block(), item("StateFile", at("no/state"), NULL)),
             number("StateInterval", 0)));
  read_until_logged(1);
  for (int i = 0; i < 20; i++)
    assert_int_equal(stub.read(NULL), 0);
  proctree_write(&tree, "no/x", "", 0);
  read_until_logged(2);
  proctree_rename(&tree, "no", "gone");
  read_until_logged(3);
  stop_plugin();
  assert_int_equal(stub.n_logs, 3);
  assert_int_equal(stub.levels[0], LOG_WARNING);
  assert_non_null(strstr(stub.logs[0], at("no/state")));
  assert_non_null(strstr(stub.logs[0], "does not exist"));
  assert_int_equal(stub.levels[1], LOG_NOTICE);
  assert_non_null(strstr(stub.logs[1], "is written again"));
  assert_int_equal(stub.levels[2], LOG_ERR);
  assert_non_null(strstr(stub.logs[2], strerror(ENOENT)));
}

/* --- options -----------------------------------------------------------------
 */

FIXTURE_TEST(options_reach_the_captures) {
  struct item *capture = capture_at(at("a"));
  notification_t n = alarm_about("web");
  parsed d;

  proctree_put(&tree, &(struct fake){.pid = 11, .comm = "web", .starttime = 9});
  with(capture, number("topprocesses", 1));
  with(capture, number("TopMappings", 1));
  with(capture, number("MaxFiles", 7));
  with(capture, item("MaxBytes", "64k", NULL));
  with(capture, boolean("CommandLines", false));
  start(with(web_block(), capture));
  assert_int_equal(stub.notification(&n, NULL), 0);
  assert_int_equal(stub.read(NULL), 0);
  stop_plugin();
  assert_int_equal(stub.n_notifications, 1);
  d = parsed_file(stub.metas[0]);
  assert_int_equal(parsed_count(d, "processes"), 1);
  assert_int_equal(parsed_integer(d, "left_out"), 1);
  assert_null(parsed_get(d, "processes.0.command_line"));
  parsed_free(d);
}

static void assert_taken(struct item *block) {
  stub_clear();
  assert_int_equal(configure(block), 0);
  assert_int_equal(stub.n_logs, 0);
  stub.shutdown();
}

static struct item *in_capture(struct item *it) {
  return with(plugin_block(), with(capture_at("/x"), it));
}

FIXTURE_TEST(limits_are_taken_to_the_ends_of_their_ranges) {
  static const char *const sizes[] = {"64K",   "65536", "1M",
                                      "1024g", "1G",    "1099511627776"};

  for (size_t i = 0; i < LENGTH(sizes); i++)
    assert_taken(in_capture(item("MaxBytes", sizes[i], NULL)));
  assert_taken(in_capture(number("MaxBytes", 65536)));
  assert_taken(in_capture(number("MaxBytes", 1099511627776.0)));
  assert_taken(in_capture(number("MaxFiles", 1)));
  assert_taken(in_capture(number("MaxFiles", 100000)));
  assert_taken(in_capture(number("TopProcesses", 10000)));
  assert_taken(in_capture(number("TopMappings", 10000)));
  assert_taken(in_capture(number("Cooldown", 0)));
  assert_taken(in_capture(number("Cooldown", 604800)));
  assert_taken(with(plugin_block(), number("StateInterval", 0)));
  assert_taken(with(plugin_block(), number("StateInterval", 86400)));
}

static void assert_says(const char *line, const char *words) {
  if (!strstr(line, words))
    fail_msg("\"%s\" is not in: %s", words, line);
}

/* One line, with all of the words in it. */
static void assert_refused(struct item *block, const char *option,
                           const char *why) {
  stub_clear();
  assert_int_not_equal(configure(block), 0);
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_ERR);
  assert_says(stub.logs[0], option);
  assert_says(stub.logs[0], "expected");
  assert_says(stub.logs[0], why);
  assert_null(strchr(stub.logs[0], '\n'));
  stub.shutdown();
}

FIXTURE_TEST(mistakes_in_a_capture_are_named) {
  static const struct {
    const char *size, *line;
  } sizes[] = {
      {"63K", "MaxBytes \"63K\""},     {"64KB", "MaxBytes \"64KB\""},
      {"1025G", "MaxBytes \"1025G\""}, {"64 M", "MaxBytes \"64 M\""},
      {"-64M", "MaxBytes \"-64M\""},   {"", "MaxBytes \"\""},
      {"M", "MaxBytes \"M\""},         {"18014398509481985K", "MaxBytes"},
      {"64T", "MaxBytes \"64T\""},     {"18446744073709551617", "MaxBytes"}};

  assert_refused(with(plugin_block(), capture_block()), "Capture",
                 "a Directory");
  assert_refused(
      with(plugin_block(), with(capture_block(), number("MaxFiles", 5))),
      "Capture", "a Directory");
  assert_refused(with(plugin_block(), with(item("Capture", "x", NULL),
                                           item("Directory", "/x", NULL))),
                 "Capture \"x\"", "no name");
  assert_refused(with(with(plugin_block(), capture_at("/x")),
                      item("StateHistory", "/x", NULL)),
                 "StateHistory \"/x\"", "two directories");
  assert_refused(with(with(plugin_block(), capture_at("/x/y/")),
                      item("StateHistory", "//x//y", NULL)),
                 "StateHistory", "two directories");
  assert_taken(with(with(plugin_block(), capture_at("/x")),
                    item("StateHistory", "/y", NULL)));
  assert_refused(with(plugin_block(), item("StateHistory", "y", NULL)),
                 "StateHistory \"y\"", "absolute path");
  assert_refused(with(plugin_block(), capture_at("relative")),
                 "<Capture>: Directory \"relative\"", "absolute path");
  assert_refused(
      with(plugin_block(), with(capture_block(), number("Directory", 1))),
      "Directory 1", "one string");
  assert_refused(in_capture(item("MaxFile", "5", NULL)),
                 "<Capture>: MaxFile \"5\"",
                 "an option of this block; there is no such option, did you "
                 "mean MaxFiles?");
  assert_refused(in_capture(item("Comm", "x", NULL)), "Comm \"x\"",
                 "no such option");
  assert_refused(in_capture(with(number("MaxFiles", 1), number("x", 1))),
                 "MaxFiles 1", "not a block");
  assert_refused(in_capture(item("OnNotification", "critical", NULL)),
                 "OnNotification \"critical\"", "\"failure\"");
  assert_refused(in_capture(item("OnNotification", "okay", "no", NULL)),
                 "OnNotification \"okay\" \"no\"", "\"failure\"");
  assert_refused(in_capture(item("OnNotification", NULL)), "OnNotification",
                 "at least one string");
  assert_refused(in_capture(number("OnNotification", 2)), "OnNotification 2",
                 "\"failure\"");
  assert_refused(in_capture(number("TopProcesses", 0)), "TopProcesses 0",
                 "from 1 to 10000");
  assert_refused(in_capture(number("TopProcesses", 1.5)), "TopProcesses 1.5",
                 "whole number");
  assert_refused(in_capture(number("TopMappings", 10001)), "TopMappings 10001",
                 "from 1 to 10000");
  assert_refused(in_capture(item("TopMappings", "5", NULL)),
                 "TopMappings \"5\"", "a number");
  assert_refused(in_capture(number("MaxFiles", -1)), "MaxFiles -1",
                 "from 1 to 100000");
  assert_refused(in_capture(number("Cooldown", -1)), "Cooldown -1",
                 "seconds from 0 to 604800");
  assert_refused(in_capture(number("Cooldown", 604801)), "Cooldown 604801",
                 "seconds from 0 to 604800");
  assert_refused(in_capture(item("CommandLines", "no", NULL)),
                 "CommandLines \"no\"", "true or false");
  assert_refused(in_capture(number("MaxBytes", 65535)), "MaxBytes 65535",
                 "64K");
  assert_refused(in_capture(number("MaxBytes", 1e18)), "MaxBytes 1e+18", "64K");
  assert_refused(in_capture(number("MaxBytes", -1)), "MaxBytes -1", "64K");
  assert_refused(in_capture(item("MaxBytes", "64M", "65M", NULL)),
                 "MaxBytes \"64M\" \"65M\"", "64K");
  for (size_t i = 0; i < LENGTH(sizes); i++)
    assert_refused(in_capture(item("MaxBytes", sizes[i].size, NULL)),
                   sizes[i].line, "64K to 1024G");
}

FIXTURE_TEST(mistakes_in_the_options_of_the_state_are_named) {
  assert_refused(with(plugin_block(), item("StateFile", "state", NULL)),
                 "StateFile \"state\"", "absolute path");
  assert_refused(with(plugin_block(), item("StateFile", "/var/", NULL)),
                 "StateFile \"/var/\"", "path of a file");
  assert_refused(with(plugin_block(), item("StateFile", "", NULL)),
                 "StateFile \"\"", "absolute path");
  assert_refused(with(plugin_block(), item("StateFile", NULL)), "StateFile",
                 "one string");
  assert_refused(with(plugin_block(), number("StateInterval", -1)),
                 "StateInterval -1", "seconds from 0 to 86400");
  assert_refused(with(plugin_block(), number("StateInterval", 86401)),
                 "StateInterval 86401", "seconds from 0 to 86400");
  assert_refused(with(plugin_block(), number("CommandLines", 0)),
                 "CommandLines 0", "true or false");
  assert_refused(with(plugin_block(), item("StateFil", "/x", NULL)),
                 "StateFil \"/x\"", "did you mean StateFile?");
}
