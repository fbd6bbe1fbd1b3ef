/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "build.h"
#include "fixture.h"
#include "load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Quotes are written as '. */
static int load(const char *text, size_t len, struct document *ret,
                struct config_error *reason) {
  /* The parser must not look beyond: valgrind and ASan see it on a copy. */
  char *copy = fixture_copy(text, len);
  int r;

  for (size_t i = 0; i < len; i++)
    if (copy[i] == '\'')
      copy[i] = '"';
  r = load_document_text(copy, len, NULL, ret, reason);
  free(copy);
  return r;
}

static struct document load_valid(const char *text) {
  struct config_error reason = {""};
  struct document d;

  if (load(text, strlen(text), &d, &reason) != 0)
    fail_msg("refused: %s", reason.text);
  return d;
}

#define HEAD "{'format':'smaps-snapshot','version':2"
#define WITH(rest) HEAD "," rest "}"
#define PROCESS(rest) WITH("'processes':[{'pid':1," rest "}]")

static const char whole[] =
    WITH("'plugin_version':'0.1.0','host':'h\\u00e9','time':1795267200.25,"
         "'interval':10,'kernel':'6.18','page_size':4096,"
         "'mem_total':8589934592,'mem_available':4294967296,"
         "'later':{'a':[1,null,{'pid':'x'}]},"
         "'trigger':{'kind':'notification','severity':'warning',"
         "'time':1.5e9,'group':'web','type':'memory',"
         "'type_instance':'pss','message':'above'},"
         "'rules':['Group \\\"web\\\"','Other \\\"other\\\"'],"
         "'groups':[{'name':'web','rule':0,'processes':2,'threads':3,"
         "'unreadable':0,'uptime':90.5,'coverage':99.5,'age':2.5,"
         "'pss_error':7,'uss_error':14,'freed':20,'freed_error':21,"
         "'pss_error_by':{'files':3,'later':[9],'unidentified':2},"
         "'cgroup':'/web',"
         "'cgroup_absence':'hung','cgroup_memory':1,"
         "'cgroup_working_set':6,'cgroup_limit':2,'cgroup_file':3,"
         "'cgroup_kernel':4,'oom_kill':5,'oomd_kill':7,'cgroup_peak':8,"
         "'cgroup_peak_ever':9,'pressure_some':12.5,'pressure_full':2.5,"
         "'events_high':10,'events_max':11,'growth':9000,"
         "'until_limit':1.5,'grows_since':1.25e9,'last_known':1.5e9,"
         "'usage':{'pss':18446744073709551614,'uss':0,"
         "'page_tables':6,'kernel_stack':8,'later':true}},"
         "{'name':'a','pss_error_by':{}}],"
         "'processes':[{'pid':4294967295,'starttime':5,'ppid':1,"
         "'comm':'nginx','exe':'/x','command_line':'nginx -g',"
         "'uid':0,'user':'root','cgroup':'/c','unit':'u',"
         "'slice':'s','container':'d','container_name':'n','pod':'p',"
         "'namespace':'m','groups':['web','a'],"
         "'rule':0,'also':[1,0],'inherited':true,'threads':3,"
         "'uptime':7.25,"
         "'source':'estimated','age':0.5,'pss_error':9,"
         "'uss_error':18,'deferred':'budget',"
         "'read_cost':1e-5,'usage':{'rss':3,'pss':2},"
         "'mappings':[{'name':'[heap]','permissions':'rw-p','vmas':1,"
         "'size':4,'pss':2,'pages_sampled':9,'pss_error':3},{'pss':1}]},"
         "{'pid':2}],"
         "'left_out':4,"
         "'mappings':[{'name':'[heap]','processes':1,'pss':2}]");

static void check_head(const struct document *d) {
  assert_string_equal(d->plugin_version, "0.1.0");
  assert_string_equal(d->host, "h\xc3\xa9");
  assert_true(d->time > 1795267200.24 && d->time < 1795267200.26);
  assert_true(d->interval > 9.9 && d->interval < 10.1);
  assert_int_equal(d->page_size, 4096);
  assert_true(d->mem_total == UINT64_C(8589934592));
  assert_int_equal(d->left_out, 4);
  assert_string_equal(d->trigger.kind, "notification");
  assert_string_equal(d->trigger.message, "above");
  assert_string_equal(document_scope(d), "web");
  assert_int_equal(d->n_rules, 2);
  assert_string_equal(d->rules[1], "Other \"other\"");
}

