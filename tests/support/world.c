/* SPDX-License-Identifier: MIT */
#include "world.h"

#include "test.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A read that comes back too late still asks for the time. */
static _Atomic uint64_t now_ns;

static uint64_t wall_ns;

/* Passes by each question to a clock. */
#define TICK_NS 1000

static _Atomic pthread_t cycle_thread;
static _Atomic uint64_t walk_ns, wait_ns, cpu_ns;

void world_walks_take(uint64_t ns) { walk_ns = ns; }

void world_walks_wait(uint64_t ns) { wait_ns = ns; }

static uint64_t cpu_clock_ns(void) {
  cpu_ns += walk_ns ? walk_ns : TICK_NS;
  return cpu_ns;
}

void world_pass(uint64_t ns) { now_ns += ns; }

void world_spend(uint64_t ns) {
  cpu_ns += ns;
  now_ns += ns;
}

void world_step(int64_t seconds) {
  wall_ns += (uint64_t)seconds * UINT64_C(1000000000);
}

static uint64_t clock_ns(void) {
  /* A reader's thread asks before and after. */
  if (!pthread_equal(pthread_self(), cycle_thread))
    now_ns += wait_ns + (walk_ns ? walk_ns : TICK_NS);
  else
    now_ns += TICK_NS;
  return now_ns;
}

static uint64_t wall_clock_ns(void) { return wall_ns; }

/* The writer's thread appends to these. */
#define WRITTEN_MAX 64
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct world_written all_written[WRITTEN_MAX];
static size_t n_written;

