/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "report/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KNOWN ((1U << ROLLUP_FIELDS) - 1)
#define UNKNOWN ((double)NAN)
#define MAX_VALUES 112

/* All values have these identifiers. The name in Report is the part after the
 * dash, or all of it. */
static const char *const identifiers[] = {
    "memory-pss", "memory-uss", "memory-rss", "memory-shared", "memory-swap",
    "memory-pss_error", "memory-freed", "memory-freed_error", "ps_count",
    "percent-coverage", "duration-age", "count-unreadable", "memory-cgroup",
    "memory-cgroup_limit", "percent-cgroup_limit", "count-oom_kill", "uptime",
    "gauge-growth", "duration-until_limit",
    /* Only "detail" has these: */
    "memory-pss_anon", "memory-pss_file", "memory-pss_shmem",
    "memory-pss_dirty", "memory-private_clean", "memory-private_dirty",
    "memory-shared_clean", "memory-shared_dirty", "memory-referenced",
    "memory-anonymous", "memory-lazy_free", "memory-ksm",
    "memory-anon_huge_pages", "memory-shmem_pmd_mapped",
    "memory-file_pmd_mapped", "memory-shared_hugetlb", "memory-private_hugetlb",
    "memory-swap_total", "memory-locked", "ps_vm", "ps_code", "ps_data",
    "memory-resident", "memory-resident_shared", "memory-uss_error",
    "memory-epss", "percent-relative_error", "percent-swapped",
    "memory-cgroup_file", "memory-cgroup_kernel", "memory-cgroup_peak",
    "memory-cgroup_peak_ever", "percent-pressure_some", "percent-pressure_full",
    "total_events-events_high", "total_events-events_max", "count-oomd_kill",
    "memory-page_tables", "memory-kernel_stack"};
#define IN_ALL LENGTH(identifiers)

/* The names of what the kernel prints. */
static const char *const of_rollup[ROLLUP_FIELDS] = {
    [ROLLUP_PSS] = "pss",
    [ROLLUP_RSS] = "rss",
    [ROLLUP_SWAP_PSS] = "swap",
    [ROLLUP_PSS_ANON] = "pss_anon",
    [ROLLUP_PSS_FILE] = "pss_file",
    [ROLLUP_PSS_SHMEM] = "pss_shmem",
    [ROLLUP_PSS_DIRTY] = "pss_dirty",
    [ROLLUP_PRIVATE_CLEAN] = "private_clean",
    [ROLLUP_PRIVATE_DIRTY] = "private_dirty",
    [ROLLUP_SHARED_CLEAN] = "shared_clean",
    [ROLLUP_SHARED_DIRTY] = "shared_dirty",
    [ROLLUP_REFERENCED] = "referenced",
    [ROLLUP_ANONYMOUS] = "anonymous",
    [ROLLUP_LAZY_FREE] = "lazy_free",
    [ROLLUP_KSM] = "ksm",
    [ROLLUP_ANON_HUGE_PAGES] = "anon_huge_pages",
    [ROLLUP_SHMEM_PMD_MAPPED] = "shmem_pmd_mapped",
    [ROLLUP_FILE_PMD_MAPPED] = "file_pmd_mapped",
    [ROLLUP_SHARED_HUGETLB] = "shared_hugetlb",
    [ROLLUP_PRIVATE_HUGETLB] = "private_hugetlb",
    [ROLLUP_SWAP] = "swap_total",
    [ROLLUP_LOCKED] = "locked",
};

static const char *name_of(const char *identifier) {
  const char *dash = strchr(identifier, '-');

  return dash ? dash + 1 : identifier;
}

/* The host shows everything. */
static const struct metric_context all_known = {KNOWN, 1024 * MIB, true};