static void check_groups(const struct document *d) {
  const struct group *web = document_group(d, "web"), *a = &d->groups[0];

  assert_int_equal(d->n_groups, 2);
  assert_string_equal(a->name, "a");
  assert_true(a->processes == MISSING && isnan(a->age) && isnan(a->uptime) &&
              a->uss_error == MISSING && a->cgroup_memory == MISSING &&
              a->oom_kill == MISSING && a->growth == MISSING &&
              a->cgroup_peak == MISSING && isnan(a->pressure_some) &&
              isnan(a->until_limit) && isnan(a->grows_since));
  assert_non_null(web);
  assert_null(document_group(d, "nobody"));
  assert_int_equal(web->threads, 3);
  assert_int_equal(web->pss_error, 7);
  assert_int_equal(web->uss_error, 14);
  assert_int_equal(web->freed, 20);
  assert_int_equal(web->freed_error, 21);
  assert_true(a->freed == MISSING && a->freed_error == MISSING);
  assert_non_null(web->pss_error_by);
  assert_int_equal(web->pss_error_by->bytes[CAUSE_FILES], 3);
  assert_int_equal(web->pss_error_by->bytes[CAUSE_RELATIVES], 0);
  assert_int_equal(web->pss_error_by->bytes[CAUSE_UNIDENTIFIED], 2);
  assert_non_null(a->pss_error_by);
  assert_int_equal(a->pss_error_by->bytes[CAUSE_FILES], 0);
  assert_string_equal(web->cgroup, "/web");
  assert_string_equal(web->cgroup_absence, "hung");
  assert_true(web->cgroup_memory == 1 && web->cgroup_limit == 2 &&
              web->cgroup_file == 3 && web->cgroup_kernel == 4 &&
              web->cgroup_working_set == 6 && web->oom_kill == 5);
  assert_true(web->oomd_kill == 7 && web->cgroup_peak == 8 &&
              web->cgroup_peak_ever == 9 && web->pressure_some == 12.5 &&
              web->pressure_full == 2.5 && web->events_high == 10 &&
              web->events_max == 11);
  assert_int_equal(web->growth, 9000);
  assert_true(web->until_limit == 1.5 && web->grows_since == 1.25e9 &&
              web->coverage == 99.5 && web->uptime == 90.5 &&
              web->last_known == 1.5e9);
  assert_true(isnan(a->last_known) && document_last_known(d) == 1.5e9);
  assert_true(amounts_get(&web->amounts, AMOUNT_PAGE_TABLES) == 6);
  assert_true(amounts_get(&web->amounts, AMOUNT_KERNEL_STACK) == 8);
  assert_true(amounts_get(&web->amounts, AMOUNT_PSS) == UINT64_MAX - 1);
  assert_true(amounts_get(&web->amounts, AMOUNT_USS) == 0);
  assert_true(amounts_get(&web->amounts, AMOUNT_RSS) == MISSING);
}

static void check_process(const struct document *d) {
  const struct process *p = &d->processes[0];

  assert_int_equal(d->n_processes, 2);
  assert_true(p->pid == UINT32_MAX);
  assert_int_equal(p->starttime, 5);
  assert_string_equal(p->container, "d");
  assert_string_equal(p->container_name, "n");
  assert_string_equal(p->pod, "p");
  assert_string_equal(p->namespace, "m");
  assert_true(process_is_in(p, "a") && !process_is_in(p, "b"));
  assert_string_equal(process_main_group(d, p), "web");
  assert_true(p->is_inherited && !d->processes[1].is_inherited);
  assert_int_equal(p->pss_error, 9);
  assert_int_equal(p->uss_error, 18);
  assert_true(d->processes[1].uss_error == MISSING);
  assert_true(p->uptime > 7.2 && p->uptime < 7.3);
  assert_true(isnan(d->processes[1].uptime));
  assert_int_equal(p->n_also, 2);
  assert_int_equal(p->also[0], 1);
  assert_true(p->read_cost > 0.9e-5 && p->read_cost < 1.1e-5);
  assert_int_equal(p->n_mappings, 2);
  assert_string_equal(p->mappings[0].permissions, "rw-p");
  assert_int_equal(p->mappings[0].pages_sampled, 9);
  assert_int_equal(p->mappings[0].pss_error, 3);
  assert_true(p->mappings[1].pages_sampled == MISSING);
  assert_true(p->mappings[1].pss_error == MISSING);
  assert_null(p->mappings[1].name);
  assert_int_equal(amounts_get(&p->mappings[1].amounts, AMOUNT_PSS), 1);
  assert_int_equal(amounts_get(&p->amounts, AMOUNT_RSS), 3);
  assert_null(d->processes[1].comm);
  assert_true(d->processes[1].rule == MISSING);
}

