/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "process/container_names.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proctree.h"

#define ID "eaef4aa9cb29fbd7a3a0970a963c1d6a91abd5b32348dd83a5d29398383920e5"
#define SHORT "eaef4aa9cb29"
#define OTHER_ID                                                               \
  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define SCOPE "/system.slice/docker-" ID ".scope"
#define POD "/kubepods.slice/kubepods-podu.slice/cri-containerd-" ID ".scope"
#define CONFIG "var/lib/docker/containers/" ID "/config.v2.json"
#define STORAGE "var/lib/containers/storage/"
#define PODMAN STORAGE "overlay-containers/"
#define LINKS "var/log/containers/"

#define NOBODY 65534

struct fixture {
  struct proctree tree;
  struct container_cache cache;
  uint64_t now_ns;
};

static void begin(struct fixture *f) {
  *f = (struct fixture){.now_ns = 1000 * NS};
  proctree_make(&f->tree);
  container_cache_init(&f->cache, f->tree.root);
}

static void done(struct fixture *f) {
  container_cache_done(&f->cache);
  proctree_remove(&f->tree);
}

TEST_OBJECT(struct fixture, begin, done)
#define NAMES_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* Puts another file in the place of the one that is there. */
static void put(const struct fixture *f, const char *path, const char *text) {
  proctree_write(&f->tree, "new", text, strlen(text));
  proctree_write(&f->tree, path, "", 0); /* makes the directory */
  proctree_rename(&f->tree, "new", path);
}

static void put_docker(const struct fixture *f, const char *name) {
  char text[128];

  snprintf(text, sizeof(text), "{\"ID\": \"" ID "\", \"Name\": \"/%s\"}", name);
  put(f, CONFIG, text);
}

static void put_podman(const struct fixture *f, const char *path,
                       const char *id, const char *name) {
  char text[512];

  snprintf(text, sizeof(text), "[{\"id\": \"%s\", \"names\": [\"%s\"]}]", id,
           name);
  put(f, path, text);
}

static struct span span_of(const char *text) {
  return (struct span){text, strlen(text)};
}

/* "name", or "namespace/pod/name", or "-EBADMSG file name". */
static const char *find(struct fixture *f, const char *path) {
  static char text[4 * CONTAINER_NAME_SIZE];
  struct cgroup_containers containers;
  struct container_names names;
  const char *file = NULL;
  int rc;

  cgroup_parse_containers(span_of(path), &containers);
  assert_true(containers.n > 0);
  rc = container_names_find(&f->cache, span_of(path), &containers, f->now_ns,
                            &names, &file);
  if (rc < 0)
    snprintf(text, sizeof(text), "-%s %s %s", error_name(-rc), file,
             names.name);
  else if (names.pod[0] || names.namespace[0])
    snprintf(text, sizeof(text), "%s/%s/%s", names.namespace, names.pod,
             names.name);
  else
    snprintf(text, sizeof(text), "%s", names.name);
  return text;
}

static void expect(struct fixture *f, const char *path, const char *wanted) {
  assert_string_equal(find(f, path), wanted);
}

/* No file has the name. */
static void expect_none(struct fixture *f, const char *path,
                        const char *looked_for) {
  char wanted[128];

  snprintf(wanted, sizeof(wanted), "-ENOENT %s " SHORT, looked_for);
  expect(f, path, wanted);
}

#define OF_DOCKER "config.v2.json of Docker"
#define OF_PODMAN "containers.json of Podman"
#define OF_POD "a link of kubelet, config.json of containerd"
#define OF_ANY "a file of Docker, Podman or kubelet"

