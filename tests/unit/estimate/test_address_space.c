#include "test.h"

#include "estimate/address_space.h"
#include "estimate/member.h"
#include "estimate/track.h"

#define PROCESSES 3

/* A parent and two children, all first seen in the same cycle. */
struct family {
  struct process parent, first, second;
  struct process *by_pid[PROCESSES];
  struct process_table table;
};

static struct process process(uint32_t pid, uint32_t parent_pid,
                              uint64_t starttime) {
  return (struct process){.pid = pid,
                          .parent_pid = parent_pid,
                          .starttime_ticks = starttime,
                          .state = PROCESS_ALIVE,
                          .start_stack = 0x7ffc1000,
                          .statm = {.text_pages = 40}};
}

static uint32_t family_size(struct family *f) {
  uint32_t size;

  f->table = (struct process_table){.processes = f->by_pid, .n = PROCESSES};
  address_space_relate(&f->table, NULL);
  size = fork_family_size(&f->parent.member->track);
  assert_int_equal(fork_family_size(&f->first.member->track), size);
  assert_int_equal(fork_family_size(&f->second.member->track), size);
  for (int i = 0; i < PROCESSES; i++)
    member_free(f->by_pid[i]);
  return size;
}

TEST(children_join_the_family_of_their_parent) {
  struct family f = {.parent = process(10, 1, 100),
                     .first = process(11, 10, 101),
                     .second = process(12, 10, 102),
                     .by_pid = {&f.parent, &f.first, &f.second}};

  assert_int_equal(family_size(&f), PROCESSES);
}

TEST(so_do_children_whose_pids_have_gone_round) {
  struct family f = {.parent = process(32000, 1, 100),
                     .first = process(32001, 32000, 101),
                     .second = process(300, 32000, 102),
                     .by_pid = {&f.second, &f.parent, &f.first}};

  assert_int_equal(family_size(&f), PROCESSES);
}
