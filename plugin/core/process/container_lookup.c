#include "process/container_lookup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
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

/* Of container_places; SNAP is Docker's. */
enum place { DOCKER, SNAP, PODMAN, NERDCTL, LXC };

/* For printf. */
#define LINKS "/var/log/containers/%s"
#define BUNDLE "io.containerd.runtime.v2.task/k8s.io/%s/config.json"
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

  if (l->found.uid ||
      glob(l->found.path, GLOB_NOSORT | GLOB_BRACE, NULL, &found) != 0)
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
  static const char *const folders[] = {"", "/[0-9]*.[0-9]*"};
  static const char file[] = "config.v2.json";
  char *name = l->found.names.name;

  for (size_t i = 0; i < LENGTH(folders); i++)
    if (set_path(l, "%s%s/containers/%s/%s", data, folders[i], l->found.id,
                 file) &&
        (i ? try_pattern(l, "Name", file) : try_path(l, "Name", NULL, file))) {
      if (*name == '/')
        memmove(name, name + 1, strlen(name));
      return true;
    }
  return false;
}

/* A folder is named after the driver of the storage. The second file is of
 * `podman run --rm`, from Podman 4.4 on. */
static bool try_podman(struct container_lookup *l) {
  static const char *const drivers[] = {"overlay", "vfs",  "btrfs",
                                        "zfs",     "aufs", "devicemapper"};

  for (size_t i = 0; i < 2 * LENGTH(drivers); i++)
    if (set_path(l, "%s/%s-containers/%scontainers.json",
                 l->places->path[PODMAN], drivers[i / 2],
                 i % 2 ? "volatile-" : "") &&
        try_path(l, "names", l->found.id, "containers.json"))
      return true;
  return false;
}

/* A file NAME has the id (nerdctl 2.2, pkg/namestore; 2.0: one folder higher).
 */
static bool try_nerdctl(struct container_lookup *l) {
  if (!set_path(l, "%s/*/{names/,}*/*", l->places->path[NERDCTL]) ||
      !try_pattern(l, NULL, "names"))
    return false;
  snprintf(l->found.names.name, CONTAINER_NAME_SIZE, "%s",
           strrchr(l->found.path, '/') + 1);
  return true;
}

/* The length of the name before the number that LXC appends while the control
 * group of an earlier start is still there: -1 to -999 (lxc 6.0, cgfsng.c). 0
 * without such a number. */
static size_t name_before_number(const char *name) {
  const char *dash = strrchr(name, '-');
  size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;

  return digits > 0 && digits <= 3 && dash[1] != '0' && !dash[1 + digits]
             ? (size_t)(dash - name)
             : 0;
}

/* A container can have such a name itself: its folder shows which. */
static bool try_lxc(struct container_lookup *l) {
  const char *const folders[] = {
      l->places->path[LXC], "/var/lib/lxd/containers",
      "/var/snap/lxd/common/lxd/containers", "/var/lib/incus/containers"};
  struct stat st;
  size_t len = strlen(l->found.id);

  for (size_t i = 0; i < 2 * LENGTH(folders) && len > 0; i++) {
    if (i == LENGTH(folders))
      len = name_before_number(l->found.id);
    if (len == 0 ||
        !set_path(l, "%s/%.*s/", folders[i % LENGTH(folders)], (int)len,
                  l->found.id) ||
        lstat(l->found.path, &st) < 0)
      continue;
    set_version(&l->found, &st);
    snprintf(l->found.names.name, len + 1, "%s", l->found.id);
    return true;
  }
  return false;
}

/* containerd has what kubelet told it in a file for each container, which the
 * one that holds a pod together has as well: "POD", as CRI-O calls it. But the
 * sandbox of Kata is the pod. (containerd 2.0, pkg/cri/annotations.) */
