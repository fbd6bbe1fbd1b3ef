/* SPDX-License-Identifier: MIT */
#include "process/diag.h"

#include <string.h>

#include <smaps/text.h>

#include "process/process.h"

void diag_note(struct diag *diags, enum diag_kind kind, const struct process *p,
               int error, const char *file) {
  const char *comm = attributes_get(&p->attributes).value[ATTRIBUTE_COMM];
  struct diag *d = &diags[kind];

  if (d->count++ > 0)
    return;
  d->pid = p->pid;
  d->error = error < 0 ? -error : 0;
  d->file = file;
  escape_text(comm ? comm : "", comm ? strlen(comm) : 0, d->comm,
              sizeof(d->comm));
}
