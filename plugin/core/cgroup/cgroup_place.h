/*
 * The directory of a control group in the hierarchy of the memory controller.
 *
 * It is found through self/mountinfo of the tree, so that a captured tree,
 * which has none, shows no groups of another host.
 */
#ifndef SMAPS_CGROUP_PLACE_H
#define SMAPS_CGROUP_PLACE_H

#include <limits.h>

#include <smaps/procfs.h>

struct cgroup_place {
  bool is_v1;          /* the hierarchy is of version 1 */
  char path[PATH_MAX]; /* in the hierarchy, as the kernel names it */
  char directory[PATH_MAX];
  size_t mount_len; /* the part of `directory` that is the mount point; 0: no
                       mount shows the group */
};

/* Gets the path of the group that the process is in whose directory is open.
 * Returns 0, an outcome of procfs.h or a negative errno. */
int cgroup_place_of(struct procfs *procfs, int process_fd,
                    struct cgroup_place *ret);

/* The lines of mountinfo that may show control groups with memory. A host can
 * have thousands of others. Zeroed at first. */
struct cgroup_mounts {
  bool is_new; /* set by reading; cleared by the caller in a new cycle */
  char *text;  /* owned */
  size_t len;
};

/* Reads the lines, in place of the earlier ones. Returns 0 or as above. May
 * hang if the tree hangs. */
int cgroup_mounts_read(struct procfs *procfs, struct cgroup_mounts *ret);
void cgroup_mounts_done(struct cgroup_mounts *m);

/* Finds the directory of the path, if a mount shows it. */
void cgroup_place_find(const struct cgroup_mounts *mounts,
                       struct cgroup_place *place);

/* memory.stat has less than 2 kB for each of two levels. */
#define CGROUP_FILE_MAX 8192
struct cgroup_file {
  char text[CGROUP_FILE_MAX];
  size_t len;
  uint64_t ino;
};

/* Reads a file of the directory with one read(2). 0 or a negative errno. May
 * hang, so announce the file first. */
int cgroup_place_read(const struct cgroup_place *place, const char *name,
                      struct cgroup_file *ret);

/* Goes to the directory above. False at the mount point. */
bool cgroup_place_climb(struct cgroup_place *place);

#endif
