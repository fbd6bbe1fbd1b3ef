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
  uint32_t pid = 4711;

  assert_int_equal(pid_file_read(file, &pid), 0);
  assert_int_equal(pid, wanted);
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
    uint32_t pid = 1;

    write_file(cases[i].text);
    assert_int_equal(pid_file_read(path, &pid), 0);
    if (pid != cases[i].pid)
      fail_msg("%s: pid is %u", cases[i].name, pid);
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
