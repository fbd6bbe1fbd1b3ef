/* SPDX-License-Identifier: MIT */
/* Makes a process in a proc tree (proctree.h), and what is needed to read its
 * pages. Its clock moves when it is asked, and pauses take no time. */
#ifndef SMAPS_TESTS_PAGED_H
#define SMAPS_TESTS_PAGED_H

#include "proctree.h"
#include "read/inspect.h"
#include "sample/page_sample.h"

/* Where most of its mappings begin: addresses that keep the files short. */
#define START UINT64_C(0x400000)
#define FIRST (START / PAGE)
#define FRAME 4096

struct paged {
  struct proctree tree;
  struct procfs *procfs;
  struct proc_ref ref; /* pid 10 */
  struct page_reader reader;
  atomic_uint heartbeat;
  uint64_t now_ns, step_ns; /* CPU time; each question takes the latter, 1 */
  unsigned pauses;
  /* From Linux 6.7 on: pagemap has PAGEMAP_SCAN, which finds huge pages in
   * [huge, huge_end) and zero pages in [zero, zero_end); pages after FIRST. */
  bool can_scan;
  uint64_t huge, huge_end, zero, zero_end;
  unsigned scans;
  unsigned fails_at; /* that read from here on is EIO, of 1 on; 0: none */
  const char *file;  /* that was being read in the last pause */
};

/* Makes the process, one at a time. It has no maps and no pagemap yet. */
void paged_make(struct paged *p, unsigned pages);
void paged_remove(struct paged *p);

/* Makes statm show so many pages. */
void paged_resize(struct paged *p, unsigned pages);

/* Writes pages from FIRST on, each with its frame from FRAME on or with none.
 */
void paged_put(const struct paged *p, uint64_t at, size_t n, uint64_t entry,
               bool has_frames);

#endif
