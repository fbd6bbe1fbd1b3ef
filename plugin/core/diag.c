#include "diag.h"

#include <string.h>

#include <smaps/text.h>

#include "process/process.h"

static void put_comm(char *ret, size_t size, const struct process *p) {
  const char *comm = attributes_get(&p->attributes).value[ATTRIBUTE_COMM];

  escape_text(comm ? comm : "", comm ? strlen(comm) : 0, ret, size);
}

static void put_other(struct diag_other *other, const struct process *p) {
  other->pid = p->pid;
  put_comm(other->comm, sizeof(other->comm), p);
}

void diag_note(struct diag *diags, enum diag_kind kind, const struct process *p,
               int error, const char *file) {
  struct diag *d = &diags[kind];

  if (d->count++ > 0) {
    if (d->count - 2 < DIAG_OTHERS)
      put_other(&d->others[d->count - 2], p);
    return;
  }
  d->pid = p->pid;
  d->error = error < 0 ? -error : 0;
  d->file = file;
  put_comm(d->comm, sizeof(d->comm), p);
}