NAMES_TEST(without_a_file_the_name_is_twelve_digits) {
  expect_none(f, SCOPE, OF_DOCKER);
  expect(f, SCOPE, SHORT); /* reported once in a cycle */
  f->now_ns++;
  expect_none(f, "/docker/" ID, OF_DOCKER);
  f->now_ns++;
  expect_none(f, POD, OF_POD);
  f->now_ns++;
  expect_none(f, "/machine.slice/libpod-" ID ".scope", OF_PODMAN);
  f->now_ns++;
  expect_none(f, "/system.slice/nerdctl-" ID ".scope", "names of nerdctl");
  put_docker(f, "web"); /* the system's, and no file of an unknown user */
  expect_none(f, "/user.slice/user-4294967294.slice/x/" ID, OF_ANY);
}

NAMES_TEST(a_container_without_id_has_its_own_name) {
  expect(f, "/default/redis", "redis");
  expect(f, "/nomad.slice/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0.api.scope",
         "api");
  expect(f, "/machine.slice/machine-lxc\\x2d7\\x2dweb.scope", "web");
  assert_int_equal(f->cache.n, 0);
  expect(f, "/lxc.payload.c1", "c1");
}

/* A control group of the same name was left by an earlier start. */
NAMES_TEST(number_that_lxc_appends_is_no_part_of_the_name) {
  expect(f, "/lxc.payload.web-1", "web-1"); /* no folder shows which */
  put(f, "var/lib/lxc/web/config", "");
  put(f, "var/lib/lxc/db-2/config", "");
  put(f, "var/lib/incus/containers/proj_x/backup.yaml", "");
  f->now_ns++;
  expect(f, "/lxc.payload.web-1", "web");
  expect(f, "/lxc/web-999/init.scope", "web");
  expect(f, "/lxc.payload.web", "web");
  expect(f, "/lxc.payload.web-1000", "web-1000");
  expect(f, "/lxc.payload.web-01", "web-01");
  expect(f, "/lxc.payload.web-x", "web-x");
  expect(f, "/lxc.payload.db-2", "db-2");
  expect(f, "/lxc.payload.db-2-1", "db-2");
  expect(f, "/lxc.payload.proj_x-1", "proj_x");
  expect(f, "/lxc.payload.-1", "-1");
  expect(f, "/machine.slice/machine-web-1.scope", "web-1");
}

/* Which may be a link. */
NAMES_TEST(docker_names_are_below_the_data_root_of_daemon_json) {
  char path[256];

  put(f, "etc/docker/real.json", "{\"data-root\": \"/data/docker\"}");
  snprintf(path, sizeof(path), "%s/etc/docker/daemon.json", f->tree.root);
  assert_int_equal(symlink("real.json", path), 0);
  put(f, "data/docker/containers/" ID "/config.v2.json",
      "{\"Name\": \"/elsewhere\"}");
  expect(f, "/docker/" ID, "elsewhere");
}

NAMES_TEST(daemon_json_without_a_data_root_leaves_the_default) {
  put(f, "etc/docker/daemon.json", "{\"debug\": true}");
  put_docker(f, "web");
  expect(f, SCOPE, "web");
}

#define DATA "/containers/" ID "/config.v2.json"

static void put_data(struct fixture *f, const char *root, const char *name) {
  char path[512], text[64];

  snprintf(path, sizeof(path), "%s" DATA, root);
  snprintf(text, sizeof(text), "{\"Name\": \"/%s\"}", name);
  put(f, path, text);
}

NAMES_TEST(docker_has_its_names_where_its_settings_say) {
  put(f, "etc/docker/daemon.json", "{\"graph\": \"/old/docker/\"}");
  put_data(f, "old/docker", "graph");
  expect(f, SCOPE, "graph");
}

/* daemon.json has {"userns-remap": "default"}. */
NAMES_TEST(docker_with_user_namespaces_has_a_folder_for_their_ids) {
  put_data(f, "var/lib/docker/no.numbers", "other");
  expect_none(f, SCOPE, OF_DOCKER);
  put_data(f, "var/lib/docker/100000.100000", "remapped");
  f->now_ns++;
  expect(f, SCOPE, "remapped");
}

