/* SPDX-License-Identifier: MIT */
/* Processes that share memory are put into one fork family. */
#include "test.h"

#include "member/address_space.h"
#include "member/member.h"

#include <string.h>

#define MOST 80

/* Processes with the pids from 1 on: each runs what its parent had loaded. */
struct world {
  struct process p[MOST + 1];
  struct process *by_pid[MOST];
  struct process_table t;
};

static void begin(struct world *w, size_t n) {
  memset(w, 0, sizeof(*w));
  w->t.processes = w->by_pid;
  w->t.n = n;
  for (uint32_t pid = 1; pid <= n; pid++) {
    w->p[pid] = (struct process){.pid = pid,
                                 .state = PROCESS_ALIVE,
                                 .starttime_ticks = 100 + pid,
                                 .image = 7,
                                 .start_stack = 0x7ffc1000,
                                 .statm = {.text_pages = 40}};
    w->by_pid[pid - 1] = &w->p[pid];
  }
}

static void set_parent(struct world *w, uint32_t child, uint32_t parent) {
  w->p[child].parent_pid = parent;
  w->p[child].parent_starttime = w->p[parent].starttime_ticks;
  w->p[child].is_linked = true;
}

static struct fork_family *family_of(const struct world *w, uint32_t pid) {
  return w->p[pid].member ? w->p[pid].member->track.family : NULL;
}

static uint32_t size_of(const struct world *w, uint32_t pid) {
  return fork_family_size(&w->p[pid].member->track);
}

static void update(struct world *w) { address_space_relate(&w->t, NULL); }

static void exec(struct process *p) {
  p->image++;
  p->start_stack += 0x5000;
}

static void end(struct world *w) {
  for (uint32_t pid = 1; pid <= MOST; pid++) {
    member_free(&w->p[pid]);
  }
}

/* Processes are numbered from 1 by their place in a string. */
static const struct {
  const char *label;
  const char *parents;  /* of each; '.' for none */
  const char *changes;  /* pairs of a letter and a process, after a cycle */
  const char *families; /* after the next: the same letter, the same family */
} histories[] = {
    {"a process alone has no family", ".", "", "."},
    {"a forked child joins its parent", ".11", "", "aaa"},
    {"grandchildren join too", ".12", "", "aaa"},
    {"children of others are no relatives", "..12", "", "abab"},
    {"a process that execs leaves", ".11", "e2", "a.a"},
    {"a parent that execs leaves its children", ".11", "e1", ".aa"},
    /* PostgreSQL and php-fpm do it: the image differs, the memory does not. */
    {"a change of name is no exec", ".11", "n2", "aaa"},
    {"another text is another program", ".11", "t2t3", "a.."},
    {"orphans stay relatives", ".11", "g1", ".aa"},
    /* Pids wrap around, and the table goes by pid. */
    {"a parent of higher pid comes later", "2.", "", "aa"},
};

static void apply_change(struct world *w, char change, uint32_t pid) {
  struct process *p = &w->p[pid];

  if (change == 'e')
    exec(p);
  if (change == 'n')
    p->image++;
  if (change == 't')
    p->statm.text_pages++;
  if (change != 'g')
    return;
  fork_family_leave(&p->member->track);
  p->state = PROCESS_GONE;
}

static void check_families(struct world *w, const char *families,
                           const char *label) {
  for (uint32_t a = 1; families[a - 1]; a++) {
    uint32_t members = 0;

    for (uint32_t b = 1; families[b - 1]; b++) {
      bool is_one =
          families[a - 1] != '.' && families[a - 1] == families[b - 1];

      members += is_one;
      if (a != b &&
          is_one != (family_of(w, a) && family_of(w, a) == family_of(w, b)))
        fail_msg("%s: %u and %u", label, a, b);
    }
    if (families[a - 1] != '.' && size_of(w, a) != members)
      fail_msg("%s: the family of %u has %u members", label, a, size_of(w, a));
    if (w->p[a].state == PROCESS_ALIVE && members == 0 && size_of(w, a) != 1)
      fail_msg("%s: %u is not alone", label, a);
  }
}

