/* SPDX-License-Identifier: MIT */
/* A proc tree of our own making, for tests that need a known one. */
#ifndef SMAPS_TESTS_PROCTREE_H
#define SMAPS_TESTS_PROCTREE_H

#include <stddef.h>
#include <stdint.h>

struct proctree {
  char root[64];
};

/* What the files of a process contain. Zero and NULL have simple meanings:
 * state 'S', one thread, no exe link, empty command line, cgroup "0::/". */
struct fake {
  uint32_t pid, ppid;
  const char *comm;
  char state;
  unsigned flags; /* stat's, such as PF_KTHREAD */
  unsigned threads;
  uint64_t starttime;
  uint64_t start_stack; /* 0: hidden from us */
  const char *exe;
  const char *cmdline; /* blanks become NULs */
  const char *cgroup;  /* path in the unified hierarchy */
  unsigned uid;
  unsigned size, text, data;      /* pages; size is derived where 0 */
  unsigned private_kb, shared_kb; /* dirty; resident is their sum */
  unsigned cow_kb;                /* of what is shared, by copy on write */
  unsigned sharers;               /* of that, itself included; two where 0 */
  unsigned pss_kb;    /* as if the rest of what is shared had two, where 0 */
  unsigned swap_kb;   /* divided by `sharers`, where these are given */
  unsigned faults;    /* minor ones; 10 where 0 */
  unsigned tables_kb; /* page tables; 0: status has no such line */
  unsigned huge_kb;   /* anonymous, in huge pages */
  unsigned lazy_kb;   /* of private_kb, given back by MADV_FREE */
  unsigned shmem_kb;  /* of the PSS that is not anonymous, the part of shmem */
};

/* A child of 1 with a start time and a stack of its own, without memory. */
struct fake fake_process(uint32_t pid, const char *comm);
/* The same as its parent after a fork, but for pid and start time. */
struct fake fake_child(const struct fake *parent, uint32_t pid);

/* Makes an empty tree with a meminfo of 1 GiB; removes it with all in it. */
void proctree_make(struct proctree *t);
void proctree_remove(struct proctree *t);

/* The same as fixtures of a test: *state is the tree. */
int proctree_setup(void **state);
int proctree_teardown(void **state);

/* Makes it a tree of our own pid namespace, as far as its users see: a
 * kernel's, and not a captured one. */
void proctree_make_own(const struct proctree *t);

/* Writes all files of a process, over those that are there. */
void proctree_put(const struct proctree *t, const struct fake *f);

/* Writes its stat alone. */
void proctree_put_stat(const struct proctree *t, const struct fake *f);

/* Writes the files of a thread under task/, and a link to them under its id. */
void proctree_put_thread(const struct proctree *t, uint32_t pid,
                         const struct fake *thread);

/* Writes one file below the root, making its directory. */
void proctree_write(const struct proctree *t, const char *path,
                    const char *text, size_t len);

/* Writes a text, printed as by printf(), to a file of a process; or, with pid
 * 0, of the tree. */
void proctree_print(const struct proctree *t, uint32_t pid, const char *file,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A mapping of a process has dirty pages, as above. */
struct fake_mapping {
  const char *name;               /* NULL for none */
  const char *permissions;        /* NULL for "rw-p" */
  unsigned size_kb;               /* private_kb + shared_kb where 0 */
  unsigned private_kb, shared_kb; /* anonymous, and of files */
  unsigned pss_kb;                /* private_kb + shared_kb / 2 where 0 */
  unsigned swap_kb;
};

/* Writes the smaps of a process. */
void proctree_put_smaps(const struct proctree *t, uint32_t pid,
                        const struct fake_mapping *mappings, size_t n);

/* --- pages: maps, pagemap and kpagecount --- */

/* These are entries of pagemap without their frame. */
#define FAKE_ANON (UINT64_C(1) << 63)
#define FAKE_FILE (UINT64_C(1) << 63 | UINT64_C(1) << 61)
#define FAKE_EXCLUSIVE (UINT64_C(1) << 56)
#define FAKE_SWAPPED (UINT64_C(1) << 62)

/* A mapping has addresses in bytes. */
struct fake_range {
  uint64_t start, end;
  const char *permissions; /* NULL for "rw-p" */
  const char *name;        /* NULL for none */
};

/* Writes the maps of a process. */
void fake_pages_map(const struct proctree *t, uint32_t pid,
                    const struct fake_range *ranges, size_t n);

/* Writes n entries of pagemap from the given page on, with frames from `frame`
 * on; with 0 their frames are hidden. Entries that were never written are of
 * pages that are not present. */
void fake_pages_put(const struct proctree *t, uint32_t pid, uint64_t page,
                    size_t n, uint64_t entry, uint64_t frame);

/* Writes n entries that differ, each with its frame. */
void fake_pages_put_each(const struct proctree *t, uint32_t pid, uint64_t page,
                         const uint64_t *entries, size_t n);

/* Writes how often n frames are mapped. */
void fake_pages_count(const struct proctree *t, uint64_t frame, size_t n,
                      uint64_t mappings);
void fake_pages_count_each(const struct proctree *t, uint64_t frame,
                           const uint64_t *mappings, size_t n);

/* --- what happens to files --- */

/* Turns a file into a FIFO, so that its reader waits until it is woken; the
 * reader then finds the file empty. proctree_wake() waits until there is a
 * reader. The file is gone then. */
void proctree_hang(const struct proctree *t, const char *path);
void proctree_wake(const struct proctree *t, const char *path);
/* The same, whether anybody waits or not. */
void proctree_release(const struct proctree *t, const char *path);

/* Moves a file; its reader goes on waiting. */
void proctree_rename(const struct proctree *t, const char *from,
                     const char *to);

/* Removes a file or a directory below the root, with everything in it. */
void proctree_unlink(const struct proctree *t, const char *path);

/* Removes a process. */
void proctree_end(const struct proctree *t, uint32_t pid);

#endif
