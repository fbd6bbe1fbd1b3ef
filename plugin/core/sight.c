#include <smaps/sight.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <smaps/cgroup.h>
#include <smaps/policy.h>
#include <smaps/status.h>

/* A process can be moved to another cgroup, and can change its user, without
 * anything else to be seen of it. */
#define NAMES_MAX_AGE_NS (UINT64_C(60) * 1000000000)

/* Each attempt may cost a line in an audit log. */
#define EXECUTABLE_BACK_OFF_S 3600

/* Threads of a process whose main thread is dead, until one that lives. All
 * but the main thread vanish when they die, so the second one is it. */
#define THREADS_TRIED 8

#define DELETED " (deleted)"

static uint64_t mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * UINT64_C(0x100000001b3);
}

/* Tells one program image from the next: comm and the size of the text segment
 * mostly differ, the addresses always do, where they can be seen. */
static uint64_t image_of(const struct sighting *seen) {
  const struct stat_sample *s = &seen->stat;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; seen->comm[i]; i++)
    hash = mix(hash, (unsigned char)seen->comm[i]);
  hash = mix(hash, s->start_code);
  hash = mix(hash, s->start_stack);
  hash = mix(hash, s->arg_start);
  return mix(hash, seen->statm.text_pages);
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
static int check_is_same(struct procfs *procfs, const struct subject *p,
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

int sight_open_memory(struct procfs *procfs, const struct subject *p,
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

static int read_executable(struct sight *s, int fd, struct sighting *seen,
                           struct span *ret) {
  struct span path;
  int r = procfs_read_link(s->procfs, fd, "exe", &path);

  seen->is_executable_denied = r == PROCFS_DENIED;
  seen->executable_denied_s = 0;
  if (r != 0)
    return r < 0 ? r : 0;
  path.len = length_without_deleted(path);
  if (path.len >= sizeof(s->executable))
    return 0;
  memcpy(s->executable, path.text, path.len);
  *ret = (struct span){.text = s->executable, .len = path.len};
  return 0;
}

/* An empty command line (setproctitle(""), argv overwritten) says nothing: comm
 * stands in, as in the processes plugin. */
static int read_command_line(struct sight *s, int fd,
                             const struct sighting *seen, struct span *ret) {
  struct span text;
  int r = procfs_read_head(s->procfs, fd, "cmdline", CMDLINE_MAX, &text);

  ret->text = s->command_line;
  if (r == 0)
    ret->len = cmdline_join(text.text, text.len, s->command_line,
                            sizeof(s->command_line));
  if (r == PROCFS_NO_MM || (r == 0 && ret->len == 0)) {
    *ret = (struct span){.text = seen->comm, .len = strlen(seen->comm)};
    return 0;
  }
  if (r == PROCFS_DENIED)
    *ret = (struct span){.text = NULL};
  return r == PROCFS_DENIED ? 0 : r;
}

static int read_status(struct sight *s, int fd, struct status_sample *ret) {
  struct span text;
  int r = procfs_read(s->procfs, fd, "status", &text);

  return r != 0 ? r : status_parse(text.text, text.len, ret);
}

static int find_user(struct sight *s, const struct status_sample *status,
                     uint32_t *ret_uid, struct span *ret) {
  int r;

  if (!(status->known & STATUS_UID))
    return 0;
  *ret_uid = status->uid_effective;
  procfs_announce(s->procfs, "the user's name");
  r = user_cache_name(s->users, status->uid_effective, s->user);
  if (r < 0)
    return r;
  *ret = (struct span){.text = s->user, .len = strlen(s->user)};
  return 0;
}

/* When names are old: a minute after they were read, for some processes a
 * little earlier, lest all that were there at the start come due at once. */
bool sight_is_old(uint32_t pid, uint64_t identified_ns, uint64_t now_ns,
                  uint64_t interval_ns) {
  uint64_t spread_ns = pid % 16 * (NAMES_MAX_AGE_NS / 64);

  return now_ns - identified_ns + interval_ns >= NAMES_MAX_AGE_NS - spread_ns;
}

static bool wants(const struct sight *s, enum attribute a) {
  return (s->attributes >> a) & 1;
}

static struct span span_of(const char *value) {
  return (struct span){.text = value, .len = value ? strlen(value) : 0};
}

static int read_cgroup(struct sight *s, int fd, struct span value[ATTRIBUTES]) {
  struct span text, path;
  int r = procfs_read(s->procfs, fd, "cgroup", &text);

  if (r == 0 && cgroup_parse(text.text, text.len, &path) == 0) {
    value[ATTRIBUTE_CGROUP] = path;
    cgroup_unit(path, &value[ATTRIBUTE_UNIT]);
    cgroup_slice(path, &value[ATTRIBUTE_SLICE]);
    cgroup_container(path, &value[ATTRIBUTE_CONTAINER]);
  }
  /* No cgroup file: a kernel without them. */
  return r == PROCFS_GONE || r == PROCFS_NO_MM ? 0 : r;
}

/* Why names are looked at, as far as it is not for their age. */
struct occasion {
  bool is_new;    /* an exec, or another process */
  bool is_first;  /* that, or the cycle after */
  bool is_hidden; /* an exec may go unseen */
  struct status_sample status;
};

static uint32_t switches_of(const struct status_sample *status) {
  return (uint32_t)(status->voluntary_switches + status->involuntary_switches);
}

/*
 * Whether it can have written to its memory since its command line was read.
 * The kernel counts a thread's going off the CPU, so one that sleeps as before
 * has not run, and it is of no use to wake what it has in swap. The counts are
 * those of the main thread.
 */
static bool has_run(const struct subject *p, const struct occasion *o,
                    const struct sighting *seen) {
  const unsigned both = STATUS_VOLUNTARY | STATUS_INVOLUNTARY;

  return (o->status.known & both) != both || seen->stat.threads > 1 ||
         seen->stat.state == 'R' || switches_of(&o->status) != p->switches;
}

/* Where a rule goes by it, its age has it read again. */
static bool wants_command_line(const struct sight *s, const struct subject *p,
                               const struct occasion *o,
                               const struct sighting *seen) {
  bool may_change =
      o->is_hidden || (s->rule_attributes >> ATTRIBUTE_COMMAND_LINE) & 1;

  return wants(s, ATTRIBUTE_COMMAND_LINE) &&
         (o->is_first || (may_change && has_run(p, o, seen)));
}

/* Only an exec changes it; and what was refused may be granted some day. */
static bool wants_executable(const struct sight *s, const struct subject *p,
                             const struct occasion *o,
                             const struct sighting *seen, uint32_t now_s) {
  bool is_denied = p->executable_denied_s && !o->is_new;

  if (!wants(s, ATTRIBUTE_EXECUTABLE))
    return false;
  if (is_denied)
    return now_s - p->executable_denied_s >= EXECUTABLE_BACK_OFF_S;
  return o->is_first || (o->is_hidden && has_run(p, o, seen));
}

static int read_memory_names(struct sight *s, const struct subject *p, int fd,
                             const struct occasion *o, uint32_t now_s,
                             struct sighting *seen,
                             struct span value[ATTRIBUTES]) {
  int r = 0;

  seen->switches = p->switches;
  seen->executable_denied_s = o->is_new ? 0 : p->executable_denied_s;
  if (wants_executable(s, p, o, seen, now_s)) {
    value[ATTRIBUTE_EXECUTABLE].text = NULL;
    r = read_executable(s, fd, seen, &value[ATTRIBUTE_EXECUTABLE]);
    if (seen->is_executable_denied)
      seen->executable_denied_s = now_s ? now_s : 1;
  }
  if (r == 0 && wants_command_line(s, p, o, seen)) {
    seen->switches = switches_of(&o->status); /* as they were before */
    r = read_command_line(s, fd, seen, &value[ATTRIBUTE_COMMAND_LINE]);
  }
  return r;
}

/* Those that are not read keep their old values. */
static int read_names(struct sight *s, const struct subject *p, int fd,
                      const struct identity *old, struct occasion *o,
                      uint32_t now_s, struct sighting *seen,
                      struct span value[ATTRIBUTES], uint32_t *uid) {
  bool wants_status = wants(s, ATTRIBUTE_USER) || o->is_hidden ||
                      (s->rule_attributes >> ATTRIBUTE_COMMAND_LINE) & 1;
  int r = wants_status ? read_status(s, fd, &o->status) : 0;

  value[ATTRIBUTE_COMM] = span_of(seen->comm);
  value[ATTRIBUTE_EXECUTABLE] = span_of(old->value[ATTRIBUTE_EXECUTABLE]);
  value[ATTRIBUTE_COMMAND_LINE] = span_of(old->value[ATTRIBUTE_COMMAND_LINE]);
  if (r == 0)
    r = read_memory_names(s, p, fd, o, now_s, seen, value);
  if (r == 0 && wants(s, ATTRIBUTE_USER))
    r = find_user(s, &o->status, uid, &value[ATTRIBUTE_USER]);
  if (r == 0 && (wants(s, ATTRIBUTE_CGROUP) || wants(s, ATTRIBUTE_UNIT) ||
                 wants(s, ATTRIBUTE_SLICE) || wants(s, ATTRIBUTE_CONTAINER)))
    /* The last one, because its text is used where it stands. */
    r = read_cgroup(s, fd, value);
  return r;
}

/*
 * The names are read at first sight and after an exec; once more in the next
 * cycle, because a server's child changes its title and its user only after
 * fork; and with age. Age brings what cannot hang and wakes no memory, and of
 * the others only what can have changed.
 */
static int look_at_names(struct sight *s, const struct subject *p, int fd,
                         uint64_t now_ns, struct sighting *seen) {
  static const struct stored_identity nothing;
  bool is_known =
      p->identified_ns && p->starttime_ticks == seen->stat.starttime_ticks;
  const struct stored_identity *stored = is_known ? &p->identity : &nothing;
  struct identity old = identity_get(stored);
  struct span value[ATTRIBUTES] = {{0}};
  struct occasion o = {.is_new = !is_known || p->image != seen->image,
                       .is_hidden = !stat_has_addresses(&seen->stat)};
  uint32_t uid = old.uid;
  int r;

  o.is_first = o.is_new || !p->is_settled;
  if (!o.is_first &&
      !sight_is_old(p->pid, p->identified_ns, now_ns, s->interval_ns))
    return 0;
  r = read_names(s, p, fd, &old, &o, (uint32_t)(now_ns / NS_PER_S), seen, value,
                 &uid);
  if (r != 0)
    return r;
  r = identity_renew(stored, value, uid, &seen->identity);
  if (r < 0)
    return r;
  seen->has_names = true;
  seen->has_changed = r == IDENTITY_CHANGED;
  return 0;
}

/* Reads on through fd, which it closes. */
static int look_at_memory(struct sight *s, const struct subject *p, int fd,
                          uint64_t now_ns, struct sighting *seen) {
  int memory_fd = -1;
  /* Without further threads it would not be alive. */
  int r = open_memory(s->procfs, stat_is_dead(&seen->stat), fd, &memory_fd);

  seen->file = "task";
  if (r != 0)
    return r;
  seen->file = "statm";
  r = read_statm(s->procfs, memory_fd, &seen->statm);
  /* No mm, and no zombie yet: it is on its way out. */
  if (r == 0 && !statm_has_mm(&seen->statm))
    r = PROCFS_GONE;
  if (r == 0) {
    seen->image = image_of(seen);
    seen->file = "names";
    r = look_at_names(s, p, memory_fd, now_ns, seen);
  }
  close(memory_fd);
  return r;
}

/* Takes stat, whose comm stands in a text that is overwritten by what is read
 * next. */
static void see_stat(struct sighting *seen, const struct stat_sample *stat) {
  size_t len = stat->comm.len < sizeof(seen->comm) ? stat->comm.len
                                                   : sizeof(seen->comm) - 1;

  seen->stat = *stat;
  seen->stat.comm = (struct span){.text = NULL};
  memcpy(seen->comm, stat->comm.text, len);
  seen->comm[len] = '\0';
  seen->state = stat_is_kernel_thread(stat)                ? PROCESS_KERNEL
                : stat_is_dead(stat) && stat->threads <= 1 ? PROCESS_GONE
                                                           : PROCESS_ALIVE;
}

int sight_look(struct sight *s, const struct subject *p, uint64_t now_ns,
               struct sighting *ret) {
  struct stat_sample stat;
  int fd, r;

  *ret = (struct sighting){.file = "stat"};
  r = procfs_open_process(s->procfs, p->pid, &fd);
  if (r != 0)
    return r;
  r = read_stat(s->procfs, fd, &stat);
  if (r == 0)
    see_stat(ret, &stat);
  if (r == 0 && ret->state == PROCESS_ALIVE)
    return look_at_memory(s, p, fd, now_ns, ret);
  close(fd);
  return r;
}

void sighting_done(struct sighting *s) { identity_done(&s->identity); }
