/* SPDX-License-Identifier: MIT */
#include "member/member.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arith.h"
#include "match/group.h"
#include "proc/cheap_files.h"
#include "sample/page_layout.h"

#define MOVED_PART 16
#define MOVED_LEAST_PAGES 64
/* The entry of a page in its table has as many on all 64-bit processors. */
#define ENTRY_BYTES 8

int member_begin_sampling(struct member *m) {
  if (m->sampling)
    return 0;
  m->sampling = calloc(1, sizeof(*m->sampling));
  if (!m->sampling)
    return -ENOMEM;
  m->track.sample_error = &m->sampling->error;
  return 0;
}

void member_end_sampling(struct member *m) {
  if (m->sampling)
    page_layout_drop(m->sampling->layout);
  free(m->sampling);
  m->sampling = NULL;
  m->track.is_sampled = false;
  m->track.sample_error = NULL;
}

int member_make(struct process *p) {
  if (!p->member)
    p->member = calloc(1, sizeof(*p->member));
  return p->member ? 0 : -ENOMEM;
}

void member_refresh(struct process *p) {
  uint32_t program = process_program(p);
  struct member *m = p->member;

  if (m->program == program)
    return;
  m->program = program;
  fork_family_leave(&m->track);
  estimator_forget(&m->track);
  m->read_time = (struct read_time){0};
  m->tables = (struct page_tables){.kib = 0};
  m->shmem = (struct shmem_known){.size_pages = 0};
  m->wanted_ns = 0;
  m->denied = (struct back_off){0};
  member_end_sampling(m);
}

void member_free(struct process *p) {
  if (p->member) {
    fork_family_leave(&p->member->track);
    member_end_sampling(p->member);
  }
  free(p->member);
  p->member = NULL;
}

bool member_is_counted(const struct process *p) {
  return (p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN) &&
         p->n_groups > 0 && !p->is_in_parents_mm && p->member;
}

bool member_is_measured(const struct process *p) {
  return member_is_counted(p) && p->state == PROCESS_ALIVE;
}

struct policy member_policy(const struct process *p) {
  struct policy policy = {.refresh = REFRESH_UNSET, .comes_last = true};

  for (size_t i = 0; i < p->n_groups; i++)
    policy_tighten(&policy, p->groups[i]->policy);
  if (sampling_is_refused(p->member->sampling))
    policy.max_lock_hold_ns = policy.unsampled_lock_hold_ns;
  return policy;
}

bool member_read_status(struct procfs *procfs, const struct process *p,
                        struct status_sample *ret) {
  uint32_t pid = p->pid;

  if ((p->is_dead_leader && find_live_thread(procfs, pid, &pid) != 0) ||
      status_read_of(procfs, pid, ret) != 0)
    return false;
  page_tables_take(&p->member->tables, ret, p->statm.resident_pages);
  p->member->has_new_tables = true;
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

/* --- page tables --- */

void page_tables_take(struct page_tables *t, const struct status_sample *s,
                      uint64_t resident_pages) {
  bool is_known = s->known & STATUS_VM_PTE;

  if (!is_known && page_tables_are_known(t))
    return;
  t->kib = is_known ? amount_narrow(s->vm_pte_bytes / 1024) : 0;
  t->resident_pages = amount_narrow(resident_pages);
}

bool page_tables_are_due(const struct page_tables *t, uint64_t resident_pages) {
  uint64_t then = t->resident_pages;
  uint64_t moved = distance(resident_pages, then);

  return (then == 0 && !page_tables_are_known(t)) ||
         (moved >= MOVED_LEAST_PAGES && moved >= then / MOVED_PART);
}

uint64_t page_tables_bytes(const struct page_tables *t, uint64_t resident_pages,
                           uint64_t page_size) {
  uint64_t then = t->kib ? t->resident_pages : 0;

  return page_size + t->kib * UINT64_C(1024) +
         minus(resident_pages, then) * ENTRY_BYTES;
}
