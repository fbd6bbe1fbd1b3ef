/* SPDX-License-Identifier: MIT */
#include "read/quarantine.h"

#include "proc/cheap_files.h"

/* A process that hung at first sight has no names yet. */
static void fill_in_comm(const struct reader_setup *setup, struct diag *t) {
  struct span comm;

  if (!t->comm[0] && comm_read_of(setup->procfs, t->pid, &comm) == 0)
    escape_text(comm.text, comm.len, t->comm, sizeof(t->comm));
}

static void note_hang(const struct reader_setup *setup,
                      const struct read_job *job) {
  struct diag *t = &setup->diags[DIAG_HUNG];

  diag_note(setup->diags, DIAG_HUNG, job->process, 0, job->file);
  if (t->count == 1)
    fill_in_comm(setup, t);
}

static void add(const struct reader_setup *setup, const struct read_job *job) {
  struct process *p = job->process;

  if (!p->was_hung && job->file)
    note_hang(setup, job);
  p->was_hung |= job->file != NULL;
  p->hung_kind = (uint8_t)job->kind;
  back_off_hang(&p->hung, job->result == READ_HUNG, setup->read_timeout_ns,
                setup->clock_ns());
}

bool quarantine_has(const struct process *p, uint64_t now_ns) {
  return back_off_is_on(&p->hung, now_ns);
}

void quarantine_take(const struct reader_setup *setup,
                     const struct read_job *job) {
  if (job->result == READ_HUNG || job->result == READ_STILL_HUNG)
    add(setup, job);
  else if (read_has_result(job) && job->process->hung_kind == job->kind)
    back_off_forgive(&job->process->hung);
}
