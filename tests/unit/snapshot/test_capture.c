/* The members in a capture, and how long it takes. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "snapshot/last_known.h"

#include "parsed.h"
#include "world.h"

#define GIANT_KB (UINT64_C(64) << 10)

static parsed document;

static int make(void **state) {
  struct world *w;

  document = NULL;
  world_setup(state);
  w = *state;
  world_keep_captures(w);
  w->settings.interval_ns = 10 * NS_PER_S;
  return 0;
}

static int unmake(void **state) {
  parsed_free(document);
  return world_teardown(state);
}

#define WORLD_TEST(name) TEST_WITH(name, make, unmake, struct world *w)

/* A process of `kb`, all of it its own and in a mapping of its name. */
static void put(struct world *w, uint32_t pid, const char *comm, unsigned kb) {
  struct fake f = fake_process(pid, comm);

  f.private_kb = kb;
  world_put_mapped(w, f, comm);
}

static void group(struct world *w, const char *name) {
  world_group(w, name, "Comm", name, NULL, NULL);
}

/* Pids 10 to 9 + n, the last the largest. */
static void put_many(struct world *w, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    put(w, 10 + i, "g", 1000 + 100 * i);
  group(w, "g");
}

static void cycle(struct world *w) {
  world_run(w, 10);
  assert_true(collector_results(w->collector)->snapshot_error >= 0);
}

/* Runs a cycle, and raises an alarm for the next. */
static void raise_for(struct world *w, const char *name) {
  cycle(w);
  world_raise(w, name);
}

/* The first capture, which is written, or about to be. */
static parsed read_it(void) {
  assert_int_equal(world_written(0)->error, 0);
  document = parsed_file(world_written(0)->path);
  return document;
}

/* Asserts the processes in their order, "11 14", and how many were left out. */
static void assert_members(parsed d, const char *pids, uint64_t left_out) {
  char found[256] = "";

  for (size_t i = 0; i < parsed_count(d, "processes"); i++) {
    char path[48];
    size_t len = strlen(found);

    snprintf(path, sizeof(path), "processes.%zu.pid", i);
    snprintf(found + len, sizeof(found) - len, "%s%u", i ? " " : "",
             (unsigned)parsed_integer(d, path));
  }
  assert_string_equal(found, pids);
  assert_int_equal(parsed_integer(d, "left_out"), left_out);
}

/* The capture of a group, which is made in one cycle. */
static parsed capture(struct world *w, const char *name) {
  raise_for(w, name);
  cycle(w);
  return read_it();
}

/* Pss counts and not size, and of what cannot be read the guess; what has no
 * Pss is ordered by size. */
WORLD_TEST(largest_members_come_first) {
  const struct fake_mapping mapping = {.private_kb = 200};
  const struct fake shared = {.pid = 10,
                              .comm = "g",
                              .starttime = 1,
                              .private_kb = 100,
                              .shared_kb = 8000,
                              .pss_kb = 200};

  proctree_put(&w->tree, &shared);
  proctree_put_smaps(&w->tree, 10, &mapping, 1);
  put(w, 11, "g", 300);
  put(w, 12, "g", 400);
  put(w, 13, "other", 9000);
  put(w, 14, "g", 300);
  put(w, 20, "h", 300);
  put(w, 21, "h", 400);
  proctree_write(&w->tree, "12/smaps_rollup", "?\n", 2);
  proctree_write(&w->tree, "20/smaps_rollup", "?\n", 2);
  proctree_write(&w->tree, "21/smaps_rollup", "?\n", 2);
  group(w, "g");
  group(w, "h");
  assert_members(capture(w, "g"), "11 14 10 12", 0);
  assert_string_equal(world_written(0)->subject, "g");
  world_raise(w, "h");
  cycle(w);
  parsed_free(document);
  document = parsed_file(world_written(1)->path);
  assert_members(document, "21 20", 0);
}

WORLD_TEST(members_beyond_the_top_are_counted) {
  parsed d;

  w->settings.capture.top_processes = 3;
  put_many(w, 10);
  d = capture(w, "g");
  assert_members(d, "19 18 17", 7);
  assert_int_equal(parsed_integer(d, "mappings.0.processes"), 3);
}

