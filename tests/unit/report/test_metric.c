#include "test.h"

#include "report/metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN ((1U << ROLLUP_FIELDS) - 1)
#define UNKNOWN ((double)NAN)
#define MAX_VALUES 96

/* The identifiers of the two sets, as DESIGN.md has them; where the value is
 * one that the kernel prints, its field. */
enum { NO_FIELD = -1 };
struct published {
  const char *identifier;
  const char *name; /* in Report */
  int field;
};

static const struct published in_default[] = {
    {"memory-pss", "pss", ROLLUP_PSS},
    {"memory-uss", "uss", NO_FIELD},
    {"memory-rss", "rss", ROLLUP_RSS},
    {"memory-shared", "shared", NO_FIELD},
    {"memory-swap", "swap", ROLLUP_SWAP_PSS},
    {"memory-pss_error", "pss_error", NO_FIELD},
    {"ps_count", "ps_count", NO_FIELD},
    {"percent-coverage", "coverage", NO_FIELD},
    {"duration-age", "age", NO_FIELD},
    {"count-unreadable", "unreadable", NO_FIELD},
    {"memory-cgroup", "cgroup", NO_FIELD},
    {"memory-cgroup_limit", "cgroup_limit", NO_FIELD},
    {"percent-cgroup_limit", "cgroup_limit", NO_FIELD},
    {"count-oom_kill", "oom_kill", NO_FIELD},
    {"uptime", "uptime", NO_FIELD},
    {"gauge-growth", "growth", NO_FIELD},
    {"duration-until_limit", "until_limit", NO_FIELD},
};
static const struct published in_detail[] = {
    {"memory-pss_anon", "pss_anon", ROLLUP_PSS_ANON},
    {"memory-pss_file", "pss_file", ROLLUP_PSS_FILE},
    {"memory-pss_shmem", "pss_shmem", ROLLUP_PSS_SHMEM},
    {"memory-pss_dirty", "pss_dirty", ROLLUP_PSS_DIRTY},
    {"memory-private_clean", "private_clean", ROLLUP_PRIVATE_CLEAN},
    {"memory-private_dirty", "private_dirty", ROLLUP_PRIVATE_DIRTY},
    {"memory-shared_clean", "shared_clean", ROLLUP_SHARED_CLEAN},
    {"memory-shared_dirty", "shared_dirty", ROLLUP_SHARED_DIRTY},
    {"memory-referenced", "referenced", ROLLUP_REFERENCED},
    {"memory-anonymous", "anonymous", ROLLUP_ANONYMOUS},
    {"memory-lazy_free", "lazy_free", ROLLUP_LAZY_FREE},
    {"memory-ksm", "ksm", ROLLUP_KSM},
    {"memory-anon_huge_pages", "anon_huge_pages", ROLLUP_ANON_HUGE_PAGES},
    {"memory-shmem_pmd_mapped", "shmem_pmd_mapped", ROLLUP_SHMEM_PMD_MAPPED},
    {"memory-file_pmd_mapped", "file_pmd_mapped", ROLLUP_FILE_PMD_MAPPED},
    {"memory-shared_hugetlb", "shared_hugetlb", ROLLUP_SHARED_HUGETLB},
    {"memory-private_hugetlb", "private_hugetlb", ROLLUP_PRIVATE_HUGETLB},
    {"memory-swap_total", "swap_total", ROLLUP_SWAP},
    {"memory-locked", "locked", ROLLUP_LOCKED},
    {"ps_vm", "ps_vm", NO_FIELD},
    {"ps_code", "ps_code", NO_FIELD},
    {"ps_data", "ps_data", NO_FIELD},
    {"memory-resident", "resident", NO_FIELD},
    {"memory-resident_shared", "resident_shared", NO_FIELD},
    {"memory-uss_error", "uss_error", NO_FIELD},
    {"percent-relative_error", "relative_error", NO_FIELD},
    {"percent-swapped", "swapped", NO_FIELD},
    {"memory-cgroup_file", "cgroup_file", NO_FIELD},
    {"memory-cgroup_kernel", "cgroup_kernel", NO_FIELD},
    {"memory-page_tables", "page_tables", NO_FIELD},
    {"memory-kernel_stack", "kernel_stack", NO_FIELD},
};
#define IN_DEFAULT LENGTH(in_default)
#define IN_DETAIL LENGTH(in_detail)
#define IN_ALL (IN_DEFAULT + IN_DETAIL)

