/* Control groups of our own, with processes in them, for a world. */
#ifndef SMAPS_TESTS_CGROUP_WORLD_H
#define SMAPS_TESTS_CGROUP_WORLD_H

#include "collected.h"

/* The hierarchy, in the tree; that of version 1 is below, at "/memory". */
#define CGROUPS "sys/fs/cgroup"

/* Writes a file of it. */
void cgroup_put(const struct world *w, const char *path, const char *text);

/* Makes a control group of version 2 with that use, without a limit. */
void cgroup_make(const struct world *w, const char *path, const char *use);

/* Removes it. Its inodes stay in use, so that the next control group of that
 * path has others, as in the kernel: a disk would give it the same. */
void cgroup_remove(const struct world *w, const char *path);

/* Sets the number of processes killed for memory, of a control group and of the
 * host, since their beginning. */
void cgroup_kill(const struct world *w, const char *path, unsigned all);
void kill_on_host(const struct world *w, unsigned all);

/* Writes the files of a process that is in the control group. */
void cgroup_join(const struct world *w, uint32_t pid, const char *comm,
                 const char *cgroup);

#define WEB "/system.slice/web.service"

/* Process 10 in the control group of web.service, which is a group, as all
 * units are. */
void start_web(struct world *w);

/* All kills of the host are in web.service. */
void kill_web(const struct world *w, unsigned all);

/* A group that is reported; it fails without. */
const struct group *group_of(const struct world *w, const char *name);

/* Asserts that a group has no control group, and why, or which one it has. */
void assert_absent(const struct world *w, const char *name,
                   enum cgroup_absence why);
void assert_path(const struct world *w, const char *name, const char *path);
/* The same after a cycle of 10 s. */
void expect_absent(struct world *w, const char *name, enum cgroup_absence why);
void expect_path(struct world *w, const char *name, const char *path);

#endif
