#include "log.h"

#include <linux/capability.h>
#include <mntent.h>

#include <smaps/kernel.h>
#include <smaps/text.h>
#include <smaps/worker_pool.h>

#define REPEAT TIME_T_TO_CDTIME_T(3600)

/* The problem of a kind, if a line about it is due; else NULL. */
static const struct diag *find_due(struct log_state *s,
                                   const struct cycle_results *r,
                                   enum diag_kind kind, bool may_repeat) {
  const struct diag *d = &r->diags[kind];
  cdtime_t now = cdtime();

  if (d->count == 0)
    return NULL;
  /* The clock was set back. */
  if (s->logged[kind] > now)
    s->logged[kind] = now;
  if (s->logged[kind] && !(may_repeat && now - s->logged[kind] >= REPEAT))
    return NULL;
  s->logged[kind] = now;
  return d;
}

/* Not by capget(2), which SELinux refuses to collectd's domain. */
static bool can_trace(void) {
  FILE *status = fopen("/proc/self/status", "re");
  uint64_t capabilities = 0;
  bool is_found = false;
  char line[128];

  while (status && !is_found && fgets(line, sizeof(line), status)) {
    struct cursor s = cursor_begin(line, strlen(line));

    is_found = parse_word(&s, "CapEff:");
    skip_blanks(&s);
    if (is_found)
      parse_hex(&s, &capabilities);
  }
  if (status)
    fclose(status);
  return (capabilities >> CAP_SYS_PTRACE) & 1;
}

/* Since Linux 6.15 CAP_PERFMON is enough for smaps_rollup; CAP_SYS_PTRACE
 * allows much more. */
static bool is_perfmon_enough(void) {
  unsigned major, minor;

  return kernel_release(&major, &minor) &&
         (major > 6 || (major == 6 && minor >= 15));
}

/* Gets the hidepid option of the mounted proc file system, such as
 * "hidepid=invisible", or the empty string. */
static void find_hidepid(const char *root, char *ret, size_t size) {
  FILE *mounts = setmntent("/proc/self/mounts", "re");
  char buffer[4096];
  struct mntent m;

  *ret = '\0';
  while (mounts && getmntent_r(mounts, &m, buffer, sizeof(buffer))) {
    const char *option = hasmntopt(&m, "hidepid");

    /* The last mount covers earlier ones. */
    if (strcmp(m.mnt_dir, root) == 0)
      snprintf(ret, size, "%.*s", option ? (int)strcspn(option, ",") : 0,
               option ? option : "");
  }
  if (mounts)
    endmntent(mounts);
}

static void find_remedy(const struct log_state *s, const char *root, char *ret,
                        size_t size) {
  const char *reader = s->is_command ? "smaps-report" : "collectd";
  char hidepid[32];

  find_hidepid(root, hidepid, sizeof(hidepid));
  if (can_trace())
    snprintf(ret, size,
             "check the security module (AppArmor, SELinux) and the parent "
             "user namespace (%s has CAP_SYS_PTRACE)",
             reader);
  else if (s->is_command)
    snprintf(ret, size, "run smaps-report as root");
  else
    snprintf(ret, size,
             "grant collectd CAP_SYS_PTRACE%s%s%s with a drop-in for "
             "collectd.service: [Service] CapabilityBoundingSet=CAP_SYS_PTRACE "
             "AmbientCapabilities=CAP_SYS_PTRACE",
             *hidepid ? ", because of " : "", hidepid,
             !*hidepid && is_perfmon_enough()
                 ? " (or CAP_PERFMON, for smaps_rollup)"
                 : "");
}

/* With hidepid=2 and 4 the list lacks processes. */
static void log_hidden(const char *remedy, const char *root) {
  WARNING("smaps plugin: %s: \"%s\" hides the processes of other users, so "
          "groups can lack members, and groups without visible members are "
          "unknown",
          remedy, root);
}

/* "smaps_rollup of 3, exe of 1" */
static void append_count(const struct diag *d, const char *file, char *text,
                         size_t size) {
  size_t len = strlen(text);

  if (d->count > 0)
    snprintf(text + len, size - len, "%s%s of %" PRIu64, len ? ", " : "", file,
             d->count);
}

