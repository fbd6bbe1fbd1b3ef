#include "estimate/fork_family.h"

#include <errno.h>
#include <stdlib.h>

#include "estimate/track.h"

void fork_family_leave(struct track *t) {
  struct fork_family *family = t->family;
  bool was_head = !t->is_child;

  t->family = NULL;
  t->is_family_decided = t->is_child = false;
  if (!family)
    return;
  family->has_lost_head |= was_head;
  t->family_pages = 0;
  family->changes++;
  if (--family->members == 0)
    free(family);
}

static void enter(struct track *t, struct fork_family *family) {
  t->family = family;
  t->cow_broken = family->cow_broken;
  t->got_back = family->got_back;
}

static int found_family(struct track *parent) {
  struct fork_family *family = calloc(1, sizeof(*family));

  if (!family)
    return -ENOMEM;
  *family = (struct fork_family){
      .members = 1, .cow_breaks = 1, .newborns = NEWBORN_LESSONS_AT_FIRST};
  sharing_init(&family->sharing, parent->group_pages);
  enter(parent, family);
  parent->family_pages = parent->group_pages;
  parent->is_family_decided = true;
  return 0;
}

int fork_family_join(struct track *t, struct track *parent) {
  if (!parent->family && found_family(parent) < 0)
    return -ENOMEM;
  enter(t, parent->family);
  t->family_pages = 0;
  t->family->members++;
  t->family->changes++;
  /* If it was read before its parent could be looked at, it shared then, too.
   */
  if (track_has_baseline(t))
    t->baseline.relatives = fork_family_size(t);
  t->strangers_counted = 0;
  t->is_child = t->is_newborn = parent->has_newborn = true;
  return 0;
}

bool fork_family_take_place(struct track *t) {
  if (!t->family->has_lost_head)
    return false;
  t->is_child = t->family->has_lost_head = false;
  return true;
}

uint16_t fork_family_size(const struct track *t) {
  uint32_t members = t->family ? t->family->members : 1;

  return members < UINT16_MAX ? (uint16_t)members : UINT16_MAX;
}
