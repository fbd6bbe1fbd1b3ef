/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "process/container_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define ID "eaef4aa9cb29fbd7a3a0970a963c1d6a91abd5b32348dd83a5d29398383920e5"
#define RM_ID "387c7cc5950190255cec43e3cd8b138940635fac2d7c77c5fae3e33f4ab3c315"
#define OTHER_ID                                                               \
  "0000000000000000000000000000000000000000000000000000000000000000"

#define DOCKER "Name", NULL
#define PODMAN "names", ID

/* An outcome other than 0 leaves the name alone. */
static int parse(const char *key, const char *id, const char *text, size_t len,
                 char ret[CONTAINER_NAME_SIZE]) {
  char *copy = fixture_copy(text, len);
  int rc;

  fixture_taint(ret, CONTAINER_NAME_SIZE);
  rc = container_file_parse(key, id, copy, len, ret);
  if (rc != 0)
    fixture_assert_untouched(ret, CONTAINER_NAME_SIZE);
  free(copy);
  return rc;
}

static void check(const char *key, const char *id, const char *text, int wanted,
                  const char *name) {
  char got[CONTAINER_NAME_SIZE];
  int rc = parse(key, id, text, strlen(text), got);

  if (rc != wanted || (rc == 0 && strcmp(got, name) != 0))
    fail_msg("%s: %d", text, rc);
}

static struct span load(const char *name) {
  char path[64];

  snprintf(path, sizeof(path), "../containers/%s", name);
  return fixture_load(path);
}

TEST(docker_20_10_names_a_container) {
  struct span text = load("docker-config.v2.json");
  char name[CONTAINER_NAME_SIZE];

  assert_int_equal(parse(DOCKER, text.text, text.len, name), 0);
  assert_string_equal(name, "/shop-web-1");
}

TEST(podman_4_3_names_containers) {
  struct span text = load("podman-containers.json");
  char name[CONTAINER_NAME_SIZE];

  assert_int_equal(parse("names", ID, text.text, text.len, name), 0);
  assert_string_equal(name,
                      "pweb2"); /* and not as it was made, in "metadata" */
  assert_int_equal(parse("names", RM_ID, text.text, text.len, name), 0);
  assert_string_equal(name, "prm");
  assert_int_equal(parse("names", OTHER_ID, text.text, text.len, name),
                   -ENOENT);
}

TEST(only_the_key_of_the_top_object_counts) {
  check(DOCKER, "{\"Name\": \"/a\"}", 0, "/a");
  check(DOCKER, "{\"Config\": {\"Name\": \"/b\"}, \"Name\": \"/a\"}", 0, "/a");
  check(DOCKER, "{\"Config\": {\"Name\": \"/b\"}}", -ENOENT, NULL);
  check(DOCKER, "{\"Name\": [\"/b\"]}", -ENOENT, NULL);
  check(DOCKER, "{\"Name\": {\"Name\": \"/b\"}}", -ENOENT, NULL);
  check(DOCKER, "[{\"Name\": \"/b\"}]", -ENOENT, NULL);
  check(DOCKER, "{\"name\": \"/b\"}", -ENOENT, NULL);
  check(DOCKER, "{\"Name\": null}", -ENOENT, NULL);
}

#define RECORD(id, names) "{\"id\": \"" id "\", \"names\": " names "}"

TEST(name_belongs_to_the_id) {
  check(PODMAN, "[" RECORD(ID, "[\"a\", \"b\"]") "]", 0, "a");
  check(PODMAN, "[" RECORD(OTHER_ID, "[\"b\"]") "," RECORD(ID, "[\"a\"]") "]",
        0, "a");
  check(PODMAN, "[{\"names\": [\"a\"], \"id\": \"" ID "\"}]", 0, "a");
  check(PODMAN, "[{\"id\": \"" ID "\"}, {\"names\": [\"b\"]}]", -ENOENT, NULL);
  check(PODMAN, "[" RECORD(ID, "[]") "]", -ENOENT, NULL);
  check(PODMAN, "[" RECORD(ID, "\"b\"") "]", -ENOENT, NULL);
  check(PODMAN, "[" RECORD(ID, "[[\"b\"]]") "]", -ENOENT, NULL);
  check(PODMAN, "[{\"x\": " RECORD(ID, "[\"b\"]") "}]", -ENOENT, NULL);
  check(PODMAN, RECORD(ID, "[\"b\"]"), -ENOENT, NULL);
  check(PODMAN, "[]", -ENOENT, NULL);
  check(PODMAN, "", -ENOENT, NULL);
}

TEST(a_name_is_neither_empty_nor_cut) {
  char text[2 * CONTAINER_NAME_SIZE], longest[CONTAINER_NAME_SIZE + 1] = "";

  check(DOCKER, "{\"Name\": \"\"}", -EBADMSG, NULL);
  check(DOCKER, "{\"Name\": \"a\\u0000\"}", -EBADMSG, NULL);
  check(DOCKER, "{\"Name\": \"a\\n/%{unit} \\u00e4\"}", 0,
        "a\n/%{unit} \303\244");
  for (size_t len = CONTAINER_NAME_SIZE - 1; len <= CONTAINER_NAME_SIZE;
       len++) {
    memset(longest, 'x', len);
    snprintf(text, sizeof(text), "{\"Name\": \"%s\"}", longest);
    check(DOCKER, text, len < CONTAINER_NAME_SIZE ? 0 : -EBADMSG, longest);
  }
}