static const struct published *nth(size_t i) {
  return i < IN_DEFAULT ? &in_default[i] : &in_detail[i - IN_DEFAULT];
}

/* The control group that is all of a group. */
static const struct cgroup_memory in_cgroup = {
    .known = CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT | CGROUP_HAS_FILE |
             CGROUP_HAS_KERNEL | CGROUP_HAS_KILLS,
    .bytes = 300 * MIB,
    .limit = 400 * MIB,
    .file = 70 * MIB,
    .kernel = 8 * MIB,
    .kills = 2};

/* All that is published of a group. */
struct values {
  struct metric_value value[MAX_VALUES];
  char identifier[MAX_VALUES][64];
  size_t n;
};

/* It is full within an hour. */
static const struct growth growth = {.bytes_per_second = 2048,
                                     .room_bytes = 2048.0 * 3600};

static struct values publish_of(const struct metric_subject *subject,
                                const char *word, struct report r,
                                struct metric_context context) {
  struct config_error reason = {""};
  struct metric_value value;
  struct values v = {.n = 0};
  unsigned cursor = 0;

  memset(&value, 0xaa, sizeof(value));
  r.metrics = metric_find(word, &reason);
  if (!r.metrics)
    fail_msg("%s: %s", word, reason.text);
  while (metric_next(subject, &r, &context, &cursor, &value)) {
    assert_in_range(v.n, 0, MAX_VALUES - 1);
    snprintf(v.identifier[v.n], sizeof(v.identifier[0]), "%s%s%s", value.type,
             *value.type_instance ? "-" : "", value.type_instance);
    v.value[v.n++] = value;
    memset(&value, 0xaa, sizeof(value));
  }
  /* It stays at the end. */
  assert_false(metric_next(subject, &r, &context, &cursor, &value));
  return v;
}

static struct values publish(const struct usage *u, const char *word,
                             struct report r, struct metric_context context) {
  return publish_of(&(struct metric_subject){.usage = u, .growth = &growth},
                    word, r, context);
}

/* The same of a group that is a whole control group. */
static struct values publish_whole(const struct usage *u, const char *word,
                                   struct report r) {
  return publish_of(
      &(struct metric_subject){
          .usage = u, .cgroup = &in_cgroup, .growth = &growth},
      word, r, (struct metric_context){KNOWN, 1024 * MIB, true, true});
}

static struct values publish_all(const struct usage *u) {
  return publish(u, "detail", (struct report){.percentage = CHOICE_YES},
                 (struct metric_context){KNOWN, 1024 * MIB, true, true});
}

static const struct metric_value *find(const struct values *v,
                                       const char *identifier) {
  const struct metric_value *found = NULL;

  for (size_t i = 0; i < v->n; i++)
    if (strcmp(v->identifier[i], identifier) == 0) {
      if (found)
        fail_msg("%s: twice", identifier);
      found = &v->value[i];
    }
  return found;
}

static struct metric_value get(const struct values *v, const char *identifier) {
  const struct metric_value *value = find(v, identifier);

  if (!value)
    fail_msg("%s: missing", identifier);
  return value ? *value : (struct metric_value){.n = 0};
}

static void check(const struct values *v, const char *identifier, double want) {
  double got = get(v, identifier).values[0];

  if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-9 * fabs(want)))
    fail_msg("%s: %f", identifier, got);
}

/* A group of one member, with another amount in every field. */
static struct usage make_usage(void) {
  struct rollup r = {.known = KNOWN};
  struct statm_sample statm = {5000, 700, 300, 40, 1500};
  struct usage u = {.processes = 0};

