/* SPDX-License-Identifier: MIT */
/* Alarms become captures, and documents that were written or have failed become
 * notifications and log lines. */
#include "test.h"

#include "glue.h"
#include "notification.h"
#include "parsed.h"

/* --- alarms, and the captures that they make --- */

static char path[256];

/* Returns the path of a file in the tree. */
static const char *at(const char *name) {
  snprintf(path, sizeof(path), "%s/%s", glue_tree.root, name);
  return path;
}

/* Starts the plugin with captures, and with more options of <Capture>. It reads
 * each process in each cycle. */
static void start_captures(const char *directory, const char *more) {
  char options[1024];

  snprintf(options, sizeof(options),
           "Refresh 'always'\n<Capture>\nDirectory '%s'\n%s\n</Capture>",
           directory, more);
  glue_start_web(options);
  assert_int_equal(stub.read(NULL), 0);
}

/* Starts the plugin with an option that names a file, and with more options. */
static void start_with(const char *option, const char *file, const char *more) {
  char options[1024];

  snprintf(options, sizeof(options), "%s '%s'\n%s", option, file, more);
  glue_start_web(options);
  assert_int_equal(stub.read(NULL), 0);
}

/* Ends the plugin, which waits until everything is written. */
static void stop_plugin(void) { assert_int_equal(stub.shutdown(), 0); }

/* Makes an alarm as the threshold plugin does. */
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

/* True if the notification makes a capture. */
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

/* The number after that key in the header; 0 without it. */
static unsigned number_in(const char *header, const char *key) {
  const char *at = strstr(header, key);

  return at ? (unsigned)strtoul(at + strlen(key), NULL, 10) : 0;
}

/* Asserts the text of the announcement, and its meta data as a program gets
 * them. The tree's process has 120 kB. Its error is 0, unless a slow machine
 * has no time to read it once more; after a second there is its growth, too. */
static void assert_is_announced(const char *message, size_t i) {
  const char *header = stub.headers[i];
  unsigned seconds = number_in(header, "PssGrowthSeconds: ");
  char wanted[PATH_MAX + 256], growth[64] = "";

  snprintf(wanted, sizeof(wanted),
           "capture %s: PSS 120 KiB; 10 web 120 KiB; [heap] 100 KiB",
           stub.metas[i]);
  assert_string_equal(message, wanted);
  if (seconds > 0)
    snprintf(growth, sizeof(growth), "PssGrowth: 0\nPssGrowthSeconds: %u\n",
             seconds);
  snprintf(wanted, sizeof(wanted),
           "CaptureFile: %s\nPss: 122880\nPssError: %u\n%s"
           "TopProcess1: 10 web 122880\nTopMapping1: [heap] 102400\n",
           stub.metas[i], number_in(header, "PssError: "), growth);
  assert_string_equal(header, wanted);
}

