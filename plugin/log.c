/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <linux/capability.h>
#include <sys/prctl.h>

#define REPEAT TIME_T_TO_CDTIME_T(3600)

enum often { ONCE, HOURLY, ALWAYS };

/* Notes that a line is logged now; false if it must not be logged yet. */
static bool take_turn(cdtime_t *logged, enum often often) {
  cdtime_t now = cdtime();

  /* The clock was set back. */
  if (*logged > now)
    *logged = now;
  if (*logged && often != ALWAYS && (often == ONCE || now - *logged < REPEAT))
    return false;
  *logged = now;
  return true;
}

/* --- refusals ------------------------------------------------------------- */

/* Root has what its bounding set allows, others what they were given. SELinux
 * refuses capget(2) to collectd's domain. */
static bool can_trace(void) {
  return geteuid() == 0 ? prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE) == 1
                        : prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET,
                                CAP_SYS_PTRACE, 0, 0) == 1;
}

static const char *find_remedy(const struct log_state *s) {
  if (can_trace())
    return "check the security module (AppArmor, SELinux) and the parent user "
           "namespace (CAP_SYS_PTRACE is there)";
  return s->is_command ? "run smaps-report as root"
                       : "grant collectd CAP_SYS_PTRACE with a drop-in for "
                         "collectd.service: [Service] "
                         "CapabilityBoundingSet=CAP_SYS_PTRACE "
                         "AmbientCapabilities=CAP_SYS_PTRACE";
}

/* All refusals have the same cause, so one line reports all of them. */
static void log_denials(struct log_state *s, const struct cycle_results *r,
                        const char *root) {
  const struct diag *rollup = &r->diags[DIAG_ROLLUP_DENIED];
  const struct diag *exe = &r->diags[DIAG_EXECUTABLE_DENIED];
  const struct diag *all = &r->diags[DIAG_PROCESS_DENIED];
  const struct diag *first = rollup->count ? rollup : all->count ? all : exe;
  bool is_hidden = r->diags[DIAG_HIDDEN].count > 0;

  if ((first->count == 0 && !is_hidden) ||
      !take_turn(&s->logged[DIAG_HIDDEN], ONCE))
    return;
  if (is_hidden) /* The list lacks processes. */
    WARNING("smaps plugin: %s: hidepid of \"%s\" hides the processes of other "
            "users, so groups can lack members, and groups without visible "
            "members are unknown",
            find_remedy(s), root);
  else
    WARNING("smaps plugin: %s: %s files of processes "
            "(smaps_rollup: %" PRIu64 ", exe: %" PRIu64 ", all files: %" PRIu64
            "; first: %u \"%s\"), so their values are guessed or unknown",
            r->is_captured ? "capture ProcRoot as root" : find_remedy(s),
            r->is_captured ? "it lacks" : "the kernel refuses to show",
            rollup->count, exe->count, all->count, first->pid, first->comm);
}

/* --- processes ------------------------------------------------------------ */

/* BEFORE process PID "COMM" (one of N) BETWEEN; AFTER */
static const struct line {
  enum diag_kind kind;
  int level;
  enum often often;
  bool has_cause; /* ": FILE: ERROR" follows BETWEEN */
  const char *before, *between, *after;
} lines[] = {
    {DIAG_NO_ROLLUP, LOG_WARNING, ONCE, false, "reading smaps_rollup of",
     "failed: this kernel has none (CONFIG_PROC_PAGE_MONITOR, Linux 4.14)",
     "PSS, USS, shared and swap are unknown"},
    {DIAG_SAMPLED, LOG_INFO, ONCE, false, "reading smaps_rollup of",
     "would hold its lock for longer than MaxLockHold",
     "only some of its pages are read; see memory-pss_error for the possible "
     "error and count-sampled for the number of such processes"},
    {DIAG_MAPCOUNT_DENIED, LOG_WARNING, ONCE, false, "the pages of",
     "are sampled, because it is too large for MaxLockHold, but without "
     "CAP_SYS_ADMIN (or without /proc/kpagecount)",
     "the number of processes that share a page is unknown: its USS is good, "
     "unless it has huge pages; see memory-pss_error and memory-uss_error for "
     "the possible error"},
    {DIAG_TOO_LARGE, LOG_WARNING, ONCE, false, "reading smaps_rollup of",
     "would hold its lock for longer than MaxLockHold, and its pages cannot be "
     "sampled (/proc/PID/pagemap needs CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE)",
     "its shared memory is guessed from its size, unless you grant these or "
     "raise MaxLockHold; see memory-pss_error for the possible error and "
     "count-deferred for the number of such processes"},
    {DIAG_GROUP_REFUSED, LOG_WARNING, ONCE, true,
     "MaxGroups is reached:", "has to do without its group",
     "such processes go to Other until there is room; the name of a group "
     "counts for an hour after its end; see count-groups_refused for the "
     "number of such processes"},
    {DIAG_MATCH_DEFERRED, LOG_WARNING, HOURLY, false,
     "matching process names is too slow:",
     "waits for a later interval (count-unidentified)",
     "empty groups are unknown until then"},
    {DIAG_CONTAINER_FILE, LOG_WARNING, ONCE, true, "the container of",
     "has no known name", "the first 12 digits of its id are used"},
    {DIAG_FAILED, LOG_WARNING, HOURLY, true, "reading", "failed",
     "its values are guessed, if another member of its group can be read, or "
     "unknown; while the group of a process is unknown (count-unidentified), "
     "groups without members are unknown too"},
    /* The core reports each process once. */
    {DIAG_HUNG, LOG_WARNING, ALWAYS, true, "reading",
     "did not end within ReadTimeout",
     "the process hangs, or the machine is too busy; the process is not read "
     "for a while, longer each time, but estimated from statm; while its group "
     "is unknown, so is each group without members that it may be in; see "
     "count-hung and count-unidentified for the number of such processes"}};