  for (uint64_t f = 0; f < ROLLUP_FIELDS; f++)
    r.bytes[f] = (f + 1) * MIB;
  r.bytes[ROLLUP_RSS] = 500 * MIB;
  r.bytes[ROLLUP_PSS] = 250 * MIB;
  usage_add_process(&u, 3);
  usage_add_life(&u, 48 * KIB, UINT64_C(90500000000));
  usage_add_page_tables(&u, 5 * MIB, true);
  usage_add_statm(&u, &statm, 4 * KIB);
  usage_add_rollup(&u, &r, statm.resident_pages * 4 * KIB);
  return u;
}

static void check_set(const struct values *v, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!find(v, nth(i)->identifier))
      fail_msg("%s: missing", nth(i)->identifier);
  if (v->n != n)
    fail_msg("%zu values instead of %zu", v->n, n);
}

TEST(the_sets_are_those_of_the_design) {
  struct usage u = make_usage();
  struct values v = publish_whole(&u, "default", (struct report){.metrics = 0});
  struct config_error reason;

  check_set(&v, IN_DEFAULT);
  v = publish_whole(&u, "detail", (struct report){.metrics = 0});
  check_set(&v, IN_ALL);
  assert_true(metric_find("default", &reason) == metric_default_set());
}

/* One name stands for two values: a limit, and the percentage of it. */
static size_t count_named(const char *name) {
  size_t n = 0;

  for (size_t i = 0; i < IN_ALL; i++)
    n += strcmp(nth(i)->name, name) == 0;
  return n;
}

static bool is_of_previous(size_t i) {
  return i > 0 && strcmp(nth(i)->name, nth(i - 1)->name) == 0;
}

TEST(every_metric_has_a_name_of_its_own) {
  struct usage u = make_usage();
  metric_set all = 0;
  struct config_error reason;

  for (size_t i = 0; i < IN_ALL; i++) {
    struct values v =
        publish_whole(&u, nth(i)->name, (struct report){.metrics = 0});

    if (v.n != count_named(nth(i)->name) || !find(&v, nth(i)->identifier))
      fail_msg("%s: %zu values, %s", nth(i)->name, v.n, v.identifier[0]);
    assert_true((all & metric_find(nth(i)->name, &reason)) == 0 ||
                is_of_previous(i));
    all |= metric_find(nth(i)->name, &reason);
  }
  assert_true(all == metric_find("detail", &reason));
}

TEST(names_are_known_case_apart) {
  struct config_error reason;

  assert_true(metric_find("DeFault", &reason) == metric_default_set());
  assert_true(metric_find("DETAIL", &reason) == metric_find("detail", &reason));
  assert_true(metric_find("PSS_Anon", &reason) ==
              metric_find("pss_anon", &reason));
}

TEST(other_names_are_refused_with_the_nearest) {
  static const struct {
    const char *word, *expected;
  } cases[] = {
      {"private-dirty", "did you mean \"private_dirty\"?"},
      {"defaults", "did you mean \"default\"?"},
      {"detial", "did you mean \"detail\"?"},
      {"psss", "did you mean \"pss\"?"},
      {"Swaptotal", "did you mean \"swap_total\"?"},
      {"", "expected \"default\", \"detail\" or names"},
      {"memory-pss", "expected \"default\""},
      {"pss ", "expected \"default\""},
      {"everything", "expected \"default\""},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct config_error reason = {""};

    if (metric_find(cases[i].word, &reason) ||
        !strstr(reason.text, cases[i].expected))
      fail_msg("\"%s\": %s", cases[i].word, reason.text);
  }
}

