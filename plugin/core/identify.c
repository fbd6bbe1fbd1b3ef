#include <smaps/identify.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <smaps/cgroup.h>
#include <smaps/name.h>
#include <smaps/status.h>

/* A process can be moved to another cgroup, and can change its user, without
 * anything else to be seen of it. */
#define NAMES_MAX_AGE_NS (UINT64_C(60) * 1000000000)

/* Threads of a process whose main thread is dead, until one that lives. All
 * but the main thread vanish when they die, so the second one is it. */
#define THREADS_TRIED 8

#define DELETED " (deleted)"

void identify_note(struct trouble *troubles, enum trouble_kind kind,
                   const struct process *p, int error, const char *file) {
  struct trouble *t = &troubles[kind];
  const char *comm = identity_get(&p->identity).value[ATTRIBUTE_COMM];

  if (t->count++ > 0)
    return;
  t->pid = p->pid;
  t->error = error < 0 ? -error : 0;
  t->file = file;
  name_escape(comm ? comm : "", comm ? strlen(comm) : 0, t->comm,
              sizeof(t->comm));
}

/* Notes a failed read; what has ended is no trouble. */
static void note_failure(struct identifier *in, const struct process *p, int r,
                         const char *file) {
  if (r == PROCFS_DENIED)
    identify_note(in->troubles, TROUBLE_PROCESS_DENIED, p, 0, file);
  else if (r == -EBADMSG)
    identify_note(in->troubles, TROUBLE_MALFORMED, p, 0, file);
  else if (r < 0)
    identify_note(in->troubles, TROUBLE_FAILED, p, r, file);
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * UINT64_C(0x100000001b3);
}

/* Tells one program image from the next: comm and the size of the text segment
 * mostly differ, the addresses always do, where they can be seen. */
static uint64_t image_of(const struct stat_sample *s,
                         const struct statm_sample *m) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; i < s->comm.len; i++)
    hash = mix(hash, (unsigned char)s->comm.text[i]);
  hash = mix(hash, s->start_code);
  hash = mix(hash, s->start_stack);
  hash = mix(hash, s->arg_start);
  return mix(hash, m->text_pages);
}

static int read_statm(struct procfs *procfs, int fd, struct statm_sample *ret) {
  struct span text;
  int r = procfs_read(procfs, fd, "statm", &text);

  return r != 0 ? r : statm_parse(text.text, text.len, ret);
}

/* The first thread that has an mm. */
static int open_live_thread(struct procfs *procfs, int process_fd,
                            int *ret_fd) {
  uint32_t tids[THREADS_TRIED];
  size_t n = 0;
  int r = procfs_list_threads(procfs, process_fd, tids, THREADS_TRIED, &n);

  if (r != 0)
    return r;
  for (size_t i = 0; i < n; i++) {
    struct statm_sample statm;
    int fd;

    if (procfs_open_thread(procfs, process_fd, tids[i], &fd) != 0)
      continue;
    if (read_statm(procfs, fd, &statm) == 0 && statm_has_mm(&statm)) {
      *ret_fd = fd;
      return 0;
    }
    close(fd);
  }
  return PROCFS_GONE;
}

static int open_memory(struct procfs *procfs, bool is_dead_leader, int fd,
                       int *ret_fd) {
  int r;

  if (!is_dead_leader) {
    *ret_fd = fd;
    return 0;
  }
  r = open_live_thread(procfs, fd, ret_fd);
  close(fd);
  return r;
}

static int read_stat(struct procfs *procfs, int fd, struct stat_sample *ret) {
  struct span text;
  int r = procfs_read(procfs, fd, "stat", &text);

  return r != 0 ? r : stat_parse(text.text, text.len, ret);
}

