/*
 * Whatever call fails while snapshots are made and written: the values of
 * groups are the same, there is no half file and at most one complaint, nothing
 * is kept, and the next snapshots are whole again.
 *
 * A run is the whole life of the plugin, with a state and a capture in each
 * cycle; see test_plugin_faults.c. Only what belongs to snapshots fails here:
 * on the thread of the cycle, and on that which writes.
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

/* Nothing fails in the last cycle. */
#define CYCLES 4
#define MAX_FILES 2
#define MEMBERS 2

static struct proctree tree;
static char captures[128], state_file[128];

/* --- a run --- */

static int make_tree(void **state) {
  const struct fake_mapping mappings[] = {
      {.name = "[heap]", .private_kb = 60},
      {.name = "/lib/x.so", .permissions = "r-xp", .shared_kb = 40}};

  (void)state;
  proctree_make(&tree);
  for (uint32_t pid = 10; pid < 10 + MEMBERS; pid++) {
    proctree_put(&tree, &(struct fake){.pid = pid,
                                       .comm = "web",
                                       .cmdline = "web --x",
                                       .starttime = 90 + pid,
                                       .start_stack = 0x7ff000000000,
                                       .private_kb = 60,
                                       .shared_kb = 40});
    proctree_put_smaps(&tree, pid, mappings, 2);
  }
  snprintf(captures, sizeof(captures), "%s/captures", tree.root);
  snprintf(state_file, sizeof(state_file), "%s/state.json", tree.root);
  faults_set_root(tree.root);
  return 0;
}

static int remove_tree(void **state) {
  (void)state;
  proctree_remove(&tree);
  return 0;
}

TEST_GROUP(make_tree, remove_tree)

static oconfig_item_t new_configuration(bool has_state) {
  char text[1024];

  /* Nothing hangs here. */
  snprintf(text, sizeof(text),
           "ProcRoot '%s'\nReadTimeout 60\nRefresh 'always'\n"
           "<Capture>\nDirectory '%s'\nCooldown 0\nMaxFiles %d\n</Capture>\n"
           "<Group 'web'>\nComm 'web'\n</Group>\n",
           tree.root, captures, MAX_FILES);
  if (has_state)
    snprintf(text + strlen(text), sizeof(text) - strlen(text),
             "StateFile '%s'\nStateInterval 0\nStateAtStart true\n",
             state_file);
  return items_parse(text);
}

struct cycle {
  int r;
  size_t n_values;
  struct stub_value values[64];
  unsigned complaints;
  bool has_state, has_capture; /* whole ones, of this cycle */
  unsigned files;              /* captures that there are */
};

struct run {
  int r_init;
  unsigned complaints;              /* of the start */
  unsigned start_end, ends[CYCLES]; /* calls that were made until then */
  struct cycle cycles[CYCLES];
  int fault_cycle; /* in which it came about; -1: before */
};

/* That a file is written again is none. */
static unsigned count_complaints(void) {
  unsigned n = 0;

  for (size_t i = 0; i < stub.n_logs; i++)
    n += stub.levels[i] <= LOG_WARNING;
  return n;
}

/* The C library takes a block for each that we read, and parsed.c gives it
 * back. */
static parsed read_document(const char *path) {
  faults_take_block();
  return parsed_file(path);
}

static bool has_state(void) {
  bool is_whole;
  parsed d;

  if (access(state_file, F_OK) != 0)
    return false;
  d = read_document(state_file);
  unlink(state_file);
  is_whole = parsed_count(d, "processes") == MEMBERS &&
             parsed_integer(d, "groups.0.usage.pss") == MEMBERS * 80 * KIB;
  parsed_free(d);
  return is_whole;
}

