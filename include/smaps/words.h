/* SPDX-License-Identifier: MIT */
/*
 * The words of snapshots (smaps-snapshot(5)): each table has a row for each
 * word, with the word in capitals for an enum, the word as it is in documents,
 * and what else belongs to it. The core writes the words, smaps-report reads
 * and explains them, and test_manual compares them with the manual: each of
 * them passes a macro to a table, which makes what it needs of every row.
 */
#ifndef SMAPS_WORDS_H
#define SMAPS_WORDS_H

/* --- amounts of memory, in bytes --- */

/* Each is a field of smaps_rollup (ROLLUP_PSS), or is derived and needs that
 * field. They are published by default. */
#define AMOUNTS_BY_DEFAULT(FIELD, DERIVED)                                     \
  FIELD(PSS, pss, PSS)                                                         \
  DERIVED(USS, uss, PRIVATE_DIRTY)                                             \
  FIELD(RSS, rss, RSS)                                                         \
  DERIVED(SHARED, shared, SHARED_DIRTY)                                        \
  FIELD(SWAP, swap, SWAP_PSS)

/* Other fields of smaps_rollup. A new one goes here. */
#define AMOUNTS_IN_DETAIL(FIELD)                                               \
  FIELD(PSS_ANON, pss_anon, PSS_ANON)                                          \
  FIELD(PSS_FILE, pss_file, PSS_FILE)                                          \
  FIELD(PSS_SHMEM, pss_shmem, PSS_SHMEM)                                       \
  FIELD(PSS_DIRTY, pss_dirty, PSS_DIRTY)                                       \
  FIELD(PRIVATE_CLEAN, private_clean, PRIVATE_CLEAN)                           \
  FIELD(PRIVATE_DIRTY, private_dirty, PRIVATE_DIRTY)                           \
  FIELD(SHARED_CLEAN, shared_clean, SHARED_CLEAN)                              \
  FIELD(SHARED_DIRTY, shared_dirty, SHARED_DIRTY)                              \
  FIELD(REFERENCED, referenced, REFERENCED)                                    \
  FIELD(ANONYMOUS, anonymous, ANONYMOUS)                                       \
  FIELD(LAZY_FREE, lazy_free, LAZY_FREE)                                       \
  FIELD(KSM, ksm, KSM)                                                         \
  FIELD(ANON_HUGE_PAGES, anon_huge_pages, ANON_HUGE_PAGES)                     \
  FIELD(SHMEM_PMD_MAPPED, shmem_pmd_mapped, SHMEM_PMD_MAPPED)                  \
  FIELD(FILE_PMD_MAPPED, file_pmd_mapped, FILE_PMD_MAPPED)                     \
  FIELD(SHARED_HUGETLB, shared_hugetlb, SHARED_HUGETLB)                        \
  FIELD(PRIVATE_HUGETLB, private_hugetlb, PRIVATE_HUGETLB)

/* All of the rollup. Two rows are apart, because documents have swap_total
 * before locked, and the columns of smaps-report have it after that. */
#define SWAP_TOTAL_ROW(FIELD) FIELD(SWAP_TOTAL, swap_total, SWAP)
#define LOCKED_ROW(FIELD) FIELD(LOCKED, locked, LOCKED)
#define AMOUNTS_OF_ROLLUP(FIELD, DERIVED)                                      \
  AMOUNTS_BY_DEFAULT(FIELD, DERIVED)                                           \
  AMOUNTS_IN_DETAIL(FIELD) SWAP_TOTAL_ROW(FIELD) LOCKED_ROW(FIELD)

/* Each is a member of struct usage. The first are from statm. */
#define AMOUNTS_OF_STATM(X)                                                    \
  X(SIZE, size)                                                                \
  X(RESIDENT, resident)                                                        \
  X(RESIDENT_SHARED, resident_shared)                                          \
  X(TEXT, text)                                                                \
  X(DATA, data)
#define AMOUNTS_OF_KERNEL(X)                                                   \
  X(PAGE_TABLES, page_tables) X(KERNEL_STACK, kernel_stack)

/* --- causes of the error of a PSS --- */

/* With the words after "2 % because". Those before SAMPLE are of estimates: see
 * estimate.h. */
#define CAUSE_TABLE(X)                                                         \
  X(FILES, files, "files or shared memory were mapped or unmapped")            \
  X(RELATIVES, relatives,                                                      \
    "processes that share memory with members started or ended")               \
  X(COPIES, copies,                                                            \
    "memory shared since a fork was copied on write, or unmapped")             \
  X(FREED, freed,                                                              \
    "memory was given back that may have been shared since a fork")            \
  X(FORK, fork, "members were forked and have not been read since")            \
  X(LENT, lent, "members share memory with children that they have forked")    \
  X(SWAP, swap, "memory went to swap or came back")                            \
  X(TIME, time,                                                                \
    "readings are old: others may share the memory by now, or no longer")      \
  X(KSM, ksm, "the kernel merged equal pages (KSM), or separated them")        \
  X(READING, reading,                                                          \
    "memory changed while it was read, or unlisted processes share it")        \
  X(STATM, statm, "the counters of this kernel are not exact")                 \
  X(SAMPLE, sample, "only some pages of large members were read")              \
  X(GUESS, guess, "members were never read and are guessed from the others")   \
  X(ENDED, ended, "members ended while they were measured")                    \
  X(UNIDENTIFIED, unidentified,                                                \
    "processes that could not be identified may be members")

#define CAUSE_NUMBER(name, key, words) CAUSE_##name,
enum cause {
  CAUSE_TABLE(CAUSE_NUMBER) ALL_CAUSES,
  CAUSES = CAUSE_SAMPLE /* of estimates */
};
#undef CAUSE_NUMBER