NAMES_TEST(docker_as_a_snap_has_its_names_in_the_snap) {
  put_data(f, "var/snap/docker/common/var-lib-docker", "snap");
  expect(f, SCOPE, "snap");
  put(f, "var/snap/docker/current/config/daemon.json",
      "{\"data-root\": \"/srv/snap\"}");
  proctree_unlink(&f->tree, "var/snap/docker/common/var-lib-docker" DATA);
  put_data(f, "srv/snap", "moved");
  f->now_ns++;
  expect(f, SCOPE, "moved");
}

NAMES_TEST(nerdctl_has_a_file_for_each_name) {
  put(f, "var/lib/nerdctl/1935db59/names/default/db", OTHER_ID);
  put(f, "var/lib/nerdctl/1935db59/names/default/short", "eaef4aa9cb29");
  put(f, "var/lib/nerdctl/1935db59/names/default/web", ID "\n");
  put(f, "var/lib/nerdctl/1935db59/containers/default/" ID "/log", ID);
  expect(f, "/system.slice/nerdctl-" ID ".scope", "web");
  assert_string_equal(find(f, "/default/" OTHER_ID), "db");
  proctree_unlink(&f->tree, "var/lib/nerdctl/1935db59/names/default/web");
  container_cache_done(&f->cache);
  container_cache_init(&f->cache, f->tree.root);
  expect_none(f, "/system.slice/nerdctl-" ID ".scope", "names of nerdctl");
}

NAMES_TEST(nerdctl_has_its_names_where_its_settings_say) {
  put(f, "etc/nerdctl/nerdctl.toml",
      "debug = false\n data_root = '/srv/n' # away\n");
  put(f, "srv/n/1935db59/default/web", ID); /* of 2.0 */
  expect(f, "/default/" ID, "web");
}

NAMES_TEST(podman_has_its_names_where_its_settings_say) {
  put(f, "usr/share/containers/storage.conf",
      "[storage]\ngraphroot = \"/usr/share/wrong\"\n");
  put(f, "etc/containers/storage.conf",
      "[storage]\ndriver = \"zfs\"\n# graphroot = \"/wrong\"\n"
      "graphroot = \"/data/containers/storage\"\n");
  put_podman(f, "data/containers/storage/zfs-containers/containers.json", ID,
             "away");
  expect(f, "/machine.slice/libpod-" ID ".scope", "away");
}

NAMES_TEST(podman_names_are_in_either_of_two_files) {
  expect_none(f, "/machine.slice/libpod-" ID ".scope", OF_PODMAN);
  f->now_ns++;
  put_podman(f, PODMAN "volatile-containers.json", ID, "rm");
  expect(f, "/machine.slice/libpod-" ID ".scope", "rm");
  put_podman(f, PODMAN "containers.json", OTHER_ID, "kept");
  assert_string_equal(find(f, "/machine.slice/libpod-" OTHER_ID ".scope"),
                      "kept");
}

NAMES_TEST(podman_names_its_folder_after_the_driver_of_its_storage) {
  put_podman(f, STORAGE "vfs-containers/containers.json", ID, "vfs");
  expect(f, "/machine.slice/libpod-" ID ".scope", "vfs");
  put_podman(f, STORAGE "btrfs-containers/containers.json", OTHER_ID, "btrfs");
  assert_string_equal(find(f, "/machine.slice/libpod-" OTHER_ID ".scope"),
                      "btrfs");
}

/* As cgroupfs shows them in the cgroup namespace of another pod. */
NAMES_TEST(pods_are_known_where_their_path_is_out_of_sight) {
  put(f, LINKS "web-0_prod_nginx-" ID ".log", "");
  expect(f, "/../../podu/" ID, "prod/web-0/nginx");
  assert_string_equal(find(f, "/../../podu/" OTHER_ID),
                      "-ENOENT " OF_ANY " 0123456789ab");
}

/* kubelet makes no link where a container's log is no file, or before it is
 * there, and cuts the id of a pod with a long name. */
