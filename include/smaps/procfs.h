/*
 * A proc tree: the live /proc, another mount of it (/host/proc in a container)
 * or a directory captured from some machine. Knows paths and errors, no format.
 *
 * Return values, here and in what is built on it: a negative errno goes up
 * unchanged (out of memory or descriptors, an I/O error), a positive value is
 * an outcome that the caller handles, 0 is done.
 */
#ifndef SMAPS_PROCFS_H
#define SMAPS_PROCFS_H

#include <smaps/scan.h>

enum procfs_outcome {
  PROCFS_GONE = 1, /* ENOENT, ESRCH: it has exited, or was not there at all */
  PROCFS_DENIED,   /* EACCES, EPERM: ptrace check, LSM, hidepid */
  PROCFS_NO_MM,    /* opened, and empty: a zombie, a kernel thread, or a
                      process that has cleared its command line */
};

struct procfs;

struct procfs_entry {
  uint32_t pid;
  /*
   * Inode number of the process's directory. The kernel makes a new one for
   * each process, so the same pid with the same inode is the same process;
   * with another it may be either (the kernel forgets inodes when short of
   * memory).
   */
  uint64_t ino;
};

/*
 * Opens a tree. Fails with the errno of opening it, or with -ENOTTY where it is
 * a directory but holds no process. Free with procfs_free(), which takes NULL.
 */
int procfs_new(const char *root, struct procfs **ret);
void procfs_free(struct procfs *p);

/*
 * A second handle on a tree, with buffers of its own, for another thread; not
 * to list processes with. procfs_follow() has it look at the tree that the
 * first handle has open now, for the first time and wherever that was opened
 * anew; the two must not be in use. Both return 0 or a negative errno.
 */
int procfs_new_second(struct procfs **ret);
int procfs_follow(struct procfs *second, const struct procfs *first);

/*
 * What is being read through a handle, or was last: the name of the file as it
 * was given, or what procfs_announce() said. It may be asked by a thread that
 * waits for the one that reads, so names must be constants.
 */
void procfs_announce(struct procfs *p, const char *what);
const char *procfs_announced(const struct procfs *p);

/*
 * Lists the processes, lowest pid first. The array belongs to p and holds until
 * the next call. A tree without any process is -ENOTTY and not an empty list:
 * it has been unmounted. The tree is opened anew by its path after a failure.
 */
int procfs_list(struct procfs *p, const struct procfs_entry **ret, size_t *n);

/*
 * Opens the directory of a process, or of one of its threads, to read from. As
 * long as it is open the files in it are of that process and of no later one
 * with its pid. Close with close(2).
 */
int procfs_open_process(struct procfs *p, uint32_t pid, int *ret_fd);
int procfs_open_thread(struct procfs *p, int process_fd, uint32_t tid,
                       int *ret_fd);

/* Up to `max` thread ids of a process, in the kernel's order. */
int procfs_list_threads(struct procfs *p, int process_fd, uint32_t *tids,
                        size_t max, size_t *ret_n);

/* The inode number of an open process directory, as in procfs_entry. */
int procfs_inode(int process_fd, uint64_t *ret);

/*
 * Reads a file whole with one read(2), which is how the kernel gives a
 * consistent one. dir_fd may be PROCFS_ROOT. The text belongs to p, ends in a
 * NUL that is not counted, and holds until the next read. -EFBIG near and above
 * PROCFS_FILE_MAX.
 */
#define PROCFS_ROOT (-2)
#define PROCFS_FILE_MAX ((size_t)1 << 20)
int procfs_read(struct procfs *p, int dir_fd, const char *name,
                struct span *ret);

/*
 * The same by pid, without opening the directory first: cheaper, for a file of
 * a process that is known to be the same (see procfs_entry).
 */
int procfs_read_of(struct procfs *p, uint32_t pid, const char *name,
                   struct span *ret);

/*
 * A file of a process that stays open between reads; all zero: not open. Once
 * the process has ended it gives PROCFS_GONE, and never the next one with the
 * pid. Only for statm: a smaps_rollup that was opened between vfork and exec
 * shows the parent's memory for ever.
 */
struct procfs_file {
  int fd;
  unsigned opened; /* the tree it is of */
};

/*
 * procfs_read_of() through a file that is kept open from the first time on, if
 * there is room; else it is opened and closed as ever. Opening and closing is
 * half of what a glance at all processes costs. But each open file takes 4 kB
 * of the kernel's memory; and plugins that use select(2) break where
 * descriptors below 1,024 run out. So none of these is kept, not more than half
 * of those above up to the daemon's RLIMIT_NOFILE, and not more than
 * PROCFS_KEPT_MAX. With the limit that most daemons start with, 1,024, none is.
 *
 * procfs_drop() closes it. It must be called for each file before
 * procfs_free(), and takes one that is not open.
 */
#define PROCFS_KEPT_LEAST_FD 1024
#define PROCFS_KEPT_MAX 8192
int procfs_read_kept(struct procfs *p, uint32_t pid, const char *name,
                     struct procfs_file *file, struct span *ret);
void procfs_drop(struct procfs *p, struct procfs_file *file);

/* The number of threads of a process, from the links of its task directory:
 * costs the same however many there are, and cannot hang. */
int procfs_count_threads(struct procfs *p, uint32_t pid, uint32_t *ret);

/* procfs_read() of the first `max` bytes only, where there are more. */
int procfs_read_head(struct procfs *p, int dir_fd, const char *name, size_t max,
                     struct span *ret);

/*
 * Reads a file of any size in pieces. take() returns how much of a piece it has
 * used; the rest stands in front of the next one. -EBADMSG where bytes are left
 * at the end: the file was cut short.
 */
int procfs_read_pieces(struct procfs *p, int dir_fd, const char *name,
                       size_t (*take)(void *ctx, const char *text, size_t len),
                       void *ctx);

/* The target of a symbolic link; otherwise as procfs_read(). */
int procfs_read_link(struct procfs *p, int dir_fd, const char *name,
                     struct span *ret);

/*
 * Whether its pids mean here what they mean there: not so for a /proc of
 * another pid namespace and for a captured tree.
 */
bool procfs_has_own_pids(const struct procfs *p);

/*
 * Whether two processes run in one address space (vfork, CLONE_VM), by kcmp(2),
 * which needs the right to ptrace both. *ret is set on 0 only. -EOPNOTSUPP
 * where the tree's pids are not the pids that we can name: another pid
 * namespace, or a captured tree. May hang: it takes the lock that an exec of
 * either holds.
 */
int procfs_is_same_mm(struct procfs *p, uint32_t pid_a, uint32_t pid_b,
                      bool *ret);

#endif