TEST(every_value_is_the_one_it_says) {
  struct usage u = make_usage();
  struct values v =
      publish_whole(&u, "detail", (struct report){.percentage = CHOICE_YES});
  double uss = ROLLUP_PRIVATE_CLEAN + 1 + ROLLUP_PRIVATE_DIRTY + 1;

  for (size_t i = 0; i < IN_ALL; i++)
    if (nth(i)->field != NO_FIELD)
      check(&v, nth(i)->identifier, (double)u.rollup.bytes[nth(i)->field]);
  check(&v, "memory-uss", uss * (double)MIB);
  check(&v, "memory-shared", (500 - uss) * (double)MIB);
  check(&v, "ps_vm", 5000.0 * 4096);
  check(&v, "ps_code", 40.0 * 4096);
  check(&v, "ps_data", 1500.0 * 4096);
  check(&v, "memory-resident", 700.0 * 4096);
  check(&v, "memory-resident_shared", 300.0 * 4096);
  check(&v, "percent-coverage", 100);
  check(&v, "duration-age", 0);
  check(&v, "count-unreadable", 0);
  check(&v, "memory-pss_error", 0);
  check(&v, "memory-uss_error", 0);
  check(&v, "percent-relative_error", 0);
  check(&v, "percent-swapped",
        100.0 * (ROLLUP_SWAP_PSS + 1) / (250 + ROLLUP_SWAP_PSS + 1));
  check(&v, "memory-cgroup", 300.0 * MIB);
  check(&v, "memory-cgroup_limit", 400.0 * MIB);
  check(&v, "percent-cgroup_limit", 75);
  check(&v, "memory-cgroup_file", 70.0 * MIB);
  check(&v, "memory-cgroup_kernel", 8.0 * MIB);
  check(&v, "count-oom_kill", 2);
  /* A part of MemTotal. */
  check(&v, "percent-cgroup", 30000 / 1024.0);
  check(&v, "memory-page_tables", 5 * (double)MIB);
  check(&v, "percent-page_tables", 500 / 1024.0);
  check(&v, "memory-kernel_stack", 48 * (double)KIB);
  check(&v, "uptime", 90.5);
  check(&v, "gauge-growth", 2048);
  check(&v, "duration-until_limit", 3600);
  assert_null(find(&v, "percent-growth"));
}

/* The alert on it needs no option. */
TEST(the_percentage_of_the_limit_is_always_published) {
  struct usage u = make_usage();
  const struct report r = {.absolute = CHOICE_NO, .percentage = CHOICE_YES};
  struct values v = publish_whole(&u, "cgroup_limit", r);

  assert_int_equal(v.n, 1);
  check(&v, "percent-cgroup_limit", 75);
}

TEST(growth_that_is_not_followed_is_unknown) {
  const struct usage u = make_usage();
  const struct metric_subject subject = {.usage = &u};
  struct config_error reason;
  const struct report r = {.metrics = metric_find("growth", &reason) |
                                      metric_find("until_limit", &reason)};
  struct metric_value value;
  unsigned cursor = 0, n = 0;

  for (; metric_next(&subject, &r, &(struct metric_context){.mem_total = 1},
                     &cursor, &value);
       n++)
    assert_true(isnan(value.values[0]));
  assert_int_equal(n, 2);
}

TEST(the_errors_are_those_of_the_estimates) {
  struct rollup r = {.known = KNOWN};
  struct usage u = make_usage();
  const struct doubt pss = {.common = 3 * (double)MIB};
  struct values v;

  r.bytes[ROLLUP_RSS] = r.bytes[ROLLUP_PSS] = 100 * MIB;
  usage_add_process(&u, 1);
  usage_add_estimate(&u, &r, 100 * MIB, pss, doubt_scale(pss, 2), 1);
  v = publish_all(&u);
  check(&v, "memory-pss_error", 3 * (double)MIB);
  check(&v, "memory-uss_error", 6 * (double)MIB);
  check(&v, "percent-pss_error", 300 / 1024.0);
  check(&v, "percent-uss_error", 600 / 1024.0);
  check(&v, "percent-relative_error", 300 / 350.0);
}

/* types.db takes more for unknown. */
TEST(an_error_above_pss_is_all_of_it) {
  const struct doubt twice = {.common = 8 * (double)MIB};
  struct rollup guess = {.known = KNOWN};
  struct usage u = {.processes = 0};
  struct values v;

  guess.bytes[ROLLUP_RSS] = 16 * MIB;
  guess.bytes[ROLLUP_PSS] = 4 * MIB;
  usage_add_process(&u, 1);
  usage_add_estimate(&u, &guess, 16 * MIB, twice, twice, 1);
  v = publish_all(&u);
  check(&v, "memory-pss_error", 8 * (double)MIB);
  check(&v, "percent-relative_error", 100);
}