NAMES_TEST(a_container_of_a_pod_without_a_link_may_be_any) {
  expect_none(f, POD, OF_POD);
  put(f, LINKS "web-0_prod_nginx-" OTHER_ID ".log", "");
  put(f, LINKS "web-0_prod_nginx-eaef4aa9cb2.log", "");
  f->now_ns++;
  expect_none(f, POD, OF_POD);
  put(f, LINKS "web-0_prod_nginx-" ID ".log", "");
  expect(f, POD, SHORT);
  f->now_ns++;
  expect(f, POD, "prod/web-0/nginx");
}

NAMES_TEST(docker_has_the_names_of_kubelet) {
  put_docker(f, "k8s_app_web-5d9_prod_0f9e-8d7c_0");
  expect(f, "/kubepods.slice/kubepods-podu.slice/docker-" ID ".scope",
         "prod/web-5d9/app");
  put_docker(f, "k8s_POD_web-5d9_prod_0f9e-8d7c_0");
  f->now_ns++;
  expect(f, "/kubepods.slice/kubepods-podu.slice/docker-" ID ".scope", "POD");
}

NAMES_TEST(cri_o_has_the_names_of_kubelet) {
  put_podman(f, PODMAN "containers.json", ID, "k8s_POD_web-0_prod_u_0");
  expect(f, "/kubepods.slice/kubepods-podu.slice/crio-" ID ".scope", "POD");
  put_podman(f, PODMAN "containers.json", ID, "k8s_app_web-0_prod_u_0");
  f->now_ns++;
  expect(f, "/kubepods.slice/kubepods-podu.slice/crio-" ID ".scope",
         "prod/web-0/app");
}

#define CRI "\"io.kubernetes.cri."
#define BUNDLE "io.containerd.runtime.v2.task/k8s.io/" ID "/config.json"

static void put_bundle(const struct fixture *f, const char *path,
                       const char *annotations) {
  char text[512];

  snprintf(text, sizeof(text),
           "{\"process\": {\"args\": [\"sandbox\"]}, \"annotations\": {%s}}",
           annotations);
  put(f, path, text);
}

NAMES_TEST(containerd_has_the_names_of_kubelet) {
  put_bundle(f, "run/containerd/" BUNDLE,
             CRI "container-type\": \"container\"," CRI
                 "container-name\": \"app\"," CRI
                 "sandbox-name\": \"web-0\"," CRI
                 "sandbox-namespace\": \"prod\"");
  expect(f, POD, "prod/web-0/app");
}

NAMES_TEST(containerd_says_which_container_holds_a_pod_together) {
  put_bundle(f, "run/k3s/containerd/" BUNDLE,
             CRI "container-type\": \"sandbox\"," CRI
                 "sandbox-name\": \"web-0\"," CRI
                 "sandbox-namespace\": \"prod\"");
  expect(f, POD, "POD");
  put_bundle(f, "run/k3s/containerd/" BUNDLE, CRI "container-type\": 1");
  f->now_ns++;
  expect(f, POD, "POD"); /* it was known */
}

/* Its memory is that of the containers of the pod. */
NAMES_TEST(sandbox_of_kata_is_its_pod) {
  static const char sandbox[] =
      CRI "container-type\": \"sandbox\"," CRI "sandbox-name\": \"web-0\"," CRI
          "sandbox-namespace\": \"prod\"";
  char text[300];

  put_bundle(f, "run/containerd/" BUNDLE, sandbox);
  expect(f, "/kubepods/burstable/podu/kata_" ID, "prod/web-0/web-0");
  container_cache_done(&f->cache);
  container_cache_init(&f->cache, f->tree.root);
  expect(f, "/kata_overhead/" ID, "prod/web-0/web-0");
  snprintf(text, sizeof(text),
           "%s, \"io.containerd.cri.runtime-handler\": \"kata-qemu\"", sandbox);
  put_bundle(f, "run/containerd/" BUNDLE, text);
  f->now_ns++;
  expect(f, POD, "prod/web-0/web-0");
}

