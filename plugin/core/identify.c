#include <smaps/identify.h>

#include <errno.h>
#include <string.h>

#include <smaps/name.h>
#include <smaps/status.h>

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
  else
    identify_note(in->troubles, TROUBLE_FAILED, p, r, file);
}

/* Whether an exec would show, and does not: what it has learnt to call itself
 * has changed, and not its memory. */
static bool is_renamed(const struct process *p, const struct sighting *seen) {
  return p->identified_ns && stat_has_addresses(&seen->stat) &&
         p->starttime_ticks == seen->stat.starttime_ticks &&
         p->start_stack == seen->stat.start_stack &&
         p->statm.text_pages == seen->statm.text_pages;
}

static void take_names(struct process *p, struct sighting *seen,
                       uint64_t now_ns, bool is_same_program) {
  bool is_new = !p->identified_ns || p->image != seen->image;

  if (seen->has_changed) {
    identity_done(&p->identity);
    p->identity = seen->identity;
    seen->identity = (struct stored_identity){0};
  }
  p->is_match_due |= seen->has_changed || is_new;
  p->is_settled = !is_new;
  if (is_new && !is_same_program) {
    /* Another program: what was known of its memory is of the one before. */
    p->denied_until_ns = p->kcmp_refused_until_ns = 0;
    p->reading.at_ns = 0;
    p->cost = (struct cost){0};
  }
  p->image = seen->image;
  p->switches = seen->switches;
  p->executable_denied_s = seen->executable_denied_s;
  p->identified_ns = now_ns;
}

