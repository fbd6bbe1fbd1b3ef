#include "process/container_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/duration.h"

#define ID_LEN 64
#define SHORT_LEN 12
/* Podman has all containers in one file, with about 1 kB for each. */
#define SIZE_MOST (4 << 20)
/* A user can make any number of control groups that look like containers: not
 * each of them deserves an entry for ever. */
#define ENTRIES_MAX 4096
/* The names of all processes are read within this time of each other
 * (inspect.c), so that those of a container change their group together. */
#define CHECKED_FOR_NS (15 * NS_PER_S)

#define POD_LINKS "/var/log/containers"

/* A user may give a control group the id of another one's container: so the id
 * alone is no key. */
struct container_entry {
  char id[ID_LEN + 1];
  uint32_t uid; /* the user whose files tell; 0 for those of the system */
  struct container_names names;
  char *path; /* the file that has told them, as it was then; or NULL */
  ino_t ino;
  struct timespec mtime;
  uint64_t checked_ns;
};

/* --- reading files, without the lock --- */

struct lookup {
  const char *root, *id;
  uint32_t uid;
  struct container_names names;
  char path[2 * PATH_MAX]; /* of the file that has told; or empty */
  struct stat st;
  int error; /* of the first file that is there and was of no use */
  const char *file;
};

static int last_error(void) { return errno > 0 ? -errno : -EIO; }

static void note(struct lookup *l, int rc, const char *file) {
  if (rc == 0 || rc == -ENOENT || rc == -ENOTDIR || l->error)
    return;
  l->error = rc;
  l->file = file;
}

static int parse_file(struct lookup *l, int fd, enum container_format format) {
  char *text;
  ssize_t len;
  int rc;

  if (fstat(fd, &l->st) < 0)
    return last_error();
  if (!S_ISREG(l->st.st_mode) || l->st.st_size > SIZE_MOST)
    return -EBADMSG;
  if (l->uid && l->st.st_uid != l->uid)
    return -EPERM;
  text = malloc((size_t)l->st.st_size + 1);
  if (!text)
    return -ENOMEM;
  len = read(fd, text, (size_t)l->st.st_size);
  rc = len < 0 ? last_error()
               : container_file_parse(format, text, (size_t)len, l->id,
                                      l->names.name);
  free(text);
  return rc;
}

/* A user could have put anything in the place of the file: O_NONBLOCK is for a
 * pipe or a lease, and only a regular file of the user's own is read. */
