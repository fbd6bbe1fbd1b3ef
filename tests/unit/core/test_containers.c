/* SPDX-License-Identifier: MIT */
/* Groups of containers by their names. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define ID(digit) digit digit digit digit digit digit digit digit
#define A ID("a1a1a1a1")
#define B ID("b2b2b2b2")
#define DOCKER(id) "/system.slice/docker-" id ".scope"
#define CRI(id)                                                                \
  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu.slice/"    \
  "cri-containerd-" id ".scope"
#define LINKS "var/log/containers/"

#define WORLD_TEST(name) TEST_WITH(name, setup, world_teardown, struct world *w)

static int setup(void **state) {
  struct world *w;
  int rc = world_setup(state);

  w = *state;
  w->settings.container_root = strdup(w->tree.root);
  return rc;
}

static void put(const struct world *w, uint32_t pid, const char *cgroup) {
  struct fake f = fake_process(pid, "x");

  f.cgroup = cgroup;
  f.private_kb = 100;
  world_put(w, f);
}

static void name_docker(const struct world *w, const char *id,
                        const char *name) {
  char path[160], text[64];

  snprintf(path, sizeof(path), "var/lib/docker/containers/%s/config.v2.json",
           id);
  snprintf(text, sizeof(text), "{\"Name\": \"/%s\"}", name);
  proctree_write(&w->tree, "new", text, strlen(text));
  proctree_write(&w->tree, path, "", 0); /* makes the directory */
  proctree_rename(&w->tree, "new", path);
}

static void name_pod(const struct world *w, const char *name, const char *id) {
  char path[160];

  snprintf(path, sizeof(path), LINKS "%s-%s.log", name, id);
  proctree_write(&w->tree, path, "", 0);
}

/* docker.service is the daemon; a service that runs containers keeps them, as
 * do users. */
WORLD_TEST(host_with_docker_has_its_containers_beside_its_services) {
  put(w, 10, "/system.slice/docker.service");
  put(w, 11, DOCKER(A));
  put(w, 12, DOCKER(A));
  put(w, 13, DOCKER(B));
  put(w, 14, "/system.slice/web.service/libpod-payload-" A);
  put(w, 15,
      "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A
      ".scope");
  put(w, 16, "/lxc.payload.c1");
  put(w, 17, "/user.slice/user-1000.slice/session-1.scope");
  name_docker(w, A, "shop-web-1");
  world_run(w, 1);
  world_assert_members(w, "docker.service=1 shop-web-1=2 b2b2b2b2b2b2=1 "
                          "web.service=1 user@1000.service=1 c1=1 other=1");
}

WORLD_TEST(node_of_kubernetes_has_a_group_for_what_its_pods_have_in_common) {
  put(w, 10, "/system.slice/kubelet.service");
  put(w, 11, CRI(A));
  put(w, 12, CRI(B));
  put(w, 13, CRI(ID("c3c3c3c3")));
  put(w, 14, CRI(ID("d4d4d4d4")));
  name_pod(w, "web-7f-abcde_prod_app", A);
  name_pod(w, "web-7f-fghij_prod_app", B);
  name_docker(w, ID("c3c3c3c3"), "k8s_POD_web-7f-abcde_prod_0f9e_0");
  name_docker(w, ID("d4d4d4d4"), "k8s_POD_web-7f-fghij_prod_8d7c_0");
  world_run(w, 1);
  world_assert_members(w, "kubelet.service=1 prod_app=2 POD=2 other=0");
}

/* The jobs of a runner that has a Docker of its own in a pod. */
WORLD_TEST(containers_in_a_container_of_a_pod_belong_to_it) {
  put(w, 10, CRI(A) "/init");
  put(w, 11, CRI(A) "/docker/" B);
  name_pod(w, "runner-0_ci_dind", A);
  world_run(w, 1);
  world_assert_members(w, "ci_dind=2 other=0");
}

WORLD_TEST(containers_without_a_name_are_counted) {
  const struct diag *d;

  for (uint32_t pid = 10; pid < 14; pid++)
    put(w, pid, pid % 2 ? DOCKER(A) : DOCKER(B));
  put(w, 14, "/lxc.payload.c1");
  name_docker(w, ID("c3c3c3c3"), "web");
  put(w, 15, DOCKER(ID("c3c3c3c3")));
  world_run(w, 1);
  d = world_diag(w, DIAG_CONTAINER_FILE);
  assert_int_equal(d->count, 2);
  assert_int_equal(d->pid, 10);
  assert_int_equal(d->error, ENOENT);
  assert_string_equal(d->file, "config.v2.json of Docker");
}

WORLD_TEST(malformed_file_is_reported_with_its_first_process) {
  const struct diag *d;

  put(w, 10, DOCKER(A));
  proctree_write(&w->tree, "var/lib/docker/containers/" A "/config.v2.json",
                 "{", 1);
  world_run(w, 1);
  world_assert_members(w, "a1a1a1a1a1a1=1");
  d = world_diag(w, DIAG_CONTAINER_FILE);
  assert_int_equal(d->count, 1);
  assert_int_equal(d->pid, 10);
  assert_string_equal(d->file, "config.v2.json");
}
