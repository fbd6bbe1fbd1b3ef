/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "process/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "draw.h"

#define PIDS 300

/* The pids that gone() was called for since the last question. */
struct gone {
  bool has[PIDS];
  size_t n;
};

static void note_gone(void *ctx, struct process *p) {
  struct gone *gone = ctx;

  assert_in_range(p->pid, 1, PIDS - 1);
  assert_false(gone->has[p->pid]);
  gone->has[p->pid] = true;
  gone->n++;
  /* All of it is there still. */
  if (p->attributes.block)
    assert_string_equal(attributes_get(&p->attributes).value[ATTRIBUTE_COMM],
                        "named");
}

static void update(struct process_table *t, const struct procfs_entry *entries,
                   size_t n, struct gone *gone) {
  /* A copy that ends where the list does, so that ASan sees a step too far. */
  struct procfs_entry *copy = malloc(n * sizeof(*copy));

  if (n > 0)
    memcpy(copy, entries, n * sizeof(*copy));
  *gone = (struct gone){.n = 0};
  t->gone = note_gone;
  t->ctx = gone;
  assert_int_equal(process_table_update(t, copy, n), 0);
  free(copy);
}

static void finish(struct process_table *t) {
  struct gone gone = {.n = 0};
  size_t n = t->n;

  t->ctx = &gone;
  process_table_done(t);
  assert_int_equal(gone.n, n);
  assert_int_equal(t->n, 0);
  assert_null(t->processes);
}

/* A process holds memory of its own. */
static void furnish(struct process *p) {
  const struct span value[ATTRIBUTES] = {[ATTRIBUTE_COMM] = {"named", 5}};
  static const struct stored_attributes nothing;

  attributes_done(&p->attributes);
  assert_int_equal(attributes_renew(&nothing, value, 0, &p->attributes),
                   ATTRIBUTES_CHANGED);
  free(p->groups);
  free(p->claims);
  p->groups = calloc(1, sizeof(struct group *));
  p->claims = calloc(1, sizeof(*p->claims));
  assert_non_null(p->groups);
  assert_non_null(p->claims);
}

TEST(only_a_kernel_thread_is_not_looked_at_again) {
  static const struct {
    const char *name;
    enum process_state before;
    uint64_t ino;
    enum process_state after;
  } cases[] = {
      {"kernel thread", PROCESS_KERNEL, 100, PROCESS_KERNEL},
      {"its pid, another inode", PROCESS_KERNEL, 101, PROCESS_UNSEEN},
      {"alive", PROCESS_ALIVE, 100, PROCESS_UNSEEN},
      {"alive, another inode", PROCESS_ALIVE, 101, PROCESS_UNSEEN},
      {"gone", PROCESS_GONE, 100, PROCESS_UNSEEN},
      {"unknown", PROCESS_UNKNOWN, 100, PROCESS_UNSEEN},
      {"unseen", PROCESS_UNSEEN, 100, PROCESS_UNSEEN},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct procfs_entry entry = {.pid = 2, .ino = 100};
    struct process_table t = {.n = 0};
    struct process *p;
    struct gone gone;

    update(&t, &entry, 1, &gone);
    p = t.processes[0];
    p->state = cases[i].before;
    entry.ino = cases[i].ino;
    update(&t, &entry, 1, &gone);
    if (t.processes[0] != p || p->state != cases[i].after ||
        p->ino != entry.ino)
      fail_msg("%s: state %d", cases[i].name, (int)p->state);
    assert_int_equal(gone.n, 0);
    finish(&t);
  }
}

#ifdef NDEBUG
#define HAS_ASSERTIONS false
#else
#define HAS_ASSERTIONS true
#endif

/* True if an assertion ends a program that makes this transition. */
static bool is_refused(const struct process *p, enum process_state to) {
  struct process copy = *p;
  int status;
  pid_t pid = fork();

  if (pid == 0) {
    signal(SIGABRT, SIG_DFL);
    close(STDERR_FILENO);
    process_set_state(&copy, to);
    _exit(0);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* Each state, with the letters of those that may follow. */
TEST(state_changes_only_as_the_function_says) {
  static const char letters[] = "ukg?a";
  static const char *const next[] = {[PROCESS_UNSEEN] = "ukg?a",
                                     [PROCESS_KERNEL] = "",
                                     [PROCESS_GONE] = "u",
                                     [PROCESS_UNKNOWN] = "u",
                                     [PROCESS_ALIVE] = "ug?"};

  for (size_t from = 0; from < LENGTH(next); from++)
    for (size_t to = 0; to < LENGTH(next); to++) {
      struct process p = {.state = (enum process_state)from};
      bool is_wrong = strchr(next[from], letters[to]) == NULL;

      if (is_refused(&p, (enum process_state)to) !=
          (is_wrong && HAS_ASSERTIONS))
        fail_msg("from %zu to %zu", from, to);
    }
}

TEST(reset_forgets_all_but_pid_and_inode) {
  static const struct procfs_entry entry = {.pid = 5, .ino = 500};
  struct process_table t = {.n = 0};
  struct process *p, want;
  struct gone gone;

  assert_null(process_table_find(&t, 5));
  update(&t, &entry, 1, &gone);
  p = t.processes[0];
  furnish(p);
  p->state = PROCESS_ALIVE;
  p->starttime_ticks = 9;
  p->is_linked = p->is_settled = true;
  p->n_groups = p->n_claims = 1;
  p->is_kcmp_refused = true;
  process_reset(&t, p);
  assert_true(gone.has[5]);
  memset(&want, 0, sizeof(want));
  want.pid = 5;
  want.ino = 500;
  assert_memory_equal(p, &want, sizeof(want));
  finish(&t);
}

/* Two processes, 10 and 20, and what stat says of the second's parent. */
TEST(a_parent_is_in_the_table_and_no_younger) {
  static const struct {
    const char *name;
    uint64_t start;     /* of 10 when 20 is linked */
    uint64_t start_now; /* of 10 later */
    uint32_t parent;    /* of 20, which starts at 500 */
    bool is_parent;
  } cases[] = {
      {"older", 400, 400, 10, true},
      {"of the same tick", 500, 500, 10, true},
      {"younger: the pid was reused before", 501, 501, 10, false},
      {"the pid is reused later", 400, 450, 10, false},
      {"not in the table", 400, 400, 11, false},
      {"none", 400, 400, 0, false},
      {"its own", 400, 400, 20, false},
  };
  static const struct procfs_entry entries[] = {{10, 1}, {20, 2}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct process_table t = {.n = 0};
    struct process *parent, *child;
    struct gone gone;

    update(&t, entries, 2, &gone);
    parent = t.processes[0];
    child = t.processes[1];
    parent->starttime_ticks = cases[i].start;
    child->starttime_ticks = 500;
    child->parent_pid = cases[i].parent;
    process_table_link(&t, child);
    assert_true(child->is_linked);
    parent->starttime_ticks = cases[i].start_now;
    if (process_table_parent(&t, child) != (cases[i].is_parent ? parent : NULL))
      fail_msg("%s", cases[i].name);
    assert_null(process_table_parent(&t, parent));
    /* It ends, and its pid comes back: it is not looked at yet. */
    update(&t, entries + 1, 1, &gone);
    assert_null(process_table_parent(&t, child));
    update(&t, entries, 2, &gone);
    assert_null(process_table_parent(&t, child));
    finish(&t);
  }
}
