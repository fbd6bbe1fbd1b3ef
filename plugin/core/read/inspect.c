/* SPDX-License-Identifier: MIT */
#include "read/inspect.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "cgroup/cgroup.h"
#include "proc/cheap_files.h"

/* The cgroup and the user of a process can change without any other sign. */
#define NAMES_MAX_AGE_NS (60 * NS_PER_S)

#define DELETED " (deleted)"

static uint64_t mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * UINT64_C(0x100000001b3);
}

/* Distinguishes program images: comm and the size of the text segment mostly
 * differ; the addresses, if visible, always do. */
static uint64_t hash_image(const struct inspection *seen) {
  const struct stat_sample *s = &seen->stat;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; s->comm[i]; i++)
    hash = mix(hash, (unsigned char)s->comm[i]);
  hash = mix(hash, s->start_code);
  hash = mix(hash, s->start_stack);
  hash = mix(hash, s->arg_start);
  return mix(hash, seen->statm.text_pages);
}

int inspect_stat(struct procfs *procfs, uint32_t pid, struct stat_sample *ret) {
  struct span text;
  int rc = procfs_read(procfs, pid, "stat", &text);

  return rc != 0 ? rc : stat_parse(text.text, text.len, ret);
}

/*
 * The kernel appends " (deleted)" if the file was unlinked, say by an upgrade
 * of its package. The name of a file could really end like this, but checking
 * that could hang on a dead NFS server; and any user who can give a file such a
 * name can give it the other one as well.
 */
static int read_executable(struct inspect_ctx *in, uint32_t pid,
                           struct inspection *seen, struct span *ret) {
  struct span path;
  int rc = procfs_read_link(in->procfs, pid, "exe", &path);

  seen->is_executable_denied =
      rc == PROCFS_DENIED ||
      (rc == PROCFS_GONE && procfs_is_captured(in->procfs));
  if (rc != 0)
    return rc < 0 ? rc : 0;
  if (path.len > strlen(DELETED) &&
      memcmp(path.text + path.len - strlen(DELETED), DELETED,
             strlen(DELETED)) == 0)
    path.len -= strlen(DELETED);
  if (path.len >= sizeof(in->executable))
    return 0;
  memcpy(in->executable, path.text, path.len);
  *ret = (struct span){.text = in->executable, .len = path.len};
  return 0;
}

static struct span span_of(const char *value) {
  return (struct span){.text = value, .len = value ? strlen(value) : 0};
}

/* An empty command line (setproctitle(""), argv overwritten) is replaced by
 * comm, as in the processes plugin. */
static int read_command_line(struct inspect_ctx *in, uint32_t pid,
                             const struct inspection *seen, struct span *ret) {
  struct span text;
  int rc = procfs_read_head(in->procfs, pid, "cmdline", CMDLINE_MAX, &text);

  ret->text = in->command_line;
  if (rc == 0)
    ret->len = cmdline_join(text.text, text.len, in->command_line,
                            sizeof(in->command_line));
  if (rc == PROCFS_NO_MM || (rc == 0 && ret->len == 0)) {
    *ret = span_of(seen->stat.comm);
    return 0;
  }
  if (rc == PROCFS_DENIED)
    *ret = (struct span){.text = NULL};
  return rc == PROCFS_DENIED ? 0 : rc;
}

static int find_user(struct inspect_ctx *in, uint32_t pid, uint32_t *ret_uid,
                     struct span *ret) {
  struct status_sample status;
  int rc = status_read_of(in->procfs, pid, &status);

  if (rc != 0 || !(status.known & STATUS_UID))
    return rc;
  *ret_uid = status.uid_effective;
  procfs_announce(in->procfs, "the user's name");
  rc = user_cache_name(in->users, status.uid_effective, in->now_ns, in->user);
  if (rc < 0)
    return rc;
  *ret = span_of(in->user);
  return 0;
}

/* Names are old after a minute. The age is spread by pid, so that processes
 * that were present at the start do not all become due at once. */
bool inspect_is_due(uint32_t pid, uint64_t identified_ns, uint64_t now_ns,
                    uint64_t interval_ns) {
  uint64_t spread_ns = pid % 16 * (NAMES_MAX_AGE_NS / 64);

  return now_ns - identified_ns + interval_ns >= NAMES_MAX_AGE_NS - spread_ns;
}

static bool wants(const struct inspect_ctx *in, enum attribute a) {
  return (in->attributes >> a) & 1;
}

static void find_container_names(struct inspect_ctx *in,
                                 struct inspection *seen,
                                 struct span value[ATTRIBUTES]) {
  struct container_names *names = &in->container;
  int rc;

  procfs_announce(in->procfs, "the files of its container");
  rc =
      container_names_find(in->containers, value[ATTRIBUTE_CGROUP], &in->nested,
                           in->now_ns, names, &seen->container_file);
  if (in->rule_attributes & CONTAINER_ATTRIBUTES)
    seen->container_error = rc;
  value[ATTRIBUTE_CONTAINER_NAME] = span_of(names->name);
  if (names->pod[0])
    value[ATTRIBUTE_POD] = span_of(names->pod);
  if (names->namespace[0])
    value[ATTRIBUTE_NAMESPACE] = span_of(names->namespace);
}

