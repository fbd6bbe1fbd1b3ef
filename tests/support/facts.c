/* SPDX-License-Identifier: MIT */
/*
 * Prints the tables of the code, for the test of the manual, as lines of a kind
 * and words: options of blocks, selectors, values of groups and of the plugin
 * itself, defaults, and the words of snapshots.
 */
#include <stdio.h>
#include <string.h>

#include <smaps/settings.h>
#include <smaps/words.h>

#include "config.h"
#include "items.h"
#include "proctree.h"
#include "report/host.h"
#include "report/metric.h"
#include "stub_daemon.h"

static void print_options(const char *kind, enum config_block block) {
  const char *name;

  for (size_t i = 0; (name = config_option(block, i)); i++)
    printf("%s %s\n", kind, name);
}

#define AMOUNT_OF_ROLLUP(name, key, field) puts("amount " #key);
#define AMOUNT(name, key) puts("amount " #key);
#define CAUSE(name, key, words) puts("cause " #key);
#define ATTRIBUTE(name, key, selector) puts("attribute " #key);
#define SOURCE(name, key, words) puts("source " #key);
#define DEFERRAL(name, key, words) puts("deferral " #key);
#define ABSENCE(name, key, words) puts("absence " #key);

static void print_words(void) {
  AMOUNTS_OF_ROLLUP(AMOUNT_OF_ROLLUP, AMOUNT_OF_ROLLUP)
  AMOUNTS_OF_STATM(AMOUNT)
  AMOUNTS_OF_KERNEL(AMOUNT)
  CAUSE_TABLE(CAUSE)
  ATTRIBUTE_TABLE(ATTRIBUTE, ATTRIBUTE)
  SOURCE_TABLE(SOURCE)
  ENDED_ROW(SOURCE)
  DEFERRAL_TABLE(DEFERRAL)
  ABSENCE_TABLE(ABSENCE)
}

static void print_values(const char *kind, metric_set metrics,
                         bool is_percent) {
  const struct metric_context context = {
      .kernel_fields = UINT32_MAX, .mem_total = 1, .has_uptime = true};
  const struct report report = {.metrics = metrics,
                                .absolute = is_percent ? CHOICE_NO : CHOICE_YES,
                                .percentage =
                                    is_percent ? CHOICE_YES : CHOICE_NO};
  struct usage usage = {.processes = 0};
  struct cgroup_memory cgroup = {.known = 0};
  const struct metric_subject subject = {.usage = &usage, .cgroup = &cgroup};
  struct metric_value v;
  unsigned cursor = 0;

  while (metric_next(&subject, &report, &context, &cursor, &v))
    printf("%s %s%s%s\n", kind, v.type, *v.type_instance ? "-" : "",
           v.type_instance);
}

static void print_defaults(void) {
  const struct settings *s = &settings_defaults;

  printf("default Host %s\n", s->reports_host ? "true" : "false");
  printf("default MaxGroups %u\n", (unsigned)s->max_groups);
  printf("default ReadBudget %g\n", s->read_budget_percent);
  printf("default ReadTimeout %g\n", (double)s->read_timeout_ns / NS_PER_S);
  printf("default StateInterval %g\n", (double)s->state_interval_ns / NS_PER_S);
  printf("default MaxAge %g\n", (double)s->policy.max_age_ns / NS_PER_S);
  printf("default MaxLockHold %g\n",
         (double)s->policy.max_lock_hold_ns / NS_PER_MS);
}

static void print_host_values(void) {
  struct host_account account = {.known = UINT32_MAX};
  struct host_value v;
  unsigned cursor = 0;

  while (host_next(&account, &cursor, &v))
    printf("host %s-%s\n", v.is_part ? "memory" : "bytes", v.name);
}

/* A cycle over a tree dispatches them; some only with StateFile. */
static int print_own_values(void) {
  struct proctree tree;
  int r = -1;

  proctree_make(&tree);
  proctree_put(&tree, &(struct fake){.pid = 1, .comm = "init"});
  module_register();
  if (items_configure("ProcRoot '%s'\nStateFile '%s/state'", tree.root,
                      tree.root) == 0 &&
      stub.init() == 0)
    r = stub.read(NULL);
  for (size_t i = 0; i < stub.n_values; i++)
    if (strncmp(stub.values[i].identifier, "smaps/", 6) == 0)
      printf("own %s\n", stub.values[i].identifier + 6);
  stub.shutdown();
  proctree_remove(&tree);
  return r;
}

int main(void) {
  struct config_error error;

  print_options("top", CONFIG_PLUGIN);
  print_options("group", CONFIG_GROUP);
  print_options("ignore", CONFIG_IGNORE);
  print_options("capture", CONFIG_CAPTURE);
  print_options("alarms", CONFIG_ALARMS);
  for (size_t i = 0; selector_options[i]; i++)
    printf("selector %s\n", selector_options[i]);
  print_values("published", metric_find("default", &error), false);
  print_values("detail", metric_find("detail", &error), false);
  print_values("percent", metric_find("detail", &error), true);
  print_host_values();
  print_defaults();
  print_words();
  return print_own_values() == 0 ? 0 : 1;
}
