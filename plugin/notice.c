#include "notice.h"

#include <linux/capability.h>
#include <mntent.h>

#include <smaps/crew.h>
#include <smaps/kernel.h>
#include <smaps/procfs.h>
#include <smaps/status.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

#define REPEAT TIME_T_TO_CDTIME_T(3600)

static bool is_due(struct notices *n, enum trouble_kind kind, bool may_repeat) {
  cdtime_t now = cdtime();

  /* The clock has been put back. */
  if (n->said[kind] > now)
    n->said[kind] = now;
  if (n->said[kind] && !(may_repeat && now - n->said[kind] >= REPEAT))
    return false;
  n->said[kind] = now;
  return true;
}

static int read_own_capabilities(uint64_t *ret) {
  struct status_sample status;
  struct procfs *procfs;
  struct span text;
  int r = procfs_new("/proc", &procfs);

  if (r != 0)
    return r;
  r = procfs_read(procfs, PROCFS_ROOT, "self/status", &text);
  if (r == 0)
    r = status_parse(text.text, text.len, &status);
  procfs_free(procfs);
  if (r == 0 && !(status.known & STATUS_CAP_EFF))
    r = -EBADMSG;
  if (r == 0)
    *ret = status.cap_effective;
  return r;
}

/* CAP_PERFMON opens smaps_rollup since 6.15, without the powers of a tracer. */
static bool is_perfmon_enough(void) {
  unsigned major, minor;

  return kernel_release(&major, &minor) &&
         (major > 6 || (major == 6 && minor >= 15));
}

/* "hidepid=invisible" or the like, if the proc file system is mounted so; else
 * the empty string. */
static void find_hidepid(const char *root, char *ret, size_t size) {
  FILE *mounts = setmntent("/proc/self/mounts", "re");
  char buffer[4096];
  struct mntent m;

  *ret = '\0';
  while (mounts && getmntent_r(mounts, &m, buffer, sizeof(buffer))) {
    const char *option = hasmntopt(&m, "hidepid");

    /* What is mounted last covers what was there. */
    if (strcmp(m.mnt_dir, root) == 0)
      snprintf(ret, size, "%.*s", option ? (int)strcspn(option, ",") : 0,
               option ? option : "");
  }
  if (mounts)
    endmntent(mounts);
}

static void explain_denial(const char *root, char *ret, size_t size) {
  uint64_t capabilities;
  char hidepid[32];

  if (read_own_capabilities(&capabilities) == 0 &&
      ((capabilities >> CAP_SYS_PTRACE) & 1)) {
    snprintf(ret, size,
             "collectd has CAP_SYS_PTRACE, so the refusal comes from a "
             "security module (AppArmor, SELinux) or from a user namespace "
             "above ours");
    return;
  }
  find_hidepid(root, hidepid, sizeof(hidepid));
  snprintf(ret, size,
           "%s%scollectd lacks CAP_SYS_PTRACE%s; grant it with a drop-in for "
           "collectd.service: [Service] CapabilityBoundingSet=CAP_SYS_PTRACE "
           "AmbientCapabilities=CAP_SYS_PTRACE",
           hidepid, *hidepid ? " is in force and " : "",
           !*hidepid && is_perfmon_enough()
               ? " (CAP_PERFMON is enough for smaps_rollup on "
                 "this kernel)"
               : "");
}

/* Those that we may not even list (hidepid=2 and 4). */
static void say_hidden(const char *root) {
  char why[400];

  explain_denial(root, why, sizeof(why));
  WARNING(
      "smaps plugin: processes of other users are hidden from us in \"%s\", "
      "so that a group in which we see none is not known, nor what else "
      "belongs to the others: %s",
      root, why);
}

/* All refusals have one cause, so there is one line for all. */
static void say_denials(struct notices *n, const struct collector *c,
                        const char *root) {
  const struct trouble *rollup = collector_trouble(c, TROUBLE_ROLLUP_DENIED);
  const struct trouble *exe = collector_trouble(c, TROUBLE_EXECUTABLE_DENIED);
  const struct trouble *all = collector_trouble(c, TROUBLE_PROCESS_DENIED);
  const struct trouble *first = rollup->count ? rollup : all;
  bool is_hidden = collector_trouble(c, TROUBLE_HIDDEN)->count > 0;
  char why[400];

  if (first->count == 0)
    first = exe;
  if (n->is_denial_said || (first->count == 0 && !is_hidden))
    return;
  n->is_denial_said = true;
  if (is_hidden) {
    say_hidden(root);
    return;
  }
  explain_denial(root, why, sizeof(why));
  WARNING("smaps plugin: the kernel refuses processes (smaps_rollup of %" PRIu64
          ", exe of %" PRIu64 ", everything of %" PRIu64
          "; the first is %u \"%s\"), so that PSS, USS, shared and swap of "
          "their groups are not known and Executable cannot select them: %s",
          rollup->count, exe->count, all->count, first->pid, first->comm, why);
}

