/*
 * Each call into the system fails in turn, in every way it can. The plugin
 * stands it, keeps nothing, says one line at most and publishes nothing wrong;
 * and in the next cycle all is whole again.
 *
 * A run is the whole life of the plugin over a tree that does not change. One
 * run is without a fault; then follows one for each call that it has made and
 * each way in which that can fail; where calls are alike, in some of them.
 * FAULTS_ALIKE=1 has these fail in all, FAULTS_STEP=n takes every n-th call
 * only.
 *
 * With snapshots each cycle writes a state and a capture. What belongs to them
 * fails, on the thread of the cycle and on that which writes: the values of
 * groups are the same, there is no half file and at most one complaint.
 */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "items.h"
#include "parsed.h"
#include "proctree.h"
#include "stub_daemon.h"

#define NS_PER_S UINT64_C(1000000000)

/* Cycles in which a call may fail; one more shows that all is well again. At
 * 25 s each the names, and then the readings, come to be too old. */
#define CYCLES 4
#define CYCLE_NS (25 * NS_PER_S)
/* After a refusal nothing is tried again for an hour. */
#define BACK_OFF_NS (2 * 3600 * NS_PER_S)
#define MAX_FILES 2 /* captures */
#define STATE_PROCESSES 8

/* --- the tree --- */

/* Our own pid stands for the collectd that looks at the tree. */
#define SELF UINT32_MAX
/* A leader that is dead, with a thread that lives. */
#define DEAD_LEADER 40
#define LIVE_THREAD 41

/* 10 has forked 20, and shares its address space with 11, as by vfork. 30 is
 * selected by every name that there is, 50 by its PID file. */
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
#define FAKES LENGTH(fakes)

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

/* A process can be gone from the start of a cycle, or from the reading on. */
enum absence { FROM_THE_START, FROM_THE_READING, ABSENCES };

static void take_away(size_t i, enum absence absence) {
  uint32_t pid = fakes[i].pid == SELF ? (uint32_t)getpid() : fakes[i].pid;
  const char *file = "/smaps_rollup";
  char path[64];

  if (absence == FROM_THE_READING && pid == DEAD_LEADER)
    file = "/task/41/smaps_rollup";
  /* Without its directory there would seem to be a hidepid. */
  else if (absence == FROM_THE_START)
    file = pid == 1 ? "/statm" : "";
  snprintf(path, sizeof(path), "%u%s", pid, file);
  proctree_unlink(&tree, path);
}

static int make_tree(void **state) {
  const struct fake_mapping mappings[] = {
      {.name = "[heap]", .private_kb = 20},
      {.name = "/lib/x.so", .permissions = "r-xp", .shared_kb = 40}};
  char path[128], target[16];

  (void)state;
  proctree_make(&tree);
  for (size_t i = 0; i < FAKES; i++)
    put(i);
  proctree_put_smaps(&tree, 1, mappings, 2);
  proctree_write(&tree, "job.pid", "50\n", 3);
  snprintf(captures, sizeof(captures), "%s/captures", tree.root);
  snprintf(state_file, sizeof(state_file), "%s/state.json", tree.root);
  proctree_write(&tree, "ksm/run", "1\n", 2);
  proctree_write(&tree, "ksm/pages_sharing", "0\n", 2);
  snprintf(path, sizeof(path), "%s/self", tree.root);
  snprintf(target, sizeof(target), "%d", (int)getpid());
  faults_set_root(tree.root);
  return symlink(target, path);
}

static int remove_tree(void **state) {
  (void)state;
  proctree_remove(&tree);
  return 0;
}

/* --- a run --- */

/* None are configured; none are due; in each cycle. */
static enum { NONE, IDLE, DUE } snapshots;

static oconfig_item_t new_configuration(void) {
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
  if (snapshots != NONE)
    snprintf(text + strlen(text), sizeof(text) - strlen(text),
             "Refresh 'always'\n"
             "StateFile '%s'\nStateInterval %d\nStateAtStart %s\n"
             "<Capture>\nDirectory '%s'\nCooldown 0\nMaxFiles %d\n"
             "</Capture>\n",
             state_file, snapshots == DUE ? 0 : 86400,
             snapshots == DUE ? "true" : "false", captures, MAX_FILES);
  return items_parse(text);
}

