/* SPDX-License-Identifier: MIT */
#include "report/host.h"

#include <stdio.h>

#include "base/arith.h"

#define NAME(name, key) [HOST_##name] = #key,
static const char *const names[HOST_NUMBERS] = {[HOST_OUTSIDE] = "outside",
                                                HOST_PART_TABLE(NAME)};

/* True for parts that are not a single key of meminfo. */
static bool has_error(unsigned part) {
  return part == HOST_GROUPS || part >= HOST_TMPFS;
}

/* --- processes --- */

void host_add_member(struct host_processes *h, const struct rollup *r,
                     struct error pss_error) {
  h->pss += r->bytes[ROLLUP_PSS];
  h->pss_shmem += r->bytes[ROLLUP_PSS_SHMEM];
  h->lacks_shmem |= !rollup_has(r, ROLLUP_PSS_SHMEM);
  error_add(&h->pss_error, pss_error);
}

/* --- parts --- */

static void put(struct host_account *a, enum host_part part, uint64_t bytes,
                bool is_known) {
  if (!is_known)
    return;
  a->known |= 1U << part;
  a->bytes[part] = bytes;
}

static void set_groups(const struct meminfo_sample *m,
                       const struct host_processes *h, struct host_account *a) {
  uint64_t mapped = m->anon_pages_bytes + m->mapped_bytes;
  uint64_t room = h->has_unknown ? UINT64_MAX : h->outside_resident;
  uint64_t outside = min(minus(mapped, h->pss), room);
  uint64_t possible =
      error_of_sum(&h->pss_error) + amount_from((double)mapped * HOST_MOVES);

  put(a, HOST_GROUPS, mapped, true);
  a->error[HOST_GROUPS] = distance(mapped, h->pss + outside);
  put(a, HOST_OUTSIDE, outside, true);
  a->error[HOST_OUTSIDE] = min(possible, max(outside, room - outside));
}

/* Cached and Mapped both include files and shmem; Cached also unmapped pages.
 */
static void set_cache(const struct meminfo_sample *m,
                      const struct host_processes *h, struct host_account *a) {
  uint64_t files = minus(m->cached_bytes, m->shmem_bytes);
  uint64_t high = min(m->shmem_bytes, m->mapped_bytes);
  uint64_t low = min(minus(m->mapped_bytes, files), high);
  uint64_t shmem = max(low, min(h->pss_shmem, high)); /* mapped */
  uint64_t unread = distance(a->bytes[HOST_GROUPS], h->pss);
  uint64_t possible = unread + error_of_sum(&h->pss_error);
  uint64_t error = max(high - shmem, shmem - low);

  if (!h->lacks_shmem)
    error = min(error, possible);
  put(a, HOST_BUFFERS, m->buffers_bytes, true);
  put(a, HOST_TMPFS, m->shmem_bytes - shmem, true);
  put(a, HOST_PAGE_CACHE, minus(files, m->mapped_bytes - shmem), true);
  a->error[HOST_TMPFS] = a->error[HOST_PAGE_CACHE] = error;
}

static void set_swap_cache(const struct meminfo_sample *m,
                           struct host_account *a) {
  uint64_t mapped = m->anon_pages_bytes + m->shmem_bytes;
  uint64_t listed = m->active_anon_bytes + m->inactive_anon_bytes;
  uint64_t low = min(minus(listed, mapped), m->swap_cached_bytes);
  uint64_t high =
      min(minus(listed + m->unevictable_bytes, mapped), m->swap_cached_bytes);

  put(a, HOST_SWAP_CACHE, high, m->swap_total_bytes > 0);
  a->error[HOST_SWAP_CACHE] = high - low;
}

static void set_hugetlb(const struct meminfo_sample *m,
                        const struct host_devices *d, struct host_account *a) {
  bool is_known = m->known & MEMINFO_HUGE_PAGES;
  uint64_t total =
      max(m->hugetlb_bytes, m->huge_pages_total * m->huge_page_size_bytes);
  uint64_t unused =
      m->huge_pages_free * m->huge_page_size_bytes + d->hugetlb_free_bytes;

  put(a, HOST_HUGETLB_FREE, min(unused, total), is_known);
  put(a, HOST_HUGETLB_USED, minus(total, unused), is_known);
}

static void set_kernel(const struct meminfo_sample *m,
                       const struct host_devices *d, struct host_account *a) {
  bool has_zswap = m->known & MEMINFO_ZSWAP && m->swap_total_bytes > 0;

  put(a, HOST_FREE, m->mem_free_bytes, true);
  put(a, HOST_SLAB_RECLAIMABLE, m->slab_reclaimable_bytes, true);
  put(a, HOST_SLAB_UNRECLAIMABLE, m->slab_unreclaimable_bytes, true);
  put(a, HOST_PAGE_TABLES, m->page_tables_bytes + m->sec_page_tables_bytes,
      true);
  put(a, HOST_KERNEL_STACK, m->kernel_stack_bytes, true);
  put(a, HOST_PERCPU, m->percpu_bytes, m->known & MEMINFO_PERCPU);
  put(a, HOST_ZRAM, d->zram_bytes, d->zram_bytes > 0);
  put(a, HOST_ZSWAP, m->zswap_bytes, has_zswap);
}

/* Limits the parts to MemTotal, in order; unaccounted gets the rest. */
static void fit(uint64_t mem_total, struct host_account *a) {
  uint64_t left = mem_total, cut = 0;

  for (int i = 0; i < HOST_UNACCOUNTED; i++) {
    uint64_t excess = minus(a->bytes[i], left);

    a->bytes[i] -= excess;
    a->error[i] += excess;
    left -= a->bytes[i];
    cut += excess;
  }
  put(a, HOST_UNACCOUNTED, left, true);
  a->error[HOST_UNACCOUNTED] = cut;
  a->bytes[HOST_OUTSIDE] = min(a->bytes[HOST_OUTSIDE], a->bytes[HOST_GROUPS]);
}

void host_account_make(const struct meminfo_sample *m,
                       const struct host_processes *h,
                       const struct host_devices *d, struct host_account *ret) {
  *ret = (struct host_account){.known = 0};
  set_kernel(m, d, ret);
  set_groups(m, h, ret);
  set_hugetlb(m, d, ret);
  set_cache(m, h, ret);
  set_swap_cache(m, ret);
  fit(m->mem_total_bytes, ret);
}

/* --- the numbers --- */

/* Each part takes two steps: the amount and its error. */
bool host_next(const struct host_account *a, unsigned *cursor,
               struct host_value *ret) {
  while (*cursor < 2 * HOST_NUMBERS) {
    unsigned part = *cursor / 2;
    bool is_error = (*cursor)++ & 1;

    if (!((a->known >> part) & 1) || (is_error && !has_error(part)))
      continue;
    snprintf(ret->name, sizeof(ret->name), "%s%s", names[part],
             is_error ? "_error" : "");
    ret->is_part = part < HOST_PARTS && !is_error;
    ret->bytes = is_error ? a->error[part] : a->bytes[part];
    return true;
  }
  return false;
}