TEST(what_is_swapped_is_a_part_of_pss_and_swap) {
  struct rollup r = {.known = KNOWN};
  struct usage u = {.processes = 0};
  struct values v;

  r.bytes[ROLLUP_RSS] = 90 * MIB;
  r.bytes[ROLLUP_PSS] = 30 * MIB;
  r.bytes[ROLLUP_SWAP_PSS] = 10 * MIB;
  usage_add_process(&u, 1);
  usage_add_rollup(&u, &r, 90 * MIB);
  v = publish_all(&u);
  check(&v, "percent-swapped", 25);
  u.rollup.bytes[ROLLUP_PSS] = 0;
  v = publish_all(&u);
  check(&v, "percent-swapped", 100);
}

TEST(ps_count_is_processes_and_threads) {
  struct usage u = make_usage();
  struct values v;

  usage_add_process(&u, 39);
  v = publish_all(&u);
  for (size_t i = 0; i < v.n; i++) {
    bool is_count = strcmp(v.identifier[i], "ps_count") == 0;

    assert_int_equal(v.value[i].n, is_count ? 2 : 1);
  }
  assert_true(get(&v, "ps_count").values[0] == 2);
  assert_true(get(&v, "ps_count").values[1] == 42);
  u.perhaps = 1;
  v = publish_all(&u);
  assert_true(isnan(get(&v, "ps_count").values[0]));
  assert_true(isnan(get(&v, "ps_count").values[1]));
}

/* Values that only the rollups have. statm has what comes near rss. */
static void check_unknown(const struct values *v) {
  for (size_t i = 0; i < IN_ALL; i++)
    if (nth(i)->field != NO_FIELD && nth(i)->field != ROLLUP_RSS)
      check(v, nth(i)->identifier, UNKNOWN);
  check(v, "memory-uss", UNKNOWN);
  check(v, "memory-shared", UNKNOWN);
  check(v, "memory-pss_error", UNKNOWN);
  check(v, "memory-uss_error", UNKNOWN);
  check(v, "percent-relative_error", UNKNOWN);
  check(v, "percent-swapped", UNKNOWN);
  check(v, "percent-pss", UNKNOWN);
  check(v, "percent-uss", UNKNOWN);
}

TEST(one_unreadable_member_adds_its_guess_and_its_error) {
  struct statm_sample statm = {100, 300, 5, 6, 7};
  const struct doubt whole = {.common = 300.0 * 4096};
  struct usage u = make_usage();
  struct rollup guess = {.known = KNOWN};
  struct values v;

  guess.bytes[ROLLUP_RSS] = guess.bytes[ROLLUP_PSS] = 300 * 4 * KIB;
  usage_add_process(&u, 1);
  usage_add_statm(&u, &statm, 4 * KIB);
  usage_add_unread(&u, &guess, whole, whole);
  u.unreadable++;
  v = publish_all(&u);
  check(&v, "memory-pss", 250.0 * (double)MIB + 300.0 * 4096);
  check(&v, "memory-rss", 500.0 * (double)MIB + 300.0 * 4096);
  check(&v, "memory-pss_error", 300.0 * 4096);
  check(&v, "memory-uss_error", 300.0 * 4096);
  check(&v, "percent-pss", 100 * (250 / 1024.0 + 300.0 / (256 * 1024)));
  check(&v, "ps_vm", 5100.0 * 4096);
  check(&v, "memory-resident", 1000.0 * 4096);
  check(&v, "percent-resident", 100.0 * 1000 * 4096 / (1024.0 * 1024 * 1024));
  check(&v, "ps_count", 2);
  check(&v, "count-unreadable", 1);
  check(&v, "percent-coverage", 70);
  check(&v, "duration-age", 0);
}