/* The result of a cycle. */
struct cycle {
  int r;
  size_t n_values, n_logs;
  struct stub_value values[STUB_VALUES_MAX / 8];
  bool has_state, has_capture; /* whole ones, of this cycle */
  unsigned files;              /* captures that there are */
};

/* Phases of a run: 0 is the configuration, 1 the start, then the cycles. */
#define PHASES (2 + CYCLES + 1)

struct run {
  unsigned ends[PHASES]; /* calls that were made until then */
  int fault_phase;       /* in which the fault came about; -1 for none */
  int r_configure, r_init;
  size_t n_logs; /* of these two */
  struct cycle cycles[CYCLES + 1];
};

/* --- documents --- */

/* The C library takes a block for each that we read, and parsed.c gives it
 * back. */
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

/* Each that is there parses; what the plugin has announced is whole. */
static void look_at_captures(struct cycle *c) {
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
      faults_complain("a notification that we would take for an alarm");
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

static void end_phase(struct run *r, int phase) {
  r->ends[phase] = faults_calls();
  if (faults_made() && r->fault_phase < 0)
    r->fault_phase = phase;
}

/* That a file is written again is none. */
static unsigned count_complaints(void) {
  unsigned n = 0;

  for (size_t i = 0; i < stub.n_logs; i++)
    n += stub.levels[i] <= LOG_WARNING;
  return n;
}

/* Calls count only while the plugin runs, and not the test's own. */
static int call_plugin(int (*init)(void)) {
  int r;

  faults_skip(false);
  r = init ? init() : stub.read(NULL);
  faults_skip(true);
  return r;
}

static void read_once(struct cycle *c) {
  stub_clear();
  stub.now += NS_TO_CDTIME_T(CYCLE_NS);
  memset(c, 0, sizeof(*c));
  if (snapshots == DUE)
    raise_alarm();
  c->r = call_plugin(NULL);
  if (snapshots == DUE)
    faults_await_idle();
  c->n_logs = count_complaints();
  c->n_values = stub.n_values;
  assert_in_range(c->n_values, 0, sizeof(c->values) / sizeof(*c->values));
  memcpy(c->values, stub.values, c->n_values * sizeof(*c->values));
  if (snapshots != DUE)
    return;
  c->has_state = has_state();
  look_at_captures(c);
}

/* A process that is absent in a cycle. */
struct absentee {
  size_t fake;
  int cycle;
  enum absence absence;
};

static void run_cycles(struct run *r, const struct absentee *absentee) {
  for (int i = 0; i <= CYCLES; i++) {
    bool is_one_away = absentee && absentee->cycle == i;

    if (is_one_away)
      take_away(absentee->fake, absentee->absence);
    faults_pass(CYCLE_NS);
    read_once(&r->cycles[i]);
    if (is_one_away)
      put(absentee->fake);
    if (r->fault_phase < 0 && snapshots == NONE &&
        (faults_error() == EACCES || faults_error() == EPERM ||
         faults_error() == ENOSYS))
      faults_pass(BACK_OFF_NS);
    end_phase(r, 2 + i);
  }
}

static void run(struct run *r, unsigned at, unsigned way,
                const struct absentee *absentee) {
  oconfig_item_t configuration = new_configuration();

  stub_begin(module_register);
  plugin_set_ctx((plugin_ctx_t){.interval = TIME_T_TO_CDTIME_T(10)});
  proctree_unlink(&tree, "captures");
  unlink(state_file);
  r->fault_phase = -1;
  r->r_init = -1;
  faults_skip(snapshots != NONE);
  faults_start(at, way);
  r->r_configure = stub.config(&configuration);
  items_free(&configuration);
  end_phase(r, 0);
  if (r->r_configure == 0)
    r->r_init = call_plugin(stub.init);
  end_phase(r, 1);
  r->n_logs = count_complaints();
  if (r->r_init == 0)
    run_cycles(r, absentee);
  stub.shutdown();
  faults_stop();
}

/* --- what to expect --- */

static struct run whole;
/* The values of each cycle without one of the processes. */
static struct cycle without[FAKES][CYCLES][ABSENCES];

static int prepare(void **state) {
  static struct run r;

  if (make_tree(state) < 0)
    return -1;
  run(&whole, 0, 0, NULL);
  for (size_t i = 0; i < FAKES; i++)
    for (int c = 0; c < CYCLES; c++)
      for (int a = 0; a < ABSENCES; a++) {
        run(&r, 0, 0, &(struct absentee){i, c, (enum absence)a});
        without[i][c][a] = r.cycles[c];
      }
  return 0;
}

TEST_GROUP(prepare, remove_tree)

/* Most are at the same place in each cycle, which may be given. */
static const struct stub_value *find_near(const struct cycle *c, size_t place,
                                          const char *id) {
  if (place < c->n_values && strcmp(c->values[place].identifier, id) == 0)
    return &c->values[place];
  for (size_t i = 0; i < c->n_values; i++)
    if (strcmp(c->values[i].identifier, id) == 0)
      return &c->values[i];
  return NULL;
}

static const struct stub_value *find(const struct cycle *c, const char *id) {
  return find_near(c, c->n_values, id);
}

/* Amounts and counts of groups; not how well they are known, nor how long they
 * are up by the clock of this host, nor growth, which takes longer to be known,
 * and not what the plugin says of itself. */
static bool is_compared(const char *id) {
  static const char *const others[] = {
      "percent-coverage",    "duration-age",     "count-unreadable",
      "memory-pss_error",    "memory-uss_error", "percent-pss_error",
      "percent-uss_error",   "uptime",           "gauge-growth",
      "duration-until_limit"};
  const char *slash = strchr(id, '/');

  if (strncmp(id, "smaps-", strlen("smaps-")) != 0)
    return false;
  for (size_t i = 0; i < LENGTH(others); i++)
    if (strcmp(slash + 1, others[i]) == 0)
      return false;
  return true;
}

/* The value beside it in the same group, or 0. */
static double beside(const struct cycle *c, const char *id, const char *name) {
  char other[128];
  const struct stub_value *v;

  snprintf(other, sizeof(other), "%.*s/%s", (int)strcspn(id, "/"), id, name);
  v = find(c, other);
  return v ? v->values[0] : 0;
}

/* How far off it may be. With a guess in it the error says so, but for swap. */
static double tolerance(const struct cycle *c, const char *id) {
  const char *name = strchr(id, '/') + 1;

  if (!(beside(c, id, "count-unreadable") > 0) || strncmp(name, "ps_", 3) == 0)
    return 0;
  if (strstr(name, "swap"))
    return (double)INFINITY;
  if (strncmp(strchr(name, '-'), "-pss", 4) == 0)
    return beside(c, id,
                  *name == 'p' ? "percent-pss_error" : "memory-pss_error");
  return *name == 'p' ? beside(c, id, "percent-pss_error") +
                            beside(c, id, "percent-uss_error")
                      : beside(c, id, "memory-pss_error") +
                            beside(c, id, "memory-uss_error");
}

static bool is_same(const struct stub_value *a, const struct stub_value *b,
                    double tolerated) {
  for (size_t i = 0; i < a->n; i++)
    if (fabs(a->values[i] - b->values[i]) > tolerated)
      return false;
  return a->n == b->n;
}

/* The first value that is neither NaN nor near what is expected, or NULL. */
static const struct stub_value *find_wrong(const struct cycle *c,
                                           const struct cycle *expected) {
  for (size_t i = 0; i < c->n_values; i++) {
    const struct stub_value *v = &c->values[i];
    const struct stub_value *e = find_near(expected, i, v->identifier);

    if ((e && is_same(v, e, 0)) || !is_compared(v->identifier))
      continue;
    if (!e || !is_same(v, e, tolerance(c, v->identifier)))
      return v;
  }
  return NULL;
}

static double own_value(const struct cycle *c, const char *id) {
  const struct stub_value *v = find(c, id);

  return v ? v->values[0] : 0;
}

/* That a process is missing must be told: in the log or by a count. */
static bool is_told(const struct cycle *c) {
  return c->n_logs > 0 || own_value(c, "smaps/count-vanished") > 0 ||
         own_value(c, "smaps/count-denied") > 0;
}

static bool is_explained(const struct cycle *c, int i) {
  if (!find_wrong(c, &whole.cycles[i]))
    return true;
  for (size_t f = 0; f < FAKES; f++)
    for (int a = 0; a < ABSENCES; a++)
      if (!find_wrong(c, &without[f][i][a]))
        return is_told(c);
  return false;
}

static bool is_whole(const struct cycle *c, int i) {
  for (size_t v = 0; v < whole.cycles[i].n_values; v++) {
    const struct stub_value *expected = &whole.cycles[i].values[v];
    const struct stub_value *found = find_near(c, v, expected->identifier);

    if (!is_compared(expected->identifier))
      continue;
    if (!found || !is_same(found, expected, 0) || isnan(found->values[0]))
      return false;
  }
  return !find_wrong(c, &whole.cycles[i]);
}

/* --- the sweep --- */

/*
 * Some failures are answers, which the plugin cannot tell from the truth. For
 * how long it then goes by them:
 */
enum { NO_ANSWER, FOR_THE_FIRST_CYCLE, FOR_A_CYCLE, UNTIL_AN_EXEC };

static int is_an_answer(void) {
  static const struct {
    const char *call, *object, *ways;
    int holds;
  } answers[] = {
      /* The tree of another machine. */
      {"readlinkat", "self", "", UNTIL_AN_EXEC},
      /* A program that is not for us to know; a command line that was cleared,
       * or that is shorter; a kernel without cgroups. */
      {"readlinkat", "exe", "EACCES ENOENT ESRCH", UNTIL_AN_EXEC},
      {"openat", "cmdline", "EACCES EPERM", UNTIL_AN_EXEC},
      {"read", "cmdline", "EACCES EPERM half end", UNTIL_AN_EXEC},
      {"openat", "cgroup", "ENOENT ESRCH", UNTIL_AN_EXEC},
      {"read", "cgroup", "ENOENT ESRCH half end", UNTIL_AN_EXEC},
      /* No process has this PID file. */
      {"open", "job.pid", "ENOENT ENOTDIR", FOR_A_CYCLE},
      {"read", "job.pid", "half end", FOR_A_CYCLE},
      {"getpwuid_r", "", "ERANGE", UNTIL_AN_EXEC},
      /* Nor has any before it could be read once. */
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
      return answers[i].holds;
  }
  return NO_ANSWER;
}

static bool goes_by_an_answer(const struct run *r, int i) {
  if (r->fault_phase < 2 + i)
    return is_an_answer() == UNTIL_AN_EXEC;
  return is_an_answer() >= (i == 0 ? FOR_THE_FIRST_CYCLE : FOR_A_CYCLE);
}

static bool is_made(const char *const *calls, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strncmp(faults_made(), calls[i], strlen(calls[i])) == 0)
      return true;
  return false;
}

