#include "memory_tree.h"

#include <stdio.h>
#include <string.h>

static void put_text(const struct proctree *t, uint32_t pid, const char *file,
                     const char *text) {
  char path[64];

  snprintf(path, sizeof(path), "%u/%s", pid, file);
  proctree_write(t, path, text, strlen(text));
}

void memory_tree_put_meminfo(const struct proctree *t,
                             const struct memory_world *w) {
  char text[256];
  int n = snprintf(text, sizeof(text),
                   "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n"
                   "SwapTotal: 1048576 kB\nSwapFree: %u kB\n",
                   memory_is_swap_used(w) ? 524288U : 1048576U);

  proctree_write(t, "meminfo", text, (size_t)n);
}

void memory_tree_put_stat(const struct proctree *t,
                          const struct memory_process *p, const char *comm,
                          uint64_t minor_faults) {
  uint64_t stack = UINT64_C(0x7ff000000000) + (p->program << 16);
  char text[512];

  snprintf(text, sizeof(text),
           "%u (%s) S %u 1 1 0 -1 0 %llu 0 0 0 5 5 0 0 20 0 1 0 %llu 1000000 "
           "250 18446744073709551615 %llu 2 %llu 0 0 0 0 0 0 0 0 0 17 0 0 0 0 "
           "0 0 3 4 5 %llu 7 8 9 0\n",
           p->pid, comm, p->parent_pid, (unsigned long long)minor_faults,
           (unsigned long long)p->starttime, (unsigned long long)stack + 4096,
           (unsigned long long)stack, (unsigned long long)stack + 64);
  put_text(t, p->pid, "stat", text);
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
  put_text(t, pid, "smaps_rollup", text);
}

void memory_tree_put_sizes(const struct proctree *t, uint32_t pid,
                           uint64_t size_pages, const struct memory_view *v) {
  char text[512];

  snprintf(text, sizeof(text), "%llu %llu %llu 40 0 1000 0\n",
           (unsigned long long)size_pages,
           (unsigned long long)v->resident_pages,
           (unsigned long long)v->shared_pages);
  put_text(t, pid, "statm", text);
  snprintf(text, sizeof(text),
           "Name:\tx\nUid:\t0\t0\t0\t0\nVmPTE:\t      40 kB\nVmSwap:\t%u kB\n"
           "Threads:\t1\nvoluntary_ctxt_switches:\t1\n"
           "nonvoluntary_ctxt_switches:\t1\n",
           v->vm_swap_kb);
  put_text(t, pid, "status", text);
}