/* It is of the interval in which it began. */
WORLD_TEST(a_long_capture_has_the_sums_of_its_beginning) {
  char name[128];
  parsed d;

  world_budget(w, 0);
  put_many(w, 2);
  raise_for(w, "g");
  cycle(w);
  put(w, 30, "g", 50000);
  cycle(w);
  d = read_it();
  assert_true(parsed_decimal(d, "time") ==
              (double)(WORLD_WALL_NS / NS_PER_S) + 10);
  snprintf(name, sizeof(name), "%s/captures/smaps-20261121T134511Z-g.json",
           w->tree.root);
  assert_string_equal(world_written(0)->path, name);
  parsed_assert(d, "groups.0.usage.pss=2100k left_out=0");
  assert_int_equal(parsed_count(d, "processes"), 2);
}

/* Each look at the clock takes a microsecond: some of a hundred are read in a
 * cycle, and not one alone. */
WORLD_TEST(capture_reads_as_many_members_as_the_budget_allows) {
  w->settings.read_budget_percent = 100 * 20e-6 / 10 / 5; /* of 10 s */
  w->settings.capture.top_processes = 100;
  put_many(w, 100);
  raise_for(w, "g");
  for (int i = 0; i < 3; i++)
    cycle(w);
  world_stop(w);
  assert_int_equal(world_n_written(), 0);
  raise_for(w, "g");
  for (int i = 0; i < 30; i++)
    cycle(w);
  assert_int_equal(parsed_count(read_it(), "processes"), 100);
}

WORLD_TEST(a_process_that_has_the_pid_now_is_another) {
  struct fake another = fake_process(10, "g");

  world_budget(w, 0);
  put_many(w, 3);
  raise_for(w, "g");
  cycle(w);
  proctree_end(&w->tree, 11);
  cycle(w); /* reads one; it may be this one, which is gone */
  another.starttime = 99999;
  another.private_kb = 64;
  world_put_mapped(w, another, "/another");
  cycle(w);
  cycle(w);
  assert_members(read_it(), "12", 2);
  assert_null(parsed_find(document, "mappings", "name", "/another"));
}

/* Gone, gone between the list and the reading, and a zombie. */
WORLD_TEST(ended_members_are_left_out) {
  world_budget(w, 0);
  put_many(w, 5); /* 14 is the first */
  raise_for(w, "g");
  cycle(w);
  proctree_end(&w->tree, 13);
  proctree_unlink(&w->tree, "11/smaps");
  proctree_put(
      &w->tree,
      &(struct fake){.pid = 12, .comm = "g", .state = 'Z', .starttime = 112});
  for (int i = 0; i < 4; i++)
    cycle(w);
  assert_members(read_it(), "14 10", 3);
}

/* Two mappings, one of which the others map too. */
static void put_maps(struct world *w, uint32_t pid) {
  const struct fake_range ranges[] = {{MIB, 5 * MIB, "rw-p", "g"},
                                      {5 * MIB, 1029 * MIB, "rw-p", NULL}};

  fake_pages_map(&w->tree, pid, ranges, LENGTH(ranges));
}

/* Its smaps is not even looked at: who opens it waits for ever. */
WORLD_TEST(member_above_max_lock_hold_has_its_mappings_from_maps) {
  parsed d, p, m;

  w->settings.policy.max_lock_hold_ns = NS_PER_MS;
  put_many(w, 3);
  put(w, 20, "g", 1 << 20);
  put_maps(w, 20);
  proctree_hang(&w->tree, "20/smaps");
  d = capture(w, "g");
  assert_members(d, "20 12 11 10", 0);
  p = parsed_get(d, "processes.0");
  parsed_assert(p, "source=guessed deferred=max_lock_hold mappings_from=maps");
  parsed_assert(p, "usage.rss=1024m");
  assert_int_equal(parsed_count(p, "mappings"), 2);
  m = parsed_find(p, "mappings", "name", "[anon]");
  parsed_assert(m, "size=1024m vmas=1 permissions=rw-p");
  assert_null(parsed_get(m, "pss"));
  assert_null(parsed_get(m, "rss"));
  p = parsed_get(d, "processes.1");
  parsed_assert(p, "source=read mappings_from=smaps mappings.0.pss=1200k");
  /* The sum of a mapping that all have is not known. */
  m = parsed_find(d, "mappings", "name", "g");
  parsed_assert(m, "processes=4 size=7396k");
  assert_null(parsed_get(m, "pss"));
}

