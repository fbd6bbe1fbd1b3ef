/* A captured /proc: the directory that contrib/capture-proc makes. */
#ifndef REPORT_MIRROR_H
#define REPORT_MIRROR_H

#include <smaps/config_error.h>

#include <limits.h>
#include <stdbool.h>

struct mirror {
  const char *root;        /* the directory that stands for /proc */
  char name[NAME_MAX + 1]; /* of the capture, which stands for the host */
  bool is_captured; /* false: a proc file system, which shows what is now */
  double time;      /* when it was captured, in seconds since the Epoch */
};

/* Keeps the path. Returns 0, or -EINVAL with the reason. */
int mirror_open(const char *path, struct mirror *ret,
                struct config_error *reason);

#endif