/* The plugin cannot put up with want of memory at the start. */
static bool is_of_memory(void) {
  static const char *const calls[] = {"malloc", "calloc",    "realloc",
                                      "strdup", "newlocale", "regcomp"};

  return is_made(calls, LENGTH(calls));
}

static void check_start(const struct run *r) {
  bool has_failed = r->r_configure != 0 || r->r_init != 0;

  if (snapshots == NONE && r->fault_phase <= 1 && is_of_memory() && !has_failed)
    faults_complain("start: goes on without the memory");

  if (r->n_logs != has_failed)
    faults_complain("start: result %d, %d, %zu log lines", r->r_configure,
                    r->r_init, r->n_logs);
  else if (has_failed && stub.levels[0] != LOG_ERR)
    faults_complain("start: no error: %s", stub.logs[0]);
}

static void check_cycle(const struct run *r, int i) {
  const struct cycle *c = &r->cycles[i];
  const struct stub_value *wrong;

  if (c->n_logs > 1)
    faults_complain("cycle %d: %zu log lines", i, c->n_logs);
  if (c->r != 0 && c->n_values > 0)
    faults_complain("cycle %d: failed and dispatched %zu values", i,
                    c->n_values);
  if (r->fault_phase <= 2 + i && goes_by_an_answer(r, i))
    return;
  if (r->fault_phase == 2 + i && is_explained(c, i))
    return;
  if (r->fault_phase != 2 + i && is_whole(c, i))
    return;
  wrong = find_wrong(c, &whole.cycles[i]);
  faults_complain("cycle %d: result %d, not %s: %s is %g (%zu log lines: %s)",
                  i, c->r, r->fault_phase == 2 + i ? "explained" : "whole",
                  wrong ? wrong->identifier : "something missing or",
                  wrong ? wrong->values[0] : (double)NAN, c->n_logs,
                  c->n_logs ? stub.logs[0] : "");
}

