/* SPDX-License-Identifier: MIT */
/*
 * The whole core on a host that was recorded by contrib/capture-proc --every.
 * In each moment the recording has the files that the core reads, and the
 * smaps_rollup of every process: also of those that the core does not read
 * then, but estimates. So each value is compared with the truth of its moment.
 * The groups are the names of processes, and "all".
 *
 * tests/fixtures/recorded/README says what is in the recording.
 * SMAPS_RECORDING=FILE.tar.gz replays another one, and REPLAY_VERBOSE=1 prints
 * each value; see contrib/HACKING.
 */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"

#define RECORDING "tests/fixtures/recorded/host.tar.gz"

/* What a walk took on that host, on average: 0.02 ms for a worker of Apache, up
 * to 1.9 ms for a backend of PostgreSQL. */
#define WALK_NS (NS_PER_MS / 3)

#define MOMENTS 48
#define ALL "all"

/* Of a group at a moment, as the recorded rollups have it. */
struct truth {
  char name[32];
  unsigned processes;
  bool is_known;    /* each of its processes has a rollup */
  bool is_unsteady; /* a process came or went while they were read */
  double pss, uss, swap, rss;
  /* By how much these may be another moment's than the files that the core
   * reads: pages that came, went or were written between the cheap files before
   * the rollup and those after it. */
  double moved;
};

/* How far values are from the truth, in bytes. */
struct distance {
  double truth, off, error;
  unsigned beyond; /* moments in which the value was farther off than it said */
};

/* Of a group, over all moments. */
struct comparison {
  char name[32];
  unsigned compared, unknown, unsteady;
  struct distance pss, uss, resident;
  unsigned miscounted; /* moments with another number of processes */
  double swap_off, moved;
};

struct replay {
  struct world world;
  unsigned moments;
  double uptime;     /* of the last moment, in seconds */
  double page_bytes; /* of the host */
  struct truth *truths;
  size_t n_truths;
  struct comparison *groups;
  size_t n_groups;
  struct comparison sum; /* of all groups but "all" */
  uint64_t reads, processes;
};

/* --- files --- */

#define PATH_SIZE 512

/* ret has PATH_SIZE bytes. */
static void join(char *ret, const char *directory, const char *name) {
  if (snprintf(ret, PATH_SIZE, "%s/%s", directory, name) >= PATH_SIZE)
    fail_msg("%s/%s is too long", directory, name);
}

/* Calls `visit` with each name in a directory that is there. */
static void for_each(const char *directory, void *ctx,
                     void (*visit)(void *ctx, const char *name)) {
  struct dirent **names;
  int n = scandir(directory, &names, NULL, alphasort);

  for (int i = 0; i < n; i++) {
    if (names[i]->d_name[0] != '.')
      visit(ctx, names[i]->d_name);
    free(names[i]);
  }
  if (n >= 0)
    free(names);
}

static bool is_pid(const char *name) { return *name >= '1' && *name <= '9'; }

