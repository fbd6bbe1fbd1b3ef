/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/smaps_rollup (since 4.14) and /proc/PID/smaps
 * (Documentation/filesystems/proc.rst; Documentation/ABI/testing/
 * procfs-smaps_rollup; fs/proc/task_mmu.c).
 *
 * To print these, the kernel walks the page tables of the process under its
 * mmap lock; no other file says how much memory a process shares.
 */
#ifndef SMAPS_ROLLUP_H
#define SMAPS_ROLLUP_H

#include <smaps/text.h>

/* The kernel's fields under the kernel's names, in the order in which 6.18
 * prints them. Each has a row in words.h. */
#define ROLLUP_TABLE(X)                                                        \
  X(RSS, "Rss")                                                                \
  X(PSS, "Pss")                                                                \
  X(PSS_DIRTY, "Pss_Dirty") /* since 6.0 */                                    \
  X(PSS_ANON, "Pss_Anon")   /* these three since 5.3, in the rollup only */    \
  X(PSS_FILE, "Pss_File")                                                      \
  X(PSS_SHMEM, "Pss_Shmem")                                                    \
  X(SHARED_CLEAN, "Shared_Clean")                                              \
  X(SHARED_DIRTY, "Shared_Dirty")                                              \
  X(PRIVATE_CLEAN, "Private_Clean")                                            \
  X(PRIVATE_DIRTY, "Private_Dirty")                                            \
  X(REFERENCED, "Referenced")                                                  \
  X(ANONYMOUS, "Anonymous")                                                    \
  X(KSM, "KSM") /* since 6.7 */                                                \
  X(LAZY_FREE, "LazyFree")                                                     \
  X(ANON_HUGE_PAGES, "AnonHugePages")                                          \
  X(SHMEM_PMD_MAPPED, "ShmemPmdMapped")                                        \
  X(FILE_PMD_MAPPED, "FilePmdMapped") /* since 5.4 */                          \
  X(SHARED_HUGETLB, "Shared_Hugetlb") /* in neither Rss nor Pss */             \
  X(PRIVATE_HUGETLB, "Private_Hugetlb")                                        \
  X(SWAP, "Swap")        /* includes shmem; not divided by its sharers */      \
  X(SWAP_PSS, "SwapPss") /* without shmem */                                   \
  X(LOCKED, "Locked")

#define ROLLUP_NUMBER(name, key) ROLLUP_##name,
enum rollup_field { ROLLUP_TABLE(ROLLUP_NUMBER) ROLLUP_FIELDS };
#undef ROLLUP_NUMBER

struct rollup {
  uint32_t known; /* bit per rollup_field that the text had */
  uint64_t bytes[ROLLUP_FIELDS];
};

static inline bool rollup_has(const struct rollup *r, enum rollup_field f) {
  return (r->known >> f) & 1;
}

static inline uint64_t rollup_uss(const struct rollup *r) {
  return r->bytes[ROLLUP_PRIVATE_CLEAN] + r->bytes[ROLLUP_PRIVATE_DIRTY];
}

/* Anonymous memory minus Pss_Anon: memory that the process shares by copy on
 * write; 0 before 5.3. Minor faults break the sharing; they are worth reading
 * from ROLLUP_COW_LEAST_BYTES on. */
#define ROLLUP_COW_LEAST_BYTES (UINT64_C(256) << 10)
static inline uint64_t rollup_cow_bytes(const struct rollup *r) {
  uint64_t anonymous = r->bytes[ROLLUP_ANONYMOUS];
  uint64_t pss = r->bytes[ROLLUP_PSS_ANON];

  return rollup_has(r, ROLLUP_PSS_ANON) && anonymous > pss ? anonymous - pss
                                                           : 0;
}

/* Whether it costs more in shmem than in files. */
static inline bool rollup_is_of_shmem(const struct rollup *r) {
  return r->bytes[ROLLUP_PSS_SHMEM] > r->bytes[ROLLUP_PSS_FILE];
}

/*
 * Parses a whole smaps_rollup. The keys may come in any order; unknown keys are
 * skipped, missing keys are left out of `known`.
 *
 * A malformed text returns -EBADMSG and leaves *ret unchanged: Rss, Pss or one
 * of the four Shared_ and Private_ fields is missing; a value is not a number
 * of kB or overflows; a key occurs twice; the text does not end in a newline;
 * Pss is above Rss; the four do not add up to Rss (allowing for 1 kB of
 * rounding each). The caller handles an empty text (a process without mm on
 * some kernels) beforehand.
 */
int rollup_parse(const char *text, size_t len, struct rollup *ret);

/* A line of smaps or smaps_rollup; zero it before the first. */
struct rollup_line {
  enum { ROLLUP_LINE_MAPPING, ROLLUP_LINE_FIELD, ROLLUP_LINE_OTHER } kind;
  unsigned field; /* of this line, or the last one seen */
  uint64_t bytes;
  /* For a mapping: its range, "rwxp", the device of its file ("fd:01"), and the
   * text after the inode. */
  uint64_t start, end;
  struct span permissions, device, name;
};

/*
 * Consumes the next line: the header of a mapping, one of the fields above, or
 * another field (Size, VmFlags …). False if it is none of these.
 */
bool rollup_line_next(struct cursor *s, struct rollup_line *line);

/* Adds the line of a field to a sum; false if that overflows. */
bool rollup_add_line(struct rollup *sum, const struct rollup_line *line);

/* True if the required fields are present and agree, as described for
 * rollup_parse(). */
bool rollup_is_consistent(const struct rollup *r);

#endif
