/* SPDX-License-Identifier: MIT */
#include "proc/cheap_files.h"

/* Dead threads other than the main thread vanish, so that the second one lives;
 * unless it has just ended. */
#define THREADS_TRIED 8
#define THREADS_MOST 64

int statm_read_of(struct procfs *p, uint32_t pid, struct procfs_file *file,
                  struct statm_sample *ret) {
  struct span text;
  int rc = procfs_read_kept(p, pid, "statm", file, &text);

  return rc != 0 ? rc : statm_parse(text.text, text.len, ret);
}

int status_read_of(struct procfs *p, uint32_t pid, struct status_sample *ret) {
  struct span text;
  int rc = procfs_read(p, pid, "status", &text);

  return rc != 0 ? rc : status_parse(text.text, text.len, ret);
}

int comm_read_of(struct procfs *p, uint32_t pid, struct span *ret) {
  int rc = procfs_read(p, pid, "comm", ret);

  if (rc == 0 && ret->text[ret->len - 1] == '\n')
    ret->len--;
  return rc;
}

int find_live_thread(struct procfs *p, uint32_t pid, uint32_t *ret) {
  uint32_t tids[THREADS_TRIED];
  struct statm_sample statm;
  size_t n = 0;
  int rc = procfs_list_threads(p, pid, tids, THREADS_TRIED, &n);

  for (size_t i = 0; rc == 0 && i < n; i++)
    if (statm_read_of(p, tids[i], NULL, &statm) == 0 && statm_has_mm(&statm)) {
      *ret = tids[i];
      return 0;
    }
  return rc != 0 ? rc : PROCFS_GONE;
}

static bool is_blocked(struct procfs *p, uint32_t tid) {
  struct status_sample s;

  return status_read_of(p, tid, &s) == 0 && s.state == 'D';
}

bool status_is_blocked(struct procfs *p, uint32_t pid) {
  uint32_t tids[THREADS_MOST];
  size_t n = 0;

  if (is_blocked(p, pid))
    return true;
  procfs_list_threads(p, pid, tids, THREADS_MOST, &n);
  for (size_t i = 0; i < n; i++)
    if (is_blocked(p, tids[i]))
      return true;
  return false;
}
