#include "report/host.h"

#include <stdio.h>

#include "proc/amount.h"
#include "proc/arith.h"

static const struct {
  const char *name;
  bool has_error;
} parts[HOST_PARTS] = {
    [HOST_FREE] = {"free", false},
    [HOST_GROUPS] = {"groups", true},
    [HOST_HUGETLB_USED] = {"hugetlb_used", false},
    [HOST_HUGETLB_FREE] = {"hugetlb_free", false},
    [HOST_SLAB_RECLAIMABLE] = {"slab_reclaimable", false},
    [HOST_SLAB_UNRECLAIMABLE] = {"slab_unreclaimable", false},
    [HOST_PAGE_TABLES] = {"page_tables", false},
    [HOST_KERNEL_STACK] = {"kernel_stack", false},
    [HOST_PERCPU] = {"percpu", false},
    [HOST_ZRAM] = {"zram", false},
    [HOST_ZSWAP] = {"zswap", false},
    [HOST_BUFFERS] = {"buffers", false},
    [HOST_TMPFS] = {"tmpfs", true},
    [HOST_PAGE_CACHE] = {"page_cache", true},
    [HOST_SWAP_CACHE] = {"swap_cache", true},
    [HOST_UNACCOUNTED] = {"unaccounted", true},
};

/* --- arithmetic that cannot overflow --- */