/* A heap of its own, and twice as much in a file that another maps too. */
static void put_sampled(struct world *w, uint32_t pid) {
  const uint64_t first = 1024, pages = GIANT_KB / 4;
  const struct fake_range ranges[] = {
      {first * PAGE, (first + pages / 2) * PAGE, "rw-p", "[heap]"},
      {(first + pages) * PAGE, (first + 2 * pages) * PAGE, "rw-s", "g"},
      {(first + 2 * pages) * PAGE, (first + 2 * pages + 4) * PAGE, "r--p",
       "[vvar]"}};

  fake_pages_map(&w->tree, pid, ranges, LENGTH(ranges));
  fake_pages_put(&w->tree, pid, first, pages / 2, FAKE_ANON | FAKE_EXCLUSIVE,
                 1);
  fake_pages_put(&w->tree, pid, first + pages, pages, FAKE_FILE, 1 + pages / 2);
  fake_pages_count(&w->tree, 1, pages / 2, 1);
  fake_pages_count(&w->tree, 1 + pages / 2, pages, 2);
}

static void put_giant(struct world *w, uint32_t pid) {
  struct fake f = fake_process(pid, "g");

  f.private_kb = GIANT_KB / 2;
  f.shared_kb = GIANT_KB;
  world_put_mapped(w, f, "g");
  put_sampled(w, pid);
  proctree_hang(&w->tree, "20/smaps");
}

/* Its smaps is not even looked at: who opens it waits for ever. */
WORLD_TEST(member_above_max_lock_hold_has_its_mappings_from_samples) {
  parsed d, p, m;

  w->settings.policy.max_lock_hold_ns = NS_PER_MS / 10;
  world_walks_take(60000);
  put_many(w, 3);
  put_giant(w, 20);
  d = capture(w, "g");
  p = parsed_process(d, 20);
  parsed_assert(p, "mappings_from=samples");
  m = parsed_find(p, "mappings", "name", "[heap]");
  parsed_assert(m, "rss=32m pss=32m private_dirty=32m");
  assert_in_range(parsed_integer(m, "pages_sampled"), 5000, 5700);
  assert_in_range(parsed_integer(m, "pss_error"), 1, GIANT_KB / 100 * KIB);
  assert_null(parsed_get(m, "swap"));
  m = parsed_find(p, "mappings", "name", "g");
  parsed_assert(m, "rss=64m pss=32m shared_clean=64m");
  m = parsed_find(p, "mappings", "name", "[vvar]");
  assert_null(parsed_get(m, "rss"));
  assert_int_equal(parsed_integer(m, "pages_sampled"), 0);
  /* The others have theirs from smaps. */
  m = parsed_find(d, "mappings", "name", "g");
  assert_int_equal(parsed_integer(m, "processes"), 4);
  assert_int_equal(parsed_integer(m, "pss"),
                   (GIANT_KB / 2 + 1000 + 1100 + 1200) * KIB);
  assert_true(parsed_integer(m, "pages_sampled") > 1000);
  parsed_assert(parsed_process(d, 10), "mappings_from=smaps");
  m = parsed_get(parsed_process(d, 10), "mappings.0");
  assert_null(parsed_get(m, "pages_sampled"));
  assert_null(parsed_get(m, "pss_error"));
}

/* --- of a group that has ended -------------------------------------------- */

/* Nothing is kept of the first cycle. */
static void begin(struct world *w) {
  cycle(w);
  cycle(w);
}

/* The alarm comes a cycle later, and the capture is made in the next. */
static parsed capture_ended(struct world *w, const char *name, uint32_t from,
                            uint32_t n) {
  begin(w);
  for (uint32_t i = 0; i < n; i++)
    proctree_end(&w->tree, from + i);
  return capture(w, name);
}