/* Whether the directory is still that of the process we looked at. */
static int check_is_same(struct procfs *procfs, const struct process *p,
                         int fd) {
  struct stat_sample s;
  uint64_t ino;
  int r = procfs_inode(fd, &ino);

  if (r != 0 || (uint32_t)ino == p->ino)
    return r;
  r = read_stat(procfs, fd, &s);
  if (r != 0)
    return r;
  return s.starttime_ticks == p->starttime_ticks ? 0 : PROCFS_GONE;
}

int identify_open_memory(struct procfs *procfs, const struct process *p,
                         int *ret_fd) {
  int fd;
  int r = procfs_open_process(procfs, p->pid, &fd);

  if (r != 0)
    return r;
  r = check_is_same(procfs, p, fd);
  if (r != 0) {
    close(fd);
    return r;
  }
  return open_memory(procfs, p->is_dead_leader, fd, ret_fd);
}

/*
 * The kernel adds " (deleted)" where the file has been unlinked, say by an
 * upgrade of its package. A file could really be called that, but looking for
 * it could hang on a dead NFS server; and whoever can give a file such a name
 * can as well give it the other one.
 */
static size_t length_without_deleted(struct span path) {
  size_t suffix = strlen(DELETED);

  if (path.len > suffix &&
      memcmp(path.text + path.len - suffix, DELETED, suffix) == 0)
    return path.len - suffix;
  return path.len;
}

static int read_executable(struct identifier *in, const struct process *p,
                           int fd, struct span *ret) {
  struct span path;
  int r = procfs_read_link(in->procfs, fd, "exe", &path);

  if (r == PROCFS_DENIED)
    identify_note(in->troubles, TROUBLE_EXECUTABLE_DENIED, p, 0, "exe");
  if (r != 0)
    return r < 0 ? r : 0;
  path.len = length_without_deleted(path);
  if (path.len >= sizeof(in->executable))
    return 0;
  memcpy(in->executable, path.text, path.len);
  *ret = (struct span){.text = in->executable, .len = path.len};
  return 0;
}

/* An empty command line (setproctitle(""), argv overwritten) says nothing: comm
 * stands in, as in the processes plugin. */
static int read_command_line(struct identifier *in, int fd, struct span *ret) {
  struct span text;
  int r = procfs_read_head(in->procfs, fd, "cmdline", CMDLINE_MAX, &text);

  ret->text = in->command_line;
  if (r == 0)
    ret->len = cmdline_join(text.text, text.len, in->command_line,
                            sizeof(in->command_line));
  if (r == PROCFS_NO_MM || (r == 0 && ret->len == 0)) {
    *ret = (struct span){.text = in->comm, .len = strlen(in->comm)};
    return 0;
  }
  if (r == PROCFS_DENIED)
    *ret = (struct span){.text = NULL};
  return r == PROCFS_DENIED ? 0 : r;
}

static int read_user(struct identifier *in, int fd, uint32_t *ret_uid,
                     struct span *ret) {
  struct status_sample status;
  const char *name;
  struct span text;
  int r = procfs_read(in->procfs, fd, "status", &text);

  if (r == 0)
    r = status_parse(text.text, text.len, &status);
  if (r != 0 || !(status.known & STATUS_UID))
    return r;
  *ret_uid = status.uid_effective;
  name = user_cache_name(in->users, status.uid_effective);
  if (!name)
    return -ENOMEM;
  *ret = (struct span){.text = name, .len = strlen(name)};
  return 0;
}

/* When names are old: a minute after they were read, for some processes a
 * little earlier, lest all that were there at the start come due at once. */
static bool is_old(const struct process *p, uint64_t now_ns) {
  uint64_t spread_ns = p->pid % 16 * (NAMES_MAX_AGE_NS / 64);

  return now_ns - p->identified_ns >= NAMES_MAX_AGE_NS - spread_ns;
}

static bool wants(const struct identifier *in, enum attribute a) {
  return (in->attributes >> a) & 1;
}

static struct span old_value(const struct process *p, enum attribute a) {
  const char *value = identity_get(&p->identity).value[a];

