#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/process.h>

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

static void update(struct world *w) {
  for (size_t i = 0; i < w->t.n; i++)
    if (w->t.processes[i]->state == PROCESS_ALIVE)
      assert_int_equal(family_update(&w->t, w->t.processes[i]), 0);
}

static void exec(struct process *p) {
  p->image++;
  p->start_stack += 0x5000;
}

static void end(struct world *w) {
  for (uint32_t pid = 1; pid <= MOST; pid++) {
    family_leave(&w->p[pid]);
    assert_null(w->p[pid].family);
  }
}

static void one_alone_has_no_family(void **state) {
  struct world w;

  (void)state;
  begin(&w, 1);
  update(&w);
  assert_null(w.p[1].family);
  assert_int_equal(family_size(&w.p[1]), 1);
  family_leave(&w.p[1]);
  assert_int_equal(family_size(&w.p[1]), 1);
  end(&w);
}

static void a_forked_child_joins_its_parent(void **state) {
  struct world w;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  set_parent(&w, 3, 1);
  update(&w);
  assert_non_null(w.p[1].family);
  assert_ptr_equal(w.p[2].family, w.p[1].family);
  assert_ptr_equal(w.p[3].family, w.p[1].family);
  for (uint32_t pid = 1; pid <= 3; pid++)
    assert_int_equal(family_size(&w.p[pid]), 3);
  /* Nothing is counted twice. */
  update(&w);
  update(&w);
  assert_int_equal(family_size(&w.p[1]), 3);
  end(&w);
}

static void a_new_family_has_no_experience(void **state) {
  struct world w;

  (void)state;
  begin(&w, 2);
  set_parent(&w, 2, 1);
  update(&w);
  assert_true(w.p[1].family->broken_share == 0);
  assert_true(w.p[1].family->cow_breaks == 1);
  assert_true(w.p[1].family->cow_error > 0);
  assert_true(w.p[1].family->cow_error <= 1);
  end(&w);
}

static void grandchildren_join_too(void **state) {
  struct world w;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  set_parent(&w, 3, 2);
  update(&w);
  assert_ptr_equal(w.p[3].family, w.p[1].family);
  assert_int_equal(family_size(&w.p[1]), 3);
  end(&w);
}

static void children_of_others_are_no_relatives(void **state) {
  struct world w;

  (void)state;
  begin(&w, 4);
  set_parent(&w, 3, 1);
  set_parent(&w, 4, 2);
  update(&w);
  assert_ptr_not_equal(w.p[1].family, w.p[2].family);
  assert_ptr_equal(w.p[4].family, w.p[2].family);
  assert_int_equal(family_size(&w.p[3]), 2);
  assert_int_equal(family_size(&w.p[4]), 2);
  end(&w);
}

static void another_program_does_not_join(void **state) {
  struct world w;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  set_parent(&w, 3, 1);
  w.p[2].start_stack += 0x1000; /* the same program again, by exec */
  w.p[3].statm.text_pages++;    /* another, and the stack is hidden */
  update(&w);
  assert_null(w.p[1].family);
  assert_null(w.p[2].family);
  assert_null(w.p[3].family);
  end(&w);
}

static void who_execs_leaves(void **state) {
  struct world w;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  set_parent(&w, 3, 1);
  update(&w);
  exec(&w.p[2]);
  update(&w);
  assert_null(w.p[2].family);
  assert_int_equal(family_size(&w.p[2]), 1);
  assert_int_equal(family_size(&w.p[1]), 2);
  assert_int_equal(family_size(&w.p[3]), 2);
  end(&w);
}

static void a_parent_that_execs_leaves_its_children_together(void **state) {
  struct world w;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  set_parent(&w, 3, 1);
  update(&w);
  exec(&w.p[1]);
  update(&w);
  assert_null(w.p[1].family);
  assert_ptr_equal(w.p[2].family, w.p[3].family);
  assert_int_equal(family_size(&w.p[2]), 2);
  end(&w);
}

/* PostgreSQL and php-fpm do it: the image differs, the memory does not. */
static void a_child_that_changes_its_name_stays(void **state) {
  struct world w;
  struct family *family;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  set_parent(&w, 3, 1);
  update(&w);
  family = w.p[1].family;
  w.p[2].image++;
  update(&w);
  assert_ptr_equal(w.p[2].family, family);
  assert_int_equal(family_size(&w.p[1]), 3);
  end(&w);
}

/* Pids wrap around, and the table goes by pid. */
static void a_parent_of_higher_pid_stays_with_its_child(void **state) {
  struct world w;

  (void)state;
  begin(&w, 2);
  w.p[1].starttime_ticks = 1000;
  set_parent(&w, 1, 2);
  update(&w);
  assert_non_null(w.p[2].family);
  assert_ptr_equal(w.p[1].family, w.p[2].family);
  assert_int_equal(family_size(&w.p[1]), 2);
  end(&w);
}

static void a_child_of_one_that_has_execed_joins_the_new_program(void **state) {
  struct world w;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  w.t.n = 2;
  update(&w);
  exec(&w.p[1]);
  w.p[3].start_stack = w.p[1].start_stack;
  w.p[3].image = w.p[1].image;
  set_parent(&w, 3, 1);
  w.t.n = 3;
  update(&w);
  assert_ptr_equal(w.p[3].family, w.p[1].family);
  assert_int_equal(family_size(&w.p[1]), 2);
  assert_int_equal(family_size(&w.p[2]), 1);
  end(&w);
}

