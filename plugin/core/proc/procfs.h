/* SPDX-License-Identifier: MIT */
/*
 * A proc tree: the live /proc, another mount of it (/host/proc in a container)
 * or a directory captured from another machine. Knows paths and errors, no
 * format.
 *
 * Return values, here and in all callers: a negative errno goes up unchanged
 * (out of memory or descriptors, an I/O error), a positive value is an outcome
 * that the caller handles, 0 is done.
 */
#ifndef SMAPS_PROCFS_H
#define SMAPS_PROCFS_H

#include <smaps/text.h>

enum procfs_outcome {
  PROCFS_GONE = 1, /* ENOENT, ESRCH: it has exited or never existed */
  PROCFS_DENIED,   /* EACCES, EPERM: ptrace check, LSM, hidepid */
  PROCFS_NO_MM,    /* opened, and empty: a zombie, a kernel thread, or a process
                      that has cleared its command line */
};

struct procfs;

struct procfs_entry {
  uint32_t pid;
  /*
   * Inode number of the process's directory. The kernel allocates a new one for
   * each process, so the same pid with the same inode is the same process. The
   * same pid with another inode may be either: the kernel drops inodes when
   * short of memory.
   */
  uint64_t ino;
};

/*
 * Opens a tree. Fails with the errno of opening it, or with -ENOTTY if the
 * directory holds no process. Free with procfs_free(), which accepts NULL.
 */
int procfs_new(const char *root, struct procfs **ret);
void procfs_free(struct procfs *p);

/* A second handle on the same tree, with its own buffers, for another thread;
 * it keeps no files open. Returns 0 or a negative errno. */
int procfs_new_second(const struct procfs *first, struct procfs **ret);

/*
 * The file that is being read through a handle, or was read last: the name
 * passed to the read, or the argument of procfs_announce(). Another thread may
 * ask while the reading thread hangs, so names must be constants.
 */
void procfs_announce(struct procfs *p, const char *what);
const char *procfs_announced(const struct procfs *p);

/*
 * Lists the processes, lowest pid first. The array belongs to p and is valid
 * until the next call. A tree without any process is -ENOTTY, not an empty
 * list: all processes of its namespace have ended, or it was removed.
 */
int procfs_list(struct procfs *p, const struct procfs_entry **ret, size_t *n);

/* Opens a directory outside of the tree by its absolute path, which is looked
 * up below a tree that is captured. The caller announces and closes it. */
int procfs_open_outside(struct procfs *p, const char *path, int *ret_fd);

/* Lists up to `max` thread ids of a process, in the kernel's order. Each has
 * the files of a process under its id, which the tree does not list. */
int procfs_list_threads(struct procfs *p, uint32_t pid, uint32_t *tids,
                        size_t max, size_t *ret_n);

/*
 * Reads a whole file with one read(2), because only a single read is
 * consistent: of a process, or of the top of the tree if the pid is 0. The text
 * belongs to p, ends in a NUL that is not counted, and is valid until the next
 * read. -EFBIG near and above PROCFS_FILE_MAX.
 */
#define PROCFS_FILE_MAX ((size_t)1 << 20)
int procfs_read(struct procfs *p, uint32_t pid, const char *name,
                struct span *ret);
/* The same with a file of an open directory. */
int procfs_read_in(struct procfs *p, int dir_fd, const char *name,
                   struct span *ret);

/*
 * A file of a process that stays open between reads; all zero if it is not
 * open. After the process has ended, reads return PROCFS_GONE and never the
 * file of a later process with the same pid. For statm only: a smaps_rollup
 * that was opened between vfork and exec shows the parent's memory for ever.
 */
struct procfs_file {
  int fd;
};