/* Docker in Docker, a cluster in a container. */
NAMES_TEST(a_container_without_a_name_belongs_to_the_one_it_is_in) {
  put(f, LINKS "dind-0_ci_dind-" ID ".log", "");
  expect(f, POD "/init", "ci/dind-0/dind");
  expect(f, POD "/docker/" OTHER_ID, "ci/dind-0/dind");
  expect(f, POD "/kubepods.slice/cri-containerd-" OTHER_ID ".scope",
         "ci/dind-0/dind");
  expect(f, "/lxc.payload.node/docker/" OTHER_ID, "node");
  put(f, LINKS "job-0_ci_job-" OTHER_ID ".log", "");
  f->now_ns++;
  expect(f, POD "/docker/" OTHER_ID, "ci/job-0/job");
}

NAMES_TEST(names_that_are_known_stay_when_the_container_ends) {
  put(f, LINKS "web-0_prod_nginx-" ID ".log", "");
  expect(f, POD, "prod/web-0/nginx");
  proctree_unlink(&f->tree, LINKS "web-0_prod_nginx-" ID ".log");
  f->now_ns++;
  expect(f, POD, "prod/web-0/nginx");
}

/* The file of another inode, and of the same time, is another. */
NAMES_TEST(a_name_is_not_read_again_otherwise) {
  struct stat st;
  char path[256];

  put_docker(f, "web");
  expect(f, SCOPE, "web");
  snprintf(path, sizeof(path), "%s/" CONFIG, f->tree.root);
  assert_int_equal(stat(path, &st), 0);
  proctree_write(&f->tree, CONFIG, "{\"Name\": \"/other\"}", 18);
  assert_int_equal(
      utimensat(AT_FDCWD, path, (struct timespec[]){st.st_atim, st.st_mtim}, 0),
      0);
  f->now_ns++;
  expect(f, SCOPE, "web");
  st.st_mtim.tv_nsec ^= 1;
  assert_int_equal(
      utimensat(AT_FDCWD, path, (struct timespec[]){st.st_atim, st.st_mtim}, 0),
      0);
  f->now_ns++;
  expect(f, SCOPE, "other");
}

NAMES_TEST(malformed_file_gives_the_short_id_until_it_is_mended) {
  put(f, CONFIG, "{\"Name\": \"/we");
  expect(f, SCOPE, "-EBADMSG config.v2.json " SHORT);
  expect(f, SCOPE, SHORT); /* reported once in a cycle */
  put_docker(f, "web");
  f->now_ns++;
  expect(f, SCOPE, "web");
  put(f, CONFIG, "{");
  f->now_ns++;
  expect(f, SCOPE, "web");
}

NAMES_TEST(only_a_regular_file_of_some_size_is_read) {
  char path[256];

  put_docker(f, "web");
  proctree_rename(&f->tree, CONFIG, "config");
  snprintf(path, sizeof(path), "%s/" CONFIG, f->tree.root);
  assert_int_equal(symlink("/dev/zero", path), 0);
  expect(f, SCOPE, "-EBADMSG config.v2.json " SHORT);
  proctree_unlink(&f->tree, CONFIG);
  proctree_hang(&f->tree, CONFIG); /* a pipe */
  f->now_ns++;
  expect(f, SCOPE, "-EBADMSG config.v2.json " SHORT);
  proctree_unlink(&f->tree, CONFIG);
  proctree_rename(&f->tree, "config", CONFIG);
  assert_int_equal(truncate(path, (4 << 20) + 1), 0);
  f->now_ns++;
  expect(f, SCOPE, "-EBADMSG config.v2.json " SHORT);
}

/* --- containers of users --- */

struct user {
  unsigned uid;
  char storage[128], cgroup[160];
};

/* Root tests as another user. */
static struct user make_user(void) {
  struct user u = {.uid = getuid() ? getuid() : NOBODY};
  const struct passwd *pw = getpwuid(u.uid);