/* The control group that is all of a group. */
static const struct cgroup_memory in_cgroup = {
    .known = CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT | CGROUP_HAS_FILE |
             CGROUP_HAS_KERNEL | CGROUP_HAS_KILLS | CGROUP_HAS_PEAK |
             CGROUP_HAS_PEAK_EVER | CGROUP_HAS_PRESSURE |
             CGROUP_HAS_EVENTS_HIGH | CGROUP_HAS_EVENTS_MAX |
             CGROUP_HAS_OOMD_KILLS,
    .bytes = 300 * MIB,
    .limit = 400 * MIB,
    .file = 70 * MIB,
    .kernel = 8 * MIB,
    .kills = 2,
    .oomd_kills = 9,
    .peak = 310 * MIB,
    .peak_ever = 390 * MIB,
    .events_high = 21,
    .events_max = 22,
    .pressure_some = 12.5,
    .pressure_full = 2.5};

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
  return publish_of(&(struct metric_subject){.usage = u,
                                             .cgroup = &in_cgroup,
                                             .growth = &growth},
                    word, r, all_known);
}

static struct values publish_all(const struct usage *u) {
  return publish(u, "detail", (struct report){.percentage = CHOICE_YES},
                 all_known);
}

static const struct metric_value *find(const struct values *v,
                                       const char *identifier) {
  for (size_t i = 0; i < v->n; i++)
    if (strcmp(v->identifier[i], identifier) == 0)
      return &v->value[i];
  return NULL;
}

/* The number of that index of a value that is published. */
static double number(const struct values *v, const char *identifier, size_t i) {
  const struct metric_value *value = find(v, identifier);

  if (!value)
    fail_msg("%s: missing", identifier);
  return value ? value->values[i] : 0;
}

static void check(const struct values *v, const char *identifier, double want) {
  double got = number(v, identifier, 0);

  if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-9 * fabs(want)))
    fail_msg("%s: %f", identifier, got);
}

/* Asserts values by their identifiers: "memory-pss=3m memory-rss=4k
 * uptime=nan", where m is MiB and k is KiB. */
static void check_all(const struct values *v, const char *want) {
  char identifier[64], unit;
  double value;
  int len;

  for (; sscanf(want, " %63[^=]=%lf%n", identifier, &value, &len) == 2;
       want += len) {
    unit = want[len];
    if (unit == 'm' || unit == 'k')
      value *= (double)(unit == 'm' ? MIB : KIB);
    len += unit == 'm' || unit == 'k';
    check(v, identifier, value);
  }
  assert_string_equal(want, "");
}

/* Returns a group of one member, with another amount in every field. */
static struct usage make_usage(void) {
  struct rollup r = {.known = KNOWN};
  struct statm_sample statm = {5000, 700, 300, 40, 1500};
  struct usage u = {.processes = 1,
                    .threads = 3,
                    .kernel_stack = 48 * KIB,
                    .uptime_ns = UINT64_C(90500000000),
                    .page_tables = 5 * MIB};

  for (uint64_t f = 0; f < ROLLUP_FIELDS; f++)
    r.bytes[f] = (f + 1) * MIB;
  r.bytes[ROLLUP_RSS] = 500 * MIB;
  r.bytes[ROLLUP_PSS] = 250 * MIB;
  usage_add_statm(&u, &statm, 4 * KIB);
  usage_add_memory(&u, &(struct usage_memory){
                           .rollup = &r,
                           .resident_bytes = statm.resident_pages * 4 * KIB,
                           .freed = {.bytes = 60 * MIB, .unsure = 9 * MIB},
                           .is_fresh = true});
  return u;
}

/* No cheap file shows that these change, and no error: their age has to. */
static bool is_as_old_as_the_readings(const char *name) {
  static const char *const names[] = {"pss_dirty",       "private_clean",
                                      "private_dirty",   "shared_clean",
                                      "shared_dirty",    "referenced",
                                      "lazy_free",       "ksm",
                                      "anon_huge_pages", "shared_hugetlb",
                                      "private_hugetlb", "shmem_pmd_mapped",
                                      "file_pmd_mapped", "locked"};

  for (size_t i = 0; i < LENGTH(names); i++)
    if (strcmp(name, names[i]) == 0)
      return true;
  return false;
}

