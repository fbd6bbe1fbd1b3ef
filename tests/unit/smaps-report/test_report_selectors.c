#include "test.h"

#include "selectors.h"

#include <stdlib.h>
#include <string.h>

#define NO_MATCH " does not match\n"
#define NOT_TRIED ": not tried here: unknown, cut, or too large\n"
#define ALL_MATCH                                                              \
  "its selectors match now; a %{...} of its name may be unknown\n"

static void add_line(void *ctx, const char *line) {
  struct text *t = ctx;

  text_add(t, line);
  text_add(t, "\n");
}

/* The lines, each with a newline. The caller frees them. */
static char *explain(const char *rule, const struct process *p) {
  static const struct style ascii;
  struct text t = {0};

  selectors_explain(rule, p, &ascii, add_line, &t);
  return t.bytes;
}

/* A worker of nginx, as systemd runs it. */
static const struct process worker = {
    .pid = 7,
    .uid = 33,
    .comm = "nginx",
    .command_line = "nginx: worker process",
    .exe = "/usr/sbin/nginx",
    .user = "www-data",
    .cgroup = "/system.slice/nginx@a.service",
    .unit = "nginx@a.service",
    .slice = "system.slice",
};

static const struct {
  const char *rule;
  const char *expected;
} rules[] = {
    {"Process \"nginx\"", ALL_MATCH},
    {"Process \"ngin?\"", "Process \"ngin?\"" NO_MATCH},
    {"ProcessMatch \"nginx\" \"^nginx: master\"",
     "ProcessMatch \"nginx\" \"^nginx: master\"" NO_MATCH},
    {"ProcessMatch \"any\" \"worker\"", ALL_MATCH},
    {"<Group \"web\"> Unit \"nginx.service\"",
     "Unit \"nginx.service\"" NO_MATCH},
    /* One selector of an attribute suffices; all attributes have to match. */
    {"<Group \"web\"> Unit \"nginx.service\"; Unit \"nginx@*\"", ALL_MATCH},
    {"<Group \"web\"> unit \"a.service\"; UnitMatch \"^b\"; User \"33\"",
     "unit \"a.service\"" NO_MATCH "UnitMatch \"^b\"" NO_MATCH},
    {"<Group \"web\"> Unit \"nginx@*\"; User \"root\"; Children true",
     "User \"root\"" NO_MATCH},
    {"<Group \"Unit\"> Comm \"nginx\"; MaxAge 60; Report \"pss\" \"Unit\"",
     ALL_MATCH},
    /* The empty glob takes what is in none. */
    {"<Ignore> Container \"\"; Pod \"p\"", "Pod \"p\"" NO_MATCH},
    {"<Ignore> Slice \"\"", "Slice \"\"" NO_MATCH},
    {"<Group \"g\"> PidFile \"/run/nginx.pid\"; Comm \"nginx\"",
     "PidFile \"/run/nginx.pid\" names another process, or none\n"},
    /* Quotation marks, backslashes and other bytes, as the plugin writes them.
     */
    {"<Group \"g\"> CommandLineMatch \"ngin\\x78: \\\\w+ proc\"", ALL_MATCH},
    {"<Group \"g\"> Comm \"a\\\"b\"", "Comm \"a\\\"b\"" NO_MATCH},
    {"Other \"rest\"", ALL_MATCH},
    {"", ALL_MATCH},
    /* What a document should not have. */
    {"<Group \"g\"> Comm \"nginx", "Comm \"nginx" NOT_TRIED},
    {"<Group \"g\"> Comm \"nginx\\", "Comm \"nginx\\" NOT_TRIED},
    {"<Group \"g\"> CommMatch \"(\"", "CommMatch \"(\"" NOT_TRIED},
    {"<Group \"g\"> CommMatch \"(a*)\\\\1\"",
     "CommMatch \"(a*)\\\\1\"" NOT_TRIED},
    {"<Group \"g\"> CommMatch \"((x{1,99}){9,99}){999}\"",
     "CommMatch \"((x{1,99}){9,99}){999}\"" NOT_TRIED},
    {"<Group \"g\"> CommMatch \"^[a-z]{1,20}$\"", ALL_MATCH},
    {"<Group \"g\"> Comm \"\x1b[2J\"", "Comm \"\\x1b[2J\"" NOT_TRIED},
};

TEST(the_selectors_that_do_not_match_are_found) {
  for (size_t i = 0; i < LENGTH(rules); i++) {
    char *text = explain(rules[i].rule, &worker);

    if (strcmp(text, rules[i].expected) != 0)
      fail_msg("%s:\n%s", rules[i].rule, text);
    free(text);
  }
}

/* The plugin writes 200 bytes of a pattern at most. */
TEST(a_pattern_that_is_cut_is_not_tried) {
  char rule[300], *text;

  snprintf(rule, sizeof(rule), "<Group \"g\"> CommandLineMatch \"%0196d...\"",
           0);
  text = explain(rule, &worker);
  assert_non_null(strstr(text, "...\"" NOT_TRIED));
  free(text);
  /* As it is written: a backslash takes two bytes. */
  snprintf(rule, sizeof(rule),
           "<Group \"g\"> CommandLineMatch "
           "\"%"
           "0160d\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\"
           "\\...\"",
           0);
  text = explain(rule, &worker);
  assert_non_null(strstr(text, "...\"" NOT_TRIED));
  free(text);
}

/* The kernel refuses some attributes, and CommandLines false leaves out one. */
TEST(an_unknown_value_proves_nothing) {
  struct process p = worker;
  char *text;

  p.command_line = p.exe = p.unit = NULL;
  text = explain("<Group \"g\"> CommandLineMatch \"x\"; Executable \"/x\"; "
                 "Unit \"x.service\"",
                 &p);
  assert_string_equal(text, "CommandLineMatch \"x\"" NOT_TRIED
                            "Executable \"/x\"" NOT_TRIED
                            "Unit \"x.service\"" NO_MATCH);
  free(text);
}

TEST(a_value_that_rules_never_see_is_not_tried) {
  struct process p = worker;
  char *line = calloc(1, 4098), *text;

  memset(line, 'x', 4096);
  p.command_line = line;
  text = explain("ProcessMatch \"g\" \"xx\"", &p);
  assert_string_equal(text, ALL_MATCH);
  free(text);
  line[4096] = 'x';
  text = explain("ProcessMatch \"g\" \"xx\"", &p);
  assert_string_equal(text, "ProcessMatch \"g\" \"xx\"" NOT_TRIED);
  free(text);
  free(line);
}

TEST(what_selectors_see_is_shown) {
  static const struct style ascii;
  struct process p = worker;
  struct text t = {0};
  char line[300];

  memset(line, 'y', 199);
  strcpy(line + 199, "\xc3\xb6zz");
  p.command_line = line;
  p.comm = "a\nb";
  p.exe = NULL;
  selectors_show(&p, &ascii, add_line, &t);
  memset(line + 199, '\0', 1);
  assert_true(strncmp(t.bytes, "Comm \"a\\x0ab\"\nCommandLine \"", 27) == 0);
  assert_non_null(strstr(t.bytes, line));
  assert_non_null(strstr(t.bytes, "y\" and 4 more bytes\n"
                                  "Executable: unknown\n"
                                  "User \"www-data\"\n"
                                  "Cgroup \"/system.slice/nginx@a.service\"\n"
                                  "Unit \"nginx@a.service\"\n"
                                  "Slice \"system.slice\"\n"
                                  "Container: none\n"));
  text_done(&t);
}