static uint64_t more(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

static uint64_t times(uint64_t a, uint64_t b) {
  uint64_t product;

  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* --- processes --- */

void host_add_member(struct host_processes *h, const struct rollup *r,
                     struct doubt pss_error) {
  h->pss += r->bytes[ROLLUP_PSS];
  h->pss_shmem += r->bytes[ROLLUP_PSS_SHMEM];
  h->lacks_shmem |= !rollup_has(r, ROLLUP_PSS_SHMEM);
  doubt_add(&h->pss_doubt, pss_error);
}

void host_add_outside(struct host_processes *h, const struct statm_sample *s,
                      uint64_t page_size) {
  h->outside_resident += s->resident_pages * page_size;
}

/* --- parts --- */

static void set_groups(const struct meminfo_sample *m,
                       const struct host_processes *h, struct host_account *a) {
  uint64_t mapped = more(m->anon_pages_bytes, m->mapped_bytes);
  uint64_t room = h->has_unknown ? UINT64_MAX : h->outside_resident;
  uint64_t outside = min(minus(mapped, h->pss), room);
  uint64_t doubt = more(doubt_of_sum(&h->pss_doubt),
                        amount_from((double)mapped * HOST_MOVES));

  a->bytes[HOST_GROUPS] = mapped;
  a->error[HOST_GROUPS] = distance(mapped, more(h->pss, outside));
  a->outside = outside;
  a->outside_error = min(doubt, max(outside, room - outside));
}

/* Cached has files and shmem, mapped or not, and Mapped both as well. */
static void set_cache(const struct meminfo_sample *m,
                      const struct host_processes *h, struct host_account *a) {
  uint64_t files = minus(m->cached_bytes, m->shmem_bytes);
  uint64_t high = min(m->shmem_bytes, m->mapped_bytes);
  uint64_t low = min(minus(m->mapped_bytes, files), high);
  uint64_t shmem = max(low, min(h->pss_shmem, high)); /* mapped */
  uint64_t unread = distance(a->bytes[HOST_GROUPS], h->pss);
  uint64_t doubt = more(unread, doubt_of_sum(&h->pss_doubt));
  uint64_t error = max(high - shmem, shmem - low);

  if (!h->lacks_shmem)
    error = min(error, doubt);
  a->bytes[HOST_BUFFERS] = m->buffers_bytes;
  a->bytes[HOST_TMPFS] = m->shmem_bytes - shmem;
  a->bytes[HOST_PAGE_CACHE] = minus(files, m->mapped_bytes - shmem);
  a->error[HOST_TMPFS] = a->error[HOST_PAGE_CACHE] = error;
}

static void set_swap_cache(const struct meminfo_sample *m,
                           struct host_account *a) {
  uint64_t mapped = more(m->anon_pages_bytes, m->shmem_bytes);
  uint64_t listed = more(m->active_anon_bytes, m->inactive_anon_bytes);
  uint64_t low = min(minus(listed, mapped), m->swap_cached_bytes);
  uint64_t high = min(minus(more(listed, m->unevictable_bytes), mapped),
                      m->swap_cached_bytes);

  a->bytes[HOST_SWAP_CACHE] = high;
  a->error[HOST_SWAP_CACHE] = high - low;
}

static void set_hugetlb(const struct meminfo_sample *m,
                        const struct host_devices *d, struct host_account *a) {
  uint64_t total = max(m->hugetlb_bytes,
                       times(m->huge_pages_total, m->huge_page_size_bytes));
  uint64_t unused = more(times(m->huge_pages_free, m->huge_page_size_bytes),
                         d->hugetlb_free_bytes);

  a->bytes[HOST_HUGETLB_FREE] = min(unused, total);
  a->bytes[HOST_HUGETLB_USED] = minus(total, unused);
}

static void set_kernel(const struct meminfo_sample *m,
                       const struct host_devices *d, struct host_account *a) {
  a->bytes[HOST_FREE] = m->mem_free_bytes;
  a->bytes[HOST_SLAB_RECLAIMABLE] = m->slab_reclaimable_bytes;
  a->bytes[HOST_SLAB_UNRECLAIMABLE] = m->slab_unreclaimable_bytes;
  a->bytes[HOST_PAGE_TABLES] =
      more(m->page_tables_bytes, m->sec_page_tables_bytes);
  a->bytes[HOST_KERNEL_STACK] = m->kernel_stack_bytes;
  a->bytes[HOST_PERCPU] = m->percpu_bytes;
  a->bytes[HOST_ZRAM] = d->zram_bytes;
  a->bytes[HOST_ZSWAP] = m->zswap_bytes;
}

/* Hands MemTotal out, and the rest to unaccounted. */
static void fit(uint64_t mem_total, struct host_account *a) {
  uint64_t left = mem_total, cut = 0;

  for (int i = 0; i < HOST_UNACCOUNTED; i++) {
    uint64_t excess = minus(a->bytes[i], left);

    a->bytes[i] -= excess;
    a->error[i] = more(a->error[i], excess);
    left -= a->bytes[i];
    cut = more(cut, excess);
  }
  a->bytes[HOST_UNACCOUNTED] = left;
  a->error[HOST_UNACCOUNTED] = cut;
  a->outside = min(a->outside, a->bytes[HOST_GROUPS]);
}

static uint32_t known_parts(const struct meminfo_sample *m,
                            const struct host_devices *d) {
  uint32_t known = (1U << HOST_PARTS) - 1;

  if (!(m->known & MEMINFO_HUGE_PAGES))
    known &= ~(1U << HOST_HUGETLB_USED | 1U << HOST_HUGETLB_FREE);
  if (!(m->known & MEMINFO_PERCPU))
    known &= ~(1U << HOST_PERCPU);
  if (d->zram_bytes == 0)
    known &= ~(1U << HOST_ZRAM);
  if (!(m->known & MEMINFO_ZSWAP) || m->swap_total_bytes == 0)
    known &= ~(1U << HOST_ZSWAP);
  if (m->swap_total_bytes == 0)
    known &= ~(1U << HOST_SWAP_CACHE);
  return known;
}

bool host_account_make(const struct meminfo_sample *m,
                       const struct host_processes *h,
                       const struct host_devices *d, struct host_account *ret) {
  static const unsigned needed = MEMINFO_FREE | MEMINFO_BUFFERS |
                                 MEMINFO_CACHED | MEMINFO_ANON_PAGES |
                                 MEMINFO_MAPPED | MEMINFO_SHMEM;
  struct host_account a = {.known = known_parts(m, d)};

  if ((m->known & needed) != needed)
    return false;
  set_kernel(m, d, &a);
  set_groups(m, h, &a);
  set_hugetlb(m, d, &a);
  set_cache(m, h, &a);
  set_swap_cache(m, &a);
  for (int i = 0; i < HOST_PARTS; i++)
    if (!((a.known >> i) & 1))
      a.bytes[i] = 0;
  fit(m->mem_total_bytes, &a);
  *ret = a;
  return true;
}

/* --- the numbers --- */

static void set_value(struct host_value *v, const char *name,
                      const char *suffix, bool is_part, uint64_t bytes) {
  snprintf(v->name, sizeof(v->name), "%s%s", name, suffix);
  v->is_part = is_part;
  v->bytes = bytes;
}

/* Each part takes two steps: the amount and its error. */
static bool next_of_part(const struct host_account *a, unsigned step,
                         struct host_value *ret) {
  unsigned part = step / 2;
  bool is_error = step & 1;

  if (!((a->known >> part) & 1) || (is_error && !parts[part].has_error))
    return false;
  set_value(ret, parts[part].name, is_error ? "_error" : "", !is_error,
            is_error ? a->error[part] : a->bytes[part]);
  return true;
}

bool host_next(const struct host_account *a, unsigned *cursor,
               struct host_value *ret) {
  while (*cursor < 2 * HOST_PARTS)
    if (next_of_part(a, (*cursor)++, ret))
      return true;
  if (*cursor >= 2 * HOST_PARTS + 2)
    return false;
  if ((*cursor)++ == 2 * HOST_PARTS)
    set_value(ret, "outside", "", false, a->outside);
  else
    set_value(ret, "outside", "_error", false, a->outside_error);
  return true;
}