/* One name stands for two values: a limit, and the percentage of it. */
TEST(every_metric_has_a_name_of_its_own) {
  struct usage u = make_usage();
  metric_set all = 0;
  struct config_error reason;

  for (size_t i = 0; i < IN_ALL; i++) {
    const char *name = name_of(identifiers[i]);
    metric_set set = metric_find(name, &reason);
    bool is_limit = strcmp(name, "cgroup_limit") == 0;
    bool is_aged = is_as_old_as_the_readings(name);
    struct values v = publish_whole(&u, name, (struct report){.metrics = 0});

    if (v.n != (is_limit || is_aged ? 2 : 1) || !find(&v, identifiers[i]) ||
        (is_aged && !find(&v, "duration-age")))
      fail_msg("%s: %zu values, %s", name, v.n, v.identifier[0]);
    if (is_aged)
      set &= ~metric_find("age", &reason);
    if ((all & set) && !is_limit)
      fail_msg("%s: another has it", name);
    all |= set;
  }
  assert_true(all == metric_find("detail", &reason));
  assert_true(metric_find("PSS_Anon", &reason) ==
              metric_find("pss_anon", &reason));
}

TEST(other_names_are_refused) {
  static const char *const words[] = {"private-dirty", "defaults", "detial", "",
                                      "everything"};

  for (size_t i = 0; i < LENGTH(words); i++) {
    struct config_error reason = {""};

    if (metric_find(words[i], &reason) ||
        !strstr(reason.text, "expected \"default\", \"detail\" or names"))
      fail_msg("\"%s\": %s", words[i], reason.text);
  }
}

TEST(every_value_is_published_under_its_name) {
  struct usage u = make_usage();
  struct values v =
      publish_whole(&u, "detail", (struct report){.percentage = CHOICE_YES});
  double uss = ROLLUP_PRIVATE_CLEAN + 1 + ROLLUP_PRIVATE_DIRTY + 1;

  for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
    char identifier[64];

    snprintf(identifier, sizeof(identifier), "memory-%s", of_rollup[f]);
    check(&v, identifier, (double)u.rollup.bytes[f]);
  }
  check(&v, "memory-epss", (250.0 + ROLLUP_SWAP_PSS + 1) * (double)MIB);
  check(&v, "memory-uss", uss * (double)MIB);
  check(&v, "memory-shared", (500 - uss) * (double)MIB);
  check(&v, "percent-swapped",
        100.0 * (ROLLUP_SWAP_PSS + 1) / (250 + ROLLUP_SWAP_PSS + 1));
  check_all(&v,
            "ps_vm=20000k ps_code=160k ps_data=6000k memory-resident=2800k "
            "memory-resident_shared=1200k percent-coverage=100 duration-age=0 "
            "count-unreadable=0 memory-pss_error=0 memory-uss_error=0 "
            "memory-freed=60m memory-freed_error=9m percent-relative_error=0 "
            "memory-cgroup=300m "
            "memory-cgroup_limit=400m percent-cgroup_limit=75 "
            "memory-cgroup_file=70m memory-cgroup_kernel=8m count-oom_kill=2 "
            "memory-cgroup_peak=310m memory-cgroup_peak_ever=390m "
            "percent-pressure_some=12.5 percent-pressure_full=2.5 "
            "total_events-events_high=21 total_events-events_max=22 "
            "count-oomd_kill=9 "
            "memory-page_tables=5m memory-kernel_stack=48k uptime=90.5 "
            "gauge-growth=2048 duration-until_limit=3600");
  /* Parts of MemTotal, which is 1024 MiB. */
  check_all(&v, "percent-cgroup=29.296875 percent-page_tables=0.48828125");
  assert_null(find(&v, "percent-growth"));
}