/* --- with snapshots --- */

/* A run without them, and the calls that fail: of the cycle, or of the writer.
 */
static struct run bare;
static unsigned lane;

/* A value of a group, but for the clock of this host. */
static bool is_of_a_group(const char *identifier) {
  return strncmp(identifier, "smaps-", strlen("smaps-")) == 0 &&
         !strstr(identifier, "/uptime");
}

static bool is_equal(const struct stub_value *a, const struct stub_value *b) {
  for (size_t i = 0; i < a->n; i++)
    if (a->values[i] != b->values[i] &&
        !(isnan(a->values[i]) && isnan(b->values[i])))
      return false;
  return a->n == b->n;
}

static bool has_same_values(const struct cycle *c,
                            const struct cycle *expected) {
  for (size_t i = 0; i < expected->n_values; i++) {
    const struct stub_value *e = &expected->values[i];
    const struct stub_value *found = find_near(c, i, e->identifier);

    if (is_of_a_group(e->identifier) && (!found || !is_equal(found, e)))
      return false;
  }
  return true;
}

/* Files of a process that could not be read are missing in a capture without a
 * word, as with one that the kernel refuses; and what has no path behind it in
 * the notification is in the directory all the same. */
static bool may_be_silent(void) {
  static const char *const calls[] = {
      "openat", "open",   "read",    "close",  "fstat",
      "malloc", "calloc", "realloc", "strdup", "reallocarray"};

  return is_made(calls, LENGTH(calls));
}

