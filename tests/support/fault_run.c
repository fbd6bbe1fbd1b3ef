/* SPDX-License-Identifier: MIT */
#include "fault_run.h"

#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "items.h"
#include "parsed.h"
#include "proctree.h"

#define NS_PER_S UINT64_C(1000000000)

#define CYCLE_NS (25 * NS_PER_S)
/* After a refusal nothing is tried again for an hour. */
#define BACK_OFF_NS (2 * 3600 * NS_PER_S)
#define STATE_PROCESSES 8

/* --- the tree --- */

/* Stands for our own pid: the collectd that looks at the tree. */
#define SELF UINT32_MAX
/* A process whose main thread has ended, and whose other thread runs. */
#define DEAD_LEADER 40
#define LIVE_THREAD 41

/* 10 has forked 20, and shares its address space with 11, as after vfork. 30 is
 * selected by each of its names, 50 by its PID file. */
static const struct fake fakes[] = {
    {.pid = 1,
     .comm = "init",
     .starttime = 1,
     .private_kb = 20,
     .shared_kb = 40},
    {.pid = 2, .comm = "kthreadd", .starttime = 1, .flags = 0x200000},
    {.pid = 10,
     .ppid = 1,
     .comm = "web",
     .starttime = 100,
     .start_stack = 0x7ff000010000,
     .threads = 3,
     .private_kb = 1000,
     .shared_kb = 8000},
    {.pid = 11,
     .ppid = 10,
     .comm = "web",
     .starttime = 101,
     .start_stack = 0x7ff000010000,
     .private_kb = 1000,
     .shared_kb = 8000},
    {.pid = 20,
     .ppid = 10,
     .comm = "worker",
     .starttime = 102,
     .start_stack = 0x7ff000010000,
     .private_kb = 600,
     .shared_kb = 7000},
    {.pid = 30,
     .ppid = 1,
     .comm = "postgres",
     .starttime = 103,
     .start_stack = 0x7ff000030000,
     .exe = "/usr/lib/postgresql/15/bin/postgres",
     .cmdline = "postgres: main writer",
     .cgroup = "/system.slice/db.service",
     .uid = 7,
     .private_kb = 500,
     .shared_kb = 300,
     .swap_kb = 20},
    {.pid = DEAD_LEADER,
     .ppid = 1,
     .comm = "leader",
     .state = 'Z',
     .threads = 2,
     .starttime = 104},
    {.pid = 50,
     .ppid = 1,
     .comm = "job",
     .starttime = 105,
     .start_stack = 0x7ff000050000,
     .private_kb = 70},
    {.pid = SELF,
     .ppid = 1,
     .comm = "collectd",
     .starttime = 106,
     .start_stack = 0x7ff000060000,
     .private_kb = 90},
};
_Static_assert(LENGTH(fakes) == FAULT_PROCESSES, "as in the header");

static struct proctree tree;
static char captures[128], state_file[128];

static void put(size_t i) {
  struct fake f = fakes[i];

  if (f.pid == SELF)
    f.pid = (uint32_t)getpid();
  proctree_put(&tree, &f);
  if (f.pid == 10)
    for (uint32_t n = 0; n < f.threads; n++)
      proctree_put_thread(&tree, 10,
                          &(struct fake){.pid = 10 + 100 * n, .comm = "web"});
  if (f.pid != DEAD_LEADER)
    return;
  proctree_put_thread(&tree, f.pid, &f);
  f = (struct fake){.pid = LIVE_THREAD,
                    .comm = "leader",
                    .threads = 2,
                    .starttime = 104,
                    .private_kb = 200,
                    .shared_kb = 40};
  proctree_put_thread(&tree, DEAD_LEADER, &f);
}

static void take_away(size_t i, enum fault_absence absence) {
  uint32_t pid = fakes[i].pid == SELF ? (uint32_t)getpid() : fakes[i].pid;
  const char *file = "/smaps_rollup";
  char path[64];

  if (absence == FROM_THE_READING && pid == DEAD_LEADER)
    file = "/task/41/smaps_rollup";
  /* If the directory of process 1 were gone, /proc would seem to be mounted
   * with hidepid. */
  else if (absence == FROM_THE_START)
    file = pid == 1 ? "/statm" : "";
  snprintf(path, sizeof(path), "%u%s", pid, file);
  proctree_unlink(&tree, path);
}

