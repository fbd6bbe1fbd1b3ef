#include "proc/cheap_files.h"

#include <unistd.h>

/* Dead threads other than the main thread vanish, so that the second one lives;
 * unless it has just ended. */
#define THREADS_TRIED 8
#define THREADS_MOST 64

int statm_read(struct procfs *p, int process_fd, struct statm_sample *ret) {
  struct span text;
  int rc = procfs_read(p, process_fd, "statm", &text);

  return rc != 0 ? rc : statm_parse(text.text, text.len, ret);
}

int statm_read_of(struct procfs *p, uint32_t pid, struct statm_sample *ret) {
  struct span text;
  int rc = procfs_read_of(p, pid, "statm", &text);

  return rc != 0 ? rc : statm_parse(text.text, text.len, ret);
}

int statm_read_kept(struct procfs *p, uint32_t pid, struct procfs_file *file,
                    struct statm_sample *ret) {
  struct span text;
  int rc = procfs_read_kept(p, pid, "statm", file, &text);

  return rc != 0 ? rc : statm_parse(text.text, text.len, ret);
}

int status_read(struct procfs *p, int process_fd, struct status_sample *ret) {
  struct span text;
  int rc = procfs_read(p, process_fd, "status", &text);

  return rc != 0 ? rc : status_parse(text.text, text.len, ret);
}

int status_read_of(struct procfs *p, uint32_t pid, struct status_sample *ret) {
  struct span text;
  int rc = procfs_read_of(p, pid, "status", &text);

  return rc != 0 ? rc : status_parse(text.text, text.len, ret);
}

int comm_read_of(struct procfs *p, uint32_t pid, struct span *ret) {
  int rc = procfs_read_of(p, pid, "comm", ret);

  if (rc == 0 && ret->text[ret->len - 1] == '\n')
    ret->len--;
  return rc;
}

int open_live_thread(struct procfs *p, int process_fd, int *ret_fd) {
  uint32_t tids[THREADS_TRIED];
  struct statm_sample statm;
  size_t n = 0;
  int fd, rc = procfs_list_threads(p, process_fd, tids, THREADS_TRIED, &n);

  for (size_t i = 0; rc == 0 && i < n; i++) {
    if (procfs_open_thread(p, process_fd, tids[i], &fd) != 0)
      continue;
    if (statm_read(p, fd, &statm) == 0 && statm_has_mm(&statm)) {
      *ret_fd = fd;
      return 0;
    }
    close(fd);
  }
  return rc != 0 ? rc : PROCFS_GONE;
}

int status_read_of_thread(struct procfs *p, uint32_t pid,
                          struct status_sample *ret) {
  int fd, thread_fd, rc = procfs_open_process(p, pid, &fd);

  if (rc != 0)
    return rc;
  rc = open_live_thread(p, fd, &thread_fd);
  close(fd);
  if (rc != 0)
    return rc;
  rc = status_read(p, thread_fd, ret);
  close(thread_fd);
  return rc;
}

static bool is_thread_blocked(struct procfs *p, int process_fd, uint32_t tid) {
  struct status_sample s;
  bool is_blocked;
  int fd;

  if (procfs_open_thread(p, process_fd, tid, &fd) != 0)
    return false;
  is_blocked = status_read(p, fd, &s) == 0 && s.state == 'D';
  close(fd);
  return is_blocked;
}

bool status_is_blocked(struct procfs *p, uint32_t pid) {
  uint32_t tids[THREADS_MOST];
  struct status_sample s;
  bool is_blocked;
  size_t n = 0;
  int fd;

  if (status_read_of(p, pid, &s) != 0)
    return false;
  is_blocked = s.state == 'D';
  if (s.threads <= 1 || procfs_open_process(p, pid, &fd) != 0)
    return is_blocked;
  procfs_list_threads(p, fd, tids, THREADS_MOST, &n);
  for (size_t i = 0; i < n && !is_blocked; i++)
    is_blocked = is_thread_blocked(p, fd, tids[i]);
  close(fd);
  return is_blocked;
}