/*
 * procfs_read() through a file that stays open after the first read, if there
 * is room; else, or if it is NULL, the file is opened and closed each time,
 * which makes a cycle of 1,000 or 10,000 processes 1.3 to 1.4 times as long.
 * But each open file takes 4 kB of kernel memory, and plugins that use
 * select(2) break when descriptors below 1,024 run out. So no descriptor below
 * 1,024 is kept, at most half of those between 1,024 and the daemon's
 * RLIMIT_NOFILE, and at most PROCFS_KEPT_MAX. Most daemons start with a limit
 * of 1,024, and then none is kept.
 *
 * A file without which a value is unknown may have a lower descriptor, if there
 * is no room above: PROCFS_KEPT_LOW_MAX at most.
 *
 * procfs_drop() closes the file. It must be called for each file before
 * procfs_free(), and accepts a file that is not open.
 */
#define PROCFS_KEPT_LEAST_FD 1024
#define PROCFS_KEPT_MAX 8192
#define PROCFS_KEPT_LOW_MAX 64
int procfs_read_kept(struct procfs *p, uint32_t pid, const char *name,
                     struct procfs_file *file, struct span *ret);

/*
 * The same in two steps, for a file outside of the tree that shows a failure
 * once it is no longer what it was, as those of control groups do.
 * procfs_keep() opens it with these flags, if there is room; is_needed: a value
 * is unknown without it. procfs_read_open() returns PROCFS_GONE if it is not
 * open, and drops it on any failure; procfs_write_open() likewise.
 */
void procfs_keep(struct procfs *p, const char *path, int flags, bool is_needed,
                 struct procfs_file *file);
void procfs_write_open(struct procfs *p, struct procfs_file *file,
                       const char *text);
int procfs_read_open(struct procfs *p, struct procfs_file *file,
                     struct span *ret);
void procfs_drop(struct procfs *p, struct procfs_file *file);

/* Counts the threads of a process by the links of its task directory: the cost
 * does not depend on their number, and the call cannot hang. */
int procfs_count_threads(struct procfs *p, uint32_t pid, uint32_t *ret);

/* procfs_read(), limited to the first `max` bytes. */
int procfs_read_head(struct procfs *p, uint32_t pid, const char *name,
                     size_t max, struct span *ret);

/*
 * Reads a file of any size in pieces. feed() returns how many bytes it has
 * used, and the next piece starts with the unused bytes; or PROCFS_ENOUGH, and
 * then nothing more is read. -EBADMSG if bytes are left at the end: the file
 * was cut short.
 */
#define PROCFS_ENOUGH SIZE_MAX
int procfs_read_pieces(struct procfs *p, uint32_t pid, const char *name,
                       size_t (*feed)(void *ctx, const char *text, size_t len),
                       void *ctx);

/* Opens a file to be read at offsets; close it with close(2). */
int procfs_open_file(struct procfs *p, uint32_t pid, const char *name,
                     int *ret_fd);

/* The type of the file system that a file is on, as in statfs(2). A symbolic
 * link is followed; the file is not opened. */
int procfs_file_system(struct procfs *p, uint32_t pid, const char *name,
                       uint64_t *ret);

/* The outcome or negative errno that stands for an errno. */
int procfs_outcome_of(int error);

/* Reads the target of a symbolic link; otherwise as procfs_read(). */
int procfs_read_link(struct procfs *p, uint32_t pid, const char *name,
                     struct span *ret);

/*
 * True if the tree's pids are the pids of our own namespace: not for a /proc of
 * another pid namespace, and not for a captured tree.
 */
bool procfs_has_own_pids(const struct procfs *p);

/* True for a captured tree: a file that it lacks may have been unreadable. */
bool procfs_is_captured(const struct procfs *p);

/*
 * Asks with kcmp(2) if two processes run in one address space (vfork,
 * CLONE_VM), which needs the right to ptrace both. *ret is set on 0 only. Only
 * where procfs_has_own_pids(). May hang: it takes the lock that an exec of
 * either process holds.
 */
int procfs_is_same_mm(struct procfs *p, uint32_t pid_a, uint32_t pid_b,
                      bool *ret);

#endif