/* The rest of a control group is read for any of its values. */
TEST(what_is_read_only_if_it_is_asked_for) {
  static const struct {
    const char *word;
    unsigned wants;
  } cases[] = {{"cgroup_peak", CGROUP_WANTS_PEAK},
               {"cgroup_peak_ever", CGROUP_WANTS_PEAK_EVER},
               {"pressure_some", CGROUP_WANTS_PRESSURE},
               {"pressure_full", CGROUP_WANTS_PRESSURE},
               {"events_high", CGROUP_WANTS_EVENTS},
               {"events_max", CGROUP_WANTS_EVENTS},
               {"oomd_kill", CGROUP_WANTS_OOMD},
               {"cgroup_limit", 0},
               {"private_dirty", 0},
               {"default", 0},
               {"detail", CGROUP_WANTS_PEAK | CGROUP_WANTS_PEAK_EVER |
                              CGROUP_WANTS_PRESSURE | CGROUP_WANTS_EVENTS |
                              CGROUP_WANTS_OOMD}};
  struct config_error reason;

  for (size_t i = 0; i < LENGTH(cases); i++)
    assert_int_equal(metric_cgroup_wants(metric_find(cases[i].word, &reason)),
                     cases[i].wants);
}

/* The alert on it needs no option. */
TEST(the_percentage_of_the_limit_is_always_published) {
  struct usage u = make_usage();
  const struct report r = {.absolute = CHOICE_NO, .percentage = CHOICE_YES};
  struct values v = publish_whole(&u, "cgroup_limit", r);

  assert_int_equal(v.n, 1);
  check(&v, "percent-cgroup_limit", 75);
}

/* How many values there are; the test fails where one is known. */
static unsigned count_unknown(const struct metric_subject *subject,
                              metric_set metrics) {
  const struct report r = {.metrics = metrics};
  struct metric_value value;
  unsigned cursor = 0, n = 0;

  for (; metric_next(subject, &r, &all_known, &cursor, &value); n++)
    for (size_t i = 0; i < value.n; i++)
      assert_true(isnan(value.values[i]));
  return n;
}

TEST(ps_count_is_processes_and_threads) {
  struct usage u = make_usage();
  struct values v = publish_all(&u);

  for (size_t i = 0; i < v.n; i++)
    assert_int_equal(v.value[i].n,
                     strcmp(v.identifier[i], "ps_count") == 0 ? 2 : 1);
  assert_true(number(&v, "ps_count", 0) == 1);
  assert_true(number(&v, "ps_count", 1) == 3);
  u.perhaps = 1;
  v = publish_all(&u);
  assert_true(isnan(number(&v, "ps_count", 0)));
  assert_true(isnan(number(&v, "ps_count", 1)));
}

/* Values that only the rollups have. statm has what comes near rss. */
static void check_unknown(const struct values *v) {
  for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
    char identifier[64];

    snprintf(identifier, sizeof(identifier), "memory-%s", of_rollup[f]);
    if (f != ROLLUP_RSS)
      check(v, identifier, UNKNOWN);
  }
  check_all(
      v, "memory-uss=nan memory-shared=nan memory-pss_error=nan "
         "memory-uss_error=nan percent-relative_error=nan "
         "memory-epss=nan percent-swapped=nan percent-pss=nan percent-uss=nan");
}

TEST(an_unknown_member_makes_statm_unknown_too) {
  struct usage u = make_usage();
  struct values v;

  u.processes++;
  u.unreadable++;
  u.unknown++;
  v = publish_all(&u);
  check_unknown(&v);
  check_all(&v, "memory-rss=nan ps_vm=nan ps_code=nan ps_data=nan "
                "memory-resident=nan memory-resident_shared=nan "
                "percent-ps_vm=nan percent-resident=nan "
                "memory-page_tables=nan percent-page_tables=nan "
                "ps_count=2 count-unreadable=1");
}

TEST(an_empty_group_reports_zeros) {
  struct usage u = {.processes = 0};
  struct values v = publish_all(&u);

  for (size_t i = 0; i < v.n; i++)
    if (strcmp(v.identifier[i], "gauge-growth") != 0 &&
        strcmp(v.identifier[i], "duration-until_limit") != 0)
      check(&v, v.identifier[i],
            strcmp(v.identifier[i], "percent-coverage") == 0 ? 100 : 0);
  assert_true(number(&v, "ps_count", 1) == 0);
}

TEST(a_group_that_may_hide_a_process_reports_nothing) {
  const struct usage u = {.is_unseen = true};

  assert_in_range(
      count_unknown(&(struct metric_subject){.usage = &u}, ~(metric_set)0), 30,
      MAX_VALUES);
}