GLUE_TEST(an_alarm_makes_a_capture_which_is_announced) {
  notification_t n = alarm_about("web"), *announced = &stub.notifications[0];
  parsed d;

  assert_true(is_captured(&n));
  assert_int_equal(stub.n_notifications, 1);
  assert_int_equal(stub.n_without_context, 0);
  assert_int_equal(announced->severity, NOTIF_OKAY);
  assert_int_equal(announced->time, stub.now);
  assert_string_equal(announced->host, "stub");
  assert_string_equal(announced->plugin, "smaps");
  assert_string_equal(announced->plugin_instance, "web");
  assert_string_equal(announced->type, "");
  assert_memory_equal(stub.metas[0], at("captures/smaps-"),
                      strlen(at("captures/smaps-")));
  assert_is_announced(announced->message, 0);
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

/* Returns the announcement of a capture with that summary, after its path. */
static const char *line_of(const struct summary *s) {
  stub_clear();
  notification_written(&(struct document){
      .kind = DOCUMENT_CAPTURE, .subject = "web", .summary = *s, .path = "/p"});
  return stub.notifications[0].message + strlen("capture /p: ");
}

GLUE_TEST(announcement_has_everything_that_is_known) {
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
      .n = 3,
      .mappings = {{.bytes = 700 * MIB, .name = "[heap]"},
                   {.bytes = 3 * MIB, .name = "/lib/x"}},
      .n_mappings = 2};

  assert_string_equal(
      line_of(&s),
      "PSS 1.50 GiB, +300 MiB in 1h02m, limit 2.00 GiB; 1234 db 812 MiB, "
      "4194304 a b 100 KiB, 7 ? RSS 5.00 MiB; [heap] 700 MiB, /lib/x 3.00 "
      "MiB");
  assert_string_equal(
      stub.headers[0],
      "CaptureFile: /p\nPss: 1610612736\nPssError: 15728640\n"
      "PssGrowth: 314572800\nPssGrowthSeconds: 3720\nMemoryLimit: 2147483648\n"
      "TopProcess1: 1234 db 851443712\nTopProcess2: 4194304 a b 102400\n"
      "TopProcess3: 7 ? RSS 5242880\nTopMapping1: [heap] 734003200\n"
      "TopMapping2: /lib/x 3145728\n");
  s.n_mappings = 0;
  s.pss_error = 90 * MIB;
  s.change.age_ns = s.limit_bytes = 0;
  s.n = 1;
  s.has_ended = true;
  s.ended_ns = NS / 10;
  assert_string_equal(line_of(&s),
                      "before its end, 1.0s ago: PSS 1.50 GiB +- 90.0 MiB; "
                      "1234 db 812 MiB");
  s.n = 3;
  for (int i = 0; i < 3; i++)
    memset(s.largest[i].comm, 'x', sizeof(s.largest[i].comm) - 1);
  assert_in_range(strlen(line_of(&s)), 100, 200);
  assert_string_equal(line_of(&(struct summary){.n = 0}), "PSS unknown");
}

