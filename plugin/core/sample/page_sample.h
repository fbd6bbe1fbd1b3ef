/* SPDX-License-Identifier: MIT */
/*
 * Samples the pages of a process: some hundred of its pages are drawn at random
 * and looked up in pagemap, and kpagecount shows the share of each. The time of
 * a sample does not depend on the size of the process, and the mmap lock is
 * held for one page at a time.
 */
#ifndef SMAPS_PAGE_SAMPLE_H
#define SMAPS_PAGE_SAMPLE_H

#include "sample/page_layout.h"

/* Pages of a kind that were counted: present, and exclusive among them. */
struct page_count {
  uint32_t pages, exclusive;
};

struct page_sample {
  /* Without a census, every present page of the layout has had the same chance
   * to be in one of the tallies. */
  struct page_tally kinds[PAGE_KINDS];
  /* Pages of mappings of shmem that are known by their names: /dev/shm, System
   * V, memfd and shared anonymous memory, but no other tmpfs. They are not in
   * kinds. */
  struct page_tally shmem;
  /* If there are few pages outside of shmem they are counted here. Then `kinds`
   * has a random part of the pages of each kind that are not exclusive, and
   * `shmem` of the pages of shmem. */
  bool has_census;
  struct page_count census[PAGE_KINDS];
  uint32_t looked_at; /* addresses looked up, present or not */
  uint32_t pages;     /* that were found present, or counted */
  /* Resident pages that the layout shows, an estimate, and how far off their
   * sum may be by chance. */
  double present[PAGE_KINDS], chance;
  /* The part of the resident pages of which the sample shows nothing: the
   * layout lacks them, because memory was added elsewhere; the layout has as
   * many pages that are not resident, of a hugetlbfs that was not recognised;
   * or they are unsure (page_lookup.h). 0 if chance may explain it. */
  double unknown;
  bool has_mapcounts; /* as in struct page_lookup */
  /* If the layout was made: the CPU time of a walk by present page, learnt from
   * some random windows of 512 pages, if no fork shares huge pages; 0 if it is
   * unknown. And, since Linux 6.7, the part of the pages that are huge. */
  double walk_page_ns, huge;
  struct statm_sample statm; /* right after */
  /* A reference that the caller owns, even if this is the given layout. */
  struct page_layout *layout;
  uint64_t layout_ns; /* CPU time of making it; 0 if it is the one given */
};

/* The mappings of one name: the pages that were drawn from them. */
struct mapping_tally {
  struct page_tally kinds[PAGE_KINDS];
  bool is_shmem;
  uint64_t resident[PAGE_KINDS]; /* pages; for mapping_sample.c */
};

struct mapping_tallies {
  struct mapping_table *table;   /* gets all mappings, as maps has them */
  struct mapping_tally *tallies; /* of each; allocated, also by a failure */
};

struct page_request {
  uint32_t pages_wanted;      /* present ones */
  struct page_layout *layout; /* or NULL; the caller's reference */
  /* Or NULL. With mappings every page has the same chance to be drawn: there is
   * no census. */
  struct mapping_tallies *mappings;
  uint64_t seed; /* differs in each cycle; the same again in a test */
};

/* For each wanted page at most this many addresses are looked up. */
#define PAGE_LOOKUPS_MOST 4

/*
 * A process that maps much shmem has little other memory: random pages would
 * rarely meet it, but it is all that the process does not share with relatives.
 * So a census counts all of it: pagemap shows which pages are exclusive, 512 in
 * one read. It is not taken of more pages, present or not; nor if the pages are
 * so far apart that they take more reads.
 */
#define CENSUS_PAGES_MOST 65536
#define CENSUS_READS_MOST 1024

/* Of this many pages that are not exclusive, one is picked to be looked up; and
 * of all at least and at most so many. */
#define CENSUS_PAGES_FOR_A_PICK 256
#define CENSUS_PICKED_LEAST 16
#define CENSUS_PICKED_MOST 128

/*
 * Fills *ret and returns 0; or leaves nothing to release and returns an outcome
 * of procfs.h or a negative errno. PROCFS_GONE also if the process has given up
 * its address space by an exec; PROCFS_DENIED if maps may not be opened, and
 * -EPERM if only pagemap; -ENOSYS if the kernel has no pagemap.
 *
 * A layout is made if none is given, or if the one that is given shows less
 * than three quarters of what is resident: memory has moved since, and would
 * not be found. A layout of another address space, after an exec, can yield
 * wrong pages; statm shows the exec.
 */
int page_sample_read(struct page_reader *r, const struct proc_ref *p,
                     const struct page_request *request,
                     struct page_sample *ret);

#endif