  return (struct span){.text = value, .len = value ? strlen(value) : 0};
}

static int read_names(struct identifier *in, struct process *p, int fd,
                      bool is_whole, struct span value[ATTRIBUTES],
                      uint32_t *uid) {
  struct span text, path;
  int r = 0;

  value[ATTRIBUTE_COMM] =
      (struct span){.text = in->comm, .len = strlen(in->comm)};
  value[ATTRIBUTE_EXECUTABLE] = old_value(p, ATTRIBUTE_EXECUTABLE);
  value[ATTRIBUTE_COMMAND_LINE] = old_value(p, ATTRIBUTE_COMMAND_LINE);
  if (wants(in, ATTRIBUTE_EXECUTABLE) && is_whole) {
    value[ATTRIBUTE_EXECUTABLE].text = NULL;
    r = read_executable(in, p, fd, &value[ATTRIBUTE_EXECUTABLE]);
  }
  if (r == 0 && wants(in, ATTRIBUTE_COMMAND_LINE) && is_whole)
    r = read_command_line(in, fd, &value[ATTRIBUTE_COMMAND_LINE]);
  if (r == 0 && wants(in, ATTRIBUTE_USER))
    r = read_user(in, fd, uid, &value[ATTRIBUTE_USER]);
  if (r != 0 || !(wants(in, ATTRIBUTE_CGROUP) || wants(in, ATTRIBUTE_UNIT) ||
                  wants(in, ATTRIBUTE_SLICE) || wants(in, ATTRIBUTE_CONTAINER)))
    return r;
  /* The last one, because its text is used where it stands. */
  r = procfs_read(in->procfs, fd, "cgroup", &text);
  if (r == 0 && cgroup_parse(text.text, text.len, &path) == 0) {
    value[ATTRIBUTE_CGROUP] = path;
    cgroup_unit(path, &value[ATTRIBUTE_UNIT]);
    cgroup_slice(path, &value[ATTRIBUTE_SLICE]);
    cgroup_container(path, &value[ATTRIBUTE_CONTAINER]);
  }
  /* No cgroup file: a kernel without them. */
  return r == PROCFS_GONE || r == PROCFS_NO_MM ? 0 : r;
}

/*
 * The names are read at first sight and after an exec; once more in the next
 * cycle, because a server's child changes its title and its user only after
 * fork; and with age. Age brings only what cannot hang and wakes no memory,
 * unless execs cannot be seen for sure.
 */
static int identify(struct identifier *in, struct process *p, int fd,
                    uint64_t image, uint64_t now_ns) {
  struct span value[ATTRIBUTES] = {{0}};
  uint32_t uid = p->identity.uid;
  bool is_new = !p->identified_ns || p->image != image;
  bool is_whole = is_new || !p->is_settled || !p->has_addresses;
  bool has_changed = false;
  int r;

  if (!is_new && p->is_settled && !is_old(p, now_ns))
    return 0;
  r = read_names(in, p, fd, is_whole, value, &uid);
  if (r == 0)
    r = identity_set(&p->identity, value, uid, &has_changed);
  if (r != 0)
    return r;
  p->is_match_due |= has_changed || is_new;
  p->is_settled = !is_new;
  if (is_new) {
    /* Another program: what was known of its memory is of the one before. */
    p->denied_until_ns = 0;
    p->reading.at_ns = 0;
    p->cost = (struct cost){0};
  }
  p->image = image;
  p->identified_ns = now_ns;
  return 0;
}

/* Takes in stat; the text that it points into is overwritten by what is read
 * next. */
static void take_stat(struct identifier *in, struct process *p,
                      const struct stat_sample *s) {
  size_t len =
      s->comm.len < sizeof(in->comm) ? s->comm.len : sizeof(in->comm) - 1;

  memcpy(in->comm, s->comm.text, len);
  in->comm[len] = '\0';
  if (p->starttime_ticks != s->starttime_ticks)
    process_reset(p, in->gone, in->gone_ctx);
  p->starttime_ticks = s->starttime_ticks;
  if (!p->is_linked)
    p->parent_pid = s->ppid;
  p->threads = s->threads;
  p->start_stack = s->start_stack;
  p->has_addresses = stat_has_addresses(s);
  p->is_dead_leader = stat_is_dead(s) && s->threads > 1;
}