static void take_stat(struct identifier *in, struct process *p,
                      const struct stat_sample *s) {
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

/* comm cannot hang. What cannot be asked may be so. */
static bool has_other_name(struct identifier *in, const struct process *p) {
  const char *known = identity_get(&p->identity).value[ATTRIBUTE_COMM];
  struct span text;
  int r = procfs_read_of(in->procfs, p->pid, "comm", &text);

  if (r != 0)
    return r < 0;
  if (text.len > 0 && text.text[text.len - 1] == '\n')
    text.len--;
  return !known || strlen(known) != text.len ||
         memcmp(known, text.text, text.len) != 0;
}

static void take_failure(struct identifier *in, struct process *p, int r,
                         const char *file) {
  if (r == PROCFS_GONE || r == PROCFS_NO_MM) {
    in->vanished++;
    p->state = PROCESS_GONE;
    return;
  }
  note_failure(in, p, r, file);
  p->state = PROCESS_UNKNOWN;
  if (!p->identified_ns || !(p->has_new_inode || has_other_name(in, p)))
    return;
  p->is_settled = false;
  p->is_match_due = true;
}

/* Members are worth a descriptor. */
static int read_statm(struct identifier *in, struct process *p,
                      struct statm_sample *ret) {
  struct span text;
  int r = p->n_groups > 0 ? procfs_read_kept(in->procfs, p->pid, "statm",
                                             &p->statm_file, &text)
                          : procfs_read_of(in->procfs, p->pid, "statm", &text);

  return r != 0 ? r : statm_parse(text.text, text.len, ret);
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

/* Kernel threads and zombies have none. status cannot hang. */
static bool has_further_threads(struct identifier *in,
                                const struct process *p) {
  struct status_sample status;
  struct span text;

  return procfs_read_of(in->procfs, p->pid, "status", &text) == 0 &&
         status_parse(text.text, text.len, &status) == 0 && status.threads > 1;
}

/* Whether it can be another process, or run another program, than is known. */
static bool may_be_other(struct identifier *in, const struct process *p,
                         const struct statm_sample *now) {
  return p->has_new_inode || p->is_match_due ||
         (!p->is_dead_leader && now->text_pages != p->statm.text_pages) ||
         has_other_name(in, p);
}

/* It could not be looked at. Where it is known it goes on as what it was, for
 * as long as it has memory and shows nothing else; if there was a reason to
 * look, there still is. What may be in other groups than it was is due to be
 * matched, and counts as unidentified until then. */
static void go_on(struct identifier *in, struct process *p) {
  struct statm_sample statm = {0};
  int r = read_statm(in, p, &statm);
  bool shows_none = r == 0 && !p->is_dead_leader && !statm_has_mm(&statm);
  bool is_other;

  p->state = PROCESS_UNKNOWN;
  /* Where the main thread alone has ended, its file shows no memory either. */
  if (r == PROCFS_GONE || (shows_none && !has_further_threads(in, p)))
    p->state = PROCESS_GONE;
  if (r != 0 || shows_none)
    return;
  is_other = p->identified_ns && may_be_other(in, p, &statm);
  if (!p->is_dead_leader) { /* that one shows nothing itself */
    p->is_settled &= is_going_on(&p->statm, &statm);
    p->statm = statm;
  }
  p->is_settled &= !is_other;
  p->is_match_due |= is_other;
  if (p->identified_ns && !is_other)
    p->state = PROCESS_ALIVE;
}

static bool take_stall(struct identifier *in, const struct read_job *job) {
  if (!quarantine_check(in->quarantine, job))
    return false;
  go_on(in, job->process);
  return true;
}

static void take(struct identifier *in, const struct read_job *job,
                 struct sighting *seen, uint64_t now_ns) {
  struct process *p = job->process;
  bool is_same_program;

  if (take_stall(in, job))
    return;
  is_same_program = is_renamed(p, seen);
  if (seen->state != PROCESS_UNSEEN)
    take_stat(in, p, &seen->stat);
  if (job->result != 0) {
    p->is_match_due |= seen->image && seen->image != p->image;
    take_failure(in, p, job->result, seen->file);
    return;
  }
  p->state = seen->state;
  if (seen->state != PROCESS_ALIVE)
    return;
  p->statm = seen->statm;
  if (seen->has_names)
    take_names(p, seen, now_ns, is_same_program);
  /* Now it has a name to be told by. */
  if (seen->is_executable_denied && in->rules_need_executable)
    identify_note(in->troubles, TROUBLE_EXECUTABLE_DENIED, p, 0, "exe");
}

static void look_closer(struct identifier *in, struct read_job *jobs, size_t n,
                        uint64_t now_ns) {
  reader_run(in->reader, jobs, n);
  for (size_t i = 0; i < n; i++) {
    take(in, &jobs[i], &jobs[i].sighting, now_ns);
    sighting_done(&jobs[i].sighting);
  }
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

  if (!p->identified_ns || p->has_new_inode || !p->is_settled ||
      p->is_dead_leader ||
      sight_is_old(p->pid, p->identified_ns, now_ns, in->interval_ns))
    return false;
  if (read_statm(in, p, &statm) != 0 || !is_going_on(&p->statm, &statm) ||
      refresh_threads(in, p) != 0)
    return false;
  p->statm = statm;
  p->state = PROCESS_ALIVE;
  return true;
}

static bool let_look(struct process *p) {
  quarantine_release(p);
  p->is_settled = false;
  return false;
}

/* True for one that is left alone. */
static bool rest(struct identifier *in, struct process *p, uint64_t now_ns) {
  struct statm_sample before = p->statm;

  if (!quarantine_has(p, now_ns))
    return false;
  if (p->has_new_inode)
    return let_look(p);
  go_on(in, p);
  if (p->state == PROCESS_GONE ||
      !quarantine_has_changed(in->quarantine, p, &before))
    return true;
  /* What still hangs, if it does, is of the old program. */
  p->image++;
  return let_look(p);
}

void identify_all(struct identifier *in, struct process_table *t,
                  uint64_t now_ns) {
  struct read_job jobs[JOBS_AT_ONCE];
  size_t n = 0;

  in->vanished = 0;
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    if (p->state != PROCESS_UNSEEN || rest(in, p, now_ns) ||
        glance(in, p, now_ns))
      continue;
    jobs[n++] = (struct read_job){.process = p, .kind = READ_SIGHTING};
    if (n == JOBS_AT_ONCE) {
      look_closer(in, jobs, n, now_ns);
      n = 0;
    }
  }
  look_closer(in, jobs, n, now_ns);
}