/* Threads that outlive the main one are symbolic links. */
static bool is_process(const char *directory, const char *name) {
  char path[PATH_SIZE];
  struct stat st;

  join(path, directory, name);
  return is_pid(name) && lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Returns the whole text of a file, empty if it is not there. The next call
 * overwrites it. */
static char *load(const char *directory, const char *name) {
  static char nothing[1], *text;
  static size_t size;
  char path[PATH_SIZE];
  ssize_t n;
  FILE *f;

  join(path, directory, name);
  f = fopen(path, "r");
  if (!f)
    return nothing;
  n = getdelim(&text, &size, '\0', f);
  fclose(f);
  return n > 0 ? text : nothing;
}

/* --- the truth --- */

static double bytes_of(const char *rollup, const char *key) {
  const char *line = strstr(rollup, key);

  return line ? 1024 * strtod(line + strlen(key), NULL) : 0;
}

struct cheap {
  double faults, resident; /* pages */
};

/* Takes the texts of stat and statm, one after the other. */
static struct cheap parse_cheap(const char *text) {
  const char *end = strrchr(text, ')');
  struct cheap c = {0};

  if (end &&
      sscanf(end,
             ") %*c %*d %*d %*d %*d %*d %*u %lf %*[^\n]\n%*u %lf", /* minflt */
             &c.faults, &c.resident) != 2)
    fail_msg("stat and statm cannot be parsed: %s", text);
  return c;
}

static double moved_pages(const char *process) {
  char before[4096];
  struct cheap a, b;
  int n = snprintf(before, sizeof(before), "%s", load(process, "stat"));

  snprintf(before + n, sizeof(before) - (size_t)n, "%s",
           load(process, "statm"));
  a = parse_cheap(before);
  b = parse_cheap(load(process, "after"));
  return fabs(b.resident - a.resident) + b.faults - a.faults;
}

/* Returns the array with room for one more; `size` is that of an element. */
static void *grow(void *array, size_t n, size_t size) {
  array = realloc(array, (n + 1) * size);
  assert_non_null(array);
  return array;
}

/* The next call may move it. */
static struct truth *truth_of(struct replay *r, const char *name) {
  for (size_t i = 0; i < r->n_truths; i++)
    if (strcmp(r->truths[i].name, name) == 0)
      return &r->truths[i];
  r->truths = grow(r->truths, r->n_truths, sizeof(*r->truths));
  r->truths[r->n_truths] = (struct truth){.is_known = true};
  snprintf(r->truths[r->n_truths].name, sizeof(r->truths->name), "%s", name);
  return &r->truths[r->n_truths++];
}

static void add_process(struct replay *r, const char *name,
                        const char *process) {
  struct truth *t = truth_of(r, name);
  const char *rollup;

  t->processes++;
  t->moved += moved_pages(process) * r->page_bytes;
  rollup = load(process, "smaps_rollup");
  t->is_known &= *rollup != '\0';
  t->pss += bytes_of(rollup, "\nPss:");
  t->uss += bytes_of(rollup, "\nPrivate_Clean:") +
            bytes_of(rollup, "\nPrivate_Dirty:");
  t->swap += bytes_of(rollup, "\nSwapPss:");
  t->rss += bytes_of(rollup, "\nRss:");
}

/* By a process that only some of its relatives shared memory with when they
 * were read: the sum of their rollups lacks its share, or has it twice. */
static void note_unsteady(struct replay *r, const char *comm) {
  truth_of(r, comm)->is_unsteady = true;
  truth_of(r, ALL)->is_unsteady = true;
}

/* The moment that is being shown. */
struct moment {
  struct replay *r;
  char path[PATH_SIZE];
};

/* True between the end of a process and its being a zombie: it shows no memory
 * any more, and the kernel is still taking it apart, page by page. */
static bool is_ending(const char *process) {
  const char *end = strrchr(load(process, "stat"), ')');
  unsigned flags = 0;
  char state = 'Z';

  return end &&
         sscanf(end, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2 &&
         state != 'Z' && flags & 4 /* PF_EXITING */;
}

static void learn_without_memory(struct replay *r, const char *comm,
                                 const char *process) {
  char task[PATH_SIZE];

  join(task, process, "task");
  if (access(task, F_OK) == 0) {
    /* Its main thread has ended: what it has is in other files. */
    truth_of(r, comm)->is_known = false;
    truth_of(r, ALL)->is_known = false;
  } else if (is_ending(process)) {
    note_unsteady(r, comm);
  }
  /* Others are zombies and kernel threads, which are in no group. */
}

static void learn_process(void *ctx, const char *name) {
  struct moment *m = ctx;
  char process[PATH_SIZE], comm[32];

  if (!is_process(m->path, name))
    return;
  join(process, m->path, name);
  snprintf(comm, sizeof(comm), "%s", load(process, "comm"));
  comm[strcspn(comm, "\n")] = '\0';
  if (strncmp(load(process, "statm"), "0 0 ", 4) == 0) {
    learn_without_memory(m->r, comm, process);
    return;
  }
  add_process(m->r, comm, process);
  add_process(m->r, ALL, process);
}

/* The file has the stat of each process that came or went. */
static void learn_unsteady(const struct moment *m) {
  char *line, *rest = load(m->path, "unsteady");

  while ((line = strsep(&rest, "\n"))) {
    char *comm = strchr(line, '('), *end = strrchr(line, ')');

    if (!comm || !end)
      continue;
    *end = '\0';
    note_unsteady(m->r, comm + 1);
  }
}

/* --- the tree --- */

struct directories {
  const struct replay *r;
  const char *from, *to;
};

static void move_file(void *ctx, const char *name) {
  const struct directories *d = ctx;
  char from[PATH_SIZE], to[PATH_SIZE];

  join(from, d->from, name);
  join(to, d->to, name);
  if (rename(from, to) < 0)
    fail_msg("%s: %s", from, error_name(errno));
}

static void remove_file(void *ctx, const char *name) {
  const struct directories *d = ctx;
  char path[PATH_SIZE];

  join(path, d->from, name);
  proctree_unlink(&d->r->world.tree, path);
}

/* The directory of a process stays the same one for its life, as in /proc. */
static void show_entry(void *ctx, const char *name) {
  struct moment *m = ctx;
  char from[PATH_SIZE], to[PATH_SIZE];
  struct directories d = {.r = m->r, .from = name};

  join(from, m->path, name);
  join(to, m->r->world.tree.root, name);
  if (!is_process(m->path, name)) {
    assert_int_equal(rename(from, to), 0);
    return;
  }
  mkdir(to, 0700);
  for_each(to, &d, remove_file);
  d.from = from;
  d.to = to;
  for_each(from, &d, move_file);
}

static void end_missing(void *ctx, const char *name) {
  struct moment *m = ctx;
  char path[PATH_SIZE];

  join(path, m->path, name);
  if (is_pid(name) && access(path, F_OK) < 0)
    proctree_end(&m->r->world.tree, (uint32_t)strtoul(name, NULL, 10));
}

static bool show_moment(struct replay *r) {
  struct moment m = {.r = r};

  snprintf(m.path, sizeof(m.path), "%s/recording/moment-%03u",
           r->world.tree.root, r->moments + 1);
  if (access(m.path, F_OK) < 0)
    return false;
  r->n_truths = 0;
  assert_int_equal(
      sscanf(load(m.path, "getconf"), "PAGESIZE %lf", &r->page_bytes), 1);
  for_each(m.path, &m, learn_process);
  learn_unsteady(&m);
  for_each(r->world.tree.root, &m, end_missing);
  for_each(m.path, &m, show_entry);
  return true;
}

/* --- the comparison --- */

static struct comparison *comparison_of(struct replay *r, const char *name) {
  struct comparison *c;

  for (size_t i = 0; i < r->n_groups; i++)
    if (strcmp(r->groups[i].name, name) == 0)
      return &r->groups[i];
  r->groups = grow(r->groups, r->n_groups, sizeof(*r->groups));
  c = &r->groups[r->n_groups++];
  *c = (struct comparison){.compared = 0};
  snprintf(c->name, sizeof(c->name), "%s", name);
  return c;
}

/* Compares one value of a group. `error_metric` is NULL if it has no error;
 * `room` is what the error need not have. */
static void judge(const struct replay *r, const struct truth *t,
                  const char *metric, const char *error_metric, double truth,
                  double room, struct distance *d) {
  const struct world *w = &r->world;
  double value = world_value(w, t->name, metric);
  double error = error_metric ? world_value(w, t->name, error_metric) : 0;
  bool is_beyond = !(fabs(value - truth) <= error + room);

  d->truth += truth;
  d->off += fabs(value - truth);
  d->error += error;
  d->beyond += is_beyond;
  if (is_beyond || getenv("REPLAY_VERBOSE"))
    printf("%smoment %u, %s: %s is %.0f kB, published as %.0f +- %.0f; %.0f kB "
           "of room\n",
           is_beyond ? "BEYOND: " : "", r->moments, t->name, metric,
           truth / 1024, value / 1024, error / 1024, room / 1024);
}

static bool is_miscounted(const struct replay *r, const struct truth *t) {
  double count = world_value(&r->world, t->name, "ps_count");

  if (count == t->processes)
    return false;
  printf("MISCOUNTED: moment %u, %s: %u processes, published as %.0f\n",
         r->moments, t->name, t->processes, count);
  return true;
}

/* The kernel and the core each round each process down to a kB. */
static void compare(const struct replay *r, const struct truth *t,
                    struct comparison *c) {
  const struct world *w = &r->world;
  double room = t->moved + 2 * 1024 * t->processes;

  if (t->is_unsteady) {
    c->unsteady++;
    return;
  }
  if (!t->is_known || !world_find(w, t->name) ||
      isnan(world_value(w, t->name, "pss"))) {
    c->unknown++;
    return;
  }
  c->compared++;
  judge(r, t, "pss", "pss_error", t->pss, room, &c->pss);
  judge(r, t, "uss", "uss_error", t->uss, room, &c->uss);
  judge(r, t, "resident", NULL, t->rss, t->moved, &c->resident);
  c->miscounted += is_miscounted(r, t);
  c->swap_off += fabs(world_value(w, t->name, "swap") - t->swap);
  c->moved += t->moved;
}

static void add_distance(struct distance *sum, const struct distance *d) {
  sum->truth += d->truth;
  sum->off += d->off;
  sum->error += d->error;
  sum->beyond += d->beyond;
}

static void add_comparison(struct comparison *sum, const struct comparison *c) {
  sum->compared += c->compared;
  sum->unknown += c->unknown;
  sum->unsteady += c->unsteady;
  add_distance(&sum->pss, &c->pss);
  add_distance(&sum->uss, &c->uss);
  add_distance(&sum->resident, &c->resident);
  sum->miscounted += c->miscounted;
  sum->swap_off += c->swap_off;
  sum->moved += c->moved;
}

static double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

static void print_distance(const char *name, const struct distance *d) {
  printf("; %s %.3f %% off, error %.2f %%, %u beyond", name,
         percent(d->off, d->truth), percent(d->error, d->truth), d->beyond);
}

static void print_comparison(const struct comparison *c) {
  printf("%-15s %3u compared, %u unknown, %u unsteady, %6.1f MB", c->name,
         c->compared, c->unknown, c->unsteady,
         c->compared ? c->pss.truth / c->compared / 1e6 : 0);
  print_distance("PSS", &c->pss);
  print_distance("USS", &c->uss);
  printf("; RSS %u beyond; %u miscounted; %.3f %% moved\n", c->resident.beyond,
         c->miscounted, percent(c->moved, c->pss.truth));
}

/* --- the replay --- */

static int make(void **state) {
  static struct replay replay; /* too large for a stack */

  memset(&replay, 0, sizeof(replay));
  strcpy(replay.sum.name, "all groups");
  world_make(&replay.world);
  *state = &replay;
  return 0;
}

static int unmake(void **state) {
  struct replay *r = *state;

  world_remove(&r->world);
  free(r->truths);
  free(r->groups);
  return 0;
}

#define REPLAY_TEST(name) TEST_WITH(name, make, unmake, struct replay *r)

/* Returns the time of a moment, in seconds; 0 if there is none. */
static double uptime_of(const struct replay *r, unsigned moment) {
  char path[PATH_SIZE];

  snprintf(path, sizeof(path), "%s/recording/moment-%03u", r->world.tree.root,
           moment);
  return strtod(load(path, "uptime"), NULL);
}

static void unpack(const struct world *w) {
  const char *other = getenv("SMAPS_RECORDING");
  char command[2 * PATH_SIZE];

  snprintf(command, sizeof(command),
           "mkdir '%s/recording' && tar -xf '%s' -C '%s/recording'",
           w->tree.root, other ? other : RECORDING, w->tree.root);
  assert_int_equal(system(command), 0);
}

/* With the options that a user has by default, but for the time for readings,
 * as a percentage of a processor; 0 for the default. */
static void begin(struct replay *r, double read_budget) {
  struct world *w = &r->world;
  double interval;

  unpack(w);
  interval = uptime_of(r, 2) - uptime_of(r, 1);
  w->settings.interval_ns = interval > 0 ? (uint64_t)(interval + 0.5) * NS : NS;
  w->settings.policy = settings_defaults.policy;
  if (read_budget > 0)
    w->settings.read_budget_percent = read_budget;
  world_walks_take(WALK_NS);
  world_group(w, ALL, "Comm", "*", NULL, NULL)->is_view = true;
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
}

/* Between two moments as much time passes as in the recording. */
static void run_moment(struct replay *r) {
  double uptime = strtod(load(r->world.tree.root, "uptime"), NULL);

  assert_true(uptime > r->uptime);
  if (r->moments > 0)
    world_pass((uint64_t)((uptime - r->uptime) * (double)NS));
  r->uptime = uptime;
  world_run(&r->world, 0);
  r->moments++;
  r->reads += world_counts(&r->world)->rollup_reads;
  r->processes += world_counts(&r->world)->matched;
  for (size_t i = 0; i < r->n_truths; i++)
    compare(r, &r->truths[i], comparison_of(r, r->truths[i].name));
}

static void replay(struct replay *r, double read_budget) {
  begin(r, read_budget);
  while (show_moment(r))
    run_moment(r);
  assert_true(r->moments > 0);
  for (size_t i = 0; i < r->n_groups; i++) {
    print_comparison(&r->groups[i]);
    if (strcmp(r->groups[i].name, ALL) != 0)
      add_comparison(&r->sum, &r->groups[i]);
  }
  print_comparison(&r->sum);
  printf("%u moments of %.0f processes, of which %.1f were read\n", r->moments,
         (double)r->processes / r->moments, (double)r->reads / r->moments);
}

/* How often values may be farther from the truth than they say; and of our
 * recording, how far they may be in sum, and how many processes may be read. */
struct limits {
  unsigned beyond;
  double pss_off_percent, uss_off_percent;
  double pss_error_percent, uss_error_percent;
  double read_percent;
};

static void expect_near(const struct distance *d, double off_percent,
                        double error_percent) {
  assert_true(percent(d->off, d->truth) < off_percent);
  assert_true(percent(d->error, d->truth) < error_percent);
}

/* The group "all" is not in the sum. */
static void expect_all(struct replay *r) {
  const struct comparison *all = comparison_of(r, ALL);

  assert_int_equal(all->pss.beyond, 0);
  assert_int_equal(all->uss.beyond, 0);
  assert_int_equal(all->miscounted, 0);
  if (getenv("SMAPS_RECORDING"))
    return;
  assert_in_range(all->compared, 30, UINT32_MAX);
  assert_int_equal(all->resident.beyond, 0);
}

static void expect(struct replay *r, const struct limits *most) {
  const struct comparison *sum = &r->sum;

  assert_in_range(sum->pss.beyond, 0, most->beyond);
  assert_in_range(sum->uss.beyond, 0, most->beyond);
  assert_int_equal(sum->miscounted, 0);
  expect_all(r);
  if (getenv("SMAPS_RECORDING"))
    return;
  assert_int_equal(r->moments, MOMENTS);
  assert_in_range(sum->compared, 300, UINT32_MAX);
  assert_int_equal(sum->unknown, 0);
  expect_near(&sum->pss, most->pss_off_percent, most->pss_error_percent);
  expect_near(&sum->uss, most->uss_off_percent, most->uss_error_percent);
  assert_int_equal(sum->resident.beyond, 0);
  assert_true(sum->swap_off == 0); /* the host had no swap */
  assert_true(percent((double)r->reads, (double)r->processes) <
              most->read_percent);
}

REPLAY_TEST(values_of_a_recorded_host_are_within_their_error) {
  replay(r, 0);
  expect(r, &(struct limits){.beyond = 0,
                             .pss_off_percent = 0.1,
                             .uss_off_percent = 0.1,
                             .pss_error_percent = 0.6,
                             .uss_error_percent = 1.1,
                             .read_percent = 80});
}

/* A twentieth of the time: as if there were more processes by far, or larger
 * ones. The Python programs are beyond their error for a moment or two: the
 * pool maps their interpreter too, which only a reading shows. */
REPLAY_TEST(estimates_with_few_readings_are_nearly_all_within_their_error) {
  replay(r, 0.05);
  expect(r, &(struct limits){.beyond = 2,
                             .pss_off_percent = 1,
                             .uss_off_percent = 2,
                             .pss_error_percent = 12,
                             .uss_error_percent = 25,
                             .read_percent = 35});
}

/* 300 processes of as many names come or go in a moment; their lines are more
 * than 20 kB. */
REPLAY_TEST(every_unsteady_process_of_a_busy_host_is_noted) {
  struct moment m = {.r = r};
  char name[32], path[PATH_SIZE];
  unsigned n = 300;
  FILE *f;

  snprintf(m.path, sizeof(m.path), "%s", r->world.tree.root);
  join(path, m.path, "unsteady");
  f = fopen(path, "w");
  assert_non_null(f);
  for (unsigned i = 0; i < n; i++)
    fprintf(f, "%u (short %u) S 1%60s\n", 1000 + i, i, "0");
  fclose(f);
  learn_unsteady(&m);
  assert_int_equal(r->n_truths, n + 1);
  assert_true(truth_of(r, ALL)->is_unsteady);
  for (unsigned i = 0; i < n; i++) {
    snprintf(name, sizeof(name), "short %u", i);
    assert_true(truth_of(r, name)->is_unsteady);
  }
  assert_int_equal(r->n_truths, n + 1);
}