TEST(a_group_that_was_never_read_has_no_age) {
  struct usage u = {
      .processes = 1, .threads = 1, .unreadable = 1, .resident = 4096};
  struct values v = publish_all(&u);

  check_unknown(&v);
  check(&v, "memory-rss", 4096);
  check(&v, "percent-rss", 100.0 * 4096 / (1024.0 * (double)MIB));
  check(&v, "duration-age", UNKNOWN);
  check(&v, "percent-coverage", 0);
  check(&v, "memory-resident", 4096);
}

TEST(an_unknown_member_makes_statm_unknown_too) {
  static const char *const of_statm[] = {"ps_vm",
                                         "ps_code",
                                         "ps_data",
                                         "memory-resident",
                                         "memory-resident_shared",
                                         "percent-ps_vm",
                                         "percent-resident",
                                         "memory-page_tables",
                                         "percent-page_tables"};
  struct usage u = make_usage();
  struct values v;

  usage_add_process(&u, 5);
  u.unreadable++;
  u.unknown++;
  v = publish_all(&u);
  check_unknown(&v);
  check(&v, "memory-rss", UNKNOWN);
  for (size_t i = 0; i < LENGTH(of_statm); i++)
    check(&v, of_statm[i], UNKNOWN);
  check(&v, "ps_count", 2);
  check(&v, "count-unreadable", 1);
}

TEST(an_empty_group_reports_zeros) {
  struct usage u = {.processes = 0};
  struct values v = publish_all(&u);

  for (size_t i = 0; i < v.n; i++)
    if (strcmp(v.identifier[i], "gauge-growth") != 0 &&
        strcmp(v.identifier[i], "duration-until_limit") != 0)
      check(&v, v.identifier[i],
            strcmp(v.identifier[i], "percent-coverage") == 0 ? 100 : 0);
  assert_true(get(&v, "ps_count").values[1] == 0);
}

TEST(a_group_that_may_hide_a_process_reports_nothing) {
  const struct usage u = {.is_unseen = true};
  const struct metric_subject subject = {.usage = &u};
  const struct report r = {.metrics = ~(metric_set)0, .absolute = CHOICE_YES};
  const struct metric_context context = {.kernel_fields = KNOWN};
  struct metric_value value;
  unsigned cursor = 0, n = 0;

  for (; metric_next(&subject, &r, &context, &cursor, &value); n++)
    for (size_t i = 0; i < value.n; i++)
      assert_true(isnan(value.values[i]));
  assert_true(n > 30);
}

TEST(a_field_that_the_kernel_lacks_is_not_published) {
  struct usage u = make_usage(), empty = {.processes = 0};

  for (size_t i = 0; i < IN_ALL; i++) {
    int field = nth(i)->field;
    struct metric_context context = {KNOWN, 1024 * MIB, true, true};
    struct values v;

    if (field == NO_FIELD)
      continue;
    context.kernel_fields &= ~(1U << field);
    v = publish(&u, nth(i)->name, (struct report){.percentage = CHOICE_YES},
                context);
    assert_int_equal(v.n, 0);
    v = publish(&empty, nth(i)->name, (struct report){.metrics = 0}, context);
    assert_int_equal(v.n, 0);
  }
}

TEST(what_the_host_does_not_tell_is_not_published) {
  static const struct {
    const char *name;
    struct metric_context without;
  } cases[] = {{"kernel_stack", {.has_uptime = true}},
               {"uptime", {.has_kernel_stack = true}}};
  const struct report both = {.percentage = CHOICE_YES};
  const struct metric_context with = {.has_kernel_stack = true,
                                      .has_uptime = true};
  struct usage u = make_usage();

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct values v = publish(&u, cases[i].name, both, cases[i].without);

    assert_int_equal(v.n, 0);
    v = publish(&u, cases[i].name, both, with);
    assert_in_range(v.n, 1, 2);
  }
}