/* All refusals have the same cause, so one line reports all of them. */
static void log_denials(struct log_state *s, const struct cycle_results *r,
                        const char *root) {
  const struct diag *rollup = &r->diags[DIAG_ROLLUP_DENIED];
  const struct diag *exe = &r->diags[DIAG_EXECUTABLE_DENIED];
  const struct diag *all = &r->diags[DIAG_PROCESS_DENIED];
  const struct diag *first = rollup->count ? rollup : all->count ? all : exe;
  const struct diag *last = all->count ? all : exe->count ? exe : rollup;
  bool is_hidden = r->diags[DIAG_HIDDEN].count > 0;
  char remedy[400], counts[128] = "";

  if (s->is_denial_logged || (first->count == 0 && !is_hidden))
    return;
  s->is_denial_logged = true;
  find_remedy(s, root, remedy, sizeof(remedy));
  if (is_hidden) {
    log_hidden(remedy, root);
    return;
  }
  append_count(rollup, "smaps_rollup", counts, sizeof(counts));
  append_count(exe, "exe", counts, sizeof(counts));
  append_count(all, "all files", counts, sizeof(counts));
  WARNING("smaps plugin: %s: the kernel refuses to show %s process%s (first: "
          "%u \"%s\"), so their values are guessed or unknown",
          remedy, counts, last->count == 1 ? "" : "es", first->pid,
          first->comm);
}

/* Up to three by name: 10 "a", 11 "b", 12 "c" and 5 more */
static void name_processes(const struct diag *d, char *ret, size_t size) {
  int len = snprintf(ret, size, "%u \"%s\"", d->pid, d->comm);

  for (unsigned i = 0; i < DIAG_OTHERS && i + 1 < d->count; i++)
    len += snprintf(ret + len, size - (size_t)len, ", %u \"%s\"",
                    d->others[i].pid, d->others[i].comm);
  if (d->count > DIAG_OTHERS + 1)
    snprintf(ret + len, size - (size_t)len, " and %" PRIu64 " more",
             d->count - DIAG_OTHERS - 1);
}

/* Logs the processes that are too large to be walked. */
static void log_samples(struct log_state *s, const struct cycle_results *r) {
  static const struct {
    enum diag_kind kind;
    int level;
    const char *before, *after; /* their names */
  } lines[] = {
      {DIAG_SAMPLED, LOG_INFO, "reading smaps_rollup of large processes",
       "would hold their locks for longer than MaxLockHold: only some of their "
       "pages are read; see memory-pss_error for the possible error and "
       "count-sampled for the number of such processes"},
      {DIAG_MAPCOUNT_DENIED, LOG_WARNING,
       "processes that are too large for MaxLockHold",
       "are sampled, but without CAP_SYS_ADMIN (or without /proc/kpagecount) "
       "the number of processes that share a page is unknown: their USS is "
       "good, the error of their PSS can be large (see memory-pss_error)"},
      {DIAG_TOO_LARGE, LOG_WARNING, "reading smaps_rollup of large processes",
       "would hold their locks for longer than MaxLockHold, and their pages "
       "cannot be sampled (/proc/PID/pagemap needs CAP_DAC_READ_SEARCH and "
       "CAP_SYS_PTRACE): their shared memory is guessed from their size, "
       "unless you grant these or raise MaxLockHold; see memory-pss_error for "
       "the possible error and count-deferred for the number of such "
       "processes"}};
  char names[(DIAG_OTHERS + 1) * 80 + 32]; /* of 64 bytes and a number each */

  for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
    const struct diag *d = find_due(s, r, lines[i].kind, false);

    if (!d)
      continue;
    name_processes(d, names, sizeof(names));
    plugin_log(lines[i].level, "smaps plugin: %s (%s) %s", lines[i].before,
               names, lines[i].after);
  }
}

static void log_limits(struct log_state *s, const struct cycle_results *r) {
  const struct diag *d;

  if (find_due(s, r, DIAG_NO_ROLLUP, false))
    WARNING("smaps plugin: this kernel has no smaps_rollup "
            "(CONFIG_PROC_PAGE_MONITOR, Linux 4.14): PSS, USS, shared and "
            "swap are unknown");
  log_samples(s, r);
  if ((d = find_due(s, r, DIAG_GROUP_REFUSED, false)))
    WARNING("smaps plugin: MaxGroups is reached: no group \"%s\" for process "
            "%u \"%s\"; such processes go to Other until there is room; the "
            "name of a group counts for an hour after its end; see "
            "count-groups_refused for the number of such processes",
            d->name, d->pid, d->comm);
}

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

static void log_failures(struct log_state *s, const struct cycle_results *r) {
  const struct diag *d;

  if ((d = find_due(s, r, DIAG_MATCH_DEFERRED, true)))
    WARNING("smaps plugin: matching process names is too slow; process %u "
            "\"%s\" (one of %" PRIu64 ", see count-unidentified) waits for a "
            "later interval, and empty groups are unknown until then",
            d->pid, d->comm, d->count);
  if ((d = find_due(s, r, DIAG_CONTAINER_FILE, false)))
    WARNING("smaps plugin: the name of the container of process %u \"%s\" is "
            "unknown: %s: %s; the first 12 digits of its id are used",
            d->pid, d->comm, d->file,
            d->error == EBADMSG ? "malformed" : strerror(d->error));
  if ((d = find_due(s, r, DIAG_MALFORMED, true)))
    WARNING("smaps plugin: %s of process %u \"%s\" is malformed (one of "
            "%" PRIu64 " in this interval); its values are guessed, if "
            "another member of its group can be read, or unknown",
            d->file, d->pid, d->comm, d->count);
  if ((d = find_due(s, r, DIAG_FAILED, true)))
    WARNING("smaps plugin: reading %s of process %u \"%s\" failed: %s (one of "
            "%" PRIu64 " in this interval); its values are guessed, if "
            "another member of its group can be read, or unknown; while the "
            "group of a process is unknown (count-unidentified), groups "
            "without members are unknown too",
            d->file, d->pid, d->comm, strerror(d->error), d->count);
}