TEST(relatives_run_the_program_of_a_common_ancestor) {
  for (size_t i = 0; i < LENGTH(histories); i++) {
    const char *parents = histories[i].parents;
    struct world w;

    begin(&w, strlen(parents));
    for (uint32_t pid = 1; parents[pid - 1]; pid++)
      if (parents[pid - 1] != '.') {
        uint32_t parent = (uint32_t)(parents[pid - 1] - '0');

        if (parent > pid)
          w.p[pid].starttime_ticks = 1000;
        set_parent(&w, pid, parent);
      }
    update(&w);
    for (const char *c = histories[i].changes; *c; c += 2)
      apply_change(&w, c[0], (uint32_t)(c[1] - '0'));
    for (int cycle = 0; cycle < 2; cycle++) { /* nothing is counted twice */
      update(&w);
      check_families(&w, histories[i].families, histories[i].label);
    }
    end(&w);
  }
}

TEST(a_process_that_leaves_takes_no_pages_along) {
  struct world w;

  begin(&w, 2);
  set_parent(&w, 2, 1);
  update(&w);
  w.p[2].member->track.family_pages = 7;
  exec(&w.p[2]);
  update(&w);
  assert_int_equal(w.p[2].member->track.family_pages, 0);
  end(&w);
}

/* As if readings had just shown that all but the oldest share memory. It comes
 * last, because pids have wrapped around. */
TEST(processes_that_share_join_the_oldest_of_their_program) {
  struct world w;

  begin(&w, 5);
  w.p[4].starttime_ticks = 1;
  exec(&w.p[5]);
  update(&w);
  check_families(&w, ".....", "before");
  for (uint32_t pid = 1; pid <= 5; pid++) {
    struct track *t = &w.p[pid].member->track;

    if (pid == 4)
      continue;
    t->strangers = STRANGERS_NEW;
    kinship_apply(t, KINSHIP_DOUBTED, NULL);
  }
  update(&w);
  check_families(&w, "aaaa.", "after");
  end(&w);
}

/* As many as a baseline counts. */
TEST(a_family_can_be_larger_than_a_baseline_counts) {
  struct world w;

  begin(&w, 2);
  set_parent(&w, 2, 1);
  update(&w);
  w.p[1].member->track.family->members = 70000;
  assert_int_equal(size_of(&w, 1), UINT16_MAX);
  w.p[1].member->track.family->members = 2;
  end(&w);
}

/* Pids have wrapped around, and the child comes before its parent. */
TEST(a_child_seen_before_its_parents_exec_joins) {
  struct fork_family *parents, *childs;
  struct world w;

  begin(&w, 3);
  w.t.processes = w.by_pid + 1; /* pid 1 is to be born */
  w.t.n = 2;
  set_parent(&w, 3, 2);
  update(&w);
  exec(&w.p[2]);
  w.p[1].start_stack = w.p[2].start_stack;
  w.p[1].image = w.p[2].image;
  w.p[1].starttime_ticks = 1000;
  set_parent(&w, 1, 2);
  w.t.processes = w.by_pid;
  w.t.n = 3;
  update(&w);
  parents = family_of(&w, 2);
  childs = family_of(&w, 1);
  end(&w);
  assert_non_null(parents);
  assert_ptr_equal(childs, parents);
}

/* Pids have wrapped around: each comes before its parent, and none is decided
 * when the first one is. */
TEST(descendants_seen_before_their_ancestors_join_the_first) {
  struct world w;

  begin(&w, 5);
  for (uint32_t pid = 1; pid < 5; pid++)
    set_parent(&w, pid, pid + 1);
  update(&w);
  assert_non_null(family_of(&w, 5));
  assert_ptr_equal(family_of(&w, 1), family_of(&w, 5));
  for (uint32_t pid = 1; pid <= 5; pid++)
    assert_int_equal(size_of(&w, pid), 5);
  end(&w);
}

/* Only a broken tree can have one. */
TEST(a_ring_of_parents_is_one_family_without_anybody_twice) {
  for (uint32_t n = 2; n <= MOST; n++) {
    struct world w;
    uint32_t sum = 0;

    begin(&w, n);
    for (uint32_t pid = 1; pid <= n; pid++)
      set_parent(&w, pid, pid % n + 1);
    update(&w);
    update(&w);
    for (uint32_t pid = 1; pid <= n; pid++) {
      const struct fork_family *family = family_of(&w, pid);
      uint32_t members = 0;

      assert_non_null(family);
      for (uint32_t other = 1; other <= n; other++)
        members += family_of(&w, other) == family;
      sum += family->members != members;
    }
    end(&w);
    assert_int_equal(sum, 0);
  }
}
