/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "config/template.h"

#include <errno.h>
#include <stdio.h>
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

/* "(www)(:)(8)()(x)?(/)(a)(b)(c)" has these captures. */
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

#define HEX8 "0123abcd"
#define HEX64 HEX8 HEX8 HEX8 HEX8 HEX8 HEX8 HEX8 HEX8

/* Names of systemd, of Podman's health checks and of Cockpit, and services that
 * look like them. */
TEST(connections_and_runs_are_no_services) {
  static const struct {
    const char *unit, *want; /* NULL: no name */
  } cases[] = {
      {"echo@147486-10.0.0.1:9200-10.0.0.1:51526.service", "echo@.service"},
      {"echo@7-991-10.0.0.1:9200-10.0.0.2:5.service", "echo@.service"},
      {"ssh@3-fe80::1:22-fe80::2:51526.service", "ssh@.service"},
      {"ssh@3-812-::1:22-::1:51526.service", "ssh@.service"},
      {"vm@0-2:1024-3:4000.service", "vm@.service"},
      {"systemd-coredump@3-1234-0.service", "systemd-coredump@.service"},
      {"dump@3-88-1234_5678-0.service", "dump@.service"},
      {"dump@3-unknown.service", "dump@.service"},
      {"dump@3-88-unknown.service", "dump@.service"},
      {"wsinstance-https@" HEX64 ".service", "wsinstance-https@.service"},
      {"run-u123.service", NULL},
      {"run-u7.scope", NULL},
      {"run-4711.service", NULL},
      {"run-p123-i456.service", NULL},
      {"run-r0a1b2c3d4e5f60718293a4b5c6d7e8f9.service", NULL},
      {HEX64 ".service", NULL},
      {HEX64 "-" HEX8 HEX8 ".service", NULL},
      {HEX64 "-startup-" HEX8 ".service", NULL},
      {"postgresql@15-main.service", "postgresql@15-main.service"},
      {"postgresql@9.6-main.service", "postgresql@9.6-main.service"},
      {"getty@tty1.service", "getty@tty1.service"},
      {"user@1000.service", "user@1000.service"},
      {"redis@6379.service", "redis@6379.service"},
      {"shard@1-2.service", "shard@1-2.service"},
      {"tunnel@a:1-b:2.service", "tunnel@a:1-b:2.service"},
      {"pvscan@8:3.service", "pvscan@8:3.service"},
      {"proxy@1-host:80.service", "proxy@1-host:80.service"},
      {"tun@1-hosta:22-hostb:8080.service",
       "tun@1-hosta:22-hostb:8080.service"},
      {"worker@10-0-0-1.service", "worker@10-0-0-1.service"},
      {"dhcp@192-168-1-1.service", "dhcp@192-168-1-1.service"},
      {"proxy@3-0-5.service", "proxy@3-0-5.service"},
      {"is@1-an-unknown.service", "is@1-an-unknown.service"},
      {"run-backup.service", "run-backup.service"},
      {"run-u.service", "run-u.service"},
      {"run-rabbed.service", "run-rabbed.service"},
      {"run-p12-i.service", "run-p12-i.service"},
      {"runner-u1.service", "runner-u1.service"},
      {HEX8 ".service", HEX8 ".service"},
      {HEX64 "0.service", HEX64 "0.service"},
      {"a@.service", "a@.service"},
  };
  struct attributes id = {.uid = 0};
  struct group_name name;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    bool is_named;

    id.value[ATTRIBUTE_UNIT] = cases[i].unit;
    is_named = expand("%{unit_template}", &id, &found, &name);
    if (is_named != !!cases[i].want ||
        (is_named && strcmp(name.text, cases[i].want) != 0))
      fail_msg("%s: \"%s\"", cases[i].unit, is_named ? name.text : "-");
  }
}

TEST(name_with_an_empty_placeholder_is_refused) {
  static const struct attributes nobody = {.value = {[ATTRIBUTE_COMM] = ""}};
  static const struct captures none = {.text = NULL};
  static const struct {
    const char *name, *text;
    const struct attributes *id;
    const struct captures *captures;
  } cases[] = {
      {"unknown unit", "%{unit}", &nobody, &found},
      {"template of none", "%{unit_template}", &nobody, &found},
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

/* --- the name that is made --------------------------------------------------
 */

/* Makes the name of a process with that comm. */
static bool make(const char *comm, struct group_name *ret) {
  const struct attributes id = {.value = {[ATTRIBUTE_COMM] = comm}};

  return template_expand("%{comm}", &id, NULL, ret);
}

/* The name of `len` letters, the last of which is `last`. */
static struct group_name make_long(size_t len, char last) {
  struct group_name n = {.len = 0};
  char text[1025];

  assert_in_range(len, 1, sizeof(text) - 1);
  memset(text, 'a', len);
  text[len - 1] = last;
  text[len] = '\0';
  assert_true(make(text, &n));
  return n;
}

TEST(a_name_is_cleaned_byte_by_byte) {
  static const struct {
    const char *name, *text, *want;
  } cases[] = {
      {"path", "/usr/sbin/nginx", "usr_sbin_nginx"},
      {"one slash in front is dropped", "//a", "_a"},
      {"two slashes alone", "//", "_"},
      {"dots climb nowhere", "../../etc", ".._.._etc"},
      {"newline", "a\nb", "a\\x0ab"},
      {"ESC", "\x1b[2J", "\\x1b[2J"},
      {"first printable one", "\x1f\x20", "\\x1f "},
      {"last printable one", "\x7e\x7f", "~\\x7f"},
  };
  struct group_name n;

  for (size_t i = 0; i < LENGTH(cases); i++)
    if (!make(cases[i].text, &n) || strcmp(n.text, cases[i].want) != 0 ||
        n.len != strlen(cases[i].want))
      fail_msg("%s: \"%s\"", cases[i].name, n.text);
}

TEST(host_is_not_a_valid_group_name) {
  static const struct {
    const char *text;
    bool is_one;
  } cases[] = {{"host", false},  {"/host", false}, {"Host", true},
               {"hosts", true},  {"hos", true},    {"host.service", true},
               {"//host", true}, {"host/", true}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct group_name n;

    if (make(cases[i].text, &n) != cases[i].is_one)
      fail_msg("\"%s\"", cases[i].text);
  }
}

static bool is_cut(const struct group_name *n) {
  size_t digits = strspn(n->text + 111, "0123456789abcdef");

  return n->text[110] == '~' && digits == 16 && strlen(n->text) == 127;
}

TEST(a_name_of_more_than_127_bytes_is_cut_visibly) {
  char hash[18];

  for (size_t len = 1; len <= 1024; len++) {
    struct group_name n = make_long(len, 'z');

    if (len < GROUP_NAME_SIZE) {
      assert_int_equal(strlen(n.text), len);
      assert_int_equal(n.text[len - 1], 'z');
      continue;
    }
    if (!is_cut(&n) || n.len != len || strspn(n.text, "a") != 110)
      fail_msg("%zu bytes: \"%s\"", len, n.text);
    snprintf(hash, sizeof(hash), "~%016jx", (uintmax_t)n.hash);
    assert_string_equal(n.text + 110, hash);
  }
}

/* Graphs are kept under the cut name for years, so it must not move: The
 * authors of FNV-1a have published these vectors. */
TEST(the_hash_is_fnv_1a) {
  struct group_name n;

  assert_true(make("a", &n));
  assert_true(n.hash == UINT64_C(0xaf63dc4c8601ec8c));
  assert_true(make("foobar", &n));
  assert_true(n.hash == UINT64_C(0x85944171f73967e8));
}