/* Why there are no values of the host, though they are wanted. */
static void log_host(struct log_state *s, const struct cycle_results *r,
                     const char *root) {
  static const char *const reasons[] = {
      [HOST_IS_NOT_LIVE] = "its meminfo is not from a live proc file system",
      [HOST_IS_HIDDEN] =
          "it shows no kernel threads: it belongs to a container, "
          "or hidepid hides them",
      [HOST_IS_MALFORMED] = "its meminfo cannot be read, or lacks one of "
                            "MemFree, Buffers, Cached, AnonPages, Mapped and "
                            "Shmem"};
  enum host_absence absence = r->host.absence;

  if (absence == HOST_IS_SEEN || absence == HOST_IS_UNWANTED ||
      s->is_host_logged)
    return;
  s->is_host_logged = true;
  INFO("smaps plugin: there are no values of the host (Host), because ProcRoot "
       "\"%s\" does not show the host: %s",
       root, reasons[absence]);
}

static void log_snapshot(struct log_state *s, const struct cycle_results *r) {
  int rc = r->snapshot_error;

  if (rc < 0 && !s->has_no_snapshot)
    ERROR("smaps plugin: cannot make a snapshot: %s",
          rc == -EFBIG ? "it would be larger than 256 MiB" : strerror(-rc));
  s->has_no_snapshot = rc < 0;
}

/* The core reports each process once; one line is for all of an interval. */
static void log_hung(const struct cycle_results *r) {
  const struct diag *d = &r->diags[DIAG_HUNG];
  char more[64] = "";

  if (d->count == 0)
    return;
  if (d->count > 1)
    snprintf(more, sizeof(more), " (and of %" PRIu64 " more)", d->count - 1);
  WARNING("smaps plugin: reading %s of process %u \"%s\"%s did not end within "
          "ReadTimeout: the process hangs, or the machine is too busy; the "
          "process is not read for a while, longer each time, but estimated "
          "from statm; while its group is unknown, so is each group without "
          "members that it may be in; see count-hung and count-unidentified "
          "for the number of such processes",
          d->file, d->pid, d->comm, more);
}

/* The core reports each file at most once an hour. */
static void log_pid_file(const struct cycle_results *r) {
  const struct diag *d = &r->diags[DIAG_PID_FILE];
  char more[64] = "";

  if (d->count == 0)
    return;
  if (d->count > 1)
    snprintf(more, sizeof(more), " (and %" PRIu64 " more files)", d->count - 1);
  WARNING("smaps plugin: reading PidFile \"%s\" %s%s%s; it is not read for a "
          "while, longer each time; the process that it named stays selected "
          "until it ends, and after that the selected process is unknown",
          d->file, d->error ? "failed: " : "did not end within ReadTimeout",
          d->error ? strerror(d->error) : "", more);
}

static void log_readers_hung(struct log_state *s,
                             const struct cycle_results *r) {
  bool is_hung = r->diags[DIAG_READERS_HUNG].count > 0;

  if (is_hung && !s->is_hung)
    WARNING("smaps plugin: %d reads hang (the maximum); only statm is "
            "read until one returns; new processes stay unidentified "
            "(count-unidentified), and groups without members are unknown",
            WORKER_POOL_MAX);
  if (!is_hung && s->is_hung)
    NOTICE("smaps plugin: a hung read has returned, and processes are read "
           "again");
  s->is_hung = is_hung;
}

void log_after_cycle(struct log_state *s, const struct cycle_results *r,
                     const struct settings *settings, int cycle_result) {
  const char *proc_root = settings->proc_root;

  if (cycle_result < 0) {
    if (!s->has_failed)
      ERROR("smaps plugin: reading the processes in \"%s\" failed: %s",
            proc_root,
            cycle_result == -ENOTTY ? "it is not a proc file system any more"
                                    : strerror(-cycle_result));
    s->has_failed = true;
    return;
  }
  if (s->has_failed)
    NOTICE("smaps plugin: \"%s\" can be read again", proc_root);
  s->has_failed = false;
  log_denials(s, r, proc_root);
  log_limits(s, r);
  log_scarce(s, r, settings->read_budget_percent);
  log_failures(s, r);
  log_host(s, r, proc_root);
  log_snapshot(s, r);
  log_hung(r);
  log_pid_file(r);
  log_readers_hung(s, r);
}
