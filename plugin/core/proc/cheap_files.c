#include "proc/cheap_files.h"

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
