#include "memory_tree.h"

#include <stdio.h>

void memory_tree_put_meminfo(const struct proctree *t,
                             const struct memory_world *w) {
  proctree_print(t, 0, "meminfo",
                 "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n"
                 "SwapTotal: 1048576 kB\nSwapFree: %u kB\n",
                 memory_is_swap_used(w) ? 524288U : 1048576U);
}

static struct fake fake_of(const struct memory_process *p, const char *comm) {
  return (struct fake){.pid = p->pid,
                       .ppid = p->parent_pid,
                       .comm = comm,
                       .starttime = p->starttime,
                       .start_stack =
                           UINT64_C(0x7ff000000000) + (p->program << 16),
                       .faults = p->minor_faults};
}

void memory_tree_put(const struct proctree *t, const struct memory_process *p,
                     const char *comm) {
  struct fake f = fake_of(p, comm);

  proctree_put(t, &f);
}

void memory_tree_put_stat(const struct proctree *t,
                          const struct memory_process *p, const char *comm) {
  struct fake f = fake_of(p, comm);

  proctree_put_stat(t, &f);
}

void memory_tree_put_rollup(const struct proctree *t, uint32_t pid,
                            const struct memory_view *v) {
  static const char *const keys[ROLLUP_FIELDS] = {
      [ROLLUP_RSS] = "Rss",
      [ROLLUP_PSS] = "Pss",
      [ROLLUP_PSS_DIRTY] = "Pss_Dirty",
      [ROLLUP_PSS_ANON] = "Pss_Anon",
      [ROLLUP_PSS_FILE] = "Pss_File",
      [ROLLUP_PSS_SHMEM] = "Pss_Shmem",
      [ROLLUP_SHARED_CLEAN] = "Shared_Clean",
      [ROLLUP_SHARED_DIRTY] = "Shared_Dirty",
      [ROLLUP_PRIVATE_CLEAN] = "Private_Clean",
      [ROLLUP_PRIVATE_DIRTY] = "Private_Dirty",
      [ROLLUP_REFERENCED] = "Referenced",
      [ROLLUP_ANONYMOUS] = "Anonymous",
      [ROLLUP_SWAP] = "Swap",
      [ROLLUP_SWAP_PSS] = "SwapPss"};
  char text[1024];
  int n = snprintf(
      text, sizeof(text),
      "55d0c8f7d000-7ffe1d7f2000 ---p 00000000 00:00 0          [rollup]\n");

  for (int f = 0; f < ROLLUP_FIELDS; f++)
    if (keys[f])
      n += snprintf(text + n, sizeof(text) - (size_t)n, "%s: %llu kB\n",
                    keys[f], (unsigned long long)v->rollup.bytes[f] / 1024);
  proctree_print(t, pid, "smaps_rollup", "%s", text);
}

void memory_tree_put_sizes(const struct proctree *t, uint32_t pid,
                           uint64_t size_pages, const struct memory_view *v) {
  proctree_print(t, pid, "statm", "%llu %llu %llu 40 0 1000 0\n",
                 (unsigned long long)size_pages,
                 (unsigned long long)v->resident_pages,
                 (unsigned long long)v->shared_pages);
  proctree_print(t, pid, "status",
                 "Name:\tx\nUid:\t0\t0\t0\t0\nVmPTE:\t      40 kB\n"
                 "VmSwap:\t%u kB\nThreads:\t1\nvoluntary_ctxt_switches:\t1\n"
                 "nonvoluntary_ctxt_switches:\t1\n",
                 v->vm_swap_kb);
}
