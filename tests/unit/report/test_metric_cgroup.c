/* The metrics of a control group, as far as it is known. */
#include "test.h"

#include "report/metric.h"

#include <math.h>
#include <string.h>

#define UNKNOWN ((double)NAN)

/* Gets a value of a group; false if it is not published. */
static bool find(const struct cgroup_memory *m, uint64_t mem_total,
                 const char *type, const char *instance, double *ret) {
  const struct usage u = {.processes = 1};
  const struct metric_subject subject = {.usage = &u, .cgroup = m};
  const struct metric_context context = {.mem_total = mem_total};
  struct config_error reason;
  const struct report r = {.metrics = metric_find("detail", &reason),
                           .absolute = CHOICE_YES};
  struct metric_value value;
  unsigned cursor = 0;

  while (metric_next(&subject, &r, &context, &cursor, &value))
    if (strcmp(value.type, type) == 0 &&
        strcmp(value.type_instance, instance) == 0) {
      *ret = value.values[0];
      return true;
    }
  return false;
}

static void check(const struct cgroup_memory *m, uint64_t mem_total,
                  const char *type, const char *instance, double want) {
  double got = -1;

  if (!find(m, mem_total, type, instance, &got))
    fail_msg("%s-%s: missing", type, instance);
  if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-9 * fabs(want)))
    fail_msg("%s-%s: %f", type, instance, got);
}

TEST(without_a_control_group_of_its_own_nothing_is_said_of_one) {
  static const char *const values[][2] = {
      {"memory", "cgroup"},        {"memory", "cgroup_limit"},
      {"percent", "cgroup_limit"}, {"count", "oom_kill"},
      {"memory", "cgroup_file"},   {"memory", "cgroup_kernel"}};
  double value;

  for (size_t i = 0; i < LENGTH(values); i++)
    assert_false(find(NULL, 1000, values[i][0], values[i][1], &value));
  assert_true(find(NULL, 1000, "ps_count", "", &value));
}

TEST(what_is_unknown_of_a_control_group_is_nan) {
  const struct cgroup_memory m = {.known = CGROUP_HAS_KILLS, .kills = 1};

  check(&m, 1000, "memory", "cgroup", UNKNOWN);
  check(&m, 1000, "memory", "cgroup_limit", UNKNOWN);
  check(&m, 1000, "percent", "cgroup_limit", UNKNOWN);
  check(&m, 1000, "memory", "cgroup_file", UNKNOWN);
  check(&m, 1000, "memory", "cgroup_kernel", UNKNOWN);
  check(&m, 1000, "count", "oom_kill", 1);
}

TEST(without_a_limit_the_host_is_the_limit) {
  static const struct {
    uint64_t limit, mem_total;
    double want, percent;
  } cases[] = {
      {CGROUP_LIMIT_NONE, 1000, 1000, 50},
      {2000, 1000, 1000, 50},
      {999, 1000, 999, 100 * 500 / 999.0},
      {CGROUP_LIMIT_NONE, 0, UNKNOWN, UNKNOWN},
      {2000, 0, 2000, 25},
      {0, 1000, 0, UNKNOWN},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    const struct cgroup_memory m = {.known =
                                        CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT,
                                    .bytes = 500,
                                    .limit = cases[i].limit};

    check(&m, cases[i].mem_total, "memory", "cgroup_limit", cases[i].want);
    check(&m, cases[i].mem_total, "percent", "cgroup_limit", cases[i].percent);
  }
}

/* memory.high can be exceeded; types.db takes more than 100.1 for unknown. */
TEST(more_than_the_limit_is_all_of_it) {
  const struct cgroup_memory m = {.known = CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT,
                                  .bytes = 1500,
                                  .limit = 1000};

  check(&m, 2000, "percent", "cgroup_limit", 100);
}

TEST(the_percentage_is_that_of_the_working_set) {
  const struct cgroup_memory m = {.known = CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT |
                                           CGROUP_HAS_FILE,
                                  .bytes = 1000,
                                  .limit = 1000,
                                  .file = 700,
                                  .inactive_file = 600};
  struct cgroup_memory other = m;

  check(&m, 2000, "memory", "cgroup", 1000);
  check(&m, 2000, "percent", "cgroup_limit", 40);
  other.inactive_file = 1001; /* older than the use */
  check(&other, 2000, "percent", "cgroup_limit", 0);
  other.known &= ~CGROUP_HAS_FILE;
  check(&other, 2000, "percent", "cgroup_limit", 100);
}
