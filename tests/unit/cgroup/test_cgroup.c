/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>

#include "cgroup/cgroup.h"

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FIXTURE_PARSER(cgroup_parse, struct span)

static bool is_equal(struct span s, const char *text) {
  return s.len == strlen(text) && memcmp(s.text, text, s.len) == 0;
}

TEST(most_specific_line_is_chosen) {
  static const struct {
    const char *name, *text;
    size_t len;
    const char *path;
  } cases[] = {
      {"v2", TEXT("0::/system.slice/x.service\n"), "/system.slice/x.service"},
      {"v1, systemd before memory",
       TEXT("2:memory:/m\n1:name=systemd:/system.slice/x.service\n"),
       "/system.slice/x.service"},
      {"v1 without systemd", TEXT("3:cpu:/c\n2:memory:/m\n1:pids:/p\n"), "/m"},
      {"memory beside others", TEXT("2:cpu,memory,pids:/m\n0::/u\n"), "/m"},
      {"hybrid, systemd before unified", TEXT("1:name=systemd:/s\n0::/u\n"),
       "/s"},
      {"hybrid, memory before unified",
       TEXT("0::/system.slice/containerd.service\n4:memory:/docker/1\n"),
       "/docker/1"},
      {"a root yields to a place in another hierarchy",
       TEXT("9:name=systemd:/\n4:memory:/docker/1\n0::/\n"), "/docker/1"},
      {"the root of memory too", TEXT("4:memory:/\n0::/user.slice/x.scope\n"),
       "/user.slice/x.scope"},
      {"roots alone", TEXT("4:memory:/\n1:name=systemd:/\n0::/\n"), "/"},
      {"the first of two alike", TEXT("2:memory:/a\n1:memory:/b\n"), "/a"},
      {"colons in the path", TEXT("0::/a:b:c\n"), "/a:b:c"},
      {"deleted", TEXT("0::/system.slice/x.service (deleted)\n"),
       "/system.slice/x.service"},
      {"deleted twice: one is its name", TEXT("0::/x (deleted) (deleted)\n"),
       "/x (deleted)"},
      {"malformed lines are passed over",
       TEXT("\nx\n:\n::\n1:\n1:memory\n1:memory:\n1:memory:m\n-1:memory:/m\n"
            "99999999999:memory:/m\n 1:memory:/m\n1 :memory:/m\n0::/u\n"),
       "/u"},
      {"near-miss names",
       TEXT("8:name=systemdx:/a\n7:xname=systemd:/b\n6:systemd:/c\n"
            "5:memoryx:/d\n4:name=memory:/e\n3:Memory:/f\n0::/u\n"),
       "/u"},
      {"an unnamed line is unified only with id 0", TEXT("1::/x\n0::/u\n"),
       "/u"},
      {"a line cut short is passed over",
       TEXT("2:memory:/m\n1:name=systemd:/system.sl"), "/m"},
  };
  struct span path;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    if (parse(cases[i].text, cases[i].len, &path) != 0)
      fail_msg("%s: rejected", cases[i].name);
    if (!is_equal(path, cases[i].path))
      fail_msg("%s: \"%.*s\"", cases[i].name, (int)path.len, path.text);
  }
}