int fault_run_setup(void **state) {
  const struct fake_mapping mappings[] = {
      {.name = "[heap]", .private_kb = 20},
      {.name = "/lib/x.so", .permissions = "r-xp", .shared_kb = 40}};
  char path[128], target[16];

  (void)state;
  proctree_make(&tree);
  for (size_t i = 0; i < FAULT_PROCESSES; i++)
    put(i);
  proctree_put_smaps(&tree, 1, mappings, 2);
  proctree_write(&tree, "job.pid", "50\n", 3);
  snprintf(captures, sizeof(captures), "%s/captures", tree.root);
  snprintf(state_file, sizeof(state_file), "%s/state.json", tree.root);
  proctree_write(&tree, "sys/kernel/random/boot_id", "a-boot\n", 7);
  proctree_write(&tree, "ksm/run", "1\n", 2);
  proctree_write(&tree, "ksm/pages_sharing", "0\n", 2);
  snprintf(path, sizeof(path), "%s/self", tree.root);
  snprintf(target, sizeof(target), "%d", (int)getpid());
  faults_set_root(tree.root);
  return symlink(target, path);
}

int fault_run_teardown(void **state) {
  (void)state;
  proctree_remove(&tree);
  return 0;
}

/* --- a run --- */

static oconfig_item_t new_configuration(enum fault_snapshots snapshots) {
  char text[2048];

  snprintf(text, sizeof(text),
           "ProcRoot '%s'\n"
           "ReadTimeout 4\n" /* nothing hangs here */
           "Report 'default' 'uss_error' 'resident' 'ps_vm'\n"
           "ValuesPercentage true\n"
           "MaxGroups 6\n"
           "<Group 'user-%%{user}'>\nUser '*'\nContinue true\n</Group>\n"
           "<Group 'pid'>\nPidFile '%s/job.pid'\n</Group>\n"
           "<Group 'web'>\nComm 'web'\nChildren true\n</Group>\n"
           "<Group '%%{unit}-%%{1}'>\n"
           "Executable '/usr/*/postgres'\n"
           "CommandLineMatch '^postgres: ([a-z]+)'\n"
           "User 'seven'\nUnit '*.service'\nRefresh 'always'\n</Group>\n"
           "<Ignore>\nCommMatch '^coll(ectd)$'\n</Ignore>\n"
           "ProcessMatch 'leaders' '^leader$'\n"
           "Process 'nobody'\n"
           "Other 'other'\n",
           tree.root, tree.root);
  if (snapshots != SNAPSHOTS_NONE)
    snprintf(text + strlen(text), sizeof(text) - strlen(text),
             "Refresh 'always'\n"
             "StateFile '%s'\nStateInterval %d\nStateAtStart %s\n"
             "<Capture>\nDirectory '%s'\nCooldown 0\nMaxFiles %d\n"
             "</Capture>\n",
             state_file, snapshots == SNAPSHOTS_DUE ? 0 : 86400,
             snapshots == SNAPSHOTS_DUE ? "true" : "false", captures,
             FAULT_CAPTURES);
  return items_parse(text);
}

/* --- documents --- */

/* The C library allocates a block for each document, and parsed.c frees it. */
static parsed read_document(const char *path) {
  faults_take_block();
  return parsed_file(path);
}

static bool has_state(void) {
  parsed d, group;
  bool is_whole;

  if (access(state_file, F_OK) != 0)
    return false;
  d = read_document(state_file);
  unlink(state_file);
  group = parsed_find(d, "groups", "name", "other");
  is_whole = parsed_count(d, "processes") == STATE_PROCESSES && group &&
             parsed_integer(group, "usage.pss") == 40 * KIB;
  parsed_free(d);
  return is_whole;
}

