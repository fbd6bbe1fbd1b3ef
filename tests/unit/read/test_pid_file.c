/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "read/pid_file.h"

/* A directory of its own for each test, with room for "x.pid" in it. */
static char directory[32], path[48];

static int make_directory(void **state) {
  (void)state;
  strcpy(directory, "/tmp/smaps-XXXXXX");
  if (!mkdtemp(directory))
    return -1;
  snprintf(path, sizeof(path), "%s/x.pid", directory);
  return 0;
}

static int remove_directory(void **state) {
  (void)state;
  remove(path);
  return rmdir(directory);
}

#define FIXTURE_TEST(name)                                                     \
  TEST_WITH(name, make_directory, remove_directory, void *none)

static void write_file(const char *text) {
  FILE *f = fopen(path, "w");

  assert_non_null(f);
  assert_true(fputs(text, f) >= 0);
  assert_int_equal(fclose(f), 0);
}

/* That it names this one, 0 for none. */
static void assert_names(const char *file, uint32_t wanted) {
  struct pid_claim f = {.number = 4711};

  assert_int_equal(pid_file_read(file, &f), 0);
  assert_int_equal(f.number, wanted);
}

FIXTURE_TEST(the_number_in_front_is_the_pid) {
  static const struct {
    const char *name, *text;
    uint32_t pid;
  } cases[] = {
      {"number", "4711", 4711},
      {"newline behind it", "4711\n", 4711},
      {"lines behind it", "4711\n/srv/data\n1700000000\n", 4711},
      {"blanks in front, as in UUCP's locks", "      4711\n", 4711},
      {"the largest", "4294967295\n", UINT32_MAX},
      {"too large", "4294967296\n", 0},
      {"empty", "", 0},
      {"zero", "0\n", 0},
      {"minus", "-4711\n", 0},
      {"a long line", "12345678901234567890123456789012345678901234567890", 0},
      {"a number that is cut short when read is another number",
       "                              4711\n", 0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct pid_claim f = {.number = 1};

    write_file(cases[i].text);
    assert_int_equal(pid_file_read(path, &f), 0);
    if (f.number != cases[i].pid)
      fail_msg("%s: pid is %u", cases[i].name, f.number);
  }
}

FIXTURE_TEST(a_link_to_a_file_is_followed) {
  char link[64];

  write_file("10\n");
  snprintf(link, sizeof(link), "%s/link", directory);
  assert_int_equal(symlink(path, link), 0);
  assert_names(link, 10);
  remove(link);
}

static void make_loop(void) { assert_int_equal(symlink(path, path), 0); }

static void make_socket(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  close(fd);
}

static void make_fifo(void) { assert_int_equal(mkfifo(path, 0600), 0); }

static void link_to_device(void) {
  assert_int_equal(symlink("/dev/zero", path), 0);
}

static void link_to_directory(void) {
  assert_int_equal(symlink(directory, path), 0);
}

static void (*const make_it[])(void) = {make_loop, make_socket, make_fifo,
                                        link_to_device, link_to_directory};
#define KINDS LENGTH(make_it)

FIXTURE_TEST(special_file_names_no_process) {
  alarm(20); /* for where it blocks */
  for (size_t i = 0; i < KINDS; i++) {
    make_it[i]();
    assert_names(path, 0);
    remove(path);
  }
  alarm(0);
}

/* To rewind a tape it is enough to open and close it. */
FIXTURE_TEST(special_file_is_not_opened) {
  char event[512];
  int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

  make_fifo();
  assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
  assert_names(path, 0);
  assert_int_equal(read(watch, event, sizeof(event)), -1);
  close(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  assert_true(read(watch, event, sizeof(event)) > 0);
  close(watch);
}

/* It looks regular, and has a number in front. */
FIXTURE_TEST(kernel_file_names_no_process) {
  assert_int_equal(symlink("/proc/sys/kernel/pid_max", path), 0);
  assert_names(path, 0);
}

/* --- who can have written it, and when --- */

static struct pid_claim read_it(const char *file) {
  struct pid_claim f = {.number = 0};

  assert_int_equal(pid_file_read(file, &f), 0);
  assert_int_equal(f.number, 4711);
  return f;
}

FIXTURE_TEST(time_and_file_of_a_number_are_known) {
  const struct timespec times[] = {{.tv_sec = 5}, {1700000000, 250000000}};
  struct pid_claim f, later;
  char other[64];

  write_file("4711\n");
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  f = read_it(path);
  assert_true(f.changed_ns == UINT64_C(1700000000250000000));
  snprintf(other, sizeof(other), "%s/other", directory);
  assert_int_equal(rename(path, other), 0);
  write_file("4711\n");
  later = read_it(path);
  assert_true(later.ino != f.ino);
  assert_true(later.changed_ns > f.changed_ns);
  remove(other);
}

FIXTURE_TEST(writers_besides_us_and_root_are_known) {
  struct pid_claim f;

  write_file("4711\n");
  f = read_it(path);
  assert_int_equal(f.writer, 0);
  assert_int_equal(chmod(path, 0666), 0);
  assert_int_equal(read_it(path).writer, WRITER_IS_ANYBODY);
  assert_int_equal(chmod(path, 0644), 0);
  assert_int_equal(read_it(path).group, 0);
  if (geteuid() != 0)
    return;
  assert_int_equal(chown(path, 4242, 4343), 0);
  assert_int_equal(read_it(path).writer, 4242);
  assert_int_equal(read_it(path).group, 0);
  assert_int_equal(chmod(path, 0664), 0);
  assert_int_equal(read_it(path).group, 4343);
}

/* Of the file itself, and of a directory; each user chooses what is read. */
FIXTURE_TEST(owners_of_links_are_writers) {
  char link[64], folder[64], way[80];

  if (geteuid() != 0)
    return;
  write_file("4711\n");
  snprintf(link, sizeof(link), "%s/link", directory);
  snprintf(folder, sizeof(folder), "%s/folder", directory);
  snprintf(way, sizeof(way), "%s/link", folder);
  assert_int_equal(symlink(path, link), 0);
  assert_int_equal(symlink(directory, folder), 0);
  assert_int_equal(read_it(way).writer, 0);
  assert_int_equal(lchown(folder, 4242, 0), 0);
  assert_int_equal(read_it(way).writer, 4242);
  assert_int_equal(lchown(link, 4243, 0), 0);
  assert_int_equal(read_it(way).writer, WRITER_IS_ANYBODY);
  assert_int_equal(read_it(link).writer, 4243);
  remove(link);
  remove(folder);
}
