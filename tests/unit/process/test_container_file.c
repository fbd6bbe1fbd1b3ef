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

/* An outcome other than 0 leaves the name alone. */
static int parse(enum container_format format, const char *text, size_t len,
                 const char *id, char ret[CONTAINER_NAME_SIZE]) {
  char *copy = fixture_copy(text, len);
  int rc;

  fixture_taint(ret, CONTAINER_NAME_SIZE);
  rc = container_file_parse(format, copy, len, id, ret);
  if (rc != 0)
    fixture_assert_untouched(ret, CONTAINER_NAME_SIZE);
  free(copy);
  return rc;
}

static void check(enum container_format format, const char *text, int wanted,
                  const char *name) {
  char got[CONTAINER_NAME_SIZE];
  int rc = parse(format, text, strlen(text), ID, got);

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

  assert_int_equal(parse(CONTAINER_DOCKER, text.text, text.len, NULL, name), 0);
  assert_string_equal(name, "shop-web-1");
}

TEST(podman_4_3_names_containers) {
  struct span text = load("podman-containers.json");
  char name[CONTAINER_NAME_SIZE];

  assert_int_equal(parse(CONTAINER_PODMAN, text.text, text.len, ID, name), 0);
  assert_string_equal(name,
                      "pweb2"); /* and not as it was made, in "metadata" */
  assert_int_equal(parse(CONTAINER_PODMAN, text.text, text.len, RM_ID, name),
                   0);
  assert_string_equal(name, "prm");
  assert_int_equal(parse(CONTAINER_PODMAN, text.text, text.len, OTHER_ID, name),
                   -ENOENT);
}

/* Wherever it is cut, the name is whole or unknown. */
TEST(a_file_that_is_cut_short_names_nothing_else) {
  struct span text = load("podman-containers.json");
  char name[CONTAINER_NAME_SIZE];

  for (size_t len = 1; len < text.len; len++) {
    int rc = parse(CONTAINER_PODMAN, text.text, len, RM_ID, name);

    assert_int_equal(rc, len < text.len - 1 ? -EBADMSG : 0);
    if (rc == 0)
      assert_string_equal(name, "prm");
  }
}

TEST(only_the_key_of_the_top_object_counts) {
  check(CONTAINER_DOCKER, "{\"Name\": \"/a\"}", 0, "a");
  check(CONTAINER_DOCKER, "{\"Config\": {\"Name\": \"/b\"}, \"Name\": \"/a\"}",
        0, "a");
  check(CONTAINER_DOCKER, "{\"Config\": {\"Name\": \"/b\"}}", -ENOENT, NULL);
  check(CONTAINER_DOCKER, "{\"Name\": [\"/b\"]}", -ENOENT, NULL);
  check(CONTAINER_DOCKER, "{\"Name\": {\"Name\": \"/b\"}}", -ENOENT, NULL);
  check(CONTAINER_DOCKER, "[{\"Name\": \"/b\"}]", -ENOENT, NULL);
  check(CONTAINER_DOCKER, "{\"name\": \"/b\"}", -ENOENT, NULL);
  check(CONTAINER_DOCKER, "{\"Name\": null}", -ENOENT, NULL);
  check(CONTAINER_DOCKER_ROOT, "{\"debug\": true, \"data-root\": \"/x y/z\"}",
        0, "/x y/z");
  check(CONTAINER_DOCKER_ROOT, "{\"data-root\": \"x\"}", -EBADMSG, NULL);
  check(CONTAINER_DOCKER_ROOT, "{}", -ENOENT, NULL);
}

#define RECORD(id, names) "{\"id\": \"" id "\", \"names\": " names "}"

TEST(names_are_those_of_the_id) {
  check(CONTAINER_PODMAN, "[" RECORD(ID, "[\"a\", \"b\"]") "]", 0, "a");
  check(CONTAINER_PODMAN,
        "[" RECORD(OTHER_ID, "[\"b\"]") "," RECORD(ID, "[\"a\"]") "]", 0, "a");
  check(CONTAINER_PODMAN, "[{\"names\": [\"a\"], \"id\": \"" ID "\"}]", 0, "a");
  check(CONTAINER_PODMAN, "[{\"id\": \"" ID "\"}, {\"names\": [\"b\"]}]",
        -ENOENT, NULL);
  check(CONTAINER_PODMAN, "[" RECORD(ID, "[]") "]", -ENOENT, NULL);
  check(CONTAINER_PODMAN, "[" RECORD(ID, "\"b\"") "]", -ENOENT, NULL);
  check(CONTAINER_PODMAN, "[" RECORD(ID, "[[\"b\"]]") "]", -ENOENT, NULL);
  check(CONTAINER_PODMAN, "[{\"x\": " RECORD(ID, "[\"b\"]") "}]", -ENOENT,
        NULL);
  check(CONTAINER_PODMAN, RECORD(ID, "[\"b\"]"), -ENOENT, NULL);
  check(CONTAINER_PODMAN, "[]", -ENOENT, NULL);
  check(CONTAINER_PODMAN, "", -ENOENT, NULL);
}

TEST(what_is_no_name_is_refused) {
  static const char *const names[] = {"",     "/",        "web",
                                      "/a/b", "/a ",      "/\\u0000",
                                      "/\\n", "/\\u00e4", "/%{unit}"};
  char text[2 * CONTAINER_NAME_SIZE], longest[CONTAINER_NAME_SIZE] = "";

  for (size_t i = 0; i < LENGTH(names); i++) {
    snprintf(text, sizeof(text), "{\"Name\": \"%s\"}", names[i]);
    check(CONTAINER_DOCKER, text, -EBADMSG, NULL);
  }
  memset(longest, 'x', sizeof(longest) - 2);
  snprintf(text, sizeof(text), "{\"Name\": \"/%s\"}", longest);
  check(CONTAINER_DOCKER, text, 0, longest);
  longest[sizeof(longest) - 2] = 'x';
  snprintf(text, sizeof(text), "{\"Name\": \"/%.*s\"}",
           (int)sizeof(longest) - 1, longest);
  check(CONTAINER_DOCKER, text, -EBADMSG, NULL);
}

TEST(what_is_no_json_is_refused) {
  static const char *const texts[] = {"",
                                      " ",
                                      "{",
                                      "{\"Name\": \"/a",
                                      "nonsense",
                                      "{\"Name\": \"/a\"",
                                      "{\"Name\": \"\xff\"}",
                                      "{} {}"};

  for (size_t i = 0; i < LENGTH(texts); i++)
    check(CONTAINER_DOCKER, texts[i], -EBADMSG, NULL);
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
  check_link("_prod_nginx-" ID ".log", "-");
  check_link("web-0_prod_-" ID ".log", "-");
  check_link("web-0_prod_" ID ".log", "-");
  check_link("nginx-" ID "_prod_.log", "-");
  check_link("web_prod_a_b-" ID ".log", "prod web a_b");
  check_link("x.log", "-");
  check_link("", "-");
}

/* A file name has 255 bytes at most: kubelet cuts the id. */
TEST(links_of_kubelet_may_have_a_part_of_the_id) {
  check_link("web-0_prod_nginx-eaef4aa9cb29.log", "prod web-0 nginx");
  check_link("web-0_prod_nginx-eaef4aa9cb2.log", "-");
  check_link("web-0_prod_nginx-eaef4aa9cb28.log", "-");
}