static bool is_whole_capture(const char *path) {
  parsed d = read_document(path);
  bool is_whole = parsed_count(d, "processes") == 1 &&
                  parsed_get(d, "processes.0.mappings.1.pss") &&
                  parsed_integer(d, "left_out") == 0 &&
                  parsed_integer(d, "mappings.0.pss") == 20 * KIB;

  parsed_free(d);
  return is_whole;
}

/* Counts the captures, each of which has to be a document, and checks whether
 * the announced one is whole. */
static void look_at_captures(struct fault_cycle *c) {
  DIR *dir = opendir(captures);
  struct dirent *entry;

  while (dir && (entry = readdir(dir))) {
    const char *dot = strrchr(entry->d_name, '.');
    char path[PATH_MAX];

    if (entry->d_name[0] == '.' && !strstr(entry->d_name, "unfinished"))
      continue;
    snprintf(path, sizeof(path), "%s/%s", captures, entry->d_name);
    if (dot && strcmp(dot, ".json") == 0)
      parsed_free(read_document(path));
    else
      faults_complain("%s is left", entry->d_name);
    c->files++;
  }
  if (dir)
    closedir(dir);
  for (size_t i = 0; i < stub.n_notifications; i++) {
    if (!*stub.metas[i])
      faults_complain("a notification that the plugin takes for an alarm");
    c->has_capture |= *stub.metas[i] && is_whole_capture(stub.metas[i]);
  }
}

static void raise_alarm(void) {
  notification_t n = {.severity = NOTIF_FAILURE,
                      .time = stub.now,
                      .message = "too much",
                      .host = "stub",
                      .plugin = "smaps",
                      .plugin_instance = "other"};

  stub.notification(&n, NULL);
}

/* --- phases --- */

static void end_phase(struct fault_run *r, int phase) {
  r->ends[phase] = faults_calls();
  if (faults_made() && r->fault_phase < 0)
    r->fault_phase = phase;
}

/* Counts the lines, without the one that a file is written again. */
static unsigned count_complaints(void) {
  unsigned n = 0;

  for (size_t i = 0; i < stub.n_logs; i++)
    n += stub.levels[i] <= LOG_WARNING;
  return n;
}

/* Starts the plugin, or runs a cycle of it. With snapshots only its own calls
 * count, because the test reads documents between them. */
static int call_plugin(int (*init)(void)) {
  int r;

  faults_skip(false);
  r = init ? init() : stub.read(NULL);
  faults_skip(true);
  return r;
}

static void read_once(struct fault_cycle *c, enum fault_snapshots snapshots) {
  stub_clear();
  stub.now += NS_TO_CDTIME_T(CYCLE_NS);
  memset(c, 0, sizeof(*c));
  if (snapshots == SNAPSHOTS_DUE)
    raise_alarm();
  c->r = call_plugin(NULL);
  if (snapshots == SNAPSHOTS_DUE)
    faults_await_idle();
  c->n_logs = count_complaints();
  c->n_values = stub.n_values;
  assert_in_range(c->n_values, 0, sizeof(c->values) / sizeof(*c->values));
  memcpy(c->values, stub.values, c->n_values * sizeof(*c->values));
  if (snapshots != SNAPSHOTS_DUE)
    return;
  c->has_state = has_state();
  look_at_captures(c);
}

static void run_cycles(struct fault_run *r,
                       const struct fault_absentee *absentee) {
  for (int i = 0; i <= FAULT_CYCLES; i++) {
    bool is_one_away = absentee && absentee->cycle == i;

    if (is_one_away)
      take_away(absentee->process, absentee->absence);
    faults_pass(CYCLE_NS);
    read_once(&r->cycles[i], r->snapshots);
    if (is_one_away)
      put(absentee->process);
    if (r->fault_phase < 0 && r->snapshots == SNAPSHOTS_NONE &&
        (faults_error() == EACCES || faults_error() == EPERM ||
         faults_error() == ENOSYS))
      faults_pass(BACK_OFF_NS);
    end_phase(r, PHASE_CYCLES + i);
  }
}

