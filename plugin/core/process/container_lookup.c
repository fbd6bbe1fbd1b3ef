/* SPDX-License-Identifier: MIT */
#include "process/container_lookup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOTLESS "rootless_storage_path"
#define LENGTH(array) (sizeof(array) / sizeof(*(array)))
#define PATH_SIZE CONTAINER_PATH_SIZE

/* For printf. */
#define BUNDLE "io.containerd.runtime.v2.task/k8s.io/%s/config.json"
#define CRI "annotations/io.kubernetes.cri."
#define SNAP "/var/snap/"
#define HANDLER "annotations/io.containerd.cri.runtime-handler"

static int last_error(void) { return errno > 0 ? -errno : -EIO; }

static void note(struct container_lookup *l, int rc, const char *file) {
  if (rc == 0 || rc == -ENOENT || rc == -ENOTDIR || l->error)
    return;
  l->error = rc;
  l->file = file;
}

static void set_version(struct container_entry *e, const struct stat *st) {
  e->ino = st->st_ino;
  e->mtime = st->st_mtim;
}

/* For what has the name in its path. */
static bool is_there(struct container_entry *e) {
  struct stat st;

  if (lstat(e->path, &st) < 0)
    return false;
  set_version(e, &st);
  return true;
}

/* Without a key, the file has the id. */
static int read_file(struct container_lookup *l, int fd, const char *key,
                     const char *id) {
  struct container_entry *e = &l->found;
  struct stat st;
  char *text;
  ssize_t len;
  int rc;

  if (fstat(fd, &st) < 0)
    return last_error();
  if (S_ISDIR(st.st_mode)) /* a pattern has matched it */
    return -ENOENT;
  if (!S_ISREG(st.st_mode) || st.st_size > CONTAINER_FILE_MOST)
    return -EBADMSG;
  if (e->uid && st.st_uid != e->uid)
    return -EPERM;
  text = malloc((size_t)st.st_size + 1);
  if (!text)
    return -ENOMEM;
  set_version(e, &st);
  l->bytes += (size_t)st.st_size;
  len = read(fd, text, (size_t)st.st_size);
  if (len < 0)
    rc = last_error();
  else if (!key && id)
    rc = len >= CONTAINER_ID_LEN && memcmp(text, id, CONTAINER_ID_LEN) == 0
             ? 0
             : -ENOENT;
  else if (strstr(e->path, ".json"))
    rc = container_file_parse(key, id, text, (size_t)len, e->names.name);
  else
    rc = container_file_setting(key, (struct span){text, (size_t)len},
                                e->names.name);
  free(text);
  return rc;
}

/* A user could have put anything in the place of the file: O_NOFOLLOW is for a
 * device, O_NONBLOCK for a pipe or a lease, and only a regular file of the
 * user's own is read. */
static bool try_path(struct container_lookup *l, const char *key,
                     const char *id, const char *file) {
  int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
              (l->found.uid ? O_NOFOLLOW : 0);
  int fd = open(l->found.path, flags);
  int rc = fd < 0 ? last_error() : read_file(l, fd, key, id);

  if (fd >= 0)
    close(fd);
  note(l, rc, file);
  return rc == 0;
}

static void replace(char *path, const char *word, const char *value) {
  char copy[PATH_MAX], *at = strstr(path, word);

  if (!at)
    return;
  snprintf(copy, sizeof(copy), "%.*s%s%s", (int)(at - path), path, value,
           at + strlen(word));
  strcpy(path, copy);
}

/* A user's path may have $HOME, $UID and $USER. */
__attribute__((format(printf, 2, 3))) static bool
set_path(struct container_lookup *l, const char *format, ...) {
  char path[PATH_MAX], uid[16];
  va_list args;

  va_start(args, format);
  vsnprintf(path, sizeof(path), format, args);
  va_end(args);
  if (l->user) {
    snprintf(uid, sizeof(uid), "%u", l->user->pw_uid);
    replace(path, "$UID", uid);
    replace(path, "$USER", l->user->pw_name);
    replace(path, "$HOME", l->user->pw_dir);
  }
  return snprintf(l->found.path, PATH_SIZE, "%s%s", l->root, path) < PATH_SIZE;
}

