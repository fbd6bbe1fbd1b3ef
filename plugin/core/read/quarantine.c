#include "read/quarantine.h"

#include "proc/cheap_files.h"

/* Empty if it cannot be read. */
static struct span read_comm(const struct quarantine *q, uint32_t pid) {
  struct span text;

  return comm_read_of(q->procfs, pid, &text) == 0 ? text
                                                  : (struct span){.text = ""};
}

static uint32_t hash_comm(const struct quarantine *q, uint32_t pid) {
  struct span comm = read_comm(q, pid);

  return hash_text(comm.text, comm.len);
}

/* A process that hung at first sight has no names yet. */
static void fill_in_comm(const struct quarantine *q, struct diag *t) {
  struct span comm;

  if (t->comm[0])
    return;
  comm = read_comm(q, t->pid);
  escape_text(comm.text, comm.len, t->comm, sizeof(t->comm));
}

static void note_hang(const struct quarantine *q, const struct read_job *job) {
  struct diag *t = &q->diags[DIAG_HUNG];

  diag_note(q->diags, DIAG_HUNG, job->process, 0, job->file);
  if (t->count == 1)
    fill_in_comm(q, t);
}

static void add(const struct quarantine *q, const struct read_job *job) {
  struct process *p = job->process;

  if (!p->was_hung && job->file)
    note_hang(q, job);
  p->was_hung |= job->file != NULL;
  p->hung_kind = (uint8_t)job->kind;
  p->hung_name = hash_comm(q, p->pid);
  back_off_extend(&p->hung, job->result == READ_HUNG, q->read_timeout_ns,
                  q->clock_ns());
}

bool quarantine_has(const struct process *p, uint64_t now_ns) {
  return back_off_is_on(&p->hung, now_ns);
}

bool quarantine_has_changed(const struct quarantine *q, struct process *p,
                            const struct statm_sample *before) {
  uint32_t name = hash_comm(q, p->pid);
  bool has_changed =
      name != p->hung_name ||
      (statm_has_mm(before) && p->statm.text_pages != before->text_pages);

  p->hung_name = name;
  return has_changed;
}

bool quarantine_check(const struct quarantine *q, const struct read_job *job) {
  if (job->result == READ_SKIPPED)
    return true;
  if (job->result == READ_HUNG || job->result == READ_STILL_HUNG) {
    add(q, job);
    return true;
  }
  if (job->process->hung_kind == job->kind)
    back_off_forgive(&job->process->hung);
  return false;
}
