/*
 * What a process adds to the sums of its groups, by where what is known of it
 * is from.
 */
#ifndef SMAPS_ACCOUNT_H
#define SMAPS_ACCOUNT_H

#include <smaps/follow.h>

enum account_source {
  SOURCE_NONE,       /* nothing could be read */
  SOURCE_STATM,      /* no rollup was asked for */
  SOURCE_UNREADABLE, /* likewise, because it was refused or failed */
  SOURCE_READ,       /* in this cycle */
  SOURCE_ESTIMATED,
  SOURCE_GUESSED, /* never read: from what its group is made of */
  SOURCE_PARENT,  /* it runs in its parent's memory, and is counted there */
};

/* Where the last cycle has it from; of a process that is in a group. */
enum account_source account_source(const struct circumstances *c,
                                   const struct process *p);

/* Adds one whose rollup was just read, to all its groups. */
void account_add_read(const struct circumstances *c, const struct process *p,
                      const struct rollup *rollup);

/* Adds one that was not read, but for a guess: that is made by what all others
 * have added, so that it comes after them. */
void account_add_unread(const struct circumstances *c, const struct process *p);
void account_add_guess(const struct circumstances *c, const struct process *p);

/* What one process uses, as the last cycle has it; nothing of it is known where
 * it is counted with its parent. */
enum account_source account_usage(const struct circumstances *c,
                                  const struct process *p, struct usage *ret);

#endif