static void say_others(struct notices *n, const struct collector *c) {
  const struct trouble *t = collector_trouble(c, TROUBLE_NO_ROLLUP);

  if (t->count && is_due(n, TROUBLE_NO_ROLLUP, false))
    WARNING("smaps plugin: this kernel has neither smaps_rollup nor smaps "
            "(CONFIG_PROC_PAGE_MONITOR), so that PSS, USS, shared and swap "
            "are not known");
  t = collector_trouble(c, TROUBLE_TOO_LARGE);
  if (t->count && is_due(n, TROUBLE_TOO_LARGE, false))
    WARNING(
        "smaps plugin: reading %s of process %u \"%s\" would hold it up for "
        "longer than MaxStall, so what it shares is not known and its group "
        "is estimated from its size; memory-pss_error says how far off that "
        "may be, count-deferred how many there are",
        t->file, t->pid, t->comm);
  t = collector_trouble(c, TROUBLE_GROUP_REFUSED);
  if (t->count && is_due(n, TROUBLE_GROUP_REFUSED, false))
    WARNING("smaps plugin: MaxGroups is reached: no group \"%s\" for process "
            "%u \"%s\"; it and others like it go to Other, "
            "count-groups_refused says how many names it is",
            t->name, t->pid, t->comm);
  t = collector_trouble(c, TROUBLE_NAME_REFUSED);
  if (t->count && is_due(n, TROUBLE_NAME_REFUSED, true))
    WARNING("smaps plugin: more new names of groups within an hour than "
            "MaxGroups (%" PRIu64 "): no group \"%s\" for process %u \"%s\" "
            "yet; it and others like it go to Other until there is room, "
            "count-groups_refused says how many names it is",
            t->limit, t->name, t->pid, t->comm);
  t = collector_trouble(c, TROUBLE_MATCH_PUT_OFF);
  if (t->count && is_due(n, TROUBLE_MATCH_PUT_OFF, true))
    WARNING("smaps plugin: matching new names takes too long: process %u "
            "\"%s\" (one of %" PRIu64 " in this interval) has to wait; until "
            "it is known whose it is no group without members is known to be "
            "empty, count-unidentified says how many there are",
            t->pid, t->comm, t->count);
  t = collector_trouble(c, TROUBLE_MALFORMED);
  if (t->count && is_due(n, TROUBLE_MALFORMED, true))
    WARNING("smaps plugin: %s of process %u \"%s\" makes no sense (one of "
            "%" PRIu64 " in this interval); what it would have said is not "
            "known",
            t->file, t->pid, t->comm, t->count);
  t = collector_trouble(c, TROUBLE_FAILED);
  if (t->count && is_due(n, TROUBLE_FAILED, true))
    WARNING("smaps plugin: reading %s of process %u \"%s\" failed: %s (one of "
            "%" PRIu64 " in this interval); what it would have said is not "
            "known, and where that is in which group a process is "
            "(count-unidentified), no group without members is known to be "
            "empty",
            t->file, t->pid, t->comm, strerror(t->error), t->count);
}

static void say_snapshot(struct notices *n, const struct collector *c) {
  int r = collector_snapshot_error(c);

  if (r < 0 && !n->has_no_snapshot)
    ERROR("smaps plugin: a snapshot could not be made: %s",
          r == -EFBIG ? "it would be larger than 256 MiB" : strerror(-r));
  n->has_no_snapshot = r < 0;
}

/* Each process is a trouble but once, so there is a line for each, or for all
 * of one interval. */
static void say_stalled(const struct collector *c) {
  const struct trouble *t = collector_trouble(c, TROUBLE_STALLED);
  char more[64] = "";

  if (t->count == 0)
    return;
  if (t->count > 1)
    snprintf(more, sizeof(more), " (and so do %" PRIu64 " more)", t->count - 1);
  WARNING("smaps plugin: reading %s of process %u \"%s\" hangs%s, for longer "
          "than StallTimeout; it is left alone for a while, longer each time, "
          "and its group is estimated from statm, or, if it is not known which "
          "one that is, no group without members is known to be empty; "
          "count-stalled and count-unidentified say how many there are",
          t->file, t->pid, t->comm, more);
}

/* Each file is a trouble at most once an hour. */
static void say_pid_file(const struct collector *c) {
  const struct trouble *t = collector_trouble(c, TROUBLE_PID_FILE);
  char more[64] = "";

  if (t->count == 0)
    return;
  if (t->count > 1)
    snprintf(more, sizeof(more), " (and so is it with %" PRIu64 " more)",
             t->count - 1);
  WARNING("smaps plugin: reading PidFile \"%s\" %s%s%s; it is left alone for a "
          "while, longer each time; a process that it has named stays selected "
          "for as long as it lives, and then it is not known who is",
          t->file,
          t->error ? "failed: " : "hangs, for longer than StallTimeout",
          t->error ? strerror(t->error) : "", more);
}

static void say_stuck(struct notices *n, const struct collector *c) {
  bool is_stuck = collector_trouble(c, TROUBLE_READERS_STUCK)->count > 0;

  if (is_stuck && !n->is_stuck)
    WARNING("smaps plugin: %d reads hang, which is as many as may; until one "
            "of them comes back nothing but statm is read of any process, and "
            "new ones go unidentified (count-unidentified), so that no group "
            "without members is known to be empty",
            CREW_MAX);
  if (!is_stuck && n->is_stuck)
    NOTICE("smaps plugin: one of the reads that hung has come back, so that "
           "processes are read again");
  n->is_stuck = is_stuck;
}

void notices_after_cycle(struct notices *n, const struct collector *c,
                         const char *proc_root, int cycle_result) {
  if (cycle_result < 0) {
    if (!n->has_failed)
      ERROR("smaps plugin: reading the processes in \"%s\" failed: %s",
            proc_root,
            cycle_result == -ENOTTY ? "it is no proc file system now"
                                    : strerror(-cycle_result));
    n->has_failed = true;
    return;
  }
  if (n->has_failed)
    NOTICE("smaps plugin: \"%s\" can be read again", proc_root);
  n->has_failed = false;
  say_denials(n, c, proc_root);
  say_others(n, c);
  say_snapshot(n, c);
  say_stalled(c);
  say_pid_file(c);
  say_stuck(n, c);
}
