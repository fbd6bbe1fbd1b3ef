#include "proc/cheap_files.h"

#include <unistd.h>

/* Dead threads other than the main thread vanish, so that the second one lives;
 * unless it has just ended. */
#define THREADS_TRIED 8

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

static bool read_thread(struct procfs *p, int process_fd, uint32_t tid,
                        struct status_sample *ret) {
  struct status_sample sample;
  int fd;
  int rc = procfs_open_thread(p, process_fd, tid, &fd);

  if (rc != 0)
    return false;
  rc = status_read(p, fd, &sample);
  close(fd);
  if (rc != 0 || !(sample.known & STATUS_VM_PTE))
    return false;
  *ret = sample;
  return true;
}

int status_read_of_thread(struct procfs *p, uint32_t pid,
                          struct status_sample *ret) {
  uint32_t tids[THREADS_TRIED];
  bool is_read = false;
  size_t n = 0;
  int fd;
  int rc = procfs_open_process(p, pid, &fd);

  if (rc != 0)
    return rc;
  rc = procfs_list_threads(p, fd, tids, THREADS_TRIED, &n);
  for (size_t i = 0; rc == 0 && i < n && !is_read; i++)
    is_read = read_thread(p, fd, tids[i], ret);
  close(fd);
  return rc != 0 ? rc : is_read ? 0 : PROCFS_NO_MM;
}