void fault_run(struct fault_run *r, enum fault_snapshots snapshots, unsigned at,
               unsigned way, const struct fault_absentee *absentee) {
  oconfig_item_t configuration = new_configuration(snapshots);

  stub_begin(module_register);
  plugin_set_ctx((plugin_ctx_t){.interval = TIME_T_TO_CDTIME_T(10)});
  proctree_unlink(&tree, "captures");
  unlink(state_file);
  r->snapshots = snapshots;
  r->fault_phase = -1;
  r->r_init = -1;
  faults_skip(snapshots != SNAPSHOTS_NONE);
  faults_start(at, way);
  r->r_configure = stub.config(&configuration);
  items_free(&configuration);
  end_phase(r, PHASE_CONFIGURE);
  if (r->r_configure == 0)
    r->r_init = call_plugin(stub.init);
  end_phase(r, PHASE_START);
  r->n_logs = count_complaints();
  if (r->r_init == 0)
    run_cycles(r, absentee);
  stub.shutdown();
  faults_stop();
}

/* --- what came of it --- */

const struct stub_value *fault_run_find(const struct fault_cycle *c,
                                        size_t place, const char *id) {
  if (place < c->n_values && strcmp(c->values[place].identifier, id) == 0)
    return &c->values[place];
  for (size_t i = 0; i < c->n_values; i++)
    if (strcmp(c->values[i].identifier, id) == 0)
      return &c->values[i];
  return NULL;
}

enum fault_answer fault_run_answer(void) {
  static const struct {
    const char *call, *object, *ways;
    enum fault_answer answer;
  } answers[] = {
      /* The tree seems to be from another machine. */
      {"readlinkat", "self", "", UNTIL_AN_EXEC},
      /* We may not know the program; the command line was cleared, or is
       * shorter; the kernel has no control groups. */
      {"readlinkat", "exe", "EACCES ENOENT ESRCH", UNTIL_AN_EXEC},
      {"openat", "cmdline", "EACCES EPERM", UNTIL_AN_EXEC},
      {"read", "cmdline", "EACCES EPERM half end", UNTIL_AN_EXEC},
      {"openat", "cgroup", "ENOENT ESRCH", UNTIL_AN_EXEC},
      {"read", "cgroup", "ENOENT ESRCH half end", UNTIL_AN_EXEC},
      /* No process has written this PID file. */
      {"open", "job.pid", "ENOENT ENOTDIR", FOR_A_CYCLE},
      {"read", "job.pid", "half end", FOR_A_CYCLE},
      {"getpwuid_r", "", "ERANGE", UNTIL_AN_EXEC},
      /* The PID file was never read yet. */
      {"strdup", "", "", FOR_THE_FIRST_CYCLE},
      {"open", "job.pid", "", FOR_THE_FIRST_CYCLE},
      {"fstat", "job.pid", "", FOR_THE_FIRST_CYCLE},
      {"read", "job.pid", "", FOR_THE_FIRST_CYCLE},
      {"kcmp", "", "", UNTIL_AN_EXEC},
  };
  const char *what = faults_made(), *colon = strrchr(what, ':');

  for (size_t i = 0; i < LENGTH(answers); i++) {
    size_t call = strlen(answers[i].call), object = strlen(answers[i].object);
    char way[16];

    sscanf(colon + 1, " %15[^ ]", way);
    if (strncmp(what, answers[i].call, call) == 0 && what[call] == ' ' &&
        strncmp(colon - object, answers[i].object, object) == 0 &&
        (!*answers[i].ways || strstr(answers[i].ways, way)))
      return answers[i].answer;
  }
  return NO_ANSWER;
}

bool fault_run_failed_in(const char *const *calls, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strncmp(faults_made(), calls[i], strlen(calls[i])) == 0)
      return true;
  return false;
}

void fault_run_check_start(const struct fault_run *r) {
  bool has_failed = r->r_configure != 0 || r->r_init != 0;

  if (r->n_logs != has_failed)
    faults_complain("start: result %d, %d, %zu log lines", r->r_configure,
                    r->r_init, r->n_logs);
  else if (has_failed && stub.levels[0] != LOG_ERR)
    faults_complain("start: no error: %s", stub.logs[0]);
}
