#include "process/container_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_LEN 64
#define SHORT_LEN 12
#define LENGTH(array) (sizeof(array) / sizeof(*(array)))
/* Longer paths are refused, because a path is kept for each container. */
#define PATH_SIZE 512
/* Podman has all containers in one file, with about 1 kB for each. */
#define SIZE_MOST (4 << 20)
/* A user can make any number of control groups that look like containers: not
 * each of them deserves an entry for ever. */
#define ENTRIES_MAX 4096
/* Any number of control groups may lead to a file of SIZE_MOST. So much of
 * users' files is read in a cycle, some 70 ms; and no matter how small they
 * are, each look at them counts like 16 kB. */
#define USERS_MOST ((size_t)4 * SIZE_MOST)
#define LOOK_COST (16 << 10)

/* A user may give a control group the id of another user's container, so the id
 * alone does not identify it. */
struct container_entry {
  char id[ID_LEN + 1];
  uint32_t uid; /* whose files have the names; 0: the system's */
  struct container_names names;
  char path[PATH_SIZE];  /* the file with the names; empty: none */
  ino_t ino;             /* of that file, when it was read */
  struct timespec mtime; /* of that file, at that time */
  uint64_t checked_ns;
};

/* --- reading files, without the lock --- */

struct lookup {
  const char *root;
  struct container_entry found;
  size_t bytes; /* that were read */
  int error;    /* of the first file that exists but could not be used */
  const char *file;
};

static int last_error(void) { return errno > 0 ? -errno : -EIO; }

static void note(struct lookup *l, int rc, const char *file) {
  if (rc == 0 || rc == -ENOENT || rc == -ENOTDIR || l->error)
    return;
  l->error = rc;
  l->file = file;
}

static void set_version(struct container_entry *e, const struct stat *st) {
  e->ino = st->st_ino;
  e->mtime = st->st_mtim;
}

static int read_file(struct lookup *l, int fd, const char *key,
                     const char *id) {
  struct container_entry *e = &l->found;
  struct stat st;
  char *text;
  ssize_t len;
  int rc;

  if (fstat(fd, &st) < 0)
    return last_error();
  if (!S_ISREG(st.st_mode) || st.st_size > SIZE_MOST)
    return -EBADMSG;
  if (e->uid && st.st_uid != e->uid)
    return -EPERM;
  text = malloc((size_t)st.st_size + 1);
  if (!text)
    return -ENOMEM;
  set_version(e, &st);
  l->bytes += (size_t)st.st_size;
  len = read(fd, text, (size_t)st.st_size);
  rc = len < 0
           ? last_error()
           : container_file_parse(key, id, text, (size_t)len, e->names.name);
  free(text);
  return rc;
}

static bool set_path(struct lookup *l, const char *data, const char *folder,
                     const char *file) {
  errno = ENAMETOOLONG;
  return snprintf(l->found.path, PATH_SIZE, "%s%s/%s/%s", l->root, data, folder,
                  file) < PATH_SIZE;
}

/* A user could have put anything in the place of the file: O_NOFOLLOW is for a
 * device, O_NONBLOCK for a pipe or a lease, and only a regular file of the
 * user's own is read. */
static bool try_file(struct lookup *l, const char *key, const char *id,
                     const char *data, const char *folder, const char *file) {
  int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
              (l->found.uid ? O_NOFOLLOW : 0);
  int fd = set_path(l, data, folder, file) ? open(l->found.path, flags) : -1;
  int rc = fd < 0 ? last_error() : read_file(l, fd, key, id);

  if (fd >= 0)
    close(fd);
  note(l, rc, file);
  return rc == 0;
}

/* Docker puts a slash before the name. */
static bool try_docker(struct lookup *l, const char *data) {
  char folder[sizeof("containers/") + ID_LEN], *name = l->found.names.name;

  snprintf(folder, sizeof(folder), "containers/%s", l->found.id);
  if (!try_file(l, "Name", NULL, data, folder, "config.v2.json"))
    return false;
  if (*name == '/')
    memmove(name, name + 1, strlen(name));
  return true;
}

/* A folder is named after the driver of the storage: a user who has no
 * fuse-overlayfs may have vfs. The second file is of `podman run --rm`, from
 * Podman 4.4 on. */
static bool try_podman(struct lookup *l, const char *data) {
  static const char *const folders[] = {"containers/storage/overlay-containers",
                                        "containers/storage/vfs-containers",
                                        "containers/storage/btrfs-containers"};
  const char *id = l->found.id;

  for (size_t i = 0; i < LENGTH(folders); i++)
    if (try_file(l, "names", id, data, folders[i], "containers.json") ||
        try_file(l, "names", id, data, folders[i], "volatile-containers.json"))
      return true;
  return false;
}

static bool try_folders(struct lookup *l, const char *const *folders,
                        const char *name) {
  struct stat st;

  for (; *folders; folders++) {
    if (!set_path(l, *folders, name, "") || lstat(l->found.path, &st) < 0)
      continue;
    set_version(&l->found, &st);
    strcpy(l->found.names.name, name);
    return true;
  }
  return false;
}

