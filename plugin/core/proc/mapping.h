/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a process by name: /proc/PID/smaps (proc(5);
 * fs/proc/task_mmu.c, show_map_vma and __show_smap), summed over all mappings
 * of the same name; or /proc/PID/maps, which is the same without the amounts.
 */
#ifndef SMAPS_MAPPING_H
#define SMAPS_MAPPING_H

#include "proc/rollup.h"

/* Permissions that any of the mappings has, as bits. */
enum permission {
  MAPPING_READ = 1,
  MAPPING_WRITE = 2,
  MAPPING_EXECUTE = 4,
  MAPPING_PRIVATE = 8,
  MAPPING_SHARED = 16,
};

struct mapping {
  /* Path, [heap] and the like; "[anon]" for a mapping without a name. NULL for
   * the rest: all mappings that are not kept by name. */
  char *name;
  size_t name_len;
  unsigned permissions;
  uint64_t vmas;
  uint64_t processes; /* processes that map it */
  uint64_t size;      /* address space in bytes */
  struct rollup sum;  /* the fields that are known of all parts */
  /* If any part comes from samples: their pages, and the error that Pss may
   * have, in bytes. */
  bool is_sampled;
  uint64_t pages_sampled, pss_error;
};

/* A process can have as many names as mappings. Names beyond these limits are
 * summed in the rest. */
#define MAPPING_NAMES_MAX 16384
#define MAPPING_NAME_BYTES_MAX ((size_t)1 << 20)

/* Zero it, feed it, finish it; release it with mapping_table_done(). A maps
 * file needs no finish: its outcome is in error. */
struct mapping_table {
  struct mapping *mappings; /* the first one is the rest */
  size_t n, cap;
  uint32_t *by_name; /* indices of the others, sorted by name */
  size_t cap_names;
  size_t name_bytes;
  size_t current; /* the mapping of the current lines */
  int error;      /* 0, -EBADMSG or -ENOMEM */
};

void mapping_table_done(struct mapping_table *t);

/* Consumes the whole lines of a piece of smaps, which may be tens of megabytes,
 * and returns their length in bytes; the caller puts the unfinished rest in
 * front of the next piece. A piece without a newline consumes nothing. */
size_t mapping_table_feed(struct mapping_table *t, const char *text,
                          size_t len);

/* Adds the mapping of one line of maps; returns its index, which stays the same
 * until the table is ranked. */
size_t mapping_table_add_line(struct mapping_table *t,
                              const struct rollup_line *line);

/* Sums all mappings after the last piece. Returns 0, -EBADMSG for the same
 * reasons as rollup_parse(), or -ENOMEM. Nothing may be fed afterwards. Pss is
 * rounded down for every mapping, so it may be below the rollup's by up to 1 kB
 * per mapping. */
int mapping_table_finish(struct mapping_table *t, struct rollup *ret);

/* Adds the mappings of one process. 0, or -ENOMEM, and then the table is
 * incomplete. */
int mapping_table_add(struct mapping_table *t,
                      const struct mapping_table *process);

/*
 * Sorts the mappings by Pss, or by size if Pss is unknown, largest first, and
 * merges all after the first `max` into the rest. *ret points to the first
 * *ret_n named mappings, and the rest is mappings[0]. Afterwards the table can
 * only be released.
 */
void mapping_table_rank(struct mapping_table *t, size_t max,
                        const struct mapping **ret, size_t *ret_n);

/* The rest, or NULL if it is empty. */
const struct mapping *mapping_table_rest(const struct mapping_table *t);

#endif
