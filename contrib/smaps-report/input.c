#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_pipe(int fd) {
  struct stat st;

  return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* False if there is no writer. A writer may be slow for as long as it likes:
 * then there is nothing to read yet (EAGAIN), and no end. */
static bool await_writer(int fd, int *ret_first) {
  struct pollfd pipe = {.fd = fd, .events = POLLIN};
  unsigned char first;
  ssize_t n;

  if (poll(&pipe, 1, INPUT_PATIENCE * 1000) != 0)
    return true;
  n = read(fd, &first, 1);
  if (n > 0)
    *ret_first = first;
  return n != 0;
}

/* *ret_first: a byte that was read already. */
static int open_file(const char *path, int *ret_first,
                     struct config_error *reason) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

  if (fd < 0) {
    config_error_format(reason, "%s", strerror(errno));
    return -1;
  }
  if (is_pipe(fd) && !await_writer(fd, ret_first)) {
    close(fd);
    config_error_format(reason, "is a pipe, and no program writes into it");
    return -1;
  }
  fcntl(fd, F_SETFL, 0);
  return fd;
}

FILE *input_open(const char *path, struct config_error *reason) {
  int first = EOF;
  int fd = open_file(path, &first, reason);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

  if (file && first != EOF)
    ungetc(first, file);
  if (file || fd < 0)
    return file;
  config_error_format(reason, "%s", strerror(errno));
  close(fd);
  return NULL;
}
