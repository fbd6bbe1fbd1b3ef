/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/procfs.h"

#include "proc/cheap_files.h"
#include "proctree.h"

/* Whether names are listed without saying what they are of. */
static bool is_type_unknown;
/* Lists the first name again at the end, as a tree can that changes. */
static bool is_first_repeated;

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir) {
  static struct dirent first;
  struct dirent *e = __real_readdir(dir);

  if (is_first_repeated && !e) {
    is_first_repeated = false;
    return &first;
  }
  if (is_first_repeated && e->d_name[0] != '.' && !first.d_ino)
    first = *e;
  if (e && is_type_unknown)
    e->d_type = DT_UNKNOWN;
  return e;
}

struct fixture {
  struct proctree tree;
  struct procfs *procfs;
};

static void begin(struct fixture *f) {
  proctree_make(&f->tree);
  proctree_write(&f->tree, "10/statm", "1 2 3\n", 6);
  assert_int_equal(procfs_new(f->tree.root, &f->procfs), 0);
}

static void done(struct fixture *f) {
  procfs_free(f->procfs);
  proctree_remove(&f->tree);
}

TEST_OBJECT(struct fixture, begin, done)
#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

FIXTURE_TEST(root_must_be_a_directory_with_processes) {
  struct procfs *p = NULL;
  char path[128];

  assert_int_equal(procfs_new("/nowhere/at/all", &p), -ENOENT);
  snprintf(path, sizeof(path), "%s/meminfo", f->tree.root);
  assert_int_equal(procfs_new(path, &p), -ENOTDIR);
  snprintf(path, sizeof(path), "%s/10", f->tree.root);
  assert_int_equal(procfs_new(path, &p), -ENOTTY);
  assert_null(p);
}

static void expect_text(struct procfs *p, const char *wanted) {
  struct span text;

  assert_int_equal(procfs_read(p, 10, "statm", &text), 0);
  assert_int_equal(text.len, strlen(wanted));
  assert_memory_equal(text.text, wanted, text.len);
}

/* Also when another tree has come in the place of the first. */
FIXTURE_TEST(handles_stay_on_the_tree_that_was_opened) {
  const struct procfs_entry *entries;
  struct procfs *second;
  struct proctree old = f->tree;
  size_t n;

  old.root[strlen(old.root) - 1] ^= 1;
  assert_int_equal(rename(f->tree.root, old.root), 0);
  proctree_write(&f->tree, "10/statm", "4 5 6\n", 6);
  assert_int_equal(procfs_new_second(f->procfs, &second), 0);
  expect_text(f->procfs, "1 2 3\n");
  expect_text(second, "1 2 3\n");
  procfs_free(second);
  proctree_unlink(&old, "10");
  for (int i = 0; i < 2; i++)
    assert_int_equal(procfs_list(f->procfs, &entries, &n), -ENOTTY);
  proctree_remove(&old);
  assert_int_equal(procfs_list(f->procfs, &entries, &n), -ENOTTY);
}

FIXTURE_TEST(list_is_sorted_and_has_processes_only) {
  static const uint32_t pids[] = {1, 2, 9, 10, 11, 100, 4194304};
  const struct procfs_entry *entries;
  size_t n;

  for (size_t i = 0; i < 7; i++)
    proctree_print(&f->tree, pids[6 - i], "stat", "x");
  proctree_write(&f->tree, "007/stat", "x", 1);
  proctree_write(&f->tree, "0/stat", "x", 1);
  proctree_write(&f->tree, "12x/stat", "x", 1);
  proctree_write(&f->tree, "sys/x", "x", 1);
  proctree_write(&f->tree, "99999999999/stat", "x", 1);
  proctree_write(&f->tree, "77", "a file", 6);
  assert_int_equal(procfs_list(f->procfs, &entries, &n), 0);
  assert_int_equal(n, 7);
  for (size_t i = 0; i < n; i++)
    assert_int_equal(entries[i].pid, pids[i]);
}

