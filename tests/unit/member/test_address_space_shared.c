/* SPDX-License-Identifier: MIT */
/* The kernel answers by kcmp(2) which processes run in the memory of their
 * parent. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "few_threads.h"
#include "measured.h"
#include "read/reader.h"

/* --- kcmp(2), the only call of its kind ------------------------------------
 */

/* Why it is refused; 0 where all are in one address space, but for one. */
static _Atomic int kcmp_error, kcmp_alone;
static pthread_mutex_t kcmp_hangs = PTHREAD_MUTEX_INITIALIZER; /* if held */
static _Atomic unsigned kcmp_calls;

long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  va_list args;
  int pid, other;

  assert_int_equal(number, SYS_kcmp);
  va_start(args, number);
  pid = va_arg(args, int);
  other = va_arg(args, int);
  va_end(args);
  kcmp_calls++;
  pthread_mutex_lock(&kcmp_hangs);
  pthread_mutex_unlock(&kcmp_hangs);
  errno = kcmp_error;
  return kcmp_error ? -1 : pid == kcmp_alone || other == kcmp_alone;
}

static int make(void **state) {
  threads_fail = 0;
  kcmp_error = 0;
  kcmp_alone = 0;
  kcmp_calls = 0;
  return measured_setup(state);
}

#define WORLD_TEST(name) TEST_WITH(name, make, world_teardown, struct world *w)

#define TIMEOUT_NS (100 * NS_PER_MS)

static struct fake child_of(const struct fake *parent, uint32_t pid) {
  struct fake child = fake_child(parent, pid);

  child.state = 'S';
  return child;
}

/* Writes a process and n children, which have the pids that follow. */
static void put_family(struct world *w, const struct fake *parent, uint32_t n) {
  world_put(w, *parent);
  for (uint32_t i = 1; i <= n; i++)
    world_put(w, child_of(parent, parent->pid + i));
}

WORLD_TEST(more_children_in_vfork_than_fit_one_batch_are_asked) {
  enum { N = 2 * JOBS_AT_ONCE + 6 };
  struct fake parent = measured_member(10, "g");

  world_make_own(w);
  put_family(w, &parent, N);
  measured_group(w, "g");
  world_run(w, 1);
  world_assert(w, "g", "rss=8192k resident=8192k");
  assert_int_equal(world_members(w, "g"), N + 1);
}

/* The question hangs, and there is no thread for the other one. */
WORLD_TEST(owner_of_memory_stays_the_same_if_kcmp_cannot_answer) {
  struct fake hung = measured_member(10, "g"), other = measured_member(20, "g");

  w->settings.read_timeout_ns = TIMEOUT_NS;
  world_make_own(w);
  put_family(w, &hung, 1);
  put_family(w, &other, 1);
  measured_group(w, "g");
  world_run(w, 1);
  world_assert(w, "g", "rss=%uk", 2 * 8192);
  pthread_mutex_lock(&kcmp_hangs);
  threads_fail = EAGAIN;
  for (int i = 0; i < 2; i++) {
    world_run_hung(w, 0, 1);
    world_assert(w, "g", "rss=%uk", 2 * 8192);
    assert_int_equal(world_members(w, "g"), 4);
  }
  threads_fail = 0;
  pthread_mutex_unlock(&kcmp_hangs);
}

/* A parent with 40 forked children: each pair is worth asking about. If
 * addresses are hidden, an exec does not show that they are different. */
static void put_forked(struct world *w, uint32_t pid) {
  struct fake parent = measured_member(pid, "g");

  parent.start_stack = 0;
  world_put(w, parent);
  for (uint32_t i = 0; i < 40; i++) {
    struct fake child = child_of(&parent, pid + 1 + i);

    child.private_kb += 4;
    world_put(w, child);
  }
}

/* It would be 40 lines in the audit log, each time. */
WORLD_TEST(process_for_which_kcmp_was_refused_is_not_asked_about_again) {
  static const int errors[] = {EPERM, EACCES, ENOSYS};

  w->settings.policy.refresh = REFRESH_ALWAYS;
  world_make_own(w);
  measured_group(w, "g");
  for (unsigned i = 0; i < 3; i++) {
    kcmp_error = errors[i];
    kcmp_calls = 0;
    put_forked(w, 100 * (i + 1));
    for (int j = 0; j < 10; j++) {
      world_run(w, 3600);
      assert_int_equal(kcmp_calls, 40);
      world_assert(w, "g", "resident=%uk", (i + 1) * (41 * 8192 + 40 * 4));
    }
  }
}