TEST(a_text_without_a_usable_line_is_rejected) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"newline alone", TEXT("\n")},
      {"no newline", TEXT("0::/x")},
      {"no path", TEXT("0::\n")},
      {"relative path", TEXT("0::x\n")},
      {"no id", TEXT("::/x\n")},
      {"other hierarchies", TEXT("3:cpu,cpuacct:/x\n2:name=other:/x\n")},
      {"NUL before the path", TEXT("0::\0/x\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}

TEST(captures_are_placed) {
  static const struct {
    const char *file, *path;
  } cases[] = {
      {"cgroup-6.18-hybrid", "/supervisor/worker"},
      {"cgroup-v1-service", "/system.slice/docker.service"},
      {"cgroup-v2", "/user.slice/user-1000.slice/user@1000.service/user.slice/"
                    "podman-6696.scope"},
  };
  struct span path;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct span text = fixture_load(cases[i].file);

    assert_int_equal(parse(text.text, text.len, &path), 0);
    if (!is_equal(path, cases[i].path))
      fail_msg("%s: \"%.*s\"", cases[i].file, (int)path.len, path.text);
  }
}

typedef bool (*find_function)(struct span path, struct span *ret);

/* Each line of cgroup-paths has a name, the path, and the attributes of the
 * path. */
static const struct {
  const char *name;
  find_function find;
} columns[] = {{"unit", cgroup_unit}, {"slice", cgroup_slice}};

static struct span next_column(struct cursor *s) {
  const char *start = s->at += *s->at == '\t';

  while (!cursor_is_done(s) && *s->at != '\t')
    s->at++;
  return (struct span){start, (size_t)(s->at - start)};
}

/* All containers, the outermost first: ID, or ID=NAME if they differ. */
static const char *list_containers(struct span path) {
  static char text[CGROUP_NESTED_MAX * 600];
  struct cgroup_containers found;
  size_t len = 0;

  fixture_taint(&found, sizeof(found));
  cgroup_parse_containers(path, &found);
  for (size_t i = 0; i < found.n; i++) {
    const struct cgroup_container *c = &found.at[i];

    assert_int_equal(c->has_digits, strspn(c->id, "0123456789abcdef") == 64);
    assert_true(c->end <= path.len && c->runtime != CGROUP_NO_CONTAINER);
    len += (size_t)sprintf(text + len, "%s%s%s%s", i ? " > " : "", c->id,
                           c->name_at ? "=" : "",
                           c->name_at ? c->id + c->name_at : "");
  }
  return len ? text : "-";
}

static void check_path(struct span line) {
  struct cursor s = cursor_begin(line.text, line.len);
  struct span name = next_column(&s), path = next_column(&s);
  char *copy = fixture_copy(path.text, path.len);

  for (size_t i = 0; i < LENGTH(columns); i++) {
    struct span wanted = next_column(&s), found;
    bool has = !is_equal(wanted, "-");

    fixture_taint(&found, sizeof(found));
    if (columns[i].find((struct span){copy, path.len}, &found) != has)
      fail_msg("%.*s: %s %s", (int)name.len, name.text, columns[i].name,
               has ? "not found" : "found");
    if (!has)
      fixture_assert_untouched(&found, sizeof(found));
    else if (found.len != wanted.len ||
             memcmp(found.text, wanted.text, found.len) != 0)
      fail_msg("%.*s: %s is \"%.*s\"", (int)name.len, name.text,
               columns[i].name, (int)found.len, found.text);
  }
  if (!is_equal(next_column(&s),
                list_containers((struct span){copy, path.len})))
    fail_msg("%.*s: containers \"%s\"", (int)name.len, name.text,
             list_containers((struct span){copy, path.len}));
  free(copy);
}

TEST(a_path_names_unit_slice_and_container) {
  struct span text = fixture_load("cgroup-paths"), line;
  struct cursor s = cursor_begin(text.text, text.len);

  while (parse_line(&s, &line))
    check_path(line);
}

/* psi.rst: the averages are percentages, and the total is in microseconds. */
TEST(pressure_is_the_total_of_its_line) {
#define SOME "some avg10=1.50 avg60=0.20 avg300=0.00 total=558069\n"
#define FULL "full avg10=0.00 avg60=0.00 avg300=0.00 total=11695\n"
  static const struct {
    const char *text, *line;
    bool is_known;
    uint64_t us;
  } cases[] = {{SOME FULL, "some", true, 558069},
               {SOME FULL, "full", true, 11695},
               {SOME, "full", false, 0},
               {"some total=7\n", "some", true, 7},
               {"some total=18446744073709551615\n", "some", true, UINT64_MAX},
               {"some total=18446744073709551616\n", "some", false, 0},
               {"some avg10=1.00 subtotal=7\n", "some", false, 0},
               {"something total=7\n", "some", false, 0},
               {"some total=7us\n", "some", false, 0},
               {"some total=\n", "some", false, 0},
               {"some\n", "some", false, 0},
               /* It was cut short. */
               {"some avg10=0.00 total=55", "some", false, 0},
               {"", "some", false, 0}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    size_t len = strlen(cases[i].text);
    char *copy = fixture_copy(cases[i].text, len);
    uint64_t us = 0;

    if (cgroup_parse_pressure((struct span){copy, len}, cases[i].line, &us) !=
            cases[i].is_known ||
        us != cases[i].us)
      fail_msg("\"%s\": %ju", cases[i].text, (uintmax_t)us);
    free(copy);
  }
}

TEST(a_key_is_a_whole_word_of_a_line) {
  static const struct {
    const char *text;
    bool is_known;
    uint64_t value;
  } cases[] = {{"oom_kill 3\n", true, 3},
               {"oom 7\noom_kill 3\noom_group_kill 9\n", true, 3},
               {"oom_kill 0\n", true, 0},
               {"oom_kill_disable 1\nunder_oom 0\noom_kill 2\n", true, 2},
               {"oom_kill 18446744073709551615\n", true, UINT64_MAX},
               {"oom_kill 18446744073709551616\n", false, 0},
               {"oom_kills 3\n", false, 0},
               {"xoom_kill 3\n", false, 0},
               {" oom_kill 3\n", false, 0},
               {"oom_kill  3\n", false, 0},
               {"oom_kill -3\n", false, 0},
               {"oom_kill 3 kB\n", false, 0},
               {"oom_kill\n", false, 0},
               /* It was cut short. */
               {"oom_kill 3", false, 0},
               {"", false, 0}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    size_t len = strlen(cases[i].text);
    char *copy = fixture_copy(cases[i].text, len);
    uint64_t value = 0;

    if (cgroup_parse_keyed((struct span){copy, len}, "oom_kill", &value) !=
            cases[i].is_known ||
        value != cases[i].value)
      fail_msg("\"%s\": %ju", cases[i].text, (uintmax_t)value);
    free(copy);
  }
}