static bool is_whole_capture(const char *path) {
  parsed d = read_document(path);
  bool is_whole = parsed_count(d, "processes") == MEMBERS &&
                  parsed_get(d, "processes.0.mappings.1.pss") &&
                  parsed_get(d, "processes.1.mappings.1.pss") &&
                  parsed_integer(d, "left_out") == 0 &&
                  parsed_integer(d, "mappings.0.pss") == MEMBERS * 60 * KIB;

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

/* Calls count only while the plugin runs, and not the test's own. */
static int call_plugin(int (*init)(void)) {
  int r;

  faults_skip(false);
  r = init ? init() : stub.read(NULL);
  faults_skip(true);
  return r;
}

static void raise_alarm(void) {
  notification_t n = {.severity = NOTIF_FAILURE,
                      .time = stub.now,
                      .message = "too much",
                      .host = "stub",
                      .plugin = "smaps",
                      .plugin_instance = "web"};

  stub.notification(&n, NULL);
}

static void run_cycle(struct cycle *c, bool has_snapshots) {
  stub_clear();
  stub.now += TIME_T_TO_CDTIME_T(10);
  faults_pass(10 * NS);
  if (has_snapshots)
    raise_alarm();
  memset(c, 0, sizeof(*c));
  c->r = call_plugin(NULL);
  faults_await_idle();
  c->complaints = count_complaints();
  c->n_values = stub.n_values;
  assert_in_range(c->n_values, 0, sizeof(c->values) / sizeof(*c->values));
  memcpy(c->values, stub.values, c->n_values * sizeof(*c->values));
  c->has_state = has_state();
  look_at_captures(c);
}

static void run_as(struct run *r, bool has_snapshots, unsigned at,
                   unsigned way) {
  oconfig_item_t configuration = new_configuration(has_snapshots);
  stub_begin(module_register);
  plugin_set_ctx((plugin_ctx_t){.interval = TIME_T_TO_CDTIME_T(10)});
  proctree_unlink(&tree, "captures");
  faults_skip(true);
  faults_start(at, way);
  assert_int_equal(stub.config(&configuration), 0);
  items_free(&configuration);
  r->r_init = call_plugin(stub.init);
  r->start_end = faults_calls();
  r->complaints = count_complaints();
  r->fault_cycle = faults_made() ? -1 : CYCLES;
  for (int i = 0; r->r_init == 0 && i < CYCLES; i++) {
    run_cycle(&r->cycles[i], has_snapshots);
    r->ends[i] = faults_calls();
    if (faults_made() && r->fault_cycle == CYCLES)
      r->fault_cycle = i;
    if (i == CYCLES - 2 && !faults_made() && at)
      break;
  }
  stub.shutdown();
  faults_stop();
}

static void run(struct run *r, unsigned at, unsigned way) {
  run_as(r, true, at, way);
}

/* --- what has to hold --- */

static bool is_of_a_group(const char *identifier) {
  return strncmp(identifier, "smaps-", strlen("smaps-")) == 0;
}

static bool is_equal(double a, double b) {
  return a == b || (isnan(a) && isnan(b));
}

static bool is_same(const struct stub_value *a, const struct stub_value *b) {
  if (strcmp(a->identifier, b->identifier) != 0 || a->n != b->n)
    return false;
  for (size_t i = 0; is_of_a_group(a->identifier) && i < a->n; i++)
    if (!is_equal(a->values[i], b->values[i]))
      return false;
  return true;
}

static bool has_same_values(const struct cycle *a, const struct cycle *b) {
  if (a->n_values != b->n_values)
    return false;
  for (size_t i = 0; i < a->n_values; i++)
    if (!is_same(&a->values[i], &b->values[i]))
      return false;
  return true;
}

/* It does not start, with one line; or it does, and the cycles show that
 * nothing is missing. */
static void check_start(const struct run *r) {
  if (r->complaints != (r->r_init != 0))
    faults_complain("start: result %d, %u lines", r->r_init, r->complaints);
}

/* Files of a process that could not be read are missing in a capture without a
 * word, as with one that the kernel refuses; and what has no path behind it in
 * the notification is in the directory all the same. */
static bool may_be_silent(void) {
  static const char *const calls[] = {
      "openat", "open",   "read",    "close",  "fstat",
      "malloc", "calloc", "realloc", "strdup", "reallocarray"};

  for (size_t i = 0; i < LENGTH(calls); i++)
    if (strncmp(faults_made(), calls[i], strlen(calls[i])) == 0)
      return true;
  return false;
}

/* A file that was there and is gone: that is an answer. */
static unsigned allowed_files(void) {
  bool is_gone =
      faults_error() == ENOENT && (strncmp(faults_made(), "fstatat", 7) == 0 ||
                                   strncmp(faults_made(), "unlinkat", 8) == 0);

  return MAX_FILES + is_gone;
}

/* Runs without a fault: with snapshots, and without. */
static struct run whole, bare;
static unsigned lane;

static void check_cycle(const struct run *r, int i) {
  const struct cycle *c = &r->cycles[i];
  bool is_whole = c->has_state && c->has_capture;
  bool is_lost = !c->has_state || c->files < whole.cycles[i].files;

  if (c->r != 0 || !has_same_values(c, &whole.cycles[i]))
    faults_complain("cycle %d: values are not the same", i);
  if (c->complaints > 1 || (c->complaints && r->fault_cycle != i))
    faults_complain("cycle %d: %u complaints: %s", i, c->complaints,
                    stub.logs[0]);
  if (c->files > (r->fault_cycle == i ? allowed_files() : MAX_FILES))
    faults_complain("cycle %d: %u files", i, c->files);
  if (r->fault_cycle != i && !is_whole)
    faults_complain("cycle %d: state %d, capture %d", i, c->has_state,
                    c->has_capture);
  if (r->fault_cycle != i || is_whole || c->complaints == 1)
    return;
  if (is_lost || lane == 1 || !may_be_silent())
    faults_complain("cycle %d: state %d, capture %d, and not a word", i,
                    c->has_state, c->has_capture);
}

static void try(unsigned at, unsigned way) {
  static struct run r;

  run(&r, at, way);
  if (!faults_made())
    return;
  check_start(&r);
  for (int i = 0; r.r_init == 0 && i < CYCLES; i++)
    check_cycle(&r, i);
}

/* A cycle reads the processes, makes snapshots, and submits its values. Only
 * the calls in the middle belong to snapshots, in the first lane: a cycle in
 * which none is due makes the others. */
static bool is_for_snapshots(unsigned at) {
  for (int i = 0; lane == 0 && i < CYCLES - 1; i++) {
    unsigned begin = i ? whole.ends[i - 1] : whole.start_end;
    unsigned submits = (unsigned)whole.cycles[i].n_values;
    unsigned reads =
        bare.ends[i] - (i ? bare.ends[i - 1] : bare.start_end) - submits;

    if (at > begin && at <= whole.ends[i])
      return at > begin + reads && at <= whole.ends[i] - submits;
  }
  return true; /* of the start */
}

/* Sweeps the calls of the lane that are made before the last cycle. */
static void sweep(unsigned which) {
  unsigned n;

  lane = which;
  faults_watch(lane);
  run_as(&bare, false, 0, 0);
  run(&whole, 0, 0);
  n = whole.ends[CYCLES - 2];
  assert_in_range(faults_sweep(0, n, is_for_snapshots, try), 80, n);
}

/* --- the tests --- */

TEST(without_a_fault_all_is_written) {
  static const char *const calls[] = {
      "malloc",    "calloc",   "realloc",  "reallocarray",
      "strdup",    "open",     "openat",   "read",
      "close",     "fstat",    "fstatat",  "readdir",
      "scandirat", "write",    "fsync",    "fchmod",
      "mkdir",     "renameat", "unlinkat", "plugin_register_notification"};
  static struct run r;

  run(&r, 0, 0);
  for (size_t i = 0; i < LENGTH(calls); i++)
    if (faults_calls_of(calls[i]) == 0)
      fail_msg("%s is never called", calls[i]);
  assert_int_equal(r.r_init, 0);
  for (int i = 0; i < CYCLES; i++) {
    assert_int_equal(r.cycles[i].complaints, 0);
    assert_true(r.cycles[i].has_state && r.cycles[i].has_capture);
    assert_int_equal(r.cycles[i].files, i == 0 ? 1 : MAX_FILES);
    assert_true(has_same_values(&r.cycles[i], &r.cycles[0]));
  }
}

TEST(any_fault_while_they_are_made) { sweep(0); }

TEST(any_fault_while_they_are_written) { sweep(1); }