/* The same for each file that the path is a pattern for (glob(7)). A user's
 * folder may have any number of them. */
static bool try_pattern(struct container_lookup *l, const char *key,
                        const char *file) {
  bool has_it = false;
  glob_t found;

  if (l->found.uid || glob(l->found.path, GLOB_NOSORT, NULL, &found) != 0)
    return false;
  for (size_t i = 0; i < found.gl_pathc && !has_it; i++)
    has_it = snprintf(l->found.path, PATH_SIZE, "%s", found.gl_pathv[i]) <
                 PATH_SIZE &&
             try_path(l, key, key ? NULL : l->found.id, file);
  globfree(&found);
  return has_it;
}

/* Docker puts a slash before the name. With userns-remap its data are in
 * UID.GID (moby 28, daemon/daemon_unix.go). */
static bool try_docker(struct container_lookup *l, const char *data) {
  static const char file[] = "config.v2.json";
  char *name = l->found.names.name;
  bool is_found = set_path(l, "%s/containers/%s/%s", data, l->found.id, file) &&
                  try_path(l, "Name", NULL, file);

  if (!is_found)
    is_found = set_path(l, "%s/[0-9]*.[0-9]*/containers/%s/%s", data,
                        l->found.id, file) &&
               try_pattern(l, "Name", file);
  if (is_found && *name == '/')
    memmove(name, name + 1, strlen(name));
  return is_found;
}

/* A folder is named after the driver of the storage. The second file is of
 * `podman run --rm`, from Podman 4.4 on. */
static bool try_podman(struct container_lookup *l, const char *storage) {
  static const char *const drivers[] = {"overlay", "vfs",  "btrfs",
                                        "zfs",     "aufs", "devicemapper"};

  for (size_t i = 0; i < 2 * LENGTH(drivers); i++)
    if (set_path(l, "%s/%s-containers/%scontainers.json", storage,
                 drivers[i / 2], i % 2 ? "volatile-" : "") &&
        try_path(l, "names", l->found.id, "containers.json"))
      return true;
  return false;
}

/* A file NAME has the id (nerdctl 2.2, pkg/namestore; 2.0: one folder higher).
 */
static bool try_nerdctl(struct container_lookup *l, const char *data) {
  static const char *const folders[] = {"names/", ""};

  for (size_t i = 0; i < LENGTH(folders); i++)
    if (set_path(l, "%s/*/%s*/*", data, folders[i]) &&
        try_pattern(l, NULL, "names")) {
      snprintf(l->found.names.name, CONTAINER_NAME_SIZE, "%s",
               strrchr(l->found.path, '/') + 1);
      return true;
    }
  return false;
}

/* Cuts off the number that LXC appends while the control group of an earlier
 * start is still there: -1 to -999 (lxc 6.0, cgfsng.c). False without one. */
static bool cut_number(char *name) {
  char *dash = strrchr(name, '-');
  size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;

  if (digits == 0 || digits > 3 || dash[1] == '0' || dash[1 + digits] ||
      dash == name)
    return false;
  *dash = '\0';
  return true;
}

static bool try_lxc(struct container_lookup *l, const char *folder) {
  return set_path(l, "%s/%s/", folder, l->found.names.name) &&
         is_there(&l->found);
}

/* Gets an annotation of the file of the path. */
static bool try_key(struct container_lookup *l, const char *key,
                    char ret[CONTAINER_NAME_SIZE]) {
  bool has_it = try_path(l, key, NULL, "config.json");

  if (has_it)
    strcpy(ret, l->found.names.name);
  return has_it;
}

/* containerd has what kubelet told it in a file for each container, which the
 * one that holds a pod together has as well: "POD", as CRI-O calls it. But the
 * sandbox of Kata is the pod. (containerd 2.0, pkg/cri/annotations.) */
static bool try_containerd(struct container_lookup *l, const char *state) {
  struct container_names n = {.pod = ""};
  bool is_sandbox;

  if (!set_path(l, "%s/" BUNDLE, state, l->found.id) ||
      !try_key(l, CRI "container-type", n.name))
    return false;
  is_sandbox = strcmp(n.name, "sandbox") == 0;
  if (is_sandbox && !l->is_kata &&
      !(try_key(l, HANDLER, n.name) && strncmp(n.name, "kata", 4) == 0))
    strcpy(n.name, "POD");
  else if (!try_key(l, CRI "sandbox-namespace", n.namespace) ||
           !try_key(l, CRI "sandbox-name", n.pod) ||
           !try_key(l, is_sandbox ? CRI "sandbox-name" : CRI "container-name",
                    n.name))
    return false;
  l->found.names = n;
  return true;
}