TEST(everything_in_a_document_is_kept) {
  struct document d = load_valid(whole);

  check_head(&d);
  check_groups(&d);
  check_process(&d);
  assert_true(d.has_mappings);
  assert_int_equal(d.mappings[0].processes, 1);
  document_done(&d);
}

TEST(a_document_with_a_part_missing_is_refused) {
  for (size_t len = 0; len < sizeof(whole) - 1; len++) {
    struct config_error reason = {""};
    struct document d = {.n_rules = 77};

    if (load(whole, len, &d, &reason) != -EINVAL || !reason.text[0])
      fail_msg("%zu bytes are taken, or refused without a word", len);
    assert_int_equal(d.n_rules, 77);
  }
}

static const struct {
  const char *name;
  const char *text;
  const char *reason;
} mistakes[] = {
    {"empty", "", "is empty"},
    {"blank", "  \n", "ends at byte 3"},
    {"no JSON", "PID USER\n", "not a snapshot: not valid JSON at byte"},
    {"an array", "[1]", "not a snapshot of the smaps plugin"},
    {"an empty object", "{}", "not a snapshot of the smaps plugin"},
    {"another format", "{'format':'heap\\u001b[2J'}",
     "its format is \"heap\\x1b[2J\""},
    {"no version", "{'format':'smaps-snapshot'}", "no version of the format"},
    {"version 1", "{'format':'smaps-snapshot','version':1}",
     "format version 1, but this program reads version 2"},
    {"something behind", HEAD "} x", "not valid JSON"},
    {"invalid UTF-8", WITH("'host':'\xff'"), "not valid JSON"},
    {"a raw control character", WITH("'host':'\x01'"), "not valid JSON"},
    {"NUL in a string", WITH("'host':'a\\u0000b'"),
     "host: expected a string without a NUL"},
    {"null", WITH("'host':null"), "host: expected a string, not null"},
    {"a number for a string", WITH("'host':1"),
     "host: expected a string, not a number"},
    {"a string for an array", WITH("'rules':'x'"),
     "rules: expected an array, not a string"},
    {"an array for an object", WITH("'trigger':[]"),
     "trigger: expected an object, not an array"},
    {"a number in an array of objects", WITH("'groups':[{'name':'a'},7]"),
     "groups[1]: expected an object, not a number"},
    {"a string for a number", PROCESS("'uid':'0'"),
     "processes[0].uid: expected a whole number of 0 or more, not a string"},
    {"a number for a flag", PROCESS("'inherited':1"),
     "processes[0].inherited: expected true or false"},
    {"a flag for a number", PROCESS("'threads':true"),
     "processes[0].threads: expected a whole number of 0 or more, not true"},
    {"a negative number", PROCESS("'usage':{'pss':-1}"),
     "processes[0].usage.pss: expected a whole number of 0 or more, not a neg"},
    {"a fraction of a byte", PROCESS("'usage':{'pss':1.5}"),
     "usage.pss: expected a whole number of 0 or more, not a number with"},
    {"an exponent", PROCESS("'usage':{'pss':1e3}"), "usage.pss: expe"},
    {"one byte too many", PROCESS("'usage':{'pss':18446744073709551615}"),
     "usage.pss: the number is too large"},
    {"beyond 64 bits", PROCESS("'starttime':18446744073709551616"),
     "starttime: the number is too large"},
    {"a pid beyond 32 bits", WITH("'processes':[{'pid':4294967296}]"),
     "processes[0].pid: the number is too large"},
    {"infinite seconds", WITH("'time':1e999"), "time: the number is too large"},
    {"negative seconds", WITH("'time':-0.5"), "time: expected a number"},
    {"a number of 70 digits",
     WITH("'time':"
          "11111111111111111111111111111111111111111111111111111111111111111111"
          "11"),
     "time: the number has too many digits"},
    {"a key twice", WITH("'host':'a','host':'b'"), "host: appears twice"},
    {"the version twice", WITH("'version':2"), "version: appears twice"},
    {"an amount twice", PROCESS("'usage':{'pss':1,'uss':2,'pss':3}"),
     "usage.pss: appears twice"},
    {"a group twice", WITH("'groups':[{'name':'b'},{'name':'a'},{'name':'b'}]"),
     "group \"b\" appears twice"},
    {"a group without a name", WITH("'groups':[{'rule':0}]"),
     "groups[0]: a group without a name"},
    {"a process without a pid", WITH("'processes':[{'comm':'a'}]"),
     "processes[0]: a process without a pid"},
    {"a rule that is not there", PROCESS("'rule':0"),
     "process 1: there is no rule 0"},
    {"a further rule that is not there",
     WITH("'rules':['x'],'processes':[{'pid':1,'rule':0,'also':[0,1]}]"),
     "process 1: there is no rule 1"},
    {"a group's rule that is not there",
     WITH("'groups':[{'name':'g','rule':3}]"),
     "group \"g\": there is no rule 3"},
    {"an array for causes", WITH("'groups':[{'name':'g','pss_error_by':[1]}]"),
     "groups[0].pss_error_by: expected an object, not an array"},
    {"a fraction for a cause",
     WITH("'groups':[{'name':'g','pss_error_by':{'fork':0.5}}]"),
     "groups[0].pss_error_by.fork: expected a whole number"},
    {"a cause twice",
     WITH("'groups':[{'name':'g','pss_error_by':{'ksm':1,'ksm':1}}]"),
     "groups[0].pss_error_by.ksm: appears twice"},
    {"a mapping behind the rest", WITH("'mappings':[{'pss':1},{'name':'b'}]"),
     "mappings[1]: follows a mapping without a name"},
};