/* --- parts of the memory of the host --- */

/* From the most certain to the least, and then the rest: see report/host.h. */
#define HOST_PART_TABLE(X)                                                     \
  X(FREE, free)                                                                \
  X(GROUPS, groups)                                                            \
  X(HUGETLB_USED, hugetlb_used)                                                \
  X(HUGETLB_FREE, hugetlb_free)                                                \
  X(SLAB_RECLAIMABLE, slab_reclaimable)                                        \
  X(SLAB_UNRECLAIMABLE, slab_unreclaimable)                                    \
  X(PAGE_TABLES, page_tables)                                                  \
  X(KERNEL_STACK, kernel_stack)                                                \
  X(PERCPU, percpu)                                                            \
  X(ZRAM, zram)                                                                \
  X(ZSWAP, zswap)                                                              \
  X(BUFFERS, buffers)                                                          \
  X(TMPFS, tmpfs)                                                              \
  X(PAGE_CACHE, page_cache)                                                    \
  X(SWAP_CACHE, swap_cache)                                                    \
  X(UNACCOUNTED, unaccounted)

#define HOST_PART_NUMBER(name, key) HOST_##name,
enum host_part {
  HOST_PART_TABLE(HOST_PART_NUMBER) HOST_PARTS,
  /* Of HOST_GROUPS, what belongs to processes of no group. */
  HOST_OUTSIDE = HOST_PARTS,
  HOST_NUMBERS
};
#undef HOST_PART_NUMBER

/* --- attributes of processes --- */

/* The key, and the selector. A NAME can be in the name of a group, as %{key}.
 * For enum attribute see process/attributes.h. */
#define ATTRIBUTE_TABLE(NAME, OTHER)                                           \
  NAME(COMM, comm, Comm)                                                       \
  OTHER(COMMAND_LINE, command_line, CommandLine)                               \
  NAME(EXECUTABLE, exe, Executable)                                            \
  NAME(USER, user, User)                                                       \
  OTHER(CGROUP, cgroup, Cgroup)                                                \
  NAME(UNIT, unit, Unit)                                                       \
  NAME(SLICE, slice, Slice)                                                    \
  NAME(CONTAINER, container, Container)                                        \
  NAME(CONTAINER_NAME, container_name, ContainerName)                          \
  NAME(POD, pod, Pod)                                                          \
  NAME(NAMESPACE, namespace, Namespace)

/* --- sources and gaps, with what smaps-report says about them --- */

/* Where the amounts of a process are from. */
#define SOURCE_TABLE(X)                                                        \
  X(READ, read, "read from the kernel in this interval")                       \
  X(SAMPLED, sampled,                                                          \
    "too large to be read at once: sampled in this interval")                  \
  X(ESTIMATED, estimated, "estimated from an earlier reading")                 \
  X(GUESSED, guessed, "never read: guessed from the rest of its group")        \
  X(STATM, statm,                                                              \
    "only statm was read: Refresh is never, or the process is in no group")    \
  X(UNREADABLE, unreadable,                                                    \
    "only statm was read: the kernel refused the rest, or reading it failed")  \
  X(PARENT, parent, "shares its parent's memory and is counted there")
/* Only in captures. */
#define ENDED_ROW(X)                                                           \
  X(ENDED, ended, "it has ended: known from the last interval in which it ran")

/* Why a process was not read although it should have been. */
#define DEFERRAL_TABLE(X)                                                      \
  X(BUDGET, budget, "ReadBudget was used up")                                  \
  X(MAX_LOCK_HOLD, max_lock_hold,                                              \
    "reading it would hold its lock for longer than MaxLockHold")              \
  X(HUNG, hung, "an earlier reading hung for ReadTimeout")

/* Why an alarm is raised, the worst first; and what it was, once it has ended.
 */
#define ALARM_TABLE(X)                                                         \
  X(OOM_KILL, oom_kill, "processes were killed for memory")                    \
  X(ENDED, ended, "no process was left")                                       \
  X(GROWTH, growth, "it grew")                                                 \
  X(CGROUP_LIMIT, cgroup_limit, "its limit was nearly reached")                \
  X(UNKNOWN, unknown, "its memory was unknown")

/* The rules of a configuration that makes no group: name, selector, pattern. */
#define DEFAULT_RULE_TABLE(X)                                                  \
  X("%{unit_template}", "Unit", "*.service")                                   \
  X("%{namespace}_%{container_name}", "Namespace", "*")                        \
  X("%{container_name}", "ContainerName", "*")
/* The text of such a rule. */
#define RULE_TEXT(name, selector, pattern)                                     \
  "<Group \"" name "\"> " selector " \"" pattern "\""

/* Why a group has no values of a control group. */
#define ABSENCE_TABLE(X)                                                       \
  X(NOT_ASKED, not_asked,                                                      \
    "the rule does not select by Unit, Slice, Container, Cgroup, or PidFile "  \
    "with Children")                                                           \
  X(EMPTY, empty, "it has no processes")                                       \
  X(UNKNOWN, unknown, "the control group of a member is unknown")              \
  X(ROOT, root, "its processes have only the root control group in common")    \
  X(SHARED, shared, "its control group has other processes, too")              \
  X(OUT_OF_SIGHT, out_of_sight,                                                \
    "no mounted hierarchy shows its control group")                            \
  X(ELSEWHERE, elsewhere,                                                      \
    "its processes are in another control group of the memory controller")     \
  X(NO_MEMORY, no_memory, "the memory controller is not enabled for it")       \
  X(HUNG, hung, "reading its files hangs")

#endif