GLUE_TEST(changes_have_a_sign_and_amounts_a_unit) {
  static const struct {
    uint64_t pss;
    struct pss_change change;
    const char *line;
  } cases[] = {
      {0, {0}, "PSS 0 B"},
      {1024 * KIB - 1, {0}, "PSS 1.00 MiB"},
      {UINT64_MAX, {0}, "PSS 16.0 EiB"},
      {MIB,
       {-(int64_t)(3 * MIB), 119 * NS},
       "PSS 1.00 MiB, -3.00 MiB in 1m59s"},
      {MIB, {INT64_MIN, 120 * NS}, "PSS 1.00 MiB, -8.00 EiB in 2m00s"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    assert_string_equal(line_of(&(struct summary){.has_pss = true,
                                                  .pss_bytes = cases[i].pss,
                                                  .change = cases[i].change}),
                        cases[i].line);
}

/* Returns a directory in which the path of a capture of "web" has that length.
 */
static const char *directory_for(size_t path_len) {
  static char directory[256];
  size_t len = path_len - strlen("/smaps-20010109T014640Z-web.json");

  memset(directory, 'x', len);
  memcpy(directory, at(""), strlen(at("")));
  directory[len] = '\0';
  return directory;
}

/* A message has 255 bytes at most. */
GLUE_TEST(a_long_path_leaves_less_room_for_the_rest) {
  static const struct {
    size_t path_len;
    const char *rest;
  } cases[] = {{150, ": PSS 120 KiB; 10 web 120 KiB; [heap] 100 KiB"},
               {218, ": PSS 120 KiB; 10 web 120 KiB"},
               {219, ": PSS 120 KiB"},
               {234, ": PSS 120 KiB"},
               {235, ": "}};
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

/* The path has the room that it needs before the summary; if there is none, it
 * is in the meta data. */
static struct document own_alarm(uint64_t id) {
  stub_clear();
  notification_stop();
  stub_clear();
  return (struct document){.kind = DOCUMENT_CAPTURE,
                           .subject = "web",
                           .path = "/p",
                           .alarm = {.severity = SEVERITY_FAILURE,
                                     .is_own = true,
                                     .has_capture = true,
                                     .id = id,
                                     .group = "web",
                                     .type_instance = "ended",
                                     .message = "web: no process is left"}};
}

GLUE_TEST(an_alarm_is_sent_with_the_path_of_its_capture) {
  static const struct {
    int path_len;
    bool has_path;
    const char *message;
  } cases[] = {
      {20, true, "web: no process is left; PSS 1.00 MiB; 7 x 1.00 MiB"},
      {205, true, "web: no process is left; PSS 1.00 MiB"},
      {222, true, "web: no process is left"},
      {300, false, "web: no process is left; PSS 1.00 MiB; 7 x 1.00 MiB"}};
  struct document d = {
      .kind = DOCUMENT_CAPTURE,
      .subject = "web",
      .alarm = {.severity = SEVERITY_FAILURE,
                .is_own = true,
                .has_capture = true,
                .group = "web",
                .type_instance = "ended",
                .since_ns = 5 * NS,
                .message = "web: no process is left"},
      .summary = {
          .has_pss = true,
          .pss_bytes = MIB,
          .largest = {{.pid = 7, .has_pss = true, .bytes = MIB, .comm = "x"}},
          .n = 1}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    const notification_t *n = &stub.notifications[0];
    char file[400], wanted[512];

    memset(file, 'p', sizeof(file));
    *file = '/';
    file[cases[i].path_len] = '\0';
    d.path = file;
    stub_clear();
    d.alarm.id = i + 1;
    notification_send(&d.alarm, 1);
    assert_int_equal(stub.n_notifications, 0);
    notification_written(&d);
    assert_int_equal(stub.n_notifications, 1);
    assert_int_equal(n->severity, NOTIF_FAILURE);
    assert_non_null(strstr(stub.headers[0], "Cause: ended\nSince: 5\n"));
    assert_non_null(strstr(stub.headers[0], file));
    snprintf(wanted, sizeof(wanted), "%s%s%s", cases[i].message,
             cases[i].has_path ? "; capture " : "",
             cases[i].has_path ? file : "");
    assert_string_equal(n->message, wanted);
  }
}

/* Its age does not stay without it, whatever the path leaves room for. */
GLUE_TEST(a_summary_of_what_has_ended_is_left_out_as_a_whole) {
  char file[256];
  size_t n_whole = 0;

  for (size_t len = 150; len < 220; len++) {
    struct document d = own_alarm(5);
    const char *message = stub.notifications[0].message;

    memset(file, 'p', sizeof(file));
    *file = '/';
    file[len] = '\0';
    d.path = file;
    d.summary = (struct summary){.has_ended = true, .has_pss = true};
    d.summary.pss_bytes = MIB;
    notification_send(&d.alarm, 1);
    notification_written(&d);
    assert_null(strstr(message, "ago: ;"));
    n_whole +=
        strstr(message, "; before its end, 1.0s ago: PSS 1.00 MiB; capture") !=
        NULL;
  }
  assert_true(n_whole > 0 && n_whole < 70);
}

/* The writer may be earlier than the cycle that tells of it. */
GLUE_TEST(an_alarm_whose_capture_was_written_early_has_its_path) {
  struct document d = own_alarm(7);

  notification_written(&d);
  assert_int_equal(stub.n_notifications, 0);
  notification_send(&d.alarm, 1);
  assert_int_equal(stub.n_notifications, 1);
  assert_non_null(strstr(stub.notifications[0].message, "; capture /p"));
  notification_send(NULL, 0);
  assert_int_equal(stub.n_notifications, 1);
}

/* A disk hangs: it is sent without, and the log has the capture later, which
 * may have been made late, too. */
GLUE_TEST(an_alarm_waits_for_its_capture_for_an_interval) {
  struct document d = own_alarm(8);

  notification_send(&d.alarm, 1);
  assert_int_equal(stub.n_notifications, 0);
  notification_send(NULL, 0);
  assert_int_equal(stub.n_notifications, 1);
  assert_string_equal(stub.notifications[0].message, "web: no process is left");
  d.time_ns = d.alarm.time_ns + 27 * NS;
  notification_written(&d);
  assert_int_equal(stub.n_notifications, 1);
  assert_string_equal(stub.logs[stub.n_logs - 1],
                      "smaps plugin: <Capture>: web: no process is left; the "
                      "capture, made 27s later, is in \"/p\"");
}

GLUE_TEST(an_alarm_that_waits_is_sent_at_the_end) {
  struct document d = own_alarm(9);

  notification_send(&d.alarm, 1);
  notification_stop();
  assert_int_equal(stub.n_notifications, 1);
}

GLUE_TEST(an_alarm_whose_capture_fails_is_sent_without) {
  struct document d = own_alarm(10);

  d.error = -ENOSPC;
  notification_send(&d.alarm, 1);
  notification_written(&d);
  assert_int_equal(stub.n_notifications, 1);
  assert_null(strstr(stub.notifications[0].message, "/p"));
  assert_int_equal(stub.n_logs, 1);
}

GLUE_TEST(a_silent_capture_is_a_line_in_the_log) {
  struct document d = own_alarm(11);

  d.alarm.is_silent = true;
  notification_written(&d);
  assert_int_equal(stub.n_notifications, 0);
}

/* An empty name means this host, and upper and lower case are the same. */
GLUE_TEST(notifications_about_others_make_no_capture) {
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

GLUE_TEST(only_configured_severities_make_captures) {
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

GLUE_TEST(alarms_after_the_stop_or_within_the_cooldown_make_no_capture) {
  notification_t n = alarm_about("web");

  start_captures(at("a"), "Cooldown 1000");
  stop_plugin();
  assert_int_equal(stub.notification(&n, NULL), 0);
  /* The plugin is started again, and the first of three alarms counts. */
  start_captures(at("a"), "Cooldown 1000");
  for (int i = 0; i < 3; i++)
    notify(&n);
  stop_plugin();
  assert_int_equal(stub.n_notifications, 1);
}

GLUE_TEST(without_captures_no_notification_callback_is_registered) {
  start_with("StateFile", at("state"), "");
  assert_null(stub.notification);
}

GLUE_TEST(failed_writes_are_logged) {
  notification_t n = alarm_about("web");

  proctree_write(&glue_tree, "captures", "", 0);
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
  /* The summary of the lost capture is in the line. */
  assert_non_null(strstr(stub.logs[1], "; it has PSS 120 KiB; 10 web 120"));
}

/* --- the state --- */

GLUE_TEST(a_state_is_written_without_command_lines) {
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

/* Runs cycles until there are n lines: the writer logs on its own thread. */
static void read_until_logged(size_t n) {
  time_t deadline = time(NULL) + 30;

  while (stub_logs() < n && time(NULL) < deadline)
    assert_int_equal(stub.read(NULL), 0);
  assert_int_equal(stub_logs(), n);
}

GLUE_TEST(failure_and_recovery_of_the_state_are_logged_once) {
  start_with("StateFile", at("no/state"), "StateInterval 0");
  read_until_logged(1);
  assert_true(glue_value("smaps/duration-state_age") >= 0);
  for (int i = 0; i < 20; i++)
    assert_int_equal(stub.read(NULL), 0);
  proctree_write(&glue_tree, "no/x", "", 0);
  read_until_logged(2);
  proctree_rename(&glue_tree, "no", "gone");
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

/* The state of an earlier run is damaged, or others could have written it. */
GLUE_TEST(a_state_that_is_not_taken_is_logged_with_the_reason) {
  static const struct {
    mode_t mode;
    const char *reason;
  } cases[] = {{0600, "it is damaged"}, {0602, "others can write to it"}};

  proctree_print(&glue_tree, 0, "sys/kernel/random/boot_id", "a-boot\n");
  for (size_t i = 0; i < LENGTH(cases); i++) {
    proctree_write(&glue_tree, "state", "{", 1);
    assert_int_equal(chmod(at("state"), cases[i].mode), 0);
    start_with("StateFile", at("state"), "");
    read_until_logged(i + 1);
    stop_plugin();
    assert_int_equal(stub.levels[i], LOG_WARNING);
    assert_non_null(strstr(stub.logs[i], "StateFile"));
    assert_non_null(strstr(stub.logs[i], at("state")));
    assert_non_null(strstr(stub.logs[i], cases[i].reason));
    assert_non_null(strstr(stub.logs[i], "nothing is remembered"));
  }
}

/* --- options --- */

GLUE_TEST(options_reach_the_captures) {

  notification_t n = alarm_about("web");
  parsed d;

  proctree_put(&glue_tree,
               &(struct fake){.pid = 11, .comm = "web", .starttime = 9});
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