TEST(text_that_is_not_json_is_refused) {
  static const char *const texts[] = {"",
                                      " ",
                                      "{",
                                      "{\"Name\": \"/a",
                                      "nonsense",
                                      "{\"Name\": \"/a\"",
                                      "{\"Name\": \"\xff\"}",
                                      "{} {}"};

  for (size_t i = 0; i < LENGTH(texts); i++)
    check(DOCKER, texts[i], -EBADMSG, NULL);
}

static void check_link(const char *file, const char *wanted) {
  struct container_names names = {.name = ""};
  char got[3 * CONTAINER_NAME_SIZE] = "-";

  if (container_file_kubelet(file, ID, &names))
    snprintf(got, sizeof(got), "%s %s %s", names.namespace, names.pod,
             names.name);
  if (strcmp(got, wanted) != 0)
    fail_msg("%s: %s", file, got);
}

TEST(links_of_kubelet_name_pod_namespace_and_container) {
  check_link("web-0_prod_nginx-" ID ".log", "prod web-0 nginx");
  check_link("coredns-5d78c9869d-x2l4p_kube-system_coredns-" ID ".log",
             "kube-system coredns-5d78c9869d-x2l4p coredns");
  check_link("etcd-a.example.org_kube-system_etcd-main-" ID ".log",
             "kube-system etcd-a.example.org etcd-main");
  check_link("web-0_prod_nginx-" OTHER_ID ".log", "-");
  check_link("web-0_prod_nginx-" ID, "-");
  check_link("web-0_prod_nginx-" ID ".log.1", "-");
  check_link("web-0_prod_nginx-" ID "0.log", "-");
  check_link("web-0_nginx-" ID ".log", "-");
  check_link("web-0_prod_" ID ".log", "-");
  check_link("nginx-" ID "_prod_.log", "-");
  check_link("web_prod_a_b-" ID ".log", "prod web a_b");
  check_link("x.log", "-");
  check_link("", "-");
}

TEST(annotations_are_in_an_object_of_the_top) {
  static const char key[] = "annotations/a.b/c";

  check(key, NULL, "{\"annotations\": {\"x\": \"y\", \"a.b/c\": \"z\"}}", 0,
        "z");
  check(key, NULL, "{\"a.b/c\": \"z\"}", -ENOENT, NULL);
  check(key, NULL, "{\"x\": {\"y\": {\"a.b/c\": \"z\"}}}", -ENOENT, NULL);
  /* A value of another type, and then a string at the same depth. */
  check(key, NULL, "{\"annotations\": {\"a.b/c\": 1}, \"x\": [\"z\"]}", -ENOENT,
        NULL);
}

TEST(setting_is_the_value_of_a_line) {
  static const struct {
    const char *text;
    int rc;
    const char *value;
  } cases[] = {
      {"graphroot = \"/a b\"\n", 0, "/a b"},
      {"x = 1\n\tgraphroot='/a'\n", 0, "/a"},
      {"graphroot='/a'\r\n", 0, "/a"},
      {"graphroot = \"/a#b\" # word", 0, "/a#b"},
      {"graphroot = \"/a\"\ngraphroot = \"/b\"\n", 0, "/a"},
      {"# graphroot = \"/a\"\n", -ENOENT, NULL},
      {"graphroots = \"/a\"\n", -ENOENT, NULL},
      {"graphroot \"/a\"\n", -ENOENT, NULL},
      {"graphroot = \"\"\n", -EBADMSG, NULL},
      {"graphroot =\n", -EBADMSG, NULL},
      {"graphroot = /a\n", -EBADMSG, NULL},
      {"", -ENOENT, NULL},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    size_t len = strlen(cases[i].text);
    char *copy = fixture_copy(cases[i].text, len), got[CONTAINER_NAME_SIZE];
    int rc = container_file_setting("graphroot", (struct span){copy, len}, got);

    if (rc != cases[i].rc || (rc == 0 && strcmp(got, cases[i].value) != 0))
      fail_msg("%s: %d", cases[i].text, rc);
    free(copy);
  }
}

TEST(name_that_kubelet_has_given_is_split) {
  static const struct {
    const char *text, *name, *pod, *namespace;
  } cases[] = {
      {"k8s_app_web-0_prod_0f9e_0", "app", "web-0", "prod"},
      {"k8s_POD_web-0_prod_0f9e_0", "POD", "", ""},
      {"k8s_app_web-0_prod_0f9e", NULL, NULL, NULL},
      {"k8s_app_web-0_prod_0f9e_0_1", NULL, NULL, NULL},
      {"k9s_app_web-0_prod_0f9e_0", NULL, NULL, NULL},
      {"web", NULL, NULL, NULL},
      {"", NULL, NULL, NULL},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct container_names names = {.pod = "p"}, before;

    strcpy(names.name, cases[i].text);
    before = names;
    if (container_file_split(&names) != (cases[i].name != NULL))
      fail_msg("%s", cases[i].text);
    if (!cases[i].name) {
      assert_memory_equal(&names, &before, sizeof(names));
      continue;
    }
    assert_string_equal(names.name, cases[i].name);
    assert_string_equal(names.pod, cases[i].pod);
    assert_string_equal(names.namespace, cases[i].namespace);
  }
}