/* A file that was there and is gone: that is an answer. */
static unsigned allowed_files(void) {
  bool is_gone =
      faults_error() == ENOENT && (strncmp(faults_made(), "fstatat", 7) == 0 ||
                                   strncmp(faults_made(), "unlinkat", 8) == 0);

  return MAX_FILES + is_gone;
}

static void check_documents(const struct run *r, int i) {
  const struct cycle *c = &r->cycles[i];
  bool is_whole = c->has_state && c->has_capture;
  bool is_lost = !c->has_state || c->files < whole.cycles[i].files;

  if (c->r != 0 || (!has_same_values(c, &whole.cycles[i]) &&
                    is_an_answer() != UNTIL_AN_EXEC))
    faults_complain("cycle %d: values are not the same", i);
  if (c->n_logs > 1 || (c->n_logs && r->fault_phase != 2 + i))
    faults_complain("cycle %d: %zu complaints: %s", i, c->n_logs, stub.logs[0]);
  if (c->files > (r->fault_phase == 2 + i ? allowed_files() : MAX_FILES))
    faults_complain("cycle %d: %u files", i, c->files);
  if (r->fault_phase != 2 + i && !is_whole)
    faults_complain("cycle %d: state %d, capture %d", i, c->has_state,
                    c->has_capture);
  if (r->fault_phase != 2 + i || is_whole || c->n_logs == 1)
    return;
  if (is_lost || lane == 1 || !may_be_silent())
    faults_complain("cycle %d: state %d, capture %d, and not a word", i,
                    c->has_state, c->has_capture);
}

/* A cycle reads the processes, makes snapshots, and submits its values. Only
 * the calls in the middle belong to snapshots, in the first lane: a cycle in
 * which none is due makes the others. */
static bool is_for_snapshots(unsigned at) {
  for (int i = 0; lane == 0 && i < CYCLES; i++) {
    unsigned begin = whole.ends[1 + i], end = whole.ends[2 + i];
    unsigned submits = (unsigned)whole.cycles[i].n_values;
    unsigned reads = bare.ends[2 + i] - bare.ends[1 + i] - submits;

    if (at > begin && at <= end)
      return at > begin + reads && at <= end - submits;
  }
  return true; /* of the start */
}