FIXTURE_TEST(files_are_read_whole_up_to_the_cap) {
  static const size_t sizes[] = {1,     100,   16383,  16384,
                                 16385, 32768, 600000, PROCFS_FILE_MAX - 2};
  char *text = malloc(PROCFS_FILE_MAX);
  struct span span;

  for (size_t i = 0; i < PROCFS_FILE_MAX; i++)
    text[i] = (char)('a' + i % 23);
  for (size_t i = 0; i < LENGTH(sizes); i++) {
    proctree_write(&f->tree, "10/file", text, sizes[i]);
    assert_int_equal(procfs_read(f->procfs, 10, "file", &span), 0);
    assert_int_equal(span.len, sizes[i]);
    assert_memory_equal(span.text, text, sizes[i]);
    assert_int_equal(span.text[span.len], '\0');
  }
  proctree_write(&f->tree, "10/file", text, PROCFS_FILE_MAX);
  assert_int_equal(procfs_read(f->procfs, 10, "file", &span), -EFBIG);
  assert_int_equal(procfs_read(f->procfs, 10, "statm", &span), 0);
  free(text);
}

FIXTURE_TEST(head_of_a_file_is_cut) {
  struct span span;

  assert_int_equal(procfs_read_head(f->procfs, 10, "statm", 3, &span), 0);
  assert_int_equal(span.len, 3);
  assert_string_equal(span.text, "1 2");
}

FIXTURE_TEST(each_kind_of_failure_has_its_own_result) {
  uint32_t tids[1];
  size_t n;
  struct span span;

  proctree_write(&f->tree, "10/empty", "", 0);
  proctree_write(&f->tree, "10/directory/x", "x", 1);
  assert_int_equal(procfs_list_threads(f->procfs, 10, tids, 1, &n),
                   PROCFS_GONE);
  assert_int_equal(procfs_read(f->procfs, 10, "missing", &span), PROCFS_GONE);
  assert_int_equal(procfs_read(f->procfs, 10, "empty", &span), PROCFS_NO_MM);
  assert_int_equal(procfs_read(f->procfs, 10, "directory", &span), -EISDIR);
  assert_int_equal(procfs_read_link(f->procfs, 10, "exe", &span), PROCFS_GONE);
  assert_int_equal(procfs_read_link(f->procfs, 10, "statm", &span), -EINVAL);
}

FIXTURE_TEST(whole_link_is_read) {
  char target[3001], path[128];
  struct span span;

  memset(target, 'd', 3000);
  target[3000] = '\0';
  snprintf(path, sizeof(path), "%s/10/exe", f->tree.root);
  assert_int_equal(symlink(target, path), 0);
  assert_int_equal(procfs_read_link(f->procfs, 10, "exe", &span), 0);
  assert_int_equal(span.len, 3000);
  assert_string_equal(span.text, target);
}

struct pieces {
  size_t lines, bytes;
};

/* Takes whole lines only, as a parser does. */
static size_t take_lines(void *ctx, const char *text, size_t len) {
  struct pieces *p = ctx;
  size_t used = 0;

  for (size_t i = 0; i < len; i++) {
    if (text[i] != '\n')
      continue;
    p->lines++;
    used = i + 1;
  }
  p->bytes += used;
  return used;
}

FIXTURE_TEST(pieces_join_to_the_whole_file) {
  struct pieces pieces = {0};
  size_t size = 0, cap = 5 << 20;
  char *text = malloc(cap);

  /* Lines have all lengths, and one is longer than the buffer at first. */
  for (size_t i = 0; i < 3000; i++) {
    size_t len = i == 1500 ? 50000 : i % 1000;

    memset(text + size, 'l', len);
    size += len;
    text[size++] = '\n';
  }
  proctree_write(&f->tree, "10/smaps", text, size);
  assert_int_equal(
      procfs_read_pieces(f->procfs, 10, "smaps", take_lines, &pieces), 0);
  assert_int_equal(pieces.lines, 3000);
  assert_int_equal(pieces.bytes, size);
  free(text);
}

FIXTURE_TEST(pieces_that_end_in_part_of_a_line_were_cut_short) {
  struct pieces pieces = {0};

  proctree_write(&f->tree, "10/smaps", "one\ntwo\nthr", 11);
  assert_int_equal(
      procfs_read_pieces(f->procfs, 10, "smaps", take_lines, &pieces),
      -EBADMSG);
  assert_int_equal(pieces.lines, 2);
}