  assert_non_null(pw);
  snprintf(u.storage, sizeof(u.storage),
           "%.60s/.local/share/containers/storage/overlay-containers/"
           "containers.json",
           pw->pw_dir + 1);
  snprintf(u.cgroup, sizeof(u.cgroup),
           "/user.slice/user-%u.slice/user@%u.service/user.slice/libpod-" ID
           ".scope",
           u.uid, u.uid);
  return u;
}

static void own(const struct fixture *f, const char *path, unsigned uid) {
  char whole[256];

  snprintf(whole, sizeof(whole), "%s/%s", f->tree.root, path);
  if (getuid() == 0)
    assert_int_equal(chown(whole, uid, uid), 0);
}

/* The id is in a path that a user may make. */
NAMES_TEST(a_user_gets_no_name_of_a_container_of_the_system) {
  struct user u = make_user();

  put_docker(f, "web");
  expect(f, SCOPE, "web");
  expect_none(f, u.cgroup, OF_PODMAN);
  put_podman(f, u.storage, ID, "mine");
  own(f, u.storage, u.uid);
  f->now_ns++;
  expect(f, u.cgroup, "mine");
  expect(f, SCOPE, "web");
}

/* Each in its turn, the last is the first that Podman takes. */
NAMES_TEST(a_user_has_names_where_the_settings_say) {
  static const char *const settings[] = {
      "rootless_storage_path = \"/srv/$UID/$USER\"\n",
      "rootless_storage_path = \"$HOME/a\"\n", "graphroot = \"/srv/b\"\n"};
  struct user u = make_user();
  const struct passwd *pw = getpwuid(u.uid);
  char file[256], storage[200], path[256];

  for (size_t i = 0; i < LENGTH(settings); i++) {
    strcpy(file, "etc/containers/storage.conf");
    if (i > 0)
      snprintf(file, sizeof(file), "%.60s/.config/containers/storage.conf",
               pw->pw_dir + 1);
    put(f, file, settings[i]);
    if (i > 0)
      own(f, file, u.uid);
    if (i == 0)
      snprintf(storage, sizeof(storage), "srv/%u/%s", u.uid, pw->pw_name);
    else if (i == 1)
      snprintf(storage, sizeof(storage), "%.60s/a", pw->pw_dir + 1);
    else
      strcpy(storage, "srv/b");
    snprintf(path, sizeof(path), "%s/overlay-containers/containers.json",
             storage);
    snprintf(storage, sizeof(storage), "name-%zu", i);
    put_podman(f, path, ID, storage);
    own(f, path, u.uid);
    container_cache_done(&f->cache);
    container_cache_init(&f->cache, f->tree.root);
    expect(f, u.cgroup, storage);
  }
}

/* There may be any number of folders of that kind. */
NAMES_TEST(a_users_folders_are_not_searched) {
  struct user u = make_user();
  char data[256];

  snprintf(data, sizeof(data), "%.60s/.local/share/docker/1.1",
           getpwuid(u.uid)->pw_dir + 1);
  put_data(f, data, "theirs");
  snprintf(data, sizeof(data), "%.60s/.local/share/docker/1.1" DATA,
           getpwuid(u.uid)->pw_dir + 1);
  own(f, data, u.uid);
  expect_none(f, u.cgroup, OF_PODMAN);
}

NAMES_TEST(settings_are_read_once_in_a_cycle) {
  expect_none(f, SCOPE, OF_DOCKER);
  put(f, "etc/nerdctl/nerdctl.toml", "data_root = \"/srv/n\"\n");
  put(f, "srv/n/1935db59/names/default/web", OTHER_ID);
  assert_string_equal(find(f, "/default/" OTHER_ID),
                      "-ENOENT names of nerdctl 0123456789ab");
  f->now_ns++;
  assert_string_equal(find(f, "/default/" OTHER_ID), "web");
}

NAMES_TEST(a_users_file_has_to_be_the_users_own) {
  struct user u = make_user();

  if (getuid() != 0)
    skip();
  put_podman(f, u.storage, ID, "theirs");
  expect(f, u.cgroup, "-EPERM containers.json " SHORT);
}

