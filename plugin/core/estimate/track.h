/* SPDX-License-Identifier: MIT */
/*
 * The estimator keeps this of a process from cycle to cycle (estimator.h).
 *
 * Fork families: processes that run the program that a common ancestor had
 * loaded, and so share its memory by copy on write. A process that calls exec
 * leaves. Sharing is a property of such a family and not of a group: a parent
 * in one group can have children in another.
 */
#ifndef SMAPS_TRACK_H
#define SMAPS_TRACK_H

#include "estimate/audit.h"
#include "estimate/baseline.h"
#include "estimate/cycle.h"
#include "proc/shmem.h"

struct process;
struct sampled_error;

/*
 * The share of a page of a file or of shmem that each process pays for it. They
 * form a set: a fork family of several, or else a group. statm says how many
 * such pages each of them maps, and so how many times the pages of the set are
 * mapped together; the more often, the smaller the share of each. A process is
 * so seen to come, to go, or to touch more of a shared buffer, by processes to
 * which nothing happens. Readings show what this overlooks, such as how many of
 * the touched pages no member had before.
 *
 * A set knows the changes of one cycle only. Each member adds them up since its
 * own baseline, so that nothing grows with the time that the daemon runs.
 */
struct sharing {
  uint64_t cycle_ns; /* when pages were last counted */
  /* Pages that members map and that were not private when read: in the cycle
   * before, by all members and by those that are left; and now. */
  double before, left, now;
  double moved;       /* mapped or unmapped by members of now */
  struct audit audit; /* of the estimates of its members */
};

/* Changes since the baseline of a member. */
struct sharing_since {
  double share;       /* of a page now, by its share then */
  double moved;       /* the part of the pages that was mapped or unmapped */
  double moved_pages; /* their number, by all members */
};

#define SHARING_JUST_READ ((struct sharing_since){.share = 1})

/* Starts a set with one member that maps `pages` pages; 0: without members. */
void sharing_init(struct sharing *s, uint64_t pages);

/* The share of a page in this cycle, by its share in the one before. */
double sharing_change(const struct sharing *s);

/* Adds the changes of this cycle to those of a member, once in a cycle. */
void sharing_advance(const struct sharing *s, struct sharing_since *since);

/* The time of walking the page tables of a process (schedule/read_time.h);
 * zero while nothing is known. */
struct read_time {
  uint32_t ns;         /* of the last walk, or guessed; 0 for neither */
  uint32_t pages;      /* resident and swapped, at that time */
  uint32_t swapped;    /* of these */
  uint32_t huge;       /* of these, in huge pages of anonymous memory */
  uint32_t next_try_s; /* when a time that is too long is tested */
  bool is_learnt;      /* by a walk of the process */
  uint16_t relatives;  /* processes of its fork family, at that time */
  uint8_t too_long;    /* walks in a row, or refusals */
};

#define COW_BROKEN_UNITS 1024.0

/* Learnt from the first readings of processes that were estimated as
 * newborns. */
struct newborn_lessons {
  /* The part of their faults that made memory their own, and what a page of
   * files or shmem that they paid; below 0 unknown. */
  double breaks, file_share;
};

#define NEWBORN_LESSONS_AT_FIRST                                               \
  ((struct newborn_lessons){.breaks = -1, .file_share = -1})

/* What members told each other, added up. It wraps around like the kernel's
 * counters: only differences are used, and they are exact for ever. */
struct family_told {
  /* Memory that was broken out of sharing, or unmapped, for each other member:
   * it raises what the rest costs them. In COW_BROKEN_UNITS of a byte. */
  uint64_t cow_broken;
  uint64_t got_back; /* bytes from swap: others may share them */
  uint64_t freed;    /* bytes: others may have shared them, and pay more now */
};

struct fork_family {
  uint32_t members;
  uint32_t changes;   /* members that have come or gone; wraps around */
  bool has_lost_head; /* nobody stands for it in its group */
  struct family_told told;
  /* The part of the faults that could have broken copy on write and did, as
   * readings have shown. */
  double cow_breaks;
  struct sharing sharing; /* of files and shmem */
  struct newborn_lessons newborns;
  struct read_time read_time; /* of the member whose walk says most of others */
  /* Of the member that was read last; for measure/freed.c, as are these, which
   * are of the cycle that began at seen_ns. */
  struct shmem_known shmem;
  uint64_t seen_ns;
  const struct process *first; /* of the members that were seen */
  uint32_t seen;
  bool is_split; /* they are not all in the same groups */
};

/* The place of a process in a fork family. */
enum kinship {
  KINSHIP_UNDECIDED, /* its family is still to be looked for */
  KINSHIP_ALONE,     /* it was looked for, and there is none */
  KINSHIP_HEAD,      /* stands for its family in the set of its group */
  KINSHIP_CHILD,     /* is in the set of its family alone */
};

/* Its part in forks since the last cycle, until newborn.c has estimated them.
 */
enum fork_role { ROLE_NONE, ROLE_PARENT, ROLE_NEWBORN };

/*
 * What can happen to the kinship and the role; kinship_apply() has all
 * transitions:
 *
 *   event       kinship before     kinship after   role
 *   NOT_FOUND   UNDECIDED          ALONE
 *   FOUNDS      UNDECIDED, ALONE   HEAD
 *   JOINS       ALONE              CHILD           NEWBORN
 *   FORKED      HEAD, CHILD        the same        PARENT, unless NEWBORN
 *   SUCCEEDS    CHILD              HEAD
 *   DOUBTED     any                UNDECIDED, but the same with a family
 *   LEAVES      any                UNDECIDED
 *   FORK_OVER   any                the same        NONE
 *
 * A process LEAVES by an exec and when it ends.
 */
