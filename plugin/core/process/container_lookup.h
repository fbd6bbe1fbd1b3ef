/* SPDX-License-Identifier: MIT */
/*
 * Finds the names of a container in the files of its runtime, which are where
 * the runtime's settings say. May hang.
 */
#ifndef SMAPS_CONTAINER_LOOKUP_H
#define SMAPS_CONTAINER_LOOKUP_H

#include <pwd.h>
#include <sys/types.h>
#include <time.h>

#include "cgroup/cgroup.h"
#include "process/container_file.h"

#define CONTAINER_ID_LEN 64 /* if it has digits */
/* Longer paths are refused, because a path is kept for each container. */
#define CONTAINER_PATH_SIZE 512
#define CONTAINER_PLACES 26
/* Podman has all containers in one file, with about 1 kB for each. */
#define CONTAINER_FILE_MOST (4 << 20)

/* A user may give a control group the id of another user's container, so the id
 * alone does not identify it. */
struct container_entry {
  char id[CONTAINER_NAME_SIZE];
  uint32_t uid; /* whose files have the names; 0: the system's */
  struct container_names names;
  char path[CONTAINER_PATH_SIZE]; /* the file with the names; empty: none */
  ino_t ino;                      /* of that file, when it was read */
  struct timespec mtime;          /* of that file, at that time */
  uint64_t checked_ns;
};

/* Where the runtimes of the system, or those of a user, have their files. */
struct container_places {
  char path[CONTAINER_PLACES][CONTAINER_PATH_SIZE]; /* empty: none */
  uint32_t uid;
  uint64_t read_ns; /* the cycle in which the settings were read */
};

struct container_lookup {
  const char *root; /* the directory that has the host's files */
  struct container_places *places;
  uint64_t now_ns;
  struct passwd *user; /* whose files they are; NULL: the system's */
  struct container_entry found;
  bool is_kata;     /* the sandbox is the pod */
  size_t bytes;     /* that were read */
  int error;        /* of the first file that exists but could not be used */
  const char *file; /* that file, a constant */
};

/*
 * Completes l->found, which has an id, a user and the names that are known
 * until now. Returns 0 if a file has the names or had them, else a negative
 * errno: -ENOENT, and l->file is what was looked for.
 */
int container_lookup_run(struct container_lookup *l, struct span path,
                         enum cgroup_runtime runtime);

#endif