/* AddressSanitizer sees whether that is so. */
static void the_last_member_takes_the_family_away(void **state) {
  struct world w;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  set_parent(&w, 3, 2);
  update(&w);
  family_leave(&w.p[1]);
  assert_int_equal(family_size(&w.p[1]), 1);
  assert_int_equal(family_size(&w.p[3]), 2);
  family_leave(&w.p[3]);
  family_leave(&w.p[3]);
  assert_int_equal(family_size(&w.p[2]), 1);
  assert_non_null(w.p[2].family);
  family_leave(&w.p[2]);
  end(&w);
}

static void without_a_parent_there_is_none_to_join(void **state) {
  struct world w;

  (void)state;
  begin(&w, 4);
  w.p[2].parent_pid = 77; /* not in the table */
  set_parent(&w, 3, 1);
  w.p[3].parent_starttime++; /* another had that pid */
  set_parent(&w, 4, 1);
  w.p[1].state = PROCESS_GONE;
  update(&w);
  for (uint32_t pid = 1; pid <= 4; pid++)
    assert_null(w.p[pid].family);
  end(&w);
}

static void orphans_stay_relatives(void **state) {
  struct world w;

  (void)state;
  begin(&w, 3);
  set_parent(&w, 2, 1);
  set_parent(&w, 3, 1);
  update(&w);
  family_leave(&w.p[1]);
  w.p[1].state = PROCESS_GONE;
  update(&w);
  assert_ptr_equal(w.p[2].family, w.p[3].family);
  assert_int_equal(family_size(&w.p[2]), 2);
  end(&w);
}

/* Its parent's stat could not be read in the first cycle. */
static void a_child_that_is_linked_late_joins(void **state) {
  struct world w;
  uint32_t size;

  (void)state;
  begin(&w, 2);
  w.p[2].parent_pid = 1;
  w.p[1].state = PROCESS_UNKNOWN;
  update(&w);
  w.p[1].state = PROCESS_ALIVE;
  process_table_link(&w.t, &w.p[2]);
  assert_true(w.p[2].is_linked);
  update(&w);
  size = family_size(&w.p[2]);
  end(&w);
  assert_int_equal(size, 2);
}

/* Pids have wrapped around, and the child comes before its parent. */
static void a_child_seen_before_its_parents_exec_joins(void **state) {
  struct family *parents, *childs;
  struct world w;

  (void)state;
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
  parents = w.p[2].family;
  childs = w.p[1].family;
  end(&w);
  assert_non_null(parents);
  assert_ptr_equal(childs, parents);
}

/* Pids have wrapped around: each comes before its parent, and none is decided
 * when the first one is. */
static void
descendants_seen_before_their_ancestors_join_the_first(void **state) {
  struct world w;

  (void)state;
  begin(&w, 5);
  for (uint32_t pid = 1; pid < 5; pid++)
    set_parent(&w, pid, pid + 1);
  family_update(&w.t, &w.p[1]);
  assert_non_null(w.p[5].family);
  assert_ptr_equal(w.p[1].family, w.p[5].family);
  update(&w);
  for (uint32_t pid = 1; pid <= 5; pid++)
    assert_int_equal(family_size(&w.p[pid]), 5);
  end(&w);
}

/* As many as stand between are looked at, and no more. */
static void ancestors_are_sought_so_far_and_no_farther(void **state) {
  enum { TRIED = 64 };
  struct world w;

  (void)state;
  begin(&w, MOST);
  for (uint32_t pid = 1; pid < MOST; pid++)
    set_parent(&w, pid, pid + 1);
  family_update(&w.t, &w.p[1]);
  assert_ptr_equal(w.p[1].family, w.p[2 + TRIED].family);
  for (uint32_t pid = 2; pid <= MOST; pid++)
    if (pid != 2 + TRIED)
      assert_null(w.p[pid].family);
  end(&w);
}

/* Only a broken tree can have one. */
static void
a_ring_of_parents_is_one_family_without_anybody_twice(void **state) {
  (void)state;
  for (uint32_t n = 2; n <= MOST; n++) {
    struct world w;
    uint32_t sum = 0;

    begin(&w, n);
    for (uint32_t pid = 1; pid <= n; pid++)
      set_parent(&w, pid, pid % n + 1);
    update(&w);
    update(&w);
    for (uint32_t pid = 1; pid <= n; pid++) {
      const struct family *family = w.p[pid].family;
      uint32_t members = 0;

      assert_non_null(family);
      for (uint32_t other = 1; other <= n; other++)
        members += w.p[other].family == family;
      sum += family->members != members;
    }
    end(&w);
    assert_int_equal(sum, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_alone_has_no_family),
      cmocka_unit_test(a_forked_child_joins_its_parent),
      cmocka_unit_test(a_new_family_has_no_experience),
      cmocka_unit_test(grandchildren_join_too),
      cmocka_unit_test(children_of_others_are_no_relatives),
      cmocka_unit_test(another_program_does_not_join),
      cmocka_unit_test(who_execs_leaves),
      cmocka_unit_test(a_parent_that_execs_leaves_its_children_together),
      cmocka_unit_test(a_child_that_changes_its_name_stays),
      cmocka_unit_test(a_parent_of_higher_pid_stays_with_its_child),
      cmocka_unit_test(a_child_of_one_that_has_execed_joins_the_new_program),
      cmocka_unit_test(the_last_member_takes_the_family_away),
      cmocka_unit_test(without_a_parent_there_is_none_to_join),
      cmocka_unit_test(orphans_stay_relatives),
      cmocka_unit_test(a_child_that_is_linked_late_joins),
      cmocka_unit_test(a_child_seen_before_its_parents_exec_joins),
      cmocka_unit_test(descendants_seen_before_their_ancestors_join_the_first),
      cmocka_unit_test(ancestors_are_sought_so_far_and_no_farther),
      cmocka_unit_test(a_ring_of_parents_is_one_family_without_anybody_twice),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