TEST(unknown_values_of_the_host_are_not_published) {
  struct usage u = make_usage();
  const struct report both = {.percentage = CHOICE_YES};
  const struct metric_context none = {.has_uptime = false};

  assert_int_equal(publish(&u, "uptime", both, none).n, 0);
  assert_int_equal(publish(&u, "uptime", both, all_known).n, 1);
}

TEST(page_tables_are_unknown_if_no_member_has_known_ones) {
  struct usage u = {.page_tables = 8 * KIB, .tables_unknown = 1};
  struct values v = publish_all(&u);

  check(&v, "memory-page_tables", UNKNOWN);
  u.tables_known = 1;
  v = publish_all(&u);
  check(&v, "memory-page_tables", 8 * (double)KIB);
}

TEST(without_mem_total_percentages_are_unknown) {
  struct usage u = make_usage();
  struct metric_context context = all_known;
  struct values v;

  context.mem_total = 0;
  v = publish(&u, "default", (struct report){.percentage = CHOICE_YES},
              context);
  check_all(&v, "percent-pss=nan memory-pss=250m percent-coverage=100");
  assert_null(find(&v, "percent-ps_count"));
}

/* --- control groups --------------------------------------------------------*/

/* Asserts values of a group of one process that has such a control group. */
static void check_cgroup(struct cgroup_memory m, uint64_t mem_total,
                         const char *want) {
  const struct usage u = {.processes = 1};
  struct values v =
      publish_of(&(struct metric_subject){.usage = &u, .cgroup = &m}, "detail",
                 (struct report){.metrics = 0},
                 (struct metric_context){.mem_total = mem_total});

  check_all(&v, want);
}

/* Without a limit the host is the limit. memory.high can be exceeded; types.db
 * takes more than 100.1 for unknown. */
TEST(the_limit_is_the_lower_of_its_own_and_the_memory_of_the_host) {
  static const struct {
    uint64_t limit, mem_total;
    const char *want;
  } cases[] = {
      {CGROUP_LIMIT_NONE, 1000,
       "memory-cgroup_limit=1000 percent-cgroup_limit=50"},
      {2000, 1000, "memory-cgroup_limit=1000 percent-cgroup_limit=50"},
      {800, 1000, "memory-cgroup_limit=800 percent-cgroup_limit=62.5"},
      {400, 1000, "memory-cgroup_limit=400 percent-cgroup_limit=100"},
      {CGROUP_LIMIT_NONE, 0,
       "memory-cgroup_limit=nan percent-cgroup_limit=nan"},
      {2000, 0, "memory-cgroup_limit=2000 percent-cgroup_limit=25"},
      {0, 1000, "memory-cgroup_limit=0 percent-cgroup_limit=nan"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    check_cgroup(
        (struct cgroup_memory){.known = CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT,
                               .bytes = 500,
                               .limit = cases[i].limit},
        cases[i].mem_total, cases[i].want);
}

TEST(the_percentage_of_the_limit_is_of_the_working_set) {
  struct cgroup_memory m = {.known = CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT |
                                     CGROUP_HAS_FILE,
                            .bytes = 1000,
                            .limit = 1000,
                            .file = 700,
                            .inactive_file = 600};

  check_cgroup(m, 2000, "memory-cgroup=1000 percent-cgroup_limit=40");
  m.inactive_file = 1001; /* older than the use */
  check_cgroup(m, 2000, "percent-cgroup_limit=0");
  m.known &= ~CGROUP_HAS_FILE;
  check_cgroup(m, 2000, "percent-cgroup_limit=100");
}

/* --- amounts ---------------------------------------------------------------*/

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

TEST(amounts_that_are_not_known_are_passed_over) {
  const uint32_t pss_and_rss = 1U << ROLLUP_PSS | 1U << ROLLUP_RSS;
  struct usage u = {.processes = 1, .rolled_up = 1}, nobody = {.processes = 0};

  assert_string_equal(amounts(&nobody, pss_and_rss), "pss=0 rss=0 ");

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