/* Reads on through fd, which it closes. */
static int look_closer(struct identifier *in, struct process *p, int fd,
                       struct stat_sample *s, uint64_t now_ns,
                       const char **file) {
  struct statm_sample statm;
  int memory_fd = -1;
  int r = open_memory(in->procfs, p->is_dead_leader, fd, &memory_fd);

  *file = "task";
  if (r != 0)
    return r;
  s->comm = (struct span){.text = in->comm, .len = strlen(in->comm)};
  *file = "statm";
  r = read_statm(in->procfs, memory_fd, &statm);
  /* No mm, and no zombie yet: it is on its way out. */
  if (r == 0 && !statm_has_mm(&statm))
    r = PROCFS_GONE;
  if (r == 0) {
    p->statm = statm;
    *file = "names";
    r = identify(in, p, memory_fd, image_of(s, &statm), now_ns);
  }
  close(memory_fd);
  return r;
}

static int look(struct identifier *in, struct process *p, uint64_t now_ns,
                const char **file) {
  struct stat_sample s;
  int fd, r;

  *file = "stat";
  r = procfs_open_process(in->procfs, p->pid, &fd);
  if (r != 0)
    return r;
  r = read_stat(in->procfs, fd, &s);
  if (r != 0) {
    close(fd);
    return r;
  }
  take_stat(in, p, &s);
  if (stat_is_kernel_thread(&s) || (stat_is_dead(&s) && s.threads <= 1)) {
    close(fd);
    p->state = stat_is_kernel_thread(&s) ? PROCESS_KERNEL : PROCESS_GONE;
    return 0;
  }
  p->state = PROCESS_ALIVE;
  return look_closer(in, p, fd, &s, now_ns, file);
}

/*
 * Whether statm shows the same program going on. An exec, a new thread (its
 * stack) and the end of the main thread all change the size; so does a malloc
 * now and then, and then stat tells.
 */
static bool is_going_on(const struct statm_sample *before,
                        const struct statm_sample *now) {
  return now->size_pages == before->size_pages &&
         now->text_pages == before->text_pages;
}

/* Threads that end leave their stacks to the next ones, so that the size says
 * nothing; one thread, in contrast, cannot become two without it. */
static int refresh_threads(struct identifier *in, struct process *p) {
  return p->threads > 1 ? procfs_count_threads(in->procfs, p->pid, &p->threads)
                        : 0;
}

/* The short way for a process that is known: true where it will do. */
static bool glance(struct identifier *in, struct process *p, uint64_t now_ns) {
  struct statm_sample statm;
  struct span text;

  if (!p->identified_ns || p->has_new_inode || !p->is_settled ||
      p->is_dead_leader || is_old(p, now_ns))
    return false;
  if (procfs_read_of(in->procfs, p->pid, "statm", &text) != 0 ||
      statm_parse(text.text, text.len, &statm) != 0 ||
      !is_going_on(&p->statm, &statm) || refresh_threads(in, p) != 0)
    return false;
  p->statm = statm;
  p->state = PROCESS_ALIVE;
  return true;
}

void identify_process(struct identifier *in, struct process *p,
                      uint64_t now_ns) {
  const char *file;
  int r;

  if (glance(in, p, now_ns))
    return;
  r = look(in, p, now_ns, &file);
  if (r == 0)
    return;
  if (r == PROCFS_GONE || r == PROCFS_NO_MM) {
    in->vanished++;
    p->state = PROCESS_GONE;
    return;
  }
  note_failure(in, p, r, file);
  p->state = PROCESS_UNKNOWN;
}
