/* The files in which a proc tree shows a process of a memory_world. */
#ifndef SMAPS_TESTS_MEMORY_TREE_H
#define SMAPS_TESTS_MEMORY_TREE_H

#include "memory_world.h"
#include "proctree.h"

void memory_tree_put_meminfo(const struct proctree *t,
                             const struct memory_world *w);

/* All files, of one without memory; or stat alone. */
void memory_tree_put(const struct proctree *t, const struct memory_process *p,
                     const char *comm);
void memory_tree_put_stat(const struct proctree *t,
                          const struct memory_process *p, const char *comm);

void memory_tree_put_rollup(const struct proctree *t, uint32_t pid,
                            const struct memory_view *v);

/* statm and status. */
void memory_tree_put_sizes(const struct proctree *t, uint32_t pid,
                           uint64_t size_pages, const struct memory_view *v);

#endif