TEST(page_tables_are_unknown_where_those_of_no_member_are_known) {
  struct usage u = {.processes = 2};
  struct values v;

  usage_add_page_tables(&u, 8 * KIB, false);
  v = publish_all(&u);
  check(&v, "memory-page_tables", UNKNOWN);
  usage_add_page_tables(&u, 100 * KIB, true);
  v = publish_all(&u);
  check(&v, "memory-page_tables", 108 * (double)KIB);
}

TEST(without_any_field_the_rest_is_published) {
  struct usage u = make_usage();
  struct values v = publish(&u, "detail", (struct report){.metrics = 0},
                            (struct metric_context){0, 1024 * MIB, true, true});

  assert_int_equal(v.n, 14);
  for (size_t i = 0; i < v.n; i++)
    if (isnan(v.value[i].values[0]))
      fail_msg("%s: unknown", v.identifier[i]);
  assert_non_null(find(&v, "ps_count"));
  assert_non_null(find(&v, "ps_vm"));
  assert_non_null(find(&v, "memory-resident_shared"));
}

TEST(a_field_that_one_member_lacks_is_unknown) {
  struct usage u = make_usage();
  struct rollup r = {.known = KNOWN & ~(1U << ROLLUP_KSM)};
  struct values v;

  usage_add_process(&u, 1);
  usage_add_rollup(&u, &r, 0);
  v = publish_all(&u);
  check(&v, "memory-ksm", UNKNOWN);
  check(&v, "percent-ksm", UNKNOWN);
  check(&v, "memory-pss", 250.0 * (double)MIB);
  check(&v, "memory-locked", (double)u.rollup.bytes[ROLLUP_LOCKED]);
}

/* The values of the default set under each choice. */
TEST(amounts_and_percentages_are_chosen_apart) {
  static const struct {
    enum choice absolute, percentage;
    bool has_amount, has_share;
  } cases[] = {
      {CHOICE_YES, CHOICE_NO, true, false},
      {CHOICE_YES, CHOICE_YES, true, true},
      {CHOICE_NO, CHOICE_YES, false, true},
      {CHOICE_NO, CHOICE_NO, false, false},
      {CHOICE_UNSET, CHOICE_UNSET, true, false},
  };
  struct usage u = make_usage();

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct values v =
        publish(&u, "detail",
                (struct report){.absolute = cases[i].absolute,
                                .percentage = cases[i].percentage},
                (struct metric_context){KNOWN, 1024 * MIB, true, true});
    /* All but the nine that are no amounts of memory, and the six of a control
     * group. */
    size_t amounts = IN_ALL - 9 - 6;

    assert_int_equal(v.n, 9 + (cases[i].has_amount ? amounts : 0) +
                              (cases[i].has_share ? amounts : 0));
    assert_int_equal(find(&v, "memory-pss") != NULL, cases[i].has_amount);
    assert_int_equal(find(&v, "ps_vm") != NULL, cases[i].has_amount);
    assert_int_equal(find(&v, "percent-pss") != NULL, cases[i].has_share);
    assert_int_equal(find(&v, "percent-ps_vm") != NULL, cases[i].has_share);
    assert_non_null(find(&v, "ps_count"));
    assert_non_null(find(&v, "percent-coverage"));
    assert_non_null(find(&v, "duration-age"));
    assert_non_null(find(&v, "count-unreadable"));
    assert_non_null(find(&v, "uptime"));
  }
}

TEST(a_percentage_is_of_all_memory) {
  struct usage u = make_usage();
  struct report r = {.percentage = CHOICE_YES};
  struct values v = publish(
      &u, "default", r, (struct metric_context){KNOWN, 1000 * MIB, true, true});

  check(&v, "percent-pss", 25);
  check(&v, "percent-rss", 50);
  check(&v, "percent-swap", (ROLLUP_SWAP_PSS + 1) / 10.0);
  assert_null(find(&v, "percent-ps_count"));
  v = publish(&u, "default", r, (struct metric_context){KNOWN, 0, true, true});
  check(&v, "percent-pss", UNKNOWN);
  check(&v, "memory-pss", 250.0 * (double)MIB);
  check(&v, "percent-coverage", 100);
}

