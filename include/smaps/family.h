/*
 * Fork relatives: processes that run the program that a common ancestor had
 * loaded, and so share its memory by copy on write. One that calls exec leaves.
 * Sharing is a property of such a set and not of a group: a parent in one group
 * can have children in another.
 */
#ifndef SMAPS_FAMILY_H
#define SMAPS_FAMILY_H

#include <smaps/sharing.h>

struct process;
struct process_table;

#define BROKEN_UNITS 1024.0

struct family {
  uint32_t members;
  /* What members have broken out of shared memory, for each other member: it
   * raises what the rest costs them. In BROKEN_UNITS of a byte. It counts round
   * and round, as the kernel's counters do: only differences mean something,
   * and they are exact however long it has been counting. */
  uint64_t broken_share;
  /* What share of the faults that could have done so really did, as readings
   * have shown; and by what part that was wrong, lately. */
  double cow_breaks;
  double cow_error;
  struct sharing sharing; /* of files and shmem */
  /* With what comes of members that come and go. */
  struct experience experience;
};

/*
 * Brings the membership of a process up to date, once it is linked to its
 * parent: it leaves when its program has changed, and joins its parent's family
 * when it still runs the parent's. Returns 0 or -ENOMEM, and then stands alone.
 */
int family_update(const struct process_table *t, struct process *p);

/* Leaves the family, if there is one, until family_update() decides anew; the
 * last member takes it away. */
void family_leave(struct process *p);

/* How many there are, itself included. */
uint32_t family_size(const struct process *p);

#endif
