#include "measure/host_memory.h"

#include <linux/magic.h>
#include <smaps/kernel.h>

static bool is_live(struct procfs *procfs) {
  uint64_t type;

  return procfs_file_system(procfs, 0, "meminfo", &type) == 0 &&
         type == PROC_SUPER_MAGIC;
}

/* Only the host's own pid namespace has kernel threads; its process 2 is one.
 */
static bool has_kernel_threads(const struct process_table *t) {
  for (size_t i = 0; i < t->n; i++)
    if (t->processes[i]->state == PROCESS_KERNEL)
      return true;
  return false;
}

static struct host_devices read_devices(const struct meminfo_sample *m) {
  uint64_t known = m->huge_pages_total * m->huge_page_size_bytes;
  struct host_devices d = {.zram_bytes = kernel_zram_bytes()};

  if (m->hugetlb_bytes > known)
    d.hugetlb_free_bytes = kernel_hugetlb_free(m->huge_page_size_bytes);
  return d;
}

static enum host_absence
make_account(struct host_memory *h, struct procfs *procfs,
             const struct host_processes *of, const struct process_table *t,
             const struct meminfo_sample *meminfo, bool has_hidden) {
  struct host_processes processes = *of;
  struct host_devices devices;

  if (!is_live(procfs))
    return HOST_IS_NOT_LIVE;
  if (!has_kernel_threads(t))
    return HOST_IS_HIDDEN;
  processes.has_unknown |= has_hidden;
  devices = read_devices(meminfo);
  return host_account_make(meminfo, &processes, &devices, &h->account)
             ? HOST_IS_SEEN
             : HOST_IS_MALFORMED;
}

void host_memory_update(struct host_memory *h, struct procfs *procfs,
                        const struct host_processes *processes,
                        const struct process_table *t,
                        const struct meminfo_sample *meminfo, bool has_hidden) {
  if (h->absence == HOST_IS_UNWANTED)
    return;
  h->absence = make_account(h, procfs, processes, t, meminfo, has_hidden);
}
