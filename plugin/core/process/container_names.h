/* SPDX-License-Identifier: MIT */
/*
 * Names of containers, pods and their namespaces, from the files that their
 * runtimes keep: no daemon is asked.
 *
 * The files may be on a file system that hangs. So several threads may use the
 * cache, and only one of them reads files of the system at a time, and one
 * files of users: meanwhile the others use the names that are known. They do
 * so, too, once much of users' files was read in a cycle.
 */
#ifndef SMAPS_CONTAINER_NAMES_H
#define SMAPS_CONTAINER_NAMES_H

#include <limits.h>
#include <pthread.h>
#include <stdint.h>

#include "process/container_lookup.h"

struct container_cache {
  char root[PATH_MAX];  /* the directory that has the host's files */
  pthread_mutex_t lock; /* of all below; not held while files are read */
  bool is_reading[2];   /* files of the system, of users */
  uint64_t cycle_ns;    /* the last cycle that has asked */
  size_t users_bytes;   /* of users' files that were read in it */
  struct container_places places[2]; /* of whoever reads, as is_reading */
  struct container_entry *entries;
  size_t n;
};

/* A root of NULL is "/". */
void container_cache_init(struct container_cache *c, const char *root);
void container_cache_done(struct container_cache *c);

/*
 * Finds the names for the path of a control group and the containers in it, at
 * least one: of the innermost container whose name is known, else the first 12
 * digits of the innermost one's id. A container without digits has its own
 * name. A name that was known stays, whatever happens to its file, which is
 * checked for changes once in a cycle.
 *
 * Returns 0, or a negative errno if no name is known: of the file that could
 * not be read (-EBADMSG: malformed), or -ENOENT if no file has the name;
 * *ret_file is then the file, or what was looked for, a constant. May hang.
 */
int container_names_find(struct container_cache *c, struct span path,
                         const struct cgroup_containers *containers,
                         uint64_t now_ns, struct container_names *ret,
                         const char **ret_file);

#endif