/* kubelet makes no link for the container that holds a pod together, and none
 * where a container's log is not a file; and cuts the id if the pod's name is
 * long. So a container without a link can be any. */
static bool try_kubelet(struct container_lookup *l, const char *links) {
  struct container_entry *e = &l->found;
  DIR *dir = set_path(l, "%s", links) ? opendir(e->path) : NULL;
  struct dirent *link;
  bool is_found = false;

  if (!dir) {
    note(l, last_error(), "/var/log/containers");
    return false;
  }
  while (!is_found && (link = readdir(dir)))
    is_found = container_file_kubelet(link->d_name, e->id, &e->names) &&
               set_path(l, "%s/%s", links, link->d_name) && is_there(e);
  closedir(dir);
  return is_found;
}

/* --- where runtimes have their files --- */

/* The folder is what the key says in the file; without a file, the key itself.
 * The first that has the container counts. (moby 28; containers/storage 1.57,
 * types/options.go; nerdctl 2.2.) */
static const struct place {
  bool is_of_user;
  enum cgroup_runtime runtime; /* Kubernetes: kubelet */
  const char *file, *key;
} places[] = {
    {false, CGROUP_KUBERNETES, NULL, "/var/log/containers"},
    {false, CGROUP_CONTAINERD, NULL, "/run/containerd"},
    {false, CGROUP_CONTAINERD, NULL, "/run/k3s/containerd"},
    {false, CGROUP_CONTAINERD, NULL, SNAP "microk8s/common/run/containerd"},
    {false, CGROUP_DOCKER, "/etc/docker/daemon.json", "data-root"},
    {false, CGROUP_DOCKER, "/etc/docker/daemon.json", "graph"},
    {false, CGROUP_DOCKER, NULL, "/var/lib/docker"},
    {false, CGROUP_DOCKER, SNAP "docker/current/config/daemon.json",
     "data-root"},
    {false, CGROUP_DOCKER, NULL, SNAP "docker/common/var-lib-docker"},
    {false, CGROUP_PODMAN, "/etc/containers/storage.conf", "graphroot"},
    {false, CGROUP_PODMAN, "/usr/share/containers/storage.conf", "graphroot"},
    {false, CGROUP_PODMAN, NULL, "/var/lib/containers/storage"},
    {false, CGROUP_NERDCTL, "/etc/nerdctl/nerdctl.toml", "data_root"},
    {false, CGROUP_NERDCTL, NULL, "/var/lib/nerdctl"},
    {false, CGROUP_LXC, NULL, "/var/lib/lxc"},
    {false, CGROUP_LXC, NULL, "/var/lib/lxd/containers"},
    {false, CGROUP_LXC, NULL, SNAP "lxd/common/lxd/containers"},
    {false, CGROUP_LXC, NULL, "/var/lib/incus/containers"},
    {true, CGROUP_DOCKER, "$HOME/.config/docker/daemon.json", "data-root"},
    {true, CGROUP_DOCKER, NULL, "$HOME/.local/share/docker"},
    {true, CGROUP_PODMAN, "$HOME/.config/containers/storage.conf", "graphroot"},
    {true, CGROUP_PODMAN, "$HOME/.config/containers/storage.conf", ROOTLESS},
    {true, CGROUP_PODMAN, "/etc/containers/storage.conf", ROOTLESS},
    {true, CGROUP_PODMAN, "/usr/share/containers/storage.conf", ROOTLESS},
    {true, CGROUP_PODMAN, NULL, "$HOME/.local/share/containers/storage"},
    {true, CGROUP_LXC, NULL, "$HOME/.local/share/lxc"},
};
_Static_assert(LENGTH(places) <= CONTAINER_PLACES, "each has a path");

