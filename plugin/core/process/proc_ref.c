#include "process/proc_ref.h"

#include "proc/cheap_files.h"

int proc_ref_find_memory(const struct proc_ref *p, struct procfs *procfs,
                         uint32_t *ret_pid) {
  if (p->is_dead_leader)
    return find_live_thread(procfs, p->pid, ret_pid);
  *ret_pid = p->pid;
  return 0;
}
