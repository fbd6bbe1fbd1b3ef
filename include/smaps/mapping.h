/*
 * What a process maps, by name: a /proc/PID/smaps (proc(5); fs/proc/task_mmu.c,
 * show_map_vma and __show_smap) summed over all mappings of one name. Or a
 * /proc/PID/maps, which has the same without the amounts.
 */
#ifndef SMAPS_MAPPING_H
#define SMAPS_MAPPING_H

#include <smaps/rollup.h>

/* Bit per permission that any of the mappings has. */
enum permission {
  MAPPING_READ = 1,
  MAPPING_WRITE = 2,
  MAPPING_EXECUTE = 4,
  MAPPING_PRIVATE = 8,
  MAPPING_SHARED = 16,
};

struct mapping {
  /* Path, [heap] and the like; "[anon]" where it has none. NULL for what is
   * summed up as the rest. */
  const char *name;
  size_t name_len;
  unsigned permissions;
  uint64_t vmas;
  uint64_t processes; /* that map it */
  uint64_t size;      /* of the address ranges, in bytes */
  struct rollup sum;  /* nothing is known where one of them is of a maps */
};

/* A process can have as many names as mappings: what is beyond these, or beyond
 * so many bytes of names, goes to the rest. */
#define MAPPING_NAMES_MAX 16384
#define MAPPING_NAME_BYTES_MAX ((size_t)1 << 20)

/* Zero it, feed it, finish it; end with mapping_table_done(). */
struct mapping_table {
  struct mapping *mappings; /* the first is the rest */
  size_t n, cap;
  uint32_t *slots; /* by hash of the name: index of the mapping, or 0 */
  size_t n_slots;
  struct name_block *names;
  size_t name_bytes;
  size_t current; /* the mapping that the lines at hand are of */
  int error;      /* 0, -EBADMSG or -ENOMEM */
};

void mapping_table_done(struct mapping_table *t);

/* Takes the whole lines of a piece, as rollup_sum_feed() does. */
size_t mapping_table_feed(struct mapping_table *t, const char *text,
                          size_t len);

/* Once all is fed: the sum of all that is mapped. 0, -EBADMSG for the same
 * reasons as rollup_parse(), or -ENOMEM. Nothing may be fed afterwards. */
int mapping_table_finish(struct mapping_table *t, struct rollup *ret);

/* Likewise, where what was fed is a maps. */
int mapping_table_finish_maps(struct mapping_table *t);

/* Adds what one process maps. 0 or -ENOMEM, and then it is not whole. */
int mapping_table_add(struct mapping_table *t,
                      const struct mapping_table *process);

/*
 * Orders the mappings, the largest first by Pss, or by size where Pss is not
 * known, and sums up as the rest whatever is behind the first `max`. Then
 * *ret are the first *ret_n that have a name, and the rest is mappings[0]. The
 * table can only be ended after that.
 */
void mapping_table_rank(struct mapping_table *t, size_t max,
                        const struct mapping **ret, size_t *ret_n);

/* The rest, or NULL where there is none. */
const struct mapping *mapping_table_rest(const struct mapping_table *t);

#endif
