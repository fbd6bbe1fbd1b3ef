#include "estimate/track.h"

#include <errno.h>
#include <stdlib.h>

#include "process/process.h"

void track_end_sampling(struct track *t) {
  sampling_free(t->sampling);
  t->sampling = NULL;
  t->is_sampled = false;
}

int track_refresh(struct process *p) {
  uint32_t program = process_program(p);
  struct track *t = p->track;

  if (!t)
    t = p->track = calloc(1, sizeof(*t));
  if (!t)
    return -ENOMEM;
  if (t->program == program)
    return 0;
  t->program = program;
  t->is_family_decided = false;
  t->baseline.at_ns = 0;
  t->is_heir = false;
  t->cost = (struct read_cost){0};
  t->tables = (struct page_tables){.kib = 0};
  t->wanted_ns = 0;
  t->denied_until_s = 0;
  track_end_sampling(t);
  return 0;
}

void track_free(struct process *p) {
  if (p->track) {
    fork_family_leave(p->track);
    track_end_sampling(p->track);
  }
  free(p->track);
  p->track = NULL;
}