WORLD_TEST(a_group_that_has_ended_has_what_was_last_known) {
  const struct summary *s;
  parsed d, p;

  put(w, 30, "other", 9000);
  put_many(w, 3);
  d = capture_ended(w, "g", 10, 3);
  assert_members(d, "12 11 10", 0);
  assert_true(parsed_decimal(d, "time") ==
              parsed_decimal(d, "groups.0.last_known") + 20);
  parsed_assert(d, "groups.0.name=g groups.0.processes=3 "
                   "groups.0.usage.pss=3300k groups.0.usage.uss=3300k");
  assert_int_equal(parsed_count(d, "mappings"), 0);
  p = parsed_get(d, "processes.0");
  parsed_assert(p, "source=ended comm=g groups.0=g rule=0 usage.pss=1200k "
                   "usage.uss=1200k usage.swap=0 pss_error=0");
  assert_null(parsed_get(p, "mappings"));
  s = &world_written(0)->summary;
  assert_true(s->has_ended && s->has_pss);
  assert_int_equal(s->ended_ns / NS_PER_S, 20);
  assert_int_equal(s->pss_bytes, 3300 * KIB);
  assert_int_equal(s->n, 3);
  assert_int_equal(s->largest[0].pid, 12);
  assert_int_equal(s->largest[0].bytes, 1200 * KIB);
  assert_string_equal(s->largest[0].comm, "g");
}

WORLD_TEST(a_process_that_ended_in_a_view_was_not_taken_by_its_rule) {
  parsed p;

  put(w, 30, "other", 100);
  put(w, 10, "g", 100);
  group(w, "other");
  world_group(w, "view", "Comm", "g", NULL, NULL)->is_view = true;
  p = parsed_get(capture_ended(w, "view", 10, 1), "processes.0");
  parsed_assert(p, "groups.0=view also.0=1");
  assert_null(parsed_get(p, "rule"));
}

WORLD_TEST(the_last_known_members_are_the_largest) {
  parsed d;

  put(w, 50, "other", 100);
  put_many(w, 20);
  begin(w);
  put(w, 13, "g", 8000);
  d = capture_ended(w, "g", 10, 20);
  assert_members(d, "13 29 28 27 26 25 24 23", 12);
  assert_int_equal(parsed_integer(d, "groups.0.processes"), 20);
}

WORLD_TEST(the_number_of_last_known_members_is_limited) {
  w->settings.capture.top_processes = 2;
  put(w, 50, "other", 100);
  put_many(w, 4);
  assert_members(capture_ended(w, "g", 10, 4), "13 12", 2);
}

/* The group is not there any more. */
WORLD_TEST(a_group_of_a_template_that_has_ended_has_a_capture) {
  parsed d;

  put(w, 10, "a", 100);
  put(w, 11, "b", 200);
  put(w, 12, "c", 300);
  world_group(w, "t-%{comm}", "Comm", "*", NULL, NULL);
  d = capture_ended(w, "t-b", 11, 1);
  assert_members(d, "11", 0);
  parsed_assert(d, "groups.0.name=t-a groups.1.name=t-b groups.2.name=t-c "
                   "groups.1.usage.pss=200k processes.0.groups.0=t-b");
  assert_null(parsed_get(d, "groups.2.last_known"));
}

WORLD_TEST(the_last_group_by_name_has_its_place_too) {
  parsed d;

  put(w, 10, "a", 100);
  put(w, 11, "b", 200);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  d = capture_ended(w, "b", 11, 1);
  assert_int_equal(parsed_count(d, "groups"), 2);
  parsed_assert(d, "groups.0.name=a groups.1.name=b");
}

/* "-12" ends a process, "z12" leaves its zombie, and "+20=70" starts one of 70
 * kB. '.' is a cycle, and "~60" one after a minute. '!' is an alarm, 'k' one
 * about a kill. */