TEST(a_mistake_is_named) {
  for (size_t i = 0; i < LENGTH(mistakes); i++) {
    struct config_error reason = {""};
    struct document d;

    if (load(mistakes[i].text, strlen(mistakes[i].text), &d, &reason) !=
        -EINVAL)
      fail_msg("%s: taken", mistakes[i].name);
    if (!strstr(reason.text, mistakes[i].reason))
      fail_msg("%s: \"%s\"", mistakes[i].name, reason.text);
  }
}

TEST(unknown_keys_are_skipped_with_their_content) {
  struct document d =
      load_valid(WITH("'new':{'pid':-1,'pid':[null,1e999,{'format':'x'}]},"
                      "'':null,'a\\u0000b':[[[]]],"
                      "'processes':[{'new':[{}],'pid':7,'usage':{'new':-3,"
                      "'new2':{'pss':9}}}]"));

  assert_int_equal(d.n_processes, 1);
  assert_int_equal(d.processes[0].pid, 7);
  assert_true(amounts_get(&d.processes[0].amounts, AMOUNT_PSS) == MISSING);
  document_done(&d);
}

/* A key of one object is no key of another; nor is what follows it there. */
TEST(each_object_may_have_its_own_order) {
  struct document d = load_valid(
      "{'processes':[{'rule':0,'pid':1,'usage':{'pss':1,'uss':2},'uid':3,"
      "'mappings':[{'name':'a','pss':4,'vmas':5},"
      "{'vmas':6,'name':'b','uss':7}]},"
      "{'uid':8,'pid':9,'usage':{'name':11,'pid':12,'uss':13}},"
      "{'pid':14,'pss':15,'pss':15,'usage':{'pss':16,'swap':17}}],"
      "'rules':['x'],'version':2,'format':'smaps-snapshot'}");
  const struct process *p = d.processes;

  assert_int_equal(amounts_get(&p[0].amounts, AMOUNT_USS), 2);
  assert_int_equal(p[0].uid, 3);
  assert_int_equal(amounts_get(&p[0].mappings[0].amounts, AMOUNT_PSS), 4);
  assert_int_equal(p[0].mappings[0].vmas, 5);
  assert_int_equal(p[0].mappings[1].vmas, 6);
  assert_string_equal(p[0].mappings[1].name, "b");
  assert_int_equal(amounts_get(&p[0].mappings[1].amounts, AMOUNT_USS), 7);
  assert_int_equal(p[1].uid, 8);
  assert_int_equal(p[1].pid, 9);
  assert_true(amounts_get(&p[1].amounts, AMOUNT_PSS) == MISSING);
  assert_int_equal(amounts_get(&p[1].amounts, AMOUNT_USS), 13);
  assert_int_equal(p[2].pid, 14);
  assert_int_equal(amounts_get(&p[2].amounts, AMOUNT_PSS), 16);
  assert_int_equal(amounts_get(&p[2].amounts, AMOUNT_SWAP), 17);
  document_done(&d);
}