/* The length of the name before the number that LXC appends while the control
 * group of an earlier start is still there: -1 to -999 (lxc 6.0, cgfsng.c). 0
 * without such a number. */
static size_t before_number(const char *name) {
  const char *dash = strrchr(name, '-');
  size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;

  return digits > 0 && digits <= 3 && dash[1] != '0' && !dash[1 + digits]
             ? (size_t)(dash - name)
             : 0;
}

/* A container can have such a name itself: its folder shows which. */
static bool look_up_lxc(struct lookup *l, const char *const *folders) {
  char name[ID_LEN + 1];

  strcpy(name, l->found.id);
  if (try_folders(l, folders, name))
    return true;
  name[before_number(name)] = '\0';
  return try_folders(l, folders, name);
}

static bool has_digits(const struct container_entry *e) {
  return strspn(e->id, "0123456789abcdef") == ID_LEN;
}

/* LXC, LXD from a package and as a snap, Incus. */
static const char *const lxc_folders[] = {
    "/var/lib/lxc", "/var/lib/lxd/containers",
    "/var/snap/lxd/common/lxd/containers", "/var/lib/incus/containers", NULL};

static bool look_up_system(struct lookup *l) {
  char data[CONTAINER_NAME_SIZE] = "/var/lib/docker";

  if (!has_digits(&l->found))
    return look_up_lxc(l, lxc_folders);
  if (try_file(l, "data-root", NULL, "/etc", "docker", "daemon.json"))
    strcpy(data, l->found.names.name);
  if (!try_docker(l, data) && !try_podman(l, "/var/lib"))
    return false;
  container_file_split(&l->found.names);
  return true;
}

static bool look_up_user(struct lookup *l) {
  char buffer[4096], data[PATH_SIZE];
  struct passwd pw, *found = NULL;

  getpwuid_r(l->found.uid, &pw, buffer, sizeof(buffer), &found);
  if (!found)
    return false;
  snprintf(data, sizeof(data), "%s/.local/share/lxc", pw.pw_dir);
  if (!has_digits(&l->found))
    return look_up_lxc(l, (const char *const[]){data, NULL});
  snprintf(data, sizeof(data), "%s/.local/share", pw.pw_dir);
  if (try_podman(l, data))
    return true;
  snprintf(data, sizeof(data), "%s/.local/share/docker", pw.pw_dir);
  return try_docker(l, data);
}

/* containerd has what kubelet told it in a file for each container, which the
 * one that holds a pod together has as well: "POD", as CRI-O calls it. But the
 * sandbox of Kata is the pod. (containerd 2.0, pkg/cri/annotations.) */
#define HANDLER "annotations/io.containerd.cri.runtime-handler"