TEST(a_report_inherits_unset_choices) {
  const struct report from = {.metrics = 2,
                              .growth_window_ns = 9,
                              .absolute = CHOICE_NO,
                              .percentage = CHOICE_YES};
  struct report none = {.metrics = 0};
  struct report all = {.metrics = 1,
                       .growth_window_ns = 7,
                       .absolute = CHOICE_YES,
                       .percentage = CHOICE_NO};
  struct report metrics = {.metrics = 1}, absolute = {.absolute = CHOICE_YES};

  report_inherit(&none, &from);
  assert_memory_equal(&none, &from, sizeof(from));
  report_inherit(&all, &from);
  assert_true(all.metrics == 1);
  assert_int_equal(all.growth_window_ns, 7);
  assert_int_equal(all.absolute, CHOICE_YES);
  assert_int_equal(all.percentage, CHOICE_NO);
  report_inherit(&metrics, &from);
  assert_true(metrics.metrics == 1);
  assert_int_equal(metrics.absolute, CHOICE_NO);
  report_inherit(&absolute, &from);
  assert_true(absolute.metrics == 2);
  assert_int_equal(absolute.absolute, CHOICE_YES);
  assert_int_equal(absolute.percentage, CHOICE_YES);
}

/* The names and amounts that metric_next_amount() gives, a blank between. */
static const char *amounts(const struct usage *u, uint32_t kernel_fields) {
  static char text[2048];
  unsigned cursor = 0;
  const char *name;
  uint64_t bytes;
  size_t len = 0;

  text[0] = '\0';
  while (metric_next_amount(u, kernel_fields, &cursor, &name, &bytes))
    len += (size_t)snprintf(text + len, sizeof(text) - len, "%s=%llu ", name,
                            (unsigned long long)bytes);
  assert_false(metric_next_amount(u, kernel_fields, &cursor, &name, &bytes));
  assert_true(len < sizeof(text));
  return text;
}

TEST(amounts_are_the_published_values_of_the_rollup) {
  struct usage u = make_usage();
  struct values v = publish_all(&u);
  unsigned cursor = 0, n = 0;
  const char *name;
  uint64_t bytes;

  while (metric_next_amount(&u, KNOWN, &cursor, &name, &bytes)) {
    char identifier[64];

    snprintf(identifier, sizeof(identifier), "memory-%s", name);
    check(&v, identifier, (double)bytes);
    assert_string_not_equal(name, "pss_error");
    assert_string_not_equal(name, "uss_error");
    n++;
  }
  assert_int_equal(n, ROLLUP_FIELDS + 2); /* uss, shared */
}

TEST(amounts_that_are_not_known_are_passed_over) {
  const uint32_t pss_and_rss = 1U << ROLLUP_PSS | 1U << ROLLUP_RSS;
  struct usage u = {.processes = 1, .rolled_up = 1};

  u.rollup.known = pss_and_rss;
  u.rollup.bytes[ROLLUP_PSS] = 5;
  u.rollup.bytes[ROLLUP_RSS] = 7;
  assert_string_equal(amounts(&u, pss_and_rss), "pss=5 rss=7 ");
  assert_string_equal(amounts(&u, 1U << ROLLUP_PSS), "pss=5 ");
  assert_string_equal(amounts(&u, pss_and_rss | 1U << ROLLUP_KSM),
                      "pss=5 rss=7 ");
  assert_string_equal(amounts(&u, 0), "");
  u.unreadable = 1;
  assert_string_equal(amounts(&u, pss_and_rss), "pss=5 rss=7 ");
  u.unmeasured = 1;
  u.resident = 9;
  assert_string_equal(amounts(&u, pss_and_rss), "rss=9 ");
  u.unknown = 1;
  assert_string_equal(amounts(&u, pss_and_rss), "");
}

TEST(amounts_of_nobody_are_zero) {
  struct usage u = {.processes = 0};

  assert_string_equal(amounts(&u, 1U << ROLLUP_PSS | 1U << ROLLUP_SWAP_PSS),
                      "pss=0 swap=0 ");
}