/* Returns HEAD, then `before`, n times `unit`, and `after`. */
static char *repeat(const char *before, const char *unit, size_t n,
                    const char *after) {
  size_t size =
      strlen(HEAD) + strlen(before) + n * strlen(unit) + strlen(after) + 1;
  char *text = malloc(size), *at = text;

  assert_non_null(text);
  at = stpcpy(stpcpy(at, HEAD), before);
  for (size_t i = 0; i < n; i++)
    at = stpcpy(at, unit);
  stpcpy(at, after);
  return text;
}

static void check_bound(char *text, const char *expected) {
  struct config_error reason = {""};
  struct document d;
  int r = load(text, strlen(text), &d, &reason);

  free(text);
  if (!expected && r != 0)
    fail_msg("refused: %s", reason.text);
  if (!expected) {
    document_done(&d);
    return;
  }
  assert_int_equal(r, -EINVAL);
  if (!strstr(reason.text, expected))
    fail_msg("\"%s\"", reason.text);
}

/* The parser's memory has a bound. */
TEST(depth_has_a_bound) {
  check_bound(repeat(",'x':", "[", 100000, ""), "ends at byte");
  check_bound(repeat(",'x':", "{'a':", (size_t)8 << 20, "1"), "is too long");
}

TEST(strings_have_a_bound) {
  check_bound(repeat(",'host':'", "a", BUILD_STRING_MAX, "'}"), NULL);
  check_bound(repeat(",'host':'", "a", BUILD_STRING_MAX + 1, "'}"),
              "host: the string is too long");
  /* All of it escaped, the longest way to write it. */
  check_bound(repeat(",'host':'", "\\u0041", BUILD_STRING_MAX, "'}"), NULL);
  /* One that is skipped is held by the parser all the same. */
  check_bound(repeat(",'x':'", "a", (size_t)8 << 20, "'}"), "is too long");
  check_bound(repeat(",'", "a", (size_t)8 << 20, "':1}"), "is too long");
  /* Blanks cost nothing. */
  check_bound(repeat("", " \n\t", (size_t)3 << 20, "}"), NULL);
}

TEST(counts_have_a_bound) {
  check_bound(repeat(",'rules':[", "'',", BUILD_RULES_MAX, "'']}"),
              "too many rules");
  check_bound(repeat(",'processes':[", "{'pid':1},", BUILD_PROCESSES_MAX,
                     "{'pid':1}]}"),
              "too many processes");
  check_bound(
      repeat(",'mappings':[", "{'name':''},", BUILD_MAPPINGS_MAX, "{}]}"),
      "too many mappings");
  check_bound(repeat(",'processes':[{'pid':1,'groups':[", "'',",
                     BUILD_GROUPS_MAX, "'']}]}"),
              "processes[0].groups[131072]: too many");
  check_bound(
      repeat(",'processes':[{'pid':1,'also':[", "0,", BUILD_RULES_MAX, "0]}]}"),
      "too many");
}

TEST(equal_strings_are_kept_once) {
  struct pool pool = {0};
  const char *first = pool_intern(&pool, "postgres", 8);
  char text[16];

  /* Downwards: "123" is looked for where there is "1234". */
  for (int i = 200000; i >= 0; i--) {
    int len = snprintf(text, sizeof(text), "%d", i);

    assert_string_equal(pool_intern(&pool, text, (size_t)len), text);
  }
  assert_ptr_equal(pool_intern(&pool, "postgres-x", 8), first);
  assert_ptr_not_equal(pool_intern(&pool, "postgre", 7), first);
  pool_done(&pool);
}