static void play(struct world *w, const char *script) {
  unsigned n, kb;
  int len;

  for (; *script; script += len) {
    len = 1;
    if (sscanf(script, "-%u%n", &n, &len) == 1)
      proctree_end(&w->tree, n);
    else if (sscanf(script, "z%u%n", &n, &len) == 1)
      world_put(w,
                (struct fake){
                    .pid = n, .comm = "g", .state = 'Z', .starttime = 100 + n});
    else if (sscanf(script, "+%u=%u%n", &n, &kb, &len) == 2)
      put(w, n, "g", kb);
    else if (sscanf(script, "~%u%n", &n, &len) == 1)
      world_run(w, n);
    else if (*script == '.')
      cycle(w);
    else if (*script != ' ')
      world_raise_as(w, "g", *script == 'k' ? "oom_kill" : "pss",
                     SEVERITY_WARNING);
  }
}

/* LAST_KNOWN_INTERVALS of them. */
#define TEN_CYCLES ".........."
/* A service manager starts it again at once. */
#define RESTART "-10 -11 +20=70 "

/* A capture for a kill has the processes that were killed, and any other has
 * the present ones. Of what ended, the largest count: the service manager stops
 * the others, which takes a moment. */
TEST(last_known_values_belong_to_the_life_that_has_ended) {
  static const struct {
    const char *name;
    uint32_t n; /* from 10 on, of 1000 kB, 1100 kB … */
    const char *script, *members;
    unsigned age_s; /* of what was last known; 0: nothing */
  } cases[] = {
      {"a zombie, whose parent has not asked yet", 1, "z10 .!", "10", 20},
      {"almost an hour ago", 1, "-10 ~3570 .!", "10", 3590},
      {"an hour ago", 1, "-10 ~3600 .!", "", 0},
      {"the largest first", 3, "-12 . -11 . -10 .!", "12 11 10", 40},
      {"one long before", 3, "-12" TEN_CYCLES ".. -11 -10 .!", "11 10", 20},
      {"a helper first, beside which others grow", 2, "-11 +10=5000 . -10 .!",
       "10", 20},
      {"a kill of a part", 2, "-11 .k", "10", 0},
      {"a kill before a restart", 2, RESTART ".k", "11 10", 20},
      {"that has failed meanwhile", 2, RESTART ".k -20", "11 10", 20},
      {"a kill long before", 2, RESTART TEN_CYCLES "k", "20", 0},
      {"a restart", 2, RESTART ".!", "20", 0},
      {"a restart that has ended", 2, RESTART ". -20 .!", "20", 20},
      {"after the end of the largest", 2, "-11 . -10 . +20=70 . -20 .!", "20",
       20},
      {"the last of a restart", 2, RESTART "+21=60 . -20 . -21 .!", "21", 20},
      {"a larger life", 2, RESTART "+21=5000 . -21 . -20 .!", "21 20", 30},
  };

  assert_int_equal(LAST_KNOWN_INTERVALS, strlen(TEN_CYCLES));
  for (size_t i = 0; i < LENGTH(cases); i++) {
    void *state;
    struct world *w;
    parsed d;

    print_message("%s\n", cases[i].name);
    make(&state);
    w = state;
    put(w, 50, "other", 100);
    put_many(w, cases[i].n);
    begin(w);
    play(w, cases[i].script);
    cycle(w);
    d = read_it();
    assert_members(d, cases[i].members, 0);
    assert_int_equal(world_written(0)->summary.has_ended, cases[i].age_s > 0);
    if (cases[i].age_s == 0)
      assert_null(parsed_get(d, "groups.0.last_known"));
    else
      assert_true(parsed_decimal(d, "time") ==
                  parsed_decimal(d, "groups.0.last_known") + cases[i].age_s);
    unmake(&state);
  }
}

WORLD_TEST(a_member_that_has_ended_keeps_its_command_line_to_itself_too) {
  struct fake f = fake_process(10, "g");

  f.private_kb = 100;
  f.cmdline = "g --password=1234";
  w->settings.capture.command_lines = CHOICE_NO;
  world_put_mapped(w, f, NULL);
  world_put(w, fake_process(50, "other"));
  world_group(w, "g", "CommandLine", "g *", NULL, NULL);
  parsed_assert(capture_ended(w, "g", 10, 1), "processes.0.source=ended");
  assert_null(parsed_get(document, "processes.0.command_line"));
}

/* --- its summary ---------------------------------------------------------- */

