/*
 * /proc/PID/smaps_rollup (since 4.14) and /proc/PID/smaps
 * (Documentation/filesystems/proc.rst; Documentation/ABI/testing/
 * procfs-smaps_rollup; fs/proc/task_mmu.c).
 *
 * The kernel walks the page tables of the process under its mmap lock to print
 * these; nothing else says what a process shares with whom.
 */
#ifndef SMAPS_ROLLUP_H
#define SMAPS_ROLLUP_H

#include <smaps/scan.h>

/* The kernel's fields, named as it names them. */
enum rollup_field {
  ROLLUP_RSS,
  ROLLUP_PSS,
  ROLLUP_PSS_DIRTY, /* since 6.0 */
  ROLLUP_PSS_ANON,  /* these three since 5.3, in the rollup only */
  ROLLUP_PSS_FILE,
  ROLLUP_PSS_SHMEM,
  ROLLUP_SHARED_CLEAN,
  ROLLUP_SHARED_DIRTY,
  ROLLUP_PRIVATE_CLEAN,
  ROLLUP_PRIVATE_DIRTY,
  ROLLUP_REFERENCED,
  ROLLUP_ANONYMOUS,
  ROLLUP_KSM, /* since 6.7 */
  ROLLUP_LAZY_FREE,
  ROLLUP_ANON_HUGE_PAGES,
  ROLLUP_SHMEM_PMD_MAPPED,
  ROLLUP_FILE_PMD_MAPPED, /* since 5.4 */
  ROLLUP_SHARED_HUGETLB,  /* hugetlbfs is in neither Rss nor Pss */
  ROLLUP_PRIVATE_HUGETLB,
  ROLLUP_SWAP,     /* with shmem, undivided */
  ROLLUP_SWAP_PSS, /* without shmem */
  ROLLUP_LOCKED,
  ROLLUP_FIELDS
};

struct rollup {
  uint32_t known; /* bit per rollup_field: what the text had */
  uint64_t bytes[ROLLUP_FIELDS];
};

static inline bool rollup_has(const struct rollup *r, enum rollup_field f) {
  return (r->known >> f) & 1;
}

/*
 * Parses a whole smaps_rollup. The order of the keys is free, unknown keys are
 * skipped, missing ones are left out of `known`.
 *
 * Malformed, and so -EBADMSG with *ret left alone: no Rss, Pss or one of the
 * four Shared_ and Private_ fields; a value that is no number of kB or that
 * overflows; a key twice; a text that does not end in a newline; Pss above Rss;
 * the four not adding up to Rss (a unit of rounding each is let pass). An empty
 * text (a process without mm on some kernels) is the caller's to tell apart
 * beforehand.
 */
int rollup_parse(const char *text, size_t len, struct rollup *ret);

/* A line of a smaps or a smaps_rollup; zero it before the first. */
struct rollup_line {
  enum { ROLLUP_LINE_MAPPING, ROLLUP_LINE_FIELD, ROLLUP_LINE_OTHER } kind;
  unsigned field; /* that it gives, or that was given last */
  uint64_t bytes;
  /* Of a mapping: its range, "rwxp" and what stands behind the inode. */
  uint64_t start, end;
  struct span permissions, name;
};

/*
 * Takes the next line: a mapping's header, one of the fields above, or another
 * (Size, VmFlags …). False where it is none of these.
 */
bool rollup_line_next(struct scan *s, struct rollup_line *line);

/* Adds a field's line to a sum; false where that overflows. */
bool rollup_add_line(struct rollup *sum, const struct rollup_line *line);

/* Whether the fields that we rely on are there and agree, as described for
 * rollup_parse(). */
bool rollup_is_consistent(const struct rollup *r);

/*
 * Sums a smaps, which may be tens of megabytes, piece by piece. Zero it, feed
 * it, finish it:
 */
struct rollup_sum {
  struct rollup total;
  uint64_t vmas; /* mappings seen */
  bool is_bad;
};

/*
 * Takes the whole lines of the piece and returns how many bytes those were; the
 * caller puts the rest, an unfinished line, in front of the next piece. A piece
 * without a newline takes nothing.
 */
size_t rollup_sum_feed(struct rollup_sum *sum, const char *text, size_t len);

/*
 * Returns 0 and fills *ret, or -EBADMSG, and leaves it alone, for the same
 * reasons as rollup_parse(). Pss is rounded down for every mapping, so it may
 * be short of the rollup's by up to a kB for each.
 */
int rollup_sum_finish(const struct rollup_sum *sum, struct rollup *ret);

#endif