enum kinship_event {
  KINSHIP_NOT_FOUND,
  KINSHIP_FOUNDS,
  KINSHIP_JOINS,
  KINSHIP_FORKED,
  KINSHIP_SUCCEEDS, /* of the head that has left */
  KINSHIP_DOUBTED,  /* a reading has shown new strangers */
  KINSHIP_LEAVES,
  KINSHIP_FORK_OVER,
};

/* How a process got its baseline. The next reading makes it ORIGIN_READING. */
enum origin {
  ORIGIN_READING,   /* a rollup or a sample; also without a baseline */
  ORIGIN_INHERITED, /* made for a newborn, from its parent's */
  ORIGIN_DIVIDED,   /* its own, less what it shares with its newborns */
};

/* What the last reading has shown of strangers (baseline.h). */
enum strangers {
  STRANGERS_NONE,
  STRANGERS_NEW,       /* may be children that end unseen; see unsure_bytes */
  STRANGERS_CONFIRMED, /* stay: also seen at the reading before */
};

/* The bytes of a process that came since its baseline, or (negative) went. */
struct change {
  int64_t anon, shared, swap;
  uint64_t returned; /* the part of anon that came back from swap */
  /* The part of anon that was freed (not swapped out) beyond the private
   * memory, and so was shared by copy on write; and another that may have been.
   */
  uint64_t unmapped, freed;
};

struct track {
  struct observation now;
  struct baseline baseline;
  struct change change;       /* from the baseline to now */
  struct fork_family *family; /* NULL if it was never seen to fork */
  struct sharing *group_set;  /* of the first of its groups */
  struct family_told told;    /* family->told at the baseline */
  /* Of the baseline, where that is a sample; owned by its sampling. */
  struct sampled_error *sample_error;
  struct sharing_since since; /* the baseline, in its set */
  uint32_t family_changes;    /* family->changes at the baseline */
  uint32_t group_pages;       /* counted in group_set */
  uint32_t family_pages;      /* and in the set of its family */
  double relatives_moved;     /* the part since the baseline, at most */
  double breaks;              /* family->cow_breaks that made broken_bytes */
  uint64_t broken_bytes;      /* by its faults since the baseline */
  uint64_t told_returned;     /* of what it got back from swap since then */
  uint64_t told_freed;        /* of what it freed since then */
  uint64_t told_bytes;        /* that it left to its relatives since then */
  double unsure_bytes;        /* for new strangers at the baseline */
  double derived_bytes; /* how far off a derived baseline can be (newborn.h) */
  uint64_t lent_bytes;  /* to newborns of this cycle, all together */
  uint32_t newborns;    /* their number */
  enum kinship kinship : 8;
  enum fork_role role : 8;
  enum origin origin : 8;       /* of the baseline */
  enum strangers strangers : 8; /* at the baseline */
  bool is_sampled : 1;          /* the baseline is no rollup, see sampling */
};

static inline bool track_has_baseline(const struct track *t) {
  return t->baseline.at_ns != 0;
}

/* --- its family --- */

/* Makes a process a member of its parent's family, which is founded if there is
 * none. 0 or -ENOMEM. */
int fork_family_join(struct track *t, struct track *parent);

/* Leaves the family, if there is one; the last member frees it. A family is
 * looked for again. */
void fork_family_leave(struct track *t);

/* Applies an event; family: the one that it FOUNDS or JOINS, or else NULL. */
void kinship_apply(struct track *t, enum kinship_event event,
                   struct fork_family *family);

/* The number of members, or UINT16_MAX if there are more; 1 without a family.
 */
uint16_t fork_family_size(const struct track *t);

/* --- its sets --- */

/* Counts its pages in its sets, once in a cycle, before any other question
 * about that cycle. */
void track_count(const struct cycle *cycle, struct track *t);

/* Counts shared_pages, its pages of files and shmem, again in this cycle, after
 * a reading that shows how many of them no other process maps. None of them has
 * come or gone. */
void track_correct_count(const struct cycle *cycle, struct track *t,
                         uint32_t shared_pages);

/* --- what has changed since its baseline --- */

/* The most memory that a child has copied: a page for each fault, less the
 * faults that mapped its files and shmem, of which each maps FAULT_AROUND_BYTES
 * at most. That is the kernel's default (fault_around_bytes). */
#define FAULT_AROUND_BYTES 65536
uint64_t track_faulted_bytes(const struct cycle *cycle,
                             const struct observation *at);

/* The set with which it shares files and shmem: the other members of its family
 * if there are any, or else its group. */
struct sharing *track_set(const struct track *t);

/* The audit of the estimates of its family, or else of those of its group. */
struct audit *track_audit(const struct track *t);

uint64_t track_resident_bytes(const struct cycle *cycle, const struct track *t);

/* Whether minor faults are worth asking for before the process is observed. */
bool track_wants_faults(const struct track *t);

/* The part of its relatives that came or went since its baseline, at most.
 * unsure_bytes has the error of strangers, where their number was 0. */
double track_relatives_moved(const struct track *t);

/* Finds t->change; to be called whenever the baseline or `now` is another. */
void track_find_change(const struct cycle *cycle, struct track *t);

/* What the copies of its relatives since the baseline add to its part of the
 * memory that they still share. */
uint64_t track_broken_by_relatives(const struct track *t);

#endif