static void take_written(const struct document *w) {
  struct world_written *copy;

  pthread_mutex_lock(&mutex);
  assert_true(n_written < WRITTEN_MAX);
  copy = &all_written[n_written++];
  copy->kind = w->kind;
  copy->error = w->error;
  snprintf(copy->subject, sizeof(copy->subject), "%s", w->subject);
  snprintf(copy->path, sizeof(copy->path), "%s", w->path);
  copy->summary = w->summary;
  copy->alarm = w->alarm;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

const struct world_written *world_written(size_t index) {
  struct timespec deadline;
  int r = 0;

  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 30;
  pthread_mutex_lock(&mutex);
  while (n_written <= index && r == 0)
    r = pthread_cond_timedwait(&changed, &mutex, &deadline);
  pthread_mutex_unlock(&mutex);
  if (r != 0)
    fail_msg("snapshot %zu does not come", index);
  return &all_written[index];
}

size_t world_n_written(void) {
  size_t n;

  pthread_mutex_lock(&mutex);
  n = n_written;
  pthread_mutex_unlock(&mutex);
  return n;
}

/* uid 7 is "seven"; no other has a name. */
static int look_up_user(uint32_t uid, char *ret, size_t size) {
  return uid == 7 && snprintf(ret, size, "seven") > 0 ? 0 : -1;
}

void world_make(struct world *w) {
  *w = (struct world){.collector = NULL};
  cycle_thread = pthread_self();
  now_ns = UINT64_C(1000) * 1000000000;
  wall_ns = WORLD_WALL_NS;
  n_written = 0;
  walk_ns = wait_ns = 0;
  proctree_make(&w->tree);
  settings_init(&w->settings);
  w->settings.policy.refresh = REFRESH_ALWAYS;
  w->settings.policy.max_age_ns = 60 * NS_PER_S;
  w->settings.policy.max_lock_hold_ns = 100 * NS_PER_MS;
  w->settings.policy.unsampled_lock_hold_ns = 0;
  for (int i = 0; i < ALARM_CAUSES; i++)
    w->settings.report.alarms.causes[i] = CHOICE_NO;
}

void world_stop(struct world *w) {
  collector_free(w->collector);
  w->collector = NULL;
}

void world_remove(struct world *w) {
  world_stop(w);
  settings_done(&w->settings);
  proctree_remove(&w->tree);
}

int world_setup(void **state) {
  static struct world w;

  world_make(&w);
  *state = &w;
  return 0;
}

int world_teardown(void **state) {
  world_remove(*state);
  return 0;
}

static void add_selector(struct rule *r, const char *option,
                         const char *pattern) {
  struct config_error reason;

  if (option)
    assert_int_equal(rule_add_selector(r, option, pattern, &reason), 0);
}

struct rule *world_group(struct world *w, const char *name, const char *option,
                         const char *pattern, const char *option2,
                         const char *pattern2) {
  struct config_error reason;
  struct rule *r;

  assert_int_equal(settings_add_rule(&w->settings, name, &r, &reason), 0);
  add_selector(r, option, pattern);
  add_selector(r, option2, pattern2);
  assert_int_equal(settings_check_rule(&w->settings, r, &reason), 0);
  return r;
}

void world_other(struct world *w, const char *name) {
  struct config_error reason;

  assert_int_equal(rule_set_name(&w->settings.other, name, &reason), 0);
  assert_true(asprintf(&w->settings.other.text, "Other \"%s\"", name) > 0);
}

void world_keep_state(struct world *w) {
  struct config_error reason;
  char path[128];

  snprintf(path, sizeof(path), "%s/state", w->tree.root);
  assert_int_equal(settings_set_path(&w->settings.state_file, path, &reason),
                   0);
  w->settings.has_state_at_start = true;
}

void world_remember(struct world *w) {
  world_keep_state(w);
  w->settings.has_state_at_start = false;
  w->settings.state_interval_ns = 86400 * NS_PER_S;
  proctree_print(&w->tree, 0, "sys/kernel/random/boot_id", "a-boot\n");
}

void world_keep_captures(struct world *w) {
  struct config_error reason;
  char path[128];

  snprintf(path, sizeof(path), "%s/captures", w->tree.root);
  assert_int_equal(
      settings_set_path(&w->settings.capture.directory, path, &reason), 0);
}

void world_raise_as(struct world *w, const char *group,
                    const char *type_instance, enum severity severity) {
  struct alarm alarm = {.severity = severity,
                        .time_ns = WORLD_WALL_NS - 1000000000,
                        .type = "memory",
                        .message = "it is more than 1 GB"};

  snprintf(alarm.group, sizeof(alarm.group), "%s", group);
  snprintf(alarm.type_instance, sizeof(alarm.type_instance), "%s",
           type_instance);
  collector_raise(w->collector, &alarm);
}

void world_raise(struct world *w, const char *group) {
  world_raise_as(w, group, "pss", SEVERITY_WARNING);
}

static void start(struct world *w) {
  struct collector_hooks hooks = {.clock_ns = clock_ns,
                                  .cpu_clock_ns = cpu_clock_ns,
                                  .look_up_user = look_up_user,
                                  .wall_clock_ns = wall_clock_ns,
                                  .written = take_written};
  struct config_error reason;

  assert_int_equal(settings_set_proc_root(&w->settings, w->tree.root, &reason),
                   0);
  if (!w->settings.report.metrics)
    w->settings.report.metrics = metric_find("detail", &reason);
  assert_int_equal(settings_finish(&w->settings), 0);
  assert_int_equal(collector_new(&w->settings, &hooks, &w->collector), 0);
}

void world_budget(struct world *w, uint64_t ns) {
  w->settings.read_budget_span_ns = NS_PER_S;
  w->settings.read_budget_percent = 100 * (double)ns / (double)NS_PER_S;
}

/* The least that is predicted is 5 us, and a reading takes a tick or two. */
void world_budget_for_one(struct world *w) { world_budget(w, 4 * TICK_NS); }

int world_cycle(struct world *w, unsigned seconds) {
  if (!w->settings.interval_ns)
    w->settings.interval_ns = seconds * NS_PER_S;
  if (w->collector)
    wall_ns += (uint64_t)seconds * 1000000000;
  else
    start(w);
  now_ns += (uint64_t)seconds * 1000000000;
  return collector_cycle(w->collector);
}

void world_run(struct world *w, unsigned seconds) {
  assert_int_equal(world_cycle(w, seconds), 0);
}

void world_run_times(struct world *w, unsigned n, unsigned seconds) {
  while (n-- > 0)
    world_run(w, seconds);
}

void world_run_reading(struct world *w, unsigned seconds, uint64_t n) {
  world_run(w, seconds);
  assert_int_equal(world_counts(w)->rollup_reads, n);
}

void world_run_hung(struct world *w, unsigned seconds, uint64_t n) {
  world_run(w, seconds);
  assert_int_equal(world_counts(w)->hung, n);
}

void world_run_until_none_hangs(struct world *w) {
  do {
    sched_yield();
    world_run(w, 1);
  } while (world_counts(w)->hung > 0);
}

void world_put(const struct world *w, struct fake f) {
  proctree_put(&w->tree, &f);
}

void world_watch(struct world *w, struct fake f) {
  world_put(w, f);
  world_group(w, "g", "Comm", "*", NULL, NULL);
}

void world_start(struct world *w, struct fake f) {
  world_watch(w, f);
  world_run(w, 1);
}

void world_make_own(const struct world *w) { proctree_make_own(&w->tree); }

void world_put_mapped(const struct world *w, struct fake f, const char *name) {
  const struct fake_mapping mapping = {.name = name,
                                       .private_kb = f.private_kb};

  world_put(w, f);
  proctree_put_smaps(&w->tree, f.pid, &mapping, 1);
}

const struct group *world_find(const struct world *w, const char *name) {
  const struct group *g;
  size_t cursor = 0;

  while ((g = collector_next_group(w->collector, &cursor)))
    if (strcmp(g->name, name) == 0)
      return g;
  return NULL;
}

size_t world_groups(const struct world *w) {
  size_t cursor = 0, n = 0;

  while (collector_next_group(w->collector, &cursor))
    n++;
  return n;
}

unsigned world_members(const struct world *w, const char *name) {
  const struct group *g = world_find(w, name);

  return g ? (unsigned)g->usage.processes : 0;
}

double world_value(const struct world *w, const char *group,
                   const char *metric) {
  const struct group *g = world_find(w, group);
  struct report report = {.absolute = CHOICE_YES};
  struct metric_value value;
  struct config_error reason;
  unsigned cursor = 0;

  struct metric_subject subject = {.usage = NULL};

  assert_non_null(g);
  if (g)
    subject = (struct metric_subject){
        .usage = &g->usage, .cgroup = g->cgroup, .growth = g->growth};
  report.metrics = metric_find(metric, &reason);
  assert_true(metric_next(&subject, &report,
                          &collector_results(w->collector)->context, &cursor,
                          &value));
  return value.values[0];
}

void world_assert_members(const struct world *w, const char *members) {
  char name[GROUP_NAME_SIZE];
  unsigned expected;
  int len;

  for (; sscanf(members, " %127[^=]=%u%n", name, &expected, &len) == 2;
       members += len)
    if (world_members(w, name) != expected)
      fail_msg("%s has %u members and not %u", name, world_members(w, name),
               expected);
  assert_string_equal(members, "");
}

double world_kb(const struct world *w, const char *group, const char *metric) {
  return world_value(w, group, metric) / 1024;
}

__attribute__((format(printf, 3, 0))) static void
assert_values(const struct world *w, const char *group, const char *values,
              va_list args) {
  char text[512], name[32], number[32];
  const char *rest = text;
  int len = vsnprintf(text, sizeof(text), values, args);

  assert_in_range(len, 0, sizeof(text) - 1);
  for (; sscanf(rest, " %31[^=]=%31s%n", name, number, &len) == 2;
       rest += len) {
    char *unit;
    double expected = strtod(number, &unit),
           found = world_value(w, group, name);

    if (*unit == 'k')
      expected *= 1024;
    if (isnan(expected) ? !isnan(found) : found != expected)
      fail_msg("%s: %s is %g and not %s", group, name, found, number);
  }
  assert_string_equal(rest, "");
}

void world_assert(const struct world *w, const char *group, const char *values,
                  ...) {
  va_list args;

  va_start(args, values);
  assert_values(w, group, values, args);
  va_end(args);
}

void world_expect(struct world *w, unsigned seconds, const char *group,
                  const char *values, ...) {
  va_list args;

  world_run(w, seconds);
  va_start(args, values);
  assert_values(w, group, values, args);
  va_end(args);
}

const struct collector_counts *world_counts(const struct world *w) {
  return &collector_results(w->collector)->counts;
}

const struct diag *world_diag(const struct world *w, enum diag_kind kind) {
  return &collector_results(w->collector)->diags[kind];
}