/* A parent and two children with equal numbers: to the kernel, main threads
 * that have ended have the same memory, which is none. */
WORLD_TEST(processes_whose_main_threads_are_dead_have_their_own_memory) {
  struct fake parent = measured_member(10, "g"),
              live = measured_member(12, "t");

  kcmp_error = 0;
  w->settings.policy.refresh = REFRESH_ALWAYS;
  world_make_own(w);
  parent.state = 'Z';
  parent.threads = live.threads = 2;
  for (uint32_t pid = 10; pid < 40; pid += 10) {
    struct fake f = pid == 10 ? parent : fake_child(&parent, pid);

    world_put(w, f);
    live.pid = pid + 1;
    proctree_put_thread(&w->tree, pid, &live);
  }
  measured_group(w, "g");
  for (int i = 0; i < 3; i++) {
    world_run(w, 1);
    world_assert(w, "g", "resident=%uk", 3 * 8192);
  }
}

/* Two mms never become one. */
WORLD_TEST(process_with_its_own_memory_is_not_asked_about_again) {
  struct fake parent = measured_member(10, "g");

  kcmp_alone = 11;
  world_make_own(w);
  put_family(w, &parent, 1);
  measured_group(w, "g");
  for (int i = 0; i < 3; i++)
    world_run(w, 1);
  assert_int_equal(kcmp_calls, 1);
}

/* Two in one memory stay so when their main threads end, and then it is the
 * child's. */
WORLD_TEST(shared_memory_belongs_to_the_parent_until_it_ends) {
  struct fake parent = measured_member(10, "g"),
              live = measured_member(110, "t");

  w->settings.policy.refresh = REFRESH_ALWAYS;
  world_make_own(w);
  put_family(w, &parent, 1);
  measured_group(w, "g");
  world_run(w, 1);
  parent.state = 'Z';
  parent.size = 0;
  parent.threads = live.threads = 2;
  put_family(w, &parent, 1);
  for (uint32_t pid = 10; pid < 12; pid++) {
    struct fake f = pid == 10 ? parent : fake_child(&parent, pid);

    f.state = 'Z';
    world_put(w, f);
    live.pid = pid + 100;
    proctree_put_thread(&w->tree, pid, &live);
  }
  for (int i = 0; i < 3; i++) {
    world_run(w, 1);
    world_assert(w, "g", "resident=8192k ps_count=2");
  }
  proctree_end(&w->tree, 10);
  world_expect(w, 1, "g", "resident=8192k");
  assert_int_equal(world_members(w, "g"), 1);
}

static void put_and_expect_calls(struct world *w, struct fake f, unsigned n) {
  world_put(w, f);
  world_run(w, 1);
  world_run(w, 1);
  assert_int_equal(kcmp_calls, n);
}

/* Another program may be another's to ask about; so may another process. */
WORLD_TEST(after_an_exec_the_kernel_is_asked_again) {
  struct fake parent = measured_member(10, "g"), child;

  kcmp_error = EPERM;
  world_make_own(w);
  parent.start_stack = 0;
  world_put(w, parent);
  child = child_of(&parent, 11);
  child.private_kb += 4;
  world_group(w, "g", "Comm", "g*", NULL, NULL);
  put_and_expect_calls(w, child, 1);
  child.comm = "g2";
  child.size++;
  put_and_expect_calls(w, child, 2);
  child.starttime++;
  child.size++;
  put_and_expect_calls(w, child, 3);
}

/* It has its own memory now, but that cannot be asked. */
WORLD_TEST(child_of_a_process_in_quarantine_keeps_its_state) {
  struct fake parent = measured_member(10, "g");

  w->settings.policy.refresh = REFRESH_ALWAYS;
  w->settings.read_timeout_ns = TIMEOUT_NS;
  world_make_own(w);
  put_family(w, &parent, 1);
  measured_group(w, "g");
  world_run(w, 1);
  proctree_hang(&w->tree, "10/smaps_rollup");
  world_run_hung(w, 1, 1);
  proctree_rename(&w->tree, "10/smaps_rollup", "fifo");
  kcmp_alone = 11;
  world_put(w, parent);
  proctree_wake(&w->tree, "fifo");
  for (int i = 0; i < 100; i++) {
    sched_yield();
    world_run_hung(w, 0, 1);
    world_assert(w, "g", "rss=8192k");
  }
  world_run_until_none_hangs(w);
  world_assert(w, "g", "rss=%uk", 2 * 8192);
}
