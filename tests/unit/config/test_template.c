#include "test.h"

#include "config/template.h"

#include <errno.h>
#include <string.h>

static const struct attributes nginx = {
    .value = {[ATTRIBUTE_COMM] = "nginx",
              [ATTRIBUTE_COMMAND_LINE] = "nginx: worker",
              [ATTRIBUTE_EXECUTABLE] = "/usr/sbin/nginx",
              [ATTRIBUTE_USER] = "www-data",
              [ATTRIBUTE_CGROUP] = "/system.slice/nginx.service",
              [ATTRIBUTE_UNIT] = "nginx.service",
              [ATTRIBUTE_SLICE] = "system.slice",
              [ATTRIBUTE_CONTAINER] = "c0ffee",
              [ATTRIBUTE_CONTAINER_NAME] = "web",
              [ATTRIBUTE_POD] = "web-0",
              [ATTRIBUTE_NAMESPACE] = "prod"}};

/* The captures of "(www)(:)(8)()(x)?(/)(a)(b)(c)". */
static const struct captures found = {.text = "www:8/abc",
                                      .match = {{0, 9},
                                                {0, 3},
                                                {3, 4},
                                                {4, 5},
                                                {5, 5},
                                                {-1, -1},
                                                {5, 6},
                                                {6, 7},
                                                {7, 8},
                                                {8, 9}}};

static bool expand(const char *text, const struct attributes *id,
                   const struct captures *captures, struct group_name *ret) {
  struct config_error reason = {""};

  if (template_check(text, &reason) != 0)
    fail_msg("\"%s\": %s", text, reason.text);
  return template_expand(text, id, captures, ret);
}

TEST(placeholders_stand_for_values) {
  static const struct {
    const char *text, *want;
  } cases[] = {
      {"web", "web"},
      {"%{comm}", "nginx"},
      {"%{unit}", "nginx.service"},
      {"%{container}", "c0ffee"},
      {"%{1}", "www"},
      {"%{9}", "c"},
      {"%{6}%{1}", "www"},
      {"%{1}-pool", "www-pool"},
      {"<%{user}|%{3}|%{user}>", "<www-data|8|www-data>"},
      {"%", "%"},
      {"% {comm}", "% {comm}"},
      {"%%", "%"},
      {"%%%", "%%"},
      {"a%%b", "a%b"},
      {"%%{comm}", "%{comm}"},
      {"%%%{comm}", "%nginx"},
      {"%{comm}%%", "nginx%"},
      {"}{", "}{"},
      {"a\nb", "a\\x0ab"},
  };
  struct group_name name;

  for (size_t i = 0; i < LENGTH(cases); i++)
    if (!expand(cases[i].text, &nginx, &found, &name) ||
        strcmp(name.text, cases[i].want) != 0)
      fail_msg("\"%s\": \"%s\"", cases[i].text, name.text);
}

TEST(a_placeholder_without_value_makes_no_name) {
  static const struct attributes nobody = {.value = {[ATTRIBUTE_COMM] = ""}};
  static const struct captures none = {.text = NULL};
  static const struct {
    const char *name, *text;
    const struct attributes *id;
    const struct captures *captures;
  } cases[] = {
      {"unknown unit", "%{unit}", &nobody, &found},
      {"unknown, behind a known one", "%{1}%{user}", &nobody, &found},
      {"empty comm", "c-%{comm}", &nobody, &found},
      {"no captures at all", "p-%{1}", &nginx, &none},
      {"nobody asked for captures", "p-%{1}", &nginx, NULL},
      {"unmatched optional capture", "p-%{5}", &nginx, &found},
      {"empty capture", "p-%{4}", &nginx, &found},
      {"a slash alone", "%{6}", &nginx, &found},
  };
  struct group_name name, untouched;

  memset(&untouched, 0xaa, sizeof(untouched));
  for (size_t i = 0; i < LENGTH(cases); i++) {
    name = untouched;
    if (expand(cases[i].text, cases[i].id, cases[i].captures, &name))
      fail_msg("%s: \"%s\"", cases[i].name, name.text);
    assert_memory_equal(&name, &untouched, sizeof(name));
  }
}

TEST(malformed_templates_are_refused) {
  static const struct {
    const char *name, *text, *expected;
  } cases[] = {
      {"empty", "", "not empty"},
      {"unterminated name", "a-%{comm", "'}'"},
      {"nothing in it", "%{}", "%{comm}, %{exe}"},
      {"number zero", "%{0}", "%{1} to %{9}, not %{0}"},
      {"number ten", "%{10}", "%{1} to %{9}, not %{10}"},
      {"no placeholder of that name", "%{pid}", "not %{pid}"},
      {"another in it", "%{a%{comm}}", "not %{a%{comm}"},
      {"control bytes", "%{\x1b[2J\n}", "not %{\\x1b[2J\\x0a}"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct config_error reason = {""};

    if (template_check(cases[i].text, &reason) != -EINVAL ||
        !strstr(reason.text, cases[i].expected))
      fail_msg("%s: %s", cases[i].name, reason.text);
  }
}
