/* A process in a proc tree whose pages are read (fake_pages.h), and the tools
 * for that. Its clock moves when it is asked, and pauses take no time. */
#ifndef SMAPS_TESTS_PAGED_H
#define SMAPS_TESTS_PAGED_H

#include "fake_pages.h"
#include "read/inspect.h"
#include "sample/page_layout.h"

struct paged {
  struct proctree tree;
  struct procfs *procfs;
  struct proc_ref ref; /* pid 10 */
  struct page_reader reader;
  atomic_uint heartbeat;
  uint64_t now_ns, step_ns; /* CPU time; each question takes the latter, 1 */
  unsigned pauses;
  const char *file; /* that was being read in the last pause */
};

/* One process at a time. It has no maps and no pagemap yet. */
void paged_make(struct paged *p, unsigned pages);
void paged_remove(struct paged *p);

/* Makes statm show so many pages. */
void paged_resize(struct paged *p, unsigned pages);

#endif