static bool try_containerd(struct lookup *l, const char *state, bool is_kata) {
  static const char *const keys[] = {"container-type", "sandbox-namespace",
                                     "sandbox-name", "container-name"};
  struct container_names names = {.pod = ""};
  char *const ret[] = {names.name, names.namespace, names.pod, names.name};
  char folder[128], key[64];
  size_t n = LENGTH(keys);

  snprintf(folder, sizeof(folder), "io.containerd.runtime.v2.task/k8s.io/%s",
           l->found.id);
  for (size_t i = 0; i < n; i++) {
    snprintf(key, sizeof(key), "annotations/io.kubernetes.cri.%s", keys[i]);
    if (!try_file(l, key, NULL, state, folder, "config.json"))
      return false;
    strcpy(ret[i], l->found.names.name);
    if (i > 0 || strcmp(names.name, "sandbox") != 0)
      continue;
    is_kata |= try_file(l, HANDLER, NULL, state, folder, "config.json") &&
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
static bool try_kubelet(struct lookup *l) {
  struct container_entry *e = &l->found;
  DIR *dir =
      set_path(l, "/var/log", "containers", "") ? opendir(e->path) : NULL;
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
  is_found = link && set_path(l, "/var/log", "containers", link->d_name) &&
             lstat(e->path, &st) == 0;
  closedir(dir);
  if (is_found)
    set_version(e, &st);
  return is_found;
}

static bool look_up_pod(struct lookup *l, bool is_kata) {
  static const char *const states[] = {
      "/run/containerd", "/run/k3s/containerd",
      "/var/snap/microk8s/common/run/containerd"};

  if (try_kubelet(l))
    return true;
  for (size_t i = 0; i < LENGTH(states); i++)
    if (try_containerd(l, states[i], is_kata))
      return true;
  return false;
}

static bool is_unchanged(const struct container_entry *e) {
  struct stat st;

  return e->path[0] && lstat(e->path, &st) == 0 && st.st_ino == e->ino &&
         st.st_mtim.tv_sec == e->mtime.tv_sec &&
         st.st_mtim.tv_nsec == e->mtime.tv_nsec;
}

static int renew(struct lookup *l, struct span path) {
  bool is_of_pod = memmem(path.text, path.len, "kubepods", 8);
  bool is_kata = memmem(path.text, path.len, "/kata", 5);
  const struct container_entry before = l->found;
  bool was_known = before.path[0], is_found;

  if (is_unchanged(&before))
    return 0;
  is_found = before.uid  ? look_up_user(l)
             : is_of_pod ? look_up_pod(l, is_kata) || look_up_system(l)
                         : look_up_system(l) || look_up_pod(l, is_kata);
  if (!is_found)
    l->found = before;
  return is_found || was_known ? 0 : l->error;
}

/* --- the cache, with the lock --- */

void container_cache_init(struct container_cache *c, const char *root) {
  *c = (struct container_cache){.n = 0};
  snprintf(c->root, sizeof(c->root), "%s", root ? root : "");
  pthread_mutex_init(&c->lock, NULL);
}

void container_cache_done(struct container_cache *c) { free(c->entries); }

static struct container_entry *find(const struct container_cache *c,
                                    const struct container_entry *key) {
  for (size_t i = 0; i < c->n; i++)
    if (c->entries[i].uid == key->uid && strcmp(c->entries[i].id, key->id) == 0)
      return &c->entries[i];
  return NULL;
}

/* Completes *e with the known names. True if no files are to be read now: they
 * were checked in this cycle, or another thread reads, or much was read for
 * users. Else the caller reads them. */
static bool begin(struct container_cache *c, struct container_entry *e,
                  uint64_t now_ns) {
  bool *is_reading = &c->is_reading[e->uid != 0], will_do;
  const struct container_entry *known;

  pthread_mutex_lock(&c->lock);
  known = find(c, e);
  if (known)
    *e = *known;
  if (c->cycle_ns != now_ns)
    c->users_bytes = 0;
  c->cycle_ns = now_ns;
  will_do = *is_reading || (e->uid && c->users_bytes >= USERS_MOST) ||
            (known && e->checked_ns == now_ns);
  *is_reading |= !will_do;
  pthread_mutex_unlock(&c->lock);
  return will_do;
}

/* Without memory for another entry, its files are read again. */
static void end(struct container_cache *c, const struct lookup *l) {
  const struct container_entry *e = &l->found;
  struct container_entry *place, *grown;

  pthread_mutex_lock(&c->lock);
  place = find(c, e);
  if (!place) {
    c->n = c->n < ENTRIES_MAX ? c->n : 0;
    grown = reallocarray(c->entries, c->n + 1, sizeof(*grown));
    if (grown) {
      c->entries = grown;
      place = &grown[c->n++];
    }
  }
  if (place)
    *place = *e;
  c->users_bytes += e->uid ? LOOK_COST + l->bytes : 0;
  c->is_reading[e->uid != 0] = false;
  pthread_mutex_unlock(&c->lock);
}

/* /user.slice/user-1000.slice/…, with "/.." before it out of sight. */
static uint32_t user_of(struct span path) {
  struct cursor s = cursor_begin(path.text, path.len);
  uint32_t uid;

  while (parse_word(&s, "/.."))
    ;
  return parse_word(&s, "/user.slice/user-") && parse_u32(&s, &uid) &&
                 parse_word(&s, ".slice")
             ? uid
             : 0;
}

/* The names of one of the containers. True if they are known. */
static bool find_one(struct container_cache *c, struct span path,
                     const struct cgroup_container *container, uint64_t now_ns,
                     struct lookup *l, int *ret_rc) {
  struct container_entry *e = &l->found;

  *l = (struct lookup){.root = c->root, .found = {.uid = user_of(path)}};
  strcpy(e->names.name, container->id + container->name_at);
  if (container->has_digits)
    e->names.name[SHORT_LEN] = '\0';
  else if (container->runtime != CGROUP_LXC || !before_number(container->id) ||
           strlen(container->id) > ID_LEN)
    return true;
  strcpy(e->id, container->id);
  if (!begin(c, e, now_ns)) {
    *ret_rc = renew(l, path);
    e->checked_ns = now_ns;
    end(c, l);
  }
  return e->path[0] || !container->has_digits;
}

int container_names_find(struct container_cache *c, struct span path,
                         const struct cgroup_containers *containers,
                         uint64_t now_ns, struct container_names *ret,
                         const char **ret_file) {
  struct lookup l;
  int rc = 0, ignored = 0;

  if (find_one(c, path, &containers->at[containers->n - 1], now_ns, &l, &rc)) {
    *ret = l.found.names;
    return 0;
  }
  *ret = l.found.names;
  *ret_file = l.file;
  for (size_t i = containers->n - 1; i-- > 0;)
    if (find_one(c, path, &containers->at[i], now_ns, &l, &ignored)) {
      *ret = l.found.names;
      return 0;
    }
  return rc;
}