static int read_cgroup(struct inspect_ctx *in, uint32_t pid,
                       struct inspection *seen, struct span value[ATTRIBUTES]) {
  struct span text, path;
  int rc = procfs_read(in->procfs, pid, "cgroup", &text);

  if (rc == 0 && cgroup_parse(text.text, text.len, &path) == 0)
    attributes_set_cgroup(value, path, &in->nested);
  if (value[ATTRIBUTE_CONTAINER].text && in->attributes & CONTAINER_ATTRIBUTES)
    find_container_names(in, seen, value);
  /* No cgroup file: a kernel without cgroups. */
  return rc == PROCFS_GONE || rc == PROCFS_NO_MM ? 0 : rc;
}

/* True if the command line may have changed: where addresses are hidden, an
 * exec may go unseen; and where a rule uses it, its title is of interest. */
static bool has_new_title(const struct inspect_ctx *in,
                          const struct inspection *seen) {
  return !stat_has_addresses(&seen->stat) ||
         (in->rule_attributes >> ATTRIBUTE_COMMAND_LINE) & 1;
}

_Static_assert(ATTRIBUTES == 11, "read_names() sets each attribute");

/*
 * Names that are not read keep their old values. Only an exec changes the
 * executable, and each attempt that is refused may cost a line in an audit log:
 * it is not read with age.
 */
static int read_names(struct inspect_ctx *in, uint32_t pid,
                      const struct attributes *old, bool is_first,
                      struct inspection *seen, struct span value[ATTRIBUTES],
                      uint32_t *uid) {
  int rc = 0;

  value[ATTRIBUTE_COMM] = span_of(seen->stat.comm);
  value[ATTRIBUTE_COMMAND_LINE] = span_of(old->value[ATTRIBUTE_COMMAND_LINE]);
  if (!is_first)
    value[ATTRIBUTE_EXECUTABLE] = span_of(old->value[ATTRIBUTE_EXECUTABLE]);
  else if (wants(in, ATTRIBUTE_EXECUTABLE))
    rc = read_executable(in, pid, seen, &value[ATTRIBUTE_EXECUTABLE]);
  if (rc == 0 && wants(in, ATTRIBUTE_COMMAND_LINE) &&
      (is_first || has_new_title(in, seen)))
    rc = read_command_line(in, pid, seen, &value[ATTRIBUTE_COMMAND_LINE]);
  if (rc == 0 && wants(in, ATTRIBUTE_USER))
    rc = find_user(in, pid, uid, &value[ATTRIBUTE_USER]);
  if (rc == 0 && in->attributes & CGROUP_ATTRIBUTES)
    /* Read last, because its values point into the buffer. */
    rc = read_cgroup(in, pid, seen, value);
  return rc;
}

/*
 * Names are read at first sight and after an exec; again in the next cycle,
 * because the child of a server changes its title and its user only after the
 * fork; and with age, those that may have changed.
 */
static int inspect_names(struct inspect_ctx *in, const struct proc_ref *p,
                         uint32_t pid, struct inspection *seen) {
  static const struct stored_attributes none;
  bool is_known = p->identified_ns && proc_ref_is_same(p, &seen->stat);
  const struct stored_attributes *stored = is_known ? &p->attributes : &none;
  struct attributes old = attributes_get(stored);
  struct span value[ATTRIBUTES] = {{0}};
  bool is_first = !is_known || p->image != seen->image || !p->is_settled;
  uint32_t uid = old.uid;
  int rc;

  if (!is_first &&
      !inspect_is_due(p->pid, p->identified_ns, in->now_ns, in->interval_ns))
    return 0;
  rc = read_names(in, pid, &old, is_first, seen, value, &uid);
  if (rc != 0)
    return rc;
  rc = attributes_renew(stored, value, uid, &seen->attributes);
  if (rc < 0)
    return rc;
  seen->has_names = true;
  seen->has_changed = rc == ATTRIBUTES_CHANGED;
  return 0;
}

/* Continues the inspection with the memory. */
static int inspect_memory(struct inspect_ctx *in, const struct proc_ref *p,
                          struct inspection *seen) {
  uint32_t pid = p->pid;
  int rc = 0;

  seen->file = "task";
  /* A dead main thread is alive only with other threads. */
  if (stat_is_dead(&seen->stat))
    rc = find_live_thread(in->procfs, pid, &pid);
  if (rc != 0)
    return rc;
  seen->file = "statm";
  rc = statm_read_of(in->procfs, pid, NULL, &seen->statm);
  /* No mm, but not a zombie yet: it is exiting. */
  if (rc == 0 && !statm_has_mm(&seen->statm))
    rc = PROCFS_GONE;
  if (rc == 0) {
    seen->image = hash_image(seen);
    seen->file = "names";
    rc = inspect_names(in, p, pid, seen);
  }
  return rc;
}

int inspect_process(struct inspect_ctx *in, const struct proc_ref *p,
                    struct inspection *ret) {
  struct stat_sample *stat = &ret->stat;
  int rc;

  *ret = (struct inspection){.file = "stat"};
  rc = inspect_stat(in->procfs, p->pid, stat);
  if (rc != 0)
    return rc;
  ret->state = stat_is_kernel_thread(stat)                ? PROCESS_KERNEL
               : stat_is_dead(stat) && stat->threads <= 1 ? PROCESS_GONE
                                                          : PROCESS_ALIVE;
  return ret->state == PROCESS_ALIVE ? inspect_memory(in, p, ret) : 0;
}

void inspection_done(struct inspection *s) { attributes_done(&s->attributes); }