static void expect_of(struct fixture *f, const struct user *u, int i,
                      const char *wanted) {
  char path[160], id[65];

  snprintf(path, sizeof(path), "/user.slice/user-%u.slice/x/%064x", u->uid, i);
  snprintf(id, sizeof(id), "%064x", i);
  assert_string_equal(find(f, path), wanted);
}

/* 16 MB in a cycle, however many control groups lead to the file; and it counts
 * how often files are looked at. */
NAMES_TEST(a_user_cannot_keep_the_plugin_reading) {
  enum { SIZE = 4 << 20, ENTRY = 128 };
  struct user u = make_user();
  char *text = malloc(SIZE);
  int n;

  assert_non_null(text);
  memset(text, ' ', SIZE);
  text[0] = '[';
  for (int i = 0; i < 6; i++) {
    n = snprintf(text + 1 + i * ENTRY, ENTRY,
                 "{\"id\": \"%064x\", \"names\": [\"c%d\"]},", i, i);
    text[1 + i * ENTRY + n] = ' ';
  }
  memcpy(text + SIZE - 3, "{}]", 3);
  proctree_write(&f->tree, u.storage, text, SIZE);
  free(text);
  own(f, u.storage, u.uid);
  put_docker(f, "web");
  expect_of(f, &u, 0, "c0");
  expect_of(f, &u, 1, "c1");
  expect_of(f, &u, 2, "c2");
  expect_of(f, &u, 3, "c3");
  expect_of(f, &u, 4, "000000000000");
  expect_of(f, &u, 3, "c3");
  expect(f, SCOPE, "web");
  f->now_ns++;
  expect_of(f, &u, 4, "c4");
  proctree_unlink(&f->tree, u.storage);
  f->now_ns++;
  for (int i = 0; i < 1024; i++)
    expect_of(f, &u, 1000 + i, "-ENOENT " OF_ANY " 000000000000");
  put_podman(f, u.storage, ID, "mine");
  own(f, u.storage, u.uid);
  expect(f, u.cgroup, SHORT);
  f->now_ns++;
  expect(f, u.cgroup, "mine");
}

NAMES_TEST(a_users_link_is_not_followed) {
  struct user u = make_user();
  char path[256];

  put_podman(f, u.storage, ID, "mine"); /* makes the directory */
  proctree_unlink(&f->tree, u.storage);
  snprintf(path, sizeof(path), "%s/%s", f->tree.root, u.storage);
  assert_int_equal(symlink("/dev/zero", path), 0);
  expect(f, u.cgroup, "-ELOOP containers.json " SHORT);
}

/* --- the cache --- */

NAMES_TEST(known_names_are_used_while_another_thread_reads) {
  struct user u = make_user();

  put_docker(f, "web");
  expect(f, SCOPE, "web");
  put_docker(f, "renamed");
  put_podman(f, PODMAN "containers.json", OTHER_ID, "new");
  put_podman(f, u.storage, ID, "mine");
  own(f, u.storage, u.uid);
  f->cache.is_reading[0] = true;
  f->now_ns++;
  expect(f, SCOPE, "web");
  assert_string_equal(find(f, "/libpod-" OTHER_ID), "0123456789ab");
  assert_true(f->cache.is_reading[0]);
  expect(f, u.cgroup, "mine"); /* a user's files are another matter */
  f->cache.is_reading[0] = false;
  expect(f, SCOPE, "renamed");
  assert_string_equal(find(f, "/libpod-" OTHER_ID), "new");
}

NAMES_TEST(the_cache_has_a_bound) {
  char id[65], path[80];

  for (int i = 0; i < 4200; i++) {
    snprintf(id, sizeof(id), "%064x", i);
    snprintf(path, sizeof(path), "/docker/%s", id);
    assert_string_equal(find(f, path), "-ENOENT " OF_DOCKER " 000000000000");
    assert_true(f->cache.n <= 4096);
  }
  assert_int_equal(f->cache.n, 4200 - 4096);
}