/* --- the tests --- */

static void try(unsigned at, unsigned way) {
  static struct run r;

  run(&r, at, way, NULL);
  if (!faults_made())
    return;
  check_start(&r);
  for (int i = 0; r.r_init == 0 && i <= CYCLES; i++)
    if (snapshots == DUE)
      check_documents(&r, i);
    else
      check_cycle(&r, i);
}

static void sweep(unsigned from, unsigned to) {
  run(&whole, 0, 0, NULL);
  faults_sweep(from, to, NULL, try);
}

/* Sweeps the calls of the lane that are made before the last cycle. */
static void sweep_snapshots(unsigned which) {
  unsigned n;

  lane = which;
  faults_watch(lane);
  snapshots = IDLE;
  run(&bare, 0, 0, NULL);
  snapshots = DUE;
  run(&whole, 0, 0, NULL);
  n = whole.ends[1 + CYCLES];
  assert_in_range(faults_sweep(0, n, is_for_snapshots, try), 80, n);
  snapshots = NONE;
}

TEST(without_a_fault_all_is_known) {
  static const char *const calls[] = {
      "malloc",    "calloc",  "reallocarray", "strdup",    "fdopendir",
      "readdir",   "open",    "openat",       "read",      "close",
      "fstat",     "fstatat", "readlinkat",   "regcomp",   "regexec",
      "newlocale", "kcmp",    "uname",        "getpwuid_r"};

  run(&whole, 0, 0, NULL);
  for (size_t i = 0; i < LENGTH(calls); i++)
    if (faults_calls_of(calls[i]) == 0)
      fail_msg("%s is never called", calls[i]);
  assert_int_equal(whole.r_init, 0);
  assert_int_equal(whole.n_logs, 0);
  for (int i = 0; i <= CYCLES; i++) {
    const struct cycle *c = &whole.cycles[i];

    assert_int_equal(c->n_logs, 0);
    assert_true(is_whole(c, i));
    /* 10 and 20; 11 has no memory of its own. */
    assert_true(own_value(c, "smaps-web/ps_count") == 3);
    assert_true(own_value(c, "smaps-web/memory-uss") == 1600 * 1024);
    assert_true(own_value(c, "smaps-db.service-main/memory-swap") == 20 * 1024);
    assert_true(own_value(c, "smaps-pid/memory-pss") == 70 * 1024);
    assert_true(own_value(c, "smaps-leaders/memory-pss") == 220 * 1024);
    assert_true(own_value(c, "smaps-other/memory-pss") == 40 * 1024);
    assert_true(own_value(c, "smaps-user-seven/ps_count") == 1);
  }
}

TEST(any_fault_while_it_is_configured) { sweep(0, whole.ends[0]); }

TEST(any_fault_while_it_starts) { sweep(whole.ends[0], whole.ends[1]); }

TEST(any_fault_in_a_cycle) { sweep(whole.ends[1], whole.ends[1 + CYCLES]); }

TEST(without_a_fault_all_is_written) {
  static const char *const calls[] = {
      "realloc",  "scandirat", "write",
      "fsync",    "fchmod",    "mkdir",
      "renameat", "unlinkat",  "plugin_register_notification"};
  static struct run r;

  snapshots = DUE;
  run(&r, 0, 0, NULL);
  snapshots = NONE;
  for (size_t i = 0; i < LENGTH(calls); i++)
    if (faults_calls_of(calls[i]) == 0)
      fail_msg("%s is never called", calls[i]);
  assert_int_equal(r.r_init, 0);
  for (int i = 0; i <= CYCLES; i++) {
    assert_int_equal(r.cycles[i].n_logs, 0);
    assert_true(r.cycles[i].has_state && r.cycles[i].has_capture);
    assert_int_equal(r.cycles[i].files, i == 0 ? 1 : MAX_FILES);
  }
}

TEST(any_fault_while_snapshots_are_made) { sweep_snapshots(0); }

TEST(any_fault_while_snapshots_are_written) { sweep_snapshots(1); }
