#include <smaps/family.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <smaps/process.h>

/* More than forks of forks are ever seen at once. */
#define ANCESTORS_TRIED 64

/* Before there is any experience. */
#define COW_ERROR_AT_FIRST 0.5

/* Differs after an exec, but not after a change of name. */
static uint64_t program_of(const struct process *p) {
  return (p->start_stack * 31 + p->statm.text_pages) | 1;
}

void family_leave(struct process *p) {
  struct family *family = p->family;

  p->family = NULL;
  p->family_program = 0;
  if (family && --family->members == 0)
    free(family);
}

static int found(struct process *parent) {
  struct family *family = calloc(1, sizeof(*family));

  if (!family)
    return -ENOMEM;
  *family = (struct family){.members = 1,
                            .cow_breaks = 1,
                            .cow_error = COW_ERROR_AT_FIRST,
                            .experience = EXPERIENCE_NONE};
  sharing_init(&family->sharing, process_sharing(parent),
               parent->statm.shared_pages);
  parent->family = family;
  parent->family_broken = family->broken_share;
  parent->family_program = program_of(parent);
  return 0;
}

static int join(struct process *p, struct process *parent) {
  if (!parent->family && found(parent) < 0)
    return -ENOMEM;
  p->family = parent->family;
  p->family_broken = p->family->broken_share;
  p->family->members++;
  return 0;
}

static struct process *find_relative(const struct process_table *t,
                                     const struct process *p) {
  struct process *parent = process_table_parent(t, p);

  return parent && parent->state == PROCESS_ALIVE &&
                 process_is_same_program(parent, p)
             ? parent
             : NULL;
}

static bool is_decided(const struct process *p) {
  return p->family_program == program_of(p);
}

int family_update(const struct process_table *t, struct process *p) {
  struct process *relative, *above;

  if (is_decided(p))
    return 0;
  family_leave(p);
  if (!p->is_linked)
    return 0;
  p->family_program = program_of(p);
  relative = find_relative(t, p);
  /* Where pids have wrapped around, parents can come later than their children:
   * then the first ancestor of the same program that is decided, or has none
   * above it, stands for them. (In a broken tree that can be the process.) */
  for (int i = 0; relative && !is_decided(relative) && i < ANCESTORS_TRIED &&
                  (above = find_relative(t, relative)) && above != p;
       i++)
    relative = above;
  if (!relative)
    return 0;
  if (!is_decided(relative))
    family_leave(relative);
  if (join(p, relative) == 0)
    return 0;
  p->family_program = 0; /* not decided */
  return -ENOMEM;
}

uint32_t family_size(const struct process *p) {
  return p->family ? p->family->members : 1;
}