static const struct summary *summary_of(struct world *w, const char *name) {
  capture(w, name);
  return &world_written(0)->summary;
}

/* Not from what lies between. */
WORLD_TEST(a_summary_has_the_change_since_the_oldest_point_of_growth) {
  const struct summary *s;

  put(w, 10, "g", 1000);
  group(w, "g");
  for (int i = 0; i < 8; i++)
    cycle(w);
  put(w, 10, "g", 5000);
  cycle(w);
  put(w, 10, "g", 400);
  s = summary_of(w, "g");
  assert_int_equal(s->change.bytes, -600 * (int64_t)KIB);
  assert_int_equal(s->change.age_ns / NS_PER_S, 100);
}

WORLD_TEST(before_a_point_the_change_is_that_since_the_lowest_amount) {
  struct fake f = fake_process(10, "g");
  const struct summary *s;

  put(w, 10, "g", 1000);
  group(w, "g");
  cycle(w);
  cycle(w);
  f.private_kb = 5000;
  f.swap_kb = 300;
  world_put_mapped(w, f, "g");
  s = summary_of(w, "g");
  assert_int_equal(s->change.bytes, 4300 * (int64_t)KIB);
  assert_int_equal(s->change.age_ns / NS_PER_S, 30);
}

WORLD_TEST(without_an_amount_a_change_is_unknown) {
  w->settings.policy.refresh = REFRESH_NEVER;
  put(w, 10, "g", 1000);
  group(w, "g");
  assert_int_equal(summary_of(w, "g")->change.age_ns, 0);
}

/* Without members it is 0, and known, if there are none for sure. */
TEST(the_pss_of_a_group_without_members_may_be_unknown) {
  struct cycle now = {.kernel_fields = 1U << ROLLUP_PSS};
  const struct scene scene = {.cycle = &now};
  struct group g = {.usage = {.is_unseen = true}};

  assert_false(last_known_sum_up(&g, &scene).has_pss);
  g.usage.is_unseen = false;
  assert_true(last_known_sum_up(&g, &scene).has_pss);
  g.usage.unreadable = 1;
  assert_false(last_known_sum_up(&g, &scene).has_pss);
  g.usage.unreadable = 0;
  now.kernel_fields = 0;
  assert_false(last_known_sum_up(&g, &scene).has_pss);
}

WORLD_TEST(names_in_a_summary_are_escaped) {
  const struct summary *s;

  /* A name with blanks could pass for two processes. */
  put(w, 10, "\n\"g\x1b\xff", 2000);
  put(w, 11, "a 9 GiB, 1 init", 1000);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  s = summary_of(w, "g");
  assert_string_equal(s->largest[0].comm, "\\x0a\\x22g\\x1b\\xff");
  assert_string_equal(s->largest[1].comm, "a\\x209\\x20GiB,\\x201\\x20init");
}

WORLD_TEST(a_capture_of_an_empty_group_has_no_members) {
  const struct summary *s;

  put(w, 10, "other", 100);
  group(w, "g");
  s = summary_of(w, "g");
  assert_true(s->has_pss);
  assert_int_equal(s->pss_bytes, 0);
  assert_int_equal(s->n, 0);
  assert_int_equal(parsed_count(document, "mappings"), 0);
  parsed_assert(document, "left_out=0 groups.0.processes=0");
}

static uint64_t limit_of(struct world *w, const char *limit) {
  struct fake f = fake_process(10, "g");

  f.cgroup = "/g.service";
  world_put(w, f);
  world_group(w, "unit", "Unit", "g.service", NULL, NULL);
  proctree_write(&w->tree, "sys/fs/cgroup/g.service/memory.current", "17\n", 3);
  proctree_write(&w->tree, "sys/fs/cgroup/g.service/memory.max", limit,
                 strlen(limit));
  return summary_of(w, "unit")->limit_bytes;
}

WORLD_TEST(a_summary_has_the_limit_of_the_control_group) {
  assert_int_equal(limit_of(w, "8388608\n"), 8 * MIB);
}

WORLD_TEST(summary_has_no_limit_if_there_is_none) {
  assert_int_equal(limit_of(w, "max\n"), 0);
}