static bool try_containerd(struct container_lookup *l, const char *state,
                           bool is_kata) {
  static const char *const keys[] = {"container-type", "sandbox-namespace",
                                     "sandbox-name", "container-name"};
  struct container_names names = {.pod = ""};
  char *const ret[] = {names.name, names.namespace, names.pod, names.name};
  char key[64];
  size_t n = LENGTH(keys);

  if (!set_path(l, "%s/containerd/" BUNDLE, state, l->found.id))
    return false;
  for (size_t i = 0; i < n; i++) {
    snprintf(key, sizeof(key), "annotations/io.kubernetes.cri.%s", keys[i]);
    if (!try_path(l, key, NULL, "config.json"))
      return false;
    strcpy(ret[i], l->found.names.name);
    if (i > 0 || strcmp(names.name, "sandbox") != 0)
      continue;
    is_kata |= try_path(l, HANDLER, NULL, "config.json") &&
               strncmp(l->found.names.name, "kata", 4) == 0;
    n = is_kata ? n - 1 : 1;
  }
  if (n < LENGTH(keys))
    strcpy(names.name, is_kata ? names.pod : "POD");
  l->found.names = names;
  return true;
}

/* kubelet makes no link for the container that holds a pod together, and none
 * where a container's log is not a file; and cuts the id if the pod's name is
 * long. So a container without a link can be any. */
static bool try_kubelet(struct container_lookup *l) {
  struct container_entry *e = &l->found;
  DIR *dir = set_path(l, LINKS, "") ? opendir(e->path) : NULL;
  struct dirent *link = NULL;
  struct stat st;
  bool is_found;

  if (!dir) {
    note(l, last_error(), "/var/log/containers");
    return false;
  }
  while ((link = readdir(dir)) &&
         !container_file_kubelet(link->d_name, e->id, &e->names))
    ;
  is_found =
      link && set_path(l, LINKS, link->d_name) && lstat(e->path, &st) == 0;
  closedir(dir);
  if (is_found)
    set_version(e, &st);
  return is_found;
}

/* --- where runtimes have their files --- */

/* The last that is there counts. Without a file, the key is the default. (moby
 * 28; containers/storage 1.57, types/options.go; nerdctl 2.2.) */
static const struct setting {
  bool is_of_user;
  enum place place;
  const char *file, *key;
} settings[] = {
    {false, DOCKER, NULL, "/var/lib/docker"},
    {false, DOCKER, "/etc/docker/daemon.json", "graph"},
    {false, DOCKER, "/etc/docker/daemon.json", "data-root"},
    {false, SNAP, NULL, "/var/snap/docker/common/var-lib-docker"},
    {false, SNAP, "/var/snap/docker/current/config/daemon.json", "data-root"},
    {false, PODMAN, NULL, "/var/lib/containers/storage"},
    {false, PODMAN, "/usr/share/containers/storage.conf", "graphroot"},
    {false, PODMAN, "/etc/containers/storage.conf", "graphroot"},
    {false, NERDCTL, NULL, "/var/lib/nerdctl"},
    {false, NERDCTL, "/etc/nerdctl/nerdctl.toml", "data_root"},
    {false, LXC, NULL, "/var/lib/lxc"},
    {true, DOCKER, NULL, "$HOME/.local/share/docker"},
    {true, DOCKER, "$HOME/.config/docker/daemon.json", "data-root"},
    {true, PODMAN, NULL, "$HOME/.local/share/containers/storage"},
    {true, PODMAN, "/usr/share/containers/storage.conf", ROOTLESS},
    {true, PODMAN, "/etc/containers/storage.conf", ROOTLESS},
    {true, PODMAN, "$HOME/.config/containers/storage.conf", ROOTLESS},
    {true, PODMAN, "$HOME/.config/containers/storage.conf", "graphroot"},
    {true, LXC, NULL, "$HOME/.local/share/lxc"},
};

