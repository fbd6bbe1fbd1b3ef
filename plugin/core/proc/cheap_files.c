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

static bool read_thread(struct procfs *p, int process_fd, uint32_t tid,
                        struct status_sample *ret) {
  int fd;
  int rc = procfs_open_thread(p, process_fd, tid, &fd);

  if (rc != 0)
    return false;
  rc = status_read(p, fd, ret);
  close(fd);
  return rc == 0;
}

/* The first thread that `is` is true of; PROCFS_NO_MM without one. */
static int find_thread(struct procfs *p, uint32_t pid, size_t most,
                       bool (*is)(const struct status_sample *),
                       struct status_sample *ret) {
  uint32_t tids[THREADS_MOST];
  struct status_sample sample;
  bool is_found = false;
  size_t n = 0;
  int fd;
  int rc = procfs_open_process(p, pid, &fd);

  if (rc != 0)
    return rc;
  rc = procfs_list_threads(p, fd, tids, most, &n);
  for (size_t i = 0; rc == 0 && i < n && !is_found; i++)
    is_found = read_thread(p, fd, tids[i], &sample) && is(&sample);
  close(fd);
  if (is_found)
    *ret = sample;
  return rc != 0 ? rc : is_found ? 0 : PROCFS_NO_MM;
}

static bool has_memory(const struct status_sample *s) {
  return s->known & STATUS_VM_PTE;
}

int status_read_of_thread(struct procfs *p, uint32_t pid,
                          struct status_sample *ret) {
  return find_thread(p, pid, THREADS_TRIED, has_memory, ret);
}

static bool is_blocked(const struct status_sample *s) {
  return s->state == 'D';
}

bool status_is_blocked(struct procfs *p, uint32_t pid) {
  struct status_sample s;

  if (status_read_of(p, pid, &s) != 0)
    return false;
  return is_blocked(&s) || (s.threads > 1 && find_thread(p, pid, THREADS_MOST,
                                                         is_blocked, &s) == 0);
}
