/* SPDX-License-Identifier: MIT */
/*
 * What would be free if all members of a group ended (struct freed in
 * report/usage.h): their anonymous memory and their shmem that nobody else
 * keeps, by PSS. Files are left out: they stay in the page cache, and the
 * kernel counts them as available before and after. What is swapped out, and
 * what was given back by MADV_FREE, takes no memory now.
 *
 * What holds for the memory of a member, and from where it is known:
 *
 *   Anonymous memory is shared with relatives by fork alone. If all of its fork
 *   family is in the same groups, all of Pss_Anon goes. If some relatives are
 *   elsewhere, at least the private part goes: the lowest that the rollup
 *   allows, because a page that is shared costs each of its users half of it at
 *   most. The rest of Pss_Anon counts as staying, and is the error. If readings
 *   show relatives that are unknown, or pages of KSM, the rest counts as going,
 *   and is the error.
 *
 *   Shmem: maps shows whether its mappings are anonymous ones, memfds or files
 *   that last (proc/shmem.h), but not how much of each is resident. The parts
 *   are divided by their sizes, and the error is what another division would
 *   say. A service may remove its files and segments when it stops, so they
 *   are the error, too. Anonymous mappings are shared with relatives alone. A
 *   memfd may be mapped by any process: the error is what other processes pay
 *   for such memory, for each member, since a page that they share costs all
 *   members together at most so many times as much as another process.
 *
 *   Before 5.3 the kernel does not divide Pss: the error is all that is
 *   possible between the private anonymous memory and Pss.
 *
 * Not known, and in no error: a memfd or a removed file of a tmpfs that a
 * process keeps open without a mapping, unless the group is a whole control
 * group, which has a count of such memory; and huge pages of which parts were
 * given back, which the kernel keeps whole for a while.
 */
#ifndef SMAPS_FREED_H
#define SMAPS_FREED_H

#include "estimate/cycle.h"
#include "match/group.h"
#include "process/process.h"

/* Notes of each fork family whether all its members are in the same groups;
 * once in a cycle, before freed_of(). */
void freed_relate(const struct cycle *cycle, const struct process_table *t);

/* The part of one member, whose rollup was read, estimated or guessed. */
struct freed freed_of(const struct cycle *cycle, const struct process *p,
                      const struct rollup *r);

/* Adds the error of what processes outside the group may map as well.
 * outside_passable: of these, like the field of struct freed. */
void freed_finish(struct usage *u, uint64_t outside_passable);

/* Adds the error of shared memory that stays resident while nobody maps it, as
 * after the end of a process that was the only one to touch it: what the
 * control group has besides what the members map, or else what their shared
 * mappings have room for; at most what the host has of shmem that no process
 * maps. After the control groups were read. */
void freed_note_unmapped(const struct group_table *groups,
                         uint64_t host_unmapped);

#endif
