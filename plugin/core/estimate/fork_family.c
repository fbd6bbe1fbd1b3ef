#include "estimate/fork_family.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "estimate/track.h"
#include "process/process.h"

/* More than forks of forks are ever seen at once. */
#define ANCESTORS_TRIED 64

void fork_family_leave(struct track *t) {
  struct fork_family *family = t->family;

  t->family = NULL;
  t->is_family_decided = false;
  if (!family)
    return;
  t->counted_pages = 0;
  family->changes++;
  if (--family->members == 0)
    free(family);
}

static void enter(struct track *t, struct fork_family *family) {
  t->family = family;
  t->cow_broken = family->cow_broken;
}

static int found_family(struct process *parent) {
  struct fork_family *family = calloc(1, sizeof(*family));

  if (!family)
    return -ENOMEM;
  *family = (struct fork_family){.members = 1,
                                 .cow_breaks = 1,
                                 .cow_error = ERROR_RATIO_AT_FIRST,
                                 .relatives_error = ERROR_RATIO_AT_FIRST,
                                 .newborns = NEWBORN_LESSONS_AT_FIRST};
  sharing_init(&family->sharing, parent->statm.shared_pages);
  enter(parent->track, family);
  parent->track->is_family_decided = true;
  return 0;
}

static int join(struct process *p, struct process *parent) {
  if (!parent->track->family && found_family(parent) < 0)
    return -ENOMEM;
  enter(p->track, parent->track->family);
  p->track->counted_pages = 0;
  p->track->family->members++;
  p->track->family->changes++;
  /* If it was read before its parent could be looked at, it shared then, too.
   */
  if (p->track->baseline.at_ns)
    p->track->baseline.relatives = fork_family_relatives(p->track);
  p->track->strangers_counted = 0;
  p->track->is_newborn = parent->track->has_newborn = true;
  return 0;
}

static struct process *find_relative(const struct process_table *t,
                                     const struct process *p) {
  struct process *parent = process_table_parent(t, p);

  return parent && parent->track && parent->state == PROCESS_ALIVE &&
                 process_is_same_program(parent, p)
             ? parent
             : NULL;
}

static bool is_decided(const struct process *p) {
  return p->track->is_family_decided && p->track->program == process_program(p);
}

/*
 * Parents can come later than their children once pids have wrapped around:
 * then the first ancestor of the same program that is decided, or has none
 * above it, stands for them. (In a broken tree that can be the process.)
 */
static struct process *find_decided_relative(const struct process_table *t,
                                             const struct process *p) {
  struct process *relative = find_relative(t, p), *above;

  for (int i = 0; relative && !is_decided(relative) && i < ANCESTORS_TRIED;
       i++) {
    above = find_relative(t, relative);
    if (!above || above == p)
      break;
    relative = above;
  }
  return relative;
}

int fork_family_update(const struct process_table *t, struct process *p) {
  struct process *relative;

  if (is_decided(p))
    return 0;
  fork_family_leave(p->track);
  if (!p->is_linked)
    return 0;
  p->track->is_family_decided = true;
  relative = find_decided_relative(t, p);
  if (!relative)
    return 0;
  if (!is_decided(relative))
    fork_family_leave(relative->track);
  if (join(p, relative) == 0)
    return 0;
  p->track->is_family_decided = false;
  return -ENOMEM;
}

uint32_t fork_family_size(const struct track *t) {
  return t->family ? t->family->members : 1;
}

uint16_t fork_family_relatives(const struct track *t) {
  uint32_t size = fork_family_size(t);

  return size < UINT16_MAX ? (uint16_t)size : UINT16_MAX;
}