/* Once in a cycle for the system, and for a user. */
static void read_settings(struct container_lookup *l) {
  struct container_places *p = l->places;
  uint32_t uid = l->found.uid;

  if (p->read_ns == l->now_ns && p->uid == uid)
    return;
  for (size_t i = 0; i < LENGTH(settings); i++) {
    const struct setting *s = &settings[i];

    if (s->is_of_user != (uid != 0))
      continue;
    if (!s->file)
      strcpy(p->path[s->place], s->key);
    l->found.uid = s->file && *s->file == '/' ? 0 : uid; /* it is trusted */
    if (s->file && set_path(l, "%s", s->file) &&
        try_path(l, s->key, NULL, strrchr(s->file, '/') + 1))
      strcpy(p->path[s->place], l->found.names.name);
    l->found.uid = uid;
  }
  p->read_ns = l->now_ns;
  p->uid = uid;
}

static bool look_up_pod(struct container_lookup *l, bool is_kata) {
  static const char *const states[] = {"/run", "/run/k3s",
                                       "/var/snap/microk8s/common/run"};

  if (try_kubelet(l))
    return true;
  for (size_t i = 0; i < LENGTH(states); i++)
    if (try_containerd(l, states[i], is_kata))
      return true;
  return false;
}

/* Any container can be called as kubelet calls those of a pod. */
static bool look_up_host(struct container_lookup *l,
                         enum cgroup_runtime runtime, bool is_of_pod) {
  char(*paths)[PATH_SIZE] = l->places->path;
  bool is_any = runtime == CGROUP_OTHER || runtime == CGROUP_KUBERNETES;
  bool is_found = false;

  if (runtime == CGROUP_DOCKER || is_any)
    is_found = try_docker(l, paths[DOCKER]) ||
               (!l->found.uid && try_docker(l, paths[SNAP]));
  if (!is_found && (runtime == CGROUP_PODMAN || is_any))
    is_found = try_podman(l);
  if (!is_found && !l->found.uid &&
      (runtime == CGROUP_NERDCTL || runtime == CGROUP_OTHER))
    is_found = try_nerdctl(l);
  if (is_found && is_of_pod)
    container_file_split(&l->found.names);
  return is_found;
}

static bool is_unchanged(const struct container_entry *e) {
  struct stat st;

  return e->path[0] && lstat(e->path, &st) == 0 && st.st_ino == e->ino &&
         st.st_mtim.tv_sec == e->mtime.tv_sec &&
         st.st_mtim.tv_nsec == e->mtime.tv_nsec;
}

static bool is_below_pods(struct span path) {
  return memmem(path.text, path.len, "kubepods", 8);
}

/* What was looked for, for the log. */
static const char *const looked_for[] = {
    [CGROUP_OTHER] = "a file of Docker, Podman or kubelet",
    [CGROUP_DOCKER] = "config.v2.json of Docker",
    [CGROUP_PODMAN] = "containers.json of Podman",
    [CGROUP_KUBERNETES] = "a link of kubelet, config.json of containerd",
    [CGROUP_NERDCTL] = "names of nerdctl"};

static bool look_up(struct container_lookup *l, struct span path,
                    enum cgroup_runtime runtime) {
  bool may_be_of_pod = runtime == CGROUP_OTHER ||
                       runtime == CGROUP_KUBERNETES || is_below_pods(path);

  read_settings(l);
  if (runtime == CGROUP_LXC)
    return try_lxc(l);
  if (!l->user && may_be_of_pod &&
      look_up_pod(l, memmem(path.text, path.len, "/kata", 5)))
    return true;
  return look_up_host(l, runtime, is_below_pods(path));
}

int container_lookup_run(struct container_lookup *l, struct span path,
                         enum cgroup_runtime runtime) {
  const struct container_entry before = l->found;
  struct passwd user;
  char buffer[4096];
  bool is_found;

  if (is_unchanged(&before))
    return 0;
  if (before.uid)
    getpwuid_r(before.uid, &user, buffer, sizeof(buffer), &l->user);
  is_found = (!before.uid || l->user) && look_up(l, path, runtime);
  l->user = NULL;
  if (!is_found)
    l->found = before;
  if (is_found || before.path[0] || runtime == CGROUP_LXC)
    return 0;
  if (!l->error)
    l->file = looked_for[is_below_pods(path) ? CGROUP_KUBERNETES : runtime];
  return l->error ? l->error : -ENOENT;
}