FIXTURE_TEST(line_above_the_cap_is_refused_in_pieces_too) {
  char *text = calloc(1, PROCFS_FILE_MAX + 1);
  struct pieces pieces = {0};

  proctree_write(&f->tree, "10/smaps", text, PROCFS_FILE_MAX + 1);
  assert_int_equal(
      procfs_read_pieces(f->procfs, 10, "smaps", take_lines, &pieces), -EFBIG);
  free(text);
}

FIXTURE_TEST(threads_are_listed_up_to_the_number_asked_for) {
  uint32_t tids[3] = {0};
  size_t n = 0;

  for (uint32_t tid = 10; tid < 15; tid++)
    proctree_put_thread(&f->tree, 10, &(struct fake){.pid = tid});
  assert_int_equal(procfs_list_threads(f->procfs, 10, tids, 3, &n), 0);
  assert_int_equal(n, 3);
  for (int i = 0; i < 3; i++)
    assert_in_range(tids[i], 10, 14);
}

static void put_state(struct fixture *f, const char *path, char state) {
  proctree_print(&f->tree, 0, path, "State:\t%c (x)\nThreads:\t3\n", state);
}

FIXTURE_TEST(process_is_blocked_if_a_thread_is) {
  assert_false(status_is_blocked(f->procfs, 10));
  put_state(f, "10/status", 'D');
  assert_true(status_is_blocked(f->procfs, 10));
  proctree_put_thread(&f->tree, 10, &(struct fake){.pid = 11});
  put_state(f, "10/status", 'S');
  put_state(f, "11/status", 'D');
  assert_true(status_is_blocked(f->procfs, 10));
  put_state(f, "11/status", 'R');
  assert_false(status_is_blocked(f->procfs, 10));
}

/* The directory of the threads has a link for each of them, or none that says
 * anything, as on btrfs. */
FIXTURE_TEST(threads_are_counted_by_links) {
  uint32_t n = 77;

  assert_int_equal(procfs_count_threads(f->procfs, 10, &n), PROCFS_GONE);
  proctree_write(&f->tree, "10/task/file", "x", 1);
  assert_int_equal(procfs_count_threads(f->procfs, 10, &n), -EBADMSG);
  assert_int_equal(n, 77);
}

/* A link with our pid makes the tree ours, and other files do not. */
FIXTURE_TEST(tree_is_ours_where_self_is_us) {
  char own[16], path[128];
  const struct {
    const char *target; /* "": a file; NULL: nothing */
    bool is_ours;
  } cases[] = {{own, true},     {"999999999", false}, {"0", false},
               {"self", false}, {"1x", false},        {"", false},
               {NULL, false}};

  snprintf(own, sizeof(own), "%d", (int)getpid());
  snprintf(path, sizeof(path), "%s/self", f->tree.root);
  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct procfs *p = NULL;

    if (cases[i].target && *cases[i].target)
      assert_int_equal(symlink(cases[i].target, path), 0);
    else if (cases[i].target)
      proctree_write(&f->tree, "self", "x", 1);
    assert_int_equal(procfs_new(f->tree.root, &p), 0);
    if (procfs_has_own_pids(p) != cases[i].is_ours)
      fail_msg("case %zu: it is%s ours", i, cases[i].is_ours ? " not" : "");
    procfs_free(p);
    unlink(path);
  }
}

/* Not every file system shows in its list which entries are directories. */
FIXTURE_TEST(a_process_that_is_listed_twice_is_listed_once) {
  const struct procfs_entry *entries;
  size_t n = 0;

  proctree_write(&f->tree, "9/statm", "1 2 3\n", 6);
  is_first_repeated = is_type_unknown = true;
  assert_int_equal(procfs_list(f->procfs, &entries, &n), 0);
  is_type_unknown = false;
  assert_false(is_first_repeated);
  assert_int_equal(n, 2);
  assert_int_equal(entries[0].pid, 9);
  assert_int_equal(entries[1].pid, 10);
}
