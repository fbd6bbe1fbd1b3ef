#include "estimate/member.h"

#include "match/group.h"
#include "proc/amount.h"
#include "proc/cheap_files.h"

bool member_is_counted(const struct process *p) {
  return (p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN) &&
         p->n_groups > 0 && !p->is_in_parents_mm && p->track;
}

bool member_is_measured(const struct process *p) {
  return member_is_counted(p) && p->state == PROCESS_ALIVE;
}

struct policy member_policy(const struct process *p) {
  struct policy policy = {.refresh = REFRESH_UNSET, .comes_last = true};

  for (size_t i = 0; i < p->n_groups; i++)
    policy_tighten(&policy, p->groups[i]->policy);
  if (sampling_is_refused(p->track->sampling))
    policy.max_lock_hold_ns = policy_unsampled_lock_hold_ns(&policy);
  return policy;
}

bool member_read_status(struct procfs *procfs, const struct process *p,
                        struct status_sample *ret) {
  int rc = p->is_dead_leader ? status_read_of_thread(procfs, p->pid, ret)
                             : status_read_of(procfs, p->pid, ret);

  if (rc != 0)
    return false;
  page_tables_take(&p->track->tables, ret, p->statm.resident_pages);
  p->track->has_new_tables = true;
  return true;
}

bool member_read_swap_kb(struct procfs *procfs, const struct process *p,
                         uint32_t *ret) {
  struct status_sample s;

  if (!member_read_status(procfs, p, &s) || !(s.known & STATUS_VM_SWAP))
    return false;
  *ret = amount_narrow(s.vm_swap_bytes / 1024);
  return true;
}