static bool try_file(struct lookup *l, enum container_format format,
                     const char *directory, const char *file) {
  int fd, rc;

  snprintf(l->path, sizeof(l->path), "%s%s/%s", l->root, directory, file);
  fd = open(l->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  rc = fd < 0 ? last_error() : parse_file(l, fd, format);
  if (fd >= 0)
    close(fd);
  note(l, rc, file);
  return rc == 0;
}

static bool try_docker(struct lookup *l, const char *data_root) {
  char directory[PATH_MAX];

  snprintf(directory, sizeof(directory), "%s/containers/%s", data_root, l->id);
  return try_file(l, CONTAINER_DOCKER, directory, "config.v2.json");
}

/* The second file is of `podman run --rm`, from Podman 4.4 on. */
static bool try_podman(struct lookup *l, const char *data) {
  char directory[PATH_MAX];

  snprintf(directory, sizeof(directory),
           "%s/containers/storage/overlay-containers", data);
  return try_file(l, CONTAINER_PODMAN, directory, "containers.json") ||
         try_file(l, CONTAINER_PODMAN, directory, "volatile-containers.json");
}

static bool look_up_system(struct lookup *l) {
  char data_root[CONTAINER_NAME_SIZE] = "/var/lib/docker";

  if (try_file(l, CONTAINER_DOCKER_ROOT, "/etc/docker", "daemon.json"))
    strcpy(data_root, l->names.name);
  return try_docker(l, data_root) || try_podman(l, "/var/lib");
}

static bool look_up_user(struct lookup *l) {
  char buffer[4096], data[PATH_MAX / 2];
  struct passwd pw, *found = NULL;

  getpwuid_r(l->uid, &pw, buffer, sizeof(buffer), &found);
  if (!found)
    return false;
  snprintf(data, sizeof(data), "%s/.local/share", pw.pw_dir);
  if (try_podman(l, data))
    return true;
  snprintf(data, sizeof(data), "%s/.local/share/docker", pw.pw_dir);
  return try_docker(l, data);
}

/* kubelet makes no link for the container that holds a pod together, which
 * CRI-O and cAdvisor call POD. Another container may get its link later. */
static bool look_up_pod(struct lookup *l, bool is_of_pod) {
  struct dirent *file;
  DIR *dir;

  snprintf(l->path, sizeof(l->path), "%s" POD_LINKS, l->root);
  dir = opendir(l->path);
  if (!dir) {
    note(l, last_error(), POD_LINKS);
    return false;
  }
  while ((file = readdir(dir)))
    if (container_file_kubelet(file->d_name, l->id, &l->names))
      break;
  if (file)
    snprintf(l->path, sizeof(l->path), "%s" POD_LINKS "/%s", l->root,
             file->d_name);
  closedir(dir);
  if (file)
    return lstat(l->path, &l->st) == 0;
  strcpy(l->names.name, "POD");
  l->path[0] = '\0';
  return is_of_pod;
}

static bool is_unchanged(const struct container_entry *e) {
  struct stat st;

  return e->path && lstat(e->path, &st) == 0 && st.st_ino == e->ino &&
         st.st_mtim.tv_sec == e->mtime.tv_sec &&
         st.st_mtim.tv_nsec == e->mtime.tv_nsec;
}

static int renew(struct container_entry *e, const char *root, bool is_of_pod,
                 const char **ret_file) {
  struct lookup l = {.root = root, .id = e->id, .uid = e->uid};
  bool is_found;

  if (is_unchanged(e))
    return 0;
  is_found =
      e->uid ? look_up_user(&l)
             : (!is_of_pod && look_up_system(&l)) || look_up_pod(&l, is_of_pod);
  if (e->path && !(is_found && l.path[0]))
    return 0;
  *ret_file = l.file;
  if (!is_found)
    return l.error;
  e->names = l.names;
  if (!l.path[0])
    return 0;
  free(e->path);
  e->path = strdup(l.path); /* without memory the file is read again */
  e->ino = l.st.st_ino;
  e->mtime = l.st.st_mtim;
  return 0;
}

/* --- the cache, with the lock --- */

int container_cache_init(struct container_cache *c, const char *root) {
  *c = (struct container_cache){.root = strdup(root ? root : "")};
  if (!c->root)
    return -ENOMEM;
  pthread_mutex_init(&c->lock, NULL);
  return 0;
}

static void clear(struct container_cache *c) {
  while (c->n > 0)
    free(c->entries[--c->n].path);
}

void container_cache_done(struct container_cache *c) {
  clear(c);
  free(c->entries);
  free(c->root);
  *c = (struct container_cache){.root = NULL};
}

/* The entry of the same container, or a new one; NULL without memory. */
static struct container_entry *place_of(struct container_cache *c,
                                        const struct container_entry *key,
                                        bool may_add) {
  struct container_entry *entries;

  for (size_t i = 0; i < c->n; i++)
    if (c->entries[i].uid == key->uid && strcmp(c->entries[i].id, key->id) == 0)
      return &c->entries[i];
  if (!may_add)
    return NULL;
  if (c->n == ENTRIES_MAX)
    clear(c);
  if (c->n == c->cap) {
    entries = reallocarray(c->entries, c->cap * 2 + 16, sizeof(*entries));
    if (!entries)
      return NULL;
    c->entries = entries;
    c->cap = c->cap * 2 + 16;
  }
  c->entries[c->n].path = NULL;
  return &c->entries[c->n++];
}

/* Completes *e by what is known. True if that has to do; else the caller reads
 * files, and owns the path. What no file has told is looked for whenever a
 * process needs it: it may be written later. */
static bool begin(struct container_cache *c, struct container_entry *e,
                  uint64_t now_ns) {
  bool *is_reading = &c->is_reading[e->uid != 0], will_do;
  const struct container_entry *known;

  pthread_mutex_lock(&c->lock);
  known = place_of(c, e, false);
  if (known)
    *e = *known;
  will_do = *is_reading ||
            (known && now_ns - e->checked_ns < (e->path ? CHECKED_FOR_NS : 1));
  *is_reading |= !will_do;
  if (!will_do && e->path)
    e->path = strdup(e->path);
  pthread_mutex_unlock(&c->lock);
  return will_do;
}

static void end(struct container_cache *c, const struct container_entry *e) {
  struct container_entry *place;

  pthread_mutex_lock(&c->lock);
  place = place_of(c, e, true);
  free(place ? place->path : e->path);
  if (place)
    *place = *e;
  c->is_reading[e->uid != 0] = false;
  pthread_mutex_unlock(&c->lock);
}

/* /user.slice/user-1000.slice/… */
static uint32_t user_of(struct span path) {
  const char *at = memmem(path.text, path.len, "/user-", 6);
  struct cursor s =
      at ? cursor_begin(at + 6, path.len - (size_t)(at + 6 - path.text))
         : cursor_begin("", 0);
  uint32_t uid;

  return parse_u32(&s, &uid) && parse_word(&s, ".slice") ? uid : 0;
}

int container_names_find(struct container_cache *c, struct span path,
                         struct span container, uint64_t now_ns,
                         struct container_names *ret, const char **ret_file) {
  struct container_entry e = {.uid = user_of(path)};
  bool is_of_pod = memmem(path.text, path.len, "kubepods", 8);
  int rc = 0;

  if (container.len == ID_LEN)
    memcpy(e.id, container.text, ID_LEN);
  if (strspn(e.id, "0123456789abcdef") != ID_LEN) {
    snprintf(e.names.name, sizeof(e.names.name), "%.*s", (int)container.len,
             container.text);
    *ret = e.names;
    return 0;
  }
  memcpy(e.names.name, e.id, SHORT_LEN);
  if (!begin(c, &e, now_ns)) {
    rc = renew(&e, c->root, is_of_pod, ret_file);
    e.checked_ns = now_ns;
    end(c, &e);
  }
  *ret = e.names;
  return rc;
}