static void log_line(const struct line *l, const struct diag *d) {
  const char *file = d->file ? d->file : d->name; /* or the group */
  const char *error = d->error == EBADMSG ? "malformed" : strerror(d->error);

  plugin_log(l->level,
             "smaps plugin: %s process %u \"%s\" (one of %" PRIu64
             ") %s%s%s%s%s; %s",
             l->before, d->pid, d->comm, d->count, l->between,
             l->has_cause ? ": " : "", l->has_cause ? file : "",
             d->error ? ": " : "", d->error ? error : "", l->after);
}

static void log_processes(struct log_state *s, const struct diag *diags) {
  for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
    const struct line *l = &lines[i];

    if (diags[l->kind].count > 0 && take_turn(&s->logged[l->kind], l->often))
      log_line(l, &diags[l->kind]);
  }
}

/* --- the rest ------------------------------------------------------------- */

/* ReadBudget may be too small now and then, with the load. That is logged again
 * only after an hour in which it was large enough. */
static void log_scarce(struct log_state *s, const struct cycle_results *r,
                       double percent) {
  double wanted = r->counts.read_budget_wanted;
  bool is_new = !s->scarce || cdtime() - s->scarce >= REPEAT;
  char budget[64] = "";

  if (wanted <= 0)
    return;
  s->scarce = cdtime();
  if (!is_new)
    return;
  if (wanted <= 100)
    snprintf(budget, sizeof(budget), "a ReadBudget of %.3g or ", wanted);
  WARNING(
      "smaps plugin: ReadBudget %g is too small to read every process again "
      "within MaxAge; some readings are older than twice MaxAge "
      "(count-overdue); %sa MaxAge of %.2g times as long is enough",
      percent, budget, wanted / percent);
}

/* There are no values of the host, though they are wanted. */
static void log_host(struct log_state *s, const struct cycle_results *r,
                     const struct settings *settings) {
  if (r->host.known || !settings->reports_host || s->is_host_logged)
    return;
  s->is_host_logged = true;
  INFO(
      "smaps plugin: there are no values of the host (Host), because ProcRoot "
      "\"%s\" does not show the host: it belongs to a container, is not a live "
      "proc file system, or hidepid hides the kernel threads",
      settings->proc_root);
}

static void log_snapshot(struct log_state *s, const struct cycle_results *r) {
  int rc = r->snapshot_error;

  if (rc > 0)
    return;
  if (rc < 0 && !s->has_no_snapshot)
    ERROR("smaps plugin: cannot make a snapshot: %s",
          rc == -EFBIG ? "it would be larger than 256 MiB" : strerror(-rc));
  s->has_no_snapshot = rc < 0;
}

/* The core reports each file at most once an hour. */
static void log_pid_files(const struct log_state *s,
                          const struct cycle_results *r) {
  const struct diag *unread = &r->diags[DIAG_PID_FILE];
  const struct diag *doubt = &r->diags[DIAG_PID_DOUBT];

  if (unread->count > 0)
    WARNING("smaps plugin: reading PidFile \"%s\" %s%s (one of %" PRIu64
            "); it is not read for a "
            "while, longer each time; the process that it named stays selected "
            "until it ends, and after that the selected process is unknown",
            unread->file,
            unread->error ? "failed: " : "did not end within ReadTimeout",
            unread->error ? strerror(unread->error) : "", unread->count);
  if (doubt->count > 0 && !s->has_hints)
    WARNING("smaps plugin: PidFile \"%s\" names process %u (one of %" PRIu64
            "), but %s; it selects no process",
            doubt->file, doubt->pid, doubt->count,
            pid_doubt_words[doubt->error]);
}

static void log_readers_hung(struct log_state *s,
                             const struct cycle_results *r) {
  uint64_t hung = r->diags[DIAG_READERS_HUNG].count;

  if (hung && !s->is_hung)
    WARNING("smaps plugin: %" PRIu64 " reads hang (the maximum); only statm is "
            "read until one returns; new processes stay unidentified "
            "(count-unidentified), and groups without members are unknown",
            hung);
  if (!hung && s->is_hung)
    NOTICE("smaps plugin: a hung read has returned, and processes are read "
           "again");
  s->is_hung = hung > 0;
}

void log_after_cycle(struct log_state *s, const struct cycle_results *r,
                     const struct settings *settings, int cycle_result) {
  const char *proc_root = settings->proc_root;

  if (cycle_result < 0) {
    if (!s->has_failed)
      ERROR(
          "smaps plugin: reading the processes in \"%s\" failed: %s", proc_root,
          cycle_result == -ENOTTY ? "it has no processes any more; if another "
                                    "tree is there now, restart collectd"
                                  : strerror(-cycle_result));
    s->has_failed = true;
    return;
  }
  if (s->has_failed)
    NOTICE("smaps plugin: \"%s\" can be read again", proc_root);
  s->has_failed = false;
  log_denials(s, r, proc_root);
  log_processes(s, r->diags);
  log_scarce(s, r, settings->read_budget_percent);
  log_host(s, r, settings);
  log_snapshot(s, r);
  log_pid_files(s, r);
  log_readers_hung(s, r);
}