/* Once in a cycle for the system, and for a user. */
static void read_settings(struct container_lookup *l) {
  struct container_places *p = l->places;
  uint32_t uid = l->found.uid;

  if (p->read_ns == l->now_ns && p->uid == uid)
    return;
  for (size_t i = 0; i < LENGTH(places); i++) {
    const struct place *s = &places[i];

    p->path[i][0] = '\0';
    if (s->is_of_user != (uid != 0))
      continue;
    l->found.uid = s->file && *s->file == '/' ? 0 : uid; /* it is trusted */
    if (!s->file)
      strcpy(p->path[i], s->key);
    else if (set_path(l, "%s", s->file) &&
             try_path(l, s->key, NULL, strrchr(s->file, '/') + 1))
      strcpy(p->path[i], l->found.names.name);
    l->found.uid = uid;
  }
  p->read_ns = l->now_ns;
  p->uid = uid;
}

#define BIT(runtime) (1u << CGROUP_##runtime)
#define POD (BIT(KUBERNETES) | BIT(CONTAINERD))

/* How the files of a runtime are tried, whose files may have the names of its
 * containers, and what was looked for, for the log. */
static const struct {
  bool (*try)(struct container_lookup *l, const char *folder);
  unsigned owners;
  const char *files;
} runtimes[] = {
    [CGROUP_OTHER] = {NULL, POD | BIT(DOCKER) | BIT(PODMAN) | BIT(NERDCTL),
                      "a file of Docker, Podman or kubelet"},
    [CGROUP_DOCKER] = {try_docker, BIT(DOCKER), "config.v2.json of Docker"},
    [CGROUP_KUBERNETES] = {try_kubelet, POD | BIT(DOCKER) | BIT(PODMAN),
                           "a link of kubelet, config.json of containerd"},
    [CGROUP_PODMAN] = {try_podman, BIT(PODMAN), "containers.json of Podman"},
    [CGROUP_NERDCTL] = {try_nerdctl, BIT(NERDCTL), "names of nerdctl"},
    [CGROUP_CONTAINERD] = {try_containerd, 0, NULL},
    [CGROUP_LXC] = {try_lxc, BIT(LXC), NULL}};

static bool try_all(struct container_lookup *l, unsigned owners) {
  for (size_t i = 0; i < LENGTH(places); i++)
    if (l->places->path[i][0] && owners >> places[i].runtime & 1 &&
        runtimes[places[i].runtime].try(l, l->places->path[i]))
      return true;
  return false;
}

/* An LXC container can have a name with a number itself: its folder shows it.
 * Any other can be called as kubelet calls those of a pod. */
static bool look_up(struct container_lookup *l, enum cgroup_runtime runtime,
                    bool is_of_pod) {
  bool is_found;

  read_settings(l);
  strcpy(l->found.names.name, l->found.id); /* until a file has another */
  is_found = try_all(l, runtimes[runtime].owners | (is_of_pod ? POD : 0));
  if (runtime == CGROUP_LXC && !is_found && cut_number(l->found.names.name))
    is_found = try_all(l, BIT(LXC));
  if (is_of_pod)
    container_file_split(&l->found.names);
  return is_found;
}

static bool is_unchanged(const struct container_entry *e) {
  struct container_entry now = *e;

  return e->path[0] && is_there(&now) && now.ino == e->ino &&
         now.mtime.tv_sec == e->mtime.tv_sec &&
         now.mtime.tv_nsec == e->mtime.tv_nsec;
}

int container_lookup_run(struct container_lookup *l, struct span path,
                         enum cgroup_runtime runtime) {
  const struct container_entry before = l->found;
  struct passwd user;
  char buffer[4096];
  bool is_of_pod = memmem(path.text, path.len, "kubepods", 8), is_found;

  if (is_unchanged(&before))
    return 0;
  if (before.uid)
    getpwuid_r(before.uid, &user, buffer, sizeof(buffer), &l->user);
  l->is_kata = memmem(path.text, path.len, "/kata", 5);
  is_found = (!before.uid || l->user) && look_up(l, runtime, is_of_pod);
  l->user = NULL;
  if (!is_found)
    l->found = before;
  if (is_found || before.path[0] || runtime == CGROUP_LXC)
    return 0;
  if (!l->error)
    l->file = runtimes[is_of_pod ? CGROUP_KUBERNETES : runtime].files;
  return l->error ? l->error : -ENOENT;
}
